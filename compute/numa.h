/* numa: machines whose memory lies at several nodes: which processor each compute thread is bound to, and memory
 * that is spread over the nodes. Any thread; a plan is a plain value.
 *
 *     numa_plan plan;
 *     err = numa_plan_read(&plan, NUMA_SYSTEM_DIR, NULL, &detail);
 *     err = numa_spread_memory(&plan, &detail);
 *     int cpu = numa_cpu(&plan, thread, n_threads);
 */
#ifndef PARLEY_COMPUTE_NUMA_H
#define PARLEY_COMPUTE_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Where Linux describes processors (cpu/) and nodes (node/). */
#define NUMA_SYSTEM_DIR "/sys/devices/system"

enum { NUMA_NODES = 64, NUMA_CPUS = 1024 };

/* The processors that may be used. */
typedef struct numa_plan {
    uint64_t nodes; /* bit i: node i has some */
    size_t n_nodes;
    size_t n_cores, n_cpus;
    int cpus[NUMA_CPUS]; /* n_cores, one of each core, node after node; then the others, likewise */
} numa_plan;

/* Reads how the machine is built from `dir` (NUMA_SYSTEM_DIR). allowed [NUMA_CPUS]: the processors that may be used;
 * NULL: those of this process. A system that knows no nodes has one. ERR_INVALID for lists that cannot be read or
 * have no processor that is allowed. */
MUST_CHECK err_code numa_plan_read(numa_plan *out, const char *dir, const bool *allowed, err_detail *detail);

/* The processor of thread `thread` of n_threads: neighbours share a node, all nodes get the same number of threads,
 * and second threads of a core are used when there are more threads than cores. */
int numa_cpu(const numa_plan *plan, size_t thread, size_t n_threads);

/* What the calling thread, and threads that it starts from now on, touch first is taken from all nodes in turn, pages
 * of files too. Nothing where there is one node. ERR_UNSUPPORTED where the system refuses. */
MUST_CHECK err_code numa_spread_memory(const numa_plan *plan, err_detail *detail);

#endif
