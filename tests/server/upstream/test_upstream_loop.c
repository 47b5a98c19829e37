/* upstream_loop: when other servers are looked at, where a request goes, how text is passed on, and every end that an answer
 * can have, in time that is made up: the thread of the module runs as this program's own. */
#include <stdarg.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/media/fetch.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/upstream/upstream_state.h"
#include "tests/folder.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/made_up_server.h"
#include "tests/server/own_thread.h"

/* ---- the thread is this one ---- */

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *c);

static int n_rests; /* times at which it looked at no stream */
static bool is_resting;
static int n_called; /* orders that came while it rested */

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    (void)c;
    n_rests++;
    const int64_t end = until->tv_sec * MADE_UP_S + until->tv_nsec;
    pthread_mutex_unlock(m);
    is_resting = true;
    made_up_poll(NULL, 0, (int)((end - made_up_ns + MADE_UP_S / 1000 - 1) / (MADE_UP_S / 1000)));
    is_resting = false;
    made_up_until(INT64_MAX);
    pthread_mutex_lock(m);
    return made_up_ns < end ? 0 : ETIMEDOUT;
}

/* An order ends the rest. */
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    (void)c;
    if (is_resting) {
        made_up_until(made_up_ns);
    }
    return 0;
}

/* Requests to servers that are not given back yet; the most at once. */
void *__real_curl_easy_init(void);
void __real_curl_easy_cleanup(void *curl);
void *__wrap_curl_easy_init(void);
void __wrap_curl_easy_cleanup(void *curl);

static int n_open, most_open;

void *__wrap_curl_easy_init(void)
{
    n_open++;
    most_open = n_open > most_open ? n_open : most_open;
    return __real_curl_easy_init();
}

void __wrap_curl_easy_cleanup(void *curl)
{
    n_open--;
    __real_curl_easy_cleanup(curl);
}

/* ---- what happens, line by line ---- */

static upstreams *all;
static char heard[1 << 14];
static int64_t began;
static gen_timings timings;                                        /* of the last end */
static bool tells_lists;                                           /* requests for lists are told, too */
static const char *lists[MADE_UP_SERVERS], *says[MADE_UP_SERVERS]; /* what servers answer */

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    const size_t n = strlen(heard);
    va_list args;
    int m = snprintf(heard + n, sizeof heard - n, "%.2f ", (double)(made_up_ns - began) / 1e9);
    va_start(args, format);
    m += vsnprintf(heard + n + m, sizeof heard - n - (size_t)m, format, args);
    va_end(args);
    snprintf(heard + n + m, sizeof heard - n - (size_t)m, "\n");
}

static const char *answer(int server, const char *head, const char *body)
{
    (void)body;
    if (strncmp(head, "GET ", 4) == 0) {
        if (tells_lists) {
            tell("list %d", server);
        }
        return lists[server];
    }
    tell("asked %d", server);
    return says[server];
}

static void on_event(void *ctx, gen_event *e)
{
    static const char *const FINISHES[] = {"stop", "length", "cancelled", "error", "filtered"};
    char text[256] = "";
    (void)ctx;
    switch (e->type) {
    case GEN_PROGRESS:
        tell("%d begun", (int)e->request_id);
        break;
    case GEN_TEXT:
        for (size_t i = 0; i < e->text->n; i++) {
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%.*s", (int)e->text->pieces[i].len, e->text->pieces[i].text);
        }
        tell("%d %s", (int)e->request_id, text);
        break;
    default:
        timings = e->timings;
        tell("%d %s%s%s%s%s", (int)e->request_id, FINISHES[e->finish], e->error ? " " : "",
             e->error ? err_name(e->error) : "", e->error ? ": " : "", e->message);
    }
    gen_event_free(e);
}

static int n_changes;

static void on_change(void *ctx)
{
    (void)ctx;
    n_changes++;
}

/* ---- what this side does, by the clock ---- */

typedef struct act {
    double at_s;
    char what; /* 'S'ubmit, 'C'ancel, say 'A'nswer, 'L'ist, tell 'R'eplicas, e'X'it of a server, 'E'nd */
    int n;     /* an id or a server */
    const char *text;
} act;

static const act *next_act;

