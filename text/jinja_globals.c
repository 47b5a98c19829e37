/* Global functions, and the methods of dicts, lists, loops and cyclers. */
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "text/jinja_library.h"

/* ---- functions ---- */

static bool global_range(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)args;
    int64_t first, second, step, n = 0;
    if (!jinja_arg_int(r, v[0], 0, &first) || !jinja_arg_int(r, v[1], 0, &second) ||
        !jinja_arg_int(r, v[2], 1, &step)) {
        return false;
    }
    int64_t start = v[1] ? first : 0, stop = v[1] ? second : first, distance;
    if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(stop, start, &distance)) {
        return jinja_fail(r, "range() arg 3 must not be zero");
    }
    if ((step > 0 && distance > 0) || (step < 0 && distance < 0)) {
        n = step > 0 ? (distance - 1) / step + 1 : (distance + 1) / step + 1;
    }
    if (n > JINJA_MAX_RANGE) {
        return jinja_fail(r, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                          JINJA_MAX_RANGE);
    }
    jinja_range *range = jinja_alloc(&r->m, sizeof *range);
    if (!range) {
        return jinja_check_memory(r);
    }
    *range = (jinja_range){start, step, (size_t)n};
    *out = (jinja_value){.type = JINJA_RANGE, .as.range = range};
    return true;
}

/* Entries of a dict, or pairs of an iterable, and the named arguments. */
static bool fill_map(jinja_render *r, jinja_map *map, const jinja_args *args)
{
    jinja_iter it;
    jinja_value item, pair;
    if (args->n_pos > 1) {
        return jinja_fail(r, "dict expected at most 1 argument, got %zu", args->n_pos);
    }
    if (args->n_pos == 1) {
        jinja_value from = args->pos[0];
        from.type = from.type == JINJA_DICT || from.type == JINJA_NAMESPACE ? JINJA_ITEMS : from.type;
        if (!jinja_iter_init(&it, &from)) {
            return jinja_fail(r, "'%s' object is not iterable", jinja_type_name(&from));
        }
        while (jinja_iter_next(&r->m, &it, &item)) {
            if (!jinja_to_list(r, &item, &pair)) {
                return false;
            }
            if (pair.as.seq->len != 2 || !jinja_hashable(&pair.as.seq->items[0])) {
                return jinja_fail(r, "a dict is made of pairs");
            }
            jinja_map_set(&r->m, map, pair.as.seq->items[0], pair.as.seq->items[1]);
        }
    }
    for (size_t i = 0; i < args->n_named; i++) {
        jinja_map_set(&r->m, map, jinja_borrow(args->names[i], strlen(args->names[i])), args->named[i]);
    }
    return jinja_check_memory(r);
}

static bool global_dict(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)v;
    *out = jinja_new_map(&r->m, JINJA_DICT);
    return fill_map(r, out->as.map, args);
}

static bool global_namespace(jinja_render *r, const jinja_value *self, const jinja_args *args,
                             const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)v;
    *out = jinja_new_map(&r->m, JINJA_NAMESPACE);
    return fill_map(r, out->as.map, args);
}

static bool global_cycler(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)v;
    if (args->n_pos == 0) {
        return jinja_fail(r, "at least one item has to be provided");
    }
    *out = jinja_new_seq(&r->m, JINJA_CYCLER, args->n_pos);
    for (size_t i = 0; i < args->n_pos; i++) {
        jinja_push(&r->m, out->as.seq, args->pos[i]);
    }
    return jinja_check_memory(r);
}

static bool global_joiner(jinja_render *r, const jinja_value *self, const jinja_args *args,
                          const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)args;
    *out = jinja_new_seq(&r->m, JINJA_JOINER, 1);
    jinja_push(&r->m, out->as.seq, v[0] ? *v[0] : jinja_borrow(", ", 2));
    return true;
}

/* The template's own error: the text is what the sender of the chat shall read. */
static bool global_raise(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)args, (void)out;
    jinja_value text;
    if (!jinja_to_str(r, v[0], &text)) {
        return false;
    }
    int len = (int)(text.len < ERR_TEXT_MAX ? text.len : ERR_TEXT_MAX);
    r->err = r->err ? r->err : err_set(r->detail, ERR_INVALID, "%.*s", len, text.as.text);
    return false;
}

static bool global_strftime_now(jinja_render *r, const jinja_value *self, const jinja_args *args,
                                const jinja_value *const *v, jinja_value *out)
{
    (void)self, (void)args;
    enum { TEXT_LEN = 256 };
    char format[TEXT_LEN], text[TEXT_LEN * 4];
    struct tm tm;
    time_t now = (time_t)r->now;
    jinja_value given;
    if (!jinja_arg_str(r, v[0], "", &given)) {
        return false;
    }
    if (given.len >= sizeof format || !localtime_r(&now, &tm)) {
        return jinja_fail(r, "the format of the date is too long");
    }
    memcpy(format, given.as.text, given.len);
    format[given.len] = '\0';
    size_t n = format[0] ? strftime(text, sizeof text, format, &tm) : 0;
    *out = jinja_text(&r->m, text, n);
    return true;
}

