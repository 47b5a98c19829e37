#define _GNU_SOURCE /* POLLRDHUP */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "server/api_error.h"
#include "server/net/http_head.h"
#include "server/net/net_lws.h"

/* MIN_STREAM_RATE: bytes a second that a streamed body must reach over its whole length. */
enum { DISCARD_S = 2, MIN_STREAM_RATE = 16384, DATE_MAX = 64, REFUSAL_MAX = 4096 };

/* What pages of other origins may read besides the headers that browsers always show. */
#define EXPOSED_HEADERS                                                                                      \
    "Retry-After, x-request-id, request-id, ETag, Location, Allow, Content-Disposition, Content-Range, "     \
    "Date, "                                                                                                 \
    "WWW-Authenticate"

/* ---- writing ---- */

static const char *status_text(int status)
{
    static const char *const TEXTS[] = {[200] = "OK",
                                        [204] = "No Content",
                                        [304] = "Not Modified",
                                        [308] = "Permanent Redirect",
                                        [400] = "Bad Request",
                                        [401] = "Unauthorized",
                                        [402] = "Payment Required",
                                        [403] = "Forbidden",
                                        [404] = "Not Found",
                                        [405] = "Method Not Allowed",
                                        [406] = "Not Acceptable",
                                        [408] = "Request Timeout",
                                        [409] = "Conflict",
                                        [410] = "Gone",
                                        [411] = "Length Required",
                                        [413] = "Content Too Large",
                                        [414] = "URI Too Long",
                                        [415] = "Unsupported Media Type",
                                        [421] = "Misdirected Request",
                                        [422] = "Unprocessable Content",
                                        [426] = "Upgrade Required",
                                        [429] = "Too Many Requests",
                                        [431] = "Request Header Fields Too Large",
                                        [500] = "Internal Server Error",
                                        [501] = "Not Implemented",
                                        [502] = "Bad Gateway",
                                        [503] = "Service Unavailable",
                                        [504] = "Gateway Timeout",
                                        [505] = "HTTP Version Not Supported",
                                        [507] = "Insufficient Storage"};
    const char *text = (size_t)status < ARRAY_LEN(TEXTS) ? TEXTS[status] : NULL;
    return text ? text : "Status";
}

/* Lets pages of allowed origins read this reply. Credentials are not allowed: access is by key, not
 * by cookie. */
static void write_cors(net_conn *c)
{
    if (c->net->opt.n_origins > 0) {
        bytes_append_str(&c->out, "Vary: Origin\r\n");
    }
    if (c->origin) {
        bytes_printf(&c->out, "Access-Control-Allow-Origin: %s\r\n", c->origin);
        bytes_append_str(&c->out, "Access-Control-Expose-Headers: " EXPOSED_HEADERS "\r\n");
    }
}

