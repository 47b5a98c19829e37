/* The dot product of bytes of ARMv8.2: four products and their sum are one instruction. */
#if defined(__aarch64__)

#include "compute/kernels/ops_q_neon.h"

static ALWAYS_INLINE int32x4_t sums_of_four(int8x16_t a, int8x16_t b)
{
    return vdotq_s32(vdupq_n_s32(0), a, b);
}

DOT_Q_NEON(dotprod, sums_of_four)

#endif
