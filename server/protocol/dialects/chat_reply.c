#include "server/protocol/dialects/chat_reply.h"

#include <string.h>

#include "base/hash.h"

void chat_reply_identity(bytes *out, const chat_reply_meta *m, const char *object)
{
    bytes_json(out, "{\"id\":%s,\"object\":%s,\"created\":%lld,\"model\":%s,\"system_fingerprint\":%s", m->id,
               object, (long long)m->created, m->model, m->fingerprint);
}

void chat_reply_end(bytes *out, const chat_reply_meta *m, const char *object, const reply_usage *usage)
{
    if (m->include_usage) {
        bytes_append_str(out, "data: ");
        chat_reply_identity(out, m, object);
        bytes_append_str(out, ",\"choices\":[]");
        reply_json_usage(out, usage);
        bytes_append_str(out, "}\n\n");
    }
    bytes_append_str(out, "data: [DONE]\n\n");
}

static void write_logprobs(bytes *out, const char *entries)
{
    if (entries) {
        bytes_printf(out, ",\"logprobs\":{\"content\":[%s],\"refusal\":null}", entries);
    } else {
        bytes_append_str(out, ",\"logprobs\":null");
    }
}

/* The field or fields that hold the thoughts. */
static void write_reasoning(bytes *out, const chat_reply_meta *m, const bytes *text)
{
    const char *field = m->reasoning_field ? m->reasoning_field : "content";
    const bool both = strcmp(field, "both") == 0;
    if (both || strcmp(field, "content") == 0) {
        bytes_json(out, "\"reasoning_content\":%.*s", BYTES_ARG(text));
    }
    if (both || strcmp(field, "reasoning") == 0) {
        bytes_json(out, "%-s\"reasoning\":%.*s", both ? "," : "", BYTES_ARG(text));
    }
}

/* Begins a call: {"id":..,"type":"function","function":{"name":..,"arguments": */
static void write_call_head(bytes *out, const bytes *name)
{
    char id[48];
    hash_random_id(id, sizeof id, "call_");
    bytes_json(out, "\"id\":%s,\"type\":\"function\",\"function\":{\"name\":%.*s,\"arguments\":", id,
               BYTES_ARG(name));
}

/* Appends the text of a content piece; a paragraph of its own if a call stood before it. */
static void add_content(bytes *out, chat_reply_state *state, const bytes *text)
{
    bytes_append_str(out, state->needs_gap ? "\n\n" : "");
    bytes_append(out, text->data, text->len);
    state->has_content = true;
    state->needs_gap = false;
}

/* A call that this server runs; the other items are of no use here. */
static bool is_run(const bytes *item)
{
    return strstr(bytes_str(item), "\"type\":\"mcp_call\"") != NULL;
}

/* Those that were run, with the comma in front. */
static void write_runs(bytes *out, const reply_pieces *pieces)
{
    int n = 0;
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        if (p->kind == REPLY_ITEM && is_run(&p->text)) {
            bytes_append_str(out, n++ ? "," : ",\"mcp_calls\":[");
            bytes_append(out, p->text.data, p->text.len);
        }
    }
    bytes_append_str(out, n ? "]" : "");
}

/* The calls of a whole reply, with the comma in front; nothing if there are none. */
static void write_calls(bytes *out, const reply_pieces *pieces)
{
    int n = 0;
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        const reply_piece *next = i + 1 < pieces->n ? p + 1 : NULL;
        if (p->kind != REPLY_CALL) {
            continue;
        }
        bytes_append_str(out, n++ ? ",{" : ",\"tool_calls\":[{");
        write_call_head(out, &p->text);
        bool has_arguments = next && next->kind == REPLY_ARGUMENTS;
        bytes_append_json(out, has_arguments ? bytes_str(&next->text) : "",
                          has_arguments ? next->text.len : 0);
        bytes_append_str(out, "}}");
    }
    bytes_append_str(out, n ? "]" : "");
}

void chat_reply_begin_whole(bytes *out, const chat_reply_meta *m, const char *object)
{
    chat_reply_identity(out, m, object);
    bytes_append_str(out, ",\"choices\":[");
}

void chat_reply_end_whole(bytes *out, const reply_usage *usage, const gen_timings *t)
{
    bytes_append_char(out, ']');
    reply_json_usage(out, usage);
    reply_json_timings(out, t);
    bytes_append_char(out, '}');
}

void chat_reply_choice_whole(bytes *out, const chat_reply_meta *m, const chat_reply_choice *choice)
{
    const reply_pieces *pieces = choice->pieces;
    chat_reply_state state = {0};
    bytes content = bytes_empty(SIZE_MAX);
    bytes reasoning = bytes_empty(SIZE_MAX);
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        if (p->kind == REPLY_CONTENT) {
            add_content(&content, &state, &p->text);
        } else if (p->kind == REPLY_REASONING) {
            bytes_append(&reasoning, p->text.data, p->text.len);
        } else if (p->kind == REPLY_CALL || p->kind == REPLY_ITEM) {
            state.n_calls += p->kind == REPLY_CALL;
            state.needs_gap = state.has_content;
        }
    }
    bytes_printf(out, "{\"index\":%d,\"message\":{\"role\":\"assistant\",\"content\":", m->index);
    if (content.len == 0 && state.n_calls > 0) {
        bytes_append_str(out, "null");
    } else {
        bytes_append_json(out, bytes_str(&content), content.len);
    }
    if (reasoning.len > 0) {
        bytes_append_char(out, ',');
        write_reasoning(out, m, &reasoning);
    }
    out->failed = out->failed || content.failed || reasoning.failed;
    bytes_deinit(&content);
    bytes_deinit(&reasoning);
    write_calls(out, pieces);
    write_runs(out, pieces);
    bytes_append_str(out, ",\"refusal\":null}");
    write_logprobs(out, choice->logprobs);
    bytes_json(out, ",\"finish_reason\":%s}", choice->finish);
}

