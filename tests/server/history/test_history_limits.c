/* history: a process whose files may not grow beyond a size (ulimit -f), and chats that
 * are written in pieces. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "server/history/history_store.h"
#include "tests/server/history/store.h"

enum { MOST = 3 << 20, MESSAGE = 40000 };

static void limit_files(rlim_t most)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

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

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    folder_make(root);
    test_limited();
    test_pieces();
    test_long_name();
    CHECK_DONE();
}
