/* ops_kv_simd: the kernels on packed keys and values, written once over vectors of 16 floats.
 * Included after ops_simd.h by one file an instruction set; every vector table gives the same bits.
 *
 * Wanted of the including file, beside what ops_simd.h wants: v_widen_i8 (16 signed bytes),
 * v_of_words (32 numbers of a wvec as floats), v_narrow_bf16, v_narrow_f16, v_narrow_i8 (16 numbers
 * stored, rounded to the nearest, ties to even; a NaN stays one in 16 bits); KV_R queries (4)
 * against KV_N keys (1 or 4), or KV_V vectors of a value.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_KV_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_KV_SIMD_H

#include <assert.h>

#include "compute/kernels/ops_kv.h"
#include "compute/kernels/ops_kv_q8_simd.h"

static_assert(KV_R == 4 && (KV_N == 1 || KV_N == 4),
              "the sums of four queries or four keys are stored together");

/* ---- packing ---- */

typedef void kv_narrow_fn(void *out, vec x);

static ALWAYS_INLINE void kv_narrow_row(unsigned char *out, const float *x, size_t hd, const size_t size,
                                        kv_narrow_fn *narrow, vec unit, float limit)
{
    for (size_t i = 0; i < hd; i += LANES) {
        size_t m = lanes_left(i, hd);
        vec v = v_div(v_load_n(x + i, m, 0.0f), unit);
        v = v_max(v_set1(-limit), v_min(v_set1(limit), v));
        if (m == LANES) {
            narrow(out + i * size, v);
        } else {
            unsigned char last[LANES * 2];
            narrow(last, v);
            memcpy(out + i * size, last, m * size);
        }
    }
}

static float kv_pack_f32(void *out, const float *x, size_t hd)
{
    memcpy(out, x, hd * sizeof *x);
    return 1.0f;
}

static float kv_pack_bf16(void *out, const float *x, size_t hd)
{
    kv_narrow_row(out, x, hd, 2, v_narrow_bf16, v_set1(1.0f), INFINITY);
    return 1.0f;
}

static float kv_pack_f16(void *out, const float *x, size_t hd)
{
    kv_narrow_row(out, x, hd, 2, v_narrow_f16, v_set1(1.0f), 65504.0f);
    return 1.0f;
}

/* Bytes of NaN are 127, as in the specification. */
static ALWAYS_INLINE void kv_narrow_byte(void *out, vec x)
{
    v_narrow_i8(out, v_min(x, v_set1(127.0f)));
}

static float kv_pack_q8(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    vec top = v_set1(0.0f);
    for (size_t i = 0; i < hd; i += LANES) {
        vec v = v_load_n(x + i, lanes_left(i, hd), 0.0f);
        top = v_max(v_max(v, v_sub(v_set1(0.0f), v)), top);
    }
    const float scale = v_top(top) / 127.0f;
    memset(to + hd, 0, kv_row_bytes(KV_Q8, hd) - hd);
    kv_narrow_row(to, x, hd, 1, kv_narrow_byte, v_set1(scale > 0 ? scale : 1.0f), 127.0f);
    return scale;
}

/* ---- reading ---- */

/* 16 packed numbers; of q8 without the scale. */
typedef vec kv_load_fn(const void *p);

static ALWAYS_INLINE vec kv_load_f32(const void *p)
{
    return v_load(p);
}

/* The last m < 16 numbers of a row, then zeros; reads nothing beyond. */
static ALWAYS_INLINE vec kv_load_last(const unsigned char *p, size_t m, const size_t size, kv_load_fn *load)
{
    unsigned char last[LANES * 4] = {0};
    memcpy(last, p, m * size);
    return load(last);
}

static ALWAYS_INLINE vec kv_load_n(const unsigned char *p, size_t m, const size_t size, kv_load_fn *load)
{
    return m == LANES ? load(p) : kv_load_last(p, m, size, load);
}

