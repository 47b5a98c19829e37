#include "server/media/file_store.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "engine/engine.h"

/* The bytes of one or more files of one owner. */
typedef struct blob {
    int fd;
    uint64_t scope, bytes;
    uint8_t hash[HASH_BYTES];
    const char *mime;
    size_t n_files;
} blob;

typedef struct entry {
    stored_file file;
    blob *blob;
} entry;

/* What an owner takes of the quota. */
typedef struct account {
    uint64_t scope;
    uint64_t used; /* bytes of blobs and reservations */
    size_t n_entries, n_blobs;
} account;

struct file_store {
    file_store_options opt;
    pthread_mutex_t lock;
    entry *entries[LIMIT_FILES];      /* {lock} in order of creation */
    size_t n_entries;                 /* {lock} */
    blob *blobs[LIMIT_FILE_CONTENTS]; /* {lock} in no order */
    size_t n_blobs;                   /* {lock} */
    account *accounts;                /* {lock} of every owner that ever had something: there are few */
    size_t n_accounts;                /* {lock} */
};

file_store *file_store_create(const file_store_options *opt)
{
    file_store *fs = calloc(1, sizeof *fs);
    if (fs) {
        fs->opt = *opt;
        pthread_mutex_init(&fs->lock, NULL);
    }
    return fs;
}

const file_store_options *file_store_get_options(const file_store *fs)
{
    return &fs->opt;
}

void file_store_usage(file_store *fs, uint64_t *n_bytes, size_t *n_files)
{
    pthread_mutex_lock(&fs->lock);
    *n_bytes = 0;
    for (size_t i = 0; i < fs->n_accounts; i++) {
        *n_bytes += fs->accounts[i].used;
    }
    *n_files = fs->n_entries;
    pthread_mutex_unlock(&fs->lock);
}

void file_store_usage_of(file_store *fs, uint64_t scope, uint64_t *n_bytes, size_t *n_files)
{
    *n_bytes = *n_files = 0;
    pthread_mutex_lock(&fs->lock);
    for (size_t i = 0; i < fs->n_accounts; i++) {
        *n_bytes += fs->accounts[i].scope == scope ? fs->accounts[i].used : 0;
    }
    for (size_t i = 0; i < fs->n_entries; i++) {
        *n_files += fs->entries[i]->file.facts.scope == scope;
    }
    pthread_mutex_unlock(&fs->lock);
}

/* ---- under the lock ---- */

/* NULL if the owner never had anything. */
static account *find_account(const file_store *fs, uint64_t scope)
{
    for (size_t i = 0; i < fs->n_accounts; i++) {
        if (fs->accounts[i].scope == scope) {
            return &fs->accounts[i];
        }
    }
    return NULL;
}

/* The same, or a new one; NULL if out of memory. */
static account *open_account(file_store *fs, uint64_t scope)
{
    account *a = find_account(fs, scope);
    account *grown = a ? NULL : realloc(fs->accounts, (fs->n_accounts + 1) * sizeof *grown);
    if (grown) {
        fs->accounts = grown;
        a = &grown[fs->n_accounts++];
        *a = (account){.scope = scope};
    }
    return a;
}

static void pay_back(file_store *fs, uint64_t scope, uint64_t n_bytes)
{
    account *a = find_account(fs, scope);
    if (a) {
        a->used -= n_bytes;
    }
}

static entry *find(const file_store *fs, uint64_t scope, const char *id, size_t *at)
{
    for (size_t i = 0; i < fs->n_entries; i++) {
        entry *e = fs->entries[i];
        if (e->file.facts.scope == scope && strcmp(e->file.id, id) == 0) {
            *at = i;
            return e;
        }
    }
    return NULL;
}

static blob *find_blob(const file_store *fs, uint64_t scope, const uint8_t hash[HASH_BYTES], uint64_t n_bytes)
{
    for (size_t i = 0; i < fs->n_blobs; i++) {
        blob *b = fs->blobs[i];
        if (b->scope == scope && b->bytes == n_bytes && memcmp(b->hash, hash, HASH_BYTES) == 0) {
            return b;
        }
    }
    return NULL;
}

static void free_blob(file_store *fs, blob *b)
{
    for (size_t i = 0; i < fs->n_blobs; i++) {
        if (fs->blobs[i] == b) {
            fs->blobs[i] = fs->blobs[--fs->n_blobs];
            find_account(fs, b->scope)->n_blobs--;
            break;
        }
    }
    pay_back(fs, b->scope, b->bytes);
    close(b->fd);
    free(b);
}

