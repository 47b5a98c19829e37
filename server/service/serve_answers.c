#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/service/serve_state.h"

/* ---- who follows an answer ---- */

void serve_wake_followers(serve *s, const answer *a)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        const conn *c = id_table_at(&s->conns, i);
        if (c && serve_follows(c, a)) {
            net_want_write(s->net, c->id);
        }
    }
}

answer *serve_find_response(serve *s, uint64_t scope, const char *response_id)
{
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a && a->scope == scope && a->has_reply && strcmp(a->reply.id, response_id) == 0) {
            return a;
        }
    }
    return NULL;
}

void serve_drop_answer(serve *s, answer *a)
{
    serve_drop_choices(s, a);
    if (a->kept_bytes) {
        shares_remove(&s->kept, a->scope, a->kept_bytes);
    }
    id_table_remove(&s->answers, a->id);
    answer_destroy(a);
}

/* ---- starting ---- */

answer *serve_new_answer(serve *s, const conn *c, const dialect *d, api_error *e)
{
    answer *a = answer_create(d, ++s->next_answer, c->id);
    if (!a || !id_table_put(&s->answers, a->id, a)) {
        answer_destroy(a);
        api_error_from(e, ERR_NOMEM, NULL);
        return NULL;
    }
    a->is_socket = c->is_socket;
    a->scope = c->scope;
    snprintf(a->request_id, sizeof a->request_id, "%s", c->is_socket ? a->chat_id : c->request_id);
    return a;
}

answer *serve_start_answer(serve *s, conn *c, const dialect *d, bytes *body, json_doc **doc, api_error *e)
{
    const json *root = doc ? json_root(*doc) : NULL;
    const char *named = json_str(json_get(root, "model"), "");
    const bool knows_model = root && s->catalog;
    char model[REQUEST_MODEL_MAX];
    snprintf(model, sizeof model, "%s", strlen(named) < sizeof model ? named : "");
    model_turn turn = serve_model_turn(s, c, body->len, e);
    if (turn != MODEL_REFUSED && knows_model) {
        turn = serve_named_turn(s, c->id, UINT64_MAX, model, body->len, e);
    }
    if (turn == MODEL_REFUSED) {
        return NULL;
    }
    answer *a = serve_new_answer(s, c, d, e);
    if (!a) {
        return NULL;
    }
    if (!c->is_socket) {
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", c->idempotency_key);
        snprintf(a->cache_name, sizeof a->cache_name, "%.64s",
                 strlen(c->param) < sizeof a->cache_name ? c->param : "");
    }
    a->body = *body;
    bytes_init(body, 0); /* the answer owns the memory now */
    if (doc) {
        a->knows_model = knows_model;
        memcpy(a->opt.model, model, sizeof model);
        /* so that its sender knows what an error belongs to */
        snprintf(a->opt.event_id, sizeof a->opt.event_id, "%s", json_str(json_get(root, "event_id"), ""));
        snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "%s", json_str(json_get(root, "stream_id"), ""));
        a->doc = *doc;
        *doc = NULL;
    }
    err_code err = ERR_OK;
    if (turn == MODEL_NOW) {
        err = serve_prepare_answer(s, a);
    } else if (serve_reserve_body(s, a)) {
        serve_hold_answer(s, a);
    } else {
        err = ERR_BUSY;
    }
    if (err != ERR_OK) {
        if (doc) { /* the caller may still speak of it */
            *doc = a->doc;
            a->doc = NULL;
        }
        serve_drop_answer(s, a);
        api_error_from(e, err, NULL);
        return NULL;
    }
    return a;
}

/* ---- ending ---- */

static void log_answer(const answer *a, int status)
{
    const gen_timings *t = &a->timings;
    log_info("srv",
             "req=%s %s %d id=%s server=%s%s%s%s route=%s img=%d prompt=%d (cached %d) gen=%d ttft=%.2fs "
             "%.1f tok/s",
             a->request_id, a->dialect->name, status, a->chat_id, a->server ? a->server : "here",
             t->rule ? " rule=\"" : "", t->rule ? t->rule : "", t->rule ? "\"" : "",
             t->route == GEN_ROUTE_MEDIA ? "media" : "text", a->info.n_images, a->info.n_prompt_tokens,
             t->cache_n, a->n_tokens,
             a->first_token_ms > 0.0 ? (a->first_token_ms - a->created_ms) / 1000.0 : 0.0,
             t->predicted_ms > 0.0 ? 1000.0 * t->predicted_n / t->predicted_ms : 0.0);
}

