/* The dialects: a table each, and what their functions know of an answer. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_reply.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/response_items.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/vectors.h"
#include "server/service/serve_state.h"

static const char *model_of(const serve *s, const answer *a)
{
    return a->opt.model[0] ? a->opt.model : s->model_name;
}

/* ---- prep ---- */

static err_code parse_chat(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                           const engine_info *info, err_detail *d)
{
    (void)prompt;
    return chat_request_parse(r, text, len, info, d);
}

static err_code parse_messages(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                               const engine_info *info, err_detail *d)
{
    (void)prompt;
    return messages_request_parse(r, text, len, true, info, d);
}

static err_code parse_responses(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                const engine_info *info, err_detail *d)
{
    (void)prompt;
    return responses_request_parse(r, text, len, false, info, d);
}

static err_code parse_event(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                            const engine_info *info, err_detail *d)
{
    (void)prompt;
    return responses_request_parse(r, text, len, true, info, d);
}

static err_code parse_compact(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                              const engine_info *info, err_detail *d)
{
    (void)prompt;
    return responses_compact_parse(r, text, len, info, d);
}

static err_code prepare_chat(gen_request **out, const api_request *r, const completion_prompt *prompt,
                             engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)prompt;
    return engine_prepare(e, out, r->in, hooks, d);
}

static err_code prepare_completion(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                   engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)hooks;
    return completion_request_prepare(out, r, prompt, e, d);
}

/* ---- Chat Completions and Completions ---- */

static chat_reply_meta chat_meta(const serve *s, const answer *a)
{
    const answer *first = answer_first(a);
    return (chat_reply_meta){
        .id = first->chat_id,
        .created = first->created_at,
        .model = model_of(s, first),
        .fingerprint = "parley-" PARLEY_VERSION,
        .include_usage = first->opt.include_usage,
        .reasoning_field = s->opt->reasoning_field,
        .index = a->index,
    };
}

/* Where what an answer streams goes. */
static bytes *stream_of(answer *a)
{
    return a->first ? &a->first->sse : &a->sse;
}

static void first_chat(const serve *s, answer *a)
{
    const chat_reply_meta meta = chat_meta(s, a);
    chat_reply_first(stream_of(a), &meta);
}

static const char *new_logprobs(const answer *a)
{
    return a->opt.logprobs ? bytes_str(&a->logprobs) : NULL;
}

static const gen_timings *new_timings(const answer *a)
{
    return a->opt.timings_per_token ? &a->timings : NULL;
}

static void delta_chat(const serve *s, answer *a)
{
    const chat_reply_meta meta = chat_meta(s, a);
    if (chat_reply_delta(stream_of(a), &meta, &a->chat, &a->pieces, new_logprobs(a), new_timings(a))) {
        bytes_clear(&a->logprobs); /* else they wait for their text */
    }
}

static void delta_completion(const serve *s, answer *a)
{
    const chat_reply_meta meta = chat_meta(s, a);
    completion_reply_delta(stream_of(a), &meta, &a->pieces, new_logprobs(a), new_timings(a));
    bytes_clear(&a->logprobs);
}

static void write_progress(const serve *s, answer *a, const char *object)
{
    if (a->opt.return_progress && a->opt.stream && a->phase == GEN_PHASE_PREFILL) {
        const chat_reply_meta meta = chat_meta(s, a);
        chat_reply_progress(&a->sse, &meta, object, a->total, a->cached, a->processed,
                            clock_ms() - a->phase_start_ms);
    }
}

static void progress_chat(const serve *s, answer *a)
{
    write_progress(s, a, CHAT_REPLY_CHUNK);
}

static void progress_completion(const serve *s, answer *a)
{
    write_progress(s, a, COMPLETION_REPLY_OBJECT);
}

static void last_chat(serve *s, answer *a, const api_error *e)
{
    (void)e;
    const chat_reply_meta meta = chat_meta(s, a);
    chat_reply_last(stream_of(a), &meta, answer_finish_reason(a), &a->timings);
}

static void end_chat(const serve *s, answer *a)
{
    const chat_reply_meta meta = chat_meta(s, a);
    const reply_usage usage = answer_usage(a);
    chat_reply_end(&a->sse, &meta, CHAT_REPLY_CHUNK, &usage);
}

