/* Forms that write a call as a programmer would, with a literal for each argument:
 *
 *     <|tool_call_start|>[NAME(KEY="text", KEY=[1, True]), NAME()]<|tool_call_end|>            LFM2
 *     [NAME(KEY="text"), NAME()]                                                 Llama 3.2 and 4, pythonic
 *     <|tool_call>call:NAME{KEY:<|"|>text<|"|>,KEY:[1,true]}<tool_call|>                       Gemma 4
 *
 * An argument is handed on when its literal is whole. One without a key gets that of the tool's
 * parameter in its place.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/output/tool_value.h"

enum { IN_CALL, IN_VALUE };

typedef struct literal_syntax {
    const char *open;        /* the marker in front of a call or a list */
    const char *before_name; /* NULL: nothing */
    bool is_listed;          /* calls stand in brackets */
    bool is_bare;            /* a list that names a tool needs no marker */
    char begin, assign, end; /* around the arguments, behind a key */
    const char *quote;       /* around strings, beside those of Python; NULL: none */
} literal_syntax;

static const literal_syntax *syntax_of(const tool_reader *r)
{
    return r->form->syntax;
}

/* ---- the head ---- */

static bool is_name_byte(char c)
{
    return c && (isalnum((unsigned char)c) || strchr("_-.:/", c));
}

/* NAME and what begins the arguments. */
static tool_step read_name(const literal_syntax *s, const char *text, size_t len, size_t *n, size_t *used)
{
    size_t at = 0;
    while (at < len && at <= TOOL_NAME_BYTES && is_name_byte(text[at])) {
        at++;
    }
    *n = at;
    at += tool_blank(text + at, len - at);
    if (at == len && *n <= TOOL_NAME_BYTES) {
        return TOOL_MORE;
    }
    *used = at + 1;
    return text[at] == s->begin && tool_is_name(text, *n) ? TOOL_DONE : TOOL_NO;
}

static tool_step head(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used)
{
    const literal_syntax *s = syntax_of(r);
    const bool was_listed = r->in_list;
    size_t at = 0, n = 0, name_bytes = 0;
    tool_step step = TOOL_DONE;
    if (tool_match(text, len, s->open) == TOOL_DONE) {
        at = strlen(s->open);
        at += tool_blank(text + at, len - at);
    }
    const bool is_bare = at == 0 && !was_listed;
    if (s->is_listed && !was_listed) {
        step = at == len ? TOOL_MORE : text[at] == '[' ? TOOL_DONE : TOOL_NO;
        at++;
        at += at < len ? tool_blank(text + at, len - at) : 0;
    }
    if (step == TOOL_DONE && s->before_name) {
        step = tool_match(text + at, len - at, s->before_name);
        at += strlen(s->before_name);
    }
    if (step == TOOL_DONE) {
        step = at < len ? read_name(s, text + at, len - at, &n, &name_bytes) : TOOL_MORE;
    }
    if (step == TOOL_DONE && is_bare && !tool_set_find(r->tools, text + at, n)) {
        step = TOOL_NO;
    }
    if (step == TOOL_DONE) {
        tool_begin(r, text + at, n);
        r->in_list = s->is_listed;
        tool_arguments(r, "{", 1);
        *used = at + name_bytes;
    }
    return step == TOOL_MORE && is_end ? TOOL_NO : step;
}

/* ---- arguments ---- */

static tool_step end_call(tool_reader *r, reply_kind how)
{
    if (how == REPLY_CALL_END) {
        tool_arguments(r, "}", 1);
    }
    reply_pieces_add(r->out, how, "", 0);
    r->state = TOOL_BEHIND_CALL;
    return TOOL_NO;
}