static void submit(int id, const char *text)
{
    static const upstream_prompt CHAT = {0};
    char body[512];
    upstream_model m;
    upstream_request *q;
    api_request r;
    err_code code = ERR_OK;
    err_detail d = {0};
    if (upstreams_find(all, "gpu/m", &m, &code, &d) != UPSTREAM_FOUND) {
        tell("%d refused %s: %s", id, err_name(code), d.text);
        return;
    }
    snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", text ? text : "q");
    api_request_init(&r);
    r.form = tool_form_find("hermes");
    CHECK_OK(chat_request_parse(&r, body, strlen(body), NULL, &d), d);
    m.rule = NULL;
    CHECK_OK(upstreams_prepare(all, &q, &m, &r, &CHAT, NULL, &d), d);
    CHECK_OK(upstreams_submit(all, q, (uint64_t)id, &d), d);
    api_request_deinit(&r);
}

static void tell_replicas(void)
{
    for (size_t i = 0; i < all->servers[0].n_replicas; i++) {
        const replica *r = &all->servers[0].replicas[i];
        tell("%zu is %s%s, %d run, %d sent, %d failed, %d followed", i,
             r->state == REPLICA_UP ? "up" : "down: ", r->why, r->n_running, (int)r->n_sent, (int)r->n_failed,
             (int)r->n_followed);
    }
}

static bool world(void)
{
    const int64_t due = began + (int64_t)(next_act->at_s * 1e9);
    if (made_up_ns < due) {
        made_up_at(due);
        return made_up_serve();
    }
    const act *a = next_act;
    switch (a->what) {
    case 'S':
        submit(a->n, a->text);
        break;
    case 'C':
        upstreams_cancel(all, (uint64_t)a->n);
        break;
    case 'A':
        says[a->n] = a->text;
        break;
    case 'L':
        lists[a->n] = a->text;
        break;
    case 'R':
        tell_replicas();
        break;
    case 'X':
        close(made_up_listening[a->n]);
        made_up_listening[a->n] = -1;
        break;
    default:
        if (!all->closing) {
            for (const upstream_run *run = all->runs; run; run = run->next) {
                tell("%d is not over", (int)run->request->id);
            }
            all->closing = true;
            http_client_wake(all->client);
        }
        return made_up_serve();
    }
    if (is_resting && (a->what == 'S' || a->what == 'C')) {
        CHECK(made_up_most_ns == made_up_ns); /* the rest is over */
        n_called++;
    }
    next_act++;
    return true;
}

#define LIST PLAIN("{\"data\":[{\"id\":\"m\"}]}")

static char settings_text[512];

/* What is heard from servers at these addresses while it acts. */
static const char *hears(const char *urls, int gather_ms, const act *acts)
{
    snprintf(settings_text, sizeof settings_text, "gpu=%s", urls);
    const upstream_settings settings = {
        .servers = settings_text, .connect_timeout_s = 3, .silence_timeout_s = 7};
    const upstream_hooks hooks = {.on_event = on_event, .on_change = on_change, .gather_ms = gather_ms};
    err_detail d = {0};
    for (int i = 0; i < MADE_UP_SERVERS; i++) {
        lists[i] = lists[i] ? lists[i] : LIST;
    }
    began = made_up_ns;
    next_act = acts;
    heard[0] = '\0';
    n_changes = n_rests = n_called = most_open = made_up_gone = 0;
    CHECK_OK(upstreams_create(&all, &settings, &hooks, &d), d);
    made_up_world = world;
    upstream_loop(all);
    made_up_world = NULL;
    all->has_thread = false;
    upstreams_destroy(all);
    CHECK_INT(n_open, 0);
    memset(lists, 0, sizeof lists);
    while (made_up_serve()) {
    }
    return heard;
}

#define HEARS(urls, gather_ms, expected, ...)                                                                \
    do {                                                                                                     \
        static const act acts[] = {__VA_ARGS__};                                                             \
        CHECK_STR(hears(urls, gather_ms, acts), expected);                                                   \
    } while (0)

static char url[MADE_UP_SERVERS][64], pair[160], three[256];

#define DELTA(text)                                                                                          \
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"finish_reason\":null}]}\n\n"
#define STOP "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
#define REPLIES(text)                                                                                        \
    EVENTS_HEAD DELTA(text)                                                                                  \
    STOP CUT
#define STATUS(line) "HTTP/1.1 " line "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" CUT

/* ---- answers ---- */

