/* ops_bf16: the kernels written with the dot instructions of AVX-512 BF16 and AMX, for the tables in
 * ops_avx512.c alone. Any thread. Signatures and meaning: ops.h.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_BF16_H
#define PARLEY_COMPUTE_KERNELS_OPS_BF16_H

#include <stddef.h>
#include <stdint.h>

void pack_avx512_bf16(uint32_t *out, const float *x, size_t x_stride, size_t T, size_t K);
void tile_avx512_bf16(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T, size_t N,
                      size_t K);
void round_avx512_bf16(uint16_t *out, const float *x, size_t K);
void dot_avx512_bf16(float *out, size_t out_stride, const uint16_t *x, size_t x_stride, size_t T,
                     const void *w, size_t w_stride, size_t N, size_t K);
void tile_bf16_amx(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T, size_t N,
                   size_t K);

#endif
