/* Conversations of the API in the store: what is kept of each, whose it is, what is refused, and that it can be deleted
 * where nothing more has room. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "tests/server/history/store.h"

static int64_t number(history_store *st, const char *sql)
{
    err_detail d = {0};
    database_begin(st->db);
    const int64_t n = query_returned(database_query(st->db, sql, ""));
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
    return n;
}

static void run_sql(history_store *st, const char *sql)
{
    err_detail d = {0};
    database_begin(st->db);
    database_run(st->db, sql);
    CHECK_OK(database_end(st->db, ERR_OK, &d), d);
}

static err_code talk_put(history_store *st, uint64_t scope, const char *id, const char *text, err_detail *d)
{
    bytes b = bytes_empty(64 << 20);
    bytes_append_str(&b, text);
    const err_code err = history_talk_put(st, scope, id, &b, d);
    bytes_deinit(&b);
    return err;
}

static err_code talk_add(history_store *st, uint64_t scope, const char *id, const char *text, err_detail *d)
{
    bytes b = bytes_empty(64 << 20);
    bytes_append_str(&b, text);
    const err_code err = history_talk_add(st, scope, id, &b, d);
    bytes_deinit(&b);
    return err;
}

/* What is kept of one (or of the item), or the name of the error. */
static const char *talk(history_store *st, uint64_t scope, const char *id, bool is_item)
{
    static bytes out;
    static err_detail d;
    bytes_deinit(&out);
    bytes_init(&out, 64 << 20);
    const err_code err =
        is_item ? history_talk_item(st, scope, id, &out, &d) : history_talk_get(st, scope, id, &out, &d);
    if (err != ERR_OK) {
        CHECK_INT(err, ERR_NOT_FOUND);
        CHECK_INT(out.len, 0);
        CHECK_STR(d.param, "conversation_id");
    }
    return err == ERR_OK ? bytes_str(&out) : d.name;
}

static void test_talks(void)
{
    static const char *const NONE = "conversation_not_found";
    static const char WHOLE[] = "{\"n\":1},{\"id\":\"a\",\"t\":0.50},{\"id\":\"b\"}";
    history_store *st = open_store("talks", QUOTA);
    err_detail d = {0};
    CHECK_STR(talk(st, SCOPE, "c", false), NONE);
    CHECK_OK(talk_put(st, SCOPE, "c", WHOLE, &d), d);
    CHECK_STR(talk(st, SCOPE, "c", false), WHOLE);
    CHECK_INT(number(st, "SELECT n_bytes FROM talks"), sizeof WHOLE - 1);
    CHECK_OK(talk_add(st, SCOPE, "c", "{\"id\":\"c\"},{\"no\":1}", &d), d);
    CHECK_OK(talk_add(st, SCOPE, "c", "{\"id\":\"e\"}", &d), d);
    CHECK_INT(number(st, "SELECT n_bytes FROM talks"), sizeof WHOLE - 1 + 20 + 11);
    CHECK_STR(talk(st, SCOPE, "c", false),
              "{\"n\":1},{\"id\":\"a\",\"t\":0.50},{\"id\":\"b\"},{\"id\":\"c\"},{\"no\":1},{\"id\":\"e\"}");
    CHECK_INT((int64_t)strlen(talk(st, SCOPE, "c", false)), sizeof WHOLE - 1 + 20 + 11);
    CHECK_INT(number(st, "SELECT min(place) * 100 + max(place) FROM talk_items"), 105);
    CHECK_STR(talk(st, SCOPE, "a", true), "{\"id\":\"a\",\"t\":0.50}");
    CHECK_STR(talk(st, SCOPE, "e", true), "{\"id\":\"e\"}");
    CHECK_STR(talk(st, SCOPE, "z", true), NONE);
    /* Nobody else sees it; each has its own of the same name. */
    CHECK_STR(talk(st, SCOPE + 1, "c", false), NONE);
    CHECK_STR(talk(st, SCOPE + 1, "a", true), NONE);
    CHECK_INT(talk_add(st, SCOPE + 1, "c", "{}", &d), ERR_NOT_FOUND);
    CHECK_STR(d.name, NONE);
    CHECK_INT(history_talk_remove(st, SCOPE + 1, "c", &d), ERR_NOT_FOUND);
    CHECK_OK(talk_put(st, SCOPE + 1, "c", "{\"n\":2}", &d), d);
    CHECK_STR(talk(st, SCOPE + 1, "c", false), "{\"n\":2}");
    /* An item of a name that there is twice is the last one's. */
    CHECK_OK(
        talk_put(st, SCOPE, "later", "{},{\"id\":\"b\",\"of\":\"later\"},{\"id\":\"b\",\"of\":\"last\"}", &d),
        d);
    CHECK_STR(talk(st, SCOPE, "b", true), "{\"id\":\"b\",\"of\":\"last\"}");
    /* Written anew, the items of before are gone, and those of others are not. */
    CHECK_OK(talk_put(st, SCOPE, "c", "{\"n\":3},{\"id\":\"f\"}", &d), d);
    CHECK_STR(talk(st, SCOPE, "c", false), "{\"n\":3},{\"id\":\"f\"}");
    CHECK_INT(number(st, "SELECT count(*) FROM talk_items"), 3);
    CHECK_INT(number(st, "SELECT n_bytes FROM talks WHERE id = 'c' AND scope = 7"), 18);
    /* What is no JSON changes nothing. */
    CHECK_INT(talk_put(st, SCOPE, "c", "{", &d), ERR_INVALID);
    CHECK_INT(talk_add(st, SCOPE, "c", "]", &d), ERR_INVALID);
    CHECK_STR(talk(st, SCOPE, "c", false), "{\"n\":3},{\"id\":\"f\"}");
    /* As deep as a request may be. */
    for (int more = 0; more <= 1; more++) {
        bytes deep = bytes_empty(4096);
        bytes_append_str(&deep, "{\"id\":\"deep\",\"v\":");
        for (int i = 0; i < LIMIT_JSON_DEPTH + more; i++) {
            bytes_append_char(&deep, '[');
        }
        for (int i = 0; i < LIMIT_JSON_DEPTH + more; i++) {
            bytes_append_char(&deep, ']');
        }
        bytes_append_char(&deep, '}');
        CHECK_INT(history_talk_put(st, SCOPE, "deep", &deep, &d), more ? ERR_LIMIT : ERR_OK);
        bytes_deinit(&deep);
    }
    CHECK_OK(history_talk_remove(st, SCOPE, "c", &d), d);
    CHECK_STR(talk(st, SCOPE, "c", false), NONE);
    CHECK_STR(talk(st, SCOPE, "f", true), NONE);
    CHECK_INT(history_talk_remove(st, SCOPE, "c", &d), ERR_NOT_FOUND);
    CHECK_STR(talk(st, SCOPE + 1, "c", false), "{\"n\":2}");
    CHECK_OK(check_store(st, &d), d);
    history_store_close(st);
}

