/* ops_kv: the kernels of one instruction set on packed keys and values, one entry a kv_type; part of the table in ops.h,
 * whose rules hold here too. Any thread.
 *
 *     o->kv[KV_BF16].dot(scores, n, q, hd, R, keys, row_bytes, n, hd);
 *
 * Rows are packed as kv_type.h says; rows n and n+1 are row_bytes apart and need 2-byte alignment only.
 * ops_kv_generic.c is the specification.
 */
#ifndef PARLEY_COMPUTE_OPS_KV_H
#define PARLEY_COMPUTE_OPS_KV_H

#include <stddef.h>

#include "compute/kv_type.h"

typedef struct kv_ops {
    /* Packs hd numbers. The same bytes from every table. */
    void (*pack)(void *out, const float *x, size_t hd);
    /* The hd numbers of a packed row. The same bits from every table. */
    void (*widen)(float *out, const void *row, size_t hd);
    /* out[r*out_stride + j] = q[r] . row j, for R queries (q_stride floats apart) and n rows. Summed as dot_rows does;
     * of q8 the bytes are summed and the sum is multiplied by the scale. */
    void (*dot)(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R, const void *rows,
                size_t row_bytes, size_t n, size_t hd);
    /* out[r*out_stride + i] += sum_j p[r*p_stride + j] * row j [i], j rising, starting from out. Of q8,
     * p[j] * scale[j] is rounded first. */
    void (*mix)(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R, const void *rows,
                size_t row_bytes, size_t n, size_t hd);
} kv_ops;

extern const kv_ops KV_OPS_GENERIC[KV_TYPES];

#endif
