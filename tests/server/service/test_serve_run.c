/* serve_run: the server's life from its begin to its end, as the program and as a thread of a test: what is opened, told and closed in
 * which order, and what is returned. Parts, the net, signals and threads are the test; a thread runs where its start is waited for. */
#define _GNU_SOURCE /* sigabbrev_np */
#include <errno.h>
#include <signal.h>

#include "base/limits.h"
#include "base/log.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

/* ---- what is asked of others ---- */

static bytes all;
static serve *running;
static serve_options options;
static err_code fails; /* to open the parts */
static int polls_left, exit_code, depth;
static double now_ms;
static int64_t now_s;
static void *(*thread_runs)(void *);
static void *thread_ctx;
static bool has_thread = true;

static void note(const char *what)
{
    bytes_printf(&all, "  %s\n", what);
}

typedef void handler(int);

WRAP(double, clock_ms, (void), return now_ms++;)
WRAP(int64_t, clock_unix_s, (void), return now_s++;)
WRAP(void, memory_share_heaps, (void), note("heaps are shared");)
WRAP(void, load_bar_begin, (load_bar * bar), CHECK(bar == NULL || !running); (void)bar; note("a bar");)
WRAP(void, notify_open, (notify * n), (void)n; note("the manager is heard");)
WRAP(void, notify_close, (notify * n), (void)n; note("the manager is left");)
WRAP(int, net_port, (const net *n), CHECK((const void *)n == &all); return 8123;)
WRAP(void, net_set_timer, (net * n, int ms), CHECK((const void *)n == &all);
     bytes_printf(&all, "  a look in %d ms\n", ms);)
WRAP(void, net_poll, (net * n), CHECK((const void *)n == &all); note("a turn");
     running->done = --polls_left == 0;)
WRAP(handler *, signal, (int sig, handler *h),
     bytes_printf(&all, "  signal %s: %s\n", sigabbrev_np(sig), h == SIG_IGN ? "nothing" : "?");
     return SIG_DFL;)
WRAP(int, sigaction, (int sig, const struct sigaction *a, struct sigaction *old),
     bytes_printf(&all, "  signal %s: a look%s%s\n", sigabbrev_np(sig), a->sa_flags ? ", flags" : "",
                  old ? ", the old one" : "");
     CHECK(sigismember(&a->sa_mask, SIGINT) == 0 && sigismember(&a->sa_mask, SIGTERM) == 0);
     CHECK(a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN); return 0;)
WRAP(err_code, serve_open_parts, (serve * s, err_detail *d), running = s;
     bytes_printf(&all, "  parts open: \"%s\", %s, at %g ms%s%s\n", s->model_name, s->load_stage,
                  s->started_ms, s->handles_signals ? ", with signals" : "", s->opt->quiet ? ", quiet" : "");
     CHECK_INT(s->opt->port, options.port); CHECK(id_table_put(&s->conns, 1, s));
     CHECK(id_table_put(&s->answers, 2, s)); CHECK(serve_conn(s, 1) == (void *)s && !serve_conn(s, 2));
     s->net = (net *)&all; s->exit_code = exit_code;
     return fails == ERR_OK ? ERR_OK : err_set(d, fails, "no parts: %s", err_name(fails));)
WRAP(void, serve_close_parts, (serve * s), CHECK(s == running);
     bytes_printf(&all, "  parts close%s\n", atomic_load(&s->stop_wanted) ? ", as was wanted" : "");
     id_table_deinit(&s->conns); id_table_deinit(&s->answers);)

WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx), (void)t;
     CHECK(!a); thread_runs = fn; thread_ctx = ctx; note(has_thread ? "a thread" : "no thread");
     return has_thread ? 0 : EAGAIN;)

static void run_thread(void)
{
    if (thread_runs) {
        note("it runs");
        CHECK(thread_runs(thread_ctx) == NULL);
        thread_runs = NULL;
        note("it has ended");
    }
}

WRAP(int, pthread_join, (pthread_t t, void **result), (void)t; CHECK(!result); run_thread();
     bytes_printf(&all, "  joined%s\n", atomic_load(&running->stop_wanted) ? ", told to stop" : "");
     return 0;)
WRAP(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (void)m; (void)a;
     note("a lock"); return 0;)
WRAP(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (void)c; (void)a;
     note("a condition"); return 0;)
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * m), (void)m; CHECK_INT(depth++, 0); return 0;)
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * m), (void)m; CHECK_INT(depth--, 1); return 0;)
WRAP(int, pthread_cond_signal, (pthread_cond_t * c), (void)c; CHECK_INT(depth, 1); note("told"); return 0;)
WRAP(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (void)c; (void)m;
     CHECK_INT(depth--, 1); note("waits"); run_thread(); CHECK_INT(depth++, 0); return 0;)

static void on_listening(void *ctx, int port)
{
    CHECK(ctx == &options);
    bytes_printf(&all, "  listens at %d\n", port);
}

