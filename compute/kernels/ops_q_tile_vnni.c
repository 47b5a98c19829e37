/* Tiles of blocks of 8, 5 and 4 bits, and attention in bytes, with AVX-512 VNNI. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX512VNNI__)

#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/vec_avx512.h"

/* TRAP: around the intrinsic, GCC 12 copies every accumulator twice, and then has no registers
 * left. */
static ALWAYS_INLINE __m512i add_products(__m512i acc, __m512i u, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(x));
    return acc;
}

/* ---- weights turned: four numbers of a row of x, broadcast, against 16 rows of weights ---- */

enum { WORDS = QUANT_BLOCK / 4, SHARE_COLUMNS = TILE_SHARE * QUANT_BLOCK };

/* The `known` floats of a share of n blocks as bytes, zeros behind them; returns their scale. */
static ALWAYS_INLINE float round_share(int8_t q[SHARE_COLUMNS], const float *x, size_t known, size_t n)
{
    __m512 most = _mm512_setzero_ps();
    for (size_t k = 0; k < known; k += 16) {
        most = _mm512_max_ps(most, _mm512_abs_ps(v_load_n(x + k, known - k < 16 ? known - k : 16, 0.0f)));
    }
    const float largest = _mm512_reduce_max_ps(most);
    const __m512 inverse = _mm512_set1_ps(largest > 0 ? 127.0f / largest : 0.0f);
    for (size_t k = 0; k < n * QUANT_BLOCK; k += 16) {
        const size_t left = k < known ? (known - k < 16 ? known - k : 16) : 0;
        v_narrow_i8(q + k, _mm512_mul_ps(left ? v_load_n(x + k, left, 0.0f) : _mm512_setzero_ps(), inverse));
    }
    return largest / 127.0f;
}

void pack_x_vnni(tile_x_share *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE, out++) {
        const size_t n = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE, k = b * QUANT_BLOCK;
        const size_t left = k < K ? K - k : 0;
        for (size_t t = 0; t < T; t++) {
            int8_t q[SHARE_COLUMNS];
            out->scale[t] =
                round_share(q, x + t * x_stride + k, left < SHARE_COLUMNS ? left : SHARE_COLUMNS, n);
            for (size_t i = 0; i < n; i++) {
                const __m256i block = _mm256_loadu_si256((const void *)(q + i * QUANT_BLOCK));
                /* sums of four, of eight, of 16: one in each half */
                __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), block);
                sums = _mm256_hadd_epi32(sums, sums);
                sums = _mm256_hadd_epi32(sums, sums);
                const int32_t first = _mm256_extract_epi32(sums, 0), second = _mm256_extract_epi32(sums, 4);
                memcpy(out->q[i][t], q + i * QUANT_BLOCK, QUANT_BLOCK);
                out->offset_first[i][t] = -128 * first;
                out->offset[i][t] = -128 * (first + second);
            }
        }
    }
}

/* n words of up to 16 rows, `stride` bytes apart, as 16 lanes; rows from `rows` on are zeros. */
static ALWAYS_INLINE void turn_rows(float *out, const void *rows, size_t stride, size_t n_rows, size_t n)
{
    const unsigned char *in = rows;
    for (size_t i = 0; i < n;
         i += TILE_LANES, in += TILE_LANES * sizeof *out, out += TILE_LANES * TILE_LANES) {
        if (n_rows == TILE_LANES && n - i >= TILE_LANES && stride % sizeof *out == 0) {
            v_turn(out, TILE_LANES, (const float *)(const void *)in, stride / sizeof *out);
            continue;
        }
        float some[TILE_LANES][TILE_LANES] = {{0}}, turned[TILE_LANES][TILE_LANES];
        const size_t left = n - i < TILE_LANES ? n - i : TILE_LANES;
        for (size_t r = 0; r < n_rows; r++) {
            memcpy(some[r], in + r * stride, left * sizeof **some);
        }
        v_turn(turned[0], TILE_LANES, some[0], TILE_LANES);
        memcpy(out, turned, left * sizeof *turned);
    }
}

