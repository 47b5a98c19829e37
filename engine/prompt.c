#include "engine/prompt.h"

#include <string.h>

#include "base/limits.h"
#include "text/jinja/chat_template.h"

/* What building the template's variables needs everywhere. */
typedef struct builder {
    arena *a;
    guard guard;
    bool splits_thinking; /* the template wants the reasoning of an answer apart from its text */
    bytes guarded;        /* reused for each string */
} builder;

/* A string that a user, a tool or a model wrote: markers in it are broken by guards. */
static jinja_value *user_string(builder *b, const char *text, size_t len)
{
    bytes_clear(&b->guarded);
    guard_text(&b->guard, &b->guarded, text, len);
    return b->guarded.failed ? NULL : jinja_str(b->a, bytes_str(&b->guarded), b->guarded.len);
}

/* As jinja_from_json, with every string guarded. Depth is bounded by the JSON parser. */
static jinja_value *user_json(builder *b, const json *v)
{
    if (json_is(v, JSON_STRING)) {
        const char *text = json_str(v, "");
        return user_string(b, text, strlen(text));
    }
    if (json_is(v, JSON_ARRAY)) {
        jinja_value *list = jinja_list(b->a);
        for (const json *item = json_child(v); item && list; item = json_next(item)) {
            if (!jinja_list_push(b->a, list, user_json(b, item))) {
                return NULL;
            }
        }
        return list;
    }
    if (json_is(v, JSON_OBJECT)) {
        jinja_value *dict = jinja_dict(b->a);
        for (const json *item = json_child(v); item && dict; item = json_next(item)) {
            bytes_clear(&b->guarded);
            guard_text(&b->guard, &b->guarded, json_key(item), strlen(json_key(item)));
            char *key = arena_strdup(b->a, bytes_str(&b->guarded), b->guarded.len);
            if (!key || !jinja_dict_set(b->a, dict, key, user_json(b, item))) {
                return NULL;
            }
        }
        return dict;
    }
    return jinja_from_json(b->a, v);
}

static jinja_value *constant(builder *b, const char *text)
{
    return jinja_own_str(b->a, text);
}

/* An answer that came back with its reasoning in front, "<think>...</think>", as other servers give
 * it: fills reasoning and returns how many bytes of the first part that takes, or returns 0.
 * Templates look for the markers themselves, but in contents these are guarded. */
static size_t find_thinking(const builder *b, const chat_message *m, const char **reasoning, size_t *len)
{
    static const char OPEN[] = "<think>", CLOSE[] = "</think>";
    if (!b->splits_thinking || m->role != CHAT_ASSISTANT || m->reasoning || m->n_parts == 0 ||
        m->parts[0].kind != CHAT_TEXT) {
        return 0;
    }
    const char *text = m->parts[0].text, *from = text + strspn(text, " \n\r\t");
    const char *end = strncmp(from, OPEN, sizeof OPEN - 1) == 0 ? strstr(from, CLOSE) : NULL;
    if (!end) {
        return 0;
    }
    const char *rest = end + sizeof CLOSE - 1;
    rest += strspn(rest, "\n");
    from += sizeof OPEN - 1;
    for (; from < end && *from == '\n'; from++) {
    }
    for (; end > from && end[-1] == '\n'; end--) {
    }
    *reasoning = from;
    *len = (size_t)(end - from);
    return (size_t)(rest - text);
}

/* Without the first `skip` bytes of the first part. */
static jinja_value *content_value(builder *b, const chat_message *m, size_t skip)
{
    if (m->is_string && m->n_parts == 1 && m->parts[0].kind == CHAT_TEXT) {
        return user_string(b, m->parts[0].text + skip, m->parts[0].text_len - skip);
    }
    if (m->n_parts == 0) {
        return constant(b, "");
    }
    jinja_value *list = jinja_list(b->a);
    for (size_t i = 0; i < m->n_parts && list; i++) {
        const chat_part *p = &m->parts[i];
        jinja_value *item = jinja_dict(b->a);
        bool ok = item != NULL;
        if (p->kind == CHAT_TEXT) {
            ok = ok && jinja_dict_set(b->a, item, "type", constant(b, "text")) &&
                 jinja_dict_set(b->a, item, "text",
                                user_string(b, p->text + (i ? 0 : skip), p->text_len - (i ? 0 : skip)));
        } else {
            ok = ok &&
                 jinja_dict_set(b->a, item, "type", constant(b, p->kind == CHAT_IMAGE ? "image" : "video"));
        }
        if (!ok || !jinja_list_push(b->a, list, item)) {
            return NULL;
        }
    }
    return list;
}

static jinja_value *tool_calls_value(builder *b, const chat_message *m)
{
    jinja_value *list = jinja_list(b->a);
    for (size_t i = 0; i < m->n_tool_calls && list; i++) {
        const chat_tool_call *call = &m->tool_calls[i];
        jinja_value *function = jinja_dict(b->a), *item = jinja_dict(b->a);
        bool ok = function && item &&
                  jinja_dict_set(b->a, function, "name", user_string(b, call->name, strlen(call->name))) &&
                  jinja_dict_set(b->a, function, "arguments",
                                 call->arguments ? user_json(b, call->arguments) : jinja_dict(b->a)) &&
                  jinja_dict_set(b->a, item, "type", constant(b, "function")) &&
                  jinja_dict_set(b->a, item, "function", function);
        if (ok && call->id) {
            ok = jinja_dict_set(b->a, item, "id", user_string(b, call->id, strlen(call->id)));
        }
        if (!ok || !jinja_list_push(b->a, list, item)) {
            return NULL;
        }
    }
    return list;
}

