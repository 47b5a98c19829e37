/* A request on its way from its body to the engine: what the workers say of it, its turn on a socket. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/service/serve_state.h"

/* ---- to the workers ---- */

/* Whether the workers may hand it to the engine, so that nothing can stand in its way there. The loop
 * does that where the order decides, which workers cannot keep, as they overtake each other:
 * - What comes twice under one name (Idempotency-Key, event_id) is generated once. Which of the two is
 *   the first is known when their bodies are, and the other must then not have begun.
 * - Behind others of its socket it may have to wait until one of its lane has ended, which the loop is
 *   told. Its lane stands in the body.
 * Both wait for the loop anyway, to be attached or for their turn, so that nothing would be gained. */
static bool is_free(const serve *s, const answer *a)
{
    for (size_t i = 0; i < s->answers.cap && a->is_socket; i++) {
        const answer *b = id_table_at(&s->answers, i);
        if (b && b != a && b->conn == a->conn && b->state != ANSWER_FINISHED && !b->dialect->is_query) {
            return false;
        }
    }
    return !a->idempotency_key[0];
}

/* asks_model: not if it is decided that the loaded model answers. */
static err_code prepare(serve *s, answer *a, bool asks_model)
{
    const char *listed = serve_name_of(s, s->current.path);
    bytes turns = bytes_empty(SIZE_MAX);
    const conn *c = a->is_socket ? serve_conn(s, a->conn) : NULL;
    if (a->tools.turns.len > 0) {
        bytes_printf(&turns, "[%s]", bytes_str(&a->tools.turns));
    }
    prep_order order = {.dialect = a->dialect,
                        .id = a->id,
                        .scope = a->scope,
                        .chain = c ? c->chain : 0,
                        .key = access_key_of(&s->access, a->scope),
                        .engine = s->engine,
                        .upstreams = s->upstreams,
                        .is_remote_only = serve_is_remote_only(s),
                        .form = s->tool_form,
                        .template_kwargs = s->opt->template_kwargs,
                        .hash_body = a->idempotency_key[0] != '\0',
                        .asks_model = asks_model && s->catalog,
                        .is_strict = s->opt->strict_model,
                        .says_accepted = a->is_socket || a->idempotency_key[0],
                        .mcp = s->mcp,
                        .turns = turns.data, /* NULL: there are none */
                        .n_written = a->n_tokens - a->tools.summary_tokens,
                        .may_compact = !a->tools.has_summary,
                        .submits = is_free(s, a)};
    snprintf(order.request_id, sizeof order.request_id, "%s", a->request_id);
    snprintf(order.cache_name, sizeof order.cache_name, "%s", a->cache_name);
    const char *const names[] = {s->current.name, listed, s->info ? s->info->model_name : NULL,
                                 s->current.path};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) { /* a longer one cannot be asked for */
        const bool fits = names[i] && strlen(names[i]) < REQUEST_MODEL_MAX;
        snprintf(order.names[i], REQUEST_MODEL_MAX, "%s", fits ? names[i] : "");
    }
    const err_code err = turns.failed || a->tools.turns.failed
                             ? ERR_NOMEM
                             : prep_submit(s->prep, &order, &a->body, &a->doc, &a->memory, a->ticket);
    bytes_deinit(&turns);
    if (a->tools.stage == TOOLS_PREPARING) {
        return err; /* it still runs, for everybody else */
    }
    a->state = err == ERR_OK ? ANSWER_PREPARING : a->state;
    return err;
}

err_code serve_prepare_answer(serve *s, answer *a)
{
    return prepare(s, a, !a->knows_model && a->tools.stage == TOOLS_IDLE);
}

static void take_options(answer *a, loop_message *m)
{
    reply_options_deinit(&a->opt);
    a->opt = m->options;
    reply_options_init(&m->options);
}

void serve_on_other_model(serve *s, answer *a, loop_message *m)
{
    api_error e;
    a->body = m->body;
    a->doc = m->doc;
    a->memory = m->memory;
    bytes_init(&m->body, 0);
    m->doc = NULL;
    m->memory = (ledger_hold){0};
    take_options(a, m);
    a->knows_model = true;
    switch (serve_named_turn(s, a->conn, a->id, a->opt.model, a->body.len, &e)) {
    case MODEL_LATER:
        if (a->body.len > SERVE_HELD_DOCUMENT) {
            json_free(a->doc);
            a->doc = NULL;
            ledger_give(&a->memory, a->memory.bytes - a->body.len);
        }
        serve_hold_answer(s, a);
        break;
    case MODEL_NOW: {
        const err_code err = prepare(s, a, false);
        if (err != ERR_OK) {
            serve_fail_answer_from(s, a, err, NULL);
        }
        break;
    }
    default:
        serve_fail_answer(s, a, ERR_NOT_FOUND, &e);
        break;
    }
}

