#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "server/media/data_uri.h"
#include "server/history/history_state.h"

enum { PARAM_MAX = 96, MAX_TIME = 1LL << 53 };

/* A chat that is being written. */
typedef struct chat_writer {
    history_store *st;
    uint64_t scope;
    int64_t num, revision;
    int64_t n_messages, n_bytes;
    bool is_import;
    size_t at; /* which message of those given */
} chat_writer;

/* The files that one message names. */
typedef struct file_names {
    uint8_t hashes[LIMIT_HISTORY_ATTACHMENTS][HASH_BYTES];
    int n;
} file_names;

static err_code invalid(err_detail *d, const char *param, const char *what)
{
    return err_set_param(d, ERR_INVALID, param, "invalid_value", "%s %s", param, what);
}

static err_code invalid_message(const chat_writer *w, err_detail *d, const char *member, const char *what)
{
    char param[PARAM_MAX];
    snprintf(param, sizeof param, "messages[%zu]%s", w->at, member);
    return invalid(d, param, what);
}

/* ---- attachments ---- */

/* The file of an attachment that is imported: its bytes are inside. */
static err_code import_file(chat_writer *w, const char *data, uint8_t hash[HASH_BYTES], err_detail *d)
{
    const uint8_t *decoded = NULL;
    size_t n = 0;
    if (data_uri_classify(data, strlen(data)) != DATA_URI_INLINE) {
        return invalid_message(w, d, ".attachments", "may hold data: URLs only");
    }
    arena *memory = arena_create(SIZE_MAX / 2);
    if (!memory) {
        return err_set(d, ERR_NOMEM, "no memory for this file");
    }
    err_code err = data_uri_decode(memory, &decoded, &n, data, strlen(data), strlen(data), d);
    if (err == ERR_OK) {
        file_handle file = {.fd = -1, .bytes = n};
        hash_sha256(file.hash, decoded, n);
        memcpy(hash, file.hash, HASH_BYTES);
        err = history_keep_file(w->st, w->scope, decoded, &file, d);
    }
    arena_destroy(memory);
    return err;
}

static bool has_file(chat_writer *w, const uint8_t hash[HASH_BYTES])
{
    query *q = database_query(w->st->db, "SELECT 1 FROM files WHERE scope = ?1 AND hash = ?2", "ib",
                              (int64_t)w->scope, hash, (size_t)HASH_BYTES);
    return query_step(q);
}

/* Which file an attachment names; *named is false if it names none. */
static err_code find_file(chat_writer *w, const json *attachment, uint8_t hash[HASH_BYTES], bool *named,
                          err_detail *d)
{
    const char *data = w->is_import ? json_str(json_get(attachment, "data"), NULL) : NULL;
    const char *sha256 = w->is_import ? NULL : json_str(json_get(attachment, "sha256"), NULL);
    *named = data || sha256;
    if (data) {
        return import_file(w, data, hash, d);
    }
    if (!sha256) {
        return ERR_OK;
    }
    if (!hash_parse_hex(hash, sha256)) {
        return invalid_message(w, d, ".attachments", "has a sha256 that is not 64 hexadecimal digits");
    }
    if (!has_file(w, hash)) {
        return err_set_param(d, ERR_NOT_FOUND, "messages", "file_not_found",
                             "messages[%zu] names a file that is not kept here; send it first", w->at);
    }
    return ERR_OK;
}

void history_begin_member(bytes *out, const char *key, bool is_first)
{
    bytes_json(out, "%-s%s:", is_first ? "" : ",", key);
}

