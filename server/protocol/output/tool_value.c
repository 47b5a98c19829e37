#include "server/protocol/output/tool_value.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "server/protocol/output/tool_set.h"

void tool_value_escape(bytes *out, const char *text, size_t len)
{
    bytes quoted = bytes_empty(SIZE_MAX);
    bytes_append_json(&quoted, text, len);
    if (quoted.failed) {
        out->failed = true;
    } else {
        bytes_append(out, quoted.data + 1, quoted.len - 2);
    }
    bytes_deinit(&quoted);
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* JSON's word, written in whatever case; NULL: it is none. */
static const char *word_of_json(const char *text, size_t len)
{
    return is_word(text, len, "true")    ? "true"
           : is_word(text, len, "false") ? "false"
           : is_word(text, len, "null")  ? "null"
                                         : NULL;
}

/* The text as JSON; NULL: it is none, or there is no memory, and `out` has failed. */
static json_doc *parse(bytes *out, const char *text, size_t len)
{
    json_doc *doc = NULL;
    if (json_parse(&doc, text, len, LIMIT_JSON_DEPTH, NULL) == ERR_NOMEM) {
        bytes_fail_memory(out);
    }
    return doc;
}

/* Appends the text if it is JSON. */
static bool write_json(bytes *out, const char *text, size_t len)
{
    json_doc *doc = parse(out, text, len);
    const bool is_json = doc != NULL;
    bytes_append(out, text, is_json ? len : 0);
    json_free(doc);
    return is_json;
}

/* ---- numbers ---- */

static size_t digits(const char *text, size_t len, size_t at)
{
    while (at < len && isdigit((unsigned char)text[at])) {
        at++;
    }
    return at;
}

/* A number as JSON writes it. */
static bool is_number(const char *text, size_t len, bool *is_integer)
{
    size_t at = len > 0 && text[0] == '-' ? 1 : 0, begin = at;
    at = digits(text, len, at);
    if (at == begin || (at > begin + 1 && text[begin] == '0')) {
        return false;
    }
    *is_integer = at == len;
    if (at < len && text[at] == '.') {
        begin = at + 1;
        at = digits(text, len, begin);
        if (at == begin) {
            return false;
        }
    }
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        begin = at + 1 + (at + 1 < len && (text[at + 1] == '+' || text[at + 1] == '-'));
        at = digits(text, len, begin);
        if (at == begin) {
            return false;
        }
    }
    return at == len;
}

