#include "server/service/answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

answer *answer_create(const dialect *d, uint64_t id, uint64_t conn)
{
    answer *a = calloc(1, sizeof *a);
    prep_ticket *ticket = prep_ticket_create();
    if (!a || !ticket) {
        free(a);
        prep_ticket_release(ticket);
        return NULL;
    }
    a->id = a->order = id;
    bytes_init(&a->body, 0);
    a->conn = conn;
    a->dialect = d;
    a->ticket = ticket;
    a->created_ms = clock_ms();
    a->created_at = clock_unix_s();
    hash_random_id(a->chat_id, sizeof a->chat_id, d->id_prefix);
    reply_options_init(&a->opt);
    reply_parser_init(&a->parser, &(reply_rules){0});
    reply_pieces_init(&a->pieces);
    reply_pieces_init(&a->whole);
    stop_filter_init(&a->reasoning_stream, NULL, 0);
    stop_filter_init(&a->content_stream, NULL, 0);
    bytes *const buffers[] = {&a->vectors,       &a->logprobs,    &a->whole_logprobs,
                              &a->sse,           &a->tools.turns, &a->tools.reasoning,
                              &a->tools.content, &a->edits,       &a->echo};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        bytes_init(buffers[i], SIZE_MAX);
    }
    return a;
}

void answer_clear_runs(answer *a)
{
    for (size_t i = 0; i < a->tools.n_runs; i++) {
        tool_run *t = &a->tools.runs[i];
        bytes *const texts[] = {&t->label, &t->tool, &t->name, &t->arguments};
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            bytes_deinit(texts[k]);
        }
    }
    a->tools.n_runs = a->tools.n_waiting = 0;
}

void answer_destroy(answer *a)
{
    if (!a) {
        return;
    }
    prep_ticket_cancel(a->ticket);
    prep_ticket_release(a->ticket);
    gen_request_free(a->request);
    upstream_request_free(a->remote);
    bytes_deinit(&a->body);
    json_free(a->doc);
    ledger_give_all(&a->memory);
    if (a->has_reply) {
        responses_reply_deinit(&a->reply);
    }
    reply_parser_deinit(&a->parser);
    stop_filter_deinit(&a->reasoning_stream);
    stop_filter_deinit(&a->content_stream);
    reply_pieces_deinit(&a->pieces);
    reply_pieces_deinit(&a->whole);
    answer_clear_runs(a);
    free(a->tools.runs);
    free(a->others);
    bytes *const buffers[] = {&a->vectors,       &a->logprobs,    &a->whole_logprobs,
                              &a->sse,           &a->tools.turns, &a->tools.reasoning,
                              &a->tools.content, &a->edits,       &a->echo};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        bytes_deinit(buffers[i]);
    }
    reply_options_deinit(&a->opt);
    free(a);
}

bool answer_streams_early(const answer *a)
{
    return a->dialect->has_log && !a->is_socket && a->opt.stream && a->opt.return_progress;
}

void answer_begin(answer *a, const gen_request_info *info, const tool_form *form)
{
    a->info = *info;
    a->state = ANSWER_RUNNING;
    a->request = NULL;
    a->submitted_ms = clock_ms();
    a->timings.route = info->route;
    reply_parser_deinit(&a->parser); /* of the round before */
    stop_filter_deinit(&a->reasoning_stream);
    stop_filter_deinit(&a->content_stream);
    const reply_options *opt = &answer_first(a)->opt;
    a->stop_found = false;
    stop_filter_init(&a->reasoning_stream, NULL, 0);
    reply_parser_init(&a->parser, &(reply_rules){.starts_in_thinking = info->starts_in_thinking,
                                                 .may_think = info->may_think,
                                                 .think = info->think,
                                                 .continues = info->continues,
                                                 .form = a->tools.is_summary ? NULL : form,
                                                 .tools = a->tools.is_summary ? NULL : opt->tools,
                                                 .one_call = opt->one_call,
                                                 .is_told = info->is_remote});
    stop_filter_init(&a->content_stream, opt->stops, a->tools.is_summary ? 0 : opt->n_stops);
    if (opt->n_echoes > 0 && !opt->scores_prompt) {
        const char *echo = opt->echoes[a->index / (opt->n_choices > 1 ? opt->n_choices : 1)];
        reply_pieces_add(&a->pieces, REPLY_CONTENT, echo, strlen(echo));
    }
}

/* ---- tokens to text ---- */