static void test_answers(void)
{
    HEARS(url[0], 50,
          "1.00 asked 0\n"
          "2.00 1 begun\n"
          "2.00 1 a\n"
          "3.00 1 b\n"
          "4.00 1 stop\n",
          {0, 'A', 0, LATER EVENTS_HEAD DELTA("a") LATER DELTA("b") LATER STOP CUT}, {1, 'S', 1, NULL},
          {6, 'E', 0, NULL});
    CHECK_INT(n_changes, 1); /* that it answers, with its models */
    CHECK_INT(made_up_gone, 0);
    CHECK_INT(n_rests, 0);
    CHECK_INT(most_open, 1);               /* the list of models was over before the chat */
    CHECK_NEAR(timings.ttft_ms, 1000, 10); /* of the first text, not of a later one */
    CHECK_NEAR(timings.predicted_ms, 2000, 10);
    /* What follows sooner than gather_ms waits until then; the end waits for nothing. */
    HEARS(url[0], 50,
          "1.00 asked 0\n"
          "1.00 1 begun\n"
          "1.00 1 a\n"
          "1.05 1 bc\n"
          "1.07 1 d\n"
          "1.07 1 stop\n",
          {0, 'A', 0,
           EVENTS_HEAD DELTA("a") SOON SOON SOON SOON SOON DELTA("b") SOON SOON SOON SOON SOON DELTA("c")
               SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON SOON
                   SOON SOON DELTA("d") SOON SOON SOON STOP CUT},
          {1, 'S', 1, NULL}, {6, 'E', 0, NULL});
#define FIVE(a)                                                                                              \
    DELTA(a) SOON DELTA(a)                                                                                   \
    SOON DELTA(a)                                                                                            \
    SOON DELTA(a)                                                                                            \
    SOON DELTA(a) SOON
#define MANY(a) FIVE(a) FIVE(a) FIVE(a) FIVE(a) FIVE(a)
    const char *fast =
        hears(url[0], 50,
              (const act[]){{0, 'A', 0, EVENTS_HEAD MANY("1") MANY("2") MANY("3") MANY("4") STOP CUT},
                            {1, 'S', 1, NULL},
                            {1.12, 'S', 2, NULL}, /* an order ends a rest */
                            {1.13, 'C', 1, NULL},
                            {1.14, 'C', 2, NULL},
                            {6, 'E', 0, NULL}});
    int lines = 0;
    for (const char *c = fast; *c; c++) {
        lines += *c == '\n';
    }
    CHECK(lines >= 8 && lines <= 11); /* an event for each 50 ms, not for each piece */
    CHECK_HAS(fast, "1.12 asked 0\n");
    CHECK_HAS(fast, "1.13 1 cancelled\n");
    CHECK_HAS(fast, "1.14 2 cancelled\n");
    CHECK(n_called > 0);
    CHECK(n_rests >= 8); /* a piece each 2 ms is no reason to look each time */
#define SLOW(a)                                                                                              \
    DELTA(a) SOON SOON SOON DELTA(a)                                                                         \
    SOON SOON SOON DELTA(a)                                                                                  \
    SOON SOON SOON DELTA(a)                                                                                  \
    SOON SOON SOON DELTA(a)                                                                                  \
    SOON SOON SOON
    const act slow[] = {
        {0, 'A', 0, EVENTS_HEAD SLOW("1") SLOW("2") SLOW("3") SLOW("4") SLOW("5") SLOW("6") STOP CUT},
        {1, 'S', 1, NULL},
        {6, 'E', 0, NULL}};
    CHECK_HAS(hears(url[0], 50, slow), "1 stop\n");
    CHECK_INT(n_rests, 0); /* one each 6 ms is */
}

