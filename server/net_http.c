#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/api_error.h"
#include "server/net_lws.h"

/* STREAM_RATE: bytes a second that a streamed body must reach over its whole length. */
enum { DISCARD_S = 2, MAX_COMPLETIONS = 1000, STREAM_RATE = 16384 };

/* ---- writing ---- */

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 304:
        return "Not Modified";
    case 308:
        return "Permanent Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 411:
        return "Length Required";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 421:
        return "Misdirected Request";
    case 422:
        return "Unprocessable Content";
    case 426:
        return "Upgrade Required";
    case 429:
        return "Too Many Requests";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    case 507:
        return "Insufficient Storage";
    default:
        return "Status";
    }
}

static void write_head(net_conn *c, int status, const char *content_type, const char *headers)
{
    char date[64], id[64];
    time_t now = (time_t)clock_unix_s();
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    hash_random_id(id, sizeof id, "req_");
    /* OpenAI's clients look for the one name, Anthropic's for the other. */
    bytes_printf(&c->out, "HTTP/1.1 %d %s\r\nDate: %s\r\nx-request-id: %s\r\nrequest-id: %s\r\n", status,
                 status_text(status), date, id, id);
    bytes_append_str(&c->out, "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
    if (content_type) {
        bytes_printf(&c->out, "Content-Type: %s\r\n", content_type);
    }
    bytes_append_str(&c->out, headers ? headers : "");
    bytes_printf(&c->out, "Connection: %s\r\n", c->close_after ? "close" : "keep-alive");
}

static void start_reply(net_conn *c, const net_reply *r)
{
    bytes_clear(&c->out);
    c->out_pos = 0;
    c->body = NULL;
    c->body_bytes = c->body_pos = 0;
    write_head(c, r->status, r->content_type, r->headers);
    if (r->status != 204 && r->status != 304) {
        bytes_printf(&c->out, "Content-Length: %zu\r\n", r->body_bytes);
    }
    bytes_append_str(&c->out, "\r\n");
    if (!r->head_only && !c->head_only && r->body_bytes > 0) {
        if (r->body_lives) {
            c->body = r->body;
            c->body_bytes = r->body_bytes;
        } else {
            bytes_append(&c->out, r->body, r->body_bytes);
        }
    }
    c->phase = CONN_REPLY;
    lws_callback_on_writable(c->wsi);
}

void net_send_reply(net *n, uint64_t conn, const net_reply *reply)
{
    net_conn *c = net_find(n, conn);
    if (c && c->phase == CONN_WAIT) {
        start_reply(c, reply);
    }
}

void net_begin_stream(net *n, uint64_t conn, int status, const char *content_type, const char *headers)
{
    net_conn *c = net_find(n, conn);
    if (!c || c->phase != CONN_WAIT) {
        return;
    }
    bytes_clear(&c->out);
    c->out_pos = 0;
    c->body = NULL;
    c->body_bytes = c->body_pos = 0;
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

/* The reply is sent: what becomes of the connection. */
static int finish(net_conn *c)
{
    if (c->in_request) {
        c->in_request = false;
        c->net->cb.on_done(c->net->cb.ctx, c->id);
    }
    bytes_deinit(&c->out);
    c->out_pos = 0;
    c->body = NULL;
    c->body_bytes = c->body_pos = 0;
    if (c->close_after && c->body_unread) {
        /* Closing with unread bytes would send RST, and the client would lose our answer. */
        shutdown(lws_get_socket_fd(c->wsi), SHUT_WR);
        c->phase = CONN_DISCARD;
        c->deadline_ns = clock_ns() + (int64_t)DISCARD_S * 1000000000;
        return 0;
    }
    c->phase = CONN_IDLE;
    if (c->close_after) {
        return -1;
    }
    return lws_http_transaction_completed(c->wsi) ? -1 : 0;
}

int net_http_writable(net_conn *c)
{
    if (c->is_chunked && c->phase != CONN_BODY) {
        lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0); /* see hand_up_chunked */
    }
    if (c->phase != CONN_REPLY && c->phase != CONN_STREAM) {
        return 0;
    }
    if (c->phase == CONN_STREAM && c->out_pos == c->out.len && !c->stream_end) {
        bytes_clear(&c->out);
        c->out_pos = 0;
        pull_piece(c);
    }
    if (c->out.failed) {
        return -1;
    }
    unsigned char *to = c->net->scratch + LWS_PRE;
    size_t n = c->out.len - c->out_pos;
    n = n > NET_WRITE_BYTES ? NET_WRITE_BYTES : n;
    if (n > 0) {
        memcpy(to, c->out.data + c->out_pos, n);
        c->out_pos += n;
    }
    size_t m = c->body ? c->body_bytes - c->body_pos : 0;
    m = m > NET_WRITE_BYTES - n ? NET_WRITE_BYTES - n : m;
    if (m > 0) {
        memcpy(to + n, c->body + c->body_pos, m);
        c->body_pos += m;
    }
    if (n + m > 0 && lws_write(c->wsi, to, n + m, LWS_WRITE_HTTP) < 0) {
        return -1;
    }
    bool is_written = c->out_pos == c->out.len && c->body_pos == c->body_bytes;
    if (is_written && (c->phase == CONN_REPLY || c->stream_end) && !lws_partial_buffered(c->wsi)) {
        return finish(c);
    }
    if (n + m > 0) {
        lws_callback_on_writable(c->wsi);
    }
    return 0;
}

/* ---- reading ---- */

static int refuse(net_conn *c, int status, const char *code, const char *message)
{
    api_error e;
    api_error_set(&e, status, code, NULL, "%s", message);
    bytes body;
    bytes_init(&body, 4096);
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

/* White space around a value is no part of it; libwebsockets drops only the spaces in front. */
static void trim(char *text)
{
    static const char space[] = " \t";
    const size_t start = strspn(text, space);
    size_t end = strlen(text);
    while (end > start && strchr(space, text[end - 1])) {
        end--;
    }
    memmove(text, text + start, end - start);
    text[end - start] = '\0';
}

static void copy_header(net_conn *c, char *out, size_t cap, enum lws_token_indexes token)
{
    out[0] = '\0';
    if (lws_hdr_copy(c->wsi, out, (int)cap, token) < 0) {
        /* Too long. Not "", which means absent: an over-long Origin must fail its check, not pass as none. */
        out[0] = '?';
        out[1] = '\0';
    }
    trim(out);
}

/* libwebsockets keeps each parameter apart, and would join them with commas. */
static void copy_query(net_conn *c, char *out, size_t cap)
{
    size_t len = 0;
    out[0] = '\0';
    for (int i = 0; len + 2 < cap; i++) {
        const size_t gap = i > 0;
        int n = lws_hdr_copy_fragment(c->wsi, out + len + gap, (int)(cap - len - gap),
                                      WSI_TOKEN_HTTP_URI_ARGS, i);
        if (n <= 0) {
            break;
        }
        if (gap) {
            out[len] = '&';
        }
        len += gap + (size_t)n;
    }
    out[len] = '\0';
}

static void copy_custom_header(net_conn *c, char *out, size_t cap, const char *name)
{
    out[0] = '\0';
    int n = (int)strlen(name);
    if (lws_hdr_custom_length(c->wsi, name, n) > 0 &&
        lws_hdr_custom_copy(c->wsi, out, (int)cap, name, n) < 0) {
        out[0] = '?';
        out[1] = '\0';
    }
    trim(out);
}

static const struct {
    enum lws_token_indexes token;
    net_method method;
} METHODS[] = {
    {WSI_TOKEN_GET_URI, NET_GET},         {WSI_TOKEN_POST_URI, NET_POST}, {WSI_TOKEN_HEAD_URI, NET_HEAD},
    {WSI_TOKEN_OPTIONS_URI, NET_OPTIONS}, {WSI_TOKEN_PUT_URI, NET_PUT},   {WSI_TOKEN_PATCH_URI, NET_PATCH},
    {WSI_TOKEN_DELETE_URI, NET_DELETE},
};

static bool has_control_character(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

/* A token whose text libwebsockets has percent-decoded. */
static bool is_decoded(int token)
{
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++) {
        if (token == (int)METHODS[i].token) {
            return true;
        }
    }
    return token == WSI_TOKEN_HTTP_URI_ARGS;
}

/* Looks at the version and at every value that libwebsockets knows by name; values of unknown names it does not show. Returns
 * 0, or the status to refuse the head with. */
static int check_head(net_conn *c)
{
    char version[16] = "";
    copy_header(c, version, sizeof version, WSI_TOKEN_HTTP);
    c->http11 = strcmp(version, "HTTP/1.1") == 0;
    if (!c->http11 && strcmp(version, "HTTP/1.0") != 0) {
        return version[0] ? 505 : 400;
    }
    char *value = (char *)c->net->scratch;
    for (int token = 0; token < WSI_TOKEN_COUNT; token++) {
        const int n = lws_hdr_total_length(c->wsi, (enum lws_token_indexes)token);
        if (n > 0 && !is_decoded(token) &&
            (lws_hdr_copy(c->wsi, value, sizeof c->net->scratch, (enum lws_token_indexes)token) < n ||
             has_control_character(value, (size_t)n))) {
            return 400;
        }
    }
    return 0;
}

/* Fills the head from libwebsockets' tables; false for a method we do not know. */
static bool read_head(net_conn *c, net_head *h, const char *path, size_t path_len)
{
    memset(h, 0, sizeof *h);
    size_t uri_len = 0;
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++) {
        int len = lws_hdr_total_length(c->wsi, METHODS[i].token);
        if (len > 0) {
            h->method = METHODS[i].method;
            uri_len = (size_t)len;
            break;
        }
    }
    if (!h->method) {
        return false;
    }
    /* TRAP: %00 ends the path early in libwebsockets; then the lengths differ and no route may match. */
    if (path && path_len < sizeof h->path && strnlen(path, path_len) == path_len && path_len <= uri_len) {
        memcpy(h->path, path, path_len);
    }
    copy_query(c, h->query, sizeof h->query);
    copy_header(c, h->host, sizeof h->host, WSI_TOKEN_HOST);
    copy_header(c, h->origin, sizeof h->origin, WSI_TOKEN_ORIGIN);
    copy_header(c, h->authorization, sizeof h->authorization, WSI_TOKEN_HTTP_AUTHORIZATION);
    copy_header(c, h->content_type, sizeof h->content_type, WSI_TOKEN_HTTP_CONTENT_TYPE);
    copy_header(c, h->if_none_match, sizeof h->if_none_match, WSI_TOKEN_HTTP_IF_NONE_MATCH);
    copy_header(c, h->accept_encoding, sizeof h->accept_encoding, WSI_TOKEN_HTTP_ACCEPT_ENCODING);
    copy_header(c, h->ws_protocols, sizeof h->ws_protocols, WSI_TOKEN_PROTOCOL);
    copy_custom_header(c, h->x_api_key, sizeof h->x_api_key, "x-api-key:");
    copy_custom_header(c, h->repeat_key, sizeof h->repeat_key, "idempotency-key:");
    copy_custom_header(c, h->sec_fetch_site, sizeof h->sec_fetch_site, "sec-fetch-site:");
    c->head_only = h->method == NET_HEAD;
    return true;
}

static bool only_digits(const char *text)
{
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text)) {
            return false;
        }
    }
    return true;
}

