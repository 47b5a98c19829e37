/* remote_get: which addresses it asks for one after the other, how long each may take, and what comes of each end. A double
 * of fetch_get answers, in time that is made up. */
#include "server/media/remote_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/server/made_up_time.h"

enum { TAKES_S = 2, MOST = 77 };

static const char *const *leads_to; /* of each answer the redirect; NULL: none, the last one */
static fetch_end ends;              /* the last one so */
static size_t n_asked;
static const char *asked[LIMIT_REMOTE_HOPS + 2]; /* in this order */
static int timeouts_ms[LIMIT_REMOTE_HOPS + 2];
static bool goes_private, is_over; /* whether it may connect to a private address; the client has gone */

fetch_end __wrap_fetch_get(fetch_reply *out, const fetch_order *order);
fetch_end __wrap_fetch_get(fetch_reply *out, const fetch_order *order)
{
    static char urls[LIMIT_REMOTE_HOPS + 2][64];
    struct sockaddr_in private = {.sin_family = AF_INET}, public = private;
    inet_pton(AF_INET, "10.0.0.1", &private.sin_addr);
    inet_pton(AF_INET, "1.1.1.1", &public.sin_addr);
    CHECK(n_asked < ARRAY_LEN(asked));
    snprintf(urls[n_asked], sizeof urls[0], "%s", order->url);
    asked[n_asked] = urls[n_asked];
    timeouts_ms[n_asked] = order->timeout_ms;
    CHECK_INT(order->max_bytes, MOST);
    CHECK(order->may_connect(order->ctx, (const struct sockaddr *)&public));
    goes_private = order->may_connect(order->ctx, (const struct sockaddr *)&private);
    CHECK(order->cancelled(order->ctx) == is_over);
    CHECK(order->write(order->ctx, "abc", 3) && !order->write(order->ctx, "abcd", 4));
    made_up_ns += TAKES_S * MADE_UP_S;
    *out = (fetch_reply){.status = 200 + (int)n_asked};
    snprintf(out->type, sizeof out->type, "type/%zu", n_asked);
    const char *next = leads_to[n_asked++];
    snprintf(out->redirect, sizeof out->redirect, "%s", next ? next : "");
    return next ? FETCH_REDIRECT : ends;
}

static bool on_write(void *ctx, const void *data, size_t n)
{
    CHECK(ctx == &n_asked && memcmp(data, "abc", 3) == 0);
    return n == 3;
}

static bool is_cancelled(void *ctx)
{
    CHECK(ctx == &n_asked);
    return is_over;
}

static remote_end get(remote_reply *reply, const char *url, double ms)
{
    static const char *const RULES[] = {"a.example", "b.example", "10.0.0.1"};
    n_asked = 0;
    const remote_order order = {.rules = RULES,
                                .n_rules = ARRAY_LEN(RULES),
                                .url = url,
                                .end_ms = clock_ms() + ms,
                                .max_bytes = MOST,
                                .write = on_write,
                                .cancelled = is_cancelled,
                                .ctx = &n_asked};
    return remote_get(reply, &order);
}

static void test_ends(void)
{
    static const struct {
        fetch_end end;
        remote_end seen;
    } ROWS[] = {{FETCH_DONE, REMOTE_DONE},           {FETCH_STATUS, REMOTE_STATUS},
                {FETCH_REFUSED, REMOTE_NOT_PUBLIC},  {FETCH_TOO_LARGE, REMOTE_TOO_LARGE},
                {FETCH_TIMEOUT, REMOTE_TIMEOUT},     {FETCH_CANCELLED, REMOTE_CANCELLED},
                {FETCH_UNWRITTEN, REMOTE_UNWRITTEN}, {FETCH_FAILED, REMOTE_FAILED}};
    static const char *const NOWHERE[] = {NULL};
    remote_reply reply;
    leads_to = NOWHERE;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        ends = ROWS[i].end;
        is_over = i % 2;
        CHECK_INT(get(&reply, i % 2 ? "http://10.0.0.1/x" : "http://A.example/x", 5000), ROWS[i].seen);
        CHECK_INT(n_asked, 1);
        CHECK_INT(reply.status, 200);
        CHECK_STR(reply.type, "type/0");
        CHECK_STR(reply.host, i % 2 ? "10.0.0.1" : "a.example");
        CHECK(goes_private == (i % 2 == 1));
    }
    is_over = false;
}

