/* id_table: a map from non-zero 64-bit ids to pointers, for connections and answers. Loop thread.
 *
 *     id_table t; id_table_init(&t);
 *     if (!id_table_put(&t, id, conn)) { return ERR_NOMEM; }
 *     void *found = id_table_get(&t, id);
 *     id_table_deinit(&t);
 *
 * The table never owns what the pointers point to.
 */
#ifndef PARLEY_SERVER_ID_TABLE_H
#define PARLEY_SERVER_ID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct id_entry {
    uint64_t id; /* 0: free */
    void *value;
} id_entry;

typedef struct id_table {
    id_entry *entries; /* cap slots, a power of two, linear probing */
    size_t cap;
    size_t len;
} id_table;

void id_table_init(id_table *t);
void id_table_deinit(id_table *t);

/* Adds or replaces; false if out of memory. `value` is not NULL. */
MUST_CHECK bool id_table_put(id_table *t, uint64_t id, void *value);

/* NULL if there is no such id. */
void *id_table_get(const id_table *t, uint64_t id);

/* Removes the id and returns its value, NULL if there was none. */
void *id_table_remove(id_table *t, uint64_t id);

/* Walks: i from 0 to t->cap - 1; NULL for a free slot. The table must not change meanwhile. */
static inline void *id_table_at(const id_table *t, size_t i)
{
    return t->entries[i].id ? t->entries[i].value : NULL;
}

#endif
