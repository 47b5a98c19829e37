/* Packed keys and values of 8 and 4 bits with AVX-512 VNNI, which multiplies and adds pairs in one
 * instruction. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX512VNNI__)

#include "compute/kernels/vec_avx512.h"

enum { KV_Q8_R = 4, KV_Q8_N = 4, KV_Q8_GROUPS = 2 };

#include "compute/kernels/ops_kv_q8_simd.h"

void kv_dot_q8_vnni(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                    const kv_rows *rows)
{
    kv_dot_q8(out, out_stride, q, q_stride, R, rows);
}

void kv_mix_q8_vnni(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                    const kv_rows *rows)
{
    kv_mix_q8(out, out_stride, p, p_stride, R, rows);
}

void kv_dot_q4_vnni(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                    const kv_rows *rows)
{
    kv_dot_q4(out, out_stride, q, q_stride, R, rows);
}

void kv_mix_q4_vnni(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                    const kv_rows *rows)
{
    kv_mix_q4(out, out_stride, p, p_stride, R, rows);
}

#endif