static void test_ends(void)
{
    HEARS(url[0], 0, "1.00 asked 0\n1.00 1 begun\n1.00 1 a\n3.00 1 cancelled\n",
          {0, 'A', 0, EVENTS_HEAD DELTA("a") MUTE}, {1, 'S', 1, NULL}, {2, 'C', 2, NULL}, {3, 'C', 1, NULL},
          {3.5, 'C', 1, NULL}, {5, 'E', 0, NULL});
    CHECK_INT(made_up_gone, 1);
    HEARS(url[0], 0, "1.00 asked 0\n2.00 1 cancelled\n", {0, 'A', 0, MUTE}, {1, 'S', 1, NULL},
          {2, 'C', 1, NULL}, {3, 'E', 0, NULL});
    HEARS(url[0], 0, /* this side ends: nobody is left to hear it */
          "1.00 asked 0\n1.00 1 begun\n1.00 1 a\n3.00 1 is not over\n",
          {0, 'A', 0, EVENTS_HEAD DELTA("a") MUTE}, {1, 'S', 1, NULL}, {3, 'E', 0, NULL});
    HEARS(url[0], 0,
          "1.00 asked 0\n1.00 1 begun\n1.00 1 a\n"
          "1.00 1 error upstream: gpu has ended in the middle of its answer (Transferred a partial file)\n",
          {0, 'A', 0,
           "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" DELTA("a")
               CUT},
          {1, 'S', 1, NULL}, {1.5, 'E', 0, NULL});
    HEARS(url[0], 0,
          "1.00 asked 0\n"
          "1.00 1 error upstream: gpu has gone without an answer (Server returned nothing (no headers, "
          "no data))\n"
          "1.50 0 is down: Server returned nothing (no headers, no data), 0 run, 1 sent, 1 failed, 0 "
          "followed\n",
          {0, 'A', 0, ""}, {1, 'S', 1, NULL}, {1.5, 'R', 0, NULL}, {1.6, 'E', 0, NULL});
    const char *silent =
        hears(url[0], 0,
              (const act[]){{0, 'A', 0, EVENTS_HEAD DELTA("a") MUTE}, {1, 'S', 1, NULL}, {29, 'E', 0, NULL}});
    const char *at = strstr(silent, "1 a\n");
    CHECK_HAS(silent, " 1 error timeout: gpu has said nothing for 7 s\n");
    CHECK(at && strtod(at + 4, NULL) >= 8 &&
          strtod(at + 4, NULL) < 16); /* libcurl looks at some seconds together */
    HEARS(url[0], 0,
          "1.00 asked 0\n1.00 1 begun\n1.00 1 a\n1.00 1 stop\n3.00 asked 0\n3.00 2 begun\n3.00 2 a\n3.00 2 "
          "stop\n4.00 2 is not over\n4.00 1 is not over\n", /* their server has not hung up */
          {0, 'A', 0, EVENTS_HEAD DELTA("a") STOP DELTA("behind the end") MUTE}, {1, 'S', 1, NULL},
          {2, 'C', 1, NULL}, {3, 'S', 2, NULL}, {4, 'E', 0, NULL});
    HEARS("http://127.0.0.1:1", 0,
          "1.00 1 refused upstream: gpu cannot be reached: Couldn't connect to server\n", {1, 'S', 1, NULL},
          {2, 'E', 0, NULL});
}

/* ---- several addresses ---- */

