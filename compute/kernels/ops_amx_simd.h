/* ops_amx_simd: tiles of prompts and images with AMX, written once over the operations of the tile unit. Included
 * by ops_amx.c, which has the processor's, and by the tests, which have them in plain C
 * (tests/compute/kernels/amx_emulated.c): no other machine can check these kernels.
 *
 * Wanted of the including file, tiles by literal numbers, strides in bytes:
 *   TILE_CONFIGURE(tile_config *), TILE_RELEASE(), TILE_ZERO(tile), TILE_LOAD(tile, from, stride),
 *   TILE_STORE(tile, to, stride);
 *   TILE_DOT_U8S8(sums, u8, s8), TILE_DOT_BF16(sums, a, b).
 *
 * Tiles 0 .. 3 are sums [weight rows, 16 rows of x], 4 and 5 weights as they lie [weight rows, columns], 6 and 7 a
 * packed panel as it lies [words of columns, 16 rows of x]. A call configures what it needs and releases the tiles at
 * its end: they then cost a switch of threads nothing, and no thread has to know what another call left.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_AMX_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_AMX_SIMD_H

#include <assert.h>
#include <immintrin.h>
#include <stdint.h>

#include "compute/kernels/ops_bf16.h"
#include "compute/kernels/ops_q.h"

/* Rows of a tile, and of x taken together; bytes of a row of a packed panel, of a row of a tile; columns of bf16 that
 * a tile holds. */
enum { SIDE = 16, PANEL_BYTES = TILE_ROWS * 4, TILE_BYTES = 64, TILE_BF16 = TILE_BYTES / 2, TILES = 8 };

/* As LDTILECFG reads it. */
typedef struct tile_config {
    uint8_t palette, start_row, zeros[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
static_assert(sizeof(tile_config) == 64, "the processor's layout");

/* Tiles for n <= 16 rows of weights, `bytes` of each at a time: a multiple of 4, at most TILE_BYTES. */
static ALWAYS_INLINE void configure(size_t n, size_t bytes)
{
    enum { FIRST_WEIGHTS = 4, FIRST_X = 6 };
    tile_config c = {.palette = 1};
    for (size_t i = 0; i < TILES; i++) {
        const bool weights = i >= FIRST_WEIGHTS && i < FIRST_X;
        c.row_bytes[i] = (uint16_t)(weights ? bytes : TILE_BYTES);
        c.rows[i] = (uint8_t)(i >= FIRST_X ? bytes / 4 : n);
    }
    TILE_CONFIGURE(&c);
}

/* ---- 8 and 4 bits ---- */

/* What is added to the products of a part of a block (of halves there are two), for 16 rows from t on. */
static ALWAYS_INLINE __m512i offset_of(const tile_kind kind, const tile_q_block *x, size_t t, size_t part)
{
    const __m512i all = _mm512_loadu_si512(&x->offset[t]);
    if (kind != TILE_HALVES) {
        return all;
    }
    const __m512i first = _mm512_loadu_si512(&x->offset_first[t]);
    return part == 0 ? first : _mm512_sub_epi32(all, first);
}

/* The sum of x's numbers that an offset stands for. */
static ALWAYS_INLINE __m512 sum_of_offset(__m512i offset)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(offset), _mm512_set1_ps(-1.0f / 128));
}

/* The integer sums of one part of a block: in other tiles for odd parts, so that they do not wait for even ones. */
#define PART_PRODUCTS(name, sums_tile, w_tile, x_tile)                                                       \
    static ALWAYS_INLINE void name(int32_t to[SIDE][SIDE], const uint8_t *u, size_t u_stride,                \
                                   const uint32_t *q)                                                        \
    {                                                                                                        \
        TILE_ZERO(sums_tile);                                                                                \
        TILE_LOAD(w_tile, u, u_stride);                                                                      \
        TILE_LOAD(x_tile, q, PANEL_BYTES);                                                                   \
        TILE_DOT_U8S8(sums_tile, w_tile, x_tile);                                                            \
        TILE_STORE(sums_tile, to, TILE_BYTES);                                                               \
    }
