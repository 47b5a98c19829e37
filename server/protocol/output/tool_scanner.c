#include "server/protocol/output/tool_scanner.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The first whose signs a template shows is taken: a sign that others may show too stands behind
 * theirs. */
static const tool_form *const FORMS[] = {
    &TOOL_FORM_HARMONY,     &TOOL_FORM_GEMMA4,       &TOOL_FORM_MISTRAL,      &TOOL_FORM_MISTRAL_LIST,
    &TOOL_FORM_DEEPSEEK_V3, &TOOL_FORM_DEEPSEEK_V31, &TOOL_FORM_DEEPSEEK_V32, &TOOL_FORM_KIMI,
    &TOOL_FORM_MINIMAX,     &TOOL_FORM_SEED,         &TOOL_FORM_GLM,          &TOOL_FORM_NEMOTRON,
    &TOOL_FORM_GRANITE,     &TOOL_FORM_LFM2,         &TOOL_FORM_XML,          &TOOL_FORM_HERMES,
    &TOOL_FORM_LLAMA3_JSON, &TOOL_FORM_PYTHONIC,
};

static bool shows_all(const char *text, const char *const *signs)
{
    for (; *signs; signs++) {
        if (!strstr(text, *signs)) {
            return false;
        }
    }
    return true;
}

const tool_form *tool_form_of_template(const char *template_text)
{
    for (size_t i = 0; template_text && i < ARRAY_LEN(FORMS); i++) {
        if (shows_all(template_text, FORMS[i]->signs)) {
            return FORMS[i];
        }
    }
    return NULL;
}

static bool is_among(const char *const *texts, const char *text, size_t len)
{
    for (; texts && *texts; texts++) {
        if (strlen(*texts) == len && memcmp(*texts, text, len) == 0) {
            return true;
        }
    }
    return false;
}

const tool_form *tool_form_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        if (strcmp(FORMS[i]->name, name) == 0 || is_among(FORMS[i]->aliases, name, strlen(name))) {
            return FORMS[i];
        }
    }
    return NULL;
}

const char *tool_form_names(void)
{
    return "qwen3_xml (or qwen3_coder), hermes, openai, gemma4, mistral, mistral_list, llama3_json, "
           "pythonic, "
           "deepseek_v3, deepseek_v31, deepseek_v32, glm45, kimi_k2, minimax_m2, granite, lfm2, "
           "nemotron_json, seed_oss";
}

void tool_reader_init(tool_reader *r, const tool_form *form, const tool_set *tools, reply_pieces *out)
{
    memset(r, 0, sizeof *r);
    r->form = form;
    r->tools = tools;
    r->out = out;
    bytes_init(&r->value, SIZE_MAX);
}

void tool_reader_deinit(tool_reader *r)
{
    bytes_deinit(&r->value);
}

bool tool_spec_sequence(arena *a, grammar_spec *out, const grammar_spec *parts, size_t n)
{
    grammar_spec *copy = arena_calloc(a, n, sizeof *copy);
    if (!copy) {
        return false;
    }
    memcpy(copy, parts, n * sizeof *copy);
    *out = (grammar_spec){.kind = SPEC_SEQUENCE, .items = copy, .n_items = n};
    return true;
}

enum { CALL_PARTS = 24, FORM_TOKENS = 16, TOKEN_MIN = 3 };

/* The tokens that the form's texts may hold; returns how many. */
static size_t list_tokens(const tool_form *form, const char **tokens)
{
    size_t n = 0;
    for (size_t i = 0; form->markers[i]; i++) {
        tokens[n++] = form->markers[i];
    }
    for (size_t i = 0; form->closers[i]; i++) {
        tokens[n++] = form->closers[i];
    }
    for (size_t i = 0; form->inner && form->inner[i]; i++) {
        tokens[n++] = form->inner[i];
    }
    assert(n <= FORM_TOKENS);
    return n;
}

bool tool_form_reads(const tool_form *form, const char *text, size_t len)
{
    const char *tokens[FORM_TOKENS];
    for (size_t n = list_tokens(form, tokens); n-- > 0;) {
        if (strlen(tokens[n]) == len && memcmp(tokens[n], text, len) == 0) {
            return true;
        }
    }
    return false;
}

