/* http_client: what is sent for each order, what is told of each head, how transfers end, in time that is made up; and what
 * comes of it when a call of libcurl or an allocation fails once. All of it is recorded. */
#include "server/http_client.h"

#include <curl/curl.h>
#include <stdarg.h>

#include "server/media/fetch.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/server/made_up_server.h"

/* ---- what fails ---- */

#undef curl_easy_setopt

ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(CURL *, curl_easy_init, (void), (), NULL)
ONE_FAILS(CURLM *, curl_multi_init, (void), (), NULL)
ONE_FAILS(CURLMcode, curl_multi_wakeup, (CURLM * m), (m), CURLM_INTERNAL_ERROR)
ONE_FAILS(CURLMcode, curl_multi_add_handle, (CURLM * m, CURL *c), (m, c), CURLM_OUT_OF_MEMORY)
ONE_FAILS(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text), (list, text),
          NULL)
ONE_FAILS(CURLU *, curl_url, (void), (), NULL)
ONE_FAILS(CURLUcode, curl_url_set, (CURLU * u, CURLUPart part, const char *text, unsigned how),
          (u, part, text, how), CURLUE_OUT_OF_MEMORY)

/* Every option has one value as long as a pointer. */
CURLcode __real_curl_easy_setopt(CURL *c, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *c, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *c, CURLoption option, ...)
{
    va_list args;
    va_start(args, option);
    void *value = va_arg(args, void *);
    va_end(args);
    return one_fails_now("curl_easy_setopt") ? CURLE_OUT_OF_MEMORY
                                             : __real_curl_easy_setopt(c, option, value);
}

static const char *const CALLS[] = {
    "malloc",         "calloc",           "curl_multi_init",   "curl_multi_wakeup",
    "curl_easy_init", "curl_easy_setopt", "curl_slist_append", "curl_multi_add_handle",
    "curl_url",       "curl_url_set"};

/* ---- the server ---- */

static bytes all;
static char said[1 << 14], url[64], other_url[64], socket_file[FOLDER_NAME + 8];
static size_t n_said;
static const char *says;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(said + n_said, sizeof said - n_said, format, args);
    va_end(args);
    n_said += (size_t)n < sizeof said - n_said ? (size_t)n : sizeof said - n_said - 1;
}

/* Without the version and the port, which are not the same each time. */
static void note_plain(const char *text)
{
    const char *hide[] = {url + strlen("http://"), PARLEY_VERSION};
    while (*text) {
        size_t skip = 0;
        for (size_t i = 0; i < ARRAY_LEN(hide); i++) {
            skip = strncmp(text, hide[i], strlen(hide[i])) == 0 ? strlen(hide[i]) : skip;
        }
        skip ? note("*") : *text == '\n' ? note("|") : *text == '\r' ? (void)0 : note("%c", *text);
        text += skip ? skip : 1;
    }
}

static const char *answer(int server, const char *head, const char *body)
{
    note(" asked %d {", server);
    note_plain(head);
    note(body[0] ? "||%s}" : "}", body);
    return says;
}

/* ---- one transfer ---- */

static int n_heads;
static bool stops_at_head, stops_at_data;

static bool on_head(void *ctx, const http_head *h)
{
    CHECK(ctx == said);
    n_heads++;
    note(" head %d", h->status);
    note(h->content_type[0] ? " type %s" : "", h->content_type);
    if (h->redirect) {
        note(" to ");
        note_plain(h->redirect);
    }
    note(h->error_code ? " error %s" : "", h->error_code);
    note(h->session ? " session %s" : "", h->session);
    note(h->retry_after_s ? " later %lld" : "", (long long)h->retry_after_s);
    note(h->range_from >= 0 ? " from %lld" : "", (long long)h->range_from);
    return !stops_at_head;
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    CHECK(ctx == said);
    note(" data %.*s", (int)(n < 20 ? n : 20), data);
    return !stops_at_data;
}

static bool has_ended;