/* Writes an attachment as it is kept: its bytes are replaced by their hash. */
static err_code write_attachment(chat_writer *w, bytes *out, const json *attachment, file_names *files,
                                 err_detail *d)
{
    uint8_t hash[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    bool named, is_first = true;
    if (!json_is(attachment, JSON_OBJECT)) {
        return invalid_message(w, d, ".attachments", "must be a list of objects");
    }
    if (files->n == LIMIT_HISTORY_ATTACHMENTS) {
        return invalid_message(w, d, ".attachments", "has too many entries");
    }
    const err_code err = find_file(w, attachment, hash, &named, d);
    if (err != ERR_OK) {
        return err;
    }
    bytes_append_char(out, '{');
    for (const json *m = json_child(attachment); m; m = json_next(m)) {
        if (strcmp(json_key(m), "sha256") == 0 || strcmp(json_key(m), "data") == 0) {
            continue;
        }
        history_begin_member(out, json_key(m), is_first);
        json_write(out, m);
        is_first = false;
    }
    if (named) {
        memcpy(files->hashes[files->n++], hash, HASH_BYTES);
        hash_hex(hex, hash, HASH_BYTES);
        history_begin_member(out, "sha256", is_first);
        bytes_append_json(out, hex, strlen(hex));
    }
    bytes_append_char(out, '}');
    return ERR_OK;
}

static err_code write_attachments(chat_writer *w, bytes *out, const json *list, file_names *files,
                                  err_detail *d)
{
    err_code err = ERR_OK;
    if (!json_is(list, JSON_ARRAY)) {
        return invalid_message(w, d, ".attachments", "must be a list");
    }
    bytes_append_char(out, '[');
    for (const json *a = json_child(list); a && err == ERR_OK; a = json_next(a)) {
        bytes_append_str(out, a == json_child(list) ? "" : ",");
        err = write_attachment(w, out, a, files, d);
    }
    bytes_append_char(out, ']');
    return err;
}

/* ---- messages ---- */

/* The message without its text, as JSON. */
static err_code write_rest(chat_writer *w, bytes *out, const json *message, file_names *files, err_detail *d)
{
    err_code err = ERR_OK;
    bool is_first = true;
    bytes_append_char(out, '{');
    for (const json *m = json_child(message); m && err == ERR_OK; m = json_next(m)) {
        if (strcmp(json_key(m), "text") == 0) {
            continue;
        }
        history_begin_member(out, json_key(m), is_first);
        is_first = false;
        if (strcmp(json_key(m), "attachments") == 0 && !json_is(m, JSON_NULL)) {
            err = write_attachments(w, out, m, files, d);
        } else {
            json_write(out, m);
        }
    }
    bytes_append_char(out, '}');
    return err == ERR_OK && out->failed ? err_set(d, ERR_NOMEM, "no memory for this message") : err;
}

static bool is_parent_there(chat_writer *w, const char *parent)
{
    query *q =
        database_query(w->st->db, "SELECT 1 FROM messages WHERE chat = ?1 AND id = ?2", "it", w->num, parent);
    return query_step(q);
}

static err_code check_message(chat_writer *w, const json *m, err_detail *d)
{
    const char *id = json_str(json_get(m, "id"), "");
    const char *role = json_str(json_get(m, "role"), "");
    const json *parent = json_get(m, "parent");
    if (!json_is(m, JSON_OBJECT)) {
        return invalid_message(w, d, "", "must be an object");
    }
    if (!history_valid_id(id)) {
        return invalid_message(w, d, ".id", "must be 1 to 64 letters, digits, - or _");
    }
    if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0) {
        return invalid_message(w, d, ".role", "must be \"user\" or \"assistant\"");
    }
    if (!json_is(json_get(m, "text"), JSON_STRING)) {
        return invalid_message(w, d, ".text", "must be a string");
    }
    if (!json_is(parent, JSON_NULL) && !is_parent_there(w, json_str(parent, ""))) {
        return invalid_message(w, d, ".parent", "must be null, or the id of an earlier message of the chat");
    }
    return ERR_OK;
}

static err_code store_message(chat_writer *w, const json *m, const bytes *rest, int64_t *num, err_detail *d)
{
    const char *id = json_str(json_get(m, "id"), "");
    const char *parent = json_str(json_get(m, "parent"), NULL);
    const char *text = json_str(json_get(m, "text"), "");
    const int64_t is_settled = strcmp(json_str(json_get(m, "status"), ""), "streaming") != 0;
    database *db = w->st->db;
    query *q =
        database_query(db,
                       "SELECT num, parent IS ?3, length(CAST(text AS BLOB)) + length(CAST(rest AS BLOB))"
                       " FROM messages WHERE chat = ?1 AND id = ?2",
                       "itt", w->num, id, parent);
    w->n_bytes += (int64_t)(strlen(text) + rest->len);
    if (query_step(q)) {
        *num = query_int(q, 0);
        if (!query_int(q, 1)) {
            return invalid_message(w, d, ".parent", "must stay what it is");
        }
        w->n_bytes -= query_int(q, 2);
        query_step(database_query(
            db, "UPDATE messages SET revision = ?2, settled = ?3, text = ?4, rest = ?5 WHERE num = ?1",
            "iiitt", *num, w->revision, is_settled, text, bytes_str(rest)));
    } else {
        w->n_messages++;
        *num = query_returned(
            database_query(db,
                           "INSERT INTO messages(chat, id, revision, settled, text, rest, parent)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING num",
                           "itiittt", w->num, id, w->revision, is_settled, text, bytes_str(rest), parent));
    }
    return ERR_OK;
}

/* Records which files a message refers to; files without a reference are swept. */
static void store_files(chat_writer *w, int64_t message, const file_names *files)
{
    query_step(database_query(w->st->db, "DELETE FROM message_files WHERE message = ?1", "i", message));
    for (int i = 0; i < files->n; i++) {
        query_step(database_query(w->st->db,
                                  "INSERT OR IGNORE INTO message_files(message, hash) VALUES(?1, ?2)", "ib",
                                  message, files->hashes[i], (size_t)HASH_BYTES));
    }
}

