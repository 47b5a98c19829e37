/* Methods of strings that cut, join and change: strip, split, replace and the like. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_library.h"
#include "text/unicode.h"

static jinja_value part_of(const char *begin, const char *end)
{
    return jinja_borrow(begin, (size_t)(end - begin));
}

/* ---- strip ---- */

static bool strip_sides(jinja_render *r, const jinja_value *self, const jinja_value *set, bool left,
                        bool right, jinja_value *out)
{
    if (set && set->type == JINJA_NONE) {
        set = NULL;
    }
    if (set && set->type != JINJA_STR) {
        return jinja_fail(r, "strip arg must be None or str");
    }
    *out = jinja_strip(self, set, left, right);
    return true;
}

static bool method_strip(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return strip_sides(r, self, v[0], true, true, out);
}

static bool method_lstrip(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return strip_sides(r, self, v[0], true, false, out);
}

static bool method_rstrip(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return strip_sides(r, self, v[0], false, true, out);
}

static bool remove_affix(jinja_render *r, const jinja_value *self, const jinja_value *v, bool prefix,
                         jinja_value *out)
{
    jinja_value affix;
    if (!jinja_arg_str(r, v, "", &affix)) {
        return false;
    }
    *out = *self;
    if (affix.len == 0 || affix.len > self->len) {
        return true;
    }
    const char *at = prefix ? self->as.text : self->as.text + self->len - affix.len;
    if (memcmp(at, affix.as.text, affix.len) == 0) {
        out->len -= affix.len;
        out->as.text += prefix ? affix.len : 0;
    }
    return true;
}

static bool method_removeprefix(jinja_render *r, const jinja_value *self, const jinja_args *args,
                                const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return remove_affix(r, self, v[0], true, out);
}