static void test_replicas(void)
{
    static const char *const BUSY[] = {STATUS("502 No"), STATUS("503 No"), STATUS("504 No"), ""};
    for (size_t i = 0; i < sizeof BUSY / sizeof *BUSY; i++) { /* which has not begun may go elsewhere */
        const act acts[] = {{0, 'A', 0, BUSY[i]},
                            {0, 'A', 1, REPLIES("a")},
                            {1, 'S', 1, NULL},
                            {2, 'R', 0, NULL},
                            {2.1, 'E', 0, NULL}};
        const char *text = hears(pair, 0, acts);
        CHECK(strstr(text, "1.00 asked 0\n1.00 asked 1\n1.00 1 begun\n1.00 1 a\n1.00 1 stop\n") == text);
        CHECK_HAS(text, ", 0 run, 1 sent, 1 failed, 0 followed\n2.00 1 is up, 0 run, 1 sent, 0 failed");
    }
    const char *text =
        hears(pair, 0, (const act[]){{0, 'A', 0, STATUS("500 No")}, {1, 'S', 1, NULL}, {2, 'E', 0, NULL}});
    CHECK_HAS(text, "1.00 1 error upstream: ");
    CHECK(!strstr(text, "asked 1"));
    text = hears(pair, 0,
                 (const act[]){{0, 'A', 0, STATUS("503 No")},
                               {0, 'A', 1, STATUS("503 No")},
                               {1, 'S', 1, NULL},
                               {2, 'E', 0, NULL}});
    CHECK(strstr(text, "1.00 asked 0\n1.00 asked 1\n1.00 1 error upstream: ") == text); /* each once */
    text = hears(
        pair, 0,
        (const act[]){
            {0, 'A', 0, EVENTS_HEAD CUT}, {0, 'A', 1, REPLIES("a")}, {1, 'S', 1, NULL}, {2, 'E', 0, NULL}});
    CHECK(!strstr(text, "asked 1")); /* it has begun */

    /* The one with the fewest goes first; of equals the one that has got the fewest. */
    HEARS(three, 0,
          "1.00 asked 0\n1.00 1 begun\n"
          "2.00 asked 1\n2.00 2 begun\n"
          "3.00 asked 2\n3.00 3 begun\n"
          "4.00 asked 0\n4.00 4 begun\n"
          "5.00 2 cancelled\n"
          "6.00 asked 1\n6.00 5 begun\n"
          "7.00 3 cancelled\n7.50 5 cancelled\n"
          "8.00 asked 2\n8.00 6 begun\n"
          "9.00 0 is up, 2 run, 2 sent, 0 failed, 0 followed\n"
          "9.00 1 is up, 0 run, 2 sent, 0 failed, 0 followed\n"
          "9.00 2 is up, 1 run, 2 sent, 0 failed, 0 followed\n"
          "9.00 6 is not over\n9.00 4 is not over\n9.00 1 is not over\n",
          {0, 'A', 0, EVENTS_HEAD MUTE}, {0, 'A', 1, EVENTS_HEAD MUTE}, {0, 'A', 2, EVENTS_HEAD MUTE},
          {1, 'S', 1, "a"}, {2, 'S', 2, "b"}, {3, 'S', 3, "c"}, {4, 'S', 4, "d"}, {5, 'C', 2, NULL},
          {6, 'S', 5, "e"}, {7, 'C', 3, NULL}, {7.5, 'C', 5, NULL}, {8, 'S', 6, "f"}, {9, 'R', 0, NULL},
          {7.9, 'E', 0, NULL});
    /* Of those that answer, though one that does not has less; whether it is the first or the last. */
    for (int down = 0; down < 2; down++) {
        const act acts[] = {{0, 'A', 0, EVENTS_HEAD MUTE},
                            {0, 'A', 1, EVENTS_HEAD MUTE},
                            {0, 'L', down, ""},
                            {1, 'S', 1, "a"},
                            {1, 'S', 2, "b"},
                            {2, 'R', 0, NULL},
                            {2, 'E', 0, NULL}};
        char run[40];
        snprintf(run, sizeof run, "%d is up, 2 run, 2 sent", !down);
        CHECK_HAS(hears(pair, 0, acts), run);
    }
    /* The one that has seen it; from a bound on, it gives way. */
    text = hears(pair, 0,
                 (const act[]){{0, 'A', 0, EVENTS_HEAD MUTE},
                               {0, 'A', 1, EVENTS_HEAD MUTE},
                               {1, 'S', 1, "x"},
                               {1, 'S', 2, "x"},
                               {1, 'S', 3, "x"},
                               {1, 'S', 4, "x"},
                               {1, 'S', 5, "x"},
                               {1, 'S', 6, "x"},
                               {1, 'S', 7, "x"},
                               {1, 'S', 8, "x"},
                               {2, 'R', 0, NULL},
                               {2, 'E', 0, NULL}});
    CHECK_HAS(text, "0 is up, 7 run, 7 sent, 0 failed, 6 followed\n");
    CHECK_HAS(text, "1 is up, 1 run, 1 sent, 0 failed, 0 followed\n");
}

