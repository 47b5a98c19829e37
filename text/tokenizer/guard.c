#include "text/tokenizer/guard.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"

/* MARKER_MAX: longest marker looked for in a template's text. */
enum { N_SETS = 2, MARKER_MAX = 64 };

size_t guard_match(const guard *g, const char *text, size_t len)
{
    size_t best = 0;
    for (size_t i = 0; i < N_SETS; i++) {
        int32_t id;
        const size_t n = g->sets[i] ? added_tokens_match(g->sets[i], text, len, &id) : 0;
        best = n > best ? n : best;
    }
    return best;
}

size_t guard_next(const guard *g, const char *text, size_t from, size_t len)
{
    static const added_tokens none = {0};
    const bool *a = (g->sets[0] ? g->sets[0] : &none)->starts, *b = (g->sets[1] ? g->sets[1] : &none)->starts;
    while (from < len && !a[(unsigned char)text[from]] && !b[(unsigned char)text[from]]) {
        from++;
    }
    return from;
}

/* Bytes of the longest marker of both sets. */
static size_t longest_marker(const guard *g)
{
    size_t longest = 0;
    for (size_t i = 0; i < N_SETS; i++) {
        if (g->sets[i] && g->sets[i]->longest > longest) {
            longest = g->sets[i]->longest;
        }
    }
    return longest;
}

const char *guard_find(const char *text, size_t len)
{
    const char *end = text + len;
    for (const char *at = text; (at = memchr(at, GUARD_CHAR[0], (size_t)(end - at))); at++) {
        if ((size_t)(end - at) >= GUARD_LEN && memcmp(at, GUARD_CHAR, GUARD_LEN) == 0) {
            return at;
        }
    }
    return NULL;
}

void guard_strip(bytes *out, const char *text, size_t len)
{
    const char *end = text + len, *from = text;
    while (from < end) {
        const char *at = guard_find(from, (size_t)(end - from));
        bytes_append(out, from, (size_t)((at ? at : end) - from));
        from = at ? at + GUARD_LEN : end;
    }
}

static bool begins_with_tail(const guard *g, const char *text, size_t len)
{
    for (size_t i = 0; i < N_SETS; i++) {
        if (g->sets[i] && added_tokens_begins_with_tail(g->sets[i], text, len)) {
            return true;
        }
    }
    return false;
}

/* True if some ending of text[0..len) is the beginning of a marker, which the text after it could
 * finish. */
static bool ends_inside_marker(const guard *g, const char *text, size_t len)
{
    const size_t longest = longest_marker(g) < len ? longest_marker(g) : len;
    for (size_t n = 1; n <= longest; n++) {
        for (size_t i = 0; i < N_SETS; i++) {
            if (g->sets[i] && g->sets[i]->starts[(unsigned char)text[len - n]] &&
                added_tokens_has_prefix(g->sets[i], text + len - n, n)) {
                return true;
            }
        }
    }
    return false;
}

void guard_text(const guard *g, bytes *out, const char *text, size_t len)
{
    bytes clean;
    bytes_init(&clean, len);
    if (guard_find(text, len)) {
        guard_strip(&clean, text, len);
        text = bytes_str(&clean);
        len = clean.len;
    }
    /* Two contents may end up side by side and spell a marker together. */
    if (begins_with_tail(g, text, len)) {
        bytes_append(out, GUARD_CHAR, GUARD_LEN);
    }
    size_t done = 0;
    for (size_t i = 0; (i = guard_next(g, text, i, len)) < len; i++) {
        if (guard_match(g, text + i, len - i) > 0) {
            uint32_t c;
            const size_t after_first = i + utf8_decode(text + i, len - i, &c);
            bytes_append(out, text + done, after_first - done);
            bytes_append(out, GUARD_CHAR, GUARD_LEN);
            done = after_first;
        }
    }
    bytes_append(out, text + done, len - done);
    if (ends_inside_marker(g, text, len)) {
        bytes_append(out, GUARD_CHAR, GUARD_LEN);
    }
    bytes_fail_as(out, &clean);
    bytes_deinit(&clean);
}

bool guard_spans(const guard *g, const char *left, size_t left_len, size_t own_tail, const char *right,
                 size_t right_len)
{
    char joined[2 * ADDED_TOKEN_MAX];
    const size_t longest = longest_marker(g);
    if (longest < 2 || left_len == 0 || right_len == 0) {
        return false;
    }
    const size_t room = left_len < longest - 1 ? left_len : longest - 1;
    const size_t more = right_len < longest - 1 ? right_len : longest - 1;
    memcpy(joined, left + left_len - room, room);
    memcpy(joined + room, right, more);
    for (size_t i = 0; i + own_tail < room; i++) {
        if (guard_match(g, joined + i, room + more - i) > room - i) {
            return true;
        }
    }
    return false;
}

/* Punctuation and signs, among them the brackets, arrows and full-width forms that markers are made
 * of. */
static bool is_sign(uint32_t c)
{
    return c < 0x80
               ? ispunct((int)c) != 0
               : (c >= 0x2010 && c < 0x2580) || (c >= 0x25A0 && c < 0x2C00) || (c >= 0x3001 && c < 0x3020) ||
                     (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF01 && c < 0xFF66);
}

bool guard_is_marker(const char *text, size_t len)
{
    bool has_sign = false, varies = false;
    uint32_t first = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        const bool is_first = i == 0;
        i += utf8_decode(text + i, len - i, &c);
        first = is_first ? c : first;
        varies = varies || c != first;
        has_sign = has_sign || is_sign(c);
    }
    return has_sign && varies;
}

/* Length of the marker that text[0..len) begins with: <...> without a space, a quote or a brace, or
 * [CAPITALS]. */
static size_t marker_len(const char *text, size_t len)
{
    const bool is_square = text[0] == '[';
    if (!is_square && text[0] != '<') {
        return 0;
    }
    const size_t longest = len < MARKER_MAX ? len : MARKER_MAX;
    for (size_t i = 1; i < longest; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == (is_square ? ']' : '>')) {
            return i >= 2 ? i + 1 : 0;
        }
        const bool may_be_inside =
            is_square ? isupper(c) || c == '_' || (c == '/' && i == 1) : c > ' ' && !strchr("<'\"\\{}", c);
        if (!may_be_inside) {
            return 0;
        }
    }
    return 0;
}

err_code guard_read_markers(added_tokens *out, const char *text, size_t len, err_detail *detail)
{
    err_code err = ERR_OK;
    for (size_t i = 0; i < len && err == ERR_OK; i++) {
        const size_t n = marker_len(text + i, len - i);
        if (n > 0 && utf8_valid(text + i, n)) {
            err = added_tokens_add(out, text + i, n, 0, detail);
        }
    }
    added_tokens_sort(out);
    return err;
}
