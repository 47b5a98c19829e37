#include "text/jinja/jinja_lexer.h"

#include <stdbool.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "text/jinja/jinja_value.h"

/* The text with line ends made \n, and where reading stands. */
typedef struct lexer {
    const char *text;
    size_t len, pos;
    int line;
    bool line_starting; /* the token before ended with a newline, or there was none */
    jinja_memory m;
    jinja_tokens *out;
    err_code err; /* stays with the first error */
    err_detail *detail;
} lexer;

typedef enum tag_kind { TAG_NONE, TAG_BLOCK, TAG_VARIABLE, TAG_COMMENT, TAG_RAW } tag_kind;

enum { TAG_LEN = 2, DEPTH_MAX = 256 };

static void fail(lexer *x, int line, const char *what)
{
    x->err = x->err ? x->err : err_set(x->detail, ERR_INVALID, "chat template, line %d: %s", line, what);
}

static void push(lexer *x, jinja_token_kind kind, const char *text, size_t len)
{
    jinja_tokens *t = x->out;
    jinja_token *items = jinja_grow(&x->m, t->items, t->len, &t->cap, sizeof *items);
    if (items) {
        t->items = items;
        t->items[t->len++] = (jinja_token){kind, x->line, text, len};
    }
}

/* Moves on to `pos`, counting lines. */
static void advance(lexer *x, size_t pos)
{
    for (; x->pos < pos; x->pos++) {
        x->line += x->text[x->pos] == '\n';
    }
}

/* Moves on behind a closing tag. */
static void advance_tag(lexer *x, size_t end)
{
    advance(x, end);
    x->line_starting = x->text[end - 1] == '\n';
}

static bool starts_with(const lexer *x, size_t pos, const char *what)
{
    size_t n = strlen(what);
    return x->len - pos >= n && memcmp(x->text + pos, what, n) == 0;
}

static jinja_value slice(const lexer *x, size_t begin, size_t end)
{
    return jinja_borrow(x->text + begin, end - begin);
}

/* First position at or after pos that is not white space. */
static size_t skip_space(const lexer *x, size_t pos)
{
    const jinja_value rest = slice(x, pos, x->len);
    return x->len - jinja_strip(&rest, NULL, true, false).len;
}

/* End of text[begin..end) without white space at its end. */
static size_t strip_end(const lexer *x, size_t begin, size_t end)
{
    const jinja_value whole = slice(x, begin, end);
    return begin + jinja_strip(&whole, NULL, false, true).len;
}

/* lstrip_blocks: blanks between a line's beginning and a block are not part of the text. */
static size_t strip_line_start(const lexer *x, size_t begin, size_t end)
{
    size_t line = end;
    while (line > begin && x->text[line - 1] != '\n') {
        line--;
    }
    bool at_line_start = line > begin || x->line_starting;
    return at_line_start && strip_end(x, line, end) == line ? line : end;
}

/* If a closing tag with its sign stands at pos, returns the end of what it takes away; else 0. A
 * minus takes all white space behind; without a sign trim_blocks takes one newline behind a block
 * (%}) or comment (#}), whose tags may also have a plus, which takes nothing. */
static size_t match_end(const lexer *x, size_t pos, const char *closing)
{
    const bool block = closing[0] != '}';
    const char sign = x->text[pos];
    const bool is_signed = sign == '-' || (sign == '+' && block);
    pos += is_signed;
    if (!starts_with(x, pos, closing)) {
        return 0;
    }
    pos += TAG_LEN;
    return sign == '-' ? skip_space(x, pos)
                       : pos + (block && !is_signed && pos < x->len && x->text[pos] == '\n');
}

/* Behind "{%" and a sign: the end of "raw %}" if that stands there, else 0. */
static size_t match_raw(const lexer *x, size_t pos)
{
    pos = skip_space(x, pos);
    if (!starts_with(x, pos, "raw")) {
        return 0;
    }
    pos = skip_space(x, pos + 3);
    if (starts_with(x, pos, "-%}")) {
        return skip_space(x, pos + 3);
    }
    return starts_with(x, pos, "%}") ? pos + TAG_LEN : 0;
}

/* Pushes the text before a tag, stripped as the tag's sign and the settings demand. */
static void push_data(lexer *x, size_t end, char sign, bool block)
{
    size_t begin = x->pos, stop = end;
    if (sign == '-') {
        stop = strip_end(x, begin, end);
    } else if (sign != '+' && block) {
        stop = strip_line_start(x, begin, end);
    }
    if (stop > begin) {
        push(x, JINJA_TOKEN_DATA, x->text + begin, stop - begin);
    }
    advance(x, end);
}

static void lex_comment(lexer *x, size_t open)
{
    int line = x->line;
    for (size_t pos = open; pos < x->len; pos++) {
        size_t end = match_end(x, pos, "#}");
        if (end) {
            advance_tag(x, end);
            return;
        }
    }
    fail(x, line, "a comment is not closed");
}

