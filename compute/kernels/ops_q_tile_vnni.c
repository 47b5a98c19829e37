/* Tiles of blocks of 8 and 4 bits with AVX-512 VNNI: four weights of a row, broadcast, against 16 rows of
 * activations; and attention's weights in bytes. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX512VNNI__)

#include <math.h>
#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops_q_tile_512.h"
#include "compute/kernels/vec_avx512.h"

/* Twelve integers of the present block and their twelve sums, the inputs, a weight. */
enum { TILE_V = 2, MOST_N = 12, TILE_SIDE = 16 };

static ALWAYS_INLINE size_t tile_n(const size_t nv)
{
    return MOST_N / nv;
}

/* TRAP: around the intrinsic, GCC 12 copies every accumulator twice, and then has no registers
 * left. */
static ALWAYS_INLINE __m512i add_products(__m512i acc, __m512i u, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(x));
    return acc;
}

static ALWAYS_INLINE __m512i four_weights(const uint8_t *at)
{
    int32_t bits;
    memcpy(&bits, at, sizeof bits);
    return _mm512_set1_epi32(bits);
}

/* Adds part `part` of block x, whose weights, scales and minima u, scale and minimum point to. */
static ALWAYS_INLINE void add_part(const tile_kind kind, __m512 sum[MOST_N][TILE_V], const tile_q_block *x,
                                   size_t t, size_t part, const tile_q_rows *w, const uint8_t *u,
                                   const float *scale, const float *minimum, const size_t nn, const size_t nv)
{
    const bool minima = kind == TILE_MINIMA || kind == TILE_WIDE;
    const size_t steps = QUANT_BLOCK / 4 / (kind == TILE_HALVES ? 2 : 1);
    __m512i acc[MOST_N][TILE_V];
    for (size_t n = 0; n < nn; n++) { /* not with the offset: copies of it would be in the way */
        for (size_t v = 0; v < nv; v++) {
            acc[n][v] = _mm512_setzero_si512();
        }
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < steps; k++) {
        __m512i xv[TILE_V];
        for (size_t v = 0; v < nv; v++) {
            xv[v] = _mm512_loadu_si512(&x->q[part * steps + k][t + v * TILE_SIDE]);
        }
        for (size_t n = 0; n < nn; n++) {
            const __m512i wv = four_weights(u + n * w->u_stride + 4 * k);
            for (size_t v = 0; v < nv; v++) {
                acc[n][v] = add_products(acc[n][v], wv, xv[v]);
            }
        }
    }
    for (size_t v = 0; v < nv; v++) {
        const __m512i offset = offset_of(kind, x, t + v * TILE_SIDE, part);
        const __m512 x_sum = sum_of_offset(offset);
#pragma GCC unroll 12
        for (size_t n = 0; n < nn; n++) {
            const __m512i whole = minima ? acc[n][v] : _mm512_add_epi32(acc[n][v], offset);
            sum[n][v] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(scale[n * w->stride]), sum[n][v]);
            if (minima) {
                sum[n][v] = _mm512_fmadd_ps(_mm512_set1_ps(minimum[n * w->stride]), x_sum, sum[n][v]);
            }
        }
    }
}

static ALWAYS_INLINE void tile_block(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                     const tile_q_rows *w, size_t n0, size_t n_blocks, const size_t nn,
                                     const size_t nv)
{
    const bool minima = kind == TILE_MINIMA || kind == TILE_WIDE;
    const size_t n_parts = kind == TILE_HALVES ? 2 : 1;
    const uint8_t *u = w->u + n0 * w->u_stride;
    const float *scale = w->scale + n0 * w->stride, *minimum = minima ? w->minimum + n0 * w->stride : NULL;
    sums += n0 * TILE_ROWS + t;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
        const tile_q_block *const first = x;
        const size_t share = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE;
        __m512 sum[MOST_N][TILE_V];
        for (size_t n = 0; n < nn; n++) {
            for (size_t v = 0; v < nv; v++) {
                sum[n][v] = _mm512_setzero_ps();
            }
        }
        for (size_t i = 0; i < share * n_parts; i++) {
            add_part(kind, sum, x, t, i % n_parts, w, u, scale, minimum, nn, nv);
            u += QUANT_BLOCK / n_parts;
            scale++;
            minimum += minima ? 1 : 0;
            x += i % n_parts + 1 == n_parts;
        }
        for (size_t v = 0; v < nv; v++) {
            const __m512 x_scale = _mm512_loadu_ps(&first->scale[t + v * TILE_SIDE]);
            for (size_t n = 0; n < nn; n++) {
                float *at = sums + n * TILE_ROWS + v * TILE_SIDE;
                const __m512 before = b == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(at);
                _mm512_storeu_ps(at, _mm512_fmadd_ps(sum[n][v], x_scale, before));
            }
        }
    }
}

#include "compute/kernels/ops_q_tile.h"

void tile_q_vnni(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                 size_t n_blocks)
{
    tile_q_of(tile_q_blocks, sums, x, w, T, N, n_blocks);
}

/* 2^t by a polynomial whose error is far below half a byte's step; t <= 8. */
static ALWAYS_INLINE __m512 power_of_two(__m512 t)
{
    t = _mm512_max_ps(t, _mm512_set1_ps(-64.0f)); /* also in place of minus infinity */
    const __m512 whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(t, whole);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0.05517166f), f, _mm512_set1_ps(0.24261112f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69326099f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.99992807f));
    return _mm512_scalef_ps(p, whole);
}

int32_t weights_q_vnni(uint8_t *out, const float *s, size_t n, float *max)
{
    enum { VECTORS = TILE_ROWS / 16 };
    static const float LOG2_E = 1.44269504f, LOG2_255 = 7.99435344f;
    __m512 x[VECTORS];
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < VECTORS; i++) {
        const size_t begin = i * 16, left = n > begin ? (n - begin < 16 ? n - begin : 16) : 0;
        x[i] = n == TILE_ROWS ? _mm512_loadu_ps(s + begin) : v_load_n(s + begin, left, -INFINITY);
    }
    *max = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(x[0], x[1]), _mm512_max_ps(x[2], x[3])));
    const __m512 scale = _mm512_set1_ps(LOG2_E), shift = _mm512_set1_ps(LOG2_255 - *max * LOG2_E);
    for (size_t i = 0; i < VECTORS; i++) {
        const __m512i u = _mm512_cvtps_epi32(power_of_two(_mm512_fmadd_ps(x[i], scale, shift)));
        sum = _mm512_add_epi32(sum, u);
        _mm_storeu_si128((__m128i *)(void *)(out + i * 16), _mm512_cvtusepi32_epi8(u));
    }
    return _mm512_reduce_add_epi32(sum);
}

#endif
