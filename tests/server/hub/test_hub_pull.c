/* hub_pull: models fetched from a hub in time that is made up: what is asked for, what lies in the folder then, and what is
 * said. Then the same with each call of the system failing once, and once more after that. All of it is recorded. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "server/hub/hub_pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/server/made_up_server.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* ---- what can fail ---- */

static int why = EIO; /* it fails */

#define FAILS_WITH(value) (errno = why, value)

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t n), (old, n), NULL)
ONE_FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), FAILS_WITH(-1))
ONE_FAILS(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), FAILS_WITH(-1))
ONE_FAILS(int, flock, (int fd, int how), (fd, how), FAILS_WITH(-1))
ONE_FAILS(int, fsync, (int fd), (fd), FAILS_WITH(-1))
ONE_FAILS(int, rename, (const char *from, const char *to), (from, to), FAILS_WITH(-1))
ONE_FAILS(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), FAILS_WITH(-1))
ONE_FAILS(int, symlinkat, (const char *to, int fd, const char *path), (to, fd, path), FAILS_WITH(-1))
ONE_FAILS(int, unlink, (const char *path), (path), FAILS_WITH(-1))
ONE_FAILS(int, unlinkat, (int fd, const char *path, int how), (fd, path, how), FAILS_WITH(-1))
ONE_FAILS(int, ftruncate, (int fd, off_t n), (fd, n), FAILS_WITH(-1))
ONE_FAILS(int, stat, (const char *path, struct stat *out), (path, out), FAILS_WITH(-1))
ONE_FAILS(int, lstat, (const char *path, struct stat *out), (path, out), FAILS_WITH(-1))
ONE_FAILS(int, fstat, (int fd, struct stat *out), (fd, out), FAILS_WITH(-1))
ONE_FAILS(ssize_t, readlink, (const char *path, char *out, size_t n), (path, out, n), FAILS_WITH(-1))
ONE_FAILS(ssize_t, readlinkat, (int fd, const char *path, char *out, size_t n), (fd, path, out, n),
          FAILS_WITH(-1))
ONE_FAILS(int, remove, (const char *path), (path), FAILS_WITH(-1))
ONE_FAILS(int, close, (int fd), (fd), (__real_close(fd), FAILS_WITH(-1)))
ONE_FAILS(hash_stream *, hash_stream_create, (void), (), NULL)
ONE_FAILS(hash_stream *, hash_stream_create_git, (uint64_t n), (n), NULL)
ONE_FAILS(ssize_t, pread, (int fd, void *out, size_t n, off_t at), (fd, out, n, at), FAILS_WITH(-1))
ONE_FAILS(ssize_t, read, (int fd, void *out, size_t n), (fd, out, n), FAILS_WITH(-1))
ONE_FAILS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), FAILS_WITH(-1))
ONE_FAILS(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), FAILS_WITH(-1))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return one_fails_now("open") ? FAILS_WITH(-1) : __real_open(path, flags, mode);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    return one_fails_now("openat") ? FAILS_WITH(-1) : __real_openat(fd, path, flags);
}

/* Names come in order on every file system. */
typedef struct in_order {
    DIR *of;
    struct dirent **names;
    int n, at;
} in_order;

static in_order open_dirs[16];

static in_order *dir_of(const DIR *of)
{
    size_t i = 0;
    while (i < sizeof open_dirs / sizeof *open_dirs - 1 && open_dirs[i].of != of) {
        i++;
    }
    return &open_dirs[i];
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    DIR *d = one_fails_now("opendir") ? FAILS_WITH(NULL) : __real_opendir(path);
    if (d) {
        in_order *o = dir_of(NULL);
        *o = (in_order){.of = d};
        o->n = scandir(path, &o->names, NULL, alphasort);
    }
    return d;
}

struct dirent *__wrap_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d)
{
    in_order *o = dir_of(d);
    return o->at < o->n ? o->names[o->at++] : NULL;
}

