/* Causal softmax attention over pages of packed keys and values (kv_type.h); nothing larger than a
 * tile of scores exists. Two ways:
 *
 *   few rows (decode, a verify block): the kernels read the packed rows as they lie. Slots are cut
 *   into tiles of
 *     FEW_TILE from slot 0 on; every tile gives a row its own maximum, sum and mix of values, and these are folded into
 *     the row in the order of the tiles. So the tiles of one row may be computed by any number of threads, and what a
 *     row computes depends on its own slot alone: the rows of a verify block equal the rows decoded one by one.
 *   many rows (a prompt): bound by arithmetic. A tile of keys is unpacked and turned once for up to
 *   MANY_QUERIES
 *     queries, and scores and mixes are plain matrix products: in a fast context in bf16, where the processor
 *     has tiles for that.
 */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

/* MANY_STEP: terms of a product taken at once, so that the second factor stays in the L1 cache.
 * TILES_A_THREAD: so many make tasks of a whole tile end together. */
enum {
    FEW_TILE = 256,
    FEW_QUERIES = 64,
    TILES_A_THREAD = 8,
    MANY_TILE = 128,
    MANY_QUERIES = 256,
    MANY_STEP = 128
};

/* ---- storing ---- */

typedef struct store_args {
    const kv_pages *kv;
    const float *k, *v;
    size_t first, n_kv, hd, k_stride, v_stride;
} store_args;

/* The packed row of a slot and key head, its key or its value, and the place of its scale, if it
 * has one. */
typedef struct place {
    void *row;
    float *scale;
} place;

static place place_of(const kv_pages *kv, size_t slot, size_t kv_head, bool value, size_t hd)
{
    const size_t row_bytes = kv_row_bytes(kv->type, hd), scale_bytes = kv_scale_bytes(kv->type);
    char *page = kv->pages[slot / kv->page_tokens];
    char *scales = page + (2 * kv_head + value) * kv->page_tokens * (row_bytes + scale_bytes);
    char *rows = scales + kv->page_tokens * scale_bytes;
    const size_t at = slot % kv->page_tokens;
    return (place){rows + at * row_bytes, scale_bytes ? (float *)(void *)scales + at : NULL};
}

static void store_row(const kv_pages *kv, size_t slot, size_t kv_head, bool value, const kv_ops *packed,
                      const float *x, size_t hd)
{
    const place to = place_of(kv, slot, kv_head, value, hd);
    const float scale = packed->pack(to.row, x, hd);
    if (to.scale) {
        *to.scale = scale;
    }
}

static void store_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const store_args *a = args;
    const kv_ops *packed = &o->kv[a->kv->type];
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->n_kv; h++) {
            const size_t slot = a->first + t;
            store_row(a->kv, slot, h, false, packed, a->k + t * a->k_stride + h * a->hd, a->hd);
            store_row(a->kv, slot, h, true, packed, a->v + t * a->v_stride + h * a->hd, a->hd);
        }
    }
}

void nn_kv_store(compute *c, const kv_pages *kv, const float *k, const float *v, size_t first, size_t T,
                 size_t n_kv, size_t hd, size_t k_stride, size_t v_stride)
{
    store_args args = {kv, k, v, first, n_kv, hd, k_stride, v_stride};
    nn_run_rows(c, store_rows, &args, T, n_kv * hd);
}

/* ---- what both ways share ---- */

typedef struct attention_job {
    compute *c;
    float *out;
    const float *q;
    const kv_pages *kv;
    attention_rule rule;
    float scale;
    size_t first, T, H, n_kv, hd, row_stride, head_stride;
    size_t row_bytes;               /* of a packed row */
    size_t group;                   /* query heads of a key head */
    size_t block_rows, block_heads; /* of a task */
    size_t n_blocks;
    /* few rows, shared out by tiles: */
    float *parts; /* [n_wave, n_blocks] parts of part_floats */
    size_t part_floats;
    size_t task_blocks;         /* of one tile: all, or one where tiles are too few for the threads */
    size_t tile_0, n_wave;      /* tiles of this wave */
    size_t first_tile, n_tiles; /* that any row sees */
} attention_job;

/* Rows t0 .. t1-1 of query heads h0 .. h1-1, which share key head kv_head; query r of the block is
 * row t0 + r / (h1 - h0). */
typedef struct q_block {
    size_t t0, t1, h0, h1, kv_head;
} q_block;

/* Cuts rows and heads into blocks of at most `queries`. */
static void plan_blocks(attention_job *job, size_t queries)
{
    job->block_heads = min_size(job->group, queries);
    job->block_rows = queries / job->block_heads;
    size_t n_parts = (job->group + job->block_heads - 1) / job->block_heads;
    job->n_blocks = (job->T + job->block_rows - 1) / job->block_rows * job->n_kv * n_parts;
}

