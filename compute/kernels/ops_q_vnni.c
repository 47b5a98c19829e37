/* Blocks of 8 and 4 bits with AVX-512 VNNI: a register holds a group of 64 columns. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX512VNNI__)

#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/vec_avx512.h"

/* Rows of weights and of activations taken together. */
enum { ROWS_N = 4, ROWS_T = 4, SPAN_BLOCKS = 16 };

/* What a block of rows works on. */
typedef struct q_job {
    float *out;
    size_t out_stride;
    const unsigned char *w;
    size_t row_bytes, Kp;
    const void *x;
    size_t K;
    size_t step; /* rows taken together are so many rows apart: 1, or slices of memory side by side */
} q_job;

/* The bytes of a group: q8 as stored; q4 with the low halves before the high ones, which stay 16
 * times too large (one instruction less): their scale has the 16th. */
static ALWAYS_INLINE __m512i load_group(const bool q4, const unsigned char *w, size_t group)
{
    if (!q4) {
        return _mm512_loadu_si512(w + group * QUANT_GROUP);
    }
    const __m512i both = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(w + group * QUANT_BLOCK)));
    const long long low = 0x0f0f0f0f0f0f0f0f, high = ~low;
    return _mm512_and_si512(both, _mm512_set_epi64(high, high, high, high, low, low, low, low));
}

/* The scales of 16 blocks of activations as load_group wants them. */
static ALWAYS_INLINE __m512 load_scales(const bool q4, const quant_x *x, size_t block)
{
    const __m512 scale = _mm512_loadu_ps(x->scale + block);
    return q4 ? _mm512_mask_mul_ps(scale, 0xaaaa, scale, _mm512_set1_ps(1.0f / 16)) : scale;
}

/* Adds what a group gives of one row of weights and nt rows of activations; place: whose scales of
 * a span the lanes take. */
static ALWAYS_INLINE void add_group(const bool q4, __m512 sum[ROWS_T][ROWS_N], const unsigned char *row,
                                    const quant_x x[ROWS_T], __m512 scale[ROWS_T][ROWS_N], __m512i place,
                                    size_t group, size_t n, const size_t nt)
{
    const __m512i bytes = load_group(q4, row, group);
    for (size_t t = 0; t < nt; t++) {
        __m512i start = q4 ? _mm512_setzero_si512() : _mm512_loadu_si512(x[t].offset + group * 16);
        __m512i products =
            _mm512_dpbusd_epi32(start, bytes, _mm512_loadu_si512(x[t].q + group * QUANT_GROUP));
        sum[t][n] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), _mm512_permutexvar_ps(place, scale[t][n]),
                                    sum[t][n]);
    }
}

/* Prefetches weights: the next rows, or the next lines of parallel slices of memory. */
static ALWAYS_INLINE void ask(const unsigned char *line, const bool side_by_side, size_t next_rows)
{
    if (side_by_side) {
        prefetch_line(line);
    } else {
        __builtin_prefetch(line + next_rows, 0, 3);
    }
}

