#include "engine/cache/disk_index.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
    disk_id id;
    uint64_t n_bytes;
    uint32_t n_held;
    bool is_used; /* the place is taken, or was: n_bytes is 0 then */
} block;

struct disk_index {
    disk_entry **entries; /* [n] of cap */
    size_t n, cap;
    block *blocks;             /* [1 << bits], found by the first bytes of the id */
    size_t n_places, n_taken;  /* taken: with those that were given up */
    size_t n_unused, at_least; /* blocks that nobody holds; none of them lies before at_least */
    uint64_t n_bytes;
};

enum { FIRST_PLACES = 1024, FILE_UNIT = 4096 };

/* What a file takes of the disk. */
static uint64_t on_disk(uint64_t n_bytes)
{
    return (n_bytes + FILE_UNIT - 1) / FILE_UNIT * FILE_UNIT;
}

disk_index *disk_index_create(void)
{
    disk_index *ix = calloc(1, sizeof *ix);
    if (ix) {
        ix->n_places = FIRST_PLACES;
        ix->blocks = calloc(ix->n_places, sizeof *ix->blocks);
    }
    if (!ix || !ix->blocks) {
        free(ix);
        return NULL;
    }
    return ix;
}

void disk_index_destroy(disk_index *ix)
{
    if (!ix) {
        return;
    }
    for (size_t i = 0; i < ix->n; i++) {
        free(ix->entries[i]->blocks);
        free(ix->entries[i]);
    }
    free(ix->entries);
    free(ix->blocks);
    free(ix);
}

/* ---- blocks ---- */

static size_t place_of(const disk_index *ix, const disk_id *id)
{
    uint64_t bits;
    memcpy(&bits, id->bytes, sizeof bits);
    size_t i = bits & (ix->n_places - 1);
    while (ix->blocks[i].is_used && memcmp(&ix->blocks[i].id, id, sizeof *id) != 0) {
        i = (i + 1) & (ix->n_places - 1);
    }
    return i;
}

static block *find_block(const disk_index *ix, const disk_id *id)
{
    block *b = &ix->blocks[place_of(ix, id)];
    return b->is_used && b->n_bytes ? b : NULL;
}

static bool grow(disk_index *ix)
{
    block *old = ix->blocks;
    const size_t n_old = ix->n_places;
    block *blocks = calloc(2 * n_old, sizeof *blocks);
    if (!blocks) {
        return false;
    }
    ix->blocks = blocks;
    ix->n_places = 2 * n_old;
    ix->n_taken = ix->at_least = 0;
    for (size_t i = 0; i < n_old; i++) {
        if (old[i].is_used && old[i].n_bytes) {
            ix->blocks[place_of(ix, &old[i].id)] = old[i];
            ix->n_taken++;
        }
    }
    free(old);
    return true;
}

bool disk_index_add_block(disk_index *ix, const disk_id *id, uint64_t n_bytes)
{
    if (find_block(ix, id)) {
        return true;
    }
    if (2 * (ix->n_taken + 1) > ix->n_places && !grow(ix)) {
        return false;
    }
    const size_t i = place_of(ix, id);
    ix->n_taken += !ix->blocks[i].is_used;
    ix->blocks[i] = (block){.id = *id, .n_bytes = on_disk(n_bytes), .is_used = true};
    ix->n_bytes += on_disk(n_bytes);
    ix->n_unused++;
    ix->at_least = i < ix->at_least ? i : ix->at_least;
    return true;
}

bool disk_index_has_block(const disk_index *ix, const disk_id *id)
{
    return find_block(ix, id) != NULL;
}

bool disk_index_hold(disk_index *ix, const disk_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        block *b = find_block(ix, &ids[i]);
        if (!b) {
            disk_index_release(ix, ids, i);
            return false;
        }
        ix->n_unused -= b->n_held == 0;
        b->n_held++;
    }
    return true;
}

void disk_index_release(disk_index *ix, const disk_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        block *b = find_block(ix, &ids[i]);
        if (b && b->n_held > 0 && --b->n_held == 0) {
            const size_t at = (size_t)(b - ix->blocks);
            ix->n_unused++;
            ix->at_least = at < ix->at_least ? at : ix->at_least;
        }
    }
}