void turn_q_vnni(const tile_q_turned *to, const tile_q_rows *w, size_t N, size_t n_blocks)
{
    const size_t n_scales = w->halves ? 2 * n_blocks : n_blocks;
    for (size_t n = 0; n < N; n += TILE_LANES) {
        const size_t rows = N - n < TILE_LANES ? N - n : TILE_LANES;
        turn_rows((float *)(void *)(to->u + n * n_blocks * WORDS), w->u + n * w->u_stride, w->u_stride, rows,
                  n_blocks * WORDS);
        turn_rows(to->scale + n * n_scales, w->scale + n * w->stride, w->stride * sizeof(float), rows,
                  n_scales);
        if (w->minimum) {
            float *minimum = to->minimum + n * n_blocks;
            turn_rows(minimum, w->minimum + n * w->stride, w->stride * sizeof(float), rows, n_blocks);
            for (size_t i = 0; i < n_blocks * TILE_LANES; i += TILE_LANES) {
                const __m512 times = _mm512_set1_ps(-1.0f / 128);
                _mm512_storeu_ps(minimum + i, _mm512_mul_ps(_mm512_loadu_ps(minimum + i), times));
            }
        }
    }
}

/* Rows of x that are multiplied together, and groups of 16 rows of weights: their products and sums fill the registers. A
 * number of x that is broadcast once serves both groups. ROWS_MOST rows of x share a reading of the weights. */
enum { SIDE_ROWS = 6, GROUPS = 2, TOGETHER = GROUPS * TILE_LANES, ROWS_MOST = 8 * TILE_X_ROWS };

/* The groups of rows of weights that are multiplied together, from a share of columns on. */
typedef struct turned_groups {
    const uint32_t *u[GROUPS];
    const float *scale[GROUPS], *minimum[GROUPS];
} turned_groups;

static ALWAYS_INLINE turned_groups groups_at(const tile_kind kind, const tile_q_turned *w, size_t n, size_t b,
                                             size_t n_blocks, const size_t ng)
{
    const size_t n_scales = kind == TILE_HALVES ? 2 : 1;
    turned_groups of;
    for (size_t g = 0; g < ng; g++) {
        const size_t at = (n / TILE_LANES + g) * n_blocks + b;
        of.u[g] = w->u + at * WORDS * TILE_LANES;
        of.scale[g] = w->scale + at * n_scales * TILE_LANES;
        of.minimum[g] = kind == TILE_MINIMA ? w->minimum + at * TILE_LANES : NULL;
    }
    return of;
}

