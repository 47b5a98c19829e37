/* history_store: chats and their files in a folder. What was acknowledged is there after the
 * process was killed at any point; a full, damaged, newer or forbidden folder is said so and loses
 * nothing. */
#include "server/history/history_store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "tests/open_files.h"
#include "tests/server/history/store.h"

enum { KILLS = 10 /* PARLEY_KILLS: more of them */ };

static err_code put(history_store *st, uint64_t scope, const char *id, const char *text, chat_change *change,
                    err_detail *d)
{
    json_doc *doc = NULL;
    *change = (chat_change){0};
    err_code err = json_parse(&doc, text, strlen(text), 64, d);
    err = err == ERR_OK ? history_store_put(st, scope, id, json_root(doc), change, d) : err;
    json_free(doc);
    return err;
}

/* The chat as text, or "" if there is none. */
static const char *get(history_store *st, uint64_t scope, const char *id, int64_t since)
{
    static bytes out;
    bytes_deinit(&out);
    bytes_init(&out, 64 << 20);
    return history_store_get(st, &out, scope, id, since, NULL) == ERR_OK ? bytes_str(&out) : "";
}

static const char *list(history_store *st, uint64_t scope, int limit, const char *after, const char *words)
{
    static bytes out;
    err_detail d = {0};
    bytes_deinit(&out);
    bytes_init(&out, 64 << 20);
    CHECK_OK(history_store_list(st, &out, scope, limit, after, words, &d), d);
    return bytes_str(&out);
}

/* Whether a search finds exactly the chats whose ids are given, each with a comma, the latest
 * first. */
static void check_search(history_store *st, const char *words, const char *expected)
{
    char found[256] = "";
    const char *p = list(st, SCOPE, 100, "", words);
    while ((p = strstr(p, "{\"id\":\""))) {
        p += 7;
        const size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%.*s,", (int)strcspn(p, "\""), p);
    }
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "  search for \"%s\"\n", words);
    }
    CHECK_STR(found, expected);
}

