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
    const uint16_t *rounded;     /* for weights in bf16: rows of x in bf16; or NULL */
    const unsigned char *w;
    dtype type;
    size_t T, N, K, row_bytes;
    bool own;                      /* dot products; else BLAS */
    size_t n_per_task, t_per_task; /* many rows: output columns and rows of a task */
    size_t n_tasks;
} linear_job;

/* Rows of x in a task of our own: with 32 of them the L2 cache still holds them for long K. From
 * PANEL_FROM rows on, panels of our own blocks cost less than a row at a time. */
enum { DOT_T = 32, PANEL_FROM = 4 };
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

static size_t rounded_columns(size_t K)
{
    return (K + BF16_STEP - 1) / BF16_STEP * BF16_STEP;
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
    } else if (job->rounded) {
        const size_t stride = rounded_columns(job->K);
        job->c->ops->dot_bf16(out, job->N, job->rounded + at->t0 * stride, stride, T, w, job->K, N, job->K);
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
 * long slices and end together. Returns how many there are. With many threads slices end shorter: what the last
 * one holds is a larger part of all there (docs/scale.md). */
static size_t cut_slices(compute *c, const linear_job *jobs, size_t n_jobs)
{
    enum { BLOCK = 8, MANY_THREADS = 32 }; /* rows in steps of a kernel's block */
    const size_t n_threads = compute_n_threads(c), least = n_threads < MANY_THREADS ? 1 << 16 : 1 << 14;
    size_t left = 0, share = 0, n = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        left += jobs[i].N * jobs[i].row_bytes;
    }
    for (size_t i = 0; i < n_jobs; i++) {
        const linear_job *job = &jobs[i];
        for (size_t n0 = 0; n0 < job->N; n++) {
            if (n % n_threads == 0) {
                share = left / n_threads / 2;
                share = share > least ? share : least;
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

/* How rows of x are packed for the weights of a product, or of several with the same rows: one behind the
 * other in 8 bits, side by side, and in bf16. */
typedef struct packing {
    bool blocks, panels, rounded;
} packing;

static packing packing_for(const compute *c, dtype type, size_t T)
{
    const bool blocks = dtype_is_quantized(type), own = blocks && !dtype_is_ggml(type);
    return (packing){.blocks = blocks,
                     .panels = own && T >= PANEL_FROM && c->ops->panel_q[type - DTYPE_Q8],
                     .rounded = type == DTYPE_BF16 && c->fast && c->ops->tiles_best && c->ops->dot_bf16};
}

static packing join(packing a, packing b)
{
    return (packing){a.blocks || b.blocks, a.panels || b.panels, a.rounded || b.rounded};
}

/* Whether a has all that b wants. */
static bool covers(packing a, packing b)
{
    return a.blocks >= b.blocks && a.panels >= b.panels && a.rounded >= b.rounded;
}

static size_t blocks_bytes(packing p, size_t T, size_t K)
{
    return p.blocks ? T * quant_x_bytes(K) : 0;
}

static size_t panels_bytes(packing p, size_t T, size_t K)
{
    return p.panels ? quant_panel_blocks(T, K) * sizeof(quant_panel) : 0;
}

/* Bytes of T packed rows. */
static size_t packed_bytes(packing p, size_t T, size_t K)
{
    const size_t rounded = p.rounded ? T * rounded_columns(K) * sizeof(uint16_t) : 0;
    return blocks_bytes(p, T, K) + panels_bytes(p, T, K) + rounded;
}

/* Where the panels and the rounded rows among T packed rows lie. */
static quant_panel *panels_of(const void *packed, packing p, size_t T, size_t K)
{
    return (quant_panel *)(void *)((unsigned char *)(uintptr_t)packed + blocks_bytes(p, T, K));
}

static uint16_t *rounded_of(const void *packed, packing p, size_t T, size_t K)
{
    return (uint16_t *)(void *)((unsigned char *)(uintptr_t)packed + blocks_bytes(p, T, K) +
                                panels_bytes(p, T, K));
}

/* A product with T rows of x, packed so. */
static linear_job make_job(compute *c, float *out, const tensor *w, const float *x, const void *packed,
                           packing p, size_t T)
{
    const size_t N = w->dims[0], K = tensor_len(w) / N;
    const packing own = packing_for(c, w->type, T);
    c->n_products += (uint64_t)T * N * K;
    return (linear_job){.c = c,
                        .out = out,
                        .x = x,
                        .packed = packed,
                        .panels = own.panels ? panels_of(packed, p, T, K) : NULL,
                        .rounded = own.rounded ? rounded_of(packed, p, T, K) : NULL,
                        .w = w->data,
                        .type = w->type,
                        .T = T,
                        .N = N,
                        .K = K,
                        .row_bytes = tensor_row_bytes(w),
                        .own = T <= NN_ROWS_EXACT || c->ops->dot_rows_best || dtype_is_quantized(w->type)};
}

/* A few rows: not worth a fork. */
static void pack_rows(compute *c, void *packed, packing p, const float *x, size_t T, size_t K)
{
    for (size_t t = 0; p.blocks && t < T; t++) {
        quant_x row = quant_x_at(packed, K, t);
        c->ops->quantize_x(&row, x + t * K, K);
    }
    if (p.panels) {
        quant_pack_panels(panels_of(packed, p, T, K), packed, T, K);
    }
    uint16_t *rounded = rounded_of(packed, p, T, K);
    for (size_t t = 0; p.rounded && t < T; t++) {
        c->ops->round_bf16(rounded + t * rounded_columns(K), x + t * K, K);
    }
}

static void multiply_group(compute *c, const linear_part *parts, size_t n_parts, const float *x, packing p,
                           size_t row0, size_t T)
{
    linear_job jobs[NN_LINEAR_PARTS];
    for (size_t i = 0; i < n_parts; i++) {
        const tensor *w = parts[i].w;
        const size_t N = w->dims[0], K = tensor_len(w) / N;
        jobs[i] = make_job(c, parts[i].out + row0 * N, w, x + row0 * K, c->packed, p, T);
        jobs[i].bias = parts[i].bias;
    }
    run_jobs(c, jobs, n_parts);
}

void nn_linear_group(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T)
{
    const size_t room = sizeof(uint32_t) * PACKED_WORDS;
    linear_part used[NN_LINEAR_PARTS]; /* without empty ones */
    size_t n = 0, K = 0, rows = T;
    packing p = {0};
    assert(n_parts <= NN_LINEAR_PARTS);
    for (size_t i = 0; i < n_parts; i++) {
        assert(parts[i].w->type != DTYPE_OTHER && parts[i].w->n_dims >= 2);
        if (parts[i].w->dims[0] > 0) {
            used[n++] = parts[i];
            K = tensor_len(parts[i].w) / parts[i].w->dims[0];
            p = join(p, packing_for(c, parts[i].w->type, T));
        }
    }
    const size_t bytes = packed_bytes(p, QUANT_PANEL_ROWS, K);
    if (bytes > 0) {
        rows = min_size(T, room / bytes * QUANT_PANEL_ROWS);
        assert(rows >= min_size(T, NN_ROWS_EXACT));
    }
    for (size_t row = 0; n > 0 && row < T; row += rows) {
        const size_t now = min_size(rows, T - row);
        pack_rows(c, c->packed, p, x + row * K, now, K);
        multiply_group(c, used, n, x, p, row, now);
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
        size_t n_jobs = 0, used = 0, at = 0; /* at: where the present x lies, */
        packing has = {0};                   /* packed so */
        const linear_item *before = NULL;    /* for this one */
        for (; i < n && n_jobs < LINEAR_JOBS; i++) {
            const linear_item *item = &items[i];
            const size_t K = tensor_len(item->w) / item->w->dims[0];
            const packing p = packing_for(c, item->w->type, item->T);
            const size_t bytes = packed_bytes(p, item->T, K);
            assert(item->T > 0 && item->T <= NN_ROWS_EXACT && item->w->dims[0] > 0);
            const bool again = before && before->x == item->x && before->T == item->T &&
                               tensor_len(before->w) / before->w->dims[0] == K && covers(has, p);
            if (bytes > 0 && !again) {
                if (used + bytes > room) {
                    break; /* one item fits always */
                }
                at = used;
                used += bytes;
                has = p;
                before = item;
                pack_rows(c, packed + at, p, item->x, item->T, K);
            }
            jobs[n_jobs++] = make_job(c, item->out, item->w, item->x, packed + at, has, item->T);
        }
        run_jobs(c, jobs, n_jobs);
    }
}

uint64_t nn_products(const compute *c)
{
    return c->n_products;
}