static q_block find_block(const attention_job *job, size_t block)
{
    size_t n_parts = (job->group + job->block_heads - 1) / job->block_heads;
    size_t part = block % n_parts, kv_head = block / n_parts % job->n_kv;
    size_t t0 = block / n_parts / job->n_kv * job->block_rows;
    size_t h0 = part * job->block_heads, h1 = min_size(h0 + job->block_heads, job->group);
    return (q_block){t0, min_size(t0 + job->block_rows, job->T), kv_head * job->group + h0,
                     kv_head * job->group + h1, kv_head};
}

static size_t n_queries(const q_block *b)
{
    return (b->t1 - b->t0) * (b->h1 - b->h0);
}

/* The first slot that row t sees. */
static size_t begin_of(const attention_job *job, size_t t)
{
    const size_t end = job->first + t + 1, window = job->rule.window;
    return window > 0 && end > window ? end - window : 0;
}

/* The slot behind the last one that row t sees. */
static size_t end_of(const attention_job *job, size_t t)
{
    return job->rule.ends ? (size_t)job->rule.ends[t] : job->first + t + 1;
}

/* How many of a block's first rows end at or before a slot. */
static size_t rows_up_to(const attention_job *job, const q_block *b, size_t slot)
{
    const size_t rows = b->t1 - b->t0, first = job->first + b->t0;
    size_t n = 0;
    if (!job->rule.ends) {
        return slot > first ? min_size(rows, slot - first) : 0;
    }
    while (n < rows && end_of(job, b->t0 + n) <= slot) {
        n++;
    }
    return n;
}

/* Where query r of a block writes. */
static float *out_of(const attention_job *job, const q_block *b, size_t r)
{
    size_t n_heads = b->h1 - b->h0;
    return job->out + ((b->t0 + r / n_heads) * job->H + b->h0 + r % n_heads) * job->hd;
}

/* q [R, hd] = the block's queries, scaled. */
static void gather_queries(const attention_job *job, const q_block *b, float *q)
{
    size_t n_heads = b->h1 - b->h0, R = n_queries(b);
    for (size_t r = 0; r < R; r++) {
        memcpy(q + r * job->hd,
               job->q + (b->t0 + r / n_heads) * job->row_stride + (b->h0 + r % n_heads) * job->head_stride,
               job->hd * sizeof(float));
    }
    job->c->ops->scale(q, job->scale, R * job->hd);
}

/* ---- few rows ---- */

/* What a tile gives a block's queries, and what they have gathered from all tiles so far. */
typedef struct tile_part {
    float *mix;       /* [R, hd] */
    float *max, *sum; /* [R] */
} tile_part;

static tile_part part_at(float *memory, size_t R, size_t hd)
{
    return (tile_part){memory, memory + R * hd, memory + R * hd + R};
}

static size_t part_floats(size_t R, size_t hd)
{
    return R * (hd + 2);
}

/* Keys or values of slots from begin on, up to the end of a page or `end`. */
static kv_rows rows_of_page(const attention_job *job, size_t kv_head, bool value, size_t begin, size_t end)
{
    const size_t n = min_size(job->kv->page_tokens - begin % job->kv->page_tokens, end - begin);
    const place first = place_of(job->kv, begin, kv_head, value, job->hd);
    return (kv_rows){{first.row}, 1, n, job->row_bytes, job->hd, {first.scale}};
}

/* Those of all slots of a tile, its quarters side by side. */
static kv_rows rows_of_tile(const attention_job *job, size_t kv_head, bool value, size_t begin)
{
    kv_rows rows = {.n_parts = KV_PARTS, .n = FEW_TILE, .row_bytes = job->row_bytes, .hd = job->hd};
    for (size_t i = 0; i < KV_PARTS; i++) {
        const place first = place_of(job->kv, begin + i * FEW_TILE / KV_PARTS, kv_head, value, job->hd);
        rows.parts[i] = first.row;
        rows.scales[i] = first.scale;
    }
    return rows;
}