static void count_answer(serve *s, const answer *a)
{
    metrics_sample sample = {.finish = a->finish,
                             .timings = a->timings,
                             .n_generated = answer_usage(a).completion_tokens,
                             .e2e_ms = clock_ms() - a->created_ms,
                             .ttft_ms = a->first_token_ms > 0.0 ? a->first_token_ms - a->created_ms : 0.0};
    metrics_answer(&s->metrics, &sample);
    if (a->is_socket) {
        metrics_request(&s->metrics, "responses_ws", a->finish == GEN_FINISH_ERROR ? 500 : 200);
    }
    log_answer(a, a->finish == GEN_FINISH_ERROR ? 500 : 200);
}

/* What went wrong inside the engine, for the client. */
static void engine_error(const answer *a, api_error *e)
{
    err_detail d = {0};
    if (a->finish == GEN_FINISH_CANCELLED) {
        api_error_set(e, 503, "cancelled", NULL, "the request was cancelled");
        return;
    }
    if (a->timeout == ANSWER_WAITED_TOO_LONG) {
        api_error_set(e, 503, "queue_timeout", NULL,
                      "the request waited too long for its turn; try again later");
        return;
    }
    if (a->timeout == ANSWER_TOOK_TOO_LONG) {
        api_error_set(e, 504, "request_timeout", NULL,
                      a->opt.timeout_s > 0.0
                          ? "the answer took longer than timeout or --request-timeout allows"
                          : "the answer took longer than --request-timeout allows");
        return;
    }
    if (a->timeout == ANSWER_STALLED) {
        api_error_set(e, 504, "step_timeout", NULL,
                      "the computation was stalled for longer than --step-timeout allows");
        return;
    }
    if (a->timeout == ANSWER_SERVER_ENDS) {
        api_error_set(e, 503, "server_draining", NULL, "the server is shutting down");
        return;
    }
    snprintf(d.text, sizeof d.text, "%s", a->error_text);
    snprintf(d.name, sizeof d.name, "%s", a->error_name);
    api_error_from(e, a->error ? a->error : ERR_INTERNAL, &d);
}

/* Tells everybody who waits for this reply. */
static void send_error_to_all(serve *s, const answer *a, const api_error *e)
{
    size_t i = 0;
    for (conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        if (!c->is_streaming) {
            c->answer = 0;
            serve_send_error(s, c, e);
        }
    }
}

/* The answer is over without having run: refused, or the queue was full. */
void serve_fail_answer(serve *s, answer *a, err_code code, const api_error *e)
{
    uint64_t conn_id = a->conn;
    a->state = ANSWER_FINISHED;
    a->finished_ms = clock_ms();
    serve_break_chain(s, a);
    gen_request_free(a->request); /* the reply is kept for minutes, the prompt and its images are not */
    upstream_request_free(a->remote);
    a->request = NULL;
    a->remote = NULL;
    bytes_deinit(&a->opt.items);
    log_info("srv", "req=%s %s %d %s", a->request_id, a->dialect->name, e->status, e->code);
    if (a->is_socket) {
        metrics_request(&s->metrics, "responses_ws", e->status);
    }
    send_error_to_all(s, a, e);
    if (a->has_reply &&
        (a->is_socket || a->opt.background || answer_streams_early(a) || serve_find_follower(s, a))) {
        response_result result = {.status = code == ERR_CANCELLED ? RESPONSE_CANCELLED : RESPONSE_FAILED,
                                  .error = code == ERR_CANCELLED ? NULL : e};
        responses_reply_finish(&a->reply, &result);
        a->idempotency_key[0] = '\0'; /* who asks again may have more luck */
        serve_wake_followers(s, a);
        serve_keep_answer(s, a);
    } else {
        conn *c = a->is_socket ? serve_conn(s, conn_id) : NULL;
        if (c) {
            serve_socket_error(s, c, e, a->opt.event_id, a->opt.stream_id, NULL);
        }
        serve_drop_answer(s, a);
    }
    serve_try_lanes(s, conn_id); /* of a socket */
}

