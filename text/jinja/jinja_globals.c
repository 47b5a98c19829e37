/* Global functions, and the methods of dicts, lists, loops and cyclers. */
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "text/jinja/jinja_library.h"

/* ---- functions ---- */

static bool global_range(const jinja_frame *f, jinja_value *out)
{
    int64_t first, second, step, n = 0;
    if (!jinja_arg_int(f->r, f->v[0], 0, &first) || !jinja_arg_int(f->r, f->v[1], 0, &second) ||
        !jinja_arg_int(f->r, f->v[2], 1, &step)) {
        return false;
    }
    int64_t start = f->v[1] ? first : 0, stop = f->v[1] ? second : first, distance;
    if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(stop, start, &distance)) {
        return jinja_fail(f->r, "range() arg 3 must not be zero");
    }
    if ((step > 0 && distance > 0) || (step < 0 && distance < 0)) {
        n = step > 0 ? (distance - 1) / step + 1 : (distance + 1) / step + 1;
    }
    if (n > JINJA_MAX_RANGE) {
        return jinja_fail(f->r, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                          JINJA_MAX_RANGE);
    }
    *out = jinja_new_range(&f->r->m, start, step, (size_t)n);
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
        if (!jinja_walk(r, &it, &from)) {
            return false;
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
    for (size_t i = 0; args->named && i < args->named->len; i++) {
        jinja_map_set(&r->m, map, args->named->entries[i].key, args->named->entries[i].value);
    }
    return jinja_check_memory(r);
}

/* dict and namespace: the mode is the type. */
static bool global_map(const jinja_frame *f, jinja_value *out)
{
    *out = jinja_new_map(&f->r->m, (jinja_type)f->mode);
    return fill_map(f->r, out->as.map, f->args);
}

/* The positional arguments as a sequence. */
static jinja_value all_positional(const jinja_frame *f, jinja_type type)
{
    jinja_value seq = jinja_new_seq(&f->r->m, type, f->args->n_pos);
    jinja_push_all(&f->r->m, seq.as.seq, f->args->pos, f->args->n_pos);
    return seq;
}

static bool global_cycler(const jinja_frame *f, jinja_value *out)
{
    if (f->args->n_pos == 0) {
        return jinja_fail(f->r, "at least one item has to be provided");
    }
    *out = all_positional(f, JINJA_CYCLER);
    return jinja_check_memory(f->r);
}

static bool global_joiner(const jinja_frame *f, jinja_value *out)
{
    *out = jinja_new_seq(&f->r->m, JINJA_JOINER, 1);
    jinja_push(&f->r->m, out->as.seq, f->v[0] ? *f->v[0] : jinja_borrow(", ", 2));
    return true;
}

/* The template's own error: the text is what the sender of the chat shall read. */
static bool global_raise(const jinja_frame *f, jinja_value *out)
{
    (void)out;
    jinja_value text;
    if (!jinja_to_str(f->r, f->v[0], &text)) {
        return false;
    }
    int len = (int)(text.len < ERR_TEXT_MAX ? text.len : ERR_TEXT_MAX);
    f->r->err = f->r->err ? f->r->err : err_set(f->r->detail, ERR_INVALID, "%.*s", len, text.as.text);
    return false;
}

static bool global_strftime_now(const jinja_frame *f, jinja_value *out)
{
    enum { TEXT_LEN = 256 };
    char format[TEXT_LEN], text[TEXT_LEN * 4];
    struct tm tm;
    time_t now = (time_t)f->r->now;
    jinja_value given;
    if (!jinja_arg_str(f->r, f->v[0], "", &given)) {
        return false;
    }
    if (given.len >= sizeof format || !localtime_r(&now, &tm)) {
        return jinja_fail(f->r, "the format of the date is too long");
    }
    memcpy(format, given.as.text, given.len);
    format[given.len] = '\0';
    size_t n = format[0] ? strftime(text, sizeof text, format, &tm) : 0;
    *out = jinja_text(&f->r->m, text, n);
    return true;
}

const jinja_callable JINJA_GLOBALS[] = {
    JINJA_ONE("cycler", NULL, 0, global_cycler),
    {"dict", NULL, 0, global_map, JINJA_DICT},
    JINJA_ONE("joiner", "sep", 0, global_joiner),
    {"namespace", NULL, 0, global_map, JINJA_NAMESPACE},
    JINJA_ONE("raise_exception", "message", 1, global_raise),
    JINJA_ONE("range", "start,stop,step", 1, global_range),
    JINJA_ONE("strftime_now", "format", 1, global_strftime_now),
    {NULL, NULL, 0, NULL, 0},
};

