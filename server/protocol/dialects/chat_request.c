#include "server/protocol/dialects/chat_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/protocol/call_matcher.h"
#include "server/protocol/chat_normalize.h"
#include "server/protocol/content_parts.h"
#include "server/protocol/other_fields.h"
#include "server/protocol/response_format.h"
#include "server/protocol/tool_fields.h"
#include "server/protocol/video_fields.h"

enum { PATH_BYTES = ERR_PARAM_MAX };

/* ---- tools ---- */

/* Reads a call into the next of m->tool_calls. */
static err_code read_call(api_request *r, call_matcher *matcher, chat_message *m, const char *id,
                          const json *function, const char *path, err_detail *d)
{
    chat_tool_call *call = &m->tool_calls[m->n_tool_calls];
    call->id = id;
    call->name = json_str(json_get(function, "name"), NULL);
    if (!call->name) {
        return err_set_param(d, ERR_INVALID, path, "invalid_value", "%s needs a name", path);
    }
    err_code err = api_request_arguments(r, &call->arguments, json_get(function, "arguments"), path, d);
    if (err == ERR_OK) {
        err = call_matcher_call(matcher, id, path, d);
    }
    m->n_tool_calls += err == ERR_OK;
    return err;
}

/* tool_calls, and function_call as older clients write it. */
static err_code read_tool_calls(api_request *r, call_matcher *matcher, chat_message *m, const json *message,
                                const char *path, err_detail *d)
{
    const json *calls = json_get(message, "tool_calls"), *old = json_get(message, "function_call");
    char call_path[PATH_BYTES];
    size_t n = json_typeof(calls) == JSON_NULL ? 0 : json_is(calls, JSON_ARRAY) ? json_len(calls) : SIZE_MAX;
    if (n > LIMIT_PARTS_PER_MESSAGE) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type",
                             "%s.tool_calls must be a list of at most %d calls", path,
                             LIMIT_PARTS_PER_MESSAGE);
    }
    bool has_old = n == 0 && json_is(old, JSON_OBJECT);
    m->tool_calls = n || has_old ? arena_calloc(r->in->arena, n + 1, sizeof *m->tool_calls) : NULL;
    if (!m->tool_calls) {
        return n || has_old ? err_set(d, ERR_NOMEM, "no memory for this request") : ERR_OK;
    }
    if (has_old) {
        request_path(call_path, "%s.function_call", path);
        return read_call(r, matcher, m, NULL, old, call_path, d);
    }
    err_code err = ERR_OK;
    for (const json *v = json_child(calls); v && err == ERR_OK; v = json_next(v)) {
        request_path(call_path, "%s.tool_calls[%zu].function", path, m->n_tool_calls);
        err = read_call(r, matcher, m, json_str(json_get(v, "id"), NULL), json_get(v, "function"), call_path,
                        d);
    }
    return err;
}

/* ---- messages ---- */

static bool read_role(chat_role *out, const char *role)
{
    static const struct {
        const char *name;
        chat_role role;
    } ROLES[] = {{"system", CHAT_SYSTEM},       {"developer", CHAT_SYSTEM}, {"user", CHAT_USER},
                 {"assistant", CHAT_ASSISTANT}, {"tool", CHAT_TOOL},        {"function", CHAT_TOOL}};
    for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++) {
        if (strcmp(role, ROLES[i].name) == 0) {
            *out = ROLES[i].role;
            return true;
        }
    }
    return false;
}

