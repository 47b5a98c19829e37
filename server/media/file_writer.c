#include "server/media/file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { HEAD_BYTES = 512, PATH_BYTES = 4096, NAME_BYTES = 64 };

struct file_writer {
    int fd, read_fd; /* the same file; only the second is ever shown to anybody */
    hash_stream *hash;
    uint64_t bytes, max_bytes;
    uint8_t head[HEAD_BYTES];
};

static err_code storage_failed(err_detail *d, const char *what)
{
    log_error("files", "%s: %s", what, strerror(errno));
    return err_set_param(d, ERR_IO, NULL, "upload_storage_failed",
                         "the server could not store the upload; its disk may be full");
}

err_code file_writer_create(file_writer **out, const char *dir, uint64_t max_bytes, err_detail *d)
{
    char name[NAME_BYTES], path[PATH_BYTES];
    *out = NULL;
    file_writer *w = calloc(1, sizeof *w);
    if (!w) {
        return err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    w->max_bytes = max_bytes;
    w->fd = w->read_fd = -1;
    w->hash = hash_stream_create();
    hash_random_id(name, sizeof name, ".parley-upload-");
    err_code err = w->hash ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for this upload");
    if (err == ERR_OK && !file_join(path, sizeof path, dir, name)) {
        err = err_set(d, ERR_INVALID, "the name of the upload folder is too long");
    }
    if (err == ERR_OK) {
        w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (w->fd < 0) {
            err = storage_failed(d, dir);
        } else {
            w->read_fd = open(path, O_RDONLY | O_CLOEXEC);
            unlink(path);
            err = w->read_fd < 0 ? storage_failed(d, dir) : ERR_OK;
        }
    }
    if (err != ERR_OK) {
        file_writer_destroy(w);
        return err;
    }
    *out = w;
    return ERR_OK;
}

void file_writer_destroy(file_writer *w)
{
    if (w) {
        file_close(w->fd);
        file_close(w->read_fd);
        hash_stream_destroy(w->hash);
        free(w);
    }
}

err_code file_writer_add(file_writer *w, const void *data, size_t n, err_detail *d)
{
    if (n > w->max_bytes - w->bytes) {
        return err_set_param(d, ERR_LIMIT, NULL, "upload_too_large",
                             "more bytes came than were announced or are allowed");
    }
    if (!file_write_all(w->fd, data, n)) {
        return storage_failed(d, "writing an upload");
    }
    if (w->bytes < HEAD_BYTES && n > 0) {
        const size_t room = HEAD_BYTES - (size_t)w->bytes;
        memcpy(w->head + w->bytes, data, n < room ? n : room);
    }
    hash_stream_add(w->hash, data, n);
    w->bytes += n;
    return ERR_OK;
}

uint64_t file_writer_bytes(const file_writer *w)
{
    return w->bytes;
}

const uint8_t *file_writer_head(const file_writer *w, size_t *n)
{
    *n = w->bytes < HEAD_BYTES ? (size_t)w->bytes : HEAD_BYTES;
    return w->head;
}

int file_writer_finish(file_writer *w, uint8_t hash[HASH_BYTES])
{
    const int fd = w->read_fd;
    hash_stream_end(w->hash, hash);
    w->read_fd = -1;
    file_writer_destroy(w);
    return fd;
}

int64_t file_read_at(int fd, void *out, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (int64_t)done;
}
