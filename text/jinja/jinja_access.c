#include "text/jinja/jinja_render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_library.h"

/* ---- attributes ---- */

static jinja_value loop_item(const jinja_loop *loop, bool exists, size_t i, const char *missing)
{
    return exists ? loop->items->items[i] : jinja_missing(missing);
}

static bool is_name(const char *name, size_t len, const char *expected)
{
    return strlen(expected) == len && memcmp(expected, name, len) == 0;
}

/* loop.index and the like; false if there is no such attribute. */
static bool loop_attr(const jinja_loop *loop, const char *name, size_t len, jinja_value *out)
{
    int64_t i = (int64_t)loop->i, n = (int64_t)loop->items->len;
    const struct {
        const char *name;
        jinja_value value;
    } attrs[] = {
        {"index", jinja_make_int(i + 1)},
        {"index0", jinja_make_int(i)},
        {"revindex", jinja_make_int(n - i)},
        {"revindex0", jinja_make_int(n - i - 1)},
        {"first", jinja_make_bool(i == 0)},
        {"last", jinja_make_bool(i + 1 == n)},
        {"length", jinja_make_int(n)},
        {"depth", jinja_make_int(loop->depth + 1)},
        {"depth0", jinja_make_int(loop->depth)},
        {"previtem", loop_item(loop, i > 0, loop->i - 1, "there is no previous item")},
        {"nextitem", loop_item(loop, i + 1 < n, loop->i + 1, "there is no next item")},
    };
    for (size_t k = 0; k < ARRAY_LEN(attrs); k++) {
        if (is_name(name, len, attrs[k].name)) {
            *out = attrs[k].value;
            return true;
        }
    }
    return false;
}

/* Undefined with a message. */
PRINTF_LIKE(3, 4) static bool missing(jinja_render *r, jinja_value *out, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    jinja_value message = jinja_text(&r->m, text, strlen(text));
    *out = jinja_undefined(message.as.text, message.len, JINJA_MESSAGE);
    return jinja_check_memory(r);
}

/* The attributes that Python objects have, not the entries of a dict; *found tells whether there
 * was one. */
static bool object_attr(jinja_render *r, const jinja_value *obj, const char *name, size_t len,
                        jinja_value *out, bool *found)
{
    *found = true;
    const jinja_callable *method = jinja_find_method(obj, name, len);
    if (method) {
        jinja_value *self = jinja_alloc(&r->m, sizeof *self);
        if (!self) {
            return jinja_check_memory(r);
        }
        *self = *obj;
        *out = (jinja_value){.type = JINJA_METHOD, .as.callable = method, .extra.self = self};
        return true;
    }
    if (jinja_is_unsafe(obj, name, len)) {
        return missing(r, out, "access to attribute '%.*s' of '%s' object is unsafe.",
                       (int)(len < 64 ? len : 64), name, jinja_type_name(obj));
    }
    if (obj->type == JINJA_LOOP && loop_attr(obj->as.loop, name, len, out)) {
        return true;
    }
    if (obj->type == JINJA_MACRO && is_name(name, len, "name")) {
        const jinja_node *node = obj->as.macro->node;
        *out = jinja_borrow(node->text, node->len);
        return true;
    }
    if (obj->type == JINJA_CYCLER && is_name(name, len, "current")) {
        *out = obj->as.seq->items[obj->as.seq->pos];
        return true;
    }
    const bool grouper = is_name(name, len, "grouper");
    if (obj->type == JINJA_TUPLE && obj->as.seq->is_group && (grouper || is_name(name, len, "list"))) {
        *out = obj->as.seq->items[!grouper];
        return true;
    }
    if (obj->type == JINJA_NAMESPACE) {
        const jinja_value *v = jinja_map_get_text(obj->as.map, name, len);
        if (v) {
            *out = *v;
            return true;
        }
    }
    *found = false;
    return true;
}

bool jinja_getattr(jinja_render *r, const jinja_value *obj, const char *name, size_t len, jinja_value *out)
{
    if (!jinja_defined(r, obj)) {
        return false;
    }
    bool found;
    if (!object_attr(r, obj, name, len, out, &found) || found) {
        return !r->err;
    }
    const jinja_value *v = obj->type == JINJA_DICT ? jinja_map_get_text(obj->as.map, name, len) : NULL;
    *out = v ? *v : jinja_undefined(name, len, jinja_type_repr(obj));
    return true;
}

/* ---- subscripts ---- */

/* Byte where character i of a string begins; len if it ends before. */
static size_t char_offset(const char *text, size_t len, size_t i)
{
    size_t at = 0;
    while (i > 0 && at < len) {
        at++;
        while (at < len && ((unsigned char)text[at] & 0xC0) == 0x80) {
            at++;
        }
        i--;
    }
    return at;
}

/* Item `i` (negative: from the end) of a string, list, tuple or range. */
static bool item_at(const jinja_value *obj, int64_t i, jinja_value *out)
{
    size_t n;
    if (obj->type == JINJA_DICT || obj->type == JINJA_KEYS || obj->type == JINJA_VALUES ||
        obj->type == JINJA_ITEMS || !jinja_length(obj, &n)) {
        return false;
    }
    i += i < 0 ? (int64_t)n : 0;
    if (i < 0 || (uint64_t)i >= n) {
        return false;
    }
    if (obj->type == JINJA_STR) {
        size_t at = n == obj->len ? (size_t)i : char_offset(obj->as.text, obj->len, (size_t)i);
        uint32_t c;
        *out = jinja_borrow(obj->as.text + at, utf8_decode(obj->as.text + at, obj->len - at, &c));
    } else if (obj->type == JINJA_RANGE) {
        *out = jinja_make_int(obj->as.range->start + i * obj->as.range->step);
    } else {
        *out = obj->as.seq->items[i];
    }
    return true;
}

