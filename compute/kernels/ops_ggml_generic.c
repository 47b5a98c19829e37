#include "compute/kernels/ops_ggml.h"

#include <math.h>

#include "compute/kernels/generic.h"

enum { GROUP = 64, BLOCK = 32 };

static size_t span_columns(size_t K, size_t at)
{
    return K - at < GGML_SPAN ? K - at : GGML_SPAN;
}

/* A span's share of every lane; at is its first column. */
static void add_span(float lane[LANES], const ggml_format *f, const ggml_span *s, const quant_x *x, size_t at,
                     size_t n)
{
    const size_t first = at / BLOCK;
    for (size_t b = 0; f->minimum == 32 && b < GGML_SPAN / BLOCK; b++) {
        lane[b] = fmaf(s->minimum[2 * b], x->sum[first + b], lane[b]);
    }
    for (size_t i = 0; i < (n + GROUP - 1) / GROUP * GROUP; i += 4) {
        const size_t l = i / 4 % LANES, part = i / GGML_PART;
        const float x_scale = x->scale[first + i / BLOCK];
        int sum = 0, product = 0;
        for (size_t j = i; j < i + 4; j++) {
            sum += x->q[at + j];
            product += x->q[at + j] * (s->u[j] - f->zero);
        }
        if (f->minimum == 16) {
            lane[l] = fmaf((float)sum, s->minimum[part] * x_scale, lane[l]);
        }
        lane[l] = fmaf((float)product, s->scale[part] * x_scale, lane[l]);
    }
}

static void dot_rows(dtype type, float *out, size_t out_stride, const void *x, size_t T, const void *w,
                     size_t N, size_t K)
{
    const ggml_format *f = ggml_format_of(type);
    ggml_span s;
    for (size_t n = 0; n < N; n++) {
        const uint8_t *row = (const uint8_t *)w + n * ggml_row_bytes(type, K);
        for (size_t t = 0; t < T; t++) {
            const quant_x xt = quant_x_at(x, K, t);
            float lane[LANES] = {0};
            for (size_t at = 0; at < K; at += GGML_SPAN) {
                ggml_unpack(&s, type, row + at / GGML_SPAN * ggml_span_bytes(f), span_columns(K, at));
                add_span(lane, f, &s, &xt, at, span_columns(K, at));
            }
            out[t * out_stride + n] = add_lanes(lane);
        }
    }
}

static void widen_row(dtype type, float *out, const void *row, size_t K)
{
    const ggml_format *f = ggml_format_of(type);
    ggml_span s;
    for (size_t at = 0; at < K; at += GGML_SPAN) {
        ggml_unpack(&s, type, (const uint8_t *)row + at / GGML_SPAN * ggml_span_bytes(f),
                    span_columns(K, at));
        for (size_t i = 0; i < span_columns(K, at); i++) {
            out[at + i] = fmaf(s.scale[i / GGML_PART], (float)(s.u[i] - f->zero), s.minimum[i / GGML_PART]);
        }
    }
}

static void unpack_row(dtype type, uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    const ggml_format *f = ggml_format_of(type);
    const size_t columns = quant_columns(K), of_scale = ggml_has_halves(type) ? GGML_PART : BLOCK;
    ggml_span s;
    for (size_t at = 0; at < columns; at += GGML_SPAN) {
        ggml_unpack(&s, type, (const uint8_t *)row + at / GGML_SPAN * ggml_span_bytes(f),
                    span_columns(K, at));
        for (size_t i = 0; i < span_columns(columns, at); i++) {
            u[at + i] = (uint8_t)(s.u[i] + (f->minimum ? 0 : 128 - f->zero));
            scale[(at + i) / of_scale] = s.scale[i / GGML_PART];
            if (f->minimum) {
                minimum[(at + i) / BLOCK] = s.minimum[i / GGML_PART];
            }
        }
    }
}

#define DEFINE(NAME)                                                                                         \
    GGML_DEFINE_DOT(NAME)                                                                                    \
    static void widen_##NAME(float *out, const void *row, size_t K)                                          \
    {                                                                                                        \
        widen_row(DTYPE_##NAME, out, row, K);                                                                \
    }                                                                                                        \
    static void unpack_##NAME(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)           \
    {                                                                                                        \
        unpack_row(DTYPE_##NAME, u, scale, minimum, row, K);                                                 \
    }
GGML_FOR_ALL(DEFINE)

#define MEMBER(NAME) [DTYPE_##NAME - DTYPE_Q8_0] = {dot_##NAME, widen_##NAME, unpack_##NAME},
const ggml_kernels ggml_kernels_generic[GGML_TYPES] = {GGML_FOR_ALL(MEMBER)};