void serve_fail_answer_from(serve *s, answer *a, err_code code, const err_detail *d)
{
    api_error e;
    api_error_from(&e, code, d);
    serve_fail_answer(s, a, code, &e);
}

/* Once, as calls get their ids here. */
static void write_whole(const serve *s, answer *a)
{
    if (a->sse.len == 0) {
        a->dialect->whole(s, a, &a->sse);
    }
}

void serve_send_whole(serve *s, conn *c, answer *a)
{
    write_whole(s, a);
    c->answer = 0;
    serve_send_json(s, c, 200, &a->sse, NULL);
}

/* Sends the reply that is not streamed to everybody who waits for it. */
static void send_whole_to_all(serve *s, answer *a)
{
    size_t i = 0;
    for (conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        if (!c->is_streaming) {
            serve_send_whole(s, c, a);
        }
    }
}

/* What was added to the stream behind `len` bytes is whole, or is not in it at all. */
static bool is_added(answer *a, size_t len)
{
    if (!a->sse.failed) {
        return true;
    }
    a->sse.len = len;
    a->sse.failed = false;
    return false;
}

/* The first of the choices that this one is of, or itself: what all of them stream goes there. */
static answer *first_of(answer *a)
{
    return a->first ? a->first : a;
}

/* Lets the dialect write. What it adds to the stream is whole, or is not in it at all: then it is
 * false. */
static bool write_stream(const serve *s, answer *a, void (*write)(const serve *s, answer *a))
{
    answer *first = first_of(a);
    const size_t len = first->sse.len;
    if (write) {
        write(s, a);
    }
    return is_added(first, len);
}

void serve_compose_kept(serve *s, answer *a)
{
    if (a->n_kept_input == 0) {
        a->n_kept_input = a->opt.items.len;
        a->dialect->append_kept(s, a, &a->opt.items);
    }
}

/* The conversation with this answer, for a request that goes on from it. */
static void keep_conversation(serve *s, answer *a)
{
    bytes *items = &a->opt.items;
    if (items->len > 0 && a->dialect->append_kept && a->finish != GEN_FINISH_ERROR) {
        serve_compose_kept(s, a);
        if (!items->failed && (a->opt.store || !a->has_reply)) {
            (void)response_store_put(
                s->response_store, a->scope, a->chat_id, items->data, items->len, a->n_kept_input,
                clock_ms()); /* what is not kept cannot be gone on from, and that is said */
        } else if (!items->failed) {
            serve_extend_chain(s, a);
        }
    }
    bytes_deinit(items);
}

/* The last event of a stream, or the whole reply to everybody who waits for it. */
static void finish(serve *s, answer *a)
{
    const size_t len = a->sse.len;
    const bool has_failed = a->finish == GEN_FINISH_ERROR || a->finish == GEN_FINISH_CANCELLED;
    api_error e;
    if (has_failed) {
        engine_error(a, &e);
        serve_break_chain(s, a);
        a->idempotency_key[0] = '\0'; /* who asks again may have more luck */
    }
    if (a->has_reply || (a->opt.stream && !has_failed)) {
        if (a->n_others == 0) { /* else each choice had its own */
            a->dialect->last(s, a, has_failed ? &e : NULL);
        }
        if (a->dialect->end) {
            a->dialect->end(s, a);
        }
    } else if (a->opt.stream) {
        a->dialect->error(&a->sse, &e);
    }
    keep_conversation(s, a); /* before anybody hears that it is finished */
    if (a->opt.stream) {
        a->sse_lost = !is_added(a, len);
        a->sse_end = true;
    } else if (has_failed && !a->has_reply) {
        send_error_to_all(s, a, &e);
    } else {
        send_whole_to_all(s, a);
    }
}

