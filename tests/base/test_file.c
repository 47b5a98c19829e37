/* file: reading, mapping, writing, and what is refused. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/check.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"

static char dir[] = "/tmp/parley_file_XXXXXX";

static void make(const char *name, const char *text, char *path, size_t cap)
{
    CHECK(file_join(path, cap, dir, name));
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void test_read(void)
{
    char path[256];
    err_detail d = {0};
    bytes b;
    bytes_init(&b, 8);
    make("a", "12345678", path, sizeof path);
    CHECK_OK(file_read(&b, path, &d), d);
    CHECK_STR(bytes_str(&b), "12345678");
    CHECK_INT(file_read(&b, path, &d), ERR_LIMIT); /* it appends: no room is left */
    CHECK(strstr(d.text, path) != NULL && strstr(d.text, ": 8 bytes; at most 0 are allowed") != NULL);
    CHECK(file_exists(path));
    remove(path);
    CHECK(!file_exists(path));
    CHECK_INT(file_read(&b, path, &d), ERR_NOT_FOUND);
    CHECK_INT(file_read(&b, dir, &d), ERR_INVALID);
    CHECK(strstr(d.text, "not a regular file") != NULL);
    CHECK_INT(file_read(&b, "/dev/zero", &d), ERR_INVALID);
    bytes_deinit(&b);

    /* A file that claims to be empty and is not. */
    bytes_init(&b, 1u << 20);
    CHECK_OK(file_read(&b, "/proc/self/status", &d), d);
    CHECK(b.len > 100);
    bytes_deinit(&b);
    bytes_init(&b, 10);
    CHECK_INT(file_read(&b, "/proc/self/status", &d), ERR_LIMIT);
    bytes_deinit(&b);
}

static void test_map(void)
{
    char path[256];
    err_detail d = {0};
    file_map m;
    make("b", "mapped", path, sizeof path);
    CHECK_OK(file_map_open(&m, path, &d), d);
    CHECK_INT(m.bytes, 6);
    CHECK(memcmp(m.data, "mapped", 6) == 0);
    file_map_close(&m);
    CHECK(m.data == NULL && m.bytes == 0);
    file_map_close(&m);
    remove(path);
    CHECK_INT(file_map_open(&m, path, &d), ERR_NOT_FOUND);
    CHECK(m.data == NULL);
    CHECK_INT(file_map_open(&m, dir, &d), ERR_INVALID);
    make("c", "", path, sizeof path);
    CHECK_OK(file_map_open(&m, path, &d), d);
    CHECK(m.data == NULL && m.bytes == 0);
    file_map_close(&m);
    remove(path);
}

static int failing_with; /* 0: the call does nothing */
ONE_FAILS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n),
          (errno = failing_with, failing_with ? -1 : 0))
ONE_FAILS(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n),
          (errno = failing_with, failing_with ? -1 : 0))

static void test_join(void)
{
    char out[8];
    CHECK(file_join(out, sizeof out, "ab", "cde"));
    CHECK_STR(out, "ab/cde");
    CHECK(file_join(out, sizeof out, "ab/", "cdef"));
    CHECK_STR(out, "ab/cdef");
    CHECK(!file_join(out, sizeof out, "abcd", "efg"));
    CHECK(file_join(out, sizeof out, "/", "x"));
    CHECK_STR(out, "/x");
    CHECK(file_join(out, sizeof out, "", "x"));
    CHECK_STR(out, "/x");
    CHECK(file_join(out, sizeof out, "abc", "efg"));
    CHECK_STR(out, "abc/efg");
    CHECK(file_join(out, sizeof out, "", ""));
    CHECK_STR(out, "/");
}

/* Names that lead nowhere, and reading that ends early. */
static void test_refused(void)
{
    char path[256], other[300];
    err_detail d = {0};
    bytes b;
    bytes_init(&b, 64);
    make("e", "12345678", path, sizeof path);
    CHECK(file_join(other, sizeof other, path, "below"));
    CHECK_INT(file_read(&b, other, &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "e/below: no such file") != NULL);
    CHECK(file_join(other, sizeof other, dir, "circle"));
    CHECK(symlink("circle", other) == 0);
    CHECK_INT(file_read(&b, other, &d), ERR_IO);
    CHECK(strstr(d.text, "circle: cannot open: ") != NULL);
    remove(other);
    static const struct {
        int error;
        err_code err;
    } CASES[] = {{EINTR, ERR_OK}, {EIO, ERR_IO}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int n = 1; n <= 2; n++) { /* of what is there, and of the end */
            bytes_clear(&b);
            failing_with = CASES[i].error;
            one_fails("read", n);
            CHECK_INT(file_read(&b, path, &d), CASES[i].err);
            CHECK(one_fails_over());
            CHECK_STR(bytes_str(&b), CASES[i].err && n == 1 ? "" : "12345678");
        }
    }
    CHECK(strstr(d.text, "e: cannot read: ") != NULL);
    bytes_deinit(&b);
    remove(path);
}

static void test_all_bytes(void)
{
    char path[256], out[8] = "";
    make("d", "", path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(file_write_all(fd, "1234", 4));
    CHECK(file_write_all(fd, "56", 2));
    CHECK(file_write_all(fd, NULL, 0));
    CHECK_INT(lseek(fd, 1, SEEK_SET), 1);
    CHECK(file_read_all(fd, out, 5));
    CHECK_STR(out, "23456");
    CHECK(!file_read_all(fd, out, 1)); /* at the end */
    CHECK_INT(lseek(fd, 4, SEEK_SET), 4);
    CHECK(!file_read_all(fd, out, 3)); /* it ends within */
    file_close(fd);
    CHECK(!file_write_all(fd, "x", 1));
    file_close(-1);
    remove(path);

    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(!file_write_all(fd, "x", 1));
    file_close(fd);

    /* Read piece by piece, as they were sent. */
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    CHECK(file_write_all(pair[0], "abc", 3) && file_write_all(pair[0], "de", 2) &&
          file_write_all(pair[0], "fg", 2));
    memset(out, '.', sizeof out - 1);
    CHECK(file_read_all(pair[1], out, 7));
    CHECK_STR(out, "abcdefg");
    file_close(pair[0]);
    CHECK(!file_read_all(pair[1], out, 1));
    file_close(pair[1]);
}

/* A call that a signal has ended is made once more; another error ends it, and so does one that does nothing. */
static void test_interrupted(void)
{
    static const struct {
        int error;
        bool goes_on;
    } CASES[] = {{EINTR, true}, {EIO, false}, {0, false}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        int pair[2];
        char out[8] = "";
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
        failing_with = CASES[i].error;
        one_fails("write", 1);
        CHECK_INT(file_write_all(pair[0], "abcde", 5), CASES[i].goes_on);
        CHECK(one_fails_over());
        CHECK(file_write_all(pair[0], "fgh", 3));
        const size_t first = CASES[i].goes_on ? 5 : 3; /* what did not go out is not there */
        one_fails("read", 1);
        CHECK_INT(file_read_all(pair[1], out, first), CASES[i].goes_on);
        CHECK(one_fails_over());
        CHECK_STR(out, CASES[i].goes_on ? "abcde" : "");
        file_close(pair[0]);
        file_close(pair[1]);
    }
}

int main(void)
{
    CHECK(mkdtemp(dir) != NULL);
    test_read();
    test_map();
    test_join();
    test_refused();
    test_all_bytes();
    test_interrupted();
    rmdir(dir);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
