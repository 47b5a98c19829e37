/* The cache on disk with its system calls, one by one: what it does with two owners' prompts, with names, with a start on what
 * is there and with too little room; and what comes of it when one of the calls fails, each of them once. All of that is in
 * disk_calls.txt; PARLEY_WRITE=1 writes it anew, the difference is then to be read.
 *
 *     = save a                  what is asked for
 *     openat A.block.tmp        a call
 *     > done, 1 entries ...     what came of it
 *     ! openat A.block.tmp      the call that fails; what is said then, and each step that goes otherwise
 *
 * Files are called by letters, in the order in which they are made.
 */
#define _GNU_SOURCE
#include "engine/cache/disk_cache_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "tests/folder.h"
#include "tests/model/tiny.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"

enum { MOST_FDS = 1024, MOST_NAMES = 64, HEX = 2 * HASH_BYTES, LONG = SEQ_PAGE_TOKENS + 20, SHORT = 40 };

/* ---- system calls ---- */

static char folder[FOLDER_NAME + 8];
static atomic_bool is_watched; /* calls are ours while it is */
static atomic_bool is_mine[MOST_FDS];
static atomic_bool is_awaited;    /* reads wait for who waits for the end of a load */
static int32_t n_calls, fails_at; /* the nth fails; 0: none */
static bool is_slow; /* reads and writes are interrupted, and do one byte, or half, of what they could */
static bytes calls;  /* of the step that runs */
static char names[MOST_NAMES][HEX + 1];
static size_t n_names;
static char failed[256]; /* the call that did */

static void label(char *out, size_t cap, const char *name)
{
    size_t i = 0;
    if (strlen(name) < HEX) {
        snprintf(out, cap, "%s", name);
        return;
    }
    while (i < n_names && strncmp(names[i], name, HEX) != 0) {
        i++;
    }
    if (i == n_names) {
        CHECK(n_names < MOST_NAMES);
        snprintf(names[n_names++], HEX + 1, "%.64s", name);
    }
    snprintf(out, cap, "%c%s", (char)('A' + i), name + HEX);
}

/* Notes a call; true if it is to fail. */
static bool meets(const char *call, const char *name)
{
    char what[128] = "", line[256];
    if (name) {
        label(what, sizeof what, name);
    }
    snprintf(line, sizeof line, "%s%s%s", call, name ? " " : "", what);
    bytes_printf(&calls, "%s\n", line);
    if (++n_calls != fails_at) {
        return false;
    }
    snprintf(failed, sizeof failed, "%s", line);
    errno = EIO;
    return true;
}

static bool is_ours(int fd)
{
    return is_watched && fd >= 0 && fd < MOST_FDS && is_mine[fd];
}

static int opened(int fd)
{
    CHECK(fd < MOST_FDS);
    if (fd >= 0) {
        is_mine[fd] = true;
    }
    return fd;
}

int my_openat(int dir, const char *name, int flags, ...) __asm__("openat");
int my_open(const char *name, int flags, ...) __asm__("open");
ssize_t my_read(int fd, void *data, size_t n) __asm__("read");
ssize_t my_write(int fd, const void *data, size_t n) __asm__("write");
ssize_t my_pread(int fd, void *data, size_t n, off_t at) __asm__("pread");
int my_fsync(int fd) __asm__("fsync");
int my_close(int fd) __asm__("close");
int my_renameat(int from, const char *was, int to, const char *is) __asm__("renameat");
int my_unlinkat(int dir, const char *name, int flags) __asm__("unlinkat");
int my_mkdir(const char *name, mode_t mode) __asm__("mkdir");
int my_flock(int fd, int how) __asm__("flock");
int my_faccessat(int dir, const char *name, int mode, int flags) __asm__("faccessat");
int my_utimensat(int dir, const char *name, const struct timespec *times, int flags) __asm__("utimensat");
DIR *my_fdopendir(int fd) __asm__("fdopendir");
struct dirent *my_readdir(DIR *d) __asm__("readdir");

