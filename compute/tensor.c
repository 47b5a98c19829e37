#include "compute/tensor.h"

#include <assert.h>
#include <string.h>

#include "compute/half.h"
#include "compute/quant.h"

size_t dtype_bytes(dtype type)
{
    switch (type) {
    case DTYPE_F32:
        return 4;
    case DTYPE_BF16:
    case DTYPE_F16:
        return 2;
    case DTYPE_OTHER:
    case DTYPE_Q8:
    case DTYPE_Q4:
        break;
    }
    return 0;
}

const char *dtype_name(dtype type)
{
    switch (type) {
    case DTYPE_F32:
        return "f32";
    case DTYPE_BF16:
        return "bf16";
    case DTYPE_F16:
        return "f16";
    case DTYPE_Q8:
        return "q8";
    case DTYPE_Q4:
        return "q4";
    case DTYPE_OTHER:
        break;
    }
    return "other";
}

size_t tensor_row_bytes(const tensor *t)
{
    size_t K = t->dims[0] ? tensor_len(t) / t->dims[0] : 0;
    return dtype_is_quantized(t->type) ? quant_row_bytes(t->type, K) : K * dtype_bytes(t->type);
}

size_t tensor_len(const tensor *t)
{
    size_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) {
        n *= t->dims[i];
    }
    return n;
}

void tensor_to_f32(float *out, const tensor *t, size_t begin, size_t n)
{
    assert(t->type < DTYPE_OTHER);
    const unsigned char *from = (const unsigned char *)t->data + begin * dtype_bytes(t->type);
    if (t->type == DTYPE_F32) {
        memcpy(out, from, n * sizeof *out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        out[i] = t->type == DTYPE_BF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
    }
}
