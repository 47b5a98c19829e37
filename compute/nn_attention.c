/* Softmax attention in tiles: scores of a block of query rows against KEY_TILE keys, an online
 * softmax, then the weighted sum of values; nothing larger than a tile exists. The output rows
 * themselves are the accumulators.
 *
 * What a row computes depends on its own slot alone: tiles are counted from slot 0, and a row takes
 * just the keys it may see. So the rows of a batch or a verify block equal the rows decoded one by
 * one. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

enum { KEY_TILE = 64, Q_BLOCK = 64, SEGMENT_BLOCK = 128 };
/* Half the scratch holds queries with their scores, the other half a turned tile of keys. */
static_assert((size_t)KEY_TILE * NN_HEAD_MAX <= SCRATCH_FLOATS / 2, "a tile of keys fits");

/* ---- causal, over pages ---- */

typedef struct store_args {
    const kv_pages *kv;
    const float *k, *v;
    size_t first, D, k_stride, v_stride;
} store_args;

static void store_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    (void)o;
    const store_args *a = args;
    for (size_t t = begin; t < end; t++) {
        size_t page = (a->first + t) / a->kv->page_tokens;
        size_t at = (a->first + t) % a->kv->page_tokens * a->D;
        memcpy(a->kv->k[page] + at, a->k + t * a->k_stride, a->D * sizeof(float));
        memcpy(a->kv->v[page] + at, a->v + t * a->v_stride, a->D * sizeof(float));
    }
}

void nn_kv_store(compute *c, const kv_pages *kv, const float *k, const float *v, size_t first, size_t T,
                 size_t n_kv, size_t hd, size_t k_stride, size_t v_stride)
{
    store_args args = {kv, k, v, first, n_kv * hd, k_stride, v_stride};
    nn_run_rows(c, store_rows, &args, T, n_kv * hd);
}

typedef struct attention_job {
    compute *c;
    float *out;
    const float *q;
    const kv_pages *kv;
    float scale;
    size_t first, T, H, n_kv, hd, row_stride, head_stride;
    size_t group;                   /* query heads of a key head */
    size_t block_rows, block_heads; /* of a task: together at most Q_BLOCK queries */
} attention_job;

/* Rows t0 .. t1-1 of query heads h0 .. h1-1, which share key head kv_head; query r of the block is
 * row t0 + r / (h1 - h0). */
typedef struct q_block {
    size_t t0, t1, h0, h1, kv_head;
} q_block;

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

static q_block find_block(const attention_job *job, size_t task)
{
    size_t n_parts = (job->group + job->block_heads - 1) / job->block_heads;
    size_t part = task % n_parts, kv_head = task / n_parts % job->n_kv;
    size_t t0 = task / n_parts / job->n_kv * job->block_rows;
    size_t h0 = part * job->block_heads, h1 = min_size(h0 + job->block_heads, job->group);
    return (q_block){t0, min_size(t0 + job->block_rows, job->T), kv_head * job->group + h0,
                     kv_head * job->group + h1, kv_head};
}

static void begin_rows(const attention_job *job, attention_scratch *s, const q_block *b)
{
    size_t r = 0;
    for (size_t t = b->t0; t < b->t1; t++) {
        for (size_t h = b->h0; h < b->h1; h++, r++) {
            memcpy(s->q + r * job->hd, job->q + t * job->row_stride + h * job->head_stride,
                   job->hd * sizeof(float));
            memset(job->out + (t * job->H + h) * job->hd, 0, job->hd * sizeof(float));
            s->max[r] = -INFINITY;
            s->sum[r] = 0;
        }
    }
    job->c->ops->scale(s->q, job->scale, r * job->hd);
}

/* Adds the keys of slots `slot` .. slot+n-1 (k and v point at the first) to the block's rows. */
static void attend_tile(const attention_job *job, attention_scratch *s, const q_block *b, size_t slot,
                        size_t n, const float *k, const float *v)
{
    const ops *o = job->c->ops;
    size_t hd = job->hd, kv_stride = job->n_kv * hd, n_heads = b->h1 - b->h0;
    o->dot_rows[DTYPE_F32](s->scores, KEY_TILE, s->q, hd, (b->t1 - b->t0) * n_heads, k, kv_stride, n, hd);
    for (size_t t = b->t0; t < b->t1; t++) {
        if (job->first + t < slot) {
            continue;
        }
        size_t visible = min_size(n, job->first + t + 1 - slot), r = (t - b->t0) * n_heads;
        float *out = job->out + (t * job->H + b->h0) * hd;
        for (size_t i = 0; i < n_heads; i++) {
            float factor =
                o->softmax_tile(s->scores + (r + i) * KEY_TILE, visible, &s->max[r + i], &s->sum[r + i]);
            if (factor != 1.0f) {
                o->scale(out + i * hd, factor, hd);
            }
        }
        o->mul_add(out, hd, s->scores + r * KEY_TILE, KEY_TILE, v, kv_stride, n_heads, visible, hd);
    }
}