int my_openat(int dir, const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!is_ours(dir)) {
        return (int)syscall(SYS_openat, dir, name, flags, mode);
    }
    char call[64];
    snprintf(call, sizeof call, "openat %s%s%s%s%03o", flags & O_CREAT ? "new " : "",
             flags & O_TRUNC ? "empty " : "", flags & O_NOFOLLOW ? "nofollow " : "",
             flags & O_NONBLOCK ? "nonblock " : "", mode);
    CHECK(flags & O_CLOEXEC);
    return meets(call, name) ? -1 : opened((int)syscall(SYS_openat, dir, name, flags, mode));
}

int my_open(const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!is_watched || strcmp(name, folder) != 0) {
        return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
    }
    return meets("open the folder", NULL) ? -1
                                          : opened((int)syscall(SYS_openat, AT_FDCWD, name, flags, mode));
}

/* How much of n bytes is read or written; -1: interrupted. */
static ssize_t slowly(size_t n)
{
    static int turn;
    if (!is_slow || n == 0) {
        return (ssize_t)n;
    }
    errno = EINTR;
    turn = (turn + 1) % 3;
    return turn == 0 ? -1 : turn == 1 ? 1 : (ssize_t)(n + 1) / 2;
}

/* How many of n bytes a call reads or writes: all in a file that is not the cache's. -1: it fails. */
static ssize_t most_of(int fd, const char *name, size_t n)
{
    char call[64];
    if (!is_ours(fd)) {
        return (ssize_t)n;
    }
    snprintf(call, sizeof call, "%s %zu", name, n);
    const ssize_t most = slowly(n);
    return meets(call, NULL) ? -1 : most;
}

ssize_t my_read(int fd, void *data, size_t n)
{
    while (is_ours(fd) && is_awaited) {
        usleep(50);
    }
    const ssize_t most = most_of(fd, "read", n);
    return most < 0 ? -1 : syscall(SYS_read, fd, data, (size_t)most);
}

ssize_t my_write(int fd, const void *data, size_t n)
{
    const ssize_t most = most_of(fd, "write", n);
    return most < 0 ? -1 : syscall(SYS_write, fd, data, (size_t)most);
}

ssize_t my_pread(int fd, void *data, size_t n, off_t at)
{
    return is_ours(fd) && meets("pread", NULL) ? -1 : syscall(SYS_pread64, fd, data, n, at);
}

int my_fsync(int fd)
{
    return !is_ours(fd) ? (int)syscall(SYS_fsync, fd) : meets("fsync", NULL) ? -1 : 0;
}

int my_close(int fd)
{
    const bool fails = is_ours(fd) && meets("close", NULL);
    if (fd >= 0 && fd < MOST_FDS) {
        is_mine[fd] = false;
    }
    const int result = (int)syscall(SYS_close, fd);
    errno = fails ? EIO : errno;
    return fails ? -1 : result;
}

int my_renameat(int from, const char *was, int to, const char *is)
{
    return is_ours(from) && meets("renameat", is) ? -1 : (int)syscall(SYS_renameat2, from, was, to, is, 0);
}

int my_unlinkat(int dir, const char *name, int flags)
{
    return is_ours(dir) && meets("unlinkat", name) ? -1 : (int)syscall(SYS_unlinkat, dir, name, flags);
}

int my_mkdir(const char *name, mode_t mode)
{
    const bool fails = is_watched && strcmp(name, folder) == 0 && meets("mkdir", NULL);
    return fails ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
}

int my_flock(int fd, int how)
{
    return is_ours(fd) && meets("flock", NULL) ? -1 : (int)syscall(SYS_flock, fd, how);
}

int my_faccessat(int dir, const char *name, int mode, int flags)
{
    const bool fails = is_ours(dir) && meets("faccessat", name);
    return fails ? -1 : (int)syscall(SYS_faccessat, dir, name, mode) + 0 * flags;
}

int my_utimensat(int dir, const char *name, const struct timespec *times, int flags)
{
    const bool fails = is_ours(dir) && meets("utimensat", name);
    return fails ? -1 : (int)syscall(SYS_utimensat, dir, name, times, flags);
}

