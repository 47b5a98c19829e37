/* ops_q_tile: the loops around a block of tile_q (ops.h), once for all instruction sets. Included
 * by the files that define the block.
 *
 * Wanted of the including file: TILE_V vectors of TILE_SIDE rows of x at most, 2 or 3; tile_n(nv),
 * the rows of weights that are taken together with nv vectors; tile_block(), the sums of rows n0 ..
 * n0+nn-1 of w and of nv vectors from row t of x on.
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
    for (; n < N; n++) {
        tile_block(kind, sums, x, t, w, n, n_blocks, 1, nv);
    }
}

/* The vectors in shares of equal size: one alone leaves most of the registers empty. */
static ALWAYS_INLINE void tile_q_blocks(const tile_kind kind, float *sums, const tile_q_block *x,
                                        const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    for (size_t t = 0; t < T;) {
        const size_t left = (T - t + TILE_SIDE - 1) / TILE_SIDE, shares = (left + TILE_V - 1) / TILE_V;
        const size_t nv = (left + shares - 1) / shares;
        if (nv == 1) {
            tile_vectors(kind, sums, x, t, w, N, n_blocks, 1);
        } else if (nv == 2 || TILE_V == 2) {
            tile_vectors(kind, sums, x, t, w, N, n_blocks, 2);
        } else {
            tile_vectors(kind, sums, x, t, w, N, n_blocks, 3);
        }
        t += nv * TILE_SIDE;
    }
}

static ALWAYS_INLINE void tile_q_of(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T,
                                    size_t N, size_t n_blocks)
{
    if (w->halves) {
        tile_q_blocks(TILE_HALVES, sums, x, w, T, N, n_blocks);
    } else if (!w->minimum) {
        tile_q_blocks(TILE_PLAIN, sums, x, w, T, N, n_blocks);
    } else if (w->wide) {
        tile_q_blocks(TILE_WIDE, sums, x, w, T, N, n_blocks);
    } else {
        tile_q_blocks(TILE_MINIMA, sums, x, w, T, N, n_blocks);
    }
}

#endif