/* The end of "{% endraw %}" at pos, else 0; *sign is that behind its opening. */
static size_t match_endraw(const lexer *x, size_t pos, char *sign)
{
    if (!starts_with(x, pos, "{%")) {
        return 0;
    }
    pos += TAG_LEN;
    *sign = pos < x->len ? x->text[pos] : '\0';
    pos = skip_space(x, pos + (*sign == '-' || *sign == '+'));
    if (!starts_with(x, pos, "endraw")) {
        return 0;
    }
    pos = skip_space(x, pos + 6);
    return pos < x->len ? match_end(x, pos, "%}") : 0;
}

static void lex_raw(lexer *x, size_t begin)
{
    int line = x->line;
    advance_tag(x, begin);
    for (size_t pos = begin; pos < x->len; pos++) {
        char sign;
        size_t end = match_endraw(x, pos, &sign);
        if (end) {
            push_data(x, pos, sign, true);
            advance_tag(x, end);
            return;
        }
    }
    fail(x, line, "a raw block is not closed");
}

/* ---- inside of tags ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           (unsigned char)c >= 0x80;
}

/* Resolves the escape behind a backslash at s[*i] and writes it to out; returns the bytes written.
 */
static size_t unescape(char *out, const char *s, size_t len, size_t *i)
{
    static const char plain[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
    char c = s[*i];
    const char *at = c ? strchr(plain, c) : NULL;
    if (at) {
        ++*i;
        out[0] = meant[at - plain];
        return 1;
    }
    if (c == '\n') {
        ++*i;
        return 0;
    }
    size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, k = 0;
    uint32_t code = 0;
    if (n_digits) {
        while (k < n_digits && *i + 1 + k < len && hex_digit(s[*i + 1 + k]) >= 0) {
            code = code << 4 | (uint32_t)hex_digit(s[*i + 1 + k]);
            k++;
        }
        if (k == n_digits) {
            *i += 1 + k;
            return utf8_encode(out, code);
        }
    } else if (c >= '0' && c <= '7') {
        while (k < 3 && *i + k < len && s[*i + k] >= '0' && s[*i + k] <= '7') {
            code = code << 3 | (uint32_t)(s[*i + k] - '0');
            k++;
        }
        *i += k;
        return utf8_encode(out, code);
    }
    out[0] = '\\'; /* an unknown escape stays as it is */
    return 1;
}

static void lex_string(lexer *x)
{
    char quote = x->text[x->pos];
    size_t begin = x->pos + 1, end = begin;
    while (end < x->len && x->text[end] != quote) {
        end += x->text[end] == '\\' ? 2 : 1;
    }
    if (end >= x->len) {
        fail(x, x->line, "a string is not closed");
        return;
    }
    char *text = jinja_alloc(&x->m, end - begin + 4);
    if (!text) {
        return;
    }
    size_t n = 0;
    for (size_t i = begin; i < end;) {
        if (x->text[i] != '\\') {
            text[n++] = x->text[i++];
        } else {
            i++;
            n += unescape(text + n, x->text, end, &i);
        }
    }
    push(x, JINJA_TOKEN_STRING, text, n);
    advance(x, end + 1);
}

/* End of digits with single underscores between them; pos itself if there is no digit. */
static size_t skip_digits(const lexer *x, size_t pos, bool (*accept)(char))
{
    while (pos < x->len &&
           (accept(x->text[pos]) || (x->text[pos] == '_' && pos + 1 < x->len && accept(x->text[pos + 1])))) {
        pos++;
    }
    return pos;
}

static bool is_hex(char c)
{
    return hex_digit(c) >= 0;
}

static void lex_number(lexer *x)
{
    size_t begin = x->pos, end;
    jinja_token_kind kind = JINJA_TOKEN_INT;
    char second = begin + 1 < x->len ? x->text[begin + 1] : '\0';
    bool prefixed = x->text[begin] == '0' && second && strchr("xXoObB", second);
    if (prefixed) {
        end = skip_digits(x, begin + 2, is_hex);
    } else {
        end = skip_digits(x, begin, is_digit);
        /* Behind a dot stands an index: a.0.1 */
        bool after_dot = begin > 0 && x->text[begin - 1] == '.';
        if (!after_dot && end + 1 < x->len && x->text[end] == '.' && is_digit(x->text[end + 1])) {
            end = skip_digits(x, end + 1, is_digit);
            kind = JINJA_TOKEN_FLOAT;
        }
        if (!after_dot && end < x->len && (x->text[end] == 'e' || x->text[end] == 'E')) {
            size_t digits = end + 1;
            digits += digits < x->len && (x->text[digits] == '+' || x->text[digits] == '-');
            if (digits < x->len && is_digit(x->text[digits])) {
                end = skip_digits(x, digits, is_digit);
                kind = JINJA_TOKEN_FLOAT;
            }
        }
    }
    char *text = jinja_alloc(&x->m, end - begin + 1);
    size_t n = 0;
    for (size_t i = begin; text && i < end; i++) {
        if (x->text[i] != '_') {
            text[n++] = x->text[i];
        }
    }
    push(x, kind, text, n);
    advance(x, end);
}

/* Operators, longest first; a bracket is pushed to or popped from the stack. */
static void lex_operator(lexer *x, char *stack, size_t *depth)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (!starts_with(x, x->pos, operators[i])) {
            continue;
        }
        char c = operators[i][0];
        if (c == '(' || c == '[' || c == '{') {
            if (*depth == DEPTH_MAX) {
                fail(x, x->line, "brackets are nested too deeply");
                return;
            }
            stack[(*depth)++] = (char)(c == '(' ? ')' : c == '[' ? ']' : '}');
        } else if ((c == ')' || c == ']' || c == '}') && (*depth == 0 || stack[--*depth] != c)) {
            fail(x, x->line, "a closing bracket does not match");
            return;
        }
        push(x, JINJA_TOKEN_OP, operators[i], strlen(operators[i]));
        advance(x, x->pos + strlen(operators[i]));
        return;
    }
    fail(x, x->line, "an unexpected character");
}

