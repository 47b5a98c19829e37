#include "compute/ops.h"

#include "compute/cpu.h"

const ops *ops_select(unsigned flags)
{
    if ((flags & CPU_AVX2) && (flags & CPU_AVX512) && ops_avx512()) {
        return ops_avx512();
    }
    if ((flags & CPU_AVX2) && ops_avx2()) {
        return ops_avx2();
    }
    return ops_generic();
}
