/* The layer under a program that is tortured: preloaded, it lets the Nth call of one kind fail and
 * all others pass. torture.py says which, in the environment:
 *
 *     TORTURE_FAIL=write:12    the 12th write fails; write:0 counts alone
 *     TORTURE_LOG=FILE         gets a line with the site of the call that failed
 *     TORTURE_COUNT=FILE       gets the number of calls at the program's end
 *
 * Calls of the program itself count; with TORTURE_ALL=1 those of its libraries, too. The video worker
 * is started without this environment. For `clock` the time of day jumps at the Nth call, an hour
 * back or forth.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef enum kind {
    KIND_NONE,
    KIND_MEM,
    KIND_OPEN,
    KIND_READ,
    KIND_WRITE,
    KIND_SYNC,
    KIND_FD,
    KIND_MAP,
    KIND_THREAD,
    KIND_FILE,
    KIND_CLOCK,
    N_KINDS
} kind;
static const char *const NAMES[N_KINDS] = {"none", "mem", "open",   "read", "write", "sync",
                                           "fd",   "map", "thread", "file", "clock"};

static kind armed;
static long fail_at;
static bool counts_all;
static atomic_long n_calls;
static uintptr_t text_begin, text_end; /* of the program */
static char log_path[512], count_path[512];

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static int on_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) { /* the first object is the program */
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            text_begin = info->dlpi_addr + p->p_vaddr;
            text_end = text_begin + p->p_memsz;
        }
    }
    return 1;
}

