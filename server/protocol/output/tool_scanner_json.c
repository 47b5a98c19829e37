/* Forms whose arguments are JSON. In some the name is a member of the same object, in a list perhaps:
 *
 *     <tool_call>\n{"name": NAME, "arguments": {..}}\n</tool_call>      Hermes, Qwen2.5, Qwen3, Granite 4
 *     [TOOL_CALLS][{"name": NAME, "arguments": {..}, "id": ID}, ..]     Mistral until 2024
 *     <|tool_call|>[{"name": NAME, "arguments": {..}}, ..]              Granite 3, Phi-4-mini
 *     <TOOLCALL>[{"name": NAME, "arguments": {..}}, ..]</TOOLCALL>      Nemotron
 *     {"name": NAME, "parameters": {..}}; {..}                          Llama 3.1 to 3.3
 *
 * In others it stands in front of the arguments:
 *
 *     [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{..}[TOOL_CALLS]..               Mistral, Ministral, Devstral
 *     <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{..}<|tool_call_end|>      Kimi K2
 *     <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n{..}\n```<｜tool▁call▁end｜>  DeepSeek V3, R1
 *     <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{..}<｜tool▁call▁end｜>                            DeepSeek V3.1
 *     <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{..}<|call|>      GPT-OSS
 *
 * The arguments are handed on as the model writes them, but for what JSON does not allow and models
 * do: line breaks and the like inside strings, and Python's True, False and None.
 */
#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/output/tool_value.h"

enum { IN_CALL, IN_ARGUMENTS };

enum { BEHIND_NAME = 64 }; /* bytes that may stand between a name and what ends it */

typedef struct json_syntax {
    const char *const *opens;     /* what stands in front of a call, in order; each may be missing */
    const char *const *name_ends; /* what ends a name in front of arguments; NULL: it stands inside */
    bool is_listed;               /* objects may stand in brackets */
    bool is_bare;                 /* an object that names a tool needs no marker */
} json_syntax;

/* ---- looking ahead ---- */

/* Finds the end of the string that begins at text[0] == '"'; *n counts both quotes. */
static tool_step scan_string(const char *text, size_t len, size_t *n)
{
    for (size_t i = 1; i < len; i++) {
        if (text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            *n = i + 1;
            return TOOL_DONE;
        }
    }
    return TOOL_MORE;
}

/* Finds the end of any value. */
static tool_step scan_value(const char *text, size_t len, size_t *n)
{
    int depth = 0;
    for (size_t i = 0; i < len; i++) {
        size_t string = 0;
        switch (text[i]) {
        case '"':
            if (scan_string(text + i, len - i, &string) != TOOL_DONE) {
                return TOOL_MORE;
            }
            i += string - 1;
            break;
        case '{':
        case '[':
            depth++;
            continue;
        case '}':
        case ']':
        case ',':
            if (depth == 0) {
                *n = i;
                return i > 0 ? TOOL_DONE : TOOL_NO;
            }
            depth -= text[i] != ',';
            break;
        default:
            break;
        }
        if (depth == 0 && strchr("\"}]", text[i]) && text[i]) {
            *n = i + 1;
            return TOOL_DONE;
        }
    }
    return TOOL_MORE;
}

static bool is_key(const char *text, size_t n, const char *key)
{
    return n == strlen(key) + 2 && memcmp(text + 1, key, n - 2) == 0;
}

static bool is_arguments_key(const char *text, size_t n)
{
    return is_key(text, n, "arguments") || is_key(text, n, "parameters");
}

/* Reads `"key" :` with the blanks around it. */
static tool_step read_key(const char *text, size_t len, size_t *at, const char **key, size_t *n)
{
    *at += tool_blank(text + *at, len - *at);
    if (*at == len) {
        return TOOL_MORE;
    }
    if (text[*at] != '"') {
        return TOOL_NO;
    }
    *key = text + *at;
    tool_step step = scan_string(*key, len - *at, n);
    if ((step == TOOL_DONE ? *n : len - *at) > TOOL_NAME_BYTES) {
        return TOOL_NO; /* no key is that long */
    }
    if (step != TOOL_DONE) {
        return step;
    }
    *at += *n;
    *at += tool_blank(text + *at, len - *at);
    if (*at == len) {
        return TOOL_MORE;
    }
    if (text[*at] != ':') {
        return TOOL_NO;
    }
    (*at)++;
    *at += tool_blank(text + *at, len - *at);
    return TOOL_DONE;
}

