#include <string.h>

#include "base/utf8.h"
#include "text/jinja/jinja_library.h"
#include "text/jinja/jinja_render.h"

/* SEEN: markers whose origin is remembered within one result. */
enum { SEEN = 64, SEARCH_DEPTH = 8 };

typedef struct seen_marker {
    const char *text;
    size_t len;
    bool is_known;
} seen_marker;

jinja_value jinja_join(jinja_render *r, const jinja_value *a, const jinja_value *b)
{
    const bool a_own = a->own || a->len == 0, b_own = b->own || b->len == 0;
    jinja_value left = *a;
    if (r->guard && !(a_own && b_own) &&
        guard_spans(r->guard, a->as.text, a->len, b_own ? a->own_tail : 0, b->as.text, b->len)) {
        const jinja_value mark = jinja_borrow(GUARD_CHAR, GUARD_LEN);
        left = jinja_concat(&r->m, a, &mark);
    }
    jinja_value joined = jinja_concat(&r->m, &left, b);
    const size_t tail = b_own ? b->len + (a_own ? a->len : a->own_tail) : b->own_tail;
    joined.own = a_own && b_own;
    joined.own_tail = (uint16_t)(tail < UINT16_MAX ? tail : UINT16_MAX);
    return joined;
}

/* True if v is text of the template's own, or no text at all. */
static bool is_own(const jinja_value *v)
{
    switch (v->type) {
    case JINJA_STR:
        return v->own || v->len == 0;
    case JINJA_NONE:
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_FLOAT:
    case JINJA_UNDEFINED:
        return true;
    default:
        return false;
    }
}

/* True if a string in v has the marker whole. */
static bool holds(jinja_render *r, const jinja_value *v, const char *marker, size_t len, int depth)
{
    if (v->type == JINJA_STR) {
        return jinja_work(r, v->len) && jinja_find_text(v->as.text, v->len, marker, len);
    }
    const bool is_seq = v->type == JINJA_LIST || v->type == JINJA_TUPLE || v->type == JINJA_GENERATOR;
    const bool is_map =
        v->type == JINJA_DICT || v->type == JINJA_KEYS || v->type == JINJA_VALUES || v->type == JINJA_ITEMS;
    if (depth >= SEARCH_DEPTH) {
        return false;
    }
    for (size_t i = 0; is_seq && i < v->as.seq->len; i++) {
        if (holds(r, &v->as.seq->items[i], marker, len, depth + 1)) {
            return true;
        }
    }
    for (size_t i = 0; is_map && i < v->as.map->len; i++) {
        if (holds(r, &v->as.map->entries[i].key, marker, len, depth + 1) ||
            holds(r, &v->as.map->entries[i].value, marker, len, depth + 1)) {
            return true;
        }
    }
    return false;
}

static bool is_in_any(jinja_render *r, const jinja_value *self, const jinja_args *args, const char *marker,
                      size_t len)
{
    bool found = self && holds(r, self, marker, len, 0);
    for (size_t i = 0; !found && args && i < args->n_pos; i++) {
        found = holds(r, &args->pos[i], marker, len, 0);
    }
    for (size_t i = 0; !found && args && args->named && i < args->named->len; i++) {
        found = holds(r, &args->named->entries[i].value, marker, len, 0);
    }
    return found;
}

static bool is_known(jinja_render *r, seen_marker *seen, size_t *n_seen, const jinja_value *self,
                     const jinja_args *args, const char *marker, size_t len)
{
    for (size_t i = 0; i < *n_seen && i < SEEN; i++) {
        if (seen[i].len == len && memcmp(seen[i].text, marker, len) == 0) {
            return seen[i].is_known;
        }
    }
    const seen_marker s = {marker, len, is_in_any(r, self, args, marker, len)};
    seen[(*n_seen)++ % SEEN] = s;
    return s.is_known;
}

static bool break_new_markers(jinja_render *r, const jinja_value *self, const jinja_args *args,
                              jinja_value *out)
{
    seen_marker seen[SEEN];
    size_t n_seen = 0, done = 0;
    bytes text;
    jinja_begin_text(r, &text);
    for (size_t i = 0; (i = guard_next(r->guard, out->as.text, i, out->len)) < out->len && !r->err; i++) {
        const size_t n = guard_match(r->guard, out->as.text + i, out->len - i);
        if (n > 0 && !is_known(r, seen, &n_seen, self, args, out->as.text + i, n)) {
            uint32_t c;
            const size_t after_first = i + utf8_decode(out->as.text + i, out->len - i, &c);
            bytes_append(&text, out->as.text + done, after_first - done);
            bytes_append(&text, GUARD_CHAR, GUARD_LEN);
            done = after_first;
        }
    }
    if (done == 0) {
        bytes_deinit(&text);
        return !r->err;
    }
    bytes_append(&text, out->as.text + done, out->len - done);
    return jinja_finish_text(r, &text, out);
}

bool jinja_guard_result(jinja_render *r, const jinja_value *self, const jinja_args *args, jinja_value *out)
{
    if (!r->guard || out->type != JINJA_STR) {
        return true;
    }
    bool own = !self || is_own(self);
    for (size_t i = 0; own && args && i < args->n_pos; i++) {
        own = is_own(&args->pos[i]);
    }
    for (size_t i = 0; own && args && args->named && i < args->named->len; i++) {
        own = is_own(&args->named->entries[i].value);
    }
    if (!own && (!jinja_work(r, out->len) || !break_new_markers(r, self, args, out))) {
        return false;
    }
    out->own = own;
    out->own_tail = 0;
    return true;
}
