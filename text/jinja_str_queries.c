/* Methods of strings that ask and lay out: startswith, find, count, isdigit, format, center. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_library.h"
#include "text/unicode.h"

/* The part of self that start and end arguments (v[1], v[2], in characters) select, and the
 * characters before it. */
static bool select_part(jinja_render *r, const jinja_value *self, const jinja_value *const *v,
                        jinja_value *part, int64_t *before)
{
    *part = *self;
    *before = 0;
    const jinja_value *bounds[3] = {v[1] && v[1]->type != JINJA_NONE ? v[1] : NULL,
                                    v[2] && v[2]->type != JINJA_NONE ? v[2] : NULL, NULL};
    if (!bounds[0] && !bounds[1]) {
        return true;
    }
    if (!jinja_slice(r, self, bounds, part)) {
        return false;
    }
    *before = (int64_t)jinja_n_chars(self->as.text, part->len ? (size_t)(part->as.text - self->as.text) : 0);
    return true;
}

static bool has_affix(const jinja_value *part, const jinja_value *affix, bool prefix)
{
    return affix->len <= part->len && memcmp(prefix ? part->as.text : part->as.text + part->len - affix->len,
                                             affix->as.text, affix->len) == 0;
}

/* startswith and endswith take a string or a tuple of strings. */
static bool test_affix(jinja_render *r, const jinja_value *self, const jinja_value *const *v, bool prefix,
                       jinja_value *out)
{
    jinja_value part;
    int64_t before;
    bool found = false;
    if (!select_part(r, self, v, &part, &before)) {
        return false;
    }
    if (v[0]->type == JINJA_TUPLE) {
        for (size_t i = 0; i < v[0]->as.seq->len && !found; i++) {
            const jinja_value *affix = &v[0]->as.seq->items[i];
            found = affix->type == JINJA_STR && has_affix(&part, affix, prefix);
        }
    } else if (v[0]->type == JINJA_STR) {
        found = has_affix(&part, v[0], prefix);
    } else if (v[0]->type == JINJA_UNDEFINED) {
        return jinja_fail_undefined(r, v[0]);
    } else {
        return jinja_fail(r, "%s first arg must be str or a tuple of str, not %s",
                          prefix ? "startswith" : "endswith", jinja_type_name(v[0]));
    }
    *out = jinja_make_bool(found);
    return true;
}

static bool method_startswith(jinja_render *r, const jinja_value *self, const jinja_args *args,
                              const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return test_affix(r, self, v, true, out);
}

static bool method_endswith(jinja_render *r, const jinja_value *self, const jinja_args *args,
                            const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return test_affix(r, self, v, false, out);
}

/* Character number of the first (or last) occurrence; -1 if there is none. */
static bool search(jinja_render *r, const jinja_value *self, const jinja_value *const *v, bool last,
                   int64_t *out)
{
    jinja_value part, what;
    int64_t before;
    if (!jinja_arg_str(r, v[0], "", &what) || !select_part(r, self, v, &part, &before)) {
        return false;
    }
    const char *at = jinja_find_text(part.as.text, part.len, what.as.text, what.len);
    const char *end = part.as.text + part.len;
    if (last && what.len == 0) {
        at = end;
    }
    while (last && at && what.len > 0) {
        const char *next = jinja_find_text(at + 1, (size_t)(end - at) - 1, what.as.text, what.len);
        if (!next) {
            break;
        }
        at = next;
    }
    *out = at ? before + (int64_t)jinja_n_chars(part.as.text, (size_t)(at - part.as.text)) : -1;
    return true;
}

static bool position(jinja_render *r, const jinja_value *self, const jinja_value *const *v, bool last,
                     bool must_exist, jinja_value *out)
{
    int64_t i;
    if (!search(r, self, v, last, &i)) {
        return false;
    }
    *out = jinja_make_int(i);
    return i >= 0 || !must_exist ? true : jinja_fail(r, "substring not found");
}

static bool method_find(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return position(r, self, v, false, false, out);
}

static bool method_rfind(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return position(r, self, v, true, false, out);
}

static bool method_index(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return position(r, self, v, false, true, out);
}

static bool method_rindex(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return position(r, self, v, true, true, out);
}

static bool method_count(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    jinja_value part, what;
    int64_t before, n = 0;
    if (!jinja_arg_str(r, v[0], "", &what) || !select_part(r, self, v, &part, &before)) {
        return false;
    }
    const char *s = part.as.text, *end = s + part.len, *at;
    if (what.len == 0) {
        *out = jinja_make_int((int64_t)jinja_n_chars(s, part.len) + 1);
        return true;
    }
    while ((at = jinja_find_text(s, (size_t)(end - s), what.as.text, what.len))) {
        n++;
        s = at + what.len;
    }
    *out = jinja_make_int(n);
    return true;
}

/* ---- kinds of characters ---- */

static bool is_alnum(uint32_t c)
{
    return unicode_is_alpha(c) || unicode_is_numeric(c);
}

static bool is_ascii(uint32_t c)
{
    return c < 0x80;
}

