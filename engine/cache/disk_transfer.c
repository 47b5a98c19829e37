/* disk_transfer: entries and blocks between memory and the folder. The cache's thread. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/cache/disk_cache_state.h"

/* ---- loading ---- */

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
            uses = disk_is_same(&entries[i]->blocks[b], id);
        }
        if (uses) {
            disk_drop_entry(dc, entries[i]);
        }
    }
    pthread_mutex_unlock(&dc->lock);
}

static void drop_by_name(disk_cache *dc, const disk_id *name)
{
    pthread_mutex_lock(&dc->lock);
    disk_entry *e = disk_index_find(dc->index, name);
    if (e) {
        disk_drop_entry(dc, e);
    }
    pthread_mutex_unlock(&dc->lock);
}

static err_code read_file(disk_cache *dc, disk_kind kind, const disk_id *id, const disk_part *parts, size_t n,
                          err_detail *d)
{
    disk_file f = disk_file_of(dc, kind, id);
    int fd = -1;
    const err_code err = disk_file_open(&fd, dc->dir, &f, false, d);
    return err == ERR_OK ? disk_file_read(fd, &f, parts, n, d) : err;
}

/* The file of an entry that is loaded whole; ids: the names of its blocks. */
static err_code read_entry(disk_cache *dc, disk_load *l, const disk_id *ids, const seq_snapshot_parts *p,
                           err_detail *d)
{
    const size_t n_key = 1 + (size_t)l->hit.n_tokens;
    disk_entry_facts f = {0};
    enum { OTHERS = 5 };
    uint64_t *key = malloc(n_key * sizeof *key);
    disk_id *blocks = malloc(p->n_blocks * sizeof *blocks);
    disk_part *parts = malloc((OTHERS + p->n_windows) * sizeof *parts);
    err_code err = ERR_OK;
    if (!key || !blocks || !parts) {
        err = err_set(d, ERR_NOMEM, "there is not enough memory to read a cached prompt");
    } else {
        parts[0] = (disk_part){&f, sizeof f};
        parts[1] = (disk_part){blocks, p->n_blocks * sizeof *blocks};
        parts[2] = (disk_part){key, n_key * sizeof *key};
        parts[3] = (disk_part){l->hidden, dc->options.hidden_size * sizeof(float)};
        parts[4] = (disk_part){p->floats, p->n_floats * sizeof(float)};
        for (size_t i = 0; i < p->n_windows; i++) {
            parts[OTHERS + i] = (disk_part){p->windows[i], p->window_bytes};
        }
        err = read_file(dc, DISK_ENTRY, &l->hit.name, parts, OTHERS + p->n_windows, d);
    }
    if (err == ERR_OK && l->reads_key) {
        memcpy(l->key + 1, key + 1, (n_key - 1) * sizeof *key);
    }
    if (err == ERR_OK &&
        (f.n_key != n_key || f.mtp_len != l->hit.mtp_len ||
         f.own_floats != seq_snapshot_own_bytes(p) / sizeof(float) || f.block_bytes != p->block_bytes ||
         memcmp(key + 1, l->key + 1, (n_key - 1) * sizeof *key) != 0 ||
         memcmp(blocks, ids, p->n_blocks * sizeof *blocks) != 0)) {
        err = err_set(d, ERR_CORRUPT, "a cached prompt is not the one that its name says");
    }
    free(key);
    free(blocks);
    free(parts);
    return err;
}

/* Whether a key that was read is that of the entry's name. */
static bool is_named_so(const disk_cache *dc, const disk_load *l)
{
    const disk_id name = disk_cache_name_of(dc, l->key, 1 + (size_t)l->hit.n_tokens);
    return !l->reads_key || disk_is_same(&name, &l->hit.name);
}

