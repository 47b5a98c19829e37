/* Linear layers. Our own dot products give a row the same bits whatever the other rows are; they
 * serve NN_ROWS_EXACT rows at least, and any number where they are the faster way. Otherwise tiles
 * of weights are widened to f32 in scratch and multiplied by BLAS. The way depends on the
 * sizes and the kernel table alone; how the work is cut does not change a bit of it. */
#include "compute/nn.h"

#include <assert.h>

#include "compute/context.h"
#include "compute/gemm.h"
#include "compute/formats/quant.h"

typedef struct linear_job {
    compute *c;
    float *out;
    const float *x, *bias;
    const unsigned char *packed; /* for weights in blocks: rows of x in 8 bits, */
    const quant_panel *panels;   /* and the same side by side; or NULL */
    const unsigned char *w;
    dtype type;
    size_t T, N, K, row_bytes;
    bool own;                      /* dot products; else BLAS */
    size_t n_per_task, t_per_task; /* many rows: output columns and rows of a task */
    size_t n_tasks;
} linear_job;

/* Rows of x in a task of our own: with 32 of them the L2 cache still holds them for long K. From
 * PANEL_FROM rows on, panels of our own blocks cost less than a row at a time. */
enum { DOT_T = 32, PANEL_FROM = 5 };
static_assert(DOT_T % QUANT_PANEL_ROWS == 0, "a task begins with a panel");

/* Tiles of the BLAS way: a slab of weights is SLAB_N x SLAB_K floats of scratch. */
enum { SLAB_N = 128, SLAB_K = 2048, SLAB_T = 512 };
static_assert(SLAB_N * SLAB_K <= SCRATCH_FLOATS, "a slab fits the scratch");

/* The output columns and rows of a task; columns change fastest, so that rows of x stay cached. */
typedef struct tile {
    size_t n0, n1, t0, t1;
} tile;

static tile find_tile(const linear_job *job, size_t task)
{
    size_t n_columns = (job->N + job->n_per_task - 1) / job->n_per_task;
    size_t n0 = task % n_columns * job->n_per_task, t0 = task / n_columns * job->t_per_task;
    return (tile){n0, min_size(n0 + job->n_per_task, job->N), t0, min_size(t0 + job->t_per_task, job->T)};
}

static void add_bias(const linear_job *job, const tile *at)
{
    for (size_t t = at->t0; job->bias && t < at->t1; t++) {
        job->c->ops->add(job->out + t * job->N + at->n0, job->bias + at->n0, at->n1 - at->n0);
    }
}

static void dot_tile(const linear_job *job, const tile *at)
{
    const unsigned char *w = job->w + at->n0 * job->row_bytes;
    float *out = job->out + at->t0 * job->N + at->n0;
    const size_t T = at->t1 - at->t0, N = at->n1 - at->n0;
    if (job->panels && !dtype_is_ggml(job->type)) {
        job->c->ops->panel_q[job->type - DTYPE_Q8](
            out, job->N, job->panels + quant_panel_blocks(at->t0, job->K), T, w, N, job->K);
    } else if (dtype_is_quantized(job->type)) {
        const unsigned char *x = job->packed + at->t0 * quant_x_bytes(job->K);
        dot_q_fn *dot = dtype_is_ggml(job->type) ? ggml_kernels_of(job->c->ops->ggml, job->type)->dot
                                                 : job->c->ops->dot_q[job->type - DTYPE_Q8];
        dot(out, job->N, x, T, w, N, job->K);
    } else {
        job->c->ops->dot_rows[job->type](out, job->N, job->x + at->t0 * job->K, job->K, T, w, job->K, N,
                                         job->K);
    }
    add_bias(job, at);
}

static void blas_task(void *ctx, size_t task, size_t thread)
{
    const linear_job *job = ctx;
    tile at = find_tile(job, task);
    float *slab = nn_scratch(job->c, thread), *out = job->out + at.t0 * job->N + at.n0;
    const float *x = job->x + at.t0 * job->K;
    size_t element = dtype_bytes(job->type);
    for (size_t k0 = 0; k0 < job->K; k0 += SLAB_K) {
        size_t k = min_size(SLAB_K, job->K - k0);
        const unsigned char *w = job->w + (at.n0 * job->K + k0) * element;
        for (size_t n = 0; n < at.n1 - at.n0; n++) {
            job->c->ops->widen[job->type](slab + n * k, w + n * job->K * element, k);
        }
        gemm_nt(out, job->N, x + k0, job->K, slab, k, at.t1 - at.t0, at.n1 - at.n0, k, k0 > 0);
    }
    add_bias(job, &at);
}

