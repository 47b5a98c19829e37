#define _GNU_SOURCE /* memmem */
#include "server/protocol/response_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/shares.h"

typedef struct entry {
    uint64_t scope;
    char id[48];
    char *items;
    size_t len, n_input;
    double put_ms;
} entry;

struct response_store {
    size_t max_bytes, max_entries;
    double ttl_ms;
    pthread_mutex_t lock;
    entry *entries; /* {lock} [max_entries], the oldest first */
    size_t n;       /* {lock} */
    shares shares;  /* {lock} */
};

response_store *response_store_create(size_t max_bytes, size_t max_entries, int ttl_s, ledger *memory)
{
    response_store *l = calloc(1, sizeof *l);
    entry *entries = calloc(max_entries, sizeof *entries);
    if (!l || !entries) {
        free(l);
        free(entries);
        return NULL;
    }
    *l = (response_store){
        .max_bytes = max_bytes, .max_entries = max_entries, .ttl_ms = ttl_s * 1000.0, .entries = entries};
    shares_init(&l->shares, max_entries, max_bytes, memory);
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void response_store_destroy(response_store *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        free(l->entries[i].items);
    }
    free(l->entries);
    shares_deinit(&l->shares);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* {lock} */
static void drop(response_store *l, size_t i)
{
    shares_remove(&l->shares, l->entries[i].scope, l->entries[i].len);
    free(l->entries[i].items);
    l->n--;
    memmove(l->entries + i, l->entries + i + 1, (l->n - i) * sizeof *l->entries);
}

/* {lock} Drops what is too old, and makes room for n more entries of `len` bytes: whoever has most
 * gives its oldest. */
static void trim(response_store *l, size_t n, size_t len, double now_ms)
{
    uint64_t scope;
    while (l->n > 0 && now_ms - l->entries[0].put_ms > l->ttl_ms) {
        drop(l, 0);
    }
    while (shares_is_over(&l->shares, n, len, &scope)) {
        size_t i = 0;
        while (l->entries[i].scope != scope) {
            i++;
        }
        shares_note_gone(&l->shares, scope, l->entries[i].id, l->entries[i].put_ms + l->ttl_ms);
        drop(l, i);
    }
}

/* {lock} The newest of this name; l->n if there is none. */
static size_t find(const response_store *l, uint64_t scope, const char *id, double now_ms)
{
    for (size_t i = l->n; i-- > 0;) {
        const entry *e = &l->entries[i];
        if (e->scope == scope && strcmp(e->id, id) == 0 && now_ms - e->put_ms <= l->ttl_ms) {
            return i;
        }
    }
    return l->n;
}

bool response_store_put(response_store *l, uint64_t scope, const char *id, const char *items, size_t len,
                        size_t n_input, double now_ms)
{
    char *copy = len > 0 && len <= l->max_bytes ? malloc(len) : NULL;
    if (!copy) {
        return false;
    }
    memcpy(copy, items, len);
    entry e = {.scope = scope, .items = copy, .len = len, .n_input = n_input, .put_ms = now_ms};
    snprintf(e.id, sizeof e.id, "%s", id);
    pthread_mutex_lock(&l->lock);
    const size_t old = find(l, scope, id, now_ms);
    if (old < l->n) {
        drop(l, old);
    }
    trim(l, 1, len, now_ms);
    const bool is_kept = shares_add(&l->shares, scope, len);
    if (is_kept) {
        l->entries[l->n++] = e;
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&l->lock);
    return is_kept;
}

static bool get(response_store *l, uint64_t scope, const char *id, double now_ms, bool input_only, bytes *out)
{
    pthread_mutex_lock(&l->lock);
    const size_t i = find(l, scope, id, now_ms);
    const bool found = i < l->n;
    if (found) {
        bytes_append(out, l->entries[i].items, input_only ? l->entries[i].n_input : l->entries[i].len);
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

bool response_store_get(response_store *l, uint64_t scope, const char *id, double now_ms, bytes *out)
{
    return get(l, scope, id, now_ms, false, out);
}

bool response_store_get_input(response_store *l, uint64_t scope, const char *id, double now_ms, bytes *out)
{
    return get(l, scope, id, now_ms, true, out);
}

bool response_store_find_item(response_store *l, uint64_t scope, const char *item_id, double now_ms,
                              bytes *out)
{
    bool found = false;
    bytes sign = bytes_empty(512);
    bytes_json(&sign, "\"id\":%s", item_id);
    pthread_mutex_lock(&l->lock);
    for (size_t i = l->n; i-- > 0 && !found && !sign.failed;) {
        const entry *e = &l->entries[i];
        found = e->scope == scope && now_ms - e->put_ms <= l->ttl_ms &&
                memmem(e->items, e->len, sign.data, sign.len) != NULL;
        if (found) {
            bytes_append(out, e->items, e->len);
        }
    }
    pthread_mutex_unlock(&l->lock);
    if (sign.no_memory) { /* which is not to say that it is not there */
        bytes_fail_memory(out);
    }
    bytes_deinit(&sign);
    return found;
}

bool response_store_remove(response_store *l, uint64_t scope, const char *id, double now_ms)
{
    pthread_mutex_lock(&l->lock);
    const size_t i = find(l, scope, id, now_ms);
    const bool found = i < l->n;
    if (found) {
        drop(l, i);
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

size_t response_store_bytes(response_store *l)
{
    pthread_mutex_lock(&l->lock);
    const size_t n = l->shares.n_bytes;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void response_store_tick(response_store *l, double now_ms)
{
    pthread_mutex_lock(&l->lock);
    trim(l, 0, 0, now_ms);
    pthread_mutex_unlock(&l->lock);
}

bool response_store_is_evicted(response_store *l, uint64_t scope, const char *id, double now_ms)
{
    pthread_mutex_lock(&l->lock);
    const bool is_gone = shares_is_gone(&l->shares, scope, id, now_ms);
    pthread_mutex_unlock(&l->lock);
    return is_gone;
}
