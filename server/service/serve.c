#include "server/service/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/service/serve_state.h"

enum {
    LINGER_MS = 3000, /* for close frames and the last replies */
    FLUSH_MS = 100,
    DRAIN_SPARE_S = 30 /* to close what is open, behind the time of the answers */
};

/* SIGINT or SIGTERM arrived; the loop's timer looks. Lock-free, so a handler may touch it. */
static atomic_int signal_seen, reload_seen;

void serve_options_init(serve_options *opt)
{
    memset(opt, 0, sizeof *opt);
    opt->models_max = 1;
    static const char *const LOCAL[] = {"127.0.0.1"};
    opt->hosts = LOCAL;
    opt->n_hosts = 1;
    opt->port = 8080;
    opt->max_body = LIMIT_BODY_BYTES;
    opt->max_ws_message = LIMIT_WS_MESSAGE_BYTES;
    opt->event_log_bytes = EVENT_LOG_BYTES;
    opt->upload_dir = "/var/tmp";
    opt->max_upload = LIMIT_UPLOAD_BYTES;
    opt->upload_quota = LIMIT_UPLOAD_QUOTA;
    opt->upload_expire_s = LIMIT_UPLOAD_EXPIRE_S;
    opt->history_quota = LIMIT_HISTORY_QUOTA;
    opt->max_connections = LIMIT_CONNECTIONS;
    opt->max_connections_per_address = LIMIT_CONNECTIONS_PER_ADDRESS;
    opt->n_prep_threads = 2;
    opt->n_queue = LIMIT_QUEUE;
    opt->header_timeout_s = LIMIT_HEADER_TIMEOUT_S;
    opt->body_timeout_s = LIMIT_BODY_TIMEOUT_S;
    opt->max_header = LIMIT_HEADER_BYTES;
    opt->queue_timeout_s = LIMIT_QUEUE_TIMEOUT_S;
    opt->request_timeout_s = LIMIT_REQUEST_TIMEOUT_S;
    opt->step_timeout_s = LIMIT_STEP_TIMEOUT_S;
    opt->keepalive_s = LIMIT_KEEPALIVE_S;
    opt->ws_ping_s = LIMIT_WS_PING_S;
    opt->ws_pong_s = LIMIT_WS_PONG_S;
    opt->min_body_rate = LIMIT_MIN_BODY_RATE;
    opt->send_timeout_s = LIMIT_SEND_TIMEOUT_S;
    opt->send_rate = LIMIT_SEND_RATE;
    opt->max_unread = LIMIT_UNREAD_BYTES;
    opt->drain_timeout_s = LIMIT_DRAIN_TIMEOUT_S;
    opt->switches_model = true;
    opt->tool_rounds = LIMIT_MCP_ROUNDS;
}

int64_t serve_started_at(void)
{
    static atomic_llong started; /* set once, by whoever asks first */
    long long none = 0;
    atomic_compare_exchange_strong(&started, &none, (long long)clock_unix_s());
    return (int64_t)atomic_load(&started);
}

int serve_count_sockets(const serve *s)
{
    int n = 0;
    for (size_t i = 0; i < s->conns.cap; i++) {
        const conn *c = id_table_at(&s->conns, i);
        n += c && c->is_socket;
    }
    return n;
}

int serve_count_open_answers(const serve *s)
{
    int n = 0;
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *a = id_table_at(&s->answers, i);
        n += a && a->state != ANSWER_FINISHED;
    }
    return n;
}

void serve_schedule(serve *s, int ms)
{
    net_set_timer(s->net, ms);
}

/* ---- messages from other threads ---- */

void serve_drop_message(void *message)
{
    loop_message *m = message;
    if (m->type == LOOP_LOADED) {
        engine_close(m->engine);
    }
    loop_message_free(m);
}

/* Any thread. The mailbox is far larger than what can be on its way; if it is full all the same the
 * sender waits, so that nothing is lost. Once the loop is gone messages are dropped. */
void serve_post(void *ctx, loop_message *m)
{
    serve *s = ctx;
    while (!mailbox_push(s->inbox, m)) {
        if (atomic_load(&s->closing)) {
            serve_drop_message(m);
            return;
        }
        net_wake(s->net);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    net_wake(s->net);
}

loop_message *serve_new_message(const serve *s, loop_message_type type, uint64_t id, bool must_arrive)
{
    loop_message *m = loop_message_create(type, id);
    while (must_arrive && !m && !atomic_load(&s->closing)) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        m = loop_message_create(type, id);
    }
    return m;
}

void serve_on_engine_event(void *ctx, gen_event *event)
{
    if (event->request_id & WARM_ID) {
        warm_on_event(((serve *)ctx)->warm, event);
        return;
    }
    loop_message *m = serve_new_message(ctx, LOOP_EVENT, event->request_id, event->type != GEN_PROGRESS);
    if (!m) {
        gen_event_free(event);
        return;
    }
    m->event = event;
    serve_post(ctx, m);
}