/* ---- few rows: bound by memory bandwidth, so a task is a slice of memory ---- */

static void slice_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const slice *s = (const slice *)ctx + task;
    dot_tile(s->job, &(tile){s->n0, s->n1, 0, s->job->T});
}

/* Each round of tasks, one a thread, takes half of what is left of all products: threads begin with
 * long slices and end together. Returns how many there are. */
static size_t cut_slices(compute *c, const linear_job *jobs, size_t n_jobs)
{
    enum { LEAST_BYTES = 1 << 16, BLOCK = 8 }; /* rows in steps of a kernel's block */
    const size_t n_threads = compute_n_threads(c);
    size_t left = 0, share = 0, n = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        left += jobs[i].N * jobs[i].row_bytes;
    }
    for (size_t i = 0; i < n_jobs; i++) {
        const linear_job *job = &jobs[i];
        for (size_t n0 = 0; n0 < job->N; n++) {
            if (n % n_threads == 0) {
                share = left / n_threads / 2;
                share = share > LEAST_BYTES ? share : LEAST_BYTES;
            }
            const size_t rows = (share / job->row_bytes + BLOCK) / BLOCK * BLOCK;
            const size_t n1 = n_threads > 1 ? min_size(n0 + rows, job->N) : job->N;
            assert(n < c->slices_max);
            c->slices[n] = (slice){job, n0, n1};
            left -= (n1 - n0) * job->row_bytes;
            n0 = n1;
        }
    }
    return n;
}

/* ---- many rows ---- */

static void dot_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const linear_job *job = ctx;
    const tile at = find_tile(job, task);
    dot_tile(job, &at);
}

static void plan_job(linear_job *job)
{
    enum { TILE_BYTES = 1 << 16, BLOCK = 8 };
    job->n_per_task = job->own ? (TILE_BYTES / (job->row_bytes + 1) + BLOCK) / BLOCK * BLOCK : SLAB_N;
    job->t_per_task = job->own ? DOT_T : SLAB_T;
    job->n_tasks =
        (job->N + job->n_per_task - 1) / job->n_per_task * ((job->T + job->t_per_task - 1) / job->t_per_task);
}

/* Several products: one fork for all of them. ctx: their jobs. */
static void group_task(void *ctx, size_t task, size_t thread)
{
    linear_job *job = ctx;
    while (task >= job->n_tasks) {
        task -= job->n_tasks;
        job++;
    }
    (job->own ? dot_task : blas_task)(job, task, thread);
}

/* n_jobs > 0; all have few rows, or all have many. */
static void run_jobs(compute *c, linear_job *jobs, size_t n_jobs)
{
    if (jobs[0].T <= NN_ROWS_EXACT) {
        pool_run(c->pool, slice_task, c->slices, cut_slices(c, jobs, n_jobs));
        return;
    }
    size_t n_tasks = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        plan_job(&jobs[i]);
        n_tasks += jobs[i].n_tasks;
    }
    pool_run(c->pool, group_task, jobs, n_tasks);
}

/* Whether T rows are multiplied in panels. */
static bool takes_panels(const compute *c, dtype type, size_t T)
{
    const bool own = dtype_is_quantized(type) && !dtype_is_ggml(type);
    return own && T >= PANEL_FROM && c->ops->panel_q[type - DTYPE_Q8];
}

/* Where the panels of T packed rows lie. */
static quant_panel *panels_behind(const void *packed, size_t T, size_t K)
{
    return (quant_panel *)(void *)((unsigned char *)(uintptr_t)packed + T * quant_x_bytes(K));
}

/* A product with T rows of x; packed as in linear_job. */
static linear_job make_job(compute *c, float *out, const tensor *w, const float *x, const void *packed,
                           size_t T)
{
    const size_t N = w->dims[0], K = tensor_len(w) / N;
    c->n_products += (uint64_t)T * N * K;
    return (linear_job){.c = c,
                        .out = out,
                        .x = x,
                        .packed = packed,
                        .panels = takes_panels(c, w->type, T) ? panels_behind(packed, T, K) : NULL,
                        .w = w->data,
                        .type = w->type,
                        .T = T,
                        .N = N,
                        .K = K,
                        .row_bytes = tensor_row_bytes(w),
                        .own = T <= NN_ROWS_EXACT || c->ops->dot_rows_best || dtype_is_quantized(w->type)};
}