/* ---- arguments ---- */

/* Ends a word outside of strings: a number, true, or what Python says instead. */
static void end_word(tool_reader *r)
{
    const char *word = tool_value_of_python(bytes_str(&r->value), r->value.len);
    word = word ? word : bytes_str(&r->value);
    tool_arguments(r, word, strlen(word));
    tool_clear(r, &r->value);
}

/* One byte inside a string. */
static void string_byte(tool_reader *r, bytes *out, char c)
{
    if ((unsigned char)c < 0x20) {
        bytes_append_str(out, r->escaped ? "\\" : ""); /* then a backslash stands in front of it */
        r->escaped = false;
        tool_value_escape(out, &c, 1);
    } else if (r->escaped) {
        r->escaped = false;
        bytes_append_char(out, c);
    } else {
        r->escaped = c == '\\';
        r->in_string = c != '"';
        bytes_append_char(out, c);
    }
}

/* One byte outside of strings; true when the object is closed. */
static bool other_byte(tool_reader *r, bytes *out, char c)
{
    if (isalnum((unsigned char)c) || strchr("+-.", c)) {
        if (c) {
            bytes_append_char(&r->value, c);
        }
        return false;
    }
    if (r->value.len > 0) {
        tool_arguments(r, bytes_str(out), out->len);
        tool_clear(r, out);
        end_word(r);
    }
    if (c == '{' || c == '[') {
        if (r->depth < (int)sizeof r->open) {
            r->open[r->depth] = c == '{' ? '}' : ']';
        }
        r->depth++;
    } else if (c == '}' || c == ']') {
        r->depth--;
    }
    r->in_string = c == '"';
    bytes_append_char(out, c);
    return r->depth == 0;
}

/* Hands on what is there of the object; true when it is closed. */
static bool read_arguments(tool_reader *r, bytes *held, tool_end end)
{
    bool closed = false;
    size_t n = held->len - (end == TOOL_GOES_ON ? utf8_incomplete_tail(bytes_str(held), held->len) : 0),
           i = 0;
    bytes out = bytes_empty(SIZE_MAX);
    for (; i < n && !closed; i++) {
        if (!r->in_string && held->data[i] == '<') {
            break; /* JSON has none: a marker ends the call */
        }
        if (r->in_string) {
            string_byte(r, &out, held->data[i]);
        } else {
            closed = other_byte(r, &out, held->data[i]);
        }
    }
    tool_arguments_of(r, &out);
    bytes_consume(held, i);
    return closed;
}

/* Arguments that are whole: an object, or a string that holds one. */
static void whole_arguments(tool_reader *r, const char *text, size_t len)
{
    bytes copy = bytes_empty(SIZE_MAX);
    if (text[0] == '{') {
        bytes_append(&copy, text, len);
        read_arguments(r, &copy, TOOL_ENDED);
    } else {
        bytes value = bytes_empty(SIZE_MAX);
        tool_value_write(&value, text, len, TOOL_OBJECT);
        const bool is_object = bytes_str(&value)[0] == '{';
        tool_arguments(r, is_object ? value.data : "{}", is_object ? value.len : 2);
        tool_clear(r, &value);
        bytes_deinit(&value);
    }
    r->has_arguments = true;
    tool_clear(r, &copy);
    bytes_deinit(&copy);
}

/* ---- the head of a call ---- */

/* Without a marker an object is a call only if it begins as one. */
static bool may_precede_name(const char *key, size_t n)
{
    return is_key(key, n, "name") || is_key(key, n, "type") || is_key(key, n, "id") ||
           is_key(key, n, "function");
}

/* text[*at] is the brace of an object with the name and, perhaps, the arguments in it. */
static tool_step head_object(tool_reader *r, const char *text, size_t len, bool is_bare, size_t *at)
{
    const char *arguments = NULL;
    size_t n_arguments = 0;
    for ((*at)++; *at < len;) {
        const char *key = NULL;
        size_t n = 0, value = 0;
        tool_step step = read_key(text, len, at, &key, &n);
        if (step == TOOL_DONE && is_bare && !may_precede_name(key, n)) {
            step = TOOL_NO;
        }
        if (step == TOOL_DONE) {
            step = *at < len ? scan_value(text + *at, len - *at, &value) : TOOL_MORE;
        }
        if (step != TOOL_DONE) {
            return step;
        }
        if (is_key(key, n, "name")) {
            bool is_name = value > 2 && text[*at] == '"' && tool_is_name(text + *at + 1, value - 2);
            if (!is_name || (is_bare && !tool_set_find(r->tools, text + *at + 1, value - 2))) {
                return TOOL_NO;
            }
            tool_begin(r, text + *at + 1, value - 2);
            if (arguments) {
                whole_arguments(r, arguments, n_arguments);
            }
            *at += value;
            return TOOL_DONE;
        }
        if (is_arguments_key(key, n)) {
            arguments = text + *at;
            n_arguments = value;
        }
        *at += value;
        *at += tool_blank(text + *at, len - *at);
        if (*at < len && text[*at] != ',') {
            return TOOL_NO;
        }
        (*at)++;
    }
    return TOOL_MORE;
}