/* ---- text to replies ---- */

/* Whether its text is needed once more at its end: a response holds it itself. */
static bool needs_whole(const answer *a)
{
    return !a->has_reply && (!a->opt.stream || a->opt.items.len > 0 || a->dialect->keeps_whole);
}

/* Hands new text to the reply. */
static void flush_text(serve *s, answer *a, double now)
{
    answer *first = first_of(a);
    serve_take_runs(a);
    if (a->pieces.n == 0) {
        return;
    }
    a->last_flush_ms = now;
    const bool is_streamed = a->has_reply || a->opt.stream;
    for (size_t i = 0; i < a->pieces.n && needs_whole(a); i++) {
        const reply_piece *p = &a->pieces.items[i];
        reply_pieces_add(&a->whole, p->kind, bytes_str(&p->text), p->text.len);
    }
    a->has_lost = a->has_lost || a->whole.failed;
    if (is_streamed) {
        a->has_lost = !write_stream(s, a, a->dialect->delta) || a->has_lost;
        if (!a->has_reply) {
            serve_check_stream(s, first);
        }
    } else {
        if (a->whole_logprobs.len > 0 && a->logprobs.len > 0) {
            bytes_append_char(&a->whole_logprobs, ',');
        }
        bytes_append(&a->whole_logprobs, a->logprobs.data, a->logprobs.len);
        a->has_lost = a->has_lost || a->logprobs.failed || a->whole_logprobs.failed;
        bytes_clear(&a->logprobs);
    }
    reply_pieces_clear(&a->pieces);
    serve_wake_followers(s, first);
}

void serve_emit_item(serve *s, answer *a, const bytes *item, bool is_over)
{
    if (item->failed) {
        a->has_lost = true;
        return;
    }
    reply_pieces_add(&a->pieces, REPLY_ITEM, item->data, item->len);
    if (is_over && needs_whole(a)) {
        reply_pieces_add(&a->whole, REPLY_ITEM, item->data, item->len);
    }
    a->has_lost = a->has_lost || a->pieces.failed || a->whole.failed;
    if (a->has_reply || a->opt.stream) {
        a->has_lost = !write_stream(s, a, a->dialect->delta) || a->has_lost;
        if (!a->has_reply) {
            serve_check_stream(s, a);
        }
    }
    reply_pieces_clear(&a->pieces);
    serve_wake_followers(s, a);
}

static void on_progress(serve *s, answer *a)
{
    a->has_lost = !write_stream(s, a, a->dialect->progress) || a->has_lost;
    serve_wake_followers(s, a);
}

/* The engine's last event was taken. */
void serve_end_answer(serve *s, answer *a)
{
    const uint64_t conn_id = a->conn;
    bytes_deinit(&a->body); /* no round needs it any more */
    ledger_give_all(&a->memory);
    answer_check_lost(a);
    if (serve_extend_conversation(s, a)) {
        return; /* nobody hears that it is finished before its conversation has it */
    }
    count_answer(s, a);
    finish(s, a);
    if (a->idempotency_key[0] && !a->opt.stream) {
        write_whole(s, a); /* as long as the model that wrote it has its name */
    }
    serve_drop_choices(s, a);
    serve_wake_followers(s, a);
    serve_keep_answer(s, a);
    serve_try_lanes(s, conn_id);
}

/* Another server has refused it: its client hears that as a status. */
static void fail_unbegun(serve *s, answer *a, const gen_event *event)
{
    api_error e;
    const bool is_cancelled = event->finish == GEN_FINISH_CANCELLED && a->timeout == ANSWER_IN_TIME;
    a->finish = is_cancelled ? GEN_FINISH_CANCELLED : GEN_FINISH_ERROR;
    a->error = event->error;
    snprintf(a->error_text, sizeof a->error_text, "%s", event->message);
    snprintf(a->error_name, sizeof a->error_name, "%s", event->error_name);
    engine_error(a, &e);
    count_answer(s, a);
    serve_fail_answer(s, a, is_cancelled ? ERR_CANCELLED : event->error, &e);
}