PART_PRODUCTS(even_products, 0, 4, 6)
PART_PRODUCTS(odd_products, 1, 5, 7)

/* Adds a part's products to the sums of nn rows of weights. */
static ALWAYS_INLINE void add_products(const tile_kind kind, __m512 sum[SIDE],
                                       const int32_t products[SIDE][SIDE], const tile_q_block *x, size_t t,
                                       size_t part, const tile_q_rows *w, const float *scale,
                                       const float *minimum, const size_t nn)
{
    const bool minima = kind == TILE_MINIMA || kind == TILE_WIDE;
    const __m512i offset = offset_of(kind, x, t, part);
    const __m512 x_sum = sum_of_offset(offset);
#pragma GCC unroll 16
    for (size_t n = 0; n < nn; n++) {
        const __m512i own = _mm512_load_si512(products[n]),
                      whole = minima ? own : _mm512_add_epi32(own, offset);
        sum[n] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(scale[n * w->stride]), sum[n]);
        if (minima) {
            sum[n] = _mm512_fmadd_ps(_mm512_set1_ps(minimum[n * w->stride]), x_sum, sum[n]);
        }
    }
}

/* The sums of rows n0 .. n0+nn-1 of w and rows t .. t+15 of x. */
static ALWAYS_INLINE void tile_block(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                     const tile_q_rows *w, size_t n0, size_t n_blocks, const size_t nn)
{
    const size_t n_parts = kind == TILE_HALVES ? 2 : 1, bytes = QUANT_BLOCK / n_parts;
    const uint8_t *u = w->u + n0 * w->u_stride;
    const float *scale = w->scale + n0 * w->stride,
                *minimum = w->minimum ? w->minimum + n0 * w->stride : NULL;
    sums += n0 * TILE_ROWS + t;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
        const size_t end = (n_blocks - b < TILE_SHARE ? n_blocks : b + TILE_SHARE) * n_parts;
        __m512 sum[SIDE];
        for (size_t n = 0; n < nn; n++) {
            sum[n] = _mm512_setzero_ps();
        }
        for (size_t p = b * n_parts; p < end; p += 2) {
            _Alignas(TILE_BYTES) int32_t products[2][SIDE][SIDE];
            const size_t odd = p + 1, now = odd < end ? 2 : 1;
            even_products(products[0], u + p * bytes, w->u_stride, &x[p / n_parts].q[0][t]);
            if (now == 2) {
                odd_products(products[1], u + odd * bytes, w->u_stride,
                             &x[odd / n_parts].q[odd % n_parts * bytes / 4][t]);
            }
            for (size_t i = 0; i < now; i++) {
                add_products(kind, sum, (const int32_t(*)[SIDE])products[i], &x[(p + i) / n_parts], t,
                             (p + i) % n_parts, w, scale + p + i, minimum ? minimum + p + i : NULL, nn);
            }
        }
        const __m512 x_scale = _mm512_loadu_ps(&x[b].scale[t]);
        for (size_t n = 0; n < nn; n++) {
            float *at = sums + n * TILE_ROWS;
            const __m512 before = b == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(at);
            _mm512_storeu_ps(at, _mm512_fmadd_ps(sum[n], x_scale, before));
        }
    }
}

static ALWAYS_INLINE void tile_q_blocks(const tile_kind kind, float *sums, const tile_q_block *x,
                                        const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    const size_t bytes = kind == TILE_HALVES ? QUANT_BLOCK / 2 : QUANT_BLOCK, whole = N / SIDE * SIDE;
    if (whole > 0) {
        configure(SIDE, bytes);
    }
    for (size_t n = 0; n < whole; n += SIDE) {
        for (size_t t = 0; t < T; t += SIDE) {
            tile_block(kind, sums, x, t, w, n, n_blocks, SIDE);
        }
    }
    if (whole < N) {
        configure(N - whole, bytes);
        for (size_t t = 0; t < T; t += SIDE) {
            tile_block(kind, sums, x, t, w, whole, n_blocks, N - whole);
        }
    }
    TILE_RELEASE();
}