/* ---- to the engine ---- */

/* The engine has it. */
static void begin(serve *s, answer *a)
{
    if (a->ends_thinking && !a->server) {
        serve_end_thinking(s, a);
    }
    answer_begin(a, &a->info, a->dialect->has_tools ? s->tool_form : NULL);
    serve_begin_choices(s, a);
    if (!a->server) {
        serve_begin_answer(s, a);
    }
}

/* What another server refuses is a status, not the event of a stream: it begins once that has accepted it. */
void serve_begin_answer(serve *s, answer *a)
{
    if (a->is_begun) {
        return;
    }
    a->is_begun = true;
    if (!a->is_socket && a->opt.stream && !answer_streams_early(a)) {
        serve_begin_streams(s, a);
    }
    serve_emit_lists(s, a);
    serve_wake_followers(s, a);
}

/* Whether a stalled engine gets no more; then the answer has ended. */
static bool refuse_stalled(serve *s, answer *a)
{
    api_error why;
    if (a->server || !s->is_stalled || serve_is_ready(s, &why)) {
        return false;
    }
    serve_fail_answer(s, a, ERR_BUSY, &why);
    return true;
}

static void submit(serve *s, answer *a)
{
    err_detail d = {0};
    if (refuse_stalled(s, a)) {
        return;
    }
    err_code err = serve_make_choices(s, a) ? serve_submit_choices(s, a, &d) : ERR_NOMEM;
    if (err != ERR_OK) {
        serve_fail_answer_from(s, a, err, &d);
        return;
    }
    begin(s, a);
}

/* ---- lanes ---- */

typedef enum { LANE_FREE, LANE_UNKNOWN, LANE_TAKEN } lane_state;

/* Answers of one lane run one behind the other. One that is still being read may belong to any lane, or may be one
 * that came before: nothing of the same socket overtakes it, but that is no queue that a client hears of. */
static lane_state lane_of(const serve *s, const answer *a)
{
    lane_state lane = LANE_FREE;
    for (size_t i = 0; i < s->answers.cap && a->is_socket; i++) {
        const answer *b = id_table_at(&s->answers, i);
        if (!b || b->conn != a->conn || b->order >= a->order || b->state == ANSWER_FINISHED ||
            b->dialect->is_query) {
            continue;
        }
        if (b->state == ANSWER_PREPARING && !b->has_reply) {
            lane = lane == LANE_FREE ? LANE_UNKNOWN : lane;
        } else if (strcmp(b->opt.stream_id, a->opt.stream_id) == 0) {
            lane = LANE_TAKEN;
        }
    }
    return lane;
}

void serve_try_lanes(serve *s, uint64_t conn_id)
{
    /* submit may change the table, so look for one candidate at a time. */
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < s->answers.cap && !found; i++) {
            answer *a = id_table_at(&s->answers, i);
            if (!a || a->conn != conn_id || a->state != ANSWER_READY) {
                continue;
            }
            const lane_state lane = lane_of(s, a);
            if (lane == LANE_FREE) {
                submit(s, a);
                found = true;
            } else if (lane == LANE_TAKEN) {
                responses_reply_queued(&a->reply, 0);
                serve_wake_followers(s, a);
            }
        }
    }
}

/* ---- what the workers say ---- */

