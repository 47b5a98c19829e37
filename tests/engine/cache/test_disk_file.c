/* disk_file: what was written is read back, and a file that is cut, changed, foreign, of another
 * version or that could not be written whole is an error and nothing else. */
#include "engine/cache/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/open_files.h"
#include "tests/folder.h"

enum { FIRST = 100, SECOND = 57, WHOLE = DISK_HEADER_BYTES + FIRST + SECOND };

static int dir;
static unsigned char text[FIRST + SECOND];
static const disk_file FILE_FACTS = {.kind = DISK_ENTRY, .id = {{1, 2, 3}}, .fingerprint = {{9, 8, 7}}};

static size_t count_files(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    for (struct dirent *file; d && (file = readdir(d));) {
        n += file->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

static err_code write_it(const disk_file *f, err_detail *d)
{
    const disk_part parts[] = {{text, FIRST}, {text + FIRST, SECOND}};
    return disk_file_write(dir, f, parts, 2, d);
}

/* Reads it in parts of the same sizes; the bytes must be those written if it succeeds. */
static err_code read_it(const disk_file *facts, err_detail *d)
{
    unsigned char a[FIRST], b[SECOND];
    const disk_part parts[] = {{a, sizeof a}, {b, sizeof b}};
    disk_file f = *facts;
    int fd = -1;
    err_code err = disk_file_open(&fd, dir, &f, false, d);
    CHECK((fd >= 0) == (err == ERR_OK));
    if (err == ERR_OK) {
        err = disk_file_read(fd, &f, parts, 2, d);
    }
    if (err == ERR_OK) {
        CHECK(memcmp(a, text, sizeof a) == 0 && memcmp(b, text + FIRST, sizeof b) == 0);
    }
    return err;
}

static void put(const char *name, const unsigned char *data, size_t n)
{
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
}

static void check_changes(void)
{
    char name[DISK_NAME_CHARS];
    unsigned char whole[WHOLE + 1] = {0}, changed[WHOLE + 1];
    err_detail d = {0};
    disk_file_name(name, FILE_FACTS.kind, &FILE_FACTS.id);
    CHECK_OK(write_it(&FILE_FACTS, &d), d);
    CHECK_OK(read_it(&FILE_FACTS, &d), d);
    struct stat st;
    CHECK(fstatat(dir, name, &st, 0) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == WHOLE);
    const int fd = openat(dir, name, O_RDONLY);
    CHECK(fd >= 0 && read(fd, whole, WHOLE) == WHOLE);
    close(fd);
    for (size_t n = 0; n <= WHOLE + 1; n++) { /* cut at every length, and one byte too long */
        put(name, whole, n);
        CHECK_INT(read_it(&FILE_FACTS, &d), n == WHOLE ? ERR_OK : ERR_CORRUPT);
    }
    for (size_t bit = 0; bit < 8 * (size_t)WHOLE; bit++) {
        memcpy(changed, whole, WHOLE);
        changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        put(name, changed, WHOLE);
        const err_code err = read_it(&FILE_FACTS, &d);
        CHECK(err == ERR_CORRUPT || (err == ERR_UNSUPPORTED && bit / 8 >= 8 && bit / 8 < 48));
    }
    put(name, whole, WHOLE);
    CHECK_OK(read_it(&FILE_FACTS, &d), d);
    disk_file other = FILE_FACTS;
    other.fingerprint.bytes[31] ^= 1;
    CHECK_INT(read_it(&other, &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "another model"));
    for (uint32_t version = 0; version < 3; version++) { /* older, ours, newer */
        memcpy(changed, whole, WHOLE);
        memcpy(changed + 8, &version, sizeof version);
        put(name, changed, WHOLE);
        CHECK_INT(read_it(&FILE_FACTS, &d), version == DISK_FORMAT_VERSION ? ERR_OK : ERR_UNSUPPORTED);
    }
    unlinkat(dir, name, 0);
    CHECK_INT(read_it(&FILE_FACTS, &d), ERR_NOT_FOUND);
    CHECK(mkdirat(dir, name, 0700) == 0);
    CHECK_INT(read_it(&FILE_FACTS, &d), ERR_CORRUPT);
    unlinkat(dir, name, AT_REMOVEDIR);
    CHECK(symlinkat("/dev/zero", dir, name) == 0); /* nobody leads us elsewhere */
    CHECK_INT(read_it(&FILE_FACTS, &d), ERR_IO);
    unlinkat(dir, name, 0);
}

/* Parts that are shorter or longer than what is there, and a file that is cut while it is read. */
static void check_reading(void)
{
    static const struct {
        size_t n, n_left;
        const char *said;
    } WAYS[] = {{0, WHOLE, "holds 157 bytes where 0 belong"},
                {FIRST + SECOND - 1, WHOLE, "holds 157 bytes where 156 belong"},
                {FIRST + SECOND + 1, WHOLE, "holds 157 bytes where 158 belong"},
                {FIRST + SECOND, WHOLE - 1, "cannot be read to its end"},
                {FIRST + SECOND, WHOLE, NULL}};
    unsigned char to[FIRST + SECOND + 1];
    char name[DISK_NAME_CHARS];
    err_detail d = {0};
    disk_file_name(name, FILE_FACTS.kind, &FILE_FACTS.id);
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
        const disk_part part = {to, WAYS[i].n};
        disk_file f = FILE_FACTS;
        int fd = -1;
        CHECK_OK(write_it(&FILE_FACTS, &d), d);
        CHECK_OK(disk_file_open(&fd, dir, &f, false, &d), d);
        const int other = openat(dir, name, O_RDWR);
        CHECK(other >= 0 && ftruncate(other, (off_t)WAYS[i].n_left) == 0);
        close(other);
        errno = EIO;
        CHECK_INT(disk_file_read(fd, &f, &part, 1, &d), WAYS[i].said ? ERR_CORRUPT : ERR_OK);
        CHECK(!WAYS[i].said || strstr(d.text, WAYS[i].said));
    }
    unlinkat(dir, name, 0);
}

/* A disk that is full after n bytes: the write fails and leaves nothing, an older file stays. */
static void check_full_disk(const char *path)
{
    char name[DISK_NAME_CHARS];
    err_detail d = {0};
    struct rlimit was;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &was) == 0);
    disk_file_name(name, FILE_FACTS.kind, &FILE_FACTS.id);
    for (rlim_t n = 0; n < WHOLE; n += 7) {
        const struct rlimit limit = {n, was.rlim_max};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        const err_code err = write_it(&FILE_FACTS, &d);
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        CHECK_INT(err, ERR_IO);
        CHECK_INT(read_it(&FILE_FACTS, &d), ERR_NOT_FOUND);
        CHECK_INT(count_files(path), 0);
    }
    CHECK_OK(write_it(&FILE_FACTS, &d), d);
    const struct rlimit limit = {WHOLE - 1, was.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_INT(write_it(&FILE_FACTS, &d), ERR_IO);
    CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK_OK(read_it(&FILE_FACTS, &d), d);
    CHECK_INT(count_files(path), 1);
}

