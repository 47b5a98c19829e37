/* ggml_pack: rows in the block types of GGUF files, packed by plain code of its own, together with
 * the numbers that they stand for. One thread. Coarse rounding, but every field of every type is
 * used.
 *
 *     ggml_pack(row, kept, DTYPE_Q4_K, w, K);   // kept[k]: what column k of the row means
 */
#ifndef PARLEY_TESTS_COMPUTE_FORMATS_GGML_PACK_H
#define PARLEY_TESTS_COMPUTE_FORMATS_GGML_PACK_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/formats/ggml_blocks.h"
#include "compute/formats/half.h"

static const int PACK_IQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int PACK_FP4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline float pack_half(uint8_t *at, float x)
{
    uint16_t bits = f16_from_f32(x);
    at[0] = (uint8_t)bits;
    at[1] = (uint8_t)(bits >> 8);
    return f16_to_f32(bits);
}

/* The least and the most of n numbers. */
static inline void pack_range(const float *w, size_t n, float *least, float *most)
{
    *least = *most = w[0];
    for (size_t i = 1; i < n; i++) {
        *least = fminf(*least, w[i]);
        *most = fmaxf(*most, w[i]);
    }
}

static inline float pack_largest(const float *w, size_t n)
{
    float least, most;
    pack_range(w, n, &least, &most);
    return fmaxf(fabsf(least), fabsf(most));
}

static inline int pack_round(float x, int least, int most)
{
    float r = rintf(x);
    return r < (float)least ? least : r > (float)most ? most : (int)r;
}

static inline int pack_nearest(const int *table, float x)
{
    int best = 0;
    for (int i = 1; i < 16; i++) {
        best = fabsf(x - (float)table[i]) < fabsf(x - (float)table[best]) ? i : best;
    }
    return best;
}

static inline float pack_over(float x, float scale)
{
    return scale != 0 ? x / scale : 0;
}

static inline float pack_bf16(uint8_t *p, float value)
{
    const uint16_t bits = bf16_from_f32(value);
    memcpy(p, &bits, sizeof bits);
    return bf16_to_f32(bits);
}

/* A block of 32 columns. */
static inline void pack_32(uint8_t *p, float *kept, dtype type, const float *w)
{
    const float largest = pack_largest(w, 32);
    float least, most, d = 0, m = 0;
    pack_range(w, 32, &least, &most);
    switch (type) {
    case DTYPE_Q8_0:
        d = pack_half(p, largest / 127);
        break;
    case DTYPE_Q4_0:
        d = pack_half(p, largest / 7);
        break;
    case DTYPE_Q5_0:
        d = pack_half(p, -largest / 15); /* scales may be negative */
        break;
    case DTYPE_IQ4_NL:
        d = pack_half(p, largest / 113);
        break;
    case DTYPE_MXFP4:
        p[0] = (uint8_t)(largest > 0 ? 128 + (int)ceilf(log2f(largest / 12)) : 0);
        d = ldexpf(1, p[0] - 128);
        break;
    case DTYPE_AF4:
        d = pack_bf16(p, (most - least) / 15);
        m = pack_bf16(p + 2, least);
        break;
    case DTYPE_AF8:
        d = (most - least) / 255;
        m = least;
        memcpy(p, &d, sizeof d);
        memcpy(p + 4, &m, sizeof m);
        break;
    default: /* q4_1, q5_1 */
        d = pack_half(p, (most - least) / (type == DTYPE_Q4_1 ? 15 : 31));
        m = pack_half(p + 2, least);
    }
    uint8_t *five = p + (type == DTYPE_Q5_0 ? 2 : 4);
    uint8_t *nibbles = p + (type == DTYPE_Q5_0    ? 6
                            : type == DTYPE_Q5_1  ? 8
                            : type == DTYPE_Q4_1  ? 4
                            : type == DTYPE_AF4   ? 4
                            : type == DTYPE_MXFP4 ? 1
                                                  : 2);
    for (int j = 0; j < 32; j++) {
        const float x = pack_over(w[j] - m, d);
        int code = 0, value = 0;
        switch (type) {
        case DTYPE_Q8_0:
            value = pack_round(x, -128, 127);
            p[2 + j] = (uint8_t)(value & 255);
            kept[j] = d * (float)value;
            continue;
        case DTYPE_AF8:
            value = pack_round(x, 0, 255);
            p[8 + j] = (uint8_t)value;
            kept[j] = fmaf(d, (float)value, m);
            continue;
        case DTYPE_Q4_0:
            value = pack_round(x, -8, 7);
            code = value + 8;
            break;
        case DTYPE_Q5_0:
            value = pack_round(x, -16, 15);
            code = value + 16;
            break;
        case DTYPE_IQ4_NL:
            code = pack_nearest(PACK_IQ4, x);
            value = PACK_IQ4[code];
            break;
        case DTYPE_MXFP4:
            code = pack_nearest(PACK_FP4, x);
            value = PACK_FP4[code];
            break;
        default:
            value = code = pack_round(x, 0, type == DTYPE_Q5_1 ? 31 : 15);
        }
        if (code > 15) {
            five[j / 8] = (uint8_t)(five[j / 8] | 1 << j % 8);
        }
        nibbles[j % 16] = (uint8_t)(nibbles[j % 16] | (code & 15) << (j < 16 ? 0 : 4));
        kept[j] = fmaf(d, (float)value, m);
    }
}

