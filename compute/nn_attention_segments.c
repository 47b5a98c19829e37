/* Softmax attention inside segments, in tiles: scores of a block of query rows against a tile of
 * keys, an online softmax, then the weighted sum of values; nothing larger than a tile exists. In
 * floats the output rows themselves are the accumulators. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"
#include "compute/kernels/kernel.h"

/* Many queries of a block share the turning of a tile of keys and the copy of its values. */
enum { KEY_TILE = 128, SEGMENT_BLOCK = 512 };
/* Half the scratch holds queries with their scores, the other half a tile of keys or values. */
enum { HALF_SCRATCH = SCRATCH_FLOATS / 2 };
/* Rounded: keys of a tile, whose values share a scale in 8 bits; queries whose scores exist together, which
 * stay in the L2 cache; queries that share the packing of a tile. */
enum { ROUND_PANELS = 4, ROUND_TILE = ROUND_PANELS * TILE_ROWS, ROUND_ROWS = 64, ROUND_BLOCK = 1024 };
static_assert(ROUND_TILE == TILE_SHARE * QUANT_BLOCK, "the values of a tile share a scale");
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
    const int32_t *cu;
    size_t H, hd;
    size_t block_rows; /* queries of a task */
    size_t key_tile;   /* in floats: keys of a tile */
    bool q8;           /* rounded: to 8 bits, else to bf16 */
} segment_job;

/* Queries t0 .. t1-1 of a head, and the rows of their segment. */
typedef struct segment_block {
    size_t head, t0, t1, begin, end;
} segment_block;

static size_t n_blocks_of(const segment_job *job, size_t segment)
{
    return ((size_t)(job->cu[segment + 1] - job->cu[segment]) + job->block_rows - 1) / job->block_rows;
}

static segment_block block_of(const segment_job *job, size_t task)
{
    size_t segment = 0, block = task / job->H;
    while (block >= n_blocks_of(job, segment)) {
        block -= n_blocks_of(job, segment++);
    }
    segment_block b = {
        .head = task % job->H, .begin = (size_t)job->cu[segment], .end = (size_t)job->cu[segment + 1]};
    b.t0 = b.begin + block * job->block_rows;
    b.t1 = min_size(b.t0 + job->block_rows, b.end);
    return b;
}

/* ---- in floats ---- */

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
    const segment_block b = block_of(job, task);
    const size_t hd = job->hd, D = job->H * hd;
    float *room = nn_scratch(job->c, thread);
    attention_scratch s = split_scratch(room + hd * job->key_tile, job->block_rows, hd, job->key_tile);
    for (size_t t = b.t0; t < b.t1; t++) {
        memcpy(s.q + (t - b.t0) * hd, job->qkv + t * 3 * D + b.head * hd, hd * sizeof(float));
        memset(job->out + t * D + b.head * hd, 0, hd * sizeof(float));
        s.max[t - b.t0] = -INFINITY;
        s.sum[t - b.t0] = 0;
    }
    job->c->ops->scale(s.q, job->scale, (b.t1 - b.t0) * hd);
    for (size_t key = b.begin; key < b.end; key += job->key_tile) {
        segment_tile(job, &s, room, b.head, b.t0, b.t1, key, min_size(job->key_tile, b.end - key));
    }
    for (size_t t = b.t0; t < b.t1; t++) {
        job->c->ops->scale(job->out + t * D + b.head * hd, 1.0f / s.sum[t - b.t0], hd);
    }
}

/* ---- rounded to bf16, or to 8 bits ---- */

/* What a task of R queries of a head computes with. Panels are of keys side by side, or of columns of
 * values. */
typedef struct round_scratch {
    size_t R;
    float *mix;       /* [panels of a head, R, TILE_ROWS] */
    float *max, *sum; /* [R] */
    float *scores;    /* [ROUND_PANELS, ROUND_ROWS, TILE_ROWS]; in 8 bits then what a tile adds to mix */
    float *turned;    /* [hd, ROUND_TILE] values */
    unsigned char *q, *weights; /* [R, columns of a head], [ROUND_ROWS, ROUND_TILE] */
    unsigned char *keys, *values;
    /* 8 bits: scales of queries [R, blocks], of weights [ROUND_ROWS, TILE_SHARE]; the largest scores of
     * panels and, last, of what is mixed already [ROUND_PANELS + 1, ROUND_ROWS]; sums of weights */
    float *q_scale, *scale, *tops, *totals;
} round_scratch;

static size_t head_panels(size_t hd)
{
    return (hd + TILE_ROWS - 1) / TILE_ROWS;
}