/* Queries r .. R-1 see the whole tile. The scores stand in the order of rows_of_tile. */
static void attend_whole_tile(const attention_job *job, const q_block *b, size_t begin, const float *q,
                              float *scores, const tile_part *part, size_t r, size_t R)
{
    const kv_ops *packed = &job->c->ops->kv[job->kv->type];
    const kv_rows keys = rows_of_tile(job, b->kv_head, false, begin);
    const kv_rows values = rows_of_tile(job, b->kv_head, true, begin);
    float *const own = scores + r * FEW_TILE;
    packed->dot(own, FEW_TILE, q + r * job->hd, job->hd, R - r, &keys);
    for (size_t i = r; i < R; i++) {
        (void)job->c->ops->softmax_tile(scores + i * FEW_TILE, FEW_TILE, &part->max[i], &part->sum[i]);
    }
    packed->mix(part->mix + r * job->hd, job->hd, own, FEW_TILE, R - r, &values);
}

/* Queries r0 .. R-1, each from the first slot it sees to its last, page by page. */
static void attend_part_of_tile(const attention_job *job, const q_block *b, size_t begin, const float *q,
                                float *scores, const tile_part *part, size_t r0, size_t R)
{
    const kv_ops *packed = &job->c->ops->kv[job->kv->type];
    const size_t hd = job->hd, n_heads = b->h1 - b->h0;
    const size_t end = min_size(begin + FEW_TILE, end_of(job, b->t0 + R / n_heads - 1));
    for (size_t slot = max_size(begin, begin_of(job, b->t0 + r0 / n_heads)); slot < end;) {
        const kv_rows keys = rows_of_page(job, b->kv_head, false, slot, end);
        packed->dot(scores + r0 * FEW_TILE + (slot - begin), FEW_TILE, q + r0 * hd, hd, R - r0, &keys);
        slot += keys.n;
    }
    for (size_t r = r0; r < R; r += n_heads) {
        const size_t own_begin = max_size(begin, begin_of(job, b->t0 + r / n_heads));
        const size_t own_end = min_size(end_of(job, b->t0 + r / n_heads), end);
        if (own_end <= own_begin) {
            continue; /* sees nothing of this tile */
        }
        for (size_t i = r; i < r + n_heads; i++) {
            (void)job->c->ops->softmax_tile(scores + i * FEW_TILE + (own_begin - begin), own_end - own_begin,
                                            &part->max[i], &part->sum[i]);
        }
        for (size_t slot = own_begin; slot < own_end;) {
            const kv_rows values = rows_of_page(job, b->kv_head, true, slot, own_end);
            packed->mix(part->mix + r * hd, hd, scores + r * FEW_TILE + (slot - begin), FEW_TILE, n_heads,
                        &values);
            slot += values.n;
        }
    }
}

/* Fills part with what the slots of one tile give the block; queries that see none of them get
 * -INFINITY, 0, 0. What a query computes depends on its own slot alone: the tile of that slot is
 * its last, and a window begins where that slot says. */
static void attend_tile(const attention_job *job, const q_block *b, size_t tile, const float *q,
                        float *scores, const tile_part *part)
{
    const size_t n_heads = b->h1 - b->h0, R = n_queries(b);
    const size_t begin = tile * FEW_TILE, after = begin + FEW_TILE;
    memset(part->mix, 0, R * job->hd * sizeof(float));
    for (size_t i = 0; i < R; i++) {
        part->max[i] = -INFINITY;
        part->sum[i] = 0;
    }
    size_t r = R; /* the first query behind the tile, if the tile's quarters lie in one page each */
    if (job->kv->page_tokens % (FEW_TILE / KV_PARTS) == 0) {
        r = rows_up_to(job, b, after) * n_heads;
    }
    size_t w = R; /* the first query whose window begins in the tile or behind it */
    if (job->rule.window > 0) {
        const size_t seen_to = begin + job->rule.window, slot = job->first + b->t0;
        w = max_size(r, seen_to > slot ? min_size(R, (seen_to - slot) * n_heads) : 0);
    }
    if (r > 0) {
        attend_part_of_tile(job, b, begin, q, scores, part, 0, r);
    }
    if (r < w) {
        attend_whole_tile(job, b, begin, q, scores, part, r, w);
    }
    if (w < R) {
        attend_part_of_tile(job, b, begin, q, scores, part, w, R);
    }
}

/* One query's out, max and sum take in those of a later tile. */
static void fold(const ops *o, float *out, float *max, float *sum, const float *mix, float mix_max,
                 float mix_sum, size_t hd)
{
    if (mix_sum == 0) {
        return; /* sees nothing of that tile */
    }
    float top = *max > mix_max ? *max : mix_max;
    float keep = expf(*max - top), take = expf(mix_max - top);
    if (keep != 1.0f) {
        o->scale(out, keep, hd);
    }
    o->mul_add(out, hd, &take, 1, mix, hd, 1, 1, hd);
    *sum = *sum * keep + mix_sum * take;
    *max = top;
}

