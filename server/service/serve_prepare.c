/* A request on its way from its body to the engine: what the workers say of it, its turn on a socket. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/service/serve_state.h"

err_code serve_prepare_answer(serve *s, answer *a, bytes *body)
{
    const prep_order order = {.kind = a->prep,
                              .id = a->id,
                              .scope = a->scope,
                              .engine = s->engine,
                              .form = s->tool_form,
                              .template_kwargs = s->opt->template_kwargs,
                              .hash_body = a->idempotency_key[0] != '\0'};
    const err_code err = prep_submit(s->prep, &order, body, a->ticket);
    a->state = err == ERR_OK ? ANSWER_PREPARING : a->state;
    return err;
}

/* Refuses a request for another model, if the server is told to; then the answer is gone. */
static bool refuse_model(serve *s, answer *a)
{
    model_ref ref;
    if (!s->opt->strict_model || !a->opt.model[0] ||
        (serve_find_model(s, a->opt.model, &ref) && strcmp(ref.path, s->current.path) == 0)) {
        return false;
    }
    api_error e;
    api_error_set(&e, 404, "model_not_found", "model", "there is no such model; see /v1/models");
    serve_fail_answer(s, a, ERR_NOT_FOUND, &e);
    return true;
}

static void submit(serve *s, answer *a)
{
    err_detail d = {0};
    gen_request_info info = gen_request_get_info(a->request);
    a->info = info;
    api_error why;
    if (s->is_stalled && !serve_is_ready(s, &why)) {
        serve_fail_answer(s, a, ERR_BUSY, &why);
        return;
    }
    err_code err = engine_submit(s->engine, a->request, a->id, &d);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        serve_fail_answer(s, a, err, &e);
        return;
    }
    if (a->ends_thinking) {
        engine_end_thinking(s->engine, a->id);
    }
    answer_begin(a, &info, a->kind == ANSWER_COMPLETION ? NULL : s->tool_form);
    if (!a->is_socket && a->opt.stream && !answer_streams_early(a)) {
        serve_begin_streams(s, a);
    }
    serve_wake_followers(s, a);
}

/* Answers of one lane run one behind the other; one that is still being prepared may belong to any
 * lane, so nothing of the same socket overtakes it. */
static bool may_start(const serve *s, const answer *a)
{
    if (!a->is_socket) {
        return true;
    }
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *b = id_table_at(&s->answers, i);
        if (!b || b->conn != a->conn || b->order >= a->order || b->state == ANSWER_FINISHED ||
            b->kind == ANSWER_QUERY) {
            continue;
        }
        if (b->state == ANSWER_PREPARING ? !b->has_reply || strcmp(b->opt.stream_id, a->opt.stream_id) == 0
                                         : strcmp(b->opt.stream_id, a->opt.stream_id) == 0) {
            return false;
        }
    }
    return true;
}

void serve_try_lanes(serve *s, uint64_t conn_id)
{
    /* submit may change the table, so look for one candidate at a time. */
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < s->answers.cap && !found; i++) {
            answer *a = id_table_at(&s->answers, i);
            if (a && a->conn == conn_id && a->state == ANSWER_READY && may_start(s, a)) {
                submit(s, a);
                found = true;
            }
        }
    }
}

void serve_on_accepted(serve *s, answer *a, loop_message *m)
{
    reply_options_deinit(&a->opt);
    a->opt = m->options;
    reply_options_init(&m->options);
    const uint64_t conn_id = a->conn;
    if (refuse_model(s, a)) {
        return;
    }
    if (serve_attach_replay(s, a)) {
        serve_try_lanes(s, conn_id);
        return;
    }
    a->is_accepted = true;
    a->opt.keep_on_disconnect = a->idempotency_key[0] != '\0';
    if (a->kind != ANSWER_RESPONSES) {
        return;
    }
    conn *c = serve_conn(s, a->conn);
    /* A plain socket has no way to come back for its answer; with the extensions coming back is the
     * rule. */
    bool can_return = a->is_socket ? c && c->is_extended : a->opt.store_given;
    a->opt.keep_on_disconnect = (can_return && !a->opt.cancel_on_disconnect) || a->opt.keep_on_disconnect;
    responses_reply_init(&a->reply, &a->opt, a->opt.model[0] ? a->opt.model : s->model_name,
                         s->opt->event_log_bytes);
    a->has_reply = true;
    responses_reply_created(&a->reply);
    if (answer_streams_early(a)) {
        serve_begin_streams(s, a);
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

void serve_on_prepared(serve *s, answer *a, loop_message *m)
{
    a->request = m->request;
    m->request = NULL;
    a->media_ms = m->prep_ms;
    a->state = ANSWER_READY;
    if (a->cancelled) {
        serve_cancel_answer(s, a);
        return;
    }
    if (may_start(s, a)) {
        submit(s, a);
    } else if (a->has_reply) {
        responses_reply_queued(&a->reply, 0);
        serve_wake_followers(s, a);
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