static void test_chats(void)
{
    history_store *st = open_store("chats", QUOTA);
    chat_change change, other;
    err_detail d = {0};
    char text[512];
    CHECK_OK(
        put(st, SCOPE, "c_1",
            "{\"revision\":0,\"title\":\"Sheep \\u00e4\",\"created\":1000,\"updated\":2000,\"head\":\"m_2\","
            "\"options\":{\"temperature\":0.50},\"messages\":["
            "{\"id\":\"m_1\",\"parent\":null,\"role\":\"user\",\"text\":\"say "
            "\\\"hi\\\"\\n\",\"created\":1.5},"
            "{\"id\":\"m_2\",\"parent\":\"m_1\",\"role\":\"assistant\",\"text\":\"hi\",\"status\":\"done\"}]"
            "}",
            &change, &d),
        d);
    CHECK(change.revision > 0);
    snprintf(
        text, sizeof text,
        "{\"id\":\"c_1\",\"title\":\"Sheep \xc3\xa4\",\"created\":1000,\"updated\":2000,\"revision\":%lld,"
        "\"n_messages\":2,\"object\":\"chat\",\"head\":\"m_2\",\"options\":{\"temperature\":0.50},"
        "\"messages\":["
        "{\"text\":\"say \\\"hi\\\"\\n\",\"id\":\"m_1\",\"parent\":null,\"role\":\"user\",\"created\":1.5},"
        "{\"text\":\"hi\",\"id\":\"m_2\",\"parent\":\"m_1\",\"role\":\"assistant\",\"status\":\"done\"}]}",
        (long long)change.revision);
    CHECK_STR(get(st, SCOPE, "c_1", 0), text);

    /* Only what is given changes, and only what changed is given back. */
    const long long first = change.revision;
    snprintf(text, sizeof text,
             "{\"revision\":%lld,\"updated\":3000,\"messages\":[{\"id\":\"m_3\",\"parent\":\"m_1\",\"role\":"
             "\"assistant\",\"text\":\"ho\"}]}",
             first);
    CHECK_OK(put(st, SCOPE, "c_1", text, &change, &d), d);
    CHECK(change.revision > first);
    const char *newer = get(st, SCOPE, "c_1", first);
    CHECK(strstr(newer, "m_3") && !strstr(newer, "\"id\":\"m_1\"") && strstr(newer, "\"n_messages\":3"));

    /* Who has not seen the latest revision is told it, and nothing is changed. */
    CHECK_INT(put(st, SCOPE, "c_1", text, &other, &d), ERR_INVALID);
    CHECK_STR(d.name, "revision_conflict");
    CHECK_INT(other.revision, change.revision);
    CHECK_INT(put(st, SCOPE, "c_1", "{\"revision\":0}", &other, &d), ERR_INVALID);
    CHECK_STR(d.name, "revision_conflict");
    CHECK_INT(put(st, SCOPE, "c_2", "{\"revision\":3}", &other, &d), ERR_NOT_FOUND);
    CHECK(strstr(get(st, SCOPE, "c_1", 0), "\"n_messages\":3"));

    /* Of another key nothing is seen, and the same id is another chat. */
    CHECK_STR(get(st, SCOPE + 1, "c_1", 0), "");
    CHECK_INT(history_store_delete(st, SCOPE + 1, "c_1", ANY_REVISION, &other, &d), ERR_NOT_FOUND);
    CHECK_OK(put(st, SCOPE + 1, "c_1", "{\"revision\":0,\"title\":\"theirs\"}", &other, &d), d);
    CHECK(strstr(list(st, SCOPE, 10, "", NULL), "Sheep") && !strstr(list(st, SCOPE, 10, "", NULL), "theirs"));

    /* What was written since the deleting device looked is not lost. */
    const int64_t latest = change.revision;
    CHECK_INT(history_store_delete(st, SCOPE, "c_1", latest - 1, &other, &d), ERR_INVALID);
    CHECK_STR(d.name, "revision_conflict");
    CHECK_INT(other.revision, latest);
    CHECK(strstr(get(st, SCOPE, "c_1", 0), "\"n_messages\":3"));
    CHECK_OK(history_store_delete(st, SCOPE, "c_1", latest, &change, &d), d);
    CHECK_STR(get(st, SCOPE, "c_1", 0), "");
    CHECK_STR(list(st, SCOPE, 10, "", NULL), "{\"object\":\"list\",\"data\":[],\"next\":null}");
    CHECK_OK(put(st, SCOPE, "c_1", "{\"revision\":0}", &other, &d), d);
    CHECK(other.revision > change.revision); /* a revision never comes again */
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *name, *param;
    } CASES[] = {
        {"[]", "invalid_type", ""},
        {"{}", "missing_field", "revision"},
        {"{\"revision\":\"1\"}", "missing_field", "revision"},
        {"{\"revision\":0,\"title\":7}", "invalid_value", "title"},
        {"{\"revision\":0,\"updated\":-1}", "invalid_value", "updated"},
        {"{\"revision\":0,\"created\":1.5}", "invalid_value", "created"},
        {"{\"revision\":0,\"options\":[]}", "invalid_value", "options"},
        {"{\"revision\":0,\"head\":\"m\"}", "invalid_value", "head"},
        {"{\"revision\":0,\"messages\":{}}", "invalid_value", "messages"},
        {"{\"revision\":0,\"messages\":[7]}", "invalid_value", "messages[0]"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a b\"}]}", "invalid_value", "messages[0].id"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"x\"}]}", "invalid_value",
         "messages[0].role"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\"}]}", "invalid_value",
         "messages[0].text"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"parent\":\"b\"},"
         "{\"id\":\"b\",\"role\":\"user\",\"text\":\"\",\"parent\":\"a\"}]}",
         "invalid_value", "messages[0].parent"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\"},{\"id\":\"b\","
         "\"role\":\"user\","
         "\"text\":\"\"},{\"id\":\"b\",\"role\":\"user\",\"text\":\"\",\"parent\":\"a\"}]}",
         "invalid_value", "messages[2].parent"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"attachments\":{}}]}",
         "invalid_value", "messages[0].attachments"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"attachments\":[{"
         "\"sha256\":\"x\"}"
         "]}]}",
         "invalid_value", "messages[0].attachments"},
        {"{\"revision\":0,\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"\",\"attachments\":[{"
         "\"sha256\":"
         "\"0000000000000000000000000000000000000000000000000000000000000000\"}]}]}",
         "file_not_found", "messages"},
    };
    history_store *st = open_store("refused", QUOTA);
    chat_change change;
    err_detail d = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        CHECK(put(st, SCOPE, "c", CASES[i].text, &change, &d) != ERR_OK);
        CHECK_STR(d.name, CASES[i].name);
        CHECK_STR(d.param, CASES[i].param);
        CHECK_STR(get(st, SCOPE, "c", 0), ""); /* all of it or nothing */
    }
    CHECK_INT(put(st, SCOPE, "../x", "{\"revision\":0}", &change, &d), ERR_INVALID);
    CHECK_INT(history_store_list(st, &(bytes){.max = 999}, SCOPE, 5, "1-2", NULL, &d), ERR_INVALID);
    CHECK_STR(d.param, "after");
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