/* Adds part `part` of block b of a share: nt rows from row t on, ng groups. */
static ALWAYS_INLINE void add_turned(const tile_kind kind, __m512 sum[GROUPS][SIDE_ROWS],
                                     const tile_x_share *x, size_t b, size_t part, const turned_groups *w,
                                     size_t t, const size_t nt, const size_t ng)
{
    const size_t n_parts = kind == TILE_HALVES ? 2 : 1, steps = WORDS / n_parts, at = b * n_parts + part;
    __m512i acc[GROUPS][SIDE_ROWS];
#pragma GCC unroll 6
    for (size_t r = 0; r < nt; r++) {
        const int32_t *all = &x->offset[b][t + r], *first = &x->offset_first[b][t + r];
        __m512i offset = _mm512_setzero_si512();
        if (kind == TILE_PLAIN) {
            offset = _mm512_set1_epi32(*all);
        } else if (kind == TILE_HALVES) {
            offset = _mm512_set1_epi32(part == 0 ? *first : *all - *first);
        }
        for (size_t g = 0; g < ng; g++) {
            acc[g][r] = offset;
        }
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < steps; k++) {
        __m512i u[GROUPS];
        for (size_t g = 0; g < ng; g++) {
            u[g] = _mm512_loadu_si512(w->u[g] + (at * steps + k) * TILE_LANES);
        }
#pragma GCC unroll 6
        for (size_t r = 0; r < nt; r++) {
            const __m512i q = _mm512_set1_epi32((int32_t)x->q[b][t + r][part * steps + k]);
            for (size_t g = 0; g < ng; g++) {
                acc[g][r] = add_products(acc[g][r], u[g], q);
            }
        }
    }
    __m512 scale[GROUPS], minimum[GROUPS];
    for (size_t g = 0; g < ng; g++) {
        scale[g] = _mm512_loadu_ps(w->scale[g] + at * TILE_LANES);
        minimum[g] = kind == TILE_MINIMA ? _mm512_loadu_ps(w->minimum[g] + at * TILE_LANES) : scale[g];
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < nt; r++) {
        const __m512 offset = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->offset[b][t + r]));
        for (size_t g = 0; g < ng; g++) {
            sum[g][r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[g][r]), scale[g], sum[g][r]);
            if (kind == TILE_MINIMA) {
                sum[g][r] = _mm512_fmadd_ps(minimum[g], offset, sum[g][r]);
            }
        }
    }
}

/* What a share of n blocks gives of nt rows from row t on is added to total [nt, GROUPS, TILE_LANES], or begins it. */
static ALWAYS_INLINE void add_share(const tile_kind kind, float *total, const tile_x_share *x,
                                    const turned_groups *w, size_t n, bool begins, size_t t, const size_t nt,
                                    const size_t ng)
{
    __m512 sum[GROUPS][SIDE_ROWS];
#pragma GCC unroll 6
    for (size_t r = 0; r < nt; r++) {
        for (size_t g = 0; g < ng; g++) {
            sum[g][r] = _mm512_setzero_ps();
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t part = 0; part < (kind == TILE_HALVES ? 2 : 1); part++) {
            add_turned(kind, sum, x, i, part, w, t, nt, ng);
        }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < nt; r++) {
        const __m512 scale = _mm512_set1_ps(x->scale[t + r]);
        for (size_t g = 0; g < ng; g++) {
            float *at = total + (r * GROUPS + g) * TILE_LANES;
            const __m512 before = begins ? _mm512_setzero_ps() : _mm512_load_ps(at);
            _mm512_store_ps(at, _mm512_fmadd_ps(sum[g][r], scale, before));
        }
    }
}

/* Where the sums of a call go: [T, N], `stride` floats from row to row. */
typedef struct turned_out {
    float *at;
    size_t stride;
} turned_out;

/* T rows against ng groups of rows of weights from row n on, a share of columns after the other, so that those of the
 * weights stay in the L1 cache; returns what is left of `ahead`. Memory is asked for a few lines at a time: what is read next,
 * and where the sums go, since a store that misses holds the next ones up. */
static ALWAYS_INLINE prefetch_range add_shares(const tile_kind kind, float *total, const tile_x_share *x,
                                               const tile_q_turned *w, turned_out out, size_t n, size_t T,
                                               size_t n_blocks, const size_t ng, prefetch_range ahead,
                                               size_t lines)
{
    const size_t n_shares = (n_blocks + TILE_SHARE - 1) / TILE_SHARE;
    for (size_t s = 0; s < n_shares; s++) {
        const size_t b = s * TILE_SHARE, blocks = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE;
        const turned_groups of = groups_at(kind, w, n, b, n_blocks, ng);
        size_t asked = s; /* rows of out: every n_shares-th in each share */
        for (size_t t = 0, nt; t < T; t += nt) {
            const tile_x_share *panel = x + t / TILE_X_ROWS * n_shares + s;
            float *at = total + t * TOGETHER;
            const size_t row = t % TILE_X_ROWS;
            for (size_t i = 0; i < lines && ahead.lines > 0; i++, ahead.lines--, ahead.at += CACHE_LINE) {
                __builtin_prefetch(ahead.at, 0, 2);
            }
            for (; asked < t + SIDE_ROWS && asked < T; asked += n_shares) {
                for (size_t g = 0; g < ng; g++) {
                    __builtin_prefetch(out.at + asked * out.stride + n + g * TILE_LANES, 1, 2);
                }
            }
            if (T - t >= SIDE_ROWS) {
                add_share(kind, at, panel, &of, blocks, s == 0, row, nt = SIDE_ROWS, ng);
            } else if (T - t >= SIDE_ROWS / 2) {
                add_share(kind, at, panel, &of, blocks, s == 0, row, nt = SIDE_ROWS / 2, ng);
            } else {
                add_share(kind, at, panel, &of, blocks, s == 0, row, nt = 1, ng);
            }
        }
    }
    return ahead;
}