static void last_completion(serve *s, answer *a, const api_error *e)
{
    (void)e;
    const chat_reply_meta meta = chat_meta(s, a);
    completion_reply_last(stream_of(a), &meta, answer_finish_reason(a), &a->timings);
}

static void end_completion(const serve *s, answer *a)
{
    const chat_reply_meta meta = chat_meta(s, a);
    const reply_usage usage = answer_usage(a);
    chat_reply_end(&a->sse, &meta, COMPLETION_REPLY_OBJECT, &usage);
}

static const char *whole_logprobs(const answer *a)
{
    return a->opt.logprobs ? bytes_str(&a->whole_logprobs) : NULL;
}

typedef void choice_writer(bytes *out, const chat_reply_meta *m, const chat_reply_choice *choice);

/* The answer, and the other choices behind it. */
static void write_choices(const serve *s, const answer *a, bytes *out, const char *object,
                          choice_writer *write)
{
    const reply_usage usage = answer_usage(a);
    chat_reply_meta meta = chat_meta(s, a);
    chat_reply_begin_whole(out, &meta, object);
    for (int i = 0; i <= a->n_others; i++) {
        const answer *one = i ? a->others[i - 1] : a;
        const chat_reply_choice choice = {&one->whole, whole_logprobs(one), answer_finish_reason(one)};
        meta.index = i;
        bytes_append_str(out, i ? "," : "");
        write(out, &meta, &choice);
    }
    chat_reply_end_whole(out, &usage, &a->timings);
}

static void whole_chat(const serve *s, const answer *a, bytes *out)
{
    write_choices(s, a, out, "chat.completion", chat_reply_choice_whole);
}

static void whole_completion(const serve *s, const answer *a, bytes *out)
{
    write_choices(s, a, out, COMPLETION_REPLY_OBJECT, completion_reply_choice_whole);
}

/* ---- Messages ---- */

static messages_reply_meta messages_meta(const serve *s, const answer *a)
{
    const char *stop = a->n_calls == 0 ? a->content_stream.stop : NULL;
    return (messages_reply_meta){
        .id = a->chat_id,
        .model = model_of(s, a),
        .stop_reason = a->finish == GEN_FINISH_LENGTH     ? "max_tokens"
                       : a->finish == GEN_FINISH_FILTERED ? "refusal"
                       : a->n_calls > 0                   ? "tool_use"
                       : stop                             ? "stop_sequence"
                                                          : "end_turn",
        .stop_sequence = stop,
        .usage = answer_usage(a),
        .elsewhere = a->timings.server ? &a->timings : NULL,
        .edits = bytes_str(&a->edits),
    };
}

/* The message begins when it is known how much of its prompt the cache had. */
static void progress_messages(const serve *s, answer *a)
{
    if (a->opt.stream && a->phase == GEN_PHASE_PREFILL) {
        const messages_reply_meta meta = messages_meta(s, a);
        messages_reply_first(&a->sse, &meta, &a->messages);
    }
}

static void delta_messages(const serve *s, answer *a)
{
    const messages_reply_meta meta = messages_meta(s, a);
    messages_reply_delta(&a->sse, &meta, &a->messages, &a->pieces);
}

static void last_messages(serve *s, answer *a, const api_error *e)
{
    (void)e;
    const messages_reply_meta meta = messages_meta(s, a);
    messages_reply_last(&a->sse, &meta, &a->messages);
}

/* The thread with this message. */
static void append_message(const serve *s, answer *a, bytes *items)
{
    const messages_reply_meta meta = messages_meta(s, a);
    bytes_append_str(items, ",{\"role\":\"assistant\",\"content\":[");
    messages_reply_content(items, &meta, &a->whole);
    bytes_append_str(items, "]}");
}

static void whole_messages(const serve *s, const answer *a, bytes *out)
{
    const messages_reply_meta meta = messages_meta(s, a);
    messages_reply_whole(out, &meta, &a->whole);
}

/* ---- Ollama ---- */

static err_code parse_ollama_chat(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                  const engine_info *info, err_detail *d)
{
    (void)prompt;
    return ollama_request_parse(r, text, len, false, info, d);
}