/* What a part of a block of 256 columns was given. */
typedef struct pack_part {
    int s, t; /* scale and minimum as stored */
    float scale, minimum;
} pack_part;

/* Writes the whole numbers s, t of part i of a block. */
static inline void pack_scales(uint8_t *p, dtype type, int i, int s, int t)
{
    uint8_t *q = type == DTYPE_Q3_K ? p + 96 : p + 4; /* the 12 bytes of q3_k, q4_k, q5_k */
    switch (type) {
    case DTYPE_Q2_K:
        p[i] = (uint8_t)(s | t << 4);
        break;
    case DTYPE_Q3_K:
        s += 32;
        q[i & 7] = (uint8_t)(q[i & 7] | (s & 15) << (i > 7 ? 4 : 0));
        q[8 + (i & 3)] = (uint8_t)(q[8 + (i & 3)] | (s >> 4) << (i >> 2) * 2);
        break;
    case DTYPE_Q6_K:
        p[192 + i] = (uint8_t)(s & 255);
        break;
    case DTYPE_IQ4_XS:
        s += 32;
        p[4 + i / 2] = (uint8_t)(p[4 + i / 2] | (s & 15) << i % 2 * 4);
        p[2 + i / 4] = (uint8_t)(p[2 + i / 4] | (s >> 4) << i % 4 * 2);
        break;
    default: /* q4_k, q5_k */
        if (i < 4) {
            q[i] = (uint8_t)(q[i] | s);
            q[i + 4] = (uint8_t)(q[i + 4] | t);
        } else {
            q[i + 4] = (uint8_t)((s & 15) | (t & 15) << 4);
            q[i - 4] = (uint8_t)(q[i - 4] | (s >> 4) << 6);
            q[i] = (uint8_t)(q[i] | (t >> 4) << 6);
        }
    }
}

