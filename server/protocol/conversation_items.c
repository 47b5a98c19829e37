#include "server/protocol/conversation_items.h"

#include <string.h>

#include "base/utf8.h"
#include "server/media/data_uri.h"

enum { PATH_BYTES = ERR_PARAM_MAX };

/* What was told as encrypted_content: nothing is secret about it. */
static bool append_encrypted(api_request *r, bytes *out, const json *item)
{
    const char *code = json_str(json_get(item, "encrypted_content"), "");
    size_t n = 0, len = strlen(code);
    uint8_t *plain = request_calloc(&r->error, r->in->arena, len / 4 * 3 + 1, 1);
    const bool ok = plain && base64_decode(plain, &n, code, len) && utf8_valid((const char *)plain, n);
    bytes_append(out, plain, ok ? n : 0);
    return ok;
}

/* Text of reasoning items: the reasoning_text parts, else the summary, else encrypted_content. */
static const char *reasoning_text(api_request *r, const json *item)
{
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    const json *content = json_child(json_get(item, "content"));
    for (const json *v = content ? content : json_child(json_get(item, "summary")); v; v = json_next(v)) {
        bytes_append_str(&text, json_str(json_get(v, "text"), ""));
    }
    if (text.len == 0) {
        (void)append_encrypted(r, &text, item); /* of another server: nothing */
    }
    if (text.failed) {
        request_no_memory(&r->error);
    }
    const char *copy = request_strdup(&r->error, r->in->arena, bytes_str(&text));
    bytes_deinit(&text);
    return copy;
}

/* The assistant message that was added last, if that is what it is. */
static chat_message *open_answer(const conversation *c)
{
    chat_message *last = conversation_last(c);
    return last && last->role == CHAT_ASSISTANT ? last : NULL;
}

/* Calls and reasoning belong to one assistant message with the text beside them. */
static void read_call(conversation *c, const json *item, const char *path)
{
    const char *name = json_str(json_get(item, "name"), NULL);
    chat_message *m = open_answer(c);
    m = m ? m : conversation_add(c, CHAT_ASSISTANT);
    if (!name) {
        request_fail(&c->r->error, ERR_INVALID, path, "missing_field", "%s needs a name", path);
    }
    conversation_call(c, m, json_str(json_get(item, "call_id"), NULL), name, json_get(item, "arguments"),
                      path);
}

static bool read_role(chat_role *out, const char *role)
{
    const bool is_system = strcmp(role, "system") == 0 || strcmp(role, "developer") == 0;
    *out = is_system ? CHAT_SYSTEM : strcmp(role, "user") == 0 ? CHAT_USER : CHAT_ASSISTANT;
    return *out != CHAT_ASSISTANT || strcmp(role, "assistant") == 0;
}

static void read_plain_message(conversation *c, const json *item, const char *path)
{
    char inner[PATH_BYTES];
    chat_role role;
    if (!read_role(&role, json_str(json_get(item, "role"), ""))) {
        request_path(inner, "%s.role", path);
        request_fail(&c->r->error, ERR_INVALID, inner, "invalid_value",
                     "%s must be system, developer, user or assistant", inner);
    }
    /* Reasoning in front of the text waits in an assistant message without content. */
    chat_message *last = role == CHAT_ASSISTANT ? open_answer(c) : NULL;
    chat_message *m =
        last && last->n_parts == 0 && last->n_tool_calls == 0 ? last : conversation_add(c, role);
    request_path(inner, "%s.content", path);
    content_read(&c->content, m, json_get(item, "content"), inner);
}

static void read_result(conversation *c, const json *item, const char *path)
{
    char inner[PATH_BYTES];
    chat_message *m = conversation_add(c, CHAT_TOOL);
    request_path(inner, "%s.call_id", path);
    conversation_result(c, m, json_str(json_get(item, "call_id"), NULL), inner);
    request_path(inner, "%s.output", path);
    content_read(&c->content, m, json_get(item, "output"), inner);
}

/* ---- calls that this server has run ---- */

/* The name by which the model calls a server's tool: of this request's tools, or one like it. */
static const char *model_name(conversation *c, const json *item)
{
    const char *label = json_str(json_get(item, "server_label"), ""),
               *name = json_str(json_get(item, "name"), "");
    const char *planned = tool_plan_name(c->r->reply.plan, label, name);
    return planned ? planned : name[0] ? name : "tool";
}

