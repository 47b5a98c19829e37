#include "text/jinja/jinja_render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "text/jinja/jinja_format.h"
#include "text/jinja/jinja_library.h"

/* ---- errors and limits ---- */

bool jinja_fail(jinja_render *r, const char *format, ...)
{
    if (r->err) {
        return false;
    }
    char what[ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    r->err = err_set(r->detail, ERR_INVALID, "chat template, line %d: %s", r->line, what);
    return false;
}

bool jinja_fail_undefined(jinja_render *r, const jinja_value *v)
{
    int len = (int)(v->len < 200 ? v->len : 200);
    if (!v->extra.owner) {
        return jinja_fail(r, "'%.*s' is undefined", len, v->as.text);
    }
    if (v->extra.owner == JINJA_MESSAGE) {
        return jinja_fail(r, "%.*s", len, v->as.text);
    }
    return jinja_fail(r, "'%s' has no attribute '%.*s'", v->extra.owner, len, v->as.text);
}

bool jinja_defined(jinja_render *r, const jinja_value *v)
{
    return v->type != JINJA_UNDEFINED || jinja_fail_undefined(r, v);
}

bool jinja_check_memory(jinja_render *r)
{
    if (!r->err && (r->m.failed || r->capture.failed || r->out->failed)) {
        const bool no_memory =
            r->m.no_memory || arena_lacked_memory(r->m.arena) || r->capture.no_memory || r->out->no_memory;
        r->err = err_set(r->detail, no_memory ? ERR_NOMEM : ERR_LIMIT,
                         "the chat does not fit the memory for rendering the chat template");
    }
    return !r->err;
}

bool jinja_work(jinja_render *r, size_t n_bytes)
{
    r->steps += 1 + n_bytes / JINJA_BYTES_A_STEP;
    if (r->steps > JINJA_MAX_STEPS && !r->err) {
        r->err =
            err_set(r->detail, ERR_LIMIT, "chat template, line %d: rendering takes too many steps", r->line);
    }
    return jinja_check_memory(r);
}

bool jinja_to_str(jinja_render *r, const jinja_value *v, jinja_value *out)
{
    if (v->type == JINJA_STR) {
        *out = *v;
        return true;
    }
    const bool own = v->type < JINJA_STR;
    bytes text;
    jinja_begin_text(r, &text);
    if (!jinja_append_str(&text, v)) {
        jinja_fail(r, "a value is nested too deeply to be printed");
    }
    const bool done = jinja_finish_text(r, &text, out);
    out->own = own;
    return done;
}

bool jinja_walk(jinja_render *r, jinja_iter *it, const jinja_value *v)
{
    return jinja_iter_init(it, v) || jinja_fail(r, "'%s' object is not iterable", jinja_type_name(v));
}

bool jinja_to_list(jinja_render *r, const jinja_value *v, jinja_value *out)
{
    jinja_iter it;
    jinja_value item;
    if (!jinja_walk(r, &it, v)) {
        return false;
    }
    jinja_value list = jinja_new_list(&r->m);
    while (jinja_iter_next(&r->m, &it, &item)) {
        jinja_push(&r->m, list.as.seq, item);
        if (!jinja_work(r, sizeof item)) {
            return false;
        }
    }
    *out = list;
    return jinja_check_memory(r);
}

/* ---- names and containers ---- */

static bool eval_name(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    if (n->symbol == r->invite && r->n_captures == 0) {
        r->history_end = r->out->len;
    }
    for (const jinja_scope *s = r->scope; s; s = s->parent) {
        for (size_t i = s->len; i-- > 0;) {
            if (s->vars[i].symbol == n->symbol) {
                *out = s->vars[i].value;
                return true;
            }
        }
    }
    if (r->root_set[n->symbol]) {
        *out = r->root[n->symbol];
        return true;
    }
    const jinja_symbol *s = &r->program->symbols[n->symbol];
    *out = jinja_undefined(s->name, s->len, NULL);
    return true;
}

static bool eval_sequence(jinja_render *r, const jinja_node *n, jinja_type type, jinja_value *out)
{
    jinja_value seq = jinja_new_seq(&r->m, type, n->n_items);
    for (size_t i = 0; i < n->n_items; i++) {
        jinja_value item;
        if (!jinja_eval(r, n->items[i], &item)) {
            return false;
        }
        jinja_push(&r->m, seq.as.seq, item);
    }
    *out = seq;
    return jinja_check_memory(r);
}

static bool eval_dict(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value dict = jinja_new_map(&r->m, JINJA_DICT);
    for (size_t i = 0; i + 1 < n->n_items; i += 2) {
        jinja_value key, value;
        if (!jinja_eval(r, n->items[i], &key) || !jinja_eval(r, n->items[i + 1], &value)) {
            return false;
        }
        if (!jinja_hashable(&key)) {
            return jinja_fail(r, "unhashable type: '%s'", jinja_type_name(&key));
        }
        jinja_map_set(&r->m, dict.as.map, key, value);
    }
    *out = dict;
    return jinja_check_memory(r);
}

/* ---- calls ---- */

static bool add_named(jinja_render *r, jinja_map *named, const jinja_value *name, const jinja_value *value)
{
    if (jinja_map_get(named, name)) {
        return jinja_fail(r, "got multiple values for keyword argument '%.*s'", (int)name->len,
                          name->as.text);
    }
    jinja_map_set(&r->m, named, *name, *value);
    return jinja_check_memory(r);
}

/* The entries of a dict as named arguments. */
static bool add_all_named(jinja_render *r, jinja_map *named, const jinja_value *dict)
{
    if (dict->type != JINJA_DICT) {
        return jinja_fail(r, "argument after ** must be a mapping, not %s", jinja_type_name(dict));
    }
    for (size_t i = 0; i < dict->as.map->len; i++) {
        const jinja_entry *e = &dict->as.map->entries[i];
        if (e->key.type != JINJA_STR) {
            return jinja_fail(r, "keywords must be strings");
        }
        if (!add_named(r, named, &e->key, &e->value)) {
            return false;
        }
    }
    return true;
}

static bool eval_args(jinja_render *r, const jinja_node *call, jinja_args *out)
{
    *out = (jinja_args){0};
    if (call->n_items == 0) {
        return true;
    }
    jinja_seq *positional = jinja_new_seq(&r->m, JINJA_LIST, call->n_items).as.seq;
    jinja_map *named = jinja_new_map(&r->m, JINJA_DICT).as.map;
    for (size_t i = 0; i < call->n_items; i++) {
        const jinja_node *arg = call->items[i];
        const jinja_value name = jinja_borrow(arg->text, arg->len);
        jinja_value v;
        if (!jinja_eval(r, arg->a, &v)) {
            return false;
        }
        bool ok = true;
        if (arg->op == ARG_DICT) {
            ok = add_all_named(r, named, &v);
        } else if (arg->op == ARG_LIST) {
            jinja_value list;
            if ((ok = jinja_to_list(r, &v, &list))) {
                jinja_push_all(&r->m, positional, list.as.seq->items, list.as.seq->len);
            }
        } else if (arg->text) {
            ok = add_named(r, named, &name, &v);
        } else {
            jinja_push(&r->m, positional, v);
        }
        if (!ok) {
            return false;
        }
    }
    *out = (jinja_args){positional->items, positional->len, named};
    return jinja_check_memory(r);
}

static bool call_joiner(const jinja_value *joiner, jinja_value *out)
{
    jinja_seq *seq = joiner->as.seq;
    *out = seq->pos && seq->len ? seq->items[0] : jinja_borrow("", 0);
    seq->pos = 1;
    return true;
}

bool jinja_call(jinja_render *r, const jinja_value *callee, const jinja_args *args, jinja_value *out)
{
    switch (callee->type) {
    case JINJA_MACRO:
        return jinja_call_macro(r, callee->as.macro, args, out);
    case JINJA_FUNCTION:
        return jinja_invoke(r, callee->as.callable, NULL, args, out);
    case JINJA_METHOD:
        return jinja_invoke(r, callee->as.callable, callee->extra.self, args, out);
    case JINJA_LOOP:
        return jinja_call_loop(r, callee->as.loop, args, out);
    case JINJA_JOINER:
        return call_joiner(callee, out);
    default:
        return jinja_defined(r, callee) &&
               jinja_fail(r, "'%s' object is not callable", jinja_type_name(callee));
    }
}

static bool eval_call(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value self, callee;
    jinja_args args;
    const jinja_node *f = n->a;
    if (f->kind == NODE_ATTR) {
        if (!jinja_eval(r, f->a, &self)) {
            return false;
        }
        const jinja_callable *method = jinja_find_method(&self, f->text, f->len);
        if (method) {
            return eval_args(r, n, &args) && jinja_invoke(r, method, &self, &args, out);
        }
        if (!jinja_getattr(r, &self, f->text, f->len, &callee)) {
            return false;
        }
    } else if (!jinja_eval(r, f, &callee)) {
        return false;
    }
    return eval_args(r, n, &args) && jinja_call(r, &callee, &args, out);
}

bool jinja_apply_filter(jinja_render *r, const jinja_node *n, const jinja_value *input, jinja_value *out)
{
    jinja_args args;
    if (!n->found) {
        return jinja_fail(r, "No filter named '%s' found.", n->text);
    }
    return eval_args(r, n, &args) && jinja_invoke(r, n->found, input, &args, out);
}

static bool eval_filter(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value input;
    return jinja_eval(r, n->a, &input) && jinja_apply_filter(r, n, &input, out);
}

static bool eval_test(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value input;
    jinja_args args;
    if (!n->found) {
        return jinja_fail(r, "No test named '%s' found.", n->text);
    }
    if (!jinja_eval(r, n->a, &input) || !eval_args(r, n, &args) ||
        !jinja_invoke(r, n->found, &input, &args, out)) {
        return false;
    }
    *out = jinja_make_bool(jinja_truth(out));
    return true;
}

/* ---- operators ---- */

static bool eval_item(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value obj, key;
    return jinja_eval(r, n->a, &obj) && jinja_eval(r, n->b, &key) && jinja_getitem(r, &obj, &key, out);
}

static bool eval_slice(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    const jinja_node *nodes[3] = {n->b, n->c, n->d};
    const jinja_value *part[3] = {NULL, NULL, NULL};
    jinja_value obj, values[3];
    if (!jinja_eval(r, n->a, &obj)) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        if (nodes[i]) {
            if (!jinja_eval(r, nodes[i], &values[i])) {
                return false;
            }
            part[i] = values[i].type == JINJA_NONE ? NULL : &values[i];
        }
    }
    return jinja_slice(r, &obj, part, out) && jinja_guard_result(r, &obj, NULL, out);
}