static void test_hops(void)
{
    static const struct {
        const char *url, *leads_to[LIMIT_REMOTE_HOPS + 1];
        remote_end end;
        size_t n_asked;
        const char *last, *host; /* the last address, asked or not */
    } ROWS[] = {
        {"http://a.example/", {"http://b.example/1"}, REMOTE_DONE, 2, "http://b.example/1", "b.example"},
        {"http://a.example/", {"https://b.example/1"}, REMOTE_DONE, 2, "https://b.example/1", "b.example"},
        {"https://a.example/", {"https://b.example/1"}, REMOTE_DONE, 2, "https://b.example/1", "b.example"},
        {"https://a.example/", {"http://b.example/1"}, REMOTE_INSECURE, 1, "http://b.example/1", "b.example"},
        {"http://a.example/",
         {"https://b.example/1", "http://a.example/2"},
         REMOTE_INSECURE,
         2,
         "http://a.example/2",
         "a.example"},
        {"http://a.example/", {"http://c.example/1"}, REMOTE_NO_RULE, 1, "http://c.example/1", "c.example"},
        {"http://a.example/", {"ftp://a.example/1"}, REMOTE_NO_URL, 1, "ftp://a.example/1", "a.example"},
        {"http://c.example/", {NULL}, REMOTE_NO_RULE, 0, "http://c.example/", "c.example"},
        {"http://a.example/",
         {"http://a.example/1", "http://a.example/2", "http://a.example/3"},
         REMOTE_DONE,
         4,
         "http://a.example/3",
         "a.example"},
        {"http://a.example/",
         {"http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4"},
         REMOTE_HOPS,
         4,
         "http://a.example/3",
         "a.example"},
    };
    remote_reply reply;
    ends = FETCH_DONE;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        leads_to = ROWS[i].leads_to;
        CHECK_INT(get(&reply, ROWS[i].url, 60000), ROWS[i].end);
        CHECK_INT(n_asked, ROWS[i].n_asked);
        for (size_t k = 0; k < n_asked; k++) {
            CHECK_STR(asked[k], k ? ROWS[i].leads_to[k - 1] : ROWS[i].url);
            CHECK(timeouts_ms[k] <= 60000 - 1000 * TAKES_S * (int)k &&
                  timeouts_ms[k] > 59990 - 1000 * TAKES_S * (int)k);
        }
        CHECK_STR(reply.url, ROWS[i].last);
        CHECK_STR(reply.host, ROWS[i].host);
        CHECK_INT(reply.status, n_asked ? 199 + (int)n_asked : 0);
    }
}

/* Where no time is left a millisecond is; and an address for which there is no room is none. */
static void test_bounds(void)
{
    static const struct {
        double ms;
        int timeout_ms;
    } ROWS[] = {{-5000, 1}, {0, 1}, {0.9, 1}, {1.5, 1}, {2.5, 2}, {1000.5, 1000}};
    static const char *const NOWHERE[] = {NULL};
    static char url[FETCH_URL_MAX + 1];
    remote_reply reply;
    leads_to = NOWHERE;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        CHECK_INT(get(&reply, "http://a.example/", ROWS[i].ms), REMOTE_DONE);
        CHECK_INT(timeouts_ms[0], ROWS[i].timeout_ms);
    }
    for (size_t n = FETCH_URL_MAX - 1; n <= FETCH_URL_MAX; n++) {
        snprintf(url, sizeof url, "http://a.example/%0*d", (int)(n - strlen("http://a.example/")), 0);
        CHECK_INT(get(&reply, url, 1000), n < FETCH_URL_MAX ? REMOTE_DONE : REMOTE_NO_URL);
        CHECK_INT(n_asked, n < FETCH_URL_MAX);
    }
}

int main(void)
{
    test_ends();
    test_hops();
    test_bounds();
    CHECK_DONE();
}
