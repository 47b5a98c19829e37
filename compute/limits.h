/* limits: what this machine can do at most, to hold measurements against. Any thread; starts threads of its own for the time
 * of the call, and nothing else should run meanwhile.
 *
 *     compute_limits l = {0};
 *     while (something is measured) ... if (!compute_measure(&l, c, step_bytes)) ...
 *     ... l.read_gbs ...
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

#endif
