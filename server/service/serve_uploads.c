#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/protocol/request_fields.h"
#include "server/service/serve_state.h"

static const char *status_name(const upload *up)
{
    return up->status == UPLOAD_COMPLETED ? "completed" : "pending";
}

/* ---- POST /v1/uploads and what follows ---- */

/* status: NULL for the upload's own. */
static void write_upload(bytes *out, const upload *up, const char *status)
{
    bytes_printf(
        out, "{\"id\":\"%s\",\"object\":\"upload\",\"bytes\":%llu,\"created_at\":%lld,\"expires_at\":%lld,",
        up->id, (unsigned long long)up->bytes, (long long)up->created_at, (long long)up->expires_at);
    bytes_append_str(out, "\"filename\":");
    bytes_append_json(out, up->facts.name, strlen(up->facts.name));
    bytes_printf(out, ",\"purpose\":\"%s\",\"status\":\"%s\",\"file\":", up->facts.purpose,
                 status ? status : status_name(up));
    if (up->status == UPLOAD_COMPLETED) {
        serve_write_file(out, &up->file);
    } else {
        bytes_append_str(out, "null");
    }
    bytes_append_char(out, '}');
}

static void send_upload(serve *s, conn *c, const upload *up, const char *status)
{
    bytes body;
    bytes_init(&body, 65536);
    write_upload(&body, up, status);
    serve_send_body(s, c, &body);
}

void serve_send_part(serve *s, conn *c, const upload *up, const upload_part *part)
{
    bytes body;
    bytes_init(&body, 4096);
    bytes_printf(&body, "{\"id\":\"%s\",\"object\":\"upload.part\",\"created_at\":%lld,\"upload_id\":\"%s\"}",
                 part->id, (long long)clock_unix_s(), up->id);
    serve_send_body(s, c, &body);
}

/* The fields that begin an upload: filename, bytes, purpose, sha256. */
static err_code read_facts(const json *root, uint64_t scope, uint64_t max_bytes, file_facts *facts,
                           uint64_t *n_bytes, bool *has_hash, uint8_t hash[HASH_BYTES], err_detail *d)
{
    const char *name = "", *purpose = "vision", *digest = NULL;
    int64_t n = -1;
    first_error e = {.detail = d};
    request_string(&e, &name, root, "filename", FILE_NAME_MAX - 1);
    request_string(&e, &purpose, root, "purpose", FILE_PURPOSE_MAX - 1);
    request_string(&e, &digest, root, "sha256", 2 * HASH_BYTES);
    request_int(&e, &n, root, "bytes", 1, INT64_MAX / 4);
    err_code err = e.code;
    if (err == ERR_OK && n < 1) {
        err = err_set_param(d, ERR_INVALID, "bytes", "missing_field", "bytes must say how long the file is");
    }
    if (err == ERR_OK && !serve_valid_purpose(purpose)) {
        err = err_set_param(d, ERR_INVALID, "purpose", "invalid_value",
                            "purpose may be \"vision\" or \"user_data\"");
    }
    *has_hash = digest != NULL;
    if (err == ERR_OK && digest && !hash_parse_hex(hash, digest)) {
        err =
            err_set_param(d, ERR_INVALID, "sha256", "invalid_value", "sha256 must be 64 hexadecimal digits");
    }
    if (err == ERR_OK && (uint64_t)n > max_bytes) {
        err =
            err_set_param(d, ERR_LIMIT, "bytes", "upload_too_large",
                          "a file may have %llu bytes at most (--max-upload)", (unsigned long long)max_bytes);
    }
    if (err == ERR_OK) {
        *facts = (file_facts){.scope = scope};
        snprintf(facts->name, sizeof facts->name, "%s", name);
        snprintf(facts->purpose, sizeof facts->purpose, "%s", purpose);
        *n_bytes = (uint64_t)n;
    }
    return err;
}

err_code serve_begin_upload(serve *s, uint64_t scope, const json *root, upload_kind kind, upload **out,
                            stored_file *known, err_detail *d)
{
    file_facts facts;
    uint64_t n_bytes;
    bool has_hash;
    uint8_t hash[HASH_BYTES];
    *out = NULL;
    known->id[0] = '\0';
    err_code err = read_facts(root, scope, file_store_get_options(s->files)->max_bytes, &facts, &n_bytes,
                              &has_hash, hash, d);
    if (err != ERR_OK) {
        return err;
    }
    if (has_hash && kind == UPLOAD_BY_CHUNKS && file_store_link(s->files, hash, n_bytes, &facts, known)) {
        return ERR_OK;
    }
    err = uploads_begin(&s->uploads, out, &facts, n_bytes, kind, d);
    if (err == ERR_OK) {
        (*out)->has_hash = has_hash;
        memcpy((*out)->hash, hash, HASH_BYTES);
    }
    return err;
}

static err_code on_begin(serve *s, conn *c, const json *root, err_detail *d)
{
    upload *up = NULL;
    stored_file known;
    err_code err = serve_begin_upload(s, c->scope, root, UPLOAD_BY_PARTS, &up, &known, d);
    if (err == ERR_OK) {
        send_upload(s, c, up, NULL);
    }
    return err;
}

