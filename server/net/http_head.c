#include "server/net/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/hex.h"

/* ---- characters ---- */

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool starts_with(http_span s, const char *prefix)
{
    const size_t n = strlen(prefix);
    return s.len >= n && strncasecmp(s.text, prefix, n) == 0;
}

static http_span skip(http_span s, size_t n)
{
    return (http_span){s.text + n, s.len - n};
}

static http_span trim(http_span s)
{
    while (s.len > 0 && is_space(s.text[0])) {
        s = skip(s, 1);
    }
    while (s.len > 0 && is_space(s.text[s.len - 1])) {
        s.len--;
    }
    return s;
}

/* The length of what stands in front of the first `c`; all of it if there is none. */
static size_t length_to(http_span s, char c)
{
    const char *at = s.len > 0 ? memchr(s.text, c, s.len) : NULL;
    return at ? (size_t)(at - s.text) : s.len;
}

/* ---- the whole ---- */

/* Looks for the empty line; *bytes is the length with it. Of control characters only tabs, and CR
 * with LF behind it, pass: so that something else than HTTP is refused at once. */
static http_head_state find_end(const char *text, size_t n, size_t *bytes)
{
    size_t line = 0; /* where it begins */
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\r') {
            if (is_control(text[i]) && text[i] != '\t') {
                return HTTP_HEAD_BAD;
            }
            continue;
        }
        if (++i == n) {
            break;
        }
        if (text[i] != '\n') {
            return HTTP_HEAD_BAD;
        }
        if (i == line + 1) {
            *bytes = i + 1;
            return HTTP_HEAD_WHOLE;
        }
        line = i + 1;
    }
    return HTTP_HEAD_MORE;
}

/* Takes the line in front of *rest, without its end. */
static http_span take_line(http_span *rest)
{
    const http_span line = {rest->text, length_to(*rest, '\r')};
    *rest = skip(*rest, line.len + 2);
    return line;
}

/* /path?query, http://authority/path?query or *. */
static bool read_target(http_head *h, http_span target)
{
    for (size_t i = 0; i < target.len; i++) {
        if ((unsigned char)target.text[i] > 0x7e) {
            return false;
        }
    }
    h->authority = (http_span){target.text, 0};
    if (starts_with(target, "http://") || starts_with(target, "https://")) {
        target = skip(target, length_to(target, ':') + 3);
        const size_t slash = length_to(target, '/'), question = length_to(target, '?');
        h->authority = (http_span){target.text, slash < question ? slash : question};
        target = skip(target, h->authority.len);
        if (h->authority.len == 0) {
            return false;
        }
    } else if (target.len == 0 || (target.text[0] != '/' && (target.text[0] != '*' || target.len > 1))) {
        return false;
    }
    h->path = (http_span){target.text, length_to(target, '?')};
    h->query_string = skip(target, h->path.len);
    h->query_string = h->query_string.len > 0 ? skip(h->query_string, 1) : h->query_string;
    return true;
}

static http_head_state read_first_line(http_head *h, http_span line)
{
    h->method = (http_span){line.text, length_to(line, ' ')};
    for (size_t i = 0; i < h->method.len; i++) {
        if (!is_token(h->method.text[i])) {
            return HTTP_HEAD_BAD;
        }
    }
    if (h->method.len == 0 || h->method.len == line.len) {
        return HTTP_HEAD_BAD;
    }
    line = skip(line, h->method.len + 1);
    const http_span target = {line.text, length_to(line, ' ')};
    if (target.len == line.len || !read_target(h, target)) {
        return HTTP_HEAD_BAD;
    }
    const http_span version = skip(line, target.len + 1);
    if (version.len == 0 || length_to(version, ' ') < version.len) {
        return HTTP_HEAD_BAD;
    }
    h->is_1_1 = version.len == 8 && memcmp(version.text, "HTTP/1.1", 8) == 0;
    const bool is_1_0 = version.len == 8 && memcmp(version.text, "HTTP/1.0", 8) == 0;
    return h->is_1_1 || is_1_0 ? HTTP_HEAD_WHOLE : HTTP_HEAD_VERSION;
}

static bool is_field(http_span line)
{
    size_t n = 0;
    while (n < line.len && is_token(line.text[n])) {
        n++;
    }
    return n > 0 && n < line.len && line.text[n] == ':';
}