/* Sums of T rows and n_lanes rows of weights from row n on, with their bias unless that is NULL. */
static ALWAYS_INLINE void write_sums(turned_out out, const float *total, const float *bias, size_t n,
                                     size_t T, size_t n_lanes)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < n_lanes; i += TILE_LANES) {
            const size_t lanes = n_lanes - i < TILE_LANES ? n_lanes - i : TILE_LANES;
            __m512 sum = _mm512_load_ps(total + t * TOGETHER + i);
            if (bias) {
                sum = _mm512_add_ps(sum, v_load_n(bias + n + i, lanes, 0.0f));
            }
            v_store_n(out.at + t * out.stride + n + i, sum, lanes);
        }
    }
}

/* ALWAYS_INLINE: how a kind computes is a constant of each function below. */
static ALWAYS_INLINE void turned_kind(const tile_kind kind, turned_out out, const tile_x_share *x,
                                      const tile_q_turned *w, const float *bias, size_t T, size_t N,
                                      size_t n_blocks, prefetch_range ahead)
{
    _Alignas(CACHE_LINE) float total[ROWS_MOST * TOGETHER];
    const size_t n_shares = (n_blocks + TILE_SHARE - 1) / TILE_SHARE,
                 n_steps = (N + TOGETHER - 1) / TOGETHER * n_shares * ((T + SIDE_ROWS - 1) / SIDE_ROWS);
    const size_t lines = n_steps > 0 ? ahead.lines / n_steps + 1 : 0;
    for (size_t t0 = 0; t0 < T; t0 += ROWS_MOST, out.at += ROWS_MOST * out.stride) {
        const size_t rows = T - t0 < ROWS_MOST ? T - t0 : ROWS_MOST;
        const tile_x_share *panels = x + t0 / TILE_X_ROWS * n_shares;
        for (size_t n = 0; n < N; n += TOGETHER) {
            const size_t n_lanes = N - n < TOGETHER ? N - n : TOGETHER;
            if (n_lanes > TILE_LANES) {
                ahead = add_shares(kind, total, panels, w, out, n, rows, n_blocks, GROUPS, ahead, lines);
            } else {
                ahead = add_shares(kind, total, panels, w, out, n, rows, n_blocks, 1, ahead, lines);
            }
            write_sums(out, total, bias, n, rows, n_lanes);
        }
    }
}

/* A function for each kind, called by its address: inlined into one, they would share its registers. */
typedef void turned_fn(turned_out out, const tile_x_share *x, const tile_q_turned *w, const float *bias,
                       size_t T, size_t N, size_t n_blocks, prefetch_range ahead);

static void turned_plain(turned_out out, const tile_x_share *x, const tile_q_turned *w, const float *bias,
                         size_t T, size_t N, size_t n_blocks, prefetch_range ahead)
{
    turned_kind(TILE_PLAIN, out, x, w, bias, T, N, n_blocks, ahead);
}

