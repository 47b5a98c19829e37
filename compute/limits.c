#include "compute/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "compute/context.h"

enum { ROUNDS = 3, READ_TASKS = 256, PEAK_TASKS = 16, PEAK_ROUNDS = 20000, LINE_FLOATS = 16 };
#define READ_BYTES_MAX ((size_t)512 << 20)

typedef struct limits_job {
    const ops *ops;
    const float *data;
    size_t task_floats, streams;
    float *sums; /* [n_threads * LINE_FLOATS], so that the work counts */
} limits_job;

static void read_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    job->sums[thread * LINE_FLOATS] +=
        job->ops->read(job->data + task * job->task_floats, job->task_floats, job->streams);
}

static void peak_f32_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    (void)task;
    job->sums[thread * LINE_FLOATS] += job->ops->peak_f32(PEAK_ROUNDS);
}

static void peak_q_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    (void)task;
    job->sums[thread * LINE_FLOATS] += (float)job->ops->peak_q(PEAK_ROUNDS);
}

/* Raises *best to `work`, in 10^9, over the seconds of the quickest round. */
static void raise_rate(double *best, double work, pool *p, pool_fn *fn, limits_job *job, size_t n_tasks)
{
    pool_run(p, fn, job, n_tasks); /* wakes the threads */
    for (size_t i = 0; i < ROUNDS; i++) {
        const int64_t start = clock_ns();
        pool_run(p, fn, job, n_tasks);
        const double rate = work / (1e-9 * (double)(clock_ns() - start));
        *best = rate > *best ? rate : *best;
    }
}

bool compute_measure(compute_limits *best, const compute *c, size_t bytes)
{
    static const size_t streams[] = {1, 2, 4};
    const size_t n_threads = compute_n_threads(c);
    bytes = bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX;
    const size_t grains = bytes / sizeof(float) / READ_TASKS / READ_GRAIN;
    limits_job job = {.ops = c->ops, .task_floats = (grains ? grains : 1) * READ_GRAIN};
    const size_t read_bytes = job.task_floats * READ_TASKS * sizeof(float);
    pool *p = pool_create(n_threads);
    float *data = compute_alloc(NULL, read_bytes + 1);
    job.sums = calloc(n_threads * LINE_FLOATS, sizeof *job.sums);
    job.data = data;
    const bool ready = p && data && job.sums;
    if (ready) {
        memset(data, 1, read_bytes); /* pages of its own: untouched ones are all the same zeros */
        for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
            job.streams = streams[i];
            raise_rate(&best->read_gbs, (double)read_bytes * 1e-9, p, read_task, &job, READ_TASKS);
        }
        const double peak_rounds = 1e-9 * PEAK_TASKS * PEAK_ROUNDS;
        raise_rate(&best->f32_gflops, peak_rounds * PEAK_F32_FLOPS, p, peak_f32_task, &job, PEAK_TASKS);
        if (job.ops->peak_q) {
            raise_rate(&best->q8_gops, peak_rounds * PEAK_Q_OPS, p, peak_q_task, &job, PEAK_TASKS);
        }
    }
    free(job.sums);
    compute_free(NULL, data);
    pool_destroy(p);
    return ready;
}
