/* tensor: a named view of numbers owned elsewhere (usually a mapped checkpoint). Any thread;
 * immutable.
 *
 *     tensor w;
 *     bool found = source.find(source.ctx, "model.norm.weight", &w);
 */
#ifndef PARLEY_COMPUTE_TENSOR_H
#define PARLEY_COMPUTE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/formats/dtype.h"

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

/* Bytes from a row of a matrix to the next (dims[0] rows, whatever the shape of one). type is not
 * DTYPE_OTHER. */
size_t tensor_row_bytes(const tensor *t);

/* Rows begin .. end-1 of a matrix. */
tensor tensor_rows(const tensor *t, size_t begin, size_t end);

/* Product of dims. */
size_t tensor_len(const tensor *t);

/* out[0..n) = elements [begin, begin+n) as float32, exactly. t->type must not be DTYPE_OTHER. */
void tensor_to_f32(float *out, const tensor *t, size_t begin, size_t n);

#endif