/* Finds the first of these marks in text[at..len), at most `most` bytes on. */
static tool_step find_mark(const char *text, size_t len, const char *const *marks, size_t most, size_t *at,
                           const char **mark)
{
    for (const size_t begin = *at; *at < len && *at - begin <= most; (*at)++) {
        for (size_t i = 0; marks[i]; i++) {
            const tool_step step = tool_match(text + *at, len - *at, marks[i]);
            if (step != TOOL_NO) {
                *mark = marks[i];
                return step;
            }
        }
    }
    return *at == len ? TOOL_MORE : TOOL_NO;
}

/* The name in front of arguments, without the namespace and the number that Kimi writes around it. */
static tool_step head_named(tool_reader *r, const json_syntax *s, const char *text, size_t len, size_t *at)
{
    static const char PREFIX[] = "functions.", CALL_ID[] = "[CALL_ID]";
    static const char *const ARGUMENTS[] = {"[ARGS]", "{", NULL};
    const char *name = text + *at, *mark = NULL;
    tool_step step = find_mark(text, len, s->name_ends, TOOL_NAME_BYTES + BEHIND_NAME, at, &mark);
    if (step != TOOL_DONE) {
        return step;
    }
    size_t n = (size_t)(text + *at - name);
    if (strcmp(mark, CALL_ID) == 0) {
        step = find_mark(text, len, ARGUMENTS, BEHIND_NAME, at, &mark);
    }
    while (n > 0 && tool_blank(name + n - 1, 1)) {
        n--;
    }
    if (n >= sizeof PREFIX && memcmp(name, PREFIX, sizeof PREFIX - 1) == 0) {
        name += sizeof PREFIX - 1;
        n -= sizeof PREFIX - 1;
        size_t digits = n;
        while (digits > 0 && isdigit((unsigned char)name[digits - 1])) {
            digits--;
        }
        n = digits > 0 && digits < n && name[digits - 1] == ':' ? digits - 1 : n;
    }
    if (step != TOOL_DONE || !tool_is_name(name, n)) {
        return step == TOOL_MORE ? TOOL_MORE : TOOL_NO;
    }
    tool_begin(r, name, n);
    r->is_named = true;
    *at += mark[0] == '{' ? 0 : strlen(mark);
    return TOOL_DONE;
}

/* Skips what stands in front of a call. TOOL_DONE: something else stands at *at. */
static tool_step skip_opens(const json_syntax *s, const char *text, size_t len, size_t *at)
{
    for (size_t i = 0; s->opens[i]; i++) {
        const tool_step step = tool_match(text + *at, len - *at, s->opens[i]);
        if (step == TOOL_MORE) {
            return TOOL_MORE;
        }
        if (step == TOOL_DONE) {
            *at += strlen(s->opens[i]);
            *at += tool_blank(text + *at, len - *at);
        }
    }
    return *at < len ? TOOL_DONE : TOOL_MORE;
}

static tool_step head(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used)
{
    const json_syntax *s = r->form->syntax;
    bool in_list = r->in_list;
    size_t at = 0;
    tool_step step = skip_opens(s, text, len, &at);
    const bool is_bare = at == 0 && !in_list;
    if (step == TOOL_DONE && s->is_listed && !in_list && !is_bare && text[at] == '[') {
        in_list = true;
        at++;
        at += tool_blank(text + at, len - at);
        step = at < len ? TOOL_DONE : TOOL_MORE;
    }
    if (step == TOOL_DONE) {
        r->is_named = false;
        step = text[at] == '{' ? head_object(r, text, len, is_bare, &at)
               : s->name_ends  ? head_named(r, s, text, len, &at)
                               : TOOL_NO;
    }
    if (step == TOOL_DONE) {
        r->in_list = in_list || s->is_bare;
        *used = at;
    }
    return step == TOOL_MORE && is_end ? TOOL_NO : step;
}

