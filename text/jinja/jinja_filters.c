/* Filters over one value: text, numbers, JSON. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_format.h"
#include "text/jinja/jinja_library.h"
#include "base/unicode.h"

/* ---- text ---- */

/* The filters that are a method of the value's text; the mode tells which. */
static bool filter_method(const jinja_frame *f, jinja_value *out)
{
    static const char *const methods[] = {"upper", "lower", "capitalize", "strip"};
    return jinja_call_str_method(f->r, f->self, methods[f->mode], f->args, out);
}

static bool filter_center(const jinja_frame *f, jinja_value *out)
{
    enum { DEFAULT_WIDTH = 80 };
    jinja_value width = f->v[0] ? *f->v[0] : jinja_make_int(DEFAULT_WIDTH);
    jinja_args args = {.pos = &width, .n_pos = 1};
    return jinja_call_str_method(f->r, f->self, "center", &args, out);
}

/* Each word with a capital; a word starts behind white space and these signs. */
static bool filter_title(const jinja_frame *f, jinja_value *out)
{
    jinja_value text;
    bytes b;
    bool first = true;
    if (!jinja_to_str(f->r, f->self, &text)) {
        return false;
    }
    jinja_begin_text(f->r, &b);
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += utf8_decode(text.as.text + i, text.len - i, &c);
        unicode_append_case(&b, c, first ? UNICODE_UPPER : UNICODE_LOWER);
        first = unicode_is_space(c) || (c < 0x80 && memchr("-({[<", (int)c, 5));
    }
    return jinja_finish_text(f->r, &b, out);
}

static bool filter_string(const jinja_frame *f, jinja_value *out)
{
    return jinja_to_str(f->r, f->self, out);
}

static bool filter_safe(const jinja_frame *f, jinja_value *out)
{
    bool ok = jinja_to_str(f->r, f->self, out);
    out->markup = ok;
    return ok;
}

static bool filter_escape(const jinja_frame *f, jinja_value *out)
{
    return jinja_escape(f->r, f->self, out);
}

/* NULL for an argument that was not given or is none. */
static const jinja_value *given(const jinja_value *v)
{
    return v && v->type != JINJA_NONE ? v : NULL;
}

static bool filter_replace(const jinja_frame *f, jinja_value *out)
{
    jinja_value text, old, new_text;
    int64_t max;
    return jinja_to_str(f->r, f->self, &text) && jinja_to_str(f->r, f->v[0], &old) &&
           jinja_to_str(f->r, f->v[1], &new_text) && jinja_arg_int(f->r, given(f->v[2]), -1, &max) &&
           jinja_replace(f->r, &text, &old, &new_text, max, out);
}

static bool filter_format(const jinja_frame *f, jinja_value *out)
{
    jinja_value text, dict = {.type = JINJA_DICT, .as.map = f->args->named};
    jinja_args named = {.pos = &dict, .n_pos = 1};
    bool by_name = f->args->named && f->args->named->len > 0;
    return jinja_to_str(f->r, f->self, &text) && jinja_percent(f->r, &text, by_name ? &named : f->args, out);
}

/* Lines after the first (or all, or also blank ones) get `width` blanks or the given text. */
static bool filter_indent(const jinja_frame *f, jinja_value *out)
{
    enum { DEFAULT_WIDTH = 4, MAX_WIDTH = 10000 };
    jinja_value text, prefix = jinja_borrow("", 0);
    int64_t width = 0;
    bytes b;
    bool given_text = f->v[0] && f->v[0]->type == JINJA_STR;
    if (given_text) {
        prefix = *f->v[0];
    } else if (!jinja_arg_int(f->r, f->v[0], DEFAULT_WIDTH, &width) || width > MAX_WIDTH) {
        return jinja_fail(f->r, "an indent is too wide");
    }
    if (!jinja_arg_str(f->r, f->self, "", &text)) {
        return false;
    }
    bool first = jinja_arg_truth(f->v[1], false), blank = jinja_arg_truth(f->v[2], false);
    jinja_begin_text(f->r, &b);
    const char *s = text.as.text, *end = s + text.len;
    for (bool at_first = true; at_first || s < end; at_first = false) {
        const char *newline = s < end ? memchr(s, '\n', (size_t)(end - s)) : NULL;
        const char *line_end = newline ? newline : end;
        bool indented = at_first ? first : blank || line_end > s;
        if (indented) {
            bytes_append(&b, prefix.as.text, prefix.len);
            for (int64_t i = 0; i < width; i++) {
                bytes_append_char(&b, ' ');
            }
        }
        bytes_append(&b, s, (size_t)(line_end - s) + (newline != NULL));
        s = newline ? newline + 1 : end;
    }
    return jinja_finish_text(f->r, &b, out);
}

