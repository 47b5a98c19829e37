#include "server/chat_reply.h"

#include <string.h>

static void write_identity(bytes *out, const chat_reply_meta *m, const char *object)
{
    bytes_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", m->id, object,
                 (long long)m->created);
    bytes_append_json(out, m->model, strlen(m->model));
    bytes_printf(out, ",\"system_fingerprint\":\"%s\"", m->fingerprint);
}

static void write_logprobs(bytes *out, const char *entries)
{
    if (entries) {
        bytes_printf(out, ",\"logprobs\":{\"content\":[%s],\"refusal\":null}", entries);
    } else {
        bytes_append_str(out, ",\"logprobs\":null");
    }
}

void chat_reply_whole(bytes *out, const chat_reply_meta *m, const bytes *reasoning, const bytes *content,
                      const char *logprobs, const char *finish, const reply_usage *usage,
                      const gen_timings *t)
{
    write_identity(out, m, "chat.completion");
    bytes_append_str(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    bytes_append_json(out, bytes_str(content), content->len);
    if (reasoning->len > 0) {
        bytes_append_str(out, ",\"reasoning_content\":");
        bytes_append_json(out, bytes_str(reasoning), reasoning->len);
    }
    bytes_append_str(out, ",\"refusal\":null}");
    write_logprobs(out, logprobs);
    bytes_printf(out, ",\"finish_reason\":\"%s\"}],\"usage\":", finish);
    reply_json_usage(out, usage);
    bytes_append_str(out, ",\"timings\":");
    reply_json_timings(out, t);
    bytes_append_char(out, '}');
}

static void begin_chunk(bytes *out, const chat_reply_meta *m)
{
    bytes_append_str(out, "data: ");
    write_identity(out, m, "chat.completion.chunk");
    if (m->include_usage) {
        bytes_append_str(out, ",\"usage\":null");
    }
}

static void end_chunk(bytes *out)
{
    bytes_append_str(out, "}\n\n");
}

void chat_reply_first(bytes *out, const chat_reply_meta *m)
{
    begin_chunk(out, m);
    bytes_append_str(out, ",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                          "\"logprobs\":null,\"finish_reason\":null}]");
    end_chunk(out);
}

static void write_delta(bytes *out, const chat_reply_meta *m, const char *field, const bytes *text,
                        const char *logprobs, const gen_timings *t)
{
    begin_chunk(out, m);
    bytes_printf(out, ",\"choices\":[{\"index\":0,\"delta\":{\"%s\":", field);
    bytes_append_json(out, bytes_str(text), text->len);
    bytes_append_char(out, '}');
    write_logprobs(out, logprobs);
    bytes_append_str(out, ",\"finish_reason\":null}]");
    if (t) {
        bytes_append_str(out, ",\"timings\":");
        reply_json_timings(out, t);
    }
    end_chunk(out);
}

void chat_reply_delta(bytes *out, const chat_reply_meta *m, const bytes *reasoning, const bytes *content,
                      const char *logprobs, const gen_timings *t)
{
    if (reasoning->len > 0) {
        write_delta(out, m, "reasoning_content", reasoning, NULL, t);
    }
    if (content->len > 0) {
        write_delta(out, m, "content", content, logprobs, t);
    }
}

void chat_reply_progress(bytes *out, const chat_reply_meta *m, int32_t total, int32_t cache,
                         int32_t processed, double ms)
{
    begin_chunk(out, m);
    bytes_printf(out,
                 ",\"choices\":[],\"prompt_progress\":{\"total\":%d,\"cache\":%d,\"processed\":%d,"
                 "\"time_ms\":%.0f}",
                 total, cache, processed, ms);
    end_chunk(out);
}

void chat_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const reply_usage *usage,
                     const gen_timings *t)
{
    begin_chunk(out, m);
    bytes_printf(out, ",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"%s\"}]",
                 finish);
    bytes_append_str(out, ",\"timings\":");
    reply_json_timings(out, t);
    end_chunk(out);
    if (m->include_usage) {
        bytes_append_str(out, "data: ");
        write_identity(out, m, "chat.completion.chunk");
        bytes_append_str(out, ",\"choices\":[],\"usage\":");
        reply_json_usage(out, usage);
        end_chunk(out);
    }
    bytes_append_str(out, "data: [DONE]\n\n");
}

void chat_reply_error(bytes *out, const api_error *e)
{
    bytes_append_str(out, "data: ");
    api_error_write_body(out, e);
    bytes_append_str(out, "\n\n");
}