static void remove_at(file_store *fs, size_t i)
{
    entry *e = fs->entries[i];
    fs->n_entries--;
    find_account(fs, e->file.facts.scope)->n_entries--;
    memmove(&fs->entries[i], &fs->entries[i + 1], (fs->n_entries - i) * sizeof *fs->entries);
    if (--e->blob->n_files == 0) {
        free_blob(fs, e->blob);
    }
    free(e);
}

static void touch(const file_store *fs, stored_file *f)
{
    const int64_t wanted = f->facts.expire_s;
    f->expires_at = clock_unix_s() + (wanted > 0 && wanted < fs->opt.expire_s ? wanted : fs->opt.expire_s);
}

/* Another id for the blob. ERR_LIMIT, ERR_NOMEM. */
static err_code add_entry(file_store *fs, blob *b, const file_facts *facts, bool was_known, stored_file *out)
{
    account *a = find_account(fs, facts->scope); /* whoever has a blob has one */
    if (fs->n_entries == LIMIT_FILES || a->n_entries == LIMIT_FILES_PER_KEY) {
        return ERR_LIMIT;
    }
    entry *e = calloc(1, sizeof *e);
    if (!e) {
        return ERR_NOMEM;
    }
    a->n_entries++;
    e->blob = b;
    b->n_files++;
    hash_random_id(e->file.id, sizeof e->file.id, "file_");
    e->file.facts = *facts;
    e->file.bytes = b->bytes;
    memcpy(e->file.hash, b->hash, HASH_BYTES);
    e->file.mime = b->mime;
    e->file.created_at = clock_unix_s();
    e->file.was_known = was_known;
    touch(fs, &e->file);
    fs->entries[fs->n_entries++] = e;
    *out = e->file;
    return ERR_OK;
}

void file_store_destroy(file_store *fs)
{
    if (!fs) {
        return;
    }
    while (fs->n_entries > 0) {
        remove_at(fs, fs->n_entries - 1);
    }
    pthread_mutex_destroy(&fs->lock);
    free(fs->accounts);
    free(fs);
}

/* ---- the quota ---- */

err_code file_store_reserve(file_store *fs, uint64_t scope, uint64_t n_bytes, err_detail *d)
{
    if (n_bytes > fs->opt.max_bytes) {
        return err_set_param(d, ERR_LIMIT, NULL, "upload_too_large",
                             "a file may have %llu bytes at most (--max-upload)",
                             (unsigned long long)fs->opt.max_bytes);
    }
    pthread_mutex_lock(&fs->lock);
    account *a = open_account(fs, scope);
    const bool fits = a && a->used <= fs->opt.quota && n_bytes <= fs->opt.quota - a->used;
    if (fits) {
        a->used += n_bytes;
    }
    pthread_mutex_unlock(&fs->lock);
    if (!a) {
        return err_set(d, ERR_NOMEM, "no memory for an upload");
    }
    return fits ? ERR_OK
                : err_set_param(d, ERR_LIMIT, NULL, "upload_quota_exceeded",
                                "your room for uploads is used up (--upload-quota); delete files, or wait "
                                "until some expire");
}

void file_store_release(file_store *fs, uint64_t scope, uint64_t n_bytes)
{
    pthread_mutex_lock(&fs->lock);
    pay_back(fs, scope, n_bytes);
    pthread_mutex_unlock(&fs->lock);
}

/* ---- files ---- */

/* A new blob. ERR_LIMIT, ERR_NOMEM: fd stays the caller's. */
static err_code add_blob(file_store *fs, const blob *facts, blob **out)
{
    account *a = find_account(fs, facts->scope); /* it was opened when room was set aside */
    if (fs->n_blobs == LIMIT_FILE_CONTENTS || a->n_blobs == LIMIT_FILE_CONTENTS_PER_KEY) {
        return ERR_LIMIT;
    }
    blob *b = malloc(sizeof *b);
    if (!b) {
        return ERR_NOMEM;
    }
    *b = *facts;
    a->used += b->bytes;
    a->n_blobs++;
    *out = fs->blobs[fs->n_blobs++] = b;
    return ERR_OK;
}

