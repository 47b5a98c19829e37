/* dtype: the types that numbers have in memory and in files. Any thread.
 *
 *     size_t bytes = dtype_bytes(DTYPE_BF16);
 */
#ifndef PARLEY_COMPUTE_FORMATS_DTYPE_H
#define PARLEY_COMPUTE_FORMATS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

/* The types before DTYPE_OTHER have elements of their own; Q8, Q4 and Q5 are rows of blocks
 * (compute/formats/quant.h), and so are those from DTYPE_Q8_0 on: as GGUF files hold them, and, from
 * DTYPE_AF4 on, for what MLX tools make (compute/formats/ggml_blocks.h). */
typedef enum dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_OTHER,
    DTYPE_Q8,
    DTYPE_Q4,
    DTYPE_Q5,
    DTYPE_Q8_0,
    DTYPE_Q4_0,
    DTYPE_Q4_1,
    DTYPE_Q5_0,
    DTYPE_Q5_1,
    DTYPE_Q2_K,
    DTYPE_Q3_K,
    DTYPE_Q4_K,
    DTYPE_Q5_K,
    DTYPE_Q6_K,
    DTYPE_IQ4_NL,
    DTYPE_IQ4_XS,
    DTYPE_MXFP4,
    DTYPE_AF4,
    DTYPE_AF8,
    DTYPES
} dtype;

/* Bytes of one element; 0 for DTYPE_OTHER and all types of blocks. */
size_t dtype_bytes(dtype type);
const char *dtype_name(dtype type);

/* Rows of blocks. */
static inline bool dtype_is_quantized(dtype type)
{
    return type > DTYPE_OTHER;
}

/* Blocks as in GGUF files, or like them. */
static inline bool dtype_is_ggml(dtype type)
{
    return type >= DTYPE_Q8_0;
}

#endif
