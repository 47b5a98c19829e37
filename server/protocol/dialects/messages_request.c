#include "server/protocol/dialects/messages_request.h"

#include <string.h>

#include "server/protocol/dialects/chat_request.h"
enum { PATH_BYTES = ERR_PARAM_MAX };

/* The chat's body is a little longer than the one it is made from. */
#define CHAT_BYTES (LIMIT_BODY_BYTES * 2)

static bool is_null(const json *v)
{
    return json_typeof(v) == JSON_NULL;
}

static bool has_type(const json *block, const char *type)
{
    return strcmp(json_str(json_get(block, "type"), ""), type) == 0;
}

static err_code bad(err_detail *d, const char *path, const char *what)
{
    return err_set_param(d, ERR_INVALID, path, "invalid_value", "%s %s", path, what);
}

/* Appends ,"name":value unless there is none. */
static void member(bytes *out, const char *name, const json *value)
{
    if (!is_null(value)) {
        bytes_printf(out, ",\"%s\":", name);
        json_write(out, value);
    }
}

static void string(bytes *out, const char *text)
{
    bytes_append_json(out, text, strlen(text));
}

/* ---- content ---- */

static err_code write_image(bytes *out, const json *block, const char *path, err_detail *d)
{
    const json *source = json_get(block, "source");
    const char *field = has_type(source, "base64") ? "data"
                        : has_type(source, "url")  ? "url"
                        : has_type(source, "file") ? "file_id"
                                                   : "";
    const char *value = json_str(json_get(source, field), NULL);
    if (!value) {
        return bad(d, path, "needs a source of type base64 with data, url with url, or file with file_id");
    }
    bytes_append_str(out, strcmp(field, "file_id") == 0 ? "{\"type\":\"input_image\",\"file_id\":"
                                                        : "{\"type\":\"image_url\",\"image_url\":");
    string(out, value);
    bytes_append_char(out, '}');
    return ERR_OK;
}

/* A text or an image as a part of a chat's message. */
static err_code write_part(bytes *out, const json *block, const char *path, err_detail *d)
{
    if (has_type(block, "image")) {
        return write_image(out, block, path, d);
    }
    if (!has_type(block, "text")) {
        return err_set_param(d, ERR_UNSUPPORTED, path, "unsupported_content_type",
                             "%s: a block of type \"%s\" is not understood here", path,
                             json_str(json_get(block, "type"), ""));
    }
    const char *text = json_str(json_get(block, "text"), NULL);
    if (!text) {
        return bad(d, path, "needs a text");
    }
    bytes_append_str(out, "{\"type\":\"text\",\"text\":");
    string(out, text);
    bytes_append_char(out, '}');
    return ERR_OK;
}

/* Blocks that stand apart in a chat: results, calls and thoughts. */
static bool is_apart(const json *block)
{
    return has_type(block, "tool_result") || has_type(block, "tool_use") || has_type(block, "thinking") ||
           has_type(block, "redacted_thinking");
}

/* ,"content":..: a string as it is, a list without the blocks that stand apart. */
static err_code write_content(bytes *out, const json *content, const char *path, err_detail *d)
{
    err_code err = ERR_OK;
    size_t i = 0, n = 0;
    if (json_is(content, JSON_STRING)) {
        member(out, "content", content);
        return ERR_OK;
    }
    if (!json_is(content, JSON_ARRAY)) {
        return bad(d, path, "must be a string or a list of blocks");
    }
    const json *first = json_child(content);
    while (first && is_apart(first)) {
        first = json_next(first);
        i++;
    }
    if (!first && i > 0) {
        return ERR_OK; /* no words: as a chat's message of calls alone */
    }
    bytes_append_str(out, ",\"content\":[");
    for (const json *v = first; v && err == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        if (!is_apart(v)) {
            request_path(inner, "%s[%zu]", path, i);
            bytes_append_str(out, n++ ? "," : "");
            err = write_part(out, v, inner, d);
        }
    }
    bytes_append_char(out, ']');
    return err;
}

/* ---- messages ---- */