/* The longest title is kept, one more byte is refused. */
static void test_title(void)
{
    history_store *st = open_store("title", QUOTA);
    chat_change change;
    err_detail d = {0};
    char text[2 * LIMIT_HISTORY_TITLE_BYTES];
    snprintf(text, sizeof text, "{\"revision\":0,\"title\":\"%0*d\"}", LIMIT_HISTORY_TITLE_BYTES, 1);
    CHECK_OK(put(st, SCOPE, "longest", text, &change, &d), d);
    snprintf(text, sizeof text, "{\"revision\":0,\"title\":\"%0*d\"}", LIMIT_HISTORY_TITLE_BYTES + 1, 1);
    CHECK_INT(put(st, SCOPE, "longer", text, &change, &d), ERR_INVALID);
    CHECK_STR(d.param, "title");
    history_store_close(st);
}

/* One message more than a chat may have: none of them is kept. */
static void test_too_many_messages(void)
{
    history_store *st = open_store("many", (uint64_t)1 << 30);
    chat_change change;
    err_detail d = {0};
    bytes text;
    bytes_init(&text, 64 << 20);
    bytes_append_str(&text, "{\"revision\":0,\"messages\":[");
    for (int i = 0; i <= LIMIT_HISTORY_MESSAGES; i++) {
        bytes_printf(&text, "%s{\"id\":\"m%d\",\"role\":\"user\",\"text\":\"\"}", i ? "," : "", i);
    }
    bytes_append_str(&text, "]}");
    CHECK_INT(put(st, SCOPE, "c", bytes_str(&text), &change, &d), ERR_LIMIT);
    CHECK_STR(d.name, "chat_too_large");
    CHECK_STR(get(st, SCOPE, "c", 0), "");
    bytes_deinit(&text);
    history_store_close(st);
}