static err_code on_complete(serve *s, conn *c, upload *up, const json *root, err_detail *d)
{
    const char *ids[LIMIT_UPLOAD_PARTS], *digest = NULL;
    size_t n = 0;
    if (up->status == UPLOAD_COMPLETED) {
        send_upload(s, c, up, NULL);
        return ERR_OK;
    }
    const json *list = json_get(root, "part_ids");
    if (!json_is(list, JSON_ARRAY) || json_len(list) > LIMIT_UPLOAD_PARTS) {
        return err_set_param(d, ERR_INVALID, "part_ids", "invalid_type",
                             "part_ids must be a list of at most %d ids", LIMIT_UPLOAD_PARTS);
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        ids[n++] = json_str(v, "");
    }
    if (json_str(json_get(root, "md5"), NULL)) {
        return err_set_param(d, ERR_UNSUPPORTED, "md5", "not_supported", "md5 is not checked; send sha256");
    }
    first_error e = {.detail = d};
    request_string(&e, &digest, root, "sha256", 2 * HASH_BYTES);
    err_code err = e.code;
    if (err == ERR_OK && digest && !hash_parse_hex(up->hash, digest)) {
        err =
            err_set_param(d, ERR_INVALID, "sha256", "invalid_value", "sha256 must be 64 hexadecimal digits");
    }
    up->has_hash = up->has_hash || (err == ERR_OK && digest);
    if (err == ERR_OK) {
        err = uploads_assemble(&s->uploads, up, ids, n, d);
    }
    if (err == ERR_OK) {
        up->conn = c->id; /* the reply comes when the parts are put together */
        serve_step_upload(s, up);
    }
    return err;
}

/* Answers the request that puts the parts together, if its client still waits. failure: or NULL. */
static void tell_completer(serve *s, upload *up, const api_error *failure)
{
    conn *c = serve_conn(s, up->conn);
    up->conn = 0;
    if (!c || !c->route || c->route->id != ROUTE_UPLOAD_COMPLETE || strcmp(c->param, up->id) != 0) {
        return;
    }
    if (failure) {
        serve_send_error(s, c, failure);
    } else {
        send_upload(s, c, up, NULL);
    }
}

void serve_on_uploads(serve *s, conn *c, const bytes *body)
{
    api_error e;
    err_detail d = {0};
    json_doc *doc = NULL;
    const json *root = NULL;
    const bool takes_json = c->route->takes_json;
    err_code err = ERR_OK;
    if (takes_json) {
        err = json_parse(&doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d);
        root = err == ERR_OK ? json_root(doc) : NULL;
        if (err == ERR_OK && !json_is(root, JSON_OBJECT)) {
            err = err_set_param(&d, ERR_INVALID, "", "invalid_type", "the body must be a JSON object");
        }
    }
    upload *up = c->route->id == ROUTE_UPLOADS ? NULL : uploads_find(&s->uploads, c->scope, c->param);
    if (err == ERR_OK && c->route->id == ROUTE_UPLOADS) {
        err = on_begin(s, c, root, &d);
    } else if (err == ERR_OK && !up) {
        err = err_set_param(&d, ERR_NOT_FOUND, NULL, "upload_not_found",
                            "there is no such upload; it may have expired");
    } else if (err == ERR_OK && c->route->id == ROUTE_UPLOAD_COMPLETE) {
        err = on_complete(s, c, up, root, &d);
    } else if (err == ERR_OK && up->status == UPLOAD_COMPLETED) {
        err = err_set_param(&d, ERR_INVALID, NULL, "upload_not_pending", "this upload is complete");
    } else if (err == ERR_OK) {
        send_upload(s, c, up, "cancelled");
        api_error_set(&e, 400, "cancelled", NULL, "the upload was cancelled");
        tell_completer(s, up, &e);
        uploads_drop(&s->uploads, up);
    }
    json_free(doc);
    if (err != ERR_OK) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    }
}

/* ---- what was written, and time ---- */

void serve_step_upload(serve *s, upload *up)
{
    err_detail d = {0};
    bool done = false;
    err_code err = uploads_step(&s->uploads, up, &done, &d);
    if (err == ERR_OK && !done) {
        return;
    }
    api_error e;
    api_error_from(&e, err, &d);
    if (up->kind == UPLOAD_BY_CHUNKS) {
        serve_tell_ended(s, up, done ? NULL : &e);
    } else {
        tell_completer(s, up, done ? NULL : &e);
    }
}

void serve_pace(serve *s, conn *c)
{
    size_t waiting = serve_form_waiting(c);
    for (size_t i = 0; i < s->uploads.n; i++) {
        const upload *up = s->uploads.list[i];
        waiting += up->conn == c->id && up->sink ? file_sink_waiting(up->sink) : 0;
    }
    c->is_paused = waiting > LIMIT_UPLOAD_WAITING;
    net_pause(s->net, c->id, c->is_paused);
}

static void pace_paused(serve *s)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c && c->is_paused) {
            serve_pace(s, c);
        }
    }
}

void serve_on_written(serve *s)
{
    if (!write_queue_has_news(s->writes)) {
        return;
    }
    for (size_t i = s->uploads.n; i-- > 0;) { /* from the last one: this one may go */
        upload *up = s->uploads.list[i];
        if (!up->sink || !file_sink_poll(up->sink)) {
            continue;
        }
        if (up->status == UPLOAD_ENDING) {
            serve_step_upload(s, up);
        } else {
            serve_chunks_written(s, up);
        }
    }
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c) {
            serve_form_written(s, c);
        }
    }
    pace_paused(s);
}

void serve_tick_uploads(serve *s)
{
    const int64_t now = clock_unix_s();
    if (now != s->files_checked_s) {
        s->files_checked_s = now;
        file_store_expire(s->files, now);
        uploads_expire(&s->uploads, now);
    }
    pace_paused(s); /* an upload that they waited for may be gone */
    serve_ack_all(s);
    serve_tick_previews(s);
}
