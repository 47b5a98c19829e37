/* Linear layers for many rows, in tiles.
 *
 * x is turned once into panels of TILE_ROWS rows, a group of panels at a time so that they stay in
 * the L2 cache. A task takes some columns of the output for all rows of the group. What it
 * multiplies with depends on the weights:
 *   floats: they are widened to f32 in scratch; or, where the processor multiplies bf16 faster,
 *   taken as they lie in the
 *     checkpoint: each weight is broadcast against a panel, so no order of them would save a load;
 *   blocks: x is rounded to 8 bits, with a scale for 256 columns (pack_q in ops.h), products are integers; our own 8 bits
 *   are taken as they lie,
 *     everything else is unpacked to bytes in scratch (but Q2_K, which goes the way of floats). Where the processor
 *     broadcasts four numbers of x as it multiplies them, not x is turned but the weights (PANEL_X): then nothing is
 *     turned back, and the weights are in the L2 cache before the products begin.
 * An element is the sum of its blocks over k, each one accumulator: its bits depend neither on the
 * other rows nor on how the work is cut. */
#include "compute/nn.h"

#include <assert.h>
#include <string.h>

#include "compute/context.h"
#include "compute/kernels/kernel.h"

/* Columns of a task; columns of x at a time, so that a panel's share stays in the L1 cache (f32) or
 * comes from the second in long slices (bf16; 8 bits in one). Of floats, which are the largest, about
 * K_CHUNK_F32 columns are packed and multiplied before the next ones: or wide rows would leave the
 * L2 cache room for few. */
enum {
    TILE_COLUMNS = 48,
    TURNED_COLUMNS = 2 * TILE_LANES,
    K_BLOCK_F32 = 128,
    K_CHUNK_F32 = 1024,
    K_BLOCK_BF16 = 1024,
    SUMS = TILE_COLUMNS * TILE_ROWS,
};

/* Words of packed panels that are multiplied one after the other, if they are not fewer than two
 * panels. Of PANEL_X 512 rows of 3584 columns are three groups. */
enum { GROUP_WORDS = 3 << 16, GROUP_WORDS_X = 210000 };

/* What x becomes. */
typedef enum panel_type { PANEL_F32, PANEL_BF16, PANEL_Q, PANEL_X, PANEL_TYPES } panel_type;

typedef struct tile_job {
    compute *c;
    const linear_part *parts;
    const float *x;
    panel_type type;
    uint32_t *packed;
    size_t K, row0, T; /* rows row0 .. row0+T-1 of x are packed, */
    size_t k0, k_n;    /* and of those columns k0 .. k0+k_n-1: all but of floats */
    size_t n_whole;    /* tasks of all panels; later ones take one each, so that all threads end together */
    size_t n_tasks;    /* of both kinds */
} tile_job;

/* Jobs that are packed and multiplied together, at most; and the words that they pack. */
enum { TILE_JOBS = 64, JOBS_WORDS = 1 << 20 };

static size_t n_blocks_q(size_t K)
{
    return quant_columns(K) / QUANT_BLOCK;
}

static size_t panel_rows(panel_type type)
{
    return type == PANEL_X ? TILE_X_ROWS : TILE_ROWS;
}

static size_t n_panels(const tile_job *job)
{
    return (job->T + panel_rows(job->type) - 1) / panel_rows(job->type);
}

/* 32-bit words of a packed panel. */
static size_t panel_words(panel_type type, size_t K)
{
    if (type == PANEL_X) {
        return (n_blocks_q(K) + TILE_SHARE - 1) / TILE_SHARE * (sizeof(tile_x_share) / sizeof(uint32_t));
    }
    if (type == PANEL_Q) {
        return n_blocks_q(K) * (sizeof(tile_q_block) / sizeof(uint32_t));
    }
    return K / (type == PANEL_BF16 ? 2 : 1) * TILE_ROWS;
}

/* ---- x ---- */