/* The body is valid, and nothing like it was asked for before. */
static void accept_answer(serve *s, answer *a)
{
    a->is_accepted = true;
    a->opt.keep_on_disconnect = a->idempotency_key[0] != '\0';
    if (!a->dialect->has_log) {
        return;
    }
    conn *c = serve_conn(s, a->conn);
    /* A plain socket has no way to come back for its answer; with the extensions coming back is the
     * rule. */
    bool can_return = a->is_socket ? c && c->is_extended : a->opt.store_given || a->opt.background;
    a->opt.keep_on_disconnect = (can_return && !a->opt.cancel_on_disconnect) || a->opt.keep_on_disconnect;
    a->dialect->first(s, a);
    if (a->opt.background) {
        responses_reply_queued(&a->reply, 0);
    }
    if (answer_streams_early(a)) {
        serve_begin_streams(s, a);
    } else if (a->opt.background && !a->opt.stream && c && !c->is_socket) {
        bytes body; /* as it stands: whoever asked comes back for it */
        bytes_init(&body, SIZE_MAX);
        responses_reply_write(&body, &a->reply);
        c->answer = 0;
        serve_send_body(s, c, &body);
    }
    if (c && c->is_socket) {
        if (!serve_add_reader(c, a->id, 0)) { /* nobody would hear of it */
            api_error e;
            api_error_set(&e, 429, "websocket_stream_limit_reached", NULL,
                          "this socket follows too many responses");
            serve_socket_error(s, c, &e, a->opt.event_id, a->opt.stream_id, a->reply.id);
            serve_cancel_answer(s, a);
        }
        net_want_write(s->net, c->id);
    }
}

void serve_on_accepted(serve *s, answer *a, loop_message *m)
{
    const uint64_t conn_id = a->conn;
    take_options(a, m);
    if (!serve_attach_replay(s, a)) {
        accept_answer(s, a);
    }
    serve_try_lanes(s, conn_id);
}

/* Keeps the body for a round after calls of tools. */
static void take_body(answer *a, loop_message *m)
{
    bytes_deinit(&a->body);
    ledger_give_all(&a->memory);
    a->body = m->body;
    a->memory = m->memory;
    bytes_init(&m->body, 0);
    m->memory = (ledger_hold){0};
}

/* Calls that the body allows come before the first word. */
void serve_on_tools(serve *s, answer *a, loop_message *m)
{
    take_body(a, m);
    take_options(a, m);
    a->submitted_ms = clock_ms();
    a->started = true;
    a->state = ANSWER_RUNNING;
    accept_answer(s, a);
    serve_begin_answer(s, a);
    serve_try_lanes(s, a->conn);
    serve_run_allowed(s, a);
}

void serve_on_prepared(serve *s, answer *a, loop_message *m)
{
    const bool is_submitted = !m->request && !m->remote;
    const bool is_later = a->tools.stage == TOOLS_PREPARING;
    take_body(a, m);
    if (is_later) { /* the tools may be others by now */
        a->tools.stage = TOOLS_IDLE;
        tool_plan_destroy(a->opt.plan);
        tool_set_destroy(a->opt.tools);
        a->opt.plan = m->options.plan;
        a->opt.tools = m->options.tools;
        m->options.plan = NULL;
        m->options.tools = NULL;
        a->cancelled = a->cancelled || a->tools.is_stopped;
    }
    a->request = m->request;
    a->remote = m->remote;
    a->server = m->remote ? upstream_request_server(m->remote) : NULL;
    m->request = NULL;
    m->remote = NULL;
    bytes_deinit(&a->edits);
    a->edits = m->reply;
    bytes_init(&m->reply, 0);
    if (m->asks_summary) {
        a->tools.is_summary = true;
        a->tools.summary_tokens = a->n_tokens; /* so far */
    }
    a->media_ms = m->prep_ms;
    a->info = m->info;
    a->state = ANSWER_READY;
    if (!a->is_accepted) {
        take_options(a, m);
        accept_answer(s, a);
        const bool is_left = !serve_conn(s, a->conn) && !serve_find_follower(s, a);
        a->cancelled = a->cancelled || (is_left && a->opt.cancel_on_disconnect);
    }
    if (is_submitted && (a->cancelled || s->is_stalled)) {
        serve_stop_answer(s, a->id);
    }
    if (a->cancelled) {
        serve_cancel_answer(s, a);
    } else if (is_submitted) {
        if (!refuse_stalled(s, a)) {
            begin(s, a);
        }
    } else if (!a->is_socket) {
        submit(s, a);
    } else {
        serve_try_lanes(s, a->conn);
    }
}

void serve_on_replied(serve *s, answer *a, const loop_message *m)
{
    conn *c = serve_conn(s, a->conn);
    if (c && c->is_socket) {
        serve_socket_count(s, c, a->opt.event_id, &m->reply);
    } else if (c) {
        c->answer = 0;
        serve_send_json(s, c, 200, &m->reply, NULL);
    }
    serve_drop_answer(s, a);
}