/* ---- its end ---- */

/* The model ended its answer inside the arguments: closes what is open. */
static void close_arguments(tool_reader *r)
{
    if (r->value.len > 0) {
        end_word(r);
    }
    if (r->escaped) {
        tool_arguments(r, "\\", 1);
    }
    if (r->in_string) {
        tool_arguments(r, "\"", 1);
    }
    while (r->depth > 0) {
        r->depth--;
        if (r->depth < (int)sizeof r->open) {
            tool_arguments(r, (const char *)&r->open[r->depth], 1);
        }
    }
}

static tool_step end_call(tool_reader *r, reply_kind how)
{
    if (how == REPLY_CALL_END && r->state == IN_ARGUMENTS) {
        close_arguments(r);
    }
    return tool_end_plain(r, how);
}

/* ---- its body ---- */

/* Behind a name that stood in front: a code fence perhaps, then the arguments. */
static tool_step read_named(tool_reader *r, bytes *held)
{
    static const char FENCE[] = "```json";
    const char *text = bytes_str(held);
    size_t at = tool_blank(text, held->len), value = 0;
    tool_step step = tool_match(text + at, held->len - at, FENCE);
    if (at == held->len || step == TOOL_MORE) {
        return TOOL_MORE;
    }
    if (step == TOOL_DONE) {
        at += sizeof FENCE - 1;
        at += tool_blank(text + at, held->len - at);
    }
    if (at == held->len) {
        return TOOL_MORE;
    }
    if (text[at] == '{') {
        bytes_consume(held, at);
        r->has_arguments = true;
        r->state = IN_ARGUMENTS;
        return TOOL_NO;
    }
    step = text[at] == '"' ? scan_value(text + at, held->len - at, &value) : TOOL_NO;
    if (step == TOOL_DONE) {
        whole_arguments(r, text + at, value);
        bytes_consume(held, at + value);
    }
    return step == TOOL_MORE ? TOOL_MORE : end_call(r, REPLY_CALL_END);
}

/* Reads a member of the call's object behind the name. TOOL_NO: the state changed, read on. */
static tool_step read_member(tool_reader *r, bytes *held)
{
    const char *text = bytes_str(held), *key = NULL;
    size_t at = tool_blank(text, held->len), n = 0, value = 0;
    if (at < held->len && text[at] == ',') {
        at++;
        tool_step step = read_key(text, held->len, &at, &key, &n);
        if (step != TOOL_DONE || at == held->len) {
            return step == TOOL_NO ? end_call(r, REPLY_CALL_END) : TOOL_MORE;
        }
        bool is_arguments = is_arguments_key(key, n) && !r->has_arguments;
        if (is_arguments && text[at] == '{') {
            bytes_consume(held, at);
            r->has_arguments = true;
            r->state = IN_ARGUMENTS;
            return TOOL_NO;
        }
        step = scan_value(text + at, held->len - at, &value);
        if (step == TOOL_DONE && is_arguments) {
            whole_arguments(r, text + at, value);
        }
        bytes_consume(held, step == TOOL_DONE ? at + value : 0);
        return step == TOOL_DONE ? TOOL_NO : step == TOOL_MORE ? TOOL_MORE : end_call(r, REPLY_CALL_END);
    }
    if (at == held->len) {
        return TOOL_MORE;
    }
    bytes_consume(held, text[at] == '}' ? at + 1 : at);
    return end_call(r, REPLY_CALL_END);
}

static tool_step step(tool_reader *r, bytes *held, tool_end end)
{
    if (r->state != IN_ARGUMENTS) {
        return r->is_named ? read_named(r, held) : read_member(r, held);
    }
    if (!read_arguments(r, held, end)) {
        const bool at_marker = held->len > 0 && !r->in_string && held->data[0] == '<';
        return at_marker ? end_call(r, REPLY_CALL_END) : TOOL_MORE;
    }
    r->state = IN_CALL;
    return r->is_named ? end_call(r, REPLY_CALL_END) : TOOL_NO;
}

/* ---- the forms ---- */

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define READ_JSON  .head = head, .step = step, .end_call = end_call, .arguments = SPEC_SCHEMA

#define BLANKS " \n\r\t"
#define BRACES BLANKS "}" /* models write braces too many */