/* Bounds: of one, of one with what is added, of their number, of all that is kept. */
static void test_talk_bounds(void)
{
    history_store *st = open_store("talk_bounds", QUOTA);
    err_detail d = {0};
    bytes text = bytes_empty(64 << 20);
    bytes_append_str(&text, "{\"t\":\"");
    for (char piece[1024]; text.len < LIMIT_STORED_RESPONSE_BYTES - 1;) {
        const size_t left = LIMIT_STORED_RESPONSE_BYTES - 1 - text.len;
        memset(piece, 'x', sizeof piece);
        bytes_append(&text, piece, left < sizeof piece ? left : sizeof piece);
    }
    bytes_append_str(&text, "\"}");
    CHECK_INT(history_talk_put(st, SCOPE, "large", &text, &d), ERR_LIMIT);
    CHECK_STR(d.name, "conversation_too_large");
    CHECK_STR(d.text, "a conversation may have 16 MiB; begin another");
    bytes_deinit(&text);
    CHECK_OK(talk_put(st, SCOPE, "c", "{}", &d), d);
    run_sql(st, "UPDATE talks SET n_bytes = 16777216 - 3");
    CHECK_INT(talk_add(st, SCOPE, "c", "{ }", &d), ERR_LIMIT);
    CHECK_STR(d.name, "conversation_too_large");
    CHECK_OK(talk_add(st, SCOPE, "c", "{}", &d), d);
    CHECK_INT(number(st, "SELECT n_bytes FROM talks"), 16777216);

    run_sql(st, "INSERT INTO talks(scope, id, head, n_bytes) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL "
                "SELECT x + 1 FROM "
                "c WHERE x < 99998) SELECT 7, x, '{}', 2 FROM c");
    CHECK_OK(talk_put(st, SCOPE, "last", "{}", &d), d);
    CHECK_INT(talk_put(st, SCOPE, "more", "{}", &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_conversations");
    CHECK_STR(d.text, "100000 conversations are kept already; delete some you no longer need");
    CHECK_OK(talk_put(st, SCOPE, "last", "{\"n\":1}", &d), d); /* which is there already */
    CHECK_OK(talk_put(st, SCOPE + 1, "more", "{}", &d), d);
    history_store_close(st);
}

/* Where nothing more has room what is there stays, and can be deleted. */
static void test_talks_full(void)
{
    const pid_t child = fork();
    if (child == 0) {
        history_store *st = open_store("talks_full", 2 << 20);
        err_detail d = {0};
        bytes item = bytes_empty(1 << 20);
        bytes_append_str(&item, "{\"id\":\"i\",\"t\":\"");
        for (unsigned i = 0; i < 60000; i++) {
            bytes_append_char(&item, (char)('a' + (i * i + i / 26) % 26));
        }
        bytes_append_str(&item, "\"}");
        CHECK_OK(talk_put(st, SCOPE, "c", "{}", &d), d);
        err_code err = ERR_OK;
        int n = 0;
        for (; err == ERR_OK && n < 1000; n += err == ERR_OK) {
            err = history_talk_add(st, SCOPE, "c", &item, &d);
        }
        CHECK_INT(err, ERR_LIMIT);
        CHECK_STR(d.name, "history_full");
        CHECK(n > 5 && n < 100);
        CHECK_INT(number(st, "SELECT count(*) FROM talk_items"), n);
        bytes other = bytes_empty(1 << 20);
        bytes_append_str(&other, "{},");
        bytes_append(&other, item.data, item.len);
        CHECK_INT(history_talk_put(st, SCOPE, "other", &other, &d), ERR_LIMIT);
        CHECK_STR(d.name, "history_full");
        /* Not even the log of a deletion has room: what was set aside for it has. */
        signal(SIGXFSZ, SIG_IGN);
        const uint64_t used = database_used_bytes(st->db);
        const struct rlimit limit = {.rlim_cur = used + 40000, .rlim_max = RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_OK(history_talk_remove(st, SCOPE, "c", &d), d);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        CHECK_STR(talk(st, SCOPE, "c", false), "conversation_not_found");
        CHECK(database_used_bytes(st->db) < used / 2);
        CHECK_OK(check_store(st, &d), d);
        history_store_close(st);
        bytes_deinit(&item);
        bytes_deinit(&other);
        CHECK_DONE();
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

int main(void)
{
    log_set_level(LOG_OFF);
    folder_make(root);
    test_talks();
    test_talk_bounds();
    test_talks_full();
    CHECK_DONE();
}