/* What files are checked by. */
hash_stream *__real_hash_stream_create(void);
hash_stream *__wrap_hash_stream_create(void);
hash_stream *__wrap_hash_stream_create(void)
{
    return is_watched && meets("hash", NULL) ? NULL : __real_hash_stream_create();
}

/* A load does not end before somebody waits for it, who is told then, long before he loses patience. */
static pthread_t waiting;
int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    if (!is_awaited || !pthread_equal(waiting, pthread_self())) {
        return __real_pthread_cond_wait(c, m);
    }
    struct timespec until;
    is_awaited = false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    CHECK_INT(pthread_cond_timedwait(c, m, &until), 0);
    return 0;
}

/* The names of the folder that is read, by their letters. */
static struct dirent *listed[MOST_NAMES];
static int n_listed, at_listed;

static int by_letter(const struct dirent **a, const struct dirent **b)
{
    char x[300], y[300];
    label(x, sizeof x, (*a)->d_name);
    label(y, sizeof y, (*b)->d_name);
    return strcmp(x, y);
}

static void free_listed(void)
{
    for (int i = 0; i < n_listed; i++) {
        free(listed[i]);
    }
    n_listed = 0;
}

DIR *my_fdopendir(int fd)
{
    char path[64];
    struct dirent **found = NULL;
    if (meets("fdopendir", NULL)) {
        return NULL;
    }
    is_watched = false;
    free_listed();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n_listed = scandir(path, &found, NULL, by_letter);
    CHECK(n_listed >= 2 && n_listed <= MOST_NAMES);
    memcpy(listed, found, (size_t)n_listed * sizeof *found);
    free(found);
    at_listed = 0;
    DIR *d = opendir(path);
    close(fd);
    is_watched = true;
    return d;
}

struct dirent *my_readdir(DIR *d)
{
    if (!is_watched) {
        return (struct dirent *)readdir64(d);
    }
    return at_listed < n_listed ? listed[at_listed++] : NULL;
}

/* ---- what is asked for ---- */

typedef struct player {
    tiny t;
    prefix_cache *pc; /* what is saved */
    seq_state *seq;
    disk_cache_options options;
    disk_cache *dc;
    bytes steps; /* what each has told, a line each */
    char said[4096];
    bool is_shown; /* its calls, too */
} player;

static atomic_int n_woken;

static void wake(void *ctx)
{
    (void)ctx;
    n_woken++;
}

/* Behind a step: calls, what it says, and what there is. */
static void tell(player *p, const char *step, const char *result)
{
    struct dirent **found = NULL;
    is_watched = false;
    bytes_printf(&p->steps, "= %s\n", step);
    if (p->is_shown) {
        bytes_append(&p->steps, calls.data, calls.len);
    }
    bytes_clear(&calls);
    bytes_printf(&p->steps, "> %s", result);
    if (p->dc) {
        const disk_cache_stats s = disk_cache_get_stats(p->dc);
        bytes_printf(
            &p->steps, ": entries %llu bytes %llu hits %llu of %llu saves %llu evictions %llu errors %llu",
            (unsigned long long)s.n_entries, (unsigned long long)s.bytes, (unsigned long long)s.n_hits,
            (unsigned long long)s.n_hit_tokens, (unsigned long long)s.n_saves,
            (unsigned long long)s.n_evictions, (unsigned long long)s.n_errors);
    }
    const int n = scandir(folder, &found, NULL, by_letter);
    bytes_append_str(&p->steps, ";");
    for (int i = 0; i < n; i++) {
        char name[300];
        label(name, sizeof name, found[i]->d_name);
        if (name[0] != '.' && strlen(name) < 16) {
            bytes_printf(&p->steps, " %s", name);
        }
        free(found[i]);
    }
    free(found);
    bytes_append_char(&p->steps, '\n');
    is_watched = true;
}

static void open_it(player *p, const char *step)
{
    err_detail d = {0};
    const err_code err = disk_cache_open(&p->dc, &p->options, &d);
    char *at = strstr(d.text, folder); /* its name is another each time */
    if (at) {
        memmove(at, at + strlen(folder), strlen(at + strlen(folder)) + 1);
    }
    tell(p, step, err == ERR_OK ? "open" : d.text);
}

