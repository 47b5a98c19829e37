/* The matrix product of bytes of ARMv8.6: two rows by two rows, eight columns of each, are one instruction. */
#if defined(__aarch64__)

#include "compute/kernels/ops_q_neon.h"

/* What is left over when rows are taken in twos. */
static ALWAYS_INLINE int32x4_t sums_of_four(int8x16_t a, int8x16_t b)
{
    return vdotq_s32(vdupq_n_s32(0), a, b);
}

/* 8 columns of one row, then those of the other; half 0 or 1 of the 16. */
static ALWAYS_INLINE int8x16_t side_by_side(int8x16_t a, int8x16_t b, size_t half)
{
    const int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);
    return vreinterpretq_s8_s64(half ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

/* The sums of block b: w0 x0, w0 x1, w1 x0, w1 x1. */
static ALWAYS_INLINE int32x4_t four_products(const dtype type, const unsigned char *const w[2],
                                             const quant_small small[2], const quant_x x[2], size_t b,
                                             const bool is_odd)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (size_t i = 0; i < 2; i++) {
        const int8_t *x0 = x[0].q + b * QUANT_BLOCK + i * 16, *x1 = x[1].q + b * QUANT_BLOCK + i * 16;
        const int8x16_t a = weights_of(type, w[0], small[0].fifth, b, is_odd, i),
                        c = weights_of(type, w[1], small[1].fifth, b, is_odd, i);
        for (size_t half = 0; half < 2; half++) {
            sum = vmmlaq_s32(sum, side_by_side(a, c, half), side_by_side(vld1q_s8(x0), vld1q_s8(x1), half));
        }
    }
    return sum;
}

/* Four vectors, turned: out[i] has number i of each. */
static ALWAYS_INLINE void turn(int32x4_t out[4], const int32x4_t in[4])
{
    const int32x4_t a = vtrn1q_s32(in[0], in[1]), b = vtrn2q_s32(in[0], in[1]), c = vtrn1q_s32(in[2], in[3]),
                    d = vtrn2q_s32(in[2], in[3]);
    out[0] = vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(c)));
    out[1] = vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(b), vreinterpretq_s64_s32(d)));
    out[2] = vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(c)));
    out[3] = vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(b), vreinterpretq_s64_s32(d)));
}

/* Adds n <= 4 blocks from b on, a multiple of 4, to sums of w i / 2 and x i % 2. */
static ALWAYS_INLINE void add_blocks(const dtype type, float32x4_t sum[4][4], const quant_x x[2],
                                     const unsigned char *const w[2], const quant_small small[2], size_t Kp,
                                     size_t b, const size_t n)
{
    int32x4_t of_block[4], whole[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        of_block[i] = i < n ? four_products(type, w, small, x, b + i, i % 2) : vdupq_n_s32(0);
    }
    turn(whole, of_block);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        float32x4_t *to = &sum[i][b / 4 % 4], scale, minimum;
        if (type == DTYPE_Q8) {
            scale = widen_four(w[i / 2] + Kp + 2 * b, n);
        } else {
            scale = small_scales(&small[i / 2], b, n, &minimum);
            *to = vfmaq_f32(*to, minimum, vld1q_f32(x[i % 2].sum + b));
        }
        *to = vfmaq_f32(*to, vcvtq_f32_s32(whole[i]), vmulq_f32(scale, vld1q_f32(x[i % 2].scale + b)));
    }
}

/* Two rows of weights by two of x; sums in the order of dot_row_neon, so with its bits. */
static ALWAYS_INLINE void dot_two_by_two(const dtype type, float *out, size_t out_stride, const quant_x x[2],
                                         const unsigned char *const w[2], size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    quant_small small[2] = {{0}};
    for (size_t i = 0; type != DTYPE_Q8 && i < 2; i++) {
        small[i] = quant_small_at(type, w[i], K);
    }
    float32x4_t sum[4][4] = {{vdupq_n_f32(0)}};
    size_t b = 0;
    for (; b + 4 <= n_blocks; b += 4) {
        add_blocks(type, sum, x, w, small, Kp, b, 4);
    }
    if (b < n_blocks) {
        add_blocks(type, sum, x, w, small, Kp, b, n_blocks - b);
    }
    for (size_t i = 0; i < 4; i++) {
        out[i % 2 * out_stride + i / 2] = add_lanes_neon(sum[i]);
    }
}

static ALWAYS_INLINE void dot_rows_i8mm(const dtype type, float *out, size_t out_stride, const void *x,
                                        size_t T, const void *w, size_t N, size_t K)
{
    const size_t row = quant_row_bytes(type, K);
    const size_t n_pairs = N / 2 * 2, t_pairs = T / 2 * 2;
    for (size_t n = 0; n < n_pairs; n += 2) {
        const unsigned char *const two[2] = {(const unsigned char *)w + n * row,
                                             (const unsigned char *)w + (n + 1) * row};
        for (size_t t = 0; t < t_pairs; t += 2) {
            const quant_x xs[2] = {quant_x_at(x, K, t), quant_x_at(x, K, t + 1)};
            dot_two_by_two(type, out + t * out_stride + n, out_stride, xs, two, K);
        }
    }
    for (size_t n = 0; n < N; n++) {
        for (size_t t = n < n_pairs ? t_pairs : 0; t < T; t++) {
            const quant_x xt = quant_x_at(x, K, t);
            out[t * out_stride + n] =
                dot_row_neon(type, &xt, (const unsigned char *)w + n * row, K, sums_of_four);
        }
    }
}

void dot_q8_i8mm(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_i8mm(DTYPE_Q8, out, out_stride, x, T, w, N, K);
}

void dot_q4_i8mm(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_i8mm(DTYPE_Q4, out, out_stride, x, T, w, N, K);
}

void dot_q5_i8mm(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_i8mm(DTYPE_Q5, out, out_stride, x, T, w, N, K);
}

#endif