static void on_end(void *ctx, http_end end, const char *why)
{
    static const char *const ENDS[] = {"done",   "unreachable", "untrusted", "no TLS",
                                       "broken", "silent",      "stopped"};
    CHECK(ctx == said);
    note(" %s%s", ENDS[end], end == HTTP_DONE && why[0] ? "?" : "");
    has_ended = true;
}

/* What comes of an order, with the nth call failing; NULL and 0: they are counted, below 0: nothing of it. */
static bool try_once(const http_order *what, const char *call, int n)
{
    http_order order = *what;
    order.ctx = said;
    order.on_end = on_end;
    n_said = 0;
    said[0] = '\0';
    has_ended = false;
    if (n >= 0) {
        one_fails(call, n);
    }
    const int64_t begun = made_up_ns;
    http_client *c = http_client_create();
    http_transfer *t = c ? http_client_start(c, &order) : NULL;
    note(!c ? " no client" : !t ? " not begun" : "");
    CHECK(!c || http_client_is_idle(c) == !t);
    while (t && !has_ended) {
        http_client_poll(c, 1000);
    }
    CHECK(!c || http_client_is_idle(c));
    const double took_s = (double)(made_up_ns - begun) / 1e9;
    note(took_s > 0.5 ? " in the end" : "");
    http_client_destroy(c);
    const bool has_failed = one_fails_over();
    while (made_up_serve()) {
    }
    return has_failed;
}

static void record(const char *name, http_order order)
{
    order.on_head = order.on_head ? order.on_head : on_head;
    order.on_data = order.on_data ? order.on_data : on_data;
    (void)try_once(&order, NULL, -1);
    bytes_printf(&all, "%s:%s\n", name, said);
}

static const char *const HEADERS[] = {"X-A: b", "X-C: d"};

static void test_orders(void)
{
    char from_socket[64];
    snprintf(from_socket, sizeof from_socket, "http://parley/x");
    says =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi" CUT;
    record("plain", (http_order){.url = url});
    record("key", (http_order){.url = url, .key = "secret"});
    record("range", (http_order){.url = url, .range = "5-"});
    record("headers", (http_order){.url = url, .headers = HEADERS, .n_headers = 2});
    record("body", (http_order){.url = url, .body = "{}{}", .n_body = 2});
    record("no body", (http_order){.url = url, .body = "", .n_body = 0});
    record("body and accept", (http_order){.url = url, .body = "{}", .n_body = 2, .accept = "a/b"});
    record("accept", (http_order){.url = url, .accept = "a/b"});
    record("method", (http_order){.url = url, .method = "DELETE"});
    record("method and body", (http_order){.url = url, .method = "PUT", .body = "{}", .n_body = 2});
    record("socket file", (http_order){.url = from_socket, .unix_path = socket_file});
    setenv("http_proxy", other_url, 1);
    record("proxy", (http_order){.url = url, .uses_proxy = true});
    record("no proxy", (http_order){.url = url});
    record("socket file, no proxy",
           (http_order){.url = from_socket, .unix_path = socket_file, .uses_proxy = true});
    unsetenv("http_proxy");
}

