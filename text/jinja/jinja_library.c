#include "text/jinja/jinja_library.h"

#include <string.h>

#include "base/limits.h"

static const jinja_callable *find_in(const jinja_callable *table, const char *name, size_t len)
{
    for (; len > 0 && table->name; table++) {
        if (table->name[0] == name[0] && strlen(table->name) == len && memcmp(table->name, name, len) == 0) {
            return table;
        }
    }
    return NULL;
}

const jinja_callable *jinja_find_filter(const char *name, size_t len)
{
    const jinja_callable *c = find_in(JINJA_FILTERS, name, len);
    return c ? c : find_in(JINJA_SEQUENCE_FILTERS, name, len);
}

const jinja_callable *jinja_find_test(const char *name, size_t len)
{
    return find_in(JINJA_TESTS, name, len);
}

const jinja_callable *jinja_find_global(const char *name, size_t len)
{
    return find_in(JINJA_GLOBALS, name, len);
}

const jinja_callable *jinja_find_method(const jinja_value *of, const char *name, size_t len)
{
    if (of->type == JINJA_STR) {
        const jinja_callable *c = find_in(JINJA_STR_METHODS, name, len);
        return c ? c : find_in(JINJA_STR_MORE_METHODS, name, len);
    }
    return jinja_find_object_method(of, name, len);
}

bool jinja_is_unsafe(const jinja_value *of, const char *name, size_t len)
{
    static const char *const of_list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                          "sort",   "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    static const char *const none[] = {NULL};
    const char *const *names = of->type == JINJA_LIST ? of_list : of->type == JINJA_DICT ? of_dict : none;
    for (; *names; names++) {
        if (strlen(*names) == len && memcmp(*names, name, len) == 0) {
            return true;
        }
    }
    return len > 4 && memcmp(name, "__", 2) == 0 && memcmp(name + len - 2, "__", 2) == 0 &&
           of->type != JINJA_DICT;
}

/* Number of the parameter with this name in "old,new,count"; -1 if there is none. */
static int param_index(const char *params, const jinja_value *name)
{
    for (int i = 0;; i++) {
        size_t n = strcspn(params, ",");
        if (n == name->len && memcmp(params, name->as.text, n) == 0) {
            return i;
        }
        if (!params[n]) {
            return -1;
        }
        params += n + 1;
    }
}

static size_t count_params(const char *params)
{
    size_t n = *params != '\0';
    for (; *params; params++) {
        n += *params == ',';
    }
    return n;
}

/* An undefined value that is only looked at does not fail here: each function decides. */
static bool invoke(jinja_render *r, const jinja_callable *c, const jinja_value *self, const jinja_args *args,
                   jinja_value *out)
{
    jinja_frame f = {.r = r, .self = self, .args = args, .mode = c->mode};
    if (self && self->type == JINJA_STR && !jinja_work(r, self->len)) {
        return false;
    }
    if (!c->params) {
        return c->call(&f, out);
    }
    size_t n = count_params(c->params);
    if (args->n_pos > n) {
        return jinja_fail(r, "%s() takes at most %zu argument(s) (%zu given)", c->name, n, args->n_pos);
    }
    for (size_t i = 0; i < args->n_pos; i++) {
        f.v[i] = &args->pos[i];
    }
    for (size_t i = 0; args->named && i < args->named->len; i++) {
        const jinja_entry *e = &args->named->entries[i];
        int k = param_index(c->params, &e->key);
        if (k < 0 || f.v[k]) {
            return jinja_fail(r, "%s() got an unexpected keyword argument '%.*s'", c->name, (int)e->key.len,
                              e->key.as.text);
        }
        f.v[k] = &e->value;
    }
    for (size_t i = 0; i < c->required; i++) {
        if (!f.v[i]) {
            return jinja_fail(r, "%s() is missing %zu required argument(s)", c->name, c->required - i);
        }
    }
    return c->call(&f, out) && jinja_check_memory(r);
}

bool jinja_call_str_method(jinja_render *r, const jinja_value *v, const char *name, const jinja_args *args,
                           jinja_value *out)
{
    jinja_value text;
    return jinja_to_str(r, v, &text) &&
           jinja_invoke(r, jinja_find_method(&text, name, strlen(name)), &text, args, out);
}

bool jinja_invoke(jinja_render *r, const jinja_callable *c, const jinja_value *self, const jinja_args *args,
                  jinja_value *out)
{
    return invoke(r, c, self, args, out) && jinja_guard_result(r, self, args, out);
}

bool jinja_arg_int(jinja_render *r, const jinja_value *v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (!v || jinja_as_int(v, out)) {
        return true;
    }
    return jinja_defined(r, v) &&
           jinja_fail(r, "'%s' object cannot be interpreted as an integer", jinja_type_name(v));
}

bool jinja_arg_str(jinja_render *r, const jinja_value *v, const char *fallback, jinja_value *out)
{
    if (!v) {
        *out = jinja_borrow(fallback, strlen(fallback));
        return true;
    }
    *out = *v;
    if (v->type == JINJA_STR) {
        return true;
    }
    return jinja_defined(r, v) && jinja_fail(r, "expected a string, not '%s'", jinja_type_name(v));
}

bool jinja_arg_truth(const jinja_value *v, bool fallback)
{
    return v ? jinja_truth(v) : fallback;
}

const jinja_value *jinja_named_arg(const jinja_args *args, const char *name, size_t len)
{
    return args->named ? jinja_map_get_text(args->named, name, len) : NULL;
}

void jinja_begin_text(jinja_render *r, bytes *b)
{
    bytes_init(b, r->out->max);
}

bool jinja_finish_text(jinja_render *r, bytes *b, jinja_value *out)
{
    const bool ok = !b->failed && !r->err;
    r->m.no_memory |= b->no_memory;
    r->m.failed |= b->no_memory;
    if (ok) {
        *out = jinja_text(&r->m, bytes_str(b), b->len);
    }
    bytes_deinit(b);
    return ok ? jinja_work(r, out->len) : jinja_check_memory(r) && jinja_fail(r, "a text is too long");
}