static bool set_optional(builder *b, jinja_value *dict, const char *key, const char *text)
{
    return !text || jinja_dict_set(b->a, dict, key, user_string(b, text, strlen(text)));
}

static jinja_value *message_value(builder *b, const chat_message *m)
{
    static const char *const ROLES[] = {
        [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant", [CHAT_TOOL] = "tool"};
    const char *thought = NULL;
    size_t thought_len = 0;
    const size_t skip = find_thinking(b, m, &thought, &thought_len);
    jinja_value *dict = jinja_dict(b->a);
    bool ok =
        dict && jinja_dict_set(b->a, dict, "role", constant(b, ROLES[m->role])) &&
        jinja_dict_set(b->a, dict, "content", content_value(b, m, skip)) &&
        (!thought || jinja_dict_set(b->a, dict, "reasoning_content", user_string(b, thought, thought_len))) &&
        set_optional(b, dict, "reasoning_content", m->reasoning) &&
        set_optional(b, dict, "tool_call_id", m->tool_call_id) && set_optional(b, dict, "name", m->name);
    if (ok && m->n_tool_calls) {
        ok = jinja_dict_set(b->a, dict, "tool_calls", tool_calls_value(b, m));
    }
    return ok ? dict : NULL;
}

/* The template's variables, or NULL if out of memory. */
static jinja_value *template_vars(builder *b, const chat_input *in)
{
    jinja_value *vars = jinja_dict(b->a), *messages = jinja_list(b->a);
    bool ok = vars && messages;
    const size_t n = in->n_messages - (in->continues ? 1 : 0);
    for (size_t i = 0; i < n && ok; i++) {
        ok = jinja_list_push(b->a, messages, message_value(b, &in->messages[i]));
    }
    ok = ok && jinja_dict_set(b->a, vars, "messages", messages) &&
         jinja_dict_set(b->a, vars, "add_generation_prompt", jinja_bool(b->a, true));
    if (ok && in->tools && json_len(in->tools) > 0) {
        ok = jinja_dict_set(b->a, vars, "tools", user_json(b, in->tools));
    }
    const json *kwargs = json_is(in->template_kwargs, JSON_OBJECT) ? json_child(in->template_kwargs) : NULL;
    for (; kwargs && ok; kwargs = json_next(kwargs)) {
        ok = jinja_dict_set(b->a, vars, json_key(kwargs), user_json(b, kwargs));
    }
    return ok ? vars : NULL;
}

/* Appends what an answer that was cut had said already, behind the words that invited it. */
static void append_answer(bytes *out, const tokenizer *tok, const chat_message *m)
{
    const bool is_open = prompt_starts_in_thinking(bytes_str(out), out->len);
    if (m->reasoning && (is_open || m->n_parts == 0)) {
        bytes_append_str(out, is_open ? "" : "<think>\n");
        tokenizer_guard(tok, out, m->reasoning, strlen(m->reasoning));
    }
    if (is_open && m->n_parts) {
        bytes_append_str(out, "\n</think>\n\n");
    }
    for (size_t i = 0; i < m->n_parts; i++) {
        tokenizer_guard(tok, out, m->parts[i].text, m->parts[i].text_len);
    }
}

err_code prompt_render(bytes *out, size_t *history_len, const tokenizer *tok, const chat_template *template,
                       const chat_input *in, err_detail *detail)
{
    builder b = {.guard = {{tokenizer_markers(tok), chat_template_markers(template)}},
                 .a = arena_create(LIMIT_RENDERED_BYTES * 4)};
    bytes_init(&b.guarded, LIMIT_RENDERED_BYTES);
    const char *source = chat_template_text(template);
    b.splits_thinking = strstr(source, "reasoning_content") || strstr(source, "</think>");
    jinja_value *vars = b.a ? template_vars(&b, in) : NULL;
    err_code err = vars
                       ? chat_template_render(template, out, history_len, vars, &b.guard, b.a, detail)
                       : err_set(detail, ERR_NOMEM, "there is not enough memory to render this conversation");
    if (err == ERR_OK && in->continues) {
        append_answer(out, tok, &in->messages[in->n_messages - 1]);
        err = out->failed ? err_set(detail, ERR_NOMEM, "there is not enough memory for this prompt") : ERR_OK;
    }
    bytes_deinit(&b.guarded);
    arena_destroy(b.a);
    return err;
}

bool prompt_starts_in_thinking(const char *text, size_t len)
{
    static const char OPEN[] = "<think>";
    while (len > 0 && strchr(" \n\r\t", text[len - 1])) {
        len--;
    }
    const size_t n = sizeof OPEN - 1;
    return len >= n && memcmp(text + len - n, OPEN, n) == 0;
}

bool prompt_continues_thinking(const chat_input *in)
{
    const chat_message *last = &in->messages[in->n_messages - 1];
    return in->continues && last->n_parts == 0 && last->reasoning;
}