/* Before query r of a block has seen a tile: a sink is a score whose value is zeros. */
static void begin_query(const attention_job *job, const q_block *b, size_t r, float *out, float *max,
                        float *sum)
{
    const float *sinks = job->rule.sinks;
    memset(out, 0, job->hd * sizeof(float));
    *max = sinks ? sinks[b->h0 + r % (b->h1 - b->h0)] : -INFINITY;
    *sum = sinks ? 1.0f : 0.0f;
}

/* All tiles of a block, one after another. */
static void few_block_task(void *ctx, size_t task, size_t thread)
{
    const attention_job *job = ctx;
    const q_block b = find_block(job, task);
    const size_t R = n_queries(&b), hd = job->hd;
    float *q = nn_scratch(job->c, thread), *scores = q + R * hd, *max = scores + R * FEW_TILE, *sum = max + R;
    const tile_part part = part_at(sum + R, R, hd);
    gather_queries(job, &b, q);
    for (size_t r = 0; r < R; r++) {
        begin_query(job, &b, r, out_of(job, &b, r), &max[r], &sum[r]);
    }
    for (size_t tile = begin_of(job, b.t0) / FEW_TILE; tile * FEW_TILE < end_of(job, b.t1 - 1); tile++) {
        attend_tile(job, &b, tile, q, scores, &part);
        for (size_t r = 0; r < R; r++) {
            fold(job->c->ops, out_of(job, &b, r), &max[r], &sum[r], part.mix + r * hd, part.max[r],
                 part.sum[r], hd);
        }
    }
    for (size_t r = 0; r < R; r++) {
        job->c->ops->scale(out_of(job, &b, r), 1.0f / sum[r], hd);
    }
}

/* Some blocks of one tile, left in parts. The blocks of neighbouring key heads lie one behind the
 * other in memory. */
static void few_tile_task(void *ctx, size_t task, size_t thread)
{
    const attention_job *job = ctx;
    const size_t first = task * job->task_blocks;
    for (size_t i = first; i < first + job->task_blocks; i++) {
        const q_block b = find_block(job, i % job->n_blocks);
        const size_t R = n_queries(&b);
        float *q = nn_scratch(job->c, thread), *scores = q + R * job->hd;
        const tile_part part = part_at(job->parts + i * job->part_floats, R, job->hd);
        gather_queries(job, &b, q);
        attend_tile(job, &b, job->tile_0 + i / job->n_blocks, q, scores, &part);
    }
}

/* The parts of a wave, folded into one query's out; task = block * block_queries + query. */
static void few_fold_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const attention_job *job = ctx;
    const size_t block_queries = job->block_rows * job->block_heads;
    const size_t block = task / block_queries, r = task % block_queries, hd = job->hd;
    const q_block b = find_block(job, block);
    const size_t R = n_queries(&b);
    if (r >= R) {
        return;
    }
    float *out = out_of(job, &b, r), *max = job->parts - 2 * (task + 1), *sum = max + 1;
    if (job->tile_0 == job->first_tile) {
        begin_query(job, &b, r, out, max, sum);
    }
    for (size_t i = 0; i < job->n_wave; i++) {
        const tile_part part = part_at(job->parts + (i * job->n_blocks + block) * job->part_floats, R, hd);
        fold(job->c->ops, out, max, sum, part.mix + r * hd, part.max[r], part.sum[r], hd);
    }
    if (job->tile_0 + job->n_wave == job->n_tiles) {
        job->c->ops->scale(out, 1.0f / *sum, hd);
    }
}

static void attend_few(attention_job *job)
{
    /* A task's scratch holds queries, scores and a part. */
    plan_blocks(job, min_size(FEW_QUERIES, SCRATCH_FLOATS / (2 * job->hd + FEW_TILE + 4)));
    const size_t block_queries = job->block_rows * job->block_heads;
    const size_t running = 2 * job->n_blocks * block_queries; /* a maximum and a sum each, before the parts */
    job->n_tiles = (end_of(job, job->T - 1) + FEW_TILE - 1) / FEW_TILE;
    job->first_tile = begin_of(job, 0) / FEW_TILE;
    job->part_floats = part_floats(block_queries, job->hd);
    const size_t wave_floats = job->n_blocks * job->part_floats;
    if (job->n_tiles - job->first_tile == 1 || running + wave_floats > SCRATCH_FLOATS) {
        pool_run(job->c->pool, few_block_task, job, job->n_blocks);
        return;
    }
    job->parts = nn_shared_scratch(job->c) + running;
    const size_t most = (SCRATCH_FLOATS - running) / wave_floats;
    for (job->tile_0 = job->first_tile; job->tile_0 < job->n_tiles; job->tile_0 += job->n_wave) {
        job->n_wave = min_size(most, job->n_tiles - job->tile_0);
        job->task_blocks = job->n_wave < TILES_A_THREAD * compute_n_threads(job->c) ? 1 : job->n_blocks;
        pool_run(job->c->pool, few_tile_task, job, job->n_wave * job->n_blocks / job->task_blocks);
        pool_run(job->c->pool, few_fold_task, job, job->n_blocks * block_queries);
    }
}

