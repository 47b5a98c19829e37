#include "engine/cache/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"

static const char LOCK_NAME[] = "parley-cache.lock"; /* holds the salt of the scopes */

typedef enum save_state { SAVE_NONE, SAVE_ASKED, SAVE_UNDER_WAY, SAVE_DONE, SAVE_FAILED } save_state;
typedef enum load_state { LOAD_ASKED, LOAD_UNDER_WAY, LOAD_DONE, LOAD_FAILED } load_state;

struct disk_load {
    disk_load *next;  /* waiting {lock} */
    load_state state; /* {lock} */
    disk_hit hit;
    uint64_t *key; /* [1 + n_tokens] */
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
    disk_index *index;          /* {lock} */
    disk_load *loads;           /* {lock} waiting, in order */
    save_state save;            /* {lock} */
    const prefix_entry *source; /* {lock} of the save, until it is abandoned */
    bool is_stopping;           /* {lock} */
    bool has_unused;            /* {lock} entries were removed, and perhaps their blocks are nobody's */
    disk_cache_stats stats;     /* {lock} */

    /* of the cache's thread */
    unsigned char *block;
    float *floats, *hidden;
    bool is_full_said;
};

/* What an entry's file holds before the names of its blocks, the key (its scope left out), the
 * hidden state and the recurrent states. */
typedef struct entry_facts {
    uint32_t n_key, n_blocks;
    int32_t mtp_len;
    uint32_t hidden_size;
    uint64_t n_floats, block_bytes;
    disk_id scope;
} entry_facts;

/* ---- names ---- */

/* What a hash is of; so that none can stand for another. */
typedef enum hash_kind { HASH_SCOPE, HASH_ROOT, HASH_CHAIN, HASH_FULL, HASH_PART, HASH_ENTRY } hash_kind;

static disk_id hash_of(hash_kind kind, const disk_id *before, const void *data, size_t n)
{
    unsigned char text[1 + HASH_BYTES + (SEQ_PAGE_TOKENS + 1) * sizeof(uint64_t)];
    disk_id out;
    text[0] = (unsigned char)kind;
    memcpy(text + 1, before, HASH_BYTES);
    memcpy(text + 1 + HASH_BYTES, data, n);
    hash_sha256(out.bytes, text, 1 + HASH_BYTES + n);
    return out;
}

static disk_id scope_of(const disk_cache *dc, uint64_t scope)
{
    return hash_of(HASH_SCOPE, &dc->salt, &scope, sizeof scope);
}

/* Blocks that hold nothing but tokens which have one behind them: the draft head's entry of a token
 * is made from the next one too. */
static size_t full_blocks(size_t n_tokens)
{
    return n_tokens ? (n_tokens - 1) / SEQ_PAGE_TOKENS : 0;
}

/* The hash of the model, the owner and the first b blocks, from the one of b - 1 blocks. */
static disk_id next_chain(const disk_id *chain, const uint64_t *key, size_t b)
{
    return hash_of(HASH_CHAIN, chain, key + 1 + (b - 1) * SEQ_PAGE_TOKENS, SEQ_PAGE_TOKENS * sizeof *key);
}

static disk_id chain_root(const disk_cache *dc, const disk_id *scope)
{
    return hash_of(HASH_ROOT, &dc->options.fingerprint, scope, sizeof *scope);
}

/* The name of a prompt of n_tokens, or of its last block; chain: of its full blocks. */
static disk_id end_name(hash_kind kind, const disk_id *chain, const uint64_t *key, size_t n_tokens)
{
    const size_t begin = full_blocks(n_tokens) * SEQ_PAGE_TOKENS;
    return hash_of(kind, chain, key + 1 + begin, (n_tokens - begin) * sizeof *key);
}

/* The names of all blocks of a prompt, ids [kv_pool_blocks_for(n_tokens)], and its own. */
static disk_id name_blocks(const disk_cache *dc, disk_id *ids, const disk_id *scope, const uint64_t *key,
                           size_t n_tokens)
{
    disk_id chain = chain_root(dc, scope);
    const size_t n_full = full_blocks(n_tokens);
    for (size_t b = 0; b < n_full; b++) {
        chain = next_chain(&chain, key, b + 1);
        ids[b] = hash_of(HASH_FULL, &chain, key + 1 + (b + 1) * SEQ_PAGE_TOKENS, sizeof *key);
    }
    ids[n_full] = end_name(HASH_PART, &chain, key, n_tokens);
    return end_name(HASH_ENTRY, &chain, key, n_tokens);
}