/* One whose answers fail rests, though it lists its models. */
static void test_rest(void)
{
    HEARS(pair, 0,
          "1.00 asked 0\n1.00 1 error upstream: gpu failed (500): gives no reason\n"
          "2.00 asked 1\n2.00 2 begun\n2.00 2 a\n2.00 2 stop\n"
          "3.00 asked 0\n3.00 1 error upstream: gpu failed (500): gives no reason\n",
          {0, 'A', 0, STATUS("500 No")}, {0, 'A', 1, REPLIES("a")}, {1, 'S', 1, "a"}, {2, 'S', 2, "b"},
          {3, 'S', 1, "c"}, {4, 'E', 0, NULL});
    tells_lists = true;
    HEARS(pair, 0,
          "0.00 list 0\n0.00 list 1\n"
          "1.00 asked 0\n1.00 1 error upstream: gpu failed (500): gives no reason\n"
          "2.00 asked 0\n2.00 2 error upstream: gpu failed (500): gives no reason\n"
          "3.00 asked 0\n3.00 3 error upstream: gpu failed (500): gives no reason\n"
          "3.50 0 is down: its answers fail, 0 run, 3 sent, 3 failed, 2 followed\n"
          "3.50 1 is up, 0 run, 0 sent, 0 failed, 0 followed\n"
          "4.00 asked 1\n4.00 4 begun\n4.00 4 a\n4.00 4 stop\n"
          "10.00 list 1\n"
          "13.00 list 0\n"
          "14.00 0 is up, 0 run, 3 sent, 3 failed, 2 followed\n"
          "14.00 1 is up, 0 run, 1 sent, 0 failed, 0 followed\n",
          {0, 'A', 0, STATUS("500 No")}, {0, 'A', 1, REPLIES("a")}, {1, 'S', 1, "x"}, {2, 'S', 2, "x"},
          {3, 'S', 3, "x"}, {3.5, 'R', 0, NULL}, {4, 'S', 4, "x"}, {14, 'R', 0, NULL}, {14.5, 'E', 0, NULL});
    tells_lists = false;
}

/* ---- looks ---- */