/* True if all characters are of the kind; an empty text gives `empty`. */
static bool all_are(const jinja_value *self, bool (*kind)(uint32_t c), bool empty, jinja_value *out)
{
    bool all = self->len > 0 || empty;
    for (size_t i = 0; i < self->len && all;) {
        uint32_t c;
        i += utf8_decode(self->as.text + i, self->len - i, &c);
        all = kind(c);
    }
    *out = jinja_make_bool(all);
    return true;
}

/* True if there is a letter of the one case and none of the other. */
static bool has_case(const jinja_value *self, bool (*wanted)(uint32_t c), bool (*other)(uint32_t c),
                     jinja_value *out)
{
    bool found = false, wrong = false;
    for (size_t i = 0; i < self->len && !wrong;) {
        uint32_t c;
        i += utf8_decode(self->as.text + i, self->len - i, &c);
        found = found || wanted(c);
        wrong = other(c);
    }
    *out = jinja_make_bool(found && !wrong);
    return true;
}

static bool method_isalpha(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, unicode_is_alpha, false, out);
}

static bool method_isdigit(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, unicode_is_digit, false, out);
}

static bool method_isnumeric(jinja_render *r, const jinja_value *self, const jinja_args *args,
                             const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, unicode_is_numeric, false, out);
}

static bool method_isalnum(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, is_alnum, false, out);
}

static bool method_isspace(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, unicode_is_space, false, out);
}

static bool method_isascii(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return all_are(self, is_ascii, true, out);
}

static bool method_isupper(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return has_case(self, unicode_is_upper, unicode_is_lower, out);
}

static bool method_islower(jinja_render *r, const jinja_value *self, const jinja_args *args,
                           const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return has_case(self, unicode_is_lower, unicode_is_upper, out);
}

/* ---- layout ---- */

/* Pads to v[0] characters with v[1]; `left` and `right` tell on which sides. */
static bool pad(jinja_render *r, const jinja_value *self, const jinja_value *const *v, bool left, bool right,
                jinja_value *out)
{
    enum { MAX_WIDTH = 1 << 20 };
    int64_t width;
    jinja_value fill;
    bytes b;
    if (!jinja_arg_int(r, v[0], 0, &width) || !jinja_arg_str(r, v[1], " ", &fill)) {
        return false;
    }
    if (jinja_n_chars(fill.as.text, fill.len) != 1 || width > MAX_WIDTH) {
        return jinja_fail(r, "the fill character must be exactly one character long");
    }
    int64_t n = width - (int64_t)jinja_n_chars(self->as.text, self->len);
    n = n > 0 ? n : 0;
    /* Python puts the odd blank of center on the left for odd widths. */
    int64_t before = !left ? 0 : !right ? n : n / 2 + (n & width & 1);
    jinja_begin_text(r, &b);
    for (int64_t i = 0; i < n; i++) {
        if (i == before) {
            bytes_append(&b, self->as.text, self->len);
        }
        bytes_append(&b, fill.as.text, fill.len);
    }
    if (before == n) {
        bytes_append(&b, self->as.text, self->len);
    }
    return jinja_finish_text(r, &b, out);
}

static bool method_center(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return pad(r, self, v, true, true, out);
}

static bool method_ljust(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return pad(r, self, v, false, true, out);
}

static bool method_rjust(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return pad(r, self, v, true, false, out);
}

static bool method_zfill(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    jinja_value zero = jinja_borrow("0", 1), rest = *self, padded;
    bool sign = self->len > 0 && (self->as.text[0] == '-' || self->as.text[0] == '+');
    int64_t width;
    if (!jinja_arg_int(r, v[0], 0, &width)) {
        return false;
    }
    jinja_value width_left = jinja_make_int(width - sign);
    const jinja_value *given[2] = {&width_left, &zero};
    rest.as.text += sign;
    rest.len -= sign;
    jinja_value head = jinja_borrow(self->as.text, sign);
    if (!pad(r, &rest, given, true, false, &padded)) {
        return false;
    }
    *out = jinja_concat(&r->m, &head, &padded);
    return true;
}

static bool method_format(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)v;
    return jinja_format_braces(r, self, args, out);
}

const jinja_callable JINJA_STR_MORE_METHODS[] = {
    {"center", "width,fillchar", 1, method_center},
    {"count", "sub,start,end", 1, method_count},
    {"endswith", "suffix,start,end", 1, method_endswith},
    {"find", "sub,start,end", 1, method_find},
    {"format", NULL, 0, method_format},
    {"index", "sub,start,end", 1, method_index},
    {"isalnum", "", 0, method_isalnum},
    {"isalpha", "", 0, method_isalpha},
    {"isascii", "", 0, method_isascii},
    {"isdecimal", "", 0, method_isdigit},
    {"isdigit", "", 0, method_isdigit},
    {"islower", "", 0, method_islower},
    {"isnumeric", "", 0, method_isnumeric},
    {"isspace", "", 0, method_isspace},
    {"isupper", "", 0, method_isupper},
    {"ljust", "width,fillchar", 1, method_ljust},
    {"rfind", "sub,start,end", 1, method_rfind},
    {"rindex", "sub,start,end", 1, method_rindex},
    {"rjust", "width,fillchar", 1, method_rjust},
    {"startswith", "prefix,start,end", 1, method_startswith},
    {"zfill", "width", 1, method_zfill},
    {NULL, NULL, 0, NULL},
};