static void check_names(void)
{
    char name[DISK_NAME_CHARS], long_name[DISK_NAME_CHARS + 8];
    disk_kind kind;
    disk_id id;
    bool is_temporary = true;
    disk_file_name(name, DISK_BLOCK, &FILE_FACTS.id);
    CHECK(disk_file_parse_name(name, &kind, &id, &is_temporary) && kind == DISK_BLOCK && !is_temporary &&
          memcmp(&id, &FILE_FACTS.id, sizeof id) == 0);
    snprintf(long_name, sizeof long_name, "%s.tmp", name);
    CHECK(disk_file_parse_name(long_name, &kind, &id, &is_temporary) && is_temporary);
    static const char *const OTHERS[] = {
        "",
        ".",
        "parley-cache.lock",
        "thesis.block",
        "0123.entry",
        "an essay of which the name is as long as those of our own files.block"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
        CHECK(!disk_file_parse_name(OTHERS[i], &kind, &id, &is_temporary));
    }
    snprintf(long_name, sizeof long_name, "%sx", name);
    CHECK(!disk_file_parse_name(long_name, &kind, &id, &is_temporary));
}

int main(void)
{
    char path[64];
    folder_make(path);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (unsigned char)(37 * i);
    }
    dir = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0);
    check_names();
    check_changes();
    check_reading();
    check_full_disk(path);
    close(dir);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
