#include "base/json.h"
#include "base/limits.h"
#include "server/history/history_state.h"

/* Conversations of the API: a row for the head, and one for each item, so that an answer adds its own
 * without writing those before it. */

static err_code no_talk(err_detail *d)
{
    return err_set_param(d, ERR_NOT_FOUND, "conversation_id", "conversation_not_found",
                         "there is no such conversation");
}

/* Its number, and the bytes that it has; false if there is none. */
static bool find(history_store *st, uint64_t scope, const char *id, int64_t *num, int64_t *n_bytes)
{
    query *q = database_query(st->db, "SELECT num, n_bytes FROM talks WHERE scope = ?1 AND id = ?2", "it",
                              (int64_t)scope, id);
    const bool is_there = query_step(q);
    *num = is_there ? query_int(q, 0) : 0;
    *n_bytes = is_there ? query_int(q, 1) : 0;
    return is_there;
}

/* Adds items behind what is there. */
static void write_items(history_store *st, int64_t num, const json *first)
{
    query *q =
        database_query(st->db, "SELECT coalesce(max(place), 0) FROM talk_items WHERE talk = ?1", "i", num);
    int64_t place = query_returned(q);
    for (const json *v = first; v; v = json_next(v)) {
        bytes text = bytes_empty(SIZE_MAX);
        json_write(&text, v);
        q = database_query(st->db, "INSERT INTO talk_items(talk, place, id, text) VALUES(?1, ?2, ?3, ?4)",
                           "iitt", num, ++place, json_str(json_get(v, "id"), ""), bytes_str(&text));
        query_step(q);
        bytes_deinit(&text);
    }
}

static err_code parse(json_doc **doc, const bytes *items, err_detail *d)
{
    bytes list = bytes_empty(items->len + 2);
    bytes_append_char(&list, '[');
    bytes_append(&list, items->data, items->len);
    bytes_append_char(&list, ']');
    const err_code err =
        list.failed ? ERR_NOMEM : json_parse(doc, list.data, list.len, LIMIT_JSON_DEPTH + 2, d);
    bytes_deinit(&list);
    return err;
}

static err_code check_size(size_t n_bytes, err_detail *d)
{
    return n_bytes <= LIMIT_STORED_RESPONSE_BYTES
               ? ERR_OK
               : err_set_param(d, ERR_LIMIT, NULL, "conversation_too_large",
                               "a conversation may have %zu MiB; begin another",
                               LIMIT_STORED_RESPONSE_BYTES >> 20);
}

static err_code check_count(history_store *st, uint64_t scope, err_detail *d)
{
    query *q = database_query(st->db, "SELECT count(*) FROM talks WHERE scope = ?1", "i", (int64_t)scope);
    return query_returned(q) < LIMIT_HISTORY_TALKS
               ? ERR_OK
               : err_set_param(d, ERR_LIMIT, NULL, "too_many_conversations",
                               "%d conversations are kept already; delete some you no longer need",
                               LIMIT_HISTORY_TALKS);
}

/* The head's row; the items of before are gone. */
static int64_t write_head(history_store *st, uint64_t scope, const char *id, const json *head, size_t n_bytes)
{
    bytes text = bytes_empty(SIZE_MAX);
    json_write(&text, head);
    query *q = database_query(st->db,
                              "INSERT INTO talks(scope, id, head, n_bytes) VALUES(?1, ?2, ?3, ?4)"
                              " ON CONFLICT(scope, id) DO UPDATE SET head = excluded.head, n_bytes = "
                              "excluded.n_bytes RETURNING num",
                              "itti", (int64_t)scope, id, bytes_str(&text), (int64_t)n_bytes);
    const int64_t num = query_returned(q);
    bytes_deinit(&text);
    query_step(database_query(st->db, "DELETE FROM talk_items WHERE talk = ?1", "i", num));
    return num;
}

err_code history_talk_put(history_store *st, uint64_t scope, const char *id, const bytes *text, err_detail *d)
{
    json_doc *doc = NULL;
    int64_t num, n_bytes;
    err_code err = check_size(text->len, d);
    err = err == ERR_OK ? parse(&doc, text, d) : err;
    if (err == ERR_OK) {
        const json *head = json_child(json_root(doc));
        database_begin(st->db);
        err = find(st, scope, id, &num, &n_bytes) ? ERR_OK : check_count(st, scope, d);
        err = err == ERR_OK ? history_check_room(st, text->len, d) : err;
        if (err == ERR_OK) {
            write_items(st, write_head(st, scope, id, head, text->len), json_next(head));
        }
        err = history_commit(st, err, d);
    }
    json_free(doc);
    return err;
}

err_code history_talk_add(history_store *st, uint64_t scope, const char *id, const bytes *items,
                          err_detail *d)
{
    json_doc *doc = NULL;
    int64_t num, n_bytes;
    err_code err = parse(&doc, items, d);
    if (err == ERR_OK) {
        database_begin(st->db);
        err = find(st, scope, id, &num, &n_bytes) ? ERR_OK : no_talk(d);
        err = err == ERR_OK ? check_size((size_t)n_bytes + items->len + 1, d) : err;
        err = err == ERR_OK ? history_check_room(st, items->len, d) : err;
        if (err == ERR_OK) {
            write_items(st, num, json_child(json_root(doc)));
            query_step(database_query(st->db, "UPDATE talks SET n_bytes = n_bytes + ?2 WHERE num = ?1", "ii",
                                      num, (int64_t)items->len + 1));
        }
        err = history_commit(st, err, d);
    }
    json_free(doc);
    return err;
}

static void append_text(bytes *out, query *q, int column)
{
    size_t len;
    const char *text = query_text(q, column, &len);
    bytes_append(out, text, len);
}

err_code history_talk_get(history_store *st, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "SELECT num, head FROM talks WHERE scope = ?1 AND id = ?2", "it",
                              (int64_t)scope, id);
    const err_code err = query_step(q) ? ERR_OK : no_talk(d);
    if (err == ERR_OK) {
        const int64_t num = query_int(q, 0);
        append_text(out, q, 1);
        q = database_query(st->db, "SELECT text FROM talk_items WHERE talk = ?1 ORDER BY place", "i", num);
        while (query_step(q)) {
            bytes_append_char(out, ',');
            append_text(out, q, 0);
        }
    }
    return history_commit(st, err, d);
}

err_code history_talk_item(history_store *st, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db,
                              "SELECT i.text FROM talk_items i JOIN talks t ON t.num = i.talk"
                              " WHERE t.scope = ?1 AND i.id = ?2 ORDER BY t.num DESC, i.place DESC LIMIT 1",
                              "it", (int64_t)scope, id);
    const bool is_there = query_step(q);
    if (is_there) {
        append_text(out, q, 0);
    }
    return history_commit(st, is_there ? ERR_OK : no_talk(d), d);
}

static err_code delete_talk(history_store *st, uint64_t scope, const char *id, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "DELETE FROM talks WHERE scope = ?1 AND id = ?2 RETURNING 1", "it",
                              (int64_t)scope, id);
    return history_commit(st, query_returned(q) ? ERR_OK : no_talk(d), d);
}

err_code history_talk_remove(history_store *st, uint64_t scope, const char *id, err_detail *d)
{
    err_code err = delete_talk(st, scope, id, d);
    const bool has_no_room = err == ERR_LIMIT || err == ERR_IO;
    if (has_no_room && history_make_room(st)) {
        err = delete_talk(st, scope, id, d);
    }
    if (has_no_room) {
        history_give_back(st);
    }
    return err;
}
