#include "server/protocol/dialects/responses_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/protocol/call_matcher.h"
#include "server/protocol/chat_normalize.h"
#include "server/protocol/content_parts.h"
#include "server/protocol/other_fields.h"
#include "server/protocol/response_format.h"
#include "server/protocol/tool_fields.h"
#include "server/protocol/video_fields.h"

enum { PATH_BYTES = ERR_PARAM_MAX, METADATA_BYTES = 16384, TEXT_OPTIONS_BYTES = 4 << 20 };

static err_code no_memory(err_detail *d)
{
    return err_set(d, ERR_NOMEM, "no memory for this request");
}

/* ---- identity ---- */

static bool is_lane_name(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.' && *p != '-') {
            return false;
        }
    }
    return text[0] != '\0';
}

static err_code read_identity(api_request *r, const json *root, err_detail *d)
{
    const char *event_id = "", *stream_id = NULL, *on_disconnect = "", *model = "";
    bool store = true;
    err_code err = request_string(&event_id, root, "event_id", REQUEST_EVENT_ID_MAX, d);
    if (err == ERR_OK) {
        snprintf(r->reply.event_id, sizeof r->reply.event_id, "%s", event_id);
        err = request_string(&stream_id, root, "stream_id", REQUEST_ID_MAX, d);
    }
    if (err == ERR_OK && stream_id) {
        if (!is_lane_name(stream_id)) {
            return err_set_param(d, ERR_INVALID, "stream_id", "invalid_value",
                                 "stream_id may hold letters, digits, '_', '.' and '-' only");
        }
        snprintf(r->reply.stream_id, sizeof r->reply.stream_id, "%s", stream_id);
    }
    if (err == ERR_OK) {
        err = request_string(&on_disconnect, root, "on_disconnect", 16, d);
    }
    if (err == ERR_OK && on_disconnect[0] && strcmp(on_disconnect, "continue") != 0 &&
        strcmp(on_disconnect, "cancel") != 0) {
        err = err_set_param(d, ERR_INVALID, "on_disconnect", "invalid_value",
                            "on_disconnect must be \"continue\" or \"cancel\"");
    }
    if (err == ERR_OK) {
        err = request_bool(&store, root, "store", d);
    }
    r->reply.store = store;
    r->reply.store_given = json_is_true(json_get(root, "store"));
    r->reply.cancel_on_disconnect = strcmp(on_disconnect, "cancel") == 0;
    if (err == ERR_OK) {
        err = request_string(&model, root, "model", sizeof r->reply.model - 1, d);
    }
    snprintf(r->reply.model, sizeof r->reply.model, "%s", model);
    return err;
}

/* ---- input items ---- */

typedef struct item_reader {
    api_request *r;
    content_reader content;
    call_matcher matcher;
    size_t cap;
} item_reader;

static chat_message *add_message(item_reader *reader, chat_role role)
{
    chat_input *in = reader->r->in;
    if (in->n_messages == reader->cap) {
        return NULL;
    }
    chat_message *m = &in->messages[in->n_messages++];
    m->role = role;
    m->is_string = true;
    return m;
}

/* Text of reasoning items: the reasoning_text parts, else the summary. */
static const char *reasoning_text(chat_input *in, const json *item)
{
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    const json *content = json_child(json_get(item, "content"));
    for (const json *v = content ? content : json_child(json_get(item, "summary")); v; v = json_next(v)) {
        bytes_append_str(&text, json_str(json_get(v, "text"), ""));
    }
    const char *copy = text.failed ? NULL : arena_strdup(in->arena, bytes_str(&text), text.len);
    bytes_deinit(&text);
    return copy;
}

/* Calls and reasoning belong to one assistant message with the text beside them. */
static chat_message *assistant_message(item_reader *reader)
{
    chat_input *in = reader->r->in;
    chat_message *last = in->n_messages ? &in->messages[in->n_messages - 1] : NULL;
    return last && last->role == CHAT_ASSISTANT ? last : add_message(reader, CHAT_ASSISTANT);
}

static err_code read_call(item_reader *reader, const json *item, const char *path, err_detail *d)
{
    chat_input *in = reader->r->in;
    chat_message *m = assistant_message(reader);
    const char *name = json_str(json_get(item, "name"), NULL);
    if (!name) {
        return err_set_param(d, ERR_INVALID, path, "missing_field", "%s needs a name", path);
    }
    chat_tool_call *calls = m ? arena_calloc(in->arena, m->n_tool_calls + 1, sizeof *calls) : NULL;
    if (!calls) {
        return no_memory(d);
    }
    if (m->n_tool_calls) {
        memcpy(calls, m->tool_calls, m->n_tool_calls * sizeof *calls);
    }
    m->tool_calls = calls;
    chat_tool_call *call = &calls[m->n_tool_calls];
    call->id = json_str(json_get(item, "call_id"), NULL);
    call->name = name;
    err_code err = api_request_arguments(reader->r, &call->arguments, json_get(item, "arguments"), path, d);
    m->n_tool_calls += err == ERR_OK;
    return err == ERR_OK ? call_matcher_call(&reader->matcher, call->id, path, d) : err;
}

