#include "server/protocol/dialects/messages_reply.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

/* What is in the cache is not counted among input_tokens. */
static void write_usage(bytes *out, const reply_usage *u)
{
    bytes_printf(
        out,
        ",\"usage\":{\"input_tokens\":%d,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%d,"
        "\"output_tokens\":%d}",
        u->prompt_tokens - u->cached_tokens, u->cached_tokens, u->completion_tokens);
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

/* A block without its closing brace; text: of a thought or of words, the name of a call. */
static void write_block(bytes *out, reply_kind kind, const char *text, size_t len)
{
    char id[48];
    switch (kind) {
    case REPLY_REASONING:
        bytes_append_str(out, "{\"type\":\"thinking\",\"signature\":\"\",\"thinking\":");
        break;
    case REPLY_CONTENT:
        bytes_append_str(out, "{\"type\":\"text\",\"text\":");
        break;
    default:
        hash_random_id(id, sizeof id, "toolu_");
        bytes_printf(out, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", id);
        break;
    }
    bytes_append_json(out, text, len);
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

void messages_reply_whole(bytes *out, const messages_reply_meta *m, const reply_pieces *pieces)
{
    int n = 0;
    write_head(out, m);
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        if (!begins_block(p->kind)) {
            continue;
        }
        bytes_append_str(out, n++ ? "," : "");
        write_block(out, p->kind, bytes_str(&p->text), p->text.len);
        if (p->kind == REPLY_CALL) {
            write_input(out, i + 1 < pieces->n && p[1].kind == REPLY_ARGUMENTS ? &p[1].text : NULL);
        }
        bytes_append_char(out, '}');
    }
    bytes_append_str(out, "],");
    write_stop(out, m);
    write_usage(out, &m->usage);
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

void messages_reply_first(bytes *out, const messages_reply_meta *m)
{
    begin_event(out, "message_start");
    bytes_append_str(out, ",\"message\":");
    write_head(out, m);
    bytes_append_str(out, "],\"stop_reason\":null,\"stop_sequence\":null");
    write_usage(out, &m->usage);
    bytes_append_char(out, '}');
    end_event(out);
}

static void end_block(bytes *out, messages_reply_state *state)
{
    if (state->is_open) {
        begin_event(out, "content_block_stop");
        bytes_printf(out, ",\"index\":%d", state->n_blocks - 1);
        end_event(out);
    }
    state->is_open = false;
}

static void begin_block(bytes *out, messages_reply_state *state, const reply_piece *p)
{
    const bool is_call = p->kind == REPLY_CALL;
    if (state->is_open && state->kind == p->kind && !is_call) {
        return;
    }
    end_block(out, state);
    begin_event(out, "content_block_start");
    bytes_printf(out, ",\"index\":%d,\"content_block\":", state->n_blocks++);
    write_block(out, p->kind, is_call ? bytes_str(&p->text) : "", is_call ? p->text.len : 0);
    bytes_append_str(out, is_call ? ",\"input\":{}}" : "}");
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

void messages_reply_delta(bytes *out, messages_reply_state *state, const reply_pieces *pieces)
{
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        if (begins_block(p->kind)) {
            begin_block(out, state, p);
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
            end_block(out, state);
            break;
        default:
            break;
        }
    }
}

void messages_reply_last(bytes *out, const messages_reply_meta *m, messages_reply_state *state)
{
    end_block(out, state);
    begin_event(out, "message_delta");
    bytes_append_str(out, ",\"delta\":{");
    write_stop(out, m);
    bytes_append_char(out, '}');
    write_usage(out, &m->usage);
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
    bytes_json(out, ",\"error\":{\"type\":%s,\"message\":%s}", error_type(e), e->message);
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
