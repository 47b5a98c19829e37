/* kv_pool: the memory of all KV cache blocks, allocated once and reference counted. Engine thread.
 *
 *     kv_pool *p; err = kv_pool_create(&p, cfg, KV_BF16, with_mtp, n_blocks, 0, compute, &detail);
 *     void *block = kv_pool_take(p, KV_ALL);  kv_pool_share(p, block);  kv_pool_release(p, block);
 *
 * A block holds SEQ_PAGE_TOKENS tokens of all attention layers (and of the draft head, with_mtp),
 * packed as the pool's kv_type (KV_F32 for exact comparisons). Where sliding layers keep their window
 * alone (model_config_has_ring), they have blocks of their own, on a second shelf: a sequence gives
 * those back that its window has left. Sequences and snapshots hold
 * references; a block with more than one reference is copied before it is written. The memory is
 * reserved at the start and touched only when used. Blocks are not cleared: nothing reads beyond a
 * length.
 */
#ifndef PARLEY_MODEL_KV_POOL_H
#define PARLEY_MODEL_KV_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/nn.h"
#include "model/config/config.h"
#include "model/spares.h"

/* KV_WINDOW_ROWS: rows of a prompt computed together for which a window has room. */
enum { SEQ_PAGE_TOKENS = 64, KV_WINDOW_ROWS = 1152 };

typedef struct kv_pool kv_pool;

/* KV_WINDOW: of sliding layers, where they have their own. */
typedef enum kv_shelf { KV_ALL, KV_WINDOW, KV_SHELVES } kv_shelf;

/* Room for n_blocks, and n_window on the shelf of the windows (which counts for nothing if the model
 * has none). ERR_NOMEM says how many bytes were wanted. */
MUST_CHECK err_code kv_pool_create(kv_pool **out, const model_config *cfg, kv_type type, bool with_mtp,
                                   size_t n_blocks, size_t n_window, compute *c, err_detail *detail);
/* No sequence and no snapshot may be left. NULL allowed. */
void kv_pool_destroy(kv_pool *p);

/* Blocks that n_ctx tokens need. */
size_t kv_pool_blocks_for(int32_t n_ctx);
/* Blocks of the windows that a sequence of n_ctx tokens needs at most, beside those that snapshots
 * hold; 0 if the model has none. */
size_t kv_pool_window_blocks_for(const model_config *cfg, int32_t n_ctx);
/* Bytes of one block, a multiple of 64; SIZE_MAX if that cannot be addressed. */
size_t kv_pool_block_bytes(const model_config *cfg, kv_type type, bool with_mtp);
/* The same of the windows' shelf; 0 if the model has none. */
size_t kv_pool_window_bytes(const model_config *cfg, kv_type type);
kv_type kv_pool_type(const kv_pool *p);
bool kv_pool_has_mtp(const kv_pool *p);
size_t kv_pool_n_free(const kv_pool *p, kv_shelf shelf);
size_t kv_pool_n_blocks(const kv_pool *p, kv_shelf shelf);

/* Called when no block is free: releases some and returns true, or returns false. */
void kv_pool_set_reclaim(kv_pool *p, bool (*reclaim)(void *ctx), void *ctx);

/* A block with one reference, contents undefined; NULL if none is free and none could be
 * reclaimed. */
MUST_CHECK void *kv_pool_take(kv_pool *p, kv_shelf shelf);
void kv_pool_share(kv_pool *p, void *block);   /* one more reference */
void kv_pool_release(kv_pool *p, void *block); /* one less; free at zero */
bool kv_pool_is_shared(const kv_pool *p, const void *block);

/* Gives the memory of free blocks, and of spares, back to the system until they are used again. */
void kv_pool_trim(kv_pool *p);

/* Memory of the recurrent states that snapshots of these blocks copy. */
spares *kv_pool_spares(kv_pool *p);

#endif
