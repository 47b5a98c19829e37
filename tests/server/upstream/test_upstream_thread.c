/* upstream_loop with its neighbours made up: all that the thread orders of the client, for how long it waits and rests, and each
 * event with all that it says are compared with a file, and so is what it knows of servers and answers whenever it waits. */
#include <stdarg.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/upstream/upstream_state.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/server/own_thread.h"

/* ---- what is said ---- */

static bytes said;
static upstreams *all;
static double now_ms;

__attribute__((format(printf, 1, 2))) static void say_line(const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_printf(&said, "%s\n", text);
}

/* ---- the system ---- */

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
double __wrap_clock_ms(void);
struct timespec __wrap_clock_deadline(int64_t ms);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

static int n_locked;     /* the lock of the servers */
static bool is_signaled; /* since it rests */

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (all && m == &all->lock) {
        CHECK_INT(n_locked++, 0);
    }
    return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (all && m == &all->lock) {
        CHECK_INT(--n_locked, 0);
    }
    return __real_pthread_mutex_unlock(m);
}

double __wrap_clock_ms(void)
{
    return now_ms;
}

struct timespec __wrap_clock_deadline(int64_t ms)
{
    return (struct timespec){.tv_sec = ms};
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    say_line("  sleeps %lld.%09ld s", (long long)time->tv_sec, time->tv_nsec);
    return 0;
}

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)

/* ---- the client ---- */

enum { TRANSFERS = 64 };

static struct {
    http_order order;
    bool is_open;
} transfers[TRANSFERS];
static int n_transfers, n_clients;
static bool no_start;

http_client *__wrap_http_client_create(void);
void __wrap_http_client_destroy(http_client *c);
http_transfer *__wrap_http_client_start(http_client *c, const http_order *order);
void __wrap_http_client_stop(http_client *c, http_transfer *t);
void __wrap_http_client_poll(http_client *c, int timeout_ms);
void __wrap_http_client_wake(http_client *c);

http_client *__wrap_http_client_create(void)
{
    n_clients++;
    return (http_client *)&n_clients;
}

void __wrap_http_client_destroy(http_client *c)
{
    CHECK(c == (http_client *)&n_clients);
    n_clients--;
}

void __wrap_http_client_wake(http_client *c)
{
    CHECK(c == (http_client *)&n_clients);
    say_line("  wakes the client");
}

http_transfer *__wrap_http_client_start(http_client *c, const http_order *o)
{
    CHECK(c == (http_client *)&n_clients && n_transfers < TRANSFERS && n_locked == 0);
    CHECK(!o->unix_path && !o->method && !o->accept && !o->headers && !o->n_headers && !o->range &&
          !o->uses_proxy && (!o->body || strlen(o->body) == o->n_body));
    say_line("  orders %d: %s, key %s, trusts %s, %d s, %d s, %d s%s%s", n_transfers, o->url,
             o->key ? o->key : "none", o->ca_file ? strrchr(o->ca_file, '/') + 1 : "the system", o->connect_s,
             o->silence_s, o->timeout_s, o->body ? ", " : "", o->body ? o->body : "");
    if (no_start) {
        no_start = false;
        say_line("  which fails");
        return NULL;
    }
    transfers[n_transfers].order = *o;
    transfers[n_transfers].is_open = true;
    return (http_transfer *)&transfers[n_transfers++];
}

void __wrap_http_client_stop(http_client *c, http_transfer *t)
{
    CHECK(c == (http_client *)&n_clients);
    for (int i = 0; i < n_transfers; i++) {
        if (t == (http_transfer *)&transfers[i]) {
            CHECK(transfers[i].is_open);
            transfers[i].is_open = false;
            say_line("  stops %d", i);
            return;
        }
    }
    CHECK(false);
}

/* ---- who hears of it ---- */