static void append_logprob(bytes *out, const engine *e, int32_t id, double logprob)
{
    size_t len = 0;
    bool special = false;
    const char *text = engine_token_bytes(e, id, &len, &special);
    reply_json_logprob_head(out, text ? text : "", len, logprob);
}

static void add_logprob(answer *a, const engine *e, int32_t id, const gen_logprob *p)
{
    bytes *out = &a->logprobs;
    if (out->len > 0) {
        bytes_append_char(out, ',');
    }
    if (isnan(p->logprob)) { /* nothing stands before it */
        size_t len = 0;
        bool special = false;
        const char *text = engine_token_bytes(e, id, &len, &special);
        bytes_json(out, "{\"token\":%.*s,\"logprob\":null,\"top_logprobs\":null}", (int)len,
                   text ? text : "");
        return;
    }
    append_logprob(out, e, id, (double)p->logprob);
    bytes_append_str(out, ",\"top_logprobs\":[");
    for (int32_t i = 0; i < p->n_top && i < 20; i++) {
        bytes_append_str(out, i ? "," : "");
        append_logprob(out, e, p->top_ids[i], (double)p->top_logprobs[i]);
        bytes_append_char(out, '}');
    }
    bytes_append_str(out, "]}");
}

/* Moves text through a stream to the new pieces; is_end: nothing of this kind follows directly. */
static void release(answer *a, stop_filter *stream, reply_kind kind, const bytes *text, bool is_end)
{
    bytes shown;
    bytes_init(&shown, SIZE_MAX);
    if (text) {
        stop_filter_push(stream, &shown, text->data, text->len);
    }
    if (is_end) {
        stop_filter_finish(stream, &shown);
    }
    reply_pieces_add(&a->pieces, kind, bytes_str(&shown), shown.len);
    a->has_lost = a->has_lost || shown.failed || stream->held.failed || a->pieces.failed;
    bytes_deinit(&shown);
}

/* White space in front of a call is looked through for stop strings, and not shown unless one ends
 * the answer there. */
static void release_blank(answer *a, const bytes *blank)
{
    bytes shown;
    bytes_init(&shown, SIZE_MAX);
    stop_filter_push(&a->content_stream, &shown, blank->data, blank->len);
    stop_filter_finish(&a->content_stream, &shown);
    const size_t n_hidden = a->content_stream.stopped ? 0 : blank->len; /* it came out last */
    reply_pieces_add(&a->pieces, REPLY_CONTENT, bytes_str(&shown),
                     shown.len > n_hidden ? shown.len - n_hidden : 0);
    a->has_lost = a->has_lost || shown.failed; /* the rest is asked with the call behind it */
    bytes_deinit(&shown);
}

/* Moves what the parser found through the streams to the new pieces. What a stream holds back is
 * text as soon as something of another kind follows. */
static void release_pieces(answer *a, bool is_end)
{
    for (size_t i = 0; i < a->parser.pieces.n && !a->content_stream.stopped; i++) {
        const reply_piece *p = &a->parser.pieces.items[i];
        if (p->kind == REPLY_BLANK) {
            release_blank(a, &p->text);
            continue;
        }
        release(a, &a->reasoning_stream, REPLY_REASONING, p->kind == REPLY_REASONING ? &p->text : NULL,
                p->kind != REPLY_REASONING);
        release(a, &a->content_stream, REPLY_CONTENT, p->kind == REPLY_CONTENT ? &p->text : NULL,
                p->kind != REPLY_CONTENT);
        if (p->kind != REPLY_REASONING && p->kind != REPLY_CONTENT) {
            reply_pieces_add(&a->pieces, p->kind, bytes_str(&p->text), p->text.len);
            a->n_calls += p->kind == REPLY_CALL_END;
        }
    }
    a->has_lost = a->has_lost || a->parser.pieces.failed || a->parser.held.failed ||
                  a->parser.reader.value.failed || a->pieces.failed;
    if (is_end) {
        release(a, &a->reasoning_stream, REPLY_REASONING, NULL, true);
        release(a, &a->content_stream, REPLY_CONTENT, NULL, true);
    }
    reply_pieces_clear(&a->parser.pieces);
}

/* Control tokens are never shown, but many checkpoints write calls with them. */
static bool is_shown(const answer *a, const char *text, size_t len, bool special)
{
    const tool_form *form = a->parser.reader.form;
    return !special || (form && tool_form_reads(form, text, len)) ||
           think_form_reads(a->info.think, text, len);
}