static void write_line(const char *path, const char *line)
{
    static int (*real_open)(const char *, int, ...);
    static ssize_t (*real_write)(int, const void *, size_t);
    real_open = real_open ? real_open : (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    real_write = real_write ? real_write : (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    const int fd = path[0] ? real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        (void)!real_write(fd, line, strlen(line));
        close(fd);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *fail = getenv("TORTURE_FAIL"), *log = getenv("TORTURE_LOG"), *count = getenv("TORTURE_COUNT");
    const char *colon = fail ? strchr(fail, ':') : NULL;
    if (!colon) {
        return;
    }
    snprintf(log_path, sizeof log_path, "%s", log ? log : "");
    snprintf(count_path, sizeof count_path, "%s", count ? count : "");
    counts_all = getenv("TORTURE_ALL") != NULL;
    dl_iterate_phdr(on_object, NULL);
    fail_at = strtol(colon + 1, NULL, 10);
    for (int k = 1; k < N_KINDS; k++) {
        if (strlen(NAMES[k]) == (size_t)(colon - fail) && strncmp(fail, NAMES[k], strlen(NAMES[k])) == 0) {
            armed = (kind)k;
        }
    }
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    snprintf(line, sizeof line, "%ld\n", atomic_load(&n_calls));
    write_line(count_path, line);
}

/* Counts a call; true if it is the one that has to fail. */
static bool fails(kind k, const void *from)
{
    if (k != armed || (!counts_all && ((uintptr_t)from < text_begin || (uintptr_t)from >= text_end)) ||
        atomic_fetch_add(&n_calls, 1) + 1 != fail_at) {
        return false;
    }
    char line[256];
    Dl_info info = {.dli_fname = "", .dli_fbase = NULL};
    (void)dladdr(from, &info); /* libraries lie elsewhere in each run */
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(line, sizeof line, "%s %s+%#lx\n", NAMES[k], slash ? slash + 1 : info.dli_fname,
             (unsigned long)((uintptr_t)from - (uintptr_t)info.dli_fbase));
    write_line(log_path, line);
    return true;
}

#define FROM __builtin_return_address(0)
/* ---- memory ---- */

void *malloc(size_t bytes)
{
    return fails(KIND_MEM, FROM) ? (errno = ENOMEM, NULL) : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes)
{
    return fails(KIND_MEM, FROM) ? (errno = ENOMEM, NULL) : __libc_calloc(n, bytes);
}
void *realloc(void *old, size_t bytes)
{
    return fails(KIND_MEM, FROM) ? (errno = ENOMEM, NULL) : __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(KIND_MEM, FROM) ? (errno = ENOMEM, NULL) : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = fails(KIND_MEM, FROM) ? NULL : __libc_memalign(alignment, bytes);
    *out = p ? p : *out;
    return p ? 0 : ENOMEM;
}

#define MMAP(name)                                                                                           \
    void *name(void *at, size_t n, int prot, int flags, int fd, off_t offset)                                \
    {                                                                                                        \
        typedef void *call(void *, size_t, int, int, int, off_t);                                            \
        return fails(KIND_MAP, FROM) ? (errno = ENOMEM, MAP_FAILED)                                          \
                                     : ((call *)dlsym(RTLD_NEXT, #name))(at, n, prot, flags, fd, offset);    \
    }
MMAP(mmap)
MMAP(mmap64)

/* ---- files ---- */

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list list;                                                                                        \
        va_start(list, flags);                                                                               \
        const mode_t mode = va_arg(list, mode_t);                                                            \
        va_end(list);                                                                                        \
        typedef int call(const char *, int, ...);                                                            \
        return fails(KIND_OPEN, FROM) ? (errno = EMFILE, -1)                                                 \
                                      : ((call *)dlsym(RTLD_NEXT, #name))(path, flags, mode);                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                         \
    int name(int dir, const char *path, int flags, ...)                                                      \
    {                                                                                                        \
        va_list list;                                                                                        \
        va_start(list, flags);                                                                               \
        const mode_t mode = va_arg(list, mode_t);                                                            \
        va_end(list);                                                                                        \
        typedef int call(int, const char *, int, ...);                                                       \
        return fails(KIND_OPEN, FROM) ? (errno = EMFILE, -1)                                                 \
                                      : ((call *)dlsym(RTLD_NEXT, #name))(dir, path, flags, mode);           \
    }
OPENAT(openat)
OPENAT(openat64)

/* A call with one to four arguments that returns a number, -1 and errno if it fails. */
#define CALL1(result, name, a, kind, error)                                                                  \
    result name(a x)                                                                                         \
    {                                                                                                        \
        typedef result call(a);                                                                              \
        return fails(kind, FROM) ? (errno = error, (result)-1) : ((call *)dlsym(RTLD_NEXT, #name))(x);       \
    }
#define CALL2(result, name, a, b, kind, error)                                                               \
    result name(a x, b y)                                                                                    \
    {                                                                                                        \
        typedef result call(a, b);                                                                           \
        return fails(kind, FROM) ? (errno = error, (result)-1) : ((call *)dlsym(RTLD_NEXT, #name))(x, y);    \
    }
#define CALL3(result, name, a, b, c, kind, error)                                                            \
    result name(a x, b y, c z)                                                                               \
    {                                                                                                        \
        typedef result call(a, b, c);                                                                        \
        return fails(kind, FROM) ? (errno = error, (result)-1) : ((call *)dlsym(RTLD_NEXT, #name))(x, y, z); \
    }
#define CALL4(result, name, a, b, c, d, kind, error)                                                         \
    result name(a x, b y, c z, d w)                                                                          \
    {                                                                                                        \
        typedef result call(a, b, c, d);                                                                     \
        return fails(kind, FROM) ? (errno = error, (result)-1)                                               \
                                 : ((call *)dlsym(RTLD_NEXT, #name))(x, y, z, w);                            \
    }

CALL3(ssize_t, read, int, void *, size_t, KIND_READ, EIO)
CALL4(ssize_t, pread, int, void *, size_t, off_t, KIND_READ, EIO)
CALL4(ssize_t, pread64, int, void *, size_t, off_t, KIND_READ, EIO)
CALL4(ssize_t, recv, int, void *, size_t, int, KIND_READ, ECONNRESET)
CALL3(ssize_t, write, int, const void *, size_t, KIND_WRITE, ENOSPC)
CALL4(ssize_t, pwrite, int, const void *, size_t, off_t, KIND_WRITE, ENOSPC)
CALL4(ssize_t, pwrite64, int, const void *, size_t, off_t, KIND_WRITE, ENOSPC)
CALL4(ssize_t, sendfile, int, int, off_t *, size_t, KIND_WRITE, ECONNRESET)
CALL3(ssize_t, sendmsg, int, const struct msghdr *, int, KIND_WRITE, ECONNRESET)
CALL4(ssize_t, send, int, const void *, size_t, int, KIND_WRITE, ECONNRESET)
CALL1(int, fsync, int, KIND_SYNC, EIO)
CALL1(int, fdatasync, int, KIND_SYNC, EIO)
CALL3(int, socket, int, int, int, KIND_FD, EMFILE)
CALL4(int, accept4, int, struct sockaddr *restrict, socklen_t *restrict, int, KIND_FD, EMFILE)

CALL2(int, memfd_create, const char *, unsigned, KIND_FD, EMFILE)
CALL2(int, mkdir, const char *, mode_t, KIND_FILE, ENOSPC)
CALL2(int, rename, const char *, const char *, KIND_FILE, EIO)
CALL1(int, unlink, const char *, KIND_FILE, EIO)
CALL2(int, ftruncate, int, off_t, KIND_FILE, EIO)
CALL3(int, posix_fallocate, int, off_t, off_t, KIND_FILE, EIO)
CALL2(int, fstat, int, struct stat *, KIND_FILE, EIO)

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    typedef FILE *call(const char *, const char *);
    return fails(KIND_OPEN, FROM) ? (errno = EMFILE, NULL) : ((call *)dlsym(RTLD_NEXT, "fopen"))(path, mode);
}

/* ---- threads and time ---- */

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes, void *(*run)(void *),
                   void *restrict ctx)
{
    typedef int call(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return fails(KIND_THREAD, FROM) ? EAGAIN
                                    : ((call *)dlsym(RTLD_NEXT, "pthread_create"))(out, attributes, run, ctx);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static atomic_int jump;
    typedef int call(clockid_t, struct timespec *);
    static call *real;
    real = real ? real : (call *)dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, out);
    if (clock == CLOCK_REALTIME) {
        if (fails(KIND_CLOCK, FROM)) {
            atomic_store(&jump, fail_at % 2 ? 3600 : -3600);
        }
        out->tv_sec += atomic_load(&jump);
    }
    return result;
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
    typedef int call(int, int, int, int *);
    return fails(KIND_FD, FROM) ? (errno = EMFILE, -1)
                                : ((call *)dlsym(RTLD_NEXT, "socketpair"))(domain, type, protocol, pair);
}
