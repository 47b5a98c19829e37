#include "engine/prompt.h"

#include <string.h>
#include <strings.h>

/* What is being written. */
typedef struct arranger {
    const chat_input *in;
    const prompt_style *style;
    arena *a;
    chat_message *out;
    size_t n;
    bool no_memory;
} arranger;

/* ---- pieces of a content ---- */

/* Parts under construction. */
typedef struct part_list {
    arranger *r;
    chat_part *parts; /* [n] of cap */
    size_t n, cap;
} part_list;

/* Where the next part goes; NULL without memory. */
static chat_part *next_part(part_list *list)
{
    enum { FIRST_PARTS = 8 };
    if (list->n == list->cap) {
        const size_t cap = list->cap ? 2 * list->cap : FIRST_PARTS;
        chat_part *parts = arena_calloc(list->r->a, cap, sizeof *parts);
        if (!parts) {
            list->r->no_memory = true;
            return NULL;
        }
        if (list->n > 0) {
            memcpy(parts, list->parts, list->n * sizeof *parts);
        }
        list->parts = parts;
        list->cap = cap;
    }
    return &list->parts[list->n++];
}

/* Empty text is no part. */
static void add_part(part_list *list, const chat_part *part)
{
    chat_part *next = part->kind != CHAT_TEXT || part->text_len > 0 ? next_part(list) : NULL;
    if (next) {
        *next = *part;
    }
}

static void add_text(part_list *list, const char *text, size_t len, bool is_ours)
{
    add_part(list, &(chat_part){.kind = CHAT_TEXT, .text = text, .text_len = len, .is_ours = is_ours});
}

static void add_words(part_list *list, const char *words)
{
    add_text(list, words, strlen(words), true);
}

static void add_parts(part_list *list, const chat_message *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        add_part(list, &m->parts[i]);
    }
}

/* Behind a blank line, if something precedes it. */
static void add_paragraph(part_list *list, const chat_message *m)
{
    bool needs_gap = list->n > 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        if (needs_gap && m->parts[i].text_len > 0) {
            add_text(list, "\n\n", 2, false);
            needs_gap = false;
        }
        add_part(list, &m->parts[i]);
    }
}

static bool has_media(const chat_message *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != CHAT_TEXT) {
            return true;
        }
    }
    return false;
}

static void set_parts(chat_message *m, const part_list *list)
{
    m->parts = list->parts;
    m->n_parts = list->n;
    m->is_string = !has_media(m);
}

/* ---- system messages ---- */

/* The bytes of a text that are a client's billing header: its first line, which names a version and
 * a hash of the request, so that no two requests would begin alike. */
static size_t billing_header(const chat_part *part)
{
    static const char NAME[] = "x-anthropic-billing-header:";
    if (part->kind != CHAT_TEXT || part->text_len < sizeof NAME - 1 ||
        strncasecmp(part->text, NAME, sizeof NAME - 1) != 0) {
        return 0;
    }
    const char *line_end = memchr(part->text, '\n', part->text_len);
    size_t n = line_end ? (size_t)(line_end - part->text) : part->text_len;
    while (n < part->text_len && (part->text[n] == '\n' || part->text[n] == '\r')) {
        n++;
    }
    return n;
}

/* A system message without it. */
static chat_message without_billing(arranger *r, const chat_message *m)
{
    chat_message copy = *m;
    size_t n_headers = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        n_headers += billing_header(&m->parts[i]) > 0;
    }
    if (n_headers == 0) {
        return copy;
    }
    part_list list = {.r = r};
    for (size_t i = 0; i < m->n_parts; i++) {
        chat_part part = m->parts[i];
        const size_t skip = billing_header(&part);
        part.text += skip;
        part.text_len -= skip;
        add_part(&list, &part);
    }
    copy.parts = list.parts;
    copy.n_parts = list.n;
    return copy;
}

static err_code check_system(const chat_input *in, err_detail *d)
{
    for (size_t i = 0; i < in->n_messages; i++) {
        if (in->messages[i].role == CHAT_SYSTEM && has_media(&in->messages[i])) {
            return err_set_param(d, ERR_INVALID, "messages", "invalid_value",
                                 "a system message may hold text only");
        }
    }
    return ERR_OK;
}

static const char TOOLS_BEGIN[] = "# Tools\n\nThese functions can be called:\n\n<tools>",
                  TOOLS_END[] =
                      "\n</tools>\n\nTo call one, end the reply with its name and its arguments as JSON "
                      "between these markers, a pair of them for each call:\n\n"
                      "<tool_call>\n{\"name\": NAME, \"arguments\": {KEY: VALUE}}\n</tool_call>\n\n"
                      "If none fits, answer without a call.";