static bool filter_truncate(const jinja_frame *f, jinja_value *out)
{
    enum { DEFAULT_LENGTH = 255, DEFAULT_LEEWAY = 5 };
    jinja_value text, end_text, cut;
    int64_t length, leeway;
    if (f->self->type != JINJA_STR && f->self->type != JINJA_UNDEFINED) {
        return jinja_fail(f->r, "truncate needs a string, not '%s'", jinja_type_name(f->self));
    }
    if (!jinja_to_str(f->r, f->self, &text) || !jinja_arg_int(f->r, f->v[0], DEFAULT_LENGTH, &length) ||
        !jinja_arg_str(f->r, f->v[2], "...", &end_text) ||
        !jinja_arg_int(f->r, given(f->v[3]), DEFAULT_LEEWAY, &leeway)) {
        return false;
    }
    int64_t n_end = (int64_t)jinja_n_chars(end_text.as.text, end_text.len);
    if (length < n_end || leeway < 0) {
        return jinja_fail(f->r, "expected length >= %lld", (long long)n_end);
    }
    if ((int64_t)jinja_n_chars(text.as.text, text.len) <= length + leeway) {
        *out = text;
        return true;
    }
    jinja_value stop = jinja_make_int(length - n_end);
    const jinja_value *part[3] = {NULL, &stop, NULL};
    if (!jinja_slice(f->r, &text, part, &cut)) {
        return false;
    }
    if (!jinja_arg_truth(f->v[1], false)) { /* not inside of a word */
        size_t n = cut.len;
        while (n > 0 && cut.as.text[n - 1] != ' ') {
            n--;
        }
        cut.len = n > 0 ? n - 1 : cut.len;
    }
    *out = jinja_concat(&f->r->m, &cut, &end_text);
    return true;
}

static bool filter_wordcount(const jinja_frame *f, jinja_value *out)
{
    jinja_value text;
    int64_t n = 0;
    bool in_word = false;
    if (!jinja_to_str(f->r, f->self, &text)) {
        return false;
    }
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += utf8_decode(text.as.text + i, text.len - i, &c);
        bool word = c == '_' || unicode_is_alpha(c) || unicode_is_numeric(c);
        n += word && !in_word;
        in_word = word;
    }
    *out = jinja_make_int(n);
    return true;
}

/* ---- JSON ---- */

/* The separators argument: a tuple of two strings. */
static bool json_separators(jinja_render *r, const jinja_value *v, jinja_json_style *style)
{
    const char **texts[] = {&style->item_separator, &style->key_separator};
    if (!given(v)) {
        return true;
    }
    if (!jinja_is_seq(v) || v->as.seq->len != 2) {
        return jinja_fail(r, "separators must be two strings");
    }
    for (size_t i = 0; i < 2; i++) {
        const jinja_value *s = &v->as.seq->items[i];
        *texts[i] = s->type == JINJA_STR ? jinja_c_string(&r->m, s) : NULL;
        if (!*texts[i]) {
            return jinja_check_memory(r) && jinja_fail(r, "separators must be two strings");
        }
    }
    return true;
}

static bool filter_tojson(const jinja_frame *f, jinja_value *out)
{
    enum { MAX_INDENT = 64 };
    static const char blanks[MAX_INDENT + 1] =
        "                                                                ";
    jinja_json_style style = {.ensure_ascii = jinja_arg_truth(f->v[0], false),
                              .sort_keys = jinja_arg_truth(f->v[3], false),
                              .item_separator = ", ",
                              .key_separator = ": "};
    int64_t indent = 0;
    if (f->v[1] && f->v[1]->type == JINJA_STR) {
        style.indent = f->v[1]->as.text;
        style.indent_len = f->v[1]->len;
    } else if (given(f->v[1])) {
        if (!jinja_arg_int(f->r, f->v[1], 0, &indent) || indent > MAX_INDENT) {
            return jinja_fail(f->r, "the indent of tojson is too wide");
        }
        style.indent = blanks;
        style.indent_len = indent > 0 ? (size_t)indent : 0;
    }
    style.item_separator = style.indent ? "," : ", ";
    if (!json_separators(f->r, f->v[2], &style)) {
        return false;
    }
    bytes b;
    jinja_begin_text(f->r, &b);
    const char *fault = jinja_append_json(&b, f->self, &style);
    if (fault) {
        jinja_fail(f->r, "Object of type %s is not JSON serializable", fault);
    }
    return jinja_finish_text(f->r, &b, out);
}