/* ---- many rows ---- */

typedef struct many_scratch {
    float *q;      /* [R, hd], scaled */
    float *scores; /* [R, MANY_TILE] */
    float *mix;    /* [R, hd] */
    float *rows;   /* [MANY_TILE, hd] unpacked keys, then values */
    float *turned; /* [hd, MANY_TILE] keys */
    float *max, *sum;
} many_scratch;

static many_scratch split_many(float *scratch, size_t R, size_t hd)
{
    many_scratch s;
    s.q = scratch;
    s.scores = s.q + R * hd;
    s.mix = s.scores + R * MANY_TILE;
    s.rows = s.mix + R * hd;
    s.turned = s.rows + MANY_TILE * hd;
    s.max = s.turned + MANY_TILE * hd;
    s.sum = s.max + R;
    return s;
}

static size_t many_floats_per_query(size_t hd)
{
    return 2 * hd + MANY_TILE + 2;
}

/* rows [n, hd] = keys or values of slots begin .. end-1 of one key head, zeros before `seen`. */
static void unpack_slots(const attention_job *job, float *rows, size_t kv_head, bool value, size_t begin,
                         size_t seen, size_t end)
{
    seen = max_size(begin, min_size(seen, end));
    memset(rows, 0, (seen - begin) * job->hd * sizeof *rows);
    for (size_t slot = seen; slot < end; slot++) {
        const place from = place_of(job->kv, slot, kv_head, value, job->hd);
        job->c->ops->kv[job->kv->type].widen(rows + (slot - begin) * job->hd, from.row,
                                             from.scale ? *from.scale : 1.0f, job->hd);
    }
}

/* c [M, N] = a [M, K] b [K, N], or added to c; b a slice at a time. */
static void multiply(const ops *o, bool add, float *c, size_t c_stride, const float *a, size_t a_stride,
                     const float *b, size_t b_stride, size_t M, size_t K, size_t N)
{
    for (size_t k = 0; k < K; k += MANY_STEP) {
        (add || k > 0 ? o->mul_add : o->mul)(c, c_stride, a + k, a_stride, b + k * b_stride, b_stride, M,
                                             min_size(MANY_STEP, K - k), N);
    }
}

/* Scores of query r on n slots from begin on become weights, zeros where it does not see; returns the
 * factor for what it has mixed before. */
static float weigh(const attention_job *job, const q_block *b, size_t r, float *scores, size_t begin,
                   size_t n, float *max, float *sum)
{
    const size_t t = b->t0 + r / (b->h1 - b->h0), own_end = end_of(job, t);
    const size_t visible = own_end > begin ? min_size(own_end - begin, n) : 0;
    const size_t hidden = min_size(max_size(begin_of(job, t), begin) - begin, visible);
    memset(scores, 0, hidden * sizeof *scores);
    memset(scores + visible, 0, (n - visible) * sizeof *scores);
    return visible > hidden ? job->c->ops->softmax_tile(scores + hidden, visible - hidden, max, sum) : 1.0f;
}

/* Slots begin .. end-1 for all queries of the block. */
static void attend_many_tile(const attention_job *job, const q_block *b, const many_scratch *s, size_t begin,
                             size_t end)
{
    const ops *o = job->c->ops;
    const size_t n = end - begin, hd = job->hd, R = n_queries(b), seen = begin_of(job, b->t0);
    unpack_slots(job, s->rows, b->kv_head, false, begin, seen, end);
    o->transpose(s->turned, MANY_TILE, s->rows, hd, n, hd);
    multiply(o, false, s->scores, MANY_TILE, s->q, hd, s->turned, MANY_TILE, R, hd, n);
    for (size_t r = 0; r < R; r++) {
        const float factor = weigh(job, b, r, s->scores + r * MANY_TILE, begin, n, &s->max[r], &s->sum[r]);
        if (factor != 1.0f) {
            o->scale(s->mix + r * hd, factor, hd);
        }
    }
    unpack_slots(job, s->rows, b->kv_head, true, begin, seen, end);
    multiply(o, true, s->mix, hd, s->scores, MANY_TILE, s->rows, hd, R, n, hd);
}