static err_code read_plain_message(item_reader *reader, const json *item, const char *path, err_detail *d)
{
    static const char *const ROLES[] = {"system", "developer", "user", "assistant"};
    static const chat_role VALUES[] = {CHAT_SYSTEM, CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT};
    char inner[PATH_BYTES];
    const char *role = json_str(json_get(item, "role"), "");
    for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++) {
        if (strcmp(role, ROLES[i]) != 0) {
            continue;
        }
        chat_input *in = reader->r->in;
        chat_message *last = in->n_messages ? &in->messages[in->n_messages - 1] : NULL;
        /* Reasoning in front of the text waits in an assistant message without content. */
        bool joins = VALUES[i] == CHAT_ASSISTANT && last && last->role == CHAT_ASSISTANT &&
                     last->n_parts == 0 && last->n_tool_calls == 0;
        chat_message *m = joins ? last : add_message(reader, VALUES[i]);
        if (!m) {
            return no_memory(d);
        }
        request_path(inner, "%s.content", path);
        return content_read(&reader->content, m, json_get(item, "content"), inner, d);
    }
    request_path(inner, "%s.role", path);
    return err_set_param(d, ERR_INVALID, inner, "invalid_value",
                         "%s must be system, developer, user or assistant", inner);
}

static err_code read_item(item_reader *reader, const json *item, const char *path, err_detail *d)
{
    char inner[PATH_BYTES];
    if (!json_is(item, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must be an object", path);
    }
    const char *type = json_str(json_get(item, "type"), "message");
    if (strcmp(type, "message") == 0) {
        return read_plain_message(reader, item, path, d);
    }
    if (strcmp(type, "reasoning") == 0) {
        chat_message *m = add_message(reader, CHAT_ASSISTANT);
        if (m) {
            m->reasoning = reasoning_text(reader->r->in, item);
        }
        return m && m->reasoning ? ERR_OK : no_memory(d);
    }
    if (strcmp(type, "function_call") == 0) {
        return read_call(reader, item, path, d);
    }
    if (strcmp(type, "function_call_output") == 0) {
        chat_message *m = add_message(reader, CHAT_TOOL);
        if (!m) {
            return no_memory(d);
        }
        m->tool_call_id = json_str(json_get(item, "call_id"), NULL);
        request_path(inner, "%s.call_id", path);
        err_code err =
            call_matcher_result(&reader->matcher, m->tool_call_id, reader->r->in->n_messages - 1, inner, d);
        if (err != ERR_OK) {
            return err;
        }
        request_path(inner, "%s.output", path);
        return content_read(&reader->content, m, json_get(item, "output"), inner, d);
    }
    request_path(inner, "%s.type", path);
    return err_set_param(d, ERR_UNSUPPORTED, inner, "unsupported_item_type", "%s is not understood", inner);
}

/* The items of the conversation that previous_response_id continues; *out stays NULL without
 * one. */
static err_code open_previous(api_request *r, const json **out, const json *root, err_detail *d)
{
    const char *id = NULL;
    json_doc *doc = NULL;
    bytes text;
    err_code err = request_string(&id, root, "previous_response_id", REQUEST_ID_MAX, d);
    if (err != ERR_OK || !id) {
        return err;
    }
    bytes_init(&text, LIMIT_STORED_RESPONSE_BYTES + 2);
    bytes_append_char(&text, '[');
    bool found = r->response_store && response_store_get(r->response_store, r->scope, id, clock_ms(), &text);
    bytes_append_char(&text, ']');
    if (!found) {
        const bool is_evicted =
            r->response_store && response_store_is_evicted(r->response_store, r->scope, id, clock_ms());
        err = err_set_param(d, ERR_INVALID, "previous_response_id", "previous_response_not_found",
                            is_evicted ? "this response had to go early, as this key has more than its share "
                                         "of what is kept; send the whole conversation in input"
                                       : "this response is unknown, was not stored or is gone; send the "
                                         "whole conversation in input");
    } else if (text.failed) {
        err = no_memory(d);
    } else {
        err = json_parse(&doc, text.data, text.len, LIMIT_JSON_DEPTH + 1, d);
    }
    bytes_deinit(&text);
    if (err == ERR_OK && !api_request_keep(r, doc)) {
        err = no_memory(d);
    }
    if (err == ERR_OK) {
        snprintf(r->reply.previous_id, sizeof r->reply.previous_id, "%s", id);
        *out = json_root(doc);
    }
    return err;
}

/* Writes the conversation so far, for the response that may continue it. One that is too long is
 * not kept: then items are empty. */
static void keep_items(api_request *r, const json *previous, const json *input)
{
    bytes *out = &r->reply.items;
    for (const json *v = json_child(previous); v; v = json_next(v)) {
        json_write(out, v);
        bytes_append_char(out, ',');
    }
    if (json_is(input, JSON_STRING)) {
        bytes_append_str(out, "{\"role\":\"user\",\"content\":");
        json_write(out, input);
        bytes_append_char(out, '}');
    }
    for (const json *v = json_is(input, JSON_ARRAY) ? json_child(input) : NULL; v; v = json_next(v)) {
        json_write(out, v);
        bytes_append_str(out, json_next(v) ? "," : "");
    }
    if (out->failed) {
        bytes_deinit(out);
    }
}

static err_code read_items(item_reader *reader, const json *list, const char *name, err_detail *d)
{
    err_code err = ERR_OK;
    size_t i = 0;
    for (const json *v = json_child(list); v && err == ERR_OK; v = json_next(v)) {
        char path[PATH_BYTES];
        request_path(path, "%s[%zu]", name, i++);
        err = read_item(reader, v, path, d);
    }
    return err;
}

static err_code read_input(api_request *r, const json *root, const engine_info *info, err_detail *d)
{
    const json *input = json_get(root, "input");
    const json *previous = NULL;
    const char *instructions = NULL;
    bool is_string = json_is(input, JSON_STRING);
    size_t n = is_string ? 1 : json_is(input, JSON_ARRAY) ? json_len(input) : 0;
    if (n == 0 || n > LIMIT_MESSAGES) {
        return err_set_param(d, ERR_INVALID, "input", n ? "too_many_messages" : "missing_field",
                             "input must be a string or a list of 1 to %d items", LIMIT_MESSAGES);
    }
    err_code err = open_previous(r, &previous, root, d);
    if (err == ERR_OK && n + json_len(previous) > LIMIT_MESSAGES) {
        err = err_set_param(d, ERR_INVALID, "input", "too_many_messages",
                            "input and the conversation before it have more than %d items", LIMIT_MESSAGES);
    }
    if (err != ERR_OK) {
        return err;
    }
    n += json_len(previous);
    err = request_string(&instructions, root, "instructions", LIMIT_BODY_BYTES, d);
    if (err != ERR_OK) {
        return err;
    }
    r->in->messages = arena_calloc(r->in->arena, n + 1, sizeof *r->in->messages);
    if (!r->in->messages) {
        return no_memory(d);
    }
    item_reader reader = {
        .r = r,
        .content = {.in = r->in, .info = info, .files = r->files, .scope = r->scope, .remote = r->remote},
        .cap = n + 1};
    err = call_matcher_init(&reader.matcher, r->in, n + 1, d);
    if (err == ERR_OK) {
        err = video_fields_body(&reader.content.video, root, d);
    }
    if (err == ERR_OK && instructions && instructions[0]) {
        err = content_read(&reader.content, add_message(&reader, CHAT_SYSTEM), json_get(root, "instructions"),
                           "instructions", d);
    }
    if (err == ERR_OK && previous) {
        err = read_items(&reader, previous, "previous_response_id", d);
    }
    if (is_string && err == ERR_OK) {
        err = content_read(&reader.content, add_message(&reader, CHAT_USER), input, "input", d);
    }
    if (!is_string && err == ERR_OK) {
        err = read_items(&reader, input, "input", d);
    }
    if (err == ERR_OK) {
        call_matcher_sort(&reader.matcher);
        err = chat_normalize(r->in, d);
    }
    if (err == ERR_OK && r->response_store && r->reply.store) {
        keep_items(r, previous, input);
    }
    return err == ERR_OK ? request_read_continue(r->in, root, d) : err;
}

/* ---- the rest ---- */

/* Copies an object's text, to be echoed. */
static err_code copy_object(char **out, const json *root, const char *name, int max_bytes, err_detail *d)
{
    const json *object = json_get(root, name);
    if (json_typeof(object) == JSON_NULL) {
        return ERR_OK;
    }
    bytes text;
    bytes_init(&text, (size_t)max_bytes);
    if (json_is(object, JSON_OBJECT)) {
        json_write(&text, object);
    }
    if (text.failed || text.len == 0) {
        bytes_deinit(&text);
        return err_set_param(d, ERR_INVALID, name, "invalid_value",
                             "%s must be an object of at most %d bytes", name, max_bytes);
    }
    *out = text.data; /* handed over */
    return ERR_OK;
}

static bool is_included(const json *root, const char *name)
{
    for (const json *v = json_child(json_get(root, "include")); v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), name) == 0) {
            return true;
        }
    }
    return false;
}

