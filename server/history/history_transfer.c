#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/media/data_uri.h"
#include "server/media/file_writer.h"
#include "server/history/history_state.h"

/* The file has the form of the page's own export (web/js/state/transfer.js), so that either reads what
 * the other wrote. */
static const char FORMAT[] = "parley-chats";

enum {
    FLUSH_BYTES = 1 << 16,
    PIECE_BYTES = 48 * 1024 /* a multiple of 3: pieces of base64 join */,
    ID_CHARS = 40
};

/* A file that is being written through a buffer. */
typedef struct exporter {
    history_store *st;
    uint64_t scope;
    int fd;
    bytes text;
    uint64_t n_written;
    bool failed;
} exporter;

static err_code no_memory(err_detail *d)
{
    return err_set(d, ERR_NOMEM, "no memory for the export");
}

static void flush(exporter *e)
{
    e->failed = e->failed || !file_write_all(e->fd, e->text.data, e->text.len) || e->text.failed;
    e->n_written += e->text.len;
    bytes_clear(&e->text);
}

/* Letters and signs of a media type; what is none is plain bytes. */
static bool is_media_type(const char *text)
{
    const char *slash = strchr(text, '/');
    static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyz0123456789.+-/";
    return slash && slash != text && slash[1] && text[strspn(text, ALLOWED)] == '\0' && strlen(text) < 100;
}

/* Writes ,"data":"data:...": a file that is gone is left out, but not one that cannot be asked for. The
 * statements for it run outside of the caller's. */
static void export_file(exporter *e, const json *attachment)
{
    const char *type = json_str(json_get(attachment, "mime"), "");
    uint8_t piece[PIECE_BYTES];
    file_handle file;
    const err_code err =
        history_store_open_file(e->st, e->scope, json_str(json_get(attachment, "sha256"), ""), &file, NULL);
    if (err != ERR_OK) {
        e->failed = e->failed || err != ERR_NOT_FOUND;
        return;
    }
    bytes_printf(&e->text, ",\"data\":\"data:%s;base64,",
                 is_media_type(type) ? type : "application/octet-stream");
    for (uint64_t at = 0; at < file.bytes && !e->failed;) {
        const int64_t n = file_read_at(file.fd, piece, sizeof piece, at);
        e->failed = n <= 0;
        base64_encode(&e->text, piece, n > 0 ? (size_t)n : 0);
        at += n > 0 ? (uint64_t)n : 0;
        flush(e);
    }
    bytes_append_char(&e->text, '"');
    close(file.fd);
}

static void export_attachments(exporter *e, const json *list)
{
    bytes_append_char(&e->text, '[');
    for (const json *a = json_child(list); a; a = json_next(a)) {
        bytes_append_str(&e->text, a == json_child(list) ? "{" : ",{");
        for (const json *m = json_child(a); m; m = json_next(m)) {
            history_begin_member(&e->text, json_key(m), m == json_child(a));
            json_write(&e->text, m);
        }
        if (json_is(json_get(a, "sha256"), JSON_STRING)) {
            export_file(e, a);
        }
        bytes_append_char(&e->text, '}');
    }
    bytes_append_char(&e->text, ']');
}

static void export_message(exporter *e, const json *message)
{
    bytes_append_char(&e->text, '{');
    for (const json *m = json_child(message); m; m = json_next(m)) {
        history_begin_member(&e->text, json_key(m), m == json_child(message));
        if (strcmp(json_key(m), "attachments") == 0) {
            export_attachments(e, m);
        } else {
            json_write(&e->text, m);
        }
    }
    bytes_append_char(&e->text, '}');
    if (e->text.len > FLUSH_BYTES) {
        flush(e);
    }
}

