#include "model/checkpoint/fp8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/formats/half.h"

enum { BLOCK = 128, NAME_BYTES = 512, NAME_IN_MESSAGE = 200 };

static const char SCALES[] = "_scale_inv";

/* Sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities, 0x7f and 0xff are NaN. */
static float e4m3_to_f32(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
    return (bits & 0x7f) == 0x7f ? NAN : bits & 0x80 ? -size : size;
}

static bool find_scales(const tensor_table *all, const char *stored, tensor *out)
{
    char name[NAME_BYTES];
    return snprintf(name, sizeof name, "%s%s", stored, SCALES) < NAME_BYTES &&
           tensor_table_get(all, name, out);
}

static bool fits(const tensor *scales, const tensor *t)
{
    return t->n_dims == 2 && scales->n_dims == 2 && scales->type < DTYPE_OTHER &&
           scales->dims[0] == (t->dims[0] + BLOCK - 1) / BLOCK &&
           scales->dims[1] == (t->dims[1] + BLOCK - 1) / BLOCK;
}

static void widen(uint16_t *out, const tensor *t, const tensor *scales)
{
    float numbers[256];
    for (unsigned i = 0; i < 256; i++) {
        numbers[i] = e4m3_to_f32((uint8_t)i);
    }
    const uint8_t *from = t->data;
    const size_t columns = t->dims[1];
    for (size_t r = 0; r < t->dims[0]; r++) {
        for (size_t begin = 0; begin < columns; begin += BLOCK) {
            const size_t end = begin + BLOCK < columns ? begin + BLOCK : columns;
            float scale;
            tensor_to_f32(&scale, scales, r / BLOCK * scales->dims[1] + begin / BLOCK, 1);
            for (size_t c = begin; c < end; c++) {
                out[r * columns + c] = bf16_from_f32(numbers[from[r * columns + c]] * scale);
            }
        }
    }
}

err_code fp8_adapt(const tensor_table *all, named_tensor *named, arena *memory, bool *skip,
                   err_detail *detail)
{
    tensor scales, *t = &named->view;
    const char *stored = named->stored, *type = named->type_name;
    *skip = false;
    if (name_ends_with(stored, SCALES)) {
        char weight[NAME_BYTES];
        snprintf(weight, sizeof weight, "%.*s", (int)(strlen(stored) - strlen(SCALES)), stored);
        *skip = tensor_table_find(all, weight) != NULL;
        return ERR_OK;
    }
    if (strncmp(type, "F8_", 3) != 0) {
        return ERR_OK;
    }
    if (strcmp(type, "F8_E4M3") != 0 || !find_scales(all, stored, &scales)) {
        return err_set(
            detail, ERR_UNSUPPORTED,
            "tensor %.*s: of 8-bit floats only F8_E4M3 with %s%s (a scale for each block of 128 x 128) is "
            "supported",
            NAME_IN_MESSAGE, stored, "weight", SCALES);
    }
    if (!fits(&scales, t)) {
        return err_set(detail, ERR_CORRUPT,
                       "tensor %.*s%s does not hold one number for each block of 128 x 128", NAME_IN_MESSAGE,
                       stored, SCALES);
    }
    uint16_t *data = arena_alloc(memory, 2 * tensor_len(t));
    if (!data) {
        return err_set(detail, ERR_NOMEM, "no memory for tensor %.*s", NAME_IN_MESSAGE, stored);
    }
    widen(data, t, &scales);
    t->type = DTYPE_BF16;
    t->data = data;
    t->bytes = 2 * tensor_len(t);
    return ERR_OK;
}
