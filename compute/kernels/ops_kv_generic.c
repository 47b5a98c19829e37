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
    KV_BY_TYPE(dot_##type, mix_##type, dot_rows, mix_rows, number)

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

static int32_t whole_byte(const unsigned char *row, size_t i)
{
    return (int8_t)row[i];
}

static float number_byte(const unsigned char *row, size_t i)
{
    return (float)whole_byte(row, i);
}

static void widen_q8(float *out, const void *row, float scale, size_t hd)
{
    widen_row(out, row, scale, hd, number_byte);
}

/* ---- q4 ---- */

static size_t nibble_byte(size_t i)
{
    return i / KV_Q4_GROUP * (KV_Q4_GROUP / 2) + 2 * (i % 8) + i % KV_Q4_GROUP / 16;
}

static int32_t whole_nibble(const unsigned char *row, size_t i)
{
    return KV_Q4_NUMBERS[row[nibble_byte(i)] >> (i / 8 % 2 * 4) & 15];
}

static float number_nibble(const unsigned char *row, size_t i)
{
    return (float)whole_nibble(row, i);
}

static void widen_q4(float *out, const void *row, float scale, size_t hd)
{
    widen_row(out, row, scale, hd, number_nibble);
}

/* x / unit and the sum of its squares; returns the latter. */
static float in_units(float *out, const float *x, size_t hd, float unit)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < hd; i++) {
        out[i] = x[i] / unit;
        lane[i % LANES] += out[i] * out[i];
    }
    return add_lanes(lane);
}

/* The levels nearest to x in steps of `step`, of which the numbers are KV_Q4_NUMBERS. */
static void nearest_levels(uint8_t *levels, const float *x, size_t hd, float step)
{
    float between[KV_Q4_LEVELS - 1];
    for (size_t j = 0; j + 1 < KV_Q4_LEVELS; j++) {
        between[j] = (float)(KV_Q4_NUMBERS[j] + KV_Q4_NUMBERS[j + 1]) / 2 * step;
    }
    for (size_t i = 0; i < hd; i++) {
        uint8_t level = 0;
        for (size_t j = 0; j + 1 < KV_Q4_LEVELS; j++) {
            level = (uint8_t)(level + (x[i] >= between[j]));
        }
        levels[i] = level;
    }
}

/* The sum of x[i] times the number of levels[i]; *weight takes in the squares of those numbers. */
static float in_levels(const uint8_t *levels, const float *x, size_t hd, int64_t *weight)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < hd; i++) {
        const int number = KV_Q4_NUMBERS[levels[i]];
        lane[i % LANES] += x[i] * (float)number;
        *weight += number * number;
    }
    return add_lanes(lane);
}

/* The levels are chosen for the numbers' standard deviation, then the scale for the levels: the one
 * of the least squared error. Rows that are not finite get an infinite scale. */
static float pack_q4(void *out, const float *x, size_t hd)
{
    enum { AT_ONCE = 256 };
    unsigned char *row = out;
    float top = 0, y[AT_ONCE], squares = 0, products = 0;
    uint8_t levels[AT_ONCE];
    int64_t weight = 0;
    memset(row, 0, kv_row_bytes(KV_Q4, hd));
    for (size_t i = 0; i < hd; i++) {
        top = larger_magnitude(top, x[i]);
    }
    const float unit = top > KV_Q8_LEAST ? top : 1.0f;
    for (size_t at = 0; at < hd; at += AT_ONCE) {
        squares += in_units(y, x + at, hd - at < AT_ONCE ? hd - at : AT_ONCE, unit);
    }
    const float step = 2.733f / 127.0f * sqrtf(squares / (float)hd);
    for (size_t at = 0; at < hd; at += AT_ONCE) {
        const size_t n = hd - at < AT_ONCE ? hd - at : AT_ONCE;
        (void)in_units(y, x + at, n, unit);
        nearest_levels(levels, y, n, step);
        products += in_levels(levels, y, n, &weight);
        for (size_t i = 0; i < n; i++) {
            row[nibble_byte(at + i)] |= (unsigned char)(levels[i] << (i / 8 % 2 * 4));
        }
    }
    if (!isfinite(squares) || !isfinite(top)) {
        return INFINITY;
    }
    return top > KV_Q8_LEAST ? products / (float)weight * unit : 0.0f;
}

/* ---- products with q8 and q4 ---- */

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

typedef int32_t whole_fn(const unsigned char *row, size_t i);

static inline void dot_whole(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                             const kv_rows *rows, whole_fn *whole)
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
                sum += whole(row, i) * in_steps(&s, x[i]);
            }
            out[r * out_stride + k] = (float)sum * (s.unit * kv_scale_at(rows, k));
        }
    }
}

/* One query's out takes in rows k0 .. k1-1. */
static inline void mix_some(float *out, const float *p, const kv_rows *rows, size_t k0, size_t k1,
                            whole_fn *whole)
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
            sum += whole(row, i) * in_steps(&s, p[k] * kv_scale_at(rows, k));
        }
        out[i] += (float)sum * s.unit;
    }
}