static void test_search(void)
{
    history_store *st = open_store("search", QUOTA);
    chat_change change;
    err_detail d = {0};
    CHECK_OK(put(st, SCOPE, "one",
                 "{\"revision\":0,\"updated\":1,\"title\":\"Stra\\u00dfe nach Z\\u00dcRICH\",\"messages\":["
                 "{\"id\":\"a\",\"role\":\"user\",\"text\":\"Where are 100% of the \\\"sheep\\\"?\"},"
                 "{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"text\":\"On the meadow.\"}]}",
                 &change, &d),
             d);
    CHECK_OK(put(st, SCOPE, "two",
                 "{\"revision\":0,\"updated\":2,\"title\":\"\",\"messages\":[{\"id\":\"a\",\"role\":\"user\","
                 "\"text\":"
                 "\"\\u6771\\u4eac\\u306e\\u5929\\u6c17 "
                 "meadows\"},{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\","
                 "\"status\":\"streaming\",\"text\":\"unfinished\"}]}",
                 &change, &d),
             d);
    const int64_t revision = change.revision;
    CHECK_OK(put(st, SCOPE + 1, "foreign", "{\"revision\":0,\"title\":\"meadow\"}", &change, &d), d);
    check_search(st, "meadow", "two,one,");
    check_search(st, "MEADOW sheep", "one,");       /* words may stand in different messages */
    check_search(st, "eado z\xc3\xbcrich", "one,"); /* title and text, any part of a word, any case */
    check_search(st, "\"sheep\"?", "one,");
    check_search(st, "100%", "one,");
    check_search(st, "0%", "one,"); /* shorter than what the index knows */
    check_search(st, "%%", "");
    check_search(st, "\xe6\x9d\xb1\xe4\xba\xac", "two,");
    check_search(st, "x' OR 1=1 --", "");
    check_search(st, "meadow AND sheep*", "");
    check_search(st, "  ", "two,one,");
    check_search(st, "me ea ad do ow m e a nowhere", "two,one,"); /* of nine words the last is left out */
    check_search(st, "me ea ad do ow m e nowhere", "");
    check_search(st, "unfinished", ""); /* an answer is found once it is there */
    char text[256];
    snprintf(text, sizeof text,
             "{\"revision\":%lld,\"title\":\"renamed\",\"messages\":[{\"id\":\"b\",\"parent\":\"a\",\"role\":"
             "\"assistant\","
             "\"status\":\"done\",\"text\":\"finished\"}]}",
             (long long)revision);
    CHECK_OK(put(st, SCOPE, "two", text, &change, &d), d);
    check_search(st, "finished renamed", "two,");
    check_search(st, "unfinished", "");
    CHECK_OK(history_store_delete(st, SCOPE, "two", ANY_REVISION, &change, &d), d);
    check_search(st, "finished", "");
    check_search(st, "meadow", "one,");
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

/* SQLite before 3.46 adds levels to an index with each merge that has something to do, and opens none of more
 * than 2,000. n merges of the index of a history with a chat that is still being answered. */
static void check_merged(int n)
{
    enum { KEPT = 200 };
    char path[3 * PATH_BYTES], name[32];
    err_detail d = {0};
    chat_change change;
    snprintf(name, sizeof name, "merged-%d", n);
    history_store *st = open_store(name, QUOTA);
    CHECK_OK(put(st, SCOPE, "a",
                 "{\"revision\":0,\"title\":\"kept\",\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":"
                 "\"old words\"},"
                 "{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"status\":\"streaming\",\"text\":"
                 "\"half\"}]}",
                 &change, &d),
             d);
    const int64_t revision = change.revision;
    history_store_close(st);
    database *db = NULL;
    snprintf(path, sizeof path, "%s/history.db", folder(name));
    CHECK_OK(database_open(&db, path, &d), d);
    database_run(db, "PRAGMA synchronous = OFF");
    for (int64_t i = 1; i <= n + KEPT; i++) { /* each statement is a commit, and so a part of the index */
        query_step(database_query(
            db, "INSERT INTO text_search(rowid, text) VALUES(1000 + ?1, 'words of the text ' || ?1)", "i",
            i));
        if (i > KEPT) {
            query_step(database_query(db,
                                      "INSERT INTO text_search(text_search, rowid, text)"
                                      " VALUES('delete', 1000 + ?1, 'words of the text ' || ?1)",
                                      "i", i - KEPT));
        }
        query_step(
            database_query(db, "INSERT INTO text_search(text_search, rank) VALUES('merge', -500)", ""));
    }
    database_begin(db);
    /* the record of its levels, two bytes each */
    query *q = database_query(db, "SELECT length(block) FROM text_search_data WHERE id = 10", "");
    const bool many = query_returned(q) > (int64_t)2 * n;
    q = database_query(db, "SELECT CAST(substr(sqlite_version(), 3) AS REAL) < 46", "");
    CHECK(many || !query_returned(q));
    CHECK_OK(database_end(db, ERR_OK, &d), d);
    database_close(db);
    st = open_store(name, QUOTA);
    check_search(st, "old words", "a,");
    check_search(st, "half", "");
    char text[256];
    snprintf(
        text, sizeof text,
        "{\"revision\":%lld,\"messages\":[{\"id\":\"b\",\"parent\":\"a\",\"role\":\"assistant\",\"status\":"
        "\"done\",\"text\":\"whole\"}]}",
        (long long)revision);
    CHECK_OK(put(st, SCOPE, "a", text, &change, &d), d);
    check_search(st, "whole", "a,");
    CHECK_OK(check_store(st, &d), d);
    CHECK_OK(history_store_delete(st, SCOPE, "a", ANY_REVISION, &change, &d), d);
    CHECK_OK(put(st, SCOPE, "new", "{\"revision\":0,\"title\":\"new\"}", &change, &d), d);
    check_search(st, "words", "");
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

static void test_many_merges(void)
{
    check_merged(700);
    check_merged(1200); /* too late for SQLite */
}

static void test_pages(void)
{
    history_store *st = open_store("pages", QUOTA);
    chat_change change;
    err_detail d = {0};
    char id[16], text[64], after[64] = "", seen[256] = "";
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "c%d", i);
        snprintf(text, sizeof text, "{\"revision\":0,\"updated\":%d}",
                 100 + i / 3); /* some at the same time */
        CHECK_OK(put(st, SCOPE, id, text, &change, &d), d);
    }
    for (int n_pages = 0; n_pages < 9; n_pages++) {
        const char *page = list(st, SCOPE, 3, after, NULL);
        for (const char *p = page; (p = strstr(p, "{\"id\":\"")); p += 7) {
            strncat(seen, p + 7, 2);
        }
        const char *next = strstr(page, "\"next\":\"");
        if (!next) {
            CHECK_INT(n_pages, 3);
            break;
        }
        snprintf(after, sizeof after, "%.*s", (int)strcspn(next + 8, "\""), next + 8);
    }
    CHECK_STR(seen, "c9c8c7c6c5c4c3c2c1c0");
    history_store_close(st);
}

