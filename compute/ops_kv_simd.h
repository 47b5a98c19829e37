/* ops_kv_simd: the kernels on packed keys and values, written once over vectors of 16 floats. Included after
 * ops_simd.h by one file an instruction set; every vector table gives the same bits.
 *
 *     enum { KV_R = 4, KV_N = 4, KV_V = 4 };
 *     #include "compute/ops_kv_simd.h"
 *
 * Wanted of the including file, beside what ops_simd.h wants: v_widen_i8 (16 signed bytes), v_narrow_bf16,
 * v_narrow_f16, v_narrow_i8 (16 numbers stored, rounded to the nearest, ties to even; a NaN stays one in 16 bits);
 * KV_R queries (4) against KV_N keys (1 or 4), or KV_V vectors of a value.
 */
#ifndef PARLEY_COMPUTE_OPS_KV_SIMD_H
#define PARLEY_COMPUTE_OPS_KV_SIMD_H

#include <assert.h>

#include "compute/ops_kv.h"

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

static void kv_pack_f32(void *out, const float *x, size_t hd)
{
    memcpy(out, x, hd * sizeof *x);
}

static void kv_pack_bf16(void *out, const float *x, size_t hd)
{
    kv_narrow_row(out, x, hd, 2, v_narrow_bf16, v_set1(1.0f), INFINITY);
}

static void kv_pack_f16(void *out, const float *x, size_t hd)
{
    kv_narrow_row(out, x, hd, 2, v_narrow_f16, v_set1(1.0f), 65504.0f);
}

/* Bytes of NaN are 127, as in the specification. */
static ALWAYS_INLINE void kv_narrow_byte(void *out, vec x)
{
    v_narrow_i8(out, v_min(x, v_set1(127.0f)));
}

static void kv_pack_q8(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    vec top = v_set1(0.0f);
    for (size_t i = 0; i < hd; i += LANES) {
        vec v = v_load_n(x + i, lanes_left(i, hd), 0.0f);
        top = v_max(v_max(v, v_sub(v_set1(0.0f), v)), top);
    }
    const float scale = v_top(top) / 127.0f;
    memset(to + hd, 0, kv_q8_scale_at(hd) - hd);
    kv_narrow_row(to, x, hd, 1, kv_narrow_byte, v_set1(scale > 0 ? scale : 1.0f), 127.0f);
    memcpy(to + kv_q8_scale_at(hd), &scale, sizeof scale);
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

static inline float kv_scale_of(const unsigned char *row, size_t hd)
{
    float scale;
    memcpy(&scale, row + kv_q8_scale_at(hd), sizeof scale);
    return scale;
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
    const unsigned char *rows;
    size_t out_stride, x_stride, row_bytes, R, n, hd;
} kv_job;

/* Rows are read one after another; memory is asked this far ahead. */
enum { KV_AHEAD = 2048, KV_LINE = 64 };

/* ---- dot ---- */

/* Terms i .. i+15 of the block. */
static ALWAYS_INLINE void kv_dot_step(const kv_job *job, vec acc[KV_R][KV_N], const float *q,
                                      const unsigned char *rows, size_t i, const size_t nr, const size_t nn,
                                      const size_t size, kv_load_fn *load)
{
    vec qv[KV_R];
    for (size_t r = 0; r < nr; r++) {
        qv[r] = v_load(q + r * job->x_stride + i);
    }
    for (size_t j = 0; j < nn; j++) {
        vec kv = load(rows + j * job->row_bytes + i * size);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = v_fma(qv[r], kv, acc[r][j]);
        }
    }
}