/* Bytes of a panel of K columns. */
static size_t panel_bytes(bool q8, size_t K)
{
    return q8 ? quant_columns(K) / QUANT_BLOCK * sizeof(tile_q_block)
              : (K + 1) / 2 * TILE_ROWS * sizeof(uint32_t);
}

/* The next n floats, or bytes, behind *used bytes of base; NULL is counted alone. */
static void *take(void *base, size_t *used, size_t bytes)
{
    void *at = base ? (unsigned char *)base + *used : NULL;
    *used += (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return at;
}

/* Returns the bytes that it takes of base, which may be NULL. */
static size_t split_round(round_scratch *s, void *base, bool q8, size_t R, size_t hd)
{
    enum { F = sizeof(float) };
    const size_t panels = head_panels(hd), columns = quant_columns(hd);
    size_t n = 0;
    s->R = R;
    s->mix = take(base, &n, panels * R * TILE_ROWS * F);
    s->max = take(base, &n, R * F);
    s->sum = take(base, &n, R * F);
    s->scores = take(base, &n, (size_t)ROUND_PANELS * ROUND_ROWS * TILE_ROWS * F);
    s->turned = take(base, &n, hd * ROUND_TILE * F);
    s->q = take(base, &n, R * columns * (q8 ? 1 : sizeof(uint16_t)));
    s->weights = take(base, &n, (size_t)ROUND_ROWS * ROUND_TILE * (q8 ? 1 : sizeof(uint16_t)));
    s->keys = take(base, &n, ROUND_PANELS * panel_bytes(q8, hd));
    s->values = take(base, &n, panels * panel_bytes(q8, ROUND_TILE));
    s->q_scale = take(base, &n, R * columns / QUANT_BLOCK * F);
    s->scale = take(base, &n, (size_t)ROUND_ROWS * TILE_SHARE * F);
    s->tops = take(base, &n, (size_t)(ROUND_PANELS + 1) * ROUND_ROWS * F);
    s->totals = take(base, &n, (size_t)ROUND_PANELS * ROUND_ROWS * F);
    return n;
}

/* Queries of a task; 0: heads that large have no room. */
static size_t round_queries(bool q8, size_t hd)
{
    round_scratch s;
    size_t R = ROUND_BLOCK;
    while (R >= ROUND_ROWS && split_round(&s, NULL, q8, R, hd) > SCRATCH_FLOATS * sizeof(float)) {
        R /= 2;
    }
    return R < ROUND_ROWS ? 0 : R;
}

static void pack_queries(const segment_job *job, const segment_block *b, const round_scratch *s)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, columns = quant_columns(hd), n_blocks = columns / QUANT_BLOCK;
    float *row = s->turned;
    for (size_t r = 0; r < b->t1 - b->t0; r++) {
        memcpy(row, job->qkv + (b->t0 + r) * 3 * job->H * hd + b->head * hd, hd * sizeof *row);
        o->scale(row, job->scale, hd);
        if (!job->q8) {
            (void)o->kv[KV_BF16].pack(s->q + r * hd * sizeof(uint16_t), row, hd);
            continue;
        }
        unsigned char *q = s->q + r * columns;
        memset(q, 0, columns);
        const float scale = o->kv[KV_Q8].pack(q, row, hd);
        for (size_t i = 0; i < columns; i++) {
            q[i] ^= 0x80; /* tile_q wants them from 0 on */
        }
        for (size_t i = 0; i < n_blocks; i++) {
            s->q_scale[r * n_blocks + i] = scale;
        }
    }
}

/* Rows of floats as a panel. In 8 bits without offsets: then weights begin at 0. */
static void pack_panel(const segment_job *job, unsigned char *out, const float *x, size_t stride, size_t T,
                       size_t K, bool offsets)
{
    if (!job->q8) {
        job->c->ops->pack_bf16((uint32_t *)(void *)out, x, stride, T, (K + 1) / 2 * 2);
        return;
    }
    tile_q_block *blocks = (tile_q_block *)(void *)out;
    job->c->ops->pack_q(blocks, x, stride, T, K);
    for (size_t i = 0; !offsets && i < quant_columns(K) / QUANT_BLOCK; i++) {
        memset(blocks[i].offset, 0, sizeof blocks[i].offset);
    }
}