/* ---- methods of dicts ---- */

static bool dict_get(const jinja_frame *f, jinja_value *out)
{
    if (!jinja_hashable(f->v[0])) {
        return jinja_fail(f->r, "unhashable type: '%s'", jinja_type_name(f->v[0]));
    }
    const jinja_value *found = jinja_map_get(f->self->as.map, f->v[0]);
    *out = found ? *found : f->v[1] ? *f->v[1] : jinja_make_none();
    return true;
}

/* items, keys and values: the mode is the type of the view. */
static bool dict_view(const jinja_frame *f, jinja_value *out)
{
    *out = *f->self;
    out->type = (jinja_type)f->mode;
    return true;
}

/* Nothing changes a dict or a list, so a copy may be the thing itself. */
static bool copy_self(const jinja_frame *f, jinja_value *out)
{
    *out = *f->self;
    return true;
}

/* ---- methods of lists and tuples ---- */

static bool seq_count(const jinja_frame *f, jinja_value *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < f->self->as.seq->len; i++) {
        n += jinja_equal(&f->self->as.seq->items[i], f->v[0]);
    }
    *out = jinja_make_int(n);
    return jinja_work(f->r, f->self->as.seq->len * sizeof *f->self);
}

static bool seq_index(const jinja_frame *f, jinja_value *out)
{
    for (size_t i = 0; i < f->self->as.seq->len; i++) {
        if (jinja_equal(&f->self->as.seq->items[i], f->v[0])) {
            *out = jinja_make_int((int64_t)i);
            return jinja_work(f->r, i * sizeof *f->self);
        }
    }
    return jinja_fail(f->r, "the value is not in the list");
}

/* ---- methods of loops and cyclers ---- */

static bool loop_cycle(const jinja_frame *f, jinja_value *out)
{
    if (f->args->n_pos == 0) {
        return jinja_fail(f->r, "no items for cycling given");
    }
    *out = f->args->pos[f->self->as.loop->i % f->args->n_pos];
    return true;
}

static bool loop_changed(const jinja_frame *f, jinja_value *out)
{
    jinja_value now = all_positional(f, JINJA_TUPLE);
    *out = jinja_make_bool(!jinja_equal(&now, &f->self->as.loop->changed));
    f->self->as.loop->changed = now;
    return jinja_check_memory(f->r);
}

static bool cycler_next(const jinja_frame *f, jinja_value *out)
{
    jinja_seq *seq = f->self->as.seq;
    *out = seq->items[seq->pos];
    seq->pos = (seq->pos + 1) % seq->len;
    return true;
}

static bool cycler_reset(const jinja_frame *f, jinja_value *out)
{
    f->self->as.seq->pos = 0;
    *out = jinja_make_none();
    return true;
}

typedef struct object_method {
    jinja_type type;
    jinja_callable method;
} object_method;

static const object_method OBJECT_METHODS[] = {
    {JINJA_DICT, JINJA_ONE("get", "key,default", 1, dict_get)},
    {JINJA_DICT, {"items", "", 0, dict_view, JINJA_ITEMS}},
    {JINJA_DICT, {"keys", "", 0, dict_view, JINJA_KEYS}},
    {JINJA_DICT, {"values", "", 0, dict_view, JINJA_VALUES}},
    {JINJA_DICT, JINJA_ONE("copy", "", 0, copy_self)},
    {JINJA_LIST, JINJA_ONE("count", "value", 1, seq_count)},
    {JINJA_LIST, JINJA_ONE("index", "value", 1, seq_index)},
    {JINJA_LIST, JINJA_ONE("copy", "", 0, copy_self)},
    {JINJA_TUPLE, JINJA_ONE("count", "value", 1, seq_count)},
    {JINJA_TUPLE, JINJA_ONE("index", "value", 1, seq_index)},
    {JINJA_LOOP, JINJA_ONE("cycle", NULL, 0, loop_cycle)},
    {JINJA_LOOP, JINJA_ONE("changed", NULL, 0, loop_changed)},
    {JINJA_CYCLER, JINJA_ONE("next", "", 0, cycler_next)},
    {JINJA_CYCLER, JINJA_ONE("reset", "", 0, cycler_reset)},
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
