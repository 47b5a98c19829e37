/* fetch: every end of a request, in time that is made up. */
#include "server/media/fetch.h"

#include "base/log.h"
#include "tests/said.h"
#include "tests/server/made_up_server.h"

enum { MOST = 10, OTHER = 1 << 16, HEADERS = 1 << 16 };

static const char *says;
static char got[64];
static int n_asked, cancels_at; /* the look at which it is cancelled; 0: none */
static bool may_write, may_connect;

static const char *answer(int server, const char *head, const char *body)
{
    (void)server, (void)head, (void)body;
    return says;
}

static bool on_connect(void *ctx, const struct sockaddr *address)
{
    (void)ctx;
    CHECK_INT(address->sa_family, AF_INET);
    return may_connect;
}

static bool on_write(void *ctx, const void *data, size_t n)
{
    const size_t had = strlen(got);
    (void)ctx;
    snprintf(got + had, sizeof got - had, "%.*s", (int)n, (const char *)data);
    return may_write;
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return ++n_asked == cancels_at;
}

#define STATUS(line, more) "HTTP/1.1 " line "\r\nConnection: close\r\n" more "\r\n"

static void test_ends(const char *url)
{
    static char page[OTHER + 200], long_page[OTHER + 200], heads[HEADERS + 1000];
    snprintf(page, sizeof page, STATUS("404 No", "") "%0*d" CUT, OTHER, 0);
    snprintf(long_page, sizeof long_page, STATUS("404 No", "") "%0*d" CUT, OTHER + 1, 0);
    snprintf(heads, sizeof heads, STATUS("200 OK", "X: %0*d\r\n") "a" CUT, HEADERS, 0);
    const struct {
        const char *answer, *got;
        fetch_end end;
        int status;
        bool no_write, no_connect;
        int cancels_at;
    } ROWS[] = {
        {STATUS("200 OK", "Content-Type: image/png\r\n") "abc" CUT, "abc", FETCH_DONE, 200, false, false, 0},
        {STATUS("200 OK", "") "0123456789" CUT, "0123456789", FETCH_DONE, 200, false, false, 0},
        {STATUS("200 OK", "") "0123456789+" CUT, "", FETCH_TOO_LARGE, 200, false, false, 0},
        {STATUS("200 OK", "Content-Length: 11\r\n") "a" MUTE, "", FETCH_TOO_LARGE, 200, false, false, 0},
        {STATUS("200 OK", "Content-Length: 5\r\n") "abc" CUT, "abc", FETCH_FAILED, 200, false, false, 0},
        {STATUS("404 No", "") "none" CUT, "", FETCH_STATUS, 404, false, false, 0},
        {page, "", FETCH_STATUS, 404, false, false, 0},
        {long_page, "", FETCH_FAILED, 404, false, false, 0},
        {heads, "", FETCH_FAILED, 0, false, false, 0},
        {STATUS("206 Part", "") "abc" CUT, "", FETCH_STATUS, 206, false, false, 0},
        {STATUS("302 Found", "Location: /b?c\r\n") "there" CUT, "", FETCH_REDIRECT, 302, false, false, 0},
        {STATUS("200 OK", "") "abc" CUT, "abc", FETCH_UNWRITTEN, 200, true, false, 0},
        {STATUS("200 OK", "") "abc" CUT, "", FETCH_REFUSED, 0, false, true, 0},
        {STATUS("200 OK", "") "abc" MUTE, "abc", FETCH_TIMEOUT, 200, false, false, 0},
        {LATER LATER STATUS("200 OK", "") "abc" CUT, "abc", FETCH_DONE, 200, false, false, 0},
        {MUTE, "", FETCH_CANCELLED, 0, false, false, 4},
        {"", "", FETCH_FAILED, 0, false, false, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fetch_reply reply;
        const int64_t began = made_up_ns;
        says = ROWS[i].answer;
        may_write = !ROWS[i].no_write;
        may_connect = !ROWS[i].no_connect;
        cancels_at = ROWS[i].cancels_at;
        n_asked = 0;
        got[0] = '\0';
        const fetch_end end = fetch_get(&reply, &(fetch_order){.url = url,
                                                               .timeout_ms = 5000,
                                                               .max_bytes = MOST,
                                                               .may_connect = on_connect,
                                                               .write = on_write,
                                                               .cancelled = is_cancelled});
        const double took_s = (double)(made_up_ns - began) / 1e9;
        if (end != ROWS[i].end || strcmp(got, ROWS[i].got) != 0) {
            fprintf(stderr, "row %zu: ", i);
        }
        CHECK_INT(end, ROWS[i].end);
        CHECK_STR(got, ROWS[i].got);
        CHECK(reply.status == ROWS[i].status || ROWS[i].status == 0);
        CHECK_STR(reply.type, i == 0 ? "image/png" : "");
        if (end == FETCH_REDIRECT) {
            CHECK_HAS(reply.redirect, "/b?c");
            CHECK_HAS(reply.redirect, "http://127.0.0.1:");
        }
        CHECK(end == FETCH_TIMEOUT ? took_s >= 5 && took_s < 5.5 : took_s < 4.5);
    }
}

/* An address that is as long as there is room for, and a longer one, which is no redirect. */
static void test_long_redirect(const char *url)
{
    for (size_t n = FETCH_URL_MAX - 1; n <= FETCH_URL_MAX; n++) {
        static char redirect[FETCH_URL_MAX + 200];
        fetch_reply reply;
        snprintf(redirect, sizeof redirect, STATUS("302 Found", "Location: http://h/%0*d\r\n") CUT,
                 (int)(n - strlen("http://h/")), 0);
        says = redirect;
        may_write = may_connect = true;
        cancels_at = 0;
        const fetch_end end = fetch_get(&reply, &(fetch_order){.url = url,
                                                               .timeout_ms = 5000,
                                                               .max_bytes = MOST,
                                                               .may_connect = on_connect,
                                                               .write = on_write,
                                                               .cancelled = is_cancelled});
        CHECK_INT(end, n < FETCH_URL_MAX ? FETCH_REDIRECT : FETCH_STATUS);
        CHECK_INT(strlen(reply.redirect), n < FETCH_URL_MAX ? n : 0);
        CHECK_INT(reply.status, 302);
    }
}

static void test_parse(void)
{
    static const struct {
        const char *url, *host; /* NULL: it is none */
        bool is_secure;
    } ROWS[] = {{"http://h", "h", false},
                {"https://h", "h", true},
                {"HTTPS://Example.ORG:8443/a?b#c", "example.org", true},
                {"http://1.2.3.4/", "1.2.3.4", false},
                {"http://[::1]:8080/a", "::1", false},
                {"http://[FD00::7]", "fd00::7", false},
                {"http://h:0", "h", false},
                {"ftp://h/", NULL, false},
                {"file:///a", NULL, false},
                {"http://u@h/", NULL, false},
                {"http://u:p@h/", NULL, false},
                {"http://", NULL, false},
                {"http://[", NULL, false},
                {"http://[]/", NULL, false},
                {"h/a", NULL, false},
                {"data:,a", NULL, false},
                {"", NULL, false}};
    static char longest[FETCH_URL_MAX + 1], host[FETCH_HOST_MAX + 20];
    fetch_target t;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const bool is_one = fetch_parse(&t, ROWS[i].url);
        if (is_one != (ROWS[i].host != NULL) || (is_one && strcmp(t.host, ROWS[i].host) != 0)) {
            fprintf(stderr, "%s\n", ROWS[i].url);
            CHECK(!"what is read of an address");
        }
        CHECK(!t.is_short);
        CHECK(!is_one || t.is_secure == ROWS[i].is_secure);
    }
    for (size_t n = FETCH_URL_MAX - 1; n <= FETCH_URL_MAX; n++) {
        snprintf(longest, sizeof longest, "http://h/%0*d", (int)(n - strlen("http://h/")), 0);
        CHECK_INT(fetch_parse(&t, longest), n < FETCH_URL_MAX);
    }
    for (size_t n = FETCH_HOST_MAX - 1; n <= FETCH_HOST_MAX; n++) {
        snprintf(host, sizeof host, "http://a%0*d/", (int)(n - 1), 0);
        CHECK_INT(fetch_parse(&t, host), n < FETCH_HOST_MAX);
        CHECK(n >= FETCH_HOST_MAX || strlen(t.host) == n);
    }
}

int main(void)
{
    char url[64];
    log_set_level(LOG_OFF);
    CHECK(fetch_start());
    made_up_answer = answer;
    made_up_world = made_up_serve;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/a", made_up_listen(NULL));
    test_ends(url);
    test_long_redirect(url);
    test_parse();
    made_up_close();
    fetch_stop();
    CHECK_DONE();
}
