/* context: what the nn_*.c files share: the compute struct, its scratch, and cutting rows into
 * tasks. Internal to compute/.
 *
 *     nn_run_rows(c, fn, &args, n_rows, row_floats);
 */
#ifndef PARLEY_COMPUTE_CONTEXT_H
#define PARLEY_COMPUTE_CONTEXT_H

#include "compute/nn.h"
#include "compute/kernels/ops.h"
#include "compute/pool.h"

/* Floats of scratch a thread owns during a task. Every operation cuts its tasks to fit. Generous,
 * because only what is touched takes memory: the usual model needs less than 2 MiB. */
enum { SCRATCH_FLOATS = 1 << 23 };

/* Words of the room where the inputs of a product are packed, shared by all threads. */
enum { PACKED_WORDS = 1 << 23 };

/* Rows n0 .. n1-1 of the weights of one product among several: a task. */
typedef struct slice {
    const struct linear_job *job;
    size_t n0, n1;
} slice;

/* Products that are handed to the threads together, at most. */
enum { LINEAR_JOBS = 64 };

struct compute {
    const ops *ops;
    pool *pool;
    float *scratch;   /* [n_threads + 1, SCRATCH_FLOATS]: one each, the last for all */
    uint32_t *packed; /* [PACKED_WORDS] */
    slice *slices;    /* [slices_max]: tasks of the present products (nn_linear.c) */
    size_t slices_max;
    uint64_t n_products, n_padding; /* see nn_products, nn_padding */
    bool fast;                      /* products may round activations to bf16 */
    unsigned flags;                 /* CPU_* in use */
    int first_cpu;                  /* of the calling thread; -1: anywhere */
    char description[128];
};

static inline float *nn_scratch(const compute *c, size_t thread)
{
    return c->scratch + thread * SCRATCH_FLOATS;
}

/* What the tasks of one operation leave for those of the next. */
static inline float *nn_shared_scratch(const compute *c)
{
    return nn_scratch(c, pool_n_threads(c->pool));
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Rows begin .. end-1 of a row-wise operation. */
typedef void nn_rows_fn(const ops *o, const void *args, size_t begin, size_t end);

/* Calls fn over all rows, in tasks whose size depends on row_floats (work per row) alone. */
void nn_run_rows(compute *c, nn_rows_fn *fn, const void *args, size_t n_rows, size_t row_floats);

#endif
