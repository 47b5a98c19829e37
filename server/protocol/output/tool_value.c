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
    bytes quoted = bytes_empty(SIZE_MAX / 2);
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
        bytes_append(out, text, len);
        return true;
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

/* The string of a Python literal, whose quote stands at text[at], as one of JSON; returns where it
 * ends. */
static size_t python_string(bytes *out, const char *text, size_t len, size_t at)
{
    const char quote = text[at];
    bytes_append_char(out, '"');
    for (at++; at < len && text[at] != quote; at++) {
        if (text[at] == '\\' && at + 1 < len) {
            bytes_append(out, text + at, text[at + 1] != '\''); /* JSON has no \' */
            at++;
        } else if (text[at] == '"') {
            bytes_append_char(out, '\\');
        }
        bytes_append_char(out, text[at]);
    }
    bytes_append_char(out, '"');
    return at + 1;
}

/* A Python literal as JSON: single quotes, True, False, None. What is neither stays and fails to
 * parse. */
static void python_to_json(bytes *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (text[i] == '\'' || text[i] == '"') {
            i = python_string(out, text, len, i);
            continue;
        }
        size_t n = 0;
        while (i + n < len && isalpha((unsigned char)text[i + n])) {
            n++;
        }
        const char *word = tool_value_of_python(text + i, n);
        n = n ? n : 1;
        bytes_append(out, word ? word : text + i, word ? strlen(word) : n);
        i += n;
    }
}

static unsigned container_kind(const json *v)
{
    return json_is(v, JSON_OBJECT) ? TOOL_OBJECT : json_is(v, JSON_ARRAY) ? TOOL_ARRAY : 0;
}

static json_doc *parse(const char *text, size_t len)
{
    json_doc *doc = NULL;
    return json_parse(&doc, text, len, LIMIT_JSON_DEPTH, NULL) == ERR_OK ? doc : NULL;
}

/* Appends the text if it is JSON of an allowed kind. */
static bool write_if_container(bytes *out, const char *text, size_t len, unsigned kinds)
{
    json_doc *doc = parse(text, len);
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
        json_doc *doc = kinds & TOOL_STRING ? NULL : parse(text, len);
        const char *inner = doc ? json_str(json_root(doc), NULL) : NULL;
        bool fits = inner && write_if_container(out, inner, strlen(inner), kinds);
        json_free(doc);
        return fits;
    }
    bytes converted = bytes_empty(SIZE_MAX / 2);
    python_to_json(&converted, text, len);
    bool fits = !converted.failed && write_if_container(out, bytes_str(&converted), converted.len, kinds);
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
    json_doc *doc = kinds & TOOL_STRING ? NULL : parse(word, n);
    if (doc) {
        bytes_append(out, word, n);
    } else {
        bytes_append_json(out, text, len);
    }
    json_free(doc);
}
