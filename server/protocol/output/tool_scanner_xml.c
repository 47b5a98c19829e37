/* Forms that write each argument between tags. That of Qwen3.5, Qwen3-Coder and Nemotron 3:
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * A value has one line break at each edge that is not its own. The others have none:
 *
 *     <seed:tool_call>\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>\n</seed:tool_call>
 *     <minimax:tool_call>\n<invoke name="NAME">\n<parameter name="KEY">VALUE</parameter>\n</invoke>\n..
 *         </minimax:tool_call>                                            MiniMax-M2: several in one pair
 *     <｜DSML｜function_calls>\n<｜DSML｜invoke name="NAME">\n<｜DSML｜parameter name="KEY" string="true">..
 *                                                                 DeepSeek V3.2; V4 says tool_calls
 *     <tool_call>NAME\n<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n</tool_call>      GLM 4.5 to 5
 *
 * A value is text without escapes, so it may hold markers: a </parameter> ends it only if a new
 * parameter or the end of the function follows. Models forget markers: the outer pair, and the
 * </parameter> in front of the end, may be missing.
 */
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/output/tool_value.h"

enum { IN_FUNCTION, IN_VALUE };

typedef struct xml_syntax {
    const char *outer[2], *outer_close[2];   /* the second may be NULL */
    const char *function, *function_close;   /* function NULL: the name follows the outer marker itself, and
                                              function_close is the outer one */
    const char *parameter, *key_end, *value; /* value: what stands behind the key's end; NULL: nothing */
    const char *parameter_close;
    bool has_line_breaks; /* at the edges of values */
} xml_syntax;

/* Reads `name="KEY" string="true"` without the first word: the name to the quote that ends it. What
 * stands behind it is *rest. */
static void unquote(const char **name, size_t *n, const char **rest, size_t *n_rest)
{
    const char *text = *name, *end = text + *n;
    *n_rest = 0;
    while (text < end && strchr(" \t", text[0]) && text[0]) {
        text++;
    }
    const bool quoted = text < end && (text[0] == '"' || text[0] == '\'');
    const char *close = quoted ? memchr(text + 1, text[0], (size_t)(end - text) - 1) : NULL;
    if (close) {
        *rest = close + 1;
        *n_rest = (size_t)(end - *rest);
        text++;
        end = close;
    }
    while (text < end && strchr(" \t\"'", text[0]) && text[0]) {
        text++;
    }
    while (end > text && strchr(" \t\"'", end[-1]) && end[-1]) {
        end--;
    }
    *name = text;
    *n = (size_t)(end - text);
}

enum { ATTRIBUTE_BYTES = 24 };

static bool holds(const char *text, size_t len, const char *word)
{
    for (size_t i = 0; i < len; i++) {
        if (tool_match(text + i, len - i, word) == TOOL_DONE) {
            return true;
        }
    }
    return false;
}

/* The name between a marker and what ends it; *kinds: loses what an attribute behind it excludes. */
static tool_step read_name(const char *text, size_t len, const char *name_end, const char **name, size_t *n,
                           size_t *used, unsigned *kinds)
{
    const size_t most = TOOL_NAME_BYTES + ATTRIBUTE_BYTES;
    const char *rest = NULL;
    size_t at = 0, n_rest = 0;
    tool_step step = TOOL_MORE;
    for (; at < len && at < most && text[at] != '\n'; at++) {
        step = tool_match(text + at, len - at, name_end);
        if (step != TOOL_NO) {
            break;
        }
    }
    if (step != TOOL_DONE) {
        return step == TOOL_MORE || at == len ? TOOL_MORE : TOOL_NO;
    }
    *used += at + strlen(name_end);
    *name = text;
    *n = at;
    unquote(name, n, &rest, &n_rest);
    const bool is_string = holds(rest, n_rest, "\"true\""), is_other = holds(rest, n_rest, "\"false\"");
    *kinds = is_string ? TOOL_STRING : is_other ? TOOL_ANY & ~(unsigned)TOOL_STRING : TOOL_ANY;
    return *n > 0 && *n <= TOOL_NAME_BYTES ? TOOL_DONE : TOOL_NO;
}