static err_code write_result(bytes *out, const json *block, const char *path, err_detail *d)
{
    char inner[PATH_BYTES];
    const json *content = json_get(block, "content");
    const char *id = json_str(json_get(block, "tool_use_id"), NULL);
    if (!id) {
        return bad(d, path, "needs a tool_use_id");
    }
    bytes_append_str(out, "{\"role\":\"tool\",\"tool_call_id\":");
    string(out, id);
    request_path(inner, "%s.content", path);
    err_code err = ERR_OK;
    if (is_null(content)) {
        bytes_append_str(out, ",\"content\":\"\"");
    } else {
        err = write_content(out, content, inner, d);
    }
    bytes_append_str(out, "},");
    return err;
}

/* The results among a user's blocks as messages of their own; the rest, if there is any, as one
 * behind them. */
static err_code write_user(bytes *out, const json *content, const char *path, err_detail *d)
{
    err_code err = ERR_OK;
    size_t i = 0, n_results = 0;
    bool is_list = json_is(content, JSON_ARRAY);
    for (const json *v = is_list ? json_child(content) : NULL; v && err == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        request_path(inner, "%s[%zu]", path, i);
        if (has_type(v, "tool_result")) {
            n_results++;
            err = write_result(out, v, inner, d);
        } else if (is_apart(v)) {
            err = bad(d, inner, "may stand in an assistant's message only");
        }
    }
    if (err != ERR_OK || (n_results > 0 && n_results == i)) {
        return err;
    }
    bytes_append_str(out, "{\"role\":\"user\"");
    err = write_content(out, content, path, d);
    bytes_append_str(out, "},");
    return err;
}

static err_code write_call(bytes *out, const json *block, const char *path, err_detail *d)
{
    const char *id = json_str(json_get(block, "id"), NULL), *name = json_str(json_get(block, "name"), NULL);
    const json *input = json_get(block, "input");
    if (!id || !name || !json_is(input, JSON_OBJECT)) {
        return bad(d, path, "needs an id, a name and an input that is an object");
    }
    bytes_append_str(out, "{\"type\":\"function\",\"id\":");
    string(out, id);
    bytes_append_str(out, ",\"function\":{\"name\":");
    string(out, name);
    member(out, "arguments", input);
    bytes_append_str(out, "}}");
    return ERR_OK;
}

static err_code write_assistant(bytes *out, const json *content, const char *path, err_detail *d)
{
    bytes thoughts, calls;
    err_code err = ERR_OK;
    size_t i = 0;
    bool is_list = json_is(content, JSON_ARRAY);
    bytes_init(&thoughts, CHAT_BYTES);
    bytes_init(&calls, CHAT_BYTES);
    for (const json *v = is_list ? json_child(content) : NULL; v && err == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        request_path(inner, "%s[%zu]", path, i);
        if (has_type(v, "thinking")) {
            bytes_append_str(&thoughts, json_str(json_get(v, "thinking"), ""));
        } else if (has_type(v, "tool_use")) {
            bytes_append_str(&calls, calls.len ? "," : "");
            err = write_call(&calls, v, inner, d);
        } else if (has_type(v, "tool_result")) {
            err = bad(d, inner, "may stand in a user's message only");
        }
    }
    if (err == ERR_OK) {
        bytes_append_str(out, "{\"role\":\"assistant\"");
        err = write_content(out, content, path, d);
    }
    if (thoughts.len > 0) {
        bytes_append_str(out, ",\"reasoning_content\":");
        bytes_append_json(out, bytes_str(&thoughts), thoughts.len);
    }
    if (calls.len > 0) {
        bytes_append_str(out, ",\"tool_calls\":[");
        bytes_append(out, calls.data, calls.len);
        bytes_append_char(out, ']');
    }
    bytes_append_str(out, "},");
    out->failed = out->failed || thoughts.failed || calls.failed;
    bytes_deinit(&thoughts);
    bytes_deinit(&calls);
    return err;
}

/* An answer that the client began is continued. */
static bool is_begun_answer(const json *message)
{
    bool has_calls = false;
    const json *content = json_get(message, "content");
    for (const json *v = json_is(content, JSON_ARRAY) ? json_child(content) : NULL; v; v = json_next(v)) {
        has_calls = has_calls || has_type(v, "tool_use");
    }
    return strcmp(json_str(json_get(message, "role"), ""), "assistant") == 0 && !has_calls;
}