int __real_closedir(DIR *d);
int __wrap_closedir(DIR *d);
int __wrap_closedir(DIR *d)
{
    in_order *o = dir_of(d);
    while (o->n > 0) {
        free(o->names[--o->n]);
    }
    free(o->names);
    *o = (in_order){.of = NULL};
    return __real_closedir(d);
}

typedef int visit(const char *path, const struct stat *st, int kind, struct FTW *where);
int __wrap_nftw(const char *path, visit *fn, int n_open, int flags);
int __wrap_nftw(const char *path, visit *fn, int n_open, int flags)
{
    struct stat st;
    struct dirent **names = NULL;
    if (__real_lstat(path, &st) != 0) {
        return -1;
    }
    const int n = S_ISDIR(st.st_mode) ? scandir(path, &names, NULL, alphasort) : 0;
    int result = 0;
    for (int i = 0; i < n; i++) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0 && result == 0) {
            result = __wrap_nftw(inside, fn, n_open, flags);
        }
        free(names[i]);
    }
    free(names);
    return result ? result : fn(path, &st, 0, NULL);
}

/* Nobody waits for a disk. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

/* A disk of this room, or one that cannot be asked. */
static unsigned long room_bytes = 1UL << 40;

int __wrap_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out)
{
    (void)path;
    *out = (struct statvfs){.f_frsize = 4096, .f_bavail = room_bytes / 4096};
    return room_bytes && !one_fails_now("statvfs") ? 0 : FAILS_WITH(-1);
}

static const char *const CALLS[] = {"calloc",
                                    "malloc",
                                    "realloc",
                                    "open",
                                    "openat",
                                    "mkdir",
                                    "mkdirat",
                                    "flock",
                                    "fsync",
                                    "rename",
                                    "renameat",
                                    "symlinkat",
                                    "unlink",
                                    "unlinkat",
                                    "remove",
                                    "ftruncate",
                                    "stat",
                                    "lstat",
                                    "fstat",
                                    "statvfs",
                                    "opendir",
                                    "readlink",
                                    "readlinkat",
                                    "pread",
                                    "read",
                                    "write",
                                    "pwrite",
                                    "close",
                                    "hash_stream_create",
                                    "hash_stream_create_git",
                                    NULL};
/* Those that are made of what an earlier try has left. */
static const char *const FILE_CALLS[] = {
    "open", "fstat", "ftruncate", "pread", "pwrite", "hash_stream_create", "hash_stream_create_git", NULL};

/* ---- the hub ---- */

typedef struct repo_file {
    const char *path, *data;
    bool is_large; /* listed by its SHA-256, as large files are */
} repo_file;

static const repo_file FOLDER_FILES[] = {
    {"config.json", "{\"family\":\"good\"}", false},
    {"model.safetensors.index.json",
     "{\"weight_map\":{\"a\":\"model-1.safetensors\",\"b\":\"parts/model-2.safetensors\"}}", false},
    {"model-1.safetensors", "weights, the first part", true},
    {"parts/model-2.safetensors", "weights, the other part", true},
    {"other.safetensors", "of nobody", true},
    {"tokenizer.json", "{}", false},
    {"tokenizer_config.json", "{}", false},
    {"README.md", "words", false},
    {"odd name+1.jinja", "template", false},
    {"chat_template.jinja", "template", false},
};

static const repo_file GGUF_FILES[] = {
    {"m-Q8_0.gguf", "GGUF eight bits", true},
    {"m-Q4_K_M-00001-of-00002.gguf", "GGUF four bits, the first part", true},
    {"m-Q4_K_M-00002-of-00002.gguf", "GGUF four bits, the other part", true},
    {"mmproj-F16.gguf", "GGUF tower", true},
    {"config.json", "{}", false},
};

/* What a hub makes of a request for what is behind a byte. */
static enum { SENDS_REST, SENDS_ALL, REFUSES } for_range;

static const repo_file *files;
static size_t n_files;
static const char *damaged; /* path whose contents come wrong; NULL: none */
static int n_damaged;       /* so many times */
static bytes all, asked;
static char folder[FOLDER_NAME], reply[8192];