static file_handle make_file(const char *content)
{
    file_handle h = {.fd = -1, .bytes = strlen(content)};
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/upload", root);
    h.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(h.fd >= 0 && write(h.fd, content, h.bytes) == (ssize_t)h.bytes);
    hash_sha256(h.hash, content, h.bytes);
    return h;
}

static const char *with_file(const file_handle *h)
{
    static char text[512];
    char hex[2 * HASH_BYTES + 1];
    hash_hex(hex, h->hash, HASH_BYTES);
    snprintf(text, sizeof text,
             "{\"revision\":0,\"title\":\"t\",\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":"
             "\"look\",\"attachments\":"
             "[{\"id\":\"x\",\"mime\":\"image/png\",\"sha256\":\"%s\"}]}]}",
             hex);
    return text;
}

static void test_files(void)
{
    history_store *st = open_store("files", QUOTA);
    chat_change change;
    err_detail d = {0};
    char content[16] = "", hex[2 * HASH_BYTES + 1], path[3 * PATH_BYTES];
    file_handle h = make_file("picture bytes"), out;
    hash_hex(hex, h.hash, HASH_BYTES);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d), d);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d), d); /* again: it is there */
    snprintf(path, sizeof path, "%s/files/%s", folder("files"), hex);
    CHECK(truncate(path, 5) == 0);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d),
             d); /* of which only a part is there: whole once more */
    CHECK_OK(put(st, SCOPE, "c", with_file(&h), &change, &d), d);
    CHECK(strstr(get(st, SCOPE, "c", 0), hex) != NULL);
    CHECK_OK(history_store_open_file(st, SCOPE, hex, &out, &d), d);
    CHECK_INT(read(out.fd, content, sizeof content), 13);
    CHECK_STR(content, "picture bytes");
    close(out.fd);
    CHECK_INT(history_store_open_file(st, SCOPE + 1, hex, &out, &d), ERR_NOT_FOUND);
    CHECK_INT(put(st, SCOPE + 1, "c", with_file(&h), &change, &d), ERR_NOT_FOUND);
    CHECK_INT(history_store_open_file(st, SCOPE, "../../etc/passwd", &out, &d), ERR_NOT_FOUND);
    database_run(st->db, "ALTER TABLE files RENAME TO away"); /* what cannot be asked is no answer */
    CHECK_INT(history_store_open_file(st, SCOPE, hex, &out, &d), ERR_INTERNAL);
    CHECK(out.fd < 0);
    database_run(st->db, "ALTER TABLE away RENAME TO files");

    /* A file leaves with its last chat, but not at once (a chat may be about to name it); leftovers
     * go at the start. */
    snprintf(path, sizeof path, "%s/files/%s", folder("files"), hex);
    CHECK_OK(history_store_delete(st, SCOPE, "c", ANY_REVISION, &change, &d), d);
    CHECK(file_exists(path));
    history_store_close(st);
    char old[3 * PATH_BYTES];
    snprintf(old, sizeof old, "%s/files/temporary-1", folder("files"));
    close(open(old, O_CREAT | O_WRONLY, 0600));
    database *db = NULL;
    snprintf(path, sizeof path, "%s/history.db", folder("files"));
    CHECK_OK(database_open(&db, path, &d), d);
    database_begin(db);
    database_run(db, "UPDATE files SET added = 1");
    CHECK_OK(database_end(db, ERR_OK, &d), d);
    database_close(db);
    st = open_store("files", QUOTA);
    snprintf(path, sizeof path, "%s/files/%s", folder("files"), hex);
    CHECK(!file_exists(path) && !file_exists(old));
    history_store_close(st);
    close(h.fd);
}

/* A file that is written in pieces is the same where it is taken in. */
static void test_large_file(void)
{
    static char content[100001];
    char path[64], hex[2 * HASH_BYTES + 1];
    memset(content, 'x', sizeof content - 1);
    history_store *st = open_store("large", QUOTA);
    chat_change change;
    err_detail d = {0};
    bytes text = bytes_empty(1 << 20);
    json_doc *doc = NULL;
    int n = 0;
    file_handle h = make_file(content), out;
    hash_hex(hex, h.hash, HASH_BYTES);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d), d);
    CHECK_OK(put(st, SCOPE, "c", with_file(&h), &change, &d), d);
    CHECK_OK(history_store_export(st, SCOPE, &out, &d), d);
    snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
    CHECK_OK(file_read(&text, path, &d), d);
    close(out.fd);
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, 64, &d), d);
    CHECK_OK(history_store_import(st, SCOPE + 1, json_root(doc), &n, &d), d);
    CHECK_OK(history_store_open_file(st, SCOPE + 1, hex, &out, &d), d);
    CHECK_INT(out.bytes, sizeof content - 1);
    close(out.fd);
    close(h.fd);
    json_free(doc);
    bytes_deinit(&text);
    history_store_close(st);
}

