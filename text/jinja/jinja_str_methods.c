/* Methods of strings that cut, join and change: strip, split, replace and the like. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_library.h"
#include "base/unicode.h"

static jinja_value part_of(const char *begin, const char *end)
{
    return jinja_borrow(begin, (size_t)(end - begin));
}

/* Which end a method works on. */
enum { LEFT = 1, RIGHT = 2 };

/* ---- strip ---- */

/* strip, lstrip and rstrip: at the ends of the mode. */
static bool method_strip(const jinja_frame *f, jinja_value *out)
{
    const jinja_value *set = f->v[0] && f->v[0]->type != JINJA_NONE ? f->v[0] : NULL;
    if (set && set->type != JINJA_STR) {
        return jinja_fail(f->r, "strip arg must be None or str");
    }
    *out = jinja_strip(f->self, set, f->mode & LEFT, f->mode & RIGHT);
    return true;
}

/* removeprefix and removesuffix. */
static bool method_remove(const jinja_frame *f, jinja_value *out)
{
    jinja_value affix;
    if (!jinja_arg_str(f->r, f->v[0], "", &affix)) {
        return false;
    }
    *out = *f->self;
    if (affix.len == 0 || affix.len > out->len) {
        return true;
    }
    const char *at = f->mode == LEFT ? out->as.text : out->as.text + out->len - affix.len;
    if (memcmp(at, affix.as.text, affix.len) == 0) {
        out->len -= affix.len;
        out->as.text += f->mode == LEFT ? affix.len : 0;
    }
    return true;
}

/* ---- split ---- */

/* Byte offsets of a run of white space, for splitting without a separator. */
static size_t space_len(const char *s, const char *end)
{
    uint32_t c;
    size_t n = utf8_decode(s, (size_t)(end - s), &c);
    return unicode_is_space(c) ? n : 0;
}

static void split_on_space(jinja_render *r, const jinja_value *self, int64_t max, jinja_value *out)
{
    const char *s = self->as.text, *end = s + self->len;
    size_t n;
    *out = jinja_new_list(&r->m);
    for (;;) {
        while (s < end && (n = space_len(s, end)) > 0) {
            s += n;
        }
        if (s >= end) {
            return;
        }
        if (max == 0) {
            jinja_push(&r->m, out->as.seq, part_of(s, end));
            return;
        }
        const char *begin = s;
        uint32_t c;
        while (s < end && space_len(s, end) == 0) {
            s += utf8_decode(s, (size_t)(end - s), &c);
        }
        jinja_push(&r->m, out->as.seq, part_of(begin, s));
        max--;
    }
}

static void split_on(jinja_render *r, const jinja_value *self, const jinja_value *sep, int64_t max,
                     jinja_value *out)
{
    const char *s = self->as.text, *end = s + self->len, *at;
    *out = jinja_new_list(&r->m);
    while (max-- != 0 && (at = jinja_find_text(s, (size_t)(end - s), sep->as.text, sep->len))) {
        jinja_push(&r->m, out->as.seq, part_of(s, at));
        s = at + sep->len;
    }
    jinja_push(&r->m, out->as.seq, part_of(s, end));
}

static void reverse_items(jinja_seq *seq)
{
    for (size_t i = 0; i < seq->len / 2; i++) {
        jinja_value t = seq->items[i];
        seq->items[i] = seq->items[seq->len - 1 - i];
        seq->items[seq->len - 1 - i] = t;
    }
}

static void rsplit_on(jinja_render *r, const jinja_value *self, const jinja_value *sep, int64_t max,
                      jinja_value *out)
{
    const char *s = self->as.text, *end = s + self->len, *at;
    *out = jinja_new_list(&r->m);
    while (max-- != 0 && (at = jinja_find_last(s, (size_t)(end - s), sep->as.text, sep->len))) {
        jinja_push(&r->m, out->as.seq, part_of(at + sep->len, end));
        end = at;
    }
    jinja_push(&r->m, out->as.seq, part_of(s, end));
    reverse_items(out->as.seq);
}

