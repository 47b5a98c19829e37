/* cpu: the instruction sets that tests may use. PARLEY_CPU (a level of cpu_parse_level) limits the program
 * (its option --cpu) and the tests alike, so that one machine stands for lesser ones.
 *
 *     unsigned flags = cpu_flags() & test_cpu_mask();
 */
#ifndef PARLEY_TESTS_CPU_H
#define PARLEY_TESTS_CPU_H

#include "compute/kernels/cpu.h"
#include "tests/check.h"

/* The least of the vector kernels of this family of processors, as cpu_parse_level knows it. */
#if defined(__aarch64__)
#define TEST_CPU_LEAST "neon"
#else
#define TEST_CPU_LEAST "avx2"
#endif

/* What PARLEY_CPU leaves of a processor; ~0u when it is not set. */
static inline unsigned test_cpu_mask(void)
{
    const char *level = getenv("PARLEY_CPU");
    unsigned mask = ~0u;
    if (level && !cpu_parse_level(level, &mask)) {
        fprintf(stderr, "PARLEY_CPU=%s: no such level\n", level);
        exit(1);
    }
    return mask;
}

#endif