static void close_it(player *p)
{
    disk_cache_close(p->dc);
    p->dc = NULL;
    tell(p, "close", "closed");
}

/* A prompt of n tokens that begins as all others do, and from its second block on is another for each `which`. */
static void make_key(uint64_t *key, uint64_t scope, int which, int32_t n)
{
    key[0] = scope;
    for (int32_t i = 0; i < n; i++) {
        key[1 + i] = (uint64_t)(100 + i + (i <= SEQ_PAGE_TOKENS ? 0 : 200 * which));
    }
}

static void save(player *p, uint64_t scope, int which, int32_t n, const char *given, const char *step)
{
    uint64_t key[1 + LONG];
    bool ok = false;
    if (!p->dc) {
        tell(p, step, "no cache");
        return;
    }
    make_key(key, scope, which, n);
    prefix_entry *e = prefix_cache_get(p->pc, key, 1 + (size_t)n);
    CHECK(e != NULL);
    snprintf(e->given, sizeof e->given, "%s", given);
    CHECK(disk_cache_save(p->dc, e) && !disk_cache_save(p->dc, e));
    CHECK(disk_cache_end_save(p->dc, true, &ok));
    e->given[0] = '\0';
    bool again = false;
    CHECK(!disk_cache_end_save(p->dc, true, &again) && !again);
    tell(p, step, ok ? "saved" : "not saved");
}

/* Whether what was read is what was saved. */
static bool is_same_entry(player *p, prefix_cache *to, const uint64_t *key, int32_t n)
{
    prefix_entry *is = prefix_cache_get(to, key, 1 + (size_t)n),
                 *was = prefix_cache_get(p->pc, key, 1 + (size_t)n);
    CHECK(was != NULL);
    if (!is) {
        return false;
    }
    const seq_snapshot_parts a = seq_snapshot_get_parts(is->snapshot),
                             b = seq_snapshot_get_parts(was->snapshot);
    bool same = a.n_blocks == b.n_blocks && a.mtp_len == b.mtp_len && a.n_floats == b.n_floats &&
                memcmp(a.floats, b.floats, a.n_floats * sizeof *a.floats) == 0 &&
                memcmp(is->hidden, was->hidden, TINY_H * sizeof *is->hidden) == 0;
    for (size_t i = 0; same && i < a.n_blocks; i++) {
        same = memcmp(a.blocks[i], b.blocks[i], a.block_bytes) == 0;
    }
    return same;
}

static void load_hit(player *p, const disk_hit *hit, const uint64_t *key, bool by_name, const char *step)
{
    char result[128];
    prefix_cache *to = prefix_cache_create(64 << 20, 8, TINY_H);
    seq_snapshot *snapshot = seq_snapshot_alloc(p->seq, hit->n_tokens, hit->mtp_len);
    disk_load *l = by_name ? disk_cache_load_given(p->dc, hit, key[0], snapshot)
                           : disk_cache_load(p->dc, hit, key, snapshot);
    CHECK(l != NULL);
    while (!disk_load_has_ended(p->dc, l)) {
        usleep(50);
    }
    const bool is_read = disk_load_finish(l, to);
    snprintf(result, sizeof result, "%s %d tokens%s", is_read ? "read" : "could not read", hit->n_tokens,
             is_read && !is_same_entry(p, to, key, hit->n_tokens) ? ", others" : "");
    prefix_cache_destroy(to);
    tell(p, step, result);
}

static void load(player *p, uint64_t scope, int which, int32_t n, const char *step)
{
    uint64_t key[1 + LONG];
    disk_hit hit;
    if (!p->dc) {
        tell(p, step, "no cache");
        return;
    }
    make_key(key, scope, which, n);
    if (disk_cache_find(p->dc, key, 1 + (size_t)n, 0, &hit)) {
        load_hit(p, &hit, key, false, step);
    } else {
        tell(p, step, "not there");
    }
}

