/* The context: threads, kernel table, scratch, memory. */
#include "compute/nn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/size.h"
#include "compute/context.h"
#include "compute/kernels/cpu.h"
#include "compute/gemm.h"
#include "compute/numa.h"

enum { ALIGNMENT = 64, MAX_THREADS = 1024 };
static_assert((int)MAX_THREADS <= (int)NUMA_CPUS, "a processor for each");
#define HUGE_PAGE ((size_t)2 << 20)

/* Binds the pool's threads but the first. */
static err_code bind_workers(compute *c, const numa_plan *plan, err_detail *detail)
{
    const size_t n_threads = pool_n_threads(c->pool);
    c->first_cpu = numa_cpu(plan, 0, n_threads);
    for (size_t i = 1; i < n_threads; i++) {
        const int cpu = numa_cpu(plan, i, n_threads);
        if (!pool_bind(c->pool, i, cpu)) {
            return err_set(detail, ERR_UNSUPPORTED,
                           "--numa spread: the system does not bind a thread to processor %d; use --numa off",
                           cpu);
        }
    }
    return ERR_OK;
}

void compute_bind_caller(compute *c)
{
    if (c->first_cpu >= 0) {
        (void)pool_bind(c->pool, 0, c->first_cpu); /* workers could be bound: so can this */
    }
}

err_code compute_create(compute **out, const compute_options *opt, err_detail *detail)
{
    numa_plan plan = {.n_nodes = 1};
    err_code err = opt->spread ? numa_plan_read(&plan, NUMA_SYSTEM_DIR, NULL, detail) : ERR_OK;
    err = err == ERR_OK ? numa_spread_memory(&plan, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    size_t n_threads = opt->n_threads ? opt->n_threads : cpu_physical_cores();
    if (n_threads > MAX_THREADS) {
        return err_set(detail, ERR_INVALID, "%zu threads; at most %d are allowed", n_threads, MAX_THREADS);
    }
    compute *c = calloc(1, sizeof *c);
    if (!c) {
        return err_set(detail, ERR_NOMEM, "no memory for the compute context");
    }
    c->flags = cpu_flags() & opt->cpu_mask;
    c->ops = ops_select(c->flags);
    c->fast = opt->fast;
    c->pool = pool_create(n_threads);
    c->scratch = compute_alloc(c, (n_threads + 1) * SCRATCH_FLOATS * sizeof *c->scratch);
    c->packed = compute_alloc(c, PACKED_WORDS * sizeof *c->packed);
    /* Rounds that halve what is left: fewer than 64 for any memory, and one more for each product
     * that ends in one. */
    c->slices_max = (64 + LINEAR_JOBS) * n_threads + LINEAR_JOBS;
    c->slices = calloc(c->slices_max, sizeof *c->slices);
    if (!c->pool || !c->scratch || !c->packed || !c->slices) {
        compute_destroy(c);
        return err_set(detail, ERR_NOMEM, "cannot start %zu compute threads", n_threads);
    }
    c->first_cpu = -1;
    err = opt->spread ? bind_workers(c, &plan, detail) : ERR_OK;
    if (err != ERR_OK) {
        compute_destroy(c);
        return err;
    }
    gemm_setup();
    char nodes[32] = "";
    if (opt->spread) {
        snprintf(nodes, sizeof nodes, " on %zu node%s", plan.n_nodes, plan.n_nodes == 1 ? "" : "s");
    }
    const bool is_own = nn_many_is_exact(c);
    snprintf(c->description, sizeof c->description, "%s, %zu thread%s%s, %s%s", cpu_describe(c->flags),
             n_threads, n_threads == 1 ? "" : "s", nodes,
             is_own ? "prompts and images by own kernels"
                    : "float products of prompts and images by OpenBLAS ",
             is_own ? "" : gemm_core());
    *out = c;
    return ERR_OK;
}

void compute_destroy(compute *c)
{
    if (!c) {
        return;
    }
    pool_destroy(c->pool);
    compute_free(c, c->scratch);
    compute_free(c, c->packed);
    free(c->slices);
    free(c);
}

size_t compute_n_threads(const compute *c)
{
    return pool_n_threads(c->pool);
}

uint64_t compute_progress_counter(const compute *c)
{
    return pool_progress_counter(c->pool);
}

const char *compute_wanted_blas(void)
{
    return gemm_wanted_core(cpu_flags());
}

const char *compute_describe(const compute *c)
{
    return c->description;
}

/* The block that free() wants stands just before the aligned address. calloc leaves a large
 * buffer's pages untouched, so that a long context costs memory only as it fills. */
void *compute_alloc(compute *c, size_t bytes)
{
    (void)c;
    size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    size_t total;
    if (!size_add(&total, bytes, alignment + sizeof(void *))) {
        return NULL;
    }
    char *block = calloc(1, total);
    if (!block) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)block + sizeof(void *);
    char *p = block + sizeof(void *) + (alignment - first % alignment) % alignment;
    memcpy(p - sizeof(void *), &block, sizeof block);
    if (alignment == HUGE_PAGE) {
        /* A wish: refusal changes speed only. */
        (void)madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return p;
}

void compute_free(compute *c, void *p)
{
    (void)c;
    if (p) {
        void *block;
        memcpy(&block, (char *)p - sizeof(void *), sizeof block);
        free(block);
    }
}

typedef struct rows_job {
    nn_rows_fn *fn;
    const void *args;
    const ops *ops;
    size_t n_rows, rows_per_task;
} rows_job;

static void rows_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const rows_job *job = ctx;
    size_t begin = task * job->rows_per_task;
    job->fn(job->ops, job->args, begin, min_size(begin + job->rows_per_task, job->n_rows));
}

void nn_run_rows(compute *c, nn_rows_fn *fn, const void *args, size_t n_rows, size_t row_floats)
{
    enum { TASK_FLOATS = 16384 };
    size_t rows_per_task = row_floats < TASK_FLOATS ? TASK_FLOATS / (row_floats ? row_floats : 1) : 1;
    rows_job job = {fn, args, c->ops, n_rows, rows_per_task};
    pool_run(c->pool, rows_task, &job, (n_rows + rows_per_task - 1) / rows_per_task);
}