/* A name that ends where the line or the next tag begins. */
static tool_step read_bare_name(const char *text, size_t len, const char **name, size_t *n, size_t *used)
{
    size_t at = 0;
    while (at < len && at <= TOOL_NAME_BYTES && text[at] != '\n' && text[at] != '<') {
        at++;
    }
    *name = text;
    *n = at;
    *used += at;
    while (*n > 0 && tool_blank(text + *n - 1, 1)) {
        (*n)--;
    }
    return at == len ? TOOL_MORE : *n > 0 ? TOOL_DONE : TOOL_NO;
}

static tool_step head(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used)
{
    const xml_syntax *s = r->form->syntax;
    size_t at = 0, n = 0;
    const char *name = NULL;
    unsigned kinds = 0;
    for (size_t i = 0; i < 2 && s->outer[i] && at == 0; i++) {
        at = tool_match(text, len, s->outer[i]) == TOOL_DONE ? strlen(s->outer[i]) : 0;
    }
    const bool is_bare = at == 0; /* then the marker was that of the function */
    at += tool_blank(text + at, len - at);
    tool_step step = s->function ? tool_match(text + at, len - at, s->function) : TOOL_DONE;
    if (step == TOOL_DONE && s->function) {
        at += strlen(s->function);
        step = read_name(text + at, len - at, ">", &name, &n, &at, &kinds);
    } else if (step == TOOL_DONE) {
        step = read_bare_name(text + at, len - at, &name, &n, &at);
    }
    const bool must_be_known = is_bare && !r->in_section;
    if (step == TOOL_DONE &&
        (!tool_is_name(name, n) || (must_be_known && !tool_set_find(r->tools, name, n)))) {
        step = TOOL_NO;
    }
    if (step != TOOL_DONE) {
        return is_end ? TOOL_NO : step;
    }
    tool_begin(r, name, n);
    r->in_section = r->in_section || !is_bare;
    tool_arguments(r, "{", 1);
    *used = at;
    return TOOL_DONE;
}

/* ---- values ---- */

static bool is_streamed(const tool_reader *r)
{
    return r->kinds == TOOL_STRING;
}

/* kinds: what the call itself says of the value. */
static void begin_value(tool_reader *r, const char *key, size_t len, unsigned kinds)
{
    const xml_syntax *s = r->form->syntax;
    bytes text = bytes_empty(SIZE_MAX);
    r->kinds = tool_def_kinds(r->tool, key, len);
    r->kinds = r->kinds & kinds ? r->kinds & kinds : r->kinds;
    bytes_json(&text, "%-s%.*s:%-s", r->n_members++ ? "," : "", (int)len, key, is_streamed(r) ? "\"" : "");
    tool_arguments_of(r, &text);
    tool_clear(r, &r->value);
    r->state = IN_VALUE;
    r->at_begin = s->has_line_breaks;
}

/* Takes n bytes of the value, whole characters only if it is streamed. */
static void take_value(tool_reader *r, bytes *held, size_t n)
{
    if (is_streamed(r) && n > 0) {
        bytes text = bytes_empty(SIZE_MAX);
        tool_value_escape(&text, held->data, n);
        tool_arguments_of(r, &text);
    } else {
        bytes_append(&r->value, held->data, n);
    }
    bytes_consume(held, n);
}

static size_t without_line_break(const tool_reader *r, const char *text, size_t len)
{
    if (!((const xml_syntax *)r->form->syntax)->has_line_breaks) {
        return len;
    }
    len -= len > 0 && text[len - 1] == '\n';
    return len - (len > 0 && text[len - 1] == '\r');
}

/* The value ends behind n bytes; `total` bytes of `held` are done with. */
static void end_value(tool_reader *r, bytes *held, size_t n, size_t total)
{
    n = without_line_break(r, bytes_str(held), n);
    take_value(r, held, n);
    bytes_consume(held, total - n);
    if (is_streamed(r)) {
        tool_arguments(r, "\"", 1);
    } else {
        bytes text = bytes_empty(SIZE_MAX);
        tool_value_write(&text, bytes_str(&r->value), r->value.len, r->kinds);
        tool_arguments_of(r, &text);
    }
    r->state = IN_FUNCTION;
}