static void add_part(grammar_spec *parts, size_t *n, grammar_spec_kind kind, const char *text)
{
    if (text[0]) {
        assert(*n < CALL_PARTS);
        parts[(*n)++] = (grammar_spec){.kind = kind, .text = text};
    }
}

/* Adds a text as parts: the form's tokens in it, and what stands between them. */
static bool add_text(const tool_form *form, arena *a, grammar_spec *parts, size_t *n, const char *text)
{
    const char *tokens[FORM_TOKENS];
    const size_t n_tokens = list_tokens(form, tokens);
    while (text && text[0]) {
        const char *first = NULL, *token = NULL;
        for (size_t i = 0; i < n_tokens; i++) {
            const char *found = strlen(tokens[i]) < TOKEN_MIN ? NULL : strstr(text, tokens[i]);
            if (found && (!first || found < first)) {
                first = found;
                token = tokens[i];
            }
        }
        if (!first) {
            break;
        }
        const char *before = arena_strdup(a, text, (size_t)(first - text));
        if (!before) {
            return false;
        }
        add_part(parts, n, SPEC_TEXT, before);
        add_part(parts, n, SPEC_MARKER, token);
        text = first + strlen(token);
    }
    add_part(parts, n, SPEC_TEXT, text ? text : "");
    return true;
}

bool tool_form_write_spec(const tool_form *form, arena *a, grammar_spec *out, const char *name,
                          const json *parameters, const char *path)
{
    char text[TOOL_NAME_BYTES * 2];
    const int length = snprintf(text, sizeof text, "%s%s%s", form->before_name, name, form->behind_name);
    assert(length < (int)sizeof text); /* a name has TOOL_NAME_BYTES at most */
    const char *begin = arena_strdup(a, text, (size_t)length);
    grammar_spec parts[CALL_PARTS + 1];
    size_t n = 0;
    if (!begin || !add_text(form, a, parts, &n, begin)) {
        return false;
    }
    parts[n++] =
        (grammar_spec){.kind = form->arguments, .schema = parameters, .path = path, .marks = form->marks};
    return add_text(form, a, parts, &n, form->after) && tool_spec_sequence(a, out, parts, n);
}

bool tool_form_write_answer(const tool_form *form, arena *a, grammar_spec *out, const grammar_spec *calls,
                            size_t n, bool several)
{
    const grammar_spec one = {.kind = SPEC_CHOICE, .items = calls, .n_items = n};
    grammar_spec parts[CALL_PARTS + 1], again[CALL_PARTS + 1], *items = arena_calloc(a, 2, sizeof *items);
    size_t n_parts = 0, n_again = 0;
    if (!items || !add_text(form, a, again, &n_again, form->between) ||
        !add_text(form, a, parts, &n_parts, form->all)) {
        return false;
    }
    items[0] = one;
    again[n_again++] = one;
    parts[n_parts++] = one;
    if (several && form->between) {
        parts[n_parts - 1] =
            (grammar_spec){.kind = SPEC_REPEAT, .items = items, .n_items = 2, .min = 1, .max = SPEC_MANY};
    }
    return tool_spec_sequence(a, &items[1], again, n_again) &&
           add_text(form, a, parts, &n_parts, form->all_close) && tool_spec_sequence(a, out, parts, n_parts);
}

tool_step tool_match(const char *text, size_t len, const char *marker)
{
    size_t n = strlen(marker), shown = len < n ? len : n;
    if (shown > 0 && memcmp(text, marker, shown) != 0) {
        return TOOL_NO;
    }
    return shown == n ? TOOL_DONE : TOOL_MORE;
}

size_t tool_open_end(const char *text, size_t len, const char *marker)
{
    size_t most = strlen(marker) - 1;
    for (size_t n = len < most ? len : most; n > 0; n--) {
        if (memcmp(text + len - n, marker, n) == 0) {
            return n;
        }
    }
    return 0;
}

size_t tool_blank(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && strchr(" \n\r\t", text[n]) && text[n]) {
        n++;
    }
    return n;
}

