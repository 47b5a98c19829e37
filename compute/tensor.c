#include "compute/tensor.h"

#include <assert.h>
#include <string.h>

#include "compute/formats/ggml_blocks.h"
#include "compute/formats/half.h"
#include "compute/formats/quant.h"

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
        out[i] = t->type == DTYPE_BF16 ? bf16_at(from + 2 * i) : f16_at(from + 2 * i);
    }
}
