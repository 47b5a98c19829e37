/* ops_kv_q8_simd: products with packed keys and values of 8 and 4 bits, as integers (ops_kv.h),
 * written once over vectors. Included by one file an instruction set; integer sums are exact, so every
 * table gives the same bits.
 *
 * Wanted of the including file: KV_Q8_R queries against KV_Q8_N keys, or KV_Q8_GROUPS groups of 32
 * numbers of a value; and beside v_set1, v_load_n, v_store_n, v_sub, v_mul, v_min, v_max, v_fma and
 * v_top of ops_simd.h:
 *   wvec, 32 whole numbers of 16 bits: w_bytes (32 signed bytes widened), w_bytes_n (the first n,
 *   then zeros; reads nothing beyond), w_nibbles (those of a group of q4), w_load, w_pair (2 numbers all over), w_low and w_high
 *   (numbers of two vectors in turns, together all of them);
 *   svec, 16 of 32 bits: s_zero, s_load, s_store, s_madd (products of pairs added), s_totals (of 1
 *   or KV_Q8_N vectors); v_of_sums (as floats), v_of_pairs (what w_low and w_high led to, as 32
 *   floats in the order of the numbers), v_narrow_i16 (16 rounded numbers stored).
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_KV_Q8_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_KV_Q8_SIMD_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops_kv.h"

/* Larger heads go the generic way. */
enum { KV_Q8_HEAD = 1024, KV_Q8_GROUP = 32, KV_Q8_LANES = 16 };

/* n numbers in steps up to limit; zeros up to a multiple of KV_Q8_GROUP. What a step stands for is
 * returned. */
static ALWAYS_INLINE float kv_q8_steps(int16_t *out, const float *x, size_t n, int limit)
{
    vec tops = v_set1(0.0f), highest = v_set1((float)limit), lowest = v_set1((float)-limit);
    for (size_t i = 0; i < n; i += KV_Q8_LANES) {
        const vec v = v_load_n(x + i, n - i < KV_Q8_LANES ? n - i : KV_Q8_LANES, 0.0f);
        tops = v_max(v_max(v, v_sub(v_set1(0.0f), v)), tops);
    }
    const float top = v_top(tops);
    const vec inverse = v_set1(top > KV_Q8_LEAST ? (float)limit / top : 0);
    for (size_t i = 0; i < (n + KV_Q8_GROUP - 1) / KV_Q8_GROUP * KV_Q8_GROUP; i += KV_Q8_LANES) {
        const size_t left = i < n ? n - i : 0;
        const vec v = v_load_n(x + (left ? i : 0), left < KV_Q8_LANES ? left : KV_Q8_LANES, 0.0f);
        v_narrow_i16(out + i, v_max(v_min(v_mul(v, inverse), highest), lowest));
    }
    return top / (float)limit;
}

/* Numbers i .. i+31 of a row of that type, q8 or q4; of the last ones, which are not `whole`, zeros
 * behind the end of q8 and anything behind that of q4. */
static ALWAYS_INLINE wvec kv_q8_load(const unsigned char *row, size_t i, size_t hd, const bool whole,
                                     const kv_type type)
{
    if (type == KV_Q4) {
        return w_nibbles(row + i / 2);
    }
    return whole ? w_bytes(row + i) : w_bytes_n(row + i, hd - i);
}

/* Asks for numbers i and up, once a line of the cache. */
static ALWAYS_INLINE void kv_q8_fetch(const unsigned char *row, size_t i, const kv_type type)
{
    if (type == KV_Q8) {
        prefetch_line(row + i);
    } else if (i % (2 * CACHE_LINE) == 0) {
        prefetch_line(row + i / 2);
    }
}

/* Queries that are taken together when so many are left. */
static inline size_t kv_q8_together(size_t left)
{
    return left >= KV_Q8_R ? KV_Q8_R : left >= 2 ? 2 : 1;
}

/* The scales of rows k .. k+n-1; k is a multiple of KV_PARTS. */
static ALWAYS_INLINE void kv_q8_scales(float *out, const kv_rows *rows, size_t k, size_t n)
{
    if (rows->n_parts == 1) {
        memcpy(out, rows->scales[0] + k, n * sizeof *out);
        return;
    }
    for (size_t part = 0; part < KV_PARTS; part++) {
        const float *from = rows->scales[part] + k / KV_PARTS;
        for (size_t j = part; j < n; j += KV_PARTS) {
            out[j] = *from++;
        }
    }
}

/* ---- dot ---- */

/* Keys whose sums become floats together. */
enum { KV_Q8_KEYS = 64 };

typedef struct kv_q8_queries {
    alignas(CACHE_LINE) int16_t numbers[KV_Q8_R][KV_Q8_HEAD];
    float units[KV_Q8_R];
    alignas(CACHE_LINE) int32_t totals[KV_Q8_R][KV_Q8_KEYS];
} kv_q8_queries;

