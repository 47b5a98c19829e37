/* The specification of the kernels on packed keys and values, in plain loops. */
#include "compute/kernels/ops_kv.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/kernels/generic.h"
#include "compute/formats/half.h"

/* ---- f32, bf16, f16 ---- */

static float pack_f32(void *out, const float *x, size_t hd)
{
    memcpy(out, x, hd * sizeof *x);
    return 1.0f;
}

static float pack_bf16(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    for (size_t i = 0; i < hd; i++) {
        bf16_put(to + 2 * i, x[i]);
    }
    return 1.0f;
}

static float pack_f16(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    for (size_t i = 0; i < hd; i++) {
        f16_put(to + 2 * i, x[i]);
    }
    return 1.0f;
}

static float number_f32(const unsigned char *row, size_t i)
{
    float f;
    memcpy(&f, row + 4 * i, sizeof f);
    return f;
}

static float number_bf16(const unsigned char *row, size_t i)
{
    return bf16_at(row + 2 * i);
}

static float number_f16(const unsigned char *row, size_t i)
{
    return f16_at(row + 2 * i);
}

typedef float number_fn(const unsigned char *row, size_t i);
static inline void widen_row(float *out, const void *row, float scale, size_t hd, number_fn *number)
{
    for (size_t i = 0; i < hd; i++) {
        out[i] = number(row, i) * scale;
    }
}

static inline float dot_row(const float *q, const unsigned char *row, size_t hd, number_fn *number)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < hd; i++) {
        lane[i % LANES] += q[i] * number(row, i);
    }
    return add_lanes(lane);
}

static inline void dot_rows(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                            const kv_rows *rows, number_fn *number)
{
    for (size_t k = 0; k < rows->n; k++) {
        const unsigned char *row = kv_row_at(rows, k);
        for (size_t r = 0; r < R; r++) {
            out[r * out_stride + k] = dot_row(q + r * q_stride, row, rows->hd, number);
        }
    }
}

static inline void mix_rows(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                            const kv_rows *rows, number_fn *number)
{
    for (size_t k = 0; k < rows->n; k++) {
        const unsigned char *row = kv_row_at(rows, k);
        for (size_t r = 0; r < R; r++) {
            float f = p[r * p_stride + k];
            for (size_t i = 0; i < rows->hd; i++) {
                out[r * out_stride + i] += f * number(row, i);
            }
        }
    }
}

/* The functions of a type from its number. */
#define KV_GENERIC(type, number)                                                                             \
    static void widen_##type(float *out, const void *row, float scale, size_t hd)                            \
    {                                                                                                        \
        widen_row(out, row, scale, hd, number);                                                              \
    }                                                                                                        \
    static void dot_##type(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,         \
                           const kv_rows *rows)                                                              \
    {                                                                                                        \
        dot_rows(out, out_stride, q, q_stride, R, rows, number);                                             \
    }                                                                                                        \
    static void mix_##type(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,         \
                           const kv_rows *rows)                                                              \
    {                                                                                                        \
        mix_rows(out, out_stride, p, p_stride, R, rows, number);                                             \
    }

KV_GENERIC(f32, number_f32)
KV_GENERIC(bf16, number_bf16)
KV_GENERIC(f16, number_f16)

/* ---- q8 ---- */

static float larger_magnitude(float top, float x)
{
    return fabsf(x) > top ? fabsf(x) : top;
}

static float pack_q8(void *out, const float *x, size_t hd)
{
    float top = 0;
    for (size_t i = 0; i < hd; i++) {
        top = larger_magnitude(top, x[i]);
    }
    const float scale = top / 127.0f, unit = scale > 0 ? scale : 1.0f;
    int8_t *to = out;
    for (size_t i = 0; i < hd; i++) {
        float v = x[i] / unit;
        v = v < 127.0f ? v : 127.0f; /* also instead of NaN */
        v = v > -127.0f ? v : -127.0f;
        to[i] = (int8_t)rintf(v);
    }
    memset(to + hd, 0, kv_row_bytes(KV_Q8, hd) - hd);
    return scale;
}

static float number_byte(const unsigned char *row, size_t i)
{
    return (float)(int8_t)row[i];
}

static void widen_q8(float *out, const void *row, float scale, size_t hd)
{
    widen_row(out, row, scale, hd, number_byte);
}

/* How floats become whole numbers (ops_kv.h). */
typedef struct steps {
    float limit, inverse; /* steps in 1 */
    float unit;           /* of a step */
} steps;

static steps steps_of(float top, int limit)
{
    return (steps){.limit = (float)limit,
                   .inverse = top > KV_Q8_LEAST ? (float)limit / top : 0,
                   .unit = top / (float)limit};
}

static int32_t in_steps(const steps *s, float x)
{
    float v = x * s->inverse;
    v = v < s->limit ? v : s->limit; /* also instead of NaN */
    v = v > -s->limit ? v : -s->limit;
    return (int32_t)rintf(v);
}

static void dot_q8(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                   const kv_rows *rows)
{
    const size_t hd = rows->hd;
    for (size_t r = 0; r < R; r++) {
        const float *x = q + r * q_stride;
        float top = 0;
        for (size_t i = 0; i < hd; i++) {
            top = larger_magnitude(top, x[i]);
        }
        const steps s = steps_of(top, kv_q8_query_limit(hd));
        for (size_t k = 0; k < rows->n; k++) {
            const unsigned char *row = kv_row_at(rows, k);
            int32_t sum = 0;
            for (size_t i = 0; i < hd; i++) {
                sum += (int8_t)row[i] * in_steps(&s, x[i]);
            }
            out[r * out_stride + k] = (float)sum * (s.unit * kv_scale_at(rows, k));
        }
    }
}

/* One query's out takes in rows k0 .. k1-1. */
static void mix_some_q8(float *out, const float *p, const kv_rows *rows, size_t k0, size_t k1)
{
    const size_t hd = rows->hd;
    float top = 0;
    for (size_t k = k0; k < k1; k++) {
        top = larger_magnitude(top, p[k] * kv_scale_at(rows, k));
    }
    const steps s = steps_of(top, KV_Q8_WEIGHT_LIMIT);
    for (size_t i = 0; i < hd; i++) {
        int32_t sum = 0;
        for (size_t k = k0; k < k1; k++) {
            const unsigned char *row = kv_row_at(rows, k);
            sum += (int8_t)row[i] * in_steps(&s, p[k] * kv_scale_at(rows, k));
        }
        out[i] += (float)sum * s.unit;
    }
}

static void mix_q8(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                   const kv_rows *rows)
{
    for (size_t r = 0; r < R; r++) {
        for (size_t k = 0; k < rows->n; k += KV_Q8_ROWS) {
            const size_t end = rows->n - k < KV_Q8_ROWS ? rows->n : k + KV_Q8_ROWS;
            mix_some_q8(out + r * out_stride, p + r * p_stride, rows, k, end);
        }
    }
}

const kv_ops KV_OPS_GENERIC[KV_TYPES] = {
    {pack_f32, widen_f32, dot_f32, mix_f32},
    {pack_bf16, widen_bf16, dot_bf16, mix_bf16},
    {pack_f16, widen_f16, dot_f16, mix_f16},
    {pack_q8, widen_q8, dot_q8, mix_q8},
};
