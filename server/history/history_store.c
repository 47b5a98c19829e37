#include "server/history/history_store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "server/history/history_state.h"

/* ---- what all of them need ---- */

err_code history_commit(history_store *st, err_code err, err_detail *d)
{
    if (err != ERR_OK && !database_failed(st->db)) {
        return database_end(st->db, err, d);
    }
    err = database_end(st->db, ERR_OK, d); /* what failed below is the reason, whatever was made of it */
    switch (err) {
    case ERR_LIMIT:
        return err_set_param(
            d, err, NULL, "history_full",
            "there is no room for this chat on the server: its disk, or what --history-quota "
            "allows, is full; delete chats you no longer need");
    case ERR_CORRUPT:
        return err_set_param(d, err, NULL, "history_damaged",
                             "the server's history is damaged; its log says more");
    case ERR_IO:
    case ERR_BUSY:
        return history_bad_disk(d, "the database");
    default:
        return err;
    }
}

err_code history_bad_disk(err_detail *d, const char *what)
{
    return err_set_param(d, ERR_IO, NULL, "history_storage_failed",
                         "the server could not write its history (%s); its disk may be full or broken", what);
}

err_code history_no_chat(err_detail *d)
{
    return err_set_param(d, ERR_NOT_FOUND, NULL, "chat_not_found", "there is no such chat");
}

bool history_valid_id(const char *id)
{
    const size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    return n > 0 && n < CHAT_ID_MAX && id[n] == '\0';
}

int64_t history_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t file_bytes(history_store *st)
{
    return (uint64_t)query_returned(database_query(st->db, "SELECT total(n_bytes) FROM files", ""));
}

err_code history_check_room(history_store *st, uint64_t n_bytes, err_detail *d)
{
    const uint64_t of_database = database_used_bytes(st->db), used = of_database + file_bytes(st);
    if (of_database > st->database_quota) {
        return err_set_param(
            d, ERR_LIMIT, NULL, "history_full",
            "there is no room for this on the server: its files may not grow beyond %llu MiB "
            "(ulimit -f); delete chats you no longer need",
            (unsigned long long)(history_file_limit() >> 20));
    }
    if (used > st->quota || n_bytes > st->quota - used) {
        return err_set_param(d, ERR_LIMIT, NULL, "history_full",
                             "there is no room for this on the server: its history may take %llu MiB "
                             "(--history-quota); delete chats you no longer need",
                             (unsigned long long)(st->quota >> 20));
    }
    return ERR_OK;
}

err_code history_store_info(history_store *st, bytes *out, uint64_t scope, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "SELECT count(*) FROM chats WHERE scope = ?1", "i", (int64_t)scope);
    const int64_t n_chats = query_returned(q);
    const uint64_t used = database_used_bytes(st->db) + file_bytes(st);
    bytes_printf(out,
                 "{\"object\":\"history\",\"enabled\":true,\"chats\":%lld,\"bytes\":%llu,\"quota\":%llu}",
                 (long long)n_chats, (unsigned long long)used, (unsigned long long)st->quota);
    return history_commit(st, ERR_OK, d);
}

/* ---- lists and search ---- */

static void append_text(bytes *out, query *q, int column)
{
    size_t len;
    const char *text = query_text(q, column, &len);
    bytes_append_json(out, text, len);
}

/* A chat of a list, its brace left open: columns id, title, created, updated, revision, n_messages,
 * num, place. */
static void append_summary(bytes *out, query *q)
{
    bytes_append_str(out, "{\"id\":");
    append_text(out, q, 0);
    bytes_append_str(out, ",\"title\":");
    append_text(out, q, 1);
    bytes_printf(out, ",\"created\":%lld,\"updated\":%lld,\"revision\":%lld,\"n_messages\":%lld",
                 (long long)query_int(q, 2), (long long)query_int(q, 3), (long long)query_int(q, 4),
                 (long long)query_int(q, 5));
    if (!query_is_null(q, 7)) {
        size_t len;
        bytes_append_str(out, ",\"place\":");
        bytes_append_str(out, query_text(q, 7, &len));
    }
}