void serve_on_wake(void *ctx)
{
    serve *s = ctx;
    void *message;
    /* asked before: what the workers posted is then among these */
    const bool was_idle = prep_is_idle(s->prep);
    while (mailbox_try_pop(s->inbox, &message)) {
        loop_message *m = message;
        if (m->type == LOOP_LOADING) {
            serve_on_loading(s, m);
        } else if (m->type == LOOP_LOADED) {
            serve_on_loaded(s, m);
        } else if (m->type == LOOP_FACTS || m->type == LOOP_PREVIEW) {
            serve_on_preview(s, m);
        } else if (m->type == LOOP_UPSTREAMS) {
            serve_on_upstreams(s);
        } else if (m->type == LOOP_HISTORY) {
            serve_on_history_reply(s, m->history);
        } else {
            serve_handle_message(s, m);
        }
        loop_message_free(m);
    }
    serve_on_written(s);
    if (was_idle) {
        serve_advance_switch(s);
    }
}

/* ---- time and the end ---- */

static void begin_drain(serve *s, double now)
{
    log_info("srv", "shutting down: %d answers open", serve_count_open_answers(s));
    s->phase = SERVE_DRAINING;
    s->drain_until_ms = now + s->opt->drain_timeout_s * 1000.0;
    notify_send(&s->notify, "STOPPING=1\nSTATUS=Ending: %d answers open\nEXTEND_TIMEOUT_USEC=%lld",
                serve_count_open_answers(s), (s->opt->drain_timeout_s + DRAIN_SPARE_S) * 1000000LL);
    net_stop_listening(s->net);
    serve_refuse_held(s);
    serve_status_changed(s);
}

static void close_sockets(serve *s)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        const conn *c = id_table_at(&s->conns, i);
        if (c && c->is_socket) {
            net_close_socket(s->net, c->id, 1001, "the server is shutting down");
        }
    }
}

static bool has_work(const serve *s)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        const conn *c = id_table_at(&s->conns, i);
        if (c && (c->is_socket || c->is_streaming || c->history_ticket || c->mcp_ticket)) {
            return true;
        }
    }
    return write_queue_is_busy(s->writes) || net_is_sending(s->net);
}

static void drain(serve *s, double now)
{
    if (s->close_until_ms <= 0.0 && (serve_count_open_answers(s) == 0 || now >= s->drain_until_ms)) {
        serve_end_answers(s, ANSWER_SERVER_ENDS);
        close_sockets(s);
        s->close_until_ms = now + LINGER_MS;
    }
    /* Idle kept-alive connections hold up nothing. Who still reads what was said may go on until
     * the time is over. */
    const bool is_quiet = !has_work(s) && now >= s->close_until_ms - LINGER_MS + FLUSH_MS;
    const bool is_over = now >= s->close_until_ms && (now >= s->drain_until_ms || !net_is_sending(s->net));
    s->done = s->close_until_ms > 0.0 && (is_over || is_quiet);
}

/* SSE comments keep proxies and clients from giving up during a long prefill. */
static void wake_silent_streams(serve *s, double now)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        const conn *c = id_table_at(&s->conns, i);
        if (c && c->is_streaming && now - c->last_write_ms >= s->opt->keepalive_s * 1000.0) {
            net_want_write(s->net, c->id);
        }
    }
}

static void look_at_engine(serve *s, double now)
{
    engine_status status;
    if (!s->engine) {
        return;
    }
    engine_get_status(s->engine, &status);
    serve_watchdog_engine(s, &status, now);
    bool is_busy = status.n_waiting > 0 || status.n_running >= s->info->n_parallel;
    if (s->phase == SERVE_READY && is_busy != s->was_busy) {
        s->was_busy = is_busy;
        serve_status_changed(s);
    }
}

/* SIGHUP */
static void reload(serve *s)
{
    const serve_options *opt = s->opt;
    const char *const *keys;
    size_t n_keys;
    access_rules rules;
    err_detail d = {0};
    log_reopen();
    err_code err = opt->read_keys ? opt->read_keys(opt->read_keys_ctx, &keys, &n_keys, &d) : ERR_OK;
    if (err == ERR_OK && opt->read_keys) {
        if (access_init(&rules, keys, n_keys, opt->allowed_hosts, opt->n_allowed_hosts, opt->allowed_origins,
                        opt->n_allowed_origins)) {
            access_set_admin(&rules, opt->admin_key);
            access_deinit(&s->access);
            s->access = rules;
        } else {
            err = err_set(&d, ERR_NOMEM, "there is not enough memory");
        }
    }
    if (err == ERR_OK) {
        log_info("srv", "reloaded: the log file and the keys");
    } else {
        log_error("srv", "the keys stay as they were: %s", d.text);
    }
}