/* Keys and values of n rows from row `key` on. */
static void pack_tile(const segment_job *job, const segment_block *b, const round_scratch *s, size_t key,
                      size_t n)
{
    const size_t hd = job->hd, D = job->H * hd, stride = 3 * D;
    const float *k = job->qkv + key * stride + D + b->head * hd, *v = k + D;
    for (size_t i = 0; i < n; i += TILE_ROWS) {
        pack_panel(job, s->keys + i / TILE_ROWS * panel_bytes(job->q8, hd), k + i * stride, stride,
                   min_size(TILE_ROWS, n - i), hd, true);
    }
    job->c->ops->transpose(s->turned, ROUND_TILE, v, stride, n, hd);
    for (size_t i = 0; n % 2 != 0 && i < hd; i++) {
        s->turned[i * ROUND_TILE + n] = 0;
    }
    for (size_t i = 0; i < hd; i += TILE_ROWS) {
        pack_panel(job, s->values + i / TILE_ROWS * panel_bytes(job->q8, ROUND_TILE),
                   s->turned + i * ROUND_TILE, ROUND_TILE, min_size(TILE_ROWS, hd - i), n, false);
    }
}

/* R queries from r0 on against n keys, in bf16. */
static void attend_bf16(const segment_job *job, const round_scratch *s, size_t r0, size_t R, size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, even = (n + 1) / 2 * 2;
    memset(s->scores, 0, (size_t)ROUND_PANELS * ROUND_ROWS * TILE_ROWS * sizeof *s->scores);
    for (size_t i = 0; i * TILE_ROWS < n; i++) {
        o->tile_bf16(s->scores + i * ROUND_ROWS * TILE_ROWS,
                     (const uint32_t *)(const void *)(s->keys + i * panel_bytes(false, hd)),
                     s->q + r0 * hd * sizeof(uint16_t), hd, min_size(TILE_ROWS, n - i * TILE_ROWS), R, hd);
    }
    for (size_t r = 0; r < R; r++) {
        float row[ROUND_TILE];
        for (size_t i = 0; i * TILE_ROWS < n; i++) {
            memcpy(row + i * TILE_ROWS, s->scores + (i * ROUND_ROWS + r) * TILE_ROWS,
                   TILE_ROWS * sizeof *row);
        }
        const float factor = o->softmax_tile(row, n, &s->max[r0 + r], &s->sum[r0 + r]);
        memset(row + n, 0, (ROUND_TILE - n) * sizeof *row);
        (void)o->kv[KV_BF16].pack(s->weights + r * ROUND_TILE * sizeof(uint16_t), row, even);
        for (size_t p = 0; factor != 1.0f && p < head_panels(hd); p++) {
            o->scale(s->mix + (p * s->R + r0 + r) * TILE_ROWS, factor, TILE_ROWS);
        }
    }
    for (size_t p = 0; p < head_panels(hd); p++) {
        o->tile_bf16(s->mix + (p * s->R + r0) * TILE_ROWS,
                     (const uint32_t *)(const void *)(s->values + p * panel_bytes(false, ROUND_TILE)),
                     s->weights, ROUND_TILE, min_size(TILE_ROWS, hd - p * TILE_ROWS), R, even);
    }
}

/* Weights of R queries: bytes of each panel count in 255ths of its own largest, so that a key that stands
 * out costs the others nothing of theirs. Leaves in the last of tops what mix is to be multiplied with. */
static void weigh_q8(const segment_job *job, const round_scratch *s, size_t r0, size_t R, size_t n)
{
    const size_t n_panels = (n + TILE_ROWS - 1) / TILE_ROWS;
    float *max = s->max + r0, *sum = s->sum + r0, *before = s->tops + n_panels * ROUND_ROWS;
    for (size_t i = 0; i < n_panels; i++) {
        for (size_t r = 0; r < R; r++) {
            s->totals[i * ROUND_ROWS + r] = (float)job->c->ops->weights_q(
                s->weights + r * ROUND_TILE + i * TILE_ROWS, s->scores + (i * ROUND_ROWS + r) * TILE_ROWS,
                min_size(TILE_ROWS, n - i * TILE_ROWS), &s->tops[i * ROUND_ROWS + r]);
        }
    }
    for (size_t r = 0; r < R; r++) {
        float top = max[r];
        for (size_t i = 0; i < n_panels; i++) {
            top = fmaxf(top, s->tops[i * ROUND_ROWS + r]);
        }
        for (size_t i = 0; i < n_panels; i++) {
            s->tops[i * ROUND_ROWS + r] -= top;
        }
        before[r] = max[r] - top;
        max[r] = top;
    }
    for (size_t i = 0; i <= n_panels; i++) {
        job->c->ops->exp(s->tops + i * ROUND_ROWS, R);
    }
    for (size_t r = 0; r < R; r++) {
        sum[r] *= before[r];
        for (size_t i = 0; i < n_panels; i++) {
            const float scale = s->tops[i * ROUND_ROWS + r] / 255.0f;
            s->scale[r * TILE_SHARE + 2 * i] = s->scale[r * TILE_SHARE + 2 * i + 1] = scale;
            sum[r] += scale * s->totals[i * ROUND_ROWS + r];
        }
    }
}

