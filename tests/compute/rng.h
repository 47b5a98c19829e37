/* rng: repeatable random numbers for kernel tests. What a file that includes it allocates from there on ends where a page
 * without access begins (tests/guard.h): a kernel that reads past its input ends the test. */
#ifndef PARLEY_TESTS_COMPUTE_RNG_H
#define PARLEY_TESTS_COMPUTE_RNG_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/guard.h"

#define malloc guard_alloc
#define calloc guard_calloc
#define free   guard_free

static uint64_t rng_state = 0x9e3779b97f4a7c15u;

static inline uint32_t rng_u32(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state >> 32);
}

/* Uniform in [-1, 1). */
static inline float rng_f32(void)
{
    return (float)(int32_t)rng_u32() * 0x1p-31f;
}

static inline void rng_fill(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = rng_f32() * scale;
    }
}

/* n floats in [-scale, scale); the caller frees. */
static inline float *rng_floats(size_t n, float scale)
{
    float *x = malloc(n * sizeof *x);
    rng_fill(x, n, scale);
    return x;
}

/* bf16 bits nearest below the value: exact to widen, good enough as test data. */
static inline uint16_t bf16_cut(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

#endif