static void key_of(const repo_file *f, char hex[2 * HASH_BYTES + 1])
{
    uint8_t hash[HASH_BYTES];
    hash_stream *h = f->is_large ? hash_stream_create() : hash_stream_create_git(strlen(f->data));
    hash_stream_add(h, f->data, strlen(f->data));
    hash_stream_end(h, hash);
    hash_stream_destroy(h);
    hash_hex(hex, hash, f->is_large ? HASH_BYTES : HASH_GIT_BYTES);
}

static size_t write_list(char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, PLAIN_HEAD "{\"sha\":\"" COMMIT "\",\"siblings\":[");
    for (size_t i = 0; i < n_files; i++) {
        char hex[2 * HASH_BYTES + 1];
        const size_t size = strlen(files[i].data);
        key_of(&files[i], hex);
        n += (size_t)snprintf(out + n, cap - n, "%s{\"rfilename\":\"%s\",\"size\":%zu,\"blobId\":\"%.40s\"",
                              i ? "," : "", files[i].path, size, hex);
        n += (size_t)(files[i].is_large ? snprintf(out + n, cap - n,
                                                   ",\"lfs\":{\"sha256\":\"%s\",\"size\":%zu}}", hex, size)
                                        : snprintf(out + n, cap - n, "}"));
    }
    return n + (size_t)snprintf(out + n, cap - n, "]}" CUT);
}

/* Answers from the byte on that is asked for. */
static const char *answer(int server, const char *head, const char *body)
{
    const char *range = strstr(head, "\r\nRange: bytes=");
    (void)server, (void)body;
    bytes_printf(&asked, "    %.*s%s%.*s\n", (int)strcspn(head + 4, " "), head + 4, range ? " from " : "",
                 range ? (int)strcspn(range + 15, "\r") : 0, range ? range + 15 : "");
    snprintf(reply, sizeof reply, "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" CUT);
    if (strncmp(head, "GET /api/models/org/name/revision/", 34) == 0) {
        (void)write_list(reply, sizeof reply);
    }
    for (size_t i = 0; i < n_files; i++) {
        char plain[256];
        size_t n = 0;
        for (const char *c = head + 4; *c != ' ' && n < sizeof plain - 1; c++) { /* without its escapes */
            unsigned code = 0;
            plain[n++] = *c == '%' && sscanf(c + 1, "%2x", &code) == 1 ? (char)code : *c;
            c += *c == '%' ? 2 : 0;
        }
        plain[n] = '\0';
        const char *at = strstr(plain, "/resolve/" COMMIT "/");
        if (at && strcmp(at + strlen("/resolve/" COMMIT "/"), files[i].path) == 0) {
            const bool is_wrong = damaged && n_damaged > 0 && strcmp(damaged, files[i].path) == 0;
            const size_t from = range ? strtoul(range + 15, NULL, 10) : 0, size = strlen(files[i].data);
            n_damaged -= is_wrong;
            if (from > 0 && for_range == REFUSES) {
                snprintf(reply, sizeof reply,
                         "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" CUT);
                return reply;
            }
            if (from > 0 && from < size && for_range == SENDS_REST) {
                snprintf(reply, sizeof reply,
                         "HTTP/1.1 206 OK\r\nContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n%s" CUT,
                         from, size - 1, size, size - from, files[i].data + from);
            } else {
                snprintf(reply, sizeof reply,
                         "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s" CUT, size,
                         files[i].data);
            }
            if (is_wrong) {
                strstr(reply, "\r\n\r\n")[4] ^= 1;
            }
        }
    }
    return reply;
}

/* The hub is not what fails. */
static bool serve(void)
{
    const char *failing = one_fails_name;
    const bool counts = one_fails_counts;
    one_fails_name = NULL;
    one_fails_counts = false;
    const bool moved = made_up_serve();
    one_fails_name = failing;
    one_fails_counts = counts;
    return moved;
}

/* ---- what is recorded ---- */