/* JSON in the arena. */
static void add_json(arranger *r, part_list *list, const json *v)
{
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    json_write(&text, v);
    const char *copy = text.failed ? NULL : arena_strdup(r->a, bytes_str(&text), text.len);
    r->no_memory = r->no_memory || !copy;
    add_text(list, copy, copy ? text.len : 0, false);
    bytes_deinit(&text);
}

static size_t n_tools_written(const arranger *r)
{
    return r->style->habits.takes_tools || !r->in->tools ? 0 : json_len(r->in->tools);
}

static void add_tools(arranger *r, part_list *list)
{
    if (n_tools_written(r) == 0) {
        return;
    }
    if (list->n > 0) {
        add_words(list, "\n\n");
    }
    add_words(list, TOOLS_BEGIN);
    for (const json *t = json_child(r->in->tools); t; t = json_next(t)) {
        add_words(list, "\n");
        add_json(r, list, t);
    }
    add_words(list, TOOLS_END);
}

/* What stands in front: the system messages there, or all of them, and the tools. Returns the number
 * of messages of `in` that are done with, where they stand in front. */
static size_t write_head(arranger *r)
{
    const chat_input *in = r->in;
    const bool hoists = r->style->hoists_system;
    size_t n_front = 0, n_taken = 0;
    part_list list = {.r = r};
    chat_message head = {.role = CHAT_SYSTEM, .is_string = true};
    while (n_front < in->n_messages && in->messages[n_front].role == CHAT_SYSTEM) {
        n_front++;
    }
    const size_t end = hoists ? in->n_messages : n_front;
    for (size_t i = 0; i < end; i++) {
        if (in->messages[i].role == CHAT_SYSTEM) {
            const chat_message m = without_billing(r, &in->messages[i]);
            head = n_taken++ == 0 ? m : head;
            add_paragraph(&list, &m);
        }
    }
    const bool is_one = n_taken == 1 && n_tools_written(r) == 0;
    add_tools(r, &list);
    if (!is_one) {
        set_parts(&head, &list);
    }
    const bool was_empty = is_one && in->messages[0].n_parts == 0;
    if (list.n > 0 || was_empty || (is_one && head.n_parts > 0)) {
        head.role = CHAT_SYSTEM;
        r->out[r->n++] = head;
    }
    return n_front;
}

/* ---- calls and results as a template wants them ---- */

/* A value in the words of Python. */
static void add_python(arranger *r, part_list *list, bytes *text, const json *v)
{
    if (json_is(v, JSON_BOOL) || json_typeof(v) == JSON_NULL) {
        bytes_append_str(text, json_typeof(v) == JSON_NULL ? "None" : json_is_true(v) ? "True" : "False");
        return;
    }
    const bool is_list = json_is(v, JSON_ARRAY);
    if (!is_list && !json_is(v, JSON_OBJECT)) {
        json_write(text, v);
        return;
    }
    bytes_append_char(text, is_list ? '[' : '{');
    for (const json *item = json_child(v); item; item = json_next(item)) {
        if (!is_list) {
            bytes_append_json(text, json_key(item), strlen(json_key(item)));
            bytes_append_str(text, ": ");
        }
        add_python(r, list, text, item);
        bytes_append_str(text, json_next(item) ? ", " : "");
    }
    bytes_append_char(text, is_list ? ']' : '}');
}

/* A message with its calls as LFM2 writes them. */
static chat_message calls_as_python(arranger *r, const chat_message *m)
{
    chat_message copy = *m;
    part_list list = {.r = r};
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        const chat_tool_call *call = &m->tool_calls[i];
        bytes_printf(&text, "%s%s(", i ? ", " : "", call->name);
        for (const json *v = json_child(call->arguments); v; v = json_next(v)) {
            bytes_printf(&text, "%s=", json_key(v));
            add_python(r, &list, &text, v);
            bytes_append_str(&text, json_next(v) ? ", " : "");
        }
        bytes_append_char(&text, ')');
    }
    const char *calls = text.failed ? NULL : arena_strdup(r->a, bytes_str(&text), text.len);
    r->no_memory = r->no_memory || !calls;
    add_parts(&list, m);
    add_words(&list, "<|tool_call_start|>[");
    add_text(&list, calls, calls ? text.len : 0, false);
    add_words(&list, "]<|tool_call_end|>");
    set_parts(&copy, &list);
    copy.tool_calls = NULL;
    copy.n_tool_calls = 0;
    bytes_deinit(&text);
    return copy;
}