static ALWAYS_INLINE void kv_widen_row(float *out, const unsigned char *row, size_t hd, const size_t size,
                                       kv_load_fn *load, float scale)
{
    for (size_t i = 0; i < hd; i += LANES) {
        size_t m = lanes_left(i, hd);
        v_store_n(out + i, v_mul(kv_load_n(row + i * size, m, size, load), v_set1(scale)), m);
    }
}

/* A call of dot or mix; x are the queries or the weights of the values, strides in floats. */
typedef struct kv_job {
    float *out;
    const float *x;
    size_t out_stride, x_stride, R;
    const kv_rows *rows;
} kv_job;

/* ---- dot ---- */

/* Terms i .. i+15 of the block. */
static ALWAYS_INLINE void kv_dot_step(const kv_job *job, vec acc[KV_R][KV_N], const float *q,
                                      const unsigned char *const row[KV_N], size_t i, const size_t nr,
                                      const size_t nn, const size_t size, kv_load_fn *load)
{
    vec qv[KV_R];
    for (size_t r = 0; r < nr; r++) {
        qv[r] = v_load(q + r * job->x_stride + i);
    }
    for (size_t j = 0; j < nn; j++) {
        vec kv = load(row[j] + i * size);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = v_fma(qv[r], kv, acc[r][j]);
        }
    }
}

/* nr queries from r0 on against nn keys; out belongs to the first of both. nr, nn, size and fetch
 * are constants of the caller. */
static ALWAYS_INLINE void kv_dot_block(const kv_job *job, size_t r0, const unsigned char *const row[KV_N],
                                       float *out, const size_t nr, const size_t nn, const size_t size,
                                       const bool fetch, kv_load_fn *load)
{
    const size_t hd = job->rows->hd, step = CACHE_LINE / size; /* numbers of a line */
    const float *q = job->x + r0 * job->x_stride;
    vec acc[KV_R][KV_N];
    for (size_t r = 0; r < nr; r++) {
        for (size_t j = 0; j < nn; j++) {
            acc[r][j] = v_set1(0.0f);
        }
    }
    size_t i = 0;
    for (; i + step <= hd; i += step) {
        for (size_t j = 0; fetch && j < nn; j++) {
            prefetch_line(row[j] + i * size);
        }
        for (size_t k = 0; k < step; k += LANES) {
            kv_dot_step(job, acc, q, row, i + k, nr, nn, size, load);
        }
    }
    for (; i + LANES <= hd; i += LANES) {
        kv_dot_step(job, acc, q, row, i, nr, nn, size, load);
    }
    const size_t left = hd - i;
    for (size_t j = 0; left && j < nn; j++) {
        vec kv = kv_load_last(row[j] + i * size, left, size, load);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = v_fma(v_load_n(q + r * job->x_stride + i, left, 0.0f), kv, acc[r][j]);
        }
    }
    for (size_t r = 0; r < nr; r++) {
        float *to = out + r * job->out_stride;
        if (nn == 4) {
            v_sum4(to, acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
        } else {
            for (size_t j = 0; j < nn; j++) {
                to[j] = v_sum(acc[r][j]);
            }
        }
    }
}

/* All queries against keys k .. k+nn-1; the first block asks for the rows to come. */
static ALWAYS_INLINE void kv_dot_keys(const kv_job *job, size_t k, const size_t nn, const size_t n_parts,
                                      const size_t size, kv_load_fn *load)
{
    const unsigned char *row[KV_N];
    for (size_t j = 0; j < nn; j++) {
        row[j] = kv_row_of(job->rows, k + j, n_parts);
    }
    float *out = job->out + k;
    size_t r = 0;
    if (job->R >= KV_R) {
        kv_dot_block(job, 0, row, out, KV_R, nn, size, true, load);
        for (r = KV_R; r + KV_R <= job->R; r += KV_R) {
            kv_dot_block(job, r, row, out + r * job->out_stride, KV_R, nn, size, false, load);
        }
    }
    if (job->R - r >= 2) {
        kv_dot_block(job, r, row, out + r * job->out_stride, 2, nn, size, true, load);
        r += 2;
    }
    if (job->R - r == 1) {
        kv_dot_block(job, r, row, out + r * job->out_stride, 1, nn, size, true, load);
    }
}