static void begin_request(net_conn *c)
{
    net_conn_drop_input(c);
    bytes_clear(&c->out);
    c->out_pos = 0;
    c->close_after = c->body_unread = c->stream_end = c->streams_body = c->is_chunked = false;
    c->completions = 0;
    c->deadline_ns = 0;
    c->phase = CONN_IDLE;
}

static bool has_one_host(net_conn *c, const net_head *h)
{
    return h->host[0] && lws_hdr_fragment_length(c->wsi, WSI_TOKEN_HOST, 1) <= 0;
}

/* Checks what libwebsockets does not, before anything is read or believed. Returns 0 and fills *expected and c->is_chunked,
 * or the status to refuse with. */
static int check_body_headers(net_conn *c, const net_head *h, size_t *expected, bool *declared)
{
    char length[32], coding[32];
    *expected = 0;
    *declared = false;
    const int n = lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    /* For the others libwebsockets would read the body as the next request. */
    const bool has_content = h->method == NET_POST || h->method == NET_PUT || h->method == NET_PATCH;
    if (lws_hdr_total_length(c->wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
        copy_header(c, coding, sizeof coding, WSI_TOKEN_HTTP_TRANSFER_ENCODING);
        if (n > 0 || !c->http11) {
            return 400;
        }
        c->is_chunked = has_content && strcasecmp(coding, "chunked") == 0;
        c->chunked = (net_chunked){0};
        return c->is_chunked ? 0 : 501;
    }
    if (n <= 0) {
        return has_content ? 411 : 0;
    }
    if (n > 15 || lws_hdr_copy(c->wsi, length, sizeof length, WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0 ||
        !only_digits(length)) {
        return 400;
    }
    *declared = true;
    *expected = (size_t)strtoull(length, NULL, 10);
    return 0;
}

static int hand_up(net_conn *c)
{
    c->phase = CONN_WAIT;
    c->deadline_ns = 0;
    c->net->cb.on_request(c->net->cb.ctx, c->id, &c->in);
    net_conn_drop_input(c);
    return 0;
}

/* The last chunk is read. libwebsockets believes that the body goes on (it takes one without Content-Length for 100 MiB), so
 * the connection ends with the reply, and the timer for the rest must be taken back where it is not set again: in
 * net_http_writable. */
static int hand_up_chunked(net_conn *c)
{
    c->close_after = true;
    c->body_unread = false;
    lws_callback_on_writable(c->wsi);
    return hand_up(c);
}

static int refuse_head(net_conn *c, int status)
{
    return status == 505 ? refuse(c, 505, "version_not_supported", "HTTP/1.1 and HTTP/1.0 are understood")
                         : refuse(c, 400, "invalid_header", "the head of the request is malformed");
}

/* TRAP: on a kept-alive connection libwebsockets 4.1.6 answers an unknown Upgrade itself and then still calls us with
 * a pointer into the header table it has freed; touching it is a use after free. The table then holds no Upgrade. */
int net_http_confirm_upgrade(net_conn *c, char *upgrade)
{
    if (lws_hdr_total_length(c->wsi, WSI_TOKEN_UPGRADE) <= 0) {
        return -1;
    }
    if (strcasecmp(upgrade, "h2c") == 0) {
        upgrade[0] = 'x'; /* ignored, as RFC 9110 allows: the request goes on as HTTP/1.1 */
        return 0;
    }
    if (strcasecmp(upgrade, "websocket") != 0) {
        return -1;
    }
    begin_request(c);
    char *uri = NULL;
    int uri_len = 0;
    net_head h;
    if (lws_http_get_uri_and_method(c->wsi, &uri, &uri_len) < 0 || uri_len <= 0 ||
        !read_head(c, &h, uri, (size_t)uri_len)) {
        return -1;
    }
    h.is_upgrade = true;
    net_reply refusal = {0};
    int bad = check_head(c);
    if (bad) {
        upgrade[0] = 'x';
        return refuse_head(c, bad);
    }
    if (!has_one_host(c, &h)) {
        upgrade[0] = 'x';
        return refuse(c, 400, "invalid_host", "exactly one Host header is needed");
    }
    if (!c->net->cb.on_head(c->net->cb.ctx, c->id, &h, &refusal)) {
        upgrade[0] = 'x'; /* stays HTTP, where the refusal can carry a status */
        c->close_after = true;
        start_reply(c, &refusal);
        return 0;
    }
    c->announced = true;
    return 0;
}

static int refuse_body(net_conn *c, int status)
{
    c->body_unread = true;
    switch (status) {
    case 501:
        return refuse(c, 501, "transfer_encoding_not_supported",
                      "the only Transfer-Encoding understood is chunked, of POST, PUT and PATCH");
    case 411:
        return refuse(c, 411, "length_required", "send Content-Length");
    case 413:
        return refuse(c, 413, "body_too_large", "the body is larger than --max-body allows");
    default:
        return refuse(c, 400, "invalid_content_length",
                      "Content-Length must be one number of digits, without Transfer-Encoding");
    }
}

void net_stream_body(net *n, uint64_t conn)
{
    net_conn *c = net_find(n, conn);
    if (c) {
        c->streams_body = true;
    }
}

int net_http_head(net_conn *c, const char *path, size_t len)
{
    if (c->phase == CONN_REPLY) {
        return 0; /* an upgrade that was refused: its answer is on the way */
    }
    begin_request(c);
    net_head h;
    if (!read_head(c, &h, path, len)) {
        return refuse(c, 501, "method_not_supported", "this method is not supported");
    }
    size_t expected;
    bool declared;
    int bad = check_head(c);
    if (bad) {
        return refuse_head(c, bad);
    }
    bad = check_body_headers(c, &h, &expected, &declared);
    if (bad) {
        return refuse_body(c, bad);
    }
    h.has_body = expected > 0 || c->is_chunked;
    h.body_bytes = expected;
    c->body_unread = h.has_body;
    if (!has_one_host(c, &h)) {
        return refuse(c, 400, "invalid_host", "exactly one Host header is needed");
    }
    net_reply refusal = {0};
    if (!c->net->cb.on_head(c->net->cb.ctx, c->id, &h, &refusal)) {
        c->close_after = c->body_unread;
        start_reply(c, &refusal);
        return 0;
    }
    c->announced = c->in_request = true;
    if (c->streams_body && c->is_chunked) {
        return refuse_body(c, 411); /* what is streamed is large, and its room is set aside beforehand */
    }
    if (!c->streams_body && expected > c->net->opt.max_body) {
        return refuse_body(c, 413);
    }
    if (!c->streams_body && c->net->inflight + expected > c->net->opt.max_inflight) {
        return refuse(c, 503, "server_busy", "too many uploads at once; try again in a moment");
    }
    char expect[32];
    copy_header(c, expect, sizeof expect, WSI_TOKEN_HTTP_EXPECT);
    if (h.has_body && strcasecmp(expect, "100-continue") == 0) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        unsigned char *to = c->net->scratch + LWS_PRE;
        memcpy(to, go_on, sizeof go_on - 1);
        if (lws_write(c->wsi, to, sizeof go_on - 1, LWS_WRITE_HTTP_HEADERS) < 0) {
            return -1;
        }
    }
    /* libwebsockets calls BODY_COMPLETION for a body, and for an empty POST. */
    if (h.has_body || (declared && h.method == NET_POST)) {
        c->phase = CONN_BODY;
        const int64_t more_s = c->streams_body ? (int64_t)(expected / STREAM_RATE) : 0;
        c->body_ns = clock_ns();
        c->deadline_ns = c->body_ns + (c->net->opt.body_timeout_s + more_s) * 1000000000;
        return 0;
    }
    return hand_up(c);
}

static int receive(net_conn *c, const void *data, size_t len)
{
    if (!net_conn_receive(c, data, len, c->net->opt.max_body)) {
        return refuse(c, 503, "server_busy", "no memory for this body; try again in a moment");
    }
    return 0;
}

static int receive_chunked(net_conn *c, const char *data, size_t len)
{
    while (len > 0 && c->phase == CONN_BODY) {
        const void *piece;
        size_t n;
        const size_t used = net_chunked_next(&c->chunked, data, len, &piece, &n);
        data += used;
        len -= used;
        int err = 0;
        if (c->chunked.state == NET_CHUNKED_BAD) {
            err = refuse(c, 400, "invalid_chunk", "the chunked body is malformed");
        } else if (n > c->net->opt.max_body - c->in.len) {
            err = refuse_body(c, 413);
        } else if (n > 0) {
            err = receive(c, piece, n);
        } else if (c->chunked.state == NET_CHUNKED_DONE) {
            err = hand_up_chunked(c);
        }
        if (err) {
            return err;
        }
    }
    return 0;
}

int net_http_body(net_conn *c, const void *data, size_t len)
{
    if (c->phase != CONN_BODY || len == 0) {
        return 0;
    }
    if (c->streams_body) {
        net_reply refusal = {0};
        if (!c->net->cb.on_body(c->net->cb.ctx, c->id, data, len, &refusal)) {
            c->close_after = true;
            c->deadline_ns = 0;
            start_reply(c, &refusal);
        }
        return 0;
    }
    return c->is_chunked ? receive_chunked(c, data, len) : receive(c, data, len);
}

/* TRAP: libwebsockets 4.1.6 calls this again and again while bytes wait behind the body, as fast as the loop turns, and
 * switching reading off does not help: with buffered input that makes poll() return at once for ever. RFC 9112 forbids
 * such bytes unless they are a pipelined request, which nobody sends behind a POST. So: hang up, unless the reply is
 * whole: then they may be the next request of a client that has read it, and are served when this one is finished. */
int net_http_body_done(net_conn *c)
{
    if (c->is_chunked && c->phase == CONN_BODY) {
        return refuse_body(c, 413); /* all that libwebsockets takes without Content-Length */
    }
    c->body_unread = false;
    c->completions++;
    if (c->phase == CONN_DISCARD) {
        return -1;
    }
    if (c->completions == 1) {
        return c->phase == CONN_BODY ? hand_up(c) : 0;
    }
    bool is_whole = c->phase == CONN_REPLY || c->stream_end;
    return is_whole && c->completions < MAX_COMPLETIONS ? 0 : -1;
}

void net_http_timeout(net_conn *c)
{
    c->deadline_ns = 0;
    if (c->phase == CONN_BODY) {
        refuse(c, 408, "body_timeout", "the body took too long to arrive");
    } else {
        net_abort(c->net, c->id);
    }
}
