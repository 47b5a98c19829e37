/* ggml_blocks: the block types of GGUF files, as this program reads them, and two like them for
 * MLX's affine groups: what a row is made of. Any thread.
 *
 *     size_t bytes = ggml_row_bytes(DTYPE_Q4_K, K);         // K is a whole number of blocks
 *     ggml_span s; ggml_unpack(&s, DTYPE_Q4_K, row, 256);   // the specification: columns 0 .. 255 of a row
 *
 * A row is blocks one behind the other: of 32 columns with a scale each, or of 256 columns that
 * share a scale for the scales of their sixteenths or eighths. In each of them, column i is
 *
 *   w = scale * (u - zero) + minimum      in float32, fused
 *
 * with a scale and a minimum (0 in most types) for 16 or 32 columns and a zero that belongs to the
 * type. Numbers of more than a byte are little-endian and lie anywhere. h is a byte's high half, l
 * its low one:
 *
 *   type    block                                                      u, zero; scale; minimum
 *   q8_0    f16 d, i8 q[32]                                            q + 128, 128; d
 *   q4_0    f16 d, 16 bytes: column j is l of byte j, j + 16 its h     u, 8; d
 *   q4_1    f16 d, f16 m, nibbles as q4_0                              u, 0; d; m
 *   q5_0    f16 d, u32 bits, nibbles                                   nibble + 16 * bit j, 16; d
 *   q5_1    f16 d, f16 m, u32 bits, nibbles                            the same, 0; d; m
 *   iq4_nl  f16 d, nibbles                                             a table of 16 numbers + 128, 128; d
 *   mxfp4   u8 e, nibbles                                              a table of 16 numbers + 16, 16; 2^(e - 128)
 *   q2_k    16 bytes s, u2 q[256], f16 d, f16 m                        q, 0; d * l(s); -m * h(s)     (16 columns)
 *   q3_k    u1 b[256], u2 q[256], i6 s[16], f16 d                      q + 4 * b, 4; d * (s - 32)    (16 columns)
 *   q4_k    f16 d, f16 m, u6 s[8], u6 t[8], u4 q[256]                  q, 0; d * s; -m * t
 *   q5_k    f16 d, f16 m, u6 s[8], u6 t[8], u1 b[256], u4 q[256]       q + 16 * b, 0; d * s; -m * t
 *   q6_k    u4 q[256], u2 b[256], i8 s[16], f16 d                      q + 16 * b, 32; d * s         (16 columns)
 *   iq4_xs  f16 d, u2 t[8], u4 s[8], u4 q[256]                         as iq4_nl; d * (s + 16 * t - 32)
 *   af4     bf16 d, bf16 m, nibbles as q4_0                            u, 0; d; m
 *   af8     f32 d, f32 m, u8 q[32]                                     q, 0; d; m
 */
#ifndef PARLEY_COMPUTE_FORMATS_GGML_BLOCKS_H
#define PARLEY_COMPUTE_FORMATS_GGML_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "compute/formats/dtype.h"

enum { GGML_TYPES = DTYPES - DTYPE_Q8_0, GGML_SPAN = 256, GGML_PART = 16 };

typedef struct ggml_format {
    uint16_t columns, bytes; /* of a block */
    uint8_t zero;
    uint8_t minimum; /* columns that share one: 0 (none), 16 or 32 */
} ggml_format;

/* type is one that dtype_is_ggml. Here, because kernels know the type as a constant: then so are
 * the members. */
static inline const ggml_format *ggml_format_of(dtype type)
{
    static const ggml_format FORMATS[GGML_TYPES] = {
        /* NOLINTNEXTLINE(misc-redundant-expression): the rows are all written alike */
        [DTYPE_Q8_0 - DTYPE_Q8_0] = {32, 34, 128, 0},   [DTYPE_Q4_0 - DTYPE_Q8_0] = {32, 18, 8, 0},
        [DTYPE_Q4_1 - DTYPE_Q8_0] = {32, 20, 0, 32},    [DTYPE_Q5_0 - DTYPE_Q8_0] = {32, 22, 16, 0},
        [DTYPE_Q5_1 - DTYPE_Q8_0] = {32, 24, 0, 32},    [DTYPE_Q2_K - DTYPE_Q8_0] = {256, 84, 0, 16},
        [DTYPE_Q3_K - DTYPE_Q8_0] = {256, 110, 4, 0},   [DTYPE_Q4_K - DTYPE_Q8_0] = {256, 144, 0, 32},
        [DTYPE_Q5_K - DTYPE_Q8_0] = {256, 176, 0, 32},  [DTYPE_Q6_K - DTYPE_Q8_0] = {256, 210, 32, 0},
        [DTYPE_IQ4_NL - DTYPE_Q8_0] = {32, 18, 128, 0}, [DTYPE_IQ4_XS - DTYPE_Q8_0] = {256, 136, 128, 0},
        [DTYPE_MXFP4 - DTYPE_Q8_0] = {32, 17, 16, 0},   [DTYPE_AF4 - DTYPE_Q8_0] = {32, 20, 0, 32},
        [DTYPE_AF8 - DTYPE_Q8_0] = {32, 40, 0, 32},
    };
    return &FORMATS[type - DTYPE_Q8_0];
}

static inline size_t ggml_row_bytes(dtype type, size_t K)
{
    return K / ggml_format_of(type)->columns * ggml_format_of(type)->bytes;
}

/* Bytes of 256 columns. */
static inline size_t ggml_span_bytes(const ggml_format *f)
{
    return (size_t)(GGML_SPAN / f->columns) * (size_t)f->bytes;
}

/* 256 columns of a row; parts of 16. */
typedef struct ggml_span {
    uint8_t u[GGML_SPAN];
    float scale[GGML_SPAN / GGML_PART];
    float minimum[GGML_SPAN / GGML_PART];
} ggml_span;

/* The specification. n columns from `blocks` on, n <= 256 and whole blocks; the rest of the span
 * becomes zeros. */
void ggml_unpack(ggml_span *out, dtype type, const void *blocks, size_t n);

/* The numbers behind the nibbles of iq4_nl and iq4_xs, plus 128; and of mxfp4, plus 16. */
extern const uint8_t ggml_iq4_table[16], ggml_mxfp4_table[16];

#endif
