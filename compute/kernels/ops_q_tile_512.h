/* ops_q_tile_512: what the sums of a block want of x, once for the tiles of AVX-512 VNNI and of AMX. Any thread.
 *
 *     __m512 x_sum = sum_of_offset(offset_of(kind, x, t, part));
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_TILE_512_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_TILE_512_H

#include <immintrin.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops_q.h"

/* What is added to the products of a part of a block (of halves there are two), for 16 rows from t on. */
static ALWAYS_INLINE __m512i offset_of(const tile_kind kind, const tile_q_block *x, size_t t, size_t part)
{
    const __m512i all = _mm512_loadu_si512(&x->offset[t]);
    if (kind != TILE_HALVES) {
        return all;
    }
    const __m512i first = _mm512_loadu_si512(&x->offset_first[t]);
    return part == 0 ? first : _mm512_sub_epi32(all, first);
}

/* The sum of x's numbers that an offset stands for. */
static ALWAYS_INLINE __m512 sum_of_offset(__m512i offset)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(offset), _mm512_set1_ps(-1.0f / 128));
}

#endif
