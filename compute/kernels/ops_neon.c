/* NEON, which every aarch64 has: a vector of 16 floats is four registers. What has no loop of its own here is
 * the specification's. */
#include "compute/kernels/ops.h"

#if defined(__aarch64__)

#include "compute/kernels/ops_q_neon.h"
#include "compute/kernels/vec_neon.h"

/* 32 registers: 6 accumulators of 4. */
enum { DOT_T = 3, DOT_N = 2, DOT_T_FEW = 1, MUL_M = 4, MUL_V = 1, TILE_N = 6, TILE_V = 1, DELTA_V = 1 };

#include "compute/kernels/ops_simd.h"

/* Four sums of four products of signed bytes. */
static ALWAYS_INLINE int32x4_t sums_of_four(int8x16_t a, int8x16_t b)
{
    const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b)), high = vmull_high_s8(a, b);
    return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
}

DOT_Q_NEON(neon, sums_of_four)

static void quantize_x(quant_x *out, const float *x, size_t K)
{
    ops_generic()->quantize_x(out, x, K);
}

static void unpack_q4(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    ops_generic()->unpack_q[0](u, scale, minimum, row, K);
}

static void unpack_q5(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    ops_generic()->unpack_q[1](u, scale, minimum, row, K);
}

static void tile_q(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                   size_t n_blocks)
{
    ops_generic()->tile_q(sums, x, w, T, N, n_blocks);
}

#define NEON_MEMBERS                                                                                         \
    OPS_SIMD_MEMBERS, .kv = KV_OPS_GENERIC, .ggml = ggml_kernels_generic, .quantize_x = quantize_x,          \
                      .unpack_q = {unpack_q4, unpack_q5}, .tile_q = tile_q

const ops *ops_neon(void)
{
    static const ops table = {.name = "neon", .dot_q = {dot_q8_neon, dot_q4_neon, dot_q5_neon}, NEON_MEMBERS};
    return &table;
}

const ops *ops_neon_dotprod(void)
{
    static const ops table = {
        .name = "neon+dotprod", .dot_q = {dot_q8_dotprod, dot_q4_dotprod, dot_q5_dotprod}, NEON_MEMBERS};
    return &table;
}

const ops *ops_neon_i8mm(void)
{
    static const ops table = {
        .name = "neon+dotprod+i8mm", .dot_q = {dot_q8_i8mm, dot_q4_i8mm, dot_q5_i8mm}, NEON_MEMBERS};
    return &table;
}

#else

const ops *ops_neon(void)
{
    return NULL;
}

const ops *ops_neon_dotprod(void)
{
    return NULL;
}

const ops *ops_neon_i8mm(void)
{
    return NULL;
}

#endif
