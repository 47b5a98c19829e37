/* gemm: which of OpenBLAS's kernels a processor should have, beside the ones that OpenBLAS chose: on an older processor it
 * chooses others than here, so the test begins again as if it ran on one. */
#include "compute/gemm.h"

#include <unistd.h>

#include "compute/kernels/cpu.h"
#include "tests/check.h"
#include "tests/compute/rng.h"

#include "tests/compute/naive.h"

static void test_product(void)
{
    enum { T = 5, N = 7, K = 19 };
    float *x = rng_floats(T * K, 1), *w = rng_floats(N * K, 1), *out = rng_floats(T * N, 1);
    double *want = doubles(T * N);
    for (int again = 0; again < 2; again++) { /* the second time on top of the first */
        for (size_t t = 0; t < T; t++) {
            for (size_t n = 0; n < N; n++) {
                for (size_t k = 0; k < K; k++) {
                    want[t * N + n] += (double)x[t * K + k] * (double)w[n * K + k];
                }
            }
        }
        gemm_nt(out, N, x, K, w, K, T, N, K, again);
        CHECK_NEAR(rel_error(out, want, T * N), 0, 1e-6);
    }
    free(x), free(w), free(out), guard_free(want);
}

int main(int argc, char **argv)
{
#if defined(__x86_64__)
    if (argc == 1) {
        setenv("OPENBLAS_CORETYPE", "Nehalem", 1);
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    }
    CHECK(argc == 2);
    if (strcmp(gemm_core(), "Nehalem") == 0) {
        CHECK(gemm_wanted_core(0) == NULL);
        CHECK_STR(gemm_wanted_core(CPU_AVX2), "Haswell");
        CHECK_STR(gemm_wanted_core(CPU_AVX2 | CPU_AVX512), "SkylakeX");
    } else {
        printf("not checked here: OpenBLAS does not choose its kernels at start\n");
    }
#else
    CHECK(argc == 1 && argv[0]);
#endif
    gemm_setup();
    test_product();
    CHECK_DONE();
}