static void test_transfer(void)
{
    history_store *st = open_store("transfer", QUOTA);
    chat_change change;
    err_detail d = {0};
    bytes text;
    char path[64], hex[2 * HASH_BYTES + 1];
    file_handle h = make_file("picture bytes!"), out;
    hash_hex(hex, h.hash, HASH_BYTES);
    CHECK_OK(history_store_add_file(st, SCOPE, &h, &d), d);
    CHECK_OK(put(st, SCOPE, "c", with_file(&h), &change, &d), d);
    CHECK_OK(put(st, SCOPE + 1, "foreign", "{\"revision\":0}", &change, &d), d);
    CHECK_OK(history_store_export(st, SCOPE, &out, &d), d);
    snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
    bytes_init(&text, 1 << 20);
    CHECK_OK(file_read(&text, path, &d), d);
    CHECK_INT(text.len, out.bytes);
    close(out.fd);
    CHECK(strstr(bytes_str(&text), "\"data\":\"data:image/png;base64,cGljdHVyZSBieXRlcyE=\""));
    CHECK(!strstr(bytes_str(&text), "foreign"));

    /* Into an empty history of somebody else: the same chat under a new id, with its file. */
    json_doc *doc = NULL;
    int n = 0;
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, 64, &d), d);
    CHECK_OK(history_store_import(st, SCOPE + 2, json_root(doc), &n, &d), d);
    CHECK_INT(n, 1);
    const char *id = strstr(list(st, SCOPE + 2, 10, "", NULL), "\"id\":\"") + 6;
    char copy[CHAT_ID_MAX];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(id, "\""), id);
    const char *mine = strstr(get(st, SCOPE, "c", 0), "\"messages\":");
    char *expected = strdup(mine);
    CHECK_STR(strstr(get(st, SCOPE + 2, copy, 0), "\"messages\":"), expected);
    free(expected);
    CHECK_OK(history_store_open_file(st, SCOPE + 2, hex, &out, &d), d);
    close(out.fd);
    json_free(doc);

    /* All or nothing. */
    static const char BROKEN[] =
        "{\"format\":\"parley-chats\",\"chats\":[{\"title\":\"good\"},{\"messages\":[{\"id\":\"a\"}]}]}";
    CHECK_OK(json_parse(&doc, BROKEN, strlen(BROKEN), 64, &d), d);
    CHECK_INT(history_store_import(st, SCOPE + 3, json_root(doc), &n, &d), ERR_INVALID);
    CHECK_STR(d.text, "chats[1]: messages[0].role must be \"user\" or \"assistant\"");
    CHECK_STR(list(st, SCOPE + 3, 10, "", NULL), "{\"object\":\"list\",\"data\":[],\"next\":null}");
    CHECK_OK(check_store(st, &d), d);
    json_free(doc);
    bytes_deinit(&text);
    history_store_close(st);
    close(h.fd);
}

/* ---- no room ---- */

static void append_message(bytes *out, int64_t revision, int i, size_t n)
{
    bytes_clear(out);
    bytes_printf(out, "{\"revision\":%lld,\"messages\":[{\"id\":\"m%d\",\"role\":\"user\",\"text\":\"",
                 (long long)revision, i);
    for (size_t k = 0; k < n; k++) {
        bytes_append_char(out, (char)('a' + (k * k + (size_t)i * 7 + k / 26) % 26));
    }
    bytes_append_str(out, "\"}]}");
}