static bool eval_binary(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value a, b;
    if (!jinja_eval(r, n->a, &a) || !jinja_eval(r, n->b, &b) || !jinja_binary(r, n->op, &a, &b, out)) {
        return false;
    }
    return n->op == OP_ADD || jinja_guard_result(r, &a, &(jinja_args){.pos = &b, .n_pos = 1}, out);
}

static bool eval_sign(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value v;
    int64_t i;
    if (!jinja_eval(r, n->a, &v)) {
        return false;
    }
    if (jinja_as_int(&v, &i)) {
        if (n->kind == NODE_NEG && i == INT64_MIN) {
            return jinja_fail(r, "a number is too large");
        }
        *out = jinja_make_int(n->kind == NODE_NEG ? -i : i);
        return true;
    }
    if (v.type == JINJA_FLOAT) {
        *out = jinja_make_float(n->kind == NODE_NEG ? -v.as.number : v.as.number);
        return true;
    }
    return jinja_defined(r, &v) && jinja_fail(r, "bad operand type for unary %c: '%s'",
                                              n->kind == NODE_NEG ? '-' : '+', jinja_type_name(&v));
}

static bool eval_logic(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    if (!jinja_eval(r, n->a, out)) {
        return false;
    }
    if (n->kind == NODE_NOT) {
        *out = jinja_make_bool(!jinja_truth(out));
        return true;
    }
    bool decided = jinja_truth(out) == (n->kind == NODE_OR);
    return decided || jinja_eval(r, n->b, out);
}