void tool_begin(tool_reader *r, const char *name, size_t len)
{
    r->tool = tool_set_find(r->tools, name, len);
    r->state = 0;
    r->kinds = 0;
    r->n_members = 0;
    r->has_arguments = r->in_string = r->escaped = false;
    r->at_begin = true;
    r->depth = 0;
    tool_clear(r, &r->value);
    reply_pieces_add(r->out, REPLY_BLANK, r->blank, r->n_blank);
    r->n_blank = 0; /* the next call of a list has none, and the text they stood in is gone */
    reply_pieces_add(r->out, REPLY_CALL, name, len);
}

void tool_arguments(tool_reader *r, const char *text, size_t len)
{
    reply_pieces_add(r->out, REPLY_ARGUMENTS, text, len);
}

void tool_arguments_of(tool_reader *r, bytes *text)
{
    tool_arguments(r, bytes_str(text), text->len);
    r->out->failed = r->out->failed || text->failed; /* else a call with other arguments */
    bytes_deinit(text);
}

void tool_clear(tool_reader *r, bytes *text)
{
    r->out->failed = r->out->failed || text->failed;
    bytes_clear(text);
}

/* Takes one closing marker, and the blanks in front of it. TOOL_MORE: there may be one. */
static tool_step read_closer(tool_reader *r, bytes *held, size_t at)
{
    const tool_form *form = r->form;
    tool_step step = TOOL_NO;
    for (size_t i = 0; form->closers[i]; i++) {
        const tool_step one = tool_match(bytes_str(held) + at, held->len - at, form->closers[i]);
        if (one == TOOL_DONE) {
            bytes_consume(held, at + strlen(form->closers[i]));
            r->in_section = r->in_section && form->closers[i + 1];
            return TOOL_DONE;
        }
        step = one == TOOL_MORE ? TOOL_MORE : step;
    }
    return step;
}

/* Looks for the next call of a list at held[at]. */
static tool_step read_item(tool_reader *r, bytes *held, size_t at, bool is_end)
{
    size_t used = 0;
    tool_step step = TOOL_NO;
    if (held->data[at] == r->form->separator) {
        at++;
        at += tool_blank(held->data + at, held->len - at);
        step = at < held->len ? r->form->head(r, held->data + at, held->len - at, is_end, &used) : TOOL_MORE;
    }
    step = step == TOOL_MORE && is_end ? TOOL_NO : step;
    if (step == TOOL_DONE) {
        bytes_consume(held, at + used);
    }
    r->in_list = step != TOOL_NO;
    return step;
}

tool_step tool_reader_next(tool_reader *r, bytes *held, tool_end end, bool goes_on)
{
    const bool is_end = end != TOOL_GOES_ON;
    for (;;) {
        size_t at = 0;
        while (at < held->len && held->data[at] && strchr(r->form->blank, held->data[at])) {
            at++;
        }
        const tool_step closer = read_closer(r, held, at);
        if (closer == TOOL_DONE) {
            continue;
        }
        if (at == held->len || closer == TOOL_MORE) {
            bytes_consume(held, is_end ? held->len : 0);
            return is_end ? TOOL_NO : TOOL_MORE;
        }
        if (!r->in_list || !goes_on) {
            return TOOL_NO;
        }
        if (!r->form->list_end || held->data[at] != r->form->list_end) {
            return read_item(r, held, at, is_end);
        }
        bytes_consume(held, at + 1);
        r->in_list = false;
    }
}

tool_step tool_reader_body(tool_reader *r, bytes *held, tool_end end)
{
    tool_step step = TOOL_NO;
    while (step == TOOL_NO && r->state != TOOL_BEHIND_CALL) {
        step = r->form->step(r, held, end);
    }
    if (step == TOOL_MORE && end != TOOL_GOES_ON) {
        tool_clear(r, held);
        r->form->end_call(r, end == TOOL_CUT ? REPLY_CALL_CUT : REPLY_CALL_END);
        return TOOL_DONE;
    }
    return step == TOOL_NO ? TOOL_DONE : step;
}

tool_step tool_end_plain(tool_reader *r, reply_kind how)
{
    if (how == REPLY_CALL_END && !r->has_arguments) {
        tool_arguments(r, "{}", 2);
    }
    reply_pieces_add(r->out, how, "", 0);
    r->state = TOOL_BEHIND_CALL;
    return TOOL_NO;
}

bool tool_is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isalnum(c) && (!c || !strchr("_-.:/", c))) {
            return false;
        }
    }
    return len > 0 && len <= TOOL_NAME_BYTES;
}
