/* ops_kv: the kernels of one instruction set on packed keys and values, one entry a kv_type; part
 * of the table in ops.h, whose rules hold here too. Any thread.
 *
 *     const kv_rows keys = {{page}, 1, n, row_bytes, hd, {scales}};
 *     o->kv[KV_BF16].dot(scores, n, q, hd, R, &keys);
 *
 * ops_kv_generic.c is the specification.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_KV_H
#define PARLEY_COMPUTE_KERNELS_OPS_KV_H

#include <stddef.h>

#include "compute/formats/kv_type.h"

/* Packed rows (kv_type.h) that lie in one piece of memory, or in KV_PARTS pieces that are read side
 * by side, which is what memory answers fastest: row k is row k / n_parts of piece k % n_parts.
 * Rows of a piece are row_bytes apart and need 2-byte alignment only. */
enum { KV_PARTS = 4 };

/* Values that vector kernels take through all strips of columns and all queries before the next
 * ones: they stay in the L1 cache, and what they ask for ahead is spread over all strips. A
 * multiple of KV_PARTS. */
enum { KV_CHUNK = 16 };

typedef struct kv_rows {
    const void *parts[KV_PARTS];
    size_t n_parts; /* 1 or KV_PARTS */
    size_t n;       /* rows in all, a multiple of n_parts */
    size_t row_bytes, hd;
    const float *scales[KV_PARTS]; /* of q8 and q4: of the rows of each piece, one after another */
} kv_rows;

/* Row k; n_parts is that of rows, for kernels that know it as a constant. */
static inline const unsigned char *kv_row_of(const kv_rows *rows, size_t k, size_t n_parts)
{
    return (const unsigned char *)rows->parts[k % n_parts] + k / n_parts * rows->row_bytes;
}

static inline const unsigned char *kv_row_at(const kv_rows *rows, size_t k)
{
    return kv_row_of(rows, k, rows->n_parts);
}

/* The scale of row k of q8 or q4. */
static inline float kv_scale_at(const kv_rows *rows, size_t k)
{
    return rows->scales[k % rows->n_parts][k / rows->n_parts];
}

/* Of q8 and q4, products are integers: queries, and weights of at most KV_Q8_ROWS values at a time, become
 * whole numbers up to a limit with which the sums fit in 32 bits. For `limit` and the largest
 * magnitude `top`: number = round(x * (limit / top)), ties to even, which stands for number * (top
 * / limit); zeros where top is at most KV_Q8_LEAST. */
enum { KV_Q8_ROWS = 256, KV_Q8_WEIGHT_LIMIT = 32767 };
#define KV_Q8_LEAST 1e-30f

static inline int kv_q8_query_limit(size_t hd)
{
    return hd <= 512 ? 32767 : (int)(32767 * 512 / hd);
}

typedef struct kv_ops {
    /* Packs hd numbers and returns their scale, which is 1 for types that have none. The same bytes
     * from every table. */
    float (*pack)(void *out, const float *x, size_t hd);
    /* The hd numbers of a packed row. The same bits from every table. */
    void (*widen)(float *out, const void *row, float scale, size_t hd);
    /* out[r*out_stride + k] = q[r] . row k, for R queries (q_stride floats apart). Summed as
     * dot_rows does; of q8 and q4 (float)sum * (what a whole number of the query stands for * the
     * row's scale). */
    void (*dot)(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                const kv_rows *rows);
    /* out[r*out_stride + i] += sum_k p[r*p_stride + k] * row k [i], k rising, starting from out. Of
     * q8 and q4 the weights are p[k] * scale[k], rounded before they become whole numbers; KV_Q8_ROWS rows
     * at a time, out takes in (float)sum * what one of them stands for. */
    void (*mix)(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,
                const kv_rows *rows);
} kv_ops;

/* The dot and the mix of one type: `dot` and `mix` take what tells its numbers as a last argument. */
#define KV_BY_TYPE(dot_name, mix_name, dot, mix, what)                                                       \
    static void dot_name(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,           \
                         const kv_rows *rows)                                                                \
    {                                                                                                        \
        dot(out, out_stride, q, q_stride, R, rows, what);                                                    \
    }                                                                                                        \
    static void mix_name(float *out, size_t out_stride, const float *p, size_t p_stride, size_t R,           \
                         const kv_rows *rows)                                                                \
    {                                                                                                        \
        mix(out, out_stride, p, p_stride, R, rows, what);                                                    \
    }

extern const kv_ops KV_OPS_GENERIC[KV_TYPES];

#endif