/* Everything below a folder: sizes of files, where links lead. */
static void put_tree(bytes *out, const char *path, int depth)
{
    struct dirent **entries = NULL;
    const int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char inside[8192], target[512];
        struct stat st;
        snprintf(inside, sizeof inside, "%.4000s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' || entries[i]->d_name[1] == 'l') {
            bytes_printf(out, "    %*s%.24s", 2 * depth, "", entries[i]->d_name);
            if (__real_lstat(inside, &st) == 0 && S_ISLNK(st.st_mode)) {
                const ssize_t len = readlink(inside, target, sizeof target);
                bytes_printf(out, " -> %.*s%s\n", len > 40 ? 40 : (int)len, target,
                             access(inside, R_OK) ? " (nothing)" : "");
            } else if (S_ISDIR(st.st_mode)) {
                bytes_append_char(out, '\n');
                put_tree(out, inside, depth + 1);
            } else {
                bytes_printf(out, " %lld\n", (long long)st.st_size);
            }
        }
        free(entries[i]);
    }
    free(entries);
}

/* The tree, in full when it is first seen, by its number. */
static int tree_now(void)
{
    static char *trees[512];
    static int n;
    bytes tree = bytes_empty(1 << 20);
    put_tree(&tree, folder, 0);
    int i = 0;
    while (i < n && strcmp(trees[i], bytes_str(&tree)) != 0) {
        i++;
    }
    if (i == n && n < 512) {
        trees[n++] = strdup(bytes_str(&tree));
        bytes_printf(&all, "  tree %d:\n%s", i, bytes_str(&tree));
    }
    bytes_deinit(&tree);
    return i;
}

static void put_text(bytes *out, const char *text)
{
    char url[64];
    snprintf(url, sizeof url, "127.0.0.1:");
    while (*text) {
        if (strncmp(text, folder, strlen(folder)) == 0) {
            bytes_append_str(out, "DIR");
            text += strlen(folder);
        } else if (strncmp(text, url, strlen(url)) == 0) {
            bytes_append_str(out, "HUB");
            text += strlen(url);
            text += strspn(text, "0123456789");
        } else {
            bytes_append_char(out, *text++);
        }
    }
}

/* ---- pulls ---- */

static hub_place place;
static int gguf_rounds = 2; /* reads of a header until it suffices */
static bool may;
static bytes told;
static bool is_quiet; /* nobody is asked or told */

static err_code check_config(const char *text, size_t n, err_detail *d)
{
    return strstr(text, "evil") || n == 0 ? err_set(d, ERR_UNSUPPORTED, "evil is not run") : ERR_OK;
}

static err_code check_gguf(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *d)
{
    bytes_printf(&told, "    header: %zu of %llu, %.8s%s\n", n, (unsigned long long)n_file,
                 (const char *)data, is_first ? ", the first" : "");
    *is_whole = --gguf_rounds <= 0;
    return strstr(data, "evil") ? err_set(d, ERR_UNSUPPORTED, "evil is not run") : ERR_OK;
}

static bool may_fetch(void *ctx, size_t n, int64_t n_bytes)
{
    (void)ctx;
    bytes_printf(&told, "    asked whether %zu files of %lld bytes may be fetched\n", n, (long long)n_bytes);
    return may;
}

static void on_tick(void *ctx, const hub_task *tasks, size_t n)
{
    (void)ctx, (void)tasks, (void)n;
}

static err_code pull(const char *name, err_detail *d)
{
    static const hub_pull_hooks HOOKS = {check_config, check_gguf, may_fetch, on_tick, NULL},
                                QUIET = {check_config, check_gguf, NULL, NULL, NULL};
    hub_name parsed;
    static hub_found found;
    CHECK(hub_name_parse(&parsed, name));
    found = (hub_found){.path = ""};
    bytes_clear(&asked);
    bytes_clear(&told);
    const err_code err = hub_pull(&found, &place, &parsed, is_quiet ? &QUIET : &HOOKS, d);
    gguf_rounds = 2;
    if (err == ERR_OK) {
        bytes_append_str(&told, "    found ");
        put_text(&told, found.path);
        bytes_append_str(&told, found.mmproj[0] ? " with a tower" : "");
        bytes_append_char(&told, '\n');
    }
    return err;
}