/* key NULL: the argument has the name of the next parameter. */
static void begin_value(tool_reader *r, const char *key, size_t len)
{
    char name[32];
    bytes text = bytes_empty(SIZE_MAX);
    if (!key) {
        snprintf(name, sizeof name, "arg%zu", r->n_members);
        key = r->tool && r->n_members < r->tool->n_params ? r->tool->params[r->n_members].name : name;
        len = strlen(key);
    }
    r->kinds = tool_def_kinds(r->tool, key, len);
    bytes_json(&text, "%-s%.*s:", r->n_members++ ? "," : "", (int)len, key);
    tool_arguments_of(r, &text);
    tool_clear(r, &r->value);
    r->in_string = r->escaped = false;
    r->at_begin = true;
    r->depth = 0;
    r->state = IN_VALUE;
}

/* KEY and what stands behind it, or the end of the call. TOOL_NO: the state changed. */
static tool_step read_key(tool_reader *r, bytes *held)
{
    const literal_syntax *s = syntax_of(r);
    const char *text = bytes_str(held);
    size_t at = 0, n = 0;
    while (at < held->len && text[at] && strchr(" \n\r\t,", text[at])) {
        at++;
    }
    bytes_consume(held, at);
    text = bytes_str(held);
    const size_t len = held->len;
    if (len == 0) {
        return TOOL_MORE;
    }
    if (text[0] == s->end) {
        bytes_consume(held, 1);
        return end_call(r, REPLY_CALL_END);
    }
    const tool_step quoted = s->quote ? tool_match(text, len, s->quote) : TOOL_NO;
    const size_t n_quote = quoted == TOOL_DONE ? strlen(s->quote) : text[0] == '"';
    if (quoted == TOOL_MORE) {
        return TOOL_MORE;
    }
    at = n_quote;
    while (at < len && at < TOOL_NAME_BYTES &&
           (isalnum((unsigned char)text[at]) || (text[at] && strchr("_-.$", text[at])) ||
            (unsigned char)text[at] >= 0x80)) {
        at++;
    }
    n = at - n_quote;
    if (n_quote > 0) {
        const tool_step close = tool_match(text + at, len - at, n_quote > 1 ? s->quote : "\"");
        if (close == TOOL_MORE) {
            return TOOL_MORE;
        }
        at += close == TOOL_DONE ? n_quote : 0;
    }
    at += tool_blank(text + at, len - at);
    if (at == len) {
        return TOOL_MORE;
    }
    if (n > 0 && text[at] == s->assign) {
        begin_value(r, text + n_quote, n);
        bytes_consume(held, at + 1);
    } else {
        begin_value(r, NULL, 0);
    }
    return TOOL_NO;
}

static void end_value(tool_reader *r)
{
    bytes text = bytes_empty(SIZE_MAX);
    tool_value_literal(&text, bytes_str(&r->value), r->value.len, syntax_of(r)->quote, r->kinds);
    tool_arguments_of(r, &text);
    tool_clear(r, &r->value);
    r->state = IN_CALL;
}

/* One byte of a literal outside of strings; false: it stands behind it. */
static bool other_byte(tool_reader *r, char c)
{
    const literal_syntax *s = syntax_of(r);
    if (r->depth == 0 && (c == ',' || c == s->end)) {
        return false;
    }
    const bool may_open = r->at_begin; /* a quote inside of a word, as in it's, is a part of that */
    r->at_begin = c && strchr("([{,:= \n\r\t", c);
    if (may_open && (c == '\'' || c == '"')) {
        r->in_string = true;
        r->open[0] = (unsigned char)c;
    } else if (c && strchr("([{", c)) {
        r->depth++;
    } else if (c && strchr(")]}", c)) {
        r->depth -= r->depth > 0;
    }
    return true;
}

/* Gathers a literal; true if it is whole. */
static bool read_value(tool_reader *r, bytes *held, tool_end end)
{
    const literal_syntax *s = syntax_of(r);
    const char *text = bytes_str(held);
    size_t i = 0;
    bool more = true;
    while (i < held->len && more) {
        const tool_step quote = s->quote ? tool_match(text + i, held->len - i, s->quote) : TOOL_NO;
        const bool may_quote = !r->in_string || r->open[0] == 0;
        if (quote == TOOL_MORE && may_quote && end == TOOL_GOES_ON) {
            break;
        }
        if (quote == TOOL_DONE && may_quote) {
            r->in_string = !r->in_string;
            r->open[0] = 0;
            bytes_append(&r->value, text + i, strlen(s->quote));
            i += strlen(s->quote);
            continue;
        }
        const char c = text[i];
        if (!r->in_string) {
            more = other_byte(r, c);
        } else if (r->escaped) {
            r->escaped = false;
        } else if (r->open[0] != 0) {
            r->escaped = c == '\\';
            r->in_string = c != (char)r->open[0];
        }
        bytes_append(&r->value, &c, more);
        i += more;
    }
    bytes_consume(held, i);
    return !more || end == TOOL_ENDED;
}

