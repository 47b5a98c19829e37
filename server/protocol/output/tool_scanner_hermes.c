/* The form of Hermes, Qwen2.5 and Qwen3:
 *
 *     <tool_call>
 *     {"name": NAME, "arguments": {..}}
 *     </tool_call>
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
    bytes_clear(&r->value);
}

/* One byte inside a string. */
static void string_byte(tool_reader *r, bytes *out, char c)
{
    if (r->escaped) {
        r->escaped = false;
        bytes_append_char(out, c);
    } else if ((unsigned char)c < 0x20) {
        tool_value_escape(out, &c, 1);
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
        bytes_clear(out);
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
    bytes out = bytes_empty(SIZE_MAX / 2);
    for (; i < n && !closed; i++) {
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
    bytes copy = bytes_empty(SIZE_MAX / 2);
    if (len > 0 && text[0] == '{') {
        bytes_append(&copy, text, len);
        read_arguments(r, &copy, TOOL_ENDED);
    } else {
        bytes value = bytes_empty(SIZE_MAX / 2);
        tool_value_write(&value, text, len, TOOL_OBJECT);
        bool is_object = value.len > 0 && value.data[0] == '{';
        tool_arguments(r, is_object ? value.data : "{}", is_object ? value.len : 2);
        bytes_deinit(&value);
    }
    r->has_arguments = true;
    bytes_deinit(&copy);
}

/* ---- the call ---- */

static tool_step head(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used)
{
    const char *arguments = NULL;
    size_t at = sizeof TOOL_CALL - 1, n_arguments = 0;
    tool_step step = TOOL_MORE;
    at += tool_blank(text + at, len - at);
    if (at < len && text[at] != '{') {
        return TOOL_NO;
    }
    for (at++; at < len;) {
        const char *key = NULL;
        size_t n = 0, value = 0;
        step = read_key(text, len, &at, &key, &n);
        if (step != TOOL_DONE) {
            break;
        }
        step = at < len ? scan_value(text + at, len - at, &value) : TOOL_MORE;
        if (step != TOOL_DONE) {
            break;
        }
        if (is_key(key, n, "name")) {
            bool is_name = value > 2 && text[at] == '"' && tool_is_name(text + at + 1, value - 2);
            if (!is_name) {
                return TOOL_NO;
            }
            tool_begin(r, text + at + 1, value - 2);
            if (arguments) {
                whole_arguments(r, arguments, n_arguments);
            }
            *used = at + value;
            return TOOL_DONE;
        }
        if (is_arguments_key(key, n)) {
            arguments = text + at;
            n_arguments = value;
        }
        at += value;
        at += tool_blank(text + at, len - at);
        step = at == len ? TOOL_MORE : text[at] == ',' ? TOOL_MORE : TOOL_NO;
        if (at == len || text[at] != ',') {
            break;
        }
        at++;
    }
    return is_end ? TOOL_NO : step;
}

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
    } else if (how == REPLY_CALL_END && !r->has_arguments) {
        tool_arguments(r, "{}", 2);
    }
    reply_pieces_add(r->out, how, "", 0);
    r->state = TOOL_BEHIND_CALL;
    return TOOL_NO;
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
        return read_member(r, held);
    }
    if (!read_arguments(r, held, end)) {
        return TOOL_MORE;
    }
    r->state = IN_CALL;
    return TOOL_NO;
}

static const char *const SIGNS[] = {"<tool_call>", "{\"name\":", "arguments", NULL};

const tool_form TOOL_FORM_HERMES = {
    .name = "hermes",
    .signs = SIGNS,
    .markers = {TOOL_CALL},
    .head = head,
    .step = step,
    .end_call = end_call,
    .blank = " \n\r\t}", /* models write braces too many */
    .before_name = "\n{\"name\": \"",
    .behind_name = "\", \"arguments\": ",
    .after = "}\n",
    .arguments = SPEC_SCHEMA,
};
