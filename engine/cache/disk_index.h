/* disk_index: which prompts and which blocks of keys and values a folder holds, and which may go.
 * Nothing here touches a file. The disk cache's lock guards it.
 *
 *     disk_index *ix = disk_index_create();
 *     disk_index_add_block(ix, &id, n_bytes);           // nobody's yet
 *     disk_index_hold(ix, ids, n);                      // one more that needs them
 *     disk_entry *e = disk_index_add(ix, &facts);       // which holds its blocks
 *
 * Prompts that begin alike share blocks. A block is known by what was computed (the model, the
 * owner, the tokens up to its end and the one behind), so that it need not be written or even
 * looked at again.
 */
#ifndef PARLEY_ENGINE_CACHE_DISK_INDEX_H
#define PARLEY_ENGINE_CACHE_DISK_INDEX_H

#include <stdbool.h>

#include "engine/cache/disk_file.h"
#include "engine/cache/prefix_cache.h"

typedef struct disk_entry {
    disk_id name;  /* of the whole prompt */
    disk_id scope; /* of its owner, salted */
    int32_t n_tokens, mtp_len;
    disk_id *blocks; /* [n_blocks] */
    size_t n_blocks;
    uint64_t n_bytes; /* of its own file; its blocks count by themselves */
    int64_t used_ns;  /* nanoseconds since 1970 */
    char given[PREFIX_GIVEN_MAX +
               1];   /* what its owner calls it, which keeps it from being dropped; "": nothing */
    bool is_foreign; /* of another model: it counts, and can be dropped, but is never found */
} disk_entry;

typedef struct disk_index disk_index;

MUST_CHECK disk_index *disk_index_create(void); /* NULL if out of memory */
void disk_index_destroy(disk_index *ix);        /* NULL allowed */

/* False if out of memory. */
MUST_CHECK bool disk_index_add_block(disk_index *ix, const disk_id *id, uint64_t n_bytes);
bool disk_index_has_block(const disk_index *ix, const disk_id *id);
/* Counts one more who needs these blocks; false, and nothing changed, if one is missing. */
MUST_CHECK bool disk_index_hold(disk_index *ix, const disk_id *ids, size_t n);
/* The opposite of hold. */
void disk_index_release(disk_index *ix, const disk_id *ids, size_t n);
/* Takes a block that nobody needs out of the index, to be removed; false: there is none. */
bool disk_index_take_unused(disk_index *ix, disk_id *id);

/* Copies the facts. Their blocks are held already and become the entry's to release. NULL if out of
 * memory. */
MUST_CHECK disk_entry *disk_index_add(disk_index *ix, const disk_entry *facts);
/* Releases the entry's blocks and frees it. */
void disk_index_remove(disk_index *ix, disk_entry *e);
disk_entry *disk_index_find(disk_index *ix, const disk_id *name);
/* The entries, in no order. Valid until the next add or remove. */
disk_entry *const *disk_index_entries(const disk_index *ix, size_t *n);
/* The entry that its owner calls so; NULL: there is none. */
disk_entry *disk_index_find_given(disk_index *ix, const disk_id *scope, const char *given);
/* Bytes of the files of all entries with a name, but those of this one (may be NULL); blocks that two
 * of them share count twice. */
uint64_t disk_index_given_bytes(const disk_index *ix, uint64_t block_bytes, const disk_entry *but);
/* The entry that goes first: the least recently used one without a name, then those of other models;
 * NULL: there is none. */
disk_entry *disk_index_oldest(disk_index *ix);
/* Bytes of all files. */
uint64_t disk_index_bytes(const disk_index *ix);

#endif
