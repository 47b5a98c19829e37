#include "text/jinja/jinja_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/unicode.h"
#include "text/tokenizer/guard.h"

/* ---- floats ---- */

/* repr of a float: the shortest digits that read back to the same number ("1.0", "1e+20", "1e-07",
 * "inf"). */
static void append_float(bytes *out, double d)
{
    enum { PRECISION_MAX = 16, FIXED_FROM = -4, FIXED_TO = 16 };
    char text[64];
    if (isnan(d) || isinf(d)) {
        bytes_append_str(out, isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
        return;
    }
    int precision = 0;
    for (;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, d);
        if (precision == PRECISION_MAX || strtod(text, NULL) == d) {
            break;
        }
    }
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= FIXED_FROM && exponent < FIXED_TO) {
        int decimals = precision - exponent;
        bytes_printf(out, "%.*f", decimals > 1 ? decimals : 1, d);
    } else {
        bytes_append_str(out, text);
    }
}

/* ---- str and repr ---- */

static void append_repr_char(bytes *out, uint32_t c, const char *raw, size_t n, char quote)
{
    if (c == (uint32_t)quote || c == '\\') {
        bytes_append_char(out, '\\');
        bytes_append_char(out, (char)c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
        bytes_append_str(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (c < 0x80 ? c >= 0x20 && c < 0x7F : unicode_is_printable(c) || c == GUARD_CODE) {
        bytes_append(out, raw, n);
    } else {
        bytes_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    }
}

static void append_repr_text(bytes *out, const char *text, size_t len)
{
    bool single = len && memchr(text, '\'', len), twice = len && memchr(text, '"', len);
    char quote = single && !twice ? '"' : '\'';
    bytes_append_char(out, quote);
    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t n = utf8_decode(text + i, len - i, &c);
        append_repr_char(out, c, text + i, n, quote);
        i += n;
    }
    bytes_append_char(out, quote);
}

static bool append_at(bytes *out, const jinja_value *v, bool repr, int depth);

static bool append_items(bytes *out, const jinja_seq *seq, const char *open, const char *close, int depth)
{
    bool ok = true;
    bytes_append_str(out, open);
    for (size_t i = 0; i < seq->len && ok; i++) {
        bytes_append_str(out, i ? ", " : "");
        ok = append_at(out, &seq->items[i], true, depth + 1);
    }
    bytes_append_str(out, close);
    return ok;
}

/* Entries of a dict as "k: v", or what a view shows of them. */
static bool append_entries(bytes *out, const jinja_value *v, int depth)
{
    bool ok = true;
    for (size_t i = 0; i < v->as.map->len && ok; i++) {
        const jinja_entry *e = &v->as.map->entries[i];
        bytes_append_str(out, i ? ", " : "");
        bytes_append_str(out, v->type == JINJA_ITEMS ? "(" : "");
        if (v->type != JINJA_VALUES) {
            ok = append_at(out, &e->key, true, depth + 1);
        }
        bytes_append_str(out, v->type == JINJA_ITEMS ? ", " : v->type == JINJA_DICT ? ": " : "");
        if (v->type != JINJA_KEYS) {
            ok = ok && append_at(out, &e->value, true, depth + 1);
        }
        bytes_append_str(out, v->type == JINJA_ITEMS ? ")" : "");
    }
    return ok;
}

static bool append_map(bytes *out, const jinja_value *v, int depth)
{
    if (v->type == JINJA_DICT) {
        bytes_append_char(out, '{');
        bool ok = append_entries(out, v, depth);
        bytes_append_char(out, '}');
        return ok;
    }
    bytes_printf(out, "%s([", jinja_type_name(v));
    bool ok = append_entries(out, v, depth);
    bytes_append_str(out, "])");
    return ok;
}

static void append_range(bytes *out, const jinja_range *r)
{
    int64_t stop = r->start + (int64_t)r->len * r->step;
    bytes_printf(out, "range(%" PRId64 ", %" PRId64, r->start, stop);
    if (r->step != 1) {
        bytes_printf(out, ", %" PRId64, r->step);
    }
    bytes_append_char(out, ')');
}

static bool append_at(bytes *out, const jinja_value *v, bool repr, int depth)
{
    if (depth > JINJA_VALUE_DEPTH) {
        return false;
    }
    switch (v->type) {
    case JINJA_UNDEFINED:
        bytes_append_str(out, repr ? "Undefined" : "");
        return true;
    case JINJA_NONE:
        bytes_append_str(out, "None");
        return true;
    case JINJA_BOOL:
        bytes_append_str(out, v->as.boolean ? "True" : "False");
        return true;
    case JINJA_INT:
        bytes_printf(out, "%" PRId64, v->as.integer);
        return true;
    case JINJA_FLOAT:
        append_float(out, v->as.number);
        return true;
    case JINJA_STR:
        if (repr) {
            append_repr_text(out, v->as.text, v->len);
            return true;
        }
        bytes_append(out, v->as.text, v->len);
        return true;
    case JINJA_BIGINT:
        bytes_append(out, v->as.text, v->len);
        return true;
    case JINJA_LIST:
        return append_items(out, v->as.seq, "[", "]", depth);
    case JINJA_TUPLE:
        return append_items(out, v->as.seq, "(", v->as.seq->len == 1 ? ",)" : ")", depth);
    case JINJA_DICT:
    case JINJA_KEYS:
    case JINJA_VALUES:
    case JINJA_ITEMS:
        return append_map(out, v, depth);
    case JINJA_RANGE:
        append_range(out, v->as.range);
        return true;
    default:
        bytes_printf(out, "<%s>", jinja_type_repr(v));
        return true;
    }
}

bool jinja_append_str(bytes *out, const jinja_value *v)
{
    return append_at(out, v, false, 0);
}

bool jinja_append_repr(bytes *out, const jinja_value *v)
{
    return append_at(out, v, true, 0);
}

/* ---- JSON ---- */

static void append_escaped(bytes *out, uint32_t c)
{
    if (c >= 0x10000) {
        c -= 0x10000;
        bytes_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + (c >> 10)), (unsigned)(0xDC00 + (c & 0x3FF)));
    } else {
        bytes_printf(out, "\\u%04x", (unsigned)c);
    }
}