static err_code parse_ollama_generate(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                      const engine_info *info, err_detail *d)
{
    (void)prompt;
    return ollama_request_parse(r, text, len, true, info, d);
}

static ollama_reply_meta ollama_meta(const serve *s, const answer *a)
{
    return (ollama_reply_meta){.model = model_of(s, a),
                               .is_generate = a->dialect == &dialect_ollama_generate};
}

static void delta_ollama(const serve *s, answer *a)
{
    const ollama_reply_meta meta = ollama_meta(s, a);
    ollama_reply_delta(&a->sse, &meta, &a->pieces);
    bytes_clear(&a->logprobs); /* which this dialect does not show */
}

static void write_ollama(const serve *s, const answer *a, bytes *out)
{
    const ollama_reply_meta meta = ollama_meta(s, a);
    const reply_usage usage = answer_usage(a);
    ollama_reply_end(out, &meta, &a->whole, a->opt.stream, answer_finish_reason(a), &usage, &a->timings);
}

static void last_ollama(serve *s, answer *a, const api_error *e)
{
    (void)e;
    write_ollama(s, a, &a->sse);
}

/* ---- embeddings and ranks ---- */

static vectors_meta vectors_meta_of(const serve *s, const answer *a)
{
    return (vectors_meta){.id = a->chat_id,
                          .model = model_of(s, a),
                          .pooling = s->info && s->info->pool == GEN_POOL_MEAN ? "mean" : "last",
                          .is_embedder = s->info && s->info->is_embedder,
                          .opt = &a->opt,
                          .usage = answer_usage(a),
                          .values = (const float *)(const void *)a->vectors.data,
                          .n = (size_t)a->n_vectors,
                          .size = (size_t)a->vector_size};
}

static void whole_embedding(const serve *s, const answer *a, bytes *out)
{
    const vectors_meta meta = vectors_meta_of(s, a);
    embedding_reply_write(out, &meta);
}

static void whole_ollama_embed(const serve *s, const answer *a, bytes *out)
{
    const vectors_meta meta = vectors_meta_of(s, a);
    ollama_embedding_write(out, &meta);
}

static void whole_rerank(const serve *s, const answer *a, bytes *out)
{
    const vectors_meta meta = vectors_meta_of(s, a);
    rerank_reply_write(out, &meta);
}

/* ---- Responses ---- */

static void first_responses(const serve *s, answer *a)
{
    responses_reply_init(&a->reply, &a->opt, model_of(s, a), s->opt->event_log_bytes);
    memcpy(a->reply.id, a->chat_id, sizeof a->reply.id); /* so is it called from its arrival on */
    a->reply.created_at = a->created_at;
    a->has_reply = true;
    responses_reply_created(&a->reply);
}

static void delta_responses(const serve *s, answer *a)
{
    (void)s;
    responses_reply_delta(&a->reply, &a->pieces, &a->logprobs);
}

static void progress_responses(const serve *s, answer *a)
{
    (void)s;
    if (a->phase == GEN_PHASE_QUEUED) {
        responses_reply_queued(&a->reply, a->processed);
    } else {
        responses_reply_in_progress(&a->reply);
    }
}

static response_status status_of(const answer *a)
{
    return a->finish == GEN_FINISH_LENGTH || a->finish == GEN_FINISH_FILTERED ? RESPONSE_INCOMPLETE
           : a->finish == GEN_FINISH_CANCELLED                                ? RESPONSE_CANCELLED
           : a->finish == GEN_FINISH_ERROR                                    ? RESPONSE_FAILED
                                                                              : RESPONSE_COMPLETED;
}

static void append_output(const serve *s, answer *a, bytes *items)
{
    (void)s;
    responses_reply_close(&a->reply, status_of(a));
    responses_reply_append_output(items, &a->reply);
}

static void last_responses(serve *s, answer *a, const api_error *e)
{
    (void)s;
    const response_result result = {
        .status = status_of(a),
        .error = a->finish == GEN_FINISH_CANCELLED ? NULL : e,
        .is_filtered = a->finish == GEN_FINISH_FILTERED,
        .usage = answer_usage(a),
        .timings = a->timings,
    };
    responses_reply_finish(&a->reply, &result);
}

static void whole_responses(const serve *s, const answer *a, bytes *out)
{
    (void)s;
    responses_reply_write(out, &a->reply);
}