/* Writes the code of column i. */
static inline void pack_code(uint8_t *p, dtype type, int i, int code)
{
    const int half = i / 128, row = i % 128 / 32, l = i % 32, block = i / 32;
    int two = half * 32 + l, at = 0, shift = block % 2 * 4;
    switch (type) {
    case DTYPE_Q2_K:
        p[16 + two] = (uint8_t)(p[16 + two] | code << 2 * row);
        return;
    case DTYPE_Q3_K:
        p[32 + two] = (uint8_t)(p[32 + two] | (code & 3) << 2 * row);
        p[l] = (uint8_t)(p[l] | code >> 2 << block);
        return;
    case DTYPE_Q4_K:
        at = 16 + block / 2 * 32 + l;
        break;
    case DTYPE_Q5_K:
        at = 48 + block / 2 * 32 + l;
        p[16 + l] = (uint8_t)(p[16 + l] | code >> 4 << block);
        break;
    case DTYPE_Q6_K:
        at = 64 * half + 32 * (row & 1) + l;
        shift = row >> 1 << 2;
        p[128 + two] = (uint8_t)(p[128 + two] | code >> 4 << 2 * row);
        break;
    default: /* iq4_xs */
        at = 8 + 16 * block + l % 16;
        shift = l < 16 ? 0 : 4;
    }
    p[at] = (uint8_t)(p[at] | (code & 15) << shift);
}

/* A block of 256 columns. */
static inline void pack_256(uint8_t *p, float *kept, dtype type, const float *w)
{
    const bool sixteen = type == DTYPE_Q2_K || type == DTYPE_Q3_K || type == DTYPE_Q6_K;
    const bool minima = type == DTYPE_Q2_K || type == DTYPE_Q4_K || type == DTYPE_Q5_K;
    const int width = sixteen ? 16 : 32, top = type == DTYPE_Q2_K ? 3 : type == DTYPE_Q4_K ? 15 : 31;
    const int s_max = type == DTYPE_Q2_K ? 15 : minima ? 63 : type == DTYPE_Q6_K ? 127 : 31;
    const int reach = type == DTYPE_Q3_K   ? 3
                      : type == DTYPE_Q6_K ? 31
                                           : 113; /* of the types without minima */
    const int d_at = type == DTYPE_Q2_K ? 80 : type == DTYPE_Q3_K ? 108 : type == DTYPE_Q6_K ? 208 : 0;
    float least[16], want[16], largest = 0, deepest = 0, most;
    for (int i = 0; i < 256 / width; i++) {
        pack_range(w + i * width, (size_t)width, &least[i], &most);
        least[i] = minima ? fminf(least[i], 0) : 0;
        want[i] = minima ? (most - least[i]) / (float)top
                         : pack_largest(w + i * width, (size_t)width) / (float)reach;
        want[i] *= !minima && i % 3 == 2 ? -1.0f : 1.0f;
        largest = fmaxf(largest, fabsf(want[i]));
        deepest = fmaxf(deepest, -least[i]);
    }
    const float d = pack_half(p + d_at, largest / (float)s_max);
    const float m = minima ? pack_half(p + d_at + 2, deepest / (float)s_max) : 0;
    for (int i = 0; i < 256 / width; i++) {
        const int s = pack_round(pack_over(want[i], d), minima ? 0 : -s_max - 1, s_max);
        const int t = pack_round(pack_over(-least[i], m), 0, s_max);
        const float scale = d * (float)s, minimum = -(m * (float)t);
        pack_scales(p, type, i, s, t);
        for (int j = i * width; j < (i + 1) * width; j++) {
            const float x = pack_over(w[j] - minimum, scale);
            int value = 0, code = 0;
            if (minima) {
                value = code = pack_round(x, 0, top);
            } else if (type == DTYPE_IQ4_XS) {
                code = pack_nearest(PACK_IQ4, x);
                value = PACK_IQ4[code];
            } else {
                value = pack_round(x, -reach - 1, reach);
                code = value + reach + 1;
            }
            pack_code(p, type, j, code);
            kept[j] = fmaf(scale, (float)value, minimum);
        }
    }
}

/* One row: K is a whole number of blocks. */
static inline void ggml_pack(void *row, float *kept, dtype type, const float *w, size_t K)
{
    const ggml_format *f = ggml_format_of(type);
    memset(row, 0, ggml_row_bytes(type, K));
    for (size_t k = 0; k < K; k += f->columns) {
        uint8_t *p = (uint8_t *)row + k / f->columns * f->bytes;
        (f->columns == 32 ? pack_32 : pack_256)(p, kept + k, type, w + k);
    }
}

#endif
