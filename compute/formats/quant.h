/* quant: rows of weights in 8, 5 and 4 bits, and rows of activations in 8 bits. Any thread.
 *
 *     size_t bytes = quant_row_bytes(DTYPE_Q8, K);
 *     quant_weights(row, DTYPE_Q8, w, K);                 // one row of a matrix
 *     quant_x x = quant_x_at(memory, K, t);               // views of activation row t; ops.quantize_x fills them
 *     quant_pack_panels(panels, memory, 8, K);            // rows 0 .. 7, side by side
 *
 * Blocks of 32 columns share a scale; a row is padded to whole groups of 64 columns, and the
 * padding counts as zeros.
 *   q8: bytes u [Kp], then bf16 scales s [Kp/32]:             w = s * (u - 128), 1 <= u <= 255
 *   q4: nibbles u [Kp/2], scales and zero points z, a byte each [Kp/32], base [4 bytes]:  w = s * u - s/16 * z
 *   q5: nibbles [Kp/2], a fifth bit for each column [Kp/8], then as q4:            w = s * u - s/8 * z
 * Byte j of a group's 32 holds columns j (low half) and 32 + j of q4 and q5. The fifth bit of q5 (bit k of a
 * group's 64 is column k's) is the highest of u in the first block of a group and the lowest in the second, where
 * the nibble lies: so a kernel may leave the high halves of bytes where they are, 16 and 8 times too large.
 * A scale of q4 and q5 is a float whose bits are base + (its byte << 18): 5 bits behind the point, 8 octaves
 * below the row's largest. Numbers are chosen for the scale as it is stored, by least squares over several ranges.
 */
#ifndef PARLEY_COMPUTE_FORMATS_QUANT_H
#define PARLEY_COMPUTE_FORMATS_QUANT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compute/formats/dtype.h"

enum { QUANT_BLOCK = 32, QUANT_GROUP = 64 };

/* Columns of a row with its padding. */
static inline size_t quant_columns(size_t K)
{
    return (K + QUANT_GROUP - 1) / QUANT_GROUP * QUANT_GROUP;
}

/* Bytes of a row of K columns; type is DTYPE_Q8, DTYPE_Q4 or DTYPE_Q5. */
size_t quant_row_bytes(dtype type, size_t K);

/* Writes one row; values that are not finite become 0, others are below 1e18. */
void quant_weights(void *row, dtype type, const float *w, size_t K);

/* A row of q4 or q5. */
typedef struct quant_small {
    const unsigned char *numbers, *fifth, *scale, *zero; /* fifth: of q5 alone */
    uint32_t base;
    float step; /* a minimum is step * scale * zero */
} quant_small;

enum { QUANT_SCALE_SHIFT = 18 };

static inline quant_small quant_small_at(dtype type, const void *row, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    quant_small r = {.numbers = row, .fifth = (const unsigned char *)row + Kp / 2};
    r.scale = r.fifth + (type == DTYPE_Q5 ? Kp / 8 : 0);
    r.zero = r.scale + n_blocks;
    r.step = type == DTYPE_Q5 ? -1.0f / 8 : -1.0f / 16;
    memcpy(&r.base, r.zero + n_blocks, sizeof r.base);
    return r;
}

/* A scale from its byte. */
static inline float quant_scale(uint32_t base, unsigned char byte)
{
    const uint32_t bits = base + ((uint32_t)byte << QUANT_SCALE_SHIFT);
    float s;
    memcpy(&s, &bits, sizeof s);
    return s;
}

/* One row of activations: x = scale * q in blocks of 32. */
typedef struct quant_x {
    int8_t *q;       /* [Kp] */
    int32_t *offset; /* [Kp/4]: -128 times the sum of four q, what the bytes of q8 add too much */
    /* of blocks, [Kp/32], padded with zeros to a multiple of 16: */
    int32_t *block_offset; /* the sum of its offsets */
    float *scale;
    float *sum; /* scale times the sum of the block's q */
} quant_x;

/* Blocks of a row of activations, with the padding of its scales. */
static inline size_t quant_x_blocks(size_t K)
{
    return (quant_columns(K) / QUANT_BLOCK + 15) / 16 * 16;
}

/* Bytes of a row of activations; a multiple of 64. */
static inline size_t quant_x_bytes(size_t K)
{
    return 2 * quant_columns(K) + quant_x_blocks(K) * 3 * sizeof(float);
}

/* Here, because kernels ask for every few rows of weights. */
static inline quant_x quant_x_at(const void *memory, size_t K, size_t t)
{
    const size_t Kp = quant_columns(K);
    unsigned char *row = (unsigned char *)(uintptr_t)memory + t * quant_x_bytes(K);
    int32_t *blocks = (int32_t *)(void *)(row + 2 * Kp);
    float *scale = (float *)(void *)(blocks + quant_x_blocks(K));
    return (quant_x){(int8_t *)row, (int32_t *)(void *)(row + Kp), blocks, scale, scale + quant_x_blocks(K)};
}

/* Eight rows of activations side by side: what a load of eight weights is multiplied with. */
enum { QUANT_PANEL_ROWS = 8 };

/* One block of columns of such a panel. Row t has lanes 2t and 2t + 1; rows that are missing are
 * zeros. */
typedef struct quant_panel {
    uint32_t q[4][2 * QUANT_PANEL_ROWS];  /* lane 2t + h of q[i]: columns 8i + 4h .. +3, the first in the
                                          * lowest byte */
    int32_t offset[2 * QUANT_PANEL_ROWS]; /* lane 2t: the block's offset; lane 2t + 1: 0 */
    /* Row t's at quant_panel_place(t), and again two places further on: for a second row of weights. */
    float scale[2 * QUANT_PANEL_ROWS], sum[2 * QUANT_PANEL_ROWS];
} quant_panel;

static inline size_t quant_panel_place(size_t t)
{
    return 4 * (t / 2) + t % 2;
}

/* Blocks of the panels of T rows: each panel's, one after the other. */
static inline size_t quant_panel_blocks(size_t T, size_t K)
{
    return (T + QUANT_PANEL_ROWS - 1) / QUANT_PANEL_ROWS * (quant_columns(K) / QUANT_BLOCK);
}

/* out [quant_panel_blocks(T, K)] of rows x (quant_x_at(x, K, t)). */
void quant_pack_panels(quant_panel *out, const void *x, size_t T, size_t K);

#endif
