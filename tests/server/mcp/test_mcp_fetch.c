/* The built-in tool that fetches a page: what becomes of each end of a transfer, of redirects, of each kind of text and of each
 * charset, as one recorded text. A double of fetch_get answers. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/json.h"
#include "server/mcp/mcp_builtin.h"
#include "server/media/fetch.h"
#include "tests/recorded.h"

typedef struct hop {
    fetch_end end;
    int status;
    const char *type, *data, *redirect, *address; /* address: asked for before; NULL: a public one */
} hop;

static size_t n_zeros; /* bytes of data that has zeros in it */

static const hop *next_hop;
static bytes all;
static bool may_go_on = true;

fetch_end __wrap_fetch_get(fetch_reply *out, const fetch_order *o);
fetch_end __wrap_fetch_get(fetch_reply *out, const fetch_order *o)
{
    const hop *h = next_hop++;
    struct sockaddr_in a = {.sin_family = AF_INET};
    CHECK_INT(inet_pton(AF_INET, h->address ? h->address : "93.184.216.34", &a.sin_addr), 1);
    const bool may = o->may_connect(o->ctx, (const struct sockaddr *)&a);
    bytes_printf(&all, "  %s, at most %llu bytes%s%s\n", o->url, (unsigned long long)o->max_bytes,
                 may ? "" : ", refused", o->cancelled(o->ctx) ? ", cancelled" : "");
    CHECK(o->timeout_ms > 10000 && o->timeout_ms <= 20000);
    *out = (fetch_reply){.status = h->status};
    if (!may) {
        return FETCH_REFUSED;
    }
    snprintf(out->type, sizeof out->type, "%s", h->type ? h->type : "");
    snprintf(out->redirect, sizeof out->redirect, "%s", h->redirect ? h->redirect : "");
    const size_t n = n_zeros ? n_zeros : h->data ? strlen(h->data) : 0, first = n < 7 ? n : 7;
    if (n > 0) { /* in two pieces */
        CHECK(o->write(o->ctx, h->data, first) && o->write(o->ctx, h->data + first, n - first));
    }
    return h->end;
}

static bool goes_on(void *ctx)
{
    CHECK(ctx == &all);
    return may_go_on;
}

static char *rules[] = {(char *)"page.example", (char *)"*.below.example", (char *)"10.0.0.7"};

/* arguments: JSON. What is said is shown whole, or of a long one its length and its end. */
static void fetch(const char *arguments, const hop *hops)
{
    json_doc *doc = NULL;
    err_detail d;
    CHECK_OK(json_parse(&doc, arguments, strlen(arguments), 16, &d), d);
    const mcp_server_config config = {.domains = {rules, sizeof rules / sizeof *rules}};
    const builtin_call call = {
        .config = &config, .arguments = json_root(doc), .may_go_on = goes_on, .ctx = &all};
    bytes out = bytes_empty(1 << 22);
    next_hop = hops;
    bytes_printf(&all, "%s\n", arguments);
    const bool ok = mcp_fetch_page(&call, &out);
    const char *said = bytes_str(&out);
    bytes_printf(&all, "  %s", ok ? "ok" : "failed");
    if (out.len > 2000) {
        bytes_printf(&all, ", %zu bytes, ... %s\n\n", out.len, said + out.len - 120);
    } else {
        bytes_printf(&all, "\n%s\n\n", said);
    }
    bytes_deinit(&out);
    json_free(doc);
}

#define PAGE   "{\"url\":\"http://page.example/a\"}"
#define SECURE "{\"url\":\"https://page.example/a\"}"
#define GIVES(type, text)                                                                                    \
    (const hop[])                                                                                            \
    {                                                                                                        \
        {                                                                                                    \
            FETCH_DONE, 200, type, text, NULL, NULL                                                          \
        }                                                                                                    \
    }
#define LEADS(to)                                                                                            \
    {                                                                                                        \
        FETCH_REDIRECT, 302, NULL, NULL, to, NULL                                                            \
    }

static void test_ends(void)
{
    static const fetch_end ENDS[] = {FETCH_REDIRECT, FETCH_STATUS,    FETCH_REFUSED,   FETCH_TOO_LARGE,
                                     FETCH_TIMEOUT,  FETCH_CANCELLED, FETCH_UNWRITTEN, FETCH_FAILED};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        const hop same = {ENDS[i], 503, NULL, NULL, "http://page.example/b", NULL};
        fetch(PAGE, (const hop[]){same, same, same, same, same});
    }
    const hop done = {FETCH_DONE, 200, "text/plain", "there", NULL, NULL};
    fetch(PAGE, (const hop[]){LEADS("http://x.below.example/b"), LEADS("https://page.example/c"),
                              LEADS("https://page.example/d"), done});
    fetch(SECURE, (const hop[]){LEADS("http://page.example/b"), done});
    fetch(PAGE, (const hop[]){LEADS("http://other.example/b"), done});
    fetch(PAGE, (const hop[]){LEADS("ftp://page.example/b"), done});
    fetch(PAGE, (const hop[]){{FETCH_DONE, 200, NULL, NULL, NULL, "127.0.0.1"}});
    fetch("{\"url\":\"http://10.0.0.7/a\"}",
          (const hop[]){{FETCH_DONE, 200, "text/plain", "near", NULL, "10.0.0.7"}});
    static const char *const URLS[] = {"{\"url\":\"http://below.example/\"}",
                                       "{\"url\":\"http://u:p@page.example/\"}", "{\"url\":\"page.example\"}",
                                       "{\"url\":\"\"}", "{}"};
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        fetch(URLS[i], &done);
    }
    may_go_on = false;
    fetch(PAGE, GIVES("text/plain", "x"));
    fetch(PAGE, GIVES("text/html", "<p>x"));
    may_go_on = true;
}

