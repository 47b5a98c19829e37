/* AVX-512 with the dot instruction of BF16: a pair of products a lane. */
#include "compute/kernels/ops_bf16.h"

#if defined(__AVX512BF16__)

#include <immintrin.h>

#define BF16_ROUND(high, low) ((__m512i)_mm512_cvtne2ps_pbh(high, low))
#define BF16_DOT(sums, a, b)  _mm512_dpbf16_ps(sums, (__m512bh)(a), (__m512bh)(b))

#include "compute/kernels/ops_bf16_simd.h"

#endif
