/* limits: measures the roofline of this machine, memory bandwidth and peak arithmetic. Any thread;
 * starts its own threads for the duration of the call, and nothing else should run meanwhile.
 *
 *     compute_limits l = {0};
 *     bool measured = compute_measure(&l, c, step_bytes);     // again and again: the best counts
 *     double seconds = (double)step_bytes / (1e9 * l.bandwidth_gbs);
 *
 *     bandwidth_bench *r = bandwidth_bench_open(c, step_bytes);         // memory to read, kept from pass to pass
 *     double before = bandwidth_bench_pass(r);
 *     bandwidth_bench_close(r);
 */
#ifndef PARLEY_COMPUTE_LIMITS_H
#define PARLEY_COMPUTE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/nn.h"

typedef struct compute_limits {
    double bandwidth_gbs; /* 10^9 bytes a second, all threads summing memory in huge pages */
    double f32_gflops;    /* 10^9 float32 multiplications and additions a second, on registers alone */
    double q8_gops;       /* the same of 8-bit integers; 0 where the processor has no dot product of bytes */
} compute_limits;

/* Raises *best to the best of a few rounds with c's instruction set and number of threads; memory
 * is read in several ways. The best value ever seen counts: other load slows a round down, nothing
 * makes it too fast. So call it between the measurements it is compared with. bytes: memory read in
 * a round, capped at 512 MiB, since more is not faster. False if memory or threads run out. */
MUST_CHECK bool compute_measure(compute_limits *best, const compute *c, size_t bytes);

/* The current memory bandwidth: on shared machines it changes within a second, so it must be
 * measured right beside what is compared with it. bytes: as above. */
typedef struct bandwidth_bench bandwidth_bench;

/* NULL if memory or threads run out */
MUST_CHECK bandwidth_bench *bandwidth_bench_open(const compute *c, size_t bytes);
/* 10^9 bytes a second: the fastest access pattern, each tried once */
double bandwidth_bench_pass(bandwidth_bench *r);
void bandwidth_bench_close(bandwidth_bench *r); /* NULL allowed */

#endif
