/* hub_blob on a disk and with hashes that are made up: which calls it makes for a file that is opened, checked, written, begun anew
 * and finished, with what, and what comes of each that fails. tests/server/hub/blob_calls.txt has all of it. */
#include "server/hub/hub_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/recorded.h"

enum { FIRST_FD = 900 };

static bytes all;
static const char *failing;               /* the call that fails */
static int first_fd = FIRST_FD, step = 1; /* of two descriptors */
static int next_fd, n_hashes, left;       /* left: how often it does not before */
static int64_t disk_size, part;           /* of what lies there; most that one read or write takes */
static const char *content = "";          /* what is read at its beginning */

static bool fails(const char *call)
{
    errno = EIO;
    return failing && strcmp(failing, call) == 0 && left-- <= 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (strncmp(path, "/hub", 4) != 0) {
        return __real_open(path, flags, mode);
    }
    bytes_printf(&all, "  open %s%s %o\n", path,
                 flags == (O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW) ? "" : "?", mode);
    return fails(strstr(path, ".lock") ? "open lock" : "open part") ? -1 : (next_fd += step) - step;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (fd != first_fd && fd != first_fd + step) {
        return __real_close(fd);
    }
    bytes_printf(&all, "  close %d\n", fd);
    return 0;
}

int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    bytes_printf(&all, "  flock %d%s\n", fd, how == (LOCK_EX | LOCK_NB) ? "" : "?");
    return fails("flock") ? -1 : 0;
}

int __real_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out)
{
    if (fd != first_fd && fd != first_fd + step) {
        return __real_fstat(fd, out);
    }
    bytes_printf(&all, "  fstat %d\n", fd);
    *out = (struct stat){.st_size = disk_size};
    return fails("fstat") ? -1 : 0;
}

int __wrap_lstat(const char *path, struct stat *out);
int __wrap_lstat(const char *path, struct stat *out)
{
    bytes_printf(&all, "  lstat %s\n", path);
    *out = (struct stat){.st_size = disk_size, .st_mode = fails("is a link") ? S_IFLNK : S_IFREG};
    return fails("lstat") ? -1 : 0;
}

ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at)
{
    int64_t got = disk_size - at;
    got = got > (int64_t)n ? (int64_t)n : got;
    got = got > part ? part : got;
    bytes_printf(&all, "  pread %d: %zu bytes at %lld\n", fd, n, (long long)at);
    for (int64_t i = 0; i < got; i++) {
        ((char *)out)[i] = at + i < (int64_t)strlen(content) ? content[at + i] : 'x';
    }
    return fails("pread") ? -1 : fails("end") ? 0 : (ssize_t)got;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t n, off_t at)
{
    bytes_printf(&all, "  pwrite %d: %.*s at %lld\n", fd, (int)n, (const char *)data, (long long)at);
    if (fails("pwrite")) {
        return -1;
    }
    if (fails("disturbed")) {
        failing = NULL;
        errno = EINTR;
        return -1;
    }
    return (ssize_t)n > part ? (ssize_t)part : (ssize_t)n;
}

int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    bytes_printf(&all, "  ftruncate %d to %lld\n", fd, (long long)size);
    return fails("ftruncate") ? -1 : 0;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    bytes_printf(&all, "  fsync %d\n", fd);
    return fails("fsync") ? -1 : 0;
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    bytes_printf(&all, "  rename %s to %s\n", from, to);
    return fails("rename") ? -1 : 0;
}

/* ---- hashes: their number alone ---- */

static char hashes[64];

hash_stream *__wrap_hash_stream_create(void);
hash_stream *__wrap_hash_stream_create(void)
{
    bytes_printf(&all, "  hash %d, of a large file\n", n_hashes);
    return fails("hash") ? NULL : (hash_stream *)(void *)&hashes[n_hashes++];
}

