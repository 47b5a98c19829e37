/* The tests behind `is`. */
#include <string.h>

#include "base/utf8.h"
#include "text/jinja_library.h"
#include "text/unicode.h"

static bool is_defined(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type != JINJA_UNDEFINED);
    return true;
}

static bool is_undefined(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_UNDEFINED);
    return true;
}

static bool is_none(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_NONE);
    return true;
}

static bool is_true(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_BOOL && self->as.boolean);
    return true;
}

static bool is_false(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_BOOL && !self->as.boolean);
    return true;
}

static bool is_boolean(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_BOOL);
    return true;
}

static bool is_integer(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_INT || self->type == JINJA_BIGINT);
    return true;
}

static bool is_float(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_FLOAT);
    return true;
}

static bool is_number(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type >= JINJA_BOOL && self->type <= JINJA_FLOAT);
    return true;
}

static bool is_string(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_STR);
    return true;
}

static bool is_mapping(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_DICT);
    return true;
}

static bool is_iterable(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    jinja_iter it;
    *out = jinja_make_bool(jinja_iter_init(&it, self));
    return true;
}

/* What has a length and can be subscripted: dicts too, generators and views not. */
static bool is_sequence(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    size_t n;
    bool view = self->type == JINJA_KEYS || self->type == JINJA_VALUES || self->type == JINJA_ITEMS;
    *out = jinja_make_bool(!view && jinja_length(self, &n));
    return true;
}

static bool is_callable(jinja_render *r, const jinja_value *self, const jinja_args *args,
                        const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_MACRO || self->type == JINJA_FUNCTION ||
                           self->type == JINJA_METHOD || self->type == JINJA_JOINER ||
                           self->type == JINJA_LOOP || self->type == JINJA_UNDEFINED);
    return true;
}

/* ---- numbers ---- */

static bool remainder_is(jinja_render *r, const jinja_value *self, int64_t divisor, int64_t wanted,
                         jinja_value *out)
{
    jinja_value by = jinja_make_int(divisor), rest;
    double d;
    if (!jinja_binary(r, OP_MOD, self, &by, &rest)) {
        return false;
    }
    *out = jinja_make_bool(jinja_as_double(&rest, &d) && d == (double)wanted);
    return true;
}

static bool is_odd(jinja_render *r, const jinja_value *self, const jinja_args *args,
                   const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return remainder_is(r, self, 2, 1, out);
}

static bool is_even(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return remainder_is(r, self, 2, 0, out);
}

static bool is_divisible(jinja_render *r, const jinja_value *self, const jinja_args *args,
                         const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    int64_t by;
    return jinja_arg_int(r, v[0], 1, &by) && remainder_is(r, self, by, 0, out);
}

/* ---- relations ---- */

static bool relate(jinja_render *r, int op, const jinja_value *self, const jinja_value *other,
                   jinja_value *out)
{
    bool holds = false;
    bool ok = jinja_relation(r, op, self, other, &holds);
    *out = jinja_make_bool(holds);
    return ok;
}

static bool is_equal(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_EQ, self, v[0], out);
}

static bool is_unequal(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_NE, self, v[0], out);
}

static bool is_less(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_LT, self, v[0], out);
}

static bool is_less_or_equal(jinja_render *r, const jinja_value *self, const jinja_args *args,
                             const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_LE, self, v[0], out);
}

static bool is_greater(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_GT, self, v[0], out);
}

static bool is_greater_or_equal(jinja_render *r, const jinja_value *self, const jinja_args *args,
                                const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_GE, self, v[0], out);
}

static bool is_in(jinja_render *r, const jinja_value *self, const jinja_args *args,
                  const jinja_value *const *v, jinja_value *out)
{
    (void)args;
    return relate(r, OP_IN, self, v[0], out);
}

/* The same object: for values without identity here, equal values of one type. */
static bool is_same(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args;
    bool shared = self->type >= JINJA_LIST;
    *out = jinja_make_bool(self->type == v[0]->type &&
                           (shared ? self->as.seq == v[0]->as.seq : jinja_equal(self, v[0])));
    return true;
}

/* ---- text and names ---- */

static bool ask_method(jinja_render *r, const jinja_value *self, const char *name, jinja_value *out)
{
    jinja_value text;
    jinja_args none = {0};
    return jinja_to_str(r, self, &text) &&
           jinja_invoke(r, jinja_find_method(&text, name, strlen(name)), &text, &none, out);
}

static bool is_upper(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return ask_method(r, self, "isupper", out);
}

static bool is_lower(jinja_render *r, const jinja_value *self, const jinja_args *args,
                     const jinja_value *const *v, jinja_value *out)
{
    (void)args, (void)v;
    return ask_method(r, self, "islower", out);
}

static bool is_escaped(jinja_render *r, const jinja_value *self, const jinja_args *args,
                       const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    *out = jinja_make_bool(self->type == JINJA_STR && self->markup);
    return true;
}

/* Whether a name is that of a filter or test. */
static bool is_known(const jinja_value *self, const jinja_callable *(*find)(const char *name),
                     jinja_value *out)
{
    enum { NAME_MAX_LEN = 40 };
    char name[NAME_MAX_LEN + 1] = "";
    if (self->type == JINJA_STR && self->len <= NAME_MAX_LEN) {
        memcpy(name, self->as.text, self->len);
        name[self->len] = '\0';
    }
    *out = jinja_make_bool(name[0] && find(name));
    return true;
}

static bool is_filter(jinja_render *r, const jinja_value *self, const jinja_args *args,
                      const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return is_known(self, jinja_find_filter, out);
}

static bool is_test(jinja_render *r, const jinja_value *self, const jinja_args *args,
                    const jinja_value *const *v, jinja_value *out)
{
    (void)r, (void)args, (void)v;
    return is_known(self, jinja_find_test, out);
}

const jinja_callable JINJA_TESTS[] = {
    {"boolean", "", 0, is_boolean},
    {"callable", "", 0, is_callable},
    {"defined", "", 0, is_defined},
    {"divisibleby", "num", 1, is_divisible},
    {"eq", "other", 1, is_equal},
    {"equalto", "other", 1, is_equal},
    {"==", "other", 1, is_equal},
    {"escaped", "", 0, is_escaped},
    {"even", "", 0, is_even},
    {"false", "", 0, is_false},
    {"filter", "", 0, is_filter},
    {"float", "", 0, is_float},
    {"ge", "other", 1, is_greater_or_equal},
    {">=", "other", 1, is_greater_or_equal},
    {"gt", "other", 1, is_greater},
    {"greaterthan", "other", 1, is_greater},
    {">", "other", 1, is_greater},
    {"in", "seq", 1, is_in},
    {"integer", "", 0, is_integer},
    {"iterable", "", 0, is_iterable},
    {"le", "other", 1, is_less_or_equal},
    {"<=", "other", 1, is_less_or_equal},
    {"lower", "", 0, is_lower},
    {"lt", "other", 1, is_less},
    {"lessthan", "other", 1, is_less},
    {"<", "other", 1, is_less},
    {"mapping", "", 0, is_mapping},
    {"ne", "other", 1, is_unequal},
    {"!=", "other", 1, is_unequal},
    {"none", "", 0, is_none},
    {"number", "", 0, is_number},
    {"odd", "", 0, is_odd},
    {"sameas", "other", 1, is_same},
    {"sequence", "", 0, is_sequence},
    {"string", "", 0, is_string},
    {"test", "", 0, is_test},
    {"true", "", 0, is_true},
    {"undefined", "", 0, is_undefined},
    {"upper", "", 0, is_upper},
    {NULL, NULL, 0, NULL},
};
