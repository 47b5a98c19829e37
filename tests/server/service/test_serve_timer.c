/* serve_timer: what the loop does when its timer comes: signs of life, the engine that gets busy, keys that are read again, the
 * end. The state is filled in by the test, which is also the net, the engine and whoever sends signals. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/one_fails.h"
#include "tests/said.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

enum { LINGER_MS = 3000, FLUSH_MS = 100 };

/* ---- what is asked of others ---- */

static double now_ms = 1000.0;
static int answers_ms, switch_ms, n_wants, n_changes, n_wakes, timer_ms, n_ticks, n_written;
static bool is_writing, is_sending, was_loading;
static engine_status engine_has;
static bytes said;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(int, serve_tick_answers, (serve * s, double now), (void)s; CHECK(now == now_ms); return answers_ms;)
WRAP(int, serve_tick_switch, (serve * s, double now), (void)s; CHECK(now == now_ms); return switch_ms;)
WRAP(void, serve_tick_uploads, (serve * s), (void)s; n_ticks++;)
WRAP(void, serve_tick_hub, (serve * s), (void)s; n_ticks++;)
WRAP(void, serve_watchdog_prep, (serve * s, double now), (void)s; CHECK(now == now_ms); n_ticks++;)
WRAP(void, serve_watchdog_engine, (serve * s, const engine_status *status, double now), (void)s;
     CHECK(now == now_ms && status->n_waiting == engine_has.n_waiting); n_ticks++;)
WRAP(void, serve_status_changed, (serve * s), (void)s; n_changes++;)
WRAP(void, serve_refuse_held, (serve * s), (void)s; bytes_append_str(&said, "held refused|");)
WRAP(void, serve_end_answers, (serve * s, answer_timeout why), (void)s; CHECK_INT(why, ANSWER_SERVER_ENDS);
     bytes_append_str(&said, "answers ended|");)
WRAP(void, serve_advance_switch, (serve * s), (void)s; n_wakes++;)
WRAP(void, serve_on_written, (serve * s), (void)s; n_written++;)
WRAP(bool, prep_is_idle, (const prep *p), (void)p; return true;)
WRAP(void, net_set_timer, (net * n, int ms), (void)n; timer_ms = ms;)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n, (void)id; n_wants++;)
WRAP(void, net_stop_listening, (net * n), (void)n; bytes_append_str(&said, "listens no more|");)
WRAP(bool, net_is_sending, (const net *n), (void)n; return is_sending;)
WRAP(void, net_close_socket, (net * n, uint64_t id, int code, const char *why), (void)n;
     bytes_printf(&said, "closed %d %d %s|", (int)id, code, why);)
WRAP(bool, write_queue_is_busy, (const write_queue *q), (void)q; return is_writing;)
WRAP(void, engine_get_status, (const engine *e, engine_status *out), (void)e; *out = engine_has;)
WRAP(void, notify_tick, (notify * n, double now, bool is_loading), (void)n; CHECK(now == now_ms);
     was_loading = is_loading; bytes_append_str(&said, "alive|");)
ONE_FAILS(bool, access_init,
          (access_rules * a, const char *const *keys, size_t n_keys, const char *const *hosts, size_t n_hosts,
           const char *const *origins, size_t n_origins),
          (a, keys, n_keys, hosts, n_hosts, origins, n_origins), false)
ONE_FAILS(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx),
          (t, a, fn, ctx), EAGAIN)

void __wrap_notify_send(const notify *n, const char *format, ...);
void __wrap_notify_send(const notify *n, const char *format, ...)
{
    char text[256];
    va_list args;
    (void)n;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *p = text; *p; p++) {
        *p = *p == '\n' ? ' ' : *p;
    }
    bytes_printf(&said, "%s|", text);
}

static void check_said(const char *expected)
{
    CHECK_STR(bytes_str(&said), expected);
    bytes_clear(&said);
}