static const json_syntax HERMES = {.opens = TEXTS(TOOL_CALL)};
const tool_form TOOL_FORM_HERMES = {
    READ_JSON,
    .name = "hermes",
    .signs = TEXTS(TOOL_CALL, "{\"name\":", "arguments"),
    .syntax = &HERMES,
    .markers = {TOOL_CALL},
    .blank = BRACES,
    .closers = {TOOL_CALL_CLOSE},
    .before_name = TOOL_CALL "\n{\"name\": \"",
    .behind_name = "\", \"arguments\": ",
    .after = "}\n" TOOL_CALL_CLOSE,
    .between = "\n",
};

#define MISTRAL_MARK "[TOOL_CALLS]"
static const json_syntax MISTRAL = {
    .opens = TEXTS(MISTRAL_MARK), .name_ends = TEXTS("[CALL_ID]", "[ARGS]", "{"), .is_listed = true};
const tool_form TOOL_FORM_MISTRAL = {
    READ_JSON,
    .name = "mistral",
    .signs = TEXTS(MISTRAL_MARK, "[ARGS]"),
    .syntax = &MISTRAL,
    .markers = {MISTRAL_MARK},
    .n_anywhere = 1,
    .inner = TEXTS("[ARGS]", "[CALL_ID]"),
    .blank = BRACES,
    .separator = ',',
    .list_end = ']',
    .before_name = MISTRAL_MARK,
    .behind_name = "[ARGS]",
    .between = "",
};
const tool_form TOOL_FORM_MISTRAL_LIST = {
    READ_JSON,
    .name = "mistral_list",
    .signs = TEXTS(MISTRAL_MARK),
    .syntax = &MISTRAL,
    .markers = {MISTRAL_MARK},
    .n_anywhere = 1,
    .inner = TEXTS("[ARGS]", "[CALL_ID]"),
    .blank = BRACES,
    .separator = ',',
    .list_end = ']',
    .all = MISTRAL_MARK "[",
    .before_name = "{\"name\": \"",
    .behind_name = "\", \"arguments\": ",
    .after = "}",
    .all_close = "]",
    .between = ", ",
};

#define KIMI_ALL       "<|tool_calls_section_begin|>"
#define KIMI_ALL_CLOSE "<|tool_calls_section_end|>"
#define KIMI_CALL      "<|tool_call_begin|>"
#define KIMI_ARGUMENTS "<|tool_call_argument_begin|>"
static const json_syntax KIMI = {.opens = TEXTS(KIMI_ALL, KIMI_CALL), .name_ends = TEXTS(KIMI_ARGUMENTS)};
const tool_form TOOL_FORM_KIMI = {
    READ_JSON,
    .name = "kimi_k2",
    .signs = TEXTS(KIMI_ARGUMENTS),
    .syntax = &KIMI,
    .markers = {KIMI_ALL, KIMI_CALL},
    .n_anywhere = 2,
    .inner = TEXTS(KIMI_ARGUMENTS),
    .blank = BRACES,
    .closers = {"<|tool_call_end|>", KIMI_ALL_CLOSE},
    .all = KIMI_ALL,
    .before_name = KIMI_CALL "functions.",
    .behind_name = ":0" KIMI_ARGUMENTS,
    .after = "<|tool_call_end|>",
    .all_close = KIMI_ALL_CLOSE,
    .between = "",
};

#define DEEPSEEK_ALL       "<｜tool▁calls▁begin｜>"
#define DEEPSEEK_ALL_CLOSE "<｜tool▁calls▁end｜>"
#define DEEPSEEK_CALL      "<｜tool▁call▁begin｜>"
#define DEEPSEEK_CLOSE     "<｜tool▁call▁end｜>"
#define DEEPSEEK_NAME      "<｜tool▁sep｜>"
static const json_syntax DEEPSEEK = {.opens = TEXTS(DEEPSEEK_ALL, DEEPSEEK_CALL, "function" DEEPSEEK_NAME),
                                     .name_ends = TEXTS(DEEPSEEK_NAME, "\n```json", "\n")};