/* ---- numbers ---- */

/* An integer written in a text, as int(text, base) reads it; false if it is none. */
static bool parse_int(const jinja_value *text, int base, int64_t *out)
{
    enum { DIGITS_MAX = 70 };
    char digits[DIGITS_MAX + 1];
    jinja_value s = jinja_strip(text, NULL, true, true);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.as.text[i];
        bool between = i > 0 && i + 1 < s.len && s.as.text[i - 1] != '_' && s.as.text[i + 1] != '_';
        if (n == DIGITS_MAX || c == '\0' || (c == '_' && !between)) {
            return false;
        }
        if (c != '_') {
            digits[n++] = c;
        }
    }
    digits[n] = '\0';
    size_t sign = digits[0] == '-' || digits[0] == '+';
    const char *prefix = base == 16 ? "xX" : base == 8 ? "oO" : base == 2 ? "bB" : "";
    if (digits[sign] == '0' && digits[sign + 1] && strchr(prefix, digits[sign + 1])) {
        memmove(digits + sign, digits + sign + 2, n - sign - 1);
        n -= 2;
    }
    char *end;
    bool starts = n > sign && isalnum((unsigned char)digits[sign]);
    long long i = strtoll(digits, &end, base);
    *out = i;
    return starts && *end == '\0' && i != INT64_MAX && i != INT64_MIN;
}

static bool parse_float(const jinja_value *text, double *out)
{
    enum { LEN_MAX = 400 };
    char copy[LEN_MAX + 1];
    jinja_value s = jinja_strip(text, NULL, true, true);
    if (s.len == 0 || s.len > LEN_MAX) {
        return false;
    }
    memcpy(copy, s.as.text, s.len);
    copy[s.len] = '\0';
    if (strspn(copy, "+-.0123456789infatyeINFATYE") < s.len) {
        return false;
    }
    char *end;
    *out = strtod(copy, &end);
    return *end == '\0';
}

static bool filter_int(const jinja_frame *f, jinja_value *out)
{
    int64_t i, base;
    double d;
    if (!jinja_arg_int(f->r, f->v[1], 10, &base) || base < 2 || base > 36) {
        return jinja_fail(f->r, "int() base must be >= 2 and <= 36");
    }
    *out = f->v[0] ? *f->v[0] : jinja_make_int(0);
    if (jinja_as_int(f->self, &i) || (f->self->type == JINJA_STR && parse_int(f->self, (int)base, &i))) {
        *out = jinja_make_int(i);
        return true;
    }
    if (f->self->type == JINJA_BIGINT) {
        *out = *f->self;
        return true;
    }
    if (!jinja_defined(f->r, f->self)) {
        return false;
    }
    bool number = f->self->type == JINJA_FLOAT || (f->self->type == JINJA_STR && parse_float(f->self, &d));
    d = f->self->type == JINJA_FLOAT ? f->self->as.number : number ? d : 0;
    if (number && fabs(d) < 9.2e18) {
        *out = jinja_make_int((int64_t)d);
    }
    return true;
}

static bool filter_float(const jinja_frame *f, jinja_value *out)
{
    double d;
    if (!jinja_defined(f->r, f->self)) {
        return false;
    }
    bool number = jinja_as_double(f->self, &d) || (f->self->type == JINJA_STR && parse_float(f->self, &d));
    *out = number ? jinja_make_float(d) : f->v[0] ? *f->v[0] : jinja_make_float(0);
    return true;
}

static bool filter_abs(const jinja_frame *f, jinja_value *out)
{
    int64_t i;
    if (jinja_as_int(f->self, &i)) {
        *out = jinja_make_int(i == INT64_MIN ? 0 : i < 0 ? -i : i);
        return i != INT64_MIN || jinja_fail(f->r, "a number is too large");
    }
    *out = jinja_make_float(fabs(f->self->as.number));
    return f->self->type == JINJA_FLOAT ||
           (jinja_defined(f->r, f->self) &&
            jinja_fail(f->r, "bad operand type for abs(): '%s'", jinja_type_name(f->self)));
}

