/* The specification of the kernels on packed keys and values, in plain loops. */
#include "compute/ops_kv.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/half.h"

enum { LANES = 16 };

/* ---- f32, bf16, f16 ---- */

static void pack_f32(void *out, const float *x, size_t hd)
{
    memcpy(out, x, hd * sizeof *x);
}

static void pack_bf16(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    for (size_t i = 0; i < hd; i++) {
        uint16_t bits = bf16_from_f32(x[i]);
        memcpy(to + 2 * i, &bits, sizeof bits);
    }
}

static void pack_f16(void *out, const float *x, size_t hd)
{
    unsigned char *to = out;
    for (size_t i = 0; i < hd; i++) {
        uint16_t bits = f16_from_f32(x[i]);
        memcpy(to + 2 * i, &bits, sizeof bits);
    }
}

static float number_f32(const unsigned char *row, size_t i)
{
    float f;
    memcpy(&f, row + 4 * i, sizeof f);
    return f;
}

static float number_bf16(const unsigned char *row, size_t i)
{
    uint16_t bits;
    memcpy(&bits, row + 2 * i, sizeof bits);
    return bf16_to_f32(bits);
}

static float number_f16(const unsigned char *row, size_t i)
{
    uint16_t bits;
    memcpy(&bits, row + 2 * i, sizeof bits);
    return f16_to_f32(bits);
}

/* ---- q8 ---- */

static void pack_q8(void *out, const float *x, size_t hd)
{
    float top = 0;
    for (size_t i = 0; i < hd; i++) {
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    }
    const float scale = top / 127.0f, unit = scale > 0 ? scale : 1.0f;
    int8_t *to = out;
    for (size_t i = 0; i < hd; i++) {
        float v = x[i] / unit;
        v = v < 127.0f ? v : 127.0f; /* also instead of NaN */
        v = v > -127.0f ? v : -127.0f;
        to[i] = (int8_t)rintf(v);
    }
    memset(to + hd, 0, kv_q8_scale_at(hd) - hd);
    memcpy(to + kv_q8_scale_at(hd), &scale, sizeof scale);
}

static float number_byte(const unsigned char *row, size_t i)
{
    return (float)(int8_t)row[i];
}

static float scale_q8(const unsigned char *row, size_t hd)
{
    float scale;
    memcpy(&scale, row + kv_q8_scale_at(hd), sizeof scale);
    return scale;
}

static float scale_none(const unsigned char *row, size_t hd)
{
    (void)row;
    (void)hd;
    return 1.0f;
}

/* ---- all ---- */

typedef float number_fn(const unsigned char *row, size_t i);
typedef float scale_fn(const unsigned char *row, size_t hd);

static inline void widen_row(float *out, const void *row, size_t hd, number_fn *number, scale_fn *scale)
{
    for (size_t i = 0; i < hd; i++) {
        out[i] = number(row, i) * scale(row, hd);
    }
}

static inline float dot_row(const float *q, const unsigned char *row, size_t hd, number_fn *number)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < hd; i++) {
        lane[i % LANES] += q[i] * number(row, i);
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

static inline void dot_rows(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                            const kv_rows *rows, number_fn *number, scale_fn *scale)
{
    for (size_t k = 0; k < rows->n; k++) {
        const unsigned char *row = kv_row_at(rows, k);
        for (size_t r = 0; r < R; r++) {
            out[r * out_stride + k] = dot_row(q + r * q_stride, row, rows->hd, number) * scale(row, rows->hd);
        }
    }
}

static inline void mix_rows(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                            const kv_rows *rows, number_fn *number, scale_fn *scale)
{
    for (size_t k = 0; k < rows->n; k++) {
        const unsigned char *row = kv_row_at(rows, k);
        for (size_t r = 0; r < R; r++) {
            float f = p[r * p_stride + k] * scale(row, rows->hd);
            for (size_t i = 0; i < rows->hd; i++) {
                out[r * out_stride + i] += f * number(row, i);
            }
        }
    }
}

/* The three functions of a type from its number and scale. */
#define KV_GENERIC(type, number, scale)                                                                      \
    static void widen_##type(float *out, const void *row, size_t hd)                                         \
    {                                                                                                        \
        widen_row(out, row, hd, number, scale);                                                              \
    }                                                                                                        \
    static void dot_##type(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,         \
                           const kv_rows *rows)                                                              \
    {                                                                                                        \
        dot_rows(out, out_stride, q, q_stride, R, rows, number, scale);                                      \
    }                                                                                                        \
    static void mix_##type(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,         \
                           const kv_rows *rows)                                                              \
    {                                                                                                        \
        mix_rows(out, out_stride, p, p_stride, R, rows, number, scale);                                      \
    }

KV_GENERIC(f32, number_f32, scale_none)
KV_GENERIC(bf16, number_bf16, scale_none)
KV_GENERIC(f16, number_f16, scale_none)
KV_GENERIC(q8, number_byte, scale_q8)

const kv_ops KV_OPS_GENERIC[KV_TYPES] = {
    {pack_f32, widen_f32, dot_f32, mix_f32},
    {pack_bf16, widen_bf16, dot_bf16, mix_bf16},
    {pack_f16, widen_f16, dot_f16, mix_f16},
    {pack_q8, widen_q8, dot_q8, mix_q8},
};