static void append_json_text(bytes *out, const char *text, size_t len, bool ensure_ascii)
{
    static const char escapes[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    bytes_append_char(out, '"');
    size_t done = 0;
    for (size_t i = 0; i < len;) {
        unsigned char byte = (unsigned char)text[i];
        bool plain = byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x7f || !ensure_ascii);
        if (plain) {
            i++;
            continue;
        }
        bytes_append(out, text + done, i - done);
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        done = i;
        char shortened = c == '"' || c == '\\' ? (char)c : c < sizeof escapes ? escapes[c] : '\0';
        if (shortened) {
            bytes_append_char(out, '\\');
            bytes_append_char(out, shortened);
        } else if (c == GUARD_CODE) { /* no part of the text */
            bytes_append(out, GUARD_CHAR, GUARD_LEN);
        } else {
            append_escaped(out, c);
        }
    }
    bytes_append(out, text + done, len - done);
    bytes_append_char(out, '"');
}

static void append_line(bytes *out, const jinja_json_style *style, int depth)
{
    if (style->indent) {
        bytes_append_char(out, '\n');
        for (int i = 0; i < depth; i++) {
            bytes_append(out, style->indent, style->indent_len);
        }
    }
}

/* Numbers, none and bools; false for other types. */
static bool append_json_scalar(bytes *out, const jinja_value *v)
{
    switch (v->type) {
    case JINJA_NONE:
        bytes_append_str(out, "null");
        return true;
    case JINJA_BOOL:
        bytes_append_str(out, v->as.boolean ? "true" : "false");
        return true;
    case JINJA_FLOAT:
        if (isnan(v->as.number) || isinf(v->as.number)) {
            bytes_append_str(out, isnan(v->as.number) ? "NaN" : v->as.number > 0 ? "Infinity" : "-Infinity");
            return true;
        }
        return append_at(out, v, false, 0);
    case JINJA_INT:
    case JINJA_BIGINT:
        return append_at(out, v, false, 0);
    default:
        return false;
    }
}

static const char *append_json_at(bytes *out, const jinja_value *v, const jinja_json_style *style, int depth);

static const char *append_json_list(bytes *out, const jinja_seq *seq, const jinja_json_style *style,
                                    int depth)
{
    const char *fault = NULL;
    bytes_append_char(out, '[');
    for (size_t i = 0; i < seq->len && !fault; i++) {
        bytes_append_str(out, i ? style->item_separator : "");
        append_line(out, style, depth + 1);
        fault = append_json_at(out, &seq->items[i], style, depth + 1);
    }
    if (seq->len) {
        append_line(out, style, depth);
    }
    bytes_append_char(out, ']');
    return fault;
}

static int compare_entries(const void *a, const void *b)
{
    const jinja_entry *const *x = a, *const *y = b;
    int order = 0;
    jinja_compare(&(*x)->key, &(*y)->key, &order);
    return order;
}

/* Pointers to the entries of a dict in the order of writing; NULL if out of memory. */
static const jinja_entry **ordered_entries(const jinja_map *map, bool sort)
{
    const jinja_entry **order = calloc(map->len ? map->len : 1, sizeof *order);
    for (size_t i = 0; order && i < map->len; i++) {
        order[i] = &map->entries[i];
    }
    if (order && sort && map->len > 1) {
        qsort(order, map->len, sizeof *order, compare_entries);
    }
    return order;
}

static const char *append_json_dict(bytes *out, const jinja_map *map, const jinja_json_style *style,
                                    int depth)
{
    const jinja_entry **order = ordered_entries(map, style->sort_keys);
    if (!order) {
        bytes_fail_memory(out);
        return NULL;
    }
    const char *fault = NULL;
    bytes_append_char(out, '{');
    for (size_t i = 0; i < map->len && !fault; i++) {
        bytes_append_str(out, i ? style->item_separator : "");
        append_line(out, style, depth + 1);
        const jinja_value *key = &order[i]->key;
        if (key->type == JINJA_STR) {
            append_json_text(out, key->as.text, key->len, style->ensure_ascii);
        } else {
            bytes_append_char(out, '"');
            fault = append_json_scalar(out, key) ? NULL : "dict key";
            bytes_append_char(out, '"');
        }
        bytes_append_str(out, style->key_separator);
        fault = fault ? fault : append_json_at(out, &order[i]->value, style, depth + 1);
    }
    if (map->len) {
        append_line(out, style, depth);
    }
    bytes_append_char(out, '}');
    free(order);
    return fault;
}

static const char *append_json_at(bytes *out, const jinja_value *v, const jinja_json_style *style, int depth)
{
    if (depth > JINJA_VALUE_DEPTH) {
        return "deeply nested value";
    }
    switch (v->type) {
    case JINJA_STR:
        append_json_text(out, v->as.text, v->len, style->ensure_ascii);
        return NULL;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return append_json_list(out, v->as.seq, style, depth);
    case JINJA_DICT:
        return append_json_dict(out, v->as.map, style, depth);
    default:
        return append_json_scalar(out, v) ? NULL : jinja_type_name(v);
    }
}

const char *jinja_append_json(bytes *out, const jinja_value *v, const jinja_json_style *style)
{
    return append_json_at(out, v, style, 0);
}
