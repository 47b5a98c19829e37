#include "compute/kernels/ops.h"

#include "compute/kernels/cpu.h"

const ops *ops_select(unsigned flags)
{
    const unsigned vnni = CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI;
    const unsigned bf16 = vnni | CPU_AVX512_BF16 | CPU_BF16_IS_FAST;
    const unsigned amx = vnni | CPU_AVX512_BF16 | CPU_AMX;
    if ((flags & amx) == amx && ops_avx512_amx()) {
        return ops_avx512_amx();
    }
    if ((flags & bf16) == bf16 && ops_avx512_bf16()) {
        return ops_avx512_bf16();
    }
    if ((flags & vnni) == vnni && ops_avx512_vnni()) {
        return ops_avx512_vnni();
    }
    if ((flags & CPU_AVX2) && (flags & CPU_AVX512) && ops_avx512()) {
        return ops_avx512();
    }
    if ((flags & CPU_AVX2) && ops_avx2()) {
        return ops_avx2();
    }
    const unsigned i8mm = CPU_NEON | CPU_NEON_DOTPROD | CPU_NEON_I8MM;
    if ((flags & i8mm) == i8mm && ops_neon_i8mm()) {
        return ops_neon_i8mm();
    }
    if ((flags & CPU_NEON) && (flags & CPU_NEON_DOTPROD) && ops_neon_dotprod()) {
        return ops_neon_dotprod();
    }
    if ((flags & CPU_NEON) && ops_neon()) {
        return ops_neon();
    }
    return ops_generic();
}
