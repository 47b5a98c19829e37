/* bf16_emulated: the kernels for AVX-512 BF16 on processors without it: their own source over operations in AVX-512. Any
 * thread.
 *
 *     const ops *o = ops_bf16_emulated();
 */
#ifndef PARLEY_TESTS_COMPUTE_KERNELS_BF16_EMULATED_H
#define PARLEY_TESTS_COMPUTE_KERNELS_BF16_EMULATED_H

#include "compute/kernels/ops.h"

/* The table, whose other kernels are those of AVX-512 VNNI: that it needs. NULL on other processor families. */
const ops *ops_bf16_emulated(void);

#endif
