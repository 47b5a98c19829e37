/* kv_type: how keys and values lie in memory. Any thread.
 *
 *     size_t bytes = kv_row_bytes(KV_BF16, 256);
 *
 * A packed row is one head of one token, hd numbers; rows of a page lie behind one another, behind
 * the scales of all of them (nn.h):
 *   f32, bf16, f16   hd numbers one after another; bf16 and f16 rounded to the nearest, ties to even, f16 kept finite
 *   q8               hd signed bytes, zeros up to a multiple of 4; number i is byte i * scale, scale = largest magnitude / 127
 * The scale is a float elsewhere, so that rows keep to the lines of the cache.
 */
#ifndef PARLEY_COMPUTE_FORMATS_KV_TYPE_H
#define PARLEY_COMPUTE_FORMATS_KV_TYPE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum kv_type { KV_F32, KV_BF16, KV_F16, KV_Q8, KV_TYPES } kv_type;

/* "f32", "bf16", "f16", "q8". */
const char *kv_type_name(kv_type type);
/* False for any other word; *out is then left alone. */
bool kv_type_parse(kv_type *out, const char *text);

/* Bytes of a packed row; a multiple of 4 for q8 and f32, of 2 for the others. */
static inline size_t kv_row_bytes(kv_type type, size_t hd)
{
    return type == KV_Q8 ? (hd + 3) / 4 * 4 : type == KV_F32 ? 4 * hd : 2 * hd;
}

/* Bytes of a row's scale: 0 for types that have none. */
static inline size_t kv_scale_bytes(kv_type type)
{
    return type == KV_Q8 ? sizeof(float) : 0;
}

#endif
