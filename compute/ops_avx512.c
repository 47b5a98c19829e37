/* AVX-512 (F, BW, DQ, VL): a vector of 16 floats is one register. */
#include "compute/ops.h"

#if defined(__AVX512F__)

#include "compute/kernel.h"
#include "compute/ops_bf16.h"
#include "compute/vec_avx512.h"

/* 32 registers: up to 24 accumulators, 1 weight, 4 inputs. */
enum { DOT_T = 4, DOT_N = 4, DOT_T_FEW = 3, DOT_N_FEW = 8, MUL_M = 4, MUL_V = 4, TILE_N = 6, TILE_V = 4 };
enum { KV_R = 4, KV_N = 4, KV_V = 4 };

#include "compute/ops_simd.h"

#include "compute/ops_kv_simd.h"

const ops *ops_avx512(void)
{
    static const ops table = {
        .name = "avx512", .dot_rows_best = SIZE_MAX, .tiles_best = true, .kv = KV_OPS_SIMD, OPS_SIMD_MEMBERS};
    return &table;
}

const ops *ops_avx512_bf16(void)
{
    static const ops table = {.name = "avx512+bf16",
                              .dot_rows_best = SIZE_MAX,
                              .tiles_best = true,
                              .kv = KV_OPS_SIMD,
                              OPS_SIMD_MEMBERS,
                              .pack_bf16 = pack_avx512_bf16,
                              .tile_bf16 = tile_avx512_bf16};
    return &table;
}

#else

const ops *ops_avx512(void)
{
    return NULL;
}

const ops *ops_avx512_bf16(void)
{
    return NULL;
}

#endif