static void test_looks(void)
{
    tells_lists = true;
    HEARS(url[0], 0,
          "0.00 list 0\n10.00 list 0\n20.00 list 0\n"
          "20.50 0 is down: it does not list its models (404), 0 run, 0 sent, 0 failed, 0 followed\n"
          "21.00 list 0\n22.00 list 0\n"
          "22.50 0 is up, 0 run, 0 sent, 0 failed, 0 followed\n"
          "32.00 list 0\n",
          {15, 'L', 0, STATUS("404 No")}, {20.5, 'R', 0, NULL}, {21.5, 'L', 0, LIST}, {22.5, 'R', 0, NULL},
          {33, 'E', 0, NULL});
    CHECK_INT(n_changes, 3);
    HEARS(url[0], 0, "0.00 list 0\n11.00 list 0\n", {0, 'L', 0, MUTE}, {11.5, 'L', 0, LIST},
          {11.6, 'E', 0, NULL});
    tells_lists = false;
    static const struct {
        const char *list, *why;
    } ROWS[] = {{STATUS("401 No"), "it refuses the key of this server (--upstream-key)"},
                {STATUS("403 No"), "it refuses the key of this server (--upstream-key)"},
                {STATUS("302 No"), "it redirects elsewhere, which is not followed (302)"},
                {STATUS("300 No"), "it redirects elsewhere, which is not followed (300)"},
                {STATUS("399 No"), "it redirects elsewhere, which is not followed (399)"},
                {STATUS("400 No"), "it does not list its models (400)"},
                {STATUS("299 No"), "it does not list its models (299)"},
                {STATUS("500 No"), "it does not list its models (500)"},
                {"", "Server returned nothing (no headers, no data)"},
                {LATER MUTE, "it does not answer in time"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char expected[512];
        const double at = strstr(ROWS[i].list, LATER) ? 10.9 : 0.9;
        const act acts[] = {{0, 'L', 0, ROWS[i].list}, {at, 'S', 1, NULL}, {at, 'E', 0, NULL}};
        snprintf(expected, sizeof expected, "%.2f 1 refused upstream: gpu cannot be reached: %s\n", at,
                 ROWS[i].why);
        CHECK_STR(hears(url[0], 0, acts), expected);
        CHECK_INT(n_changes, 1);
    }
    const size_t n_long = LIMIT_UPSTREAM_EVENT_BYTES + 999;
    char *is_long = malloc(n_long + 1);
    CHECK(is_long != NULL);
    const int n_head = snprintf(is_long, n_long, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"data\":[]}");
    memset(is_long + n_head, ' ', n_long - (size_t)n_head);
    is_long[n_long] = '\0';
    const act too_long[] = {{0, 'L', 0, is_long}, {0.5, 'S', 1, NULL}, {0.6, 'E', 0, NULL}};
    CHECK_HAS(hears(url[0], 0, too_long), "gpu cannot be reached: its list of models is too large\n");
    free(is_long);
    const act none[] = {{0, 'L', 0, PLAIN("{\"data\":7}")}, {0.5, 'S', 1, NULL}, {0.6, 'E', 0, NULL}};
    CHECK_HAS(hears(url[0], 0, none), "refused upstream: gpu cannot be reached: ");
    const act other[] = {
        {0, 'L', 0, PLAIN("{\"data\":[{\"id\":\"other\"}]}")}, {0.5, 'S', 1, NULL}, {0.6, 'E', 0, NULL}};
    CHECK_HAS(hears(url[0], 0, other), "refused not_found: gpu has no such model; see /v1/models");
}

/* ---- what is told of them ---- */

static void test_told(void)
{
    const upstream_settings settings = {
        .servers = "gpu=http://127.0.0.1:1,http://127.0.0.1:2,far=http://127.0.0.1:3",
        .models = "big=gpu/m",
        .rules = "when queue > 2 use big, when media use big"};
    const upstream_hooks hooks = {.on_event = on_event, .on_change = on_change};
    err_detail d = {0};
    bytes out = bytes_empty(1 << 16);
    CHECK_OK(upstreams_create(&all, &settings, &hooks, &d), d);
    uint64_t next = 1;
    for (size_t i = 0; i < all->config.n_servers; i++) {
        for (size_t k = 0; k < all->servers[i].n_replicas; k++) {
            replica *r = &all->servers[i].replicas[k];
            r->state = k == 0 ? REPLICA_UP : REPLICA_DOWN;
            r->n_running = (int)next++;
            r->n_sent = next++;
            r->n_ruled = next++;
            r->n_followed = next++;
            r->n_failed = next++;
        }
    }
    all->n_open = 4;
    CHECK_INT(upstreams_count_running(all), 4);
    CHECK_INT(upstreams_count_running(NULL), 0);
    upstreams_write_rules(all, &out);
    bytes_append_char(&out, '\n');
    upstreams_write_metrics(all, &out);
    all->config.local_only = true;
    upstreams_write_rules(all, &out);
    recorded_check("server/upstream/told.txt", bytes_str(&out));
    bytes_deinit(&out);
    all->n_open = 0;
    all->has_thread = false;
    upstreams_destroy(all);
}

/* Whether each name is one of theirs, what it stands for, and what comes of a body that names none of them. */
static void tell_names(bytes *out, upstreams *u)
{
    static const char *const NAMES[] = {"",      "default",  "gpu/m", "gpu/none", "gpu",  "gp/m",
                                        "far/x", "far/eyes", "new/x", "big",      "lost", "nobody"};
    json_doc *body = NULL;
    CHECK_INT(json_parse(&body, "{\"prompt\":\"four\"}", 17, 9, NULL), ERR_OK);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        upstream_model m = {0};
        err_code code = ERR_OK;
        err_detail d = {0};
        const upstream_search found = upstreams_find(u, NAMES[i], &m, &code, &d);
        bytes_printf(out, "%s:%s found %d, %s %s %s %s", NAMES[i],
                     upstreams_is_named(u, NAMES[i]) ? " named," : "", (int)found, m.name, err_name(code),
                     d.name, d.text);
        if (found == UPSTREAM_FOUND) {
            bytes_printf(
                out, " of %zu: context %d %d, words %d, images %d %zu, videos %d, template %d, thinking %d",
                m.server, m.info.n_ctx, m.info.n_ctx_train, m.info.n_vocab, m.info.has_vision,
                (size_t)m.info.max_images, m.info.has_video, m.info.has_template, m.info.has_thinking);
        }
        bytes_append_char(out, '\n');
        if (u) {
            bytes_append_str(out, upstreams_write_model(u, out, NAMES[i], 1700000000) ? "\n" : "");
        }
    }
    for (int64_t queue = 2; queue <= 3; queue++) {
        const upstream_case c = {.queue = queue};
        const upstream_rule *rule = upstreams_route(u, json_root(body), c, NULL, NULL);
        bytes_printf(out, "%d wait: %s\n", (int)queue, rule ? rule->text : "here");
    }
    bytes_printf(out, "local only: %d\n", upstreams_is_local_only(u));
    json_free(body);
}

