/* answers_told: an answer of a dialect that the test makes up, whose neighbours write down what is asked of them.
 *
 *     serve *s = answers_begin();
 *     answer *a = answers_ask(s, &MADE, ANSWER_RUNNING);          // of connection 3
 *     answers_end(s);
 *
 * Each program that includes it has these calls wrapped (cmake/tests.cmake).
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_ANSWERS_TOLD_H
#define PARLEY_TESTS_SERVER_SERVICE_ANSWERS_TOLD_H

#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char things[8]; /* requests, engines and so on are places in here */
static double now_ms;
static model_turn first_turn, named_turn;
static err_code prepared;
static bool reserves, extends, begins_round, drops; /* drops: a finished answer is not kept */
static bool write_fails;                            /* what the dialect writes next is not whole */
static uint64_t ended; /* which answer an end of rounds, or a later try, lets go on */

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(void, hash_random_id, (char *out, size_t cap, const char *prefix), snprintf(out, cap, "%s1", prefix);)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; tell("write to %d", (int)id);)
WRAP(void, net_begin_stream, (net * n, uint64_t id, int status, const char *type, const char *headers),
     (void)n;
     tell("stream to %d: %d %s %s", (int)id, status, type, headers);)
WRAP(void, serve_drop_choices, (serve * s, answer *a), (void)s; tell("drop choices of %d", (int)a->id);)
WRAP(void, serve_stop_choices, (serve * s, const answer *a), (void)s; tell("stop choices of %d", (int)a->id);)
WRAP(model_turn, serve_model_turn, (serve * s, const conn *c, size_t n_body, api_error *e), (void)s;
     tell("turn of %d, %zu bytes", (int)c->id, n_body); api_error_set(e, 503, "no_turn", NULL, "no");
     return first_turn;)
WRAP(model_turn, serve_named_turn,
     (serve * s, uint64_t connection, uint64_t before, char name[REQUEST_MODEL_MAX], size_t n_body,
      api_error *e),
     (void)s;
     tell("turn of [%.20s] %zu, connection %d, before %s, %zu bytes", name, strlen(name), (int)connection,
          before == UINT64_MAX ? "all" : "some", n_body);
     if (strcmp(name, "short") == 0) snprintf(name, REQUEST_MODEL_MAX, "longer");
     api_error_set(e, 404, "no_model", NULL, "no"); return named_turn;)
WRAP(err_code, serve_prepare_answer, (serve * s, answer *a), (void)s; tell("prepare"); told_answer(a);
     a->state = ANSWER_PREPARING; return prepared;)
WRAP(bool, serve_reserve_body, (serve * s, answer *a), (void)s; tell("reserve %zu", a->body.len);
     return reserves;)
WRAP(void, serve_hold_answer, (serve * s, answer *a), (void)s; tell("hold %d", (int)a->id);)
WRAP(void, metrics_request, (metrics * m, const char *endpoint, int status), (void)m;
     tell("metrics: %s %d", endpoint, status);)
WRAP(void, metrics_answer, (metrics * m, const metrics_sample *x), (void)m;
     tell("metrics: finish %d, n %d, %g ms, first %g ms, cached %d", x->finish, x->n_generated, x->e2e_ms,
          x->ttft_ms, x->timings.cache_n);)
WRAP(void, serve_send_error, (serve * s, conn *c, const api_error *e), (void)s;
     tell("error to %d: %d %s '%s', answer %d", (int)c->id, e->status, e->code, e->message, (int)c->answer);)
WRAP(void, serve_send_json, (serve * s, conn *c, int status, const bytes *body, const char *headers), (void)s;
     tell("send %d: %d %s%s, answer %d", (int)c->id, status, bytes_str(body), headers ? headers : "",
          (int)c->answer);)
WRAP(void, serve_socket_error,
     (serve * s, conn *c, const api_error *e, const char *event_id, const char *stream_id,
      const char *response_id),
     (void)s;
     tell("error to socket %d: %d %s event %s stream %s response %s", (int)c->id, e->status, e->code,
          event_id, stream_id, response_id ? response_id : "-");)
WRAP(void, serve_break_chain, (serve * s, const answer *a), (void)s; tell("break chain of %d", (int)a->id);)
WRAP(void, serve_extend_chain, (serve * s, const answer *a), (void)s;
     tell("extend chain by %s", bytes_str(&a->opt.items));)
WRAP(void, gen_request_free, (gen_request * r), if (r) tell("free a request");)
WRAP(void, upstream_request_free, (upstream_request * q), if (q) tell("free a request of another");)
WRAP(void, serve_keep_answer, (serve * s, answer *a), (void)s; tell("keep %d", (int)a->id);
     if (drops) serve_drop_answer(s, a);)