static void take_token(answer *a, const engine *e, int32_t id, const gen_logprob *logprob)
{
    size_t len = 0;
    bool special = false;
    const char *text = engine_token_bytes(e, id, &len, &special);
    bool was_thinking = reply_parser_is_thinking(&a->parser);
    bool was_content = reply_parser_is_content(&a->parser);
    a->n_tokens++;
    if (len > 0 && is_shown(a, text, len, special)) {
        reply_parser_push(&a->parser, text, len);
        release_pieces(a, false);
    }
    /* The closing marker itself still counts as reasoning. */
    a->n_reasoning_tokens += was_thinking || reply_parser_is_thinking(&a->parser);
    if (logprob && a->opt.logprobs && was_content && !special) {
        add_logprob(a, e, id, logprob);
    }
    a->stop_found = a->content_stream.stopped || a->parser.stopped;
}

void answer_take_prompt(answer *a, const engine *e, const gen_event *event)
{
    const reply_options *opt = &answer_first(a)->opt;
    const int n = opt->n_choices > 1 ? opt->n_choices : 1;
    const char *echo = opt->echoes[a->index / n];
    for (int32_t i = 0; i < event->n_tokens; i++) {
        size_t len = 0;
        bool special = false;
        const char *text = engine_token_bytes(e, event->tokens[i], &len, &special);
        add_logprob(a, e, event->tokens[i], &event->logprobs[i]);
        bytes_append(&a->echo, text, len);
    }
    if (event->processed == event->total) {
        reply_pieces_add(&a->pieces, REPLY_CONTENT, echo ? echo : bytes_str(&a->echo),
                         echo ? strlen(echo) : a->echo.len);
        a->has_lost = a->has_lost || a->echo.failed || a->pieces.failed;
        bytes_deinit(&a->echo);
    }
}

static void add_logprobs(answer *a, const gen_text_piece *p)
{
    if (a->opt.logprobs) {
        if (a->logprobs.len > 0) {
            bytes_append_char(&a->logprobs, ',');
        }
        bytes_append(&a->logprobs, p->text, p->len);
    }
}

/* What another engine wrote. */
static void take_text(answer *a, const gen_text *text)
{
    static const reply_kind KINDS[] = {[GEN_TEXT_REASONING] = REPLY_REASONING,
                                       [GEN_TEXT_CONTENT] = REPLY_CONTENT,
                                       [GEN_TEXT_CALL] = REPLY_CALL,
                                       [GEN_TEXT_ARGUMENTS] = REPLY_ARGUMENTS,
                                       [GEN_TEXT_CALL_END] = REPLY_CALL_END};
    a->n_tokens += text->n_tokens;
    for (size_t i = 0; i < text->n && !a->stop_found; i++) {
        const gen_text_piece *p = &text->pieces[i];
        if (p->kind == GEN_TEXT_LOGPROBS) {
            add_logprobs(a, p);
            continue;
        }
        reply_parser_add(&a->parser, KINDS[p->kind], p->text, p->len);
        release_pieces(a, false);
        a->stop_found = a->content_stream.stopped || a->parser.stopped;
    }
    if (reply_parser_is_thinking(&a->parser)) {
        a->n_reasoning_tokens += text->n_tokens;
    }
}

/* Its own numbers, where it tells them. */
static void take_usage(answer *a, const gen_usage *u)
{
    if (u->is_known && a->tools.n_rounds > 0) { /* of the last round alone: what was counted here stays */
        a->info.n_prompt_tokens = u->prompt;
    } else if (u->is_known) {
        a->info.n_prompt_tokens = u->prompt;
        a->n_tokens = u->completion;
        a->n_reasoning_tokens = u->reasoning >= 0                       ? u->reasoning
                                : a->n_reasoning_tokens < u->completion ? a->n_reasoning_tokens
                                                                        : u->completion;
    }
}

static void take_progress(answer *a, const gen_event *event)
{
    if (event->phase != a->phase || a->phase_start_ms <= 0.0) {
        a->phase_start_ms = clock_ms();
    }
    a->phase = event->phase;
    a->started = a->started || event->phase != GEN_PHASE_QUEUED;
    a->timings = event->timings;
    a->cached = event->timings.cache_n;
    a->processed = event->processed;
    a->total = event->total;
    a->progress_version++;
}

void answer_check_lost(answer *a)
{
    if (a->has_lost || (a->has_reply && a->reply.has_lost)) {
        a->finish = GEN_FINISH_ERROR;
        a->error = ERR_NOMEM;
        a->error_text[0] = '\0';
    }
}

