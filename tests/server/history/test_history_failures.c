/* The store where one call fails: of each function that it uses of the system and of SQLite each call in turn, under each of
 * the things that can be done with chats. What is said, what is logged and what is then kept is recorded as a whole. Time
 * stands still, and what is else at random counts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/open_flags.h"
#include "tests/recorded.h"
#include "tests/server/history/store.h"

/* ---- what can fail ---- */

static int sql_code; /* what a call of SQLite that fails returns */
static int n_ids;
static time_t now_s = 1800000000;

#define EIO_OF(value) (errno = EIO, value)

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t n), (old, n), NULL)
ONE_FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), EIO_OF(-1))
ONE_FAILS(int, flock, (int fd, int how), (fd, how), EIO_OF(-1))
ONE_FAILS(int, fsync, (int fd), (fd), EIO_OF(-1))
ONE_FAILS(int, rename, (const char *from, const char *to), (from, to), EIO_OF(-1))
ONE_FAILS(int, unlink, (const char *path), (path), EIO_OF(-1))
ONE_FAILS(int, unlinkat, (int fd, const char *name, int how), (fd, name, how), EIO_OF(-1))
ONE_FAILS(int, ftruncate, (int fd, off_t n), (fd, n), EIO_OF(-1))
ONE_FAILS(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), ENOSPC)
ONE_FAILS(int, stat, (const char *path, struct stat *out), (path, out), EIO_OF(-1))
ONE_FAILS(int, fstat, (int fd, struct stat *out), (fd, out), EIO_OF(-1))
ONE_FAILS(DIR *, opendir, (const char *path), (path), EIO_OF(NULL))
ONE_FAILS(ssize_t, pread, (int fd, void *out, size_t n, off_t at), (fd, out, n, at), EIO_OF(-1))
ONE_FAILS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), EIO_OF(-1))
ONE_FAILS(int, sqlite3_open_v2, (const char *path, sqlite3 **out, int flags, const char *vfs),
          (path, out, flags, vfs), sql_code)
ONE_FAILS(int, sqlite3_prepare_v3,
          (sqlite3 * db, const char *sql, int n, unsigned flags, sqlite3_stmt **out, const char **tail),
          (db, sql, n, flags, out, tail), sql_code)
ONE_FAILS(int, sqlite3_step, (sqlite3_stmt * statement), (statement), sql_code)
ONE_FAILS(int, sqlite3_exec,
          (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **), void *ctx, char **error),
          (db, sql, row, ctx, error), sql_code)
ONE_FAILS(int, sqlite3_bind_int64, (sqlite3_stmt * s, int at, sqlite3_int64 value), (s, at, value), sql_code)
ONE_FAILS(int, sqlite3_bind_text64,
          (sqlite3_stmt * s, int at, const char *text, sqlite3_uint64 n, void (*drop)(void *),
           unsigned char encoding),
          (s, at, text, n, drop, encoding), sql_code)
ONE_FAILS(int, sqlite3_bind_blob64,
          (sqlite3_stmt * s, int at, const void *data, sqlite3_uint64 n, void (*drop)(void *)),
          (s, at, data, n, drop), sql_code)
ONE_FAILS(int, sqlite3_wal_checkpoint_v2, (sqlite3 * db, const char *name, int how, int *n_log, int *n_done),
          (db, name, how, n_log, n_done), sql_code)

/* How each file was opened, and for how many bytes there was to be room, where nothing fails. */
static char asked[1 << 13];

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (one_fails_counts) {
        char text[OPEN_FLAGS_CHARS];
        const size_t n = strlen(asked), root_chars = strlen(folder_root);
        const size_t skip = strncmp(path, folder_root, root_chars) == 0 ? root_chars : 0;
        snprintf(asked + n, sizeof asked - n, "\n      open DIR%.40s: %s", path + skip,
                 open_flags(text, flags, mode));
    }
    return one_fails_now("open") ? EIO_OF(-1) : __real_open(path, flags, mode);
}