/* Tokens of one tag up to its end; x->pos is behind the opening and its sign. */
static void lex_tag(lexer *x, bool block)
{
    char stack[DEPTH_MAX];
    size_t depth = 0;
    int line = x->line;
    while (!x->err && !x->m.failed) {
        advance(x, skip_space(x, x->pos));
        if (x->pos >= x->len) {
            fail(x, line, "a tag is not closed");
            return;
        }
        /* While a bracket is open, "}}" closes a dict in a dict. */
        size_t end = depth ? 0 : match_end(x, x->pos, block ? "%}" : "}}");
        char c = x->text[x->pos];
        if (end) {
            push(x, block ? JINJA_TOKEN_BLOCK_END : JINJA_TOKEN_VAR_END, "", 0);
            advance_tag(x, end);
            return;
        }
        if (is_digit(c)) {
            lex_number(x);
        } else if (is_name_char(c)) {
            size_t stop = x->pos;
            while (stop < x->len && is_name_char(x->text[stop])) {
                stop++;
            }
            push(x, JINJA_TOKEN_NAME, x->text + x->pos, stop - x->pos);
            advance(x, stop);
        } else if (c == '"' || c == '\'') {
            lex_string(x);
        } else {
            lex_operator(x, stack, &depth);
        }
    }
}

/* ---- the text between tags ---- */

static tag_kind find_tag(const lexer *x, size_t *at)
{
    for (size_t pos = x->pos; pos + 1 < x->len; pos++) {
        char next = x->text[pos + 1];
        if (x->text[pos] == '{' && (next == '{' || next == '%' || next == '#')) {
            *at = pos;
            return next == '{' ? TAG_VARIABLE : next == '%' ? TAG_BLOCK : TAG_COMMENT;
        }
    }
    return TAG_NONE;
}

static void lex_next(lexer *x)
{
    size_t at = x->len;
    tag_kind kind = find_tag(x, &at);
    if (kind == TAG_NONE) {
        push_data(x, x->len, '+', false);
        return;
    }
    size_t inside = at + TAG_LEN;
    char sign = inside < x->len ? x->text[inside] : '\0';
    bool signed_tag = sign == '-' || sign == '+';
    push_data(x, at, sign, kind != TAG_VARIABLE);
    inside += signed_tag;
    x->line_starting = false;
    size_t raw = kind == TAG_BLOCK ? match_raw(x, inside) : 0;
    if (kind == TAG_COMMENT) {
        lex_comment(x, inside);
    } else if (raw) {
        lex_raw(x, raw);
    } else {
        push(x, kind == TAG_BLOCK ? JINJA_TOKEN_BLOCK_BEGIN : JINJA_TOKEN_VAR_BEGIN, "", 0);
        advance(x, inside);
        lex_tag(x, kind == TAG_BLOCK);
    }
}

/* Copies the text with \r\n and \r as \n and without one newline at the end. */
static char *normalize_lines(const char *text, size_t *len, arena *a)
{
    char *out = arena_alloc(a, *len + 1);
    if (!out) {
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < *len; i++) {
        if (text[i] == '\r') {
            i += i + 1 < *len && text[i + 1] == '\n';
            out[n++] = '\n';
        } else {
            out[n++] = text[i];
        }
    }
    n -= n > 0 && out[n - 1] == '\n';
    out[n] = '\0';
    *len = n;
    return out;
}

err_code jinja_lex(jinja_tokens *out, const char *text, size_t len, arena *a, err_detail *detail)
{
    *out = (jinja_tokens){0};
    lexer x = {.line = 1, .line_starting = true, .m.arena = a, .out = out, .detail = detail};
    x.text = normalize_lines(text, &len, a);
    x.len = x.text ? len : 0;
    while (x.pos < x.len && !x.err && !x.m.failed) {
        lex_next(&x);
    }
    push(&x, JINJA_TOKEN_END, "", 0);
    if (!x.err && (!x.text || x.m.failed)) {
        x.err = err_set(detail, ERR_NOMEM, "no memory to read the chat template");
    }
    return x.err;
}
