/* A log of what a program does to the files below a folder, for trying what a power loss leaves
 * (tests/server/history/live_power_loss.mjs). Preloaded, with DISK_LOG_FOLDER and DISK_LOG, the
 * file that gets it. A record is a line, W with its bytes behind it; a call is done and noted
 * before the next one begins, so a place in the log is a moment of the disk:
 *
 *     C INODE PATH           a new file             D INODE PATH    a new folder
 *     W INODE OFFSET BYTES   a write                T INODE BYTES   cut or grown to this length
 *     G INODE BYTES          grown to at least      S INODE         synced (a folder: its names)
 *     U PATH                 removed                R OLD<tab>NEW   renamed
 *
 * What is written through shared mappings is not seen: SQLite's is rebuilt after a crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FDS = 4096 };

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static char folder[512];
static size_t n_folder;
static int log_fd = -1;
static ino_t inodes[FDS]; /* of the files that are watched; 0: it is none */

#define REAL(call) ((__typeof__(&call))real(#call))

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void)
{
    const char *where = getenv("DISK_LOG_FOLDER"), *log = getenv("DISK_LOG");
    if (where && log) {
        snprintf(folder, sizeof folder, "%s", where);
        n_folder = strlen(folder);
        log_fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

/* Called with `order` held. A log with a gap would be trusted: better none at all. */
static void note(const void *data, size_t n)
{
    if (REAL(write)(log_fd, data, n) != (ssize_t)n) {
        abort();
    }
}

__attribute__((format(printf, 1, 2))) static void note_line(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    note(line, (size_t)n);
}

static bool watches(const char *path)
{
    return log_fd >= 0 && strncmp(path, folder, n_folder) == 0 && (path[n_folder] == '/' || !path[n_folder]);
}

static ino_t inode_of(int fd)
{
    return fd >= 0 && fd < FDS ? inodes[fd] : 0;
}

/* ---- names ---- */

static int open_any(const char *path, int flags, mode_t mode)
{
    if (!watches(path)) {
        return REAL(open)(path, flags, mode);
    }
    pthread_mutex_lock(&order);
    struct stat before, now;
    const bool was = stat(path, &before) == 0;
    const int fd = REAL(open)(path, flags, mode);
    if (fd >= 0 && fd < FDS && fstat(fd, &now) == 0) {
        inodes[fd] = now.st_ino;
        if (!was) {
            note_line("C %llu %s\n", (unsigned long long)now.st_ino, path);
        } else if (flags & O_TRUNC) {
            note_line("T %llu 0\n", (unsigned long long)now.st_ino);
        }
    }
    const int error = errno;
    pthread_mutex_unlock(&order);
    errno = error;
    return fd;
}

#define OPENS(name)                                                                                          \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list args;                                                                                        \
        va_start(args, flags);                                                                               \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;                      \
        va_end(args);                                                                                        \
        return open_any(path, flags, mode);                                                                  \
    }
OPENS(open)
OPENS(open64)

int close(int fd)
{
    if (fd >= 0 && fd < FDS) {
        inodes[fd] = 0;
    }
    return REAL(close)(fd);
}

/* One call under the lock, and its record where it succeeded. */
#define UNDER_ORDER(watched, type, call, ...)                                                                \
    if (!(watched)) {                                                                                        \
        return call;                                                                                         \
    }                                                                                                        \
    pthread_mutex_lock(&order);                                                                              \
    const type result = call;                                                                                \
    const int error = errno;                                                                                 \
    if (result >= 0) {                                                                                       \
        __VA_ARGS__;                                                                                         \
    }                                                                                                        \
    pthread_mutex_unlock(&order);                                                                            \
    errno = error;                                                                                           \
    return result

int mkdir(const char *path, mode_t mode)
{
    struct stat made;
    UNDER_ORDER(watches(path), int, REAL(mkdir)(path, mode), {
        if (stat(path, &made) == 0) {
            note_line("D %llu %s\n", (unsigned long long)made.st_ino, path);
        }
    });
}

int unlink(const char *path)
{
    UNDER_ORDER(watches(path), int, REAL(unlink)(path), note_line("U %s\n", path));
}

int rename(const char *from, const char *to)
{
    UNDER_ORDER(watches(from), int, REAL(rename)(from, to), note_line("R %s\t%s\n", from, to));
}

/* ---- bytes ---- */

static void note_write(int fd, const void *data, size_t n, long long at)
{
    note_line("W %llu %lld %zu\n", (unsigned long long)inode_of(fd), at, n);
    note(data, n);
}

ssize_t write(int fd, const void *data, size_t n)
{
    UNDER_ORDER(inode_of(fd), ssize_t, REAL(write)(fd, data, n),
                note_write(fd, data, (size_t)result, lseek(fd, 0, SEEK_CUR) - result));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    UNDER_ORDER(inode_of(fd), ssize_t, REAL(pwrite)(fd, data, n, at),
                note_write(fd, data, (size_t)result, at));
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    return pwrite(fd, data, n, at);
}

int ftruncate(int fd, off_t length)
{
    UNDER_ORDER(inode_of(fd), int, REAL(ftruncate)(fd, length),
                note_line("T %llu %lld\n", (unsigned long long)inode_of(fd), (long long)length));
}

int ftruncate64(int fd, off64_t length)
{
    return ftruncate(fd, length);
}

int posix_fallocate(int fd, off_t from, off_t n)
{
    UNDER_ORDER(inode_of(fd), int, REAL(posix_fallocate)(fd, from, n), {
        if (result == 0) {
            note_line("G %llu %lld\n", (unsigned long long)inode_of(fd), (long long)(from + n));
        }
    });
}

int posix_fallocate64(int fd, off64_t from, off64_t n)
{
    return posix_fallocate(fd, from, n);
}

int fsync(int fd)
{
    UNDER_ORDER(inode_of(fd), int, REAL(fsync)(fd), note_line("S %llu\n", (unsigned long long)inode_of(fd)));
}

int fdatasync(int fd)
{
    UNDER_ORDER(inode_of(fd), int, REAL(fdatasync)(fd),
                note_line("S %llu\n", (unsigned long long)inode_of(fd)));
}
