#include <stdio.h>
#include <string.h>

#include "server/service/serve_state.h"

/* A binary frame: u8 version, u8 kind, u16 flags, u32 handle, u64 offset, data; little endian. */
enum { CHUNK_VERSION = 1, CHUNK_KIND = 1, CHUNK_LAST = 1 };

static uint64_t read_number(const uint8_t *data, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)data[i] << 8 * i;
    }
    return value;
}

/* ---- what is said ---- */

static void append_upload(bytes *out, const upload *up)
{
    bytes_printf(out,
                 "\"upload\":{\"id\":\"%s\",\"handle\":%u,\"bytes\":%llu,\"received\":%llu,\"chunk_size\":%d,"
                 "\"window\":%d,\"status\":\"%s\",\"expires_at\":%lld}",
                 up->id, up->handle, (unsigned long long)up->bytes, (unsigned long long)up->received,
                 LIMIT_UPLOAD_CHUNK, LIMIT_UPLOAD_WINDOW,
                 up->status == UPLOAD_COMPLETED ? "completed" : "pending", (long long)up->expires_at);
}

static void append_event_id(bytes *out, const char *event_id)
{
    if (event_id) {
        bytes_append_str(out, ",\"event_id\":");
        bytes_append_json(out, event_id, strlen(event_id));
    }
}

/* up: NULL if the bytes were here before any were sent. */
static void say_completed(serve *s, conn *c, const upload *up, const stored_file *f, const char *event_id)
{
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    bytes_append_str(&text, "{\"type\":\"upload.completed\"");
    append_event_id(&text, event_id);
    bytes_append_char(&text, ',');
    if (up) {
        append_upload(&text, up);
    } else {
        bytes_printf(&text,
                     "\"upload\":{\"id\":null,\"handle\":null,\"bytes\":%llu,\"received\":%llu,"
                     "\"status\":\"completed\",\"expires_at\":%lld}",
                     (unsigned long long)f->bytes, (unsigned long long)f->bytes, (long long)f->expires_at);
    }
    bytes_printf(&text, ",\"file_id\":\"%s\",\"deduplicated\":%s", f->id, f->was_known ? "true" : "false");
    serve_tell_completed(s, c, &text, f);
    bytes_deinit(&text);
}

/* A fault that leaves the upload as it is; expected: the offset that should come next, with a
 * gap. */
static void say_error(serve *s, conn *c, const upload *up, const char *event_id, const api_error *e,
                      bool is_gap)
{
    bytes text, extra;
    bytes_init(&text, s->opt->max_unread);
    bytes_init(&extra, s->opt->max_unread);
    append_event_id(&extra, event_id);
    if (is_gap) {
        bytes_printf(&extra, ",\"expected\":%llu", (unsigned long long)up->received);
    }
    bytes_printf(&text, "{\"type\":\"error\",\"status\":%d,\"error\":", e->status);
    api_error_write(&text, e, bytes_str(&extra));
    bytes_fail_as(&text, &extra);
    if (up) {
        bytes_printf(&text, ",\"upload_id\":\"%s\"", up->id);
    }
    bytes_append_char(&text, '}');
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
    bytes_deinit(&extra);
}

/* The upload is over without a file: says so and forgets it. c: NULL if it is gone. */
static void fail_upload(serve *s, conn *c, upload *up, const char *event_id, const api_error *e)
{
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    bytes_printf(&text, "{\"type\":\"upload.failed\",\"upload_id\":\"%s\"", up->id);
    append_event_id(&text, event_id);
    bytes_append_str(&text, ",\"error\":");
    api_error_write(&text, e, NULL);
    bytes_append_char(&text, '}');
    if (c) {
        serve_queue_frame(s, c, &text);
    }
    bytes_deinit(&text);
    uploads_drop(&s->uploads, up);
}

bool serve_take_ack(serve *s, conn *c, bytes *out)
{
    for (size_t i = 0; i < s->uploads.n; i++) {
        upload *up = s->uploads.list[i];
        if (up->conn == c->id && up->ack_due) {
            up->ack_due = false;
            up->told = upload_written(up);
            bytes_printf(out,
                         "{\"type\":\"upload.ack\",\"upload_id\":\"%s\",\"handle\":%u,\"received\":%llu,"
                         "\"bytes\":%llu}",
                         up->id, up->handle, (unsigned long long)up->told, (unsigned long long)up->bytes);
            return true;
        }
    }
    return false;
}