static void find_given(player *p, uint64_t scope, int which, int32_t n, const char *given, bool drops,
                       const char *step)
{
    uint64_t key[1 + LONG];
    disk_entry e;
    if (!p->dc) {
        tell(p, step, "no cache");
        return;
    }
    make_key(key, scope, which, n);
    if (!disk_cache_find_given(p->dc, scope, given, &e)) {
        tell(p, step, "no such name");
    } else if (drops) {
        CHECK(disk_cache_drop_given(p->dc, scope, given, &e));
        disk_cache_close(p->dc); /* its thread removes what nobody needs */
        p->dc = NULL;
        open_it(p, step);
    } else {
        load_hit(p, &(disk_hit){.name = e.name, .n_tokens = e.n_tokens, .mtp_len = e.mtp_len}, key, true,
                 step);
    }
}

/* Nobody wants what is read any more. */
static void leave_load(player *p, uint64_t scope, int which, int32_t n, const char *step)
{
    uint64_t key[1 + LONG];
    disk_hit hit;
    make_key(key, scope, which, n);
    if (!p->dc || !disk_cache_find(p->dc, key, 1 + (size_t)n, 0, &hit)) {
        tell(p, step, "not there");
        return;
    }
    waiting = pthread_self();
    is_awaited = true;
    disk_load *l = disk_cache_load(p->dc, &hit, key, seq_snapshot_alloc(p->seq, hit.n_tokens, hit.mtp_len));
    CHECK(l != NULL);
    disk_load_free(p->dc, l);
    is_awaited = false; /* a load that failed had ended before */
    tell(p, step, "left");
}

static void clear(player *p, const uint64_t *scope)
{
    if (p->dc) {
        disk_cache_clear(p->dc, scope);
    }
}

/* The folder, with a salt that is always the same, as files are called by it. */
static void make_folder(void)
{
    static const char salt[HASH_BYTES + 1] = "a salt that is always the same..";
    char path[FOLDER_NAME + 32];
    snprintf(path, sizeof path, "%s/parley-cache.lock", folder);
    CHECK_INT(mkdir(folder, 0700), 0);
    FILE *lock = fopen(path, "w");
    CHECK(lock && fwrite(salt, 1, HASH_BYTES, lock) == HASH_BYTES && fclose(lock) == 0);
}

/* The whole play. */
static void play(player *p, int32_t fails)
{
    static const uint64_t MINE = 1, YOURS = 2;
    char root[FOLDER_NAME];
    folder_make(root);
    snprintf(folder, sizeof folder, "%s/kept", root);
    make_folder();
    p->options.dir = folder;
    p->is_shown = fails == 0;
    p->options.budget = 1 << 20;
    bytes_clear(&p->steps);
    bytes_clear(&calls);
    n_names = 0;
    n_calls = 0;
    fails_at = fails;
    failed[0] = '\0';
    said_begin();
    is_watched = true;
    open_it(p, "open");
    load(p, MINE, 0, LONG, "load mine");
    save(p, MINE, 0, LONG, "", "save mine");
    load(p, MINE, 0, LONG, "load mine");
    load(p, YOURS, 0, LONG, "load yours");
    save(p, MINE, 1, LONG, "", "save another of mine, whose first block is the same");
    save(p, MINE, 1, LONG, "kept", "name it");
    save(p, MINE, 1, LONG, "", "save it again");
    save(p, YOURS, 0, SHORT, "kept", "save yours with the same name");
    find_given(p, MINE, 1, LONG, "kept", false, "load by name");
    close_it(p);
    open_it(p, "open again");
    load(p, MINE, 0, LONG, "load mine");
    leave_load(p, MINE, 0, LONG, "leave what is loaded");
    load(p, YOURS, 0, SHORT, "load yours");
    save(p, MINE, 0, LONG, "kept", "the name is another's now");
    find_given(p, MINE, 0, LONG, "kept", false, "load by name");
    find_given(p, MINE, 0, LONG, "kept", true, "drop by name, open again");
    clear(p, &YOURS);
    close_it(p);
    const uint64_t all = p->options.budget;
    p->options.budget = 3 * (DISK_HEADER_BYTES + p->options.block_bytes + 8192) + p->options.own_bytes;
    open_it(p, "open with little room");
    save(p, MINE, 0, LONG, "", "save mine");
    load(p, MINE, 1, LONG, "load the other of mine");
    save(p, MINE, 0, LONG, "kept", "name mine");
    p->options.budget = all;
    close_it(p);
    p->options.fingerprint.bytes[0] ^= 1;
    open_it(p, "open as another model");
    load(p, MINE, 0, LONG, "load mine");
    save(p, MINE, 0, SHORT, "", "save a short one");
    clear(p, NULL);
    close_it(p);
    p->options.fingerprint.bytes[0] ^= 1;
    open_it(p, "open once more");
    load(p, MINE, 0, LONG, "load mine");
    load(p, MINE, 1, LONG, "load the other of mine");
    close_it(p);
    for (uint64_t less = 0; less <= 2; less += 2) { /* half of it is what a name takes, or a byte less */
        p->options.budget =
            2 * (DISK_HEADER_BYTES + p->options.block_bytes + 4096 + p->options.own_bytes) - less;
        open_it(p, less ? "open with too little room for a name" : "open with room for a name");
        clear(p, NULL);
        save(p, MINE, 0, SHORT, "just", "save it with a name");
        close_it(p);
    }
    p->options.budget = all;
    is_watched = false;
    free_listed();
    said_end();
    snprintf(p->said, sizeof p->said, "%.4095s", said_err);
    folder_remove(root);
}

