#include "compute/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "tests/check.h"

typedef struct counts {
    pool *pool;
    atomic_uint *hits;
    atomic_size_t sum;
    size_t n_threads;
} counts;

static void count_task(void *ctx, size_t task, size_t thread)
{
    counts *c = ctx;
    atomic_fetch_add(&c->hits[task], 1);
    atomic_fetch_add(&c->sum, task);
    if (thread >= c->n_threads) {
        CHECK(thread < c->n_threads);
    }
}

/* Every task exactly once, for any number of tasks and threads. */
static void test_each_once(void)
{
    static const size_t sizes[] = {0, 1, 2, 3, 17, 1000};
    for (size_t n_threads = 1; n_threads <= 5; n_threads++) {
        counts c = {.pool = pool_create(n_threads), .n_threads = n_threads};
        CHECK(c.pool != NULL);
        CHECK_INT(pool_n_threads(c.pool), n_threads);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t n = sizes[i];
            c.hits = calloc(n + 1, sizeof *c.hits);
            pool_run(c.pool, count_task, &c, n);
            for (size_t t = 0; t < n; t++) {
                CHECK_INT(atomic_load(&c.hits[t]), 1);
            }
            free(c.hits);
        }
        pool_destroy(c.pool);
    }
}

/* Many short jobs one after another: a worker that comes late must not disturb the next job. */
static void test_many_jobs(void)
{
    enum { JOBS = 20000, TASKS = 3 };
    atomic_uint hits[TASKS] = {0};
    counts c = {.pool = pool_create(3), .hits = hits, .n_threads = 3};
    for (size_t job = 0; job < JOBS; job++) {
        pool_run(c.pool, count_task, &c, TASKS);
        if (job % 4000 == 0) { /* long enough for the workers to fall asleep */
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        }
    }
    CHECK_INT(atomic_load(&c.sum), (long long)JOBS * (0 + 1 + 2));
    pool_destroy(c.pool);
}

typedef struct outer {
    counts inner;
    atomic_size_t wrong_thread;
} outer;

static _Thread_local size_t outer_thread;

static void inner_task(void *ctx, size_t task, size_t thread)
{
    outer *o = ctx;
    if (thread != outer_thread) {
        atomic_fetch_add(&o->wrong_thread, 1);
    }
    atomic_fetch_add(&o->inner.hits[task], 1);
}

static void outer_task(void *ctx, size_t task, size_t thread)
{
    (void)task;
    outer *o = ctx;
    outer_thread = thread;
    pool_run(o->inner.pool, inner_task, o, 50);
}

/* A nested run is serial and keeps the thread's index, hence its scratch. */
static void test_nested(void)
{
    atomic_uint hits[50] = {0};
    outer o = {.inner = {.pool = pool_create(2), .hits = hits}};
    pool_run(o.inner.pool, outer_task, &o, 40);
    for (size_t i = 0; i < 50; i++) {
        CHECK_INT(atomic_load(&hits[i]), 40);
    }
    CHECK_INT(atomic_load(&o.wrong_thread), 0);
    pool_destroy(o.inner.pool);
}

static void slow_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    if (task == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    atomic_fetch_add(&((counts *)ctx)->hits[task], 1);
}

/* The caller sleeps while another thread finishes the long task. */
static void test_slow_worker(void)
{
    atomic_uint hits[2] = {0};
    counts c = {.pool = pool_create(2), .hits = hits};
    for (int i = 0; i < 20; i++) {
        pool_run(c.pool, slow_task, &c, 2);
    }
    CHECK_INT(atomic_load(&hits[0]), 20);
    CHECK_INT(atomic_load(&hits[1]), 20);
    pool_destroy(c.pool);
}

typedef struct meeting {
    atomic_size_t n_there;
    size_t n_expected;
} meeting;

/* Waits, for a while, until all others are there. */
static void meet_task(void *ctx, size_t task, size_t thread)
{
    meeting *m = ctx;
    (void)task;
    (void)thread;
    atomic_fetch_add(&m->n_there, 1);
    for (int ms = 0; ms < 20000 && atomic_load(&m->n_there) < m->n_expected; ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK_INT(atomic_load(&m->n_there), m->n_expected);
}

/* Every thread wakes up for its share, also if it is the only one that sleeps. */
static void test_all_take_part(void)
{
    for (size_t n_threads = 2; n_threads <= 3; n_threads++) {
        pool *p = pool_create(n_threads);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* long enough to fall asleep */
        meeting m = {.n_expected = n_threads};
        pool_run(p, meet_task, &m, n_threads);
        pool_destroy(p);
    }
}

static void halve_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    volatile float *x = ctx;
    x[task] = x[task] * 0.5f;
}

/* Every thread takes numbers that are too small to be normal for zero, and the caller is what it
 * was afterwards. */
static atomic_int n_changes; /* tasks that found the progress_counter of the one before changed */

static void take_progress_counter(void *ctx, size_t task, size_t thread)
{
    static _Atomic uint64_t last;
    (void)task;
    (void)thread;
    const uint64_t progress_counter = pool_progress_counter(ctx);
    atomic_fetch_add(&n_changes, atomic_exchange(&last, progress_counter) != progress_counter);
}

static void test_progress_counter(void)
{
    for (size_t n_threads = 1; n_threads <= 2; n_threads++) {
        pool *p = pool_create(n_threads);
        const uint64_t before = pool_progress_counter(p);
        CHECK(pool_progress_counter(p) == before);
        atomic_store(&n_changes, 0);
        pool_run(p, take_progress_counter, p, 1);
        const uint64_t between = pool_progress_counter(p);
        CHECK(between != before);
        pool_run(p, take_progress_counter, p, 100);
        CHECK(pool_progress_counter(p) != between);
        CHECK(atomic_load(&n_changes) >= 10); /* also in the midst of a job */
        pool_destroy(p);
    }
}

static void test_tiny_numbers(void)
{
    enum { TASKS = 64 };
    volatile float x[TASKS];
    float whole[TASKS];
    pool *p = pool_create(3);
    for (size_t i = 0; i < TASKS; i++) {
        x[i] = 0x1p-126f;
    }
    pool_run(p, halve_task, (void *)(uintptr_t)x, TASKS);
    for (size_t i = 0; i < TASKS; i++) {
        whole[i] = x[i];
    }
#if defined(__x86_64__)
    for (size_t i = 0; i < TASKS; i++) {
        CHECK(whole[i] == 0.0f);
    }
#endif
    x[0] = 0x1p-126f;
    halve_task((void *)(uintptr_t)x, 0, 0);
    whole[0] = x[0];
    CHECK(whole[0] == 0x1p-127f);
    pool_destroy(p);
}

int main(void)
{
    test_each_once();
    test_tiny_numbers();
    test_many_jobs();
    test_nested();
    test_slow_worker();
    test_all_take_part();
    test_progress_counter();
    CHECK(pool_create(0) == NULL);
    pool_destroy(NULL);
    CHECK_DONE();
}
