/* Messages over streamable HTTP: each request is a POST, its reply a document or a stream of events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/mcp/mcp_state.h"
#include "server/media/data_uri.h"

enum { HEADERS_BYTES = 64 << 10, SILENCE_S = 3600, VALUE_BYTES = 8192 };

/* ---- headers ---- */

/* A value as a header holds it: as it is, or as base64 with marks around it. */
static void append_value(bytes *out, const char *text)
{
    const size_t n = strlen(text);
    bool is_plain = n > 0 && text[0] != ' ' && text[n - 1] != ' ' && strncmp(text, "=?base64?", 9) != 0;
    for (size_t i = 0; i < n; i++) {
        is_plain = is_plain && text[i] >= 0x20 && text[i] < 0x7f;
    }
    if (is_plain || n == 0) {
        bytes_append(out, text, n);
        return;
    }
    bytes_append_str(out, "=?base64?");
    base64_encode(out, (const uint8_t *)text, n);
    bytes_append_str(out, "?=");
}

static void add_line(mcp_ask *ask, size_t *n, const char *name, const char *value)
{
    ask->lines[(*n)++] = (const char *)ask->headers.len; /* its place, until all are there */
    /* TRAP: without a value libcurl takes "name:" as a header that is not to be sent */
    bytes_printf(&ask->headers, value[0] ? "%s: " : "%s;", name);
    append_value(&ask->headers, value);
    bytes_append_char(&ask->headers, '\0');
}

/* The arguments that the schema wants in headers, too, as far as there are places. */
static void add_params(mcp_ask *ask, size_t *n)
{
    const mcp_tool *t = ask->purpose == MCP_WORK && ask->what == MCP_CALL_TOOL
                            ? mcp_offer_find(ask->s->offer, ask->name)
                            : NULL;
    json_doc *doc = NULL;
    if (!t || t->n_headers == 0 || !ask->arguments ||
        json_parse(&doc, ask->arguments, strlen(ask->arguments), LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < t->n_headers; i++) {
        const json *v = json_get(json_root(doc), t->headers[i].param);
        char name[200];
        const char *text =
            json_is(v, JSON_BOOL) ? (json_is_true(v) ? "true" : "false") : json_str(v, json_number_text(v));
        snprintf(name, sizeof name, "Mcp-Param-%s", t->headers[i].header);
        if (text && strlen(text) < VALUE_BYTES && *n + ask->s->config->headers.n < ARRAY_LEN(ask->lines)) {
            add_line(ask, n, name, text);
        }
    }
    json_free(doc);
}

static size_t write_headers(mcp_ask *ask, const char *method, const char *name)
{
    const mcp_session *s = ask->s;
    size_t n = 0;
    bytes_init(&ask->headers, HEADERS_BYTES);
    if (s->is_modern) {
        add_line(ask, &n, "MCP-Protocol-Version", s->protocol);
        add_line(ask, &n, "Mcp-Method", method);
        if (name) {
            add_line(ask, &n, "Mcp-Name", name);
        }
        add_params(ask, &n);
    } else if (ask->purpose != MCP_INITIALIZE) {
        add_line(ask, &n, "MCP-Protocol-Version", s->protocol);
        if (s->session_id[0]) {
            add_line(ask, &n, "Mcp-Session-Id", s->session_id);
        }
        if (ask->last_event[0]) {
            add_line(ask, &n, "Last-Event-ID", ask->last_event);
        }
    }
    for (size_t i = 0; i < n; i++) {
        ask->lines[i] = ask->headers.data + (size_t)ask->lines[i];
    }
    for (size_t i = 0; i < s->config->headers.n; i++) {
        ask->lines[n++] = s->config->headers.items[i];
    }
    return n;
}

/* ---- replies ---- */

static bool on_head(void *ctx, const http_head *head)
{
    mcp_ask *ask = ctx;
    ask->status = head->status;
    snprintf(ask->type, sizeof ask->type, "%s", head->content_type);
    ask->is_stream = head->status == 200 && strncmp(head->content_type, "text/event-stream", 17) == 0;
    snprintf(ask->redirect, sizeof ask->redirect, "%s", head->redirect ? head->redirect : "");
    if (ask->purpose == MCP_INITIALIZE && head->session &&
        strlen(head->session) < sizeof ask->s->session_id) {
        snprintf(ask->s->session_id, sizeof ask->s->session_id, "%s", head->session);
    }
    return !head->redirect;
}

/* The data of one event, its lines joined. */
static void take_event(mcp_ask *ask, char *event, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        const char *end = memchr(event + i, '\n', len - i);
        const size_t next = end ? (size_t)(end - event) + 1 : len;
        size_t stop = end ? next - 1 : len;
        stop -= stop > i && event[stop - 1] == '\r';
        if (stop - i >= 5 && memcmp(event + i, "data:", 5) == 0) {
            size_t from = i + 5;
            from += from < stop && event[from] == ' ';
            if (n > 0) {
                event[n++] = '\n';
            }
            memmove(event + n, event + from, stop - from); /* never behind what is read */
            n += stop - from;
        } else if (stop - i > 3 && memcmp(event + i, "id:", 3) == 0 && !ask->s->is_modern) {
            const size_t from = i + 3 + (event[i + 3] == ' ');
            snprintf(ask->last_event, sizeof ask->last_event, "%.*s", (int)(stop - from), event + from);
        } else if (stop - i > 6 && memcmp(event + i, "retry:", 6) == 0) {
            const long ms = strtol(event + i + 6, NULL, 10);
            ask->retry_ms = ms > 0 && ms < 60000 ? (int)ms : 1000;
        }
        i = next;
    }
    if (n > 0) {
        mcp_session_read(ask->s, ask, event, n);
    }
}

