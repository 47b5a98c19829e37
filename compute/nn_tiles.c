/* Linear layers for many rows, in tiles.
 *
 * x is turned once into panels of TILE_ROWS rows and stays in the second cache. A task takes some columns of the output
 * for all rows: their weights are widened to f32 in scratch, or, where the processor multiplies bf16 faster and the
 * context is fast, taken as they lie in the checkpoint: each weight is broadcast against a panel, so no order of them
 * would save a load. An element is the sum of its blocks over k, each one accumulator: its bits depend neither on the
 * other rows nor on how the work is cut. */
#include "compute/nn.h"

#include <assert.h>
#include <string.h>

#include "compute/context.h"

/* Columns of a task; columns of x at a time, so that a panel's share stays in the first cache (f32) or comes from the
 * second in long stretches (bf16). */
enum { TILE_COLUMNS = 48, K_BLOCK_F32 = 128, K_BLOCK_BF16 = 1024, SUMS = TILE_COLUMNS * TILE_ROWS };

typedef struct tile_job {
    compute *c;
    const linear_part *parts;
    const float *x;
    bool bf16;
    size_t K, row0, T; /* rows row0 .. row0+T-1 of x are packed */
} tile_job;

/* 32-bit words of a packed panel. */
static size_t panel_words(const tile_job *job)
{
    return job->K / (job->bf16 ? 2 : 1) * TILE_ROWS;
}

static void pack_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const tile_job *job = ctx;
    const size_t K = job->K, t = task * TILE_ROWS, T = min_size(TILE_ROWS, job->T - t);
    const float *x = job->x + (job->row0 + t) * K;
    uint32_t *panel = job->c->packed + task * panel_words(job);
    if (job->bf16) {
        job->c->ops->pack_bf16(panel, x, K, T, K);
        return;
    }
    if (T % 16 != 0) {
        memset(panel, 0, panel_words(job) * sizeof *panel);
    }
    job->c->ops->transpose((float *)(void *)panel, TILE_ROWS, x, K, T, K);
}

/* sums of n columns of w [n, K], f32 or bf16 as the job says, for one panel. */
static void multiply_panel(const tile_job *job, float *sums, const void *w, size_t panel, size_t n)
{
    const ops *o = job->c->ops;
    const size_t K = job->K, T = min_size(TILE_ROWS, job->T - panel * TILE_ROWS);
    const uint32_t *x = job->c->packed + panel * panel_words(job);
    memset(sums, 0, n * TILE_ROWS * sizeof *sums);
    if (job->bf16) {
        for (size_t k = 0; k < K; k += K_BLOCK_BF16) {
            o->tile_bf16(sums, x + k / 2 * TILE_ROWS, (const uint16_t *)w + k, K, T, n,
                         min_size(K_BLOCK_BF16, K - k));
        }
        return;
    }
    for (size_t k = 0; k < K; k += K_BLOCK_F32) {
        o->tile_f32(sums, (const float *)(const void *)x + k * TILE_ROWS, (const float *)w + k, K, T, n,
                    min_size(K_BLOCK_F32, K - k));
    }
}

static size_t n_column_tasks(const linear_part *p)
{
    return (p->w->dims[0] + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

/* n rows of w, from `rows` on, as f32: in `wide`, or where they are if they have that type. */
static const void *widen_rows(const ops *o, float *wide, const tensor *w, const void *rows, size_t n,
                              size_t K)
{
    for (size_t i = 0; dtype_is_ggml(w->type) && i < n; i++) {
        const unsigned char *row = (const unsigned char *)rows + i * tensor_row_bytes(w);
        ggml_kernels_of(o->ggml, w->type)->widen(wide + i * K, row, K);
    }
    if (dtype_is_ggml(w->type)) {
        return wide;
    }
    if (dtype_is_quantized(w->type)) {
        for (size_t i = 0; i < n; i++) {
            o->widen_q[w->type - DTYPE_Q8](wide + i * K,
                                           (const unsigned char *)rows + i * tensor_row_bytes(w), K);
        }
        return wide;
    }
    if (w->type != DTYPE_F32) {
        o->widen[w->type](wide, rows, n * K);
        return wide;
    }
    return rows;
}

static void tile_task(void *ctx, size_t task, size_t thread)
{
    const tile_job *job = ctx;
    const linear_part *p = job->parts;
    while (task >= n_column_tasks(p)) {
        task -= n_column_tasks(p++);
    }
    const ops *o = job->c->ops;
    const size_t K = job->K, N = p->w->dims[0], n0 = task * TILE_COLUMNS, n = min_size(TILE_COLUMNS, N - n0);
    float *sums = nn_scratch(job->c, thread), *wide = sums + SUMS;
    const void *w = (const unsigned char *)p->w->data + n0 * tensor_row_bytes(p->w);
    if (!job->bf16) {
        w = widen_rows(o, wide, p->w, w, n, K);
    }
    for (size_t panel = 0; panel * TILE_ROWS < job->T; panel++) {
        const size_t t0 = panel * TILE_ROWS, T = min_size(TILE_ROWS, job->T - t0);
        float *out = p->out + (job->row0 + t0) * N + n0;
        multiply_panel(job, sums, w, panel, n);
        o->transpose(out, N, sums, TILE_ROWS, n, T);
        for (size_t t = 0; p->bias && t < T; t++) {
            o->add(out + t * N, p->bias + n0, n);
        }
    }
}

/* Rows that the room for packed panels holds; 0 if the layer is too wide for it or for the scratch. */
static size_t rows_that_fit(size_t K)
{
    bool fits = K > 0 && K <= (SCRATCH_FLOATS - SUMS) / TILE_COLUMNS;
    return fits ? PACKED_WORDS / TILE_ROWS / K * TILE_ROWS : 0;
}

/* Parts whose weights are multiplied alike. */
static void multiply_parts(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T,
                           size_t K, bool bf16)
{
    tile_job job = {.c = c, .parts = parts, .x = x, .bf16 = bf16, .K = K};
    size_t n_tasks = 0;
    for (size_t i = 0; i < n_parts; i++) {
        n_tasks += n_column_tasks(&parts[i]);
    }
    for (; n_tasks > 0 && job.row0 < T; job.row0 += job.T) {
        job.T = min_size(T - job.row0, rows_that_fit(K));
        pool_run(c->pool, pack_task, &job, (job.T + TILE_ROWS - 1) / TILE_ROWS);
        pool_run(c->pool, tile_task, &job, n_tasks);
    }
}

void nn_linear_many(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T)
{
    assert(n_parts > 0 && n_parts <= NN_LINEAR_PARTS);
    const size_t N = parts[0].w->dims[0], K = N ? tensor_len(parts[0].w) / N : 0;
    linear_part kinds[2][NN_LINEAR_PARTS]; /* f32, bf16 */
    size_t n[2] = {0, 0};
    if (!c->fast || !c->ops->tiles_best || rows_that_fit(K) == 0) {
        nn_linear_group(c, parts, n_parts, x, T);
        return;
    }
    for (size_t i = 0; i < n_parts; i++) {
        bool bf16 = c->ops->tile_bf16 && parts[i].w->type == DTYPE_BF16 && K % 2 == 0;
        kinds[bf16][n[bf16]++] = parts[i];
    }
    for (size_t i = 0; i < 2; i++) {
        multiply_parts(c, kinds[i], n[i], x, T, K, i == 1);
    }
}

bool nn_many_is_exact(const compute *c)
{
    return c->ops->dot_rows_best == SIZE_MAX || (c->fast && c->ops->tiles_best);
}