/* Does one of these stand at text? */
static tool_step match_any(const char *text, size_t len, const char *const *marks, size_t n)
{
    tool_step step = TOOL_NO;
    for (size_t i = 0; i < n && step != TOOL_DONE; i++) {
        const tool_step one = marks[i] ? tool_match(text, len, marks[i]) : TOOL_NO;
        step = one == TOOL_NO ? step : one;
    }
    return step;
}

/* Is this the marker that ends the value? It depends on what comes behind it. */
static tool_step ends_value(const xml_syntax *s, const char *text, size_t len, size_t *marker_len)
{
    const char *const behind_value[] = {s->parameter, s->function_close, s->outer_close[0],
                                        s->outer_close[1]};
    const char *const behind_function[] = {s->outer_close[0], s->outer_close[1], s->function};
    tool_step step = tool_match(text, len, s->parameter_close);
    size_t at = step == TOOL_NO ? strlen(s->function_close) : strlen(s->parameter_close);
    if (step != TOOL_NO) {
        *marker_len = at;
        at += step == TOOL_DONE ? tool_blank(text + at, len - at) : 0;
        return step == TOOL_DONE ? match_any(text + at, len - at, behind_value, ARRAY_LEN(behind_value))
                                 : step;
    }
    step = s->function ? tool_match(text, len, s->function_close) : TOOL_NO;
    *marker_len = 0;
    at += step == TOOL_DONE ? tool_blank(text + at, len - at) : 0;
    return step == TOOL_DONE ? match_any(text + at, len - at, behind_function, ARRAY_LEN(behind_function))
                             : step;
}

/* Drops the line break in front of the value; false if it is not there yet. */
static bool skip_line_break(tool_reader *r, bytes *held, tool_end end)
{
    const char *text = bytes_str(held);
    size_t skip = tool_match(text, held->len, "\r\n") == TOOL_DONE ? 2 : held->len > 0 && text[0] == '\n';
    if (skip == 0 && end == TOOL_GOES_ON && tool_match(text, held->len, "\r\n") == TOOL_MORE) {
        return false;
    }
    bytes_consume(held, skip);
    r->at_begin = false;
    return true;
}

/* Reads the value as far as it is sure; true if it is over. */
static bool read_value(tool_reader *r, bytes *held, tool_end end)
{
    if (r->at_begin && !skip_line_break(r, held, end)) {
        return false;
    }
    const char *text = bytes_str(held);
    size_t sure = held->len;
    for (size_t i = 0; i < held->len; i++) {
        const char *at = memchr(text + i, '<', held->len - i);
        if (!at) {
            break;
        }
        size_t marker_len = 0;
        i = (size_t)(at - text);
        tool_step step = ends_value(r->form->syntax, at, held->len - i, &marker_len);
        if (step == TOOL_DONE) {
            end_value(r, held, i, i + marker_len);
            return true;
        }
        if (step == TOOL_MORE) {
            sure = i; /* at the end of the answer an unfinished marker counts */
            break;
        }
    }
    if (end == TOOL_ENDED) {
        end_value(r, held, sure, held->len);
        return true;
    }
    sure = without_line_break(r, text, sure);
    take_value(r, held, sure - utf8_incomplete_tail(text, sure));
    return false;
}

/* ---- the function ---- */

static tool_step end_call(tool_reader *r, reply_kind how)
{
    if (how == REPLY_CALL_END) {
        tool_arguments(r, "}", 1);
    }
    reply_pieces_add(r->out, how, "", 0);
    return TOOL_DONE;
}

