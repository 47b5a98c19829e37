/* prefix_cache: states of earlier prompts, found by the longest stored prefix. Engine thread, but
 * for what says otherwise.
 *
 *     int32_t n;
 *     const prefix_entry *hit = prefix_cache_find(pc, key, n_key - 1, &n);
 *     if (hit) { seq_state_restore_prefix(seq, prefix_entry_snapshot(hit), n, &detail); }  // continue at n
 *     prefix_cache_store(pc, key, len, seq, hidden);     // at a boundary, while seq stands exactly there
 *
 * The delta state of a hybrid model cannot be truncated, so there an entry is usable only if its
 * whole key is a prefix of the prompt; one with sliding layers, as far back as its blocks reach.
 * Without recurrent layers the longest common prefix counts:
 * its blocks are shared, the rest is cut. Entries are stored where a later prompt is likely to
 * agree: at ends of messages, near the end of a raw prompt, at the end of an answer. A
 * key has one 64-bit element per token, the token id or, for a row of an image, bits of the image's
 * hash, after a first element for the sharing scope (an API key). Keys are compared in full.
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

/* Whether an entry is in the second tier too. */
typedef enum prefix_saved { PREFIX_NEW, PREFIX_BEING_SAVED, PREFIX_SAVED } prefix_saved;

enum { PREFIX_GIVEN_MAX = 64 };

typedef struct prefix_entry {
    uint64_t *key; /* [n_key] */
    size_t n_key;
    seq_snapshot *snapshot;
    float *hidden; /* [hidden_size] hidden state of the last token, for the draft head */
    size_t bytes;  /* of the copied state and the key */
    uint64_t last_used;
    int64_t used_at; /* seconds since 1970 */
    prefix_saved saved;
    char given[PREFIX_GIVEN_MAX + 1]; /* the name under which it is to be saved; "": none */
    bool is_dead;                     /* cleared; freed by the next prefix_cache_sweep */
} prefix_entry;

typedef struct prefix_cache_stats {
    uint64_t n_queries, n_hits, n_hit_tokens, n_stores, n_evictions;
    size_t n_entries, bytes; /* bytes of copied states and keys */
} prefix_cache_stats;

/* At most max_entries entries whose copied states take at most `budget` bytes; NULL if out of
 * memory. */
MUST_CHECK prefix_cache *prefix_cache_create(size_t budget, size_t max_entries, int32_t hidden_size);
/* Before the pool is destroyed. NULL allowed. */
void prefix_cache_destroy(prefix_cache *pc);

/* Called before an entry is freed that is being saved, or to be saved under a name; afterwards nobody
 * else may read it. */
void prefix_cache_on_drop(prefix_cache *pc, void (*on_drop)(void *ctx, const prefix_entry *e), void *ctx);

/* The entry that has most tokens in common with key[0..n_key), *n of them; NULL if none has one.
 * *n is the length of the entry unless its snapshot can be cut. Valid until the next store, evict or
 * sweep. */
const prefix_entry *prefix_cache_find(prefix_cache *pc, const uint64_t *key, size_t n_key, int32_t *n);
/* What find would say, without counting as a use. */
int32_t prefix_cache_peek(prefix_cache *pc, const uint64_t *key, size_t n_key);
/* Tokens of the entry: its key without the first element. */
int32_t prefix_entry_len(const prefix_entry *e);
const seq_snapshot *prefix_entry_snapshot(const prefix_entry *e);
/* NULL: not known. */
const float *prefix_entry_hidden(const prefix_entry *e);

/* True if exactly this key is stored; it then counts as used now. */
bool prefix_cache_has(prefix_cache *pc, const uint64_t *key, size_t n_key);

/* Stores the state of seq, which stands behind the n_key - 1 tokens of the key. Drops the least
 * recently used entries until it fits; false if it cannot fit or memory ran out (nothing is lost
 * but the entry). */
bool prefix_cache_store(prefix_cache *pc, const uint64_t *key, size_t n_key, const seq_state *seq,
                        const float *hidden);
/* The same with a snapshot, which is owned from now on even if there is no place for it. */
bool prefix_cache_add(prefix_cache *pc, const uint64_t *key, size_t n_key, seq_snapshot *snapshot,
                      const float *hidden);
/* Takes a snapshot that was read back and the memory of its hidden state (NULL: not known), which
 * are owned from now on even if there is no place for them. The entry counts as saved. */
void prefix_cache_insert(prefix_cache *pc, const uint64_t *key, size_t n_key, seq_snapshot *snapshot,
                         float *hidden);

/* The entry for this key, or for the longest prefix of it, to be given a name; NULL: there is none. */
prefix_entry *prefix_cache_get(prefix_cache *pc, const uint64_t *key, size_t n_key);
/* Whether a text can be the name of an entry: 1 to PREFIX_GIVEN_MAX letters, digits, '-', '_' and '.',
 * the first of them no dot. */
bool prefix_cache_is_name(const char *text);

/* An entry that is not in the second tier yet: one that waits for its name, else the one used last or
 * the least recently used. NULL: there is none. */
prefix_entry *prefix_cache_next_unsaved(prefix_cache *pc, bool newest);

/* Drops the least recently used entry, one that is saved before one that is not; false if there is
 * none. The pool's reclaim callback (ctx is
 * the cache). */
bool prefix_cache_evict_one(void *pc);
/* Drops entries until a snapshot of so many bytes has room; false, and none is dropped, if it never
 * has. */
bool prefix_cache_make_room(prefix_cache *pc, size_t n_bytes);
/* Drops all. */
void prefix_cache_clear(prefix_cache *pc);

/* From now on no entry of the scope (NULL: none at all) is found, nor one that is stored before the
 * next sweep. Any thread. */
void prefix_cache_forget(prefix_cache *pc, const uint64_t *scope);
/* The same for the entries of a scope that is_it picks, under the cache's lock. Any thread. */
void prefix_cache_forget_those(prefix_cache *pc, uint64_t scope,
                               bool (*is_it)(void *ctx, const prefix_entry *e), void *ctx);
/* Frees what was forgotten. Between steps. */
void prefix_cache_sweep(prefix_cache *pc);

/* Calls `each` for the entries of a scope, the last used first, under the cache's lock. Any
 * thread. */
void prefix_cache_list(prefix_cache *pc, uint64_t scope, void (*each)(void *ctx, const prefix_entry *e),
                       void *ctx);
prefix_cache_stats prefix_cache_get_stats(const prefix_cache *pc);

#endif
