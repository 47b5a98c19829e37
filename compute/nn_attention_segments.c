/* Softmax attention inside segments, in tiles: scores of a block of query rows against KEY_TILE
 * keys, an online softmax, then the weighted sum of values; nothing larger than a tile exists. The
 * output rows themselves are the accumulators. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

/* Many queries of a block share the turning of a tile of keys and the copy of its values. */
enum { KEY_TILE = 128, SEGMENT_BLOCK = 512 };
/* Half the scratch holds queries with their scores, the other half a tile of keys or values. */
enum { HALF_SCRATCH = SCRATCH_FLOATS / 2 };
static_assert((size_t)NN_HEAD_MAX <= HALF_SCRATCH, "a tile of one key fits");

/* Scratch of a task: query vectors, their scores, and the running softmax. */
typedef struct attention_scratch {
    float *q;      /* [R, hd], scaled */
    float *scores; /* [R, key_tile] */
    float *max, *sum;
} attention_scratch;

static attention_scratch split_scratch(float *scratch, size_t R, size_t hd, size_t key_tile)
{
    attention_scratch s;
    s.q = scratch;
    s.scores = s.q + R * hd;
    s.max = s.scores + R * key_tile;
    s.sum = s.max + R;
    return s;
}

typedef struct segment_job {
    compute *c;
    float *out;
    const float *qkv;
    float scale;
    size_t begin, end; /* rows of the segment */
    size_t H, hd;
    size_t block_rows; /* queries of a task */
    size_t key_tile;   /* keys of a tile */
} segment_job;

/* Queries of one head, rows t0 .. t1-1, against a tile of n keys from row `key`. Keys are turned so
 * that the scores are rows of a plain matrix product. Values are copied together: their rows in qkv
 * lie so far apart that a tile of them falls into few sets of the L1 cache. room [hd * key_tile]
 * holds the one, then the other. */
static void segment_tile(const segment_job *job, attention_scratch *s, float *room, size_t head, size_t t0,
                         size_t t1, size_t key, size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, D = job->H * hd, stride = 3 * D, key_tile = job->key_tile;
    const float *k = job->qkv + key * stride + D + head * hd, *v = k + D;
    o->transpose(room, key_tile, k, stride, n, hd);
    o->mul(s->scores, key_tile, s->q, hd, room, key_tile, t1 - t0, hd, n);
    for (size_t t = t0; t < t1; t++) {
        size_t r = t - t0;
        float factor = o->softmax_tile(s->scores + r * key_tile, n, &s->max[r], &s->sum[r]);
        if (factor != 1.0f) {
            o->scale(job->out + t * D + head * hd, factor, hd);
        }
    }
    for (size_t j = 0; j < n; j++) {
        memcpy(room + j * hd, v + j * stride, hd * sizeof *room);
    }
    o->mul_add(job->out + t0 * D + head * hd, D, s->scores, key_tile, room, hd, t1 - t0, n, hd);
}

static void segment_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    size_t head = task % job->H, hd = job->hd, D = job->H * hd;
    size_t t0 = job->begin + task / job->H * job->block_rows;
    size_t t1 = min_size(t0 + job->block_rows, job->end);
    float *room = nn_scratch(job->c, thread);
    attention_scratch s = split_scratch(room + hd * job->key_tile, job->block_rows, hd, job->key_tile);
    for (size_t t = t0; t < t1; t++) {
        memcpy(s.q + (t - t0) * hd, job->qkv + t * 3 * D + head * hd, hd * sizeof(float));
        memset(job->out + t * D + head * hd, 0, hd * sizeof(float));
        s.max[t - t0] = -INFINITY;
        s.sum[t - t0] = 0;
    }
    job->c->ops->scale(s.q, job->scale, (t1 - t0) * hd);
    for (size_t key = job->begin; key < job->end; key += job->key_tile) {
        segment_tile(job, &s, room, head, t0, t1, key, min_size(job->key_tile, job->end - key));
    }
    for (size_t t = t0; t < t1; t++) {
        job->c->ops->scale(job->out + t * D + head * hd, 1.0f / s.sum[t - t0], hd);
    }
}

void nn_attention_segments(compute *c, float *out, const float *qkv, const int32_t *cu, size_t n_segments,
                           float scale, size_t H, size_t hd)
{
    assert(hd <= NN_HEAD_MAX);
    segment_job job = {.c = c, .out = out, .qkv = qkv, .scale = scale, .H = H, .hd = hd};
    job.key_tile = min_size(KEY_TILE, HALF_SCRATCH / hd);
    job.block_rows = min_size(SEGMENT_BLOCK, HALF_SCRATCH / (hd + job.key_tile + 2));
    for (size_t i = 0; i < n_segments; i++) {
        job.begin = (size_t)cu[i];
        job.end = (size_t)cu[i + 1];
        size_t n_blocks = (job.end - job.begin + job.block_rows - 1) / job.block_rows;
        pool_run(c->pool, segment_task, &job, n_blocks * H);
    }
}