static chat_message calls_as_text(arranger *r, const chat_message *m)
{
    chat_message copy = *m;
    part_list list = {.r = r};
    add_parts(&list, m);
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        const chat_tool_call *call = &m->tool_calls[i];
        add_words(&list, list.n > 0 ? "\n<tool_call>\n{\"name\": \"" : "<tool_call>\n{\"name\": \"");
        add_text(&list, call->name, strlen(call->name), false);
        add_words(&list, "\", \"arguments\": ");
        if (call->arguments) {
            add_json(r, &list, call->arguments);
        } else {
            add_words(&list, "{}");
        }
        add_words(&list, "}\n</tool_call>");
    }
    set_parts(&copy, &list);
    copy.tool_calls = NULL;
    copy.n_tool_calls = 0;
    return copy;
}

/* A run of results as one user's turn. */
static chat_message results_as_text(arranger *r, const chat_message *first, size_t n)
{
    chat_message turn = {.role = CHAT_USER};
    part_list list = {.r = r};
    for (size_t i = 0; i < n; i++) {
        add_words(&list, i ? "\n<tool_response>\n" : "<tool_response>\n");
        add_parts(&list, &first[i]);
        add_words(&list, "\n</tool_response>");
    }
    set_parts(&turn, &list);
    return turn;
}

/* ---- the conversation ---- */

static void write_messages(arranger *r, const chat_message *first, size_t n)
{
    const template_habits *h = &r->style->habits;
    const bool knows_tools = h->takes_tools;
    if (n > 0 && first->role == CHAT_TOOL && h->joins_results && r->n > 0 && r->out[r->n - 1].n_tool_calls) {
        r->out[r->n - 1].results = first;
        r->out[r->n - 1].n_results = n;
        return;
    }
    if (n > 0 && first->role == CHAT_TOOL && !knows_tools) {
        r->out[r->n++] = results_as_text(r, first, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const bool as_text = first[i].n_tool_calls && (!knows_tools || h->loses_calls);
        if (first[i].n_tool_calls && first[i].n_parts && h->joins_results) { /* what was said first */
            r->out[r->n] = first[i];
            r->out[r->n].n_tool_calls = 0;
            r->out[r->n++].reasoning = NULL;
            r->out[r->n] = first[i];
            r->out[r->n++].n_parts = 0;
            continue;
        }
        r->out[r->n++] = !as_text                         ? first[i]
                         : knows_tools && h->python_calls ? calls_as_python(r, &first[i])
                                                          : calls_as_text(r, &first[i]);
    }
}

/* Calls of one message, each with its result behind it, for a template that takes one call in a message.
 * What the results name decides, or else their order. */
static void write_one_by_one(arranger *r, const chat_message *m, const chat_message *results, size_t n)
{
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        const chat_tool_call *call = &m->tool_calls[i];
        chat_message one = *m;
        one.tool_calls = &m->tool_calls[i];
        one.n_tool_calls = 1;
        one.n_parts = i ? 0 : m->n_parts;
        one.reasoning = i ? NULL : m->reasoning;
        r->out[r->n++] = one;
        size_t found = i;
        for (size_t k = 0; k < n && call->id; k++) {
            if (results[k].tool_call_id && strcmp(results[k].tool_call_id, call->id) == 0) {
                found = k;
            }
        }
        if (found < n) {
            r->out[r->n++] = results[found];
        }
    }
}

/* n late system messages, with the user's turn behind them if there is one, as a user's turn. */
static chat_message fold_system(arranger *r, const chat_message *first, size_t n, const chat_message *user)
{
    chat_message turn = {.role = CHAT_USER, .is_string = true};
    part_list list = {.r = r};
    for (size_t i = 0; i < n; i++) {
        const chat_message m = without_billing(r, &first[i]);
        add_paragraph(&list, &m);
    }
    if (user) {
        turn = *user;
        if (list.n > 0 && user->n_parts > 0) {
            add_text(&list, "\n\n", 2, false);
        }
        add_parts(&list, user);
    }
    set_parts(&turn, &list);
    return turn;
}

/* Behind the messages of one role from i on. */
static size_t end_of_run(const chat_input *in, size_t i)
{
    size_t end = i;
    while (end < in->n_messages && in->messages[end].role == in->messages[i].role) {
        end++;
    }
    return end;
}

