#include "server/protocol/dialects/ollama_reply.h"

#include <string.h>

#include "base/clock.h"

static void write_head(bytes *out, const ollama_reply_meta *m)
{
    char now[CLOCK_DATE_MAX];
    clock_date(now, clock_unix_s());
    bytes_json(out, "{\"model\":%s,\"created_at\":%s", m->model, now);
}

static void write_texts(bytes *out, const ollama_reply_meta *m, const bytes *content, const bytes *thinking,
                        const bytes *calls)
{
    bytes_append_str(out, m->is_generate ? "" : ",\"message\":{\"role\":\"assistant\"");
    bytes_json(out, ",%s:%.*s", m->is_generate ? "response" : "content", BYTES_ARG(content));
    if (thinking->len > 0) {
        bytes_json(out, ",\"thinking\":%.*s", BYTES_ARG(thinking));
    }
    if (calls->len > 0) {
        bytes_json(out, ",\"tool_calls\":[%-s]", bytes_str(calls));
    }
    bytes_append_str(out, m->is_generate ? "" : "}");
}

void ollama_reply_delta(bytes *out, const ollama_reply_meta *m, const reply_pieces *pieces)
{
    const bytes none = bytes_empty(1);
    for (size_t i = 0; i < pieces->n; i++) {
        const reply_piece *p = &pieces->items[i];
        const bool is_thought = p->kind == REPLY_REASONING;
        if (is_thought || p->kind == REPLY_CONTENT) {
            write_head(out, m);
            write_texts(out, m, is_thought ? &none : &p->text, is_thought ? &p->text : &none, &none);
            bytes_append_str(out, ",\"done\":false}\n");
        }
    }
}

/* A call whose arguments are whole. */
static void add_call(bytes *calls, const reply_piece *p, const reply_piece *end)
{
    const bool has_arguments = p + 1 < end && p[1].kind == REPLY_ARGUMENTS;
    const reply_piece *last = p + 1 + has_arguments;
    if (last < end && last->kind == REPLY_CALL_END) {
        bytes_json(calls, "%-s{\"function\":{\"name\":%.*s,\"arguments\":%-s}}", calls->len ? "," : "",
                   BYTES_ARG(&p->text), has_arguments ? bytes_str(&p[1].text) : "{}");
    }
}

static long long nanoseconds(double ms)
{
    return (long long)(ms * 1e6);
}

void ollama_reply_end(bytes *out, const ollama_reply_meta *m, const reply_pieces *all, bool was_streamed,
                      const char *finish, const reply_usage *usage, const gen_timings *t)
{
    bytes content = bytes_empty(SIZE_MAX), thinking = bytes_empty(SIZE_MAX), calls = bytes_empty(SIZE_MAX);
    for (size_t i = 0; i < all->n; i++) {
        const reply_piece *p = &all->items[i];
        bytes *to = p->kind == REPLY_REASONING ? &thinking : p->kind == REPLY_CONTENT ? &content : NULL;
        if (p->kind == REPLY_CALL) {
            add_call(&calls, p, all->items + all->n);
        } else if (to && !was_streamed) {
            bytes_append(to, p->text.data, p->text.len);
        }
    }
    write_head(out, m);
    write_texts(out, m, &content, &thinking, &calls);
    const char *cut = usage->completion_tokens > 0 ? "length" : "load"; /* nothing was asked */
    bytes_json(out, ",\"done\":true,\"done_reason\":%s", strcmp(finish, "length") == 0 ? cut : "stop");
    bytes_printf(out,
                 ",\"total_duration\":%lld,\"load_duration\":0,\"prompt_eval_count\":%d,"
                 "\"prompt_eval_duration\":%lld,\"eval_count\":%d,\"eval_duration\":%lld}\n",
                 nanoseconds(t->queue_ms + t->media_ms + t->vision_ms + t->prompt_ms + t->predicted_ms),
                 usage->prompt_tokens, nanoseconds(t->prompt_ms), usage->completion_tokens,
                 nanoseconds(t->predicted_ms));
    out->failed = out->failed || content.failed || thinking.failed || calls.failed;
    bytes_deinit(&content);
    bytes_deinit(&thinking);
    bytes_deinit(&calls);
}

void ollama_reply_error_body(bytes *out, const api_error *e)
{
    bytes_json(out, "{\"error\":%s}", e->message);
}

void ollama_reply_error(bytes *out, const api_error *e)
{
    ollama_reply_error_body(out, e);
    bytes_append_char(out, '\n');
}
