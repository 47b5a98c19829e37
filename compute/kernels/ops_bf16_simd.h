/* ops_bf16_simd: the functions of ops_bf16.h but for AMX, written once over the two operations of AVX-512 BF16. Included
 * by ops_avx512_bf16.c, which has the processor's, and by the tests, which have them in AVX-512 alone and give the
 * functions other names (tests/compute/kernels/bf16_emulated.c): many machines can check these kernels only so.
 *
 * Wanted of the including file:
 *   BF16_ROUND(high, low)  two vectors of floats as one of 32 numbers, rounded to the nearest, ties to even
 *   BF16_DOT(sums, a, b)   sums with the products of a pair of numbers in each lane added
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_BF16_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_BF16_SIMD_H

#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"
#include "compute/kernels/ops_bf16.h"
#include "compute/kernels/vec_avx512.h"

/* 24 accumulators, 4 inputs, 1 weight. */
enum { TILE_N = 6, TILE_V = 4, SIDE = 16 };

/* 16 pairs of columns of up to 16 rows, turned. */
static ALWAYS_INLINE void pack_square(uint32_t *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    float pairs[SIDE][SIDE], turned[SIDE][SIDE];
    for (size_t t = 0; t < SIDE; t++) {
        size_t n = t < T ? K : 0, low = n < 16 ? n : 16, high = n < 32 ? n - low : 16;
        __m512 a = v_load_n(x + t * x_stride, low, 0.0f);
        __m512 b = v_load_n(x + t * x_stride + low, high, 0.0f);
        _mm512_storeu_si512(pairs[t], BF16_ROUND(b, a));
    }
    v_turn(turned[0], SIDE, pairs[0], SIDE);
    for (size_t k = 0; k < SIDE && 2 * k < K; k++) {
        memcpy(out + k * TILE_ROWS, turned[k], sizeof turned[k]);
    }
}

void pack_avx512_bf16(uint32_t *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    for (size_t t = 0; t < T; t += SIDE) {
        for (size_t k = 0; k < K; k += 2 * SIDE) {
            pack_square(out + k / 2 * TILE_ROWS + t, x + t * x_stride + k, x_stride, T - t, K - k);
        }
    }
}

/* nn weight rows against nv vectors of rows of x. */
static ALWAYS_INLINE void tile_block(float *sums, const uint32_t *x, const unsigned char *w, size_t w_stride,
                                     size_t K, const size_t nn, const size_t nv)
{
    __m512 acc[TILE_N][TILE_V];
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            acc[n][v] = v_set1(0.0f);
        }
    }
    for (size_t k = 0; k < K; k += 2, x += TILE_ROWS, w += 4) {
        __m512i xv[TILE_V];
        for (size_t v = 0; v < nv; v++) {
            xv[v] = _mm512_loadu_si512(x + v * 16);
        }
        for (size_t n = 0; n < nn; n++) {
            int pair;
            memcpy(&pair, w + n * w_stride, sizeof pair);
            for (size_t v = 0; v < nv; v++) {
                acc[n][v] = BF16_DOT(acc[n][v], xv[v], _mm512_set1_epi32(pair));
            }
        }
    }
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            float *at = sums + n * TILE_ROWS + v * 16;
            v_store(at, v_add(v_load(at), acc[n][v]));
        }
    }
}

/* All weight rows against nv vectors. */
static ALWAYS_INLINE void tile_rows(float *sums, const uint32_t *x, const unsigned char *w, size_t w_stride,
                                    size_t N, size_t K, const size_t nv)
{
    size_t n = 0;
    for (; n + TILE_N <= N; n += TILE_N) {
        tile_block(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, K, TILE_N, nv);
    }
    for (; n < N; n++) {
        tile_block(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, K, 1, nv);
    }
}

void tile_avx512_bf16(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T, size_t N,
                      size_t K)
{
    size_t t = 0;
    for (; t + TILE_V * 16 <= T; t += TILE_V * 16) {
        tile_rows(sums + t, x + t, w, w_stride * 2, N, K, TILE_V);
    }
    for (; t < T; t += 16) {
        tile_rows(sums + t, x + t, w, w_stride * 2, N, K, 1);
    }
}

/* ---- few rows: 32 columns of a row of weights in a register ---- */

/* Rows of activations and of weights taken together: 24 accumulators for many rows, 16 for few. */
enum { DOT_MOST_T = 8, DOT_MANY_N = 3, DOT_FEW_T = 4, DOT_FEW_N = 4, SUMS_MAX = 24 };

/* A product under way; strides in bytes but for out. */
typedef struct bf16_job {
    float *out;
    const unsigned char *x, *w;
    size_t out_stride, x_stride, w_stride, K;
} bf16_job;

void round_avx512_bf16(uint16_t *out, const float *x, size_t K)
{
    for (size_t k = 0; k < K; k += BF16_STEP) {
        const size_t n = K - k < BF16_STEP ? K - k : BF16_STEP, low = n < 16 ? n : 16;
        const __m512 a = v_load_n(x + k, low, 0.0f), b = v_load_n(x + k + low, n - low, 0.0f);
        _mm512_storeu_si512(out + k, BF16_ROUND(b, a));
    }
}