static ALWAYS_INLINE void kv_q8_dot_step(svec acc[KV_Q8_R][KV_Q8_N], const kv_q8_queries *q,
                                         const unsigned char *const row[KV_Q8_N], size_t i, size_t hd,
                                         const size_t nr, const size_t nn, const bool whole,
                                         const kv_type type)
{
    wvec x[KV_Q8_R];
    for (size_t r = 0; r < nr; r++) {
        x[r] = w_load(q->numbers[r] + i);
    }
    for (size_t j = 0; j < nn; j++) {
        const wvec key = kv_q8_load(row[j], i, hd, whole, type);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = s_madd(acc[r][j], x[r], key);
        }
    }
}

/* totals[.][at ..] = nr queries against keys k .. k+nn-1. */
static ALWAYS_INLINE void kv_q8_dot_block(kv_q8_queries *q, size_t at, const kv_rows *rows, size_t k,
                                          const size_t nr, const size_t nn, const size_t n_parts,
                                          const kv_type type)
{
    const size_t hd = rows->hd;
    const unsigned char *row[KV_Q8_N];
    svec acc[KV_Q8_R][KV_Q8_N];
    for (size_t j = 0; j < nn; j++) {
        row[j] = kv_row_of(rows, k + j, n_parts);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = s_zero();
        }
    }
    size_t i = 0;
    for (; i + 2 * KV_Q8_GROUP <= hd; i += 2 * KV_Q8_GROUP) {
        for (size_t j = 0; j < nn; j++) {
            kv_q8_fetch(row[j], i, type);
        }
        kv_q8_dot_step(acc, q, row, i, hd, nr, nn, true, type);
        kv_q8_dot_step(acc, q, row, i + KV_Q8_GROUP, hd, nr, nn, true, type);
    }
    for (; i < hd; i += KV_Q8_GROUP) {
        kv_q8_dot_step(acc, q, row, i, hd, nr, nn, i + KV_Q8_GROUP <= hd, type);
    }
    for (size_t r = 0; r < nr; r++) {
        s_totals(q->totals[r] + at, acc[r], nn);
    }
}

/* out of n keys from k on = their totals, scaled. */
static ALWAYS_INLINE void kv_q8_dot_scale(float *out, size_t out_stride, const kv_q8_queries *q,
                                          const kv_rows *rows, size_t k, size_t n, const size_t nr)
{
    float scales[KV_Q8_KEYS];
    kv_q8_scales(scales, rows, k, n);
    for (size_t r = 0; r < nr; r++) {
        const vec unit = v_set1(q->units[r]);
        for (size_t j = 0; j < n; j += KV_Q8_LANES) {
            const size_t m = n - j < KV_Q8_LANES ? n - j : KV_Q8_LANES;
            const vec scale = v_mul(unit, v_load_n(scales + j, m, 0.0f));
            v_store_n(out + r * out_stride + k + j, v_mul(v_of_sums(s_load(q->totals[r] + j)), scale), m);
        }
    }
}

static ALWAYS_INLINE void kv_q8_dot_rows(float *out, size_t out_stride, kv_q8_queries *q, const kv_rows *rows,
                                         const size_t nr, const size_t n_parts, const kv_type type)
{
    for (size_t k = 0; k < rows->n; k += KV_Q8_KEYS) {
        const size_t n = rows->n - k < KV_Q8_KEYS ? rows->n - k : KV_Q8_KEYS;
        size_t at = 0;
        for (; at + KV_Q8_N <= n; at += KV_Q8_N) {
            kv_q8_dot_block(q, at, rows, k + at, nr, KV_Q8_N, n_parts, type);
        }
        for (; at < n; at++) {
            kv_q8_dot_block(q, at, rows, k + at, nr, 1, n_parts, type);
        }
        kv_q8_dot_scale(out, out_stride, q, rows, k, n, nr);
    }
}

static ALWAYS_INLINE void kv_q8_dot_all(float *out, size_t out_stride, kv_q8_queries *q, const kv_rows *rows,
                                        const size_t nr, const kv_type type)
{
    if (rows->n_parts == KV_PARTS) {
        kv_q8_dot_rows(out, out_stride, q, rows, nr, KV_PARTS, type);
    } else {
        kv_q8_dot_rows(out, out_stride, q, rows, nr, 1, type);
    }
}

