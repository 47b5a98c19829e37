/* Attention inside segments against formulas written out in double, for every kernel table: segments of nothing, of one row,
 * of several blocks of queries and tiles of keys; in floats, in bf16 and in 8 bits. */
#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/rng.h"

#include "tests/compute/naive.h"

/* Heads of a part of a panel of values, and of one and a part; the last segment in two blocks of queries. */
static const struct {
    size_t H, hd, n;
    int32_t cu[6];
} SHAPES[] = {{3, 24, 5, {0, 1, 1, 140, 204, 804}}, {2, 72, 2, {0, 5, 140}}};

/* A context that is not fast takes every type for f32, and so does one whose processor lacks the instructions. */
static void test_segments(const test_level *level, size_t shape, bool fast, dtype rounded, double tolerance)
{
    const size_t H = SHAPES[shape].H, hd = SHAPES[shape].hd, D = H * hd, n_segments = SHAPES[shape].n;
    const int32_t *cu = SHAPES[shape].cu;
    const size_t T = (size_t)cu[n_segments], first = (size_t)cu[n_segments - 1];
    float *qkv = rng_floats(T * 3 * D, 3), *out = rng_floats(T * D, 1);
    if (!check_takes(3)) { /* behind the draws: the numbers of the others stay the same */
        free(qkv), free(out);
        return;
    }
    double *want = doubles(T * D), scale = 1 / sqrt((double)hd);
    compute *c = test_context(level, (compute_options){.n_threads = 2, .fast = fast}),
            *one = test_context(level, (compute_options){.n_threads = 1, .fast = fast});
    nn_attention_segments(c, out, qkv, cu, n_segments, rounded, (float)scale, H, hd);
    for (size_t s = 0; s < n_segments; s++) {
        size_t begin = (size_t)cu[s], n = (size_t)(cu[s + 1] - cu[s]);
        for (size_t t = begin; t < begin + n; t++) {
            for (size_t h = 0; h < H; h++) {
                const float *k = qkv + begin * 3 * D + D + h * hd;
                attend_naive(want + t * D + h * hd, qkv + t * 3 * D + h * hd, k, k + D, 3 * D, 0, n, hd,
                             scale, NULL);
            }
        }
    }
    CHECK_NEAR(rel_error(out, want, T * D), 0, tolerance);
    /* A segment alone, by one thread: the same bits. */
    const int32_t last[] = {0, (int32_t)(T - first)};
    float *alone = rng_floats((T - first) * D, 1);
    nn_attention_segments(one, alone, qkv + first * 3 * D, last, 1, rounded, (float)scale, H, hd);
    CHECK(memcmp(alone, out + first * D, (T - first) * D * sizeof *alone) == 0);
    compute_destroy(c), compute_destroy(one);
    free(qkv), free(out), free(want), free(alone);
}

int main(void)
{
    for (const test_level *l = test_contexts(); l->name; l++) {
        for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
            test_segments(l, i, false, DTYPE_F32, 3e-6);
            test_segments(l, i, false, DTYPE_Q8, 3e-6);
            test_segments(l, i, true, DTYPE_F32, 3e-6);
            test_segments(l, i, true, DTYPE_BF16, 1.5e-2);
            test_segments(l, i, true, DTYPE_Q8, 3e-2);
        }
    }
    CHECK_DONE();
}