static bool missing_item(jinja_render *r, const jinja_value *obj, const jinja_value *key, jinja_value *out)
{
    int64_t i;
    if (key->type == JINJA_STR) {
        *out = jinja_undefined(key->as.text, key->len, jinja_type_repr(obj));
        return true;
    }
    return jinja_as_int(key, &i)
               ? missing(r, out, "%s has no element %lld", jinja_type_repr(obj), (long long)i)
               : missing(r, out, "%s has no such element", jinja_type_repr(obj));
}

bool jinja_getitem(jinja_render *r, const jinja_value *obj, const jinja_value *key, jinja_value *out)
{
    int64_t i;
    bool found = false;
    if (!jinja_defined(r, obj)) {
        return false;
    }
    if (obj->type == JINJA_STR && !jinja_work(r, obj->len)) {
        return false;
    }
    if (obj->type == JINJA_DICT) {
        const jinja_value *v = jinja_hashable(key) ? jinja_map_get(obj->as.map, key) : NULL;
        if (v) {
            *out = *v;
            return true;
        }
    } else if (jinja_as_int(key, &i) && item_at(obj, i, out)) {
        return true;
    }
    if (key->type == JINJA_STR && !object_attr(r, obj, key->as.text, key->len, out, &found)) {
        return false;
    }
    return found || missing_item(r, obj, key, out);
}

/* Start, stop and step of a slice over n items, as Python resolves them; false if a part is no
 * integer. */
static bool slice_bounds(const jinja_value *const part[3], int64_t n, int64_t bounds[3])
{
    int64_t given[3] = {0, 0, 1};
    for (size_t k = 0; k < 3; k++) {
        if (part[k] && !jinja_as_int(part[k], &given[k])) {
            return false;
        }
    }
    int64_t step = given[2];
    if (step == INT64_MIN) {
        return false;
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    for (size_t k = 0; k < 2; k++) {
        bool at_low = (step > 0) == (k == 0);
        int64_t i = part[k] ? given[k] : at_low ? low : high;
        if (part[k]) {
            i += i < 0 ? n : 0;
            i = i < low ? low : i > high ? high : i;
        }
        bounds[k] = i;
    }
    bounds[2] = step;
    return true;
}

/* Number of items of a slice with these bounds. */
static size_t slice_len(const int64_t b[3])
{
    if (b[2] > 0) {
        return b[0] < b[1] ? (size_t)((b[1] - b[0] - 1) / b[2] + 1) : 0;
    }
    return b[0] > b[1] ? (size_t)((b[0] - b[1] - 1) / -b[2] + 1) : 0;
}

static bool slice_str(jinja_render *r, const jinja_value *obj, const int64_t b[3], size_t n_chars,
                      jinja_value *out)
{
    size_t n = slice_len(b);
    if (b[2] == 1) {
        size_t begin = n == 0 ? 0 : char_offset(obj->as.text, obj->len, (size_t)b[0]);
        *out = jinja_borrow(obj->as.text + begin,
                            n == 0 ? 0 : char_offset(obj->as.text + begin, obj->len - begin, n));
        out->markup = obj->markup;
        return true;
    }
    /* Offsets of all characters first, so that stepping is linear. */
    size_t *at = jinja_alloc(&r->m, (n_chars + 1) * sizeof *at);
    bytes text;
    if (!at || !jinja_work(r, n_chars * sizeof *at)) {
        return jinja_check_memory(r);
    }
    for (size_t i = 0, k = 0; i < obj->len; i++) {
        if (((unsigned char)obj->as.text[i] & 0xC0) != 0x80) {
            at[k++] = i;
        }
    }
    at[n_chars] = obj->len;
    jinja_begin_text(r, &text);
    int64_t i = b[0];
    for (size_t k = 0; k < n; k++, i += k < n ? b[2] : 0) {
        bytes_append(&text, obj->as.text + at[i], at[i + 1] - at[i]);
    }
    return jinja_finish_text(r, &text, out);
}

bool jinja_slice(jinja_render *r, const jinja_value *obj, const jinja_value *const part[3], jinja_value *out)
{
    size_t len = 0;
    int64_t b[3] = {0, 0, 1};
    if (!jinja_defined(r, obj)) {
        return false;
    }
    bool sliceable = obj->type == JINJA_STR || jinja_is_seq(obj) || obj->type == JINJA_RANGE;
    if (!sliceable || !jinja_length(obj, &len)) {
        return jinja_fail(r, "'%s' object is not subscriptable", jinja_type_name(obj));
    }
    if (!slice_bounds(part, (int64_t)len, b)) {
        return jinja_fail(r, "slice indices must be integers or None or have an __index__ method");
    }
    if (b[2] == 0) {
        return jinja_fail(r, "slice step cannot be zero");
    }
    if (obj->type == JINJA_RANGE) {
        const jinja_range *of = obj->as.range;
        *out = jinja_new_range(&r->m, of->start + b[0] * of->step, of->step * b[2], slice_len(b));
        return jinja_check_memory(r);
    }
    if (obj->type == JINJA_STR) {
        return jinja_work(r, obj->len) && slice_str(r, obj, b, len, out);
    }
    size_t n = slice_len(b);
    *out = jinja_new_seq(&r->m, obj->type, n);
    int64_t i = b[0];
    for (size_t k = 0; k < n; k++, i += k < n ? b[2] : 0) {
        jinja_push(&r->m, out->as.seq, obj->as.seq->items[i]);
    }
    return jinja_work(r, n * sizeof(jinja_value));
}