/* ,"messages":[..]. The system's words come last, so that the others keep their numbers in errors;
 * a chat's normaliser puts them in front. */
static err_code write_messages(bytes *out, const json *root, err_detail *d)
{
    const json *messages = json_get(root, "messages"), *system = json_get(root, "system"), *last = NULL;
    err_code err = ERR_OK;
    size_t i = 0;
    if (!json_is(messages, JSON_ARRAY) || !json_child(messages)) {
        return err_set_param(d, ERR_INVALID, "messages", "missing_field",
                             "messages must be a list of at least one message");
    }
    bytes_append_str(out, ",\"messages\":[");
    for (const json *v = json_child(messages); v && err == ERR_OK; v = json_next(v), i++) {
        char path[PATH_BYTES];
        const char *role = json_str(json_get(v, "role"), "");
        last = v;
        if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0) {
            request_path(path, "messages[%zu].role", i);
            return bad(d, path, "must be user or assistant");
        }
        request_path(path, "messages[%zu].content", i);
        err = (role[0] == 'u' ? write_user : write_assistant)(out, json_get(v, "content"), path, d);
    }
    if (err == ERR_OK && !is_null(system) && json_str(system, "x")[0]) {
        bytes_append_str(out, "{\"role\":\"system\"");
        err = write_content(out, system, "system", d);
        bytes_append_str(out, "},");
    }
    if (!out->failed) {
        out->data[out->len - 1] = ']'; /* in place of the last comma */
    }
    bytes_append_str(out, is_begun_answer(last) ? ",\"continue_final_message\":true" : "");
    return err;
}

/* ---- tools ---- */

static err_code write_tools(bytes *out, const json *tools, err_detail *d)
{
    size_t i = 0;
    if (!json_is(tools, JSON_ARRAY)) {
        return is_null(tools) ? ERR_OK : bad(d, "tools", "must be a list");
    }
    bytes_append_str(out, ",\"tools\":[");
    for (const json *v = json_child(tools); v; v = json_next(v), i++) {
        char path[PATH_BYTES];
        request_path(path, "tools[%zu]", i);
        if (!is_null(json_get(v, "type")) && !has_type(v, "custom")) {
            return err_set_param(d, ERR_UNSUPPORTED, path, "not_supported",
                                 "%s: only tools of your own (type \"custom\") are understood", path);
        }
        if (!json_is(json_get(v, "name"), JSON_STRING) ||
            !json_is(json_get(v, "input_schema"), JSON_OBJECT)) {
            return bad(d, path, "needs a name and an input_schema that is an object");
        }
        bytes_append_str(out, i ? ",{" : "{");
        bytes_append_str(out, "\"type\":\"function\",\"function\":{\"name\":");
        json_write(out, json_get(v, "name"));
        member(out, "description", json_get(v, "description"));
        member(out, "parameters", json_get(v, "input_schema"));
        bytes_append_str(out, "}}");
    }
    bytes_append_char(out, ']');
    return ERR_OK;
}

static err_code write_tool_choice(bytes *out, const json *choice, err_detail *d)
{
    static const char *const NAMES[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    bool one_call = false;
    if (is_null(choice)) {
        return ERR_OK;
    }
    err_code err = request_bool(&one_call, choice, "disable_parallel_tool_use", d);
    bytes_append_str(out, one_call ? ",\"parallel_tool_calls\":false" : "");
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (has_type(choice, NAMES[i][0])) {
            bytes_printf(out, ",\"tool_choice\":\"%s\"", NAMES[i][1]);
            return err;
        }
    }
    if (!has_type(choice, "tool") || !json_is(json_get(choice, "name"), JSON_STRING)) {
        return bad(d, "tool_choice", "must be of type auto, any or none, or of type tool with a name");
    }
    bytes_append_str(out, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":");
    json_write(out, json_get(choice, "name"));
    bytes_append_str(out, "}}");
    return err;
}

/* ---- the rest ---- */

