#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/media/multipart.h"
#include "server/service/serve_state.h"

enum {
    FORM_OVERHEAD = 65536, /* of a form around its file */
    FORM_TEXT_MAX = 4096,
    LIST_LIMIT = 10000,
    SEND_BYTES = 16384
};

/* ---- forms ---- */

/* A form with a file that is being read: POST /v1/files, or a part of an upload. */
struct form_reader {
    serve *s;
    multipart m;
    bool is_part;
    char upload_id[FILE_ID_MAX]; /* looked up anew for every piece: it may end meanwhile */
    file_facts facts;
    file_sink *sink;
    uint64_t reserved; /* of the quota, for a file; a part's bytes are its upload's */
    bool has_file, in_file;
    bool is_whole; /* and waits for its last bytes to be written */
    char field[MULTIPART_NAME_MAX];
    bytes text;
};

static upload *upload_of(const form_reader *f)
{
    return uploads_find(&f->s->uploads, f->facts.scope, f->upload_id);
}

static err_code no_upload(err_detail *d)
{
    return err_set_param(d, ERR_NOT_FOUND, NULL, "upload_not_found",
                         "there is no such upload; it may have expired");
}

static err_code on_field(void *ctx, const multipart_field *field, err_detail *d)
{
    form_reader *f = ctx;
    f->in_file = strcmp(field->name, f->is_part ? "data" : "file") == 0;
    bytes_clear(&f->text);
    snprintf(f->field, sizeof f->field, "%s", field->name);
    if (!f->in_file) {
        return ERR_OK;
    }
    if (f->has_file) {
        return err_set_param(d, ERR_INVALID, field->name, "invalid_value", "send one file a request");
    }
    f->has_file = true;
    snprintf(f->facts.name, sizeof f->facts.name, "%s", field->filename);
    return ERR_OK;
}

static err_code on_field_data(void *ctx, const void *data, size_t n, err_detail *d)
{
    form_reader *f = ctx;
    if (!f->in_file) {
        bytes_append(&f->text, data, n);
        return f->text.failed ? err_set_param(d, ERR_LIMIT, f->field, "invalid_value",
                                              "a field beside the file is too long")
                              : ERR_OK;
    }
    f->s->metrics.upload_bytes += n;
    if (!f->is_part) {
        return file_sink_add(f->sink, data, n, d);
    }
    upload *up = upload_of(f);
    return up ? upload_part_add(up, f->sink, data, n, d) : no_upload(d);
}

bool serve_valid_purpose(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_-");
    return n > 0 && n < FILE_PURPOSE_MAX && text[n] == '\0';
}

static err_code on_field_end(void *ctx, err_detail *d)
{
    form_reader *f = ctx;
    const char *text = bytes_str(&f->text);
    if (f->in_file) {
        f->in_file = false;
    } else if (strcmp(f->field, "purpose") == 0) {
        if (!serve_valid_purpose(text)) {
            return err_set_param(d, ERR_INVALID, "purpose", "invalid_value",
                                 "purpose may be \"vision\" or \"user_data\"");
        }
        snprintf(f->facts.purpose, sizeof f->facts.purpose, "%s", text);
    } else if (strcmp(f->field, "expires_after[seconds]") == 0) {
        char *end = NULL;
        f->facts.expire_s = strtoll(text, &end, 10);
        if (end == text || *end || f->facts.expire_s < 1) {
            return err_set_param(d, ERR_INVALID, f->field, "invalid_value", "%s must be a number of seconds",
                                 f->field);
        }
    }
    return ERR_OK;
}

/* Opens what the file of the form is written to. */
static err_code open_writer(form_reader *f, const net_head *head, err_detail *d)
{
    const uint64_t most = file_store_get_options(f->s->files)->max_bytes;
    if (head->body_bytes > most + FORM_OVERHEAD) {
        return err_set_param(d, ERR_LIMIT, NULL, "upload_too_large",
                             "a file may have %llu bytes at most (--max-upload)", (unsigned long long)most);
    }
    if (f->is_part) {
        upload *up = upload_of(f);
        return up ? upload_part_begin(&f->s->uploads, up, &f->sink, d) : no_upload(d);
    }
    f->reserved = head->body_bytes < most ? head->body_bytes : most;
    err_code err =
        uploads_open_file(&f->s->uploads, f->facts.scope, f->reserved, UPLOAD_FORM_AHEAD, &f->sink, d);
    f->reserved = err == ERR_OK ? f->reserved : 0;
    return err;
}