err_code __real_history_check_room(history_store *st, uint64_t n_bytes, err_detail *d);
err_code __wrap_history_check_room(history_store *st, uint64_t n_bytes, err_detail *d);
err_code __wrap_history_check_room(history_store *st, uint64_t n_bytes, err_detail *d)
{
    if (one_fails_counts) {
        const size_t n = strlen(asked);
        snprintf(asked + n, sizeof asked - n, "\n      room for %llu", (unsigned long long)n_bytes);
    }
    return __real_history_check_room(st, n_bytes, d);
}

/* Nobody waits for a disk: these are called by libraries, too. */
int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

int fsync(int fd)
{
    (void)fd;
    return 0;
}

/* A disk on which 512 KiB are free. */
int __wrap_fstatvfs(int fd, struct statvfs *out);
int __wrap_fstatvfs(int fd, struct statvfs *out)
{
    (void)fd;
    *out = (struct statvfs){.f_frsize = 4096, .f_bavail = 128};
    return one_fails_now("fstatvfs") ? EIO_OF(-1) : 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    (void)id;
    *out = (struct timespec){.tv_sec = now_s, .tv_nsec = 123456789};
    return 0;
}

void __wrap_hash_random_id(char *out, size_t cap, const char *prefix);
void __wrap_hash_random_id(char *out, size_t cap, const char *prefix)
{
    snprintf(out, cap, "%sid%d", prefix, ++n_ids);
}

/* Its own words differ from version to version. */
const char *__wrap_sqlite3_errmsg(sqlite3 *db);
const char *__wrap_sqlite3_errmsg(sqlite3 *db)
{
    (void)db;
    return "WORDS";
}

/* ---- what is recorded ---- */

static bytes all;
static int log_fd;
static off_t log_at;

/* Text with the folder of this test as DIR, on one line. */
static void put_text(bytes *out, const char *text)
{
    for (const char *dir; (dir = strstr(text, folder_root)); text = dir + strlen(folder_root)) {
        bytes_printf(out, "%.*sDIR", (int)(dir - text), text);
    }
    bytes_append_str(out, text);
}

/* What was opened and asked for since the last call. */
static void put_asked(bytes *out)
{
    bytes_append_str(out, asked);
    asked[0] = '\0';
}

/* What was logged since the last call. */
static void put_log(bytes *out)
{
    static char text[8192];
    const ssize_t n = __real_pread(log_fd, text, sizeof text - 1, log_at);
    text[n > 0 ? n : 0] = '\0';
    log_at += n > 0 ? n : 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        bytes_append_str(out, "\n      ");
        put_text(out, line);
    }
}

/* Everything that is kept: the rows of each table, and the names and sizes of files. */
static void put_kept(bytes *out, history_store *st, const char *name)
{
    static const struct {
        const char *table, *sql;
    } TABLES[] = {
        {"counter", "SELECT revision FROM counter"},
        {"chats", "SELECT num || ' ' || scope || ' ' || id || ' ' || revision || ' ' || title || ' ' || "
                  "created || ' ' ||"
                  " updated || ' ' || quote(head) || ' ' || options || ' ' || n_messages || ' ' || n_bytes "
                  "FROM chats"},
        {"messages", "SELECT num || ' ' || chat || ' ' || id || ' ' || quote(parent) || ' ' || revision || ' "
                     "' || settled ||"
                     " ' ' || text || ' ' || rest FROM messages"},
        {"files",
         "SELECT scope || ' ' || substr(hex(hash), 1, 6) || ' ' || n_bytes || ' ' || added FROM files"},
        {"named", "SELECT message || ' ' || substr(hex(hash), 1, 6) FROM message_files"},
        {"shares",
         "SELECT token || ' ' || chat || ' ' || head || ' ' || created || ' ' || quote(expires) FROM shares"},
        {"talks", "SELECT num || ' ' || scope || ' ' || id || ' ' || head || ' ' || n_bytes FROM talks"},
        {"items", "SELECT talk || ' ' || place || ' ' || id || ' ' || text FROM talk_items"},
    };
    err_detail d = {0};
    database_begin(st->db);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
        query *q = database_query(st->db, TABLES[i].sql, "");
        for (size_t len; query_step(q);) {
            bytes_printf(out, "    %s %s\n", TABLES[i].table, query_text(q, 0, &len));
        }
    }
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    char path[3 * PATH_BYTES];
    struct dirent **entries = NULL;
    snprintf(path, sizeof path, "%s/files", folder(name));
    const int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            bytes_printf(out, "    file %.12s\n", entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    struct stat reserve;
    snprintf(path, sizeof path, "%s/reserve", folder(name));
    bytes_printf(out, "    reserve %lld\n",
                 __real_stat(path, &reserve) == 0 ? (long long)reserve.st_size : -1);
}