bool answer_take_event(answer *a, const engine *e, const gen_event *event)
{
    double media_ms = a->media_ms;
    switch (event->type) {
    case GEN_PROGRESS:
        take_progress(a, event);
        break;
    case GEN_TOKENS:
        if (a->first_token_ms <= 0.0) {
            a->first_token_ms = clock_ms();
        }
        a->timings = event->timings;
        for (int32_t i = 0; i < event->n_tokens && !a->stop_found; i++) {
            take_token(a, e, event->tokens[i], event->logprobs ? &event->logprobs[i] : NULL);
        }
        break;
    case GEN_VECTOR:
        a->timings = event->timings;
        a->vector_size = event->n_vector;
        a->n_vectors++;
        bytes_append(&a->vectors, event->vector, (size_t)event->n_vector * sizeof *event->vector);
        a->has_lost = a->has_lost || a->vectors.failed;
        break;
    case GEN_PROMPT:
        answer_take_prompt(a, e, event);
        break;
    case GEN_TEXT:
        if (a->first_token_ms <= 0.0) {
            a->first_token_ms = clock_ms();
        }
        a->timings = event->timings;
        take_text(a, event->text);
        break;
    case GEN_DONE:
        a->timings = event->timings;
        take_usage(a, &event->usage);
        a->finish = a->stop_found && event->finish != GEN_FINISH_ERROR ? GEN_FINISH_STOP : event->finish;
        a->error = event->error;
        memcpy(a->error_text, event->message, sizeof a->error_text);
        a->error_text[sizeof a->error_text - 1] = '\0';
        snprintf(a->error_name, sizeof a->error_name, "%s", event->error_name);
        reply_parser_finish(&a->parser, a->finish != GEN_FINISH_STOP);
        release_pieces(a, true);
        answer_check_lost(a);
        a->state = ANSWER_FINISHED;
        a->finished_ms = clock_ms();
        break;
    }
    if (a->timings.media_ms <= 0.0) {
        a->timings.media_ms = a->info.route == GEN_ROUTE_MEDIA ? media_ms : 0.0;
    }
    return event->type == GEN_DONE;
}

static size_t pieces_bytes(const reply_pieces *p)
{
    size_t n = p->cap * sizeof *p->items;
    for (size_t i = 0; i < p->cap; i++) {
        n += p->items[i].text.cap;
    }
    return n;
}

size_t answer_bytes(const answer *a)
{
    const responses_reply *r = &a->reply;
    const char *const texts[] = {a->opt.echoes[0], a->opt.fields, a->opt.tools ? a->opt.fields : NULL};
    size_t n = sizeof *a + a->sse.cap + a->whole_logprobs.cap + a->logprobs.cap + a->body.cap +
               a->vectors.cap + a->edits.cap + a->echo.cap + a->tools.turns.cap + pieces_bytes(&a->whole) +
               pieces_bytes(&a->pieces) + pieces_bytes(&a->parser.pieces);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        n += texts[i] ? strlen(texts[i]) : 0;
    }
    if (!a->has_reply) {
        return n;
    }
    n += r->log.data.cap + r->log.cap * sizeof *r->log.entries + (size_t)r->cap_items * sizeof *r->items;
    for (int i = 0; i < r->n_items; i++) {
        n += r->items[i].name.cap + r->items[i].text.cap + r->items[i].logprobs.cap;
    }
    return n;
}

const char *answer_finish_reason(const answer *a)
{
    return a->finish == GEN_FINISH_LENGTH     ? "length"
           : a->finish == GEN_FINISH_FILTERED ? "content_filter"
           : a->n_calls > 0                   ? "tool_calls"
                                              : "stop";
}

static reply_usage usage_of_one(const answer *a)
{
    return (reply_usage){
        .prompt_tokens = a->tools.prompt_tokens + a->info.n_prompt_tokens,
        .cached_tokens = a->tools.cached_tokens + a->timings.cache_n,
        .completion_tokens = a->n_tokens,
        .reasoning_tokens = a->n_reasoning_tokens,
        .sparse_tokens = a->timings.sparse_n,
        .sparse_kept_tokens = a->timings.sparse_kept_n,
    };
}

reply_usage answer_usage(const answer *a)
{
    reply_usage sum = usage_of_one(a);
    for (int i = 0; i < a->n_others; i++) {
        const reply_usage one = usage_of_one(a->others[i]);
        const bool has_prompt = a->others[i]->index % a->opt.n_choices == 0;
        sum.prompt_tokens += has_prompt ? one.prompt_tokens : 0;
        sum.cached_tokens += has_prompt ? one.cached_tokens : 0;
        sum.completion_tokens += one.completion_tokens;
        sum.reasoning_tokens += one.reasoning_tokens;
    }
    return sum;
}