/* Rows t .. t+nt-1 of x against weight rows n, n + apart, .. of nn. ask: for the weights to come. */
static ALWAYS_INLINE void dot_block(const bf16_job *job, size_t t0, size_t n0, size_t apart, const size_t nt,
                                    const size_t nn, bool ask)
{
    const unsigned char *x = job->x + t0 * job->x_stride, *w = job->w + n0 * job->w_stride;
    const size_t w_step = apart * job->w_stride, rest = job->K % BF16_STEP;
    __m512 acc[SUMS_MAX];
    for (size_t i = 0; i < nt * nn; i++) {
        acc[i] = v_set1(0.0f);
    }
    size_t k = 0;
    for (; k + BF16_STEP <= job->K; k += BF16_STEP, x += CACHE_LINE, w += CACHE_LINE) {
        __m512i wv[DOT_FEW_N];
        for (size_t n = 0; n < nn; n++) {
            if (ask) {
                prefetch_line(w + n * w_step);
            }
            wv[n] = _mm512_loadu_si512(w + n * w_step);
        }
        for (size_t t = 0; t < nt; t++) {
            const __m512i xv = _mm512_loadu_si512(x + t * job->x_stride);
            for (size_t n = 0; n < nn; n++) {
                acc[t * nn + n] = BF16_DOT(acc[t * nn + n], xv, wv[n]);
            }
        }
    }
    if (rest > 0) { /* x is padded with zeros, weights are not */
        const __mmask32 known = (__mmask32)((1ull << rest) - 1);
        for (size_t n = 0; n < nn; n++) {
            const __m512i wv = _mm512_maskz_loadu_epi16(known, w + n * w_step);
            for (size_t t = 0; t < nt; t++) {
                const __m512i xv = _mm512_loadu_si512(x + t * job->x_stride);
                acc[t * nn + n] = BF16_DOT(acc[t * nn + n], xv, wv);
            }
        }
    }
    float sums[SUMS_MAX];
    for (size_t i = 0; i + 4 <= nt * nn; i += 4) {
        v_sum4(sums + i, acc[i], acc[i + 1], acc[i + 2], acc[i + 3]);
    }
    for (size_t i = nt * nn / 4 * 4; i < nt * nn; i++) {
        sums[i] = v_sum(acc[i]);
    }
    for (size_t i = 0; i < nt * nn; i++) {
        job->out[(t0 + i / nn) * job->out_stride + n0 + i % nn * apart] = sums[i];
    }
}

/* The same of T <= 8 rows; their number is a constant of each call. */
static ALWAYS_INLINE void dot_rest(const bf16_job *job, size_t t0, size_t n, size_t apart, size_t T,
                                   const size_t nn, bool ask)
{
    switch (T) {
    case 1:
        dot_block(job, t0, n, apart, 1, nn, ask);
        break;
    case 2:
        dot_block(job, t0, n, apart, 2, nn, ask);
        break;
    case 3:
        dot_block(job, t0, n, apart, 3, nn, ask);
        break;
    case 4:
        dot_block(job, t0, n, apart, 4, nn, ask);
        break;
    default:
        break;
    }
    if (nn == DOT_FEW_N) {
        return;
    }
    switch (T) {
    case 5:
        dot_block(job, t0, n, apart, 5, nn, ask);
        break;
    case 6:
        dot_block(job, t0, n, apart, 6, nn, ask);
        break;
    case 7:
        dot_block(job, t0, n, apart, 7, nn, ask);
        break;
    case DOT_MOST_T:
        dot_block(job, t0, n, apart, DOT_MOST_T, nn, ask);
        break;
    default:
        break;
    }
}

/* n_rows times nn rows of weights, slices of memory side by side, with all rows of x. */
static ALWAYS_INLINE void dot_slices(const bf16_job *job, size_t n0, size_t n_rows, size_t T, const size_t nn)
{
    for (size_t n = n0; n < n0 + n_rows; n++) {
        for (size_t t = 0; t < T; t += DOT_MOST_T) {
            dot_rest(job, t, n, n_rows, T - t < DOT_MOST_T ? T - t : DOT_MOST_T, nn, t == 0);
        }
    }
}

void dot_avx512_bf16(float *out, size_t out_stride, const uint16_t *x, size_t x_stride, size_t T,
                     const void *w, size_t w_stride, size_t N, size_t K)
{
    const bf16_job job = {.out = out,
                          .x = (const unsigned char *)x,
                          .w = w,
                          .out_stride = out_stride,
                          .x_stride = 2 * x_stride,
                          .w_stride = 2 * w_stride,
                          .K = K};
    const size_t nn = T <= DOT_FEW_T ? DOT_FEW_N : DOT_MANY_N, n_rows = N / nn;
    if (nn == DOT_FEW_N) {
        dot_slices(&job, 0, n_rows, T, DOT_FEW_N);
    } else {
        dot_slices(&job, 0, n_rows, T, DOT_MANY_N);
    }
    for (size_t n = n_rows * nn; n < N; n++) {
        dot_slices(&job, n, 1, T, 1);
    }
}

#endif