static bool write_number(bytes *out, const char *text, size_t len, unsigned kinds)
{
    bool is_integer;
    if (!is_number(text, len, &is_integer)) {
        return false;
    }
    if (is_integer || (kinds & TOOL_NUMBER)) {
        return write_json(out, text, len); /* one that is too large for a number is none */
    }
    char copy[64];
    if (len >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    double value = strtod(copy, NULL);
    if (floor(value) != value || fabs(value) > 9007199254740992.0) {
        return false;
    }
    bytes_printf(out, "%.0f", value);
    return true;
}

/* ---- objects and lists ---- */

const char *tool_value_of_python(const char *word, size_t len)
{
    static const char *const WORDS[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (len == strlen(WORDS[i][0]) && memcmp(word, WORDS[i][0], len) == 0) {
            return WORDS[i][1];
        }
    }
    return NULL;
}

/* A literal on its way to JSON. */
typedef struct literal {
    bytes *out;
    const char *text;
    size_t len, at;
    const char *quote; /* of Gemma; NULL: none */
    char open[LIMIT_JSON_DEPTH];
    size_t depth;
} literal;

/* An escape of Python in one of JSON; text[at] is the backslash. Returns how long it is. */
static size_t write_escape(literal *l)
{
    const char *text = l->text + l->at;
    const size_t left = l->len - l->at;
    const bool is_hex =
        left > 3 && text[1] == 'x' && isxdigit((unsigned char)text[2]) && isxdigit((unsigned char)text[3]);
    if (is_hex) {
        bytes_printf(l->out, "\\u00%c%c", text[2], text[3]);
        return 4;
    }
    if (left > 1 && strchr("\"\\/bfnrtu", text[1]) && text[1]) {
        bytes_append(l->out, text, 2);
    } else if (left > 1 && text[1] == '\'') {
        bytes_append_char(l->out, '\'');
    } else {
        bytes_append_str(l->out, "\\\\");
        return 1;
    }
    return 2;
}

/* A string whose quote stands at l->at; what is left is taken if nothing closes it. */
static void write_string(literal *l)
{
    const char mark = l->text[l->at];
    bytes_append_char(l->out, '"');
    for (l->at++; l->at < l->len && l->text[l->at] != mark;) {
        if (l->text[l->at] == '\\') {
            l->at += write_escape(l);
        } else {
            const size_t begin = l->at;
            while (l->at < l->len && l->text[l->at] != mark && l->text[l->at] != '\\') {
                l->at++;
            }
            tool_value_escape(l->out, l->text + begin, l->at - begin);
        }
    }
    bytes_append_char(l->out, '"');
    l->at += l->at < l->len;
}

/* The same between quotes of Gemma, where nothing is escaped. */
static void write_quoted(literal *l)
{
    const size_t n = strlen(l->quote);
    const char *begin = l->text + l->at + n, *end = l->text + l->len;
    const char *close = begin;
    while (close < end && ((size_t)(end - close) < n || memcmp(close, l->quote, n) != 0)) {
        close++;
    }
    bytes_append_json(l->out, begin, (size_t)(close - begin));
    l->at = (size_t)(close - l->text) + (close < end ? n : 0);
}

static bool is_word_byte(unsigned char c)
{
    return isalnum(c) || strchr("_+-.$", c) || c >= 0x80;
}

/* A number, one of Python's or JSON's words, or a key or string without quotes. */
static void write_word(literal *l)
{
    const char *word = l->text + l->at;
    size_t n = 0;
    bool is_integer;
    while (l->at + n < l->len && word[n] &&
           (is_word_byte((unsigned char)word[n]) || (n > 0 && strchr("'\"", word[n])))) {
        n++; /* a quote inside of a word begins no string */
    }
    n = n ? n : 1;
    const char *python = tool_value_of_python(word, n), *known = python ? python : word_of_json(word, n);
    if (known) {
        bytes_append_str(l->out, known);
    } else if (is_number(word, n, &is_integer) || !is_word_byte((unsigned char)word[0])) {
        bytes_append(l->out, word, n);
    } else {
        bytes_append_json(l->out, word, n);
    }
    l->at += n;
}

/* A key of Gemma, which is written as it is, up to its colon; false: there is none here. */
static bool write_bare_key(literal *l)
{
    const char *key = l->text + l->at;
    size_t n = 0;
    while (l->at + n < l->len && key[n] && !strchr(":,([{)]}<", key[n])) {
        n++;
    }
    const bool is_key = n > 0 && l->at + n < l->len && key[n] == ':' && !strchr("'\"", key[0]);
    if (is_key) {
        bytes_append_json(l->out, key, n);
        l->at += n;
    }
    return is_key;
}

static void write_bracket(literal *l, char c)
{
    const char *found = strchr("([{", c);
    if (found) {
        if (l->depth < sizeof l->open) {
            l->open[l->depth] = "]]}"[found - "([{"];
        }
        l->depth++;
        bytes_append_char(l->out, c == '(' ? '[' : c);
    } else {
        l->depth -= l->depth > 0;
        bytes_append_char(l->out, c == ')' ? ']' : c);
    }
    l->at++;
}

/* Whether the comma at l->at stands in front of a closing bracket, or of nothing. */
static bool is_last(const literal *l)
{
    size_t at = l->at + 1;
    while (at < l->len && isspace((unsigned char)l->text[at])) {
        at++;
    }
    return at == l->len || (l->text[at] && strchr(")]}", l->text[at]));
}

/* A literal as JSON. What is none stays and fails to parse. closes: what is open is closed. */
static void literal_to_json(bytes *out, const char *text, size_t len, const char *quote, bool closes)
{
    literal l = {.out = out, .text = text, .len = len, .quote = quote};
    const size_t n_quote = quote ? strlen(quote) : 0;
    while (l.at < len) {
        const char c = text[l.at];
        const bool in_object = l.depth > 0 && l.depth <= sizeof l.open && l.open[l.depth - 1] == '}';
        if (quote && in_object && strchr("{,", text[l.at - 1]) && write_bare_key(&l)) {
            continue;
        }
        if (quote && len - l.at >= n_quote && memcmp(text + l.at, quote, n_quote) == 0) {
            write_quoted(&l);
        } else if (c == '\'' || c == '"') {
            write_string(&l);
        } else if (c && strchr("([{)]}", c)) {
            write_bracket(&l, c);
        } else if (c == ',') {
            bytes_append(out, ",", !is_last(&l));
            l.at++;
        } else if (isspace((unsigned char)c) || c == ':') {
            bytes_append_char(out, c);
            l.at++;
        } else {
            write_word(&l);
        }
    }
    while (closes && l.depth-- > 0) {
        bytes_append_char(out, l.depth < sizeof l.open ? l.open[l.depth] : ']');
    }
}

static unsigned container_kind(const json *v)
{
    return json_is(v, JSON_OBJECT) ? TOOL_OBJECT : json_is(v, JSON_ARRAY) ? TOOL_ARRAY : 0;
}

/* Appends the text if it is JSON of an allowed kind. */
static bool write_if_container(bytes *out, const char *text, size_t len, unsigned kinds)
{
    json_doc *doc = parse(out, text, len);
    bool fits = doc && (container_kind(json_root(doc)) & kinds) != 0;
    if (fits) {
        bytes_append(out, text, len);
    }
    json_free(doc);
    return fits;
}

static bool write_container(bytes *out, const char *text, size_t len, unsigned kinds)
{
    if (len == 0 || !strchr("{[\"", text[0])) {
        return false;
    }
    if (text[0] != '"' && write_if_container(out, text, len, kinds)) {
        return true;
    }
    if (text[0] == '"') {
        json_doc *doc = kinds & TOOL_STRING ? NULL : parse(out, text, len);
        const char *inner = doc ? json_str(json_root(doc), NULL) : NULL;
        bool fits = inner && write_if_container(out, inner, strlen(inner), kinds);
        json_free(doc);
        return fits;
    }
    bytes converted = bytes_empty(SIZE_MAX);
    literal_to_json(&converted, text, len, NULL, false);
    bytes_fail_as(out, &converted);
    bool fits = write_if_container(out, bytes_str(&converted), converted.len, kinds);
    bytes_deinit(&converted);
    return fits;
}

/* ---- the choice ---- */

void tool_value_write(bytes *out, const char *text, size_t len, unsigned kinds)
{
    const char *word = text;
    size_t n = len;
    while (n > 0 && isspace((unsigned char)word[0])) {
        word++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)word[n - 1])) {
        n--;
    }
    if ((kinds & TOOL_NULL) && (is_word(word, n, "null") || is_word(word, n, "none"))) {
        bytes_append_str(out, "null");
        return;
    }
    if ((kinds & TOOL_BOOLEAN) && (is_word(word, n, "true") || is_word(word, n, "false"))) {
        bytes_append_str(out, is_word(word, n, "true") ? "true" : "false");
        return;
    }
    if ((kinds & (TOOL_NUMBER | TOOL_INTEGER)) && write_number(out, word, n, kinds)) {
        return;
    }
    if ((kinds & (TOOL_OBJECT | TOOL_ARRAY)) && write_container(out, word, n, kinds)) {
        return;
    }
    if ((kinds & TOOL_STRING) || !write_json(out, word, n)) {
        bytes_append_json(out, text, len);
    }
}

void tool_value_literal(bytes *out, const char *text, size_t len, const char *quote, unsigned kinds)
{
    while (len > 0 && isspace((unsigned char)text[0])) {
        text++;
        len--;
    }
    const size_t n_quote = quote ? strlen(quote) : 0;
    const bool is_quoted = quote && len >= n_quote && memcmp(text, quote, n_quote) == 0;
    if (len == 0 || (!is_quoted && !strchr("'\"[{(", text[0]))) {
        tool_value_write(out, text, len, kinds);
        return;
    }
    bytes converted = bytes_empty(SIZE_MAX);
    literal_to_json(&converted, text, len, quote, true);
    bytes_fail_as(out, &converted);
    json_doc *doc = parse(out, bytes_str(&converted), converted.len);
    const char *string = doc ? json_str(json_root(doc), NULL) : NULL;
    if (string && (kinds & TOOL_STRING)) {
        bytes_append(out, converted.data, converted.len);
    } else if (string) {
        tool_value_write(out, string, strlen(string), kinds);
    } else if (doc) {
        tool_value_write(out, converted.data, converted.len, kinds);
    } else {
        bytes_append_json(out, text, len);
    }
    json_free(doc);
    bytes_deinit(&converted);
}
