/* ops_ggml: kernels on the block types of GGUF files (ggml_blocks.h), one table for each set of
 * instructions. Any thread.
 *
 *     ggml_kernels_of(o->ggml, w->type)->dot(out, N, x, T, w->data, N, K);
 *
 * ops_ggml_generic.c is the specification; the others give its bits.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_GGML_H
#define PARLEY_COMPUTE_KERNELS_OPS_GGML_H

#include "compute/formats/ggml_blocks.h"
#include "compute/formats/quant.h"

typedef struct ggml_kernels {
    /* out[t*out_stride + n] = x[t] . w[n] for T rows of activations (quant_x_at(x, K, t)) and N
     * rows of blocks. Sixteen lanes; of each 64 columns lane l takes columns 4l .. 4l+3. For every
     * 256 columns, rising:
     *   if 32 columns share a minimum: lane b += minimum of block b * x.sum of it, for eight
     *   blocks; then for each 64 of them: if 16 columns share one: lane += (float)(sum of the four
     *   x.q) * (minimum * x.scale); lane += (float)(sum of x.q * (u - zero)) * (scale * x.scale).
     * Each += is fused. Lanes are added as in dot_rows (ops.h). */
    void (*dot)(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K);
    /* One row as floats. */
    void (*widen)(float *out, const void *row, size_t K);
    /* One row for tile_q (ops.h): u [quant_columns(K)], and a scale and a minimum for each 32
     * columns of them; or, for types without minima, u + 128 - zero and scales alone, one for each
     * 32 or 16 columns (ggml_has_halves). Not for Q2_K. */
    void (*unpack)(uint8_t *u, float *scale, float *minimum, const void *row, size_t K);
} ggml_kernels;

/* A table is an array [GGML_TYPES]. */
static inline const ggml_kernels *ggml_kernels_of(const ggml_kernels *table, dtype type)
{
    return &table[type - DTYPE_Q8_0];
}

/* Whether tile_q takes rows of the type, and whether 16 columns then have a scale of their own. */
static inline bool ggml_has_tiles(dtype type)
{
    return type != DTYPE_Q2_K;
}
static inline bool ggml_has_halves(dtype type)
{
    return type == DTYPE_Q3_K || type == DTYPE_Q6_K;
}

/* Whether no u passes 15. */
static inline bool ggml_is_small(dtype type)
{
    return type == DTYPE_Q4_1 || type == DTYPE_Q4_K || type == DTYPE_AF4;
}

extern const ggml_kernels ggml_kernels_generic[GGML_TYPES];
extern const ggml_kernels ggml_kernels_avx2[GGML_TYPES];        /* in builds for x86-64 alone */
extern const ggml_kernels ggml_kernels_avx512_vnni[GGML_TYPES]; /* the same */

/* One function of each type, for the files that make a table. */
#define GGML_FOR_GGUF(X)                                                                                     \
    X(Q8_0)                                                                                                  \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_NL) X(IQ4_XS) X(MXFP4)
#define GGML_FOR_ALL(X) GGML_FOR_GGUF(X) X(AF4) X(AF8)

/* The product of one type, from the including file's dot_rows. */
#define GGML_DEFINE_DOT(NAME)                                                                                \
    static void dot_##NAME(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,  \
                           size_t K)                                                                         \
    {                                                                                                        \
        dot_rows(DTYPE_##NAME, out, out_stride, x, T, w, N, K);                                              \
    }

#endif