/* nr queries from r on against nn keys from j on; nr, nn, size and fetch are constants of the caller. */
static ALWAYS_INLINE void kv_dot_block(const kv_job *job, size_t r0, size_t j0, const size_t nr,
                                       const size_t nn, const size_t size, const bool fetch, kv_load_fn *load)
{
    const unsigned char *rows = job->rows + j0 * job->row_bytes;
    const float *q = job->x + r0 * job->x_stride;
    vec acc[KV_R][KV_N];
    for (size_t r = 0; r < nr; r++) {
        for (size_t j = 0; j < nn; j++) {
            acc[r][j] = v_set1(0.0f);
        }
    }
    const size_t step = KV_LINE / size; /* numbers of a line */
    size_t i = 0;
    for (; i + step <= job->hd; i += step) {
        for (size_t j = 0; fetch && j < nn; j++) {
            __builtin_prefetch(rows + j * job->row_bytes + i * size + KV_AHEAD, 0, 3);
        }
        for (size_t k = 0; k < step; k += LANES) {
            kv_dot_step(job, acc, q, rows, i + k, nr, nn, size, load);
        }
    }
    for (; i + LANES <= job->hd; i += LANES) {
        kv_dot_step(job, acc, q, rows, i, nr, nn, size, load);
    }
    const size_t left = job->hd - i;
    for (size_t j = 0; left && j < nn; j++) {
        vec kv = kv_load_last(rows + j * job->row_bytes + i * size, left, size, load);
        for (size_t r = 0; r < nr; r++) {
            acc[r][j] = v_fma(v_load_n(q + r * job->x_stride + i, left, 0.0f), kv, acc[r][j]);
        }
    }
    float *out = job->out + r0 * job->out_stride + j0;
    for (size_t r = 0; r < nr; r++) {
        if (nn == 4) {
            v_sum4(out + r * job->out_stride, acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
        } else {
            for (size_t j = 0; j < nn; j++) {
                out[r * job->out_stride + j] = v_sum(acc[r][j]);
            }
        }
    }
}

/* All queries against nn keys; the first block asks for the rows to come. */
static ALWAYS_INLINE void kv_dot_keys(const kv_job *job, size_t j, const size_t nn, const size_t size,
                                      kv_load_fn *load)
{
    size_t r = 0;
    if (job->R >= KV_R) {
        kv_dot_block(job, 0, j, KV_R, nn, size, true, load);
        for (r = KV_R; r + KV_R <= job->R; r += KV_R) {
            kv_dot_block(job, r, j, KV_R, nn, size, false, load);
        }
    }
    if (job->R - r >= 2) {
        kv_dot_block(job, r, j, 2, nn, size, true, load);
        r += 2;
    }
    if (job->R - r == 1) {
        kv_dot_block(job, r, j, 1, nn, size, true, load);
    }
}

static ALWAYS_INLINE void kv_dot_all(const kv_job *job, const size_t size, kv_load_fn *load)
{
    size_t j = 0;
    for (; j + KV_N <= job->n; j += KV_N) {
        kv_dot_keys(job, j, KV_N, size, load);
    }
    for (; j < job->n; j++) {
        kv_dot_keys(job, j, 1, size, load);
    }
}

/* ---- mix ---- */

/* nr rows x nv vectors of out from number i on; the last vector has `lanes` lanes. The first strip of a value asks for
 * the values to come, whole rows, because the other strips come back to them. */
static ALWAYS_INLINE void kv_mix_block(const kv_job *job, size_t r0, size_t i, const size_t nr,
                                       const size_t nv, size_t lanes, const size_t size, const bool fetch,
                                       kv_load_fn *load)
{
    float *out = job->out + r0 * job->out_stride + i;
    const float *p = job->x + r0 * job->x_stride;
    vec acc[KV_R][KV_V];
    for (size_t r = 0; r < nr; r++) {
        for (size_t v = 0; v < nv; v++) {
            acc[r][v] = v_load_n(out + r * job->out_stride + v * LANES, v + 1 < nv ? LANES : lanes, 0.0f);
        }
    }
    for (size_t j = 0; j < job->n; j++) {
        const unsigned char *row = job->rows + j * job->row_bytes;
        if (fetch) {
            for (size_t at = 0; at < job->row_bytes; at += KV_LINE) {
                __builtin_prefetch(row + KV_AHEAD + at, 0, 3);
            }
        }
        vec value[KV_V];
        for (size_t v = 0; v < nv; v++) {
            value[v] = kv_load_n(row + (i + v * LANES) * size, v + 1 < nv ? LANES : lanes, size, load);
        }
        for (size_t r = 0; r < nr; r++) {
            vec weight = v_set1(p[r * job->x_stride + j]);
            for (size_t v = 0; v < nv; v++) {
                acc[r][v] = v_fma(weight, value[v], acc[r][v]);
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
static ALWAYS_INLINE void kv_mix_rows(const kv_job *job, size_t r, const size_t nr, const size_t size,
                                      kv_load_fn *load)
{
    size_t i = 0;
    if (KV_V * LANES <= job->hd) {
        kv_mix_block(job, r, 0, nr, KV_V, LANES, size, true, load);
        i = KV_V * LANES;
    }
    for (; i + KV_V * LANES <= job->hd; i += KV_V * LANES) {
        kv_mix_block(job, r, i, nr, KV_V, LANES, size, false, load);
    }
    for (; i + LANES <= job->hd; i += LANES) {
        kv_mix_block(job, r, i, nr, 1, LANES, size, false, load);
    }
    if (i < job->hd) {
        kv_mix_block(job, r, i, nr, 1, job->hd - i, size, false, load);
    }
}

static ALWAYS_INLINE void kv_mix_all(const kv_job *job, const size_t size, kv_load_fn *load)
{
    size_t r = 0;
    for (; r + KV_R <= job->R; r += KV_R) {
        kv_mix_rows(job, r, KV_R, size, load);
    }
    if (job->R - r >= 2) {
        kv_mix_rows(job, r, 2, size, load);
        r += 2;
    }
    if (job->R - r == 1) {
        kv_mix_rows(job, r, 1, size, load);
    }
}

/* ---- by type ---- */

#define KV_SIMD(type, size, load)                                                                            \
    static void kv_widen_##type(float *out, const void *row, size_t hd)                                      \
    {                                                                                                        \
        kv_widen_row(out, row, hd, size, load, 1.0f);                                                        \
    }                                                                                                        \
    static void kv_dot_##type(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,      \
                              const void *rows, size_t row_bytes, size_t n, size_t hd)                       \
    {                                                                                                        \
        const kv_job job = {out, q, rows, out_stride, q_stride, row_bytes, R, n, hd};                        \
        kv_dot_all(&job, size, load);                                                                        \
    }                                                                                                        \
    static void kv_mix_##type(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,      \
                              const void *rows, size_t row_bytes, size_t n, size_t hd)                       \
    {                                                                                                        \
        const kv_job job = {out, p, rows, out_stride, p_stride, row_bytes, R, n, hd};                        \
        kv_mix_all(&job, size, load);                                                                        \
    }

KV_SIMD(f32, 4, kv_load_f32)
KV_SIMD(bf16, 2, v_widen_bf16)
KV_SIMD(f16, 2, v_widen_f16)

static void kv_widen_q8(float *out, const void *row, size_t hd)
{
    kv_widen_row(out, row, hd, 1, v_widen_i8, kv_scale_of(row, hd));
}

static void kv_dot_q8(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                      const void *rows, size_t row_bytes, size_t n, size_t hd)
{
    enum { KEYS = 64 };
    float scales[KEYS];
    for (size_t j0 = 0; j0 < n; j0 += KEYS) {
        const unsigned char *first = (const unsigned char *)rows + j0 * row_bytes;
        const size_t m = n - j0 < KEYS ? n - j0 : KEYS;
        const kv_job job = {out + j0, q, first, out_stride, q_stride, row_bytes, R, m, hd};
        kv_dot_all(&job, 1, v_widen_i8);
        for (size_t j = 0; j < m; j++) {
            scales[j] = kv_scale_of(first + j * row_bytes, hd);
        }
        for (size_t r = 0; r < R; r++) {
            for (size_t j = 0; j < m; j += LANES) {
                float *at = out + r * out_stride + j0 + j;
                const size_t lanes = lanes_left(j, m);
                v_store_n(at, v_mul(v_load_n(at, lanes, 0.0f), v_load_n(scales + j, lanes, 0.0f)), lanes);
            }
        }
    }
}

/* The scales go into the weights, a few rows and keys at a time. */
static void kv_mix_q8(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                      const void *rows, size_t row_bytes, size_t n, size_t hd)
{
    enum { KEYS = 64, QUERIES = 16 };
    float weights[QUERIES * KEYS];
    for (size_t j0 = 0; j0 < n; j0 += KEYS) {
        const unsigned char *first = (const unsigned char *)rows + j0 * row_bytes;
        const size_t m = n - j0 < KEYS ? n - j0 : KEYS;
        for (size_t r0 = 0; r0 < R; r0 += QUERIES) {
            const size_t nr = R - r0 < QUERIES ? R - r0 : QUERIES;
            for (size_t j = 0; j < m; j++) {
                const float scale = kv_scale_of(first + j * row_bytes, hd);
                for (size_t r = 0; r < nr; r++) {
                    weights[r * KEYS + j] = p[(r0 + r) * p_stride + j0 + j] * scale;
                }
            }
            const kv_job job = {
                out + r0 * out_stride, weights, first, out_stride, KEYS, row_bytes, nr, m, hd};
            kv_mix_all(&job, 1, v_widen_i8);
        }
    }
}

static const kv_ops KV_OPS_SIMD[KV_TYPES] = {
    {kv_pack_f32, kv_widen_f32, kv_dot_f32, kv_mix_f32},
    {kv_pack_bf16, kv_widen_bf16, kv_dot_bf16, kv_mix_bf16},
    {kv_pack_f16, kv_widen_f16, kv_dot_f16, kv_mix_f16},
    {kv_pack_q8, kv_widen_q8, kv_dot_q8, kv_mix_q8},
};

#endif