static void trust(conversation *c, const json *item)
{
    tool_plan_trust(c->r->reply.plan, json_str(json_get(item, "server_label"), ""),
                    json_str(json_get(item, "name"), ""));
}

/* What the model called it with; nothing where that was no object: then the result says so. */
static const json *run_arguments(conversation *c, const json *item)
{
    const json *given = json_get(item, "arguments");
    const char *text = json_str(given, NULL);
    json *none;
    if (!text || !text[0] || json_is_object_text(text, strlen(text))) {
        return given;
    }
    json_doc *doc = json_build(&none, JSON_OBJECT);
    return api_request_keep_built(c->r, doc);
}

static void add_run(conversation *c, const json *item, const json *output, const char *path)
{
    const char *id = json_str(json_get(item, "id"), NULL);
    chat_message *m = open_answer(c);
    m = m ? m : conversation_add(c, CHAT_ASSISTANT);
    conversation_call(c, m, id, model_name(c, item), run_arguments(c, item), path);
    m = conversation_add(c, CHAT_TOOL);
    conversation_result(c, m, id, path);
    content_read(&c->content, m, output, path);
}

/* mcp_call: the call and what it brought, with its images. */
static void read_run(conversation *c, const json *item, const char *path)
{
    const json *output = json_get(item, "output"), *error = json_get(item, "error");
    const json *images = json_get(item, "images");
    if (json_str(json_get(item, "approval_request_id"), NULL)) { /* asked about, and it has run */
        trust(c, item);
    }
    const char *text =
        json_str(output, json_str(error, json_str(json_get(error, "message"), "there is no result")));
    json *list;
    json_doc *doc = json_build(&list, JSON_ARRAY);
    json *part = json_add_object(doc, list, NULL);
    json_add_string(doc, part, "type", "input_text");
    json_add_string(doc, part, "text", text[0] ? text : "(nothing)");
    const bool sees = c->content.info && c->content.info->has_vision;
    for (const json *v = sees ? json_child(images) : NULL; v; v = json_next(v)) {
        json *image = json_add_object(doc, list, NULL);
        json_add_string(doc, image, "type", "input_image");
        json_add_shared(doc, image, "image_url", v);
    }
    c->content.is_found = true;
    add_run(c, item, api_request_keep_built(c->r, doc), path);
    c->content.is_found = false;
}

static const json *find_item(const json *list, const char *type, const char *member, const char *value)
{
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (strcmp(json_str(json_get(v, "type"), ""), type) == 0 &&
            strcmp(json_str(json_get(v, member), ""), value) == 0) {
            return v;
        }
    }
    return NULL;
}

/* A person's word about a call: a yes makes it the first that is run, a no is what the model hears. */
static void read_decision(conversation *c, const json *item, const json *list, bool is_new, const char *path)
{
    const char *id = json_str(json_get(item, "approval_request_id"), "");
    const json *asked = find_item(list, "mcp_approval_request", "id", id);
    asked = asked ? asked : find_item(c->earlier, "mcp_approval_request", "id", id);
    char inner[PATH_BYTES];
    request_path(inner, "%s.approval_request_id", path);
    if (!asked || !json_is(json_get(item, "approve"), JSON_BOOL)) {
        request_fail(&c->r->error, ERR_INVALID, inner, "invalid_value",
                     "%s must name an mcp_approval_request of this conversation, with approve true or false",
                     inner);
        return;
    }
    if (json_is_true(json_get(item, "approve"))) {
        trust(c, asked);
    }
    if (!json_is_true(json_get(item, "approve"))) {
        json *list_of_one;
        json_doc *doc = json_build(&list_of_one, JSON_ARRAY);
        json *part = json_add_object(doc, list_of_one, NULL);
        json_add_string(doc, part, "type", "input_text");
        json_add_string(doc, part, "text", "The user does not allow this call.");
        add_run(c, asked, api_request_keep_built(c->r, doc), path);
    } else if (is_new && !find_item(list, "mcp_call", "approval_request_id", id) && !c->r->turns) {
        tool_plan_approve(c->r->reply.plan, &c->r->error, asked, inner);
    }
}

