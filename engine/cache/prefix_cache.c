#include "engine/cache/prefix_cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct prefix_cache {
    pthread_mutex_t lock;   /* other threads list and forget entries; the engine thread does the rest */
    prefix_entry **entries; /* [n], in no order {lock} */
    size_t n, max_entries;
    size_t bytes, budget;
    size_t hidden_size;
    uint64_t clock;      /* counts uses */
    uint64_t *forgotten; /* [n_forgotten] {lock} scopes until the next sweep */
    size_t n_forgotten;
    bool forgets_all; /* {lock} */
    void (*on_drop)(void *ctx, const prefix_entry *e);
    void *on_drop_ctx;
    prefix_cache_stats stats;
};

prefix_cache *prefix_cache_create(size_t budget, size_t max_entries, int32_t hidden_size)
{
    assert(max_entries > 0);
    prefix_cache *pc = calloc(1, sizeof *pc);
    if (!pc) {
        return NULL;
    }
    pc->entries = calloc(max_entries + 1, sizeof *pc->entries);
    if (!pc->entries) {
        free(pc);
        return NULL;
    }
    pthread_mutex_init(&pc->lock, NULL);
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
    free(e);
}

/* Under the lock. */
static void drop(prefix_cache *pc, size_t i)
{
    prefix_entry *e = pc->entries[i];
    if ((e->saved == PREFIX_BEING_SAVED || e->given[0]) && pc->on_drop) {
        pc->on_drop(pc->on_drop_ctx, e);
    }
    pc->bytes -= e->bytes;
    pc->entries[i] = pc->entries[--pc->n];
    free_entry(e);
}

void prefix_cache_clear(prefix_cache *pc)
{
    prefix_cache_forget(pc, NULL);
    prefix_cache_sweep(pc);
}

void prefix_cache_destroy(prefix_cache *pc)
{
    if (pc) {
        prefix_cache_clear(pc);
        pthread_mutex_destroy(&pc->lock);
        free(pc->entries);
        free(pc->forgotten);
        free(pc);
    }
}

void prefix_cache_on_drop(prefix_cache *pc, void (*on_drop)(void *ctx, const prefix_entry *e), void *ctx)
{
    pc->on_drop = on_drop;
    pc->on_drop_ctx = ctx;
}

/* What the second tier has goes first: it can be read back. */
static bool goes_before(const prefix_entry *a, const prefix_entry *b)
{
    const bool a_saved = a->saved == PREFIX_SAVED, b_saved = b->saved == PREFIX_SAVED;
    return a_saved != b_saved ? a_saved : a->last_used < b->last_used;
}

static bool evict_one(prefix_cache *pc)
{
    size_t oldest = 0;
    if (pc->n == 0) {
        return false;
    }
    for (size_t i = 1; i < pc->n; i++) {
        if (goes_before(pc->entries[i], pc->entries[oldest])) {
            oldest = i;
        }
    }
    drop(pc, oldest);
    pc->stats.n_evictions++;
    return true;
}

bool prefix_cache_evict_one(void *ctx)
{
    prefix_cache *pc = ctx;
    pthread_mutex_lock(&pc->lock);
    const bool done = evict_one(pc);
    pthread_mutex_unlock(&pc->lock);
    return done;
}

bool prefix_cache_make_room(prefix_cache *pc, size_t n_bytes)
{
    if (n_bytes > pc->budget) {
        return false;
    }
    pthread_mutex_lock(&pc->lock);
    while (pc->n > 0 && pc->bytes + n_bytes > pc->budget) {
        evict_one(pc);
    }
    pthread_mutex_unlock(&pc->lock);
    return true;
}

/* ---- finding ---- */

/* The last elements are compared first: two conversations that begin alike are told apart at
 * once. */
static bool is_prefix(const prefix_entry *e, const uint64_t *key, size_t n_key)
{
    return e->n_key <= n_key && e->key[e->n_key - 1] == key[e->n_key - 1] &&
           memcmp(e->key, key, e->n_key * sizeof *key) == 0;
}

/* Elements of the key that the entry can stand for, if they are more than `best`. */
static size_t common(const prefix_entry *e, const uint64_t *key, size_t n_key, size_t best)
{
    const size_t least = (size_t)seq_snapshot_shortest(e->snapshot) + 1; /* and the scope */
    if (least >= e->n_key) {
        return e->n_key > best && is_prefix(e, key, n_key) ? e->n_key : 0;
    }
    const size_t most = e->n_key < n_key ? e->n_key : n_key;
    size_t n = 0;
    if (best >= most || e->key[best] != key[best]) {
        return 0;
    }
    while (n < most && e->key[n] == key[n]) {
        n++;
    }
    return n < least ? 0 : n;
}

