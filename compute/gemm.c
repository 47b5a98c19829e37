#include "compute/gemm.h"

#include <cblas.h>
#include <strings.h>

#include "base/compiler.h"
#include "compute/kernels/cpu.h"

void gemm_setup(void)
{
    openblas_set_num_threads(1);
}

const char *gemm_core(void)
{
    return openblas_get_corename();
}

const char *gemm_wanted_core(unsigned flags)
{
    static const char *const WITH_AVX2[] = {"Haswell",  "Zen",        "Excavator",
                                            "SkylakeX", "Cooperlake", "SapphireRapids"};
    bool is_right = !(flags & CPU_AVX2);
    for (size_t i = 0; i < ARRAY_LEN(WITH_AVX2); i++) {
        is_right = is_right || strcasecmp(openblas_get_corename(), WITH_AVX2[i]) == 0;
    }
    return is_right ? NULL : flags & CPU_AVX512 ? "SkylakeX" : "Haswell";
}

void gemm_nt(float *out, size_t out_stride, const float *x, size_t x_stride, const float *w, size_t w_stride,
             size_t T, size_t N, size_t K, bool accumulate)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)T, (blasint)N, (blasint)K, 1.0f, x,
                (blasint)x_stride, w, (blasint)w_stride, accumulate ? 1.0f : 0.0f, out, (blasint)out_stride);
}
