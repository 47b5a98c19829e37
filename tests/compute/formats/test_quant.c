/* quant: rows of weights mean what quant.h says, and are near the weights. */
#include "compute/formats/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/formats/half.h"
#include "tests/check.h"
#include "tests/compute/rng.h"

/* A row of weights as floats, as quant.h describes it. */
static void widen_blocks(float *out, dtype type, const unsigned char *row, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    const size_t at_scales = type == DTYPE_Q8 ? Kp : type == DTYPE_Q4 ? Kp / 2 : Kp / 2 + Kp / 8;
    const unsigned char *scales = row + at_scales;
    uint32_t base = 0;
    memcpy(&base, type == DTYPE_Q8 ? row : scales + 2 * n_blocks, sizeof base);
    for (size_t k = 0; k < K; k++) {
        const size_t b = k / QUANT_BLOCK;
        const uint32_t bits = base + (uint32_t)scales[b] * (1u << 18);
        float s;
        memcpy(&s, &bits, sizeof s);
        const unsigned both = row[k / 64 * 32 + k % 32], nibble = b % 2 ? both >> 4 : both & 15u,
                       fifth = type == DTYPE_Q5 ? row[Kp / 2 + k / 8] >> k % 8 & 1u : 0;
        if (type == DTYPE_Q8) {
            out[k] = bf16_at(scales + 2 * b) * (float)(row[k] - 128);
        } else if (type == DTYPE_Q4) {
            out[k] = s * ((float)nibble - (float)scales[n_blocks + b] / 16);
        } else {
            out[k] = s * ((float)(b % 2 ? 2 * nibble + fifth : nibble + 16 * fifth) -
                          (float)scales[n_blocks + b] / 8);
        }
    }
}

/* Least squares over several ranges: a smaller error than even steps over the range of each block, also with
 * numbers that stand out, in rows of any magnitude; zeros stay zeros. */
static void fit_case(dtype type, int most)
{
    enum { K = 512 };
    float wide[K];
    unsigned char row[K];
    for (int exponent = -60; exponent <= 50; exponent += 10) {
        float *w = rng_floats(K, ldexpf(1, exponent));
        double fitted = 0, even = 0;
        for (size_t k = 0; k < K; k += 100) {
            w[k] *= 3;
        }
        memset(w + 64, 0, QUANT_BLOCK * sizeof *w);
        quant_weights(row, type, w, K);
        widen_blocks(wide, type, row, K);
        for (size_t b = 0; b < K; b += QUANT_BLOCK) {
            double low = 0, high = 0;
            for (size_t k = b; k < b + QUANT_BLOCK; k++) {
                low = fmin(low, (double)w[k]);
                high = fmax(high, (double)w[k]);
            }
            const double s = (high - low) / most;
            for (size_t k = b; k < b + QUANT_BLOCK; k++) {
                const double x = (double)w[k], near = s > 0 ? low + s * rint((x - low) / s) : 0;
                fitted += (x - (double)wide[k]) * (x - (double)wide[k]);
                even += (x - near) * (x - near);
            }
        }
        CHECK(fitted < even);
        for (size_t k = 64; k < 64 + QUANT_BLOCK; k++) {
            CHECK(wide[k] == 0);
        }
        free(w);
    }
    const float zeros[64] = {0};
    quant_weights(row, type, zeros, 64);
    widen_blocks(wide, type, row, 64);
    CHECK(memcmp(wide, zeros, sizeof zeros) == 0);
}

static void test_kept(void)
{
    /* Every number of a block is kept that can be: zeros, one outlier, numbers that are none. */
    float w[64] = {NAN, INFINITY, 1e-30f, -3, 0, 2}, wide[64];
    unsigned char row[80];
    for (dtype type = DTYPE_Q8; type <= DTYPE_Q5; type++) {
        quant_weights(row, type, w, 64);
        widen_blocks(wide, type, row, 64);
        CHECK_NEAR(wide[0], 0, 0.2);
        CHECK_NEAR(wide[1], 0, 0.2);
        CHECK_NEAR(wide[3], -3, type == DTYPE_Q8 ? 0.02 : 0.06);
        CHECK(type != DTYPE_Q8 || (wide[4] == 0 && wide[40] == 0));
    }
}

int main(void)
{
    fit_case(DTYPE_Q4, 15);
    fit_case(DTYPE_Q5, 31);
    test_kept();
    CHECK_DONE();
}
