/* limits: what this machine can do at most, to hold measurements against. Any thread; starts threads of its own for the time
 * of the call, and nothing else should run meanwhile.
 *
 *     compute_limits l = {0};
 *     bool measured = compute_measure(&l, c, step_bytes);     // again and again: the best counts
 *     double seconds = (double)step_bytes / (1e9 * l.read_gbs);
 *
 *     read_bench *r = read_bench_open(c, step_bytes);         // memory to read, kept from pass to pass
 *     double before = read_bench_pass(r);
 *     read_bench_close(r);
 */
#ifndef PARLEY_COMPUTE_LIMITS_H
#define PARLEY_COMPUTE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/nn.h"

typedef struct compute_limits {
    double read_gbs;   /* 10^9 bytes a second, all threads summing memory in huge pages */
    double f32_gflops; /* 10^9 float32 multiplications and additions a second, on registers alone */
    double q8_gops;    /* the same of 8-bit integers; 0 where the processor has no dot product of bytes */
} compute_limits;

/* Raises *best to the best of a few rounds with c's instruction set and as many threads; memory is read in several ways. A
 * limit is the best that was ever seen: neighbours slow a round down, nothing makes it too fast. So call it between the
 * measurements that it is held against. bytes: how much memory is read in a round; at most 512 MiB are, since more is not
 * faster. False without memory or threads. */
MUST_CHECK bool compute_measure(compute_limits *best, const compute *c, size_t bytes);

/* The read limit of a moment: where neighbours share the memory it changes within a second, so what is held against it has
 * to be measured beside it. bytes: as above. */
typedef struct read_bench read_bench;

MUST_CHECK read_bench *read_bench_open(const compute *c, size_t bytes); /* NULL without memory or threads */
double read_bench_pass(read_bench *r); /* 10^9 bytes a second: the quickest of the ways, once each */
void read_bench_close(read_bench *r);  /* NULL allowed */

#endif