static err_code read_logprobs(api_request *r, const json *root, err_detail *d)
{
    int64_t n_top = 0;
    err_code err = request_int(&n_top, root, "top_logprobs", 0, LIMIT_TOP_LOGPROBS, d);
    r->reply.logprobs = is_included(root, "message.output_text.logprobs");
    if (err == ERR_OK && n_top > 0 && !r->reply.logprobs) {
        err = err_set_param(d, ERR_INVALID, "top_logprobs", "invalid_value",
                            "top_logprobs needs \"message.output_text.logprobs\" in include");
    }
    r->in->params.n_top_logprobs = r->reply.logprobs ? (int32_t)n_top : -1;
    return err;
}

static err_code read_effort(api_request *r, const json *root, err_detail *d)
{
    const json *reasoning = json_get(root, "reasoning");
    const char *effort = NULL, *summary = "";
    json_doc *kwargs = NULL;
    if (json_typeof(reasoning) != JSON_NULL && !json_is(reasoning, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, "reasoning", "invalid_type", "reasoning must be an object");
    }
    const char *param = "reasoning.effort";
    err_code err = request_string(&effort, reasoning, "effort", 16, d);
    if (err == ERR_OK && !effort) {
        param = "reasoning_effort";
        err = request_string(&effort, root, "reasoning_effort", 16, d);
    }
    if (err == ERR_OK) {
        err = request_string(&summary, reasoning, "summary", sizeof r->reply.summary - 1, d);
    }
    if (err == ERR_OK && strcmp(summary, "auto") != 0 && strcmp(summary, "concise") != 0 &&
        strcmp(summary, "detailed") != 0 && summary[0]) {
        err = err_set_param(d, ERR_INVALID, "reasoning.summary", "invalid_value",
                            "reasoning.summary must be auto, concise or detailed");
    }
    if (err == ERR_OK) {
        err = request_read_thinking(r->in, &kwargs, root, r->template_kwargs, effort, param, d);
    }
    if (err == ERR_OK) {
        snprintf(r->reply.effort, sizeof r->reply.effort, "%s", effort ? effort : "");
        snprintf(r->reply.summary, sizeof r->reply.summary, "%s", summary);
    }
    if (kwargs && !api_request_keep(r, kwargs)) {
        return no_memory(d);
    }
    return err;
}

