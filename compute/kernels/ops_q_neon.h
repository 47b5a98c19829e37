/* ops_q_neon: products of rows in 8 and 4 bits, written once over a function that adds four products of
 * bytes. For ops_neon.c, ops_neon_dotprod.c and ops_neon_i8mm.c alone. Any thread. Meaning and order of sums: dot_q_fn in ops.h.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_NEON_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_NEON_H

#include <arm_neon.h>

#include "compute/formats/half.h"
#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"

dot_q_fn dot_q8_neon, dot_q4_neon;
dot_q_fn dot_q8_dotprod, dot_q4_dotprod; /* need the extension */
dot_q_fn dot_q8_i8mm, dot_q4_i8mm;       /* need both */

typedef int32x4_t sums_of_four_fn(int8x16_t a, int8x16_t b);

/* Four bf16, or the first n of them. */
static ALWAYS_INLINE float32x4_t widen_four(const unsigned char *p, size_t n)
{
    if (n == 4) {
        return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
    }
    float wide[4] = {0};
    for (size_t i = 0; i < n && i < 4; i++) {
        wide[i] = bf16_at(p + 2 * i);
    }
    return vld1q_f32(wide);
}

/* Block b of a row: four lanes whose sum is the block's. */
static ALWAYS_INLINE int32x4_t block_sums_neon(const bool q4, const unsigned char *w, const quant_x *x,
                                               size_t b, sums_of_four_fn *sums_of_four)
{
    int32x4_t half[2];
    for (size_t i = 0; i < 2; i++) { /* 16 columns */
        int8x16_t wv;
        if (q4) {
            const uint8x16_t both = vld1q_u8(w + b / 2 * QUANT_BLOCK + i * 16);
            wv = vreinterpretq_s8_u8(b % 2 == 0 ? vandq_u8(both, vdupq_n_u8(15)) : vshrq_n_u8(both, 4));
        } else {
            wv = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(w + b * QUANT_BLOCK + i * 16), vdupq_n_u8(0x80)));
        }
        half[i] = sums_of_four(wv, vld1q_s8(x->q + b * QUANT_BLOCK + i * 16));
    }
    return vaddq_s32(half[0], half[1]);
}

/* The 16 lanes of a sum, added as in dot_rows (ops.h). */
static ALWAYS_INLINE float add_lanes_neon(const float32x4_t sum[4])
{
    const float32x4_t four = vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static ALWAYS_INLINE float dot_row_neon(const bool q4, const quant_x *x, const unsigned char *w, size_t Kp,
                                        sums_of_four_fn *sums_of_four)
{
    const size_t n_blocks = Kp / QUANT_BLOCK;
    const unsigned char *scales = w + (q4 ? Kp / 2 : Kp), *minima = scales + 2 * n_blocks;
    float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    for (size_t b = 0; b < n_blocks; b += 4) {
        const size_t n = n_blocks - b < 4 ? n_blocks - b : 4;
        float32x4_t *to = &sum[b / 4 % 4];
        int32x4_t p[4];
        for (size_t i = 0; i < 4; i++) {
            p[i] = i < n ? block_sums_neon(q4, w, x, b + i, sums_of_four) : vdupq_n_s32(0);
        }
        if (q4) {
            *to = vfmaq_f32(*to, widen_four(minima + 2 * b, n), vld1q_f32(x->sum + b));
        }
        const int32x4_t whole = vpaddq_s32(vpaddq_s32(p[0], p[1]), vpaddq_s32(p[2], p[3]));
        const float32x4_t scale = vmulq_f32(widen_four(scales + 2 * b, n), vld1q_f32(x->scale + b));
        *to = vfmaq_f32(*to, vcvtq_f32_s32(whole), scale);
    }
    return add_lanes_neon(sum);
}

static ALWAYS_INLINE void dot_rows_q_neon(const bool q4, float *out, size_t out_stride, const void *x,
                                          size_t T, const void *w, size_t N, size_t K,
                                          sums_of_four_fn *sums_of_four)
{
    const size_t Kp = quant_columns(K), row = quant_row_bytes(q4 ? DTYPE_Q4 : DTYPE_Q8, K);
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            const quant_x xt = quant_x_at(x, K, t);
            out[t * out_stride + n] =
                dot_row_neon(q4, &xt, (const unsigned char *)w + n * row, Kp, sums_of_four);
        }
    }
}

/* dot_q8_NAME and dot_q4_NAME. */
#define DOT_Q_NEON(name, sums_of_four)                                                                       \
    void dot_q8_##name(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,      \
                       size_t K)                                                                             \
    {                                                                                                        \
        dot_rows_q_neon(false, out, out_stride, x, T, w, N, K, sums_of_four);                                \
    }                                                                                                        \
    void dot_q4_##name(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,      \
                       size_t K)                                                                             \
    {                                                                                                        \
        dot_rows_q_neon(true, out, out_stride, x, T, w, N, K, sums_of_four);                                 \
    }

#endif