/* Lists and names, while servers are not reached yet, have models of each kind, and are gone; and without servers. */
static void test_lists(void)
{
    static const char *const MODELS[] = {
        "{\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\",\"max_model_len\":4096},{\"id\":\"words\","
        "\"architecture\":"
        "{\"input_modalities\":[\"text\"]}}]}",
        "{\"data\":[{\"id\":\"x\",\"architecture\":{\"input_modalities\":[\"text\"]}},{\"id\":\"eyes\","
        "\"meta\":{\"n_ctx\":"
        "77},\"architecture\":{\"input_modalities\":[\"text\",\"image\",\"video\"]}}]}"};
    static const char *const VIDEOS[] = {NULL, "gpu=url,far=none", "gpu=none,far=url",
                                         "gpu=frames,far=frames"};
    const upstream_hooks hooks = {.on_event = on_event};
    err_detail d = {0};
    bytes out = bytes_empty(1 << 18);
    for (size_t i = 0; i < 4 * 4; i++) {
        const upstream_settings settings = {
            .servers =
                "gpu=http://127.0.0.1:1,http://127.0.0.1:2,far=http://127.0.0.1:3,new=http://127.0.0.1:4",
            .models = "big=gpu/m,lost=far/gone",
            .videos = VIDEOS[i / 4],
            .rules = i / 4 == 1 ? NULL : "when queue > 2 use big",
            .local_only = i / 4 == 3};
        CHECK_OK(upstreams_create(&all, &settings, &hooks, &d), d);
        for (size_t k = 0; k < 2; k++) {
            server_state *s = &all->servers[k];
            if (i % 4 > k) { /* none, the first one, both; then they are gone */
                CHECK_OK(upstream_models_read(&s->models, MODELS[k], strlen(MODELS[k]), &d), d);
                s->was_reached = true;
                s->replicas[s->n_replicas - 1].state = i % 4 == 3 ? REPLICA_DOWN : REPLICA_UP;
            }
        }
        snprintf(all->servers[2].replicas[0].why, UPSTREAM_WHY_MAX, "%s", i % 2 ? "it sleeps" : "");
        bytes_printf(&out, "--- videos %s, %zu\n", VIDEOS[i / 4] ? VIDEOS[i / 4] : "as they are", i % 4);
        tell_names(&out, all);
        for (int is_first = 0; is_first < 2; is_first++) {
            bytes_printf(&out, " (%zu)\n", upstreams_write_models(all, &out, is_first, 1700000000));
        }
        upstreams_write_status(all, &out);
        bytes_append_char(&out, '\n');
        all->has_thread = false;
        upstreams_destroy(all);
    }
    bytes_append_str(&out, "--- no servers\n");
    tell_names(&out, NULL);
    upstreams_cancel(NULL, 1);
    recorded_check("server/upstream/lists.txt", bytes_str(&out));
    bytes_deinit(&out);
}

/* All that was logged, with the servers' numbers in the place of their ports. */
static void test_log(const char *path)
{
    bytes log = bytes_empty(1 << 20), out = bytes_empty(1 << 20);
    err_detail d = {0};
    CHECK_OK(file_read(&log, path, &d), d);
    for (const char *p = bytes_str(&log); *p;) {
        int i = 0;
        while (i < 3 && strncmp(p, url[i], strlen(url[i])) != 0) {
            i++;
        }
        if (i < 3) {
            bytes_printf(&out, "[server %d]", i);
            p += strlen(url[i]);
        } else {
            bytes_append_char(&out, *p++);
        }
    }
    recorded_check("server/upstream/log.txt", bytes_str(&out));
    bytes_deinit(&log);
    bytes_deinit(&out);
}

/* A server that was there does not listen any more. */
static void test_gone(void)
{
    HEARS(url[2], 0, "1.00 1 error upstream: gpu cannot be reached: Couldn't connect to server\n",
          {0.5, 'X', 2, NULL}, {1, 'S', 1, NULL}, {2, 'E', 0, NULL});
}

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    err_detail d = {0};
    folder_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    CHECK_OK(log_open(path, &d), d);
    log_set_format(LOG_JOURNAL);
    unsetenv("http_proxy");
    CHECK(fetch_start());
    made_up_answer = answer;
    for (int i = 0; i < 3; i++) {
        snprintf(url[i], sizeof url[i], "http://127.0.0.1:%d", made_up_listen(NULL));
    }
    snprintf(pair, sizeof pair, "%s,%s", url[0], url[1]);
    snprintf(three, sizeof three, "%s,%s,%s", url[0], url[1], url[2]);
    test_answers();
    test_ends();
    test_replicas();
    test_rest();
    test_looks();
    test_told();
    test_lists();
    test_log(path);
    test_gone();
    made_up_close();
    fetch_stop();
    CHECK_DONE();
}
