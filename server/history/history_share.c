#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "server/history/history_state.h"

/* A link shows one branch: the message that it was made at and what stands before it, as they are
 * when somebody looks. What is written behind it is not shown; what is deleted is gone there, too. */

#define LIVE "(s.expires IS NULL OR s.expires > ?2)"
/* ?1 the token, ?2 now: the messages of the branch with their distance from its end. */
#define BRANCH                                                                                               \
    "WITH RECURSIVE branch(num, chat, parent, depth) AS ("                                                   \
    " SELECT m.num, m.chat, m.parent, 0 FROM shares s"                                                       \
    " JOIN messages m ON m.chat = s.chat AND m.id = s.head WHERE s.token = ?1 AND " LIVE " UNION ALL"        \
    " SELECT m.num, m.chat, m.parent, b.depth + 1 FROM branch b"                                             \
    " JOIN messages m ON m.chat = b.chat AND m.id = b.parent) "

static err_code no_share(err_detail *d)
{
    return err_set_param(d, ERR_NOT_FOUND, NULL, "share_not_found",
                         "there is no such link: it was taken back, it has expired, or its chat was deleted");
}

static void append_text(bytes *out, query *q, int column)
{
    size_t len;
    const char *text = query_text(q, column, &len);
    bytes_append_json(out, text, len);
}

/* Columns created, expires from this one on. */
static void append_times(bytes *out, query *q, int column)
{
    bytes_printf(out, ",\"created\":%lld,\"expires\":", (long long)query_int(q, column));
    if (query_is_null(q, column + 1)) {
        bytes_append_str(out, "null");
    } else {
        bytes_printf(out, "%lld", (long long)query_int(q, column + 1));
    }
}

/* Columns token, chat id, title, head, created, expires. */
static void append_share(bytes *out, query *q)
{
    static const char *const NAMES[] = {"token", "chat", "title", "head"};
    bytes_append_str(out, "{\"object\":\"share\"");
    for (int i = 0; i < 4; i++) {
        history_begin_member(out, NAMES[i], false);
        append_text(out, q, i);
    }
    append_times(out, q, 4);
    bytes_append_char(out, '}');
}

static void forget_expired(history_store *st)
{
    query_step(database_query(st->db, "DELETE FROM shares WHERE expires <= ?1", "i", history_now_ms()));
}

static bool has_message(history_store *st, int64_t chat, const char *id)
{
    query *q = database_query(st->db, "SELECT 1 FROM messages WHERE chat = ?1 AND id = ?2", "it", chat, id);
    return query_step(q);
}

/* What the body says: the chat's number, its message, and when the link ends (0: never). */
static err_code read_share(history_store *st, uint64_t scope, const json *given, int64_t *chat,
                           char head[CHAT_ID_MAX], int64_t *expires, err_detail *d)
{
    const json *after = json_get(given, "expires_in");
    int64_t seconds = 0;
    if (!json_is(after, JSON_NULL) && !json_int(after, 1, LIMIT_HISTORY_SHARE_S, &seconds)) {
        return err_set_param(d, ERR_INVALID, "expires_in", "invalid_value",
                             "expires_in must be null or 1 to %d seconds", LIMIT_HISTORY_SHARE_S);
    }
    *expires = seconds ? history_now_ms() + seconds * 1000 : 0;
    query *q = database_query(st->db, "SELECT num, head FROM chats WHERE scope = ?1 AND id = ?2", "it",
                              (int64_t)scope, json_str(json_get(given, "chat"), ""));
    if (!query_step(q)) {
        return history_no_chat(d);
    }
    *chat = query_int(q, 0);
    size_t len;
    snprintf(head, CHAT_ID_MAX, "%s", json_str(json_get(given, "head"), query_text(q, 1, &len)));
    if (!has_message(st, *chat, head)) {
        return err_set_param(d, ERR_INVALID, "head", "invalid_value",
                             "head must be the id of a message that the server has of this chat");
    }
    q = database_query(st->db,
                       "SELECT count(*) FROM shares s JOIN chats c ON c.num = s.chat WHERE c.scope = ?1", "i",
                       (int64_t)scope);
    if (query_returned(q) >= LIMIT_HISTORY_SHARES) {
        return err_set_param(d, ERR_LIMIT, NULL, "too_many_shares",
                             "a key may have %d links; take some back first", LIMIT_HISTORY_SHARES);
    }
    return ERR_OK;
}

#define SHARES                                                                                               \
    "SELECT s.token, c.id, c.title, s.head, s.created, s.expires FROM shares s JOIN chats c ON c.num = "     \
    "s.chat"

err_code history_store_share(history_store *st, bytes *out, uint64_t scope, const json *given, err_detail *d)
{
    char token[HASH_ID_CHARS + 1], head[CHAT_ID_MAX];
    int64_t chat = 0, expires = 0;
    database_begin(st->db);
    forget_expired(st);
    err_code err = read_share(st, scope, given, &chat, head, &expires, d);
    err = err == ERR_OK ? history_check_room(st, 0, d) : err;
    if (err == ERR_OK) {
        hash_random_id(token, sizeof token, "");
        query_step(database_query(st->db,
                                  "INSERT INTO shares(token, chat, head, created, expires)"
                                  " VALUES(?1, ?2, ?3, ?4, nullif(?5, 0))",
                                  "titii", token, chat, head, history_now_ms(), expires));
        query *q = database_query(st->db, SHARES " WHERE s.token = ?1", "t", token);
        if (query_step(q)) {
            append_share(out, q);
        }
    }
    return history_commit(st, err, d);
}

