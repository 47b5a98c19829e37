/* kv_type: how keys and values lie in memory. Any thread.
 *
 *     size_t bytes = kv_row_bytes(KV_BF16, 256);
 *
 * A packed row is one head of one token, hd numbers; rows of a page lie behind one another, behind
 * the scales of all of them (nn.h):
 *   f32, bf16, f16   hd numbers one after another; bf16 and f16 rounded to the nearest, ties to even, f16 kept finite
 *   q8               hd signed bytes, zeros up to a multiple of 4; number i is byte i * scale, scale = largest magnitude / 127
 *   q4               groups of 32 numbers in 16 bytes, zeros behind the last; number i is KV_Q4_NUMBERS[nibble i] * scale.
 * The nibble of number i of a q4 group is bits 4 * (i / 8) and up of its little-endian 16-bit word
 * i % 8. The scale is a float elsewhere, so that rows keep to the lines of the cache.
 *
 * Rows of q4 are to be rotated first (nn_rotate_heads), so that no number stands out: what 16 steps
 * can say is fitted to the numbers that a rotation leaves.
 */
#ifndef PARLEY_COMPUTE_FORMATS_KV_TYPE_H
#define PARLEY_COMPUTE_FORMATS_KV_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kv_type { KV_F32, KV_BF16, KV_F16, KV_Q8, KV_Q4, KV_TYPES } kv_type;

/* What a nibble stands for, rising: the 16 levels that are nearest to normally distributed numbers
 * (Lloyd and Max), of which the outer ones are 2.733 standard deviations. */
enum { KV_Q4_GROUP = 32, KV_Q4_LEVELS = 16 };
extern const int8_t KV_Q4_NUMBERS[KV_Q4_LEVELS];

/* "f32", "bf16", "f16", "q8", "q4". */
const char *kv_type_name(kv_type type);
/* False for any other word; *out is then left alone. */
bool kv_type_parse(kv_type *out, const char *text);

/* Bytes of a packed row; a multiple of 4 for q8, q4 and f32, of 2 for the others. */
static inline size_t kv_row_bytes(kv_type type, size_t hd)
{
    return type == KV_Q4    ? (hd + KV_Q4_GROUP - 1) / KV_Q4_GROUP * (KV_Q4_GROUP / 2)
           : type == KV_Q8  ? (hd + 3) / 4 * 4
           : type == KV_F32 ? 4 * hd
                            : 2 * hd;
}

/* Bytes of a row's scale: 0 for types that have none. */
static inline size_t kv_scale_bytes(kv_type type)
{
    return type == KV_Q8 || type == KV_Q4 ? sizeof(float) : 0;
}

/* Whether queries, keys and values are rotated for it. */
static inline bool kv_type_rotates(kv_type type)
{
    return type == KV_Q4;
}

#endif