/* The last event of one of several choices was taken. If it has failed, so has the whole answer. */
static void end_choice(serve *s, answer *first, answer *a)
{
    answer_check_lost(a); /* also of the event that is taken now */
    const bool has_failed = a->finish == GEN_FINISH_ERROR || a->finish == GEN_FINISH_CANCELLED;
    if (has_failed && a != first) {
        first->finish = a->finish;
        first->error = a->error;
        first->timeout = first->timeout == ANSWER_IN_TIME ? a->timeout : first->timeout;
        memcpy(first->error_text, a->error_text, sizeof first->error_text);
        memcpy(first->error_name, a->error_name, sizeof first->error_name);
    }
    if (!has_failed && first->opt.stream) {
        const size_t len = first->sse.len;
        a->dialect->last(s, a, NULL);
        first->has_lost = !is_added(first, len) || first->has_lost;
        serve_wake_followers(s, first);
    }
    first->n_open--;
    if (first->n_open == 0 || has_failed) {
        first->state = ANSWER_FINISHED;
        first->finished_ms = clock_ms();
        serve_stop_choices(s, first);
        serve_end_answer(s, first);
    } else {
        first->state = ANSWER_RUNNING; /* it stands for all of them */
    }
}

static void on_event(serve *s, const gen_event *event)
{
    answer *a = id_table_get(&s->answers, event->request_id);
    if (!a || a->state != ANSWER_RUNNING) {
        /* The client left between two events: this heals every such race. */
        if (event->type != GEN_DONE) {
            serve_stop_answer(s, event->request_id);
        }
        return;
    }
    const bool has_failed = event->finish == GEN_FINISH_ERROR || event->finish == GEN_FINISH_CANCELLED;
    answer *first = first_of(a);
    if (!first->is_begun && event->type == GEN_DONE && has_failed) {
        fail_unbegun(s, first, event);
        return;
    }
    serve_begin_answer(s, first);
    double now = clock_ms();
    bool had_stop = a->stop_found;
    bool is_last = answer_take_event(a, s->engine, event);
    if (event->type == GEN_PROMPT) {
        serve_share_prompt(s, first, a, event);
        return; /* goes out with what follows */
    }
    if (event->type == GEN_PROGRESS) {
        if (!a->first) { /* of several choices, that of the first is told */
            on_progress(s, a);
        }
        return;
    }
    if (is_last && first->timeout != ANSWER_IN_TIME && a->finish == GEN_FINISH_CANCELLED) {
        a->finish = GEN_FINISH_ERROR;
    }
    a->cached = a->timings.cache_n;
    if (a->has_reply) {
        responses_reply_in_progress(&a->reply);
    }
    if (((a->stop_found && !had_stop) || a->has_lost) && !is_last) {
        serve_stop_one(s, a->id);
    }
    /* The first text goes out at once, later text is gathered; the timer flushes what is left. GEN_TEXT was gathered by
     * its maker. */
    const bool is_gathered = event->type == GEN_TEXT;
    if (is_last || is_gathered || a->last_flush_ms <= 0.0 || now - a->last_flush_ms >= SERVE_FLUSH_MS) {
        flush_text(s, a, now);
    } else {
        serve_schedule(s, SERVE_FLUSH_MS);
    }
    if (now - a->last_stats_ms >= SERVE_STATS_MS && a->has_reply && !is_last) {
        a->last_stats_ms = now;
        a->stats_version++;
        serve_wake_followers(s, a);
    }
    if (is_last && first->n_others > 0) {
        end_choice(s, first, a);
    } else if (is_last && !serve_begin_round(s, a)) {
        serve_end_answer(s, a);
    }
}

/* ---- streams ---- */