static void begin_chunk_of(bytes *out, const chat_reply_meta *m, const char *object)
{
    bytes_append_str(out, "data: ");
    chat_reply_identity(out, m, object);
    bytes_append_str(out, m->include_usage ? ",\"usage\":null" : "");
}

static void begin_chunk(bytes *out, const chat_reply_meta *m)
{
    begin_chunk_of(out, m, CHAT_REPLY_CHUNK);
}

static void end_chunk(bytes *out)
{
    bytes_append_str(out, "}\n\n");
}

void chat_reply_first(bytes *out, const chat_reply_meta *m)
{
    begin_chunk(out, m);
    bytes_printf(out,
                 ",\"choices\":[{\"index\":%d,\"delta\":{\"role\":\"assistant\",\"content\":null},"
                 "\"logprobs\":null,\"finish_reason\":null}]",
                 m->index);
    end_chunk(out);
}

static void write_delta(bytes *out, const chat_reply_meta *m, const bytes *delta, const char *logprobs,
                        const gen_timings *t)
{
    begin_chunk(out, m);
    bytes_printf(out, ",\"choices\":[{\"index\":%d,\"delta\":{%s}", m->index, bytes_str(delta));
    write_logprobs(out, logprobs);
    bytes_append_str(out, ",\"finish_reason\":null}]");
    reply_json_timings(out, t);
    end_chunk(out);
}

/* The members of a delta; empty for a piece that needs no chunk. */
static void write_piece(bytes *delta, const chat_reply_meta *m, chat_reply_state *state, const reply_piece *p)
{
    bytes text;
    switch (p->kind) {
    case REPLY_REASONING:
        write_reasoning(delta, m, &p->text);
        break;
    case REPLY_CONTENT:
        bytes_init(&text, SIZE_MAX);
        add_content(&text, state, &p->text);
        bytes_json(delta, "\"content\":%.*s", BYTES_ARG(&text));
        delta->failed = delta->failed || text.failed; /* else a delta without its text */
        bytes_deinit(&text);
        break;
    case REPLY_CALL:
        bytes_printf(delta, "\"tool_calls\":[{\"index\":%d,", state->n_calls++);
        write_call_head(delta, &p->text);
        bytes_append_str(delta, "\"\"}}]");
        state->needs_gap = state->has_content;
        break;
    case REPLY_ARGUMENTS:
        bytes_json(delta, "\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":%.*s}}]",
                   state->n_calls - 1, BYTES_ARG(&p->text));
        break;
    case REPLY_ITEM:
        if (is_run(&p->text)) {
            bytes_printf(delta, "\"mcp_calls\":[%s]", bytes_str(&p->text));
            state->needs_gap = state->has_content;
        }
        break;
    default:
        break;
    }
}

bool chat_reply_delta(bytes *out, const chat_reply_meta *m, chat_reply_state *state,
                      const reply_pieces *pieces, const char *logprobs, const gen_timings *t)
{
    bool sent = false;
    bytes delta = bytes_empty(SIZE_MAX);
    for (size_t i = 0; i < pieces->n; i++) {
        bool first_content = pieces->items[i].kind == REPLY_CONTENT && !sent;
        write_piece(&delta, m, state, &pieces->items[i]);
        if (delta.len > 0) {
            write_delta(out, m, &delta, first_content ? logprobs : NULL, t);
        }
        sent = sent || first_content;
        out->failed = out->failed || delta.failed;
        bytes_clear(&delta);
    }
    bytes_deinit(&delta);
    return sent;
}

void chat_reply_progress(bytes *out, const chat_reply_meta *m, const char *object, int32_t total,
                         int32_t cache, int32_t processed, double ms)
{
    begin_chunk_of(out, m, object);
    bytes_printf(out,
                 ",\"choices\":[],\"prompt_progress\":{\"total\":%d,\"cache\":%d,\"processed\":%d,"
                 "\"time_ms\":%.0f}",
                 total, cache, processed, ms);
    end_chunk(out);
}

void chat_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const gen_timings *t)
{
    begin_chunk(out, m);
    bytes_json(out, ",\"choices\":[{\"index\":%d,\"delta\":{},\"logprobs\":null,\"finish_reason\":%s}]",
               m->index, finish);
    reply_json_timings(out, t);
    end_chunk(out);
}

void chat_reply_error(bytes *out, const api_error *e)
{
    bytes_append_str(out, "data: ");
    api_error_write_body(out, e);
    bytes_append_str(out, "\n\n");
}
