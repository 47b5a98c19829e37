/* Links to chats and the file of all chats: every body and every refusal as a whole. Times and names at random are signs. */
#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/server/history/store.h"

static bytes all;
static history_store *st;
static char token[16][64]; /* in order of their making: #1, #2, ... */
static int n_tokens;
static char hex[2][2 * HASH_BYTES + 1];

/* Tokens become #N, hashes FILE1 and FILE2, times of today @ (in seconds from now if they lie ahead). */
static void record(const char *what, err_code err, const err_detail *d, const bytes *body)
{
    bytes_printf(&all, "%s: ", what);
    if (err != ERR_OK) {
        bytes_printf(&all, "%s %s (%s): %s\n", err_name(err), d->name, d->param, d->text);
        return;
    }
    const int64_t now = history_now_ms();
    for (const char *c = body ? bytes_str(body) : ""; *c;) {
        int found = -1;
        for (int i = 0; i < n_tokens; i++) {
            found = strncmp(c, token[i], strlen(token[i])) == 0 ? i : found;
        }
        int file = strncmp(c, hex[0], 64) == 0 ? 0 : strncmp(c, hex[1], 64) == 0 ? 1 : -1;
        size_t digits = 0;
        while (isdigit((unsigned char)c[digits])) {
            digits++;
        }
        if (found >= 0) {
            bytes_printf(&all, "#%d", found + 1);
            c += strlen(token[found]);
        } else if (file >= 0) {
            bytes_printf(&all, "FILE%d", file + 1);
            c += 64;
        } else if (digits == 13) {
            const int64_t ahead = (strtoll(c, NULL, 10) - now + 30000) / 60000;
            ahead ? bytes_printf(&all, "@+%lldmin", (long long)ahead) : bytes_append_str(&all, "@");
            c += digits;
        } else {
            bytes_append(&all, c, digits ? digits : 1);
            c += digits ? digits : 1;
        }
    }
    bytes_append_char(&all, '\n');
}

static json_doc *parsed(const char *text)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, text, strlen(text), 64, &d), d);
    return doc;
}

static void put(uint64_t scope, const char *id, const char *text)
{
    chat_change change = {0};
    err_detail d = {0};
    json_doc *doc = parsed(text);
    CHECK_OK(history_store_put(st, scope, id, json_root(doc), &change, &d), d);
    json_free(doc);
}

static void share(uint64_t scope, const char *text)
{
    bytes out = bytes_empty(1 << 20);
    err_detail d = {0};
    json_doc *doc = parsed(text);
    const err_code err = history_store_share(st, &out, scope, json_root(doc), &d);
    if (err == ERR_OK) {
        const char *at = strstr(bytes_str(&out), "\"token\":\"");
        snprintf(token[n_tokens], sizeof token[0], "%.*s", at ? (int)strcspn(at + 9, "\"") : 0,
                 at ? at + 9 : "");
        CHECK(strlen(token[n_tokens]) > 20);
        n_tokens += n_tokens < 15;
    }
    record(text, err, &d, &out);
    bytes_deinit(&out);
    json_free(doc);
}

static void shared(const char *what, const char *of)
{
    bytes out = bytes_empty(1 << 20);
    err_detail d = {0};
    const err_code err = history_store_shared(st, &out, of, &d);
    record(what, err, &d, &out);
    bytes_deinit(&out);
}

static void shares(const char *what, uint64_t scope)
{
    bytes out = bytes_empty(1 << 20);
    err_detail d = {0};
    const err_code err = history_store_shares(st, &out, scope, &d);
    record(what, err, &d, &out);
    bytes_deinit(&out);
}

static void unshare(const char *what, uint64_t scope, const char *of)
{
    bytes out = bytes_empty(1 << 20);
    err_detail d = {0};
    const err_code err = history_store_unshare(st, &out, scope, of, &d);
    record(what, err, &d, &out);
    bytes_deinit(&out);
}

static void shared_file(const char *what, const char *of, const char *hash)
{
    file_handle file = {.fd = 99};
    err_detail d = {0};
    char text[64] = "";
    const err_code err = history_store_shared_file(st, of, hash, &file, &d);
    bytes out = bytes_empty(1000);
    if (err == ERR_OK) {
        const ssize_t n = read(file.fd, text, sizeof text - 1);
        bytes_printf(&out, "%lld bytes: %.*s", (long long)file.bytes, (int)(n > 0 ? n : 0), text);
        close(file.fd);
    } else {
        CHECK_INT(file.fd, -1);
    }
    record(what, err, &d, &out);
    bytes_deinit(&out);
}

