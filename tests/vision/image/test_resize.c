/* Resizing's kernels: every instruction set gives the specification's bytes for random and extreme
 * pixels and weights, at every length, and touches nothing beyond its rows; whole images keep their
 * colours at any scale.
 */
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compute/kernels/cpu.h"
#include "tests/compute/rng.h"
#include "vision/image/resize.h"
#include "vision/image/resize_kernels.h"

enum { GUARD = 0xa5, N_MAX = 400, TAPS_MAX = 48 };

/* Pixels at random, or only the two ends of the range, where sums are largest. */
static void fill(uint8_t *px, size_t n, bool extreme)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v = rng_u32();
        px[i] = (uint8_t)(extreme ? (v & 256 ? 255 : 0) : v >> 8);
    }
}

static void check_row(const resize_kernels *k, size_t n_in, size_t n_out, int32_t n_taps)
{
    static uint8_t expected[3 * N_MAX + 1], got[3 * N_MAX + 1];
    int32_t begin[N_MAX], count[N_MAX];
    size_t stride = ((size_t)n_taps + RESIZE_TAPS_UNIT - 1) / RESIZE_TAPS_UNIT * RESIZE_TAPS_UNIT;
    uint8_t *in = malloc(3 * n_in); /* its own block: a read beyond it is seen by a sanitizer */
    int16_t *weights = calloc(n_out * stride, sizeof *weights);
    fill(in, 3 * n_in, n_taps % 2);
    for (size_t x = 0; x < n_out; x++) {
        begin[x] = (int32_t)(x * n_in / n_out);
        count[x] = n_taps < (int32_t)n_in - begin[x] ? n_taps : (int32_t)n_in - begin[x];
        for (int32_t i = 0; i < count[x]; i++) {
            weights[x * stride + (size_t)i] = (int16_t)(rng_u32() >> 8);
        }
    }
    const resize_taps t = {
        .stride = stride, .fraction_bits = 16, .begin = begin, .count = count, .weights = weights};
    memset(got, GUARD, sizeof got);
    resize_kernels_generic()->row(expected, n_out, in, n_in, &t);
    k->row(got, n_out, in, n_in, &t);
    CHECK(memcmp(got, expected, 3 * n_out) == 0);
    CHECK_INT(got[3 * n_out], GUARD);
    free(in);
    free(weights);
}

static void check_column(const resize_kernels *k, size_t n, size_t n_rows)
{
    static uint8_t expected[N_MAX + 1], got[N_MAX + 1];
    const uint8_t *rows[TAPS_MAX];
    uint8_t *data = malloc(n_rows * n + 1);
    int16_t weights[TAPS_MAX];
    fill(data, n_rows * n, n_rows % 2);
    for (size_t r = 0; r < n_rows; r++) {
        rows[r] = data + (n_rows - 1 - r) * n;
        weights[r] = (int16_t)(rng_u32() >> 8);
    }
    memset(got, GUARD, sizeof got);
    resize_kernels_generic()->column(expected, rows, weights, n_rows, n, 17);
    k->column(got, rows, weights, n_rows, n, 17);
    CHECK(memcmp(got, expected, n) == 0);
    CHECK_INT(got[n], GUARD);
    free(data);
}

static void test_kernels(void)
{
    const resize_kernels *tables[] = {resize_kernels_generic(),
                                      cpu_flags() & CPU_AVX2 ? resize_kernels_avx2() : NULL};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const resize_kernels *k = tables[i];
        if (!k) {
            continue;
        }
        printf("%s\n", k->name);
        for (int32_t n_taps = 1; n_taps <= 41; n_taps += 2) {
            for (size_t n_in = 1; n_in <= 100; n_in += n_in < 20 ? 1 : 27) {
                check_row(k, n_in, 1 + n_in * 3 / 2, n_taps);
                check_row(k, n_in, 1 + n_in / 3, n_taps + 1);
            }
        }
        for (size_t n = 1; n <= 300; n += n < 70 ? 1 : 23) {
            for (size_t n_rows = 1; n_rows <= TAPS_MAX; n_rows += n_rows < 5 ? 1 : 7) {
                check_column(k, n, n_rows);
            }
        }
    }
}

/* Constant colours stay constant at any scale; a size of one pixel works in every direction. */
static void test_images(void)
{
    static const int32_t SIZES[][4] = {
        {1, 1, 7, 5}, {7, 5, 1, 1}, {640, 3, 31, 90}, {3, 900, 300, 2}, {5, 5, 5, 5}};
    err_detail d = {0};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        size_t n_in = (size_t)SIZES[i][0] * (size_t)SIZES[i][1] * 3,
               n_out = (size_t)SIZES[i][2] * (size_t)SIZES[i][3] * 3;
        uint8_t *in = malloc(n_in), *out = malloc(n_out + 1);
        for (size_t j = 0; j < n_in; j++) {
            in[j] = (uint8_t)(j % 3 == 0 ? 255 : j % 3 == 1 ? 0 : 77);
        }
        out[n_out] = GUARD;
        CHECK_OK(resize_bicubic(out, SIZES[i][2], SIZES[i][3], in, SIZES[i][0], SIZES[i][1], &d), d);
        bool same = true;
        for (size_t j = 0; j < n_out; j++) {
            same = same && out[j] == (j % 3 == 0 ? 255 : j % 3 == 1 ? 0 : 77);
        }
        CHECK(same);
        CHECK_INT(out[n_out], GUARD);
        free(in);
        free(out);
    }
    uint8_t px[3] = {0};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(resize_bicubic(px, i != 0, i != 1, px, i != 2, i != 3, &d), ERR_INVALID);
    }
    CHECK_OK(resize_bicubic(px, 1, 1, px, 1, 1, &d), d);
}

int main(void)
{
    test_kernels();
    test_images();
    const resize_kernels *generic = resize_kernels_generic(), *avx2 = resize_kernels_avx2();
    CHECK(resize_kernels_select(0) == generic && resize_kernels_select(~(unsigned)CPU_AVX2) == generic);
    CHECK(resize_kernels_select(CPU_AVX2) == (avx2 ? avx2 : generic));
    CHECK_DONE();
}
