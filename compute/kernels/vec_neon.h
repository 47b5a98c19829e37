/* vec_neon: a vector of 16 floats in four NEON registers: what ops_simd.h asks for. Included before it.
 * Any thread.
 */
#ifndef PARLEY_COMPUTE_KERNELS_VEC_NEON_H
#define PARLEY_COMPUTE_KERNELS_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compute/kernels/kernel.h"

enum { QUARTERS = 4 };

typedef struct vec {
    float32x4_t q[QUARTERS]; /* lanes 0 .. 3, 4 .. 7, ... */
} vec;

static ALWAYS_INLINE vec v_set1(float f)
{
    const float32x4_t q = vdupq_n_f32(f);
    return (vec){{q, q, q, q}};
}

static ALWAYS_INLINE vec v_load(const float *p)
{
    return (vec){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

static ALWAYS_INLINE void v_store(float *p, vec a)
{
    for (size_t i = 0; i < QUARTERS; i++) {
        vst1q_f32(p + 4 * i, a.q[i]);
    }
}

static ALWAYS_INLINE vec v_load_n(const float *p, size_t n, float fill)
{
    float padded[16];
    if (n == 16) {
        return v_load(p);
    }
    v_store(padded, v_set1(fill));
    memcpy(padded, p, n * sizeof *p);
    return v_load(padded);
}

static ALWAYS_INLINE void v_store_n(float *p, vec a, size_t n)
{
    float whole[16];
    if (n == 16) {
        v_store(p, a);
    } else {
        v_store(whole, a);
        memcpy(p, whole, n * sizeof *p);
    }
}

/* A function that is one expression of every quarter. */
#define ON_QUARTERS(name, expression)                                                                        \
    static ALWAYS_INLINE vec name(vec a, vec b)                                                              \
    {                                                                                                        \
        for (size_t i = 0; i < QUARTERS; i++) {                                                              \
            const float32x4_t x = a.q[i], y = b.q[i];                                                        \
            a.q[i] = expression;                                                                             \
        }                                                                                                    \
        return a;                                                                                            \
    }

ON_QUARTERS(v_add, vaddq_f32(x, y))
ON_QUARTERS(v_sub, vsubq_f32(x, y))
ON_QUARTERS(v_mul, vmulq_f32(x, y))
ON_QUARTERS(v_div, vdivq_f32(x, y))
/* The second operand where either is NaN, which vminq_f32 does not give. */
ON_QUARTERS(v_min, vbslq_f32(vcltq_f32(x, y), x, y))
ON_QUARTERS(v_max, vbslq_f32(vcgtq_f32(x, y), x, y))

static ALWAYS_INLINE vec v_fma(vec a, vec b, vec c)
{
    for (size_t i = 0; i < QUARTERS; i++) {
        c.q[i] = vfmaq_f32(c.q[i], a.q[i], b.q[i]);
    }
    return c;
}

static ALWAYS_INLINE vec v_round(vec a)
{
    for (size_t i = 0; i < QUARTERS; i++) {
        a.q[i] = vrndnq_f32(a.q[i]);
    }
    return a;
}

/* a * 2^n for -150 <= n <= 128, in two factors that are both normal numbers. */
static ALWAYS_INLINE vec v_scale2(vec a, vec n)
{
    const int32x4_t bias = vdupq_n_s32(127);
    for (size_t i = 0; i < QUARTERS; i++) {
        const int32x4_t whole = vcvtnq_s32_f32(n.q[i]), first = vshrq_n_s32(whole, 1);
        const int32x4_t second = vsubq_s32(whole, first);
        a.q[i] = vmulq_f32(a.q[i], vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(first, bias), 23)));
        a.q[i] = vmulq_f32(a.q[i], vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(second, bias), 23)));
    }
    return a;
}

static ALWAYS_INLINE vec v_where_negative(vec x, vec a, vec b)
{
    for (size_t i = 0; i < QUARTERS; i++) {
        a.q[i] = vbslq_f32(vcltzq_f32(x.q[i]), a.q[i], b.q[i]);
    }
    return a;
}

/* Lanes l and l+8, then l and l+4. */
static ALWAYS_INLINE float32x4_t fold_to_4(vec a)
{
    return vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
}

static ALWAYS_INLINE float v_sum(vec a)
{
    const float32x4_t b = fold_to_4(a);
    const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
    return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}

static ALWAYS_INLINE void v_sum4(float *out, vec a, vec b, vec c, vec d)
{
    out[0] = v_sum(a);
    out[1] = v_sum(b);
    out[2] = v_sum(c);
    out[3] = v_sum(d);
}

static ALWAYS_INLINE float v_top(vec a)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.q[0], a.q[1]), vmaxq_f32(a.q[2], a.q[3])));
}

static ALWAYS_INLINE void v_narrow_i8(void *out, vec a)
{
    int16x4_t n[QUARTERS];
    for (size_t i = 0; i < QUARTERS; i++) {
        n[i] = vqmovn_s32(vcvtnq_s32_f32(a.q[i]));
    }
    vst1q_s8(out, vcombine_s8(vqmovn_s16(vcombine_s16(n[0], n[1])), vqmovn_s16(vcombine_s16(n[2], n[3]))));
}

static ALWAYS_INLINE vec v_widen_bf16(const void *p)
{
    vec out;
    for (size_t i = 0; i < QUARTERS; i++) {
        uint16x4_t bits;
        memcpy(&bits, (const char *)p + i * sizeof bits, sizeof bits);
        out.q[i] = vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
    }
    return out;
}

static ALWAYS_INLINE vec v_widen_f16(const void *p)
{
    vec out;
    for (size_t i = 0; i < QUARTERS; i++) {
        uint16x4_t bits;
        memcpy(&bits, (const char *)p + i * sizeof bits, sizeof bits);
        out.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(bits));
    }
    return out;
}

static ALWAYS_INLINE vec v_widen_bf16_n(const void *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof padded[0]);
    return v_widen_bf16(padded);
}

static ALWAYS_INLINE vec v_widen_f16_n(const void *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof padded[0]);
    return v_widen_f16(padded);
}

/* ---- 4 x 4 floats turned ---- */

enum { TURN_SIDE = 4 };

/* out[j]: every fourth of 64 floats, from the j-th on. */
static ALWAYS_INLINE void v_deal4(vec out[4], const float *p)
{
    for (size_t i = 0; i < QUARTERS; i++) {
        const float32x4x4_t dealt = vld4q_f32(p + 16 * i);
        for (size_t j = 0; j < 4; j++) {
            out[j].q[i] = dealt.val[j];
        }
    }
}

static ALWAYS_INLINE void v_turn(float *out, size_t out_stride, const float *in, size_t in_stride)
{
    float32x4x4_t rows;
    float columns[TURN_SIDE * TURN_SIDE];
    for (size_t i = 0; i < TURN_SIDE; i++) {
        rows.val[i] = vld1q_f32(in + i * in_stride);
    }
    vst4q_f32(columns, rows); /* the first of every row, the second of every row, ... */
    for (size_t i = 0; i < TURN_SIDE; i++) {
        vst1q_f32(out + i * out_stride, vld1q_f32(columns + i * TURN_SIDE));
    }
}

#endif
