/* Attention inside segments against formulas written out in double, for every kernel table: segments of nothing, of one row,
 * of several blocks of queries and tiles of keys. */
#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/rng.h"

#include "tests/compute/naive.h"

static compute *ctx;

static void test_segments(void)
{
    enum { H = 3, hd = 24, D = H * hd };
    static const int32_t cu[] = {0, 1, 1, 140, 204, 804}; /* the last in two blocks of queries */
    size_t T = 804;
    float *qkv = rng_floats(T * 3 * D, 3), *out = rng_floats(T * D, 1);
    double *want = doubles(T * D), scale = 1 / sqrt(hd);
    nn_attention_segments(ctx, out, qkv, cu, ARRAY_LEN(cu) - 1, (float)scale, H, hd);
    for (size_t s = 0; s + 1 < ARRAY_LEN(cu); s++) {
        size_t begin = (size_t)cu[s], n = (size_t)(cu[s + 1] - cu[s]);
        for (size_t t = begin; t < begin + n; t++) {
            for (size_t h = 0; h < H; h++) {
                const float *k = qkv + begin * 3 * D + D + h * hd;
                attend_naive(want + t * D + h * hd, qkv + t * 3 * D + h * hd, k, k + D, 3 * D, 0, n, hd,
                             scale, NULL);
            }
        }
    }
    CHECK_NEAR(rel_error(out, want, T * D), 0, 3e-6);
    free(qkv), free(out), free(want);
}

int main(void)
{
    for (const test_level *l = test_levels(); l->name; l++) {
        err_detail d = {0};
        CHECK_OK(compute_create(&ctx, &(compute_options){.n_threads = 2, .cpu_mask = l->mask}, &d), d);
        test_segments();
        compute_destroy(ctx);
    }
    CHECK_DONE();
}