void serve_on_timer(void *ctx)
{
    serve *s = ctx;
    double now = clock_ms();
    bool stops = atomic_load(&s->stop_wanted) || (s->handles_signals && atomic_load(&signal_seen));
    if (stops && s->phase != SERVE_DRAINING) {
        begin_drain(s, now);
    }
    if (s->handles_signals && atomic_exchange(&reload_seen, 0)) {
        reload(s);
    }
    if (!s->is_stalled) { /* else the service manager may decide to start anew */
        notify_tick(&s->notify, now, s->phase == SERVE_LOADING);
    }
    if (s->switching == SWITCH_FINISHING) {
        serve_on_wake(s);
    }
    int wait_ms = serve_tick_answers(s, now);
    const int switch_ms = s->phase == SERVE_DRAINING ? SERVE_TICK_MS : serve_tick_switch(s, now);
    wait_ms = switch_ms < wait_ms ? switch_ms : wait_ms;
    serve_tick_uploads(s);
    serve_tick_hub(s);
    wake_silent_streams(s, now);
    look_at_engine(s, now);
    serve_watchdog_prep(s, now);
    if (s->phase == SERVE_DRAINING) {
        drain(s, now);
        wait_ms = wait_ms < 20 ? wait_ms : 20;
    }
    serve_schedule(s, wait_ms);
}

/* ---- life ---- */

static int exit_code_of(err_code err)
{
    switch (err) {
    case ERR_BUSY:
        return EXIT_PORT;
    case ERR_INVALID:
        return EXIT_USAGE;
    case ERR_NOMEM:
        return EXIT_MEMORY;
    default:
        return EXIT_FAILED;
    }
}

static int run(serve *s, void (*started)(void *ctx, serve *s, int port), void *ctx)
{
    err_detail d = {0};
    memory_share_heaps();
    id_table_init(&s->conns);
    id_table_init(&s->answers);
    snprintf(s->load_stage, sizeof s->load_stage, "starting");
    snprintf(s->model_name, sizeof s->model_name, "%s", s->opt->alias ? s->opt->alias : "");
    serve_started_at();
    s->started_ms = clock_ms();
    if (!s->opt->quiet) {
        load_bar_begin(&s->bar);
    }
    err_code err = serve_open_parts(s, &d);
    if (err != ERR_OK) {
        log_error("srv", "%s", d.text);
        s->exit_code = exit_code_of(err);
    } else {
        started(ctx, s, net_port(s->net));
        serve_schedule(s, SERVE_TICK_MS);
        while (!s->done) {
            net_poll(s->net);
        }
    }
    serve_close_parts(s);
    return s->exit_code;
}

/* ---- the program: signals ---- */

/* Any thread may be interrupted, also one that a library made before main; so a handler, not
 * sigwait. */
static void on_signal(int sig)
{
    if (sig == SIGHUP) {
        atomic_store(&reload_seen, 1);
        return;
    }
    if (atomic_exchange(&signal_seen, 1)) {
        _exit(128 + sig);
    }
}

static void on_started(void *ctx, serve *s, int port)
{
    (void)s;
    const serve_options *opt = ctx;
    if (opt->on_listening) {
        opt->on_listening(opt->on_listening_ctx, port);
    }
}

int serve_run(const serve_options *opt)
{
    serve *s = calloc(1, sizeof *s);
    if (!s) {
        log_error("srv", "there is not enough memory to start");
        return EXIT_MEMORY;
    }
    s->opt = opt;
    s->handles_signals = true;
    signal(SIGPIPE, SIG_IGN);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    notify_open(&s->notify);
    serve_options copy = *opt; /* the context of on_started is not const */
    int code = run(s, on_started, &copy);
    notify_close(&s->notify);
    free(s);
    return code;
}

/* ---- in a thread, for tests ---- */

struct serve_thread {
    serve *s;
    serve_options opt;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int port; /* {lock}; 0: not yet, negative: failed with this exit code */
};

static void announce(serve_thread *t, int port)
{
    pthread_mutex_lock(&t->lock);
    t->port = port;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void on_thread_started(void *ctx, serve *s, int port)
{
    (void)s;
    announce(ctx, port);
}

static void *serve_in_thread(void *ctx)
{
    serve_thread *t = ctx;
    int code = run(t->s, on_thread_started, t);
    pthread_mutex_lock(&t->lock);
    bool failed = t->port == 0;
    pthread_mutex_unlock(&t->lock);
    if (failed) {
        announce(t, -code);
    }
    return NULL;
}

serve_thread *serve_thread_start(const serve_options *opt, int *port)
{
    serve_thread *t = calloc(1, sizeof *t);
    serve *s = calloc(1, sizeof *s);
    *port = -EXIT_MEMORY;
    if (!t || !s) {
        free(t);
        free(s);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    t->opt = *opt;
    t->s = s;
    s->opt = &t->opt;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    if (pthread_create(&t->thread, NULL, serve_in_thread, t) != 0) {
        free(s);
        free(t);
        return NULL;
    }
    pthread_mutex_lock(&t->lock);
    while (t->port == 0) {
        pthread_cond_wait(&t->changed, &t->lock);
    }
    *port = t->port;
    pthread_mutex_unlock(&t->lock);
    if (*port > 0) {
        return t;
    }
    serve_thread_stop(t);
    return NULL;
}

int serve_thread_stop(serve_thread *t)
{
    atomic_store(&t->s->stop_wanted, true);
    pthread_join(t->thread, NULL);
    int code = t->s->exit_code;
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t->s);
    free(t);
    return code;
}