static void test_replies(void)
{
#define REPLY(head, body) "HTTP/1.1 " head "\r\nConnection: close\r\n\r\n" body CUT
    static const char *const REPLIES[] = {
        REPLY("200 OK\r\nMcp-Session-Id: s\r\nX-Error-Code: e", ""),
        REPLY("204 No", ""),
        "HTTP/1.1 100 Continue\r\n\r\n" REPLY("200 OK", "a"),
        REPLY("206 Part\r\nContent-Range: bytes 12-15/20", "abcd"),
        REPLY("206 Part\r\nContent-Range: bytes 0-3/20", "abcd"),
        REPLY("206 Part\r\nContent-Range: bytes */20", ""),
        REPLY("206 Part\r\nContent-Range: bytes :2", ""),
        REPLY("206 Part\r\nContent-Range: items 12-15/20", ""),
        REPLY("302 Found\r\nLocation: /x?y", "moved"),
        REPLY("301 Found\r\nLocation: http://other/z", ""),
        REPLY("399 Found\r\nLocation: relative", ""),
        REPLY("300 Found", ""),
        REPLY("200 OK\r\nLocation: /x", ""),
        REPLY("400 OK\r\nLocation: /x", ""),
        REPLY("302 Found\r\nLocation: http://[", ""),
        REPLY("429 Wait\r\nRetry-After: 77", ""),
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc" CUT,
        "SSH-2.0\r\n" CUT,
        "",
        MUTE,
        "HTTP/1.1 200 OK\nContent-Length: 2\nConnection: close\n\nhi" CUT,
        "HTTP/1.1 200 OK\n\nhi" CUT,
        EVENTS_HEAD LATER "a" LATER "b" CUT,
        EVENTS_HEAD "a" MUTE,
    };
    for (size_t i = 0; i < ARRAY_LEN(REPLIES); i++) {
        says = REPLIES[i];
        bytes_printf(&all, "reply %zu, ", i);
        record("to a GET", (http_order){.url = url, .connect_s = 3, .silence_s = 7});
    }
    says = EVENTS_HEAD "a" LATER "b" LATER "c" LATER "d" CUT;
    record("as long as it may take", (http_order){.url = url, .timeout_s = 2});
    static char large[(1 << 16) + 256]; /* heads of 64 KiB, and longer ones */
    for (size_t more = 0; more < 2; more++) {
        const size_t n = (size_t)snprintf(large, sizeof large, "HTTP/1.1 200 OK\r\n");
        const size_t fields = 65536 - n + more; /* all lines but the empty one */
        for (size_t at = n, left = fields; left > 0;) {
            size_t line = left > 1500 ? 1000 : left;
            memset(large + at, 'x', line);
            memcpy(large + at, "X: ", 3);
            memcpy(large + at + line - 2, "\r\n", 2);
            at += line;
            left -= line;
        }
        memcpy(large + n + fields, "\r\nbody" CUT, sizeof "\r\nbody" CUT);
        says = large;
        record(more ? "a head that is too long" : "a long head", (http_order){.url = url});
    }
    says = REPLY("200 OK", "abc");
    stops_at_head = true;
    record("stopped at its head", (http_order){.url = url});
    stops_at_head = false;
    stops_at_data = true;
    record("stopped at its data", (http_order){.url = url});
    stops_at_data = false;
    const http_order silent = {.url = url};
    (void)try_once(&silent, NULL, -1);
    bytes_printf(&all, "nobody hears its head and data:%s\n", said);
    record("nobody listens", (http_order){.url = "http://127.0.0.1:1"});
    record("no URL", (http_order){.url = "http://["});
    record("another scheme", (http_order){.url = "ftp://127.0.0.1"});
    char https[80];
    snprintf(https, sizeof https, "https://%s", url + strlen("http://"));
    record("no TLS there", (http_order){.url = https, .connect_s = 3});
    record("no such certificates", (http_order){.url = https, .ca_file = "/nowhere/ca"});
}