static ALWAYS_INLINE void kv_q8_dot(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                                    const kv_rows *rows, const kv_type type)
{
    const size_t hd = rows->hd;
    kv_q8_queries some;
    if (hd > KV_Q8_HEAD) {
        KV_OPS_GENERIC[type].dot(out, out_stride, q, q_stride, R, rows);
        return;
    }
    for (size_t r = 0; r < R;) {
        const size_t nr = kv_q8_together(R - r);
        for (size_t i = 0; i < nr; i++) {
            some.units[i] = kv_q8_steps(some.numbers[i], q + (r + i) * q_stride, hd, kv_q8_query_limit(hd));
        }
        float *to = out + r * out_stride;
        if (nr == KV_Q8_R) {
            kv_q8_dot_all(to, out_stride, &some, rows, KV_Q8_R, type);
        } else if (nr == 2) {
            kv_q8_dot_all(to, out_stride, &some, rows, 2, type);
        } else {
            kv_q8_dot_all(to, out_stride, &some, rows, 1, type);
        }
        r += nr;
    }
}

/* ---- mix ---- */

typedef struct kv_q8_weights {
    int16_t numbers[KV_Q8_R][KV_Q8_ROWS]; /* a zero behind an odd number of them */
    float units[KV_Q8_R];
    /* Of each group of columns those of w_low, then those of w_high. */
    alignas(CACHE_LINE) int32_t sums[KV_Q8_R][KV_Q8_HEAD];
} kv_q8_weights;

/* Rows a and b, of which the first has weight k, from column i on. */
static ALWAYS_INLINE void kv_q8_mix_pair(svec acc[KV_Q8_R][2 * KV_Q8_GROUPS], const kv_q8_weights *w,
                                         const unsigned char *a, const unsigned char *b, size_t k, size_t i,
                                         size_t hd, const size_t nr, const size_t groups, const bool whole,
                                         const kv_type type)
{
    wvec pair[KV_Q8_R];
    if (groups * KV_Q8_GROUP % CACHE_LINE == 0 || i % CACHE_LINE == 0) {
        kv_q8_fetch(a, i, type);
        kv_q8_fetch(b, i, type);
    }
    for (size_t r = 0; r < nr; r++) {
        pair[r] = w_pair(w->numbers[r] + k);
    }
    for (size_t g = 0; g < groups; g++) {
        const wvec x = kv_q8_load(a, i + g * KV_Q8_GROUP, hd, whole, type);
        const wvec y = kv_q8_load(b, i + g * KV_Q8_GROUP, hd, whole, type);
        const wvec low = w_low(x, y), high = w_high(x, y);
        for (size_t r = 0; r < nr; r++) {
            acc[r][2 * g] = s_madd(acc[r][2 * g], low, pair[r]);
            acc[r][2 * g + 1] = s_madd(acc[r][2 * g + 1], high, pair[r]);
        }
    }
}

/* Groups of columns from i on of rows first+k0 .. first+k1-1, in pairs; of an odd number the last
 * one stands twice. */
static ALWAYS_INLINE void kv_q8_mix_strip(kv_q8_weights *w, const kv_rows *rows, size_t first, size_t k0,
                                          size_t k1, size_t i, const size_t nr, const size_t groups,
                                          const size_t n_parts, const bool whole, const kv_type type)
{
    const size_t hd = rows->hd, row_bytes = rows->row_bytes;
    svec acc[KV_Q8_R][2 * KV_Q8_GROUPS];
    for (size_t r = 0; r < nr; r++) {
        for (size_t g = 0; g < 2 * groups; g++) {
            acc[r][g] = s_load(w->sums[r] + i + g * KV_Q8_LANES);
        }
    }
    size_t k = k0;
    if (n_parts == KV_PARTS) {
        const unsigned char *row[KV_PARTS];
        for (size_t j = 0; j < KV_PARTS; j++) {
            row[j] = kv_row_of(rows, first + k + j, KV_PARTS);
        }
        for (size_t at = 0; k < k1; k += KV_PARTS, at += row_bytes) {
            kv_q8_mix_pair(acc, w, row[0] + at, row[1] + at, k, i, hd, nr, groups, whole, type);
            kv_q8_mix_pair(acc, w, row[2] + at, row[3] + at, k + 2, i, hd, nr, groups, whole, type);
        }
    } else {
        const unsigned char *row = kv_row_of(rows, first + k, 1);
        for (; k + 2 <= k1; k += 2, row += 2 * row_bytes) {
            kv_q8_mix_pair(acc, w, row, row + row_bytes, k, i, hd, nr, groups, whole, type);
        }
        if (k < k1) {
            kv_q8_mix_pair(acc, w, row, row, k, i, hd, nr, groups, whole, type);
        }
    }
    for (size_t r = 0; r < nr; r++) {
        for (size_t g = 0; g < 2 * groups; g++) {
            s_store(w->sums[r] + i + g * KV_Q8_LANES, acc[r][g]);
        }
    }
}

