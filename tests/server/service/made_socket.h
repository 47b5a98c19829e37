/* made_socket: WebSockets of a made server (made_serve.h), and all that is asked of the net, the engine, the answers and the
 * stores for them.
 *
 *     serve *s = begin("its title");
 *     conn *c = socket_of(s, 3, true);                 // it speaks our protocol
 *     answer *a = answer_of(s, c, 2);                  // its response has two events
 *     message(s, c, "{\"type\":\"ping\"}");            // and what it is told then
 *     made_end(s);
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_MADE_SOCKET_H
#define PARLEY_TESTS_SERVER_SERVICE_MADE_SOCKET_H

#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char some[1];
static double now_ms;
static int n_ids, n_rules;
static answer *found;     /* by serve_find_response */
static answer *started;   /* by serve_start_answer; NULL: it refuses */
static bool ack_due, put; /* what serve_take_ack and response_store_put say */
static err_code controlled;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(int64_t, clock_unix_s, (void), return 1234;)
WRAP(void, hash_random_id, (char *out, size_t cap, const char *prefix),
     snprintf(out, cap, "%s%d", prefix, ++n_ids);)
WRAP(uint64_t, hash_random_u64, (void), return 77;)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; tell("write to %d", (int)id);)
WRAP(void, net_abort, (net * n, uint64_t id), (void)n; tell("abort %d", (int)id);)
WRAP(void, net_close_socket, (net * n, uint64_t id, int code, const char *why), (void)n;
     tell("close %d %d %s", (int)id, code, why);)
WRAP(void, metrics_request, (metrics * m, const char *endpoint, int status), (void)m;
     tell("count %s %d", endpoint, status);)
WRAP(void, engine_get_status, (engine * e, engine_status *out), CHECK((char *)e == some);
     *out = (engine_status){.n_running = 2, .n_waiting = 3};)
WRAP(const file_store_options *, file_store_get_options, (const file_store *fs), (void)fs;
     static const file_store_options FILES = {.max_bytes = 5000000000}; return &FILES;)
WRAP(void, upstreams_write_rules, (const upstreams *u, bytes *out), CHECK((const char *)u == some);
     bytes_printf(out, ",\"rules\":%0*d", n_rules, 1);)
WRAP(bool, serve_take_ack, (serve * s, conn *c, bytes *out), (void)s; (void)c; const bool was = ack_due;
     ack_due = false; bytes_append_str(out, was ? "an ack" : ""); return was;)
WRAP(void, serve_socket_upload,
     (serve * s, conn *c, const char *type, const json *root, const char *event_id), (void)s;
     tell("upload of %d: %s %s %s", (int)c->id, type, event_id ? event_id : "-",
          json_str(json_get(root, "upload_id"), "-"));)
WRAP(
    answer *, serve_start_answer,
    (serve * s, conn *c, const dialect *d, bytes *body, json_doc **doc, api_error *e), (void)s;
    tell("start %s of %d with %d bytes%s", d->name, (int)c->id, (int)body->len, doc ? ", read" : "");
    if (!started) { api_error_set(e, 503, "not_now", NULL, "it cannot begin"); } return started;)
WRAP(void, serve_cancel_answer, (serve * s, answer *a), (void)s; tell("cancel %d", (int)a->id);)
WRAP(err_code, serve_control_answer, (serve * s, answer *a, const char *action, err_detail *d), (void)s;
     tell("control %d: %s", (int)a->id, action ? action : "-");
     return controlled == ERR_OK || controlled == ERR_IO /* which says nothing */
                ? controlled
                : err_set_param(d, controlled, "action", "odd_action", "no such action");)
WRAP(answer *, serve_find_response, (serve * s, uint64_t scope, const char *id), (void)s;
     tell("find %s of %d", id, (int)scope); return found;)
WRAP(void, serve_no_response, (const serve *s, uint64_t scope, const char *id, api_error *e), (void)s;
     tell("no response \"%s\" of %d", id, (int)scope);
     api_error_set(e, 404, "response_not_found", "response_id", "there is none");)
WRAP(bool, response_store_put,
     (response_store * l, uint64_t scope, const char *id, const char *items, size_t len, size_t n_input,
      double now),
     (void)l;
     tell("keep %s of %d: %.*s, %d of it sent, at %g", id, (int)scope, (int)len, items, (int)n_input, now);
     return put;)
