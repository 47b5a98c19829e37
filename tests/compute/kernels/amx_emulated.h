/* amx_emulated: the kernels for AMX on processors without it: their own source over operations in plain C. One
 * thread at a time.
 *
 *     const ops *o = ops_amx_emulated();
 */
#ifndef PARLEY_TESTS_COMPUTE_KERNELS_AMX_EMULATED_H
#define PARLEY_TESTS_COMPUTE_KERNELS_AMX_EMULATED_H

#include "compute/kernels/ops.h"

/* The table, whose other kernels are those of AVX-512 VNNI: that it needs. NULL on other processor families. */
const ops *ops_amx_emulated(void);

#endif