static void put_outcome(bytes *out, err_code err, const err_detail *d)
{
    bytes_append_str(out, err_name(err));
    bytes_append_str(out, err ? ": " : "");
    put_text(out, err ? d->text : "");
}

static void shown(const char *what, const char *name)
{
    err_detail d = {0};
    const err_code err = pull(name, &d);
    bytes_printf(&all, "%s\n  ", what);
    put_outcome(&all, err, &d);
    bytes_printf(&all, "\n%s%s", bytes_str(&asked), bytes_str(&told));
    bytes_printf(&all, "  tree %d\n", tree_now());
}

static void empty(void)
{
    folder_remove(folder);
    CHECK(mkdir(folder, 0700) == 0);
}

/* ---- each call fails ---- */

static const char *wanted;
static bytes outcome; /* of the last run, beside its error */

static err_code pull_it(err_detail *d)
{
    return pull(wanted, d);
}

static err_code list_it(err_detail *d)
{
    hub_kept *kept = NULL;
    size_t n = 0;
    const err_code err = hub_cache_list(&kept, &n, place.cache, d);
    for (size_t i = 0; i < n; i++) {
        bytes_printf(&outcome, ", %s %lld%s", kept[i].name, (long long)kept[i].n_bytes,
                     kept[i].is_whole ? "" : " of it");
    }
    free(kept);
    return err;
}

static err_code find_it(err_detail *d)
{
    static hub_found found;
    hub_name name;
    CHECK(hub_name_parse(&name, wanted));
    const err_code err = hub_cache_find(&found, place.cache, &name, d);
    bytes_append_str(&outcome, err ? "" : " ");
    put_text(&outcome, err ? "" : found.path);
    return err;
}

static err_code remove_it(err_detail *d)
{
    int64_t n = 0;
    hub_name name;
    CHECK(hub_name_parse(&name, wanted));
    const err_code err = hub_cache_remove(place.cache, &name, &n, d);
    bytes_printf(&outcome, ", %lld bytes", (long long)n);
    return err;
}

/* Each of these calls fails once under a run, and none under one after that. */
static void each_fails(const char *const *calls, void (*prepare)(void), err_code (*run)(err_detail *d))
{
    err_detail d = {0};
    int n_calls[40] = {0};
    prepare();
    const int prepared = tree_now();
    one_fails(NULL, 0);
    CHECK_OK(run(&d), d);
    (void)one_fails_over();
    for (size_t i = 0; calls[i]; i++) {
        n_calls[i] = one_fails_counted(calls[i]);
    }
    for (size_t i = 0; calls[i]; i++) {
        for (int n = 1; n <= n_calls[i]; n++) {
            bytes what = bytes_empty(1 << 16);
            if (tree_now() != prepared) {
                prepare();
            }
            for (bool again = false, more = true; more; again = true) {
                d = (err_detail){0};
                bytes_clear(&outcome);
                one_fails(again ? "" : calls[i], n);
                const err_code err = run(&d);
                (void)one_fails_over();
                bytes_append_str(&what, again ? ", then" : "");
                if (!again || err) {
                    bytes_append_str(&what, again ? " " : "");
                    put_outcome(&what, err, &d);
                }
                bytes_printf(&what, "%s%s %d", bytes_str(&outcome), again ? "" : ", tree", tree_now());
                more = !again && err != ERR_OK;
            }
            one_fails_say(&all, calls[i], n, bytes_str(&what));
            bytes_deinit(&what);
        }
    }
    one_fails_say(&all, NULL, 0, NULL);
}

#define OF(list) (files = list, n_files = sizeof list / sizeof *list)