/* The state that is kept, in full when it is first seen, by its number; 0: the one before. */
static int state_of(history_store *st, const char *name)
{
    static char *states[256];
    static int n;
    bytes kept = bytes_empty(1 << 20);
    put_kept(&kept, st, name);
    int i = 0;
    while (i < n && strcmp(states[i], bytes_str(&kept)) != 0) {
        i++;
    }
    if (i == n && n < 256) {
        states[n++] = strdup(bytes_str(&kept));
        bytes_printf(&all, "  state %d:\n%s", i, bytes_str(&kept));
    }
    bytes_deinit(&kept);
    return i;
}

/* ---- folders ---- */

static void copy_file(const char *from, const char *to)
{
    bytes data = bytes_empty(1 << 24);
    err_detail d;
    CHECK_OK(file_read(&data, from, &d), d);
    const int fd = __real_open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && file_write_all(fd, data.data, data.len));
    close(fd);
    bytes_deinit(&data);
}

/* A folder that is as another one. */
static void copy_folder(const char *from, const char *to)
{
    char source[3 * PATH_BYTES], target[3 * PATH_BYTES], name[32];
    snprintf(name, sizeof name, "%s", to);
    folder_remove(folder(name));
    mkdir(folder(name), 0700);
    snprintf(target, sizeof target, "%s/files", folder(name));
    mkdir(target, 0700);
    snprintf(source, sizeof source, "%s/files", folder(from));
    DIR *d = opendir(source);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            snprintf(source, sizeof source, "%s/files/%s", folder(from), e->d_name);
            snprintf(target, sizeof target, "%s/files/%s", folder(name), e->d_name);
            copy_file(source, target);
        }
    }
    if (d) {
        closedir(d);
    }
    snprintf(source, sizeof source, "%s/history.db", folder(from));
    snprintf(target, sizeof target, "%s/history.db", folder(name));
    copy_file(source, target);
}

/* ---- what is done ---- */

static char hex[3][2 * HASH_BYTES + 1]; /* files: of a chat, of nothing, of nothing yet */
static file_handle upload;

/* What is the test's own does not fail. */
static json_doc *parsed(const char *text)
{
    const char *name = one_fails_name;
    json_doc *doc = NULL;
    err_detail d;
    one_fails_name = NULL;
    CHECK_OK(json_parse(&doc, text, strlen(text), 64, &d), d);
    one_fails_name = name;
    return doc;
}

static err_code put(history_store *st, uint64_t scope, const char *id, const char *text, err_detail *d)
{
    chat_change change = {0};
    json_doc *doc = parsed(text);
    const err_code err = history_store_put(st, scope, id, json_root(doc), &change, d);
    json_free(doc);
    return err;
}

static err_code put_new(history_store *st, bytes *out, err_detail *d)
{
    char text[1024];
    (void)out;
    snprintf(
        text, sizeof text,
        "{\"revision\":0,\"title\":\"new\",\"head\":\"b\",\"options\":{\"place\":{\"pinned\":true}},"
        "\"messages\":["
        "{\"id\":\"a\",\"role\":\"user\",\"text\":\"look\",\"attachments\":[{\"id\":\"x\",\"sha256\":\"%s\"}]"
        "},"
        "{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"status\":\"streaming\",\"text\":\"half\"}]}",
        hex[0]);
    return put(st, SCOPE, "new", text, d);
}

static err_code put_again(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return put(st, SCOPE, "one",
               "{\"revision\":1,\"title\":\"changed\",\"updated\":5,\"head\":\"a\",\"messages\":["
               "{\"id\":\"a\",\"role\":\"user\",\"text\":\"other words\"}]}",
               d);
}