const tool_form TOOL_FORM_DEEPSEEK_V3 = {
    READ_JSON,
    .name = "deepseek_v3",
    .signs = TEXTS(DEEPSEEK_ALL, "```json"),
    .syntax = &DEEPSEEK,
    .markers = {DEEPSEEK_ALL, DEEPSEEK_CALL},
    .n_anywhere = 2,
    .inner = TEXTS(DEEPSEEK_NAME),
    .blank = BRACES,
    .closers = {"```", DEEPSEEK_CLOSE, DEEPSEEK_ALL_CLOSE},
    .all = DEEPSEEK_ALL,
    .before_name = DEEPSEEK_CALL "function" DEEPSEEK_NAME,
    .behind_name = "\n```json\n",
    .after = "\n```" DEEPSEEK_CLOSE,
    .all_close = DEEPSEEK_ALL_CLOSE,
    .between = "\n",
};
const tool_form TOOL_FORM_DEEPSEEK_V31 = {
    READ_JSON,
    .name = "deepseek_v31",
    .signs = TEXTS(DEEPSEEK_ALL),
    .syntax = &DEEPSEEK,
    .markers = {DEEPSEEK_ALL, DEEPSEEK_CALL},
    .n_anywhere = 2,
    .inner = TEXTS(DEEPSEEK_NAME),
    .blank = BRACES,
    .closers = {DEEPSEEK_CLOSE, DEEPSEEK_ALL_CLOSE},
    .all = DEEPSEEK_ALL,
    .before_name = DEEPSEEK_CALL,
    .behind_name = DEEPSEEK_NAME,
    .after = DEEPSEEK_CLOSE,
    .all_close = DEEPSEEK_ALL_CLOSE,
    .between = "",
};

/* Phi-4-mini closes what Granite leaves open. */
#define GRANITE_MARK  "<|tool_call|>"
#define GRANITE_CLOSE "<|/tool_call|>"
static const json_syntax GRANITE = {.opens = TEXTS(GRANITE_MARK, "<function_call>", TOOL_CALL),
                                    .is_listed = true};
const tool_form TOOL_FORM_GRANITE = {
    READ_JSON,
    .name = "granite",
    .aliases = TEXTS("granite-20b-fc", "phi4_mini_json"),
    .signs = TEXTS(GRANITE_MARK),
    .syntax = &GRANITE,
    .markers = {GRANITE_MARK, "<function_call>", TOOL_CALL},
    .n_anywhere = 1,
    .blank = BRACES,
    .closers = {GRANITE_CLOSE, TOOL_CALL_CLOSE},
    .separator = ',',
    .list_end = ']',
    .all = GRANITE_MARK "[",
    .before_name = "{\"name\": \"",
    .behind_name = "\", \"arguments\": ",
    .after = "}",
    .all_close = "]",
    .between = ", ",
};

static const json_syntax NEMOTRON = {.opens = TEXTS("<TOOLCALL>"), .is_listed = true};
const tool_form TOOL_FORM_NEMOTRON = {
    READ_JSON,
    .name = "nemotron_json",
    .aliases = TEXTS("nemotron"),
    .signs = TEXTS("<TOOLCALL>"),
    .syntax = &NEMOTRON,
    .markers = {"<TOOLCALL>"},
    .blank = BRACES,
    .closers = {"</TOOLCALL>"},
    .separator = ',',
    .list_end = ']',
    .all = "<TOOLCALL>[",
    .before_name = "{\"name\": \"",
    .behind_name = "\", \"arguments\": ",
    .after = "}",
    .all_close = "]</TOOLCALL>",
    .between = ", ",
};

#define LLAMA3_MARK "<|python_tag|>"
static const json_syntax LLAMA3 = {.opens = TEXTS(LLAMA3_MARK), .is_bare = true};
const tool_form TOOL_FORM_LLAMA3_JSON = {
    READ_JSON,
    .name = "llama3_json",
    .aliases = TEXTS("llama4_json"),
    .signs = TEXTS("<|start_header_id|>", "{\"name\": function name, \"parameters\":"),
    .syntax = &LLAMA3,
    .markers = {LLAMA3_MARK, "{"},
    .n_anywhere = 1,
    .blank = BRACES,
    .separator = ';',
    .before_name = "{\"name\": \"",
    .behind_name = "\", \"parameters\": ",
    .after = "}",
    .between = "; ",
};

/* Heads are read by the reply parser, which finds the channels. */
static const json_syntax HARMONY = {.opens = TEXTS("<|channel|>commentary to=functions.")};
const tool_form TOOL_FORM_HARMONY = {
    READ_JSON,
    .name = "openai",
    .aliases = TEXTS("openai_gptoss", "gpt_oss", "harmony"),
    .signs = TEXTS("<|channel|>commentary", "<|message|>"),
    .syntax = &HARMONY,
    .inner = TEXTS("<|channel|>", "<|constrain|>", "<|message|>"),
    .blank = BLANKS,
    .before_name = "<|channel|>commentary to=functions.",
    .behind_name = " <|constrain|>json<|message|>",
};
