#define _GNU_SOURCE /* strcasestr */
/* The built-in server "fetch": a page by its address, as text. Only hosts that the operator named are
 * asked, at addresses that remote_host allows, redirects included. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "server/mcp/mcp_builtin.h"
#include "server/mcp/mcp_catalog.h"
#include "server/mcp/mcp_decode.h"
#include "server/mcp/mcp_html.h"
#include "server/media/remote_get.h"

enum { TEXT_SHOWN = 24 << 10, TITLE_SHOWN = 300 };

typedef struct page {
    const builtin_call *call;
    bytes data;
} page;

static bool write_page(void *ctx, const void *data, size_t n)
{
    page *p = ctx;
    bytes_append(&p->data, data, n);
    return !p->data.failed;
}

static bool is_cancelled(void *ctx)
{
    const page *p = ctx;
    return !p->call->may_go_on(p->call->ctx);
}

static void say_end(bytes *out, remote_end end, const remote_reply *r)
{
    switch (end) {
    case REMOTE_NO_URL:
        bytes_append_str(out, "this is no address of a page: http:// or https://, a host and no password");
        break;
    case REMOTE_NO_RULE:
        bytes_printf(out, "pages of %s may not be fetched here", r->host);
        break;
    case REMOTE_NOT_PUBLIC:
        bytes_printf(out, "%s is at an address that is not public; nothing is fetched from there", r->host);
        break;
    case REMOTE_INSECURE:
        bytes_printf(out, "the page leads to %s without encryption", r->host);
        break;
    case REMOTE_STATUS:
        bytes_printf(out, "%s answered with status %d", r->host, r->status);
        break;
    case REMOTE_HOPS:
        bytes_printf(out, "the page is behind more than %d redirects", LIMIT_REMOTE_HOPS);
        break;
    case REMOTE_TOO_LARGE:
        bytes_printf(out, "the page is larger than %zu MiB", LIMIT_TOOL_PAGE_BYTES >> 20);
        break;
    case REMOTE_TIMEOUT:
        bytes_printf(out, "%s did not send the page within %d s", r->host, LIMIT_TOOL_PAGE_S);
        break;
    default:
        bytes_printf(out, "%s cannot be reached, or its reply is broken", r->host);
        break;
    }
}

/* The charset of a Content-Type; "" if it has none. */
static void read_charset(char *out, size_t out_cap, const char *type)
{
    const char *p = strcasestr(type, "charset=");
    p = p ? p + strlen("charset=") : "";
    p += *p == '"' || *p == '\'';
    snprintf(out, out_cap, "%.*s", (int)strcspn(p, "\"'; \t"), p);
}

static bool ends_with(const char *text, size_t n, const char *end)
{
    const size_t n_end = strlen(end);
    return n >= n_end && strncasecmp(text + n - n_end, end, n_end) == 0;
}

typedef enum page_kind { PAGE_HTML, PAGE_TEXT, PAGE_OTHER } page_kind;

static page_kind kind_of(const char *type, const bytes *data)
{
    const size_t n = strcspn(type, "; \t");
    size_t at = 0;
    if (ends_with(type, n, "/html") || ends_with(type, n, "xhtml+xml")) {
        return PAGE_HTML;
    }
    if (strncasecmp(type, "text/", 5) == 0 || ends_with(type, n, "json") || ends_with(type, n, "xml") ||
        ends_with(type, n, "javascript") || ends_with(type, n, "yaml")) {
        return PAGE_TEXT;
    }
    if (n > 0 && !ends_with(type, n, "octet-stream")) {
        return PAGE_OTHER;
    }
    while (at < data->len && isspace((unsigned char)data->data[at])) {
        at++;
    }
    return mcp_is_binary(bytes_str(data), data->len) ? PAGE_OTHER
           : strncasecmp(bytes_str(data) + at, "<!doctype html", 14) == 0 ||
                   strncasecmp(bytes_str(data) + at, "<html", 5) == 0
               ? PAGE_HTML
               : PAGE_TEXT;
}

