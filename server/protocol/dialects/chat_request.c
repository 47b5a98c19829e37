#include "server/protocol/dialects/chat_request.h"

#include <string.h>

#include "base/limits.h"
#include "server/protocol/conversation_items.h"
#include "server/protocol/response_format.h"
#include "server/protocol/thinking_fields.h"
#include "server/protocol/tool_fields.h"

enum { PATH_BYTES = ERR_PARAM_MAX };

/* ---- messages ---- */

static void read_call(conversation *c, chat_message *m, const char *id, const json *function,
                      const char *path)
{
    const char *name = json_str(json_get(function, "name"), NULL);
    if (!name) {
        request_fail(&c->r->error, ERR_INVALID, path, "invalid_value", "%s needs a name", path);
    }
    conversation_call(c, m, id, name, json_get(function, "arguments"), path);
}

/* tool_calls, and function_call as older clients write it. */
static void read_tool_calls(conversation *c, chat_message *m, const json *message, const char *path)
{
    first_error *e = &c->r->error;
    const json *calls = json_get(message, "tool_calls"), *old = json_get(message, "function_call");
    char call_path[PATH_BYTES];
    size_t n = json_typeof(calls) == JSON_NULL ? 0 : json_is(calls, JSON_ARRAY) ? json_len(calls) : SIZE_MAX;
    if (n > LIMIT_PARTS_PER_MESSAGE) {
        request_fail(e, ERR_INVALID, path, "invalid_type", "%s.tool_calls must be a list of at most %d calls",
                     path, LIMIT_PARTS_PER_MESSAGE);
    }
    if (n == 0 && json_is(old, JSON_OBJECT)) {
        request_path(call_path, "%s.function_call", path);
        read_call(c, m, NULL, old, call_path);
        return;
    }
    for (const json *v = json_child(calls); v && e->code == ERR_OK; v = json_next(v)) {
        request_path(call_path, "%s.tool_calls[%zu].function", path, m->n_tool_calls);
        read_call(c, m, json_str(json_get(v, "id"), NULL), json_get(v, "function"), call_path);
    }
}

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

static void read_message(conversation *c, const json *v, const char *path)
{
    first_error *e = &c->r->error;
    char inner[PATH_BYTES];
    chat_role role = CHAT_USER;
    const json *content = json_get(v, "content");
    if (!json_is(v, JSON_OBJECT)) {
        request_fail(e, ERR_INVALID, path, "invalid_type", "%s must be an object", path);
    }
    if (!read_role(&role, json_str(json_get(v, "role"), ""))) {
        request_path(inner, "%s.role", path);
        request_fail(e, ERR_INVALID, inner, "invalid_value",
                     "%s must be system, developer, user, assistant or tool", inner);
    }
    chat_message *m = conversation_add(c, role);
    request_path(inner, "%s.content", path);
    content_read(&c->content, m, content, inner);
    m->name = json_str(json_get(v, "name"), NULL);
    m->tool_call_id = json_str(json_get(v, "tool_call_id"), NULL);
    if (role == CHAT_ASSISTANT) {
        m->reasoning = json_str(json_get(v, "reasoning_content"), json_str(json_get(v, "reasoning"), NULL));
        read_tool_calls(c, m, v, path);
    } else if (json_typeof(content) == JSON_NULL) {
        request_fail(e, ERR_INVALID, inner, "missing_field", "%s is missing", inner);
    }
    if (role == CHAT_TOOL) {
        request_path(inner, "%s.tool_call_id", path);
        conversation_result(c, m, m->tool_call_id, inner);
    }
}

static void read_messages(api_request *r, const json *root, const engine_info *info)
{
    const json *messages = json_get(root, "messages");
    size_t n = json_is(messages, JSON_ARRAY) ? json_len(messages) : 0, i = 0;
    if (n == 0 || n > LIMIT_MESSAGES) {
        const bool is_other = json_typeof(messages) != JSON_NULL && !json_is(messages, JSON_ARRAY);
        request_fail(&r->error, ERR_INVALID, "messages",
                     n          ? "too_many_messages"
                     : is_other ? "invalid_type"
                                : "missing_field",
                     "messages must be a list of 1 to %d messages", LIMIT_MESSAGES);
    }
    conversation c;
    conversation_open(&c, r, root, info, n);
    for (const json *v = json_child(messages); v && r->error.code == ERR_OK; v = json_next(v)) {
        char path[PATH_BYTES];
        request_path(path, "messages[%zu]", i++);
        read_message(&c, v, path);
    }
    conversation_items_read(&c, r->turns, "turns", false);
    conversation_close(&c, root);
}

void chat_request_read(api_request *r, const json *root, const engine_info *info)
{
    const char *effort = NULL;
    first_error *e = &r->error;
    other_fields_check(e, root, OTHER_CHAT);
    api_request_generation(r, root, info);
    request_bool(e, &r->reply.logprobs, root, "logprobs");
    api_request_top_logprobs(r, root, "logprobs: true");
    request_read_stop(e, &r->reply, root);
    request_string(e, &effort, root, "reasoning_effort", 16);
    thinking_fields_read(r, root, effort, "reasoning_effort");
    tool_fields_read(r, root, TOOLS_NESTED);
    response_format_read(r, json_get(root, "response_format"), "response_format");
    read_messages(r, root, info);
    api_request_choices(r, root, 1);
}

err_code chat_request_parse(api_request *r, const char *text, size_t len, const engine_info *info,
                            err_detail *d)
{
    const json *root = NULL;
    if (api_request_open(r, &root, text, len, d) == ERR_OK) {
        chat_request_read(r, root, info);
    }
    return r->error.code;
}
