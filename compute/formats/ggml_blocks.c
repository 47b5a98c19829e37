#include "compute/formats/ggml_blocks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/formats/half.h"

enum { BLOCK = 32 };

/* -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113 */
const uint8_t ggml_iq4_table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
/* twice 0 .5 1 1.5 2 3 4 6, then their negatives */
const uint8_t ggml_mxfp4_table[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

static unsigned nibble(const uint8_t *bytes16, size_t j)
{
    return bytes16[j % 16] >> (j < 16 ? 0 : 4) & 15u;
}

/* Block b of 32 columns of a span. */
static void unpack_32(ggml_span *out, dtype type, const uint8_t *p, size_t b)
{
    uint8_t *u = out->u + b * BLOCK;
    float scale = type == DTYPE_MXFP4 ? ldexpf(1.0f, p[0] - 128) : f16_at(p), minimum = 0;
    const uint8_t *bits = p + 2, *nibbles = p + ggml_format_of(type)->bytes - 16;
    if (type == DTYPE_Q4_1 || type == DTYPE_Q5_1) {
        minimum = f16_at(p + 2);
        bits = p + 4;
    } else if (type == DTYPE_AF4) {
        scale = bf16_at(p);
        minimum = bf16_at(p + 2);
    } else if (type == DTYPE_AF8) {
        memcpy(&scale, p, sizeof scale);
        memcpy(&minimum, p + 4, sizeof minimum);
    }
    for (size_t j = 0; j < BLOCK; j++) {
        switch (type) {
        case DTYPE_Q8_0:
            u[j] = (uint8_t)(p[2 + j] + 128);
            break;
        case DTYPE_Q5_0:
        case DTYPE_Q5_1:
            u[j] = (uint8_t)(nibble(nibbles, j) | (bits[j / 8] >> j % 8 & 1u) << 4);
            break;
        case DTYPE_IQ4_NL:
            u[j] = ggml_iq4_table[nibble(nibbles, j)];
            break;
        case DTYPE_MXFP4:
            u[j] = ggml_mxfp4_table[nibble(nibbles, j)];
            break;
        case DTYPE_AF8:
            u[j] = p[8 + j];
            break;
        default: /* q4_0, q4_1, af4 */
            u[j] = (uint8_t)nibble(nibbles, j);
        }
    }
    out->scale[2 * b] = out->scale[2 * b + 1] = scale;
    out->minimum[2 * b] = out->minimum[2 * b + 1] = minimum;
}

/* Columns 128n + 32j + l are bits 2j of byte 32n + l. */
static unsigned two_bits(const uint8_t *q, size_t i)
{
    return q[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3u;
}

static void unpack_q2_k(ggml_span *out, const uint8_t *p)
{
    const float d = f16_at(p + 80), m = f16_at(p + 82);
    for (size_t i = 0; i < GGML_SPAN; i++) {
        out->u[i] = (uint8_t)two_bits(p + 16, i);
    }
    for (size_t s = 0; s < 16; s++) {
        out->scale[s] = d * (float)(p[s] & 15);
        out->minimum[s] = -(m * (float)(p[s] >> 4));
    }
}

/* The 12 bytes of scales: low halves of s in bytes 0 .. 7 (s, then s + 8 as high halves); bits 4
 * and 5 in bytes 8 .. 11. */
static void unpack_q3_k(ggml_span *out, const uint8_t *p)
{
    const uint8_t *scales = p + 96;
    const float d = f16_at(p + 108);
    for (size_t i = 0; i < GGML_SPAN; i++) {
        out->u[i] = (uint8_t)(two_bits(p + 32, i) | (p[i % 32] >> i / 32 & 1u) << 2);
    }
    for (size_t s = 0; s < 16; s++) {
        unsigned low = scales[s % 8] >> (s < 8 ? 0 : 4) & 15u, high = scales[8 + s % 4] >> 2 * (s / 4) & 3u;
        out->scale[s] = d * (float)((int)(low | high << 4) - 32);
    }
}

/* q4_k and q5_k. The 12 bytes of scales: s 0 .. 3 in bytes 0 .. 3, t 0 .. 3 in bytes 4 .. 7; the
 * low halves of s and t 4 .. 7 are the halves of bytes 8 .. 11, their high bits the two upper bits
 * of bytes 0 .. 3 and 4 .. 7. */
static void unpack_q45_k(ggml_span *out, bool five, const uint8_t *p)
{
    const uint8_t *scales = p + 4, *bits = p + 16, *q = five ? p + 48 : p + 16;
    const float d = f16_at(p), m = f16_at(p + 2);
    for (size_t i = 0; i < GGML_SPAN; i++) {
        unsigned u = q[i / 64 * 32 + i % 32] >> (i / 32 % 2 ? 4 : 0) & 15u;
        out->u[i] = (uint8_t)(five ? u | (bits[i % 32] >> i / 32 & 1u) << 4 : u);
    }
    for (size_t b = 0; b < 8; b++) {
        unsigned s = b < 4 ? scales[b] & 63u : (scales[b + 4] & 15u) | (unsigned)scales[b - 4] >> 6 << 4;
        unsigned t =
            b < 4 ? scales[b + 4] & 63u : (unsigned)scales[b + 4] >> 4 | (unsigned)scales[b] >> 6 << 4;
        out->scale[2 * b] = out->scale[2 * b + 1] = d * (float)s;
        out->minimum[2 * b] = out->minimum[2 * b + 1] = -(m * (float)t);
    }
}

/* Of 128 columns 32j + l, the low halves are halves j / 2 of bytes 32 (j % 2) + l. */
static void unpack_q6_k(ggml_span *out, const uint8_t *p)
{
    const float d = f16_at(p + 208);
    for (size_t i = 0; i < GGML_SPAN; i++) {
        size_t n = i / 128, j = i / 32 % 4;
        unsigned low = p[64 * n + 32 * (j % 2) + i % 32] >> (j < 2 ? 0 : 4) & 15u;
        out->u[i] = (uint8_t)(low | two_bits(p + 128, i) << 4);
    }
    for (size_t s = 0; s < 16; s++) {
        out->scale[s] = d * (float)(int8_t)p[192 + s];
    }
}

static void unpack_iq4_xs(ggml_span *out, const uint8_t *p)
{
    const float d = f16_at(p);
    for (size_t b = 0; b < 8; b++) {
        unsigned low = p[4 + b / 2] >> (b % 2 ? 4 : 0) & 15u, high = half_bits_at(p + 2) >> 2 * b & 3u;
        for (size_t j = 0; j < BLOCK; j++) {
            out->u[b * BLOCK + j] = ggml_iq4_table[nibble(p + 8 + 16 * b, j)];
        }
        out->scale[2 * b] = out->scale[2 * b + 1] = d * (float)((int)(low | high << 4) - 32);
    }
}

void ggml_unpack(ggml_span *out, dtype type, const void *blocks, size_t n)
{
    const ggml_format *f = ggml_format_of(type);
    memset(out, 0, sizeof *out);
    for (size_t b = 0; f->columns == BLOCK && b < n / BLOCK; b++) {
        unpack_32(out, type, (const uint8_t *)blocks + b * f->bytes, b);
    }
    if (f->columns == BLOCK) {
        return;
    }
    assert(n == GGML_SPAN);
    switch (type) {
    case DTYPE_Q2_K:
        unpack_q2_k(out, blocks);
        break;
    case DTYPE_Q3_K:
        unpack_q3_k(out, blocks);
        break;
    case DTYPE_Q6_K:
        unpack_q6_k(out, blocks);
        break;
    case DTYPE_IQ4_XS:
        unpack_iq4_xs(out, blocks);
        break;
    default:
        unpack_q45_k(out, type == DTYPE_Q5_K, blocks);
    }
}
