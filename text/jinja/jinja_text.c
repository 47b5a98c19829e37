#define _GNU_SOURCE /* memmem: the only linear search of the C library */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_format.h"
#include "text/jinja/jinja_library.h"
#include "base/unicode.h"

const char *jinja_find_text(const char *text, size_t len, const char *what, size_t what_len)
{
    return what_len == 0 ? text : len < what_len ? NULL : memmem(text, len, what, what_len);
}

const char *jinja_find_last(const char *text, size_t len, const char *what, size_t what_len)
{
    for (size_t i = len < what_len ? 0 : len - what_len + 1; i-- > 0;) {
        if (memcmp(text + i, what, what_len) == 0) {
            return text + i;
        }
    }
    return NULL;
}

bool jinja_replace(jinja_render *r, const jinja_value *text, const jinja_value *old,
                   const jinja_value *new_text, int64_t max, jinja_value *out)
{
    const char *from = text->as.text, *end = from + text->len;
    bytes b;
    if (old->len > 0 && !jinja_find_text(from, text->len, old->as.text, old->len)) {
        *out = *text;
        return true;
    }
    jinja_begin_text(r, &b);
    for (int64_t n = 0; max < 0 || n < max; n++) {
        const char *at = jinja_find_text(from, (size_t)(end - from), old->as.text, old->len);
        if (!at) {
            break;
        }
        bytes_append(&b, from, (size_t)(at - from));
        bytes_append(&b, new_text->as.text, new_text->len);
        from = at + old->len;
        if (old->len == 0) { /* an empty text precedes every character and at the end */
            if (from == end) {
                break;
            }
            uint32_t c;
            size_t step = utf8_decode(from, (size_t)(end - from), &c);
            bytes_append(&b, from, step);
            from += step;
        }
    }
    bytes_append(&b, from, (size_t)(end - from));
    return jinja_finish_text(r, &b, out);
}

bool jinja_escape(jinja_render *r, const jinja_value *v, jinja_value *out)
{
    jinja_value text;
    bytes b;
    if (!jinja_to_str(r, v, &text)) {
        return false;
    }
    jinja_begin_text(r, &b);
    for (size_t i = 0; i < text.len && !text.markup; i++) {
        char c = text.as.text[i];
        const char *name = c == '&'    ? "&amp;"
                           : c == '<'  ? "&lt;"
                           : c == '>'  ? "&gt;"
                           : c == '\'' ? "&#39;"
                           : c == '"'  ? "&#34;"
                                       : NULL;
        if (name) {
            bytes_append_str(&b, name);
        } else {
            bytes_append_char(&b, c);
        }
    }
    if (text.markup) {
        bytes_append(&b, text.as.text, text.len);
    }
    bool ok = jinja_finish_text(r, &b, out);
    out->markup = true;
    return ok;
}

/* ---- formatting ---- */

/* A conversion: flags, width and precision of %5.2f or {:>8}. */
typedef struct spec {
    char fill[5]; /* one character */
    char align;   /* '<', '>', '^', or 0 */
    char sign;    /* '+', ' ' or 0 */
    bool zero, comma;
    int64_t width, precision; /* precision -1: none */
    char type;
} spec;

enum { WIDTH_MAX = 10000, PRECISION_MAX = 100, NUMBER_TEXT = 512 };

/* Decimal digits at *at; -1 if there are none. */
static int64_t read_number(const char *s, size_t len, size_t *at)
{
    int64_t n = -1;
    while (*at < len && s[*at] >= '0' && s[*at] <= '9') {
        n = (n < 0 ? 0 : n * 10) + (s[*at] - '0');
        n = n > WIDTH_MAX ? WIDTH_MAX : n;
        ++*at;
    }
    return n;
}

static void append_times(bytes *b, const char *text, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        bytes_append_str(b, text);
    }
}