/* Only the latest state is told, when the socket has room: a slow reader piles up nothing. */
static void ack(serve *s, upload *up)
{
    up->ack_due = true;
    net_want_write(s->net, up->conn);
}

void serve_ack_all(serve *s)
{
    for (size_t i = 0; i < s->uploads.n; i++) {
        upload *up = s->uploads.list[i];
        if (up->kind == UPLOAD_BY_CHUNKS && up->status == UPLOAD_PENDING && upload_written(up) != up->told) {
            ack(s, up);
        }
    }
}

/* Acknowledges what is written, if the client waits for that or may soon send no more. */
static void ack_written(serve *s, upload *up)
{
    const uint64_t written = upload_written(up);
    const bool is_all = up->ack_wanted && written == up->received;
    if (is_all || written - up->told >= LIMIT_UPLOAD_WINDOW / 4) {
        up->ack_wanted = up->ack_wanted && !is_all;
        ack(s, up);
    }
}

void serve_chunks_written(serve *s, upload *up)
{
    err_detail d = {0};
    err_code err = file_sink_error(up->sink, &d);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        fail_upload(s, serve_conn(s, up->conn), up, NULL, &e);
    } else {
        ack_written(s, up);
    }
}

/* ---- what is asked ---- */

static void on_create(serve *s, conn *c, const json *root, const char *event_id)
{
    upload *up = NULL;
    stored_file known;
    err_detail d = {0};
    err_code err = serve_begin_upload(s, c->scope, root, UPLOAD_BY_CHUNKS, &up, &known, &d);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        say_error(s, c, NULL, event_id, &e, false);
        return;
    }
    if (!up) {
        say_completed(s, c, NULL, &known, event_id);
        return;
    }
    up->conn = c->id;
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    bytes_append_str(&text, "{\"type\":\"upload.created\"");
    append_event_id(&text, event_id);
    bytes_append_char(&text, ',');
    append_upload(&text, up);
    bytes_append_char(&text, '}');
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
}

/* A word about an upload that is ending: it is answered at the end. */
static void ask_end(serve *s, conn *c, upload *up, const char *event_id)
{
    if (up->asked.len + (event_id ? strlen(event_id) : 0) + 2 > up->asked.max) {
        api_error e;
        api_error_set(&e, 429, "upload_not_pending", "upload_id", "this upload is being completed");
        say_error(s, c, up, event_id, &e, false);
        return;
    }
    bytes_append_char(&up->asked, event_id ? '+' : '-');
    bytes_append_str(&up->asked, event_id ? event_id : "");
    bytes_append_char(&up->asked, '\0');
}

static void say_unknown(serve *s, conn *c, const char *event_id)
{
    api_error e;
    api_error_set(&e, 404, "upload_not_found", "upload_id",
                  "there is no such upload; it may have expired: begin again");
    say_error(s, c, NULL, event_id, &e, false);
}

void serve_tell_ended(serve *s, upload *up, const api_error *failure)
{
    conn *c = serve_conn(s, up->conn);
    bytes asked = up->asked;
    bytes_init(&up->asked, asked.max);
    up->ack_due = false;
    up->told = up->received;
    if (failure) {
        const char *first = bytes_str(&asked)[0] == '+' ? asked.data + 1 : NULL;
        fail_upload(s, c, up, first, failure);
    }
    for (size_t at = 0, n = 0; c && at < asked.len; at += strlen(asked.data + at) + 1, n++) {
        const char *event_id = asked.data[at] == '+' ? asked.data + at + 1 : NULL;
        if (!failure) {
            say_completed(s, c, up, &up->file, event_id);
        } else if (n > 0) {
            say_unknown(s, c, event_id);
        }
    }
    bytes_deinit(&asked);
}

static void on_complete(serve *s, conn *c, upload *up, const json *root, const char *event_id)
{
    const char *digest = json_str(json_get(root, "sha256"), NULL);
    err_detail d = {0};
    api_error e;
    if (digest && !hash_parse_hex(up->hash, digest)) {
        api_error_set(&e, 400, "invalid_value", "sha256", "sha256 must be 64 hexadecimal digits");
        say_error(s, c, up, event_id, &e, false);
        return;
    }
    if (up->status == UPLOAD_COMPLETED) {
        say_completed(s, c, up, &up->file, event_id);
        return;
    }
    up->has_hash = up->has_hash || digest;
    err_code err = uploads_finish(up, &d);
    if (err == ERR_OK) {
        up->ack_due = up->ack_wanted = false;
        ask_end(s, c, up, event_id);
        serve_step_upload(s, up);
        return;
    }
    api_error_from(&e, err, &d);
    say_error(s, c, up, event_id, &e, false);
}