static void many_task(void *ctx, size_t task, size_t thread)
{
    const attention_job *job = ctx;
    const q_block b = find_block(job, task);
    const size_t R = n_queries(&b), hd = job->hd, n_slots = end_of(job, b.t1 - 1);
    const many_scratch s = split_many(nn_scratch(job->c, thread), R, hd);
    gather_queries(job, &b, s.q);
    for (size_t r = 0; r < R; r++) {
        begin_query(job, &b, r, s.mix + r * hd, &s.max[r], &s.sum[r]);
    }
    for (size_t begin = begin_of(job, b.t0) / MANY_TILE * MANY_TILE; begin < n_slots; begin += MANY_TILE) {
        attend_many_tile(job, &b, &s, begin, min_size(begin + MANY_TILE, n_slots));
    }
    for (size_t r = 0; r < R; r++) {
        job->c->ops->scale(s.mix + r * hd, 1.0f / s.sum[r], hd);
        memcpy(out_of(job, &b, r), s.mix + r * hd, hd * sizeof(float));
    }
}

/* ---- many rows, in bf16 ---- */

/* Slots of a tile: its scores are ROUGH_PANELS panels for all queries. Values are panels of TILE_ROWS
 * columns of a head. */
enum { ROUGH_PANELS = 2, ROUGH_TILE = ROUGH_PANELS * TILE_ROWS };

typedef struct rough_scratch {
    float *mix;        /* [panels of a head, R, TILE_ROWS] */
    float *scores;     /* [ROUGH_PANELS, R, TILE_ROWS] */
    float *max, *sum;  /* [R] */
    uint16_t *q;       /* [R, hd], scaled */
    uint16_t *weights; /* [R, ROUGH_TILE] */
    float *rows;       /* [TILE_ROWS, hd] unpacked keys or values of TILE_ROWS slots */
    float *turned;     /* [hd, TILE_ROWS] values */
    uint32_t *keys;    /* [hd / 2, TILE_ROWS] a panel */
    uint32_t *values;  /* [panels of a head, ROUGH_TILE / 2, TILE_ROWS] */
} rough_scratch;

static size_t head_panels(size_t hd)
{
    return (hd + TILE_ROWS - 1) / TILE_ROWS;
}

/* hd is even. */
static rough_scratch split_rough(float *scratch, size_t R, size_t hd)
{
    rough_scratch s;
    s.mix = scratch;
    s.scores = s.mix + head_panels(hd) * R * TILE_ROWS;
    s.max = s.scores + R * ROUGH_TILE;
    s.sum = s.max + R;
    s.q = (uint16_t *)(void *)(s.sum + R);
    s.weights = s.q + R * hd;
    s.rows = (float *)(void *)(s.weights + R * ROUGH_TILE);
    s.turned = s.rows + TILE_ROWS * hd;
    s.keys = (uint32_t *)(void *)(s.turned + TILE_ROWS * hd);
    s.values = s.keys + hd / 2 * TILE_ROWS;
    return s;
}

static size_t rough_floats_per_query(size_t hd)
{
    return head_panels(hd) * TILE_ROWS + ROUGH_TILE + 2 + (hd + ROUGH_TILE) / 2;
}

static size_t rough_floats_per_task(size_t hd)
{
    return 2 * TILE_ROWS * hd + hd / 2 * TILE_ROWS + head_panels(hd) * ROUGH_TILE / 2 * TILE_ROWS;
}

/* rows = keys or values of TILE_ROWS slots from begin on; zeros before `seen` and from end on. */
static void unpack_panel(const attention_job *job, float *rows, size_t kv_head, bool value, size_t begin,
                         size_t seen, size_t end)
{
    const size_t stop = max_size(begin, min_size(begin + TILE_ROWS, end)), n = stop - begin;
    unpack_slots(job, rows, kv_head, value, begin, seen, stop);
    memset(rows + n * job->hd, 0, (TILE_ROWS - n) * job->hd * sizeof *rows);
}

/* Panels of the values of slots begin .. end-1. */
static void pack_values(const attention_job *job, const q_block *b, const rough_scratch *s, size_t begin,
                        size_t seen, size_t end)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd;
    for (size_t k = 0; k < ROUGH_TILE; k += TILE_ROWS) {
        unpack_panel(job, s->rows, b->kv_head, true, begin + k, seen, end);
        o->transpose(s->turned, TILE_ROWS, s->rows, hd, TILE_ROWS, hd);
        for (size_t i = 0; i < hd; i += TILE_ROWS) {
            o->pack_bf16(s->values + (i * ROUGH_TILE + k * TILE_ROWS) / 2, s->turned + i * TILE_ROWS,
                         TILE_ROWS, min_size(TILE_ROWS, hd - i), TILE_ROWS);
        }
    }
}

