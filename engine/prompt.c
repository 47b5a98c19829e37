#include "engine/prompt.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "text/jinja/chat_template.h"

/* What the values of a conversation may take, and what rendering it may. */
static const size_t ARENA_BYTES = LIMIT_RENDERED_BYTES * 4;

/* What building the template's variables needs everywhere. */
typedef struct builder {
    const chat_template *template;
    const prompt_style *style;
    const think_form *think;
    const chat_input *in;
    arena *a;
    guard guard;
    bool splits_thinking; /* the template wants the reasoning of an answer apart from its text */
    bytes guarded;        /* reused for each string */
    bool lacked_memory;   /* the machine had none for a string outside the arena */
    /* as the template takes them, without an answer that is to be continued */
    chat_message *messages;
    jinja_value **values; /* [n] */
    size_t n;
} builder;

/* A string that a user, a tool or a model wrote: markers in it are broken by guards. */
static jinja_value *user_string(builder *b, const char *text, size_t len)
{
    bytes_clear(&b->guarded);
    guard_text(&b->guard, &b->guarded, text, len);
    b->lacked_memory |= b->guarded.no_memory;
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

/* The pieces of a content that is one string. */
static jinja_value *joined_string(builder *b, const chat_message *m, size_t skip)
{
    bytes_clear(&b->guarded);
    for (size_t i = 0; i < m->n_parts; i++) {
        const chat_part *p = &m->parts[i];
        const size_t begin = i ? 0 : skip;
        if (p->is_ours) {
            bytes_append(&b->guarded, p->text, p->text_len);
        } else {
            guard_text(&b->guard, &b->guarded, p->text + begin, p->text_len - begin);
        }
    }
    return b->guarded.failed ? NULL : jinja_str(b->a, bytes_str(&b->guarded), b->guarded.len);
}

/* Without the first `skip` bytes of the first part. */
static jinja_value *content_value(builder *b, const chat_message *m, size_t skip)
{
    if (m->n_parts == 0) {
        return constant(b, "");
    }
    if (m->is_string) {
        return joined_string(b, m, skip);
    }
    jinja_value *list = jinja_list(b->a);
    for (size_t i = 0; i < m->n_parts && list; i++) {
        const chat_part *p = &m->parts[i];
        jinja_value *item = jinja_dict(b->a);
        bool ok = item != NULL;
        if (p->kind == CHAT_TEXT) {
            const size_t begin = i ? 0 : skip;
            const bool is_ours = p->is_ours;
            ok = ok && jinja_dict_set(b->a, item, "type", constant(b, "text")) &&
                 jinja_dict_set(b->a, item, "text",
                                is_ours ? constant(b, p->text)
                                        : user_string(b, p->text + begin, p->text_len - begin));
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

/* ---- calls ---- */

/* The call that a result belongs to: by its id, or else by its place among the results. *index counts
 * all calls in front of it. NULL if there is none. */
static const chat_tool_call *find_call(const builder *b, const chat_message *result, size_t *index)
{
    size_t n_calls = 0, n_results = 0;
    const chat_tool_call *placed = NULL;
    for (const chat_message *m = b->messages; m < b->messages + b->n && m != result; m++) {
        n_results += m->role == CHAT_TOOL;
    }
    for (const chat_message *m = b->messages; m < b->messages + b->n; m++) {
        for (size_t i = 0; i < m->n_tool_calls; i++, n_calls++) {
            const chat_tool_call *call = &m->tool_calls[i];
            if (result->tool_call_id && call->id && strcmp(call->id, result->tool_call_id) == 0) {
                *index = n_calls;
                return call;
            }
            if (n_calls == n_results) {
                placed = call;
                *index = n_calls;
            }
        }
    }
    return placed;
}

/* The id of a call as the template wants it, in the arena; NULL if it has none or memory is out. */
static const char *call_id(builder *b, const char *id, const char *name, size_t index)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    enum { SHORT_LEN = 9, N_LETTERS = sizeof LETTERS - 1 };
    const template_habits *h = &b->style->habits;
    char text[600];
    if (h->counted_ids && name) {
        snprintf(text, sizeof text, "functions.%s:%zu", name, index);
        return arena_strdup(b->a, text, strlen(text));
    }
    if (!h->short_ids || (id && strlen(id) == SHORT_LEN && strspn(id, LETTERS) == SHORT_LEN)) {
        return id;
    }
    uint8_t hash[HASH_BYTES];
    snprintf(text, sizeof text, "%zu", index);
    hash_sha256(hash, id ? id : text, strlen(id ? id : text));
    for (size_t i = 0; i < SHORT_LEN; i++) {
        text[i] = LETTERS[hash[i] % N_LETTERS];
    }
    return arena_strdup(b->a, text, SHORT_LEN);
}

/* The arguments of a call: an object, or its text. */
static jinja_value *arguments_value(builder *b, const chat_tool_call *call)
{
    if (!b->style->habits.string_arguments) {
        return call->arguments ? user_json(b, call->arguments) : jinja_dict(b->a);
    }
    bytes text;
    bytes_init(&text, LIMIT_RENDERED_BYTES);
    if (call->arguments) {
        json_write(&text, call->arguments);
    } else {
        bytes_append_str(&text, "{}");
    }
    b->lacked_memory |= text.no_memory;
    jinja_value *value = text.failed ? NULL : user_string(b, bytes_str(&text), text.len);
    bytes_deinit(&text);
    return value;
}

/* Results as a member of the message of their calls. */
static jinja_value *results_value(builder *b, const chat_message *m)
{
    jinja_value *list = jinja_list(b->a);
    for (size_t i = 0; i < m->n_results && list; i++) {
        const chat_message *result = &m->results[i];
        const char *name = i < m->n_tool_calls ? m->tool_calls[i].name : "unknown";
        for (size_t k = 0; k < m->n_tool_calls && result->tool_call_id; k++) {
            const char *id = m->tool_calls[k].id;
            name = id && strcmp(id, result->tool_call_id) == 0 ? m->tool_calls[k].name : name;
        }
        jinja_value *item = jinja_dict(b->a);
        const bool ok = item && jinja_dict_set(b->a, item, "name", user_string(b, name, strlen(name))) &&
                        jinja_dict_set(b->a, item, "response", joined_string(b, result, 0));
        if (!ok || !jinja_list_push(b->a, list, item)) {
            return NULL;
        }
    }
    return list;
}

static jinja_value *tool_calls_value(builder *b, const chat_message *m)
{
    size_t index = 0;
    for (const chat_message *before = b->messages; before < m; before++) {
        index += before->n_tool_calls;
    }
    jinja_value *list = jinja_list(b->a);
    for (size_t i = 0; i < m->n_tool_calls && list; i++) {
        const chat_tool_call *call = &m->tool_calls[i];
        jinja_value *function = jinja_dict(b->a), *item = jinja_dict(b->a);
        bool ok = function && item &&
                  jinja_dict_set(b->a, function, "name", user_string(b, call->name, strlen(call->name))) &&
                  jinja_dict_set(b->a, function, "arguments", arguments_value(b, call)) &&
                  jinja_dict_set(b->a, item, "type", constant(b, "function")) &&
                  jinja_dict_set(b->a, item, "function", function);
        const char *id = call_id(b, call->id, call->name, index + i);
        if (ok && id) {
            ok = jinja_dict_set(b->a, item, "id", user_string(b, id, strlen(id)));
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
    const template_habits *h = &b->style->habits;
    const bool is_silent = h->no_call_text && m->n_tool_calls && m->n_parts == 0;
    size_t index = 0;
    const chat_tool_call *answered = m->role == CHAT_TOOL ? find_call(b, m, &index) : NULL;
    const char *result_of =
        m->role == CHAT_TOOL ? call_id(b, m->tool_call_id, answered ? answered->name : NULL, index) : NULL;
    jinja_value *dict = jinja_dict(b->a);
    bool ok =
        dict && jinja_dict_set(b->a, dict, "role", constant(b, ROLES[m->role])) &&
        jinja_dict_set(b->a, dict, "content", is_silent ? jinja_none(b->a) : content_value(b, m, skip)) &&
        (!thought || jinja_dict_set(b->a, dict, "reasoning_content", user_string(b, thought, thought_len))) &&
        set_optional(b, dict, "reasoning_content", m->reasoning) &&
        set_optional(b, dict, "tool_call_id", result_of) && set_optional(b, dict, "name", m->name);
    if (ok && h->says_thinking && !(m->n_tool_calls && m->n_parts)) {
        ok = set_optional(b, dict, "thinking", m->reasoning);
    }
    if (ok && m->n_results) {
        ok = jinja_dict_set(b->a, dict, "tool_responses", results_value(b, m));
    }
    if (ok && m->n_tool_calls) {
        ok = jinja_dict_set(b->a, dict, "tool_calls", tool_calls_value(b, m));
    }
    return ok ? dict : NULL;
}

/* Appends what an answer that was cut had said already, behind the words that invited it. */
static void append_answer(bytes *out, const tokenizer *tok, const think_form *form, const chat_message *m)
{
    const bool is_open = prompt_starts_in_thinking(form, bytes_str(out), out->len);
    if (m->reasoning && (is_open || m->n_parts == 0)) {
        bytes_append_str(out, is_open ? "" : form->opening);
        tokenizer_guard(tok, out, m->reasoning, strlen(m->reasoning));
    }
    if (is_open && m->n_parts) {
        bytes_append_str(out, form->closing);
    }
    if (m->n_parts && form->text_opening) {
        bytes_append_str(out, form->text_opening);
    }
    for (size_t i = 0; i < m->n_parts; i++) {
        tokenizer_guard(tok, out, m->parts[i].text, m->parts[i].text_len);
    }
}

/* ---- rendering ---- */

/* Where the messages are that no rendering can do without: the system's, in front. */
static size_t head_len(const builder *b)
{
    return b->n > 0 && b->messages[0].role == CHAT_SYSTEM ? 1 : 0;
}

/* The switches of reasoning in the words of this template. enable_thinking is `thinking` in some, and a
 * budget of nothing in others; harmony knows three words for the effort. */
static bool set_switches(builder *b, jinja_value *vars)
{
    const json *kwargs = b->in->template_kwargs, *on = json_get(kwargs, "enable_thinking");
    const char *effort = json_str(json_get(kwargs, "reasoning_effort"), "");
    const bool knows = chat_template_has_variable(b->template, "enable_thinking");
    bool ok = true;
    if (json_is(on, JSON_BOOL) && !knows && !json_get(kwargs, "thinking")) {
        ok = jinja_dict_set(b->a, vars, "thinking", jinja_bool(b->a, json_is_true(on)));
    }
    if (json_is(on, JSON_BOOL) && !json_is_true(on) && !knows && !json_get(kwargs, "thinking_budget")) {
        ok = ok && jinja_dict_set(b->a, vars, "thinking_budget", jinja_int(b->a, 0));
    }
    if (b->think->has_channels && (strcmp(effort, "none") == 0 || strcmp(effort, "minimal") == 0)) {
        ok = ok && jinja_dict_set(b->a, vars, "reasoning_effort", constant(b, "low"));
    }
    if (b->think->has_channels && strcmp(effort, "xhigh") == 0) {
        ok = ok && jinja_dict_set(b->a, vars, "reasoning_effort", constant(b, "high"));
    }
    return ok;
}

/* The template's variables, with the head and messages begin to end, or NULL if out of memory. */
static jinja_value *template_vars(builder *b, size_t begin, size_t end)
{
    const chat_input *in = b->in;
    jinja_value *vars = jinja_dict(b->a), *messages = jinja_list(b->a);
    bool ok = vars && messages;
    for (size_t i = 0; i < end && ok; i++) {
        ok = (i >= head_len(b) && i < begin) || jinja_list_push(b->a, messages, b->values[i]);
    }
    ok = ok && jinja_dict_set(b->a, vars, "messages", messages) &&
         jinja_dict_set(b->a, vars, "add_generation_prompt", jinja_bool(b->a, true));
    if (ok && in->tools && json_len(in->tools) > 0 && b->style->habits.takes_tools) {
        ok = jinja_dict_set(b->a, vars, "tools", user_json(b, in->tools));
    }
    ok = ok && jinja_dict_set(b->a, vars, "bos_token", constant(b, b->style->bos_token)) &&
         jinja_dict_set(b->a, vars, "eos_token", constant(b, b->style->eos_token));
    const json *kwargs = json_is(in->template_kwargs, JSON_OBJECT) ? json_child(in->template_kwargs) : NULL;
    for (; kwargs && ok; kwargs = json_next(kwargs)) {
        ok = jinja_dict_set(b->a, vars, json_key(kwargs), user_json(b, kwargs));
    }
    ok = ok && set_switches(b, vars);
    return ok ? vars : NULL;
}

/* Why there was no room for what the conversation is made into, or no arena `a`: the machine has no memory, or a bound is
 * reached. */
static err_code no_room(const builder *b, const arena *a, err_detail *detail)
{
    if (!a || arena_lacked_memory(b->a) || b->lacked_memory) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to render this conversation");
    }
    return err_set(detail, ERR_LIMIT, "this conversation takes more than %zu MiB to render; shorten it",
                   ARENA_BYTES >> 20);
}

/* Renders the head and messages begin to end. spans: [n], filled for these, at their own indices. */
static err_code render(builder *b, bytes *out, chat_template_trace *trace, size_t begin, size_t end,
                       err_detail *detail)
{
    arena *a = arena_create(ARENA_BYTES);
    jinja_value *vars = a ? template_vars(b, begin, end) : NULL;
    const err_code err = vars ? chat_template_render(b->template, out, trace, vars, &b->guard, a, detail)
                              : no_room(b, a, detail);
    const size_t n_head = head_len(b);
    if (begin > n_head) {
        memmove(trace->spans + begin, trace->spans + n_head, (end - begin) * sizeof *trace->spans);
    }
    arena_destroy(a);
    return err;
}

/* ---- a history that stays what it was ---- */

/* So much text is rendered a second time, at most, for one prompt. */
static const size_t RESTORED_BYTES = LIMIT_RENDERED_BYTES / 4;

/* A conversation and the text of each message in it. */
typedef struct history {
    bytes text;
    chat_template_trace trace;
    const char **pieces; /* [n]: what stands for a message's span; NULL: what is there */
    size_t *piece_len;
    size_t n_rendered; /* bytes rendered for it */
} history;

static bool same_span(const history *h, const bytes *text, const chat_template_trace *trace, size_t i)
{
    const jinja_span a = h->trace.spans[i], c = trace->spans[i];
    return a.end - a.begin == c.end - c.begin &&
           memcmp(bytes_str(&h->text) + a.begin, bytes_str(text) + c.begin, a.end - a.begin) == 0;
}

/* Takes the answers among messages begin to end as they stand in `text`; false if the questions and
 * results beside them stand there otherwise than in the history. */
static bool take_answers(builder *b, history *h, const bytes *text, const chat_template_trace *trace,
                         size_t begin, size_t end, bool checks)
{
    for (size_t i = begin; i < end && checks; i++) {
        if (b->messages[i].role != CHAT_ASSISTANT && !same_span(h, text, trace, i)) {
            return false;
        }
    }
    for (size_t i = begin; i < end; i++) {
        const jinja_span s = trace->spans[i];
        if (b->messages[i].role == CHAT_ASSISTANT && s.end > s.begin && h->trace.spans[i].end > 0 &&
            !same_span(h, text, trace, i)) {
            h->pieces[i] = arena_strdup(b->a, bytes_str(text) + s.begin, s.end - s.begin);
            h->piece_len[i] = s.end - s.begin;
        }
    }
    return true;
}

/* Messages begin to end are a question and calls with their results, the last of which was answered
 * once: the answers before it get back the text that they had in that prompt. It is rendered
 * without what came before the question, and with it if that matters. */
static err_code restore_round(builder *b, history *h, size_t begin, size_t end, err_detail *detail)
{
    const size_t froms[] = {begin, 0};
    err_detail inner = {0};
    bool done = false;
    err_code err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(froms) && !done && err != ERR_NOMEM; i++) {
        bytes text;
        chat_template_trace trace = {.spans = arena_calloc(b->a, b->n, sizeof *trace.spans)};
        if (!trace.spans || h->n_rendered > RESTORED_BYTES) {
            return trace.spans ? ERR_OK : no_room(b, b->a, detail);
        }
        bytes_init(&text, LIMIT_RENDERED_BYTES);
        err = render(b, &text, &trace, froms[i], end, &inner);
        h->n_rendered += text.len;
        done = err == ERR_OK && !trace.is_torn && take_answers(b, h, &text, &trace, begin, end, i == 0);
        bytes_deinit(&text);
    }
    /* what cannot be rendered alone stays as it is */
    return err == ERR_NOMEM ? err_set(detail, err, "%s", inner.text) : ERR_OK;
}

/* Each of the rounds that a further question ended. */
static err_code restore_rounds(builder *b, history *h, err_detail *detail)
{
    size_t begin = head_len(b), end = 0;
    err_code err = ERR_OK;
    for (size_t i = begin; i < b->n && err == ERR_OK; i++) {
        if (b->messages[i].role == CHAT_TOOL) {
            end = i + 1;
        } else if (b->messages[i].role == CHAT_USER) {
            err = end > begin ? restore_round(b, h, begin, end, detail) : ERR_OK;
            begin = i;
        }
    }
    return err;
}

/* Whether every message stands behind the one before it. */
static bool is_in_order(const builder *b, const chat_template_trace *trace)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n; i++) {
        const jinja_span s = trace->spans[i];
        if (s.end > 0 && s.begin < at) {
            return false;
        }
        at = s.end > 0 ? s.end : at;
    }
    return !trace->is_torn;
}

/* Appends text that stood beside something else when it was rendered. */
static void append_piece(const builder *b, bytes *out, const char *text, size_t len)
{
    if (len > 0 && guard_spans(&b->guard, bytes_str(out), out->len, 0, text, len)) {
        bytes_append(out, GUARD_CHAR, GUARD_LEN);
    }
    bytes_append(out, text, len);
}

/* Writes the text with the pieces in it; returns the bytes of its history. */
static size_t assemble(const builder *b, const history *h, bytes *out)
{
    const char *text = bytes_str(&h->text);
    const size_t before = out->len, history_len = h->trace.history_len;
    size_t at = 0, shown = history_len;
    for (size_t i = 0; i < b->n; i++) {
        const jinja_span s = h->trace.spans[i];
        if (h->pieces[i]) {
            append_piece(b, out, text + at, s.begin - at);
            append_piece(b, out, h->pieces[i], h->piece_len[i]);
            at = s.end;
            shown = at <= history_len ? out->len - before + (history_len - at) : shown;
        }
    }
    const size_t rest = out->len;
    append_piece(b, out, text + at, h->text.len - at);
    return shown + (out->len - rest - (h->text.len - at)) * (at > 0 && at <= history_len);
}

/* Renders the conversation so that each turn stands as it stood in the prompt that it was answered
 * in. Templates show the reasoning of the answers behind the last question only: a new question
 * would change the text of all calls before it, and nothing of it could be found in a cache. */
static err_code render_stable(builder *b, bytes *out, size_t *history_len, err_detail *detail)
{
    history h = {.trace = {.spans = arena_calloc(b->a, b->n + 1, sizeof *h.trace.spans)},
                 .pieces = arena_calloc(b->a, b->n + 1, sizeof *h.pieces),
                 .piece_len = arena_calloc(b->a, b->n + 1, sizeof *h.piece_len)};
    if (!h.trace.spans || !h.pieces || !h.piece_len) {
        return no_room(b, b->a, detail);
    }
    bytes_init(&h.text, LIMIT_RENDERED_BYTES);
    err_code err = render(b, &h.text, &h.trace, 0, b->n, detail);
    if (err == ERR_OK && !b->style->as_published && is_in_order(b, &h.trace)) {
        err = restore_rounds(b, &h, detail);
    }
    if (err == ERR_OK) {
        *history_len = assemble(b, &h, out);
    }
    bytes_deinit(&h.text);
    return err;
}

/* The messages as the template takes them, as values. */
static err_code build_messages(builder *b, const chat_message **continued, err_detail *detail)
{
    err_code err = prompt_arrange(&b->messages, &b->n, b->in, b->style, b->a, detail);
    if (err != ERR_OK) {
        return err;
    }
    *continued = b->in->continues && b->n > 0 ? &b->messages[--b->n] : NULL;
    b->values = arena_calloc(b->a, b->n + 1, sizeof(jinja_value *));
    bool ok = b->values != NULL;
    for (size_t i = 0; i < b->n && ok; i++) {
        b->values[i] = message_value(b, &b->messages[i]);
        ok = b->values[i] != NULL;
    }
    return ok ? ERR_OK : no_room(b, b->a, detail);
}

err_code prompt_render(bytes *out, size_t *history_len, const tokenizer *tok, const chat_template *template,
                       const prompt_style *style, const chat_input *in, err_detail *detail)
{
    builder b = {.template = template,
                 .style = style,
                 .think = style->think ? style->think : &THINK_TAGS,
                 .in = in,
                 .guard = {{tokenizer_markers(tok), chat_template_markers(template)}},
                 .a = arena_create(ARENA_BYTES)};
    const chat_message *continued = NULL;
    const char *source = chat_template_text(template);
    size_t len = 0;
    bytes_init(&b.guarded, LIMIT_RENDERED_BYTES);
    b.splits_thinking = strstr(source, "reasoning_content") || strstr(source, "</think>");
    err_code err = b.a ? build_messages(&b, &continued, detail) : no_room(&b, b.a, detail);
    if (err == ERR_OK) {
        err = render_stable(&b, out, &len, detail);
    }
    if (err == ERR_OK && continued) {
        append_answer(out, tok, b.think, continued);
    }
    if (err == ERR_OK && out->failed) {
        err = out->no_memory ? err_set(detail, ERR_NOMEM, "there is not enough memory for this prompt")
                             : err_set(detail, ERR_LIMIT, "this prompt is longer than %zu MiB; shorten it",
                                       out->max >> 20);
    }
    if (history_len) {
        *history_len = len;
    }
    bytes_deinit(&b.guarded);
    arena_destroy(b.a);
    return err;
}

bool prompt_starts_in_thinking(const think_form *form, const char *text, size_t len)
{
    const size_t n = strlen(form->open);
    while (len > 0 && strchr(" \n\r\t", text[len - 1])) {
        len--;
    }
    return len >= n && memcmp(text + len - n, form->open, n) == 0;
}

void prompt_write_closing(bytes *out, const think_form *form, const chat_input *in, bool has_form)
{
    bytes_append_str(out, form->closing);
    if (form->text_opening && !has_form) {
        bytes_append_str(out, in->tools ? "<|channel|>commentary" : form->text_opening);
    }
}

bool prompt_wants_no_thinking(const chat_template *template, const chat_input *in)
{
    static const char *const SWITCHES[] = {"enable_thinking", "thinking", "thinking_budget"};
    const json *wish = json_get(in->template_kwargs, SWITCHES[0]);
    bool wants = json_is(wish, JSON_BOOL) && !json_is_true(wish);
    for (size_t i = 0; i < ARRAY_LEN(SWITCHES) && wants; i++) {
        wants = !chat_template_has_variable(template, SWITCHES[i]);
    }
    return wants;
}

bool prompt_continues_thinking(const chat_input *in)
{
    const chat_message *last = &in->messages[in->n_messages - 1];
    return in->continues && last->n_parts == 0 && last->reasoning;
}
