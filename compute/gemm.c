#include "compute/gemm.h"

#include <cblas.h>

void gemm_setup(void)
{
    openblas_set_num_threads(1);
}

const char *gemm_core(void)
{
    return openblas_get_corename();
}

void gemm_nt(float *out, size_t out_stride, const float *x, size_t x_stride, const float *w, size_t w_stride,
             size_t T, size_t N, size_t K, bool accumulate)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)T, (blasint)N, (blasint)K, 1.0f, x,
                (blasint)x_stride, w, (blasint)w_stride, accumulate ? 1.0f : 0.0f, out, (blasint)out_stride);
}