/* Reads `<parameter=KEY>` in front of a value. */
static tool_step read_key(tool_reader *r, bytes *held)
{
    const xml_syntax *s = r->form->syntax;
    const char *text = bytes_str(held), *name = NULL;
    size_t n = 0, at = strlen(s->parameter);
    unsigned kinds = TOOL_ANY;
    tool_step step = tool_match(text, held->len, s->parameter);
    if (step == TOOL_DONE) {
        step = read_name(text + at, held->len - at, s->key_end, &name, &n, &at, &kinds);
    }
    if (step == TOOL_DONE && s->value) {
        at += tool_blank(text + at, held->len - at);
        step = tool_match(text + at, held->len - at, s->value);
        at += strlen(s->value);
    }
    if (step == TOOL_DONE) {
        begin_value(r, name, n, kinds);
        bytes_consume(held, at);
    }
    return step;
}

/* Reads what stands between values. TOOL_NO: the state changed, read on. */
static tool_step read_function(tool_reader *r, bytes *held)
{
    const xml_syntax *s = r->form->syntax;
    bytes_consume(held, tool_blank(bytes_str(held), held->len));
    const tool_step parameter = read_key(r, held);
    if (parameter == TOOL_DONE) {
        return TOOL_NO;
    }
    const char *text = bytes_str(held);
    const tool_step closed = tool_match(text, held->len, s->function_close);
    if (closed == TOOL_DONE) {
        bytes_consume(held, s->function ? strlen(s->function_close) : 0);
        r->state = TOOL_BEHIND_CALL;
        end_call(r, REPLY_CALL_END);
        return TOOL_NO;
    }
    const char *const others[] = {s->outer_close[0], s->outer_close[1], s->outer[0], s->outer[1]};
    const tool_step other = match_any(text, held->len, others, ARRAY_LEN(others));
    if (other == TOOL_DONE) {
        return end_call(r, REPLY_CALL_END); /* the closing marker is read behind it */
    }
    if (parameter == TOOL_MORE || closed == TOOL_MORE || other == TOOL_MORE) {
        return TOOL_MORE;
    }
    /* Words that belong nowhere are dropped. */
    const char *marker = memchr(text + 1, '<', held->len - 1);
    bytes_consume(held, marker ? (size_t)(marker - text) : held->len);
    return TOOL_NO;
}

static tool_step step(tool_reader *r, bytes *held, tool_end end)
{
    if (r->state == IN_VALUE) {
        return read_value(r, held, end) ? TOOL_NO : TOOL_MORE;
    }
    return read_function(r, held);
}

/* ---- the forms ---- */

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define READ_XML                                                                                             \
    .head = head, .step = step, .end_call = end_call, .arguments = SPEC_PARAMETERS, .blank = " \n\r\t"

static const xml_syntax QWEN = {
    .outer = {TOOL_CALL},
    .outer_close = {TOOL_CALL_CLOSE},
    .function = "<function=",
    .function_close = "</function>",
    .parameter = "<parameter=",
    .key_end = ">",
    .parameter_close = "</parameter>",
    .has_line_breaks = true,
};
const tool_form TOOL_FORM_XML = {
    READ_XML,
    .name = "qwen3_xml",
    .aliases = TEXTS("qwen3_coder"),
    .signs = TEXTS("<tool_call>", "<function=", "<parameter="),
    .syntax = &QWEN,
    .markers = {TOOL_CALL, "<function="},
    .closers = {TOOL_CALL_CLOSE},
    .before_name = TOOL_CALL "\n<function=",
    .behind_name = ">\n",
    .after = "</function>\n" TOOL_CALL_CLOSE,
    .between = "\n",
};

#define SEED_CALL  "<seed:tool_call>"
#define SEED_CLOSE "</seed:tool_call>"
static const xml_syntax SEED = {
    .outer = {SEED_CALL},
    .outer_close = {SEED_CLOSE},
    .function = "<function=",
    .function_close = "</function>",
    .parameter = "<parameter=",
    .key_end = ">",
    .parameter_close = "</parameter>",
};
static const grammar_marks SEED_MARKS = {"<parameter=", ">", "</parameter>", "\n"};
const tool_form TOOL_FORM_SEED = {
    READ_XML,
    .name = "seed_oss",
    .signs = TEXTS(SEED_CALL),
    .syntax = &SEED,
    .markers = {SEED_CALL, "<function="},
    .n_anywhere = 1,
    .closers = {SEED_CLOSE},
    .before_name = SEED_CALL "\n<function=",
    .behind_name = ">\n",
    .after = "</function>\n" SEED_CLOSE,
    .between = "\n",
    .marks = &SEED_MARKS,
};