/* nt x nn results from row t0 and row n0 on. Meanwhile the weights to come are asked for. */
static ALWAYS_INLINE void dot_rows_q(const bool q4, const q_job *job, size_t t0, size_t n0, const size_t nt,
                                     const size_t nn, const bool side_by_side)
{
    const size_t n_blocks = job->Kp / QUANT_BLOCK, numbers = q4 ? job->Kp / 2 : job->Kp;
    const size_t group_bytes = q4 ? QUANT_BLOCK : QUANT_GROUP, line_groups = CACHE_LINE / group_bytes;
    const size_t apart = job->step * job->row_bytes, next_rows = nn * job->row_bytes;
    const unsigned char *w = job->w + n0 * job->row_bytes;
    const __m512i first_place = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    quant_x x[ROWS_T];
    __m512 sum[ROWS_T][ROWS_N], scale[ROWS_T][ROWS_N];
    for (size_t t = 0; t < nt; t++) {
        x[t] = quant_x_at(job->x, job->K, t0 + t);
        for (size_t n = 0; n < nn; n++) {
            sum[t][n] = _mm512_setzero_ps();
        }
    }
    for (size_t b = 0; b < n_blocks; b += SPAN_BLOCKS) {
        const size_t left = n_blocks - b < SPAN_BLOCKS ? n_blocks - b : SPAN_BLOCKS;
        for (size_t n = 0; n < nn; n++) {
            const unsigned char *scales = w + n * apart + numbers + 2 * b;
            __m512 s = v_widen_bf16_n(scales, left);
            for (size_t t = 0; t < nt; t++) {
                scale[t][n] = _mm512_mul_ps(s, load_scales(q4, &x[t], b));
                if (q4) {
                    __m512 m = v_widen_bf16_n(scales + 2 * n_blocks, left);
                    sum[t][n] = _mm512_fmadd_ps(m, _mm512_loadu_ps(x[t].sum + b), sum[t][n]);
                }
            }
        }
        const size_t end = (b + left) / 2;
        __m512i place = first_place;
        for (size_t line = b / 2; line < end; line += line_groups) {
            for (size_t n = 0; n < nn; n++) {
                ask(w + n * apart + line * group_bytes, side_by_side, next_rows);
            }
            for (size_t g = line; g < line + line_groups && g < end; g++) {
                for (size_t n = 0; n < nn; n++) {
                    add_group(q4, sum, w + n * apart, x, scale, place, g, n, nt);
                }
                place = _mm512_add_epi32(place, _mm512_set1_epi32(2));
            }
        }
    }
    for (size_t n = 0; n < nn; n++) { /* what is ahead of scales and minima */
        for (size_t at = numbers; at < job->row_bytes; at += CACHE_LINE) {
            ask(w + n * apart + at, side_by_side, next_rows);
        }
    }
    for (size_t t = 0; t < nt; t++) {
        float *out = job->out + (t0 + t) * job->out_stride + n0;
        for (size_t n = 0; n < nn; n++) {
            out[n * job->step] = v_sum(sum[t][n]);
        }
    }
}

static ALWAYS_INLINE void dot_columns_q(const bool q4, const q_job *job, size_t T, size_t n, const size_t nn)
{
    size_t t = 0;
    for (; t + ROWS_T <= T; t += ROWS_T) {
        dot_rows_q(q4, job, t, n, ROWS_T, nn, false);
    }
    if (T - t >= 2) {
        dot_rows_q(q4, job, t, n, 2, nn, false);
        t += 2;
    }
    if (T - t == 1) {
        dot_rows_q(q4, job, t, n, 1, nn, false);
    }
}

/* The number of rows is a constant of each call. */
static ALWAYS_INLINE void dot_slices_q(const bool q4, const q_job *job, size_t T, size_t n)
{
    if (T == 1) {
        dot_rows_q(q4, job, 0, n, 1, ROWS_N, true);
    } else if (T == 2) {
        dot_rows_q(q4, job, 0, n, 2, ROWS_N, true);
    } else if (T == 3) {
        dot_rows_q(q4, job, 0, n, 3, ROWS_N, true);
    } else {
        dot_rows_q(q4, job, 0, n, 4, ROWS_N, true);
    }
}

static ALWAYS_INLINE void dot_all_q(const bool q4, const q_job *job, size_t T, size_t N)
{
    size_t n = 0;
    if (T > 0 && T <= ROWS_T) { /* slices as in ops_simd.h */
        q_job wide = *job;
        wide.step = N / ROWS_N;
        for (; n < N / ROWS_N; n++) {
            dot_slices_q(q4, &wide, T, n);
        }
        n = N / ROWS_N * ROWS_N;
    }
    for (; n + ROWS_N <= N; n += ROWS_N) {
        dot_columns_q(q4, job, T, n, ROWS_N);
    }
    for (; n < N; n++) {
        dot_columns_q(q4, job, T, n, 1);
    }
}

void dot_q8_vnni(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    const q_job job = {out, out_stride, w, quant_row_bytes(DTYPE_Q8, K), quant_columns(K), x, K, 1};
    dot_all_q(false, &job, T, N);
}

void dot_q4_vnni(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    const q_job job = {out, out_stride, w, quant_row_bytes(DTYPE_Q4, K), quant_columns(K), x, K, 1};
    dot_all_q(true, &job, T, N);
}

/* ---- tiles ---- */

/* Twelve integers of the present block and their twelve sums, the inputs, a weight. */
enum { TILE_V = 3, MOST_N = 12, TILE_SIDE = 16 };