static err_code write_stops(bytes *out, const json *stops, err_detail *d)
{
    bool ok = is_null(stops) || (json_is(stops, JSON_ARRAY) && json_len(stops) <= LIMIT_STOP_STRINGS);
    for (const json *v = ok ? json_child(stops) : NULL; v; v = json_next(v)) {
        const size_t n = strlen(json_str(v, ""));
        ok = ok && n > 0 && n <= LIMIT_STOP_BYTES;
    }
    if (!ok) {
        return err_set_param(d, ERR_INVALID, "stop_sequences", "invalid_value",
                             "stop_sequences must be a list of at most %d strings of 1 to %d bytes",
                             LIMIT_STOP_STRINGS, LIMIT_STOP_BYTES);
    }
    member(out, "stop", stops);
    return ERR_OK;
}

static err_code write_thinking(bytes *out, const json *thinking, err_detail *d)
{
    int64_t budget = -1;
    bool thinks = has_type(thinking, "enabled") || has_type(thinking, "adaptive");
    if (!is_null(thinking) && !thinks && !has_type(thinking, "disabled")) {
        return bad(d, "thinking", "must be of type enabled, adaptive or disabled");
    }
    err_code err = request_int(&budget, thinking, "budget_tokens", 1, INT32_MAX, d);
    bytes_printf(out, ",\"enable_thinking\":%s", thinks ? "true" : "false");
    if (thinks && budget > 0) {
        bytes_printf(out, ",\"reasoning_budget\":%d", (int)budget);
    }
    return err;
}

static err_code write_fields(bytes *out, const json *root, bool needs_max_tokens, err_detail *d)
{
    static const char *const SAME[] = {"model", "stream", "max_tokens", "temperature", "top_p",
                                       "top_k", "seed",   "mtp",        "cache_prompt"};
    const json *metadata = json_get(root, "metadata");
    if (needs_max_tokens && is_null(json_get(root, "max_tokens"))) {
        return err_set_param(d, ERR_INVALID, "max_tokens", "missing_field", "max_tokens is missing");
    }
    if (!is_null(metadata) && !json_is(metadata, JSON_OBJECT)) {
        return bad(d, "metadata", "must be an object");
    }
    for (size_t i = 0; i < sizeof SAME / sizeof SAME[0]; i++) {
        member(out, SAME[i], json_get(root, SAME[i]));
    }
    return ERR_OK;
}

static err_code write_chat(bytes *out, const json *root, bool needs_max_tokens, err_detail *d)
{
    if (!json_is(root, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, "", "invalid_type", "the body must be a JSON object");
    }
    err_code err = write_fields(out, root, needs_max_tokens, d);
    if (err == ERR_OK) {
        err = write_stops(out, json_get(root, "stop_sequences"), d);
    }
    if (err == ERR_OK) {
        err = write_thinking(out, json_get(root, "thinking"), d);
    }
    if (err == ERR_OK) {
        err = write_tools(out, json_get(root, "tools"), d);
    }
    if (err == ERR_OK) {
        err = write_tool_choice(out, json_get(root, "tool_choice"), d);
    }
    if (err == ERR_OK) {
        err = write_messages(out, root, d);
    }
    if (err == ERR_OK && out->failed) {
        err = err_set(d, ERR_NOMEM, "no memory for this request");
    }
    if (err == ERR_OK) {
        out->data[0] = '{'; /* in place of the first comma */
        bytes_append_char(out, '}');
    }
    return err;
}

err_code messages_request_parse(api_request *r, const char *text, size_t len, bool needs_max_tokens,
                                const engine_info *info, err_detail *d)
{
    bytes chat;
    json_doc *doc = NULL;
    bytes_init(&chat, CHAT_BYTES);
    err_code err = api_request_document(r, &doc, text, len, d);
    if (err == ERR_OK) {
        err = write_chat(&chat, json_root(doc), needs_max_tokens, d);
    }
    json_free(doc); /* before the other is made: they may be large */
    if (err == ERR_OK) {
        err = chat_request_parse(r, bytes_str(&chat), chat.len, info, d);
    }
    bytes_deinit(&chat);
    return err;
}