/* Appends text padded to the width; zeros go behind a sign. */
static void append_padded(bytes *b, const char *text, size_t len, const spec *s, char default_align)
{
    int64_t pad = s->width - (int64_t)jinja_n_chars(text, len);
    char align = s->align ? s->align : default_align;
    pad = pad > 0 ? pad : 0;
    if (s->zero && !s->align) {
        size_t sign = len > 0 && (text[0] == '-' || text[0] == '+' || text[0] == ' ');
        bytes_append(b, text, sign);
        append_times(b, "0", pad);
        bytes_append(b, text + sign, len - sign);
        return;
    }
    int64_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    const char *fill = s->fill[0] ? s->fill : " ";
    append_times(b, fill, left);
    bytes_append(b, text, len);
    append_times(b, fill, pad - left);
}

/* Appends a number: an optional sign, digits and perhaps more; with commas at thousands if the
 * conversion has them. */
static void append_number(bytes *b, const char *text, const spec *s)
{
    char grouped[NUMBER_TEXT * 2];
    size_t sign = *text == '-' || *text == '+' || *text == ' ';
    size_t digits = strspn(text + sign, "0123456789"), n = 0;
    for (size_t i = 0; text[i]; i++) {
        bool in_digits = i > sign && i < sign + digits;
        if (s->comma && in_digits && (sign + digits - i) % 3 == 0) {
            grouped[n++] = ',';
        }
        grouped[n++] = text[i];
    }
    append_padded(b, grouped, n, s, '>');
}