/* ctx: jobs, whose tasks follow each other. */
static void pack_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const tile_job *job = ctx;
    while (task >= n_panels(job)) {
        task -= n_panels(job++);
    }
    const size_t K = job->K, t = task * panel_rows(job->type),
                 T = min_size(panel_rows(job->type), job->T - t);
    const size_t words = panel_words(job->type, job->k_n);
    const float *x = job->x + (job->row0 + t) * K + job->k0;
    uint32_t *panel = job->packed + task * words;
    if (job->type == PANEL_X) {
        job->c->ops->pack_x((tile_x_share *)(void *)panel, x, K, T, K);
        return;
    }
    if (job->type == PANEL_Q) {
        job->c->ops->pack_q((tile_q_block *)(void *)panel, x, K, T, K);
        return;
    }
    if (job->type == PANEL_BF16) {
        job->c->ops->pack_bf16(panel, x, K, T, K);
        return;
    }
    if (T % 16 != 0) {
        memset(panel, 0, words * sizeof *panel);
    }
    job->c->ops->transpose((float *)(void *)panel, TILE_ROWS, x, K, T, job->k_n);
}

/* ---- weights ---- */

/* Some rows of a matrix as the tiles want them. */
typedef struct tile_weights {
    const void *rows; /* PANEL_F32, PANEL_BF16: from the first packed column on */
    size_t stride;    /* of those, in elements */
    tile_q_rows q;    /* PANEL_Q, PANEL_X */
} tile_weights;

/* Floats of scratch that the rows of a task take at most. */
static size_t weight_floats(panel_type type, size_t K)
{
    /* bytes, and scales and minima or twice as many scales; PANEL_X: turned, too */
    const size_t blocks = quant_columns(K) / 4 + 2 * n_blocks_q(K);
    return TILE_COLUMNS * (type == PANEL_Q ? blocks : type == PANEL_X ? 2 * blocks : K);
}

/* n rows of blocks: scales and minima as floats, numbers of 4 and 5 bits as bytes. */
static tile_q_rows unpack_rows(const ops *o, float *scratch, const tensor *w, const unsigned char *rows,
                               size_t n, size_t K)
{
    const size_t n_blocks = n_blocks_q(K), columns = quant_columns(K), row_bytes = tensor_row_bytes(w);
    const bool small = w->type != DTYPE_Q8;
    float *scale = scratch, *minimum = scale + n * n_blocks;
    uint8_t *u = (uint8_t *)(minimum + n * n_blocks);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *row = rows + i * row_bytes;
        if (small) {
            o->unpack_q[w->type - DTYPE_Q4](u + i * columns, scale + i * n_blocks, minimum + i * n_blocks,
                                            row, K);
        } else {
            o->widen[DTYPE_BF16](scale + i * n_blocks, row + columns, n_blocks);
        }
    }
    return (tile_q_rows){.u = small ? u : rows,
                         .u_stride = small ? columns : row_bytes,
                         .scale = scale,
                         .minimum = small ? minimum : NULL,
                         .stride = n_blocks,
                         .wide = w->type == DTYPE_Q5};
}

/* The same of a type in GGUF files. */
static tile_q_rows unpack_ggml(const ops *o, float *scratch, const tensor *w, const unsigned char *rows,
                               size_t n, size_t K)
{
    const bool halves = ggml_has_halves(w->type), minima = ggml_format_of(w->type)->minimum != 0;
    const size_t n_blocks = n_blocks_q(K), stride = halves ? 2 * n_blocks : n_blocks;
    float *scale = scratch, *minimum = scratch + n * n_blocks;
    uint8_t *u = (uint8_t *)(scratch + 2 * n * n_blocks);
    for (size_t i = 0; i < n; i++) {
        ggml_kernels_of(o->ggml, w->type)
            ->unpack(u + i * quant_columns(K), scale + i * stride, minimum + i * n_blocks,
                     rows + i * tensor_row_bytes(w), K);
    }
    return (tile_q_rows){.u = u,
                         .u_stride = quant_columns(K),
                         .scale = scale,
                         .minimum = minima ? minimum : NULL,
                         .stride = stride,
                         .wide = !ggml_is_small(w->type),
                         .halves = halves};
}

/* n rows of w from row n0 on. */
static tile_weights load_rows(const tile_job *job, float *scratch, const tensor *w, size_t n0, size_t n)
{
    const ops *o = job->c->ops;
    const unsigned char *rows = (const unsigned char *)w->data + n0 * tensor_row_bytes(w);
    if (job->type == PANEL_Q || job->type == PANEL_X) {
        return (tile_weights){
            .q = (dtype_is_ggml(w->type) ? unpack_ggml : unpack_rows)(o, scratch, w, rows, n, job->K)};
    }
    if (job->type == PANEL_BF16 || w->type == DTYPE_F32) {
        return (tile_weights){.rows = rows + job->k0 * dtype_bytes(w->type), .stride = job->K};
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char *row = rows + i * tensor_row_bytes(w);
        if (dtype_is_ggml(w->type)) {
            ggml_kernels_of(o->ggml, w->type)->widen(scratch + i * job->k_n, row, job->k_n);
        } else {
            o->widen[w->type](scratch + i * job->k_n, row + job->k0 * dtype_bytes(w->type), job->k_n);
        }
    }
    return (tile_weights){.rows = scratch, .stride = job->k_n};
}