static tool_step step(tool_reader *r, bytes *held, tool_end end)
{
    if (r->state != IN_VALUE) {
        return read_key(r, held);
    }
    if (!read_value(r, held, end)) {
        return TOOL_MORE;
    }
    end_value(r);
    return TOOL_NO;
}

/* ---- the forms ---- */

#define TEXTS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define READ_LITERAL .head = head, .step = step, .end_call = end_call, .arguments = SPEC_PARAMETERS

static const grammar_marks PYTHON_MARKS = {"", "=", NULL, ", "};

#define LFM2_MARK  "<|tool_call_start|>"
#define LFM2_CLOSE "<|tool_call_end|>"
static const literal_syntax LFM2 = {
    .open = LFM2_MARK, .is_listed = true, .begin = '(', .assign = '=', .end = ')'};
const tool_form TOOL_FORM_LFM2 = {
    READ_LITERAL,       .name = "lfm2",          .signs = TEXTS("<|tool_list_start|>"),
    .syntax = &LFM2,    .markers = {LFM2_MARK},  .n_anywhere = 1,
    .blank = " \n\r\t", .closers = {LFM2_CLOSE}, .separator = ',',
    .list_end = ']',    .before_name = "",       .behind_name = "(",
    .after = ")",       .all = LFM2_MARK "[",    .all_close = "]" LFM2_CLOSE,
    .between = ", ",    .marks = &PYTHON_MARKS,
};

#define LLAMA4_MARK "<|python_start|>"
static const literal_syntax PYTHONIC = {
    .open = LLAMA4_MARK, .is_listed = true, .is_bare = true, .begin = '(', .assign = '=', .end = ')'};
const tool_form TOOL_FORM_PYTHONIC = {
    READ_LITERAL,
    .name = "pythonic",
    .aliases = TEXTS("llama4_pythonic", "llama3_pythonic"),
    .signs = TEXTS("[func_name1(params_name1"),
    .syntax = &PYTHONIC,
    .markers = {LLAMA4_MARK, "["},
    .n_anywhere = 1,
    .blank = " \n\r\t",
    .closers = {"<|python_end|>"},
    .separator = ',',
    .list_end = ']',
    .before_name = "",
    .behind_name = "(",
    .after = ")",
    .all = "[",
    .all_close = "]",
    .between = ", ",
    .marks = &PYTHON_MARKS,
};

#define GEMMA_MARK  "<|tool_call>"
#define GEMMA_CLOSE "<tool_call|>"
#define GEMMA_QUOTE "<|\"|>"
static const literal_syntax GEMMA4 = {.open = GEMMA_MARK,
                                      .before_name = "call:",
                                      .begin = '{',
                                      .assign = ':',
                                      .end = '}',
                                      .quote = GEMMA_QUOTE};
static const grammar_marks GEMMA4_MARKS = {"", ":", NULL, ","};
const tool_form TOOL_FORM_GEMMA4 = {
    READ_LITERAL,
    .name = "gemma4",
    .signs = TEXTS("<|tool_call>call:"),
    .syntax = &GEMMA4,
    .markers = {GEMMA_MARK},
    .n_anywhere = 1,
    .inner = TEXTS(GEMMA_QUOTE),
    .blank = " \n\r\t",
    .closers = {GEMMA_CLOSE},
    .before_name = GEMMA_MARK "call:",
    .behind_name = "{",
    .after = "}" GEMMA_CLOSE,
    .between = "",
    .marks = &GEMMA4_MARKS,
};