WRAP(void, serve_try_lanes, (serve * s, uint64_t id), (void)s; tell("lanes of %d", (int)id);)
WRAP(void, serve_try_held, (serve * s), (void)s; tell("held ones");)
WRAP(bool, response_store_put,
     (response_store * l, uint64_t scope, const char *id, const char *items, size_t len, size_t n_input,
      double now),
     (void)l;
     tell("store %s of %d: %.*s, input %zu, at %g", id, (int)scope, (int)len, items, n_input, now);
     return true;)
WRAP(void, serve_take_runs, (answer * a), tell("take runs of %d", (int)a->id);)
WRAP(void, serve_check_stream, (serve * s, answer *a), (void)s; tell("check stream of %d", (int)a->id);)
WRAP(bool, serve_extend_conversation, (serve * s, answer *a), (void)s;
     tell("extend conversation of %d", (int)a->id); if (ended == a->id) a->talk_stage = TALK_ADDED;
     if (extends) a->state = ANSWER_RUNNING; return extends;)
WRAP(void, serve_share_prompt, (serve * s, answer *first, const answer *a, const gen_event *event), (void)s;
     tell("share prompt of %d with %d, %d tokens", (int)a->id, (int)first->id, event->n_tokens);)
WRAP(void, serve_schedule, (serve * s, int ms), (void)s; tell("schedule %d", ms);)
WRAP(bool, serve_begin_round, (serve * s, answer *a), (void)s; tell("round of %d", (int)a->id);
     return begins_round;)
WRAP(void, engine_cancel, (engine * e, uint64_t id), CHECK(e == (engine *)things);
     tell("engine stops %d", (int)id);)
WRAP(void, upstreams_cancel, (upstreams * u, uint64_t id), CHECK(u == (upstreams *)(things + 1));
     tell("others stop %d", (int)id);)
WRAP(void, mcp_cancel, (mcp * m, uint64_t id), CHECK(m == (mcp *)(things + 2));
     tell("tools stop %d", (int)id);)
WRAP(void, serve_stop_rounds, (serve * s, answer *a), (void)s; tell("stop rounds of %d", (int)a->id);)
WRAP(void, prep_ticket_cancel, (prep_ticket * t), if (t) tell("cancel ticket");)
WRAP(void, serve_begin_answer, (serve * s, answer *a), (void)s; tell("begin %d", (int)a->id);
     a->is_begun = true;)
WRAP(void, serve_on_accepted, (serve * s, answer *a, loop_message *m), (void)s;
     tell("accepted %d %d", (int)a->id, m->processed);)
WRAP(void, serve_on_prepared, (serve * s, answer *a, loop_message *m), (void)s;
     tell("prepared %d %d", (int)a->id, m->processed);)
WRAP(void, serve_on_other_model, (serve * s, answer *a, loop_message *m), (void)s;
     tell("other model %d %d", (int)a->id, m->processed);)
WRAP(void, serve_on_tools, (serve * s, answer *a, loop_message *m), (void)s;
     tell("tools %d %d", (int)a->id, m->processed);)
WRAP(void, serve_on_result, (serve * s, answer *a, const mcp_result *r), (void)s;
     tell("result %d %d", (int)a->id, (int)r->place);)
WRAP(void, serve_on_replied, (serve * s, answer *a, const loop_message *m), (void)s;
     tell("replied %d %d", (int)a->id, m->processed);)
WRAP(void, serve_on_mcp_reply, (serve * s, uint64_t ticket, const mcp_result *r), (void)s;
     tell("reply to %d %d", (int)ticket, (int)r->place);)
WRAP(void, serve_end_rounds, (serve * s, answer *a, err_code code, const api_error *e), (void)s;
     tell("end rounds of %d: %d %d %s", (int)a->id, code, e ? e->status : 0, e ? e->code : "-");
     a->tools.stage = TOOLS_IDLE; a->state = ANSWER_FINISHED;)
WRAP(void, serve_expire_answers, (serve * s, double now), (void)s; tell("expire at %g", now);)
WRAP(void, responses_reply_in_progress, (responses_reply * r), (void)r; tell("in progress");)
WRAP(void, responses_reply_finish, (responses_reply * r, const response_result *x), (void)r;
     tell("reply ends: %d %s", x->status, x->error ? x->error->code : "-");)
WRAP(void, responses_reply_deinit, (responses_reply * r), (void)r;)

/* What an event does to an answer is up to the case. */
static bool event_is_last, event_stops, event_loses;
static const char *event_text;
static gen_finish event_finish;

