/* ops_q_tile: the loops around a block of tile_q (ops.h), once for all instruction sets. Included
 * by the files that define the block.
 *
 * Wanted of the including file: tile_n(nv), the rows of weights that are taken together with nv
 * vectors; tile_block(), the sums of rows n0 .. n0+nn-1 of w and of nv vectors of TILE_SIDE rows from
 * row t of x on, nv at most 2.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_TILE_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_TILE_H

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"

/* All rows of weights against nv vectors. */
static ALWAYS_INLINE void tile_vectors(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                       const tile_q_rows *w, size_t N, size_t n_blocks, const size_t nv)
{
    const size_t nn = tile_n(nv);
    size_t n = 0;
    for (; n + nn <= N; n += nn) {
        tile_block(kind, sums, x, t, w, n, n_blocks, nn, nv);
    }
    for (; n + 2 <= N; n += 2) {
        tile_block(kind, sums, x, t, w, n, n_blocks, 2, nv);
    }
    if (n < N) {
        tile_block(kind, sums, x, t, w, n, n_blocks, 1, nv);
    }
}

static ALWAYS_INLINE void tile_q_blocks(const tile_kind kind, float *sums, const tile_q_block *x,
                                        const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    size_t t = 0;
    for (; t + TILE_SIDE < T; t += 2 * TILE_SIDE) {
        tile_vectors(kind, sums, x, t, w, N, n_blocks, 2);
    }
    if (t < T) {
        tile_vectors(kind, sums, x, t, w, N, n_blocks, 1);
    }
}

#endif