static void test_kinds(void)
{
    static const char *const TYPES[] = {"text/html",
                                        "TEXT/HTML; charset=utf-8",
                                        "application/xhtml+xml",
                                        "text/plain",
                                        "text/css",
                                        "application/json",
                                        "application/ld+json",
                                        "application/rss+xml",
                                        "application/javascript",
                                        "application/x-yaml",
                                        "image/png",
                                        "image/html5",
                                        "application/octet-stream",
                                        "x",
                                        "",
                                        "a\x1b"
                                        "b/c"};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        fetch(PAGE, GIVES(TYPES[i], " \n<!DOCTYPE html><title>T</title><p>a &amp; b"));
    }
    static const char *const UNTYPED[] = {"<html><p>h", " <HTML lang=x>k", "<!doctype htm", "plain",
                                          "",           "\x01\x02",        "<htm"};
    for (size_t i = 0; i < sizeof UNTYPED / sizeof *UNTYPED; i++) {
        fetch(PAGE, GIVES("", UNTYPED[i]));
    }
    n_zeros = 11;
    fetch(PAGE, GIVES("", "<html>\0<p>h"));
    n_zeros = 4; /* what only the charset that is said makes a text */
    fetch(PAGE, GIVES("text/plain; charset=utf-16le", "h\0i"));
    fetch(PAGE, GIVES("text/plain;charset='UTF-16BE'; x", "\0h\0i"));
    n_zeros = 0;
    static const char *const CHARSETS[] = {"text/plain; charset=iso-8859-1",
                                           "text/plain;charset=\"ISO-8859-1\"; x",
                                           "text/plain; CHARSET='latin1'",
                                           "text/plain; charset=windows-1252",
                                           "text/plain; charset=none",
                                           "text/plain; charset=",
                                           "text/plain"};
    for (size_t i = 0; i < sizeof CHARSETS / sizeof *CHARSETS; i++) {
        fetch(PAGE, GIVES(CHARSETS[i], "na\xefve \x80"));
    }
    fetch(PAGE, GIVES("text/html", "<meta charset=iso-8859-1><title>\xe4\n \xf6</title>\xfc"));
    fetch(PAGE, GIVES("text/html; charset=utf-8", "<meta charset=iso-8859-1>\xc3\xbc"));
    fetch(PAGE, GIVES("text/html", ""));
    fetch(PAGE, GIVES("text/plain", ""));
}

/* Which part of a long text is shown, and where it goes on. */
static void test_parts(void)
{
    enum { SHOWN = 24 << 10 };
    static char text[3 * SHOWN], arguments[128];
    static const long STARTS[] = {
        0, 1, SHOWN - 2, SHOWN - 1, SHOWN, SHOWN + 1, 2 * SHOWN - 1, 2 * SHOWN, 2 * SHOWN + 9};
    for (int odd = 0; odd < 2; odd++) { /* characters of two bytes are not cut */
        size_t n = (size_t)snprintf(text, sizeof text, "%s", odd ? "x" : "");
        while (n < 2 * SHOWN) {
            n += (size_t)snprintf(text + n, sizeof text - n, "\xc3\xa4");
        }
        for (size_t i = 0; i < sizeof STARTS / sizeof *STARTS; i++) {
            snprintf(arguments, sizeof arguments, "{\"url\":\"http://page.example/a\",\"start\":%ld}",
                     STARTS[i]);
            fetch(arguments, GIVES("text/plain; charset=utf-8", text));
        }
    }
    text[SHOWN] = '\0';
    fetch(PAGE, GIVES("text/plain", text));
    text[SHOWN - 1] = '\0';
    fetch(PAGE, GIVES("text/plain", text));
    memset(text, 'a', SHOWN + 1);
    text[SHOWN + 1] = '\0';
    fetch(PAGE, GIVES("text/plain", text));
    text[SHOWN] = '\0';
    fetch(PAGE, GIVES("text/plain", text));
}

int main(void)
{
    bytes_init(&all, 1 << 22);
    test_ends();
    test_kinds();
    test_parts();
    recorded_check("server/mcp/fetch.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
