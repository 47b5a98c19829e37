#include "server/protocol/body_field.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* The quote that ends the string which begins behind text[at]; len if there is none. */
static size_t string_end(const char *text, size_t at, size_t len)
{
    for (size_t i = at + 1; i < len; i++) {
        const char *quote = memchr(text + i, '"', len - i);
        if (!quote) {
            return len;
        }
        i = (size_t)(quote - text);
        size_t n_escapes = 0;
        while (text[i - 1 - n_escapes] == '\\') {
            n_escapes++;
        }
        if (n_escapes % 2 == 0) {
            return i;
        }
    }
    return len;
}

static size_t skip_space(const char *text, size_t at, size_t len)
{
    while (at < len && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) {
        at++;
    }
    return at;
}

/* Copies the string text[at..end], quotes included. */
static void copy_string(char *out, size_t cap, const char *text, size_t at, size_t end)
{
    json_doc *doc = NULL;
    out[0] = '\0';
    if (end - at < 6 * cap && json_parse(&doc, text + at, end - at + 1, 1, NULL) == ERR_OK) {
        const char *value = json_str(json_root(doc), "");
        if (strlen(value) < cap) {
            snprintf(out, cap, "%s", value);
        }
    }
    json_free(doc);
}

void body_field(char *out, size_t cap, const char *name, const char *text, size_t len)
{
    const size_t n_name = strlen(name);
    int depth = 0;
    out[0] = '\0';
    for (size_t i = skip_space(text, 0, len); i < len && (depth > 0 || text[i] == '{'); i++) {
        if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            depth--;
        } else if (text[i] == '"') {
            const size_t end = string_end(text, i, len), colon = skip_space(text, end + 1, len);
            const bool is_key = depth == 1 && colon < len && text[colon] == ':' && end - i - 1 == n_name &&
                                memcmp(text + i + 1, name, n_name) == 0;
            const size_t value = is_key ? skip_space(text, colon + 1, len) : len;
            i = end;
            if (value < len && text[value] == '"') {
                i = string_end(text, value, len);
                if (i < len) {
                    copy_string(out, cap, text, value, i);
                }
            }
        }
    }
}