/* As split_on_space, but what is left after max parts from the right stays together at the left. */
static void rsplit_on_space(jinja_render *r, const jinja_value *self, int64_t max, jinja_value *out)
{
    split_on_space(r, self, -1, out);
    jinja_seq *parts = out->as.seq;
    if (max >= 0 && parts->len > (size_t)max) {
        const size_t n_rest = parts->len - (size_t)max;
        const jinja_value *last = &parts->items[n_rest - 1];
        jinja_value rest = part_of(self->as.text, last->as.text + last->len);
        *out = jinja_new_list(&r->m);
        jinja_push(&r->m, out->as.seq, rest);
        jinja_push_all(&r->m, out->as.seq, parts->items + n_rest, (size_t)max);
    }
}

/* split and rsplit. */
static bool method_split(const jinja_frame *f, jinja_value *out)
{
    jinja_render *r = f->r;
    const jinja_value *sep = f->v[0];
    int64_t max;
    if (!jinja_arg_int(r, f->v[1], -1, &max)) {
        return false;
    }
    max = max < 0 ? -1 : max;
    if (!sep || sep->type == JINJA_NONE) {
        (f->mode == RIGHT ? rsplit_on_space : split_on_space)(r, f->self, max, out);
        return true;
    }
    if (sep->type != JINJA_STR) {
        return jinja_fail(r, "must be str or None, not %s", jinja_type_name(sep));
    }
    if (sep->len == 0) {
        return jinja_fail(r, "empty separator");
    }
    (f->mode == RIGHT && max >= 0 ? rsplit_on : split_on)(r, f->self, sep, max, out);
    return true;
}