static void run_sql(const char *sql)
{
    err_detail d = {0};
    database_begin(st->db);
    database_run(st->db, sql);
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
}

static void add_file(int i, const char *content)
{
    file_handle h = {.fd = -1, .bytes = strlen(content)};
    char path[2 * PATH_BYTES];
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/upload", root);
    h.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(h.fd >= 0 && write(h.fd, content, h.bytes) == (ssize_t)h.bytes);
    hash_sha256(h.hash, content, h.bytes);
    hash_hex(hex[i], h.hash, HASH_BYTES);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d), d);
    close(h.fd);
}

static void test_links(void)
{
    char text[4096];
    add_file(0, "picture");
    add_file(1, "clip");
    snprintf(text, sizeof text,
             "{\"revision\":0,\"title\":\"T \\\"1\\\"\",\"head\":\"c\",\"messages\":["
             "{\"id\":\"a\",\"role\":\"user\",\"text\":\"look\",\"created\":5,\"attachments\":["
             "{\"id\":\"x\",\"kind\":\"image\",\"name\":\"n.png\",\"mime\":\"image/"
             "png\",\"width\":3,\"height\":4,\"sha256\":\"%s\"},"
             "{\"id\":\"y\",\"mime\":\"a/b\",\"bytes\":4}]},"
             "{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"text\":\"one\",\"model\":\"m\","
             "\"reasoning\":\"secret\",\"status\":\"done\","
             "\"response_id\":\"r\"},"
             "{\"id\":\"c\",\"parent\":\"a\",\"role\":\"assistant\",\"text\":\"two\"},"
             "{\"id\":\"d\",\"parent\":\"b\",\"role\":\"user\",\"text\":\"more\",\"attachments\":[{\"id\":"
             "\"z\",\"mime\":\"video/mp4\",\"sha256\":\"%s\"}]}]}",
             hex[0], hex[1]);
    put(SCOPE, "one", text);
    put(SCOPE, "empty", "{\"revision\":0,\"title\":\"none\"}");
    put(SCOPE + 1, "foreign",
        "{\"revision\":0,\"title\":\"F\",\"head\":\"a\",\"messages\":[{\"id\":\"a\",\"role\":\"user\","
        "\"text\":\"f\"}]}");
    shares("none yet", SCOPE);
    share(SCOPE, "{\"chat\":\"one\"}");
    share(SCOPE, "{\"chat\":\"one\",\"head\":\"d\",\"expires_in\":3600}");
    share(SCOPE, "{\"chat\":\"one\",\"head\":null,\"expires_in\":null}");
    share(SCOPE, "{\"chat\":\"one\",\"head\":\"a\",\"expires_in\":31622400}");
    share(SCOPE + 1, "{\"chat\":\"foreign\"}");
    share(SCOPE, "{\"chat\":\"one\",\"expires_in\":120}"); /* for the expiry below */
    static const char *const REFUSED[] = {"{\"chat\":\"one\",\"expires_in\":0}",
                                          "{\"chat\":\"one\",\"expires_in\":31622401}",
                                          "{\"chat\":\"one\",\"expires_in\":\"1\"}",
                                          "{\"chat\":\"foreign\"}",
                                          "{}",
                                          "{\"chat\":\"one\",\"head\":\"e\"}",
                                          "{\"chat\":\"empty\"}"};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        share(SCOPE, REFUSED[i]);
    }
    for (int i = 0; i < n_tokens; i++) { /* all were made at once: in an order */
        snprintf(text, sizeof text, "UPDATE shares SET created = created + %d WHERE token = '%s'", i * 1000,
                 token[i]);
        run_sql(text);
    }
    shares("those of one key", SCOPE);
    shares("of another", SCOPE + 1);
    shared("the head", token[0]);
    shared("another branch", token[1]);
    shared("its beginning", token[3]);
    shared("of another key", token[4]);
    shared("no token", "nothing");
    shared_file("its file", token[0], hex[0]);
    shared_file("a file of another branch", token[0], hex[1]);
    shared_file("there it is", token[1], hex[1]);
    shared_file("no hash", token[1], "../x");
    shared_file("no token for it", "nothing", hex[0]);
    run_sql("UPDATE shares SET expires = 1 WHERE expires IS NOT NULL AND expires < created + 180000");
    shared("it has expired", token[5]);
    shared_file("and so has its file", token[5], hex[0]);
    shares("without it", SCOPE);
    database_begin(st->db);
    CHECK_INT(query_returned(database_query(st->db, "SELECT count(*) FROM shares", "")), 6);
    err_detail d = {0};
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    share(SCOPE, "{\"chat\":\"one\",\"head\":\"b\"}"); /* forgets those that have expired */
    database_begin(st->db);
    CHECK_INT(query_returned(database_query(st->db, "SELECT count(*) FROM shares", "")), 6);
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    unshare("of another key", SCOPE + 1, token[0]);
    unshare("taken back", SCOPE, token[0]);
    unshare("again", SCOPE, token[0]);
    shared("taken back", token[0]);
    run_sql("UPDATE messages SET rest = '{' WHERE id = 'a'");
    shared("a damaged message", token[1]);
    /* As many as there may be. */
    snprintf(text, sizeof text,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO "
             "shares(token, chat, head, created)"
             " SELECT 't' || i, (SELECT num FROM chats WHERE id = 'one'), 'b', 1 FROM n",
             LIMIT_HISTORY_SHARES - 5);
    run_sql(text);
    share(SCOPE, "{\"chat\":\"one\",\"head\":\"b\"}");
    share(SCOPE, "{\"chat\":\"one\",\"head\":\"b\"}");
    chat_change change;
    CHECK_OK(history_store_delete(st, SCOPE, "one", ANY_REVISION, &change, &d), d);
    shared("its chat is gone", token[1]);
}

