#include "server/protocol/conversation.h"

#include <string.h>

#include "server/protocol/video_fields.h"

void conversation_open(conversation *c, api_request *r, const json *root, const engine_info *info, size_t n)
{
    *c = (conversation){.r = r, .content = {.r = r, .info = info}, .cap = n};
    r->in->messages = request_calloc(&r->error, r->in->arena, n, sizeof *r->in->messages);
    call_matcher_init(&c->matcher, &r->error, r->in, n);
    video_fields_body(&r->error, &c->content.video, &c->content.pixels, root);
}

chat_message *conversation_add(conversation *c, chat_role role)
{
    chat_input *in = c->r->in;
    const bool ok = c->r->error.code == ERR_OK && in->n_messages < c->cap;
    chat_message *m = ok ? &in->messages[in->n_messages++] : &c->spare;
    *m = (chat_message){.role = role, .is_string = true};
    if (!ok) {
        request_no_memory(&c->r->error);
    }
    return m;
}

chat_message *conversation_last(const conversation *c)
{
    const chat_input *in = c->r->in;
    return in->n_messages ? &in->messages[in->n_messages - 1] : NULL;
}

/* The arguments as an object that lives as long as the request. */
static const json *read_arguments(api_request *r, const json *value, const char *path)
{
    json_doc *doc = NULL;
    const char *text = json_str(value, "{}");
    text = text[0] ? text : "{}";
    if (json_is(value, JSON_OBJECT) || r->error.code != ERR_OK) {
        return value;
    }
    const err_code err = json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, NULL);
    if (err != ERR_OK || !json_is(json_root(doc), JSON_OBJECT)) {
        json_free(doc);
        request_fail(&r->error, ERR_INVALID, path, "invalid_value", "%s must be the text of a JSON object",
                     path);
        return NULL;
    }
    return api_request_keep(r, doc);
}

void conversation_call(conversation *c, chat_message *m, const char *id, const char *name,
                       const json *arguments, const char *path)
{
    const size_t n = m->n_tool_calls;
    if ((n & (n - 1)) == 0) { /* room for 1, 2, 4 ... is full */
        chat_tool_call *calls = request_calloc(&c->r->error, c->r->in->arena, n ? 2 * n : 1, sizeof *calls);
        if (calls && n) {
            memcpy(calls, m->tool_calls, n * sizeof *calls);
        }
        m->tool_calls = calls;
    }
    arguments = read_arguments(c->r, arguments, path);
    call_matcher_call(&c->matcher, id, path);
    if (c->r->error.code == ERR_OK) {
        m->tool_calls[m->n_tool_calls++] = (chat_tool_call){.id = id, .name = name, .arguments = arguments};
    }
}

void conversation_result(conversation *c, chat_message *m, const char *id, const char *path)
{
    m->tool_call_id = id;
    call_matcher_result(&c->matcher, id, c->r->in->n_messages - 1, path);
}

/* What can be continued: an assistant's words. */
static bool can_continue(const chat_message *m)
{
    bool ok = m && m->role == CHAT_ASSISTANT && m->n_tool_calls == 0 && (m->n_parts || m->reasoning);
    for (size_t i = 0; ok && i < m->n_parts; i++) {
        ok = m->parts[i].kind == CHAT_TEXT;
    }
    return ok;
}

void conversation_close(conversation *c, const json *root)
{
    first_error *e = &c->r->error;
    chat_input *in = c->r->in;
    if (e->code == ERR_OK) {
        call_matcher_sort(&c->matcher);
    }
    request_bool(e, &in->continues, root, "continue_final_message");
    if (in->continues && !can_continue(conversation_last(c))) {
        request_fail(e, ERR_INVALID, "continue_final_message", "invalid_value",
                     "continue_final_message needs an assistant's words as the last message");
    }
}