/* The part of the text that was asked for, and where it goes on. */
static void add_part(bytes *out, const bytes *text, int64_t start)
{
    size_t from = start < (int64_t)text->len ? (size_t)start : text->len;
    while (from > 0 && from < text->len && ((unsigned char)text->data[from] & 0xc0) == 0x80) {
        from--;
    }
    size_t n = text->len - from < TEXT_SHOWN ? text->len - from : TEXT_SHOWN;
    n -= from + n < text->len ? utf8_incomplete_tail(text->data + from, n) : 0;
    if (n > 0) {
        bytes_append(out, text->data + from, n);
    } else {
        bytes_append_str(out, text->len ? "(the text has ended before)" : "(the page has no text)");
    }
    if (from + n < text->len) {
        bytes_printf(out, "\n\n(cut here: %zu more bytes; fetch_page with start %zu goes on)",
                     text->len - from - n, from + n);
    }
}

static bool write_text(const builtin_call *call, bytes *out, const page *p, const remote_reply *r)
{
    char charset[64];
    const page_kind kind = kind_of(r->type, &p->data);
    if (kind == PAGE_OTHER) {
        bytes_append_str(out, "the address holds no text but ");
        mcp_clean_text(out, r->type[0] ? r->type : "binary data", FETCH_TYPE_MAX, false);
        bytes_printf(out, ", %zu bytes", p->data.len);
        return false;
    }
    bytes whole = bytes_empty(4 * LIMIT_TOOL_PAGE_BYTES), text = bytes_empty(4 * LIMIT_TOOL_PAGE_BYTES),
          title = bytes_empty(TITLE_SHOWN * 16);
    read_charset(charset, sizeof charset, r->type);
    if (kind == PAGE_HTML && !charset[0]) {
        mcp_html_charset(charset, sizeof charset, bytes_str(&p->data), p->data.len);
    }
    mcp_decode(&whole, bytes_str(&p->data), p->data.len, charset);
    bool is_whole = true;
    if (kind == PAGE_HTML) {
        is_whole =
            mcp_html_text(&text, &title, bytes_str(&whole), whole.len, r->url, call->may_go_on, call->ctx);
    }
    bytes_append_str(out, "Address: ");
    mcp_clean_text(out, r->url, FETCH_URL_MAX, false);
    if (title.len > 0) {
        bytes_append_str(out, "\nTitle: ");
        mcp_clean_text(out, bytes_str(&title), TITLE_SHOWN, false);
    }
    bytes_append_str(out, "\n\n");
    add_part(out, kind == PAGE_HTML ? &text : &whole, builtin_number(call, "start", 0));
    if (!is_whole) {
        bytes_append_str(out,
                         "\n\n(the rest of the page cannot be read: it is nested too deep, or too large)");
    }
    bytes_deinit(&whole);
    bytes_deinit(&text);
    bytes_deinit(&title);
    return true;
}

bool mcp_fetch_page(const builtin_call *call, bytes *out)
{
    page p = {.call = call, .data = bytes_empty(LIMIT_TOOL_PAGE_BYTES)};
    remote_reply *r = malloc(sizeof *r);
    if (!r) {
        bytes_append_str(out, "there is no memory for this page");
        return false;
    }
    const remote_order order = {.rules = (const char *const *)call->config->domains.items,
                                .n_rules = call->config->domains.n,
                                .url = builtin_text(call, "url"),
                                .end_ms = clock_ms() + 1000.0 * LIMIT_TOOL_PAGE_S,
                                .max_bytes = LIMIT_TOOL_PAGE_BYTES,
                                .write = write_page,
                                .cancelled = is_cancelled,
                                .ctx = &p};
    const remote_end end = remote_get(r, &order);
    bool ok = end == REMOTE_DONE;
    if (ok) {
        ok = write_text(call, out, &p, r);
    } else {
        say_end(out, end, r);
    }
    free(r);
    bytes_deinit(&p.data);
    return ok;
}
