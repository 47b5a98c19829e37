/* history: a process whose files may not grow beyond a size (ulimit -f), and chats that
 * are written in pieces. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/history/history_store.h"
#include "tests/said.h"
#include "tests/server/history/store.h"
#include "tests/wrap.h"

enum { MOST = 3 << 20, MESSAGE = 40000 };

static void limit_files(rlim_t most)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* How large the file of chats may grow. */
static uint64_t may_grow_to;
void __real_database_set_max_bytes(database *db, uint64_t n_bytes);
WRAP(void, database_set_max_bytes, (database * db, uint64_t n_bytes), may_grow_to = n_bytes;
     __real_database_set_max_bytes(db, n_bytes);)

static off_t size_of(const char *name)
{
    struct stat st = {0};
    CHECK(stat(folder(name), &st) == 0);
    return st.st_size;
}

/* Appends a message that no other one is like. */
static err_code add(history_store *st, const char *chat, int64_t *revision, int i, err_detail *d)
{
    bytes text = bytes_empty(1 << 20);
    json_doc *doc = NULL;
    chat_change change = {0};
    bytes_printf(&text, "{\"revision\":%lld,\"messages\":[{\"id\":\"m%d\",\"role\":\"user\",\"text\":\"",
                 (long long)*revision, i);
    for (size_t k = 0; k < MESSAGE; k++) {
        bytes_append_char(&text, (char)('a' + (k * k + (size_t)i * 7 + k / 26) % 26));
    }
    bytes_append_str(&text, "\"}]}");
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, 16, d), *d);
    const err_code err = history_store_put(st, SCOPE, chat, json_root(doc), &change, d);
    *revision = err == ERR_OK ? change.revision : *revision;
    json_free(doc);
    bytes_deinit(&text);
    return err;
}

/* Half of what the files may have is for the database, a quarter for its log, so that deleting has room. */
static void test_limited(void)
{
    int64_t revision = 0, other = 0;
    err_detail d = {0};
    chat_change change = {0};
    err_code err = ERR_OK;
    int n = 0;
    limit_files(MOST);
    history_store *st = open_store("limited", QUOTA);
    for (; err == ERR_OK && n < 500; n++) {
        err = add(st, "c", &revision, n, &d);
        CHECK(size_of("limited/history.db-wal") < MOST / 2);
    }
    CHECK_INT(err, ERR_LIMIT);
    CHECK_STR(d.name, "history_full");
    CHECK_STR(
        d.text,
        "there is no room for this on the server: its files may not grow beyond 3 MiB (ulimit -f); delete "
        "chats you no longer need");
    CHECK(n > 5 && n < 100);
    CHECK(size_of("limited/history.db") <= MOST);
    CHECK_OK(history_store_delete(st, SCOPE, "c", ANY_REVISION, &change, &d), d);
    CHECK_OK(add(st, "d", &other, 0, &d), d); /* and there is room again */
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
    limit_files(RLIM_INFINITY);
    st = open_store("limited", QUOTA);
    for (int i = 1; i < n + 5; i++) {
        CHECK_OK(add(st, "d", &other, i, &d), d);
    }
    history_store_close(st);
}

/* A chat that is written in pieces has all of its messages, and is the same where it is taken in. */
static void test_pieces(void)
{
    enum { MESSAGES = 5 };
    int64_t revision = 0;
    err_detail d = {0};
    char path[64];
    file_handle out = {.fd = -1};
    bytes text = bytes_empty(1 << 22), other = bytes_empty(1 << 22);
    history_store *st = open_store("pieces", QUOTA);
    for (int i = 0; i < MESSAGES; i++) {
        CHECK_OK(add(st, "c", &revision, i, &d), d);
    }
    for (int i = 0; i < 2; i++) {
        json_doc *doc = NULL;
        int n = 0;
        CHECK_OK(history_store_export(st, SCOPE + (uint64_t)i, &out, &d), d);
        snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
        CHECK_OK(file_read(i ? &other : &text, path, &d), d);
        close(out.fd);
        if (i == 0) {
            CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, 16, &d), d);
            CHECK_INT(json_len(json_get(json_child(json_get(json_root(doc), "chats")), "messages")),
                      MESSAGES);
            CHECK_OK(history_store_import(st, SCOPE + 1, json_root(doc), &n, &d), d);
            json_free(doc);
        }
    }
    CHECK(text.len > MESSAGES * MESSAGE);
    const char *mine = strstr(bytes_str(&text), "\"messages\":"),
               *its = strstr(bytes_str(&other), "\"messages\":");
    CHECK(mine && its && strcmp(mine, its) == 0);
    history_store_close(st);
    bytes_deinit(&text);
    bytes_deinit(&other);
}