static void begin_stream(serve *s, conn *c, const dialect *d)
{
    c->is_streaming = true;
    c->last_write_ms = clock_ms();
    metrics_request(&s->metrics, c->route->name, 200);
    net_begin_stream(s->net, c->id, 200, d->has_lines ? "application/x-ndjson" : "text/event-stream",
                     "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
}

void serve_begin_follow(serve *s, conn *c, const answer *a, int64_t next_seq)
{
    c->answer = a->id;
    c->follows_log = true;
    c->n_readers = 0;
    serve_add_reader(c, a->id, next_seq);
    begin_stream(s, c, a->dialect);
}

void serve_begin_stream(serve *s, conn *c, const answer *a)
{
    if (a->dialect->has_log) {
        serve_begin_follow(s, c, a, 0);
    } else {
        c->sse_pos = 0;
        begin_stream(s, c, a->dialect);
    }
}

void serve_begin_streams(serve *s, answer *a)
{
    size_t i = 0;
    if (!a->has_reply) { /* whose first event is the first of its log */
        a->has_lost = !write_stream(s, a, a->dialect->first) || a->has_lost;
    }
    for (int k = 0; k < a->n_others; k++) {
        a->has_lost = !write_stream(s, a->others[k], a->dialect->first) || a->has_lost;
    }
    for (conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        serve_begin_stream(s, c, a);
    }
}

void serve_handle_message(serve *s, loop_message *m)
{
    if (m->type == LOOP_EVENT) {
        on_event(s, m->event);
        return;
    }
    answer *a = id_table_get(&s->answers, m->id);
    if (!a && m->type == LOOP_RESULT) {
        serve_on_mcp_reply(s, m->id, m->result);
        return;
    }
    if (!a || a->state == ANSWER_FINISHED) { /* ended meanwhile; what the message holds is freed with it */
        if (m->type == LOOP_PREPARED && !m->request) {
            serve_stop_answer(s, m->id);
        }
        return;
    }
    const bool is_read = a->is_socket && m->type != LOOP_PROGRESS && m->type != LOOP_RESULT;
    if (a->tools.stage == TOOLS_PREPARING && (m->type == LOOP_REFUSED || m->type == LOOP_OTHER_MODEL)) {
        api_error e;
        api_error_set(&e, 503, "model_changed", "model",
                      "the model was changed between two rounds of the answer");
        const bool is_refused = m->type == LOOP_REFUSED;
        serve_end_rounds(s, a, is_refused ? m->code : ERR_BUSY, is_refused ? &m->error : &e);
        return;
    }
    switch (m->type) {
    case LOOP_ACCEPTED:
        serve_on_accepted(s, a, m);
        break;
    case LOOP_PROGRESS:
        a->phase_start_ms = a->phase != m->phase || a->phase_start_ms <= 0.0 ? clock_ms() : a->phase_start_ms;
        a->phase = m->phase;
        a->processed = m->processed;
        a->total = m->total;
        a->progress_version++;
        serve_wake_followers(s, a);
        break;
    case LOOP_PREPARED:
        serve_on_prepared(s, a, m);
        break;
    case LOOP_OTHER_MODEL:
        serve_on_other_model(s, a, m);
        break;
    case LOOP_TOOLS:
        serve_on_tools(s, a, m);
        break;
    case LOOP_RESULT:
        serve_on_result(s, a, m->result);
        break;
    case LOOP_REPLIED:
        serve_on_replied(s, a, m);
        break;
    case LOOP_REFUSED:
        if (!a->has_reply && !a->dialect->is_query) {
            reply_options_deinit(&a->opt);
            a->opt = m->options;
            reply_options_init(&m->options);
        }
        serve_fail_answer(s, a, m->code, &m->error);
        break;
    default:
        break;
    }
    if (is_read) {
        serve_try_held(s);
    }
}

/* ---- cancelling ---- */

void serve_stop_one(serve *s, uint64_t id)
{
    if (s->engine) {
        engine_cancel(s->engine, id);
    }
    upstreams_cancel(s->upstreams, id);
}

void serve_stop_answer(serve *s, uint64_t id)
{
    answer *a = id_table_get(&s->answers, id);
    serve_stop_one(s, id);
    if (a) {
        serve_stop_choices(s, a);
    }
    if (a && a->tools.stage != TOOLS_IDLE) {
        mcp_cancel(s->mcp, id);
        serve_stop_rounds(s, a);
    }
}

void serve_cancel_answer(serve *s, answer *a)
{
    a->cancelled = true;
    switch (a->state) {
    case ANSWER_PREPARING:
        prep_ticket_cancel(a->ticket); /* LOOP_REFUSED with ERR_CANCELLED follows */
        break;
    case ANSWER_HELD:
    case ANSWER_READY:
        serve_fail_answer_from(s, a, ERR_CANCELLED, NULL);
        break;
    case ANSWER_RUNNING:
        serve_stop_answer(s, a->id);
        break;
    default:
        break;
    }
}

/* --on-disconnect finish: nobody may ever read it, but its prompt is remembered. */
static bool goes_on(const serve *s, const answer *a)
{
    return s->opt->finish_on_disconnect && !a->dialect->is_query && a->state != ANSWER_FINISHED &&
           !a->cancelled && !a->opt.cancel_on_disconnect;
}

void serve_abandon_answers(serve *s, uint64_t conn_id)
{
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (!a || a->conn != conn_id) {
            continue;
        }
        bool can_be_read = a->has_reply || (a->is_accepted && a->idempotency_key[0]);
        bool keep = can_be_read && (a->opt.keep_on_disconnect || a->state == ANSWER_FINISHED);
        keep = keep || goes_on(s, a);
        const conn *other = keep ? NULL : serve_find_follower(s, a);
        a->conn = keep ? a->conn : other ? other->id : 0; /* kept ones still share their lanes */
        if (keep || (other && !a->opt.cancel_on_disconnect)) {
            continue;
        }
        if (other) { /* it ends, and that is said */
            serve_cancel_answer(s, a);
            i = (size_t)-1;
            continue;
        }
        if (a->state == ANSWER_RUNNING) {
            serve_stop_answer(s, a->id);
            a->finish = GEN_FINISH_CANCELLED;
            count_answer(s, a);
        }
        serve_drop_answer(s, a);
        i = (size_t)-1; /* the table moved: start again */
    }
}