static void on_cancel(serve *s, conn *c, upload *up, const char *event_id)
{
    api_error e;
    api_error_set(&e, 400, "cancelled", NULL, "the upload was cancelled");
    fail_upload(s, c, up, event_id, &e);
}

void serve_socket_upload(serve *s, conn *c, const char *type, const json *root, const char *event_id)
{
    static const char PREFIX[] = "upload.";
    if (strncmp(type, PREFIX, sizeof PREFIX - 1) != 0) {
        return;
    }
    const char *verb = type + sizeof PREFIX - 1;
    const bool completes = strcmp(verb, "complete") == 0, cancels = strcmp(verb, "cancel") == 0;
    if (strcmp(verb, "create") == 0) {
        on_create(s, c, root, event_id);
        return;
    }
    if (!completes && !cancels && strcmp(verb, "resume") != 0) {
        return;
    }
    upload *up = uploads_find(&s->uploads, c->scope, json_str(json_get(root, "upload_id"), ""));
    if (!up || up->kind != UPLOAD_BY_CHUNKS) {
        say_unknown(s, c, event_id);
        return;
    }
    up->conn = c->id; /* whoever spoke last hears of it */
    up->gap_told = false;
    if (up->status == UPLOAD_ENDING) {
        ask_end(s, c, up, event_id);
    } else if (completes) {
        on_complete(s, c, up, root, event_id);
    } else if (up->status == UPLOAD_COMPLETED) {
        say_completed(s, c, up, &up->file, event_id);
    } else if (cancels) {
        on_cancel(s, c, up, event_id);
    } else {
        ack(s, up);
    }
}

/* ---- chunks ---- */

/* After a gap more frames are on their way: one word about all of them is enough. */
static void on_gap(serve *s, conn *c, upload *up, const api_error *e)
{
    if (!up->gap_told) {
        up->gap_told = true;
        say_error(s, c, up, NULL, e, true);
    }
}

static void on_unknown(serve *s, conn *c, uint32_t handle)
{
    api_error e;
    if (c->unknown_handle != handle) {
        c->unknown_handle = handle;
        api_error_set(&e, 404, "upload_not_found", NULL,
                      "no upload of this socket has the handle %u; upload.resume takes one up again", handle);
        say_error(s, c, NULL, NULL, &e, false);
    }
}

void serve_on_binary(void *ctx, uint64_t id, const void *data, size_t n)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    const uint8_t *head = data;
    api_error e;
    err_detail d = {0};
    if (!c) {
        return;
    }
    if (n <= SERVE_CHUNK_HEADER || head[0] != CHUNK_VERSION || head[1] != CHUNK_KIND) {
        api_error_set(&e, 400, "invalid_event", NULL,
                      "a binary frame is a chunk of an upload: a header of %d bytes, then data",
                      SERVE_CHUNK_HEADER);
        say_error(s, c, NULL, NULL, &e, false);
        return;
    }
    const uint32_t handle = (uint32_t)read_number(head + 4, 4);
    const uint64_t offset = read_number(head + 8, 8);
    const size_t n_data = n - SERVE_CHUNK_HEADER;
    upload *up = uploads_find_handle(&s->uploads, c->scope, handle);
    if (!up || up->kind != UPLOAD_BY_CHUNKS || up->conn != c->id) {
        on_unknown(s, c, handle);
        return;
    }
    const uint64_t before = up->received;
    /* An offset near the end of all numbers must not wrap around. */
    err_code err = offset > up->bytes || n_data > up->bytes - offset
                       ? err_set_param(&d, ERR_LIMIT, NULL, "upload_too_large",
                                       "the chunk reaches beyond the %llu bytes announced",
                                       (unsigned long long)up->bytes)
                       : upload_chunk(up, offset, head + SERVE_CHUNK_HEADER, n_data, &d);
    s->metrics.upload_bytes += up->received - before;
    if (err == ERR_INVALID) {
        api_error_from(&e, err, &d);
        on_gap(s, c, up, &e);
        return;
    }
    if (err != ERR_OK) {
        api_error_from(&e, err, &d);
        fail_upload(s, c, up, NULL, &e);
        return;
    }
    up->gap_told = false;
    const bool is_last = head[2] & CHUNK_LAST || up->received == up->bytes;
    up->ack_wanted = up->ack_wanted || is_last || up->received == before;
    ack_written(s, up);
    serve_pace(s, c);
}
