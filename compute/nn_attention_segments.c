/* Softmax attention inside segments, in tiles: scores of a block of query rows against KEY_TILE keys, an online
 * softmax, then the weighted sum of values; nothing larger than a tile exists. The output rows
 * themselves are the accumulators. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

/* Many queries of a block share the turning of a tile of keys and the copy of its values. */
enum { KEY_TILE = 64, SEGMENT_BLOCK = 512 };
/* Half the scratch holds queries with their scores, the other half a tile of keys or values. */
static_assert((size_t)KEY_TILE * NN_HEAD_MAX <= SCRATCH_FLOATS / 2, "a tile of keys fits");

/* Scratch of a task: query vectors, their scores, and the running softmax. */
typedef struct attention_scratch {
    float *q;      /* [R, hd], scaled */
    float *scores; /* [R, KEY_TILE] */
    float *max, *sum;
} attention_scratch;

static attention_scratch split_scratch(float *scratch, size_t R, size_t hd)
{
    attention_scratch s;
    s.q = scratch;
    s.scores = s.q + R * hd;
    s.max = s.scores + R * KEY_TILE;
    s.sum = s.max + R;
    return s;
}

/* Queries of a block: `wanted`, or what half the scratch holds of very large heads. */
static size_t queries_that_fit(size_t wanted, size_t hd)
{
    size_t fit = SCRATCH_FLOATS / 2 / (hd + KEY_TILE + 2);
    return min_size(wanted, fit);
}

typedef struct segment_job {
    compute *c;
    float *out;
    const float *qkv;
    float scale;
    size_t begin, end; /* rows of the segment */
    size_t H, hd;
    size_t block_rows; /* of a task */
} segment_job;

/* Queries of one head, rows t0 .. t1-1, against a tile of n keys from row `key`. Keys are turned so that the scores are
 * rows of a plain matrix product. Values are copied together: their rows in qkv lie so far apart that a tile of them falls
 * into few sets of the first cache. room [hd * KEY_TILE] holds the one, then the other. */
static void segment_tile(const segment_job *job, attention_scratch *s, float *room, size_t head, size_t t0,
                         size_t t1, size_t key, size_t n)
{
    const ops *o = job->c->ops;
    size_t hd = job->hd, D = job->H * hd, stride = 3 * D;
    const float *k = job->qkv + key * stride + D + head * hd, *v = k + D;
    o->transpose(room, KEY_TILE, k, stride, n, hd);
    memset(s->scores, 0, (t1 - t0) * KEY_TILE * sizeof(float));
    o->mul_add(s->scores, KEY_TILE, s->q, hd, room, KEY_TILE, t1 - t0, hd, n);
    for (size_t t = t0; t < t1; t++) {
        size_t r = t - t0;
        float factor = o->softmax_tile(s->scores + r * KEY_TILE, n, &s->max[r], &s->sum[r]);
        if (factor != 1.0f) {
            o->scale(job->out + t * D + head * hd, factor, hd);
        }
    }
    for (size_t j = 0; j < n; j++) {
        memcpy(room + j * hd, v + j * stride, hd * sizeof *room);
    }
    o->mul_add(job->out + t0 * D + head * hd, D, s->scores, KEY_TILE, room, hd, t1 - t0, n, hd);
}

static void segment_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    size_t head = task % job->H, hd = job->hd, D = job->H * hd;
    size_t t0 = job->begin + task / job->H * job->block_rows;
    size_t t1 = min_size(t0 + job->block_rows, job->end);
    float *room = nn_scratch(job->c, thread);
    attention_scratch s = split_scratch(room + hd * KEY_TILE, job->block_rows, hd);
    for (size_t t = t0; t < t1; t++) {
        memcpy(s.q + (t - t0) * hd, job->qkv + t * 3 * D + head * hd, hd * sizeof(float));
        memset(job->out + t * D + head * hd, 0, hd * sizeof(float));
        s.max[t - t0] = -INFINITY;
        s.sum[t - t0] = 0;
    }
    job->c->ops->scale(s.q, job->scale, (t1 - t0) * hd);
    for (size_t key = job->begin; key < job->end; key += KEY_TILE) {
        segment_tile(job, &s, room, head, t0, t1, key, min_size(KEY_TILE, job->end - key));
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
    job.block_rows = queries_that_fit(SEGMENT_BLOCK, hd);
    for (size_t i = 0; i < n_segments; i++) {
        job.begin = (size_t)cu[i];
        job.end = (size_t)cu[i + 1];
        size_t n_blocks = (job.end - job.begin + job.block_rows - 1) / job.block_rows;
        pool_run(c->pool, segment_task, &job, n_blocks * H);
    }
}
