/* pool: persistent worker threads for fork / join loops. pool_run is called from one thread at a
 * time.
 *
 *     pool *p = pool_create(2);
 *     pool_run(p, fn, ctx, n_tasks);
 *     pool_destroy(p);
 *
 * TRAP: results must not depend on the number of threads: cut work into tasks whose size depends on
 * the problem alone, and let any thread take any task.
 */
#ifndef PARLEY_COMPUTE_POOL_H
#define PARLEY_COMPUTE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct pool pool;

/* Work on task number `task`; `thread` is 0..n_threads-1 (index into per-thread scratch). */
typedef void pool_fn(void *ctx, size_t task, size_t thread);

/* n_threads >= 1 in all, the caller of pool_run included; NULL if threads or memory are refused. */
MUST_CHECK pool *pool_create(size_t n_threads);
void pool_destroy(pool *p); /* NULL allowed */
size_t pool_n_threads(const pool *p);

/* Binds thread `thread` of the pool to a processor: a worker, or for 0 the calling thread, which is to be the one that
 * calls pool_run. False if the system refuses. */
bool pool_bind(pool *p, size_t thread, int cpu);

/* Calls fn for every task 0..n_tasks-1 and returns when all are done. A nested call runs serially.
 * On x86 tasks take floats below 2^-126 for zero and write them as zero. */
void pool_run(pool *p, pool_fn *fn, void *ctx, size_t n_tasks);

/* The progress counter: changes whenever a task completes, so that slow work can be told from
 * stalled work. Any thread. */
uint64_t pool_progress_counter(const pool *p);

#endif