/* What is logged, of a play with a failure the warnings alone; without the name of the folder, and with the letters of files. */
static void tell_said(player *p, bytes *out)
{
    for (const char *at = p->said; *at;) {
        const char *end = at + strcspn(at, "\n");
        const bool is_told = p->is_shown || at[1] != '6';
        bytes_append_str(out, is_told ? "  " : "");
        while (is_told && at < end) {
            char file[300];
            const size_t n = strspn(at, "0123456789abcdef");
            if (strncmp(at, folder, strlen(folder)) == 0) {
                at += strlen(folder);
            } else if (n == HEX) {
                label(file, sizeof file, at);
                bytes_append_char(out, file[0]);
                at += n;
            } else {
                bytes_append_char(out, *at++);
            }
        }
        bytes_append_str(out, is_told ? "\n" : "");
        at = end + (*end != '\0');
    }
}

/* The next line that tells a result; NULL behind the last. Its step is the line before it. */
static const char *next_result(const char **at, const char **step)
{
    while (**at) {
        const char *line = *at;
        *at += strcspn(line, "\n") + 1;
        if (*line == '>') {
            return line;
        }
        *step = *line == '=' ? line : *step;
    }
    return NULL;
}

/* The first step that went otherwise with all that is there then, and of others those with another result. */
static void tell_differences(const char *plain, const char *is, bytes *out)
{
    const char *step = "", *step_of_plain = "";
    size_t n_told = 0;
    for (const char *line; (line = next_result(&is, &step)) != NULL;) {
        const char *was = next_result(&plain, &step_of_plain);
        const size_t n = strcspn(line, "\n"), n_was = was ? strcspn(was, "\n") : 0;
        const size_t m = strcspn(line, ":;\n"), m_was = was ? strcspn(was, ":;\n") : 0;
        if (n_told ? m != m_was || memcmp(line, was, m) != 0 : n != n_was || memcmp(line, was, n) != 0) {
            bytes_printf(out, "%.*s\n%.*s\n", (int)strcspn(step, "\n"), step, (int)(n_told ? m : n), line);
            n_told++;
        }
    }
    CHECK(next_result(&plain, &step_of_plain) == NULL);
}

/* Which calls fail, one each: all of the first opening, and of other steps the same call of those of the same kind (the first
 * word) once. Returns how many. */
