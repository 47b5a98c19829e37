#include "engine/cache/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[8] = "PARLEYKV", TEMPORARY[] = ".tmp";
static const char *const ENDINGS[] = {
    [DISK_BLOCK] = ".block", [DISK_ENTRY] = ".entry", [DISK_NAME] = ".name"};

/* As it lies in the file: no padding. */
typedef struct header {
    char magic[8];
    uint32_t version, kind;
    uint8_t fingerprint[HASH_BYTES], id[HASH_BYTES];
    uint64_t n_bytes, reserved;
    uint8_t checksum[HASH_BYTES]; /* of the header with zeros here, then the payload */
} header;

_Static_assert(sizeof(header) == DISK_HEADER_BYTES, "the header has no padding");

void disk_file_name(char *out, disk_kind kind, const disk_id *id)
{
    hash_hex(out, id->bytes, HASH_BYTES);
    strncat(out, ENDINGS[kind], DISK_NAME_CHARS - 2 * HASH_BYTES - 1);
}

bool disk_file_parse_name(const char *name, disk_kind *kind, disk_id *id, bool *is_temporary)
{
    char hex[2 * HASH_BYTES + 1], expected[DISK_NAME_CHARS];
    if (strlen(name) < 2 * HASH_BYTES) {
        return false;
    }
    memcpy(hex, name, 2 * HASH_BYTES);
    hex[2 * HASH_BYTES] = '\0';
    if (!hash_parse_hex(id->bytes, hex)) {
        return false;
    }
    for (*kind = DISK_BLOCK; *kind <= DISK_NAME; (*kind)++) {
        disk_file_name(expected, *kind, id);
        const size_t n = strlen(expected);
        *is_temporary = strncmp(name, expected, n) == 0 && strcmp(name + n, TEMPORARY) == 0;
        if (*is_temporary || strcmp(name, expected) == 0) {
            return true;
        }
    }
    return false;
}

static bool checksum(disk_id *out, const header *h, const disk_part *parts, size_t n_parts)
{
    header zeroed = *h;
    memset(zeroed.checksum, 0, sizeof zeroed.checksum);
    hash_stream *stream = hash_stream_create();
    if (!stream) {
        return false;
    }
    hash_stream_add(stream, &zeroed, sizeof zeroed);
    for (size_t i = 0; i < n_parts; i++) {
        hash_stream_add(stream, parts[i].data, parts[i].n);
    }
    hash_stream_end(stream, out->bytes);
    hash_stream_destroy(stream);
    return true;
}

static header header_of(const disk_file *f)
{
    header h = {.version = f->version, .kind = f->kind, .n_bytes = f->n_bytes};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.fingerprint, f->fingerprint.bytes, HASH_BYTES);
    memcpy(h.id, f->id.bytes, HASH_BYTES);
    return h;
}

/* ---- writing ---- */

static bool write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        const ssize_t written = write(fd, p, n);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        p += written;
        n -= (size_t)written;
    }
    return true;
}

err_code disk_file_write(int dir, const disk_file *f, const disk_part *parts, size_t n_parts, err_detail *d)
{
    char name[DISK_NAME_CHARS], temporary[DISK_NAME_CHARS + sizeof TEMPORARY];
    disk_file_name(name, f->kind, &f->id);
    snprintf(temporary, sizeof temporary, "%s%s", name, TEMPORARY);
    disk_file whole = *f;
    whole.version = DISK_FORMAT_VERSION;
    whole.n_bytes = 0;
    for (size_t i = 0; i < n_parts; i++) {
        whole.n_bytes += parts[i].n;
    }
    header h = header_of(&whole);
    if (!checksum(&whole.checksum, &h, parts, n_parts)) {
        return err_set(d, ERR_NOMEM, "there is not enough memory to write %s", name);
    }
    memcpy(h.checksum, whole.checksum.bytes, HASH_BYTES);
    const int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, &h, sizeof h);
    for (size_t i = 0; i < n_parts && ok; i++) {
        ok = write_all(fd, parts[i].data, parts[i].n);
    }
    ok = ok && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        why = errno;
        ok = false;
    }
    if (ok && renameat(dir, temporary, dir, name) != 0) {
        why = errno;
        ok = false;
    }
    if (!ok) {
        if (fd >= 0) {
            unlinkat(dir, temporary, 0);
        }
        return err_set(d, ERR_IO, "%s was not written: %s", name, strerror(why));
    }
    return ERR_OK;
}

