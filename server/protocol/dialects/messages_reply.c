#include "server/protocol/dialects/messages_reply.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"

/* What is in the cache is not counted among input_tokens. */
static void write_usage(bytes *out, const reply_usage *u)
{
    bytes_printf(
        out,
        ",\"usage\":{\"input_tokens\":%d,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%d,"
        "\"output_tokens\":%d,\"output_tokens_details\":{\"thinking_tokens\":%d}}",
        u->prompt_tokens - u->cached_tokens, u->cached_tokens, u->completion_tokens, u->reasoning_tokens);
}

static void write_edits(bytes *out, const messages_reply_meta *m)
{
    if (m->edits[0]) {
        bytes_json(out, ",\"context_management\":{\"applied_edits\":%-s}", m->edits);
    }
}

static void write_head(bytes *out, const messages_reply_meta *m)
{
    bytes_json(out, "{\"id\":%s,\"type\":\"message\",\"role\":\"assistant\",\"model\":%s,\"content\":[",
               m->id, m->model);
}

static void write_stop(bytes *out, const messages_reply_meta *m)
{
    bytes_json(out, "\"stop_reason\":%s,\"stop_sequence\":%s", m->stop_reason, m->stop_sequence);
}

/* What is random in the message's id: it makes those of its calls, so that they are the same whenever
 * the message is written. */
static const char *own_id(const messages_reply_meta *m)
{
    return strchr(m->id, '_') + 1;
}

/* Block number n without its closing brace; text: of a thought or of words, the name of a call. */
static void write_block(bytes *out, const messages_reply_meta *m, int n, reply_kind kind, const char *text,
                        size_t len)
{
    switch (kind) {
    case REPLY_REASONING:
        bytes_append_str(out, "{\"type\":\"thinking\",\"thinking\":");
        break;
    case REPLY_CONTENT:
        bytes_append_str(out, "{\"type\":\"text\",\"text\":");
        break;
    default:
        bytes_printf(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%s%02d\",\"name\":", own_id(m), n);
        break;
    }
    bytes_append_json(out, text, len);
}

static void write_signature(bytes *out, const messages_reply_meta *m)
{
    bytes_json(out, "\"signature\":%s", own_id(m));
}

/* A cut call's arguments are no JSON. */
static void write_input(bytes *out, const bytes *arguments)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    const err_code err = arguments
                             ? json_parse(&doc, bytes_str(arguments), arguments->len, LIMIT_JSON_DEPTH, &d)
                             : ERR_CORRUPT;
    bytes_append_str(out, ",\"input\":");
    if (err == ERR_OK && json_is(json_root(doc), JSON_OBJECT)) {
        json_write(out, json_root(doc));
    } else {
        bytes_append_str(out, "{}");
    }
    json_free(doc);
}

static bool begins_block(reply_kind kind)
{
    return kind == REPLY_REASONING || kind == REPLY_CONTENT || kind == REPLY_CALL;
}

/* ---- calls that this server runs ---- */

/* The call as a block. */
static void write_run(bytes *out, const json *item)
{
    const char *arguments = json_str(json_get(item, "arguments"), "{}");
    const bytes text = {.data = (char *)arguments, .len = strlen(arguments)};
    bytes_json(out, "{\"type\":\"mcp_tool_use\",\"id\":%s,\"name\":%s,\"server_name\":%s",
               json_str(json_get(item, "id"), ""), json_str(json_get(item, "name"), ""),
               json_str(json_get(item, "server_label"), ""));
    write_input(out, &text);
    bytes_append_char(out, '}');
}

/* What it brought. */
static void write_brought(bytes *out, const json *item)
{
    const char *error = json_str(json_get(item, "error"), NULL);
    bytes_json(out,
               "{\"type\":\"mcp_tool_result\",\"tool_use_id\":%s,\"is_error\":%hhd,\"content\":["
               "{\"type\":\"text\",\"text\":%s}]}",
               json_str(json_get(item, "id"), ""), error != NULL,
               error ? error : json_str(json_get(item, "output"), ""));
}

