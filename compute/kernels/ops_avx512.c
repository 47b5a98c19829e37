/* AVX-512 (F, BW, DQ, VL): a vector of 16 floats is one register. */
#include "compute/kernels/ops.h"

#if defined(__AVX512F__)

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops_bf16.h"
#include "compute/kernels/ops_q.h"
#include "compute/kernels/vec_avx512.h"

/* 32 registers: up to 24 accumulators, 1 weight, 4 inputs. */
enum { DOT_T = 4, DOT_N = 4, DOT_T_FEW = 3, MUL_M = 6, MUL_V = 4, TILE_N = 6, TILE_V = 4, DELTA_V = 8 };
enum { KV_R = 4, KV_N = 4, KV_V = 4, KV_Q8_R = 4, KV_Q8_N = 4, KV_Q8_GROUPS = 2 };

#include "compute/kernels/ops_simd.h"

#include "compute/kernels/ops_kv_simd.h"

/* The members that all tables of this file have in common. */
#define OPS_512_MEMBERS                                                                                      \
    OPS_SIMD_MEMBERS, .dot_rows_best = true, .tiles_best = true, .quantize_x = quantize_x_avx2,              \
                      .unpack_q = {unpack_q4_avx2, unpack_q5_avx2}

static const kv_ops KV_OPS_VNNI[KV_TYPES] = {
    KV_OPS_SIMD_FLOATS,
    {kv_pack_q8, kv_widen_q8, kv_dot_q8_vnni, kv_mix_q8_vnni},
    {kv_pack_q4, kv_widen_q4, kv_dot_q4_vnni, kv_mix_q4_vnni},
};

const ops *ops_avx512(void)
{
    static const ops table = {.name = "avx512",
                              OPS_512_MEMBERS,
                              .kv = KV_OPS_SIMD,
                              .dot_q = {dot_q8_avx2, dot_q4_avx2, dot_q5_avx2},
                              .tile_q = tile_q_avx2,
                              .ggml = ggml_kernels_avx2};
    return &table;
}

/* What the tables from VNNI on share. */
#define OPS_VNNI_MEMBERS                                                                                     \
    OPS_512_MEMBERS, .kv = KV_OPS_VNNI, .dot_q = {dot_q8_vnni, dot_q4_vnni, dot_q5_vnni},                    \
                     .panel_q = {panel_q8_vnni, panel_q4_vnni, panel_q5_vnni}, .attend_q = attend_q_vnni,    \
                     .peak_q = peak_q_vnni, .ggml = ggml_kernels_avx512_vnni

const ops *ops_avx512_vnni(void)
{
    static const ops table = {.name = "avx512+vnni",
                              OPS_VNNI_MEMBERS,
                              .pack_x = pack_x_vnni,
                              .turn_q = turn_q_vnni,
                              .tile_turned = tile_turned_vnni};
    return &table;
}

const ops *ops_avx512_bf16(void)
{
    static const ops table = {.name = "avx512+vnni+bf16",
                              OPS_VNNI_MEMBERS,
                              .pack_x = pack_x_vnni,
                              .turn_q = turn_q_vnni,
                              .tile_turned = tile_turned_vnni,
                              .pack_bf16 = pack_avx512_bf16,
                              .tile_bf16 = tile_avx512_bf16,
                              .round_bf16 = round_avx512_bf16,
                              .dot_bf16 = dot_avx512_bf16};
    return &table;
}

const ops *ops_avx512_amx(void)
{
    static const ops table = {.name = "avx512+vnni+bf16+amx",
                              OPS_VNNI_MEMBERS,
                              .tile_q = tile_q_amx,
                              .pack_bf16 = pack_avx512_bf16,
                              .tile_bf16 = tile_bf16_amx};
    return &table;
}

#else

const ops *ops_avx512(void)
{
    return NULL;
}

const ops *ops_avx512_vnni(void)
{
    return NULL;
}

const ops *ops_avx512_bf16(void)
{
    return NULL;
}

const ops *ops_avx512_amx(void)
{
    return NULL;
}

#endif