static void touch(prefix_cache *pc, prefix_entry *e)
{
    e->last_used = ++pc->clock;
    e->used_at = (int64_t)time(NULL);
}

/* Under the lock. */
static prefix_entry *find(const prefix_cache *pc, const uint64_t *key, size_t n_key, size_t *n)
{
    prefix_entry *best = NULL;
    *n = 1; /* the scope alone is no prefix */
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = pc->entries[i];
        const size_t n_common = e->is_dead ? 0 : common(e, key, n_key, *n);
        if (n_common > *n) {
            best = e;
            *n = n_common;
        }
    }
    return best;
}

int32_t prefix_cache_peek(prefix_cache *pc, const uint64_t *key, size_t n_key)
{
    size_t n = 0;
    pthread_mutex_lock(&pc->lock);
    find(pc, key, n_key, &n);
    pthread_mutex_unlock(&pc->lock);
    return (int32_t)n - 1;
}

const prefix_entry *prefix_cache_find(prefix_cache *pc, const uint64_t *key, size_t n_key, int32_t *n)
{
    size_t n_best = 0;
    pthread_mutex_lock(&pc->lock);
    prefix_entry *best = find(pc, key, n_key, &n_best);
    pc->stats.n_queries++;
    if (best) {
        touch(pc, best);
        pc->stats.n_hits++;
        pc->stats.n_hit_tokens += n_best - 1;
    }
    pthread_mutex_unlock(&pc->lock);
    *n = (int32_t)n_best - 1;
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
    bool found = false;
    pthread_mutex_lock(&pc->lock);
    for (size_t i = 0; i < pc->n && !found; i++) {
        prefix_entry *e = pc->entries[i];
        found = e->n_key == n_key && !e->is_dead && is_prefix(e, key, n_key);
        if (found) {
            touch(pc, e);
        }
    }
    pthread_mutex_unlock(&pc->lock);
    return found;
}

/* ---- storing ---- */

/* Takes the entry, whose snapshot and hidden state are there; false if it was freed for want of
 * room. */
static bool take(prefix_cache *pc, prefix_entry *e, const uint64_t *key, size_t n_key)
{
    e->n_key = n_key;
    e->key = malloc(n_key * sizeof *key);
    e->bytes = sizeof *e + n_key * sizeof *key + pc->hidden_size * sizeof *e->hidden +
               seq_snapshot_bytes(e->snapshot);
    if (!e->key || e->bytes > pc->budget) {
        free_entry(e);
        return false;
    }
    memcpy(e->key, key, n_key * sizeof *key);
    pthread_mutex_lock(&pc->lock);
    while (pc->n == pc->max_entries || pc->bytes + e->bytes > pc->budget) {
        evict_one(pc);
    }
    touch(pc, e);
    pc->bytes += e->bytes;
    pc->entries[pc->n++] = e;
    pc->stats.n_stores++;
    pthread_mutex_unlock(&pc->lock);
    return true;
}

bool prefix_cache_store(prefix_cache *pc, const uint64_t *key, size_t n_key, const seq_state *seq,
                        const float *hidden)
{
    return prefix_cache_has(pc, key, n_key) ||
           prefix_cache_add(pc, key, n_key, seq_state_snapshot(seq), hidden);
}

bool prefix_cache_add(prefix_cache *pc, const uint64_t *key, size_t n_key, seq_snapshot *snapshot,
                      const float *hidden)
{
    const bool is_there = prefix_cache_has(pc, key, n_key);
    prefix_entry *e = is_there || !snapshot ? NULL : calloc(1, sizeof *e);
    if (!e) {
        seq_snapshot_free(snapshot);
        return is_there;
    }
    e->snapshot = snapshot;
    e->hidden = malloc(pc->hidden_size * sizeof *hidden);
    if (!e->hidden) {
        free_entry(e);
        return false;
    }
    memcpy(e->hidden, hidden, pc->hidden_size * sizeof *hidden);
    return take(pc, e, key, n_key);
}

void prefix_cache_insert(prefix_cache *pc, const uint64_t *key, size_t n_key, seq_snapshot *snapshot,
                         float *hidden)
{
    prefix_entry *e = prefix_cache_has(pc, key, n_key) ? NULL : calloc(1, sizeof *e);
    if (e) {
        *e = (prefix_entry){.snapshot = snapshot, .hidden = hidden, .saved = PREFIX_SAVED};
        (void)take(pc, e, key, n_key);
    } else {
        seq_snapshot_free(snapshot);
        free(hidden);
    }
}