/* Whether what stands behind a summary answers what stands before it: it was made on the way. */
static bool is_answered(const json *summary)
{
    const json *next = json_next(summary);
    return next && strcmp(json_str(json_get(next, "role"), "assistant"), "assistant") == 0 &&
           strcmp(json_str(json_get(next, "type"), ""), "function_call_output") != 0;
}

/* compaction: a summary that stands for all before it, but for what the system says. is_now: it was made for this
 * answer, so that what it answers stays, too, and does so in later turns. */
static void read_compaction(conversation *c, const json *item, bool is_now, const char *path)
{
    const chat_message *last = conversation_last(c);
    const bool keeps = (is_now || is_answered(item)) && last && last->role == CHAT_USER;
    const chat_message question = keeps ? *last : (chat_message){0};
    static const char BEGIN[] = "This is a summary of the conversation so far:\n\n";
    char inner[PATH_BYTES];
    json *list;
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    json_doc *doc = json_build(&list, JSON_ARRAY);
    json *part = json_add_object(doc, list, NULL);
    bytes_append_str(&text, BEGIN);
    request_path(inner, "%s.encrypted_content", path);
    const bool is_ours = append_encrypted(c->r, &text, item);
    if (text.failed) {
        request_no_memory(&c->r->error);
    } else if (!is_ours || text.len < sizeof BEGIN) {
        request_fail(
            &c->r->error, ERR_INVALID, inner, "invalid_value",
            "%s must be that of a compaction by this server (POST /v1/responses/compact, context_management)",
            inner);
    }
    json_add_string(doc, part, "type", "input_text");
    json_add_string(doc, part, "text", bytes_str(&text));
    bytes_deinit(&text);
    conversation_forget(c);
    content_read(&c->content, conversation_add(c, CHAT_USER), api_request_keep_built(c->r, doc), inner);
    if (keeps) {
        *conversation_add(c, CHAT_USER) = question;
    }
}

static void read_item(conversation *c, const json *item, const json *list, bool is_new, const char *path)
{
    char inner[PATH_BYTES];
    const char *type = json_str(json_get(item, "type"), "message");
    if (!json_is(item, JSON_OBJECT)) {
        request_fail(&c->r->error, ERR_INVALID, path, "invalid_type", "%s must be an object", path);
    } else if (strcmp(type, "message") == 0) {
        read_plain_message(c, item, path);
    } else if (strcmp(type, "reasoning") == 0) {
        conversation_add(c, CHAT_ASSISTANT)->reasoning = reasoning_text(c->r, item);
    } else if (strcmp(type, "function_call") == 0) {
        read_call(c, item, path);
    } else if (strcmp(type, "function_call_output") == 0) {
        c->content.is_found = list == c->r->turns; /* of a tool that has run here */
        read_result(c, item, path);
        c->content.is_found = false;
    } else if (strcmp(type, "compaction") == 0) {
        read_compaction(c, item, list == c->r->turns, path);
    } else if (strcmp(type, "mcp_call") == 0) {
        read_run(c, item, path);
    } else if (strcmp(type, "mcp_approval_response") == 0) {
        read_decision(c, item, list, is_new, path);
    } else if (strcmp(type, "mcp_list_tools") == 0 || strcmp(type, "mcp_approval_request") == 0) {
        return; /* the first says what the request says again; the second is answered by another item */
    } else {
        request_path(inner, "%s.type", path);
        request_fail(&c->r->error, ERR_UNSUPPORTED, inner, "unsupported_item_type", "%s is not understood",
                     inner);
    }
}

void conversation_items_read(conversation *c, const json *list, const char *name, bool is_new)
{
    size_t i = 0;
    for (const json *v = json_child(list); v && c->r->error.code == ERR_OK; v = json_next(v)) {
        char path[PATH_BYTES];
        request_path(path, "%s[%zu]", name, i++);
        read_item(c, v, list, is_new, path);
    }
    c->earlier = c->earlier ? c->earlier : list;
}

size_t conversation_items_extra(const json *list)
{
    size_t n = 0;
    for (const json *v = json_is(list, JSON_ARRAY) ? json_child(list) : NULL; v; v = json_next(v)) {
        n += strncmp(json_str(json_get(v, "type"), ""), "mcp_", 4) == 0;
    }
    return n;
}