err_code file_store_add(file_store *fs, file_writer *w, uint64_t n_bytes, const file_facts *facts,
                        stored_file *out, err_detail *d)
{
    size_t n_head = 0;
    const uint8_t *head = file_writer_head(w, &n_head);
    blob b = {.scope = facts->scope, .bytes = file_writer_bytes(w), .mime = engine_media_type(head, n_head)};
    b.fd = file_writer_finish(w, b.hash);
    pthread_mutex_lock(&fs->lock);
    pay_back(fs, facts->scope, n_bytes);
    blob *kept = find_blob(fs, b.scope, b.hash, b.bytes);
    const bool was_known = kept != NULL;
    err_code err = was_known ? ERR_OK : add_blob(fs, &b, &kept);
    if (was_known || err) {
        close(b.fd);
    }
    err = err ? err : add_entry(fs, kept, facts, was_known, out);
    if (err && kept && kept->n_files == 0) {
        free_blob(fs, kept);
    }
    pthread_mutex_unlock(&fs->lock);
    if (err == ERR_NOMEM) {
        return err_set(d, err, "no memory for an upload");
    }
    return err ? err_set_param(
                     d, err, NULL, "too_many_files",
                     "the server keeps too many files of yours, or of all, already; delete some, or "
                     "wait until they expire")
               : ERR_OK;
}

bool file_store_link(file_store *fs, const uint8_t hash[HASH_BYTES], uint64_t n_bytes,
                     const file_facts *facts, stored_file *out)
{
    pthread_mutex_lock(&fs->lock);
    blob *b = find_blob(fs, facts->scope, hash, n_bytes);
    const bool is_linked = b && add_entry(fs, b, facts, true, out) == ERR_OK;
    pthread_mutex_unlock(&fs->lock);
    return is_linked;
}

bool file_store_get(file_store *fs, uint64_t scope, const char *id, stored_file *out)
{
    size_t at;
    pthread_mutex_lock(&fs->lock);
    const entry *e = find(fs, scope, id, &at);
    if (e) {
        *out = e->file;
    }
    pthread_mutex_unlock(&fs->lock);
    return e != NULL;
}

bool file_store_list(file_store *fs, uint64_t scope, const char *after, bool newest_first,
                     bool (*fn)(void *ctx, const stored_file *f), void *ctx)
{
    size_t at = 0;
    bool goes_on = true;
    pthread_mutex_lock(&fs->lock);
    /* Stepping below 0 or beyond the end leaves the range: the index has no sign. */
    const size_t n = fs->n_entries, step = newest_first ? SIZE_MAX : 1;
    size_t i = newest_first ? n - 1 : 0;
    const bool is_known = !after[0] || find(fs, scope, after, &at);
    if (after[0]) {
        i = is_known ? at + step : n;
    }
    for (; i < n && goes_on; i += step) {
        goes_on = fs->entries[i]->file.facts.scope != scope || fn(ctx, &fs->entries[i]->file);
    }
    pthread_mutex_unlock(&fs->lock);
    return is_known;
}

bool file_store_delete(file_store *fs, uint64_t scope, const char *id)
{
    size_t at;
    pthread_mutex_lock(&fs->lock);
    const bool found = find(fs, scope, id, &at) != NULL;
    if (found) {
        remove_at(fs, at);
    }
    pthread_mutex_unlock(&fs->lock);
    return found;
}

err_code file_store_open(file_store *fs, uint64_t scope, const char *id, file_handle *out, err_detail *d)
{
    size_t at;
    pthread_mutex_lock(&fs->lock);
    entry *e = find(fs, scope, id, &at);
    if (e) {
        *out = (file_handle){
            .fd = fcntl(e->blob->fd, F_DUPFD_CLOEXEC, 3), .bytes = e->file.bytes, .mime = e->file.mime};
        memcpy(out->hash, e->file.hash, HASH_BYTES);
        touch(fs, &e->file);
    }
    pthread_mutex_unlock(&fs->lock);
    if (!e) {
        return err_set_param(d, ERR_NOT_FOUND, NULL, "file_not_found",
                             "there is no such file; it may have expired: upload it again");
    }
    return out->fd >= 0 ? ERR_OK : err_set(d, ERR_IO, "too many files are open");
}

void file_store_expire(file_store *fs, int64_t now_s)
{
    pthread_mutex_lock(&fs->lock);
    for (size_t i = fs->n_entries; i-- > 0;) {
        if (fs->entries[i]->file.expires_at <= now_s) {
            remove_at(fs, i);
        }
    }
    pthread_mutex_unlock(&fs->lock);
}
