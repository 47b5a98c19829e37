/* The specification of resizing's two passes: sums of exact products, rounded to 8 bits. */
#include "vision/image/resize_kernels.h"

#include "compute/kernels/cpu.h"

static uint8_t clip8(int32_t sum, int fraction_bits)
{
    int32_t v = sum >> fraction_bits;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void resize_row_one(uint8_t *out, const uint8_t *in, const resize_taps *t, size_t x)
{
    const int16_t *w = t->weights + x * t->stride;
    const uint8_t *px = in + 3 * (size_t)t->begin[x];
    int32_t r = 1 << (t->fraction_bits - 1), g = r, b = r;
    for (int32_t i = 0; i < t->count[x]; i++, px += 3) {
        r += px[0] * w[i];
        g += px[1] * w[i];
        b += px[2] * w[i];
    }
    out[3 * x] = clip8(r, t->fraction_bits);
    out[3 * x + 1] = clip8(g, t->fraction_bits);
    out[3 * x + 2] = clip8(b, t->fraction_bits);
}

uint8_t resize_column_one(const uint8_t *const *rows, const int16_t *weights, size_t n_rows, size_t i,
                          int fraction_bits)
{
    int32_t sum = 1 << (fraction_bits - 1);
    for (size_t r = 0; r < n_rows; r++) {
        sum += rows[r][i] * weights[r];
    }
    return clip8(sum, fraction_bits);
}

static void row_generic(uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, const resize_taps *t)
{
    (void)n_in;
    for (size_t x = 0; x < n_out; x++) {
        resize_row_one(out, in, t, x);
    }
}

static void column_generic(uint8_t *out, const uint8_t *const *rows, const int16_t *weights, size_t n_rows,
                           size_t n, int fraction_bits)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = resize_column_one(rows, weights, n_rows, i, fraction_bits);
    }
}

const resize_kernels *resize_kernels_generic(void)
{
    static const resize_kernels TABLE = {"generic", row_generic, column_generic};
    return &TABLE;
}

const resize_kernels *resize_kernels_select(unsigned flags)
{
    const resize_kernels *best = flags & CPU_AVX2 ? resize_kernels_avx2() : NULL;
    return best ? best : resize_kernels_generic();
}