bool disk_index_take_unused(disk_index *ix, disk_id *id)
{
    for (size_t i = ix->at_least; i < ix->n_places && ix->n_unused > 0; i++) {
        block *b = &ix->blocks[i];
        if (b->is_used && b->n_bytes && b->n_held == 0) {
            *id = b->id;
            ix->n_bytes -= b->n_bytes;
            b->n_bytes = 0;
            ix->n_unused--;
            ix->at_least = i;
            return true;
        }
    }
    return false;
}

/* ---- entries ---- */

disk_entry *disk_index_add(disk_index *ix, const disk_entry *facts)
{
    disk_entry *e = malloc(sizeof *e);
    disk_id *blocks = malloc((facts->n_blocks + 1) * sizeof *blocks);
    if (ix->n == ix->cap) {
        const size_t cap = ix->cap ? 2 * ix->cap : 64;
        disk_entry **entries = realloc(ix->entries, cap * sizeof *entries);
        if (entries) {
            ix->entries = entries;
            ix->cap = cap;
        }
    }
    if (!e || !blocks || ix->n == ix->cap) {
        free(e);
        free(blocks);
        return NULL;
    }
    *e = *facts;
    e->blocks = blocks;
    memcpy(blocks, facts->blocks, facts->n_blocks * sizeof *blocks);
    ix->entries[ix->n++] = e;
    ix->n_bytes += on_disk(e->n_bytes);
    return e;
}

void disk_index_remove(disk_index *ix, disk_entry *e)
{
    for (size_t i = 0; i < ix->n; i++) {
        if (ix->entries[i] == e) {
            ix->entries[i] = ix->entries[--ix->n];
            break;
        }
    }
    disk_index_release(ix, e->blocks, e->n_blocks);
    ix->n_bytes -= on_disk(e->n_bytes);
    free(e->blocks);
    free(e);
}

disk_entry *disk_index_find(disk_index *ix, const disk_id *name)
{
    for (size_t i = 0; i < ix->n; i++) {
        if (memcmp(&ix->entries[i]->name, name, sizeof *name) == 0) {
            return ix->entries[i];
        }
    }
    return NULL;
}

disk_entry *const *disk_index_entries(const disk_index *ix, size_t *n)
{
    *n = ix->n;
    return ix->entries;
}

disk_entry *disk_index_find_given(disk_index *ix, const disk_id *scope, const char *given)
{
    disk_entry *last = NULL; /* there may be two after a kill */
    for (size_t i = 0; i < ix->n; i++) {
        disk_entry *e = ix->entries[i];
        if (!e->is_foreign && strcmp(e->given, given) == 0 && memcmp(&e->scope, scope, sizeof *scope) == 0 &&
            (!last || e->used_ns > last->used_ns)) {
            last = e;
        }
    }
    return last;
}

uint64_t disk_index_given_bytes(const disk_index *ix, uint64_t block_bytes, const disk_entry *but)
{
    uint64_t n = 0;
    for (size_t i = 0; i < ix->n; i++) {
        const disk_entry *e = ix->entries[i];
        n += e->given[0] && !e->is_foreign && e != but
                 ? on_disk(e->n_bytes) + e->n_blocks * on_disk(block_bytes)
                 : 0;
    }
    return n;
}

static bool goes_before(const disk_entry *a, const disk_entry *b)
{
    const bool a_named = a->given[0] != '\0', b_named = b->given[0] != '\0';
    return a_named != b_named ? b_named : a->used_ns < b->used_ns;
}

disk_entry *disk_index_oldest(disk_index *ix)
{
    disk_entry *oldest = NULL;
    for (size_t i = 0; i < ix->n; i++) {
        disk_entry *e = ix->entries[i];
        if ((!e->given[0] || e->is_foreign) && (!oldest || goes_before(e, oldest))) {
            oldest = e;
        }
    }
    return oldest;
}

uint64_t disk_index_bytes(const disk_index *ix)
{
    return ix->n_bytes;
}