http_head_state http_head_read(http_head *h, const char *text, size_t n)
{
    *h = (http_head){0};
    http_head_state state = find_end(text, n, &h->bytes);
    if (state != HTTP_HEAD_WHOLE) {
        return state;
    }
    http_span rest = {text, h->bytes - 2};
    if (rest.len == 0) {
        return HTTP_HEAD_BAD;
    }
    state = read_first_line(h, take_line(&rest));
    h->fields = rest;
    while (state == HTTP_HEAD_WHOLE && rest.len > 0) {
        state = is_field(take_line(&rest)) ? state : HTTP_HEAD_BAD;
    }
    if (state != HTTP_HEAD_WHOLE) {
        *h = (http_head){0};
    }
    return state;
}

/* ---- its fields ---- */

/* Takes lines until one has this name; false at the end. */
static bool next_value(http_span *rest, const char *name, http_span *value)
{
    const size_t n = strlen(name);
    while (rest->len > 0) {
        const http_span line = take_line(rest);
        if (length_to(line, ':') == n && strncasecmp(line.text, name, n) == 0) {
            *value = trim(skip(line, n + 1));
            return true;
        }
    }
    return false;
}

size_t http_head_count(const http_head *h, const char *name)
{
    http_span rest = h->fields, value;
    size_t count = 0;
    while (next_value(&rest, name, &value)) {
        count++;
    }
    return count;
}

void http_head_value(const http_head *h, const char *name, char *out, size_t cap)
{
    http_span rest = h->fields, value;
    size_t len = 0;
    for (bool is_first = true; next_value(&rest, name, &value); is_first = false) {
        const size_t gap = is_first ? 0 : 2;
        if (value.len + gap >= cap - len) {
            memcpy(out, "?", 2);
            return;
        }
        memcpy(out + len, ", ", gap);
        memcpy(out + len + gap, value.text, value.len);
        len += gap + value.len;
    }
    out[len] = '\0';
}

bool http_list_has(const char *list, const char *value)
{
    const size_t n = strlen(value);
    for (const char *p = list; *p; p += *p == ',') {
        const http_span item = trim((http_span){p, strcspn(p, ",")});
        if (item.len == n && strncasecmp(item.text, value, n) == 0) {
            return true;
        }
        p += strcspn(p, ",");
    }
    return false;
}

bool http_is_socket_key(const char *key)
{
    enum { LENGTH = 24 };
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return strlen(key) == LENGTH && strspn(key, digits) == LENGTH - 2 && strcmp(key + LENGTH - 2, "==") == 0;
}

/* ---- its target ---- */

bool http_decode(char *out, size_t cap, http_span text)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.text[i];
        if (c == '%') {
            const int byte = i + 2 < text.len ? hex_byte(text.text + i + 1) : -1;
            i += 2;
            c = byte < 0 ? '\0' : (char)byte;
        }
        if (is_control(c) || len + 1 >= cap) {
            out[0] = '\0';
            return false;
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return true;
}

bool http_query_is_valid(http_span query)
{
    char c[2];
    for (size_t i = 0; i < query.len; i++) {
        const size_t n = query.text[i] != '%' ? 1 : query.len - i < 3 ? query.len - i : 3;
        if (!http_decode(c, sizeof c, (http_span){query.text + i, n})) {
            return false;
        }
        i += n - 1;
    }
    return true;
}

http_query http_query_value(const char *query, const char *name, char *out, size_t cap)
{
    enum { NAME_MAX_BYTES = 64 };
    out[0] = '\0';
    for (const char *p = query; *p; p += *p == '&') {
        const http_span pair = {p, strcspn(p, "&")};
        const http_span key = {p, length_to(pair, '=')};
        char text[NAME_MAX_BYTES];
        p += pair.len;
        if (!http_decode(text, sizeof text, key) || strcmp(text, name) != 0) {
            continue;
        }
        const size_t n = key.len < pair.len ? key.len + 1 : key.len;
        return http_decode(out, cap, skip(pair, n)) ? HTTP_QUERY_VALUE : HTTP_QUERY_LONG;
    }
    return HTTP_QUERY_NONE;
}

void http_fold_path(char *path)
{
    char *to = path;
    const char *from = path;
    for (bool is_last = false; !is_last;) {
        from += strspn(from, "/");
        const size_t n = strcspn(from, "/");
        const bool is_up = n == 2 && memcmp(from, "..", 2) == 0;
        const bool is_empty = n == 0 || (n == 1 && from[0] == '.');
        is_last = from[n] == '\0';
        if (is_up) {
            while (to > path && *--to != '/') {
            }
        } else if (!is_empty) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        if (is_last && (is_up || is_empty)) {
            *to++ = '/';
        }
        from += n;
    }
    *to = '\0';
}