static err_code delete_one(history_store *st, bytes *out, err_detail *d)
{
    chat_change change = {0};
    const err_code err = history_store_delete(st, SCOPE, "one", ANY_REVISION, &change, d);
    bytes_printf(out, "revision %lld", (long long)change.revision);
    return err;
}

static err_code add_file(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return history_store_add_file(st, SCOPE, &upload, d);
}

static err_code say_file(bytes *out, err_code err, file_handle *file)
{
    char text[4096];
    const ssize_t n = file->fd < 0 ? 0 : __real_pread(file->fd, text, sizeof text, 0);
    bytes_printf(out, "%s%lld bytes: %.*s", file->fd < 0 ? "no file, " : "", (long long)file->bytes, (int)n,
                 text);
    file_close(file->fd);
    return err;
}

static err_code open_file(history_store *st, bytes *out, err_detail *d)
{
    file_handle file = {.fd = -1};
    return say_file(out, history_store_open_file(st, SCOPE, hex[0], &file, d), &file);
}

static err_code export_all(history_store *st, bytes *out, err_detail *d)
{
    file_handle file = {.fd = -1};
    return say_file(out, history_store_export(st, SCOPE, &file, d), &file);
}

static err_code import_two(history_store *st, bytes *out, err_detail *d)
{
    static const char TEXT[] = "{\"format\":\"parley-chats\",\"chats\":[{\"title\":\"first\",\"messages\":[{"
                               "\"id\":\"a\",\"role\":\"user\","
                               "\"text\":\"t\",\"attachments\":[{\"id\":\"x\",\"data\":\"data:a/"
                               "b;base64,bmV3\"}]}]},{\"title\":\"second\"}]}";
    int n = -1;
    json_doc *doc = parsed(TEXT);
    const err_code err = history_store_import(st, SCOPE + 2, json_root(doc), &n, d);
    json_free(doc);
    bytes_printf(out, "%d chats", n);
    return err;
}

static err_code list_all(history_store *st, bytes *out, err_detail *d)
{
    return history_store_list(st, out, SCOPE, 1, "", NULL, d);
}

static err_code search(history_store *st, bytes *out, err_detail *d)
{
    return history_store_list(st, out, SCOPE, 5, "", "ok look", d);
}

static err_code get(history_store *st, bytes *out, err_detail *d)
{
    return history_store_get(st, out, SCOPE, "one", 0, d);
}

/* How large a database is is SQLite's to say. */
static err_code info(history_store *st, bytes *out, err_detail *d)
{
    bytes text = bytes_empty(1000);
    long long n_bytes = 0;
    const err_code err = history_store_info(st, &text, SCOPE, d);
    const char *at = strstr(bytes_str(&text), "\"bytes\":");
    CHECK(text.failed || (at && sscanf(at, "\"bytes\":%lld", &n_bytes) == 1));
    bytes_printf(out, "%.*s%s", at ? (int)(at - bytes_str(&text)) : 0, bytes_str(&text),
                 n_bytes > 100000 ? "many" : "few");
    bytes_deinit(&text);
    return err;
}

static err_code share(history_store *st, bytes *out, err_detail *d)
{
    static const char TEXT[] = "{\"chat\":\"one\",\"expires_in\":60}";
    json_doc *doc = parsed(TEXT);
    const err_code err = history_store_share(st, out, SCOPE, json_root(doc), d);
    json_free(doc);
    return err;
}

static err_code shares(history_store *st, bytes *out, err_detail *d)
{
    return history_store_shares(st, out, SCOPE, d);
}

static err_code shared(history_store *st, bytes *out, err_detail *d)
{
    return history_store_shared(st, out, "token", d);
}

static err_code shared_file(history_store *st, bytes *out, err_detail *d)
{
    file_handle file = {.fd = -1};
    return say_file(out, history_store_shared_file(st, "token", hex[0], &file, d), &file);
}

static err_code unshare(history_store *st, bytes *out, err_detail *d)
{
    return history_store_unshare(st, out, SCOPE, "token", d);
}