static bool filter_round(const jinja_frame *f, jinja_value *out)
{
    enum { PRECISION_MAX = 300, TEXT_MAX = 700 };
    int64_t precision;
    double d;
    jinja_value method;
    if (!jinja_arg_int(f->r, f->v[0], 0, &precision) || !jinja_arg_str(f->r, f->v[1], "common", &method)) {
        return false;
    }
    if (!jinja_defined(f->r, f->self)) {
        return false;
    }
    if (!jinja_as_double(f->self, &d) || precision < -PRECISION_MAX || precision > PRECISION_MAX) {
        return jinja_fail(f->r, "type %s doesn't define __round__ method", jinja_type_name(f->self));
    }
    double scale = pow(10, (double)precision);
    if (jinja_is_text(&method, "ceil") || jinja_is_text(&method, "floor")) {
        d = jinja_is_text(&method, "ceil") ? ceil(d * scale) / scale : floor(d * scale) / scale;
        d += 0.0; /* Python's ceil is an integer, which has no negative zero */
    } else if (!jinja_is_text(&method, "common")) {
        return jinja_fail(f->r, "method must be common, ceil or floor");
    } else if (f->self->type != JINJA_FLOAT && precision >= 0) {
        int64_t i;
        *out = jinja_as_int(f->self, &i) ? jinja_make_int(i) : *f->self;
        return true;
    } else if (precision > 0 && isfinite(d)) {
        char text[TEXT_MAX];
        snprintf(text, sizeof text, "%.*f", (int)precision, d); /* rounds the exact value, half to even */
        d = strtod(text, NULL);
    } else {
        d = precision == 0 ? nearbyint(d) : nearbyint(d * scale) / scale;
    }
    bool whole = f->self->type != JINJA_FLOAT && jinja_is_text(&method, "common");
    *out = whole ? jinja_make_int((int64_t)d) : jinja_make_float(d);
    return true;
}

/* ---- others ---- */

static bool filter_default(const jinja_frame *f, jinja_value *out)
{
    bool missing =
        f->self->type == JINJA_UNDEFINED || (jinja_arg_truth(f->v[1], false) && !jinja_truth(f->self));
    *out = !missing ? *f->self : f->v[0] ? *f->v[0] : jinja_borrow("", 0);
    return true;
}

static bool filter_attr(const jinja_frame *f, jinja_value *out)
{
    jinja_value name;
    if (!jinja_arg_str(f->r, f->v[0], "", &name)) {
        return false;
    }
    /* Attributes alone: an entry of a dict is none. */
    if (f->self->type == JINJA_DICT && !jinja_find_method(f->self, name.as.text, name.len)) {
        *out = jinja_undefined(name.as.text, name.len, jinja_type_repr(f->self));
        return true;
    }
    return jinja_getattr(f->r, f->self, name.as.text, name.len, out);
}

const jinja_callable JINJA_FILTERS[] = {
    JINJA_ONE("abs", "", 0, filter_abs),
    JINJA_ONE("attr", "name", 1, filter_attr),
    {"capitalize", "", 0, filter_method, 2},
    JINJA_ONE("center", "width", 0, filter_center),
    JINJA_ONE("d", "default_value,boolean", 0, filter_default),
    JINJA_ONE("default", "default_value,boolean", 0, filter_default),
    JINJA_ONE("e", "", 0, filter_escape),
    JINJA_ONE("escape", "", 0, filter_escape),
    JINJA_ONE("float", "default", 0, filter_float),
    JINJA_ONE("format", NULL, 0, filter_format),
    JINJA_ONE("indent", "width,first,blank", 0, filter_indent),
    JINJA_ONE("int", "default,base", 0, filter_int),
    {"lower", "", 0, filter_method, 1},
    JINJA_ONE("replace", "old,new,count", 2, filter_replace),
    JINJA_ONE("round", "precision,method", 0, filter_round),
    JINJA_ONE("safe", "", 0, filter_safe),
    JINJA_ONE("string", "", 0, filter_string),
    JINJA_ONE("title", "", 0, filter_title),
    JINJA_ONE("tojson", "ensure_ascii,indent,separators,sort_keys", 0, filter_tojson),
    {"trim", "chars", 0, filter_method, 3},
    JINJA_ONE("truncate", "length,killwords,end,leeway", 0, filter_truncate),
    {"upper", "", 0, filter_method, 0},
    JINJA_ONE("wordcount", "", 0, filter_wordcount),
    {NULL, NULL, 0, NULL, 0},
};
