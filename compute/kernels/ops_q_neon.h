/* ops_q_neon: products of rows in 8, 4 and 5 bits, written once over a function that adds four products of
 * bytes. For ops_neon.c, ops_neon_dotprod.c and ops_neon_i8mm.c alone. Any thread. Meaning and order of sums: dot_q_fn in ops.h.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_NEON_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_NEON_H

#include <arm_neon.h>

#include "compute/formats/half.h"
#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"

dot_q_fn dot_q8_neon, dot_q4_neon, dot_q5_neon;
dot_q_fn dot_q8_dotprod, dot_q4_dotprod, dot_q5_dotprod; /* need the extension */
dot_q_fn dot_q8_i8mm, dot_q4_i8mm, dot_q5_i8mm;          /* need both */

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

/* Four bytes as numbers, or the first n of them. */
static ALWAYS_INLINE uint32x4_t widen_bytes(const unsigned char *p, size_t n)
{
    uint32_t bits = 0;
    memcpy(&bits, p, n < 4 ? n : sizeof bits);
    return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bits))));
}

/* Scales and minima of n <= 4 blocks from block b on of a row of q4 or q5. */
static ALWAYS_INLINE float32x4_t small_scales(const quant_small *row, size_t b, size_t n,
                                              float32x4_t *minimum)
{
    const uint32x4_t bits = vshlq_n_u32(widen_bytes(row->scale + b, n), QUANT_SCALE_SHIFT);
    const float32x4_t scale = vreinterpretq_f32_u32(vaddq_u32(bits, vdupq_n_u32(row->base)));
    *minimum = vmulq_f32(vmulq_n_f32(scale, row->step), vcvtq_f32_u32(widen_bytes(row->zero + b, n)));
    return scale;
}

/* 16 columns of block b of a row of weights, i 0 or 1; is_odd: whether b is; fifth: its fifth bits in q5. */
static ALWAYS_INLINE int8x16_t weights_of(const dtype type, const unsigned char *w,
                                          const unsigned char *fifth, size_t b, const bool is_odd, size_t i)
{
    if (type == DTYPE_Q8) {
        return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(w + b * QUANT_BLOCK + i * 16), vdupq_n_u8(0x80)));
    }
    const uint8x16_t both = vld1q_u8(w + b / 2 * QUANT_BLOCK + i * 16);
    const uint8x16_t u = is_odd ? vshrq_n_u8(both, 4) : vandq_u8(both, vdupq_n_u8(15));
    if (type == DTYPE_Q4) {
        return vreinterpretq_s8_u8(u);
    }
    const unsigned char *bits = fifth + b * 4 + i * 2;
    const uint8x16_t of_byte = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t set = vtstq_u8(vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1])), of_byte);
    return vreinterpretq_s8_u8(is_odd ? vsubq_u8(vaddq_u8(u, u), set)
                                      : vorrq_u8(u, vandq_u8(set, vdupq_n_u8(16))));
}

/* Block b of a row: four lanes whose sum is the block's. */
static ALWAYS_INLINE int32x4_t block_sums_neon(const dtype type, const unsigned char *w,
                                               const unsigned char *fifth, const quant_x *x, size_t b,
                                               sums_of_four_fn *sums_of_four)
{
    int32x4_t half[2];
    for (size_t i = 0; i < 2; i++) { /* 16 columns */
        half[i] =
            sums_of_four(weights_of(type, w, fifth, b, b % 2, i), vld1q_s8(x->q + b * QUANT_BLOCK + i * 16));
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

static ALWAYS_INLINE float dot_row_neon(const dtype type, const quant_x *x, const unsigned char *w, size_t K,
                                        sums_of_four_fn *sums_of_four)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    const quant_small small = type == DTYPE_Q8 ? (quant_small){0} : quant_small_at(type, w, K);
    float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    for (size_t b = 0; b < n_blocks; b += 4) {
        const size_t n = n_blocks - b < 4 ? n_blocks - b : 4;
        float32x4_t *to = &sum[b / 4 % 4], scale, minimum;
        int32x4_t p[4];
        for (size_t i = 0; i < 4; i++) {
            p[i] = i < n ? block_sums_neon(type, w, small.fifth, x, b + i, sums_of_four) : vdupq_n_s32(0);
        }
        if (type == DTYPE_Q8) {
            scale = widen_four(w + Kp + 2 * b, n);
        } else {
            scale = small_scales(&small, b, n, &minimum);
            *to = vfmaq_f32(*to, minimum, vld1q_f32(x->sum + b));
        }
        const int32x4_t whole = vpaddq_s32(vpaddq_s32(p[0], p[1]), vpaddq_s32(p[2], p[3]));
        *to = vfmaq_f32(*to, vcvtq_f32_s32(whole), vmulq_f32(scale, vld1q_f32(x->scale + b)));
    }
    return add_lanes_neon(sum);
}

static ALWAYS_INLINE void dot_rows_q_neon(const dtype type, float *out, size_t out_stride, const void *x,
                                          size_t T, const void *w, size_t N, size_t K,
                                          sums_of_four_fn *sums_of_four)
{
    const size_t row = quant_row_bytes(type, K);
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            const quant_x xt = quant_x_at(x, K, t);
            out[t * out_stride + n] =
                dot_row_neon(type, &xt, (const unsigned char *)w + n * row, K, sums_of_four);
        }
    }
}

/* dot_q8_NAME, dot_q4_NAME and dot_q5_NAME. */
#define DOT_Q_NEON(name, sums_of_four)                                                                       \
    void dot_q8_##name(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,      \
                       size_t K)                                                                             \
    {                                                                                                        \
        dot_rows_q_neon(DTYPE_Q8, out, out_stride, x, T, w, N, K, sums_of_four);                             \
    }                                                                                                        \
    void dot_q4_##name(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,      \
                       size_t K)                                                                             \
    {                                                                                                        \
        dot_rows_q_neon(DTYPE_Q4, out, out_stride, x, T, w, N, K, sums_of_four);                             \
    }                                                                                                        \
    void dot_q5_##name(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,      \
                       size_t K)                                                                             \
    {                                                                                                        \
        dot_rows_q_neon(DTYPE_Q5, out, out_stride, x, T, w, N, K, sums_of_four);                             \
    }

#endif