static void on_event(void *ctx, gen_event *e)
{
    static const char *const FINISHES[] = {"stop", "length", "cancelled", "error", "filtered"};
    const gen_timings *t = &e->timings;
    CHECK(ctx == &said && n_locked == 0);
    bytes_printf(&said, "  tells %d:", (int)e->request_id);
    if (e->type == GEN_TEXT) {
        bytes_printf(&said, " text of %d", e->text->n_tokens);
        for (size_t i = 0; i < e->text->n; i++) {
            bytes_printf(&said, " %d \"%.*s\"", (int)e->text->pieces[i].kind, (int)e->text->pieces[i].len,
                         e->text->pieces[i].text);
        }
    } else if (e->type == GEN_DONE) {
        bytes_printf(&said, " %s, %s, [%s] [%s], usage %d: %d %d %d %d", FINISHES[e->finish],
                     err_name(e->error), e->error_name, e->message, e->usage.is_known, e->usage.prompt,
                     e->usage.cached, e->usage.completion, e->usage.reasoning);
    } else {
        bytes_printf(&said, " event %d", (int)e->type);
    }
    bytes_printf(
        &said,
        "; phase %d, %d of %d, route %d to %s by %s, tokens %d %d %d, media %d %d, first after %g %g, "
        "then %g, open %zu\n",
        (int)e->phase, e->processed, e->total, (int)t->route, t->server, t->rule ? t->rule : "none",
        t->prompt_n, t->cache_n, t->predicted_n, t->n_images, t->n_videos, t->ttft_ms, t->prompt_ms,
        t->predicted_ms, all->n_open);
    gen_event_free(e);
}

static void on_change(void *ctx)
{
    CHECK(ctx == &said && n_locked == 0);
    say_line("  tells of a change");
}

static void say_state(void)
{
    static const char *const STATES[] = {"new", "up", "down"};
    for (size_t i = 0; i < all->config.n_servers; i++) {
        for (size_t j = 0; j < all->servers[i].n_replicas; j++) {
            const replica *r = &all->servers[i].replicas[j];
            say_line("  has %s %zu: %s [%s], %zu models, looks in %g, is %slooked at, %d run, %d sent, "
                     "%d followed, %d ruled, %d failed, %d bad",
                     all->config.servers[i].name, j, STATES[r->state], r->why, all->servers[i].models.n,
                     r->next_check_ms - now_ms, r->check ? "" : "not ", r->n_running, (int)r->n_sent,
                     (int)r->n_followed, (int)r->n_ruled, (int)r->n_failed, r->n_bad);
        }
    }
    for (const upstream_run *run = all->runs; run; run = run->next) {
        CHECK(*run->link == run);
        say_line("  has %d: tried %u, %sbegun, %sended, came %g, first %g, said %g, %s, %zu pieces wait",
                 (int)run->request->id, run->tried, run->has_begun ? "" : "not ",
                 run->has_ended ? "" : "not ", run->submitted_ms, run->first_ms, run->said_ms,
                 run->is_fast ? "fast" : "slow", run->reply.n_pieces);
    }
    say_line("  has %zu open, text due at %g", all->n_open, all->due_ms);
}

/* ---- what happens, step by step ---- */

static const char *const *next_step;