/* ---- bf16 ---- */

/* Adds K columns, `step` at a time, of one or two tiles of weight rows against one or two of rows of x. */
static ALWAYS_INLINE void add_bf16(float *sums, const uint32_t *x, const unsigned char *w, size_t w_stride,
                                   size_t K, size_t step, const bool two_n, const bool two_t)
{
    float *const below = sums + SIDE * TILE_ROWS;
    const unsigned char *const w_below = w + SIDE * w_stride;
    TILE_LOAD(0, sums, PANEL_BYTES);
    if (two_t) {
        TILE_LOAD(1, sums + SIDE, PANEL_BYTES);
    }
    if (two_n) {
        TILE_LOAD(2, below, PANEL_BYTES);
    }
    if (two_n && two_t) {
        TILE_LOAD(3, below + SIDE, PANEL_BYTES);
    }
    for (size_t k = 0; k < K; k += step) {
        TILE_LOAD(6, x + k / 2 * TILE_ROWS, PANEL_BYTES);
        TILE_LOAD(4, w + 2 * k, w_stride);
        TILE_DOT_BF16(0, 4, 6);
        if (two_t) {
            TILE_LOAD(7, x + k / 2 * TILE_ROWS + SIDE, PANEL_BYTES);
            TILE_DOT_BF16(1, 4, 7);
        }
        if (two_n) {
            TILE_LOAD(5, w_below + 2 * k, w_stride);
            TILE_DOT_BF16(2, 5, 6);
        }
        if (two_n && two_t) {
            TILE_DOT_BF16(3, 5, 7);
        }
    }
    TILE_STORE(0, sums, PANEL_BYTES);
    if (two_t) {
        TILE_STORE(1, sums + SIDE, PANEL_BYTES);
    }
    if (two_n) {
        TILE_STORE(2, below, PANEL_BYTES);
    }
    if (two_n && two_t) {
        TILE_STORE(3, below + SIDE, PANEL_BYTES);
    }
}

/* All rows of x against one or two tiles of weight rows. */
static ALWAYS_INLINE void add_rows_bf16(float *sums, const uint32_t *x, const unsigned char *w,
                                        size_t w_stride, size_t T, size_t K, size_t step, const bool two_n)
{
    size_t t = 0;
    for (; t + SIDE < T; t += 2 * SIDE) {
        add_bf16(sums + t, x + t, w, w_stride, K, step, two_n, true);
    }
    if (t < T) {
        add_bf16(sums + t, x + t, w, w_stride, K, step, two_n, false);
    }
}

/* K columns in steps, of all rows. */
static ALWAYS_INLINE void add_columns_bf16(float *sums, const uint32_t *x, const unsigned char *w,
                                           size_t w_stride, size_t T, size_t N, size_t K, size_t step)
{
    size_t n = 0;
    if (N >= SIDE) {
        configure(SIDE, 2 * step);
    }
    for (; n + 2 * SIDE <= N; n += 2 * SIDE) {
        add_rows_bf16(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, T, K, step, true);
    }
    if (n + SIDE <= N) {
        add_rows_bf16(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, T, K, step, false);
        n += SIDE;
    }
    if (n < N) {
        configure(N - n, 2 * step);
        add_rows_bf16(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, T, K, step, false);
    }
}

static ALWAYS_INLINE void tile_bf16(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T,
                                    size_t N, size_t K)
{
    const size_t whole = K / TILE_BF16 * TILE_BF16, rest = K - whole;
    const unsigned char *rows = w;
    if (whole > 0) {
        add_columns_bf16(sums, x, rows, 2 * w_stride, T, N, whole, TILE_BF16);
    }
    if (rest > 0) {
        add_columns_bf16(sums, x + whole / 2 * TILE_ROWS, rows + 2 * whole, 2 * w_stride, T, N, rest, rest);
    }
    TILE_RELEASE();
}

#endif