static err_code export_chat(exporter *e, const char *id, err_detail *d)
{
    static const char *const MEMBERS[] = {"id", "title", "created", "updated", "head", "options"};
    json_doc *doc = NULL;
    bytes text = bytes_empty(SIZE_MAX);
    err_code err = history_store_get(e->st, &text, e->scope, id, 0, d);
    err = err == ERR_OK && text.failed ? no_memory(d) : err;
    err = err == ERR_OK ? json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, d) : err;
    bytes_deinit(&text);
    if (err != ERR_OK) {
        return err;
    }
    const json *chat = json_root(doc);
    bytes_append_char(&e->text, '{');
    for (size_t i = 0; i < sizeof MEMBERS / sizeof MEMBERS[0]; i++) {
        bytes_printf(&e->text, "\"%s\":", MEMBERS[i]);
        json_write(&e->text, json_get(chat, MEMBERS[i]));
        bytes_append_char(&e->text, ',');
    }
    bytes_append_str(&e->text, "\"messages\":[");
    const json *messages = json_get(chat, "messages");
    for (const json *m = json_child(messages); m; m = json_next(m)) {
        bytes_append_str(&e->text, m == json_child(messages) ? "\n" : ",\n");
        export_message(e, m);
    }
    bytes_append_str(&e->text, "]}");
    json_free(doc);
    return ERR_OK;
}

/* Writes the ids of all chats, each with a NUL: the list does not stay open while they are read. */
static err_code list_ids(history_store *st, uint64_t scope, bytes *out, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "SELECT id FROM chats WHERE scope = ?1 ORDER BY updated DESC, num DESC",
                              "i", (int64_t)scope);
    while (query_step(q)) {
        size_t len;
        const char *id = query_text(q, 0, &len);
        bytes_append(out, id, len + 1);
    }
    const err_code err = history_commit(st, ERR_OK, d);
    return err == ERR_OK && out->failed ? no_memory(d) : err;
}

err_code history_store_export(history_store *st, uint64_t scope, file_handle *out, err_detail *d)
{
    exporter e = {.st = st, .scope = scope, .fd = history_temporary_file(st)};
    *out = (file_handle){.fd = -1};
    if (e.fd < 0) {
        log_error("history", "a temporary file: %s", strerror(errno));
        return history_bad_disk(d, "a temporary file");
    }
    bytes ids = bytes_empty(SIZE_MAX);
    bytes_init(&e.text, SIZE_MAX);
    err_code err = list_ids(st, scope, &ids, d);
    bytes_printf(&e.text, "{\"format\":\"%s\",\"version\":1,\"chats\":[", FORMAT);
    for (size_t at = 0; at < ids.len && err == ERR_OK && !e.failed; at += strlen(ids.data + at) + 1) {
        bytes_append_str(&e.text, at ? ",\n" : "\n");
        err = export_chat(&e, ids.data + at, d);
        flush(&e);
    }
    bytes_append_str(&e.text, "]}\n");
    flush(&e);
    err = err == ERR_OK && e.failed ? history_bad_disk(d, "a temporary file") : err;
    if (err == ERR_OK) {
        out->fd = e.fd;
        out->bytes = e.n_written;
    } else {
        close(e.fd);
    }
    bytes_deinit(&ids);
    bytes_deinit(&e.text);
    return err;
}

err_code history_store_import(history_store *st, uint64_t scope, const json *given, int *n_chats,
                              err_detail *d)
{
    const json *chats = json_get(given, "chats");
    chat_change change;
    *n_chats = 0;
    if (strcmp(json_str(json_get(given, "format"), ""), FORMAT) != 0 || !json_is(chats, JSON_ARRAY)) {
        return err_set_param(d, ERR_INVALID, "format", "invalid_value", "the body holds no exported chats");
    }
    database_begin(st->db);
    err_code err = history_check_room(st, 0, d);
    for (const json *chat = json_child(chats); chat && err == ERR_OK; chat = json_next(chat)) {
        char id[ID_CHARS];
        hash_random_id(id, sizeof id, "c_");
        err = json_is(chat, JSON_OBJECT) ? history_write_chat(st, scope, id, chat, true, &change, d)
                                         : err_set_param(d, ERR_INVALID, "chats", "invalid_value",
                                                         "chats must be a list of objects");
        if (err != ERR_OK) {
            err = err_prefix(d, err, "chats[%d]", *n_chats);
        }
        *n_chats += err == ERR_OK;
    }
    err = err == ERR_OK ? history_check_room(st, 0, d) : err;
    return history_commit(st, err, d);
}
