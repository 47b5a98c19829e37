#include "engine/cache/disk_cache_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static const char LOCK_NAME[] = "parley-cache.lock"; /* holds the salt of the scopes */

disk_file disk_file_of(const disk_cache *dc, disk_kind kind, const disk_id *id)
{
    return (disk_file){.kind = kind, .id = *id, .fingerprint = dc->options.fingerprint};
}

void disk_remove_file(const disk_cache *dc, disk_kind kind, const disk_id *id)
{
    char name[DISK_NAME_CHARS];
    disk_file_name(name, kind, id);
    unlinkat(dc->dir, name, 0);
}

void disk_drop_entry(disk_cache *dc, disk_entry *e)
{
    disk_remove_file(dc, DISK_ENTRY, &e->name);
    if (e->given[0]) {
        disk_remove_file(dc, DISK_NAME, &e->name);
    }
    disk_index_remove(dc->index, e);
}

void disk_drop_unused(disk_cache *dc)
{
    disk_id id;
    while (disk_index_take_unused(dc->index, &id)) {
        disk_remove_file(dc, DISK_BLOCK, &id);
    }
}

uint64_t disk_entry_payload(const disk_entry_facts *f)
{
    return sizeof *f + (uint64_t)f->n_blocks * sizeof(disk_id) + (uint64_t)f->n_key * sizeof(uint64_t) +
           (uint64_t)f->hidden_size * sizeof(float) + f->own_floats * sizeof(float);
}

/* Reads what must be known of an entry without reading all of it: its checksum is compared when it
 * is loaded. False if that makes no sense. */
static bool read_facts(int fd, const disk_file *file, disk_entry *e)
{
    disk_entry_facts f;
    if (!disk_file_take(fd, &f, sizeof f) || f.n_key < 2 || f.n_key > INT32_MAX / 2 ||
        f.n_blocks != kv_pool_blocks_for((int32_t)f.n_key - 1) ||
        f.own_floats > file->n_bytes / sizeof(float) || f.mtp_len < 0 ||
        disk_entry_payload(&f) != file->n_bytes) {
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
    return e->blocks && disk_file_take(fd, e->blocks, n);
}

/* What the start has seen. */
typedef struct scan {
    size_t n_left, n_damaged, n_older, n_newer;
} scan;

static void scan_entry(disk_cache *dc, const disk_id *id, scan *seen)
{
    disk_file f = disk_file_of(dc, DISK_ENTRY, id);
    disk_entry e = {0};
    struct stat st;
    int fd = -1;
    const err_code err = disk_file_open(&fd, dc->dir, &f, true, NULL);
    bool ok = err == ERR_OK && fstat(fd, &st) == 0 && read_facts(fd, &f, &e) &&
              disk_index_hold(dc->index, e.blocks, e.n_blocks);
    if (ok) {
        e.used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        e.is_foreign = !disk_is_same(&f.fingerprint, &dc->options.fingerprint);
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
    disk_remove_file(dc, DISK_ENTRY, id);
}

/* Behind the entries: the name of one. */
static void scan_name(disk_cache *dc, const disk_id *id, scan *seen)
{
    disk_file f = disk_file_of(dc, DISK_NAME, id);
    char given[PREFIX_GIVEN_MAX + 1] = "";
    int fd = -1;
    err_code err = disk_file_open(&fd, dc->dir, &f, true, NULL);
    const bool fits = err == ERR_OK && f.n_bytes <= PREFIX_GIVEN_MAX;
    const disk_part part = {given, fits ? f.n_bytes : 0};
    if (fits) {
        err = disk_file_read(fd, &f, &part, 1, NULL); /* closes it */
    } else if (fd >= 0) {
        close(fd);
    }
    disk_entry *e = disk_index_find(dc->index, id);
    if (fits && err == ERR_OK && e && prefix_cache_is_name(given)) {
        memcpy(e->given, given, sizeof given);
    } else if (f.version <= DISK_FORMAT_VERSION) {
        seen->n_damaged++;
        disk_remove_file(dc, DISK_NAME, id);
    }
}

/* Blocks of a newer version are left alone like its entries. */
static void remove_unused(disk_cache *dc, scan *seen)
{
    disk_id id;
    while (disk_index_take_unused(dc->index, &id)) {
        disk_file f = disk_file_of(dc, DISK_BLOCK, &id);
        int fd = -1;
        if (disk_file_open(&fd, dc->dir, &f, true, NULL) == ERR_OK) {
            close(fd);
        } else if (f.version > DISK_FORMAT_VERSION) {
            continue;
        }
        disk_remove_file(dc, DISK_BLOCK, &id);
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
        } else if (kind == DISK_NAME) {
            scan_name(dc, &id, seen);
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
    if (!each_file(dc, DISK_BLOCK, &seen) || !each_file(dc, DISK_ENTRY, &seen) ||
        !each_file(dc, DISK_NAME, &seen)) {
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
err_code disk_take_folder(disk_cache *dc, const char *dir, err_detail *d)
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