static ALWAYS_INLINE void kv_dot_parts(const kv_job *job, const size_t n_parts, const size_t size,
                                       kv_load_fn *load)
{
    size_t k = 0;
    for (; k + KV_N <= job->rows->n; k += KV_N) {
        kv_dot_keys(job, k, KV_N, n_parts, size, load);
    }
    for (; k < job->rows->n; k++) {
        kv_dot_keys(job, k, 1, n_parts, size, load);
    }
}

static ALWAYS_INLINE void kv_dot_all(const kv_job *job, const size_t size, kv_load_fn *load)
{
    if (job->rows->n_parts == KV_PARTS) {
        kv_dot_parts(job, KV_PARTS, size, load);
    } else {
        kv_dot_parts(job, 1, size, load);
    }
}

/* ---- mix ---- */

/* nr rows x nv vectors of out from number i on take values k0 .. k1-1; the last vector has `lanes`
 * lanes. */
static ALWAYS_INLINE void kv_mix_block(const kv_job *job, size_t r0, size_t i, size_t k0, size_t k1,
                                       const size_t nr, const size_t nv, size_t lanes, const size_t n_parts,
                                       const size_t size, const bool fetch, kv_load_fn *load)
{
    float *out = job->out + r0 * job->out_stride + i;
    const float *p = job->x + r0 * job->x_stride;
    vec acc[KV_R][KV_V];
    for (size_t r = 0; r < nr; r++) {
        for (size_t v = 0; v < nv; v++) {
            acc[r][v] = v_load_n(out + r * job->out_stride + v * LANES, v + 1 < nv ? LANES : lanes, 0.0f);
        }
    }
    for (size_t k = k0; k < k1; k += n_parts) {
        for (size_t part = 0; part < n_parts; part++) {
            const unsigned char *at = kv_row_of(job->rows, k + part, n_parts) + i * size;
            for (size_t line = 0; fetch && line < nv * LANES * size; line += CACHE_LINE) {
                prefetch_line(at + line);
            }
            vec value[KV_V];
            for (size_t v = 0; v < nv; v++) {
                value[v] = kv_load_n(at + v * LANES * size, v + 1 < nv ? LANES : lanes, size, load);
            }
            for (size_t r = 0; r < nr; r++) {
                vec weight = v_set1(p[r * job->x_stride + k + part]);
                for (size_t v = 0; v < nv; v++) {
                    acc[r][v] = v_fma(weight, value[v], acc[r][v]);
                }
            }
        }
    }
    for (size_t r = 0; r < nr; r++) {
        for (size_t v = 0; v < nv; v++) {
            v_store_n(out + r * job->out_stride + v * LANES, acc[r][v], v + 1 < nv ? LANES : lanes);
        }
    }
}

/* nr rows, strip by strip. */
static ALWAYS_INLINE void kv_mix_rows(const kv_job *job, size_t r, size_t k0, size_t k1, const size_t nr,
                                      const size_t n_parts, const size_t size, const bool fetch,
                                      kv_load_fn *load)
{
    const size_t hd = job->rows->hd;
    size_t i = 0;
    for (; i + KV_V * LANES <= hd; i += KV_V * LANES) {
        kv_mix_block(job, r, i, k0, k1, nr, KV_V, LANES, n_parts, size, fetch, load);
    }
    for (; i + LANES <= hd; i += LANES) {
        kv_mix_block(job, r, i, k0, k1, nr, 1, LANES, n_parts, size, fetch, load);
    }
    if (i < hd) {
        kv_mix_block(job, r, i, k0, k1, nr, 1, hd - i, n_parts, size, fetch, load);
    }
}

