#include "server/protocol/dialects/ollama_request.h"

#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/foreign_fields.h"

static bool is_null(const json *v)
{
    return json_typeof(v) == JSON_NULL;
}

/* What a chat refuses by name too, but here by its name in this dialect. */
static void refuse_unsupported(first_error *e, const json *root)
{
    static const char *const NAMES[] = {"suffix", "template", "context", "logprobs", "top_logprobs"};
    bool raw = false;
    request_bool(e, &raw, root, "raw");
    if (raw) {
        request_fail(e, ERR_UNSUPPORTED, "raw", "not_supported",
                     "raw is not supported: send /v1/completions");
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const json *v = json_get(root, NAMES[i]);
        if (!is_null(v) && json_str(v, "x")[0] && !(json_is(v, JSON_BOOL) && !json_is_true(v))) {
            request_fail(e, ERR_UNSUPPORTED, NAMES[i], "not_supported", "%s is not supported", NAMES[i]);
        }
    }
}

/* Text and images as the parts of a chat's message. */
static void add_parts(json_doc *doc, json *message, const json *text, const json *images)
{
    json *parts = json_add_array(doc, message, "content");
    for (const json *v = json_child(images); v; v = json_next(v)) {
        json *part = json_add_object(doc, parts, NULL);
        json_add_string(doc, part, "type", "image_url");
        json_add_shared(doc, json_add_object(doc, part, "image_url"), "url", v);
    }
    json *part = json_add_object(doc, parts, NULL);
    json_add_string(doc, part, "type", "text");
    json_add_string(doc, part, "text", json_str(text, ""));
}

static void add_message(json_doc *doc, json *messages, const char *role, const json *text, const json *from)
{
    static const char *const SAME[] = {"tool_calls", "name"};
    json *message = json_add_object(doc, messages, NULL);
    const json *images = json_get(from, "images");
    json_add_string(doc, message, "role", role);
    if (json_is(images, JSON_ARRAY) && json_child(images)) {
        add_parts(doc, message, text, images);
    } else {
        json_add_shared(doc, message, "content", text);
    }
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        json_add_shared(doc, message, SAME[i], json_get(from, SAME[i]));
    }
    json_add_shared(doc, message, "reasoning_content", json_get(from, "thinking"));
}

/* Whether there is something to answer. Clients send a request without it, so that the model is loaded. */
static bool asks(const json *root, bool is_generate)
{
    const json *v = json_get(root, is_generate ? "prompt" : "messages");
    const bool is_text = json_is(v, JSON_STRING), is_empty = is_text ? !json_str(v, "")[0] : !json_child(v);
    return !(is_null(v) || ((is_text || json_is(v, JSON_ARRAY)) && is_empty)) ||
           (is_generate && json_child(json_get(root, "images")));
}

static void add_messages(first_error *e, json_doc *doc, json *chat, const json *root, bool is_generate)
{
    json *messages = json_add_array(doc, chat, "messages");
    const json *list = json_get(root, "messages"), *system = json_get(root, "system");
    if (!asks(root, is_generate)) {
        json *none = json_add_object(doc, messages, NULL);
        json_add_string(doc, none, "role", "user");
        json_add_string(doc, none, "content", "");
        return;
    }
    if (!is_generate) {
        for (const json *v = json_is(list, JSON_ARRAY) ? json_child(list) : NULL; v; v = json_next(v)) {
            add_message(doc, messages, json_str(json_get(v, "role"), ""), json_get(v, "content"), v);
        }
        return;
    }
    if (!json_is(json_get(root, "prompt"), JSON_STRING)) {
        request_fail(e, ERR_INVALID, "prompt", "missing_field", "prompt must be a string");
    }
    if (json_str(system, "")[0]) {
        add_message(doc, messages, "system", system, NULL);
    }
    add_message(doc, messages, "user", json_get(root, "prompt"), root);
}

static void add_format(json_doc *doc, json *chat, const json *format)
{
    if (is_null(format) || (json_is(format, JSON_STRING) && !json_str(format, "")[0])) {
        return;
    }
    json *form = json_add_object(doc, chat, "response_format");
    if (json_is(format, JSON_OBJECT)) {
        json_add_string(doc, form, "type", "json_schema");
        json_add_shared(doc, json_add_object(doc, form, "json_schema"), "schema", format);
    } else { /* "json"; another is refused there */
        const bool is_json = json_str(format, "")[0] == 'j';
        json_add_string(doc, form, "type", is_json ? "json_object" : "unknown");
    }
}

/* The fields that a chat has too, under its names. */
static const json *chat_fields(api_request *r, const json *root, bool is_generate)
{
    static const char *const OPTIONS[] = {
        "temperature",      "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty", "repeat_penalty",
        "frequency_penalty"};
    static const char *const SAME[] = {"model", "stream", "tools"};
    const json *options = request_object(&r->error, root, "options"), *think = json_get(root, "think");
    json *chat;
    json_doc *doc = json_build(&chat, JSON_OBJECT);
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        json_add_shared(doc, chat, SAME[i], json_get(root, SAME[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        json_add_shared(doc, chat, OPTIONS[i], json_get(options, OPTIONS[i]));
    }
    if (json_num(json_get(options, "num_predict"), -1) > 0) { /* 0, -1 and -2: as far as there is room */
        json_add_shared(doc, chat, "max_tokens", json_get(options, "num_predict"));
    }
    json_add_shared(doc, chat, json_is(think, JSON_STRING) ? "reasoning_effort" : "enable_thinking", think);
    if (is_null(json_get(root, "stream"))) { /* whatever is not refused streams */
        json_add_bool(doc, chat, "stream", true);
    }
    add_format(doc, chat, json_get(root, "format"));
    add_messages(&r->error, doc, chat, root, is_generate);
    return api_request_keep_built(r, doc);
}

err_code ollama_request_parse(api_request *r, const char *text, size_t len, bool is_generate,
                              const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return r->error.code;
    }
    refuse_unsupported(&r->error, root);
    if (r->error.code == ERR_OK) {
        r->error.code = foreign_fields_check(json_get(root, "options"), false, r->error.detail);
    }
    const json *chat = chat_fields(r, root, is_generate);
    chat_request_read(r, chat, info);
    if (!asks(root, is_generate)) {
        r->in->params.max_tokens = 0;
    }
    return r->error.code;
}