static void turned_minima(turned_out out, const tile_x_share *x, const tile_q_turned *w, const float *bias,
                          size_t T, size_t N, size_t n_blocks, prefetch_range ahead)
{
    turned_kind(TILE_MINIMA, out, x, w, bias, T, N, n_blocks, ahead);
}

static void turned_halves(turned_out out, const tile_x_share *x, const tile_q_turned *w, const float *bias,
                          size_t T, size_t N, size_t n_blocks, prefetch_range ahead)
{
    turned_kind(TILE_HALVES, out, x, w, bias, T, N, n_blocks, ahead);
}

void tile_turned_vnni(float *out, size_t out_stride, const tile_x_share *x, const tile_q_turned *w,
                      const float *bias, size_t T, size_t N, size_t n_blocks, prefetch_range ahead)
{
    turned_fn *const kind = w->halves ? turned_halves : w->minimum ? turned_minima : turned_plain;
    kind((turned_out){out, out_stride}, x, w, bias, T, N, n_blocks, ahead);
}

/* ---- attention: 16 queries side by side, numbers of keys and values broadcast ---- */

/* Four numbers of keys or values are the operand that the instruction broadcasts. */
static ALWAYS_INLINE __m512i add_broadcast(__m512i acc, __m512i u, const uint32_t *x)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(u), "m"(*x));
    return acc;
}

/* Keys whose products exist together; the same of columns of values, which have sums besides. */
enum { KEYS = ATTEND_SIDE, COLUMNS = ATTEND_COLUMNS, LANES = ATTEND_SIDE };

/* 2^t as in ops.h; t has a limit. */
static ALWAYS_INLINE __m512 power_of_two(__m512 t)
{
    const __m512 whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(t, whole);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(ATTEND_C3), f, _mm512_set1_ps(ATTEND_C2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(ATTEND_C1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, whole);
}

/* Scores of n keys from key k on [ATTEND_PANEL, LANES]; returns the largest of each query. */
static ALWAYS_INLINE __m512 score_panel(float *scores, const attend_queries *to, const attend_keys *keys,
                                        size_t k, size_t n)
{
    const size_t words = (keys->hd + 3) / 4;
    __m512 top = _mm512_set1_ps(-ATTEND_FAR);
    for (size_t g = 0; g < n; g += KEYS) {
        const uint32_t *at = keys->k + (k + g) * words;
        __m512i acc[KEYS];
        for (size_t j = 0; j < KEYS; j++) {
            acc[j] = _mm512_set1_epi32(keys->k_offset[k + g + j]);
        }
        for (size_t i = 0; i < words; i++, at += KEYS) {
            const __m512i q = _mm512_loadu_si512(to->q + i * LANES);
#pragma GCC unroll 16
            for (size_t j = 0; j < KEYS; j++) {
                acc[j] = add_broadcast(acc[j], q, at + j);
            }
        }
        for (size_t j = 0; j < KEYS; j++) {
            const __m512 s =
                _mm512_mul_ps(_mm512_cvtepi32_ps(acc[j]), _mm512_set1_ps(keys->k_scale[k + g + j]));
            _mm512_store_ps(scores + (g + j) * LANES, s);
            top = g + j < n ? _mm512_max_ps(s, top) : top;
        }
    }
    return top;
}

/* The weights of n keys, four a word, as bytes; returns the sums of each query. */
static ALWAYS_INLINE __m512i weigh_panel(uint32_t *weights, const float *scores, __m512 scale, __m512 top,
                                         size_t n)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512 shift = _mm512_fnmadd_ps(top, scale, _mm512_set1_ps(ATTEND_TOP));
    __m512i sum = _mm512_setzero_si512();
    for (size_t k = 0; k < n; k += 4) {
        __m512i u[4];
        for (size_t j = 0; j < 4; j++) {
            const __m512 t = _mm512_fmadd_ps(_mm512_load_ps(scores + (k + j) * LANES), scale, shift);
            u[j] = _mm512_cvtps_epi32(power_of_two(t));
        }
        __m512i word = _mm512_packus_epi16(_mm512_packus_epi32(u[0], u[1]), _mm512_packus_epi32(u[2], u[3]));
        word = _mm512_shuffle_epi8(word, order);
        if (n - k < 4) {
            word = _mm512_and_si512(word, _mm512_set1_epi32((int32_t)(UINT32_MAX >> 8 * (4 - (n - k)))));
        }
        sum = add_products(sum, word, _mm512_set1_epi8(1));
        _mm512_store_si512(weights + k / 4 * LANES, word);
    }
    return sum;
}