static void test_folders(void)
{
    char path[FOLDER_NAME + 256], hex[2 * HASH_BYTES + 1];
    OF(FOLDER_FILES);
    may = false;
    shown("not wanted", "org/name");
    may = true;
    room_bytes = 5000;
    shown("no room", "org/name");
    room_bytes = 0;
    shown("nobody knows the room; a folder of safetensors", "org/name");
    room_bytes = 1UL << 40;
    shown("it is there", "org/name");
    shown("of another revision", "org/name@a/branch");
    shown("by its commit", "org/name@" COMMIT);
    key_of(&FOLDER_FILES[2], hex);
    snprintf(path, sizeof path, "%s/models--org--name/blobs/%s", folder, hex);
    CHECK(truncate(path, 3) == 0);
    shown("one file is cut", "org/name");
    snprintf(reply, sizeof reply, "%s.incomplete", path);
    CHECK(__real_rename(path, reply) == 0 && truncate(reply, 7) == 0);
    shown("one file is half there", "org/name");
    CHECK(unlink(path) == 0);
    damaged = "model-1.safetensors";
    n_damaged = 1;
    shown("it comes wrong once", "org/name");
    CHECK(unlink(path) == 0);
    n_damaged = 9;
    shown("it always comes wrong", "org/name");
    damaged = NULL;
    place.is_offline = true;
    shown("offline", "org/name");
    place.is_offline = false;
    shown("no such model", "org/other");
    shown("no such quantization", "org/name:Q4_K_M");
    static const repo_file EVIL[] = {{"config.json", "{\"family\":\"evil\"}", false},
                                     {"model.safetensors", "w", true},
                                     {"tokenizer.json", "{}", false}};
    OF(EVIL);
    empty();
    shown("not run here", "org/name");
    static const repo_file NO_INDEX[] = {{"config.json", "{}", false},
                                         {"model.safetensors.index.json", "[", false},
                                         {"model-1.safetensors", "w", true},
                                         {"tokenizer.json", "{}", false}};
    OF(NO_INDEX);
    shown("an index that is none", "org/name");
    static const repo_file SIGNS[] = {{"config.json", "{}", false},
                                      {"model.safetensors.index.json",
                                       "{\"weight_map\":{\"a\":\"m[1]~{\303\251}@Z z`.safetensors\"}}",
                                       false},
                                      {"m[1]~{\303\251}@Z z`.safetensors", "w", true},
                                      {"tokenizer.json", "{}", false}};
    OF(SIGNS);
    is_quiet = true;
    shown("signs in a name; nobody is asked", "org/name");
    is_quiet = false;
}

/* What an earlier try has left of a file. */
static void leave(const repo_file *f, const char *data)
{
    static char path[FOLDER_NAME + 256];
    char hex[2 * HASH_BYTES + 1];
    key_of(f, hex);
    snprintf(path, sizeof path, "%s/models--org--name/blobs/%s.incomplete", folder, hex);
    FILE *out = fopen(path, "w");
    CHECK(out && fputs(data, out) >= 0 && fclose(out) == 0);
}

static void leave_some(void)
{
    static char path[FOLDER_NAME + 256];
    empty();
    snprintf(path, sizeof path, "%s/models--org--name", folder);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/models--org--name/blobs", folder);
    CHECK(mkdir(path, 0700) == 0);
    leave(&FOLDER_FILES[2], "weights, the first part and then some");
    leave(&FOLDER_FILES[3], "weights");
    leave(&FOLDER_FILES[5], "{");
    leave(&FOLDER_FILES[0], FOLDER_FILES[0].data);
    leave(&FOLDER_FILES[9], "tomp");
}

/* A link that is there leads elsewhere; what it led to is not what it was. */
static void test_left_over(void)
{
    char path[FOLDER_NAME + 256], target[128], hex[2 * HASH_BYTES + 1];
    OF(FOLDER_FILES);
    leave_some();
    shown("some of it is there", "org/name");
    for_range = SENDS_ALL;
    leave_some();
    shown("the hub knows no ranges", "org/name");
    for_range = REFUSES;
    leave_some();
    shown("the hub refuses ranges", "org/name");
    for_range = SENDS_REST;
    snprintf(path, sizeof path, "%s/models--org--name/snapshots/" COMMIT "/tokenizer.json", folder);
    key_of(&FOLDER_FILES[0], hex);
    snprintf(target, sizeof target, "../../blobs/%s", hex);
    CHECK(unlink(path) == 0 && symlink(target, path) == 0);
    shown("a link leads to another file", "org/name");
    CHECK(unlink(path) == 0 && symlink("../..", path) == 0);
    shown("a link leads to a folder", "org/name");
    snprintf(path, sizeof path, "%s/models--org--name/snapshots/" COMMIT "/model.safetensors.index.json",
             folder);
    FILE *out = fopen(path, "r+");
    CHECK(out && fputs("[", out) >= 0 && fclose(out) == 0);
    shown("the index that is there is none", "org/name");
    static const int FULL[] = {ENOSPC, EDQUOT, EFBIG};
    for (size_t i = 0; i < ARRAY_LEN(FULL); i++) {
        empty();
        why = FULL[i];
        one_fails("pwrite", 3);
        shown(strerror(why), "org/name");
        CHECK(one_fails_over());
    }
    why = EIO;
}