/* Rows first .. first+n-1 go into the sums. */
static ALWAYS_INLINE void kv_q8_mix_rows(kv_q8_weights *w, const kv_rows *rows, size_t first, size_t n,
                                         const size_t nr, const size_t n_parts, const kv_type type)
{
    enum { STRIP = KV_Q8_GROUPS * KV_Q8_GROUP };
    const size_t hd = rows->hd;
    for (size_t k = 0; k < n; k += KV_CHUNK) {
        const size_t end = n - k < KV_CHUNK ? n : k + KV_CHUNK;
        size_t i = 0;
        for (; i + STRIP <= hd; i += STRIP) {
            kv_q8_mix_strip(w, rows, first, k, end, i, nr, KV_Q8_GROUPS, n_parts, true, type);
        }
        for (; i + KV_Q8_GROUP <= hd; i += KV_Q8_GROUP) {
            kv_q8_mix_strip(w, rows, first, k, end, i, nr, 1, n_parts, true, type);
        }
        if (i < hd) {
            kv_q8_mix_strip(w, rows, first, k, end, i, nr, 1, n_parts, false, type);
        }
    }
}

static ALWAYS_INLINE void kv_q8_mix_all(kv_q8_weights *w, const kv_rows *rows, size_t first, size_t n,
                                        const size_t nr, const kv_type type)
{
    if (rows->n_parts == KV_PARTS) {
        kv_q8_mix_rows(w, rows, first, n, nr, KV_PARTS, type);
    } else {
        kv_q8_mix_rows(w, rows, first, n, nr, 1, type);
    }
}

/* Fills in the weights of rows first .. first+n-1 for nr queries; the sums become zeros. */
static ALWAYS_INLINE void kv_q8_weigh(kv_q8_weights *w, const float *p, size_t p_stride, const kv_rows *rows,
                                      size_t first, size_t n, size_t nr)
{
    float scales[KV_Q8_ROWS], scaled[KV_Q8_ROWS];
    kv_q8_scales(scales, rows, first, n);
    for (size_t r = 0; r < nr; r++) {
        for (size_t k = 0; k < n; k++) {
            scaled[k] = p[r * p_stride + k] * scales[k];
        }
        w->units[r] = kv_q8_steps(w->numbers[r], scaled, n, KV_Q8_WEIGHT_LIMIT);
        memset(w->sums[r], 0, (rows->hd + KV_Q8_GROUP - 1) / KV_Q8_GROUP * KV_Q8_GROUP * sizeof *w->sums[r]);
    }
}

/* One query's out takes in its sums. */
static ALWAYS_INLINE void kv_q8_take(float *out, const int32_t *from, float unit, size_t hd)
{
    for (size_t i = 0; i < hd; i += KV_Q8_GROUP) {
        vec part[2];
        v_of_pairs(part, s_load(from + i), s_load(from + i + KV_Q8_LANES));
        for (size_t j = 0; j < 2 && i + j * KV_Q8_LANES < hd; j++) {
            float *at = out + i + j * KV_Q8_LANES;
            const size_t left = hd - i - j * KV_Q8_LANES, m = left < KV_Q8_LANES ? left : KV_Q8_LANES;
            v_store_n(at, v_fma(part[j], v_set1(unit), v_load_n(at, m, 0.0f)), m);
        }
    }
}

static ALWAYS_INLINE void kv_q8_mix(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                                    const kv_rows *rows, const kv_type type)
{
    kv_q8_weights w;
    if (rows->hd > KV_Q8_HEAD) {
        KV_OPS_GENERIC[type].mix(out, out_stride, p, p_stride, R, rows);
        return;
    }
    for (size_t first = 0; first < rows->n; first += KV_Q8_ROWS) {
        const size_t n = rows->n - first < KV_Q8_ROWS ? rows->n - first : KV_Q8_ROWS;
        for (size_t r = 0; r < R;) {
            const size_t nr = kv_q8_together(R - r);
            kv_q8_weigh(&w, p + r * p_stride + first, p_stride, rows, first, n, nr);
            if (nr == KV_Q8_R) {
                kv_q8_mix_all(&w, rows, first, n, KV_Q8_R, type);
            } else if (nr == 2) {
                kv_q8_mix_all(&w, rows, first, n, 2, type);
            } else {
                kv_q8_mix_all(&w, rows, first, n, 1, type);
            }
            for (size_t i = 0; i < nr; i++) {
                kv_q8_take(out + (r + i) * out_stride, w.sums[i], w.units[i], rows->hd);
            }
            r += nr;
        }
    }
}

/* ---- by type ---- */

KV_BY_TYPE(kv_dot_q8, kv_mix_q8, kv_q8_dot, kv_q8_mix, KV_Q8)
KV_BY_TYPE(kv_dot_q4, kv_mix_q4, kv_q8_dot, kv_q8_mix, KV_Q4)

#endif