err_code history_store_shares(history_store *st, bytes *out, uint64_t scope, err_detail *d)
{
    database_begin(st->db);
    query *q =
        database_query(st->db, SHARES " WHERE c.scope = ?1 AND " LIVE " ORDER BY s.created DESC, s.token",
                       "ii", (int64_t)scope, history_now_ms());
    bytes_append_str(out, "{\"object\":\"list\",\"data\":[");
    for (int n = 0; query_step(q); n++) {
        bytes_append_str(out, n ? "," : "");
        append_share(out, q);
    }
    bytes_append_str(out, "]}");
    return history_commit(st, ERR_OK, d);
}

err_code history_store_unshare(history_store *st, bytes *out, uint64_t scope, const char *token,
                               err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(
        st->db,
        "DELETE FROM shares WHERE token = ?1 AND chat IN (SELECT num FROM chats WHERE scope = ?2)"
        " RETURNING 1",
        "ti", token, (int64_t)scope);
    const err_code err = query_returned(q) ? ERR_OK : no_share(d);
    bytes_json(out, "{\"token\":%s,\"object\":\"share\",\"deleted\":true}", token);
    return history_commit(st, err, d);
}

/* ---- what the link shows ---- */

/* The members of `from` that are named; the brace stays open. */
static void copy_members(bytes *out, const json *from, const char *const *names, size_t n, bool is_first)
{
    for (size_t i = 0; i < n; i++) {
        const json *value = json_get(from, names[i]);
        if (!json_is(value, JSON_NULL)) {
            history_begin_member(out, names[i], is_first);
            json_write(out, value);
            is_first = false;
        }
    }
}

/* Columns text, rest. Thoughts, tool calls, sources and ids of answers are not for who has a link. */
static err_code append_message(bytes *out, query *q, err_detail *d)
{
    static const char *const MESSAGE[] = {"id", "parent", "role", "status", "model", "created", "erased"};
    static const char *const FILE_FIELDS[] = {"kind",   "name",  "mime",    "width",
                                              "height", "bytes", "seconds", "sha256"};
    json_doc *doc = NULL;
    size_t len;
    const char *rest = query_text(q, 1, &len);
    const err_code err = json_parse(&doc, rest, len, LIMIT_JSON_DEPTH, d);
    if (err != ERR_OK) {
        return err_set(d, ERR_INTERNAL, "a kept message cannot be read");
    }
    bytes_append_str(out, "{\"text\":");
    append_text(out, q, 0);
    copy_members(out, json_root(doc), MESSAGE, sizeof MESSAGE / sizeof MESSAGE[0], false);
    const json *files = json_get(json_root(doc), "attachments");
    if (json_is(files, JSON_ARRAY)) {
        bytes_append_str(out, ",\"attachments\":[");
        for (const json *a = json_child(files); a; a = json_next(a)) {
            bytes_append_str(out, a == json_child(files) ? "{" : ",{");
            copy_members(out, a, FILE_FIELDS, sizeof FILE_FIELDS / sizeof FILE_FIELDS[0], true);
            bytes_append_char(out, '}');
        }
        bytes_append_char(out, ']');
    }
    bytes_append_char(out, '}');
    json_free(doc);
    return ERR_OK;
}

err_code history_store_shared(history_store *st, bytes *out, const char *token, err_detail *d)
{
    const int64_t now = history_now_ms();
    err_code err = ERR_OK;
    database_begin(st->db);
    query *q =
        database_query(st->db,
                       "SELECT c.title, s.created, s.expires FROM shares s JOIN chats c ON c.num = s.chat"
                       " WHERE s.token = ?1 AND " LIVE,
                       "ti", token, now);
    if (!query_step(q)) {
        return history_commit(st, no_share(d), d);
    }
    bytes_append_str(out, "{\"object\":\"shared.chat\",\"title\":");
    append_text(out, q, 0);
    append_times(out, q, 1);
    bytes_append_str(out, ",\"messages\":[");
    q = database_query(
        st->db,
        BRANCH "SELECT m.text, m.rest FROM branch b JOIN messages m ON m.num = b.num ORDER BY b.depth DESC",
        "ti", token, now);
    for (int n = 0; err == ERR_OK && query_step(q); n++) {
        bytes_append_str(out, n ? "," : "");
        err = append_message(out, q, d);
    }
    bytes_append_str(out, "]}");
    return history_commit(st, err, d);
}

err_code history_store_shared_file(history_store *st, const char *token, const char *hash_hex_text,
                                   file_handle *out, err_detail *d)
{
    uint8_t hash[HASH_BYTES];
    *out = (file_handle){.fd = -1};
    if (!hash_parse_hex(hash, hash_hex_text)) {
        return no_share(d);
    }
    database_begin(st->db);
    query *q = database_query(
        st->db,
        BRANCH "SELECT c.scope FROM branch b JOIN message_files f ON f.message = b.num AND f.hash = ?3"
               " JOIN chats c ON c.num = b.chat LIMIT 1",
        "tib", token, history_now_ms(), hash, (size_t)HASH_BYTES);
    const bool is_shown = query_step(q);
    const uint64_t scope = is_shown ? (uint64_t)query_int(q, 0) : 0;
    const err_code err = history_commit(st, is_shown ? ERR_OK : no_share(d), d);
    return err == ERR_OK ? history_store_open_file(st, scope, hash_hex_text, out, d) : err;
}