WRAP(bool, response_store_remove, (response_store * l, uint64_t scope, const char *id, double now), (void)l;
     tell("remove %s of %d at %g", id, (int)scope, now); return true;)
WRAP(const char *, responses_reply_catch_up, (bytes * out, const responses_reply *r, int64_t *next),
     bytes_printf(out, "the events from %d to %d of %s", (int)*next, (int)event_log_next(&r->log), r->id);
     *next = event_log_next(&r->log); return "response.snapshot";)
WRAP(void, responses_reply_progress,
     (bytes * out, const responses_reply *r, gen_phase phase, int32_t processed, int32_t total,
      int32_t cached, double elapsed_ms, double eta_ms),
     bytes_printf(out, "progress of %s: phase %d, %d of %d, %d cached, %g ms, ", r->id, phase, processed,
                  total, cached, elapsed_ms);
     bytes_printf(out, isnan(eta_ms) ? "no end known" : "%g ms more", eta_ms);)
WRAP(void, responses_reply_stats,
     (bytes * out, const responses_reply *r, const gen_timings *t, int32_t n_ctx),
     bytes_printf(out, "stats of %s: %d of %d", r->id, t->predicted_n, n_ctx);)

/* ---- the state, and what it says ---- */

static const engine_info info = {.n_parallel = 4, .n_ctx = 4096, .max_images = 9, .has_vision = true};

static inline serve *begin(const char *what)
{
    serve *s = made_serve();
    found = started = NULL;
    ack_due = false;
    put = true;
    controlled = ERR_OK;
    now_ms = 1000.0;
    n_ids = 0;
    n_rules = 1;
    snprintf(s->model_name, sizeof s->model_name, "ash");
    snprintf(s->wanted.name, sizeof s->wanted.name, "oak");
    snprintf(s->load_stage, sizeof s->load_stage, "weights");
    s->load_fraction = 0.5;
    s->phase = SERVE_READY;
    told_case("\n%s", what);
    return s;
}

static inline conn *socket_of(serve *s, uint64_t id, bool is_extended)
{
    conn *c = made_conn(s, id);
    c->is_socket = true;
    c->is_extended = is_extended;
    c->scope = 5;
    c->frames = bytes_empty(1 << 24);
    return c;
}

/* An answer of this socket with so many events; its response has the same name as its number. */
static inline answer *answer_of(serve *s, const conn *c, int n_events)
{
    static const char *const TYPES[] = {"response.created", "response.queued", "response.in_progress",
                                        "response.output_text.delta"};
    answer *a = made_answer(s, &dialect_event);
    a->conn = c->id;
    a->state = ANSWER_RUNNING;
    a->is_socket = a->has_reply = true;
    responses_reply_init(&a->reply, &a->opt, "ash", 1 << 16);
    snprintf(a->reply.id, sizeof a->reply.id, "resp_%d", (int)a->id);
    for (int i = 0; i < n_events; i++) {
        char text[64];
        const int n = snprintf(text, sizeof text, "event %d of %d", i, (int)a->id);
        event_log_append(&a->reply.log, TYPES[i < 3 ? i : 3], text, (size_t)n);
    }
    return a;
}

static inline bool pull(serve *s, conn *c)
{
    bytes out = bytes_empty(1 << 20);
    const net_pull more = serve_socket_pull(s, c, &out);
    CHECK(more == NET_PULL_MORE || (more == NET_PULL_IDLE && out.len == 0));
    if (more == NET_PULL_MORE) {
        static const char VERSION[] = "\"version\":\"" PARLEY_VERSION "\"";
        const char *at = strstr(bytes_str(&out), VERSION);
        if (at) { /* another one says the same */
            const size_t n = (size_t)(at - out.data);
            tell("< %.*s\"version\":..%s", (int)n, out.data, at + sizeof VERSION - 1);
        } else {
            tell("< %s", bytes_str(&out));
        }
    }
    bytes_deinit(&out);
    return more == NET_PULL_MORE;
}

static inline void pull_all(serve *s, conn *c)
{
    int n = 0;
    while (n < 100 && pull(s, c)) {
        n++;
    }
    CHECK(n < 100);
}

static inline void message(serve *s, conn *c, const char *text)
{
    bytes m = bytes_empty(1 << 24);
    tell("> %s", text);
    bytes_append_str(&m, text);
    serve_on_message(s, c->id, &m);
    bytes_deinit(&m);
    pull_all(s, c);
}

#endif
