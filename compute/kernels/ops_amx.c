/* Tiles with AMX: a block of 16 rows by 16 rows is one instruction. What it is faster by has not been measured. */
#include "compute/kernels/ops_q.h"

/* GCC's names, and those of clang before 15. */
#if (defined(__AMX_INT8__) && defined(__AMX_BF16__)) || (defined(__AMXINT8__) && defined(__AMXBF16__))

#include <immintrin.h>

#include "compute/kernels/kernel.h"

/* TRAP: the intrinsics of GCC 12 do not say that they read memory, LDTILECFG's only that of its first 8 bytes; so
 * everything is written before them that can be reached from `at`. */
#define WRITTEN(at) __asm__ volatile("" : : "r"(at) : "memory")

#define TILE_CONFIGURE(config)                                                                               \
    do {                                                                                                     \
        WRITTEN(config);                                                                                     \
        _tile_loadconfig(config);                                                                            \
    } while (0)
#define TILE_LOAD(tile, from, stride)                                                                        \
    do {                                                                                                     \
        WRITTEN(from);                                                                                       \
        _tile_loadd(tile, from, stride);                                                                     \
    } while (0)
#define TILE_STORE    _tile_stored
#define TILE_ZERO     _tile_zero
#define TILE_RELEASE  _tile_release
#define TILE_DOT_U8S8 _tile_dpbusd
#define TILE_DOT_BF16 _tile_dpbf16ps

#include "compute/kernels/ops_amx_simd.h"

void tile_q_amx(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    tile_q_of(tile_q_blocks, sums, x, w, T, N, n_blocks);
}

void tile_bf16_amx(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T, size_t N,
                   size_t K)
{
    tile_bf16(sums, x, w, w_stride, T, N, K);
}

#endif