/* The length of the first whole event, with the empty line behind it; 0: there is none yet. */
static size_t event_length(const bytes *b, size_t from)
{
    for (const char *p = b->len > from ? memchr(b->data + from, '\n', b->len - from) : NULL; p;) {
        const size_t i = (size_t)(p - b->data) + 1;
        if (i < b->len && b->data[i] == '\n') {
            return i + 1;
        }
        if (i + 1 < b->len && b->data[i] == '\r' && b->data[i + 1] == '\n') {
            return i + 2;
        }
        p = i < b->len ? memchr(b->data + i, '\n', b->len - i) : NULL;
    }
    return 0;
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    mcp_ask *ask = ctx;
    const size_t had = ask->reply.len > 4 ? ask->reply.len - 4 : 0;
    bytes_append(&ask->reply, data, n);
    ask->n_read += n;
    if (ask->reply.failed || ask->n_read > MCP_FLOOD_BYTES) {
        return false;
    }
    if (!ask->is_stream) {
        return true;
    }
    for (size_t len = event_length(&ask->reply, had); len > 0; len = event_length(&ask->reply, 0)) {
        take_event(ask, ask->reply.data, len);
        bytes_consume(&ask->reply, len);
    }
    return !ask->is_answered;
}

static void on_end(void *ctx, http_end end, const char *why)
{
    mcp_ask *ask = ctx;
    if (end == HTTP_DONE && ask->is_stream && ask->reply.len > 0) {
        take_event(ask, ask->reply.data, ask->reply.len); /* without the empty line */
    } else if (end == HTTP_DONE && ask->status < 500 && ask->reply.len > 0 && !mcp_session_is_lost(ask)) {
        mcp_session_read(ask->s, ask, ask->reply.data, ask->reply.len);
    }
    ask->transfer = NULL;
    mcp_session_ended(ask, end, why);
}

bool mcp_post_send(mcp_ask *ask, const char *method, const char *name)
{
    const bool goes_on = ask->last_event[0] != '\0'; /* a stream that was cut is read on with GET */
    bytes_deinit(&ask->headers);
    const size_t n = write_headers(ask, method, name);
    bytes_deinit(&ask->reply);
    bytes_init(&ask->reply, LIMIT_MCP_MESSAGE_BYTES);
    ask->status = 0;
    ask->is_stream = ask->is_answered = false;
    const http_order order = {.url = ask->s->config->url,
                              .body = goes_on ? NULL : ask->body.data,
                              .n_body = ask->body.len,
                              .accept = goes_on ? "text/event-stream" : "application/json, text/event-stream",
                              .headers = ask->lines,
                              .n_headers = n,
                              .connect_s = LIMIT_UPSTREAM_CONNECT_S,
                              .silence_s = SILENCE_S, /* mcp_session looks at the time */
                              .on_head = on_head,
                              .on_data = on_data,
                              .on_end = on_end,
                              .ctx = ask};
    if (ask->headers.failed || ask->body.failed) {
        return false;
    }
    ask->transfer = http_client_start(ask->s->all->client, &order);
    return ask->transfer != NULL;
}

static void on_session_gone(void *ctx, http_end end, const char *why)
{
    (void)ctx, (void)end, (void)why;
}

void mcp_post_end(mcp_session *s)
{
    char line[320], version[64];
    if (s->is_modern || !s->session_id[0]) {
        return;
    }
    snprintf(line, sizeof line, "Mcp-Session-Id: %s", s->session_id);
    snprintf(version, sizeof version, "MCP-Protocol-Version: %s", s->protocol);
    const char *lines[2 + MCP_HEADERS_MAX] = {line, version};
    size_t n = 2;
    for (size_t i = 0; i < s->config->headers.n; i++) {
        lines[n++] = s->config->headers.items[i];
    }
    const http_order order = {.url = s->config->url,
                              .method = "DELETE",
                              .headers = lines,
                              .n_headers = n,
                              .connect_s = 1,
                              .silence_s = 1,
                              .timeout_s = 1,
                              .on_end = on_session_gone};
    const http_transfer *goodbye = http_client_start(s->all->client, &order);
    (void)goodbye; /* without memory it hears nothing, and forgets the session by itself */
}
