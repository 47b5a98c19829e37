/* prefix_cache: states of earlier prompts, found by the longest stored prefix. Engine thread.
 *
 *     const prefix_entry *hit = prefix_cache_find(pc, key, n_key - 1);
 *     if (hit) { seq_state_restore(seq, prefix_entry_snapshot(hit), &detail); }      // continue at prefix_entry_len(hit)
 *     prefix_cache_store(pc, key, len, seq, hidden);     // at a boundary, while seq stands exactly there
 *
 * The delta state of a hybrid model cannot be truncated, so an entry is usable only if its whole
 * key is a prefix of the prompt. Entries are stored where a later prompt is likely to agree: at
 * ends of messages, one token before the end of the prompt, at the end of an answer. A key has one
 * 64-bit element per token, the token id or, for a row of an image, bits of the image's hash, after
 * a first element for the sharing scope (an API key). Keys are compared in full.
 *
 * Memory: copied states count against the budget at once; KV cache blocks live in the engine's
 * pool, which asks the cache to drop its least recently used entry when it runs out.
 */
#ifndef PARLEY_ENGINE_CACHE_PREFIX_CACHE_H
#define PARLEY_ENGINE_CACHE_PREFIX_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/seq_state.h"

typedef struct prefix_cache prefix_cache;
typedef struct prefix_entry prefix_entry;

typedef struct prefix_cache_stats {
    uint64_t n_queries, n_hits, n_hit_tokens, n_stores, n_evictions;
    size_t n_entries, bytes; /* bytes of copied states and keys */
} prefix_cache_stats;

/* At most max_entries entries whose copied states take at most `budget` bytes; NULL if out of
 * memory. */
MUST_CHECK prefix_cache *prefix_cache_create(size_t budget, size_t max_entries, int32_t hidden_size);
/* Before the pool is destroyed. NULL allowed. */
void prefix_cache_destroy(prefix_cache *pc);

/* The longest entry whose key is a prefix of key[0..n_key), or NULL. Valid until the next store or
 * evict. */
const prefix_entry *prefix_cache_find(prefix_cache *pc, const uint64_t *key, size_t n_key);
/* Tokens of the entry: its key without the first element. */
int32_t prefix_entry_len(const prefix_entry *e);
const seq_snapshot *prefix_entry_snapshot(const prefix_entry *e);
/* Hidden state of the last token [hidden_size], for the draft head. */
const float *prefix_entry_hidden(const prefix_entry *e);

/* True if exactly this key is stored; it then counts as used now. */
bool prefix_cache_has(prefix_cache *pc, const uint64_t *key, size_t n_key);

/* Stores the state of seq, which stands behind the n_key - 1 tokens of the key. Drops the least
 * recently used entries until it fits; false if it cannot fit or memory ran out (nothing is lost
 * but the entry). */
bool prefix_cache_store(prefix_cache *pc, const uint64_t *key, size_t n_key, const seq_state *seq,
                        const float *hidden);

/* Drops the least recently used entry; false if there is none. The pool's reclaim callback (ctx is
 * the cache). */
bool prefix_cache_evict_one(void *pc);
void prefix_cache_clear(prefix_cache *pc);
prefix_cache_stats prefix_cache_get_stats(const prefix_cache *pc);

#endif