static serve *begin(void)
{
    answers_ms = switch_ms = 250;
    n_wants = n_changes = n_wakes = n_ticks = n_written = 0;
    is_writing = is_sending = false;
    now_ms = 1000.0;
    bytes_clear(&said);
    serve *s = made_serve();
    s->inbox = mailbox_create(4);
    s->phase = SERVE_READY;
    CHECK(s->inbox != NULL);
    return s;
}

static void end(serve *s)
{
    mailbox_destroy(s->inbox, NULL);
    made_end(s);
}

/* ---- tests ---- */

/* The next look is as soon as anybody wants it, and all are asked. */
static void test_waits(void)
{
    static const struct {
        int answers, switches;
        serve_phase phase;
        int timer;
    } CASES[] = {{250, 250, SERVE_READY, 250}, {30, 250, SERVE_READY, 30},     {250, 40, SERVE_READY, 40},
                 {10, 7, SERVE_LOADING, 7},    {250, 7, SERVE_DRAINING, 20},   {19, 7, SERVE_DRAINING, 19},
                 {21, 7, SERVE_DRAINING, 20},  {5000, 9000, SERVE_EMPTY, 5000}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin();
        answers_ms = CASES[i].answers;
        switch_ms = CASES[i].switches;
        s->phase = CASES[i].phase;
        s->close_until_ms = s->drain_until_ms = 1e9;
        serve_on_timer(s);
        CHECK_INT(timer_ms, CASES[i].timer);
        CHECK_INT(n_ticks, 3);
        CHECK_INT(was_loading, CASES[i].phase == SERVE_LOADING);
        check_said("alive|");
        CHECK_INT(n_wakes, 0);
        s->is_stalled = true; /* its manager may decide to begin anew */
        s->switching = SWITCH_FINISHING;
        serve_on_timer(s);
        check_said("");
        CHECK_INT(n_wakes, 1);
        CHECK_INT(n_written, 1);
        s->switching = SWITCH_LOADING;
        serve_on_timer(s);
        CHECK_INT(n_wakes, 1);
        end(s);
    }
}

/* A stream that is silent for so long says that it lives. */
static void test_silent(void)
{
    serve *s = begin();
    conn *c = made_conn(s, 1);
    made_options.keepalive_s = 5;
    for (int streams = 0; streams < 2; streams++) {
        for (int more = 0; more < 2; more++) {
            c->is_streaming = streams;
            c->last_write_ms = now_ms - 4999.0 - more;
            n_wants = 0;
            serve_on_timer(s);
            CHECK_INT(n_wants, streams && more);
        }
    }
    end(s);
}

/* Whoever follows the state hears when the engine gets busy, and when it is no longer. */
static void test_busy(void)
{
    static char some[1];
    static const struct {
        int n_waiting, n_running;
        serve_phase phase;
        bool changes, is_busy;
    } LOOKS[] = {
        {0, 1, SERVE_READY, false, false}, {0, 2, SERVE_LOADING, false, false},
        {0, 2, SERVE_READY, true, true},   {0, 3, SERVE_READY, false, true},
        {1, 1, SERVE_READY, false, true},  {0, 1, SERVE_DRAINING, false, true},
        {0, 1, SERVE_READY, true, false},  {1, 0, SERVE_READY, true, true},
    };
    const engine_info info = {.n_parallel = 2};
    serve *s = begin();
    s->close_until_ms = s->drain_until_ms = 1e9;
    s->info = &info;
    s->engine = (engine *)some;
    for (size_t i = 0; i < ARRAY_LEN(LOOKS); i++) {
        engine_has = (engine_status){.n_waiting = LOOKS[i].n_waiting, .n_running = LOOKS[i].n_running};
        s->phase = LOOKS[i].phase;
        n_changes = n_ticks = 0;
        serve_on_timer(s);
        CHECK_INT(n_changes, LOOKS[i].changes);
        CHECK_INT(s->was_busy, LOOKS[i].is_busy);
        CHECK_INT(n_ticks, 4);
    }
    end(s);
}