/* Late system messages i to end; returns how many more are done with. */
static size_t write_late_system(arranger *r, size_t i, size_t end)
{
    const chat_input *in = r->in;
    size_t taken = 0;
    if (end < in->n_messages && in->messages[end].role == CHAT_TOOL) {
        taken = end_of_run(in, end) - end; /* nothing comes between a call and its results */
        write_messages(r, &in->messages[end], taken);
    }
    if (r->style->habits.takes_late_system) {
        for (; i < end; i++) {
            const chat_message m = without_billing(r, &in->messages[i]);
            r->out[r->n] = m;
            r->n += m.n_parts > 0;
        }
        return taken;
    }
    const chat_message *next = end + taken < in->n_messages ? &in->messages[end + taken] : NULL;
    const bool has_user = next && next->role == CHAT_USER;
    const chat_message turn = fold_system(r, &in->messages[i], end - i, has_user ? next : NULL);
    r->out[r->n] = turn;
    r->n += has_user || turn.n_parts > 0;
    return taken + has_user;
}

static void write_rest(arranger *r, size_t from)
{
    const chat_input *in = r->in;
    for (size_t i = from; i < in->n_messages && !r->no_memory;) {
        const size_t end = end_of_run(in, i);
        const bool is_system = in->messages[i].role == CHAT_SYSTEM;
        size_t taken = 0;
        if (is_system && !r->style->hoists_system) {
            taken = write_late_system(r, i, end);
        } else if (!is_system && r->style->habits.one_call && in->messages[end - 1].n_tool_calls > 1) {
            const chat_message *results = &in->messages[end];
            const size_t n_results =
                end < in->n_messages && results->role == CHAT_TOOL ? end_of_run(in, end) - end : 0;
            write_messages(r, &in->messages[i], end - 1 - i);
            write_one_by_one(r, &in->messages[end - 1], results, n_results);
            taken = n_results;
        } else if (!is_system) {
            write_messages(r, &in->messages[i], end - i);
        }
        i = end + taken;
    }
}

/* The head as the begin of the first user's turn, for a template that has no place for it. */
static void fold_head(arranger *r)
{
    if (r->n == 0 || r->out[0].role != CHAT_SYSTEM || r->style->habits.takes_system) {
        return;
    }
    const bool has_user = r->n > 1 && r->out[1].role == CHAT_USER;
    r->out[has_user] = fold_system(r, &r->out[0], 1, has_user ? &r->out[1] : NULL);
    if (has_user) {
        memmove(r->out, r->out + 1, --r->n * sizeof *r->out);
    }
}

static bool can_merge(const arranger *r, const chat_message *a, const chat_message *b)
{
    const bool stays = a->role == CHAT_USER && r->style->habits.takes_repeats;
    return !stays && a->role == b->role && a->role != CHAT_TOOL && a->is_string && b->is_string &&
           a->n_parts > 0 && b->n_parts > 0 && a->n_tool_calls == 0 && b->n_tool_calls == 0 && !b->reasoning;
}

static void merge_neighbours(arranger *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n && !r->no_memory;) {
        size_t end = i + 1;
        while (end < r->n && can_merge(r, &r->out[i], &r->out[end])) {
            end++;
        }
        chat_message m = r->out[i];
        if (end > i + 1) {
            part_list list = {.r = r};
            for (size_t k = i; k < end; k++) {
                add_paragraph(&list, &r->out[k]);
            }
            set_parts(&m, &list);
        }
        r->out[kept++] = m;
        i = end;
    }
    r->n = kept;
}

err_code prompt_arrange(chat_message **out, size_t *n_out, const chat_input *in, const prompt_style *style,
                        arena *a, err_detail *d)
{
    arranger r = {.in = in, .style = style, .a = a};
    err_code err = check_system(in, d);
    if (err != ERR_OK) {
        return err;
    }
    size_t n_most = 2 * in->n_messages + 1;
    for (size_t i = 0; i < in->n_messages; i++) {
        n_most += 2 * in->messages[i].n_tool_calls;
    }
    r.out = arena_calloc(a, n_most, sizeof *r.out);
    r.no_memory = !r.out;
    if (!r.no_memory) {
        write_rest(&r, write_head(&r));
        fold_head(&r);
        merge_neighbours(&r);
    }
    *out = r.out;
    *n_out = r.n;
    return r.no_memory ? err_set(d, ERR_NOMEM, "there is not enough memory for this conversation") : ERR_OK;
}