/* The users' messages, then the item that stands for all of them. */
static void whole_compaction(const serve *s, const answer *a, bytes *out)
{
    const reply_usage usage = answer_usage(a);
    bytes summary = bytes_empty(SIZE_MAX);
    (void)s;
    for (size_t i = 0; i < a->whole.n; i++) {
        const reply_piece *p = &a->whole.items[i];
        if (p->kind == REPLY_CONTENT) {
            bytes_append(&summary, p->text.data, p->text.len);
        }
    }
    bytes_json(out, "{\"id\":%s,\"object\":\"response.compaction\",\"created_at\":%lld,\"output\":[",
               a->chat_id, (long long)a->created_at);
    bytes_append_str(out, a->opt.fields ? a->opt.fields : "");
    response_items_compaction(out, bytes_str(&summary), summary.len);
    bytes_append_str(out, "],\"incomplete_details\":");
    bytes_append_str(out, a->finish == GEN_FINISH_LENGTH ? "{\"reason\":\"max_output_tokens\"}" : "null");
    reply_json_responses_usage(out, &usage);
    bytes_append_char(out, '}');
    out->failed = out->failed || summary.failed;
    bytes_deinit(&summary);
}

/* ---- the tables ---- */

#define PING ":\n\n"

const dialect dialect_chat = {.name = "chat",
                              .id_prefix = "chatcmpl-",
                              .has_tools = true,
                              .parse = parse_chat,
                              .prepare = prepare_chat,
                              .first = first_chat,
                              .delta = delta_chat,
                              .progress = progress_chat,
                              .last = last_chat,
                              .end = end_chat,
                              .whole = whole_chat,
                              .error = chat_reply_error,
                              .ping = PING};

const dialect dialect_completion = {.name = "completion",
                                    .id_prefix = "cmpl-",
                                    .parse = completion_request_parse,
                                    .prepare = prepare_completion,
                                    .delta = delta_completion,
                                    .progress = progress_completion,
                                    .last = last_completion,
                                    .end = end_completion,
                                    .whole = whole_completion,
                                    .error = chat_reply_error,
                                    .ping = PING};

const dialect dialect_messages = {.name = "message",
                                  .id_prefix = "msg_",
                                  .has_tools = true,
                                  .parse = parse_messages,
                                  .prepare = prepare_chat,
                                  .delta = delta_messages,
                                  .progress = progress_messages,
                                  .last = last_messages,
                                  .whole = whole_messages,
                                  .error = messages_reply_error,
                                  .append_kept = append_message,
                                  .ping = MESSAGES_REPLY_PING};

#define OLLAMA(label, reader)                                                                                \
    {                                                                                                        \
        .name = (label), .id_prefix = "ollama-", .has_tools = true, .has_lines = true, .keeps_whole = true,  \
        .parse = (reader), .prepare = prepare_chat, .delta = delta_ollama, .last = last_ollama,              \
        .whole = write_ollama, .error = ollama_reply_error                                                   \
    }

const dialect dialect_ollama_chat = OLLAMA("ollama_chat", parse_ollama_chat);
const dialect dialect_ollama_generate = OLLAMA("ollama_generate", parse_ollama_generate);

const dialect dialect_embedding = {.name = "embedding",
                                   .id_prefix = "embd-",
                                   .has_vectors = true,
                                   .parse = embedding_request_parse,
                                   .prepare = embedding_request_prepare,
                                   .whole = whole_embedding};
const dialect dialect_ollama_embed = {.name = "ollama_embed",
                                      .id_prefix = "embd-",
                                      .has_vectors = true,
                                      .parse = embedding_request_parse,
                                      .prepare = embedding_request_prepare,
                                      .whole = whole_ollama_embed};
const dialect dialect_rerank = {.name = "rerank",
                                .id_prefix = "rerank-",
                                .has_vectors = true,
                                .parse = rerank_request_parse,
                                .prepare = rerank_request_prepare,
                                .whole = whole_rerank};

#define RESPONSES(body)                                                                                      \
    {                                                                                                        \
        .name = "response", .id_prefix = "resp_", .has_log = true, .has_tools = true, .parse = (body),       \
        .prepare = prepare_chat, .first = first_responses, .delta = delta_responses,                         \
        .progress = progress_responses, .last = last_responses, .whole = whole_responses,                    \
        .append_kept = append_output, .error = chat_reply_error, .ping = PING                                \
    }

