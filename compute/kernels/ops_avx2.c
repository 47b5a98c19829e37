/* AVX2 with FMA and F16C: a vector of 16 floats is a pair of registers. */
#include "compute/kernels/ops.h"

#if defined(__AVX2__)

#include "compute/kernels/ops_q.h"
#include "compute/kernels/vec_avx2.h"

/* 16 registers: 6 pairs of accumulators (measured: better than 4 for dot products), the rest for
 * inputs. */
enum { DOT_T = 3, DOT_N = 2, DOT_T_FEW = 1, MUL_M = 4, MUL_V = 1, TILE_N = 6, TILE_V = 1, DELTA_V = 1 };
enum { KV_R = 4, KV_N = 1, KV_V = 1, KV_Q8_R = 2, KV_Q8_N = 1, KV_Q8_GROUPS = 1 };

#include "compute/kernels/ops_simd.h"

#include "compute/kernels/ops_kv_simd.h"

const ops *ops_avx2(void)
{
    static const ops table = {.name = "avx2",
                              .tiles_best = true,
                              .kv = KV_OPS_SIMD,
                              .ggml = ggml_kernels_avx2,
                              .quantize_x = quantize_x_avx2,
                              .dot_q = {dot_q8_avx2, dot_q4_avx2, dot_q5_avx2},
                              .unpack_q = {unpack_q4_avx2, unpack_q5_avx2},
                              .tile_q = tile_q_avx2,
                              OPS_SIMD_MEMBERS};
    return &table;
}

#else

const ops *ops_avx2(void)
{
    return NULL;
}

#endif
