#include "text/jinja/jinja_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/jinja_value.h"

static jinja_value *boxed(arena *a, jinja_value v, bool failed)
{
    jinja_value *box = failed ? NULL : arena_alloc(a, sizeof *box);
    if (box) {
        *box = v;
    }
    return box;
}

jinja_value *jinja_none(arena *a)
{
    return boxed(a, jinja_make_none(), false);
}

jinja_value *jinja_bool(arena *a, bool b)
{
    return boxed(a, jinja_make_bool(b), false);
}

jinja_value *jinja_int(arena *a, int64_t i)
{
    return boxed(a, jinja_make_int(i), false);
}

jinja_value *jinja_str(arena *a, const char *text, size_t len)
{
    jinja_memory m = {.arena = a};
    jinja_value v = jinja_text(&m, text, len);
    return boxed(a, v, m.failed);
}

jinja_value *jinja_own_str(arena *a, const char *text)
{
    jinja_value *v = jinja_str(a, text, strlen(text));
    if (v) {
        v->own = true;
    }
    return v;
}

jinja_value *jinja_list(arena *a)
{
    jinja_memory m = {.arena = a};
    jinja_value v = jinja_new_list(&m);
    return boxed(a, v, m.failed);
}

bool jinja_list_push(arena *a, jinja_value *list, jinja_value *item)
{
    jinja_memory m = {.arena = a};
    if (!list || !item || list->type != JINJA_LIST) {
        return false;
    }
    jinja_push(&m, list->as.seq, *item);
    return !m.failed;
}

jinja_value *jinja_dict(arena *a)
{
    jinja_memory m = {.arena = a};
    jinja_value v = jinja_new_map(&m, JINJA_DICT);
    return boxed(a, v, m.failed);
}

bool jinja_dict_set(arena *a, jinja_value *dict, const char *key, jinja_value *value)
{
    jinja_memory m = {.arena = a};
    if (!dict || !value || dict->type != JINJA_DICT) {
        return false;
    }
    jinja_map_set(&m, dict->as.map, jinja_text(&m, key, strlen(key)), *value);
    return !m.failed;
}

/* A JSON number: without '.' and exponent an integer, however large. */
static jinja_value from_number(jinja_memory *m, const json *v)
{
    const char *text = json_number_text(v);
    if (!text || strpbrk(text, ".eE")) {
        return jinja_make_float(json_num(v, 0));
    }
    errno = 0;
    long long i = strtoll(text, NULL, 10);
    if (errno == 0) {
        return jinja_make_int(i);
    }
    jinja_value big = jinja_text(m, text, strlen(text));
    big.type = JINJA_BIGINT;
    return big;
}

/* The depth is that of the document, which its parser has bounded. */
static jinja_value from_json(jinja_memory *m, const json *v)
{
    jinja_value out = jinja_make_none();
    switch (json_typeof(v)) {
    case JSON_NULL:
        break;
    case JSON_BOOL:
        return jinja_make_bool(json_is_true(v));
    case JSON_NUMBER:
        return from_number(m, v);
    case JSON_STRING:
        return jinja_text(m, json_str(v, ""), strlen(json_str(v, "")));
    case JSON_ARRAY:
        out = jinja_new_list(m);
        for (const json *item = json_child(v); item && !m->failed; item = json_next(item)) {
            jinja_push(m, out.as.seq, from_json(m, item));
        }
        break;
    case JSON_OBJECT:
        out = jinja_new_map(m, JINJA_DICT);
        for (const json *item = json_child(v); item && !m->failed; item = json_next(item)) {
            jinja_value key = jinja_text(m, json_key(item), strlen(json_key(item)));
            jinja_map_set(m, out.as.map, key, from_json(m, item));
        }
        break;
    }
    return out;
}

jinja_value *jinja_from_json(arena *a, const json *v)
{
    jinja_memory m = {.arena = a, .block = 4096};
    jinja_value copy = from_json(&m, v);
    return boxed(a, copy, m.failed);
}