/* The end begins once: nothing new comes, and the manager hears how long it may take. */
static void test_begins(void)
{
    serve *s = begin();
    made_options.drain_timeout_s = 7;
    serve_on_timer(s);
    check_said("alive|");
    made_answer(s, &dialect_chat)->state = ANSWER_RUNNING;
    made_answer(s, &dialect_chat)->state = ANSWER_FINISHED;
    made_answer(s, &dialect_chat)->state = ANSWER_HELD;
    atomic_store(&s->stop_wanted, true);
    for (int i = 0; i < 2; i++) {
        serve_on_timer(s);
        check_said(i ? "alive|"
                     : "STOPPING=1 STATUS=Ending: 2 answers open EXTEND_TIMEOUT_USEC=37000000|listens no "
                       "more|held refused|alive|");
        CHECK_INT(s->phase, SERVE_DRAINING);
        CHECK_NEAR(s->drain_until_ms, 8000.0, 1e-9);
        CHECK_INT(n_changes, 1);
        CHECK(!s->done && s->close_until_ms == 0.0);
    }
    end(s);
}

typedef struct hold {
    bool is_socket, is_streaming, has_history, has_mcp, writes, sends;
} hold;

/* What holds the end up, for how long. */
static void test_drain(void)
{
    static const hold HOLDS[] = {{0},
                                 {.is_socket = true},
                                 {.is_streaming = true},
                                 {.has_history = true},
                                 {.has_mcp = true},
                                 {.writes = true},
                                 {.sends = true}};
    for (size_t i = 0; i < ARRAY_LEN(HOLDS); i++) {
        for (int late = 0; late < 2; late++) {
            const hold *h = &HOLDS[i];
            serve *s = begin();
            conn *c = made_conn(s, 4);
            answer *a = made_answer(s, &dialect_chat);
            c->is_socket = h->is_socket;
            c->is_streaming = h->is_streaming;
            c->history_ticket = h->has_history;
            c->mcp_ticket = h->has_mcp;
            c->last_write_ms = 1e9;
            is_writing = h->writes;
            is_sending = h->sends;
            s->phase = SERVE_DRAINING;
            s->drain_until_ms = late ? 2000.0 : 20000.0;
            a->state = late ? ANSWER_RUNNING : ANSWER_FINISHED;
            const char *const ends = h->is_socket
                                         ? "alive|answers ended|closed 4 1001 the server is shutting down|"
                                         : "alive|answers ended|";
            if (late) { /* an answer goes on until its time is over */
                now_ms = 1999.0;
                serve_on_timer(s);
                check_said("alive|");
                CHECK(!s->done && s->close_until_ms == 0.0);
                now_ms = 2000.0;
            }
            const double began = now_ms;
            serve_on_timer(s);
            check_said(ends);
            CHECK(!s->done);
            CHECK_NEAR(s->close_until_ms, began + LINGER_MS, 1e-9);
            now_ms = began + FLUSH_MS - 1;
            serve_on_timer(s);
            CHECK(!s->done);
            now_ms = began + FLUSH_MS;
            serve_on_timer(s);
            CHECK_INT(s->done, i == 0); /* nothing holds it up */
            now_ms = began + LINGER_MS - 1;
            serve_on_timer(s);
            CHECK_INT(s->done, i == 0);
            now_ms = began + LINGER_MS;
            serve_on_timer(s);
            CHECK_INT(s->done, late || !h->sends); /* who still reads may go on for the time of answers */
            now_ms = late ? now_ms : 19999.0;
            serve_on_timer(s);
            CHECK_INT(s->done, late || !h->sends);
            now_ms = late ? now_ms : 20000.0;
            serve_on_timer(s);
            CHECK(s->done);
            bytes_clear(&said);
            end(s);
        }
    }
}

