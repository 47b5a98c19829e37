#include "server/id_table.h"

#include <stdlib.h>
#include <string.h>

/* Ids are counters, so spread them: neighbours must not form one long probe run. */
static size_t slot_of(uint64_t id, size_t cap)
{
    return (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (cap - 1);
}

void id_table_init(id_table *t)
{
    memset(t, 0, sizeof *t);
}

void id_table_deinit(id_table *t)
{
    free(t->entries);
    id_table_init(t);
}

static void place(id_entry *entries, size_t cap, uint64_t id, void *value)
{
    size_t i = slot_of(id, cap);
    while (entries[i].id && entries[i].id != id) {
        i = (i + 1) & (cap - 1);
    }
    entries[i].id = id;
    entries[i].value = value;
}

static bool grow(id_table *t)
{
    size_t cap = t->cap ? t->cap * 2 : 64;
    id_entry *entries = calloc(cap, sizeof *entries);
    if (!entries) {
        return false;
    }
    for (size_t i = 0; i < t->cap; i++) {
        if (t->entries[i].id) {
            place(entries, cap, t->entries[i].id, t->entries[i].value);
        }
    }
    free(t->entries);
    t->entries = entries;
    t->cap = cap;
    return true;
}

bool id_table_put(id_table *t, uint64_t id, void *value)
{
    bool is_new = id_table_get(t, id) == NULL;
    if (is_new && (t->len + 1) * 2 > t->cap && !grow(t)) {
        return false;
    }
    place(t->entries, t->cap, id, value);
    t->len += is_new;
    return true;
}

static bool find(const id_table *t, uint64_t id, size_t *index)
{
    if (t->cap == 0 || id == 0) {
        return false;
    }
    size_t i = slot_of(id, t->cap);
    while (t->entries[i].id) {
        if (t->entries[i].id == id) {
            *index = i;
            return true;
        }
        i = (i + 1) & (t->cap - 1);
    }
    return false;
}

void *id_table_get(const id_table *t, uint64_t id)
{
    size_t i;
    return find(t, id, &i) ? t->entries[i].value : NULL;
}

void *id_table_remove(id_table *t, uint64_t id)
{
    size_t i;
    if (!find(t, id, &i)) {
        return NULL;
    }
    void *value = t->entries[i].value;
    t->entries[i].id = 0;
    t->len--;
    /* Close the gap, so that linear probing needs no tombstones. */
    size_t j = i;
    for (;;) {
        j = (j + 1) & (t->cap - 1);
        if (!t->entries[j].id) {
            return value;
        }
        size_t home = slot_of(t->entries[j].id, t->cap);
        bool reachable = i <= j ? (home > i && home <= j) : (home > i || home <= j);
        if (!reachable) {
            t->entries[i] = t->entries[j];
            t->entries[j].id = 0;
            i = j;
        }
    }
}