static void test_failures(void)
{
    const http_order order = {.url = url,
                              .key = "secret",
                              .body = "{}",
                              .n_body = 2,
                              .method = "PUT",
                              .accept = "a/b",
                              .headers = HEADERS,
                              .n_headers = 2,
                              .ca_file = "/nowhere/ca",
                              .range = "5-",
                              .on_head = on_head,
                              .on_data = on_data},
                     by_file = {.url = "http://parley/x",
                                .unix_path = socket_file,
                                .uses_proxy = true,
                                .body = "{}",
                                .n_body = 2,
                                .on_head = on_head,
                                .on_data = on_data};
    const http_order *const BOTH[] = {&order, &by_file};
    says = "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" CUT;
    for (size_t k = 0; k < 2; k++) {
        int n_calls[ARRAY_LEN(CALLS)];
        (void)try_once(BOTH[k], NULL, 0);
        bytes_printf(&all, "all of it:%s\n", said);
        for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
            n_calls[i] = one_fails_counted(CALLS[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
            for (int n = 1; n <= n_calls[i]; n++) {
                CHECK(try_once(BOTH[k], CALLS[i], n));
                one_fails_say(&all, CALLS[i], n, said);
            }
        }
        one_fails_say(&all, NULL, 0, NULL);
    }
}

static void test_origins(void)
{
    static const char *const PAIRS[][2] = {
        {"http://a/x", "http://a/y?z"},
        {"http://a", "http://A:80/"},
        {"https://a:443", "https://a"},
        {"http://a", "https://a"},
        {"http://a", "http://b"},
        {"http://a:1", "http://a:2"},
        {"HTTP://a", "http://a"},
        {"http://u:p@a", "http://a"},
        {"", "http://a"},
        {"http://a", ""},
        {"http://[", "http://["},
        {"file:///x", "file:///x"},
        {"http://a", "http://a.example"},
    };
    for (size_t i = 0; i < ARRAY_LEN(PAIRS); i++) {
        bytes_printf(&all, "%s and %s: %s\n", PAIRS[i][0], PAIRS[i][1],
                     http_same_origin(PAIRS[i][0], PAIRS[i][1]) ? "one origin" : "two");
    }
    static const struct {
        const char *call;
        int n;
    } FAILS[] = {{"curl_url", 1}, {"curl_url", 2}, {"curl_url_set", 1}, {"curl_url_set", 2}};
    for (size_t i = 0; i < ARRAY_LEN(FAILS); i++) { /* who cannot tell tells nobody the key */
        one_fails(FAILS[i].call, FAILS[i].n);
        CHECK(!http_same_origin("http://a", "http://a"));
        CHECK(one_fails_over());
    }
}

/* A wake that fails is tried once more; other descriptors are waited for, too. */
static void test_waiting(void)
{
    int pipes[2];
    http_client *c = http_client_create();
    CHECK(c && pipe(pipes) == 0);
    for (int n = 0; n <= 1; n++) {
        const int64_t begun = made_up_ns;
        one_fails("curl_multi_wakeup", n);
        http_client_wake(c);
        (void)one_fails_over();
        http_client_poll(c, 10000);
        CHECK(made_up_ns - begun < MADE_UP_S);
    }
    http_other others[] = {{.fd = pipes[0]}, {.fd = pipes[1], .writes = true}};
    http_client_poll_with(c, others, 2, 1000);
    CHECK(!others[0].ready && others[1].ready);
    CHECK(write(pipes[1], "x", 1) == 1);
    http_client_poll_with(c, others, 1, 1000);
    CHECK(others[0].ready);
    others[0].writes = true; /* which an end for reading never can be */
    const int64_t begun = made_up_ns;
    http_client_poll_with(c, others, 1, 1000);
    CHECK(!others[0].ready && made_up_ns - begun >= MADE_UP_S);
    http_client_destroy(c);
    http_client_destroy(NULL);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    char folder[FOLDER_NAME];
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("no_proxy");
    folder_make(folder);
    CHECK(fetch_start());
    const size_t n_open = open_files();
    snprintf(socket_file, sizeof socket_file, "%s/s", folder);
    made_up_answer = answer;
    made_up_world = made_up_serve;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", made_up_listen(NULL));
    snprintf(other_url, sizeof other_url, "http://127.0.0.1:%d", made_up_listen(NULL));
    (void)made_up_listen(socket_file);
    all = bytes_empty(1 << 20);
    test_orders();
    test_replies();
    test_failures();
    test_origins();
    test_waiting();
    recorded_check("server/http_client.txt", bytes_str(&all));
    bytes_deinit(&all);
    made_up_close();
    CHECK_INT(open_files(), n_open);
    fetch_stop();
    CHECK_DONE();
}