/* ---- signals ---- */

static const char *const NEW_KEYS[] = {"a-new-key-of-enough-letters"};
static err_code keys_err;

static err_code read_keys(void *ctx, const char *const **keys, size_t *n, err_detail *d)
{
    CHECK(ctx == &keys_err);
    *keys = NEW_KEYS;
    *n = 1;
    return keys_err == ERR_OK ? ERR_OK : err_set(d, keys_err, "they cannot be read");
}

static bool lets_in(const serve *s, const char *key)
{
    const char *why;
    net_head head = {.host = "127.0.0.1"};
    snprintf(head.authorization, sizeof head.authorization, "%s", key);
    return access_check(&s->access, &head, false, &why) == 200;
}

/* SIGHUP reads the keys again; what cannot be read or kept leaves those of before. */
static void test_reload(void)
{
    static const char OLD[] = "Bearer an-old-key-of-enough-letters",
                      NEW[] = "Bearer a-new-key-of-enough-letters";
    for (int fails = 0; fails < 4; fails++) {
        serve *s = begin();
        const char *const keys[] = {OLD + 7};
        keys_err = fails == 1 ? ERR_IO : ERR_OK;
        made_options.read_keys = fails == 3 ? NULL : read_keys;
        made_options.read_keys_ctx = &keys_err;
        made_options.admin_key = "an-admin-key-of-enough-letters";
        CHECK(access_init(&s->access, keys, 1, NULL, 0, NULL, 0));
        raise(SIGHUP);
        serve_on_timer(s); /* not its affair, in a thread of a test */
        CHECK(lets_in(s, OLD));
        s->handles_signals = true;
        log_set_level(LOG_INFO);
        said_begin();
        one_fails("access_init", fails == 2);
        serve_on_timer(s);
        CHECK(one_fails_over());
        said_end();
        log_set_level(LOG_OFF);
        CHECK_INT(lets_in(s, OLD), fails > 0);
        CHECK_INT(lets_in(s, NEW), fails == 0);
        CHECK_HAS(said_err, fails == 1   ? "the keys stay as they were: they cannot be read\n"
                            : fails == 2 ? "the keys stay as they were: there is not enough memory\n"
                                         : "reloaded: the log file and the keys\n");
        const net_head admin = {.authorization = "Bearer an-admin-key-of-enough-letters",
                                .host = "127.0.0.1"};
        CHECK_INT(access_is_admin(&s->access, &admin), fails == 0);
        said_begin();
        log_set_level(LOG_INFO);
        serve_on_timer(s); /* once */
        log_set_level(LOG_OFF);
        said_end();
        CHECK_STR(said_err, "");
        access_deinit(&s->access);
        end(s);
    }
}

/* The first signal ends the server in peace, the second at once. */
static void test_signals(void)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        const pid_t child = fork();
        if (child == 0) {
            serve *s = begin();
            s->close_until_ms = s->drain_until_ms = 1e9;
            raise(SIGNALS[i]);
            serve_on_timer(s);
            const bool is_free = s->phase == SERVE_READY; /* of it, in a thread of a test */
            s->handles_signals = true;
            serve_on_timer(s);
            if (is_free && s->phase == SERVE_DRAINING) {
                raise(SIGNALS[i]);
            }
            _exit(1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), 128 + SIGNALS[i]);
    }
}

int main(void)
{
    log_set_level(LOG_OFF);
    said = bytes_empty(1 << 20);
    test_waits();
    test_silent();
    test_busy();
    test_begins();
    test_drain();
    serve_options_init(&made_options);
    one_fails("pthread_create", 1); /* it comes as far as to hear of signals */
    CHECK_INT(serve_run(&made_options), EXIT_MEMORY);
    CHECK(one_fails_over());
    test_reload();
    test_signals();
    bytes_deinit(&said);
    CHECK_DONE();
}