static inline void mix_whole(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                             const kv_rows *rows, whole_fn *whole)
{
    for (size_t r = 0; r < R; r++) {
        for (size_t k = 0; k < rows->n; k += KV_Q8_ROWS) {
            const size_t end = rows->n - k < KV_Q8_ROWS ? rows->n : k + KV_Q8_ROWS;
            mix_some(out + r * out_stride, p + r * p_stride, rows, k, end, whole);
        }
    }
}

KV_BY_TYPE(dot_q8, mix_q8, dot_whole, mix_whole, whole_byte)
KV_BY_TYPE(dot_q4, mix_q4, dot_whole, mix_whole, whole_nibble)

/* ---- attention in 8 bits ---- */

/* 2^t as attend_q in ops.h defines it. */
static float power_of_two(float t)
{
    enum { MOST = 200 }; /* beyond, a float is 0 or infinite */
    const float whole = rintf(t), f = t - whole, i = whole > -MOST ? whole : -MOST;
    return ldexpf(fmaf(fmaf(fmaf(ATTEND_C3, f, ATTEND_C2), f, ATTEND_C1), f, 1.0f), i < MOST ? (int)i : MOST);
}

static float panel_factor(float top, float most, float scale)
{
    const float t = (top - most) * scale;
    return power_of_two(t > -ATTEND_LEAST ? t : -ATTEND_LEAST);
}

/* One query of attend_q: lane l. */
static void attend_lane(attend_queries *to, const attend_keys *keys, size_t l)
{
    enum { PANELS = ATTEND_KEYS / ATTEND_PANEL };
    const uint8_t *q = (const uint8_t *)to->q;
    const int8_t *k_q = (const int8_t *)keys->k, *v_q = (const int8_t *)keys->v;
    const size_t words = (keys->hd + 3) / 4;
    const float scale = to->scale[l];
    float scores[ATTEND_KEYS], tops[PANELS], most = to->max[l];
    int32_t weights[ATTEND_KEYS];
    for (size_t k = 0; k < keys->n; k++) {
        int32_t s = keys->k_offset[k];
        for (size_t i = 0; i < 4 * words; i++) {
            const size_t word = k / ATTEND_SIDE * words + i / 4;
            s += q[(i / 4 * ATTEND_SIDE + l) * 4 + i % 4] *
                 k_q[(word * ATTEND_SIDE + k % ATTEND_SIDE) * 4 + i % 4];
        }
        scores[k] = (float)s * keys->k_scale[k];
        float *top = &tops[k / ATTEND_PANEL];
        *top = k % ATTEND_PANEL == 0 || scores[k] > *top ? scores[k] : *top;
        most = scores[k] > most ? scores[k] : most;
    }
    const float kept = panel_factor(to->max[l], most, scale);
    to->max[l] = most;
    to->sum[l] *= kept;
    for (size_t p = 0; p * ATTEND_PANEL < keys->n; p++) {
        const float shift = fmaf(-tops[p], scale, ATTEND_TOP);
        int32_t total = 0;
        for (size_t k = p * ATTEND_PANEL; k < keys->n && k < (p + 1) * ATTEND_PANEL; k++) {
            const float weight = rintf(power_of_two(fmaf(scores[k], scale, shift)));
            weights[k] = weight < 255.0f ? (int32_t)weight : 255;
            total += weights[k];
        }
        tops[p] = panel_factor(tops[p], most, scale);
        to->sum[l] = fmaf((float)total, tops[p], to->sum[l]);
    }
    for (size_t d = 0; d < keys->hd; d++) {
        float sum = 0;
        for (size_t p = 0; p * ATTEND_PANEL < keys->n; p++) {
            int32_t part = 0;
            for (size_t k = p * ATTEND_PANEL; k < keys->n && k < (p + 1) * ATTEND_PANEL; k++) {
                const size_t word = d / ATTEND_COLUMNS * (ATTEND_KEYS / 4) + k / 4;
                part += weights[k] * v_q[(word * ATTEND_COLUMNS + d % ATTEND_COLUMNS) * 4 + k % 4];
            }
            sum = fmaf((float)part, tops[p], sum);
        }
        float *mix = &to->mix[d * ATTEND_SIDE + l];
        *mix = fmaf(sum, keys->v_scale[d], *mix * kept);
    }
}

void attend_q_generic(attend_queries *to, const attend_keys *keys)
{
    for (size_t l = 0; l < ATTEND_SIDE; l++) {
        attend_lane(to, keys, l);
    }
}

const kv_ops KV_OPS_GENERIC[KV_TYPES] = {
    {pack_f32, widen_f32, dot_f32, mix_f32}, {pack_bf16, widen_bf16, dot_bf16, mix_bf16},
    {pack_f16, widen_f16, dot_f16, mix_f16}, {pack_q8, widen_q8, dot_q8, mix_q8},
    {pack_q4, widen_q4, dot_q4, mix_q4},
};
