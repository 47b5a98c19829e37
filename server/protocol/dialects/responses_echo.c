#include "server/protocol/dialects/responses_echo.h"

#include <math.h>
#include <string.h>

static void member(bytes *out, const char *name, const json *v, const char *otherwise)
{
    bytes_json(out, ",%s:", name);
    if (json_typeof(v) == JSON_NULL) {
        bytes_append_str(out, otherwise);
    } else {
        json_write(out, v);
    }
}

/* As asked for, else as the server or the model does, else as the API does. */
static void number(bytes *out, const char *name, float asked, float served, double otherwise)
{
    const double value = isfinite(asked) ? (double)asked : isfinite(served) ? (double)served : otherwise;
    bytes_json(out, ",%s:%g", name, value);
}

/* Every tool with all of its members. */
static void write_tools(bytes *out, const json *tools)
{
    static const char *const MEMBERS[] = {"description", "parameters", "strict"};
    bytes_append_str(out, ",\"tools\":[");
    for (const json *t = json_child(tools); t; t = json_next(t)) {
        const char *comma = "{";
        for (const json *v = json_child(t); v; v = json_next(v), comma = ",") {
            bytes_json(out, "%-s%s:", comma, json_key(v));
            json_write(out, v);
        }
        for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
            if (!json_get(t, MEMBERS[i])) {
                bytes_json(out, ",%s:null", MEMBERS[i]);
            }
        }
        bytes_append_str(out, json_next(t) ? "}," : "}");
    }
    bytes_append_char(out, ']');
}

static void write_text(bytes *out, const json *text)
{
    bytes_append_str(out, ",\"text\":{");
    const char *comma = "";
    for (const json *v = json_child(text); v; v = json_next(v), comma = ",") {
        bytes_json(out, "%-s%s:", comma, json_key(v));
        json_write(out, v);
    }
    if (!json_get(text, "format")) {
        bytes_json(out, "%-s\"format\":{\"type\":\"text\"}", comma);
    }
    bytes_append_char(out, '}');
}

static void write_conversation(bytes *out, const reply_options *o)
{
    if (o->conversation[0]) {
        bytes_json(out, ",\"conversation\":{\"id\":%s}", o->conversation);
    } else {
        bytes_append_str(out, ",\"conversation\":null");
    }
}

void responses_echo(api_request *r, const json *root, const engine_info *info)
{
    static const char *const NULLABLE[] = {"instructions",
                                           "max_output_tokens",
                                           "max_tool_calls",
                                           "previous_response_id",
                                           "safety_identifier",
                                           "prompt_cache_key",
                                           "user"};
    reply_options *o = &r->reply;
    const json *reasoning = json_get(root, "reasoning"), *effort = json_get(reasoning, "effort");
    gen_params unset, *asked = &r->in->params;
    gen_params_init(&unset);
    const gen_params *served = info ? &info->defaults : &unset;
    bytes out = bytes_empty(LIMIT_BODY_BYTES);
    if (r->error.code != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(NULLABLE); i++) {
        member(&out, NULLABLE[i], json_get(root, NULLABLE[i]), "null");
    }
    number(&out, "temperature", asked->temperature, served->temperature, 1.0);
    number(&out, "top_p", asked->top_p, served->top_p, 1.0);
    number(&out, "presence_penalty", asked->presence_penalty, served->presence_penalty, 0.0);
    number(&out, "frequency_penalty", asked->frequency_penalty, served->frequency_penalty, 0.0);
    bytes_json(&out, ",\"top_logprobs\":%d,\"parallel_tool_calls\":%hhd,\"store\":%hhd,\"background\":%hhd",
               asked->n_top_logprobs > 0 ? asked->n_top_logprobs : 0, (bool)!o->one_call, o->store,
               o->background);
    member(&out, "metadata", json_get(root, "metadata"), "{}");
    member(&out, "truncation", json_get(root, "truncation"), "\"disabled\"");
    member(&out, "tool_choice", json_get(root, "tool_choice"), "\"auto\"");
    bytes_append_str(&out, ",\"service_tier\":\"default\",\"reasoning\":{\"effort\":");
    effort = effort ? effort : json_get(root, "reasoning_effort");
    json_typeof(effort) == JSON_NULL ? bytes_append_str(&out, "null") : json_write(&out, effort);
    member(&out, "summary", json_get(reasoning, "summary"), "null");
    bytes_append_char(&out, '}');
    write_tools(&out, json_get(root, "tools"));
    write_text(&out, json_get(root, "text"));
    write_conversation(&out, o);
    if (out.failed) {
        bytes_deinit(&out);
        request_no_memory(&r->error);
        return;
    }
    o->fields = out.data; /* handed over */
}