void attend_q_vnni(attend_queries *to, const attend_keys *keys)
{
    enum { PANELS = ATTEND_KEYS / ATTEND_PANEL, PANEL_WORDS = ATTEND_PANEL / 4 };
    _Alignas(CACHE_LINE) float scores[ATTEND_PANEL * LANES];
    _Alignas(CACHE_LINE) uint32_t weights[ATTEND_KEYS / 4 * LANES];
    const __m512 scale = _mm512_loadu_ps(to->scale), before = _mm512_loadu_ps(to->max);
    const size_t n_panels = (keys->n + ATTEND_PANEL - 1) / ATTEND_PANEL;
    __m512 top[PANELS], most = before;
    __m512i total[PANELS];
    for (size_t p = 0; p < n_panels; p++) {
        const size_t k = p * ATTEND_PANEL, n = keys->n - k < ATTEND_PANEL ? keys->n - k : ATTEND_PANEL;
        top[p] = score_panel(scores, to, keys, k, n);
        total[p] = weigh_panel(weights + k / 4 * LANES, scores, scale, top[p], n);
        most = _mm512_max_ps(top[p], most);
    }
    const __m512 far = _mm512_set1_ps(-ATTEND_LEAST);
    const __m512 kept = power_of_two(_mm512_max_ps(_mm512_mul_ps(_mm512_sub_ps(before, most), scale), far));
    __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(to->sum), kept);
    for (size_t p = 0; p < n_panels; p++) {
        top[p] = power_of_two(_mm512_max_ps(_mm512_mul_ps(_mm512_sub_ps(top[p], most), scale), far));
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[p]), top[p], sum);
    }
    _mm512_storeu_ps(to->max, most);
    _mm512_storeu_ps(to->sum, sum);
    const size_t words = (keys->n + 3) / 4;
    for (size_t d = 0; d < keys->hd; d += COLUMNS) {
        const uint32_t *v = keys->v + d * ATTEND_KEYS / 4;
        __m512 part[COLUMNS];
        for (size_t j = 0; j < COLUMNS; j++) {
            part[j] = _mm512_setzero_ps();
        }
        for (size_t p = 0; p < n_panels; p++) {
            const size_t end = (p + 1) * PANEL_WORDS < words ? (p + 1) * PANEL_WORDS : words;
            __m512i acc[COLUMNS];
            for (size_t j = 0; j < COLUMNS; j++) {
                acc[j] = _mm512_setzero_si512();
            }
            for (size_t i = p * PANEL_WORDS; i < end; i++, v += COLUMNS) {
                const __m512i w = _mm512_load_si512(weights + i * LANES);
#pragma GCC unroll 8
                for (size_t j = 0; j < COLUMNS; j++) {
                    acc[j] = add_broadcast(acc[j], w, v + j);
                }
            }
            for (size_t j = 0; j < COLUMNS; j++) {
                part[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[j]), top[p], part[j]);
            }
        }
        for (size_t j = 0; j < COLUMNS; j++) {
            float *mix = to->mix + (d + j) * LANES;
            _mm512_storeu_ps(mix, _mm512_fmadd_ps(part[j], _mm512_set1_ps(keys->v_scale[d + j]),
                                                  _mm512_mul_ps(_mm512_loadu_ps(mix), kept)));
        }
    }
}

#endif