hash_stream *__wrap_hash_stream_create_git(uint64_t size);
hash_stream *__wrap_hash_stream_create_git(uint64_t size)
{
    bytes_printf(&all, "  hash %d, of Git for %d bytes\n", n_hashes, (int)size);
    return fails("hash") ? NULL : (hash_stream *)(void *)&hashes[n_hashes++];
}

static int number_of(const hash_stream *h)
{
    return h ? (int)((const char *)(const void *)h - hashes) : -1;
}

void __wrap_hash_stream_add(hash_stream *h, const void *data, size_t n);
void __wrap_hash_stream_add(hash_stream *h, const void *data, size_t n)
{
    bytes_printf(&all, "  hash %d takes %zu bytes, %.2s\n", number_of(h), n, (const char *)data);
}

void __wrap_hash_stream_end(hash_stream *h, uint8_t out[HASH_BYTES]);
void __wrap_hash_stream_end(hash_stream *h, uint8_t out[HASH_BYTES])
{
    bytes_printf(&all, "  hash %d ends\n", number_of(h));
    memset(out, 0x0a, HASH_BYTES);
}

void __wrap_hash_stream_destroy(hash_stream *h);
void __wrap_hash_stream_destroy(hash_stream *h)
{
    bytes_printf(&all, "  hash %d is freed\n", number_of(h));
}

/* ---- what is done ---- */

static hub_file file = {.path = "a.gguf", .size = 10, .is_large = true};

static void tell(const hub_blob *b)
{
    bytes_printf(&all, "  at %lld, before %lld, error %d\n", (long long)b->at, (long long)b->before,
                 b->error == EIO      ? 5
                 : b->error == ENOMEM ? 12
                                      : b->error);
}

static bool begin(hub_blob *b, const char *why)
{
    err_detail d = {0};
    next_fd = first_fd;
    n_hashes = 0;
    bytes_printf(&all, "==== opens: %s\n", why);
    const err_code err = hub_blob_open(b, "/hub/repo", "/hub/locks", &file, &d);
    bytes_printf(&all, "  %s %s\n", err_name(err), d.text);
    tell(b);
    return !err;
}

static void end(hub_blob *b)
{
    failing = NULL;
    left = 0;
    part = 1 << 30;
    bytes_append_str(&all, "==== closes\n");
    hub_blob_close(b);
    hub_blob_close(b);
}

static void check(hub_blob *b)
{
    const bool goes_on = hub_blob_check_some(b);
    bytes_printf(&all, "==== checked, %s\n", goes_on ? "and there is more" : "all of it");
    tell(b);
}

static void put(hub_blob *b, const char *text)
{
    const bool ok = hub_blob_add(b, text, strlen(text));
    bytes_printf(&all, "==== %s: %s\n", text, ok ? "added" : "not added");
    tell(b);
}

static void finish(hub_blob *b)
{
    err_detail d = {0};
    const err_code err = hub_blob_finish(b, &d);
    bytes_printf(&all, "==== finishes: %s %s\n", err_name(err), d.text);
}

static void test_opens(hub_blob *b)
{
    static const char *const CALLS[] = {NULL, "open lock", "flock", "open part", "fstat", "hash"};
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        failing = CALLS[i];
        begin(b, CALLS[i] ? CALLS[i] : "a file");
        end(b);
    }
    for (disk_size = 10; disk_size < 12; disk_size++) {
        begin(b, "there is something");
        end(b);
        failing = "ftruncate";
        begin(b, "which cannot be cut");
        end(b);
    }
    failing = "hash";
    left = 1;
    begin(b, "there is more than all, and no second hash");
    end(b);
    disk_size = 0;
    for (first_fd = 0; first_fd < 2; first_fd++) {
        step = first_fd ? -1 : 1;
        begin(b, "descriptors that are as good as any");
        end(b);
    }
    first_fd = FIRST_FD;
    step = 1;
    file.is_large = false;
    begin(b, "a small file");
    end(b);
    file.is_large = true;
}