/* Where the chat stands in a list (folder, pinned, archived) its writers keep among its options. */
#define SUMMARY_COLUMNS                                                                                      \
    "c.id, c.title, c.created, c.updated, c.revision, c.n_messages, c.num,"                                  \
    " CASE WHEN json_type(c.options, '$.place') = 'object' THEN json_extract(c.options, '$.place') END"

/* One word: ?N is the phrase for the index (NULL: the word is too short for it), ?M the pattern for
 * LIKE (NULL: there is no such word). */
#define WORD(n, m)                                                                                           \
    " AND (" m " IS NULL OR CASE WHEN " n " IS NOT NULL THEN"                                                \
    " c.num IN (SELECT rowid FROM title_search WHERE title_search MATCH " n ") OR"                           \
    " c.num IN (SELECT m.chat FROM text_search s JOIN messages m ON m.num = s.rowid"                         \
    " WHERE text_search MATCH " n ")"                                                                        \
    " ELSE c.title LIKE " m " ESCAPE '\\' OR"                                                                \
    " EXISTS (SELECT 1 FROM messages m WHERE m.chat = c.num AND m.text LIKE " m " ESCAPE '\\') END)"

/* ?1 scope, ?2 and ?3 the cursor, ?4 how many. */
#define LIST  "SELECT " SUMMARY_COLUMNS " FROM chats c WHERE c.scope = ?1 AND (c.updated, c.num) < (?2, ?3)"
#define ORDER " ORDER BY c.updated DESC, c.num DESC LIMIT ?4"

static const char LIST_SQL[] = LIST ORDER;
static const char SEARCH_SQL[] = LIST WORD("?5", "?6") WORD("?7", "?8") WORD("?9", "?10") WORD("?11", "?12")
    WORD("?13", "?14") WORD("?15", "?16") WORD("?17", "?18") WORD("?19", "?20") ORDER;
enum { FIRST_WORD = 5 };

/* Characters of a word that the index knows: it has none for less than three. */
static size_t count_characters(const char *word, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)word[i] & 0xc0) != 0x80;
    }
    return n;
}

/* False without memory: a word that is cut would find other chats. */
static bool bind_word(query *q, int at, const char *word, size_t len)
{
    bytes phrase = bytes_empty((size_t)2 * LIMIT_HISTORY_WORD_BYTES + 2);
    bytes pattern = bytes_empty((size_t)2 * LIMIT_HISTORY_WORD_BYTES + 2);
    bytes_append_char(&phrase, '"');
    bytes_append_char(&pattern, '%');
    for (size_t i = 0; i < len; i++) {
        bytes_append_str(&phrase, word[i] == '"' ? "\"" : "");
        bytes_append_char(&phrase, word[i]);
        bytes_append_str(&pattern, strchr("%_\\", word[i]) ? "\\" : "");
        bytes_append_char(&pattern, word[i]);
    }
    bytes_append_char(&phrase, '"');
    bytes_append_char(&pattern, '%');
    const bool indexed = count_characters(word, len) >= 3;
    query_bind_text(q, at, indexed ? bytes_str(&phrase) : NULL, phrase.len);
    query_bind_text(q, at + 1, bytes_str(&pattern), pattern.len);
    const bool ok = !phrase.failed && !pattern.failed;
    bytes_deinit(&phrase);
    bytes_deinit(&pattern);
    return ok;
}

