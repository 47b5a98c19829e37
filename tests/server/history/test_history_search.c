/* history: when a search index is merged, written anew, or emptied first, by the number of levels that its record has; the
 * record is written by the test, in both of its forms. */
#include "base/log.h"
#include "tests/said.h"
#include "tests/server/history/store.h"

static const char NOTHING[] = "", TEXT[] = "text", TITLE[] = "title";

static int64_t found(history_store *st, const char *sql)
{
    err_detail d = {0};
    database_begin(st->db);
    const int64_t n = query_returned(database_query(st->db, sql, ""));
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    return n;
}

/* As SQLite writes numbers, the most significant first. */
static void append_number(bytes *out, uint32_t n)
{
    uint8_t digits[5];
    int at = 5;
    do {
        at--;
        digits[at] = (uint8_t)((n & 0x7f) | (at == 4 ? 0 : 0x80));
        n >>= 7;
    } while (n > 0);
    bytes_append(out, digits + at, (size_t)(5 - at));
}

/* A record of so many levels with nothing in them. */
static bytes record_of(uint32_t n, bool has_mark)
{
    static const uint8_t COOKIE[] = {0, 0, 0, 0, 0xff, 0, 0, 1};
    bytes out = bytes_empty(1 << 16);
    bytes_append(&out, COOKIE, has_mark ? 8 : 4);
    append_number(&out, n);
    for (uint32_t i = 0; i < 2 + 2 * n; i++) { /* parts, and what was written; of each level: merged, parts */
        bytes_append_char(&out, 0);
    }
    return out;
}

/* Opens a history with a chat whose one index has this record, and says what came of that. */
static void check(const char *name, const char *which, const bytes *record, bool is_anew, bool is_untidy)
{
    char path[3 * PATH_BYTES], sql[128];
    err_detail d = {0};
    json_doc *doc = NULL;
    chat_change change = {0};
    static const char CHAT[] =
        "{\"revision\":0,\"title\":\"kept\",\"messages\":[{\"id\":\"a\",\"role\":\"user\",\"text\":\"old "
        "words\"}]}";
    history_store *st = open_store(name, QUOTA);
    CHECK_OK(json_parse(&doc, CHAT, sizeof CHAT - 1, 16, &d), d);
    CHECK_OK(history_store_put(st, SCOPE, "a", json_root(doc), &change, &d), d);
    json_free(doc);
    history_store_close(st);
    if (which != NOTHING) {
        database *db = NULL;
        snprintf(path, sizeof path, "%s/history.db", folder(name));
        CHECK_OK(database_open(&db, path, &d), d);
        database_be_careful(db, false);
        snprintf(sql, sizeof sql, "UPDATE %s_search_data SET block = ?1 WHERE id = 10", which);
        database_begin(db);
        query_step(database_query(db, sql, "b", (const void *)record->data, record->len));
        CHECK_OK(database_end(db, ERR_OK, &d), d);
        database_close(db);
    }
    said_begin();
    st = open_store(name, QUOTA);
    said_end();
    CHECK_INT(strstr(said_err, " was written anew\n") != NULL, is_anew);
    CHECK_INT(strstr(said_err, " could not be tidied") != NULL, is_untidy);
    if (!is_untidy) { /* what the record had forgotten is found again if all was written anew */
        CHECK_INT(found(st, "SELECT count(*) FROM text_search WHERE text_search MATCH '\"old words\"'"),
                  is_anew || which != TEXT);
        CHECK_INT(found(st, "SELECT count(*) FROM title_search WHERE title_search MATCH '\"kept\"'"),
                  is_anew || which != TITLE);
    }
    if (is_anew) {
        CHECK_OK(check_store(st, &d), d);
    }
    history_store_close(st);
}

static void test_levels(void)
{
    static const struct {
        uint32_t n;
        bool is_anew;
    } CASES[] = {{0, false},   {127, false}, {128, false}, {1000, false},
                 {1001, true}, {2000, true}, {2001, true}, {20000, true}};
    history_store *st = open_store("none", QUOTA);
    const bool knows_mark = found(st, "SELECT CAST(substr(sqlite_version(), 3) AS REAL) >= 43");
    history_store_close(st);
    check("none", NOTHING, NULL, false, false);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int form = 0; form < 2; form++) {
            const char *const which[] = {TEXT, TITLE};
            for (int k = 0; k < 2; k++) {
                char name[64];
                bytes record = record_of(CASES[i].n, form);
                snprintf(name, sizeof name, "%s-%u-%d", which[k], CASES[i].n, form);
                const bool is_strange = form == 1 && !knows_mark && CASES[i].n <= 2000; /* to SQLite */
                check(name, which[k], &record, CASES[i].is_anew && !is_strange, is_strange);
                bytes_deinit(&record);
            }
        }
    }
}

/* A number that does not end. */
static void test_endless(void)
{
    bytes record = bytes_empty(100);
    bytes_append(&record, "\0\0\0", 4);
    for (int i = 0; i < 30; i++) {
        bytes_append_char(&record, '\xff');
    }
    check("endless", TEXT, &record, true, false);
    bytes_deinit(&record);
}

int main(void)
{
    log_set_level(LOG_INFO);
    folder_make(root);
    test_levels();
    test_endless();
    CHECK_DONE();
}