/* Slots begin .. end-1, at most ROUGH_TILE, for all queries of the block. */
static void attend_rough_tile(const attention_job *job, const q_block *b, const rough_scratch *s,
                              size_t begin, size_t end)
{
    const ops *o = job->c->ops;
    const size_t hd = job->hd, R = n_queries(b), panel = R * TILE_ROWS, seen = begin_of(job, b->t0);
    memset(s->scores, 0, ROUGH_PANELS * panel * sizeof *s->scores);
    for (size_t i = 0; i < ROUGH_PANELS; i++) {
        unpack_panel(job, s->rows, b->kv_head, false, begin + i * TILE_ROWS, seen, end);
        o->pack_bf16(s->keys, s->rows, hd, TILE_ROWS, hd);
        o->tile_bf16(s->scores + i * panel, s->keys, s->q, hd, TILE_ROWS, R, hd);
    }
    for (size_t r = 0; r < R; r++) {
        float scores[ROUGH_TILE];
        for (size_t i = 0; i < ROUGH_PANELS; i++) {
            memcpy(scores + i * TILE_ROWS, s->scores + i * panel + r * TILE_ROWS, TILE_ROWS * sizeof *scores);
        }
        const float factor = weigh(job, b, r, scores, begin, ROUGH_TILE, &s->max[r], &s->sum[r]);
        (void)o->kv[KV_BF16].pack(s->weights + r * ROUGH_TILE, scores, ROUGH_TILE);
        for (size_t p = 0; factor != 1.0f && p < head_panels(hd); p++) {
            o->scale(s->mix + p * panel + r * TILE_ROWS, factor, TILE_ROWS);
        }
    }
    pack_values(job, b, s, begin, seen, end);
    for (size_t p = 0; p < head_panels(hd); p++) {
        o->tile_bf16(s->mix + p * panel, s->values + p * ROUGH_TILE / 2 * TILE_ROWS, s->weights, ROUGH_TILE,
                     min_size(TILE_ROWS, hd - p * TILE_ROWS), R, ROUGH_TILE);
    }
}

static void rough_task(void *ctx, size_t task, size_t thread)
{
    const attention_job *job = ctx;
    const q_block b = find_block(job, task);
    const size_t R = n_queries(&b), hd = job->hd, n_slots = end_of(job, b.t1 - 1);
    const rough_scratch s = split_rough(nn_scratch(job->c, thread), R, hd);
    gather_queries(job, &b, s.mix);
    for (size_t r = 0; r < R; r++) {
        (void)job->c->ops->kv[KV_BF16].pack(s.q + r * hd, s.mix + r * hd, hd);
        begin_query(job, &b, r, out_of(job, &b, r), &s.max[r], &s.sum[r]);
    }
    memset(s.mix, 0, head_panels(hd) * R * TILE_ROWS * sizeof *s.mix);
    for (size_t at = begin_of(job, b.t0) / ROUGH_TILE * ROUGH_TILE; at < n_slots; at += ROUGH_TILE) {
        attend_rough_tile(job, &b, &s, at, min_size(at + ROUGH_TILE, n_slots));
    }
    for (size_t r = 0; r < R; r++) {
        float *out = out_of(job, &b, r);
        for (size_t p = 0; p < head_panels(hd); p++) {
            memcpy(out + p * TILE_ROWS, s.mix + (p * R + r) * TILE_ROWS,
                   min_size(TILE_ROWS, hd - p * TILE_ROWS) * sizeof *out);
        }
        job->c->ops->scale(out, 1.0f / s.sum[r], hd);
    }
}

/* Whether context and processor want it. */
static bool is_rough(const attention_job *job)
{
    const size_t hd = job->hd;
    return job->c->fast && job->c->ops->tile_bf16 && hd % 2 == 0 &&
           rough_floats_per_task(hd) + rough_floats_per_query(hd) <= SCRATCH_FLOATS;
}

/* ---- the choice ---- */

/* Whether the unpacked tiles of heads that large leave room for a query. */
static bool fits_many(size_t hd)
{
    return 2 * MANY_TILE * hd + many_floats_per_query(hd) <= SCRATCH_FLOATS;
}