void serve_drop_form(conn *c)
{
    form_reader *f = c->form;
    c->form = NULL;
    if (!f) {
        return;
    }
    upload *up = f->is_part ? upload_of(f) : NULL;
    if (up) {
        upload_part_abort(up, f->sink);
    } else {
        file_sink_drop(f->sink);
    }
    file_store_release(f->s->files, f->facts.scope, f->reserved);
    serve_pace(f->s, c);
    multipart_deinit(&f->m);
    bytes_deinit(&f->text);
    free(f);
}

bool serve_begin_form(serve *s, conn *c, const net_head *head, api_error *e)
{
    err_detail d = {0};
    form_reader *f = calloc(1, sizeof *f);
    if (!f) {
        api_error_from(e, ERR_NOMEM, NULL);
        return false;
    }
    f->s = s;
    f->is_part = c->route->id == ROUTE_UPLOAD_PART;
    f->facts.scope = c->scope;
    snprintf(f->facts.purpose, sizeof f->facts.purpose, "user_data");
    snprintf(f->upload_id, sizeof f->upload_id, "%.47s", c->param);
    bytes_init(&f->text, FORM_TEXT_MAX);
    c->form = f;
    const multipart_sink sink = {.ctx = f, .begin = on_field, .data = on_field_data, .end = on_field_end};
    if (!multipart_init(&f->m, head->content_type, &sink)) {
        api_error_set(e, 415, "unsupported_media_type", NULL,
                      "send Content-Type: multipart/form-data with a boundary");
        serve_drop_form(c);
        return false;
    }
    err_code err = open_writer(f, head, &d);
    if (err != ERR_OK) {
        api_error_from(e, err, &d);
        serve_drop_form(c);
        return false;
    }
    net_stream_body(s->net, c->id);
    return true;
}

bool serve_on_body(void *ctx, uint64_t id, const void *data, size_t n, net_reply *refusal)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    err_detail d = {0};
    err_code err = c && c->form ? multipart_feed(&c->form->m, data, n, &d)
                                : err_set(&d, ERR_INTERNAL, "no form is being read");
    if (err == ERR_OK) {
        serve_pace(s, c);
        return true;
    }
    api_error e;
    api_error_from(&e, err, &d);
    if (c) {
        serve_drop_form(c);
    }
    return serve_refuse(s, refusal, &e, NULL, c ? c->route : NULL);
}

size_t serve_form_waiting(const conn *c)
{
    return c->form && c->form->sink ? file_sink_waiting(c->form->sink) : 0;
}

void serve_form_written(serve *s, conn *c)
{
    const form_reader *f = c->form;
    if (f && f->sink && file_sink_poll(f->sink) && f->is_whole) {
        serve_finish_form(s, c);
    }
}

/* ---- files ---- */

void serve_write_file(bytes *out, const stored_file *f)
{
    char hash[2 * HASH_BYTES + 1];
    hash_hex(hash, f->hash, HASH_BYTES);
    bytes_printf(out,
                 "{\"id\":\"%s\",\"object\":\"file\",\"bytes\":%llu,\"created_at\":%lld,\"expires_at\":%lld,",
                 f->id, (unsigned long long)f->bytes, (long long)f->created_at, (long long)f->expires_at);
    bytes_append_str(out, "\"filename\":");
    bytes_append_json(out, f->facts.name, strlen(f->facts.name));
    bytes_printf(out, ",\"purpose\":\"%s\",\"status\":\"processed\",\"sha256\":\"%s\",\"mime_type\":\"%s\"}",
                 f->facts.purpose, hash, f->mime ? f->mime : "application/octet-stream");
}

static void send_file_object(serve *s, conn *c, const stored_file *f)
{
    bytes body;
    bytes_init(&body, 16384);
    serve_write_file(&body, f);
    serve_send_body(s, c, &body);
}

