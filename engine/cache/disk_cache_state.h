/* disk_cache_state: the inside of a disk cache, shared by disk_cache.c (thread, life cycle, what the
 * engine asks), disk_names.c (what files are called), disk_folder.c (the folder at the start) and
 * disk_transfer.c (reading and writing).
 */
#ifndef PARLEY_ENGINE_CACHE_DISK_CACHE_STATE_H
#define PARLEY_ENGINE_CACHE_DISK_CACHE_STATE_H

#include <pthread.h>

#include "engine/cache/disk_cache.h"

typedef enum save_state { SAVE_NONE, SAVE_ASKED, SAVE_UNDER_WAY, SAVE_DONE, SAVE_FAILED } save_state;
typedef enum load_state { LOAD_ASKED, LOAD_UNDER_WAY, LOAD_DONE, LOAD_FAILED } load_state;

struct disk_load {
    disk_load *next;  /* waiting {lock} */
    load_state state; /* {lock} */
    disk_hit hit;
    uint64_t *key;  /* [1 + n_tokens] */
    bool reads_key; /* what is behind its scope is not known, and read too */
    seq_snapshot *snapshot;
    float *hidden; /* NULL for a hit that is cut */
};

struct disk_cache {
    disk_cache_options options; /* dir is not used after open */
    disk_id salt;
    int dir, lock_file;
    pthread_t thread;
    bool thread_started;

    pthread_mutex_t lock;
    pthread_cond_t work, ended;
    disk_index *index;                /* {lock} */
    disk_load *loads;                 /* {lock} waiting, in order */
    save_state save;                  /* {lock} */
    const prefix_entry *source;       /* {lock} of the save, until it is abandoned */
    char given[PREFIX_GIVEN_MAX + 1]; /* {lock} its name when the save was asked for */
    bool is_stopping;                 /* {lock} */
    bool has_unused;                  /* {lock} entries were removed, and perhaps their blocks are nobody's */
    disk_cache_stats stats;           /* {lock} */

    /* of the cache's thread */
    unsigned char *block, *own; /* own: recurrent states, then blocks of windows */
    float *hidden;
    bool is_full_said;
};

/* What an entry's file holds before the names of its blocks, the key (its scope left out), the
 * hidden state, the recurrent states and the blocks of its windows. */
typedef struct disk_entry_facts {
    uint32_t n_key, n_blocks;
    int32_t mtp_len;
    uint32_t hidden_size;
    uint64_t own_floats, block_bytes; /* own_floats: what recurrent states and windows take */
    disk_id scope;
} disk_entry_facts;

/* ---- disk_names.c ---- */

/* What a hash is of; so that none can stand for another. */
typedef enum hash_kind { HASH_SCOPE, HASH_ROOT, HASH_CHAIN, HASH_FULL, HASH_PART, HASH_ENTRY } hash_kind;

/* The salted owner. */
disk_id disk_scope_of(const disk_cache *dc, uint64_t scope);
/* Blocks that hold nothing but tokens which have one behind them: the draft head's entry of a token
 * is made from the next one too. */
size_t disk_full_blocks(size_t n_tokens);
/* The hash of the model and the owner, and that of the first b blocks from that of b - 1. */
disk_id disk_chain_root(const disk_cache *dc, const disk_id *scope);
disk_id disk_next_chain(const disk_id *chain, const uint64_t *key, size_t b);
/* The name of full block b; chain: of b + 1 blocks. */
disk_id disk_full_name(const disk_id *chain, const uint64_t *key, size_t b);
/* The name of a prompt (HASH_ENTRY) or of its last block (HASH_PART); chain: of its full blocks. */
disk_id disk_end_name(hash_kind kind, const disk_id *chain, const uint64_t *key, size_t n_tokens);
/* The names of all blocks of a prompt, ids [kv_pool_blocks_for(n_tokens)]; returns its own. */
disk_id disk_name_blocks(const disk_cache *dc, disk_id *ids, const disk_id *scope, const uint64_t *key,
                         size_t n_tokens);
bool disk_is_same(const disk_id *a, const disk_id *b);

/* ---- disk_folder.c ---- */

/* A file of this model. */
disk_file disk_file_of(const disk_cache *dc, disk_kind kind, const disk_id *id);
void disk_remove_file(const disk_cache *dc, disk_kind kind, const disk_id *id);
/* Removes an entry, its file first, so that no entry is ever without its blocks. Under the lock. */
void disk_drop_entry(disk_cache *dc, disk_entry *e);
/* Removes the blocks that no entry needs. Under the lock. */
void disk_drop_unused(disk_cache *dc);
/* Bytes behind the header of an entry's file. */
uint64_t disk_entry_payload(const disk_entry_facts *f);
/* Makes the folder ours, removes what a kill left and reads what is there. ERR_IO, ERR_BUSY. */
MUST_CHECK err_code disk_take_folder(disk_cache *dc, const char *dir, err_detail *detail);

/* ---- disk_transfer.c: the cache's thread ---- */

/* Reads what waits. */
void disk_serve_loads(disk_cache *dc);
/* Writes what disk_cache_save has asked for. */
MUST_CHECK bool disk_run_save(disk_cache *dc);

#endif