static ALWAYS_INLINE size_t tile_n(const size_t nv)
{
    return MOST_N / nv;
}

static ALWAYS_INLINE __m512i four_weights(const uint8_t *at)
{
    int32_t bits;
    memcpy(&bits, at, sizeof bits);
    return _mm512_set1_epi32(bits);
}

/* TRAP: around the intrinsic, GCC 12 copies every accumulator twice, and then has no registers
 * left. */
static ALWAYS_INLINE __m512i add_products(__m512i acc, __m512i u, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(x));
    return acc;
}

/* What is added to the products of a part. */
static ALWAYS_INLINE __m512i offset_of(const tile_kind kind, const tile_q_block *x, size_t t, size_t part)
{
    const __m512i all = _mm512_loadu_si512(&x->offset[t]);
    if (kind != TILE_HALVES) {
        return all;
    }
    const __m512i first = _mm512_loadu_si512(&x->offset_first[t]);
    return part == 0 ? first : _mm512_sub_epi32(all, first);
}

static ALWAYS_INLINE void tile_block(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                     const tile_q_rows *w, size_t n0, size_t n_blocks, const size_t nn,
                                     const size_t nv)
{
    const bool minima = kind == TILE_MINIMA || kind == TILE_WIDE;
    const size_t u_stride = w->u_stride, stride = w->stride, n_parts = kind == TILE_HALVES ? 2 : 1;
    const uint8_t *u = w->u + n0 * u_stride;
    const float *scale = w->scale + n0 * stride, *minimum = minima ? w->minimum + n0 * stride : NULL;
    __m512 sum[MOST_N][TILE_V];
    __m512i acc[MOST_N][TILE_V];
    sums += n0 * TILE_ROWS + t;
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            sum[n][v] = _mm512_loadu_ps(sums + n * TILE_ROWS + v * TILE_SIDE);
        }
    }
    for (size_t i = 0; i < n_blocks * n_parts; i++) {
        const size_t part = i % n_parts, steps = QUANT_BLOCK / 4 / n_parts;
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
                __m512i wv = four_weights(u + n * u_stride + 4 * k);
                for (size_t v = 0; v < nv; v++) {
                    acc[n][v] = add_products(acc[n][v], wv, xv[v]);
                }
            }
        }
        for (size_t v = 0; v < nv; v++) {
            const __m512 xs = _mm512_loadu_ps(&x->scale[t + v * TILE_SIDE]);
#pragma GCC unroll 12
            for (size_t n = 0; n < nn; n++) {
                const __m512i offset = offset_of(kind, x, t + v * TILE_SIDE, part);
                const __m512i whole = minima ? acc[n][v] : _mm512_add_epi32(acc[n][v], offset);
                const __m512 both = _mm512_mul_ps(xs, _mm512_set1_ps(scale[n * stride]));
                sum[n][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), both, sum[n][v]);
                if (minima) {
                    const __m512 m = _mm512_set1_ps(minimum[n * stride]);
                    sum[n][v] = _mm512_fmadd_ps(m, _mm512_loadu_ps(&x->sum[t + v * TILE_SIDE]), sum[n][v]);
                }
            }
        }
        u += QUANT_BLOCK / n_parts;
        scale++;
        minimum += minima ? 1 : 0;
        x += part + 1 == n_parts;
    }
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            _mm512_storeu_ps(sums + n * TILE_ROWS + v * TILE_SIDE, sum[n][v]);
        }
    }
}

#include "compute/kernels/ops_q_tile.h"

void tile_q_vnni(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                 size_t n_blocks)
{
    tile_q_of(sums, x, w, T, N, n_blocks);
}

int32_t peak_q_vnni(size_t rounds)
{
    const __m512i x = _mm512_set1_epi8(1);
    __m512i acc[PEAK_VECTORS];
    for (size_t i = 0; i < PEAK_VECTORS; i++) {
        acc[i] = _mm512_setzero_si512();
    }
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PEAK_VECTORS; i++) {
            acc[i] = add_products(acc[i], x, x);
        }
    }
    for (size_t i = 1; i < PEAK_VECTORS; i++) {
        acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    }
    return _mm512_reduce_add_epi32(acc[0]);
}

#endif