/* ---- products ---- */

/* The products of n rows of weights with one panel are added to sums; of PANEL_Q they replace them. */
static void multiply_panel(const tile_job *job, float *sums, const tile_weights *w, size_t panel, size_t n)
{
    const ops *o = job->c->ops;
    const size_t K = job->k_n, T = min_size(TILE_ROWS, job->T - panel * TILE_ROWS);
    const uint32_t *x = job->packed + panel * panel_words(job->type, K);
    if (job->type == PANEL_Q) {
        o->tile_q(sums, (const tile_q_block *)(const void *)x, &w->q, T, n, n_blocks_q(K));
        return;
    }
    if (job->type == PANEL_BF16) {
        for (size_t k = 0; k < K; k += K_BLOCK_BF16) {
            o->tile_bf16(sums, x + k / 2 * TILE_ROWS, (const uint16_t *)w->rows + k, w->stride, T, n,
                         min_size(K_BLOCK_BF16, K - k));
        }
        return;
    }
    for (size_t k = 0; k < K; k += K_BLOCK_F32) {
        o->tile_f32(sums, (const float *)(const void *)x + k * TILE_ROWS, (const float *)w->rows + k,
                    w->stride, T, n, min_size(K_BLOCK_F32, K - k));
    }
}

/* Columns of a task. */
static size_t task_columns(panel_type type)
{
    return type == PANEL_X ? TURNED_COLUMNS : TILE_COLUMNS;
}

static size_t n_column_tasks(panel_type type, const linear_part *p)
{
    return (p->w->dims[0] + task_columns(type) - 1) / task_columns(type);
}

/* The products of all panels with n rows of weights from row n0 of a part on, which are turned behind themselves. */
static void multiply_turned(const tile_job *job, const linear_part *p, float *scratch, size_t n0, size_t n)
{
    const ops *o = job->c->ops;
    const size_t N = p->w->dims[0], n_blocks = n_blocks_q(job->K), rows = TURNED_COLUMNS;
    const tile_q_rows q = load_rows(job, scratch, p->w, n0, n).q;
    float *turned = scratch + weight_floats(PANEL_Q, job->K);
    const tile_q_turned w = {.u = (uint32_t *)(void *)turned,
                             .scale = turned + rows * quant_columns(job->K) / 4,
                             .minimum =
                                 q.minimum ? turned + rows * (quant_columns(job->K) / 4 + n_blocks) : NULL,
                             .halves = q.halves};
    o->turn_q(&w, &q, n, n_blocks);
    /* The rows that this thread takes next, if tasks go round, are asked for meanwhile. */
    const size_t next = n0 + rows * pool_n_threads(job->c->pool), row_bytes = tensor_row_bytes(p->w);
    const prefetch_range ahead = {.at = (const unsigned char *)p->w->data + next * row_bytes,
                                  .lines = next + rows > N ? 0 : rows * row_bytes / CACHE_LINE};
    o->tile_turned(p->out + job->row0 * N + n0, N, (const tile_x_share *)(const void *)job->packed, &w,
                   p->bias ? p->bias + n0 : NULL, job->T, n, n_blocks, ahead);
}

/* T rows of n floats are asked for before they are written: they lie far apart, and a store that
 * misses would hold the next ones up. */
static void ask_to_write(float *out, size_t stride, size_t T, size_t n)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < n; i += CACHE_LINE / sizeof *out) {
            __builtin_prefetch(out + t * stride + i, 1, 2);
        }
    }
}