static void test_full(void)
{
    history_store *st = open_store("full", 2 << 20);
    chat_change change = {.revision = 0}, next;
    err_detail d = {0};
    bytes text;
    err_code err = ERR_OK;
    int n = 0;
    bytes_init(&text, 1 << 20);
    for (; err == ERR_OK && n < 1000; n++) {
        append_message(&text, change.revision, n, 50000);
        err = put(st, SCOPE, "c", bytes_str(&text), &next, &d);
        change = err == ERR_OK ? next : change;
    }
    CHECK_INT(err, ERR_LIMIT);
    CHECK_STR(d.name, "history_full");
    CHECK(n > 5 && n < 100);
    static char more[2 << 20];
    memset(more, 'x', sizeof more - 1);
    file_handle h = make_file(more);
    CHECK_INT(history_store_add_file(st, SCOPE, &h, &d), ERR_LIMIT);
    CHECK_STR(d.name, "history_full");
    close(h.fd);
    snprintf(d.text, sizeof d.text, "\"revision\":%lld,\"n_messages\":%d", (long long)change.revision, n - 1);
    CHECK(strstr(get(st, SCOPE, "c", 0), d.text)); /* nothing lost */
    CHECK_OK(history_store_delete(st, SCOPE, "c", ANY_REVISION, &change, &d), d);
    CHECK_OK(put(st, SCOPE, "c", "{\"revision\":0}", &change, &d), d); /* and there is room again */
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
    bytes_deinit(&text);
}

/* The disk itself refuses: the largest size of a file stands for it. In a process of its own, as
 * the limit stays. */