const dialect dialect_responses = RESPONSES(parse_responses);
const dialect dialect_event = RESPONSES(parse_event);
const dialect dialect_compact = {.name = "compaction",
                                 .id_prefix = "resp_",
                                 .parse = parse_compact,
                                 .prepare = prepare_chat,
                                 .whole = whole_compaction};

#define QUERY(which) .name = "query", .id_prefix = "chatcmpl-", .is_query = true, .query = (which)

const dialect dialect_queries[] = {
    [QUERY_TOKENIZE] = {QUERY(QUERY_TOKENIZE)},
    [QUERY_DETOKENIZE] = {QUERY(QUERY_DETOKENIZE)},
    [QUERY_TEMPLATE] = {QUERY(QUERY_TEMPLATE)},
    [QUERY_COUNT_CHAT] = {QUERY(QUERY_COUNT_CHAT)},
    [QUERY_COUNT_MESSAGES] = {QUERY(QUERY_COUNT_MESSAGES)},
    [QUERY_COUNT_RESPONSES] = {QUERY(QUERY_COUNT_RESPONSES)},
};

/* ---- cached prompts with a name ---- */

static err_code parse_cache_save(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                 const engine_info *info, err_detail *d)
{
    const bool is_chat = json_get(json_root(r->doc), "messages") != NULL;
    const err_code err = is_chat ? chat_request_parse(r, text, len, info, d)
                                 : completion_request_parse(r, prompt, text, len, info, d);
    if (err == ERR_OK) { /* the prompt is what is wanted, computed whole and with the draft head's part */
        gen_params *p = &r->in->params;
        p->max_tokens = 1;
        p->no_cache = p->no_draft = false;
        p->spec_prefill = 0;
        p->n_top_logprobs = -1;
        r->reply.stream = r->reply.logprobs = false;
    }
    return err;
}

static err_code prepare_cache_save(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                   engine *e, const prepare_hooks *hooks, err_detail *d)
{
    err_code err = engine_check_name(e, r->cache_name, d);
    if (err == ERR_OK) {
        err = r->in->n_messages ? engine_prepare(e, out, r->in, hooks, d)
                                : completion_request_prepare(out, r, prompt, e, d);
    }
    if (err == ERR_OK) {
        gen_request_keep_as(*out, r->cache_name);
    }
    return err;
}

static err_code parse_cache_load(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                 const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    (void)prompt, (void)info;
    if (api_request_open(r, &root, text, len, d) == ERR_OK) {
        api_request_model(r, root);
    }
    return r->error.code;
}

static err_code prepare_cache_load(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                   engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)prompt, (void)hooks;
    return engine_prepare_load(e, out, r->scope, r->cache_name, d);
}

static void write_cache_entry(const serve *s, const answer *a, bool is_load, bytes *out)
{
    engine_cached one = {.n_tokens = a->timings.cache_n};
    (void)(s->engine && engine_find_named(s->engine, a->scope, a->cache_name, false, &one));
    snprintf(one.name, sizeof one.name, "%s", a->cache_name);
    one.is_on_disk = !is_load;
    serve_write_cached(out, &one);
    bytes_printf(out, ",\"cached_tokens\":%d,\"computed_tokens\":%d}", a->timings.cache_n,
                 a->timings.prompt_n);
}

static void whole_cache_save(const serve *s, const answer *a, bytes *out)
{
    write_cache_entry(s, a, false, out);
}

static void whole_cache_load(const serve *s, const answer *a, bytes *out)
{
    write_cache_entry(s, a, true, out);
}

const dialect dialect_cache_save = {.name = "cache",
                                    .id_prefix = "cache_",
                                    .parse = parse_cache_save,
                                    .prepare = prepare_cache_save,
                                    .whole = whole_cache_save};

const dialect dialect_cache_load = {.name = "cache",
                                    .id_prefix = "cache_",
                                    .parse = parse_cache_load,
                                    .prepare = prepare_cache_load,
                                    .whole = whole_cache_load};

const dialect dialect_load = {.name = "load", .id_prefix = "chatcmpl-"};