static bool is_same(const disk_id *a, const disk_id *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- the folder ---- */

static disk_file file_of(const disk_cache *dc, disk_kind kind, const disk_id *id)
{
    return (disk_file){.kind = kind, .id = *id, .fingerprint = dc->options.fingerprint};
}

static void remove_file(const disk_cache *dc, disk_kind kind, const disk_id *id)
{
    char name[DISK_NAME_CHARS];
    disk_file_name(name, kind, id);
    unlinkat(dc->dir, name, 0);
}

/* Under the lock: the file goes first, so that no entry is ever without its blocks. */
static void drop_entry(disk_cache *dc, disk_entry *e)
{
    remove_file(dc, DISK_ENTRY, &e->name);
    disk_index_remove(dc->index, e);
}

static void drop_unused_blocks(disk_cache *dc)
{
    disk_id id;
    while (disk_index_take_unused(dc->index, &id)) {
        remove_file(dc, DISK_BLOCK, &id);
    }
}

static uint64_t entry_payload(const entry_facts *f)
{
    return sizeof *f + (uint64_t)f->n_blocks * sizeof(disk_id) + (uint64_t)f->n_key * sizeof(uint64_t) +
           (uint64_t)f->hidden_size * sizeof(float) + f->n_floats * sizeof(float);
}

/* Reads what must be known of an entry without reading all of it: its checksum is compared when it
 * is loaded. False if that makes no sense. */
static bool read_facts(int fd, const disk_file *file, disk_entry *e)
{
    entry_facts f;
    if (read(fd, &f, sizeof f) != (ssize_t)sizeof f || f.n_key < 2 || f.n_key > INT32_MAX / 2 ||
        f.n_blocks != kv_pool_blocks_for((int32_t)f.n_key - 1) ||
        f.n_floats > file->n_bytes / sizeof(float) || f.mtp_len < 0 || entry_payload(&f) != file->n_bytes) {
        return false;
    }
    *e = (disk_entry){.name = file->id,
                      .scope = f.scope,
                      .n_tokens = (int32_t)f.n_key - 1,
                      .mtp_len = f.mtp_len,
                      .n_blocks = f.n_blocks,
                      .n_bytes = DISK_HEADER_BYTES + file->n_bytes};
    const size_t n = e->n_blocks * sizeof *e->blocks;
    e->blocks = malloc(n);
    return e->blocks && read(fd, e->blocks, n) == (ssize_t)n;
}

/* What the start has seen. */
typedef struct scan {
    size_t n_left, n_damaged, n_older, n_newer;
} scan;

static void scan_entry(disk_cache *dc, const disk_id *id, scan *seen)
{
    disk_file f = file_of(dc, DISK_ENTRY, id);
    disk_entry e = {0};
    struct stat st;
    int fd = -1;
    const err_code err = disk_file_open(&fd, dc->dir, &f, true, NULL);
    bool ok = err == ERR_OK && fstat(fd, &st) == 0 && read_facts(fd, &f, &e) &&
              disk_index_hold(dc->index, e.blocks, e.n_blocks);
    if (ok) {
        e.used_at = st.st_mtime;
        e.is_foreign = !is_same(&f.fingerprint, &dc->options.fingerprint);
        ok = disk_index_add(dc->index, &e) != NULL;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(e.blocks);
    if (ok) {
        return;
    }
    if (err == ERR_UNSUPPORTED && f.version > DISK_FORMAT_VERSION) {
        seen->n_newer++;
        return;
    }
    *(err == ERR_UNSUPPORTED ? &seen->n_older : &seen->n_damaged) += 1;
    remove_file(dc, DISK_ENTRY, id);
}

/* Blocks of a newer version are left alone like its entries. */
static void remove_unused(disk_cache *dc, scan *seen)
{
    disk_id id;
    while (disk_index_take_unused(dc->index, &id)) {
        disk_file f = file_of(dc, DISK_BLOCK, &id);
        int fd = -1;
        if (disk_file_open(&fd, dc->dir, &f, true, NULL) == ERR_OK) {
            close(fd);
        } else if (f.version > DISK_FORMAT_VERSION) {
            continue;
        }
        remove_file(dc, DISK_BLOCK, &id);
        seen->n_left++;
    }
}

/* Calls take for each of our files of a kind; removes those that were being written. */
static bool each_file(disk_cache *dc, disk_kind wanted, scan *seen)
{
    const int fd = openat(dc->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    bool ok = true;
    for (struct dirent *file; ok && (file = readdir(d)) != NULL;) {
        disk_kind kind;
        disk_id id;
        bool is_temporary;
        struct stat st;
        if (!disk_file_parse_name(file->d_name, &kind, &id, &is_temporary) || kind != wanted) {
            continue;
        }
        if (is_temporary) {
            seen->n_left += unlinkat(dc->dir, file->d_name, 0) == 0;
        } else if (kind == DISK_ENTRY) {
            scan_entry(dc, &id, seen);
        } else if (fstatat(dc->dir, file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            ok = disk_index_add_block(dc->index, &id, st.st_size > 0 ? (uint64_t)st.st_size : 1);
        }
    }
    closedir(d);
    return ok;
}

/* The index of what is there. */
static err_code read_folder(disk_cache *dc, const char *dir, err_detail *d)
{
    scan seen = {0};
    if (!each_file(dc, DISK_BLOCK, &seen) || !each_file(dc, DISK_ENTRY, &seen)) {
        return err_set(d, ERR_IO, "the folder %s cannot be read", dir);
    }
    remove_unused(dc, &seen);
    size_t n = 0, n_foreign = 0;
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = 0; i < n; i++) {
        n_foreign += entries[i]->is_foreign;
    }
    log_info("cache", "%s holds %zu prompts of this model and %zu of others, %llu of %llu MiB", dir,
             n - n_foreign, n_foreign, (unsigned long long)disk_index_bytes(dc->index) >> 20,
             (unsigned long long)dc->options.budget >> 20);
    if (seen.n_left || seen.n_damaged || seen.n_older) {
        log_warn("cache", "removed from %s: %zu unfinished files, %zu damaged ones, %zu of an older version",
                 dir, seen.n_left, seen.n_damaged, seen.n_older);
    }
    if (seen.n_newer) {
        log_warn("cache", "%zu prompts in %s are of a newer version: they are neither used nor counted",
                 seen.n_newer, dir);
    }
    return ERR_OK;
}

/* The folder is ours while the lock file is locked. */
static err_code take_folder(disk_cache *dc, const char *dir, err_detail *d)
{
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_set(d, ERR_IO, "the folder %s cannot be made: %s", dir, strerror(errno));
    }
    dc->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dc->dir < 0) {
        return err_set(d, ERR_IO, "the folder %s cannot be opened: %s", dir, strerror(errno));
    }
    dc->lock_file = openat(dc->dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (dc->lock_file < 0 || faccessat(dc->dir, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return err_set(d, ERR_IO, "the folder %s cannot be written to: %s", dir, strerror(errno));
    }
    if (flock(dc->lock_file, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? err_set(d, ERR_BUSY, "another server uses the folder %s", dir)
                   : err_set(d, ERR_IO, "the folder %s cannot be locked: %s", dir, strerror(errno));
    }
    if (pread(dc->lock_file, dc->salt.bytes, HASH_BYTES, 0) != HASH_BYTES) {
        for (size_t i = 0; i < HASH_BYTES; i += sizeof(uint64_t)) {
            const uint64_t bits = hash_random_u64();
            memcpy(dc->salt.bytes + i, &bits, sizeof bits);
        }
        if (pwrite(dc->lock_file, dc->salt.bytes, HASH_BYTES, 0) != HASH_BYTES || fsync(dc->lock_file) != 0) {
            return err_set(d, ERR_IO, "the folder %s cannot be written to: %s", dir, strerror(errno));
        }
    }
    return read_folder(dc, dir, d);
}

/* ---- loading, on the cache's thread ---- */

static void note_failure(disk_cache *dc, const err_detail *d)
{
    log_warn("cache", "%s", d->text);
    pthread_mutex_lock(&dc->lock);
    dc->stats.n_errors++;
    pthread_mutex_unlock(&dc->lock);
}

/* A block that cannot be read takes all entries with it that need it. */
static void drop_block_users(disk_cache *dc, const disk_id *id)
{
    pthread_mutex_lock(&dc->lock);
    size_t n = 0;
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = n; i-- > 0;) {
        bool uses = false;
        for (size_t b = 0; b < entries[i]->n_blocks && !uses; b++) {
            uses = is_same(&entries[i]->blocks[b], id);
        }
        if (uses) {
            drop_entry(dc, entries[i]);
        }
    }
    pthread_mutex_unlock(&dc->lock);
}

static void drop_by_name(disk_cache *dc, const disk_id *name)
{
    pthread_mutex_lock(&dc->lock);
    disk_entry *e = disk_index_find(dc->index, name);
    if (e) {
        drop_entry(dc, e);
    }
    pthread_mutex_unlock(&dc->lock);
}

static err_code read_file(disk_cache *dc, disk_kind kind, const disk_id *id, const disk_part *parts, size_t n,
                          err_detail *d)
{
    disk_file f = file_of(dc, kind, id);
    int fd = -1;
    const err_code err = disk_file_open(&fd, dc->dir, &f, false, d);
    return err == ERR_OK ? disk_file_read(fd, &f, parts, n, d) : err;
}

/* The file of an entry that is loaded whole; ids: the names of its blocks. */
static err_code read_entry(disk_cache *dc, disk_load *l, const disk_id *ids, const seq_snapshot_parts *p,
                           err_detail *d)
{
    const size_t n_key = 1 + (size_t)l->hit.n_tokens;
    entry_facts f;
    uint64_t *key = malloc(n_key * sizeof *key);
    disk_id *blocks = malloc(p->n_blocks * sizeof *blocks);
    err_code err = ERR_OK;
    if (!key || !blocks) {
        err = err_set(d, ERR_NOMEM, "there is not enough memory to read a cached prompt");
    } else {
        const disk_part parts[] = {{&f, sizeof f},
                                   {blocks, p->n_blocks * sizeof *blocks},
                                   {key, n_key * sizeof *key},
                                   {l->hidden, dc->options.hidden_size * sizeof(float)},
                                   {p->floats, p->n_floats * sizeof(float)}};
        err = read_file(dc, DISK_ENTRY, &l->hit.name, parts, sizeof parts / sizeof parts[0], d);
    }
    if (err == ERR_OK &&
        (f.n_key != n_key || f.mtp_len != l->hit.mtp_len || f.n_floats != p->n_floats ||
         f.block_bytes != p->block_bytes || memcmp(key + 1, l->key + 1, (n_key - 1) * sizeof *key) != 0 ||
         memcmp(blocks, ids, p->n_blocks * sizeof *blocks) != 0)) {
        err = err_set(d, ERR_CORRUPT, "a cached prompt is not the one that its name says");
    }
    free(key);
    free(blocks);
    return err;
}

static bool load(disk_cache *dc, disk_load *l)
{
    const seq_snapshot_parts p = seq_snapshot_get_parts(l->snapshot);
    disk_id *ids = malloc((p.n_blocks + 1) * sizeof *ids);
    err_detail d = {0};
    char name[DISK_NAME_CHARS];
    if (!ids) {
        return false;
    }
    pthread_mutex_lock(&dc->lock);
    disk_entry *e = disk_index_find(dc->index, &l->hit.name);
    const bool is_there = e && e->n_blocks >= p.n_blocks;
    if (is_there) {
        memcpy(ids, e->blocks, p.n_blocks * sizeof *ids);
        e->used_at = (int64_t)time(NULL);
    }
    pthread_mutex_unlock(&dc->lock);
    err_code err = ERR_OK;
    if (is_there && !l->hit.is_cut) {
        err = read_entry(dc, l, ids, &p, &d);
        if (err != ERR_OK) {
            drop_by_name(dc, &l->hit.name);
        }
    }
    for (size_t b = 0; is_there && b < p.n_blocks && err == ERR_OK; b++) {
        const disk_part part = {p.blocks[b], p.block_bytes};
        err = read_file(dc, DISK_BLOCK, &ids[b], &part, 1, &d);
        if (err != ERR_OK) {
            drop_block_users(dc, &ids[b]);
        }
    }
    free(ids);
    if (err != ERR_OK) {
        note_failure(dc, &d);
        pthread_mutex_lock(&dc->lock);
        drop_unused_blocks(dc);
        pthread_mutex_unlock(&dc->lock);
    } else if (is_there) {
        disk_file_name(name, DISK_ENTRY, &l->hit.name);
        utimensat(dc->dir, name, NULL, AT_SYMLINK_NOFOLLOW);
        pthread_mutex_lock(&dc->lock);
        dc->stats.n_hits++;
        dc->stats.n_hit_tokens += (uint64_t)l->hit.n_tokens;
        pthread_mutex_unlock(&dc->lock);
    }
    return is_there && err == ERR_OK;
}

/* Answers wait for loads, nobody for saves: a save makes way between its files. */
static void serve_loads(disk_cache *dc)
{
    pthread_mutex_lock(&dc->lock);
    while (dc->loads && !dc->is_stopping) {
        disk_load *l = dc->loads;
        dc->loads = l->next;
        l->state = LOAD_UNDER_WAY;
        pthread_mutex_unlock(&dc->lock);
        const bool ok = load(dc, l);
        pthread_mutex_lock(&dc->lock);
        l->state = ok ? LOAD_DONE : LOAD_FAILED;
        pthread_cond_broadcast(&dc->ended);
        pthread_mutex_unlock(&dc->lock);
        dc->options.wake(dc->options.wake_ctx);
        pthread_mutex_lock(&dc->lock);
    }
    pthread_mutex_unlock(&dc->lock);
}

/* ---- saving, on the cache's thread ---- */

/* What is known of the entry that is being saved; copied, because it may be dropped any time. */
typedef struct saving {
    uint64_t *key;
    size_t n_tokens, n_blocks;
    int32_t mtp_len;
    disk_id *ids; /* [n_blocks] */
    size_t n_held;
    disk_entry facts;
} saving;

/* Copies all but the blocks; false if the save was abandoned or memory ran out. */
static bool begin_saving(disk_cache *dc, saving *s)
{
    bool ok = false;
    pthread_mutex_lock(&dc->lock);
    if (dc->source) {
        const prefix_entry *e = dc->source;
        const seq_snapshot_parts p = seq_snapshot_get_parts(e->snapshot);
        s->n_tokens = e->n_key - 1;
        s->n_blocks = p.n_blocks;
        s->mtp_len = p.mtp_len;
        s->key = malloc(e->n_key * sizeof *s->key);
        s->ids = malloc((p.n_blocks + 1) * sizeof *s->ids);
        ok = s->key && s->ids && e->hidden && s->n_tokens > 0;
        if (ok) {
            memcpy(s->key, e->key, e->n_key * sizeof *s->key);
            memcpy(dc->hidden, e->hidden, dc->options.hidden_size * sizeof *dc->hidden);
            memcpy(dc->floats, p.floats, p.n_floats * sizeof *dc->floats);
        }
    }
    pthread_mutex_unlock(&dc->lock);
    return ok;
}

/* Drops the least recently used entries until there is room for so many more bytes. */
static bool make_room(disk_cache *dc, uint64_t n_bytes)
{
    pthread_mutex_lock(&dc->lock);
    size_t n = 0;
    bool ok = n_bytes <= dc->options.budget;
    while (ok && (disk_index_bytes(dc->index) + n_bytes > dc->options.budget ||
                  (disk_index_entries(dc->index, &n), n >= LIMIT_CACHED_PREFIXES))) {
        disk_entry *oldest = disk_index_oldest(dc->index);
        ok = oldest != NULL;
        if (ok) {
            drop_entry(dc, oldest);
            drop_unused_blocks(dc);
            dc->stats.n_evictions++;
        }
    }
    pthread_mutex_unlock(&dc->lock);
    return ok;
}

/* A full disk fails every save: it is said once. */
static void note_write(disk_cache *dc, err_code err, const err_detail *d)
{
    if (err == ERR_OK) {
        dc->is_full_said = false;
        return;
    }
    if (!dc->is_full_said) {
        log_warn("cache", "a prompt is not kept: %s", d->text);
    }
    dc->is_full_said = true;
    pthread_mutex_lock(&dc->lock);
    dc->stats.n_errors++;
    pthread_mutex_unlock(&dc->lock);
}

/* Makes block b of the entry one of ours, on the disk and held. */
static bool save_block(disk_cache *dc, saving *s, size_t b)
{
    const disk_id *id = &s->ids[b];
    pthread_mutex_lock(&dc->lock);
    const prefix_entry *e = dc->source;
    const bool is_there = disk_index_hold(dc->index, id, 1);
    if (!is_there && e) {
        memcpy(dc->block, seq_snapshot_get_parts(e->snapshot).blocks[b], dc->options.block_bytes);
    }
    pthread_mutex_unlock(&dc->lock);
    if (is_there) {
        s->n_held++;
        return true;
    }
    if (!e || !make_room(dc, DISK_HEADER_BYTES + dc->options.block_bytes + 2 * 4096)) {
        return false;
    }
    const disk_file f = file_of(dc, DISK_BLOCK, id);
    const disk_part part = {dc->block, dc->options.block_bytes};
    err_detail d = {0};
    const err_code err = disk_file_write(dc->dir, &f, &part, 1, &d);
    note_write(dc, err, &d);
    if (err != ERR_OK) {
        return false;
    }
    pthread_mutex_lock(&dc->lock);
    const bool ok = disk_index_add_block(dc->index, id, DISK_HEADER_BYTES + dc->options.block_bytes) &&
                    disk_index_hold(dc->index, id, 1);
    s->n_held += ok;
    pthread_mutex_unlock(&dc->lock);
    if (!ok) {
        remove_file(dc, DISK_BLOCK, id);
    }
    return ok;
}

/* The entry's own file, behind all its blocks. */
static bool save_entry(disk_cache *dc, saving *s)
{
    entry_facts f;
    memset(&f, 0, sizeof f);
    f.n_key = (uint32_t)s->n_tokens + 1;
    f.n_blocks = (uint32_t)s->n_blocks;
    f.mtp_len = s->mtp_len;
    f.hidden_size = (uint32_t)dc->options.hidden_size;
    f.n_floats = dc->options.n_floats;
    f.block_bytes = dc->options.block_bytes;
    f.scope = s->facts.scope;
    s->facts.n_bytes = DISK_HEADER_BYTES + entry_payload(&f);
    if (!make_room(dc, s->facts.n_bytes + 4096)) {
        return false;
    }
    const uint64_t scope = s->key[0];
    s->key[0] = 0;
    const disk_part parts[] = {{&f, sizeof f},
                               {s->ids, s->n_blocks * sizeof *s->ids},
                               {s->key, (1 + s->n_tokens) * sizeof *s->key},
                               {dc->hidden, dc->options.hidden_size * sizeof(float)},
                               {dc->floats, dc->options.n_floats * sizeof(float)}};
    const disk_file file = file_of(dc, DISK_ENTRY, &s->facts.name);
    err_detail d = {0};
    const err_code err = disk_file_write(dc->dir, &file, parts, sizeof parts / sizeof parts[0], &d);
    s->key[0] = scope;
    note_write(dc, err, &d);
    if (err != ERR_OK) {
        return false;
    }
    fsync(dc->dir);
    pthread_mutex_lock(&dc->lock);
    const bool ok = dc->source && disk_index_add(dc->index, &s->facts);
    s->n_held = ok ? 0 : s->n_held; /* they are the entry's now */
    dc->stats.n_saves += ok;
    pthread_mutex_unlock(&dc->lock);
    if (!ok) {
        remove_file(dc, DISK_ENTRY, &s->facts.name);
    }
    return ok;
}

static bool save(disk_cache *dc)
{
    saving s = {0};
    bool ok = begin_saving(dc, &s), is_known = false;
    if (ok) {
        s.facts = (disk_entry){.scope = scope_of(dc, s.key[0]),
                               .n_tokens = (int32_t)s.n_tokens,
                               .mtp_len = s.mtp_len,
                               .blocks = s.ids,
                               .n_blocks = s.n_blocks,
                               .used_at = (int64_t)time(NULL)};
        s.facts.name = name_blocks(dc, s.ids, &s.facts.scope, s.key, s.n_tokens);
        pthread_mutex_lock(&dc->lock);
        disk_entry *known = disk_index_find(dc->index, &s.facts.name);
        is_known = known != NULL;
        if (known) {
            known->used_at = s.facts.used_at;
        }
        pthread_mutex_unlock(&dc->lock);
        /* Others are not dropped for what will not fit anyway. */
        const uint64_t n_block = DISK_HEADER_BYTES + dc->options.block_bytes + 4096;
        ok = s.n_blocks * n_block + dc->options.n_floats * sizeof(float) < dc->options.budget;
    }
    for (size_t b = 0; b < s.n_blocks && ok && !is_known; b++) {
        serve_loads(dc);
        ok = save_block(dc, &s, b);
    }
    ok = ok && (is_known || save_entry(dc, &s));
    pthread_mutex_lock(&dc->lock);
    disk_index_release(dc->index, s.ids, s.n_held);
    drop_unused_blocks(dc);
    pthread_mutex_unlock(&dc->lock);
    free(s.key);
    free(s.ids);
    return ok;
}

/* ---- the thread ---- */

static void *run_thread(void *arg)
{
    disk_cache *dc = arg;
    pthread_mutex_lock(&dc->lock);
    while (!dc->is_stopping) {
        if (dc->has_unused) {
            dc->has_unused = false;
            drop_unused_blocks(dc);
        } else if (dc->loads) {
            pthread_mutex_unlock(&dc->lock);
            serve_loads(dc);
            pthread_mutex_lock(&dc->lock);
        } else if (dc->save == SAVE_ASKED) {
            dc->save = SAVE_UNDER_WAY;
            pthread_mutex_unlock(&dc->lock);
            const bool ok = save(dc);
            pthread_mutex_lock(&dc->lock);
            dc->save = ok ? SAVE_DONE : SAVE_FAILED;
            dc->source = NULL;
            pthread_cond_broadcast(&dc->ended);
            pthread_mutex_unlock(&dc->lock);
            dc->options.wake(dc->options.wake_ctx);
            pthread_mutex_lock(&dc->lock);
        } else {
            pthread_cond_wait(&dc->work, &dc->lock);
        }
    }
    for (disk_load *l = dc->loads; l; l = l->next) {
        l->state = LOAD_FAILED;
    }
    dc->loads = NULL;
    pthread_cond_broadcast(&dc->ended);
    pthread_mutex_unlock(&dc->lock);
    return NULL;
}

err_code disk_cache_open(disk_cache **out, const disk_cache_options *options, err_detail *d)
{
    *out = NULL;
    disk_cache *dc = calloc(1, sizeof *dc);
    if (!dc) {
        return err_set(d, ERR_NOMEM, "there is not enough memory for a cache on disk");
    }
    dc->options = *options;
    dc->stats.budget = options->budget;
    dc->dir = dc->lock_file = -1;
    pthread_mutex_init(&dc->lock, NULL);
    pthread_cond_init(&dc->work, NULL);
    pthread_cond_init(&dc->ended, NULL);
    dc->index = disk_index_create();
    dc->block = malloc(options->block_bytes + 1);
    dc->floats = malloc((options->n_floats + 1) * sizeof *dc->floats);
    dc->hidden = malloc(options->hidden_size * sizeof *dc->hidden);
    err_code err = dc->index && dc->block && dc->floats && dc->hidden
                       ? take_folder(dc, options->dir, d)
                       : err_set(d, ERR_NOMEM, "there is not enough memory for a cache on disk");
    if (err == ERR_OK && pthread_create(&dc->thread, NULL, run_thread, dc) != 0) {
        err = err_set(d, ERR_NOMEM, "the system refused another thread");
    }
    dc->thread_started = err == ERR_OK;
    if (err != ERR_OK) {
        disk_cache_close(dc);
        return err;
    }
    *out = dc;
    return ERR_OK;
}

void disk_cache_close(disk_cache *dc)
{
    if (!dc) {
        return;
    }
    disk_cache_abandon_save(dc);
    pthread_mutex_lock(&dc->lock);
    dc->is_stopping = true;
    pthread_cond_broadcast(&dc->work);
    pthread_mutex_unlock(&dc->lock);
    if (dc->thread_started) {
        pthread_join(dc->thread, NULL);
    }
    if (dc->lock_file >= 0) {
        close(dc->lock_file); /* and unlocks the folder */
    }
    if (dc->dir >= 0) {
        close(dc->dir);
    }
    disk_index_destroy(dc->index);
    free(dc->block);
    free(dc->floats);
    free(dc->hidden);
    pthread_cond_destroy(&dc->work);
    pthread_cond_destroy(&dc->ended);
    pthread_mutex_destroy(&dc->lock);
    free(dc);
}

/* ---- the engine thread ---- */

bool disk_cache_save(disk_cache *dc, const prefix_entry *e)
{
    pthread_mutex_lock(&dc->lock);
    const bool ok = dc->save == SAVE_NONE && !dc->is_stopping;
    if (ok) {
        dc->save = SAVE_ASKED;
        dc->source = e;
        pthread_cond_signal(&dc->work);
    }
    pthread_mutex_unlock(&dc->lock);
    return ok;
}

bool disk_cache_end_save(disk_cache *dc, bool wait, bool *ok)
{
    pthread_mutex_lock(&dc->lock);
    while (wait && (dc->save == SAVE_ASKED || dc->save == SAVE_UNDER_WAY)) {
        pthread_cond_wait(&dc->ended, &dc->lock);
    }
    const bool has_ended = dc->save == SAVE_DONE || dc->save == SAVE_FAILED;
    *ok = dc->save == SAVE_DONE;
    if (has_ended) {
        dc->save = SAVE_NONE;
    }
    pthread_mutex_unlock(&dc->lock);
    return has_ended;
}

void disk_cache_abandon_save(disk_cache *dc)
{
    pthread_mutex_lock(&dc->lock);
    dc->source = NULL;
    pthread_mutex_unlock(&dc->lock);
}

bool disk_cache_find(disk_cache *dc, const uint64_t *key, size_t n_key, int32_t more_than, disk_hit *hit)
{
    const size_t n_tokens = n_key - 1, n_full = full_blocks(n_tokens);
    disk_id *chains = malloc((n_full + 1) * sizeof *chains), *ids = malloc((n_full + 1) * sizeof *ids);
    const disk_id scope = scope_of(dc, key[0]);
    size_t n = 0;
    *hit = (disk_hit){.n_tokens = more_than};
    bool found = false;
    if (n_tokens == 0 || !chains || !ids) {
        free(chains);
        free(ids);
        return false;
    }
    chains[0] = chain_root(dc, &scope);
    for (size_t b = 0; b < n_full; b++) {
        chains[b + 1] = next_chain(&chains[b], key, b + 1);
        ids[b] = hash_of(HASH_FULL, &chains[b + 1], key + 1 + (b + 1) * SEQ_PAGE_TOKENS, sizeof *key);
    }
    pthread_mutex_lock(&dc->lock);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = 0; i < n; i++) {
        const disk_entry *e = entries[i];
        if (e->is_foreign || !is_same(&e->scope, &scope)) {
            continue;
        }
        const size_t e_full = full_blocks((size_t)e->n_tokens), most = e_full < n_full ? e_full : n_full;
        size_t n_same = 0;
        while (n_same < most && is_same(&e->blocks[n_same], &ids[n_same])) {
            n_same++;
        }
        disk_id name;
        if (n_same == e_full && (size_t)e->n_tokens <= n_tokens && e->n_tokens <= dc->options.max_tokens &&
            e->n_tokens > hit->n_tokens &&
            (name = end_name(HASH_ENTRY, &chains[e_full], key, (size_t)e->n_tokens),
             is_same(&name, &e->name))) {
            *hit = (disk_hit){.name = e->name, .n_tokens = e->n_tokens, .mtp_len = e->mtp_len};
            found = true;
        } else if (dc->options.can_cut && (int32_t)(n_same * SEQ_PAGE_TOKENS) > hit->n_tokens &&
                   (int32_t)(n_same * SEQ_PAGE_TOKENS) <= dc->options.max_tokens) {
            const int32_t len = (int32_t)(n_same * SEQ_PAGE_TOKENS);
            *hit = (disk_hit){.name = e->name,
                              .n_tokens = len,
                              .mtp_len = e->mtp_len < len ? e->mtp_len : len,
                              .is_cut = true};
            found = true;
        }
    }
    pthread_mutex_unlock(&dc->lock);
    free(chains);
    free(ids);
    return found;
}

disk_load *disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key, seq_snapshot *snapshot)
{
    const size_t n_key = 1 + (size_t)hit->n_tokens;
    disk_load *l = calloc(1, sizeof *l);
    if (l) {
        *l = (disk_load){.hit = *hit, .snapshot = snapshot, .key = malloc(n_key * sizeof *key)};
        l->hidden = hit->is_cut ? NULL : malloc(dc->options.hidden_size * sizeof *l->hidden);
    }
    if (!l || !l->key || (!hit->is_cut && !l->hidden)) {
        seq_snapshot_free(snapshot);
        if (l) {
            free(l->key);
            free(l->hidden);
        }
        free(l);
        return NULL;
    }
    memcpy(l->key, key, n_key * sizeof *key);
    pthread_mutex_lock(&dc->lock);
    disk_load **last = &dc->loads;
    while (*last) {
        last = &(*last)->next;
    }
    *last = l;
    pthread_cond_signal(&dc->work);
    pthread_mutex_unlock(&dc->lock);
    return l;
}

static bool has_ended(const disk_load *l)
{
    return l->state == LOAD_DONE || l->state == LOAD_FAILED;
}

bool disk_load_has_ended(disk_cache *dc, const disk_load *l)
{
    pthread_mutex_lock(&dc->lock);
    const bool ended = has_ended(l);
    pthread_mutex_unlock(&dc->lock);
    return ended;
}

static void free_load(disk_load *l)
{
    seq_snapshot_free(l->snapshot);
    free(l->hidden);
    free(l->key);
    free(l);
}

void disk_load_finish(disk_load *l, prefix_cache *pc)
{
    if (l->state == LOAD_DONE) {
        prefix_cache_insert(pc, l->key, 1 + (size_t)l->hit.n_tokens, l->snapshot, l->hidden);
        l->snapshot = NULL;
        l->hidden = NULL;
    }
    free_load(l);
}

void disk_load_free(disk_cache *dc, disk_load *l)
{
    if (!l) {
        return;
    }
    pthread_mutex_lock(&dc->lock);
    while (!has_ended(l)) {
        pthread_cond_wait(&dc->ended, &dc->lock);
    }
    pthread_mutex_unlock(&dc->lock);
    free_load(l);
}

/* ---- any thread ---- */

void disk_cache_clear(disk_cache *dc, const uint64_t *scope)
{
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    const disk_id wanted = scope_of(dc, scope ? *scope : 0);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = n; i-- > 0;) {
        if (!entries[i]->is_foreign && (!scope || is_same(&entries[i]->scope, &wanted))) {
            drop_entry(dc, entries[i]);
        }
    }
    if (dc->source && (!scope || dc->source->key[0] == *scope)) {
        dc->source = NULL; /* what is being written is not kept either */
    }
    dc->has_unused = true;
    pthread_cond_signal(&dc->work);
    pthread_mutex_unlock(&dc->lock);
}

void disk_cache_list(disk_cache *dc, uint64_t scope, void (*each)(void *ctx, const disk_entry *e), void *ctx)
{
    const disk_id wanted = scope_of(dc, scope);
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = 0; i < n; i++) {
        if (!entries[i]->is_foreign && is_same(&entries[i]->scope, &wanted)) {
            each(ctx, entries[i]);
        }
    }
    pthread_mutex_unlock(&dc->lock);
}

disk_cache_stats disk_cache_get_stats(disk_cache *dc)
{
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    disk_cache_stats s = dc->stats;
    disk_index_entries(dc->index, &n);
    s.n_entries = n;
    s.bytes = disk_index_bytes(dc->index);
    pthread_mutex_unlock(&dc->lock);
    return s;
}
