/* Weights into blocks of 8 or 4 bits, when a model is loaded. */
#include "compute/nn.h"

#include <assert.h>

#include "compute/context.h"
#include "compute/formats/quant.h"

typedef struct quantize_job {
    compute *c;
    unsigned char *out;
    dtype type;
    const tensor *w;
    size_t N, K, rows_per_task;
} quantize_job;

static void quantize_task(void *ctx, size_t task, size_t thread)
{
    const quantize_job *job = ctx;
    const size_t n0 = task * job->rows_per_task, n1 = min_size(n0 + job->rows_per_task, job->N);
    float *wide = nn_scratch(job->c, thread);
    for (size_t n = n0; n < n1; n++) {
        job->c->ops->widen[job->w->type](
            wide, (const unsigned char *)job->w->data + n * tensor_row_bytes(job->w), job->K);
        quant_weights(job->out + n * quant_row_bytes(job->type, job->K), job->type, wide, job->K);
    }
}

void nn_quantize(compute *c, void *out, dtype type, const tensor *w)
{
    enum { TASK_FLOATS = 1 << 18 };
    assert(w->type < DTYPE_OTHER && dtype_is_quantized(type));
    quantize_job job = {.c = c, .out = out, .type = type, .w = w, .N = w->dims[0]};
    if (job.N == 0) {
        return;
    }
    job.K = tensor_len(w) / job.N;
    assert(job.K <= SCRATCH_FLOATS);
    job.rows_per_task = job.K < TASK_FLOATS ? TASK_FLOATS / (job.K ? job.K : 1) : 1;
    pool_run(c->pool, quantize_task, &job, (job.N + job.rows_per_task - 1) / job.rows_per_task);
}