static err_code with_text(err_code (*what)(history_store *, uint64_t, const char *, const bytes *,
                                           err_detail *),
                          history_store *st, const char *id, const char *text, err_detail *d)
{
    const bytes b = {.data = (char *)text, .len = strlen(text), .max = 1 << 20};
    return what(st, SCOPE, id, &b, d);
}

static err_code talk_put(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return with_text(history_talk_put, st, "conv_new", "{\"id\":\"conv_new\"},{\"id\":\"i9\"}", d);
}

static err_code talk_anew(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return with_text(history_talk_put, st, "conv", "{\"id\":\"conv\",\"x\":1},{\"id\":\"i3\"}", d);
}

static err_code talk_add(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return with_text(history_talk_add, st, "conv", "{\"id\":\"i4\"},{\"id\":\"i5\"}", d);
}

static err_code talk_get(history_store *st, bytes *out, err_detail *d)
{
    return history_talk_get(st, SCOPE, "conv", out, d);
}

static err_code talk_item(history_store *st, bytes *out, err_detail *d)
{
    return history_talk_item(st, SCOPE, "i2", out, d);
}

static err_code talk_remove(history_store *st, bytes *out, err_detail *d)
{
    (void)out;
    return history_talk_remove(st, SCOPE, "conv", d);
}

static const struct {
    const char *name;
    err_code (*run)(history_store *st, bytes *out, err_detail *d);
    bool has_codes; /* with each code of CODES, not the first alone */
} THINGS[] = {
    {"put a new chat", put_new, false},
    {"change a chat", put_again, false},
    {"delete a chat", delete_one, true},
    {"add a file", add_file, false},
    {"open a file", open_file, false},
    {"list", list_all, false},
    {"search", search, false},
    {"get", get, true},
    {"info", info, false},
    {"share", share, false},
    {"shares", shares, false},
    {"shared", shared, false},
    {"shared file", shared_file, false},
    {"unshare", unshare, false},
    {"export", export_all, false},
    {"import", import_two, false},
    {"put a new conversation", talk_put, false},
    {"put a conversation again", talk_anew, false},
    {"add to a conversation", talk_add, false},
    {"get a conversation", talk_get, true},
    {"get an item", talk_item, false},
    {"remove a conversation", talk_remove, true},
};

/* ---- one after the other ---- */

static const char *const CALLS[] = {"sqlite3_open_v2",
                                    "sqlite3_prepare_v3",
                                    "sqlite3_bind_int64",
                                    "sqlite3_bind_text64",
                                    "sqlite3_bind_blob64",
                                    "sqlite3_step",
                                    "sqlite3_exec",
                                    "sqlite3_wal_checkpoint_v2",
                                    "calloc",
                                    "malloc",
                                    "realloc",
                                    "open",
                                    "mkdir",
                                    "flock",
                                    "fsync",
                                    "rename",
                                    "unlink",
                                    "unlinkat",
                                    "ftruncate",
                                    "posix_fallocate",
                                    "stat",
                                    "fstat",
                                    "fstatvfs",
                                    "opendir",
                                    "pread",
                                    "write"};

enum { N_CALLS = sizeof CALLS / sizeof *CALLS };
static const char *call_name; /* as it is recorded */

static void count_calls(int n[N_CALLS])
{
    for (size_t i = 0; i < N_CALLS; i++) {
        n[i] = one_fails_counted(CALLS[i]);
    }
}

/* What an error says in full when it is said first; later its names. */
static void put_outcome(bytes *out, err_code err, const err_detail *d)
{
    static char said[1 << 14];
    bytes_append_str(out, err_name(err));
    if (err) {
        bytes_printf(out, " %s%s%s", d->name, d->param[0] ? " of " : "", d->param);
        const size_t used = strlen(said);
        if (d->text[0] && !strstr(said, d->text)) {
            bytes_append_str(out, ": ");
            put_text(out, d->text);
            snprintf(said + used, sizeof said - used, "%s\n", d->text);
        }
    }
}

static history_store *fresh(void)
{
    history_store *st = NULL;
    err_detail d = {0};
    copy_folder("made", "asked");
    CHECK_OK(history_store_open(&st, &(history_options){.dir = folder("asked"), .quota = QUOTA}, &d), d);
    return st;
}

