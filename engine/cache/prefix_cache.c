#include "engine/cache/prefix_cache.h"

#include <stdlib.h>
#include <string.h>

struct prefix_entry {
    uint64_t *key; /* [n_key] */
    size_t n_key;
    seq_snapshot *snapshot;
    float *hidden;
    size_t bytes;
    uint64_t last_used;
};

struct prefix_cache {
    prefix_entry *entries; /* [n], in no order */
    size_t n, max_entries;
    size_t bytes, budget;
    size_t hidden_size;
    uint64_t clock; /* counts uses */
    prefix_cache_stats stats;
};

prefix_cache *prefix_cache_create(size_t budget, size_t max_entries, int32_t hidden_size)
{
    prefix_cache *pc = calloc(1, sizeof *pc);
    if (!pc) {
        return NULL;
    }
    pc->entries = calloc(max_entries + 1, sizeof *pc->entries);
    if (!pc->entries) {
        free(pc);
        return NULL;
    }
    pc->max_entries = max_entries;
    pc->budget = budget;
    pc->hidden_size = (size_t)hidden_size;
    return pc;
}

static void free_entry(prefix_entry *e)
{
    seq_snapshot_free(e->snapshot);
    free(e->key);
    free(e->hidden);
}

void prefix_cache_clear(prefix_cache *pc)
{
    for (size_t i = 0; i < pc->n; i++) {
        free_entry(&pc->entries[i]);
    }
    pc->n = 0;
    pc->bytes = 0;
}

void prefix_cache_destroy(prefix_cache *pc)
{
    if (pc) {
        prefix_cache_clear(pc);
        free(pc->entries);
        free(pc);
    }
}

bool prefix_cache_evict_one(void *ctx)
{
    prefix_cache *pc = ctx;
    size_t oldest = 0;
    if (pc->n == 0) {
        return false;
    }
    for (size_t i = 1; i < pc->n; i++) {
        if (pc->entries[i].last_used < pc->entries[oldest].last_used) {
            oldest = i;
        }
    }
    pc->bytes -= pc->entries[oldest].bytes;
    free_entry(&pc->entries[oldest]);
    pc->entries[oldest] = pc->entries[--pc->n];
    pc->stats.n_evictions++;
    return true;
}

/* The last elements are compared first: two conversations that begin alike are told apart at
 * once. */
static bool is_prefix(const prefix_entry *e, const uint64_t *key, size_t n_key)
{
    return e->n_key <= n_key && e->key[e->n_key - 1] == key[e->n_key - 1] &&
           memcmp(e->key, key, e->n_key * sizeof *key) == 0;
}

const prefix_entry *prefix_cache_find(prefix_cache *pc, const uint64_t *key, size_t n_key)
{
    prefix_entry *best = NULL;
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = &pc->entries[i];
        if ((!best || e->n_key > best->n_key) && is_prefix(e, key, n_key)) {
            best = e;
        }
    }
    pc->stats.n_queries++;
    if (best) {
        best->last_used = ++pc->clock;
        pc->stats.n_hits++;
        pc->stats.n_hit_tokens += best->n_key - 1;
    }
    return best;
}

int32_t prefix_entry_len(const prefix_entry *e)
{
    return (int32_t)(e->n_key - 1);
}

const seq_snapshot *prefix_entry_snapshot(const prefix_entry *e)
{
    return e->snapshot;
}

const float *prefix_entry_hidden(const prefix_entry *e)
{
    return e->hidden;
}

bool prefix_cache_has(prefix_cache *pc, const uint64_t *key, size_t n_key)
{
    for (size_t i = 0; i < pc->n; i++) {
        if (pc->entries[i].n_key == n_key && is_prefix(&pc->entries[i], key, n_key)) {
            pc->entries[i].last_used = ++pc->clock;
            return true;
        }
    }
    return false;
}

bool prefix_cache_store(prefix_cache *pc, const uint64_t *key, size_t n_key, const seq_state *seq,
                        const float *hidden)
{
    if (pc->max_entries == 0 || prefix_cache_has(pc, key, n_key)) {
        return pc->max_entries > 0;
    }
    prefix_entry e = {.n_key = n_key,
                      .key = malloc(n_key * sizeof *key),
                      .hidden = malloc(pc->hidden_size * sizeof *hidden),
                      .snapshot = seq_state_snapshot(seq)};
    if (e.snapshot) {
        e.bytes = sizeof e + n_key * sizeof *key + pc->hidden_size * sizeof *hidden +
                  seq_snapshot_bytes(e.snapshot);
    }
    if (!e.key || !e.hidden || !e.snapshot || e.bytes > pc->budget) {
        free_entry(&e);
        return false;
    }
    while (pc->n == pc->max_entries || pc->bytes + e.bytes > pc->budget) {
        prefix_cache_evict_one(pc);
    }
    memcpy(e.key, key, n_key * sizeof *key);
    memcpy(e.hidden, hidden, pc->hidden_size * sizeof *hidden);
    e.last_used = ++pc->clock;
    pc->bytes += e.bytes;
    pc->entries[pc->n++] = e;
    pc->stats.n_stores++;
    return true;
}

prefix_cache_stats prefix_cache_get_stats(const prefix_cache *pc)
{
    prefix_cache_stats s = pc->stats;
    s.n_entries = pc->n;
    s.bytes = pc->bytes;
    return s;
}