#define MINIMAX_CALL  "<minimax:tool_call>"
#define MINIMAX_CLOSE "</minimax:tool_call>"
static const xml_syntax MINIMAX = {
    .outer = {MINIMAX_CALL},
    .outer_close = {MINIMAX_CLOSE},
    .function = "<invoke name=",
    .function_close = "</invoke>",
    .parameter = "<parameter name=",
    .key_end = ">",
    .parameter_close = "</parameter>",
};
static const grammar_marks MINIMAX_MARKS = {"<parameter name=\"", "\">", "</parameter>", "\n"};
const tool_form TOOL_FORM_MINIMAX = {
    READ_XML,
    .name = "minimax_m2",
    .aliases = TEXTS("minimax"),
    .signs = TEXTS(MINIMAX_CALL, "<invoke name="),
    .syntax = &MINIMAX,
    .markers = {MINIMAX_CALL, "<invoke name="},
    .n_anywhere = 1,
    .closers = {MINIMAX_CLOSE},
    .before_name = "<invoke name=\"",
    .behind_name = "\">\n",
    .after = "</invoke>\n",
    .all = MINIMAX_CALL "\n",
    .all_close = MINIMAX_CLOSE,
    .between = "",
    .marks = &MINIMAX_MARKS,
};

#define DSML "｜DSML｜"
static const xml_syntax DEEPSEEK_V32 = {
    .outer = {"<" DSML "function_calls>", "<" DSML "tool_calls>"},
    .outer_close = {"</" DSML "function_calls>", "</" DSML "tool_calls>"},
    .function = "<" DSML "invoke name=",
    .function_close = "</" DSML "invoke>",
    .parameter = "<" DSML "parameter name=",
    .key_end = ">",
    .parameter_close = "</" DSML "parameter>",
};
static const grammar_marks DEEPSEEK_V32_MARKS = {"<" DSML "parameter name=\"", "\">", "</" DSML "parameter>",
                                                 "\n"};
const tool_form TOOL_FORM_DEEPSEEK_V32 = {
    READ_XML,
    .name = "deepseek_v32",
    .aliases = TEXTS("deepseek_v4"),
    .signs = TEXTS(DSML, "invoke name="),
    .syntax = &DEEPSEEK_V32,
    .markers = {"<" DSML "function_calls>", "<" DSML "tool_calls>", "<" DSML "invoke name="},
    .n_anywhere = 2,
    .inner = TEXTS(DSML),
    .closers = {"</" DSML "function_calls>", "</" DSML "tool_calls>"},
    .before_name = "<" DSML "invoke name=\"",
    .behind_name = "\">\n",
    .after = "</" DSML "invoke>\n",
    .all = "<" DSML "function_calls>\n",
    .all_close = "</" DSML "function_calls>",
    .between = "",
    .marks = &DEEPSEEK_V32_MARKS,
};

static const xml_syntax GLM = {
    .outer = {TOOL_CALL},
    .outer_close = {TOOL_CALL_CLOSE},
    .function_close = TOOL_CALL_CLOSE,
    .parameter = "<arg_key>",
    .key_end = "</arg_key>",
    .value = "<arg_value>",
    .parameter_close = "</arg_value>",
};
static const grammar_marks GLM_MARKS = {"<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", "\n"};
const tool_form TOOL_FORM_GLM = {
    READ_XML,
    .name = "glm45",
    .aliases = TEXTS("glm47", "glm4_moe"),
    .signs = TEXTS("<arg_key>", "<arg_value>"),
    .syntax = &GLM,
    .markers = {TOOL_CALL},
    .inner = TEXTS("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    .closers = {TOOL_CALL_CLOSE},
    .before_name = TOOL_CALL,
    .behind_name = "\n",
    .after = TOOL_CALL_CLOSE,
    .between = "\n",
    .marks = &GLM_MARKS,
};
