/* The tests behind `is`. */
#include <string.h>

#include "base/compiler.h"
#include "text/jinja/jinja_library.h"

/* ---- types ---- */

#define TYPE_BIT(type) (1 << (type))

enum {
    IS_DEFINED = ~TYPE_BIT(JINJA_UNDEFINED),
    IS_INTEGER = TYPE_BIT(JINJA_INT) | TYPE_BIT(JINJA_BIGINT),
    IS_NUMBER = IS_INTEGER | TYPE_BIT(JINJA_BOOL) | TYPE_BIT(JINJA_FLOAT),
    IS_CALLABLE = TYPE_BIT(JINJA_MACRO) | TYPE_BIT(JINJA_FUNCTION) | TYPE_BIT(JINJA_METHOD) |
                  TYPE_BIT(JINJA_JOINER) | TYPE_BIT(JINJA_LOOP) | TYPE_BIT(JINJA_UNDEFINED),
    IS_VIEW = TYPE_BIT(JINJA_KEYS) | TYPE_BIT(JINJA_VALUES) | TYPE_BIT(JINJA_ITEMS),
};

static bool has_type(const jinja_value *v, int types)
{
    return (types & TYPE_BIT(v->type)) != 0;
}

/* One of the types of the mode. */
static bool is_type(const jinja_frame *f, jinja_value *out)
{
    *out = jinja_make_bool(has_type(f->self, f->mode));
    return true;
}

/* The bool of the mode. */
static bool is_bool(const jinja_frame *f, jinja_value *out)
{
    *out = jinja_make_bool(f->self->type == JINJA_BOOL && f->self->as.boolean == (f->mode != 0));
    return true;
}

static bool is_iterable(const jinja_frame *f, jinja_value *out)
{
    jinja_iter it;
    *out = jinja_make_bool(jinja_iter_init(&it, f->self));
    return true;
}

/* What has a length and can be subscripted: dicts too, generators and views not. */
static bool is_sequence(const jinja_frame *f, jinja_value *out)
{
    size_t n;
    *out = jinja_make_bool(!has_type(f->self, IS_VIEW) && jinja_length(f->self, &n));
    return true;
}

static bool is_escaped(const jinja_frame *f, jinja_value *out)
{
    *out = jinja_make_bool(f->self->type == JINJA_STR && f->self->markup);
    return true;
}

/* ---- numbers ---- */

static bool remainder_is(jinja_render *r, const jinja_value *v, int64_t divisor, int64_t wanted,
                         jinja_value *out)
{
    jinja_value by = jinja_make_int(divisor), rest;
    double d;
    if (!jinja_binary(r, OP_MOD, v, &by, &rest)) {
        return false;
    }
    *out = jinja_make_bool(jinja_as_double(&rest, &d) && d == (double)wanted);
    return true;
}

/* even (mode 0) and odd (mode 1). */
static bool is_even_or_odd(const jinja_frame *f, jinja_value *out)
{
    return remainder_is(f->r, f->self, 2, f->mode, out);
}

static bool is_divisible(const jinja_frame *f, jinja_value *out)
{
    int64_t by;
    return jinja_arg_int(f->r, f->v[0], 1, &by) && remainder_is(f->r, f->self, by, 0, out);
}

/* ---- relations ---- */

/* The operator of the mode. */
static bool is_related(const jinja_frame *f, jinja_value *out)
{
    bool holds = false;
    bool ok = jinja_relation(f->r, f->mode, f->self, f->v[0], &holds);
    *out = jinja_make_bool(holds);
    return ok;
}

/* The same object: for values without identity here, equal values of one type. */
static bool is_same(const jinja_frame *f, jinja_value *out)
{
    const jinja_value *other = f->v[0];
    bool shared = f->self->type >= JINJA_LIST;
    *out = jinja_make_bool(f->self->type == other->type &&
                           (shared ? f->self->as.seq == other->as.seq : jinja_equal(f->self, other)));
    return true;
}

/* ---- text and names ---- */

/* The method of the mode, asked of the value's text. */
static bool is_in_case(const jinja_frame *f, jinja_value *out)
{
    jinja_args none = {0};
    return jinja_call_str_method(f->r, f->self, f->mode ? "isupper" : "islower", &none, out);
}

/* Whether a value is the name of a filter (mode 0) or of a test (mode 1). */
static bool is_known(const jinja_frame *f, jinja_value *out)
{
    const jinja_value *name = f->self;
    bool found = name->type == JINJA_STR && (f->mode ? jinja_find_test(name->as.text, name->len)
                                                     : jinja_find_filter(name->as.text, name->len));
    *out = jinja_make_bool(found);
    return true;
}

const jinja_callable JINJA_TESTS[] = {
    {"boolean", "", 0, is_type, TYPE_BIT(JINJA_BOOL)},
    {"callable", "", 0, is_type, IS_CALLABLE},
    {"defined", "", 0, is_type, IS_DEFINED},
    JINJA_ONE("divisibleby", "num", 1, is_divisible),
    {"eq", "other", 1, is_related, OP_EQ},
    {"equalto", "other", 1, is_related, OP_EQ},
    {"==", "other", 1, is_related, OP_EQ},
    JINJA_ONE("escaped", "", 0, is_escaped),
    {"even", "", 0, is_even_or_odd, 0},
    {"false", "", 0, is_bool, false},
    {"filter", "", 0, is_known, 0},
    {"float", "", 0, is_type, TYPE_BIT(JINJA_FLOAT)},
    {"ge", "other", 1, is_related, OP_GE},
    {">=", "other", 1, is_related, OP_GE},
    {"gt", "other", 1, is_related, OP_GT},
    {"greaterthan", "other", 1, is_related, OP_GT},
    {">", "other", 1, is_related, OP_GT},
    {"in", "seq", 1, is_related, OP_IN},
    {"integer", "", 0, is_type, IS_INTEGER},
    JINJA_ONE("iterable", "", 0, is_iterable),
    {"le", "other", 1, is_related, OP_LE},
    {"<=", "other", 1, is_related, OP_LE},
    {"lower", "", 0, is_in_case, 0},
    {"lt", "other", 1, is_related, OP_LT},
    {"lessthan", "other", 1, is_related, OP_LT},
    {"<", "other", 1, is_related, OP_LT},
    {"mapping", "", 0, is_type, TYPE_BIT(JINJA_DICT)},
    {"ne", "other", 1, is_related, OP_NE},
    {"!=", "other", 1, is_related, OP_NE},
    {"none", "", 0, is_type, TYPE_BIT(JINJA_NONE)},
    {"number", "", 0, is_type, IS_NUMBER},
    {"odd", "", 0, is_even_or_odd, 1},
    JINJA_ONE("sameas", "other", 1, is_same),
    JINJA_ONE("sequence", "", 0, is_sequence),
    {"string", "", 0, is_type, TYPE_BIT(JINJA_STR)},
    {"test", "", 0, is_known, 1},
    {"true", "", 0, is_bool, true},
    {"undefined", "", 0, is_type, TYPE_BIT(JINJA_UNDEFINED)},
    {"upper", "", 0, is_in_case, 1},
    {NULL, NULL, 0, NULL, 0},
};