/* All queries; the first ones ask for the values to come. */
static ALWAYS_INLINE void kv_mix_chunk(const kv_job *job, size_t k0, size_t k1, const size_t n_parts,
                                       const size_t size, kv_load_fn *load)
{
    size_t r = 0;
    if (job->R >= KV_R) {
        kv_mix_rows(job, 0, k0, k1, KV_R, n_parts, size, true, load);
        for (r = KV_R; r + KV_R <= job->R; r += KV_R) {
            kv_mix_rows(job, r, k0, k1, KV_R, n_parts, size, false, load);
        }
    }
    if (job->R - r >= 2) {
        kv_mix_rows(job, r, k0, k1, 2, n_parts, size, true, load);
        r += 2;
    }
    if (job->R - r == 1) {
        kv_mix_rows(job, r, k0, k1, 1, n_parts, size, true, load);
    }
}

static ALWAYS_INLINE void kv_mix_all(const kv_job *job, const size_t size, kv_load_fn *load)
{
    const size_t n = job->rows->n;
    for (size_t k = 0; k < n; k += KV_CHUNK) {
        const size_t end = n - k < KV_CHUNK ? n : k + KV_CHUNK;
        if (job->rows->n_parts == KV_PARTS) {
            kv_mix_chunk(job, k, end, KV_PARTS, size, load);
        } else {
            kv_mix_chunk(job, k, end, 1, size, load);
        }
    }
}

/* ---- by type ---- */

#define KV_SIMD(type, size, load)                                                                            \
    static void kv_widen_##type(float *out, const void *row, float scale, size_t hd)                         \
    {                                                                                                        \
        kv_widen_row(out, row, hd, size, load, scale);                                                       \
    }                                                                                                        \
    static void kv_dot_##type(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,      \
                              const kv_rows *rows)                                                           \
    {                                                                                                        \
        const kv_job job = {out, q, out_stride, q_stride, R, rows};                                          \
        kv_dot_all(&job, size, load);                                                                        \
    }                                                                                                        \
    static void kv_mix_##type(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,      \
                              const kv_rows *rows)                                                           \
    {                                                                                                        \
        const kv_job job = {out, p, out_stride, p_stride, R, rows};                                          \
        kv_mix_all(&job, size, load);                                                                        \
    }

KV_SIMD(f32, 4, kv_load_f32)
KV_SIMD(bf16, 2, v_widen_bf16)
KV_SIMD(f16, 2, v_widen_f16)

static void kv_widen_q8(float *out, const void *row, float scale, size_t hd)
{
    kv_widen_row(out, row, hd, 1, v_widen_i8, scale);
}

/* The specification itself packs q4: its sums have an order, and few rows are packed. */
static float kv_pack_q4(void *out, const float *x, size_t hd)
{
    return KV_OPS_GENERIC[KV_Q4].pack(out, x, hd);
}

static void kv_widen_q4(float *out, const void *row, float scale, size_t hd)
{
    const unsigned char *from = row;
    for (size_t i = 0; i < hd; i += KV_Q4_GROUP) {
        vec part[2];
        v_of_words(part, w_nibbles(from + i / 2));
        v_store_n(out + i, v_mul(part[0], v_set1(scale)), lanes_left(i, hd));
        if (i + LANES < hd) {
            v_store_n(out + i + LANES, v_mul(part[1], v_set1(scale)), lanes_left(i + LANES, hd));
        }
    }
}

/* All types but q8 and q4. */
#define KV_OPS_SIMD_FLOATS                                                                                   \
    {kv_pack_f32, kv_widen_f32, kv_dot_f32, kv_mix_f32},                                                     \
        {kv_pack_bf16, kv_widen_bf16, kv_dot_bf16, kv_mix_bf16},                                             \
    {                                                                                                        \
        kv_pack_f16, kv_widen_f16, kv_dot_f16, kv_mix_f16                                                    \
    }

static const kv_ops KV_OPS_SIMD[KV_TYPES] = {
    KV_OPS_SIMD_FLOATS,
    {kv_pack_q8, kv_widen_q8, kv_dot_q8, kv_mix_q8},
    {kv_pack_q4, kv_widen_q4, kv_dot_q4, kv_mix_q4},
};

#endif