const jinja_callable JINJA_GLOBALS[] = {
    {"cycler", NULL, 0, global_cycler},
    {"dict", NULL, 0, global_dict},
    {"joiner", "sep", 0, global_joiner},
    {"namespace", NULL, 0, global_namespace},
    {"raise_exception", "message", 1, global_raise},
    {"range", "start,stop,step", 1, global_range},
    {"strftime_now", "format", 1, global_strftime_now},
    {NULL, NULL, 0, NULL},
};

/* ---- methods of dicts ---- */

static bool dict_get(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    if (!jinja_hashable(v[0])) {
        return jinja_fail(r, "unhashable type: '%s'", jinja_type_name(v[0]));
    }
    const jinja_value *found = jinja_map_get(self->as.map, v[0]);
    *out = found ? *found : v[1] ? *v[1] : jinja_make_none();
    return true;
}

static bool dict_view(const jinja_value *self, jinja_type type, jinja_value *out)
{
    *out = *self;
    out->type = type;
    return true;
}

static bool dict_items(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return dict_view(self, JINJA_ITEMS, out);
}

static bool dict_keys(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return dict_view(self, JINJA_KEYS, out);
}

static bool dict_values(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return dict_view(self, JINJA_VALUES, out);
}

/* Nothing changes a dict or a list, so a copy may be the thing itself. */
static bool copy_self(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = *self;
    return true;
}

/* ---- methods of lists and tuples ---- */

static bool seq_count(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    int64_t n = 0;
    for (size_t i = 0; i < self->as.seq->len; i++) {
        n += jinja_equal(&self->as.seq->items[i], v[0]);
    }
    *out = jinja_make_int(n);
    return jinja_work(r, self->as.seq->len * sizeof *self);
}

static bool seq_index(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    for (size_t i = 0; i < self->as.seq->len; i++) {
        if (jinja_equal(&self->as.seq->items[i], v[0])) {
            *out = jinja_make_int((int64_t)i);
            return jinja_work(r, i * sizeof *self);
        }
    }
    return jinja_fail(r, "the value is not in the list");
}

/* ---- methods of loops and cyclers ---- */

static bool loop_cycle(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)v;
    if (args->n_pos == 0) {
        return jinja_fail(r, "no items for cycling given");
    }
    *out = args->pos[self->as.loop->i % args->n_pos];
    return true;
}

static bool loop_changed(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)v;
    jinja_value now = jinja_new_seq(&r->m, JINJA_TUPLE, args->n_pos);
    for (size_t i = 0; i < args->n_pos; i++) {
        jinja_push(&r->m, now.as.seq, args->pos[i]);
    }
    *out = jinja_make_bool(!jinja_equal(&now, &self->as.loop->changed));
    self->as.loop->changed = now;
    return jinja_check_memory(r);
}

static bool cycler_next(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    jinja_seq *seq = self->as.seq;
    *out = seq->items[seq->pos];
    seq->pos = (seq->pos + 1) % seq->len;
    return true;
}

static bool cycler_reset(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    self->as.seq->pos = 0;
    *out = jinja_make_none();
    return true;
}

typedef struct object_method {
    jinja_type type;
    jinja_callable method;
} object_method;

static const object_method OBJECT_METHODS[] = {
    {JINJA_DICT, {"get", "key,default", 1, dict_get}}, {JINJA_DICT, {"items", "", 0, dict_items}},
    {JINJA_DICT, {"keys", "", 0, dict_keys}},          {JINJA_DICT, {"values", "", 0, dict_values}},
    {JINJA_DICT, {"copy", "", 0, copy_self}},          {JINJA_LIST, {"count", "value", 1, seq_count}},
    {JINJA_LIST, {"index", "value", 1, seq_index}},    {JINJA_LIST, {"copy", "", 0, copy_self}},
    {JINJA_TUPLE, {"count", "value", 1, seq_count}},   {JINJA_TUPLE, {"index", "value", 1, seq_index}},
    {JINJA_LOOP, {"cycle", NULL, 0, loop_cycle}},      {JINJA_LOOP, {"changed", NULL, 0, loop_changed}},
    {JINJA_CYCLER, {"next", "", 0, cycler_next}},      {JINJA_CYCLER, {"reset", "", 0, cycler_reset}},
};

const jinja_callable *jinja_find_object_method(const jinja_value *of, const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(OBJECT_METHODS); i++) {
        const object_method *m = &OBJECT_METHODS[i];
        if (m->type == of->type && strlen(m->method.name) == len && memcmp(m->method.name, name, len) == 0) {
            return &m->method;
        }
    }
    return NULL;
}
