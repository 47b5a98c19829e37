#include "server/lineage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    uint64_t scope;
    char id[48];
    char *items;
    size_t len;
    double put_ms;
} entry;

struct lineage {
    size_t max_bytes, max_entries;
    double ttl_ms;
    pthread_mutex_t lock;
    entry *entries; /* {lock} [max_entries], the oldest first */
    size_t n;       /* {lock} */
    size_t n_bytes; /* {lock} */
};

lineage *lineage_create(size_t max_bytes, size_t max_entries, int ttl_s)
{
    lineage *l = calloc(1, sizeof *l);
    entry *entries = calloc(max_entries, sizeof *entries);
    if (!l || !entries) {
        free(l);
        free(entries);
        return NULL;
    }
    *l = (lineage){
        .max_bytes = max_bytes, .max_entries = max_entries, .ttl_ms = ttl_s * 1000.0, .entries = entries};
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void lineage_destroy(lineage *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        free(l->entries[i].items);
    }
    free(l->entries);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* {lock} Makes room for one more entry of `len` bytes, and drops what is too old. */
static void trim(lineage *l, size_t len, double now_ms)
{
    size_t n_gone = 0;
    while (n_gone < l->n && (l->n - n_gone == l->max_entries || l->n_bytes + len > l->max_bytes ||
                             now_ms - l->entries[n_gone].put_ms > l->ttl_ms)) {
        l->n_bytes -= l->entries[n_gone].len;
        free(l->entries[n_gone++].items);
    }
    l->n -= n_gone;
    memmove(l->entries, l->entries + n_gone, l->n * sizeof *l->entries);
}

void lineage_put(lineage *l, uint64_t scope, const char *id, const char *items, size_t len, double now_ms)
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
    l->entries[l->n++] = e;
    l->n_bytes += len;
    pthread_mutex_unlock(&l->lock);
}

bool lineage_get(lineage *l, uint64_t scope, const char *id, double now_ms, bytes *out)
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