/* Bytes of T packed rows, and of their panels. */
static size_t packed_bytes(size_t T, size_t K, bool panels)
{
    return T * quant_x_bytes(K) + (panels ? quant_panel_blocks(T, K) * sizeof(quant_panel) : 0);
}

/* Rows of x in 8 bits go to the packed room. A few rows: not worth a fork. */
static void quantize_rows(compute *c, void *packed, const float *x, size_t T, size_t K, bool panels)
{
    for (size_t t = 0; t < T; t++) {
        quant_x row = quant_x_at(packed, K, t);
        c->ops->quantize_x(&row, x + t * K, K);
    }
    if (panels) {
        quant_pack_panels(panels_behind(packed, T, K), packed, T, K);
    }
}

static void multiply_group(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t row0,
                           size_t T)
{
    linear_job jobs[NN_LINEAR_PARTS];
    for (size_t i = 0; i < n_parts; i++) {
        const tensor *w = parts[i].w;
        const size_t N = w->dims[0], K = tensor_len(w) / N;
        jobs[i] = make_job(c, parts[i].out + row0 * N, w, x + row0 * K, c->packed, T);
        jobs[i].bias = parts[i].bias;
    }
    run_jobs(c, jobs, n_parts);
}

void nn_linear_group(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T)
{
    linear_part used[NN_LINEAR_PARTS]; /* without empty ones */
    size_t n = 0, K = 0, rows = T;
    bool panels = false;
    assert(n_parts <= NN_LINEAR_PARTS);
    for (size_t i = 0; i < n_parts; i++) {
        assert(parts[i].w->type != DTYPE_OTHER && parts[i].w->n_dims >= 2);
        if (parts[i].w->dims[0] > 0) {
            used[n++] = parts[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (dtype_is_quantized(used[i].w->type)) {
            K = tensor_len(used[i].w) / used[i].w->dims[0];
            rows = min_size(T, sizeof(uint32_t) * PACKED_WORDS / packed_bytes(QUANT_PANEL_ROWS, K, true) *
                                   QUANT_PANEL_ROWS);
            panels = panels || takes_panels(c, used[i].w->type, T);
            assert(rows >= min_size(T, NN_ROWS_EXACT));
        }
    }
    for (size_t row = 0; n > 0 && row < T; row += rows) {
        const size_t now = min_size(rows, T - row);
        quantize_rows(c, c->packed, x + row * K, K ? now : 0, K, panels);
        multiply_group(c, used, n, x, row, now);
    }
}

void nn_linear(compute *c, float *out, const float *x, const tensor *w, const float *bias, size_t T)
{
    const linear_part part = {out, w, bias};
    nn_linear_group(c, &part, 1, x, T);
}

void nn_linear_each(compute *c, const linear_item *items, size_t n)
{
    const size_t room = sizeof(uint32_t) * PACKED_WORDS;
    for (size_t i = 0; i < n;) {
        linear_job jobs[LINEAR_JOBS];
        unsigned char *const packed = (unsigned char *)c->packed;
        size_t n_jobs = 0, used = 0, at = 0; /* at: where the present x lies */
        for (; i < n && n_jobs < LINEAR_JOBS; i++) {
            const linear_item *item = &items[i];
            const size_t K = tensor_len(item->w) / item->w->dims[0];
            assert(item->T > 0 && item->T <= NN_ROWS_EXACT && item->w->dims[0] > 0);
            if (dtype_is_quantized(item->w->type)) {
                const linear_job *before = n_jobs ? &jobs[n_jobs - 1] : NULL;
                const bool panels = takes_panels(c, item->w->type, item->T);
                const bool again = before && dtype_is_quantized(before->type) && before->x == item->x &&
                                   before->T == item->T && before->K == K && (!panels || before->panels);
                const size_t bytes = packed_bytes(item->T, K, panels);
                if (!again && used + bytes > room) {
                    break; /* one item fits always */
                }
                if (!again) {
                    at = used;
                    used += bytes;
                    quantize_rows(c, packed + at, item->x, item->T, K, panels);
                }
            }
            jobs[n_jobs++] = make_job(c, item->out, item->w, item->x, packed + at, item->T);
        }
        run_jobs(c, jobs, n_jobs);
    }
}

uint64_t nn_products(const compute *c)
{
    return c->n_products;
}