static size_t choose(const char *steps, int32_t *chosen, size_t most)
{
    static char known[1024][64];
    char kind[16] = "";
    size_t n = 0;
    int32_t at = 0;
    bool is_first = true;
    for (const char *line = steps; *line; line += strcspn(line, "\n") + 1) {
        const int len = (int)strcspn(line, "\n");
        if (*line == '=') {
            snprintf(kind, sizeof kind, "%.*s", (int)strcspn(line + 2, " \n"), line + 2);
        } else if (*line != '>') {
            const char *dot = memchr(line, '.', (size_t)len); /* any letter */
            const int head =
                dot && dot > line && dot[-1] >= 'A' && dot[-1] <= 'Z' ? (int)(dot - line) - 1 : len;
            char is[64];
            size_t i = 0;
            snprintf(is, sizeof is, "%s:%.*s?%.*s", kind, head, line, head < len ? len - head - 1 : 0,
                     line + head + 1);
            while (i < n && strcmp(known[i], is) != 0) {
                i++;
            }
            at++;
            if (i == n || is_first) {
                CHECK(n < most);
                snprintf(known[n], sizeof known[n], "%s", is);
                chosen[n++] = at;
            }
        } else {
            is_first = false;
        }
    }
    CHECK_INT(at, n_calls);
    return n;
}

int main(void)
{
    uint64_t key[1 + LONG];
    int32_t ids[LONG];
    bytes out = bytes_empty((size_t)1 << 22);
    calls = bytes_empty((size_t)1 << 20);
    player p = {.t = tiny_open(1, ~0u, KV_F16), .steps = bytes_empty((size_t)1 << 22)};
    log_set_format(LOG_JOURNAL);
    p.pc = prefix_cache_create(64 << 20, 8, TINY_H);
    for (int32_t i = 0; i < LONG; i++) {
        ids[i] = 100 + i;
    }
    for (int i = 0; i < 3; i++) { /* two long ones, a short one of another owner */
        const int32_t n = i < 2 ? LONG : SHORT;
        seq_state *s = tiny_seq(&p.t);
        ids[n - 1] = 100 + i;
        tiny_run(&p.t, s, ids, n, false, false);
        make_key(key, i < 2 ? 1 : 2, i % 2, n);
        CHECK(prefix_cache_store(p.pc, key, 1 + (size_t)n, s, decoder_hidden(p.t.sc, n - 1)));
        make_key(key, 1, 0, SHORT);
        CHECK(i < 2 || prefix_cache_store(p.pc, key, 1 + SHORT, s, decoder_hidden(p.t.sc, n - 1)));
        seq_state_destroy(s);
    }
    p.seq = tiny_seq(&p.t);
    make_key(key, 1, 0, LONG);
    const seq_snapshot_parts parts = seq_snapshot_get_parts(prefix_cache_get(p.pc, key, 1 + LONG)->snapshot);
    p.options = (disk_cache_options){.budget = 1 << 20,
                                     .fingerprint = {{7}},
                                     .block_bytes = parts.block_bytes,
                                     .own_bytes = seq_snapshot_own_bytes(&parts),
                                     .hidden_size = TINY_H,
                                     .wake = wake};
    play(&p, 0);
    bytes_append(&out, p.steps.data, p.steps.len);
    tell_said(&p, &out);
    bytes plain = bytes_empty((size_t)1 << 22);
    bytes_append(&plain, p.steps.data, p.steps.len);
    int32_t chosen[256];
    const size_t n = choose(bytes_str(&p.steps), chosen, ARRAY_LEN(chosen));
    for (size_t i = 0; i < n; i++) {
        play(&p, chosen[i]);
        bytes_printf(&out, "! %s\n", failed);
        tell_said(&p, &out);
        tell_differences(bytes_str(&plain), bytes_str(&p.steps), &out);
    }
    is_slow = true;
    play(&p, -1);
    bytes_append_str(&out, "! every read and write is slow\n");
    tell_said(&p, &out);
    tell_differences(bytes_str(&plain), bytes_str(&p.steps), &out);
    recorded_check("engine/cache/disk_calls.txt", bytes_str(&out));
    seq_state_destroy(p.seq);
    prefix_cache_destroy(p.pc);
    tiny_close(&p.t);
    bytes_deinit(&p.steps);
    bytes_deinit(&plain);
    bytes_deinit(&calls);
    bytes_deinit(&out);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
