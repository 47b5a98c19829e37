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

struct bandwidth_bench {
    limits_job job;
    pool *pool;
    float *data;
    size_t bytes;
};

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

/* Raises *best to `work`, in 10^9, over the seconds of one round. */
static void raise_rate(double *best, double work, pool *p, pool_fn *fn, limits_job *job, size_t n_tasks)
{
    const int64_t start = clock_ns();
    pool_run(p, fn, job, n_tasks);
    const double rate = work / (1e-9 * (double)(clock_ns() - start));
    *best = rate > *best ? rate : *best;
}

static void raise_peak(double *best, double ops_a_round, bandwidth_bench *r, pool_fn *fn)
{
    for (size_t i = 0; i < ROUNDS; i++) {
        raise_rate(best, 1e-9 * PEAK_TASKS * PEAK_ROUNDS * ops_a_round, r->pool, fn, &r->job, PEAK_TASKS);
    }
}

bandwidth_bench *bandwidth_bench_open(const compute *c, size_t bytes)
{
    const size_t n_threads = compute_n_threads(c);
    bytes = bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX;
    const size_t grains = bytes / sizeof(float) / READ_TASKS / READ_GRAIN;
    bandwidth_bench *r = calloc(1, sizeof *r);
    if (!r) {
        return NULL;
    }
    r->job = (limits_job){.ops = c->ops, .task_floats = (grains ? grains : 1) * READ_GRAIN};
    r->bytes = r->job.task_floats * READ_TASKS * sizeof(float);
    r->pool = pool_create(n_threads);
    r->data = compute_alloc(NULL, r->bytes + 1);
    r->job.sums = calloc(n_threads * LINE_FLOATS, sizeof *r->job.sums);
    r->job.data = r->data;
    if (!r->pool || !r->data || !r->job.sums) {
        bandwidth_bench_close(r);
        return NULL;
    }
    memset(r->data, 1, r->bytes); /* pages of its own: untouched ones are all the same zeros */
    return r;
}

double bandwidth_bench_pass(bandwidth_bench *r)
{
    static const size_t streams[] = {1, 2, 4};
    double best = 0;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        r->job.streams = streams[i];
        raise_rate(&best, (double)r->bytes * 1e-9, r->pool, read_task, &r->job, READ_TASKS);
    }
    return best;
}

void bandwidth_bench_close(bandwidth_bench *r)
{
    if (r) {
        free(r->job.sums);
        compute_free(NULL, r->data);
        pool_destroy(r->pool);
        free(r);
    }
}

bool compute_measure(compute_limits *best, const compute *c, size_t bytes)
{
    bandwidth_bench *r = bandwidth_bench_open(c, bytes);
    if (!r) {
        return false;
    }
    for (size_t i = 0; i <= ROUNDS; i++) { /* one round more: the first wakes the threads */
        const double rate = bandwidth_bench_pass(r);
        best->bandwidth_gbs = rate > best->bandwidth_gbs ? rate : best->bandwidth_gbs;
    }
    raise_peak(&best->f32_gflops, PEAK_F32_FLOPS, r, peak_f32_task);
    if (r->job.ops->peak_q) {
        raise_peak(&best->q8_gops, PEAK_Q_OPS, r, peak_q_task);
    }
    bandwidth_bench_close(r);
    return true;
}