/* Whether a file is of no use any more; without memory nothing is wrong with it. */
static bool is_bad(err_code err)
{
    return err != ERR_OK && err != ERR_NOMEM;
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
        e->used_ns = clock_unix_ns();
    }
    pthread_mutex_unlock(&dc->lock);
    err_code err = ERR_OK;
    if (is_there && !l->hit.is_cut) {
        err = read_entry(dc, l, ids, &p, &d);
        if (err == ERR_OK && !is_named_so(dc, l)) {
            err = err_set(&d, ERR_CORRUPT, "a cached prompt is not the one that its name says");
        }
        if (is_bad(err)) {
            drop_by_name(dc, &l->hit.name);
        }
    }
    for (size_t b = 0; is_there && b < p.n_blocks && err == ERR_OK; b++) {
        const disk_part part = {p.blocks[b], p.block_bytes};
        err = read_file(dc, DISK_BLOCK, &ids[b], &part, 1, &d);
        if (is_bad(err)) {
            drop_block_users(dc, &ids[b]);
        }
    }
    free(ids);
    if (err != ERR_OK) {
        note_failure(dc, &d);
        pthread_mutex_lock(&dc->lock);
        disk_drop_unused(dc);
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
void disk_serve_loads(disk_cache *dc)
{
    pthread_mutex_lock(&dc->lock);
    while (dc->loads) {
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

/* ---- saving ---- */

/* What is known of the entry that is being saved; copied, because it may be dropped any time. */
typedef struct saving {
    uint64_t *key;
    size_t n_tokens, n_blocks, own_bytes;
    int32_t mtp_len;
    disk_id *ids; /* [n_blocks] */
    size_t n_held;
    disk_entry facts;
    char given[PREFIX_GIVEN_MAX + 1];
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
        s->own_bytes = seq_snapshot_own_bytes(&p);
        s->key = malloc(e->n_key * sizeof *s->key);
        s->ids = malloc((p.n_blocks + 1) * sizeof *s->ids);
        ok = s->key && s->ids && e->hidden && s->n_tokens > 0 && s->own_bytes <= dc->options.own_bytes;
        memcpy(s->given, dc->given, sizeof s->given);
        if (ok) {
            memcpy(s->key, e->key, e->n_key * sizeof *s->key);
            memcpy(dc->hidden, e->hidden, dc->options.hidden_size * sizeof *dc->hidden);
            unsigned char *at = dc->own;
            memcpy(at, p.floats, p.n_floats * sizeof *p.floats);
            at += p.n_floats * sizeof *p.floats;
            for (size_t i = 0; i < p.n_windows; i++, at += p.window_bytes) {
                memcpy(at, p.windows[i], p.window_bytes);
            }
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
            disk_drop_entry(dc, oldest);
            disk_drop_unused(dc);
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
    const disk_file f = disk_file_of(dc, DISK_BLOCK, id);
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
        disk_remove_file(dc, DISK_BLOCK, id);
    }
    return ok;
}

/* The entry's own file, behind all its blocks. */
static bool save_entry(disk_cache *dc, saving *s)
{
    disk_entry_facts f;
    memset(&f, 0, sizeof f);
    f.n_key = (uint32_t)s->n_tokens + 1;
    f.n_blocks = (uint32_t)s->n_blocks;
    f.mtp_len = s->mtp_len;
    f.hidden_size = (uint32_t)dc->options.hidden_size;
    f.own_floats = s->own_bytes / sizeof(float);
    f.block_bytes = dc->options.block_bytes;
    f.scope = s->facts.scope;
    s->facts.n_bytes = DISK_HEADER_BYTES + disk_entry_payload(&f);
    if (!make_room(dc, s->facts.n_bytes + 4096)) {
        return false;
    }
    const uint64_t scope = s->key[0];
    s->key[0] = 0;
    const disk_part parts[] = {{&f, sizeof f},
                               {s->ids, s->n_blocks * sizeof *s->ids},
                               {s->key, (1 + s->n_tokens) * sizeof *s->key},
                               {dc->hidden, dc->options.hidden_size * sizeof(float)},
                               {dc->own, s->own_bytes}};
    const disk_file file = disk_file_of(dc, DISK_ENTRY, &s->facts.name);
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
        disk_remove_file(dc, DISK_ENTRY, &s->facts.name);
    }
    return ok;
}

/* Entries with a name are never dropped for others, so they may take half of the folder. */
static bool may_be_named(disk_cache *dc, const saving *s)
{
    const uint64_t block = DISK_HEADER_BYTES + dc->options.block_bytes;
    pthread_mutex_lock(&dc->lock);
    const disk_entry *same = disk_index_find_given(dc->index, &s->facts.scope, s->given);
    const uint64_t n =
        disk_index_given_bytes(dc->index, block, same) + s->n_blocks * (block + 4096) + s->own_bytes;
    pthread_mutex_unlock(&dc->lock);
    if (n > dc->options.budget / 2) {
        log_warn("cache",
                 "prompts with a name would take more than half of --cache-disk-mib: \"%s\" is not kept",
                 s->given);
    }
    return n <= dc->options.budget / 2;
}

/* Writes the name of an entry that is there; another entry of that name loses it. */
static bool give_name(disk_cache *dc, const saving *s)
{
    char given[PREFIX_GIVEN_MAX + 1];
    memcpy(given, s->given, sizeof given);
    const disk_file f = disk_file_of(dc, DISK_NAME, &s->facts.name);
    const disk_part part = {given, strlen(given)};
    err_detail d = {0};
    const err_code err = disk_file_write(dc->dir, &f, &part, 1, &d);
    note_write(dc, err, &d);
    if (err != ERR_OK) {
        return false;
    }
    fsync(dc->dir);
    pthread_mutex_lock(&dc->lock);
    disk_entry *before = disk_index_find_given(dc->index, &s->facts.scope, given);
    disk_entry *e = disk_index_find(dc->index, &s->facts.name);
    if (e && before && before != e) {
        disk_remove_file(dc, DISK_NAME, &before->name);
        before->given[0] = '\0';
    }
    if (e) {
        memcpy(e->given, given, sizeof given);
    }
    pthread_mutex_unlock(&dc->lock);
    if (!e) { /* cleared meanwhile */
        disk_remove_file(dc, DISK_NAME, &s->facts.name);
    }
    return e != NULL;
}

bool disk_run_save(disk_cache *dc)
{
    saving s = {0};
    bool ok = begin_saving(dc, &s), is_known = false;
    if (ok) {
        s.facts = (disk_entry){.scope = disk_scope_of(dc, s.key[0]),
                               .n_tokens = (int32_t)s.n_tokens,
                               .mtp_len = s.mtp_len,
                               .blocks = s.ids,
                               .n_blocks = s.n_blocks,
                               .used_ns = clock_unix_ns()};
        s.facts.name = disk_name_blocks(dc, s.ids, &s.facts.scope, s.key, s.n_tokens);
        pthread_mutex_lock(&dc->lock);
        disk_entry *known = disk_index_find(dc->index, &s.facts.name);
        is_known = known != NULL;
        if (known) {
            known->used_ns = s.facts.used_ns;
        }
        pthread_mutex_unlock(&dc->lock);
        /* Others are not dropped for what will not fit anyway. */
        const uint64_t n_block = DISK_HEADER_BYTES + dc->options.block_bytes + 4096;
        ok = s.n_blocks * n_block + s.own_bytes < dc->options.budget && (!s.given[0] || may_be_named(dc, &s));
    }
    for (size_t b = 0; b < s.n_blocks && ok && !is_known; b++) {
        disk_serve_loads(dc);
        ok = save_block(dc, &s, b);
    }
    ok = ok && (is_known || save_entry(dc, &s)) && (!s.given[0] || give_name(dc, &s));
    pthread_mutex_lock(&dc->lock);
    disk_index_release(dc->index, s.ids, s.n_held);
    disk_drop_unused(dc);
    pthread_mutex_unlock(&dc->lock);
    free(s.key);
    free(s.ids);
    return ok;
}