/* The bytes of a word that are searched for, cut at a whole character. */
static size_t word_bytes(const char *word, size_t len)
{
    if (len <= LIMIT_HISTORY_WORD_BYTES) {
        return len;
    }
    len = LIMIT_HISTORY_WORD_BYTES;
    while (len > 0 && ((unsigned char)word[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

/* Binds the words of a search; those beyond its limit are left out. */
static bool bind_words(query *q, const char *words)
{
    static const char SPACE[] = " \t\r\n";
    bool ok = true;
    int n = 0;
    for (const char *p = words; *p && n < LIMIT_HISTORY_WORDS; n++) {
        p += strspn(p, SPACE);
        const size_t len = strcspn(p, SPACE);
        if (len > 0) {
            ok = bind_word(q, FIRST_WORD + 2 * n, p, word_bytes(p, len)) && ok;
        }
        p += len;
    }
    return ok;
}

/* A cursor is "UPDATED_NUM" of the chat it stands behind. */
static err_code read_cursor(const char *text, int64_t *updated, int64_t *num, err_detail *d)
{
    char *end = NULL;
    *updated = *num = INT64_MAX;
    if (!text[0]) {
        return ERR_OK;
    }
    *updated = strtoll(text, &end, 10);
    const char *rest = end;
    *num = *rest == '_' ? strtoll(rest + 1, &end, 10) : 0;
    if (rest == text || *rest != '_' || end == rest + 1 || *end) {
        return err_set_param(d, ERR_INVALID, "after", "invalid_value",
                             "after must be what `next` of an earlier list was");
    }
    return ERR_OK;
}

err_code history_store_list(history_store *st, bytes *out, uint64_t scope, int limit, const char *after,
                            const char *words, err_detail *d)
{
    int64_t updated, num;
    err_code err = read_cursor(after, &updated, &num, d);
    if (err != ERR_OK) {
        return err;
    }
    database_begin(st->db);
    /* one more than is shown says whether there are more */
    query *q = database_query(st->db, words ? SEARCH_SQL : LIST_SQL, "iiii", (int64_t)scope, updated, num,
                              (int64_t)limit + 1);
    if (words && !bind_words(q, words)) {
        return history_commit(st, err_set(d, ERR_NOMEM, "there is not enough memory for this search"), d);
    }
    bytes_append_str(out, "{\"object\":\"list\",\"data\":[");
    int n = 0;
    bool has_more = false;
    while (!has_more && query_step(q)) {
        has_more = n == limit;
        if (!has_more) {
            bytes_append_str(out, n++ ? "," : "");
            append_summary(out, q);
            bytes_append_char(out, '}');
            updated = query_int(q, 3);
            num = query_int(q, 6);
        }
    }
    bytes_append_str(out, "],\"next\":");
    if (has_more) {
        bytes_printf(out, "\"%lld_%lld\"}", (long long)updated, (long long)num);
    } else {
        bytes_append_str(out, "null}");
    }
    return history_commit(st, ERR_OK, d);
}

/* ---- one chat ---- */

err_code history_store_get(history_store *st, bytes *out, uint64_t scope, const char *id, int64_t since,
                           err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db,
                              "SELECT " SUMMARY_COLUMNS ", c.head, c.options FROM chats c"
                              " WHERE c.scope = ?1 AND c.id = ?2",
                              "it", (int64_t)scope, id);
    if (!query_step(q)) {
        return history_commit(st, history_no_chat(d), d);
    }
    const int64_t num = query_int(q, 6);
    append_summary(out, q);
    bytes_append_str(out, ",\"object\":\"chat\",\"head\":");
    if (query_is_null(q, 8)) {
        bytes_append_str(out, "null");
    } else {
        append_text(out, q, 8);
    }
    size_t len;
    bytes_append_str(out, ",\"options\":");
    const char *options = query_text(q, 9, &len);
    bytes_append(out, options, len);
    bytes_append_str(out, ",\"messages\":[");
    q = database_query(st->db,
                       "SELECT text, rest FROM messages WHERE chat = ?1 AND revision > ?2 ORDER BY num", "ii",
                       num, since);
    for (int n = 0; query_step(q); n++) {
        bytes_append_str(out, n ? ",{\"text\":" : "{\"text\":");
        append_text(out, q, 0);
        const char *rest = query_text(q, 1, &len);
        bytes_append_char(out, ',');
        bytes_append(out, rest + 1, len - 1); /* "{" is there already; it has an id at least */
    }
    bytes_append_str(out, "]}");
    return history_commit(st, ERR_OK, d);
}
