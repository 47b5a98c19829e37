/* media: how each file is opened and each descriptor copied: what is uploaded has no name and is nobody else's, no program
 * that is started gets it, and below a folder no link leads out and nothing stops whoever looks. */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "server/media/file_store.h"
#include "server/media/open_below.h"
#include "server/media/write_queue.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/open_flags.h"

static char folder[FOLDER_NAME];
static bytes all;

static void note(const char *call, const char *path, int flags, mode_t mode)
{
    char text[OPEN_FLAGS_CHARS];
    const size_t n = strlen(folder);
    path = strncmp(path, folder, n) == 0 ? path + n : path;
    const char *end = strchr(path, '-'); /* what stands behind it is at random */
    bytes_printf(&all, "%s %.*s: %s\n", call, end ? (int)(end - path) : (int)strlen(path), path,
                 open_flags(text, flags, mode));
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    note("open", path, flags, mode);
    return __real_open(path, flags, mode);
}

int __real_openat(int fd, const char *name, int flags, ...);
int __wrap_openat(int fd, const char *name, int flags, ...);
int __wrap_openat(int fd, const char *name, int flags, ...)
{
    note("openat", name, flags, 0);
    return __real_openat(fd, name, flags);
}

/* What openat is called where its flags are not known before. */
int __wrap___openat_2(int fd, const char *name, int flags);
int __wrap___openat_2(int fd, const char *name, int flags)
{
    return __wrap_openat(fd, name, flags);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    const int value = va_arg(args, int);
    va_end(args);
    bytes_printf(&all, "fcntl: %s from %d\n", what == F_DUPFD_CLOEXEC ? "copy cloexec" : "another", value);
    return __real_fcntl(fd, what, value);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* ---- tests ---- */

static void check_all(const char *wanted)
{
    CHECK_STR(bytes_str(&all), wanted);
    bytes_clear(&all);
}

static void test_uploads(void)
{
    err_detail d = {0};
    file_store *files = file_store_create(
        &(file_store_options){.dir = folder, .max_bytes = 100, .quota = 100, .expire_s = 60});
    write_queue *q = write_queue_create(NULL, nothing, NULL);
    file_sink *f = NULL;
    stored_file file;
    file_handle h = {.fd = -1};
    CHECK(files && q);
    CHECK_OK(file_sink_open(&f, q, folder, 10, 0, &d), d);
    check_all("open /.parley: write new alone cloexec 600\n"
              "open /.parley: read cloexec\n");
    const int other = __real_open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_OK(file_sink_copy(f, other, 0, 0, &d), d);
    close(other);
    check_all("fcntl: copy cloexec from 3\n");
    while (file_sink_poll(f), !file_sink_is_idle(f)) {
        usleep(200);
    }
    CHECK_OK(file_store_reserve(files, 1, 10, &d), d);
    CHECK_OK(file_store_add(files, file_sink_take(f), 10, &(file_facts){.scope = 1}, &file, &d), d);
    check_all("");
    CHECK_OK(file_store_open(files, 1, file.id, &h, &d), d);
    check_all("fcntl: copy cloexec from 3\n");
    close(h.fd);
    write_queue_end(q);
    write_queue_destroy(q);
    file_store_destroy(files);
}

static void look(const char *path, bool wants_folder)
{
    const int fd = open_below(folder, path, wants_folder);
    bytes_printf(&all, "%s\n", fd >= 0 ? "is there" : "is not");
    if (fd >= 0) {
        close(fd);
    }
}

static void test_below(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/a", folder);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/a/b", folder);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    FILE *made = fopen(path, "w");
    CHECK(made && fclose(made) == 0);
    look("a/b/c", false);
    check_all("open : read folder cloexec\n"
              "openat a: read folder nofollow nonblock cloexec\n"
              "openat b: read folder nofollow nonblock cloexec\n"
              "openat c: read nofollow nonblock cloexec\n"
              "is there\n");
    look("a/b", true);
    check_all("open : read folder cloexec\n"
              "openat a: read folder nofollow nonblock cloexec\n"
              "openat b: read folder nofollow nonblock cloexec\n"
              "is there\n");
    look("", true);
    check_all("open : read folder cloexec\n"
              "is there\n");
    look("a/../a", true);
    check_all("open : read folder cloexec\n"
              "openat a: read folder nofollow nonblock cloexec\n"
              "is not\n");
}

int main(void)
{
    folder_make(folder);
    all = bytes_empty(1 << 16);
    test_uploads();
    test_below();
    bytes_deinit(&all);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
