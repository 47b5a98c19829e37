#include "text/jinja/jinja_render.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "text/jinja/jinja_library.h"

static const char *const OP_TEXTS[] = {
    [OP_ADD] = "+",       [OP_SUB] = "-", [OP_MUL] = "*",           [OP_DIV] = "/",
    [OP_FLOORDIV] = "//", [OP_MOD] = "%", [OP_POW] = "** or pow()", [OP_EQ] = "==",
    [OP_NE] = "!=",       [OP_LT] = "<",  [OP_LE] = "<=",           [OP_GT] = ">",
    [OP_GE] = ">=",       [OP_IN] = "in", [OP_NOT_IN] = "not in",
};

static bool fail_operands(jinja_render *r, int op, const jinja_value *a, const jinja_value *b)
{
    return jinja_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", OP_TEXTS[op],
                      jinja_type_name(a), jinja_type_name(b));
}

static bool too_large(jinja_render *r)
{
    return jinja_fail(r, "a number is too large");
}

/* ---- numbers ---- */

/* a ** b by squaring, for b >= 0. */
static bool int_power(int64_t a, int64_t b, int64_t *out)
{
    int64_t result = 1;
    while (b > 0) {
        if ((b & 1) && __builtin_mul_overflow(result, a, &result)) {
            return false;
        }
        b >>= 1;
        if (b > 0 && __builtin_mul_overflow(a, a, &a)) {
            return false;
        }
    }
    *out = result;
    return true;
}

/* Quotient rounded down and the remainder with the divisor's sign. */
static bool int_divide(jinja_render *r, int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    if (b == 0) {
        return jinja_fail(r, "integer division or modulo by zero");
    }
    if (b == -1) {
        *remainder = 0;
        return !__builtin_sub_overflow((int64_t)0, a, quotient);
    }
    *quotient = a / b;
    *remainder = a % b;
    if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
        --*quotient;
        *remainder += b;
    }
    return true;
}

static bool int_binary(jinja_render *r, int op, int64_t a, int64_t b, jinja_value *out)
{
    int64_t i = 0, other;
    bool ok = true;
    switch (op) {
    case OP_ADD:
        ok = !__builtin_add_overflow(a, b, &i);
        break;
    case OP_SUB:
        ok = !__builtin_sub_overflow(a, b, &i);
        break;
    case OP_MUL:
        ok = !__builtin_mul_overflow(a, b, &i);
        break;
    case OP_FLOORDIV:
        ok = int_divide(r, a, b, &i, &other);
        break;
    case OP_MOD:
        ok = int_divide(r, a, b, &other, &i);
        break;
    case OP_POW:
        if (b < 0) {
            *out = jinja_make_float(pow((double)a, (double)b));
            return a == 0 ? jinja_fail(r, "0.0 cannot be raised to a negative power") : true;
        }
        ok = int_power(a, b, &i);
        break;
    default:
        if (b == 0) {
            return jinja_fail(r, "division by zero");
        }
        *out = jinja_make_float((double)a / (double)b);
        return true;
    }
    *out = jinja_make_int(i);
    return ok || too_large(r);
}

static bool float_binary(jinja_render *r, int op, double a, double b, jinja_value *out)
{
    double d = 0;
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD)) {
        return jinja_fail(r, "float division by zero");
    }
    switch (op) {
    case OP_ADD:
        d = a + b;
        break;
    case OP_SUB:
        d = a - b;
        break;
    case OP_MUL:
        d = a * b;
        break;
    case OP_DIV:
        d = a / b;
        break;
    case OP_FLOORDIV:
        d = floor(a / b);
        break;
    case OP_MOD:
        d = fmod(a, b);
        d = d == 0 ? copysign(0, b) : (d < 0) != (b < 0) ? d + b : d;
        break;
    default:
        if (a == 0 && b < 0) {
            return jinja_fail(r, "0.0 cannot be raised to a negative power");
        }
        if (a < 0 && isfinite(b) && floor(b) != b) {
            return jinja_fail(r, "a negative number cannot be raised to a fractional power");
        }
        d = pow(a, b);
        if (isinf(d) && isfinite(a) && isfinite(b)) {
            return too_large(r);
        }
        break;
    }
    *out = jinja_make_float(d);
    return true;
}

/* ---- strings and lists ---- */

static bool is_repeatable(const jinja_value *v)
{
    return v->type == JINJA_STR || jinja_is_seq(v);
}

static bool repeat(jinja_render *r, const jinja_value *v, int64_t times, jinja_value *out)
{
    size_t n = times > 0 ? (size_t)times : 0;
    size_t unit = v->type == JINJA_STR ? v->len : v->as.seq->len * sizeof(jinja_value), total;
    if (__builtin_mul_overflow(unit, n, &total) || total > LIMIT_RENDERED_BYTES) {
        return jinja_fail(r, "a repeated value is too long");
    }
    if (!jinja_work(r, total)) {
        return false;
    }
    if (v->type == JINJA_STR) {
        char *text = total ? jinja_alloc(&r->m, total) : NULL;
        for (size_t i = 0; text && i < n; i++) {
            memcpy(text + i * v->len, v->as.text, v->len);
        }
        *out = jinja_borrow(text ? text : "", text ? total : 0);
        return jinja_check_memory(r);
    }
    *out = jinja_new_seq(&r->m, v->type, total / sizeof(jinja_value));
    for (size_t i = 0; i < n && !r->m.failed; i++) {
        jinja_push_all(&r->m, out->as.seq, v->as.seq->items, v->as.seq->len);
    }
    return jinja_check_memory(r);
}

