/* cpu: what the processor can do, and how much of it may be used. Any thread. */
#ifndef PARLEY_COMPUTE_KERNELS_CPU_H
#define PARLEY_COMPUTE_KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CPU_AVX2 = 1 << 0,   /* AVX2 + FMA + F16C */
    CPU_AVX512 = 1 << 1, /* F, BW, DQ, VL */
    CPU_AVX512_VNNI = 1 << 2,
    CPU_AVX512_BF16 = 1 << 3,
    /* The BF16 dot instruction does twice the work of two FMAs: AMD. Measured on a Xeon with AMX:
     * half of it. */
    CPU_BF16_IS_FAST = 1 << 4,
    CPU_NEON = 1 << 5, /* every aarch64 */
    CPU_NEON_DOTPROD = 1 << 6,
    CPU_NEON_I8MM = 1 << 7,
    CPU_AMX = 1 << 8, /* tiles of bytes and of BF16, and the system's leave to use them */
};

/* Flags of this processor and operating system. Where the processor has AMX, this asks the system to let the process use
 * its tiles: for all threads, those that run already too. */
unsigned cpu_flags(void);

/* "native", "generic", "avx2", "avx512", "avx512+vnni", "avx512+vnni+bf16", "avx512+vnni+bf16+amx", "neon",
 * "neon+dotprod" to a mask for cpu_flags(); false for another word. */
bool cpu_parse_level(const char *text, unsigned *mask);

/* "generic", "avx2", "avx512", "avx512+vnni+bf16+amx" or "neon+dotprod+i8mm" for a set of flags; constant string. */
const char *cpu_describe(unsigned flags);

/* Physical cores that this process may run on (its affinity mask, siblings counted once); at least
 * 1. */
size_t cpu_physical_cores(void);

/* The lowest-numbered processor of the same core, as `dir`/cpu describes them (/sys/devices/system); itself where
 * nothing is known. */
int cpu_first_sibling(const char *dir, int processor);

#endif