/* Media types that are none are not written into a data: URI. */
static void test_export(void)
{
    static const char *const TYPES[] = {"image/png",  "a/b",   "/png", "image/", "image",
                                        "im age/png", "a/b;c", "A/b",  ""};
    char text[8192], path[64], longest[128];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{\"revision\":0,\"title\":\"e\",\"messages\":[{\"id\":\"a\",\"role\":"
                                "\"user\",\"text\":\"t\",\"attachments\":[");
    add_file(0, "picture");
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES + 2; i++) {
        const char *type = i < sizeof TYPES / sizeof *TYPES ? TYPES[i] : longest;
        const size_t length = i == sizeof TYPES / sizeof *TYPES ? 99 : 100; /* the longest that is one */
        memset(longest, 'l', sizeof longest);
        longest[1] = '/';
        longest[length] = '\0';
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"id\":\"x%zu\",\"mime\":\"%s\",\"sha256\":\"%s\"}", i ? "," : "", i, type,
                              hex[0]);
    }
    snprintf(text + n, sizeof text - n, "]},{\"id\":\"b\",\"role\":\"user\",\"text\":\"u\"}]}");
    put(SCOPE + 2, "empty", "{\"revision\":0}");
    chat_change change;
    err_detail d = {0};
    CHECK_OK(history_store_delete(st, SCOPE, "empty", ANY_REVISION, &change, &d), d);
    put(SCOPE, "e", text);
    file_handle out;
    CHECK_OK(history_store_export(st, SCOPE, &out, &d), d);
    snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
    bytes got = bytes_empty(1 << 20);
    CHECK_OK(file_read(&got, path, &d), d);
    CHECK_INT(got.len, out.bytes);
    close(out.fd);
    record("all chats", ERR_OK, &d, &got);
    /* What comes in again. */
    static const char *const BROKEN[] = {
        "{}",
        "[]",
        "{\"format\":\"parley-chats\"}",
        "{\"format\":\"other\",\"chats\":[]}",
        "{\"format\":\"parley-chats\",\"chats\":{}}",
        "{\"format\":\"parley-chats\",\"chats\":[]}",
        "{\"format\":\"parley-chats\",\"chats\":[1]}",
        "{\"format\":\"parley-chats\",\"chats\":[{\"messages\":1}]}",
        "{\"format\":\"parley-chats\",\"chats\":[{\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":"
        "\"t\",\"attachments\":[{\"data\":\"x\"}]}]}]}",
        "{\"format\":\"parley-chats\",\"chats\":[{\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":"
        "\"t\",\"attachments\":[{\"id\":\"x\",\"mime\":\"a/b\",\"data\":\"data:a/b;base64,eA==\"}]}]}]}"};
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
        json_doc *doc = parsed(BROKEN[i]);
        bytes said = bytes_empty(1000);
        int count = -1;
        d = (err_detail){0};
        const err_code err = history_store_import(st, SCOPE + 9, json_root(doc), &count, &d);
        bytes_printf(&said, "%d chats", count);
        record(BROKEN[i], err, &d, &said);
        bytes_deinit(&said);
        json_free(doc);
    }
    bytes_deinit(&got);
}

int main(void)
{
    folder_make(root);
    log_set_level(LOG_ERROR);
    bytes_init(&all, (size_t)1 << 22);
    st = open_store("shares", QUOTA);
    test_links();
    test_export();
    err_detail d = {0};
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
    CHECK_ALL_CLOSED();
    recorded_check("server/history/shares.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
