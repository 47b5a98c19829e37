#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "server/service/serve_state.h"

static history_verb verb_of(const conn *c)
{
    static const history_verb VERBS[] = {
        [ROUTE_HISTORY] = HISTORY_INFO,          [ROUTE_HISTORY_CHATS] = HISTORY_LIST,
        [ROUTE_HISTORY_SEARCH] = HISTORY_SEARCH, [ROUTE_HISTORY_KEEP] = HISTORY_ADD_FILE,
        [ROUTE_HISTORY_FILE] = HISTORY_GET_FILE, [ROUTE_HISTORY_EXPORT] = HISTORY_EXPORT,
        [ROUTE_HISTORY_IMPORT] = HISTORY_IMPORT, [ROUTE_SHARE] = HISTORY_UNSHARE,
        [ROUTE_SHARED] = HISTORY_SHARED,         [ROUTE_SHARED_FILE] = HISTORY_SHARED_FILE,
    };
    if (c->route->id == ROUTE_SHARES) {
        return c->method == NET_POST ? HISTORY_SHARE : HISTORY_SHARES;
    }
    if (c->route->id != ROUTE_HISTORY_CHAT) {
        return VERBS[c->route->id];
    }
    return c->method == NET_PUT ? HISTORY_PUT : c->method == NET_DELETE ? HISTORY_DELETE : HISTORY_GET;
}

/* The link of a request that needs no key. A text of another length names none. */
static void read_token(const conn *c, history_job *job)
{
    static const char PREFIX[] = "/v1/shared/";
    if (strncmp(c->path, PREFIX, sizeof PREFIX - 1) == 0) {
        const char *token = c->path + sizeof PREFIX - 1;
        const size_t n = strcspn(token, "/");
        snprintf(job->token, sizeof job->token, "%.*s", n == HASH_ID_CHARS ? (int)n : 0, token);
    }
}

/* Kept by nobody on the way; what a link shows is not for indexes of the web, either. */
static const char *headers_of(const conn *c)
{
    return c->route->is_public ? "Cache-Control: no-store\r\nX-Robots-Tag: noindex, nofollow\r\n"
                               : "Cache-Control: no-store\r\n";
}

static bool read_query(serve *s, conn *c, history_job *job)
{
    int64_t limit = LIMIT_HISTORY_PAGE;
    if (!serve_query_string_value(s, c, "after", job->after, sizeof job->after)) {
        return false;
    }
    if (!serve_query_string_int(c, "limit", 1, LIMIT_HISTORY_PAGE, &limit)) {
        serve_send_fault(s, c, 400, "invalid_value", "limit", "limit must be a number from 1 to 500");
        return false;
    }
    if (!serve_query_string_int(c, "since", 0, INT64_MAX, &job->since)) {
        serve_send_fault(s, c, 400, "invalid_value", "since", "since must be a revision");
        return false;
    }
    if (!serve_query_string_int(c, "revision", 0, INT64_MAX, &job->revision)) {
        serve_send_fault(s, c, 400, "invalid_value", "revision",
                         "revision must be the one of the chat as you know it");
        return false;
    }
    job->limit = (int)limit;
    return true;
}

/* The uploaded file that the body names; the job owns its descriptor. */
static bool find_upload(serve *s, conn *c, history_job *job, const bytes *body)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    api_error e;
    err_code err = body->len <= SERVE_SMALL_MESSAGE_BYTES
                       ? json_parse(&doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d)
                       : err_set(&d, ERR_INVALID, "the body is too long");
    if (err == ERR_OK) {
        const char *id = json_str(json_get(json_root(doc), "file_id"), NULL);
        err = id ? file_store_open(s->files, c->scope, id, &job->file, &d)
                 : err_set_param(&d, ERR_INVALID, "file_id", "missing_field",
                                 "file_id must name a file that was uploaded");
    }
    json_free(doc);
    if (err != ERR_OK) {
        job->file.fd = -1;
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    }
    return err == ERR_OK;
}

void serve_submit_history(serve *s, conn *c, history_job *job)
{
    job->conn = c->id;
    job->ticket = c->history_ticket = ++s->history_ticket;
    if (history_submit(s->history, job) != ERR_OK) {
        c->history_ticket = 0;
        history_job_free(job);
        serve_send_fault(s, c, 429, "queue_full", NULL,
                         "too many requests for the history wait; try again in a moment");
    }
}

void serve_on_history(serve *s, conn *c, bytes *body)
{
    if (!s->history && c->route->id == ROUTE_HISTORY) {
        bytes off;
        bytes_init(&off, 64);
        bytes_append_str(&off, "{\"object\":\"history\",\"enabled\":false}");
        serve_send_json(s, c, 200, &off, "Cache-Control: no-store\r\n");
        bytes_deinit(&off);
        return;
    }
    if (!s->history) {
        serve_send_fault(s, c, 404, "history_off", NULL,
                         "this server keeps no chats; it was started without --history");
        return;
    }
    history_job *job = history_job_create(verb_of(c));
    if (!job) {
        serve_send_fault(s, c, 503, "out_of_memory", NULL, "no memory for this request");
        return;
    }
    job->scope = c->scope;
    snprintf(job->id, sizeof job->id, "%.79s", c->param);
    read_token(c, job);
    if (!read_query(s, c, job) || (job->verb == HISTORY_ADD_FILE && !find_upload(s, c, job, body))) {
        history_job_free(job);
        return;
    }
    job->body = *body;
    bytes_init(body, 0); /* the job owns the memory now */
    serve_submit_history(s, c, job);
}

/* ---- replies ---- */

/* Every open page of this key hears that a chat changed. */
static void tell_sockets(serve *s, const history_reply *r)
{
    bytes text;
    bytes_init(&text, 512);
    bytes_json(&text, "{\"type\":\"history.changed\",\"id\":%s,\"revision\":%lld,\"deleted\":%hhd}",
               r->is_import ? NULL : r->change.id, (long long)r->change.revision, r->is_deleted);
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c && c->is_socket && c->is_extended && c->scope == r->scope) {
            serve_queue_frame(s, c, &text);
        }
    }
    bytes_deinit(&text);
}

/* Always as a download of no type: a page that was attached must not run here. */
static void send_file(serve *s, conn *c, history_reply *r)
{
    static const char TYPE[] = "application/octet-stream";
    char headers[192];
    snprintf(headers, sizeof headers, "%sContent-Disposition: attachment; filename=\"%s\"\r\n", headers_of(c),
             c->route->id == ROUTE_HISTORY_EXPORT ? "parley-chats.json" : "file");
    metrics_request(&s->metrics, c->route->name, 200);
    const net_reply reply = {.status = 200,
                             .content_type = TYPE,
                             .headers = headers,
                             .body_bytes = r->file.bytes,
                             .has_file = true,
                             .file = r->file.fd};
    r->file.fd = -1; /* the connection owns it now */
    net_send_reply(s->net, c->id, &reply);
}

void serve_on_history_reply(serve *s, history_reply *r)
{
    if (r->answer) {
        serve_on_extended(s, r);
        return;
    }
    if (r->is_changed) {
        tell_sockets(s, r);
    }
    conn *c = serve_conn(s, r->conn);
    if (!c || c->history_ticket != r->ticket) {
        return; /* who asked is gone */
    }
    c->history_ticket = 0;
    if (r->file.fd >= 0) {
        send_file(s, c, r);
    } else {
        serve_send_json(s, c, r->status, &r->body, headers_of(c));
    }
}