/* The call that a piece is about; NULL if it is none. The caller frees it. */
static json_doc *read_run(const reply_piece *p)
{
    json_doc *doc = NULL;
    if (json_parse(&doc, bytes_str(&p->text), p->text.len, LIMIT_JSON_DEPTH, NULL) != ERR_OK ||
        strcmp(json_str(json_get(json_root(doc), "type"), ""), "mcp_call") != 0) {
        json_free(doc);
        return NULL;
    }
    return doc;
}

static bool is_over(const json *item)
{
    return strcmp(json_str(json_get(item, "status"), ""), "in_progress") != 0;
}

void messages_reply_content(bytes *out, const messages_reply_meta *m, const reply_pieces *pieces)
{
    int n = 0;
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        json_doc *run = p->kind == REPLY_ITEM ? read_run(p) : NULL;
        if (run) {
            bytes_append_str(out, n ? "," : "");
            write_run(out, json_root(run));
            bytes_append_char(out, ',');
            write_brought(out, json_root(run));
            json_free(run);
            n += 2;
        }
        if (!begins_block(p->kind)) {
            continue;
        }
        bytes_append_str(out, n ? "," : "");
        write_block(out, m, n++, p->kind, bytes_str(&p->text), p->text.len);
        if (p->kind == REPLY_CALL) {
            write_input(out, i + 1 < pieces->n && p[1].kind == REPLY_ARGUMENTS ? &p[1].text : NULL);
        } else if (p->kind == REPLY_REASONING) {
            bytes_append_char(out, ',');
            write_signature(out, m);
        }
        bytes_append_char(out, '}');
    }
}

void messages_reply_whole(bytes *out, const messages_reply_meta *m, const reply_pieces *pieces)
{
    write_head(out, m);
    messages_reply_content(out, m, pieces);
    bytes_append_str(out, "],");
    write_stop(out, m);
    write_usage(out, &m->usage);
    write_edits(out, m);
    reply_json_timings(out, m->elsewhere);
    bytes_append_char(out, '}');
}

/* ---- events ---- */