/* A thing while the nth call fails; false: it has no nth call. */
static bool try_thing(history_store **st, size_t thing, const char *call, int n)
{
    bytes out = bytes_empty(1 << 20), text = bytes_empty(1 << 20);
    err_detail d = {0};
    n_ids = 0;
    one_fails(call, n);
    const err_code err = THINGS[thing].run(*st, &out, &d);
    const bool had = one_fails_over();
    const int state = state_of(*st, "asked");
    if (had || !call) {
        put_outcome(&text, err, &d);
        bytes_append_str(&text, out.failed ? ", cut" : "");
        put_asked(&text);
        put_log(&text);
        bytes_append_str(&text, out.len ? "\n      " : "");
        put_text(&text, bytes_str(&out));
        bytes_printf(&text, state ? "\n      state %d" : "", state);
        one_fails_say(&all, call_name, n, bytes_str(&text));
    }
    if (state) {
        history_store_close(*st);
        *st = fresh();
    }
    bytes_deinit(&out);
    bytes_deinit(&text);
    return had;
}

static void test_things(void)
{
    int n_calls[N_CALLS];
    static const struct {
        const char *name;
        int code;
    } CODES[] = {{"full", SQLITE_FULL}, {"disk", SQLITE_IOERR}, {"damaged", SQLITE_CORRUPT}};
    history_store *st = fresh();
    CHECK_INT(state_of(st, "asked"), 0);
    for (size_t thing = 0; thing < sizeof THINGS / sizeof *THINGS; thing++) {
        bytes_printf(&all, "%s\n", THINGS[thing].name);
        call_name = "nothing fails";
        try_thing(&st, thing, NULL, 0);
        count_calls(n_calls);
        one_fails_say(&all, NULL, 0, NULL);
        for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
            const bool is_sql = strncmp(CALLS[i], "sqlite3", 7) == 0;
            const size_t n_codes = is_sql && THINGS[thing].has_codes ? sizeof CODES / sizeof *CODES : 1;
            for (size_t code = 0; code < n_codes; code++) {
                char name[64];
                call_name = name;
                snprintf(name, sizeof name, "%s%s%s", CALLS[i], is_sql ? " " : "",
                         is_sql ? CODES[code].name : "");
                sql_code = CODES[code].code;
                for (int n = 1; n <= n_calls[i] && try_thing(&st, thing, CALLS[i], n); n++) {
                }
                one_fails_say(&all, NULL, 0, NULL);
            }
        }
    }
    history_store_close(st);
}

/* ---- opening ---- */

static bool try_open(const char *what, const char *call, int n)
{
    bytes text = bytes_empty(1 << 20);
    history_store *st = NULL;
    err_detail d = {0};
    const bool is_made = strcmp(what, "made") == 0;
    if (is_made) {
        copy_folder("made", "opened");
    } else {
        folder_remove(folder("opened"));
    }
    n_ids = 0;
    one_fails(call, n);
    const err_code err =
        history_store_open(&st, &(history_options){.dir = folder("opened"), .quota = QUOTA}, &d);
    const bool had = one_fails_over();
    if (had || !call) {
        CHECK((err == ERR_OK) == (st != NULL));
        put_outcome(&text, err, &d);
        put_asked(&text);
        put_log(&text);
        if (!st) { /* the next one finds it sound */
            d = (err_detail){0};
            CHECK_OK(history_store_open(&st, &(history_options){.dir = folder("opened"), .quota = QUOTA}, &d),
                     d);
            put_log(&text);
            bytes_append_str(&text, "\n      then");
        }
        bytes_printf(&text, " state %d", st ? state_of(st, "opened") : -1);
        CHECK_OK(check_store(st, &d), d);
        one_fails_say(&all, call_name, n, bytes_str(&text));
    }
    history_store_close(st);
    bytes_deinit(&text);
    return had;
}

static void test_opening(const char *what)
{
    int n_calls[N_CALLS];
    bytes_printf(&all, "open %s\n", what);
    call_name = "nothing fails";
    try_open(what, NULL, 0);
    count_calls(n_calls);
    one_fails_say(&all, NULL, 0, NULL);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        call_name = CALLS[i];
        sql_code = SQLITE_IOERR;
        for (int n = 1; n <= n_calls[i] && try_open(what, CALLS[i], n); n++) {
        }
        one_fails_say(&all, NULL, 0, NULL);
    }
}