static void begin(const char *what, err_code err)
{
    bytes_printf(&all, "%s\n", what);
    running = NULL;
    fails = err;
    polls_left = 2;
    now_ms = 1000.0;
    exit_code = 0;
    serve_options_init(&options);
    options.port = 99;
    options.on_listening = on_listening;
    options.on_listening_ctx = &options;
}

/* ---- tests ---- */

/* All that is not 0 without an option. */
static void test_defaults(void)
{
    serve_options o;
    memset(&o, 0xff, sizeof o);
    serve_options_init(&o);
    CHECK_INT(o.n_hosts, 1);
    bytes_printf(&all, "defaults: %s:%d, uploads in %s\n", o.hosts[0], o.port, o.upload_dir);
    bytes_printf(&all, "  models %d, switches %d, threads %d, rounds %d, queue %zu\n", (int)o.models_max,
                 o.switches_model, (int)o.n_prep_threads, (int)o.tool_rounds, (size_t)o.n_queue);
    CHECK(o.max_body == LIMIT_BODY_BYTES && o.max_ws_message == LIMIT_WS_MESSAGE_BYTES &&
          o.event_log_bytes == EVENT_LOG_BYTES && o.max_upload == LIMIT_UPLOAD_BYTES &&
          o.upload_quota == LIMIT_UPLOAD_QUOTA && o.upload_expire_s == LIMIT_UPLOAD_EXPIRE_S &&
          o.history_quota == LIMIT_HISTORY_QUOTA && o.max_connections == LIMIT_CONNECTIONS &&
          o.max_connections_per_address == LIMIT_CONNECTIONS_PER_ADDRESS && o.n_queue == LIMIT_QUEUE &&
          o.header_timeout_s == LIMIT_HEADER_TIMEOUT_S && o.body_timeout_s == LIMIT_BODY_TIMEOUT_S &&
          o.max_header == LIMIT_HEADER_BYTES && o.queue_timeout_s == LIMIT_QUEUE_TIMEOUT_S &&
          o.request_timeout_s == LIMIT_REQUEST_TIMEOUT_S && o.step_timeout_s == LIMIT_STEP_TIMEOUT_S &&
          o.keepalive_s == LIMIT_KEEPALIVE_S && o.ws_ping_s == LIMIT_WS_PING_S &&
          o.ws_pong_s == LIMIT_WS_PONG_S && o.min_body_rate == LIMIT_MIN_BODY_RATE &&
          o.send_timeout_s == LIMIT_SEND_TIMEOUT_S && o.send_rate == LIMIT_SEND_RATE &&
          o.max_unread == LIMIT_UNREAD_BYTES && o.drain_timeout_s == LIMIT_DRAIN_TIMEOUT_S);
    CHECK(!o.engine && !o.alias && !o.quiet && !o.mcp && !o.hub && !o.has_no_model && !o.no_ui);
}

static void test_program(void)
{
    begin("the program", ERR_OK);
    options.alias = "m";
    bytes_printf(&all, "  returns %d\n", serve_run(&options));
    begin("quiet, without a name, nobody hears of the port, and it fails later", ERR_OK);
    options.quiet = true;
    options.on_listening = NULL;
    exit_code = 3;
    bytes_printf(&all, "  returns %d\n", serve_run(&options));
    static const err_code CODES[] = {ERR_BUSY, ERR_INVALID, ERR_NOMEM, ERR_IO, ERR_NOT_FOUND};
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        begin(err_name(CODES[i]), CODES[i]);
        said_begin();
        const int code = serve_run(&options);
        said_end();
        const char *text = strstr(said_err, "ERROR srv ");
        bytes_printf(&all, "  returns %d: %s", code, text ? text : said_err);
    }
    const int64_t begun = serve_started_at(); /* told once, by the first of them */
    CHECK_INT(begun, 5000);
    CHECK_INT(serve_started_at(), begun);
}

static void test_thread(void)
{
    int port = 0;
    begin("a thread", ERR_OK);
    exit_code = 7;
    serve_thread *t = serve_thread_start(&options, &port);
    CHECK(t != NULL);
    options.port = 1; /* it has its own copy */
    bytes_printf(&all, "  port %d, returns %d\n", port, t ? serve_thread_stop(t) : -1);
    begin("a thread whose parts fail", ERR_BUSY);
    said_begin();
    CHECK(!serve_thread_start(&options, &port));
    said_end();
    bytes_printf(&all, "  port %d\n", port);
    begin("none", ERR_OK);
    has_thread = false;
    CHECK(!serve_thread_start(&options, &port));
    has_thread = true;
    bytes_printf(&all, "  port %d\n", port);
}

int main(void)
{
    all = bytes_empty(1 << 20);
    log_set_level(LOG_ERROR);
    now_s = 5000;
    test_defaults();
    test_program();
    test_thread();
    recorded_check("server/service/recorded/run.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
