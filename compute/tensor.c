#include "compute/tensor.h"

#include <assert.h>
#include <string.h>

#include "compute/ggml_blocks.h"
#include "compute/half.h"
#include "compute/quant.h"

size_t dtype_bytes(dtype type)
{
    return type == DTYPE_F32 ? 4 : type < DTYPE_OTHER ? 2 : 0;
}

const char *dtype_name(dtype type)
{
    static const char *const names[DTYPES] = {
        "f32",  "bf16", "f16",  "other", "q8",   "q4",     "q8_0",   "q4_0",  "q4_1", "q5_0", "q5_1",
        "q2_k", "q3_k", "q4_k", "q5_k",  "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "af4",  "af8",
    };
    return names[type];
}

size_t tensor_row_bytes(const tensor *t)
{
    size_t K = t->dims[0] ? tensor_len(t) / t->dims[0] : 0;
    if (dtype_is_ggml(t->type)) {
        return ggml_row_bytes(t->type, K);
    }
    return dtype_is_quantized(t->type) ? quant_row_bytes(t->type, K) : K * dtype_bytes(t->type);
}

tensor tensor_rows(const tensor *t, size_t begin, size_t end)
{
    const size_t row_bytes = tensor_row_bytes(t);
    return (tensor){t->type,
                    2,
                    {end - begin, t->dims[1]},
                    (const unsigned char *)t->data + begin * row_bytes,
                    (end - begin) * row_bytes};
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