static bool add_lists(jinja_render *r, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    *out = jinja_new_seq(&r->m, a->type, a->as.seq->len + b->as.seq->len);
    jinja_push_all(&r->m, out->as.seq, a->as.seq->items, a->as.seq->len);
    jinja_push_all(&r->m, out->as.seq, b->as.seq->items, b->as.seq->len);
    return jinja_work(r, out->as.seq->len * sizeof(jinja_value));
}

/* Text made safe by a filter escapes what is added to it. */
static bool add_strings(jinja_render *r, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    jinja_value left = *a, right = *b;
    bool markup = a->markup || b->markup;
    if (markup &&
        ((!a->markup && !jinja_escape(r, a, &left)) || (!b->markup && !jinja_escape(r, b, &right)))) {
        return false;
    }
    *out = jinja_join(r, &left, &right);
    out->markup = markup;
    return jinja_work(r, right.len);
}

static bool add(jinja_render *r, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    if (a->type == JINJA_STR && b->type == JINJA_STR) {
        return add_strings(r, a, b, out);
    }
    if (jinja_is_seq(a) && a->type == b->type) {
        return add_lists(r, a, b, out);
    }
    if (is_repeatable(a)) {
        return jinja_fail(r, "can only concatenate %s (not \"%s\") to %s", jinja_type_name(a),
                          jinja_type_name(b), jinja_type_name(a));
    }
    return fail_operands(r, OP_ADD, a, b);
}

/* text % value or text % (values). */
static bool percent(jinja_render *r, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    jinja_value one = *b;
    jinja_args args = {.pos = &one, .n_pos = 1};
    if (b->type == JINJA_TUPLE) {
        args.pos = b->as.seq->items;
        args.n_pos = b->as.seq->len;
    }
    return jinja_percent(r, a, &args, out);
}

bool jinja_binary(jinja_render *r, int op, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    int64_t i, k;
    double x, y;
    if (op == OP_MOD && a->type == JINJA_STR) {
        return percent(r, a, b, out);
    }
    if (!jinja_defined(r, a) || !jinja_defined(r, b)) {
        return false;
    }
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k)) {
        return int_binary(r, op, i, k, out);
    }
    if (a->type == JINJA_BIGINT || b->type == JINJA_BIGINT) {
        return too_large(r);
    }
    if (jinja_as_double(a, &x) && jinja_as_double(b, &y)) {
        return float_binary(r, op, x, y, out);
    }
    if (op == OP_ADD) {
        return add(r, a, b, out);
    }
    if (op == OP_MUL && is_repeatable(a) && jinja_as_int(b, &k)) {
        return repeat(r, a, k, out);
    }
    if (op == OP_MUL && is_repeatable(b) && jinja_as_int(a, &i)) {
        return repeat(r, b, i, out);
    }
    return fail_operands(r, op, a, b);
}

/* ---- comparisons ---- */

static bool is_in_items(jinja_render *r, const jinja_value *item, const jinja_value *all, bool *out)
{
    jinja_iter it;
    jinja_value other;
    if (!jinja_iter_init(&it, all)) {
        return jinja_fail(r, "argument of type '%s' is not iterable", jinja_type_name(all));
    }
    *out = false;
    while (!*out && jinja_iter_next(&r->m, &it, &other)) {
        *out = jinja_equal(item, &other);
        if (!jinja_work(r, sizeof other)) {
            return false;
        }
    }
    return true;
}

static bool is_in(jinja_render *r, const jinja_value *item, const jinja_value *all, bool *out)
{
    if (all->type == JINJA_STR) {
        if (item->type != JINJA_STR) {
            return jinja_defined(r, item) &&
                   jinja_fail(r, "'in <string>' requires string as left operand, not %s",
                              jinja_type_name(item));
        }
        *out = jinja_find_text(all->as.text, all->len, item->as.text, item->len) != NULL;
        return jinja_work(r, all->len);
    }
    if (all->type == JINJA_DICT || all->type == JINJA_KEYS) {
        if (!jinja_hashable(item)) {
            return jinja_fail(r, "unhashable type: '%s'", jinja_type_name(item));
        }
        *out = jinja_map_get(all->as.map, item) != NULL;
        return true;
    }
    return is_in_items(r, item, all, out);
}

bool jinja_relation(jinja_render *r, int op, const jinja_value *a, const jinja_value *b, bool *out)
{
    int order;
    if (op == OP_EQ || op == OP_NE) {
        *out = jinja_equal(a, b) == (op == OP_EQ);
        return jinja_work(r, a->type == JINJA_STR ? a->len : 0);
    }
    if (op == OP_IN || op == OP_NOT_IN) {
        bool ok = is_in(r, a, b, out);
        *out = *out == (op == OP_IN);
        return ok;
    }
    if (!jinja_defined(r, a) || !jinja_defined(r, b)) {
        return false;
    }
    if (!jinja_compare(a, b, &order)) {
        return jinja_fail(r, "'%s' not supported between instances of '%s' and '%s'", OP_TEXTS[op],
                          jinja_type_name(a), jinja_type_name(b));
    }
    bool ordered = order <= 1;
    *out = ordered && (op == OP_LT   ? order < 0
                       : op == OP_LE ? order <= 0
                       : op == OP_GT ? order > 0
                                     : order >= 0);
    return true;
}
