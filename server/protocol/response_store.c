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
    size_t len;
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

response_store *response_store_create(size_t max_bytes, size_t max_entries, int ttl_s)
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
    shares_init(&l->shares, max_entries, max_bytes);
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

/* {lock} Drops what is too old, and makes room for one more entry of `len` bytes: whoever has most
 * gives its oldest. */
static void trim(response_store *l, size_t len, double now_ms)
{
    uint64_t scope;
    while (l->n > 0 && now_ms - l->entries[0].put_ms > l->ttl_ms) {
        drop(l, 0);
    }
    while (shares_is_over(&l->shares, 1, len, &scope)) {
        size_t i = 0;
        while (l->entries[i].scope != scope) {
            i++;
        }
        shares_note_gone(&l->shares, scope, l->entries[i].id, l->entries[i].put_ms + l->ttl_ms);
        drop(l, i);
    }
}

void response_store_put(response_store *l, uint64_t scope, const char *id, const char *items, size_t len,
                        double now_ms)
{
    char *copy = len > 0 && len <= l->max_bytes ? malloc(len) : NULL;
    if (!copy) {
        return;
    }
    memcpy(copy, items, len);
    entry e = {.scope = scope, .items = copy, .len = len, .put_ms = now_ms};
    snprintf(e.id, sizeof e.id, "%s", id);
    pthread_mutex_lock(&l->lock);
    trim(l, len, now_ms);
    if (shares_add(&l->shares, scope, len)) {
        l->entries[l->n++] = e;
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&l->lock);
}

bool response_store_get(response_store *l, uint64_t scope, const char *id, double now_ms, bytes *out)
{
    bool found = false;
    pthread_mutex_lock(&l->lock);
    for (size_t i = l->n; i-- > 0 && !found;) {
        const entry *e = &l->entries[i];
        found = e->scope == scope && strcmp(e->id, id) == 0 && now_ms - e->put_ms <= l->ttl_ms;
        if (found) {
            bytes_append(out, e->items, e->len);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

bool response_store_is_evicted(response_store *l, uint64_t scope, const char *id, double now_ms)
{
    pthread_mutex_lock(&l->lock);
    const bool is_gone = shares_is_gone(&l->shares, scope, id, now_ms);
    pthread_mutex_unlock(&l->lock);
    return is_gone;
}