static upstream_request *prepare(const char *body, const char *rule)
{
    static const upstream_prompt CHAT = {0};
    static const upstream_prompt WORDS = {.text = "words that are long enough to be a block"};
    upstream_model m;
    upstream_request *q = NULL;
    api_request r;
    err_code code = ERR_OK;
    err_detail d = {0};
    CHECK_INT(upstreams_find(all, "gpu/m", &m, &code, &d), UPSTREAM_FOUND);
    m.rule = rule;
    char text[512];
    snprintf(text, sizeof text, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", body);
    api_request_init(&r);
    CHECK_OK(chat_request_parse(&r, text, strlen(text), NULL, &d), d);
    CHECK_OK(upstreams_prepare(all, &q, &m, &r, strcmp(body, "words") == 0 ? &WORDS : &CHAT, NULL, &d), d);
    api_request_deinit(&r);
    return q;
}

#define DELTA "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":null}]}\n\n"
#define STOP                                                                                                 \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"                        \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,"                          \
    "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n"

/* WORD NUMBER TEXT */
static void do_step(const char *step)
{
    char text[1024], what[16] = "", *end;
    err_detail d = {0};
    const size_t n = strcspn(step, " ");
    snprintf(what, sizeof what, "%.*s", (int)n, step);
    const double number = step[n] ? strtod(step + n, &end) : 0.0;
    const char *rest = step[n] ? end + (*end == ' ') : "";
    const int id = (int)number;
    const http_order *o = &transfers[id < TRANSFERS ? id : 0].order;
    say_line("%s", step);
    if (strstr("list head texts data much stop end", what) && !(id < n_transfers && transfers[id].is_open)) {
        CHECK_STR(step, "of a transfer that runs");
    } else if (strcmp(what, "later") == 0) {
        now_ms += number;
    } else if (strcmp(what, "submit") == 0 || strcmp(what, "ruled") == 0) {
        upstream_request *q = prepare(rest, *what == 'r' ? "when it rains" : NULL);
        CHECK_OK(upstreams_submit(all, q, (uint64_t)id, &d), d);
    } else if (strcmp(what, "cancel") == 0) {
        upstreams_cancel(all, (uint64_t)id);
    } else if (strcmp(what, "list") == 0) {
        snprintf(text, sizeof text, "{\"data\":[{\"id\":\"%s\"}]}", *rest ? rest : "m");
        CHECK(o->on_head(o->ctx, &(http_head){.status = 200, .content_type = "application/json"}));
        CHECK(o->on_data(o->ctx, text, strlen(text)));
        transfers[id].is_open = false;
        o->on_end(o->ctx, HTTP_DONE, "");
    } else if (strcmp(what, "head") == 0) {
        const http_head head = {.status = (int)strtol(rest, NULL, 10), .content_type = "text/event-stream"};
        say_line("  goes on: %d", o->on_head(o->ctx, &head));
    } else if (strcmp(what, "text") == 0) {
        snprintf(text, sizeof text, DELTA, rest);
        say_line("  goes on: %d", o->on_data(o->ctx, text, strlen(text)));
    } else if (strcmp(what, "texts") == 0) {
        for (long i = 0; i < strtol(rest, NULL, 10); i++) {
            snprintf(text, sizeof text, DELTA, "x");
            CHECK(o->on_data(o->ctx, text, strlen(text)));
        }
    } else if (strcmp(what, "spurious") == 0) {
        is_signaled = true;
    } else if (strcmp(what, "data") == 0) {
        say_line("  goes on: %d", o->on_data(o->ctx, rest, strlen(rest)));
    } else if (strcmp(what, "much") == 0) { /* behind the end */
        say_line("  goes on: %d", o->on_data(o->ctx, NULL, strtoul(rest, NULL, 10)));
    } else if (strcmp(what, "stop") == 0) {
        say_line("  goes on: %d", o->on_data(o->ctx, STOP, sizeof STOP - 1));
    } else if (strcmp(what, "end") == 0) {
        const long how = strtol(rest, &end, 10);
        transfers[id].is_open = false;
        o->on_end(o->ctx, (http_end)how, *end ? end + 1 : "");
    } else if (strcmp(what, "calloc") == 0) {
        one_fails("calloc", id);
    } else if (strcmp(what, "nostart") == 0) {
        no_start = true;
    } else {
        CHECK_STR(what, "close");
        all->closing = true;
    }
}

/* Until the next wait. */
static void do_steps(void)
{
    CHECK_INT(n_locked, 0);
    say_state();
    while (*next_step && **next_step) {
        do_step(*next_step++);
    }
    next_step += *next_step != NULL;
}

void __wrap_http_client_poll(http_client *c, int timeout_ms)
{
    CHECK(c == (http_client *)&n_clients);
    say_line("waits %d ms", timeout_ms);
    do_steps();
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    CHECK(c == &all->has_orders && m == &all->lock);
    say_line("rests %lld ms", (long long)until->tv_sec);
    pthread_mutex_unlock(m);
    is_signaled = false;
    do_steps();
    pthread_mutex_lock(m);
    return is_signaled ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    CHECK(c == &all->has_orders);
    is_signaled = true;
    return 0;
}

static void play(const char *title, const upstream_settings *settings, const char *const *steps)
{
    const upstream_hooks hooks = {
        .on_event = on_event, .on_change = on_change, .ctx = &said, .gather_ms = 50};
    err_detail d = {0};
    say_line("---- %s", title);
    now_ms = 1000.0;
    n_transfers = 0;
    next_step = steps;
    CHECK_OK(upstreams_create(&all, settings, &hooks, &d), d);
    upstream_loop(all);
    say_state();
    CHECK(!all->runs && n_locked == 0);
    all->has_thread = false;
    upstreams *u = all;
    all = NULL;
    upstreams_destroy(u);
    CHECK_INT(n_clients, 0);
}

#define PLAY(title, settings, ...)                                                                           \
    do {                                                                                                     \
        static const char *const steps[] = {__VA_ARGS__, "close", NULL};                                     \
        play(title, settings, steps);                                                                        \
    } while (0)
/* A wait is over. */
#define NEXT ""

static const upstream_settings ONE = {.servers = "gpu=http://127.0.0.1:9",
                                      .connect_timeout_s = 3,
                                      .silence_timeout_s = 7},
                               TWO = {.servers = "gpu=http://127.0.0.1:9,http://127.0.0.1:10",
                                      .connect_timeout_s = 3,
                                      .silence_timeout_s = 7},
                               APART = {.servers = "gpu=http://127.0.0.1:9,far=https://127.0.0.1:10",
                                        .keys = "gpu=PARLEY_TEST_KEY",
                                        .ca_file = PARLEY_SOURCE_DIR "/tests/server/upstream/tls/server.pem"};

static void test_looks(void)
{
    PLAY("two servers are looked at", &APART, "later 3", NEXT, "list 0", "later 100.5", NEXT, "later 899.25",
         NEXT, "end 1 1 no such name", NEXT, "later 400", NEXT, "later 599.5", NEXT, "later 0.5", NEXT,
         "list 2 x", "later 8000", NEXT, "later 0.7", NEXT, "later 0.3", NEXT, "later 1100", NEXT,
         "list 3 other", "later 999", NEXT, "later 1", NEXT, "end 4 5 gone", "later 8999", NEXT);
    PLAY("no memory to look", &ONE, NEXT, "end 0 5 gone", "later 1000", "nostart", NEXT, "later 500", NEXT,
         "later 500", NEXT, "list 1", NEXT, "later 10000", NEXT, "head 2 200", "data 2 {\"data\":");
}

static void test_answers(void)
{
    PLAY("an answer", &ONE, "list 0", "later 5", NEXT, "submit 7 q", NEXT, "later 10", "head 1 200",
         "later 20", "text 1 a", NEXT, "later 15", "text 1 b", NEXT, "later 34", NEXT, "later 1", NEXT,
         "later 60", "text 1 c", "later 5", "text 1 d", "later 7", "stop 1", "later 1000", NEXT, "later 3",
         "much 1 60000000", "much 1 7108000", "much 1 900", "end 1 0", NEXT);
    PLAY("much behind the end", &ONE, "list 0", NEXT, "ruled 7 q", NEXT, "head 1 200", "stop 1",
         "much 1 67108400", "much 1 50", "much 1 50", "much 1 1000", "end 1 6", NEXT);
    PLAY("nothing of an error behind it", &ONE, "list 0", NEXT, "submit 7 words", NEXT, "later 9",
         "head 1 200", "data 1 data: {\"error\":{\"message\":\"no\"}}\n\n", "much 1 1", "end 1 6", NEXT);
    PLAY("ends", &ONE, "list 0", NEXT, "submit 1 q", "submit 2 q", "submit 3 q", "submit 4 q", "submit 5 q",
         NEXT, "head 1 200", "later 3", "end 1 4 cut", "head 2 500", "end 2 0", "head 3 503", "end 3 0",
         "end 4 5 slow", "end 5 1 far", NEXT, "later 999", NEXT, "later 1", NEXT);
    PLAY("a server that is left", &ONE, "list 0", NEXT, "submit 1 q", "submit 2 r", "submit 3 s", NEXT,
         "cancel 2", "head 2 200", NEXT, "cancel 2", "cancel 3", "cancel 1", "submit 4 t", NEXT, "cancel 4",
         "submit 5 u", "cancel 5", NEXT, "later 1", NEXT);
    PLAY("no memory", &ONE, "list 0", NEXT, "submit 1 q", "calloc 1", NEXT, "nostart", "submit 2 q", NEXT,
         "calloc 1", "cancel 1", NEXT, "submit 3 q", NEXT, "calloc 1", "head 2 200", NEXT);
}

/* An answer whose text came fast, lately. */
#define FAST                                                                                                 \
    "list 0", NEXT, "submit 1 q", NEXT, "head 1 200", "text 1 a", "texts 1 13", "later 50", "text 1 b"

/* What comes fast is not looked at for a while; what comes slowly, or nothing, is waited for. */
static void test_rests(void)
{
    PLAY("fast text", &ONE, FAST, NEXT, "later 8", NEXT, "texts 1 7", "later 4", NEXT, "later 8", NEXT,
         "later 27", NEXT, "later 2.25", NEXT, NEXT, "later 0.25", NEXT, "later 0.25", NEXT, "later 0.25",
         "texts 1 12", NEXT, "later 8", NEXT, "texts 1 13", "later 40", NEXT, "later 3", NEXT, "later 1",
         NEXT, NEXT, "texts 1 13", "later 49", NEXT, "later 1", NEXT, "later 0.5", NEXT, "stop 1", NEXT,
         "end 1 0", NEXT);
    PLAY("one is fast, the other slow", &ONE, FAST, NEXT, "submit 2 q", NEXT, NEXT, "later 3", "head 2 200",
         NEXT, "text 2 a", NEXT, "later 2", NEXT, "later 36", "text 2 b", NEXT, "later 7", NEXT, "later 1.5",
         "text 1 c", NEXT, "texts 1 13", "later 51", NEXT, NEXT, NEXT, "stop 2", NEXT, NEXT, "end 2 0", NEXT,
         NEXT, "stop 1", NEXT, "later 3", NEXT);
    PLAY("a rest ends", &ONE, FAST, NEXT, "later 1", "cancel 9", NEXT, NEXT, "spurious", NEXT, "later 2",
         "submit 3 q", NEXT, NEXT, NEXT, "cancel 3", NEXT, NEXT, "cancel 1", NEXT, NEXT);
    PLAY("a rest that is the last", &ONE, FAST, NEXT, "spurious", "close", NEXT);
    PLAY("fast and over", &ONE, FAST, "stop 1", NEXT, "submit 2 q", NEXT, "head 2 200", "text 2 a", NEXT,
         "texts 2 20", "later 50", "text 2 b", NEXT, NEXT);
    /* Twice as many as its time has pieces of REST_MS is fast; one less is not. */
    PLAY("as fast as that", &ONE, "list 0", NEXT, "submit 1 q", NEXT, "head 1 200", "text 1 a", NEXT,
         "texts 1 13", "later 56", "text 1 c", NEXT, "later 8", NEXT, "later 40.5", NEXT, "later 1", NEXT,
         "later 10", "text 1 d", "texts 1 12", "later 56", "text 1 e", NEXT, "stop 1", "end 1 0", NEXT);
    PLAY("text of two is due", &ONE, "list 0", NEXT, "submit 1 q", "submit 2 q", NEXT, "head 1 200",
         "head 2 200", "text 1 a", "later 5", "text 2 a", NEXT, "text 2 b", "text 1 b", NEXT, "later 44.5",
         NEXT, "later 0.5", NEXT, "later 6", NEXT, "text 1 c", "later 3", "cancel 1", NEXT, "later 50", NEXT);
    PLAY("text is due when one is over", &ONE, "list 0", NEXT, "submit 1 q", "submit 2 q", NEXT, "head 1 200",
         "head 2 200", "text 1 a", "text 2 a", "later 5", "text 1 b", "text 2 b", "stop 1", NEXT, "later 45",
         NEXT, "later 9940", "text 2 c", "text 2 d", NEXT, "later 7", NEXT);
}

static void test_replicas(void)
{
    PLAY("two places", &TWO, "list 0", "end 1 5 gone", NEXT, "submit 1 a", NEXT, "head 2 502",
         "data 2 {\"error\":", "end 2 0", NEXT, "head 3 200", "text 3 x", "stop 3", "end 3 0", NEXT,
         "later 1000", NEXT, "list 4", NEXT, "submit 2 a", "ruled 3 b", "submit 4 a", "submit 5 words", NEXT,
         "end 5 1 far", "end 6 2", "end 7 3", "head 8 404", "end 8 0", NEXT);
    PLAY("one that fails", &TWO, "list 0", "list 1", NEXT, "submit 1 a", NEXT, "head 2 500", "end 2 0", NEXT,
         "submit 2 a", NEXT, "head 3 500", "end 3 0", NEXT, "submit 3 a", NEXT, "head 4 200", "text 4 b",
         "stop 4", "end 4 0", NEXT, "submit 4 a", NEXT, "head 5 500", "end 5 0", NEXT, "submit 5 a", NEXT,
         "head 6 500", "end 6 0", NEXT, "submit 6 a", NEXT, "head 7 400", "end 7 0", NEXT, "submit 7 a", NEXT,
         "head 8 500", "end 8 0", NEXT, "submit 8 a", NEXT, "head 9 500", "end 9 0", NEXT, "submit 9 a", NEXT,
         "head 10 500", "end 10 0", NEXT, "submit 10 a", NEXT, "head 11 200", "end 11 5 slow", NEXT,
         "later 1000", NEXT, "later 9000", NEXT);
}

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    err_detail d = {0};
    bytes log = bytes_empty(1 << 20);
    said = bytes_empty(1 << 20);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    CHECK_OK(log_open(path, &d), d);
    log_set_format(LOG_JOURNAL);
    setenv("PARLEY_TEST_KEY", "secret", 1);
    test_looks();
    test_answers();
    test_rests();
    test_replicas();
    CHECK_OK(file_read(&log, path, &d), d);
    say_line("---- what was logged");
    bytes_append(&said, bytes_str(&log), log.len);
    recorded_check("server/upstream/thread.txt", bytes_str(&said));
    bytes_deinit(&said);
    bytes_deinit(&log);
    CHECK_DONE();
}
