/* DESIGN: a job is three plain fields (fn, ctx, n_tasks) and a counter of tasks not yet taken.
 * pool_run writes the fields, then stores the counter (release); whoever lowers the counter by one
 * (acquire) owns that task, and the fields cannot change until its completion is counted. So a
 * worker that wakes late simply finds nothing to take, and pool_run waits for tasks, never for
 * workers. Idle workers spin for a bounded time, then sleep on a condition.
 */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include "compute/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define CPU_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CPU_RELAX() __asm__ volatile("yield")
#else
#define CPU_RELAX() ((void)0)
#endif

/* Tasks take numbers below 2^-126 for zero and write them as zero: an instruction that meets one
 * takes a hundred times as long, and decays and softmaxes end in them. Returns what the thread did
 * before. */
static unsigned flush_tiny(void)
{
#if defined(__x86_64__)
    enum { FLUSH_RESULTS = 1 << 15, FLUSH_INPUTS = 1 << 6 };
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | FLUSH_RESULTS | FLUSH_INPUTS);
    return before;
#else
    return 0;
#endif
}

static void restore_tiny(unsigned before)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(before);
#else
    (void)before;
#endif
}

/* About 50 us: longer than the gaps between the operations of one step, short enough for an idle
 * server. */
enum { SPIN_ROUNDS = 3000 };

typedef struct worker {
    pool *pool;
    size_t index;
    pthread_t thread;
} worker;

struct pool {
    /* The present job; written by pool_run while `untaken` is 0, read by owners of a task. */
    pool_fn *fn;
    void *ctx;
    size_t n_tasks;

    atomic_size_t untaken;  /* tasks nobody has taken */
    atomic_size_t finished; /* tasks done */
    atomic_size_t sleepers; /* workers inside the condition wait; changed under lock */
    atomic_bool stop;
    atomic_bool caller_sleeps; /* changed under lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* Jobs begun, and tasks done one after the other; written by pool_run alone. Relaxed: it orders
     * nothing. */
    _Atomic uint64_t n_begun;

    size_t n_threads;
    size_t n_started;
    worker workers[];
};

/* The pool and index this thread is working for: what makes a nested pool_run run serially. */
static _Thread_local const pool *current_pool;
static _Thread_local size_t current_index;

static bool take_task(pool *p, size_t *untaken)
{
    size_t n = atomic_load_explicit(&p->untaken, memory_order_relaxed);
    while (n > 0) {
        if (atomic_compare_exchange_weak_explicit(&p->untaken, &n, n - 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *untaken = n;
            return true;
        }
    }
    return false;
}

static void work_through(pool *p, size_t index)
{
    size_t n;
    while (take_task(p, &n)) {
        size_t n_tasks = p->n_tasks;
        p->fn(p->ctx, n_tasks - n, index);
        /* After this the fields may belong to the next job. seq_cst: pairs with caller_sleeps. */
        if (atomic_fetch_add(&p->finished, 1) + 1 == n_tasks && atomic_load(&p->caller_sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

static bool has_work(pool *p)
{
    return atomic_load(&p->untaken) > 0 || atomic_load(&p->stop);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    pool *p = w->pool;
    current_pool = p;
    current_index = w->index;
    flush_tiny();
    while (!atomic_load(&p->stop)) {
        for (int i = 0; i < SPIN_ROUNDS && !has_work(p); i++) {
            CPU_RELAX();
        }
        if (!has_work(p)) {
            pthread_mutex_lock(&p->lock);
            atomic_fetch_add(&p->sleepers, 1);
            while (!has_work(p)) {
                pthread_cond_wait(&p->work, &p->lock);
            }
            atomic_fetch_sub(&p->sleepers, 1);
            pthread_mutex_unlock(&p->lock);
        }
        work_through(p, w->index);
    }
    return NULL;
}

pool *pool_create(size_t n_threads)
{
    if (n_threads == 0 || n_threads > 4096) {
        return NULL;
    }
    pool *p = calloc(1, sizeof *p + (n_threads - 1) * sizeof p->workers[0]);
    if (!p) {
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    p->n_threads = n_threads;
    for (size_t i = 0; i + 1 < n_threads; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->index = i + 1;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            pool_destroy(p);
            return NULL;
        }
        p->n_started++;
    }
    return p;
}

void pool_destroy(pool *p)
{
    if (!p) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->n_started; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

size_t pool_n_threads(const pool *p)
{
    return p->n_threads;
}

bool pool_bind(pool *p, size_t thread, int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(thread == 0 ? pthread_self() : p->workers[thread - 1].thread, sizeof one,
                                  &one) == 0;
}

static void wait_for_tasks(pool *p)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&p->finished, memory_order_acquire) == p->n_tasks) {
            return;
        }
        CPU_RELAX();
    }
    pthread_mutex_lock(&p->lock);
    /* An exchange, not a store: emulators of ARM on x86 let the load below pass a store, and the wake-up was lost. */
    atomic_exchange(&p->caller_sleeps, true);
    while (atomic_load(&p->finished) != p->n_tasks) {
        pthread_cond_wait(&p->done, &p->lock);
    }
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

static void count_begun(pool *p)
{
    const uint64_t n = atomic_load_explicit(&p->n_begun, memory_order_relaxed);
    atomic_store_explicit(&p->n_begun, n + 1, memory_order_relaxed);
}

uint64_t pool_progress_counter(const pool *p)
{
    return atomic_load_explicit(&p->n_begun, memory_order_relaxed) << 24 ^
           atomic_load_explicit(&p->finished, memory_order_relaxed);
}

static void run_serially(pool_fn *fn, void *ctx, size_t n_tasks, size_t thread)
{
    for (size_t task = 0; task < n_tasks; task++) {
        fn(ctx, task, thread);
    }
}

void pool_run(pool *p, pool_fn *fn, void *ctx, size_t n_tasks)
{
    if (n_tasks == 0) {
        return;
    }
    if (current_pool == p) {
        run_serially(fn, ctx, n_tasks, current_index);
        return;
    }
    const pool *outer_pool = current_pool;
    size_t outer_index = current_index;
    const unsigned outer_tiny = flush_tiny();
    current_pool = p;
    current_index = 0;
    count_begun(p);
    if (p->n_threads == 1 || n_tasks == 1) {
        for (size_t task = 0; task < n_tasks; task++) {
            fn(ctx, task, 0);
            count_begun(p);
        }
    } else {
        p->fn = fn;
        p->ctx = ctx;
        p->n_tasks = n_tasks;
        atomic_store_explicit(&p->finished, 0, memory_order_relaxed);
        /* seq_cst: a worker counts itself asleep before it looks at `untaken` a last time. An exchange as above. */
        atomic_exchange(&p->untaken, n_tasks);
        if (atomic_load(&p->sleepers) > 0) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_broadcast(&p->work);
            pthread_mutex_unlock(&p->lock);
        }
        work_through(p, 0);
        wait_for_tasks(p);
    }
    restore_tiny(outer_tiny);
    current_pool = outer_pool;
    current_index = outer_index;
}