static void attend(compute *c, float *out, const float *q, const kv_pages *kv, const attention_rule *rule,
                   float scale, size_t first, size_t T, size_t H, size_t n_kv, size_t hd, size_t row_stride,
                   size_t head_stride, bool many)
{
    assert(n_kv > 0 && H % n_kv == 0 && hd <= NN_HEAD_MAX);
    attention_job job = {.c = c,
                         .out = out,
                         .q = q,
                         .kv = kv,
                         .rule = rule ? *rule : (attention_rule){0},
                         .scale = scale,
                         .first = first,
                         .T = T,
                         .H = H,
                         .n_kv = n_kv,
                         .hd = hd,
                         .row_stride = row_stride,
                         .head_stride = head_stride,
                         .row_bytes = kv_row_bytes(kv->type, hd),
                         .group = H / n_kv};
    if (T == 0) {
        return;
    }
    if (!many || !fits_many(hd)) {
        attend_few(&job);
        return;
    }
    if (is_rough(&job)) {
        plan_blocks(&job, min_size(MANY_QUERIES, (SCRATCH_FLOATS - rough_floats_per_task(hd)) /
                                                     rough_floats_per_query(hd)));
        pool_run(c->pool, rough_task, &job, job.n_blocks);
        return;
    }
    plan_blocks(&job,
                min_size(MANY_QUERIES, (SCRATCH_FLOATS - 2 * MANY_TILE * hd) / many_floats_per_query(hd)));
    pool_run(c->pool, many_task, &job, job.n_blocks);
}

void nn_attention(compute *c, float *out, const float *q, const kv_pages *kv, const attention_rule *rule,
                  float scale, size_t first, size_t T, size_t H, size_t n_kv, size_t hd, size_t row_stride,
                  size_t head_stride)
{
    attend(c, out, q, kv, rule, scale, first, T, H, n_kv, hd, row_stride, head_stride, T > NN_ROWS_EXACT);
}

void nn_attention_many(compute *c, float *out, const float *q, const kv_pages *kv, const attention_rule *rule,
                       float scale, size_t first, size_t T, size_t H, size_t n_kv, size_t hd,
                       size_t row_stride, size_t head_stride)
{
    attend(c, out, q, kv, rule, scale, first, T, H, n_kv, hd, row_stride, head_stride, true);
}

/* ---- how much a query looks at each key ---- */

typedef struct scores_job {
    compute *c;
    float *out;
    const float *q;
    const kv_pages *kv;
    float scale;
    size_t kv_head, n, R, hd;
} scores_job;

/* The slots of one page. */
static void scores_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const scores_job *job = ctx;
    const ops *o = job->c->ops;
    const size_t begin = task * job->kv->page_tokens, n = min_size(job->kv->page_tokens, job->n - begin);
    const place first = place_of(job->kv, begin, job->kv_head, false, job->hd);
    const kv_rows keys = {{first.row}, 1, n, kv_row_bytes(job->kv->type, job->hd), job->hd, {first.scale}};
    o->kv[job->kv->type].dot(job->out + begin, job->n, job->q, job->hd, job->R, &keys);
    for (size_t r = 0; r < job->R; r++) {
        o->scale(job->out + r * job->n + begin, job->scale, n);
    }
}

void nn_key_scores(compute *c, float *out, const float *q, const kv_pages *kv, float scale, size_t kv_head,
                   size_t n, size_t R, size_t hd)
{
    scores_job job = {c, out, q, kv, scale, kv_head, n, R, hd};
    pool_run(c->pool, scores_task, &job, (n + kv->page_tokens - 1) / kv->page_tokens);
}

typedef struct peaks_args {
    float *best, *scores;
    size_t n, window;
} peaks_args;

static void peaks_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const peaks_args *a = args;
    const size_t half = a->window / 2;
    for (size_t r = begin; r < end; r++) {
        float *weights = a->scores + r * a->n, *best = a->best + r * a->n;
        float max = -INFINITY, sum = 0;
        (void)o->softmax_tile(weights, a->n, &max, &sum);
        const double share = 1.0 / ((double)sum * (double)a->window);
        double seen = 0; /* of the window; in double, so that adding and taking away leaves no trace */
        for (size_t i = 0; i < min_size(half, a->n); i++) {
            seen += (double)weights[i];
        }
        for (size_t i = 0; i < a->n; i++) {
            seen += i + half < a->n ? (double)weights[i + half] : 0.0;
            seen -= i > half ? (double)weights[i - half - 1] : 0.0;
            const float mean = (float)(seen * share);
            best[i] = mean > best[i] ? mean : best[i];
        }
    }
}

void nn_softmax_peaks(compute *c, float *best, float *scores, size_t n, size_t window, size_t R)
{
    const peaks_args args = {best, scores, n, window};
    nn_run_rows(c, peaks_rows, &args, R, n);
}