/* What precedes a number that is not negative. */
static const char *plus_sign(const spec *s)
{
    return s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

static bool append_integer(jinja_render *r, bytes *b, const jinja_value *v, const spec *s)
{
    char text[96];
    int64_t i;
    if (v->type == JINJA_FLOAT && s->type != 'x' && s->type != 'X' && s->type != 'o') {
        if (!(fabs(v->as.number) < 9e18)) {
            return jinja_fail(r, "a number is too large to be formatted");
        }
        i = (int64_t)v->as.number;
    } else if (!jinja_as_int(v, &i)) {
        return jinja_fail(r, "%%%c format: a number is required, not %s", s->type, jinja_type_name(v));
    }
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char *sign = i < 0 ? "-" : plus_sign(s);
    const char *format = s->type == 'x'   ? "%s%llx"
                         : s->type == 'X' ? "%s%llX"
                         : s->type == 'o' ? "%s%llo"
                                          : "%s%llu";
    snprintf(text, sizeof text, format, sign, (unsigned long long)magnitude);
    append_number(b, text, s);
    return true;
}

static bool append_floating(jinja_render *r, bytes *b, const jinja_value *v, const spec *s)
{
    char text[NUMBER_TEXT];
    double d;
    if (!jinja_as_double(v, &d)) {
        return jinja_fail(r, "must be real number, not %s", jinja_type_name(v));
    }
    int precision = s->precision < 0 ? 6 : (int)(s->precision < PRECISION_MAX ? s->precision : PRECISION_MAX);
    const char *format = s->type == 'e'   ? "%s%.*e"
                         : s->type == 'g' ? "%s%.*g"
                         : s->type == '%' ? "%s%.*f%%"
                                          : "%s%.*f";
    snprintf(text, sizeof text, format, signbit(d) ? "" : plus_sign(s), precision,
             s->type == '%' ? d * 100 : d);
    append_number(b, text, s);
    return true;
}

static bool append_textual(jinja_render *r, bytes *b, const jinja_value *v, const spec *s, char default_align)
{
    bytes text;
    jinja_begin_text(r, &text);
    bool ok = s->type == 'r' ? jinja_append_repr(&text, v) : jinja_append_str(&text, v);
    const char *raw = bytes_str(&text);
    size_t len = 0, n_chars = 0;
    while (len < text.len && (s->precision < 0 || (int64_t)n_chars < s->precision)) {
        uint32_t c;
        len += utf8_decode(raw + len, text.len - len, &c);
        n_chars++;
    }
    append_padded(b, raw, len, s, default_align);
    bytes_fail_as(b, &text); /* what is cut short is not printed */
    bytes_deinit(&text);
    return ok ? true : jinja_fail(r, "a value is nested too deeply to be printed");
}

static const jinja_value *nth_arg(const jinja_args *args, size_t n)
{
    return n < args->n_pos ? &args->pos[n] : NULL;
}

/* One conversion of a % format behind the percent sign at *at. */
static bool convert_percent(jinja_render *r, bytes *b, const char *s, size_t len, size_t *at,
                            const jinja_args *args, size_t *used)
{
    spec p = {.precision = -1};
    const jinja_value *v = NULL;
    if (*at < len && s[*at] == '(') {
        const char *close = memchr(s + *at, ')', len - *at);
        if (!close || args->n_pos != 1 || args->pos[0].type != JINJA_DICT) {
            return jinja_fail(r, "format requires a mapping");
        }
        size_t begin = *at + 1, end = (size_t)(close - s);
        v = jinja_map_get_text(args->pos[0].as.map, s + begin, end - begin);
        *used = args->n_pos;
        *at = end + 1;
        if (!v) {
            return jinja_fail(r, "a key of the format is missing");
        }
    }
    for (; *at < len && strchr("-+ 0#", s[*at]) && s[*at]; ++*at) {
        p.align = s[*at] == '-' ? '<' : p.align;
        p.zero = p.zero || s[*at] == '0';
        p.sign = s[*at] == '+' || s[*at] == ' ' ? s[*at] : p.sign;
    }
    p.width = read_number(s, len, at);
    if (*at < len && s[*at] == '.') {
        ++*at;
        p.precision = read_number(s, len, at);
        p.precision = p.precision < 0 ? 0 : p.precision;
    }
    if (*at >= len) {
        return jinja_fail(r, "incomplete format");
    }
    p.type = s[(*at)++];
    if (p.type == '%') {
        bytes_append_char(b, '%');
        return true;
    }
    v = v ? v : nth_arg(args, (*used)++);
    if (!v) {
        return jinja_fail(r, "not enough arguments for format string");
    }
    switch (p.type) {
    case 's':
    case 'r':
        p.zero = false;
        return append_textual(r, b, v, &p, '>');
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        return append_integer(r, b, v, &p);
    case 'f':
    case 'F':
    case 'e':
    case 'g':
        return append_floating(r, b, v, &p);
    default:
        return jinja_fail(r, "unsupported format character '%c'", p.type);
    }
}

bool jinja_percent(jinja_render *r, const jinja_value *format, const jinja_args *args, jinja_value *out)
{
    const char *s = format->as.text;
    size_t used = 0;
    bool ok = true;
    bytes b;
    jinja_begin_text(r, &b);
    for (size_t i = 0; i < format->len && ok;) {
        if (s[i] != '%') {
            bytes_append_char(&b, s[i++]);
            continue;
        }
        i++;
        ok = convert_percent(r, &b, s, format->len, &i, args, &used);
    }
    /* A single list, dict or the like need not be used. */
    jinja_type only = args->n_pos == 1 ? args->pos[0].type : JINJA_NONE;
    bool may_stay =
        only == JINJA_DICT || only == JINJA_LIST || only == JINJA_RANGE || only == JINJA_UNDEFINED;
    if (ok && used < args->n_pos && !may_stay) {
        jinja_fail(r, "not all arguments converted during string formatting");
    }
    return jinja_finish_text(r, &b, out);
}

static bool is_alignment(char c)
{
    return c == '<' || c == '>' || c == '^';
}

/* The format specification behind the colon of {0:>8.2f}. */
static bool read_spec(jinja_render *r, spec *p, const char *s, size_t len)
{
    size_t at = 0;
    uint32_t c;
    *p = (spec){.precision = -1};
    size_t n = len ? utf8_decode(s, len, &c) : 0;
    if (n > 0 && n < len && is_alignment(s[n])) {
        memcpy(p->fill, s, n);
        at = n;
    }
    if (at < len && is_alignment(s[at])) {
        p->align = s[at++];
    }
    if (at < len && (s[at] == '+' || s[at] == '-' || s[at] == ' ')) {
        p->sign = s[at++];
    }
    if (at < len && s[at] == '0') {
        p->zero = true;
        at++;
    }
    p->width = read_number(s, len, &at);
    if (at < len && s[at] == ',') {
        p->comma = true;
        at++;
    }
    if (at < len && s[at] == '.') {
        at++;
        p->precision = read_number(s, len, &at);
    }
    if (at < len && s[at] != '\0') {
        p->type = s[at++];
    }
    return at == len ? true : jinja_fail(r, "invalid format specifier");
}

static bool append_with_spec(jinja_render *r, bytes *b, const jinja_value *v, const spec *p)
{
    if (p->type && strchr("dxXo", p->type)) {
        return append_integer(r, b, v, p);
    }
    if (p->type && strchr("feFg%", p->type)) {
        return append_floating(r, b, v, p);
    }
    if (p->type && p->type != 's') {
        return jinja_fail(r, "unknown format code '%c'", p->type);
    }
    if ((p->comma || p->sign) && v->type == JINJA_INT) {
        return append_integer(r, b, v, p);
    }
    if (v->type == JINJA_FLOAT && p->precision >= 0) {
        spec general = *p;
        general.type = 'g';
        return append_floating(r, b, v, &general);
    }
    bool number = v->type == JINJA_INT || v->type == JINJA_FLOAT || v->type == JINJA_BIGINT;
    return append_textual(r, b, v, p, number ? '>' : '<');
}

/* Follows .name and [key] behind the first part of a replacement field. */
static bool follow_path(jinja_render *r, jinja_value *v, const char *s, size_t len)
{
    size_t at = 0;
    while (at < len) {
        bool item = s[at] == '[';
        size_t begin = ++at;
        while (at < len && (item ? s[at] != ']' : s[at] != '.' && s[at] != '[')) {
            at++;
        }
        jinja_value key = jinja_borrow(s + begin, at - begin), next;
        size_t digits = begin;
        int64_t index = read_number(s, at, &digits);
        if (item && index >= 0 && digits == at) {
            key = jinja_make_int(index);
        }
        if (item ? !jinja_getitem(r, v, &key, &next) : !jinja_getattr(r, v, s + begin, at - begin, &next)) {
            return false;
        }
        *v = next;
        at += item;
    }
    return true;
}

/* One {field} of str.format; s[0..len) is what stands between the braces. */
static bool replace_field(jinja_render *r, bytes *b, const char *s, size_t len, const jinja_args *args,
                          size_t *next)
{
    const char *colon = memchr(s, ':', len);
    size_t name_len = colon ? (size_t)(colon - s) : len;
    spec p = {.precision = -1};
    bool repr = name_len >= 2 && s[name_len - 2] == '!' && s[name_len - 1] == 'r';
    if (colon && !read_spec(r, &p, colon + 1, len - name_len - 1)) {
        return false;
    }
    name_len -= name_len >= 2 && s[name_len - 2] == '!' ? 2 : 0;
    size_t first = 0;
    while (first < name_len && s[first] != '.' && s[first] != '[') {
        first++;
    }
    size_t digits = 0;
    int64_t index = first == 0 ? (int64_t)(*next)++ : read_number(s, first, &digits);
    bool by_number = first == 0 || (index >= 0 && digits == first);
    const jinja_value *v = by_number ? nth_arg(args, (size_t)index) : jinja_named_arg(args, s, first);
    if (!v) {
        return jinja_fail(r, "a replacement field has no argument");
    }
    jinja_value value = *v;
    if (!follow_path(r, &value, s + first, name_len - first)) {
        return false;
    }
    if (repr) {
        p.type = 'r';
        return append_textual(r, b, &value, &p, '<');
    }
    return append_with_spec(r, b, &value, &p);
}

bool jinja_format_braces(jinja_render *r, const jinja_value *format, const jinja_args *args, jinja_value *out)
{
    const char *s = format->as.text;
    size_t next = 0;
    bool ok = true;
    bytes b;
    jinja_begin_text(r, &b);
    for (size_t i = 0; i < format->len && ok; i++) {
        char c = s[i];
        if (c != '{' && c != '}') {
            bytes_append_char(&b, c);
            continue;
        }
        if (i + 1 < format->len && s[i + 1] == c) {
            bytes_append_char(&b, c);
            i++;
            continue;
        }
        const char *close = c == '{' ? memchr(s + i, '}', format->len - i) : NULL;
        if (!close) {
            ok = jinja_fail(r, "a brace stands alone in the format string");
            break;
        }
        ok = replace_field(r, &b, s + i + 1, (size_t)(close - s) - i - 1, args, &next);
        i = (size_t)(close - s);
    }
    return jinja_finish_text(r, &b, out);
}