/* What each code of SQLite becomes, when a store is opened and when something is done with it. */
static void test_codes(void)
{
    static const struct {
        const char *name;
        int code;
    } CODES[] = {{"full", SQLITE_FULL},         {"corrupt", SQLITE_CORRUPT},   {"notadb", SQLITE_NOTADB},
                 {"nomem", SQLITE_NOMEM},       {"busy", SQLITE_BUSY},         {"locked", SQLITE_LOCKED},
                 {"ioerr", SQLITE_IOERR},       {"fsync", SQLITE_IOERR_FSYNC}, {"readonly", SQLITE_READONLY},
                 {"cantopen", SQLITE_CANTOPEN}, {"perm", SQLITE_PERM},         {"auth", SQLITE_AUTH},
                 {"misuse", SQLITE_MISUSE},     {"toobig", SQLITE_TOOBIG}};
    history_store *st = fresh();
    bytes_append_str(&all, "codes\n");
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
        call_name = CODES[i].name;
        sql_code = CODES[i].code;
        try_thing(&st, 0, "sqlite3_exec", 1);
        one_fails_say(&all, NULL, 0, NULL);
        try_open("made", "sqlite3_open_v2", 1);
        one_fails_say(&all, NULL, 0, NULL);
    }
    history_store_close(st);
}

static void make_file(int i, const char *content)
{
    char path[3 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/upload", root);
    upload =
        (file_handle){.fd = __real_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), .bytes = strlen(content)};
    CHECK(upload.fd >= 0 && file_write_all(upload.fd, content, upload.bytes));
    hash_sha256(upload.hash, content, upload.bytes);
    hash_hex(hex[i], upload.hash, HASH_BYTES);
}

/* What all of them begin with. */
static void make(void)
{
    char text[1024];
    err_detail d = {0};
    history_store *st = open_store("made", QUOTA);
    now_s -= 5000;
    make_file(0, "picture");
    CHECK_OK(history_store_add_file(st, SCOPE, &upload, &d), d);
    close(upload.fd);
    now_s += 2000;
    make_file(1, "of nobody");
    CHECK_OK(history_store_add_file(st, SCOPE, &upload, &d), d);
    close(upload.fd);
    now_s += 3000;
    snprintf(
        text, sizeof text,
        "{\"revision\":0,\"title\":\"one look\",\"created\":3,\"updated\":4,\"head\":\"a\",\"messages\":["
        "{\"id\":\"a\",\"role\":\"user\",\"text\":\"look\",\"attachments\":["
        "{\"id\":\"x\",\"mime\":\"image/png\",\"sha256\":\"%s\"}]}]}",
        hex[0]);
    CHECK_OK(put(st, SCOPE, "one", text, &d), d);
    CHECK_OK(put(st, SCOPE, "two", "{\"revision\":0,\"title\":\"two\",\"updated\":3}", &d), d);
    CHECK_OK(put(st, SCOPE + 1, "one", "{\"revision\":0,\"title\":\"theirs\"}", &d), d);
    CHECK_OK(with_text(history_talk_put, st, "conv",
                       "{\"id\":\"conv\"},{\"id\":\"i1\"},{\"id\":\"i2\",\"n\":2}", &d),
             d);
    database_begin(st->db);
    database_run(st->db, "INSERT INTO shares VALUES('token', 1, 'a', 5, NULL), ('old', 1, 'a', 6, 7)");
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    history_store_close(st);
    make_file(2, "a new one");
}

int main(void)
{
    bytes_init(&all, (size_t)1 << 24);
    folder_make(root);
    err_detail d = {0};
    CHECK_OK(log_open(folder("log"), &d), d);
    log_fd = open(folder("log"), O_RDONLY);
    log_set_format(LOG_JOURNAL);
    make();
    test_things();
    now_s += 700; /* what nobody names is now old */
    test_opening("made");
    test_opening("nothing");
    test_codes();
    close(upload.fd);
    recorded_check("server/history/failures.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