static void attention_task(void *ctx, size_t task, size_t thread)
{
    const attention_job *job = ctx;
    q_block b = find_block(job, task);
    size_t n_heads = b.h1 - b.h0, R = (b.t1 - b.t0) * n_heads;
    attention_scratch s = split_scratch(nn_scratch(job->c, thread), R, job->hd);
    begin_rows(job, &s, &b);

    size_t page_tokens = job->kv->page_tokens, n_slots = job->first + b.t1;
    for (size_t slot = 0; slot < n_slots;) {
        size_t in_page = slot % page_tokens;
        size_t n = min_size(min_size(KEY_TILE, page_tokens - in_page), n_slots - slot);
        size_t at = (in_page * job->n_kv + b.kv_head) * job->hd;
        attend_tile(job, &s, &b, slot, n, job->kv->k[slot / page_tokens] + at,
                    job->kv->v[slot / page_tokens] + at);
        slot += n;
    }

    for (size_t r = 0; r < R; r++) {
        size_t t = b.t0 + r / n_heads, h = b.h0 + r % n_heads;
        job->c->ops->scale(job->out + (t * job->H + h) * job->hd, 1.0f / s.sum[r], job->hd);
    }
}

void nn_attention(compute *c, float *out, const float *q, const kv_pages *kv, float scale, size_t first,
                  size_t T, size_t H, size_t n_kv, size_t hd, size_t row_stride, size_t head_stride)
{
    assert(n_kv > 0 && H % n_kv == 0 && hd <= NN_HEAD_MAX);
    attention_job job = {
        c, out, q, kv, scale, first, T, H, n_kv, hd, row_stride, head_stride, .group = H / n_kv};
    size_t queries = queries_that_fit(Q_BLOCK, hd);
    job.block_heads = min_size(job.group, queries);
    job.block_rows = queries / job.block_heads;
    size_t n_parts = (job.group + job.block_heads - 1) / job.block_heads;
    pool_run(c->pool, attention_task, &job, (T + job.block_rows - 1) / job.block_rows * n_kv * n_parts);
}

/* ---- full, inside segments ---- */

typedef struct segment_job {
    compute *c;
    float *out;
    const float *qkv;
    float scale;
    size_t begin, end; /* rows of the segment */
    size_t H, hd;
    size_t block_rows; /* of a task */
} segment_job;

/* Queries of one head, rows t0 .. t1-1, against a tile of n keys from row `key`. Keys are turned so
 * that the scores are rows of a plain matrix product. */
static void segment_tile(const segment_job *job, attention_scratch *s, float *turned, size_t head, size_t t0,
                         size_t t1, size_t key, size_t n)
{
    const ops *o = job->c->ops;
    size_t hd = job->hd, D = job->H * hd, stride = 3 * D;
    const float *k = job->qkv + key * stride + D + head * hd, *v = k + D;
    o->transpose(turned, KEY_TILE, k, stride, n, hd);
    memset(s->scores, 0, (t1 - t0) * KEY_TILE * sizeof(float));
    o->mul_add(s->scores, KEY_TILE, s->q, hd, turned, KEY_TILE, t1 - t0, hd, n);
    for (size_t t = t0; t < t1; t++) {
        size_t r = t - t0;
        float factor = o->softmax_tile(s->scores + r * KEY_TILE, n, &s->max[r], &s->sum[r]);
        if (factor != 1.0f) {
            o->scale(job->out + t * D + head * hd, factor, hd);
        }
    }
    o->mul_add(job->out + t0 * D + head * hd, D, s->scores, KEY_TILE, v, stride, t1 - t0, n, hd);
}

static void segment_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    size_t head = task % job->H, hd = job->hd, D = job->H * hd;
    size_t t0 = job->begin + task / job->H * job->block_rows;
    size_t t1 = min_size(t0 + job->block_rows, job->end);
    float *turned = nn_scratch(job->c, thread);
    attention_scratch s = split_scratch(turned + hd * KEY_TILE, job->block_rows, hd);
    for (size_t t = t0; t < t1; t++) {
        memcpy(s.q + (t - t0) * hd, job->qkv + t * 3 * D + head * hd, hd * sizeof(float));
        memset(job->out + t * D + head * hd, 0, hd * sizeof(float));
        s.max[t - t0] = -INFINITY;
        s.sum[t - t0] = 0;
    }
    job->c->ops->scale(s.q, job->scale, (t1 - t0) * hd);
    for (size_t key = job->begin; key < job->end; key += KEY_TILE) {
        segment_tile(job, &s, turned, head, t0, t1, key, min_size(KEY_TILE, job->end - key));
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