/* A folder's name leaves room for the names below it; what does not is refused before anything is made. */
/* Above the quota is room for what deleting takes first, as far as the process may write it. */
static void test_headroom(void)
{
    enum { HEADROOM = 8 << 20 };
    const uint64_t quota = (uint64_t)64 << 20;
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    for (int more = -1; more <= 1; more++) {
        CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){quota + HEADROOM + (rlim_t)more, before.rlim_max}) ==
              0);
        history_store_close(open_store("headroom", quota));
        CHECK_INT(may_grow_to, quota + HEADROOM - (more < 0));
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    history_store_close(open_store("headroom", quota));
    CHECK_INT(may_grow_to, before.rlim_cur < quota + HEADROOM ? before.rlim_cur : quota + HEADROOM);
}

static void test_long_name(void)
{
    enum { TOO_LONG = sizeof((history_store *)0)->dir };
    char path[TOO_LONG + 1];
    history_store *st = NULL;
    err_detail d = {0};
    const size_t n = strlen(folder("long"));
    memcpy(path, folder("long"), n);
    memset(path + n, '/', TOO_LONG - n);
    path[TOO_LONG] = '\0';
    CHECK_INT(history_store_open(&st, &(history_options){.dir = path, .quota = QUOTA}, &d), ERR_INVALID);
    CHECK_STR(d.text, "the name of the history folder is too long");
    path[TOO_LONG - 1] = '\0';
    CHECK_OK(history_store_open(&st, &(history_options){.dir = path, .quota = QUOTA}, &d), d);
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

/* ---- bounds ---- */

static err_code put(history_store *st, const char *chat, const char *text, size_t len, err_detail *d)
{
    json_doc *doc = NULL;
    chat_change change;
    *d = (err_detail){0};
    err_code err = json_parse(&doc, text, len, 16, d);
    err = err == ERR_OK ? history_store_put(st, SCOPE, chat, json_root(doc), &change, d) : err;
    json_free(doc);
    return err;
}

static err_code put_text(history_store *st, const char *chat, const char *text, err_detail *d)
{
    return put(st, chat, text, strlen(text), d);
}

static int64_t number(history_store *st, const char *sql)
{
    query *q = database_query(st->db, sql, "");
    return query_step(q) ? query_int(q, 0) : -1;
}

static void run(history_store *st, const char *sql)
{
    err_detail d = {0};
    database_begin(st->db);
    database_run(st->db, sql);
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
}

/* What SQLite is told of sizes that it cannot have. */
static void test_sizes(void)
{
    history_store *st = open_store("sizes", UINT64_MAX / 2);
    CHECK_INT(number(st, "PRAGMA max_page_count"), (int64_t)UINT32_MAX - 1);
    database_set_log_bytes(st->db, 1);
    CHECK_INT(number(st, "PRAGMA wal_autocheckpoint"), 1);
    database_set_log_bytes(st->db, 8192);
    CHECK_INT(number(st, "PRAGMA  wal_autocheckpoint"), 2);
    database_set_log_bytes(st->db, UINT64_MAX);
    CHECK_INT(number(st, "PRAGMA   wal_autocheckpoint"), INT32_MAX);
    history_store_close(st);
}

/* Another statement than it keeps is one that fails. */
static void test_statements(void)
{
    static char sql[100][32];
    history_store *st = open_store("statements", QUOTA);
    err_detail d = {0};
    size_t n = 0;
    database_begin(st->db);
    while (n < ARRAY_LEN(sql) && !database_failed(st->db)) {
        snprintf(sql[n], sizeof sql[n], "SELECT %zu", n);
        query *q = database_query(st->db, sql[n], "");
        CHECK(database_failed(st->db) || (query_step(q) && query_int(q, 0) == (int64_t)n));
        CHECK(!database_failed(st->db) || !query_step(q));
        n++;
    }
    CHECK(n > 40 && n <= 65);
    CHECK_INT(database_end(st->db, ERR_OK, &d), ERR_INTERNAL);
    history_store_close(st);
}

/* Both sides of what a key, a chat and a message may have. */
static void test_most(void)
{
    history_store *st = open_store("most", (uint64_t)1 << 30);
    err_detail d = {0};
    char sql[256];
    bytes text = bytes_empty(1 << 22);

#define FIRST                                                                                                \
    "{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"attachments\":null}]}"
#define SECOND                                                                                               \
    "{\"revision\":%d,\"messages\":[{\"id\":\"b\",\"parent\":\"a\",\"role\":\"user\",\"text\":\"%.*s\"}]}"
    int64_t size = 0;
    for (int n = 2; n <= 4; n++) { /* bytes: those of the first, one more than there may be, as many */
        const bool fits = n != 3;
        run(st, "DELETE FROM chats");
        CHECK_OK(put_text(st, "c", FIRST, &d), d);
        CHECK_INT(number(st, "SELECT rest LIKE '%\"attachments\":null}' FROM messages"), 1);
        if (size > 0) {
            snprintf(sql, sizeof sql, "UPDATE chats SET n_bytes = %lld",
                     (long long)LIMIT_HISTORY_CHAT_BYTES - size - (fits ? 2 : 0));
            run(st, sql);
        }
        const int64_t before = number(st, "SELECT n_bytes FROM chats");
        snprintf(sql, sizeof sql, SECOND, (int)number(st, "SELECT revision FROM chats"), n, "uvxy");
        CHECK_INT(put_text(st, "c", sql, &d), fits ? ERR_OK : ERR_LIMIT);
        CHECK_STR(d.name, fits ? "" : "chat_too_large");
        size = n == 2 ? number(st, "SELECT n_bytes FROM chats") - before : size;
    }
#undef FIRST
#undef SECOND

    for (int extra = 1; extra >= 0; extra--) {                 /* options */
        const int n = LIMIT_HISTORY_OPTIONS_BYTES - 8 + extra; /* {"a":""} */
        bytes_clear(&text);
        bytes_printf(&text, "{\"revision\":0,\"options\":{\"a\":\"%0*d\"}}", n, 0);
        CHECK_INT(put(st, "o", bytes_str(&text), text.len, &d), extra ? ERR_INVALID : ERR_OK);
        CHECK_STR(d.param, extra ? "options" : "");
    }

    static uint8_t hash[HASH_BYTES];
    database_begin(st->db);
    query_step(database_query(st->db, "INSERT INTO files VALUES(?1, ?2, 1, 1)", "ib", (int64_t)SCOPE, hash,
                              (size_t)HASH_BYTES));
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    for (int n = LIMIT_HISTORY_ATTACHMENTS + 1; n >= LIMIT_HISTORY_ATTACHMENTS; n--) {
        bytes_clear(&text);
        bytes_append_str(
            &text,
            "{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"attachments\":[");
        for (int i = 0; i < n; i++) {
            bytes_printf(&text, "%s{\"sha256\":\"%064d\"}", i ? "," : "", 0);
        }
        bytes_append_str(&text, "]}]}");
        const bool fits = n == LIMIT_HISTORY_ATTACHMENTS;
        CHECK_INT(put(st, "f", bytes_str(&text), text.len, &d), fits ? ERR_OK : ERR_INVALID);
        CHECK_STR(d.text, fits ? "" : "messages[0].attachments has too many entries");
    }
    /* The first that is wrong is the one that is told, and what follows it is not looked at. */
    CHECK_INT(put_text(st, "w",
                       "{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\","
                       "\"attachments\":[{\"sha256\":\"x\"},5],\"more\":1}]}",
                       &d),
              ERR_INVALID);
    CHECK_STR(d.text, "messages[0].attachments has a sha256 that is not 64 hexadecimal digits");

    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d - (SELECT count(*) FROM "
        "chats)) INSERT INTO chats SELECT 1000 + i, %d, 'n' || i, 1, '', 0, 0, NULL, '{}', 0, 0 FROM n",
        LIMIT_HISTORY_CHATS - 1, SCOPE);
    run(st, sql);
    CHECK_OK(put_text(st, "last", "{\"revision\":0}", &d), d);
    CHECK_INT(put_text(st, "more", "{\"revision\":0}", &d), ERR_LIMIT);
    CHECK_STR(d.text, "100000 chats are kept already; delete some you no longer need");
    history_store_close(st);

    st = open_store("most", 1); /* what is there already is more than it may be now */
    CHECK_INT(put_text(st, "c", "{\"revision\":\"\"}", &d), ERR_LIMIT);
    CHECK_STR(d.name, "history_full");
    history_store_close(st);
    bytes_deinit(&text);
}

/* Both sides of what all of it may have, its files among it, and of what the database may have. */
static void test_room(void)
{
    history_store *st = open_store("room", QUOTA);
    err_detail d = {0};
    run(st, "INSERT INTO files VALUES(7, x'00', 1000, 1), (8, x'01', 100, 1)");
    const uint64_t of_database = database_used_bytes(st->db), used = of_database + 1100;
    CHECK(of_database > 0 && of_database % 4096 == 0);
    st->quota = used + 5;
    CHECK_OK(history_check_room(st, 5, &d), d);
    CHECK_INT(history_check_room(st, 6, &d), ERR_LIMIT);
    CHECK_STR(d.name, "history_full");
    st->quota = used;
    CHECK_OK(history_check_room(st, 0, &d), d);
    CHECK_INT(history_check_room(st, 1, &d), ERR_LIMIT);
    st->quota = used - 1;
    CHECK_INT(history_check_room(st, 0, &d), ERR_LIMIT);
    st->quota = 3 << 20;
    CHECK_INT(history_check_room(st, QUOTA, &d), ERR_LIMIT);
    CHECK_STR(d.text,
              "there is no room for this on the server: its history may take 3 MiB (--history-quota); delete "
              "chats you no longer need");
    st->database_quota = of_database;
    CHECK_OK(history_check_room(st, 1, &d), d);
    st->database_quota = of_database - 1;
    CHECK_INT(history_check_room(st, 0, &d), ERR_LIMIT);
    history_store_close(st);
}

static void test_cursors(void)
{
    static const char *const WRONG[] = {"x", "_", "5", "_6", "5_", "5_6x", "5x_6", "5_x"};
    history_store *st = open_store("cursors", QUOTA);
    err_detail d = {0};
    bytes out = bytes_empty(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        CHECK_INT(history_store_list(st, &out, SCOPE, 5, WRONG[i], NULL, &d), ERR_INVALID);
        CHECK_STR(d.param, "after");
    }
    CHECK_OK(history_store_list(st, &out, SCOPE, 5, "5_6", NULL, &d), d);
    bytes_deinit(&out);
    history_store_close(st);
}

/* What lies in the folder and is not as it should be. */
static void test_odd_folders(void)
{
    err_detail d = {0};
    history_store *st = open_store("odd", QUOTA);
    database_begin(st->db);
    database_set_version(st->db, -1);
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    history_store_close(st);
    st = NULL;
    CHECK_INT(history_store_open(&st, &(history_options){.dir = folder("odd"), .quota = QUOTA}, &d),
              ERR_UNSUPPORTED);

    int64_t revision = 0;
    CHECK(mkdir(folder("reserved"), 0700) == 0 && mkdir(folder("reserved/reserve"), 0700) == 0);
    st = open_store("reserved", QUOTA); /* there is nothing set aside, and deleting goes without */
    CHECK_INT(st->reserve_fd, -1);
    CHECK_OK(add(st, "c", &revision, 0, &d), d);
    CHECK(history_make_room(st));
    history_give_back(st);
    CHECK_INT(st->reserve_fd, -1);
    st->reserve_fd = open(folder("reserved/lock"), O_RDONLY); /* one that cannot be written */
    log_set_level(LOG_WARN);
    said_begin();
    history_reserve_free(st);
    history_reserve_fill(st);
    said_end();
    log_set_level(LOG_OFF);
    CHECK_HAS(said_err, "/reserved: the room set aside for deleting cannot be freed\n");
    CHECK_HAS(said_err, "/reserved: no room could be set aside for deleting\n");
    CHECK_OK(add(st, "c", &revision, 1, &d), d);
    CHECK(query_step(database_query(st->db, "SELECT num FROM messages", ""))); /* its row is no hindrance */
    CHECK(size_of("reserved/history.db-wal") > 0);
    database_checkpoint(st->db);
    CHECK_INT(size_of("reserved/history.db-wal"), 0);
    chat_change change;
    CHECK_OK(history_store_delete(st, SCOPE, "c", ANY_REVISION, &change, &d), d);
    history_store_close(st);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    folder_make(root);
    test_limited();
    test_pieces();
    test_headroom();
    test_long_name();
    log_set_level(LOG_OFF);
    test_sizes();
    test_statements();
    test_most();
    test_room();
    test_cursors();
    test_odd_folders();
    CHECK_DONE();
}
