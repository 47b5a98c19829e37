/* AVX-512 with the dot instruction of BF16: a pair of products a lane. */
#include "compute/kernels/ops_bf16.h"

#if defined(__AVX512BF16__)

#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"
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
        _mm512_storeu_si512(pairs[t], (__m512i)_mm512_cvtne2ps_pbh(b, a));
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
        __m512bh xv[TILE_V];
        for (size_t v = 0; v < nv; v++) {
            xv[v] = (__m512bh)_mm512_loadu_si512(x + v * 16);
        }
        for (size_t n = 0; n < nn; n++) {
            int pair;
            memcpy(&pair, w + n * w_stride, sizeof pair);
            for (size_t v = 0; v < nv; v++) {
                acc[n][v] = _mm512_dpbf16_ps(acc[n][v], xv[v], (__m512bh)_mm512_set1_epi32(pair));
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

#endif
