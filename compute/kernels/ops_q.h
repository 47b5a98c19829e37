/* ops_q: the vector kernels for blocks of 8 and 4 bits, for the tables in ops_avx2.c and
 * ops_avx512.c alone; for their own files also how the rows of tile_q come. Any thread. Signatures and meaning: ops.h.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_H

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops.h"

/* How the rows of tile_q (ops.h) are made: neither minima nor halves; minima, u <= 15; minima, any
 * u; halves. */
typedef enum tile_kind { TILE_PLAIN, TILE_MINIMA, TILE_WIDE, TILE_HALVES } tile_kind;

/* tile_q of rows of one kind. */
typedef void tile_kind_fn(tile_kind kind, float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T,
                          size_t N, size_t n_blocks);

/* Inlined with its function, so that each kind gets loops of its own. */
static ALWAYS_INLINE void tile_q_of(tile_kind_fn *blocks, float *sums, const tile_q_block *x,
                                    const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    if (w->halves) {
        blocks(TILE_HALVES, sums, x, w, T, N, n_blocks);
    } else if (!w->minimum) {
        blocks(TILE_PLAIN, sums, x, w, T, N, n_blocks);
    } else if (w->wide) {
        blocks(TILE_WIDE, sums, x, w, T, N, n_blocks);
    } else {
        blocks(TILE_MINIMA, sums, x, w, T, N, n_blocks);
    }
}

void quantize_x_avx2(quant_x *out, const float *x, size_t K);
void unpack_q4_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K);
void unpack_q5_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K);

dot_q_fn dot_q8_avx2, dot_q4_avx2, dot_q5_avx2; /* pairs of bytes multiplied to 16 bits */
dot_q_fn dot_q8_vnni, dot_q4_vnni, dot_q5_vnni; /* AVX-512 VNNI: four of them to 32 */
panel_q_fn panel_q8_vnni, panel_q4_vnni, panel_q5_vnni;
void tile_q_avx2(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                 size_t n_blocks);
int32_t peak_q_vnni(size_t rounds);
void attend_q_vnni(attend_queries *to, const attend_keys *keys);
void pack_x_vnni(tile_x_share *out, const float *x, size_t x_stride, size_t T, size_t K);
void turn_q_vnni(const tile_q_turned *to, const tile_q_rows *w, size_t N, size_t n_blocks);
void tile_turned_vnni(float *out, size_t out_stride, const tile_x_share *x, const tile_q_turned *w,
                      const float *bias, size_t T, size_t N, size_t n_blocks, prefetch_range ahead);
void tile_q_amx(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                size_t n_blocks);

/* Packed keys and values of 8 bits, as in ops_kv.h. */
void kv_dot_q8_vnni(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                    const kv_rows *rows);
void kv_mix_q8_vnni(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                    const kv_rows *rows);
void kv_dot_q4_vnni(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                    const kv_rows *rows);
void kv_mix_q4_vnni(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                    const kv_rows *rows);

#endif
