/* gemm: float32 matrix products of the installed BLAS, one thread a call. Any thread.
 *
 *     gemm_setup();
 *     gemm_nt(out, N, x, K, w, K, T, N, K, false);
 */
#ifndef PARLEY_COMPUTE_GEMM_H
#define PARLEY_COMPUTE_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* Makes every later call run in its caller's thread alone; call before the first product. */
void gemm_setup(void);

/* The kernel set the library chose ("SkylakeX"); constant string. */
const char *gemm_core(void);

/* The kernel set for a processor with those CPU_* flags, where it has AVX2 and the library, which does not
 * know it, chose one without ("Haswell", "SkylakeX"); NULL: what it chose is right. For OPENBLAS_CORETYPE, which
 * it reads before main. */
const char *gemm_wanted_core(unsigned flags);

/* out[t,n] = sum_k x[t,k] * w[n,k], added to out if accumulate; strides in floats; at most 2^31-1
 * each. */
void gemm_nt(float *out, size_t out_stride, const float *x, size_t x_stride, const float *w, size_t w_stride,
             size_t T, size_t N, size_t K, bool accumulate);

#endif
