#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a regular file for reading; *fd is valid only on ERR_OK. */
static err_code open_regular(int *fd, size_t *size, const char *path, err_detail *detail)
{
    /* O_NONBLOCK: opening a named pipe must not wait for a writer; regular files ignore it. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return err_set(detail, ERR_NOT_FOUND, "%s: no such file", path);
        }
        return err_set(detail, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    struct stat st;
    if (fstat(opened, &st) != 0) {
        err_code err = err_set(detail, ERR_IO, "%s: cannot read: %s", path, strerror(errno));
        close(opened);
        return err;
    }
    if (!S_ISREG(st.st_mode)) {
        close(opened);
        return err_set(detail, ERR_INVALID, "%s: not a regular file", path);
    }
    *fd = opened;
    *size = (size_t)st.st_size;
    return ERR_OK;
}

void file_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

bool file_write_all(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t written = write(fd, (const char *)data + done, n - done);
        if (written == 0 || (written < 0 && errno != EINTR)) {
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

bool file_read_all(int fd, void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = read(fd, (char *)data + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

void file_map_ask_for_huge_pages(void *data, size_t n_bytes)
{
    enum { WORTH_IT = 4 << 20 };
    if (n_bytes >= WORTH_IT) {
        (void)madvise(data, n_bytes, MADV_HUGEPAGE);
    }
}

err_code file_map_open(file_map *m, const char *path, err_detail *detail)
{
    *m = (file_map){0};
    int fd = -1;
    size_t size = 0;
    err_code err = open_regular(&fd, &size, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (size > 0) {
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            err = err_set(detail, ERR_IO, "%s: cannot map: %s", path, strerror(errno));
        } else {
            file_map_ask_for_huge_pages(data, size);
            m->data = data;
            m->bytes = size;
        }
    }
    close(fd);
    return err;
}

void file_map_close(file_map *m)
{
    if (m->data) {
        munmap((void *)m->data, m->bytes);
    }
    *m = (file_map){0};
}

err_code file_read(bytes *out, const char *path, err_detail *detail)
{
    int fd = -1;
    size_t size = 0;
    err_code err = open_regular(&fd, &size, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    /* The size is only a first check: the file may grow, and files under /proc say 0. */
    if (size > out->max - out->len) {
        err = err_set(detail, ERR_LIMIT, "%s: %zu bytes; at most %zu are allowed", path, size,
                      out->max - out->len);
        goto out;
    }
    char buffer[16384];
    for (;;) {
        ssize_t n = read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            err = err_set(detail, ERR_IO, "%s: cannot read: %s", path, strerror(errno));
            goto out;
        }
        if (n == 0) {
            break;
        }
        if ((size_t)n > out->max - out->len) {
            err = err_set(detail, ERR_LIMIT, "%s: larger than the allowed %zu bytes", path, out->max);
            goto out;
        }
        bytes_append(out, buffer, (size_t)n);
        if (out->failed) {
            err = err_set(detail, ERR_NOMEM, "%s: no memory to read it", path);
            goto out;
        }
    }
out:
    close(fd);
    return err;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

bool file_join(char *out, size_t out_cap, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    int written = snprintf(out, out_cap, "%s%s%s", dir, slash, name);
    return written >= 0 && (size_t)written < out_cap;
}
