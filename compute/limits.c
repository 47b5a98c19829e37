#include "compute/limits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute/context.h"

enum { ROUNDS = 7, READ_TASKS = 64, PEAK_TASKS = 16, PEAK_ROUNDS = 5000, WORDS = 8 };
#define READ_BYTES_MAX ((size_t)512 << 20)

typedef struct limits_job {
    const ops *ops;
    const uint64_t *data;
    size_t task_words;
    uint64_t *sums; /* [n_threads * WORDS], so that the work counts */
} limits_job;

static void read_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    const uint64_t *from = job->data + task * job->task_words;
    uint64_t sum[WORDS] = {0};
    for (size_t i = 0; i < job->task_words; i += WORDS) {
        for (size_t j = 0; j < WORDS; j++) {
            sum[j] += from[i + j];
        }
    }
    for (size_t j = 0; j < WORDS; j++) {
        job->sums[thread * WORDS + j] += sum[j];
    }
}

static void peak_f32_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    float sum = job->ops->peak_f32(PEAK_ROUNDS);
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    job->sums[thread * WORDS] += bits + task;
}

static void peak_q_task(void *ctx, size_t task, size_t thread)
{
    const limits_job *job = ctx;
    job->sums[thread * WORDS] += (uint64_t)job->ops->peak_q(PEAK_ROUNDS) + task;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median seconds of a round. */
static double time_rounds(pool *p, pool_fn *fn, limits_job *job, size_t n_tasks)
{
    double seconds[ROUNDS];
    pool_run(p, fn, job, n_tasks);
    for (size_t i = 0; i < ROUNDS; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        pool_run(p, fn, job, n_tasks);
        clock_gettime(CLOCK_MONOTONIC, &to);
        seconds[i] = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    }
    qsort(seconds, ROUNDS, sizeof seconds[0], compare_doubles);
    return seconds[ROUNDS / 2];
}

bool compute_measure(compute_limits *out, const compute *c, size_t bytes)
{
    const size_t n_threads = compute_n_threads(c);
    bytes = bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX;
    limits_job job = {.ops = c->ops, .task_words = bytes / sizeof(uint64_t) / READ_TASKS / WORDS * WORDS};
    const size_t read_bytes = job.task_words * READ_TASKS * sizeof(uint64_t);
    pool *p = pool_create(n_threads);
    uint64_t *data = compute_alloc(NULL, read_bytes + 1);
    job.sums = calloc(n_threads * WORDS, sizeof *job.sums);
    job.data = data;
    *out = (compute_limits){0};
    const bool ready = p && data && job.sums;
    if (ready) {
        memset(data, 1, read_bytes); /* pages of its own: untouched ones are all the same zeros */
        out->read_gbs = (double)read_bytes / time_rounds(p, read_task, &job, READ_TASKS) * 1e-9;
        const double f32 = time_rounds(p, peak_f32_task, &job, PEAK_TASKS);
        out->f32_gflops = (double)PEAK_TASKS * PEAK_ROUNDS * PEAK_F32_FLOPS / f32 * 1e-9;
        if (job.ops->peak_q) {
            const double q = time_rounds(p, peak_q_task, &job, PEAK_TASKS);
            out->q8_gops = (double)PEAK_TASKS * PEAK_ROUNDS * PEAK_Q_OPS / q * 1e-9;
        }
    }
    free(job.sums);
    compute_free(NULL, data);
    pool_destroy(p);
    return ready;
}
