/* disk_cache: the second tier of the prefix cache, a folder. One thread of its own reads and
 * writes; the engine thread only says what.
 *
 *     disk_cache *dc; err_code err = disk_cache_open(&dc, &options, &detail);
 *
 * Files (disk_file.h): one for each block of keys and values, one for each entry with its recurrent
 * states, the blocks of its windows and the names of its blocks. Blocks come first, so that an entry that is there is whole;
 * what a kill left behind is removed at the next start. An entry is found by hashes of the model,
 * the owner and the tokens, and checked in full when it is read. Whatever is wrong with a file is a
 * miss and a line in the log. A folder has one server at a time.
 */
#ifndef PARLEY_ENGINE_CACHE_DISK_CACHE_H
#define PARLEY_ENGINE_CACHE_DISK_CACHE_H

#include "engine/cache/disk_index.h"
#include "engine/cache/prefix_cache.h"

typedef struct disk_cache disk_cache;
typedef struct disk_load disk_load;

typedef struct disk_cache_options {
    const char *dir;     /* created if it is missing, but not its parents */
    uint64_t budget;     /* bytes */
    disk_id fingerprint; /* of all that states depend on */
    size_t block_bytes, hidden_size;
    size_t own_bytes;        /* of an entry's recurrent states and windows, at most */
    bool can_cut;            /* neither of them: any number of blocks from the start is enough */
    void (*wake)(void *ctx); /* called on the cache's thread when a save or a load has ended */
    void *wake_ctx;
} disk_cache_options;

typedef struct disk_cache_stats {
    uint64_t n_hits, n_hit_tokens, n_saves, n_evictions, n_errors;
    uint64_t n_entries, bytes, budget;
} disk_cache_stats;

/* Opens the folder, removes what a kill left, and starts the thread. ERR_IO: it cannot be used,
 * ERR_BUSY: another server uses it. */
MUST_CHECK err_code disk_cache_open(disk_cache **out, const disk_cache_options *options, err_detail *detail);
/* Ends what is under way. Loads must have been freed. NULL allowed. */
void disk_cache_close(disk_cache *dc);

/* ---- saving: engine thread ---- */

/* Begins to write an entry, which must live until the end of the save, under the name that it is given,
 * if it is; false: another one is under way. */
MUST_CHECK bool disk_cache_save(disk_cache *dc, const prefix_entry *e);
/* True once for each save, when it has ended: *ok tells how. wait: not before it has ended. False:
 * none has. */
bool disk_cache_end_save(disk_cache *dc, bool wait, bool *ok);
/* Gives up the save that is under way, if there is one: its entry is not read any more. */
void disk_cache_abandon_save(disk_cache *dc);

/* ---- finding and loading: engine thread ---- */

typedef struct disk_hit {
    disk_id name;
    int32_t n_tokens, mtp_len;
    bool is_cut; /* only the first blocks of a longer entry */
} disk_hit;

/* The longest stored prefix of key[0..n_key), if it has more than more_than tokens. */
MUST_CHECK bool disk_cache_find(disk_cache *dc, const uint64_t *key, size_t n_key, int32_t more_than,
                                disk_hit *hit);
/* Begins to read it into a snapshot of just that length (owned by the load). The key is copied.
 * NULL if out of memory; then the snapshot is freed. */
MUST_CHECK disk_load *disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key,
                                      seq_snapshot *snapshot);
/* The same for an entry that was found by its name; its key is read too. */
MUST_CHECK disk_load *disk_cache_load_given(disk_cache *dc, const disk_hit *hit, uint64_t scope,
                                            seq_snapshot *snapshot);
bool disk_load_has_ended(disk_cache *dc, const disk_load *l);
/* Behind its end: puts what was read into the prefix cache, if it is whole, and frees the load. How many
 * tokens; 0 if it could not be read. */
int32_t disk_load_finish(disk_load *l, prefix_cache *pc);
/* Waits for its end and frees it. NULL allowed. */
void disk_load_free(disk_cache *dc, disk_load *l);

/* ---- any thread ---- */

/* The entry of a scope of this model that has this name; its blocks are not for the caller. */
MUST_CHECK bool disk_cache_find_given(disk_cache *dc, uint64_t scope, const char *given, disk_entry *out);
/* Removes it; *out says what it was. */
MUST_CHECK bool disk_cache_drop_given(disk_cache *dc, uint64_t scope, const char *given, disk_entry *out);
/* What an entry with this key is called on disk. */
disk_id disk_cache_name_of(const disk_cache *dc, const uint64_t *key, size_t n_key);
/* Removes the entries of a scope of this model; NULL: of all scopes. */
void disk_cache_clear(disk_cache *dc, const uint64_t *scope);
/* Calls `each` for the entries of a scope of this model, under the cache's lock. */
void disk_cache_list(disk_cache *dc, uint64_t scope, void (*each)(void *ctx, const disk_entry *e), void *ctx);
disk_cache_stats disk_cache_get_stats(disk_cache *dc);

#endif