static err_code write_message(chat_writer *w, const json *m, err_detail *d)
{
    file_names files = {.n = 0};
    int64_t num = 0;
    bytes rest = bytes_empty(LIMIT_HISTORY_CHAT_BYTES);
    err_code err = check_message(w, m, d);
    err = err == ERR_OK ? write_rest(w, &rest, m, &files, d) : err;
    err = err == ERR_OK ? store_message(w, m, &rest, &num, d) : err;
    if (err == ERR_OK) {
        store_files(w, num, &files);
    }
    bytes_deinit(&rest);
    return err;
}

/* ---- the chat ---- */

/* A member that is text, or NULL. */
static err_code read_title(const json *given, const char **out, err_detail *d)
{
    const json *title = json_get(given, "title");
    *out = json_str(title, NULL);
    if (!json_is(title, JSON_NULL) && (!*out || strlen(*out) > LIMIT_HISTORY_TITLE_BYTES)) {
        return invalid(d, "title", "must be a string of at most 1024 bytes");
    }
    return ERR_OK;
}

static err_code read_time(const json *given, const char *name, int64_t fallback, int64_t *out, err_detail *d)
{
    const json *value = json_get(given, name);
    *out = fallback;
    if (!json_is(value, JSON_NULL) && !json_int(value, 0, MAX_TIME, out)) {
        return invalid(d, name, "must be milliseconds since 1970");
    }
    return ERR_OK;
}

static err_code changed_elsewhere(err_detail *d)
{
    return err_set_param(d, ERR_INVALID, "revision", "revision_conflict",
                         "the chat was changed elsewhere; read it again and repeat your change");
}

/* Finds the chat, or makes it; checks that the writer has seen its latest revision. */
static err_code open_chat(chat_writer *w, const char *id, const json *given, chat_change *change,
                          err_detail *d)
{
    int64_t expected = 0;
    database *db = w->st->db;
    query *q = database_query(
        db, "SELECT num, revision, n_messages, n_bytes FROM chats WHERE scope = ?1 AND id = ?2", "it",
        (int64_t)w->scope, id);
    const bool exists = query_step(q);
    if (!w->is_import && !json_int(json_get(given, "revision"), 0, MAX_TIME, &expected)) {
        return err_set_param(d, ERR_INVALID, "revision", "missing_field",
                             "revision must be the one of the chat as you know it, or 0 for a new chat");
    }
    if (exists) {
        w->num = query_int(q, 0);
        w->n_messages = query_int(q, 2);
        w->n_bytes = query_int(q, 3);
        change->revision = query_int(q, 1);
        return change->revision == expected ? ERR_OK : changed_elsewhere(d);
    }
    if (expected != 0) {
        return history_no_chat(d);
    }
    q = database_query(db, "SELECT count(*) FROM chats WHERE scope = ?1", "i", (int64_t)w->scope);
    if (query_returned(q) >= LIMIT_HISTORY_CHATS) {
        return err_set_param(d, ERR_LIMIT, NULL, "too_many_chats",
                             "%d chats are kept already; delete some you no longer need",
                             LIMIT_HISTORY_CHATS);
    }
    const int64_t now = history_now_ms();
    int64_t created = now;
    const err_code err = read_time(given, "created", now, &created, d);
    q = database_query(db,
                       "INSERT INTO chats(scope, id, revision, title, created, updated, options, n_messages,"
                       " n_bytes) VALUES(?1, ?2, 0, '', ?3, ?4, '{}', 0, 0) RETURNING num",
                       "itii", (int64_t)w->scope, id, created, now);
    w->num = query_returned(q);
    return err;
}

static err_code write_options(chat_writer *w, const json *given, err_detail *d)
{
    const json *options = json_get(given, "options");
    if (json_is(options, JSON_NULL)) {
        return ERR_OK;
    }
    bytes text = bytes_empty(LIMIT_HISTORY_OPTIONS_BYTES);
    json_write(&text, options);
    err_code err = ERR_OK;
    if (text.no_memory) {
        err = err_set(d, ERR_NOMEM, "no memory for the options of this chat");
    } else if (!json_is(options, JSON_OBJECT) || text.failed) {
        err = invalid(d, "options", "must be an object of at most 1 MiB");
    } else {
        query_step(database_query(w->st->db, "UPDATE chats SET options = ?2 WHERE num = ?1", "it", w->num,
                                  bytes_str(&text)));
    }
    bytes_deinit(&text);
    return err;
}

static err_code write_head(chat_writer *w, const json *given, err_detail *d)
{
    const json *head = json_get(given, "head");
    if (json_is(head, JSON_NULL)) {
        return ERR_OK;
    }
    if (!is_parent_there(w, json_str(head, ""))) {
        return invalid(d, "head", "must be the id of a message of the chat");
    }
    query_step(database_query(w->st->db, "UPDATE chats SET head = ?2 WHERE num = ?1", "it", w->num,
                              json_str(head, "")));
    return ERR_OK;
}