static void begin_event(bytes *out, const char *type)
{
    bytes_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void end_event(bytes *out)
{
    bytes_append_str(out, "}\n\n");
}

void messages_reply_first(bytes *out, const messages_reply_meta *m, messages_reply_state *state)
{
    if (state->is_begun) {
        return;
    }
    state->is_begun = true;
    begin_event(out, "message_start");
    bytes_append_str(out, ",\"message\":");
    write_head(out, m);
    bytes_append_str(out, "],\"stop_reason\":null,\"stop_sequence\":null");
    write_usage(out, &m->usage);
    bytes_append_char(out, '}');
    end_event(out);
}

static void end_block(bytes *out, const messages_reply_meta *m, messages_reply_state *state)
{
    if (state->is_open && state->kind == REPLY_REASONING) {
        begin_event(out, "content_block_delta");
        bytes_printf(out, ",\"index\":%d,\"delta\":{\"type\":\"signature_delta\",", state->n_blocks - 1);
        write_signature(out, m);
        bytes_append_char(out, '}');
        end_event(out);
    }
    if (state->is_open) {
        begin_event(out, "content_block_stop");
        bytes_printf(out, ",\"index\":%d", state->n_blocks - 1);
        end_event(out);
    }
    state->is_open = false;
}

static void begin_block(bytes *out, const messages_reply_meta *m, messages_reply_state *state,
                        const reply_piece *p)
{
    const bool is_call = p->kind == REPLY_CALL;
    if (state->is_open && state->kind == p->kind && !is_call) {
        return;
    }
    end_block(out, m, state);
    begin_event(out, "content_block_start");
    bytes_printf(out, ",\"index\":%d,\"content_block\":", state->n_blocks);
    write_block(out, m, state->n_blocks++, p->kind, is_call ? bytes_str(&p->text) : "",
                is_call ? p->text.len : 0);
    bytes_append_str(out, is_call                      ? ",\"input\":{}}"
                          : p->kind == REPLY_REASONING ? ",\"signature\":\"\"}"
                                                       : "}");
    end_event(out);
    state->is_open = true;
    state->kind = p->kind;
}

static void write_delta(bytes *out, const messages_reply_state *state, const char *type, const char *field,
                        const bytes *text)
{
    begin_event(out, "content_block_delta");
    bytes_json(out, ",\"index\":%d,\"delta\":{\"type\":%s,%s:%.*s}", state->n_blocks - 1, type, field,
               BYTES_ARG(text));
    end_event(out);
}

/* A call or its result: a block each. */
static void run_block(bytes *out, const messages_reply_meta *m, messages_reply_state *state,
                      const reply_piece *p)
{
    json_doc *run = read_run(p);
    if (run) {
        end_block(out, m, state);
        begin_event(out, "content_block_start");
        bytes_printf(out, ",\"index\":%d,\"content_block\":", state->n_blocks++);
        (is_over(json_root(run)) ? write_brought : write_run)(out, json_root(run));
        end_event(out);
        state->is_open = true;
        state->kind = REPLY_ITEM;
        end_block(out, m, state);
        json_free(run);
    }
}

void messages_reply_delta(bytes *out, const messages_reply_meta *m, messages_reply_state *state,
                          const reply_pieces *pieces)
{
    messages_reply_first(out, m, state);
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        if (begins_block(p->kind)) {
            begin_block(out, m, state, p);
        }
        switch (p->kind) {
        case REPLY_REASONING:
            write_delta(out, state, "thinking_delta", "thinking", &p->text);
            break;
        case REPLY_CONTENT:
            write_delta(out, state, "text_delta", "text", &p->text);
            break;
        case REPLY_ARGUMENTS:
            write_delta(out, state, "input_json_delta", "partial_json", &p->text);
            break;
        case REPLY_CALL_END:
        case REPLY_CALL_CUT:
            end_block(out, m, state);
            break;
        case REPLY_ITEM:
            run_block(out, m, state, p);
            break;
        default:
            break;
        }
    }
}

void messages_reply_last(bytes *out, const messages_reply_meta *m, messages_reply_state *state)
{
    messages_reply_first(out, m, state);
    end_block(out, m, state);
    begin_event(out, "message_delta");
    bytes_append_str(out, ",\"delta\":{");
    write_stop(out, m);
    bytes_append_char(out, '}');
    write_usage(out, &m->usage);
    write_edits(out, m);
    reply_json_timings(out, m->elsewhere);
    end_event(out);
    begin_event(out, "message_stop");
    end_event(out);
}

/* ---- errors ---- */

static const char *error_type(const api_error *e)
{
    switch (e->status) {
    case 401:
    case 403:
    case 404:
    case 413:
    case 429:
    case 504:
        return e->type; /* the names are the same */
    case 499:
    case 503:
        return "overloaded_error";
    default:
        return e->status >= 500 ? "api_error" : "invalid_request_error";
    }
}

static void write_error(bytes *out, const api_error *e)
{
    bytes_json(out, ",\"error\":{\"type\":%s,\"message\":%s,\"details\":", error_type(e), e->message);
    if (e->code[0]) {
        bytes_json(out, "{\"error_code\":%s}}", e->code);
    } else {
        bytes_append_str(out, "null}");
    }
}

void messages_reply_error_body(bytes *out, const api_error *e)
{
    bytes_append_str(out, "{\"type\":\"error\"");
    write_error(out, e);
    bytes_append_char(out, '}');
}

void messages_reply_error(bytes *out, const api_error *e)
{
    begin_event(out, "error");
    write_error(out, e);
    end_event(out);
}