/* Keeps what a form brought, which is written, and replies. */
static err_code keep_file(serve *s, conn *c, form_reader *f, err_detail *d)
{
    file_sink *sink = f->sink;
    upload *up = f->is_part ? upload_of(f) : NULL;
    if (f->is_part && !up) {
        return no_upload(d);
    }
    f->sink = NULL;
    if (up) {
        const upload_part *part = NULL;
        err_code err = upload_part_end(up, sink, &part, d);
        if (err == ERR_OK) {
            serve_send_part(s, c, up, part);
        }
        return err;
    }
    stored_file file;
    err_code err = file_store_add(s->files, file_sink_take(sink), f->reserved, &f->facts, &file, d);
    f->reserved = 0;
    if (err == ERR_OK) {
        send_file_object(s, c, &file);
    }
    return err;
}

void serve_finish_form(serve *s, conn *c)
{
    form_reader *f = c->form;
    err_detail d = {0};
    err_code err = file_sink_error(f->sink, &d);
    if (err == ERR_OK && !multipart_is_complete(&f->m)) {
        err = err_set_param(&d, ERR_INVALID, NULL, "invalid_multipart", "the form ends too early");
    } else if (err == ERR_OK && !f->has_file) {
        err = err_set_param(&d, ERR_INVALID, f->is_part ? "data" : "file", "missing_field",
                            "the form has no file in the field \"%s\"", f->is_part ? "data" : "file");
    }
    f->is_whole = err == ERR_OK;
    if (f->is_whole && !file_sink_is_idle(f->sink)) {
        return; /* serve_form_written goes on */
    }
    if (err == ERR_OK) {
        err = keep_file(s, c, f, &d);
    }
    serve_drop_form(c);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    }
}

/* The text behind name= in the query and its length; NULL if there is none. */
static const char *find_value(const conn *c, const char *name, size_t *len)
{
    const size_t n = strlen(name);
    for (const char *p = c->query_string; *p; p += strcspn(p, "&"), p += *p == '&') {
        *len = strcspn(p, "&");
        if (*len > n && strncmp(p, name, n) == 0 && p[n] == '=') {
            *len -= n + 1;
            return p + n + 1;
        }
    }
    return NULL;
}

bool serve_query_string_value(const conn *c, const char *name, char *out, size_t cap)
{
    size_t len;
    const char *value = find_value(c, name, &len);
    if (!value || len >= cap) {
        return false;
    }
    memcpy(out, value, len);
    out[len] = '\0';
    return true;
}

bool serve_query_string_int(const conn *c, const char *name, int64_t min, int64_t max, int64_t *out)
{
    char text[24] = "", *end = NULL;
    size_t len;
    const char *value = find_value(c, name, &len);
    if (!value) {
        return true;
    }
    if (len == 0 || len >= sizeof text || (value[0] != '-' && !isdigit((unsigned char)value[0]))) {
        return false;
    }
    memcpy(text, value, len);
    const long long number = strtoll(text, &end, 10);
    *out = number;
    return *end == '\0' && number >= min && number <= max;
}

static bool is_listed(const stored_file *f, const char *purpose)
{
    return !purpose[0] || strcmp(f->facts.purpose, purpose) == 0;
}

static void on_list(serve *s, conn *c)
{
    char purpose[FILE_PURPOSE_MAX] = "", after[FILE_ID_MAX] = "", number[16] = "", order[8] = "";
    long limit = LIST_LIMIT, n = 0;
    serve_query_string_value(c, "purpose", purpose, sizeof purpose);
    serve_query_string_value(c, "after", after, sizeof after);
    serve_query_string_value(c, "order", order, sizeof order);
    const bool newest_first = strcmp(order, "asc") != 0;
    if (serve_query_string_value(c, "limit", number, sizeof number)) {
        limit = strtol(number, NULL, 10);
        limit = limit < 1 ? 1 : limit > LIST_LIMIT ? LIST_LIMIT : limit;
    }
    stored_file f = {0};
    bytes body;
    bytes_init(&body, SIZE_MAX / 2);
    bytes_append_str(&body, "{\"object\":\"list\",\"data\":[");
    bool has_more = false;
    while (!has_more && file_store_next(s->files, c->scope, after, newest_first, &f)) {
        memcpy(after, f.id, sizeof after);
        if (!is_listed(&f, purpose)) {
            continue;
        }
        has_more = n == limit;
        if (!has_more) {
            bytes_append_str(&body, n++ ? "," : "");
            serve_write_file(&body, &f);
        }
    }
    bytes_printf(&body, "],\"has_more\":%s}", has_more ? "true" : "false");
    serve_send_body(s, c, &body);
}