static void write_head(net_conn *c, int status, const char *content_type, const char *headers)
{
    char date[DATE_MAX];
    time_t now = (time_t)clock_unix_s();
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(date, DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    if (c->net->cb.on_sent) {
        const net_sent sent = {.id = c->request_id,
                               .method = c->method[0] ? c->method : "-",
                               .path = c->path[0] ? c->path : "-",
                               .status = status,
                               .ms = (double)(clock_ns() - c->head_ns) / 1e6};
        c->net->cb.on_sent(c->net->cb.ctx, &sent);
    }
    /* OpenAI's clients look for the one name, Anthropic's for the other. */
    bytes_printf(&c->out, "HTTP/1.1 %d %s\r\nDate: %s\r\nx-request-id: %s\r\nrequest-id: %s\r\n", status,
                 status_text(status), date, c->request_id, c->request_id);
    bytes_append_str(&c->out, "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
    if (content_type) {
        bytes_printf(&c->out, "Content-Type: %s\r\n", content_type);
    }
    bytes_append_str(&c->out, headers ? headers : "");
    write_cors(c);
    bytes_printf(&c->out, "Connection: %s\r\n", c->close_after ? "close" : "keep-alive");
}

/* Forgets what was written: nothing is left for the next reply. */
static void clear_output(net_conn *c)
{
    bytes_deinit(&c->out);
    c->body = NULL;
    file_close(c->file);
    c->file = -1;
    c->out_pos = c->body_bytes = c->body_pos = 0;
}

static void start_reply(net_conn *c, const net_reply *r)
{
    write_head(c, r->status, r->content_type, r->headers);
    if (r->status != 204 && r->status != 304) {
        bytes_printf(&c->out, "Content-Length: %zu\r\n", r->body_bytes);
    }
    bytes_append_str(&c->out, "\r\n");
    if (!r->head_only && !c->head_only && r->body_bytes > 0) {
        if (r->has_file) {
            c->file = r->file;
            c->body_bytes = r->body_bytes;
        } else if (r->body_lives) {
            c->body = r->body;
            c->body_bytes = r->body_bytes;
        } else {
            bytes_append(&c->out, r->body, r->body_bytes);
        }
    }
    c->phase = CONN_REPLY;
    lws_rx_flow_control(c->wsi, 0);
    lws_callback_on_writable(c->wsi);
}

void net_send_reply(net *n, uint64_t conn, const net_reply *reply)
{
    net_conn *c = net_find(n, conn);
    if (c && c->phase == CONN_WAIT) {
        start_reply(c, reply);
    }
    if (reply->has_file && (!c || c->file != reply->file)) {
        file_close(reply->file);
    }
}

void net_begin_stream(net *n, uint64_t conn, int status, const char *content_type, const char *headers)
{
    net_conn *c = net_find(n, conn);
    if (!c || c->phase != CONN_WAIT) {
        return;
    }
    c->close_after = c->close_after || !c->http11;
    write_head(c, status, content_type, headers);
    if (c->http11) {
        bytes_append_str(&c->out, "Transfer-Encoding: chunked\r\n");
    }
    bytes_append_str(&c->out, "\r\n");
    c->stream_end = false;
    c->phase = CONN_STREAM;
    lws_callback_on_writable(c->wsi);
}

static void pull_piece(net_conn *c)
{
    bytes_clear(&c->piece);
    net_pull pull = c->net->cb.on_writable(c->net->cb.ctx, c->id, &c->piece);
    if (c->piece.failed) {
        c->out.failed = true; /* a stream with a hole must not look whole: the connection ends */
        return;
    }
    if (c->piece.len > 0) {
        if (c->http11) {
            bytes_printf(&c->out, "%zx\r\n", c->piece.len);
        }
        bytes_append(&c->out, c->piece.data, c->piece.len);
        if (c->http11) {
            bytes_append_str(&c->out, "\r\n");
        }
    }
    if (pull == NET_PULL_END) {
        c->stream_end = true;
        bytes_append_str(&c->out, c->http11 ? "0\r\n\r\n" : "");
    }
}

static void begin_head(net_conn *c)
{
    c->phase = CONN_HEAD;
    c->deadline_ns = clock_ns() + (int64_t)c->net->opt.header_timeout_s * NET_S_NS;
}

static int go_through(net_conn *c);

/* The reply is sent: what happens to the connection. */
static int finish(net_conn *c)
{
    if (c->in_request) {
        c->in_request = false;
        c->net->cb.on_done(c->net->cb.ctx, c->id);
    }
    clear_output(c);
    c->is_paused = false;
    lws_rx_flow_control(c->wsi, 1);
    if (c->close_after && !c->body_unread) {
        return -1;
    }
    if (c->close_after) {
        /* Closing with unread bytes would send RST, and the client would lose the reply. */
        shutdown(lws_get_socket_fd(c->wsi), SHUT_WR);
        c->phase = CONN_DISCARD;
        c->deadline_ns = clock_ns() + (int64_t)DISCARD_S * NET_S_NS;
    } else if (c->rx.len > 0) {
        begin_head(c);
    } else {
        c->phase = CONN_IDLE;
        c->deadline_ns = clock_ns() + (int64_t)NET_KEEPALIVE_S * NET_S_NS;
    }
    return go_through(c);
}

/* Writes of `out` and the body that is in memory; false if the connection is to end. */
static bool send_bytes(net_conn *c)
{
    size_t n = c->out.len - c->out_pos;
    size_t m = c->body ? c->body_bytes - c->body_pos : 0;
    n = n > NET_WRITE_BYTES ? NET_WRITE_BYTES : n;
    m = m > NET_WRITE_BYTES - n ? NET_WRITE_BYTES - n : m;
    struct iovec parts[] = {
        {.iov_base = n > 0 ? c->out.data + c->out_pos : NULL, .iov_len = n},
        {.iov_base = m > 0 ? (void *)(uintptr_t)(c->body + c->body_pos) : NULL, .iov_len = m}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const int more = c->file >= 0 ? MSG_MORE : 0;
    const ssize_t sent = sendmsg(lws_get_socket_fd(c->wsi), &message, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    const size_t done = sent < 0 ? 0 : (size_t)sent;
    c->sent_bytes += done;
    c->out_pos += done < n ? done : n;
    c->body_pos += done < n ? 0 : done - n;
    return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Likewise of the file, which the system sends without a copy here. One that ends early must not look whole. */
static bool send_file(net_conn *c)
{
    const uint64_t left = c->body_bytes - c->body_pos;
    const size_t n = left < NET_FILE_BYTES ? (size_t)left : NET_FILE_BYTES;
    off_t at = (off_t)c->body_pos;
    const ssize_t sent = sendfile(lws_get_socket_fd(c->wsi), c->file, &at, n);
    const size_t done = sent < 0 ? 0 : (size_t)sent;
    c->sent_bytes += done;
    c->body_pos += done;
    return sent > 0 || (sent < 0 && (errno == EAGAIN || errno == EINTR));
}

int net_http_writable(net_conn *c)
{
    if (c->phase != CONN_REPLY && c->phase != CONN_STREAM) {
        return 0;
    }
    if (c->phase == CONN_STREAM && c->out_pos == c->out.len && !c->stream_end && !c->out.failed) {
        bytes_clear(&c->out);
        c->out_pos = 0;
        pull_piece(c);
    }
    if (c->out.failed) {
        return -1;
    }
    const bool has_more = c->out_pos < c->out.len || c->body_pos < c->body_bytes;
    if (has_more && !(c->file >= 0 && c->out_pos == c->out.len ? send_file(c) : send_bytes(c))) {
        return -1;
    }
    const bool is_written = c->out_pos == c->out.len && c->body_pos == c->body_bytes;
    if (is_written && (c->phase == CONN_REPLY || c->stream_end)) {
        return finish(c);
    }
    if (has_more) {
        lws_callback_on_writable(c->wsi);
    }
    return 0;
}

/* ---- reading ---- */

static int refuse(net_conn *c, int status, const char *code, const char *message)
{
    api_error e;
    api_error_set(&e, status, code, NULL, "%s", message);
    bytes body = bytes_empty(REFUSAL_MAX);
    api_error_write_body(&body, &e);
    net_reply reply = {.status = status,
                       .content_type = "application/json",
                       .body = body.data,
                       .body_bytes = body.len,
                       .headers = e.retry_after_s ? "Retry-After: 5\r\n" : NULL};
    net_conn_drop_input(c);
    c->close_after = true;
    c->deadline_ns = 0;
    start_reply(c, &reply);
    bytes_deinit(&body);
    return 0;
}

static const struct {
    const char *name;
    net_method method;
} METHODS[] = {
    {"GET", NET_GET}, {"POST", NET_POST},   {"HEAD", NET_HEAD},     {"OPTIONS", NET_OPTIONS},
    {"PUT", NET_PUT}, {"PATCH", NET_PATCH}, {"DELETE", NET_DELETE},
};

static net_method method_of(http_span name)
{
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        if (strlen(METHODS[i].name) == name.len && memcmp(METHODS[i].name, name.text, name.len) == 0) {
            return METHODS[i].method;
        }
    }
    return 0;
}

/* Asks for a WebSocket. Anything else in Upgrade is ignored, as RFC 9110 allows: the request goes
 * on as HTTP/1.1. */
static bool wants_socket(const http_head *from, net_method method)
{
    char upgrade[32], connection[128];
    http_head_value(from, "upgrade", upgrade, sizeof upgrade);
    http_head_value(from, "connection", connection, sizeof connection);
    return method == NET_GET && from->is_1_1 && strcasecmp(upgrade, "websocket") == 0 &&
           http_list_has(connection, "upgrade");
}

static bool is_loopback(const char *peer)
{
    return strncmp(peer, "127.", 4) == 0 || strcmp(peer, "::1") == 0 || strncmp(peer, "::ffff:127.", 11) == 0;
}

/* A proxy on this machine connects from the loopback address for people who are elsewhere. */
static bool is_direct(const net_conn *c, const http_head *from)
{
    static const char *const HANDED_ON[] = {"forwarded",         "x-forwarded-for", "x-forwarded-host",
                                            "x-forwarded-proto", "x-real-ip",       "via"};
    bool direct = from->is_1_1 && is_loopback(c->peer);
    for (size_t i = 0; i < ARRAY_LEN(HANDED_ON); i++) {
        direct = direct && http_head_count(from, HANDED_ON[i]) == 0;
    }
    return direct;
}

/* Fills the head, all but the query. A path that is malformed or too long is "", which no route has. */
static void read_head(net_head *h, const net_conn *c, const http_head *from)
{
    memset(h, 0, sizeof *h);
    h->method = method_of(from->method);
    http_decode(h->path, sizeof h->path, from->path);
    if (h->path[0] == '/') {
        http_fold_path(h->path);
    }
    http_head_value(from, "host", h->host, sizeof h->host);
    if (from->authority.len > 0) { /* counts, whatever Host says */
        http_decode(h->host, sizeof h->host, from->authority);
    }
    http_head_value(from, "origin", h->origin, sizeof h->origin);
    http_head_value(from, "authorization", h->authorization, sizeof h->authorization);
    http_head_value(from, "x-api-key", h->x_api_key, sizeof h->x_api_key);
    h->is_anthropic = http_head_count(from, "anthropic-version") > 0;
    http_head_value(from, "content-type", h->content_type, sizeof h->content_type);
    http_head_value(from, "sec-fetch-site", h->sec_fetch_site, sizeof h->sec_fetch_site);
    http_head_value(from, "if-none-match", h->if_none_match, sizeof h->if_none_match);
    http_head_value(from, "accept-encoding", h->accept_encoding, sizeof h->accept_encoding);
    http_head_value(from, "sec-websocket-protocol", h->ws_protocols, sizeof h->ws_protocols);
    char asked[32];
    http_head_value(from, "access-control-request-method", asked, sizeof asked);
    h->is_preflight = h->method == NET_OPTIONS && h->origin[0] && asked[0];
    http_head_value(from, "access-control-request-headers", h->cors_headers, sizeof h->cors_headers);
    http_head_value(from, "access-control-request-private-network", asked, sizeof asked);
    h->cors_private = strcasecmp(asked, "true") == 0;
    http_head_value(from, "idempotency-key", h->idempotency_key, sizeof h->idempotency_key);
    h->is_upgrade = wants_socket(from, h->method);
    h->is_direct = is_direct(c, from);
}

/* Keeps the query as it was sent; 0, or the status to refuse with. */
static int read_query(net_head *h, http_span query)
{
    if (query.len >= sizeof h->query_string) {
        return 414;
    }
    if (!http_query_is_valid(query)) {
        return 400;
    }
    memcpy(h->query_string, query.text, query.len);
    return 0;
}

static void begin_request(net_conn *c, const http_head *h)
{
    char connection[128];
    http_head_value(h, "connection", connection, sizeof connection);
    c->http11 = h->is_1_1;
    c->head_only = method_of(h->method) == NET_HEAD;
    c->close_after =
        h->is_1_1 ? http_list_has(connection, "close") : !http_list_has(connection, "keep-alive");
    c->body_unread = c->stream_end = c->streams_body = c->is_chunked = false;
    c->body_left = 0;
    c->deadline_ns = 0;
    c->origin = NULL;
    char origin[NET_HEADER_MAX];
    http_head_value(h, "origin", origin, sizeof origin);
    for (size_t i = 0; i < c->net->opt.n_origins; i++) {
        c->origin = strcmp(c->net->opt.origins[i], origin) == 0 ? c->net->opt.origins[i] : c->origin;
    }
    snprintf(c->method, sizeof c->method, "%.*s", (int)h->method.len, h->method.text ? h->method.text : "");
    snprintf(c->path, sizeof c->path, "%.*s", (int)h->path.len, h->path.text ? h->path.text : "");
    c->head_ns = clock_ns();
    hash_random_id(c->request_id, sizeof c->request_id, "req_");
}

/* Says how long the body is: fills *length and c->is_chunked and returns 0, or the status to refuse
 * with. */
static int read_body_length(net_conn *c, const http_head *h, net_method method, uint64_t *length)
{
    char text[32], coding[32];
    const bool has_length = http_head_count(h, "content-length") > 0;
    const bool has_content = method == NET_POST || method == NET_PUT || method == NET_PATCH;
    *length = 0;
    if (http_head_count(h, "transfer-encoding") > 0) {
        http_head_value(h, "transfer-encoding", coding, sizeof coding);
        if (has_length || !c->http11) {
            return 400;
        }
        c->is_chunked = has_content && strcasecmp(coding, "chunked") == 0;
        c->chunked = (net_chunked){0};
        return c->is_chunked ? 0 : 501;
    }
    if (!has_length) {
        return has_content ? 411 : 0;
    }
    http_head_value(h, "content-length", text, sizeof text);
    const size_t n = strlen(text);
    if (n == 0 || n > 15 || strspn(text, "0123456789") != n) {
        return 400;
    }
    *length = strtoull(text, NULL, 10);
    return 0;
}

/* libwebsockets closes a connection as soon as it reads its end, so nothing is read while the request
 * is answered: a client that has sent all it has may have closed its side (RFC 9112, 9.6). */
static int hand_up(net_conn *c)
{
    c->phase = CONN_WAIT;
    c->deadline_ns = 0;
    lws_rx_flow_control(c->wsi, 0);
    c->net->cb.on_request(c->net->cb.ctx, c->id, &c->in);
    net_conn_drop_input(c);
    return 0;
}

/* Why a request is refused, by the status that says so. */
typedef struct refuse_row {
    int status;
    const char *code, *message;
} refuse_row;

/* Refuses with this status, for the reason of its row, or else of the last. Whatever follows is no request. */
static int refuse_by(net_conn *c, const refuse_row *rows, size_t n, int status)
{
    size_t i = 0;
    while (i + 1 < n && rows[i].status != status) {
        i++;
    }
    c->body_unread = true;
    return refuse(c, status, rows[i].code, rows[i].message);
}

static int refuse_head(net_conn *c, int status)
{
    static const refuse_row ROWS[] = {
        {414, "uri_too_long", "what stands behind the question mark is too long"},
        {431, "header_too_large", "the head of the request is larger than --max-header allows"},
        {501, "method_not_supported", "this method is not supported"},
        {505, "version_not_supported", "HTTP/1.1 and HTTP/1.0 are understood"},
        {400, "invalid_header", "the head of the request is malformed"},
    };
    return refuse_by(c, ROWS, ARRAY_LEN(ROWS), status);
}

static int refuse_body(net_conn *c, int status)
{
    static const refuse_row ROWS[] = {
        {501, "transfer_encoding_not_supported",
         "the only Transfer-Encoding understood is chunked, of POST, PUT and PATCH"},
        {411, "length_required", "send Content-Length"},
        {413, "body_too_large", "the body is larger than --max-body allows"},
        {400, "invalid_content_length",
         "Content-Length must be one number of digits, without Transfer-Encoding"},
    };
    return refuse_by(c, ROWS, ARRAY_LEN(ROWS), status);
}

void net_stream_body(net *n, uint64_t conn)
{
    net_conn *c = net_find(n, conn);
    if (c) {
        c->streams_body = true;
    }
}

static int go_on(net_conn *c)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const size_t n = sizeof line - 1;
    return send(lws_get_socket_fd(c->wsi), line, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -1;
}

void net_http_look(net_conn *c)
{
    struct pollfd socket = {.fd = -1, .events = POLLRDHUP}; /* also behind bytes that wait to be read */
    if (c->is_half_closed || (c->phase != CONN_WAIT && c->phase != CONN_STREAM)) {
        return;
    }
    socket.fd = lws_get_socket_fd(c->wsi);
    if (poll(&socket, 1, 0) <= 0 || !(socket.revents & POLLRDHUP)) {
        return;
    }
    c->is_half_closed = true;
    if (c->phase == CONN_STREAM) {
        if (c->net->cb.on_half_closed) {
            c->net->cb.on_half_closed(c->net->cb.ctx, c->id);
        }
    } else if (!c->http11 || go_on(c) != 0) { /* an interim response, which HTTP/1.0 does not know */
        net_abort(c->net, c->id);
    }
}

/* The head is good. libwebsockets answers it, in a form that holds what it needs alone. */
static int begin_socket(net_conn *c, const http_head *from, const net_head *h, size_t head_bytes)
{
    char key[64], version[8];
    net_reply refusal = {0};
    http_head_value(from, "sec-websocket-key", key, sizeof key);
    http_head_value(from, "sec-websocket-version", version, sizeof version);
    if (strcmp(version, "13") != 0 || !http_is_socket_key(key)) {
        c->body_unread = true;
        return refuse(c, 400, "invalid_upgrade",
                      "a WebSocket needs Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key");
    }
    if (!c->net->cb.on_head(c->net->cb.ctx, c->id, h, &refusal)) {
        c->close_after = true;
        start_reply(c, &refusal);
        return 0;
    }
    c->announced = true;
    bytes head = bytes_empty(SIZE_MAX);
    bytes_printf(&head,
                 "GET / HTTP/1.1\r\nHost: parley\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
                 key);
    bytes_append_str(
        &head, http_list_has(h->ws_protocols, "parley.v1") ? "Sec-WebSocket-Protocol: parley.v1\r\n" : "");
    bytes_append_str(&head, "\r\n");
    bytes_append(&head, c->rx.data + head_bytes, c->rx.len - head_bytes);
    const int result = net_upgrade(c, &head);
    bytes_deinit(&head);
    return result;
}

/* Whether a body of that length could be read now. It is reserved as it arrives: who only announces
 * takes nothing. */
static bool has_room(const net *n, uint64_t length)
{
    const ledger_status s =
        n->opt.memory ? ledger_get_status(n->opt.memory) : (ledger_status){.limit = SIZE_MAX};
    return n->inflight + length <= n->opt.max_inflight && s.used <= s.limit && length <= s.limit - s.used;
}

/* A head that is whole; its body, if there is one, is read next. */
static int take_request(net_conn *c, const http_head *from, const net_head *h)
{
    uint64_t length;
    const int bad = read_body_length(c, from, h->method, &length);
    if (bad) {
        return refuse_body(c, bad);
    }
    net_head head = *h;
    head.has_body = length > 0 || c->is_chunked;
    head.body_bytes = length;
    c->body_left = length;
    c->body_unread = head.has_body;
    net_reply refusal = {0};
    if (!c->net->cb.on_head(c->net->cb.ctx, c->id, &head, &refusal)) {
        c->close_after = c->close_after || c->body_unread;
        start_reply(c, &refusal);
        return 0;
    }
    c->announced = c->in_request = true;
    if (!c->streams_body && length > c->net->opt.max_body) {
        return refuse_body(c, 413);
    }
    if (!c->streams_body && !has_room(c->net, length)) {
        return refuse(c, 429, "memory_busy", "the memory for requests is in use; try again in a moment");
    }
    if (!head.has_body) {
        return hand_up(c);
    }
    c->phase = CONN_BODY;
    const int64_t more_s = c->streams_body ? (int64_t)(length / MIN_STREAM_RATE) : 0;
    c->body_ns = clock_ns();
    c->deadline_ns = c->body_ns + (c->net->opt.body_timeout_s + more_s) * NET_S_NS;
    char expect[32];
    http_head_value(from, "expect", expect, sizeof expect);
    return strcasecmp(expect, "100-continue") == 0 ? go_on(c) : 0;
}

static int take_head(net_conn *c)
{
    size_t n_empty = 0;
    while (c->rx.len - n_empty >= 2 && memcmp(c->rx.data + n_empty, "\r\n", 2) == 0) {
        n_empty += 2; /* RFC 9112, 2.2: empty lines in front of a request mean nothing */
    }
    bytes_consume(&c->rx, n_empty);
    const size_t max = c->net->opt.max_header;
    http_head from;
    net_head h;
    const http_head_state state = http_head_read(&from, bytes_str(&c->rx), c->rx.len < max ? c->rx.len : max);
    if (state == HTTP_HEAD_MORE && c->rx.len < max) {
        return 0;
    }
    begin_request(c, &from);
    if (state != HTTP_HEAD_WHOLE) {
        return refuse_head(c, state == HTTP_HEAD_MORE ? 431 : state == HTTP_HEAD_VERSION ? 505 : 400);
    }
    const size_t n = from.bytes;
    int result;
    read_head(&h, c, &from);
    const int bad_query = read_query(&h, from.query_string);
    h.request_id = c->request_id;
    if (bad_query == 414) {
        result = refuse_head(c, 414);
    } else if (bad_query) {
        c->body_unread = true;
        result = refuse(c, 400, "invalid_query",
                        "the query has a % without two digits behind it, or a control character");
    } else if (!h.method) {
        result = refuse_head(c, 501);
    } else if (http_head_count(&from, "host") != 1 || !h.host[0]) {
        c->body_unread = true;
        result = refuse(c, 400, "invalid_host", "exactly one Host header is needed");
    } else if (h.is_upgrade) {
        result = begin_socket(c, &from, &h, n);
    } else {
        result = take_request(c, &from, &h);
    }
    if (result == 0) {
        bytes_consume(&c->rx, n);
    }
    return result;
}

/* A piece of the body: gathered, or handed up at once. */
static void take_piece(net_conn *c, const void *data, size_t n)
{
    net_reply refusal = {0};
    if (!c->streams_body) {
        if (!net_conn_receive(c, data, n, c->net->opt.max_body)) {
            refuse(c, 429, "memory_busy", "there is no memory for this body now; try again in a moment");
        }
    } else if (!c->net->cb.on_body(c->net->cb.ctx, c->id, data, n, &refusal)) {
        c->close_after = true;
        c->deadline_ns = 0;
        start_reply(c, &refusal);
    }
}

static void receive_chunked(net_conn *c, const char *data, size_t len, size_t *used)
{
    while (*used < len && c->phase == CONN_BODY) {
        const void *piece;
        size_t n;
        *used += net_chunked_next(&c->chunked, data + *used, len - *used, &piece, &n);
        if (c->chunked.state == NET_CHUNKED_BAD) {
            refuse(c, 400, "invalid_chunk", "the chunked body is malformed");
        } else if (!c->streams_body && n > c->net->opt.max_body - c->in.len) {
            refuse_body(c, 413);
        } else if (n > 0) {
            /* its length is told by nobody: what arrives gives time for more */
            c->deadline_ns += c->streams_body ? (int64_t)n * (NET_S_NS / MIN_STREAM_RATE) : 0;
            take_piece(c, piece, n);
        } else if (c->chunked.state == NET_CHUNKED_DONE) {
            c->body_unread = false;
            hand_up(c);
        }
    }
}

/* A body of announced length. */
static void receive_plain(net_conn *c, const char *data, size_t len, size_t *used)
{
    const size_t n = len < c->body_left ? len : (size_t)c->body_left;
    *used = n;
    c->body_left -= n;
    c->body_unread = c->body_left > 0;
    take_piece(c, data, n);
    if (c->phase == CONN_BODY && c->body_left == 0) {
        hand_up(c);
    }
}

/* Reads of the current body; *used is how many bytes were of it. */
static void take_body(net_conn *c, const char *data, size_t len, size_t *used)
{
    *used = 0;
    (c->is_chunked ? receive_chunked : receive_plain)(c, data, len, used);
}

/* Parses as much of the input as is complete. Pipelined requests wait for the reply to the one
 * before; what does not fit in one read waits outside. */
static int go_through(net_conn *c)
{
    for (size_t before = 0; c->rx.len != before && (c->phase == CONN_HEAD || c->phase == CONN_BODY);) {
        size_t used = 0;
        before = c->rx.len;
        if (c->phase == CONN_BODY) {
            take_body(c, c->rx.data, c->rx.len, &used);
        } else if (take_head(c) != 0) {
            return -1;
        }
        bytes_consume(&c->rx, used);
    }
    if (c->rx.len == 0) {
        bytes_deinit(&c->rx); /* idle connections are many */
    }
    return 0;
}

int net_http_receive(net_conn *c, const void *data, size_t len)
{
    const char *text = data;
    size_t used = 0;
    if (c->phase == CONN_BODY) { /* the usual case, without a copy: nothing of it waits in rx */
        take_body(c, text, len, &used);
    }
    if (c->phase > CONN_BODY && c->close_after) {
        return 0; /* nothing that follows counts */
    }
    if (c->phase == CONN_IDLE) {
        begin_head(c);
    }
    bytes_append(&c->rx, text + used, len - used);
    return c->rx.failed ? -1 : go_through(c);
}

void net_http_timeout(net_conn *c)
{
    c->deadline_ns = 0;
    if (c->phase == CONN_BODY) {
        refuse(c, 408, "body_timeout", "the body took too long to arrive");
    } else if (c->phase == CONN_HEAD && c->rx.len > 0) {
        const http_head none = {0};
        begin_request(c, &none);
        c->body_unread = true;
        refuse(c, 408, "header_timeout", "the head of the request took too long to arrive");
    } else {
        net_abort(c->net, c->id);
    }
}