/* Length of the line end at s (\n, \r\n, U+2028 ...), 0 if there is none. */
static size_t line_end_len(const char *s, const char *end)
{
    uint32_t c;
    size_t n = utf8_decode(s, (size_t)(end - s), &c);
    if (c == '\r' && s + 1 < end && s[1] == '\n') {
        return 2;
    }
    bool ends =
        (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    return ends ? n : 0;
}

static bool method_splitlines(const jinja_frame *f, jinja_value *out)
{
    bool keep = jinja_arg_truth(f->v[0], false);
    const char *s = f->self->as.text, *end = s + f->self->len, *begin = s;
    *out = jinja_new_list(&f->r->m);
    while (s < end) {
        size_t n = line_end_len(s, end);
        uint32_t c;
        if (n > 0) {
            jinja_push(&f->r->m, out->as.seq, part_of(begin, keep ? s + n : s));
            begin = s + n;
        }
        s += n > 0 ? n : utf8_decode(s, (size_t)(end - s), &c);
    }
    if (begin < end) {
        jinja_push(&f->r->m, out->as.seq, part_of(begin, end));
    }
    return true;
}

/* partition and rpartition. */
static bool method_partition(const jinja_frame *f, jinja_value *out)
{
    const bool last = f->mode == RIGHT;
    jinja_value sep, empty = jinja_borrow("", 0);
    if (!jinja_arg_str(f->r, f->v[0], "", &sep)) {
        return false;
    }
    if (sep.len == 0) {
        return jinja_fail(f->r, "empty separator");
    }
    const char *s = f->self->as.text, *end = s + f->self->len;
    const char *at = (last ? jinja_find_last : jinja_find_text)(s, f->self->len, sep.as.text, sep.len);
    *out = jinja_new_seq(&f->r->m, JINJA_TUPLE, 3);
    jinja_push(&f->r->m, out->as.seq, at ? part_of(s, at) : last ? empty : *f->self);
    jinja_push(&f->r->m, out->as.seq, at ? sep : empty);
    jinja_push(&f->r->m, out->as.seq, at ? part_of(at + sep.len, end) : last ? *f->self : empty);
    return true;
}

/* ---- join, replace, case ---- */

static bool method_join(const jinja_frame *f, jinja_value *out)
{
    jinja_iter it;
    jinja_value item;
    bytes b;
    if (!jinja_iter_init(&it, f->v[0])) {
        return jinja_fail(f->r, "can only join an iterable");
    }
    jinja_begin_text(f->r, &b);
    for (size_t i = 0; !f->r->err && jinja_iter_next(&f->r->m, &it, &item); i++) {
        if (item.type != JINJA_STR) {
            jinja_fail(f->r, "sequence item %zu: expected str instance, %s found", i, jinja_type_name(&item));
        }
        bytes_append(&b, f->self->as.text, i ? f->self->len : 0);
        bytes_append(&b, item.as.text, item.len);
    }
    return jinja_finish_text(f->r, &b, out);
}

static bool method_replace(const jinja_frame *f, jinja_value *out)
{
    jinja_value old, new_text;
    int64_t max;
    return jinja_arg_str(f->r, f->v[0], "", &old) && jinja_arg_str(f->r, f->v[1], "", &new_text) &&
           jinja_arg_int(f->r, f->v[2], -1, &max) && jinja_replace(f->r, f->self, &old, &new_text, max, out);
}

/* upper and lower: the mode is a unicode_case. */
static bool method_convert(const jinja_frame *f, jinja_value *out)
{
    bytes b;
    jinja_begin_text(f->r, &b);
    unicode_convert(&b, f->self->as.text, f->self->len, (unicode_case)f->mode);
    return jinja_finish_text(f->r, &b, out);
}

static bool method_casefold(const jinja_frame *f, jinja_value *out)
{
    bytes b;
    jinja_begin_text(f->r, &b);
    unicode_fold(&b, f->self->as.text, f->self->len);
    return jinja_finish_text(f->r, &b, out);
}

static bool method_capitalize(const jinja_frame *f, jinja_value *out)
{
    bytes b;
    uint32_t c;
    const char *s = f->self->as.text;
    jinja_begin_text(f->r, &b);
    if (f->self->len > 0) {
        size_t n = utf8_decode(s, f->self->len, &c);
        unicode_append_case(&b, c, UNICODE_TITLE);
        unicode_convert(&b, s + n, f->self->len - n, UNICODE_LOWER);
    }
    return jinja_finish_text(f->r, &b, out);
}

/* title (mode 0): a capital behind everything that is no letter; swapcase: the other case
 * everywhere. */
static bool method_recase(const jinja_frame *f, jinja_value *out)
{
    bytes b;
    bool in_word = false;
    jinja_begin_text(f->r, &b);
    for (size_t i = 0; i < f->self->len;) {
        uint32_t c;
        i += utf8_decode(f->self->as.text + i, f->self->len - i, &c);
        unicode_case swapped = unicode_is_upper(c) ? UNICODE_LOWER : UNICODE_UPPER;
        unicode_append_case(&b, c, f->mode ? swapped : in_word ? UNICODE_LOWER : UNICODE_TITLE);
        in_word = unicode_is_alpha(c);
    }
    return jinja_finish_text(f->r, &b, out);
}

const jinja_callable JINJA_STR_METHODS[] = {
    JINJA_ONE("capitalize", "", 0, method_capitalize),
    JINJA_ONE("casefold", "", 0, method_casefold),
    JINJA_ONE("join", "iterable", 1, method_join),
    {"lower", "", 0, method_convert, UNICODE_LOWER},
    {"lstrip", "chars", 0, method_strip, LEFT},
    {"partition", "sep", 1, method_partition, LEFT},
    {"removeprefix", "prefix", 1, method_remove, LEFT},
    {"removesuffix", "suffix", 1, method_remove, RIGHT},
    JINJA_ONE("replace", "old,new,count", 2, method_replace),
    {"rpartition", "sep", 1, method_partition, RIGHT},
    {"rsplit", "sep,maxsplit", 0, method_split, RIGHT},
    {"rstrip", "chars", 0, method_strip, RIGHT},
    {"split", "sep,maxsplit", 0, method_split, LEFT},
    JINJA_ONE("splitlines", "keepends", 0, method_splitlines),
    {"strip", "chars", 0, method_strip, LEFT | RIGHT},
    {"swapcase", "", 0, method_recase, 1},
    {"title", "", 0, method_recase, 0},
    {"upper", "", 0, method_convert, UNICODE_UPPER},
    {NULL, NULL, 0, NULL, 0},
};