static bool eval_compare(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value left, right;
    bool holds = true;
    if (!jinja_eval(r, n->a, &left)) {
        return false;
    }
    for (size_t i = 0; i < n->n_items && holds; i++) {
        if (!jinja_eval(r, n->items[i]->b, &right) ||
            !jinja_relation(r, n->items[i]->op, &left, &right, &holds)) {
            return false;
        }
        left = right;
    }
    *out = jinja_make_bool(holds);
    return true;
}

static bool eval_concat(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value text = jinja_borrow("", 0);
    for (size_t i = 0; i < n->n_items; i++) {
        jinja_value v, s;
        if (!jinja_eval(r, n->items[i], &v) || !jinja_to_str(r, &v, &s) || !jinja_work(r, s.len)) {
            return false;
        }
        text = jinja_join(r, &text, &s);
    }
    text.markup = false;
    *out = text;
    return jinja_check_memory(r);
}

static bool eval_condition(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value cond;
    if (!jinja_eval(r, n->a, &cond)) {
        return false;
    }
    if (jinja_truth(&cond)) {
        return jinja_eval(r, n->b, out);
    }
    if (n->c) {
        return jinja_eval(r, n->c, out);
    }
    *out = jinja_missing("the inline if-expression evaluated to false and no else section was defined.");
    return true;
}