static void test_checks(hub_blob *b)
{
    static const char *const CALLS[] = {NULL, "pread", "end"};
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        disk_size = 10;
        begin(b, "a whole file");
        part = 4;
        failing = CALLS[i];
        left = i > 0;
        check(b);
        end(b);
    }
    begin(b, "what cannot be read cannot be cut");
    content = "y";
    part = 0; /* its end comes early */
    failing = "ftruncate";
    check(b);
    end(b);
    content = "";
    file.size = disk_size = (int64_t)66 << 20; /* more than are looked at in one turn */
    begin(b, "a large one");
    check(b);
    check(b);
    check(b);
    end(b);
    file.size = 10;
    disk_size = 0;
}

static void test_adds(hub_blob *b)
{
    static const char *const CALLS[] = {NULL, "pwrite", "disturbed"}, *const ENDS[] = {NULL, "fsync",
                                                                                       "rename"};
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        begin(b, CALLS[i] ? CALLS[i] : "a file");
        part = 4;
        failing = CALLS[i];
        left = i > 0;
        put(b, "0123456");
        put(b, "789a");
        put(b, "789");
        end(b);
    }
    snprintf(file.key, sizeof file.key, "%s",
             "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a");
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        begin(b, ENDS[i] ? ENDS[i] : "a file");
        put(b, "0123456789");
        failing = ENDS[i];
        finish(b);
        end(b);
    }
    file.key[40] = '\0';
    file.is_large = false;
    begin(b, "a small file");
    put(b, "0123456789");
    finish(b);
    end(b);
    file.key[39] = 'b';
    begin(b, "another hash");
    put(b, "0123456789");
    finish(b);
    bytes_printf(&all, "==== begins anew\n  %d\n", hub_blob_restart(b));
    failing = "ftruncate";
    bytes_printf(&all, "==== cannot\n  %d\n", hub_blob_restart(b));
    tell(b);
    failing = "hash";
    bytes_printf(&all, "==== without memory\n  %d\n", hub_blob_restart(b));
    tell(b);
    end(b);
}

static void test_pointers(hub_blob *b)
{
    static const struct {
        int64_t size;
        const char *content;
    } ROWS[] = {{1023, "version https://git-lfs"},
                {1024, "version https://git-lfs"},
                {1023, "version https://git-lft"},
                {23, "version https://git-lfs"},
                {22, "version https://git-lf"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        file.size = disk_size = 2000;
        begin(b, "another file comes");
        b->at = disk_size = ROWS[i].size;
        content = ROWS[i].content;
        finish(b);
        end(b);
    }
    file.size = 10;
    for (disk_size = -1; disk_size < 12; disk_size += disk_size == 1 ? 8 : 1) {
        bytes_printf(&all, "==== looks for %lld bytes\n", (long long)disk_size);
        const bool is_there = hub_blob_is_there("/hub/repo", &file);
        bytes_printf(&all, "  %d, %lld left over\n", is_there,
                     (long long)hub_blob_left_over("/hub/repo", &file));
    }
    disk_size = 10;
    static const char *const CALLS[] = {"is a link", "lstat"};
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        failing = CALLS[i];
        bytes_printf(&all, "==== %s\n", failing);
        const bool is_there = hub_blob_is_there("/hub/repo", &file);
        bytes_printf(&all, "  %d, %lld left over\n", is_there,
                     (long long)hub_blob_left_over("/hub/repo", &file));
    }
}

int main(void)
{
    hub_blob b = {0};
    all = bytes_empty(1 << 20);
    part = 1 << 30;
    snprintf(file.key, sizeof file.key, "%s", "abcdef");
    hub_blob_close(&b); /* which was never opened */
    test_opens(&b);
    test_checks(&b);
    test_adds(&b);
    test_pointers(&b);
    failing = NULL;
    recorded_check("server/hub/blob_calls.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