WRAP(
    bool, answer_take_event, (answer * a, const engine *e, const gen_event *event), (void)e;
    tell("take event %d of %d", event->type, (int)a->id); a->stop_found = a->stop_found || event_stops;
    a->has_lost = a->has_lost || event_loses;
    if (event_text) reply_pieces_add(&a->pieces, REPLY_CONTENT, event_text, strlen(event_text));
    a->timings.cache_n = event->timings.cache_n; if (event_is_last) {
        a->state = ANSWER_FINISHED;
        a->finish = event_finish;
    } return event_is_last;)

/* ---- a dialect ---- */

static void add(answer *a, const char *what)
{
    answer *to = a->first ? a->first : a;
    bytes_printf(&to->sse, "%s%d;", what, (int)a->id);
    if (write_fails) {
        to->sse.failed = true;
        write_fails = false;
    }
}

static void on_first(const serve *s, answer *a)
{
    (void)s;
    add(a, "first");
}

static void on_delta(const serve *s, answer *a)
{
    (void)s;
    add(a, "delta");
}

static void on_progress(const serve *s, answer *a)
{
    (void)s;
    add(a, "progress");
}

static void on_last(serve *s, answer *a, const api_error *e)
{
    (void)s;
    add(a, e ? e->code : "last");
}

static void on_end(const serve *s, answer *a)
{
    (void)s;
    add(a, "end");
}

static void on_whole(const serve *s, const answer *a, bytes *out)
{
    (void)s;
    bytes_printf(out, "whole%d", (int)a->id);
}

static void on_error(bytes *out, const api_error *e)
{
    bytes_printf(out, "error:%d:%s:%s;", e->status, e->code, e->message);
}

static void on_kept(const serve *s, answer *a, bytes *items)
{
    (void)s;
    bytes_printf(items, ",kept%d", (int)a->id);
}

#define FORM                                                                                                 \
    .id_prefix = "m-", .first = on_first, .delta = on_delta, .progress = on_progress, .last = on_last,       \
    .whole = on_whole, .error = on_error, .append_kept = on_kept

static const dialect MADE = {.name = "made", FORM, .end = on_end}, SPARE = {.name = "spare", FORM},
                     LINES = {.name = "lines", FORM, .has_lines = true},
                     WHOLE = {.name = "all", FORM, .keeps_whole = true},
                     LOGGED = {.name = "logged", FORM, .has_log = true},
                     QUERY = {.name = "query",
                              .id_prefix = "q-",
                              .is_query = true,
                              .whole = on_whole,
                              .last = on_last},
                     MUTE = {.name = "mute", .id_prefix = "u-", .whole = on_whole, .last = on_last};

/* ---- cases ---- */

static const route ROUTE = {.name = "route", .id = ROUTE_CHAT_COMPLETIONS};

static inline serve *answers_begin(void)
{
    serve *s = made_serve();
    now_ms = 5000.0;
    first_turn = named_turn = MODEL_NOW;
    prepared = ERR_OK;
    reserves = true;
    extends = begins_round = drops = write_fails = false;
    event_is_last = event_stops = event_loses = false;
    event_text = NULL;
    event_finish = GEN_FINISH_STOP;
    ended = 0;
    s->engine = (engine *)things;
    s->upstreams = (upstreams *)(things + 1);
    s->mcp = (mcp *)(things + 2);
    return s;
}

static inline conn *answers_conn(serve *s, uint64_t id, const answer *a)
{
    conn *c = made_conn(s, id);
    c->route = &ROUTE;
    c->answer = a ? a->id : 0;
    snprintf(c->request_id, sizeof c->request_id, "req%d", (int)id);
    return c;
}

static inline answer *answers_ask(serve *s, const dialect *d, answer_state state)
{
    answer *a = made_answer(s, d);
    a->conn = 3;
    a->state = state;
    a->created_ms = 1000.0;
    snprintf(a->request_id, sizeof a->request_id, "r%d", (int)a->id);
    return a;
}

/* a is one of the choices of first. */
static inline void answers_choice(answer *first, answer *a)
{
    first->others = malloc(sizeof a);
    CHECK(first->others != NULL);
    first->others[0] = a;
    first->n_others = 1;
    first->opt.n_choices = 2;
    a->first = first;
    a->index = 1;
}

static inline void answers_end(serve *s)
{
    const size_t len = told.len; /* what freeing says is of no case */
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a) {
            a->n_others = 0;
            a->request = NULL;
            a->remote = NULL;
        }
    }
    made_end(s);
    told.len = len;
    told.data[len] = '\0';
}

static inline void answers_tell(const serve *s)
{
    for (uint64_t id = 1; id <= s->next_answer; id++) {
        const answer *a = id_table_get(&s->answers, id);
        if (a) {
            told_answer(a);
        } else {
            tell("=%d is gone", (int)id);
        }
    }
}

static inline void answers_put(bytes *b, const char *text)
{
    *b = bytes_empty(1 << 20);
    bytes_append_str(b, text);
}

#endif