/* ---- time ---- */

/* Stops an answer that waits or takes too long; the engine's last event brings the error. */
static void check_time(serve *s, answer *a, double now)
{
    const bool is_waiting = !a->started && a->first_token_ms <= 0.0;
    const double most_s = s->opt->request_timeout_s, asked_s = a->opt.timeout_s;
    if (a->timeout != ANSWER_IN_TIME || a->first) { /* of several choices, the first counts */
        return;
    }
    if (is_waiting && now - a->submitted_ms > s->opt->queue_timeout_s * 1000.0) {
        a->timeout = ANSWER_WAITED_TOO_LONG;
    } else if (now - a->created_ms > (asked_s > 0.0 && asked_s < most_s ? asked_s : most_s) * 1000.0) {
        a->timeout = ANSWER_TOOK_TOO_LONG;
    }
    if (a->timeout != ANSWER_IN_TIME) {
        serve_stop_answer(s, a->id);
    }
}

int serve_tick_answers(serve *s, double now)
{
    int wait_ms = SERVE_TICK_MS;
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (!a || a->state != ANSWER_RUNNING) {
            continue;
        }
        check_time(s, a, now);
        if (a->talk_stage == TALK_WAITING) {
            const uint64_t id = a->id;
            a->state = ANSWER_FINISHED;
            serve_end_answer(s, a);
            const answer *left = id_table_get(&s->answers, id);
            if (!left || left->talk_stage != TALK_WAITING) {
                i = (size_t)-1; /* the table may have moved: start again */
            }
            continue;
        }
        if (a->tools.is_stopped && a->tools.stage == TOOLS_CALLING) {
            serve_end_rounds(s, a, ERR_CANCELLED, NULL);
            i = (size_t)-1; /* the table may have moved: start again */
            continue;
        }
        if (a->pieces.n == 0) {
            continue;
        }
        double left = a->last_flush_ms + SERVE_FLUSH_MS - now;
        if (left <= 0.5) {
            flush_text(s, a, now);
        } else if (left < wait_ms) {
            wait_ms = (int)left + 1;
        }
    }
    serve_expire_answers(s, now);
    return wait_ms;
}