static bool eval_kind(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    jinja_value a;
    switch (n->kind) {
    case NODE_CONST:
        *out = n->value;
        out->own = out->type == JINJA_STR;
        return true;
    case NODE_NAME:
        return eval_name(r, n, out);
    case NODE_LIST:
        return eval_sequence(r, n, JINJA_LIST, out);
    case NODE_TUPLE:
        return eval_sequence(r, n, JINJA_TUPLE, out);
    case NODE_DICT:
        return eval_dict(r, n, out);
    case NODE_ATTR:
        return jinja_eval(r, n->a, &a) && jinja_getattr(r, &a, n->text, n->len, out);
    case NODE_ITEM:
        return eval_item(r, n, out);
    case NODE_SLICE:
        return eval_slice(r, n, out);
    case NODE_CALL:
        return eval_call(r, n, out);
    case NODE_MACRO:
        return jinja_make_macro(r, n, out);
    case NODE_FILTER:
        return eval_filter(r, n, out);
    case NODE_TEST:
        return eval_test(r, n, out);
    case NODE_NEG:
    case NODE_POS:
        return eval_sign(r, n, out);
    case NODE_NOT:
    case NODE_AND:
    case NODE_OR:
        return eval_logic(r, n, out);
    case NODE_BINARY:
        return eval_binary(r, n, out);
    case NODE_COMPARE:
        return eval_compare(r, n, out);
    case NODE_CONCAT:
        return eval_concat(r, n, out);
    case NODE_COND:
        return eval_condition(r, n, out);
    default:
        return jinja_fail(r, "a statement stands where a value is needed");
    }
}

bool jinja_eval(jinja_render *r, const jinja_node *n, jinja_value *out)
{
    if (!jinja_work(r, 0)) {
        return false;
    }
    if (r->depth >= JINJA_MAX_DEPTH) {
        return jinja_fail(r, "the template is nested too deeply");
    }
    r->depth++;
    bool ok = eval_kind(r, n, out);
    r->depth--;
    return ok;
}