static void test_gguf(void)
{
    OF(GGUF_FILES);
    empty();
    gguf_rounds = 9;
    shown("the best of several, with a header that never ends", "org/name");
    shown("one of them", "org/name:Q8_0");
    shown("it is there", "org/name:Q8_0");
    shown("not among them", "org/name:Q2_K");
    static const repo_file EVIL[] = {{"m-Q8_0.gguf", "GGUF evil", true}};
    OF(EVIL);
    shown("not run here", "org/name");
}

static void pulled(void)
{
    err_detail d = {0};
    empty();
    CHECK_OK(pull("org/name", &d), d);
    CHECK_OK(pull("org/name:Q8_0", &d), d);
}

static void pulled_folder(void)
{
    err_detail d = {0};
    empty();
    CHECK_OK(pull("org/name@branch", &d), d);
}

static void test_each_call(void)
{
    OF(FOLDER_FILES);
    wanted = "org/name@a/branch";
    bytes_append_str(&all, "each call fails once: a folder\n");
    each_fails(CALLS, empty, pull_it);
    bytes_append_str(&all, "some of it is there\n");
    each_fails(FILE_CALLS, leave_some, pull_it);
    for_range = SENDS_ALL;
    bytes_append_str(&all, "the hub knows no ranges\n");
    each_fails(FILE_CALLS, leave_some, pull_it);
    for_range = REFUSES;
    bytes_append_str(&all, "the hub refuses ranges\n");
    each_fails(FILE_CALLS, leave_some, pull_it);
    for_range = SENDS_REST;
    bytes_append_str(&all, "some of it is listed\n");
    each_fails(CALLS, leave_some, list_it);
    bytes_append_str(&all, "it is listed without its branch\n");
    each_fails(CALLS, pulled_folder, list_it);
    wanted = "org/name@branch";
    bytes_append_str(&all, "it is found\n");
    each_fails(CALLS, pulled_folder, find_it);
    OF(GGUF_FILES);
    wanted = "org/name";
    bytes_append_str(&all, "files of GGUF\n");
    each_fails(CALLS, empty, pull_it);
    bytes_append_str(&all, "they are listed\n");
    each_fails(CALLS, pulled, list_it);
    bytes_append_str(&all, "all is removed\n");
    each_fails(CALLS, pulled, remove_it);
    bytes_append_str(&all, "one is removed\n");
    wanted = "org/name:Q8_0";
    each_fails(CALLS, pulled, remove_it);
}

int main(void)
{
    char url[64];
    bytes_init(&all, (size_t)1 << 24);
    bytes_init(&asked, 1 << 20);
    bytes_init(&told, 1 << 20);
    bytes_init(&outcome, 1 << 20);
    folder_make(folder);
    made_up_answer = answer;
    made_up_world = serve;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", made_up_listen(NULL));
    snprintf(place.endpoint, sizeof place.endpoint, "%s", url);
    snprintf(place.cache, sizeof place.cache, "%s", folder);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    test_folders();
    test_gguf();
    may = true;
    OF(FOLDER_FILES);
    test_left_over();
    test_each_call();
    made_up_close();
    recorded_check("server/hub/pull.txt", bytes_str(&all));
    bytes_deinit(&asked);
    bytes_deinit(&told);
    bytes_deinit(&outcome);
    bytes_deinit(&all);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