static err_code write_messages(chat_writer *w, const json *list, err_detail *d)
{
    err_code err = ERR_OK;
    if (!json_is(list, JSON_NULL) && !json_is(list, JSON_ARRAY)) {
        return invalid(d, "messages", "must be a list");
    }
    for (const json *m = json_child(list); m && err == ERR_OK; m = json_next(m), w->at++) {
        err = write_message(w, m, d);
        if (err == ERR_OK &&
            (w->n_messages > LIMIT_HISTORY_MESSAGES || w->n_bytes > (int64_t)LIMIT_HISTORY_CHAT_BYTES)) {
            err = err_set_param(d, ERR_LIMIT, "messages", "chat_too_large",
                                "a chat may have %d messages and %zu MiB; begin a new one",
                                LIMIT_HISTORY_MESSAGES, LIMIT_HISTORY_CHAT_BYTES >> 20);
        }
    }
    return err;
}

err_code history_write_chat(history_store *st, uint64_t scope, const char *id, const json *given,
                            bool is_import, chat_change *change, err_detail *d)
{
    chat_writer w = {.st = st, .scope = scope, .is_import = is_import};
    const char *title = NULL;
    database *db = st->db;
    snprintf(change->id, sizeof change->id, "%s", id);
    err_code err = read_title(given, &title, d);
    err = err == ERR_OK ? read_time(given, "updated", history_now_ms(), &change->updated, d) : err;
    err = err == ERR_OK ? open_chat(&w, id, given, change, d) : err;
    if (err != ERR_OK) {
        return err;
    }
    w.revision = change->revision = query_returned(
        database_query(db, "UPDATE counter SET revision = revision + 1 RETURNING revision", ""));
    err = write_messages(&w, json_get(given, "messages"), d);
    err = err == ERR_OK ? write_head(&w, given, d) : err;
    err = err == ERR_OK ? write_options(&w, given, d) : err;
    if (err != ERR_OK) {
        return err;
    }
    query_step(database_query(
        db, "UPDATE chats SET revision = ?2, updated = ?3, n_messages = ?4, n_bytes = ?5 WHERE num = ?1",
        "iiiii", w.num, w.revision, change->updated, w.n_messages, w.n_bytes));
    if (title) {
        query_step(database_query(db, "UPDATE chats SET title = ?2 WHERE num = ?1 AND title <> ?2", "it",
                                  w.num, title));
    }
    return ERR_OK;
}

err_code history_store_put(history_store *st, uint64_t scope, const char *id, const json *given,
                           chat_change *change, err_detail *d)
{
    *change = (chat_change){.revision = 0};
    if (!json_is(given, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, NULL, "invalid_type", "the body must be a JSON object");
    }
    if (!history_valid_id(id)) {
        return invalid(d, "id", "must be 1 to 64 letters, digits, - or _");
    }
    database_begin(st->db);
    err_code err = history_check_room(st, 0, d);
    err = err == ERR_OK ? history_write_chat(st, scope, id, given, false, change, d) : err;
    err = err == ERR_OK ? history_check_room(st, 0, d) : err; /* what is beyond the quota is for deleting */
    return history_commit(st, err, d);
}

/* Refused if the chat is no longer at the revision that was asked for. */
static err_code delete_chat(history_store *st, uint64_t scope, const char *id, int64_t revision,
                            chat_change *change, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "SELECT num, revision FROM chats WHERE scope = ?1 AND id = ?2", "it",
                              (int64_t)scope, id);
    err_code err = query_step(q) ? ERR_OK : history_no_chat(d);
    if (err == ERR_OK) {
        const int64_t num = query_int(q, 0);
        change->revision = query_int(q, 1);
        if (revision != ANY_REVISION && revision != change->revision) {
            err = changed_elsewhere(d);
        } else {
            query_step(database_query(st->db, "DELETE FROM chats WHERE num = ?1", "i", num));
        }
    }
    return history_commit(st, err, d);
}

err_code history_store_delete(history_store *st, uint64_t scope, const char *id, int64_t revision,
                              chat_change *change, err_detail *d)
{
    *change = (chat_change){.revision = 0};
    snprintf(change->id, sizeof change->id, "%s", id);
    err_code err = delete_chat(st, scope, id, revision, change, d);
    const bool has_no_room = err == ERR_LIMIT || err == ERR_IO;
    if (has_no_room && history_make_room(st)) {
        err = delete_chat(st, scope, id, revision, change, d);
    }
    if (err == ERR_OK) {
        history_tidy_search(st);
        history_sweep_files(st);
    }
    if (has_no_room) {
        history_give_back(st);
    }
    return err;
}