/* The same in 8 bits. */
static void attend_q8(const segment_job *job, const round_scratch *s, size_t r0, size_t R, size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, columns = quant_columns(hd), n_blocks = columns / QUANT_BLOCK;
    const size_t n_panels = (n + TILE_ROWS - 1) / TILE_ROWS;
    const tile_q_rows q = {.u = s->q + r0 * columns,
                           .u_stride = columns,
                           .scale = s->q_scale + r0 * n_blocks,
                           .stride = n_blocks};
    const tile_q_rows weights = {
        .u = s->weights, .u_stride = ROUND_TILE, .scale = s->scale, .stride = TILE_SHARE};
    for (size_t i = 0; i < n_panels; i++) {
        o->tile_q(s->scores + i * ROUND_ROWS * TILE_ROWS,
                  (const tile_q_block *)(const void *)(s->keys + i * panel_bytes(true, hd)), &q,
                  min_size(TILE_ROWS, n - i * TILE_ROWS), R, n_blocks);
    }
    weigh_q8(job, s, r0, R, n);
    const float *before = s->tops + n_panels * ROUND_ROWS;
    for (size_t p = 0; p < head_panels(hd); p++) {
        float *mix = s->mix + (p * s->R + r0) * TILE_ROWS;
        o->tile_q(s->scores,
                  (const tile_q_block *)(const void *)(s->values + p * panel_bytes(true, ROUND_TILE)),
                  &weights, min_size(TILE_ROWS, hd - p * TILE_ROWS), R, 2 * n_panels);
        for (size_t r = 0; r < R; r++) {
            if (before[r] != 1.0f) {
                o->scale(mix + r * TILE_ROWS, before[r], TILE_ROWS);
            }
        }
        o->add(mix, s->scores, R * TILE_ROWS);
    }
}

static void round_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    const segment_block b = block_of(job, task);
    const size_t R = b.t1 - b.t0, hd = job->hd;
    round_scratch s;
    (void)split_round(&s, nn_scratch(job->c, thread), job->q8, R, hd);
    pack_queries(job, &b, &s);
    memset(s.mix, 0, head_panels(hd) * R * TILE_ROWS * sizeof *s.mix);
    for (size_t r = 0; r < R; r++) {
        s.max[r] = -INFINITY;
        s.sum[r] = 0;
    }
    for (size_t key = b.begin; key < b.end; key += ROUND_TILE) {
        const size_t n = min_size(ROUND_TILE, b.end - key);
        pack_tile(job, &b, &s, key, n);
        for (size_t r = 0; r < R; r += ROUND_ROWS) {
            (job->q8 ? attend_q8 : attend_bf16)(job, &s, r, min_size(ROUND_ROWS, R - r), n);
        }
    }
    for (size_t r = 0; r < R; r++) {
        float *out = job->out + (b.t0 + r) * job->H * hd + b.head * hd;
        for (size_t p = 0; p < head_panels(hd); p++) {
            memcpy(out + p * TILE_ROWS, s.mix + (p * R + r) * TILE_ROWS,
                   min_size(TILE_ROWS, hd - p * TILE_ROWS) * sizeof *out);
        }
        job->c->ops->scale(out, 1.0f / s.sum[r], hd);
    }
}

void nn_attention_segments(compute *c, float *out, const float *qkv, const int32_t *cu, size_t n_segments,
                           dtype rounded, float scale, size_t H, size_t hd)
{
    assert(hd <= NN_HEAD_MAX);
    segment_job job = {.c = c, .out = out, .qkv = qkv, .cu = cu, .scale = scale, .H = H, .hd = hd};
    pool_fn *task = segment_task;
    size_t n_tasks = 0;
    job.q8 = rounded == DTYPE_Q8 && c->ops->weights_q;
    if (c->fast && (job.q8 || (rounded == DTYPE_BF16 && c->ops->tile_bf16 && hd % 2 == 0))) {
        job.block_rows = round_queries(job.q8, hd);
        task = round_task;
    }
    if (job.block_rows == 0) {
        job.key_tile = min_size(KEY_TILE, HALF_SCRATCH / hd);
        job.block_rows = min_size(SEGMENT_BLOCK, HALF_SCRATCH / (hd + job.key_tile + 2));
        task = segment_task;
    }
    for (size_t i = 0; i < n_segments; i++) {
        n_tasks += n_blocks_of(&job, i) * H;
    }
    pool_run(c->pool, task, &job, n_tasks);
}