prefix_entry *prefix_cache_get(prefix_cache *pc, const uint64_t *key, size_t n_key)
{
    size_t n = 0;
    pthread_mutex_lock(&pc->lock);
    prefix_entry *found = find(pc, key, n_key, &n);
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = pc->entries[i];
        found = e->n_key == n_key && !e->is_dead && is_prefix(e, key, n_key) ? e : found;
    }
    pthread_mutex_unlock(&pc->lock);
    return found;
}

bool prefix_cache_is_name(const char *text)
{
    static const char KNOWN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    const size_t n = strlen(text);
    return n > 0 && n <= PREFIX_GIVEN_MAX && strspn(text, KNOWN) == n && text[0] != '.';
}

prefix_entry *prefix_cache_next_unsaved(prefix_cache *pc, bool newest)
{
    prefix_entry *best = NULL;
    pthread_mutex_lock(&pc->lock);
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = pc->entries[i];
        if (e->saved != PREFIX_NEW || e->is_dead) {
            continue;
        }
        const bool is_named = e->given[0], is_last = best && (e->last_used > best->last_used) == newest;
        if (!best || (is_named != (best->given[0] != '\0') ? is_named : is_last)) {
            best = e;
        }
    }
    pthread_mutex_unlock(&pc->lock);
    return best;
}

/* ---- other threads ---- */

/* Under the lock. */
static void note_forgotten(prefix_cache *pc, const uint64_t *scope)
{
    for (size_t i = 0; scope && i < pc->n_forgotten; i++) {
        if (pc->forgotten[i] == *scope) {
            return;
        }
    }
    uint64_t *more = scope ? realloc(pc->forgotten, (pc->n_forgotten + 1) * sizeof *more) : NULL;
    if (more) {
        pc->forgotten = more;
        more[pc->n_forgotten++] = *scope;
    } else {
        pc->forgets_all = true;
    }
}

static void mark_forgotten(prefix_cache *pc)
{
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = pc->entries[i];
        e->is_dead = e->is_dead || pc->forgets_all;
        for (size_t k = 0; k < pc->n_forgotten; k++) {
            e->is_dead = e->is_dead || e->key[0] == pc->forgotten[k];
        }
    }
}

void prefix_cache_forget(prefix_cache *pc, const uint64_t *scope)
{
    pthread_mutex_lock(&pc->lock);
    note_forgotten(pc, scope);
    mark_forgotten(pc);
    pthread_mutex_unlock(&pc->lock);
}

void prefix_cache_forget_those(prefix_cache *pc, uint64_t scope,
                               bool (*is_it)(void *ctx, const prefix_entry *e), void *ctx)
{
    pthread_mutex_lock(&pc->lock);
    for (size_t i = 0; i < pc->n; i++) {
        prefix_entry *e = pc->entries[i];
        e->is_dead = e->is_dead || (e->key[0] == scope && is_it(ctx, e));
    }
    pthread_mutex_unlock(&pc->lock);
}

void prefix_cache_sweep(prefix_cache *pc)
{
    pthread_mutex_lock(&pc->lock);
    mark_forgotten(pc); /* a step may have stored the end of an answer since */
    pc->forgets_all = false;
    pc->n_forgotten = 0;
    for (size_t i = pc->n; i-- > 0;) {
        if (pc->entries[i]->is_dead) {
            drop(pc, i);
        }
    }
    pthread_mutex_unlock(&pc->lock);
}

void prefix_cache_list(prefix_cache *pc, uint64_t scope, void (*each)(void *ctx, const prefix_entry *e),
                       void *ctx)
{
    uint64_t before = UINT64_MAX;
    pthread_mutex_lock(&pc->lock);
    for (;;) {
        const prefix_entry *next = NULL;
        for (size_t i = 0; i < pc->n; i++) {
            const prefix_entry *e = pc->entries[i];
            if (e->key[0] == scope && !e->is_dead && e->last_used < before &&
                (!next || e->last_used > next->last_used)) {
                next = e;
            }
        }
        if (!next) {
            break;
        }
        before = next->last_used;
        each(ctx, next);
    }
    pthread_mutex_unlock(&pc->lock);
}

prefix_cache_stats prefix_cache_get_stats(const prefix_cache *pc)
{
    prefix_cache_stats s = pc->stats;
    s.n_entries = pc->n;
    s.bytes = pc->bytes;
    return s;
}