static void test_disk_refuses(void)
{
    const pid_t child = fork();
    if (child == 0) {
        history_store *st = open_store("refusing", QUOTA);
        chat_change change, next;
        err_detail d = {0};
        bytes text;
        bytes_init(&text, 1 << 20);
        CHECK_OK(put(st, SCOPE, "c", "{\"revision\":0}", &change, &d), d);
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit = {.rlim_cur = 600000, .rlim_max = RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        err_code err = ERR_OK;
        int n = 0;
        for (; err == ERR_OK && n < 1000; n++) {
            append_message(&text, change.revision, n, 20000);
            err = put(st, SCOPE, "c", bytes_str(&text), &next, &d);
            change = err == ERR_OK ? next : change;
        }
        CHECK(err == ERR_IO || err == ERR_LIMIT);
        CHECK(strcmp(d.name, "history_storage_failed") == 0 || strcmp(d.name, "history_full") == 0);
        snprintf(d.text, sizeof d.text, "\"revision\":%lld,\"n_messages\":%d", (long long)change.revision,
                 n - 1);
        CHECK(strstr(get(st, SCOPE, "c", 0), d.text));
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        append_message(&text, change.revision, n, 20000);
        CHECK_OK(put(st, SCOPE, "c", bytes_str(&text), &next, &d), d);
        CHECK_OK(check_store(st, &d), d);
        history_store_close(st);
        bytes_deinit(&text);
        CHECK_DONE();
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

/* ---- killed ---- */

/* Writes message after message and tells each number once it is acknowledged. */
static void write_until_killed(int out)
{
    history_store *st = open_store("killed", QUOTA);
    chat_change change = {.revision = 0};
    bytes text;
    err_detail d = {0};
    bytes_init(&text, 1 << 20);
    const char *known = get(st, SCOPE, "c", 0);
    int n = 0;
    if (known[0]) {
        sscanf(strstr(known, "\"revision\":"), "\"revision\":%" SCNd64 ",\"n_messages\":%d", &change.revision,
               &n);
    }
    for (;; n++) {
        append_message(&text, change.revision, n, 100 + (size_t)(n * 977 % 9000));
        if (put(st, SCOPE, "c", bytes_str(&text), &change, &d) != ERR_OK ||
            write(out, &n, sizeof n) != sizeof n) {
            _exit(1);
        }
    }
}

static void test_killed(void)
{
    bytes expected;
    int last = -1;
    const char *kills = getenv("PARLEY_KILLS");
    const int n_kills = kills ? (int)strtol(kills, NULL, 10) : KILLS;
    bytes_init(&expected, 1 << 20);
    for (int i = 0; i < n_kills; i++) {
        int ends[2];
        CHECK_INT(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            write_until_killed(ends[1]);
        }
        close(ends[1]);
        CHECK(read(ends[0], &last, sizeof last) == sizeof last); /* it has begun */
        usleep((useconds_t)(hash_random_u64() % 15000));
        kill(child, SIGKILL);
        for (int n; read(ends[0], &n, sizeof n) == sizeof n;) {
            last = n;
        }
        close(ends[0]);
        waitpid(child, NULL, 0);
        history_store *st = open_store("killed", QUOTA);
        err_detail d = {0};
        CHECK_OK(check_store(st, &d), d);
        const char *chat = get(st, SCOPE, "c", 0);
        int n_kept = 0;
        const char *count = strstr(chat, "\"n_messages\":");
        CHECK(count && sscanf(count, "\"n_messages\":%d", &n_kept) == 1);
        CHECK(n_kept == last + 1 ||
              n_kept == last + 2); /* the last one may not have been acknowledged any more */
        for (int n = i ? last / 2 : 0; n <= last; n++) {
            append_message(&expected, 0, n, 100 + (size_t)(n * 977 % 9000));
            const char *text = strstr(bytes_str(&expected), "\"text\":");
            char *end = strrchr(expected.data, '}');
            *(end - 2) = '\0'; /* the text with its quotes, and the brace behind it off */
            CHECK(strstr(chat, text) != NULL);
        }
        history_store_close(st);
    }
    bytes_deinit(&expected);
}

/* ---- starting ---- */

static void check_start(const char *dir, err_code expected, const char *says)
{
    history_store *st = NULL;
    err_detail d = {0};
    CHECK_INT(history_store_open(&st, &(history_options){.dir = dir, .quota = QUOTA}, &d), expected);
    CHECK(st == NULL);
    if (!strstr(d.text, says)) {
        CHECK_STR(d.text, says);
    }
    CHECK(strstr(d.text, "--history")); /* the next step */
}

static void test_start(void)
{
    char path[3 * PATH_BYTES];
    err_detail d = {0};
    chat_change change;
    history_store *st = open_store("start", QUOTA);
    check_start(folder("start"), ERR_BUSY, "another Parley");
    CHECK_OK(put(st, SCOPE, "c",
                 "{\"revision\":0,\"title\":\"kept\",\"messages\":[{\"id\":\"a\",\"role\":\"user\","
                 "\"text\":\"old words\"}]}",
                 &change, &d),
             d);
    history_store_close(st);

    check_start("/nowhere/at/all", ERR_INVALID, "cannot be made");
    close(make_file("x").fd);
    check_start(folder("upload"), ERR_INVALID, "upload");
    check_start("/proc/parley", ERR_INVALID, "cannot be made");
    mkdir(folder("locked"), 0500);
    if (geteuid() != 0) { /* root may write anywhere */
        check_start(folder("locked"), ERR_INVALID, "cannot be");
    }

    /* An older form is brought up to date: the words of before are found. */
    database *db = NULL;
    snprintf(path, sizeof path, "%s/history.db", folder("start"));
    CHECK_OK(database_open(&db, path, &d), d);
    CHECK_INT(database_version(db), 4);
    database_begin(db);
    database_run(
        db, "DROP TRIGGER title_added; DROP TRIGGER title_removed; DROP TRIGGER title_changed; DROP TRIGGER "
            "text_added; DROP TRIGGER text_removed; DROP TRIGGER text_left; DROP TRIGGER text_came;"
            "DROP TABLE title_search; DROP TABLE text_search; DROP TABLE shares; DROP TABLE talk_items; "
            "DROP TABLE talks;");
    database_set_version(db, 1);
    CHECK_OK(database_end(db, ERR_OK, &d), d);
    database_close(db);
    st = open_store("start", QUOTA);
    check_search(st, "words kept", "c,");
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);

    /* A newer one is left alone. */
    CHECK_OK(database_open(&db, path, &d), d);
    database_begin(db);
    database_set_version(db, 99);
    CHECK_OK(database_end(db, ERR_OK, &d), d);
    database_close(db);
    check_start(folder("start"), ERR_UNSUPPORTED, "newer Parley");

    /* A damaged one too, wherever the damage is. */
    st = open_store("damaged", QUOTA);
    bytes text;
    bytes_init(&text, 1 << 20);
    append_message(&text, 0, 0, 60000);
    CHECK_OK(put(st, SCOPE, "c", bytes_str(&text), &change, &d), d);
    bytes_deinit(&text);
    history_store_close(st);
    snprintf(path, sizeof path, "%s/history.db", folder("damaged"));
    static const off_t PLACES[] = {8192 + 8, 4096, 0};
    for (size_t i = 0; i < 3; i++) {
        const int fd = open(path, O_RDWR);
        char noise[512];
        memset(noise, 0x5a, sizeof noise);
        CHECK(fd >= 0 && pwrite(fd, noise, sizeof noise, PLACES[i]) == sizeof noise);
        close(fd);
        check_start(folder("damaged"), ERR_CORRUPT, "is damaged");
    }
}

int main(void)
{
    log_set_level(LOG_OFF);
    folder_make(root);
    test_chats();
    test_refused();
    test_title();
    test_too_many_messages();
    test_search();
    test_many_merges();
    test_pages();
    test_files();
    test_transfer();
    test_large_file();
    test_full();
    test_disk_refuses();
    test_killed();
    test_start();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
