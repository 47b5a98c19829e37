#include "server/hub/hub_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { CHECK_BYTES = 1 << 20, CHECK_TURNS = 32 };

static err_code refused(err_detail *detail, const char *path)
{
    return err_set(detail, ERR_IO, "%.300s: %s", path, strerror(errno));
}

static err_code no_memory(err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "there is not enough memory to fetch a file");
}

void hub_path(char out[HUB_FULL_PATH_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out, HUB_FULL_PATH_MAX, format, args);
    va_end(args);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

bool hub_blob_is_there(const char *repo_dir, const hub_file *file)
{
    char path[HUB_FULL_PATH_MAX];
    hub_path(path, "%s/blobs/%s", repo_dir, file->key);
    return size_of(path) == file->size;
}

int64_t hub_blob_left_over(const char *repo_dir, const hub_file *file)
{
    char path[HUB_FULL_PATH_MAX];
    hub_path(path, "%s/blobs/%s.incomplete", repo_dir, file->key);
    const int64_t n = size_of(path);
    return n > 0 && n <= file->size ? n : 0;
}

static hash_stream *begin_hash(const hub_file *file)
{
    return file->is_large ? hash_stream_create() : hash_stream_create_git((uint64_t)file->size);
}

err_code hub_blob_open(hub_blob *b, const char *repo_dir, const char *locks_dir, const hub_file *file,
                       err_detail *detail)
{
    char lock[HUB_FULL_PATH_MAX];
    struct stat st;
    *b = (hub_blob){.file = file, .fd = -1, .lock = -1};
    hub_path(b->path, "%s/blobs/%s", repo_dir, file->key);
    hub_path(b->part, "%s/blobs/%s.incomplete", repo_dir, file->key);
    hub_path(lock, "%s/%s.lock", locks_dir, file->key);
    b->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (b->lock < 0) {
        return refused(detail, lock);
    }
    if (flock(b->lock, LOCK_EX | LOCK_NB) != 0) {
        return err_set(detail, ERR_BUSY, "another program is fetching %.100s now; try again when it is done",
                       file->path);
    }
    b->fd = open(b->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (b->fd < 0 || fstat(b->fd, &st) != 0) {
        return refused(detail, b->part);
    }
    b->before = (int64_t)st.st_size;
    b->hash = begin_hash(file);
    if (!b->hash) {
        return no_memory(detail);
    }
    if (b->before <= file->size || hub_blob_restart(b)) {
        return ERR_OK;
    }
    return b->hash ? refused(detail, b->part) : no_memory(detail);
}

void hub_blob_close(hub_blob *b)
{
    if (b->file) {
        hash_stream_destroy(b->hash);
        file_close(b->fd);
        file_close(b->lock);
        *b = (hub_blob){.fd = -1, .lock = -1};
    }
}

bool hub_blob_check_some(hub_blob *b)
{
    if (b->at >= b->before) {
        return false;
    }
    uint8_t *piece = malloc(CHECK_BYTES);
    for (int i = 0; i < CHECK_TURNS && b->at < b->before; i++) {
        const ssize_t n = piece ? pread(b->fd, piece, CHECK_BYTES, b->at) : 0;
        if (n <= 0) { /* what cannot be read is fetched again */
            b->before = b->at;
            if (ftruncate(b->fd, b->at) != 0) {
                b->error = errno;
            }
            break;
        }
        hash_stream_add(b->hash, piece, (size_t)n);
        b->at += n;
    }
    free(piece);
    return b->at < b->before;
}

bool hub_blob_add(hub_blob *b, const void *data, size_t n)
{
    if ((int64_t)n > b->file->size - b->at) {
        return false;
    }
    for (size_t done = 0; done < n;) {
        const ssize_t wrote = pwrite(b->fd, (const char *)data + done, n - done, b->at + (int64_t)done);
        if (wrote < 0 && errno != EINTR) {
            b->error = errno;
            return false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    hash_stream_add(b->hash, data, n);
    b->at += (int64_t)n;
    return true;
}

bool hub_blob_restart(hub_blob *b)
{
    hash_stream_destroy(b->hash);
    b->hash = begin_hash(b->file);
    b->at = b->before = 0;
    if (!b->hash || ftruncate(b->fd, 0) != 0) {
        b->error = b->hash ? errno : ENOMEM;
        return false;
    }
    return true;
}

/* What a server sends that keeps large files elsewhere and does not know where. */
static bool is_pointer(const hub_blob *b)
{
    static const char START[] = "version https://git-lfs";
    char head[sizeof START - 1];
    return b->at < 1024 && pread(b->fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
           memcmp(head, START, sizeof head) == 0;
}

err_code hub_blob_finish(hub_blob *b, err_detail *detail)
{
    uint8_t hash[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    if (b->at != b->file->size) {
        return err_set(
            detail, ERR_CORRUPT,
            is_pointer(b)
                ? "%.100s: the hub sent the pointer of Git LFS in place of the file (%lld bytes, not %lld)"
                : "%.100s: %lld bytes came; the hub lists it with %lld",
            b->file->path, (long long)b->at, (long long)b->file->size);
    }
    hash_stream_end(b->hash, hash);
    hash_hex(hex, hash, b->file->is_large ? HASH_BYTES : HASH_GIT_BYTES);
    if (strcmp(hex, b->file->key) != 0) {
        return err_set(
            detail, ERR_CORRUPT,
            "%.100s: what came is not the file that the hub lists: its hash is another one; it was "
            "damaged on the way, or changed meanwhile",
            b->file->path);
    }
    if (fsync(b->fd) != 0 || rename(b->part, b->path) != 0) {
        return refused(detail, b->path);
    }
    return ERR_OK;
}