/* ctx as for pack_task. */
static void tile_task(void *ctx, size_t task, size_t thread)
{
    const tile_job *job = ctx;
    while (task >= job->n_tasks) {
        task -= job++->n_tasks;
    }
    const linear_part *p = job->parts;
    size_t panel = 0, end = n_panels(job);
    if (task >= job->n_whole) {
        panel = (task - job->n_whole) % end;
        task = job->n_whole + (task - job->n_whole) / end;
        end = panel + 1;
    }
    while (task >= n_column_tasks(job->type, p)) {
        task -= n_column_tasks(job->type, p++);
    }
    const ops *o = job->c->ops;
    const size_t N = p->w->dims[0], n0 = task * task_columns(job->type);
    const size_t n = min_size(task_columns(job->type), N - n0);
    float *sums = nn_scratch(job->c, thread);
    if (job->type == PANEL_X) {
        multiply_turned(job, p, sums, n0, n);
        return;
    }
    const tile_weights w = load_rows(job, sums + SUMS, p->w, n0, n);
    for (; panel < end; panel++) {
        const size_t t0 = panel * TILE_ROWS, T = min_size(TILE_ROWS, job->T - t0);
        float *out = p->out + (job->row0 + t0) * N + n0;
        ask_to_write(out, N, T, n);
        if (job->type != PANEL_Q && job->k0 == 0) {
            memset(sums, 0, n * TILE_ROWS * sizeof *sums);
        } else if (job->k0 > 0) {
            o->transpose(sums, TILE_ROWS, out, N, T, n);
        }
        multiply_panel(job, sums, &w, panel, n);
        o->transpose(out, N, sums, TILE_ROWS, n, T);
        for (size_t t = 0; p->bias && job->k0 + job->k_n == job->K && t < T; t++) {
            o->add(out + t * N, p->bias + n0, n);
        }
    }
}

/* Rows of a group; 0 if the layer is too wide for the room or for the scratch. */
static size_t group_rows(panel_type type, size_t K)
{
    if (K == 0 || weight_floats(type, K) > SCRATCH_FLOATS - SUMS) {
        return 0;
    }
    const size_t words = panel_words(type, K),
                 wanted = (type == PANEL_X ? GROUP_WORDS_X : GROUP_WORDS) / words;
    return min_size(wanted < 2 ? 2 : wanted, PACKED_WORDS / words) * panel_rows(type);
}

/* Columns that are packed at a time: equal shares of all, in whole blocks, or everything where
 * weights cannot be cut. */
static size_t chunk_columns(const linear_part *parts, size_t n_parts, panel_type type, size_t K)
{
    bool cut = type == PANEL_F32;
    for (size_t i = 0; i < n_parts; i++) {
        cut = cut && !dtype_is_ggml(parts[i].w->type);
    }
    const size_t n_chunks = (K + K_CHUNK_F32 - 1) / K_CHUNK_F32, share = (K + n_chunks - 1) / n_chunks;
    return cut ? (share + K_BLOCK_F32 - 1) / K_BLOCK_F32 * K_BLOCK_F32 : K;
}

/* Column tasks of the parts. */
static size_t n_part_tasks(panel_type type, const linear_part *parts, size_t n_parts)
{
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        n += n_column_tasks(type, &parts[i]);
    }
    return n;
}

/* Packs and multiplies what the jobs hold. n_tasks of each counts its column tasks. */
static void run_jobs(compute *c, tile_job *jobs, size_t n_jobs)
{
    const size_t n_threads = pool_n_threads(c->pool);
    size_t n_packs = 0, n_tasks = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        tile_job *job = &jobs[i];
        /* where weights are turned, tasks are short instead */
        const bool is_cut = i + 1 == n_jobs && n_threads > 1 && job->type != PANEL_X;
        const size_t cut = is_cut ? min_size(job->n_tasks, n_threads) : 0;
        job->n_whole = job->n_tasks - cut;
        job->n_tasks = job->n_whole + cut * n_panels(job);
        n_packs += n_panels(job);
        n_tasks += job->n_tasks;
    }
    pool_run(c->pool, pack_task, jobs, n_packs);
    pool_run(c->pool, tile_task, jobs, n_tasks);
}

static void count_products(compute *c, panel_type type, const linear_part *parts, size_t n_parts, size_t T)
{
    const size_t padding = type == PANEL_X ? 0 : (16 - T % 16) % 16;
    for (size_t i = 0; i < n_parts; i++) {
        c->n_products += (uint64_t)T * tensor_len(parts[i].w);
        c->n_padding += (uint64_t)padding * tensor_len(parts[i].w);
    }
}

/* The first of the fewest shares of T rows that hold at most `most` each, in whole panels. */
static size_t even_share(size_t T, size_t most, size_t rows)
{
    const size_t n = (T + most - 1) / most, share = (T + n - 1) / n;
    return min_size(T, (share + rows - 1) / rows * rows);
}