err_code responses_request_parse(api_request *r, const char *text, size_t len, bool is_event,
                                 const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    int64_t max_tokens = -1;
    err_code err = api_request_open(r, &root, text, len, d);
    if (err == ERR_OK) {
        err = read_identity(r, root, d);
    }
    if (err == ERR_OK && is_event && strcmp(json_str(json_get(root, "type"), ""), "response.create") != 0) {
        err = err_set_param(d, ERR_INVALID, "type", "invalid_event",
                            "a message of this size must be response.create");
    }
    if (err == ERR_OK) {
        err = other_fields_check(root, OTHER_RESPONSES, d);
    }
    if (err == ERR_OK) {
        err = request_bool(&r->reply.stream, root, "stream", d);
    }
    if (err == ERR_OK) {
        err = request_bool(&r->reply.return_progress, root, "return_progress", d);
    }
    if (err == ERR_OK) {
        err = request_read_sampling(r->in, root, info, d);
    }
    if (err == ERR_OK) {
        err = request_number(&r->reply.temperature, root, "temperature", 0.0, 2.0, d);
    }
    if (err == ERR_OK) {
        err = request_number(&r->reply.top_p, root, "top_p", 0.0, 1.0, d);
    }
    if (err == ERR_OK) {
        err = request_int(&max_tokens, root, "max_output_tokens", 1, INT32_MAX, d);
    }
    r->reply.max_tokens = (int32_t)max_tokens;
    if (r->in) {
        r->in->params.max_tokens = (int32_t)max_tokens;
    }
    if (err == ERR_OK) {
        err = request_read_stop(&r->reply, root, d);
    }
    if (err == ERR_OK) {
        err = copy_object(&r->reply.metadata, root, "metadata", METADATA_BYTES, d);
    }
    if (err == ERR_OK) {
        err = copy_object(&r->reply.text_options, root, "text", TEXT_OPTIONS_BYTES, d);
    }
    if (err == ERR_OK) {
        err = read_logprobs(r, root, d);
    }
    if (err == ERR_OK) {
        err = read_effort(r, root, d);
    }
    if (err == ERR_OK) {
        err = tool_fields_read(r, root, TOOLS_FLAT, d);
    }
    if (err == ERR_OK && !r->in->form) { /* a call that is forced has a form of its own */
        err = response_format_read(r, json_get(json_get(root, "text"), "format"), "text.format", d);
    }
    return err == ERR_OK ? read_input(r, root, info, d) : err;
}
