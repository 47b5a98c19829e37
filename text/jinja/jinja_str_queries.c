/* Methods of strings that ask and lay out: startswith, find, count, isdigit, format, center. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_library.h"
#include "base/unicode.h"

/* The part of a string that start and end arguments (the second and third, in characters) select,
 * and the characters before it. */
static bool select_part(const jinja_frame *f, jinja_value *part, int64_t *before)
{
    const jinja_value *self = f->self, *start = f->v[1], *end = f->v[2];
    const jinja_value *bounds[3] = {start && start->type != JINJA_NONE ? start : NULL,
                                    end && end->type != JINJA_NONE ? end : NULL, NULL};
    *part = *self;
    *before = 0;
    if (!bounds[0] && !bounds[1]) {
        return true;
    }
    if (!jinja_slice(f->r, self, bounds, part)) {
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

/* startswith (mode 0) and endswith take a string or a tuple of strings. */
static bool method_has_affix(const jinja_frame *f, jinja_value *out)
{
    const jinja_value *affix = f->v[0];
    const bool prefix = f->mode == 0;
    jinja_value part;
    int64_t before;
    bool found = false;
    if (!select_part(f, &part, &before)) {
        return false;
    }
    if (affix->type == JINJA_TUPLE) {
        for (size_t i = 0; i < affix->as.seq->len && !found; i++) {
            const jinja_value *one = &affix->as.seq->items[i];
            found = one->type == JINJA_STR && has_affix(&part, one, prefix);
        }
    } else if (affix->type == JINJA_STR) {
        found = has_affix(&part, affix, prefix);
    } else {
        return jinja_defined(f->r, affix) &&
               jinja_fail(f->r, "%s first arg must be str or a tuple of str, not %s",
                          prefix ? "startswith" : "endswith", jinja_type_name(affix));
    }
    *out = jinja_make_bool(found);
    return true;
}

enum { FROM_RIGHT = 1, MUST_EXIST = 2 };

/* find, rfind, index and rindex: the character number of the first or last occurrence, else -1 or
 * an error. */
static bool method_find(const jinja_frame *f, jinja_value *out)
{
    jinja_value part, what;
    int64_t before;
    if (!jinja_arg_str(f->r, f->v[0], "", &what) || !select_part(f, &part, &before)) {
        return false;
    }
    const char *at = (f->mode & FROM_RIGHT ? jinja_find_last : jinja_find_text)(part.as.text, part.len,
                                                                                what.as.text, what.len);
    if (!at && f->mode & MUST_EXIST) {
        return jinja_fail(f->r, "substring not found");
    }
    *out =
        jinja_make_int(at ? before + (int64_t)jinja_n_chars(part.as.text, (size_t)(at - part.as.text)) : -1);
    return true;
}

static bool method_count(const jinja_frame *f, jinja_value *out)
{
    jinja_value part, what;
    int64_t before, n = 0;
    if (!jinja_arg_str(f->r, f->v[0], "", &what) || !select_part(f, &part, &before)) {
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

/* True if all characters are of the kind of the mode; an empty text is ASCII and nothing else. */
static bool method_all_are(const jinja_frame *f, jinja_value *out)
{
    static bool (*const kinds[])(uint32_t c) = {unicode_is_alpha,  unicode_is_digit, unicode_is_numeric,
                                                is_alnum,          unicode_is_space, is_ascii,
                                                unicode_is_decimal};
    bool (*kind)(uint32_t c) = kinds[f->mode];
    bool all = f->self->len > 0 || kind == is_ascii;
    for (size_t i = 0; i < f->self->len && all;) {
        uint32_t c;
        i += utf8_decode(f->self->as.text + i, f->self->len - i, &c);
        all = kind(c);
    }
    *out = jinja_make_bool(all);
    return true;
}

/* isupper and islower: there is a letter of the case of the mode and none of the other. */
static bool method_has_case(const jinja_frame *f, jinja_value *out)
{
    bool found[2] = {false, false}; /* by unicode_case */
    for (size_t i = 0; i < f->self->len;) {
        uint32_t c;
        i += utf8_decode(f->self->as.text + i, f->self->len - i, &c);
        found[UNICODE_LOWER] = found[UNICODE_LOWER] || unicode_is_lower(c);
        found[UNICODE_UPPER] = found[UNICODE_UPPER] || unicode_is_upper(c);
    }
    *out = jinja_make_bool(found[f->mode] && !found[!f->mode]);
    return true;
}

/* ---- layout ---- */

enum { PAD_LEFT = 1, PAD_RIGHT = 2 };

/* text with `left` and `right` times `fill` beside it, behind its first `head` bytes. */
static bool pad(jinja_render *r, const jinja_value *text, size_t head, int64_t left, int64_t right,
                const jinja_value *fill, jinja_value *out)
{
    bytes b;
    jinja_begin_text(r, &b);
    bytes_append(&b, text->as.text, head);
    for (int64_t i = 0; i < left; i++) {
        bytes_append(&b, fill->as.text, fill->len);
    }
    bytes_append(&b, text->as.text + head, text->len - head);
    for (int64_t i = 0; i < right; i++) {
        bytes_append(&b, fill->as.text, fill->len);
    }
    return jinja_finish_text(r, &b, out);
}

/* The width that the first argument asks for and how many characters the text lacks of it. */
static bool read_width(const jinja_frame *f, int64_t *width, int64_t *lacking)
{
    enum { MAX_WIDTH = 1 << 20 };
    if (!jinja_arg_int(f->r, f->v[0], 0, width) || *width > MAX_WIDTH) {
        return jinja_fail(f->r, "a text is too long");
    }
    int64_t n = *width - (int64_t)jinja_n_chars(f->self->as.text, f->self->len);
    *lacking = n > 0 ? n : 0;
    return true;
}

/* center, ljust and rjust: padded on the sides of the mode. */
static bool method_pad(const jinja_frame *f, jinja_value *out)
{
    int64_t width, n = 0;
    jinja_value fill;
    if (!read_width(f, &width, &n) || !jinja_arg_str(f->r, f->v[1], " ", &fill)) {
        return false;
    }
    if (jinja_n_chars(fill.as.text, fill.len) != 1) {
        return jinja_fail(f->r, "the fill character must be exactly one character long");
    }
    /* Python puts the odd blank of center on the left for odd widths. */
    int64_t left = f->mode == PAD_RIGHT ? 0 : f->mode == PAD_LEFT ? n : n / 2 + (n & width & 1);
    return pad(f->r, f->self, 0, left, n - left, &fill, out);
}

/* Zeros behind a sign. */
static bool method_zfill(const jinja_frame *f, jinja_value *out)
{
    const jinja_value *self = f->self;
    const jinja_value zero = jinja_borrow("0", 1);
    int64_t width, n = 0;
    size_t sign = self->len > 0 && (self->as.text[0] == '-' || self->as.text[0] == '+');
    return read_width(f, &width, &n) && pad(f->r, self, sign, n, 0, &zero, out);
}

static bool method_format(const jinja_frame *f, jinja_value *out)
{
    return jinja_format_braces(f->r, f->self, f->args, out);
}

const jinja_callable JINJA_STR_MORE_METHODS[] = {
    {"center", "width,fillchar", 1, method_pad, PAD_LEFT | PAD_RIGHT},
    JINJA_ONE("count", "sub,start,end", 1, method_count),
    {"endswith", "suffix,start,end", 1, method_has_affix, 1},
    {"find", "sub,start,end", 1, method_find, 0},
    JINJA_ONE("format", NULL, 0, method_format),
    {"index", "sub,start,end", 1, method_find, MUST_EXIST},
    {"isalnum", "", 0, method_all_are, 3},
    {"isalpha", "", 0, method_all_are, 0},
    {"isascii", "", 0, method_all_are, 5},
    {"isdecimal", "", 0, method_all_are, 6},
    {"isdigit", "", 0, method_all_are, 1},
    {"islower", "", 0, method_has_case, UNICODE_LOWER},
    {"isnumeric", "", 0, method_all_are, 2},
    {"isspace", "", 0, method_all_are, 4},
    {"isupper", "", 0, method_has_case, UNICODE_UPPER},
    {"ljust", "width,fillchar", 1, method_pad, PAD_RIGHT},
    {"rfind", "sub,start,end", 1, method_find, FROM_RIGHT},
    {"rindex", "sub,start,end", 1, method_find, FROM_RIGHT | MUST_EXIST},
    {"rjust", "width,fillchar", 1, method_pad, PAD_LEFT},
    {"startswith", "prefix,start,end", 1, method_has_affix, 0},
    JINJA_ONE("zfill", "width", 1, method_zfill),
    {NULL, NULL, 0, NULL, 0},
};