/* Parts whose weights are multiplied alike. */
static void multiply_parts(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T,
                           size_t K, panel_type type)
{
    tile_job job = {.c = c, .parts = parts, .x = x, .type = type, .packed = c->packed, .K = K};
    const size_t n_tasks = n_part_tasks(type, parts, n_parts),
                 columns = chunk_columns(parts, n_parts, type, K);
    count_products(c, type, parts, n_parts, T);
    for (; n_tasks > 0 && job.row0 < T; job.row0 += job.T) {
        job.T = even_share(T - job.row0, group_rows(type, columns), panel_rows(type));
        for (job.k0 = 0; job.k0 < K; job.k0 += job.k_n) {
            job.k_n = min_size(K - job.k0, columns);
            job.n_tasks = n_tasks;
            run_jobs(c, &job, 1);
        }
    }
}

static panel_type panel_for(const compute *c, const tensor *w, size_t K)
{
    if (dtype_is_quantized(w->type) && !(dtype_is_ggml(w->type) && !ggml_has_tiles(w->type))) {
        return c->ops->tile_turned ? PANEL_X : PANEL_Q;
    }
    return c->ops->tile_bf16 && w->type == DTYPE_BF16 && K % 2 == 0 ? PANEL_BF16 : PANEL_F32;
}

void nn_linear_many(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T)
{
    assert(n_parts > 0 && n_parts <= NN_LINEAR_PARTS);
    const size_t N = parts[0].w->dims[0], K = N ? tensor_len(parts[0].w) / N : 0;
    linear_part types[PANEL_TYPES][NN_LINEAR_PARTS];
    size_t n[PANEL_TYPES] = {0};
    if (!c->fast || !c->ops->tiles_best || group_rows(PANEL_F32, K) == 0 || group_rows(PANEL_X, K) == 0) {
        nn_linear_group(c, parts, n_parts, x, T);
        return;
    }
    for (size_t i = 0; i < n_parts; i++) {
        const panel_type type = panel_for(c, parts[i].w, K);
        types[type][n[type]++] = parts[i];
    }
    for (panel_type type = PANEL_F32; type < PANEL_TYPES; type++) {
        multiply_parts(c, types[type], n[type], x, T, K, type);
    }
}

/* Whether the rows of an item are packed at once, in 8 bits, as panels of this type. */
static bool is_joinable(const compute *c, const linear_many *item, panel_type type, size_t K)
{
    bool joinable =
        c->fast && c->ops->tiles_best && group_rows(PANEL_F32, K) > 0 && item->T <= group_rows(type, K);
    for (size_t i = 0; i < item->n_parts; i++) {
        joinable = joinable && panel_for(c, item->parts[i].w, K) == type;
    }
    return joinable;
}

void nn_linear_many_each(compute *c, const linear_many *items, size_t n)
{
    const panel_type type = c->ops->tile_turned ? PANEL_X : PANEL_Q;
    tile_job jobs[TILE_JOBS];
    size_t n_jobs = 0, words = 0;
    for (size_t i = 0; i < n; i++) {
        const linear_many *item = &items[i];
        const tensor *w = item->parts[0].w;
        const size_t K = w->dims[0] ? tensor_len(w) / w->dims[0] : 0;
        const bool joinable = is_joinable(c, item, type, K);
        tile_job job = {
            .c = c, .parts = item->parts, .x = item->x, .type = type, .K = K, .k_n = K, .T = item->T};
        const size_t more = joinable ? n_panels(&job) * panel_words(type, K) : 0;
        if (n_jobs > 0 && (!joinable || n_jobs == TILE_JOBS || words + more > JOBS_WORDS)) {
            run_jobs(c, jobs, n_jobs);
            n_jobs = words = 0;
        }
        if (!joinable) {
            nn_linear_many(c, item->parts, item->n_parts, item->x, item->T);
            continue;
        }
        job.packed = c->packed + words;
        job.n_tasks = n_part_tasks(type, item->parts, item->n_parts);
        count_products(c, type, item->parts, item->n_parts, item->T);
        jobs[n_jobs++] = job;
        words += more;
    }
    if (n_jobs > 0) {
        run_jobs(c, jobs, n_jobs);
    }
}

uint64_t nn_padding(const compute *c)
{
    return c->n_padding;
}

bool nn_many_is_exact(const compute *c)
{
    return c->ops->dot_rows_best || (c->fast && c->ops->tiles_best);
}
