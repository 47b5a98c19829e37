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
/* Tasks of a thread, so that all end together. */
enum { THREAD_TASKS = 8 };
/* Half the scratch holds queries with their scores, the other half a tile of keys or values. */
enum { HALF_SCRATCH = SCRATCH_FLOATS / 2 };
/* Rounded: keys of a tile; of bf16 queries whose scores exist together, which stay in the L2 cache; queries
 * that share the packing of a tile, at most, and with how many it is not cut further for the threads. */
enum {
    ROUND_PANELS = 4,
    ROUND_TILE = ROUND_PANELS * TILE_ROWS,
    ROUND_ROWS = 64,
    ROUND_BLOCK = 4096,
    ROUND_SHARE = 1024
};
static_assert((int)ROUND_TILE == (int)ATTEND_KEYS, "tiles of bf16 and of 8 bits are alike");
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
} segment_job;

/* Queries t0 .. t1-1 of a head, and the rows of their segment. */
typedef struct segment_block {
    size_t head, t0, t1, begin, end;
} segment_block;

static size_t n_blocks_of(const segment_job *job, size_t segment)
{
    return ((size_t)(job->cu[segment + 1] - job->cu[segment]) + job->block_rows - 1) / job->block_rows;
}

static size_t count_tasks(const segment_job *job, size_t n_segments)
{
    size_t n = 0;
    for (size_t i = 0; i < n_segments; i++) {
        n += n_blocks_of(job, i) * job->H;
    }
    return n;
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

/* ---- rounded to bf16 ---- */

/* What a task of R queries of a head computes with. Panels are of keys side by side, or of columns of
 * values. */
typedef struct bf16_scratch {
    size_t R;
    float *mix;            /* [panels of a head, R, TILE_ROWS] */
    float *max, *sum;      /* [R] */
    float *scores;         /* [ROUND_PANELS, ROUND_ROWS, TILE_ROWS] */
    float *turned;         /* [hd, ROUND_TILE] values */
    uint16_t *q, *weights; /* [R, hd], [ROUND_ROWS, ROUND_TILE] */
    uint32_t *keys, *values;
} bf16_scratch;

static size_t head_panels(size_t hd)
{
    return (hd + TILE_ROWS - 1) / TILE_ROWS;
}

/* Words of a panel of K columns. */
static size_t panel_words(size_t K)
{
    return (K + 1) / 2 * TILE_ROWS;
}

/* The next bytes behind *used bytes of base; NULL is counted alone. */
static void *take(void *base, size_t *used, size_t bytes)
{
    void *at = base ? (unsigned char *)base + *used : NULL;
    *used += (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return at;
}

/* Returns the bytes that it takes of base, which may be NULL. */
static size_t split_bf16(bf16_scratch *s, void *base, size_t R, size_t hd)
{
    enum { F = sizeof(float) };
    const size_t panels = head_panels(hd);
    size_t n = 0;
    s->R = R;
    s->mix = take(base, &n, panels * R * TILE_ROWS * F);
    s->max = take(base, &n, R * F);
    s->sum = take(base, &n, R * F);
    s->scores = take(base, &n, (size_t)ROUND_PANELS * ROUND_ROWS * TILE_ROWS * F);
    s->turned = take(base, &n, hd * ROUND_TILE * F);
    s->q = take(base, &n, R * hd * sizeof *s->q);
    s->weights = take(base, &n, (size_t)ROUND_ROWS * ROUND_TILE * sizeof *s->weights);
    s->keys = take(base, &n, ROUND_PANELS * panel_words(hd) * sizeof *s->keys);
    s->values = take(base, &n, panels * panel_words(ROUND_TILE) * sizeof *s->values);
    return n;
}

static void pack_queries_bf16(const segment_job *job, const segment_block *b, const bf16_scratch *s)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd;
    float *row = s->turned;
    for (size_t r = 0; r < b->t1 - b->t0; r++) {
        memcpy(row, job->qkv + (b->t0 + r) * 3 * job->H * hd + b->head * hd, hd * sizeof *row);
        o->scale(row, job->scale, hd);
        (void)o->kv[KV_BF16].pack(s->q + r * hd, row, hd);
    }
}

/* Keys and values of n rows from row `key` on. */
static void pack_tile_bf16(const segment_job *job, const segment_block *b, const bf16_scratch *s, size_t key,
                           size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, D = job->H * hd, stride = 3 * D;
    const float *k = job->qkv + key * stride + D + b->head * hd, *v = k + D;
    for (size_t i = 0; i < n; i += TILE_ROWS) {
        o->pack_bf16(s->keys + i / TILE_ROWS * panel_words(hd), k + i * stride, stride,
                     min_size(TILE_ROWS, n - i), hd);
    }
    o->transpose(s->turned, ROUND_TILE, v, stride, n, hd);
    for (size_t i = 0; n % 2 != 0 && i < hd; i++) {
        s->turned[i * ROUND_TILE + n] = 0;
    }
    for (size_t i = 0; i < hd; i += TILE_ROWS) {
        o->pack_bf16(s->values + i / TILE_ROWS * panel_words(ROUND_TILE), s->turned + i * ROUND_TILE,
                     ROUND_TILE, min_size(TILE_ROWS, hd - i), (n + 1) / 2 * 2);
    }
}

/* R queries from r0 on against n keys. */
static void attend_bf16(const segment_job *job, const bf16_scratch *s, size_t r0, size_t R, size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, even = (n + 1) / 2 * 2;
    memset(s->scores, 0, (size_t)ROUND_PANELS * ROUND_ROWS * TILE_ROWS * sizeof *s->scores);
    for (size_t i = 0; i * TILE_ROWS < n; i++) {
        o->tile_bf16(s->scores + i * ROUND_ROWS * TILE_ROWS, s->keys + i * panel_words(hd), s->q + r0 * hd,
                     hd, min_size(TILE_ROWS, n - i * TILE_ROWS), R, hd);
    }
    for (size_t r = 0; r < R; r++) {
        float row[ROUND_TILE];
        for (size_t i = 0; i * TILE_ROWS < n; i++) {
            memcpy(row + i * TILE_ROWS, s->scores + (i * ROUND_ROWS + r) * TILE_ROWS,
                   TILE_ROWS * sizeof *row);
        }
        const float factor = o->softmax_tile(row, n, &s->max[r0 + r], &s->sum[r0 + r]);
        memset(row + n, 0, (ROUND_TILE - n) * sizeof *row);
        (void)o->kv[KV_BF16].pack(s->weights + r * ROUND_TILE, row, even);
        for (size_t p = 0; factor != 1.0f && p < head_panels(hd); p++) {
            o->scale(s->mix + (p * s->R + r0 + r) * TILE_ROWS, factor, TILE_ROWS);
        }
    }
    for (size_t p = 0; p < head_panels(hd); p++) {
        o->tile_bf16(s->mix + (p * s->R + r0) * TILE_ROWS, s->values + p * panel_words(ROUND_TILE),
                     s->weights, ROUND_TILE, min_size(TILE_ROWS, hd - p * TILE_ROWS), R, even);
    }
}

static void bf16_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    const segment_block b = block_of(job, task);
    const size_t R = b.t1 - b.t0, hd = job->hd;
    bf16_scratch s;
    (void)split_bf16(&s, nn_scratch(job->c, thread), R, hd);
    pack_queries_bf16(job, &b, &s);
    memset(s.mix, 0, head_panels(hd) * R * TILE_ROWS * sizeof *s.mix);
    for (size_t r = 0; r < R; r++) {
        s.max[r] = -INFINITY;
        s.sum[r] = 0;
    }
    for (size_t key = b.begin; key < b.end; key += ROUND_TILE) {
        const size_t n = min_size(ROUND_TILE, b.end - key);
        pack_tile_bf16(job, &b, &s, key, n);
        for (size_t r = 0; r < R; r += ROUND_ROWS) {
            attend_bf16(job, &s, r, min_size(ROUND_ROWS, R - r), n);
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

/* ---- rounded to 8 bits ---- */

/* What a task of R queries of a head computes with. */
typedef struct q8_scratch {
    attend_queries *queries; /* [R / ATTEND_SIDE] */
    attend_keys tile;
    uint32_t *q;     /* [R / ATTEND_SIDE, words of a head, ATTEND_SIDE] */
    float *mix;      /* [R / ATTEND_SIDE, columns of values, ATTEND_SIDE] */
    uint32_t *k, *v; /* of the tile */
    float *k_scale, *v_scale;
    int32_t *k_offset;
    float *turned;  /* [hd, ATTEND_KEYS] values */
    uint32_t *rows; /* [ATTEND_SIDE, words of a head or of ATTEND_KEYS] as they are packed */
} q8_scratch;

/* Numbers of a head in whole words, and columns of values in whole groups. */
static size_t head_words(size_t hd)
{
    return (hd + 3) / 4;
}

static size_t value_columns(size_t hd)
{
    return (hd + ATTEND_COLUMNS - 1) / ATTEND_COLUMNS * ATTEND_COLUMNS;
}

static size_t n_groups(size_t R)
{
    return (R + ATTEND_SIDE - 1) / ATTEND_SIDE;
}

static size_t split_q8(q8_scratch *s, void *base, size_t R, size_t hd)
{
    enum { F = sizeof(float) };
    const size_t words = head_words(hd), columns = value_columns(hd), groups = n_groups(R);
    size_t n = 0;
    s->queries = take(base, &n, groups * sizeof *s->queries);
    s->q = take(base, &n, groups * words * ATTEND_SIDE * F);
    s->mix = take(base, &n, groups * columns * ATTEND_SIDE * F);
    s->k = take(base, &n, words * ATTEND_KEYS * F);
    s->v = take(base, &n, columns * ATTEND_KEYS);
    s->k_scale = take(base, &n, ATTEND_KEYS * F);
    s->k_offset = take(base, &n, ATTEND_KEYS * F);
    s->v_scale = take(base, &n, columns * F);
    s->turned = take(base, &n, hd * ATTEND_KEYS * F);
    s->rows = take(base, &n, (words < ATTEND_KEYS / 4 ? ATTEND_KEYS / 4 : words) * ATTEND_SIDE * F);
    return n;
}

/* `side` rows of K floats as bytes and turned, out [(K+3)/4, side] words; scales [side]. Rows from T on are zeros. */
static void pack_turned(const ops *o, const q8_scratch *s, uint32_t *out, float *scales, const float *x,
                        size_t stride, size_t T, size_t K, size_t side)
{
    const size_t words = (K + 3) / 4;
    for (size_t t = 0; t < side; t++) {
        scales[t] = t < T ? o->kv[KV_Q8].pack(s->rows + t * words, x + t * stride, K) : 0;
        if (t >= T) {
            memset(s->rows + t * words, 0, words * sizeof *s->rows);
        }
    }
    o->transpose((float *)(void *)out, side, (const float *)(const void *)s->rows, words, side, words);
}

static int32_t sum_of_bytes(const int8_t *q, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += q[i];
    }
    return sum;
}

static void pack_queries_q8(const segment_job *job, const segment_block *b, const q8_scratch *s)
{
    static const float LOG2_E = 1.44269504f;
    const ops *o = job->c->ops;
    const size_t hd = job->hd, stride = 3 * job->H * hd, R = b->t1 - b->t0,
                 words = head_words(hd) * ATTEND_SIDE;
    for (size_t g = 0; g < n_groups(R); g++) {
        attend_queries *to = &s->queries[g];
        uint32_t *q = s->q + g * words;
        to->q = q;
        to->mix = s->mix + g * value_columns(hd) * ATTEND_SIDE;
        pack_turned(o, s, q, to->scale, job->qkv + (b->t0 + g * ATTEND_SIDE) * stride + b->head * hd, stride,
                    min_size(ATTEND_SIDE, R - g * ATTEND_SIDE), hd, ATTEND_SIDE);
        for (size_t i = 0; i < words; i++) {
            q[i] ^= 0x80808080;
        }
        for (size_t l = 0; l < ATTEND_SIDE; l++) {
            to->scale[l] *= job->scale * LOG2_E;
            to->max[l] = -ATTEND_FAR;
            to->sum[l] = 0;
        }
    }
}

/* Keys and values of n rows from row `key` on. */
static void pack_tile_q8(const segment_job *job, const segment_block *b, q8_scratch *s, size_t key, size_t n)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, D = job->H * hd, stride = 3 * D, words = head_words(hd);
    const float *k = job->qkv + key * stride + D + b->head * hd, *v = k + D;
    for (size_t i = 0; i < n; i += ATTEND_SIDE) {
        pack_turned(o, s, s->k + i * words, s->k_scale + i, k + i * stride, stride,
                    min_size(ATTEND_SIDE, n - i), hd, ATTEND_SIDE);
        for (size_t t = 0; t < ATTEND_SIDE; t++) {
            s->k_offset[i + t] = -128 * sum_of_bytes((const int8_t *)(s->rows + t * words), 4 * words);
        }
    }
    o->transpose(s->turned, ATTEND_KEYS, v, stride, n, hd);
    for (size_t d = 0; d < hd; d += ATTEND_COLUMNS) {
        pack_turned(o, s, s->v + d * (ATTEND_KEYS / 4), s->v_scale + d, s->turned + d * ATTEND_KEYS,
                    ATTEND_KEYS, min_size(ATTEND_COLUMNS, hd - d), n, ATTEND_COLUMNS);
    }
    s->tile = (attend_keys){n, hd, s->k, s->k_scale, s->k_offset, s->v, s->v_scale};
}

static void q8_task(void *ctx, size_t task, size_t thread)
{
    const segment_job *job = ctx;
    const ops *o = job->c->ops;
    const segment_block b = block_of(job, task);
    const size_t R = b.t1 - b.t0, hd = job->hd, D = job->H * hd;
    q8_scratch s;
    (void)split_q8(&s, nn_scratch(job->c, thread), R, hd);
    pack_queries_q8(job, &b, &s);
    memset(s.mix, 0, n_groups(R) * value_columns(hd) * ATTEND_SIDE * sizeof *s.mix);
    for (size_t key = b.begin; key < b.end; key += ATTEND_KEYS) {
        pack_tile_q8(job, &b, &s, key, min_size(ATTEND_KEYS, b.end - key));
        for (size_t g = 0; g < n_groups(R); g++) {
            o->attend_q(&s.queries[g], &s.tile);
        }
    }
    for (size_t g = 0; g < n_groups(R); g++) {
        const size_t T = min_size(ATTEND_SIDE, R - g * ATTEND_SIDE);
        float *out = job->out + (b.t0 + g * ATTEND_SIDE) * D + b.head * hd;
        o->transpose(out, D, s.queries[g].mix, ATTEND_SIDE, hd, T);
        for (size_t t = 0; t < T; t++) {
            o->scale(out + t * D, 1.0f / s.queries[g].sum[t], hd);
        }
    }
}

/* Queries of a task that is rounded; 0: heads that large have no room. */
static size_t round_queries(bool q8, size_t hd)
{
    bf16_scratch bf16;
    q8_scratch bytes;
    size_t R = ROUND_BLOCK;
    while (R >= ROUND_ROWS && (q8 ? split_q8(&bytes, NULL, R, hd) : split_bf16(&bf16, NULL, R, hd)) >
                                  SCRATCH_FLOATS * sizeof(float)) {
        R /= 2;
    }
    return R < ROUND_ROWS ? 0 : R;
}

void nn_attention_segments(compute *c, float *out, const float *qkv, const int32_t *cu, size_t n_segments,
                           dtype rounded, float scale, size_t H, size_t hd)
{
    assert(hd <= NN_HEAD_MAX);
    segment_job job = {.c = c, .out = out, .qkv = qkv, .cu = cu, .scale = scale, .H = H, .hd = hd};
    pool_fn *task = segment_task;
    const bool q8 = c->fast && rounded == DTYPE_Q8 && c->ops->attend_q;
    if (q8 || (c->fast && rounded == DTYPE_BF16 && c->ops->tile_bf16 && hd % 2 == 0)) {
        job.block_rows = round_queries(q8, hd);
        while (job.block_rows > ROUND_SHARE &&
               count_tasks(&job, n_segments) < THREAD_TASKS * pool_n_threads(c->pool)) {
            job.block_rows /= 2;
        }
        task = q8 ? q8_task : bf16_task;
    }
    if (job.block_rows == 0) {
        job.key_tile = min_size(KEY_TILE, HALF_SCRATCH / hd);
        job.block_rows = min_size(SEGMENT_BLOCK, HALF_SCRATCH / (hd + job.key_tile + 2));
        task = segment_task;
    }
    pool_run(c->pool, task, &job, count_tasks(&job, n_segments));
}
