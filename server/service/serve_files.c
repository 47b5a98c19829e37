#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/media/multipart.h"
#include "server/net/http_head.h"
#include "server/service/serve_state.h"

enum {
    FORM_OVERHEAD = 65536, /* of a form around its file */
    FORM_TEXT_MAX = 4096,
    FORM_STEP = 1 << 20, /* of the quota, set aside at once for a form of unknown length */
    LIST_LIMIT = 10000
};

enum { OBJECT_MAX = 16384 }; /* what is said of one file, and the header with its name */

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
    bool grows;        /* nobody said how long it is: more is set aside as it comes */
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
        if (f->text.len + n > FORM_TEXT_MAX) {
            return err_set_param(d, ERR_LIMIT, f->field, "invalid_value",
                                 "a field beside the file is too long");
        }
        bytes_append(&f->text, data, n);
        return f->text.failed ? ERR_NOMEM : ERR_OK;
    }
    f->s->metrics.upload_bytes += n;
    while (f->grows && file_sink_queued(f->sink) + n > f->reserved) {
        const err_code err = file_store_reserve(f->s->files, f->facts.scope, FORM_STEP, d);
        if (err != ERR_OK) {
            return err;
        }
        f->reserved += FORM_STEP;
    }
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
        return ERR_OK;
    }
    if (strcmp(f->field, "purpose") == 0) {
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
    if (head->body_bytes == 0) {
        f->grows = true;
        return file_sink_open(&f->sink, f->s->writes, file_store_get_options(f->s->files)->dir, most,
                              UPLOAD_FORM_AHEAD, d);
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
    err_code err = multipart_feed(&c->form->m, data, n, &d); /* only of a form the body comes in pieces */
    if (err == ERR_OK) {
        serve_pace(s, c);
        return true;
    }
    api_error e;
    api_error_from(&e, err, &d);
    serve_drop_form(c);
    return serve_refuse(s, refusal, &e, c->write_error, NULL, c->route);
}

size_t serve_form_waiting(const conn *c)
{
    return c->form ? file_sink_waiting(c->form->sink) : 0;
}

void serve_form_written(serve *s, conn *c)
{
    const form_reader *f = c->form;
    if (f && file_sink_poll(f->sink) && f->is_whole) {
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

/* The same in the other dialect's form. */
static void write_file_metadata(bytes *out, const stored_file *f)
{
    char created[CLOCK_DATE_MAX], expires[CLOCK_DATE_MAX];
    clock_date(created, f->created_at);
    clock_date(expires, f->expires_at);
    bytes_json(out,
               "{\"id\":%s,\"type\":\"file\",\"filename\":%s,\"mime_type\":%s,\"size_bytes\":%llu,"
               "\"created_at\":%s,\"expires_at\":%s,\"downloadable\":true}",
               f->id, f->facts.name, f->mime ? f->mime : "application/octet-stream",
               (unsigned long long)f->bytes, created, expires);
}

static void write_for(const conn *c, bytes *out, const stored_file *f)
{
    (c->is_anthropic ? write_file_metadata : serve_write_file)(out, f);
}

static void send_file_object(serve *s, conn *c, const stored_file *f)
{
    bytes body;
    bytes_init(&body, OBJECT_MAX);
    write_for(c, &body, f);
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

bool serve_query_string_value(serve *s, conn *c, const char *name, char *out, size_t cap)
{
    if (http_query_value(c->query_string, name, out, cap) != HTTP_QUERY_LONG) {
        return true;
    }
    char text[96];
    snprintf(text, sizeof text, "%s is longer than %zu characters", name, cap - 1);
    serve_send_fault(s, c, 400, "invalid_value", name, text);
    return false;
}

bool serve_query_string_int(const conn *c, const char *name, int64_t min, int64_t max, int64_t *out)
{
    char text[24], *end = NULL;
    const http_query found = http_query_value(c->query_string, name, text, sizeof text);
    if (found == HTTP_QUERY_NONE) {
        return true;
    }
    if (found == HTTP_QUERY_LONG || (text[0] != '-' && !isdigit((unsigned char)text[0]))) {
        return false;
    }
    const long long number = strtoll(text, &end, 10);
    *out = number;
    return *end == '\0' && number >= min && number <= max;
}

/* A list of files that is being written. */
typedef struct file_list {
    const conn *c;
    const char *purpose; /* of these alone; "": of any */
    int64_t limit, n;
    bool has_more;
    char first[FILE_ID_MAX], last[FILE_ID_MAX];
    bytes body;
} file_list;

static bool list_file(void *ctx, const stored_file *f)
{
    file_list *l = ctx;
    if (l->purpose[0] && strcmp(f->facts.purpose, l->purpose) != 0) {
        return true;
    }
    l->has_more = l->n == l->limit;
    if (!l->has_more) {
        bytes_append_str(&l->body, l->n ? "," : "");
        write_for(l->c, &l->body, f);
        snprintf(l->last, sizeof l->last, "%s", f->id);
        if (l->n++ == 0) {
            snprintf(l->first, sizeof l->first, "%s", f->id);
        }
    }
    return !l->has_more;
}

static void on_list(serve *s, conn *c)
{
    char purpose[FILE_PURPOSE_MAX], after[FILE_ID_MAX], order[8];
    file_list l = {.c = c, .purpose = purpose, .limit = LIST_LIMIT};
    if (!serve_query_string_value(s, c, "purpose", purpose, sizeof purpose) ||
        !serve_query_string_value(s, c, c->is_anthropic ? "page" : "after", after, sizeof after) ||
        !serve_query_string_value(s, c, "order", order, sizeof order)) {
        return;
    }
    const bool oldest_first = strcmp(order, "asc") == 0;
    if (order[0] && !oldest_first && strcmp(order, "desc") != 0) {
        serve_send_fault(s, c, 400, "invalid_value", "order", "order must be asc or desc");
        return;
    }
    if (!serve_query_string_int(c, "limit", 1, LIST_LIMIT, &l.limit)) {
        serve_send_fault(s, c, 400, "invalid_value", "limit", "limit must be a number from 1 to 10000");
        return;
    }
    bytes_init(&l.body, SIZE_MAX);
    bytes_append_str(&l.body, "{\"object\":\"list\",\"data\":[");
    if (!file_store_list(s->files, c->scope, after, !oldest_first, list_file, &l)) {
        bytes_deinit(&l.body);
        serve_send_fault(s, c, 400, "invalid_value", "after", "after must be the id of one of your files");
        return;
    }
    bytes_json(&l.body, "],\"has_more\":%hhd,\"first_id\":%s,\"last_id\":%s,\"next_page\":%s}", l.has_more,
               l.n ? l.first : NULL, l.n ? l.last : NULL, l.has_more ? l.last : NULL);
    serve_send_body(s, c, &l.body);
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
    bytes_init(&body, OBJECT_MAX);
    bytes_append_str(&body, "{\"id\":");
    bytes_append_json(&body, c->param, strlen(c->param));
    bytes_append_str(&body, ",\"object\":\"file\",\"type\":\"file_deleted\",\"deleted\":true}");
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
    bytes_init(&headers, OBJECT_MAX);
    write_disposition(&headers, f.facts.name);
    metrics_request(&s->metrics, c->route->name, 200);
    const net_reply reply = {.status = 200,
                             .content_type = TYPE,
                             .headers = bytes_str(&headers),
                             .body_bytes = f.bytes,
                             .has_file = true,
                             .file = h.fd};
    net_send_reply(s->net, c->id, &reply);
    bytes_deinit(&headers);
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