/* ---- reading ---- */

bool disk_file_take(int fd, void *data, size_t n)
{
    char *p = data;
    while (n > 0) {
        const ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got < 0 ? errno : 0;
            return false;
        }
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static err_code check_header(const header *h, disk_file *f, int64_t n_file, bool any_model, const char *name,
                             err_detail *d)
{
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0) {
        return err_set(d, ERR_CORRUPT, "%s is no file of a prompt cache", name);
    }
    f->version = h->version;
    if (h->version != DISK_FORMAT_VERSION) {
        return err_set(d, ERR_UNSUPPORTED, "%s has format %u, this program writes format %d", name,
                       h->version, DISK_FORMAT_VERSION);
    }
    if (h->kind != (uint32_t)f->kind || memcmp(h->id, f->id.bytes, HASH_BYTES) != 0 || h->reserved != 0) {
        return err_set(d, ERR_CORRUPT, "%s holds something else than its name says", name);
    }
    if (!any_model && memcmp(h->fingerprint, f->fingerprint.bytes, HASH_BYTES) != 0) {
        return err_set(d, ERR_UNSUPPORTED, "%s belongs to another model or other settings", name);
    }
    if (h->n_bytes != (uint64_t)n_file - sizeof *h) {
        return err_set(d, ERR_CORRUPT, "%s has %lld bytes, its header says %llu", name, (long long)n_file,
                       sizeof *h + (unsigned long long)h->n_bytes);
    }
    f->n_bytes = h->n_bytes;
    memcpy(f->fingerprint.bytes, h->fingerprint, HASH_BYTES);
    memcpy(f->checksum.bytes, h->checksum, HASH_BYTES);
    return ERR_OK;
}

err_code disk_file_open(int *out, int dir, disk_file *f, bool any_model, err_detail *d)
{
    char name[DISK_NAME_CHARS];
    header h;
    struct stat st;
    disk_file_name(name, f->kind, &f->id);
    f->version = DISK_FORMAT_VERSION;
    *out = -1;
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return err_set(d, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s cannot be opened: %s", name,
                       strerror(errno));
    }
    err_code err = ERR_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err = err_set(d, ERR_CORRUPT, "%s is no regular file", name);
    } else if (!disk_file_take(fd, &h, sizeof h)) {
        err = err_set(d, ERR_CORRUPT, "%s ends within its header", name);
    } else {
        err = check_header(&h, f, st.st_size, any_model, name, d);
    }
    if (err != ERR_OK) {
        close(fd);
        return err;
    }
    *out = fd;
    return ERR_OK;
}

err_code disk_file_read(int fd, const disk_file *f, const disk_part *parts, size_t n_parts, err_detail *d)
{
    char name[DISK_NAME_CHARS];
    uint64_t n_bytes = 0;
    err_code err = ERR_OK;
    disk_file_name(name, f->kind, &f->id);
    for (size_t i = 0; i < n_parts; i++) {
        n_bytes += parts[i].n;
    }
    if (n_bytes != f->n_bytes) {
        err = err_set(d, ERR_CORRUPT, "%s holds %llu bytes where %llu belong", name,
                      (unsigned long long)f->n_bytes, (unsigned long long)n_bytes);
    }
    for (size_t i = 0; i < n_parts && err == ERR_OK; i++) {
        if (!disk_file_take(fd, parts[i].data, parts[i].n)) {
            err = err_set(d, errno ? ERR_IO : ERR_CORRUPT, "%s cannot be read to its end", name);
        }
    }
    close(fd);
    if (err != ERR_OK) {
        return err;
    }
    const header h = header_of(f);
    disk_id sum;
    if (!checksum(&sum, &h, parts, n_parts)) {
        return err_set(d, ERR_NOMEM, "there is not enough memory to check %s", name);
    }
    return memcmp(sum.bytes, f->checksum.bytes, HASH_BYTES) == 0
               ? ERR_OK
               : err_set(d, ERR_CORRUPT, "%s was damaged: its checksum is another", name);
}