static err_code read_message(api_request *r, content_reader *reader, call_matcher *matcher, const json *v,
                             const char *path, err_detail *d)
{
    char inner[PATH_BYTES];
    chat_message *m = &r->in->messages[r->in->n_messages];
    if (!json_is(v, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must be an object", path);
    }
    if (!read_role(&m->role, json_str(json_get(v, "role"), ""))) {
        request_path(inner, "%s.role", path);
        return err_set_param(d, ERR_INVALID, inner, "invalid_value",
                             "%s must be system, developer, user, assistant or tool", inner);
    }
    request_path(inner, "%s.content", path);
    err_code err = content_read(reader, m, json_get(v, "content"), inner, d);
    if (err != ERR_OK) {
        return err;
    }
    if (m->role == CHAT_ASSISTANT) {
        m->reasoning = json_str(json_get(v, "reasoning_content"), json_str(json_get(v, "reasoning"), NULL));
        err = read_tool_calls(r, matcher, m, v, path, d);
    } else if (m->n_parts == 0 && json_typeof(json_get(v, "content")) == JSON_NULL) {
        err = err_set_param(d, ERR_INVALID, inner, "missing_field", "%s is missing", inner);
    }
    m->tool_call_id = json_str(json_get(v, "tool_call_id"), NULL);
    m->name = json_str(json_get(v, "name"), NULL);
    if (err == ERR_OK && m->role == CHAT_TOOL) {
        request_path(inner, "%s.tool_call_id", path);
        err = call_matcher_result(matcher, m->tool_call_id, r->in->n_messages, inner, d);
    }
    return err;
}

static err_code read_messages(api_request *r, const json *root, const engine_info *info, err_detail *d)
{
    const json *messages = json_get(root, "messages");
    size_t n = json_is(messages, JSON_ARRAY) ? json_len(messages) : 0;
    if (n == 0 || n > LIMIT_MESSAGES) {
        return err_set_param(d, ERR_INVALID, "messages", n ? "too_many_messages" : "missing_field",
                             "messages must be a list of 1 to %d messages", LIMIT_MESSAGES);
    }
    r->in->messages = arena_calloc(r->in->arena, n, sizeof *r->in->messages);
    if (!r->in->messages) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    content_reader reader = {
        .in = r->in, .info = info, .files = r->files, .scope = r->scope, .remote = r->remote};
    call_matcher matcher;
    err_code err = video_fields_body(&reader.video, root, d);
    if (err == ERR_OK) {
        err = call_matcher_init(&matcher, r->in, n, d);
    }
    for (const json *v = json_child(messages); v && err == ERR_OK; v = json_next(v)) {
        char path[PATH_BYTES];
        request_path(path, "messages[%zu]", r->in->n_messages);
        err = read_message(r, &reader, &matcher, v, path, d);
        r->in->n_messages += err == ERR_OK;
    }
    if (err == ERR_OK) {
        call_matcher_sort(&matcher);
        err = chat_normalize(r->in, d);
    }
    return err == ERR_OK ? request_read_continue(r->in, root, d) : err;
}

/* ---- the rest ---- */

static err_code read_logprobs(api_request *r, const json *root, err_detail *d)
{
    int64_t n_top = 0;
    err_code err = request_bool(&r->reply.logprobs, root, "logprobs", d);
    if (err == ERR_OK) {
        err = request_int(&n_top, root, "top_logprobs", 0, LIMIT_TOP_LOGPROBS, d);
    }
    if (err == ERR_OK && n_top > 0 && !r->reply.logprobs) {
        err = err_set_param(d, ERR_INVALID, "top_logprobs", "invalid_value",
                            "top_logprobs needs logprobs: true");
    }
    r->in->params.n_top_logprobs = r->reply.logprobs ? (int32_t)n_top : -1;
    return err;
}

err_code chat_request_parse(api_request *r, const char *text, size_t len, const engine_info *info,
                            err_detail *d)
{
    const json *root = NULL;
    const char *effort = NULL;
    json_doc *kwargs = NULL;
    err_code err = api_request_open(r, &root, text, len, d);
    if (err == ERR_OK) {
        err = other_fields_check(root, OTHER_CHAT, d);
    }
    if (err == ERR_OK) {
        err = api_request_generation(r, root, info, d);
    }
    if (err == ERR_OK) {
        err = read_logprobs(r, root, d);
    }
    if (err == ERR_OK) {
        err = request_read_stop(&r->reply, root, d);
    }
    if (err == ERR_OK) {
        err = request_string(&effort, root, "reasoning_effort", 16, d);
    }
    if (err == ERR_OK) {
        err = request_read_thinking(r->in, &kwargs, root, r->template_kwargs, effort, "reasoning_effort", d);
    }
    if (kwargs && !api_request_keep(r, kwargs) && err == ERR_OK) {
        err = err_set(d, ERR_NOMEM, "no memory for this request");
    }
    if (err == ERR_OK) {
        err = tool_fields_read(r, root, TOOLS_NESTED, d);
    }
    if (err == ERR_OK && !r->in->form) { /* a call that is forced has a form of its own */
        err = response_format_read(r, json_get(root, "response_format"), "response_format", d);
    }
    return err == ERR_OK ? read_messages(r, root, info, d) : err;
}
