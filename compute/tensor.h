/* tensor: a named view of numbers that somebody else owns (usually a mapped checkpoint). Any thread; immutable.
 *
 *     tensor w;
 *     if (!source->find(source->ctx, "model.norm.weight", &w)) { ... }
 */
#ifndef PARLEY_COMPUTE_TENSOR_H
#define PARLEY_COMPUTE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types before DTYPE_OTHER have elements of their own; Q8 and Q4 are rows of blocks (compute/quant.h), and so are
 * those from DTYPE_Q8_0 on: as GGUF files hold them, and, from DTYPE_AF4 on, for what MLX tools make
 * (compute/ggml_blocks.h). */
typedef enum dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_OTHER,
    DTYPE_Q8,
    DTYPE_Q4,
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

enum { TENSOR_MAX_DIMS = 5 };

/* Row-major, no padding. For a linear layer dims = {n_out, n_in}. */
typedef struct tensor {
    dtype type;
    int32_t n_dims;
    size_t dims[TENSOR_MAX_DIMS];
    const void *data; /* not owned; at least 2-byte aligned, no more may be assumed */
    size_t bytes;     /* product of dims * element size */
} tensor;

/* Where tensors come from; lets vision/ read a checkpoint without knowing model/. */
typedef struct tensor_source {
    /* Fills *out and returns true if a tensor of exactly that name exists. Any thread. */
    bool (*find)(void *ctx, const char *name, tensor *out);
    void *ctx;
} tensor_source;

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

/* Bytes from a row of a matrix to the next (dims[0] rows, whatever the shape of one). type is not DTYPE_OTHER. */
size_t tensor_row_bytes(const tensor *t);

/* Rows begin .. end-1 of a matrix. */
tensor tensor_rows(const tensor *t, size_t begin, size_t end);

/* Product of dims. */
size_t tensor_len(const tensor *t);

/* out[0..n) = elements [begin, begin+n) as float32, exactly. t->type must not be DTYPE_OTHER. */
void tensor_to_f32(float *out, const tensor *t, size_t begin, size_t n);

#endif