static void no_such_file(serve *s, conn *c)
{
    api_error e;
    api_error_set(&e, 404, "file_not_found", NULL, "there is no such file; it may have expired");
    serve_send_error(s, c, &e);
}

static void on_delete(serve *s, conn *c)
{
    if (!file_store_delete(s->files, c->scope, c->param)) {
        no_such_file(s, c);
        return;
    }
    bytes body;
    bytes_init(&body, 16384);
    bytes_append_str(&body, "{\"id\":");
    bytes_append_json(&body, c->param, strlen(c->param));
    bytes_append_str(&body, ",\"object\":\"file\",\"deleted\":true}");
    serve_send_body(s, c, &body);
}

/* A name that no header can be broken out of. */
static void write_disposition(bytes *out, const char *name)
{
    bytes_append_str(out, "Content-Disposition: attachment; filename*=UTF-8''");
    for (const char *p = name; *p; p++) {
        const bool plain = isalnum((unsigned char)*p) || strchr("._-", *p);
        bytes_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*p);
    }
    bytes_append_str(out, "\r\n");
}

/* Always as a download of no type: a page that was uploaded must not run here. */
static void on_content(serve *s, conn *c)
{
    static const char TYPE[] = "application/octet-stream";
    stored_file f;
    err_detail d = {0};
    file_handle h;
    if (!file_store_get(s->files, c->scope, c->param, &f)) {
        no_such_file(s, c);
        return;
    }
    err_code err = file_store_open(s->files, c->scope, c->param, &h, &d);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
        return;
    }
    bytes headers;
    bytes_init(&headers, 4096);
    write_disposition(&headers, f.facts.name);
    metrics_request(&s->metrics, c->route->name, 200);
    if (c->method == NET_HEAD) {
        close(h.fd);
        net_reply reply = {.status = 200,
                           .content_type = TYPE,
                           .headers = bytes_str(&headers),
                           .body_bytes = f.bytes,
                           .head_only = true};
        net_send_reply(s->net, c->id, &reply);
    } else {
        c->download = h;
        c->downloaded = 0;
        net_begin_stream(s->net, c->id, 200, TYPE, bytes_str(&headers));
    }
    bytes_deinit(&headers);
}

net_pull serve_pull_download(serve *s, conn *c, bytes *out)
{
    char piece[SEND_BYTES];
    const int64_t n = file_read_at(c->download.fd, piece, sizeof piece, c->downloaded);
    if (n < 0) {
        net_abort(s->net, c->id); /* a short download must not look whole */
        return NET_PULL_IDLE;
    }
    bytes_append(out, piece, (size_t)n);
    c->downloaded += (uint64_t)n;
    return c->downloaded >= c->download.bytes || n == 0 ? NET_PULL_END : NET_PULL_MORE;
}

void serve_end_download(conn *c)
{
    if (c->download.fd > 0) {
        close(c->download.fd);
        c->download = (file_handle){0};
    }
}

void serve_on_files(serve *s, conn *c)
{
    stored_file f;
    switch (c->route->id) {
    case ROUTE_FILES:
        on_list(s, c);
        break;
    case ROUTE_FILE_DELETE:
        on_delete(s, c);
        break;
    case ROUTE_FILE_CONTENT:
        on_content(s, c);
        break;
    default:
        if (file_store_get(s->files, c->scope, c->param, &f)) {
            send_file_object(s, c, &f);
        } else {
            no_such_file(s, c);
        }
        break;
    }
}
