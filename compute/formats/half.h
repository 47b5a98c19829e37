/* half: 16-bit floats: exact widening, rounding to the nearest (ties to even). Any thread.
 *
 *     float f = bf16_to_f32(0x3f80);
 *     f16_put(memory, f);  f = f16_at(memory);
 */
#ifndef PARLEY_COMPUTE_FORMATS_HALF_H
#define PARLEY_COMPUTE_FORMATS_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float bf16_to_f32(uint16_t bits)
{
    return f32_from_bits((uint32_t)bits << 16);
}

/* The nearest bf16, ties to even; NaN stays NaN. */
static inline uint16_t bf16_from_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* IEEE binary16; a NaN keeps its payload and becomes quiet, as the processor's own conversion
 * does. */
static inline float f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) {
        uint32_t quiet = mantissa ? 0x00400000u : 0;
        return f32_from_bits(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return f32_from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

static inline uint32_t f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* What is too large becomes the largest number, +-65504: a cache of keys must not make infinities.
 * A NaN stays one. */
static inline uint16_t f16_from_f32(float f)
{
    uint32_t sign = f32_bits(f) >> 16 & 0x8000u, size = f32_bits(f) & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
    }
    if (size > 0x477fe000u) {
        return (uint16_t)(sign | 0x7bffu);
    }
    if (size < 0x38800000u) { /* below 2^-14: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)rintf(f32_from_bits(size) * 0x1p24f));
    }
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

/* In memory, wherever it lies. */
static inline uint16_t half_bits_at(const void *p)
{
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}

static inline float bf16_at(const void *p)
{
    return bf16_to_f32(half_bits_at(p));
}

static inline float f16_at(const void *p)
{
    return f16_to_f32(half_bits_at(p));
}

static inline void bf16_put(void *p, float f)
{
    const uint16_t bits = bf16_from_f32(f);
    memcpy(p, &bits, sizeof bits);
}

static inline void f16_put(void *p, float f)
{
    const uint16_t bits = f16_from_f32(f);
    memcpy(p, &bits, sizeof bits);
}

#endif