static bool method_removesuffix(jinja_render *r, const jinja_value *self, const jinja_args *args,
                                const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return remove_affix(r, self, v[0], false, out);
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

/* The last occurrence of sep in s[0..len), or NULL. */
static const char *find_last(const char *s, size_t len, const jinja_value *sep)
{
    for (size_t i = len < sep->len ? 0 : len - sep->len + 1; i-- > 0;) {
        if (memcmp(s + i, sep->as.text, sep->len) == 0) {
            return s + i;
        }
    }
    return NULL;
}

static void rsplit_on(jinja_render *r, const jinja_value *self, const jinja_value *sep, int64_t max,
                      jinja_value *out)
{
    const char *s = self->as.text, *end = s + self->len, *at;
    *out = jinja_new_list(&r->m);
    while (max-- != 0 && (at = find_last(s, (size_t)(end - s), sep))) {
        jinja_push(&r->m, out->as.seq, part_of(at + sep->len, end));
        end = at;
    }
    jinja_push(&r->m, out->as.seq, part_of(s, end));
    reverse_items(out->as.seq);
}

static void rsplit_on_space(jinja_render *r, const jinja_value *self, int64_t max, jinja_value *out)
{
    jinja_value rest = jinja_strip(self, NULL, false, true);
    *out = jinja_new_list(&r->m);
    while (rest.len > 0) {
        if (max-- == 0) {
            jinja_push(&r->m, out->as.seq, rest);
            break;
        }
        size_t begin = rest.len;
        while (begin > 0) {
            size_t last = begin - 1;
            while (last > 0 && ((unsigned char)rest.as.text[last] & 0xC0) == 0x80) {
                last--;
            }
            if (space_len(rest.as.text + last, rest.as.text + rest.len) > 0) {
                break;
            }
            begin = last;
        }
        jinja_push(&r->m, out->as.seq, part_of(rest.as.text + begin, rest.as.text + rest.len));
        rest.len = begin;
        rest = jinja_strip(&rest, NULL, false, true);
    }
    reverse_items(out->as.seq);
}

static bool split(jinja_render *r, const jinja_value *self, const jinja_value *const *v, bool from_right,
                  jinja_value *out)
{
    int64_t max;
    if (!jinja_arg_int(r, v[1], -1, &max)) {
        return false;
    }
    max = max < 0 ? -1 : max;
    if (!v[0] || v[0]->type == JINJA_NONE) {
        (from_right ? rsplit_on_space : split_on_space)(r, self, max, out);
        return true;
    }
    if (v[0]->type != JINJA_STR) {
        return jinja_fail(r, "must be str or None, not %s", jinja_type_name(v[0]));
    }
    if (v[0]->len == 0) {
        return jinja_fail(r, "empty separator");
    }
    (from_right && max >= 0 ? rsplit_on : split_on)(r, self, v[0], max, out);
    return true;
}

static bool method_split(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return split(r, self, v, false, out);
}

static bool method_rsplit(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return split(r, self, v, true, out);
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

static bool method_splitlines(jinja_render *r, const jinja_value *self, const jinja_args *args,
                              const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    bool keep = jinja_arg_truth(v[0], false);
    const char *s = self->as.text, *end = s + self->len, *begin = s;
    *out = jinja_new_list(&r->m);
    while (s < end) {
        size_t n = line_end_len(s, end);
        uint32_t c;
        if (n > 0) {
            jinja_push(&r->m, out->as.seq, part_of(begin, keep ? s + n : s));
            begin = s + n;
        }
        s += n > 0 ? n : utf8_decode(s, (size_t)(end - s), &c);
    }
    if (begin < end) {
        jinja_push(&r->m, out->as.seq, part_of(begin, end));
    }
    return true;
}

static bool partition(jinja_render *r, const jinja_value *self, const jinja_value *v, bool last,
                      jinja_value *out)
{
    jinja_value sep, empty = jinja_borrow("", 0);
    if (!jinja_arg_str(r, v, "", &sep)) {
        return false;
    }
    if (sep.len == 0) {
        return jinja_fail(r, "empty separator");
    }
    const char *s = self->as.text, *end = s + self->len;
    const char *at =
        last ? find_last(s, self->len, &sep) : jinja_find_text(s, self->len, sep.as.text, sep.len);
    *out = jinja_new_seq(&r->m, JINJA_TUPLE, 3);
    jinja_push(&r->m, out->as.seq, at ? part_of(s, at) : last ? empty : *self);
    jinja_push(&r->m, out->as.seq, at ? sep : empty);
    jinja_push(&r->m, out->as.seq, at ? part_of(at + sep.len, end) : last ? *self : empty);
    return true;
}

static bool method_partition(jinja_render *r, const jinja_value *self, const jinja_args *args,
                             const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return partition(r, self, v[0], false, out);
}

static bool method_rpartition(jinja_render *r, const jinja_value *self, const jinja_args *args,
                              const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return partition(r, self, v[0], true, out);
}

/* ---- join, replace, case ---- */

static bool method_join(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    jinja_iter it;
    jinja_value item;
    bytes b;
    if (!jinja_iter_init(&it, v[0])) {
        return jinja_fail(r, "can only join an iterable");
    }
    jinja_begin_text(r, &b);
    for (size_t i = 0; jinja_iter_next(&r->m, &it, &item); i++) {
        if (item.type != JINJA_STR) {
            bytes_deinit(&b);
            return jinja_fail(r, "sequence item %zu: expected str instance, %s found", i,
                              jinja_type_name(&item));
        }
        bytes_append(&b, self->as.text, i ? self->len : 0);
        bytes_append(&b, item.as.text, item.len);
    }
    return jinja_finish_text(r, &b, out);
}

static bool method_replace(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    jinja_value old, new_text;
    int64_t max;
    return jinja_arg_str(r, v[0], "", &old) && jinja_arg_str(r, v[1], "", &new_text) &&
           jinja_arg_int(r, v[2], -1, &max) && jinja_replace(r, self, &old, &new_text, max, out);
}

static bool convert(jinja_render *r, const jinja_value *self, unicode_case to, jinja_value *out)
{
    bytes b;
    jinja_begin_text(r, &b);
    unicode_convert(&b, self->as.text, self->len, to);
    return jinja_finish_text(r, &b, out);
}

static bool method_upper(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return convert(r, self, UNICODE_UPPER, out);
}

static bool method_lower(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return convert(r, self, UNICODE_LOWER, out);
}

static bool method_capitalize(jinja_render *r, const jinja_value *self, const jinja_args *args,
                              const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return jinja_capitalize(r, self, out);
}

/* str.title: a capital behind everything that is no letter; str.swapcase: the other case
 * everywhere. */
static bool method_title(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    bytes b;
    bool in_word = false;
    jinja_begin_text(r, &b);
    for (size_t i = 0; i < self->len;) {
        uint32_t c;
        i += utf8_decode(self->as.text + i, self->len - i, &c);
        unicode_append_case(&b, c, in_word ? UNICODE_LOWER : UNICODE_TITLE);
        in_word = unicode_is_alpha(c);
    }
    return jinja_finish_text(r, &b, out);
}

static bool method_swapcase(jinja_render *r, const jinja_value *self, const jinja_args *args,
                            const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    bytes b;
    jinja_begin_text(r, &b);
    for (size_t i = 0; i < self->len;) {
        uint32_t c;
        i += utf8_decode(self->as.text + i, self->len - i, &c);
        unicode_append_case(&b, c, unicode_is_upper(c) ? UNICODE_LOWER : UNICODE_UPPER);
    }
    return jinja_finish_text(r, &b, out);
}

const jinja_callable JINJA_STR_METHODS[] = {
    {"capitalize", "", 0, method_capitalize},
    {"casefold", "", 0, method_lower},
    {"join", "iterable", 1, method_join},
    {"lower", "", 0, method_lower},
    {"lstrip", "chars", 0, method_lstrip},
    {"partition", "sep", 1, method_partition},
    {"removeprefix", "prefix", 1, method_removeprefix},
    {"removesuffix", "suffix", 1, method_removesuffix},
    {"replace", "old,new,count", 2, method_replace},
    {"rpartition", "sep", 1, method_rpartition},
    {"rsplit", "sep,maxsplit", 0, method_rsplit},
    {"rstrip", "chars", 0, method_rstrip},
    {"split", "sep,maxsplit", 0, method_split},
    {"splitlines", "keepends", 0, method_splitlines},
    {"strip", "chars", 0, method_strip},
    {"swapcase", "", 0, method_swapcase},
    {"title", "", 0, method_title},
    {"upper", "", 0, method_upper},
    {NULL, NULL, 0, NULL},
};
