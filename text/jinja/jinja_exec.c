#include <string.h>

#include "text/jinja/jinja_format.h"
#include "text/jinja/jinja_library.h"
#include "text/jinja/jinja_render.h"

/* ---- output ---- */

static bytes *output(jinja_render *r)
{
    return r->n_captures > 0 ? &r->capture : r->out;
}

static bool emit(jinja_render *r, const jinja_value *v)
{
    jinja_value text;
    if (!jinja_to_str(r, v, &text)) {
        return false;
    }
    bytes *out = output(r);
    const bool all_own = text.own && r->own_from == r->begin;
    if (r->guard && text.len > 0 && !all_own && !out->failed &&
        guard_spans(r->guard, bytes_str(out) + r->begin, out->len - r->begin,
                    text.own ? out->len - r->own_from : 0, text.as.text, text.len)) {
        bytes_append(out, GUARD_CHAR, GUARD_LEN);
    }
    bytes_append(out, text.as.text, text.len);
    if (!text.own && text.len > 0) {
        r->own_from = out->len - text.own_tail;
    }
    return jinja_work(r, text.len);
}

/* Cuts a buffer back to len bytes. */
static void truncate_to(bytes *b, size_t len)
{
    if (len < b->len) {
        b->len = len;
        b->data[len] = '\0';
    }
}

/* The output that a capture interrupts. */
typedef struct capture_frame {
    size_t begin, own_from;
} capture_frame;

/* From here on output is gathered; nested captures stand one behind another. */
static capture_frame begin_capture(jinja_render *r)
{
    const capture_frame outer = {r->begin, r->own_from};
    r->n_captures++;
    r->begin = r->own_from = r->capture.len;
    return outer;
}

/* What was written since begin_capture, as a string; the output that it gave goes on. */
static bool end_capture(jinja_render *r, const capture_frame *outer, jinja_value *out)
{
    const size_t begin = r->begin, tail = r->capture.len - r->own_from;
    r->n_captures--;
    *out = jinja_text(&r->m, r->capture.data ? r->capture.data + begin : "", r->capture.len - begin);
    out->own = r->own_from == begin;
    out->own_tail = (uint16_t)(tail < UINT16_MAX ? tail : UINT16_MAX);
    truncate_to(&r->capture, begin);
    r->begin = outer->begin;
    r->own_from = outer->own_from;
    return jinja_check_memory(r);
}

/* Runs a body and gives what it wrote as a string. */
static jinja_flow capture(jinja_render *r, const jinja_node *body, jinja_value *out)
{
    const capture_frame outer = begin_capture(r);
    jinja_flow flow = jinja_exec(r, body);
    return end_capture(r, &outer, out) ? flow : JINJA_ERROR;
}

/* ---- names ---- */

static bool set_in_scope(jinja_render *r, jinja_scope *s, int32_t symbol, jinja_value value)
{
    for (size_t i = 0; i < s->len; i++) {
        if (s->vars[i].symbol == symbol) {
            s->vars[i].value = value;
            return true;
        }
    }
    jinja_variable *vars = jinja_grow(&r->m, s->vars, s->len, &s->cap, sizeof *vars);
    if (!vars) {
        return jinja_check_memory(r);
    }
    s->vars = vars;
    s->vars[s->len++] = (jinja_variable){symbol, value};
    return true;
}

static bool set_name(jinja_render *r, int32_t symbol, jinja_value value)
{
    if (r->scope) {
        return set_in_scope(r, r->scope, symbol, value);
    }
    r->root[symbol] = value;
    r->root_set[symbol] = true;
    return true;
}

/* Closures may outlive the block, so scopes live in the arena. */
static bool push_scope(jinja_render *r)
{
    jinja_scope *s = jinja_alloc(&r->m, sizeof *s);
    if (!s) {
        return jinja_check_memory(r);
    }
    s->parent = r->scope;
    r->scope = s;
    return true;
}

static bool assign_attr(jinja_render *r, const jinja_node *target, const jinja_value *value)
{
    jinja_node name = {.kind = NODE_NAME, .symbol = target->symbol, .line = target->line};
    jinja_value ns;
    if (!jinja_eval(r, &name, &ns)) {
        return false;
    }
    if (ns.type != JINJA_NAMESPACE) {
        return jinja_fail(r, "cannot assign attribute on non-namespace object");
    }
    jinja_map_set(&r->m, ns.as.map, jinja_borrow(target->text, target->len), *value);
    return jinja_check_memory(r);
}

static bool assign(jinja_render *r, const jinja_node *target, const jinja_value *value)
{
    if (target->kind == NODE_NAME) {
        return set_name(r, target->symbol, *value);
    }
    if (target->kind == NODE_NAMESPACE_ATTR) {
        return assign_attr(r, target, value);
    }
    jinja_value items = *value;
    if (!jinja_is_seq(value) && !jinja_to_list(r, value, &items)) {
        return false;
    }
    if (items.as.seq->len != target->n_items) {
        return jinja_fail(r,
                          items.as.seq->len > target->n_items ? "too many values to unpack (expected %zu)"
                                                              : "not enough values to unpack (expected %zu)",
                          target->n_items);
    }
    for (size_t i = 0; i < target->n_items; i++) {
        if (!assign(r, target->items[i], &items.as.seq->items[i])) {
            return false;
        }
    }
    return true;
}

/* ---- loops ---- */

/* What a loop walks over, as a list; a condition filters it first. */
static bool loop_items(jinja_render *r, const jinja_node *n, jinja_value over, jinja_value *out)
{
    if (!jinja_is_seq(&over) && !jinja_to_list(r, &over, &over)) {
        return false;
    }
    if (!n->c) {
        *out = over;
        return true;
    }
    jinja_value passed = jinja_new_list(&r->m);
    jinja_scope *outer = r->scope;
    if (!push_scope(r)) {
        return false;
    }
    for (size_t i = 0; i < over.as.seq->len && !r->err; i++) {
        jinja_value cond;
        r->scope->len = 0;
        if (assign(r, n->a, &over.as.seq->items[i]) && jinja_eval(r, n->c, &cond) && jinja_truth(&cond)) {
            jinja_push(&r->m, passed.as.seq, over.as.seq->items[i]);
        }
    }
    r->scope = outer;
    *out = passed;
    return jinja_check_memory(r);
}

/* Whether the item of a loop is a message whose span is wanted, and which: one of the list, which is
 * told by the dict itself. */
static bool find_message(jinja_render *r, const jinja_value *item, size_t *index)
{
    const jinja_seq *all = r->messages;
    if (!all || item->type != JINJA_DICT || r->n_captures > 0 || r->in_message) {
        return false;
    }
    for (size_t i = 0; i < all->len; i++) {
        const size_t k = (r->next_message + i) % all->len;
        if (all->items[k].type == JINJA_DICT && all->items[k].as.map == item->as.map) {
            *index = k;
            r->next_message = k + 1;
            return true;
        }
    }
    return false;
}

/* Runs the body for the loop's present item. */
static jinja_flow run_pass(jinja_render *r, const jinja_loop *loop)
{
    size_t index = 0;
    const size_t begin = r->out->len;
    if (!find_message(r, &loop->items->items[loop->i], &index)) {
        return jinja_exec(r, loop->node->body);
    }
    r->in_message = true;
    const jinja_flow flow = jinja_exec(r, loop->node->body);
    r->in_message = false;
    if (r->out->len > begin) {
        r->is_torn = r->is_torn || r->spans[index].end > 0;
        r->spans[index] = (jinja_span){begin, r->out->len};
    }
    return flow;
}

static jinja_flow run_passes(jinja_render *r, jinja_loop *loop)
{
    jinja_value value = {.type = JINJA_LOOP, .as.loop = loop};
    jinja_flow flow = JINJA_GO_ON;
    for (; loop->i < loop->items->len; loop->i++) {
        /* Every pass begins without the names of the one before. */
        r->scope->len = 0;
        if (!set_in_scope(r, r->scope, r->program->loop, value) ||
            !assign(r, loop->node->a, &loop->items->items[loop->i])) {
            return JINJA_ERROR;
        }
        flow = run_pass(r, loop);
        if (flow == JINJA_BREAK || flow == JINJA_ERROR) {
            break;
        }
    }
    return flow == JINJA_ERROR ? JINJA_ERROR : JINJA_GO_ON;
}

static jinja_flow run_loop(jinja_render *r, const jinja_node *n, const jinja_value *over, int depth)
{
    jinja_value items;
    jinja_scope *outer = r->scope;
    jinja_loop *loop = jinja_alloc(&r->m, sizeof *loop);
    if (!loop || !loop_items(r, n, *over, &items) || !push_scope(r)) {
        jinja_check_memory(r);
        return JINJA_ERROR;
    }
    *loop = (jinja_loop){
        .node = n, .outer = outer, .items = items.as.seq, .depth = depth, .changed = jinja_make_none()};
    jinja_flow flow = items.as.seq->len > 0 ? run_passes(r, loop) : jinja_exec(r, n->orelse);
    r->scope = outer;
    return flow;
}

static jinja_flow exec_for(jinja_render *r, const jinja_node *n)
{
    jinja_value over;
    return jinja_eval(r, n->b, &over) ? run_loop(r, n, &over, 0) : JINJA_ERROR;
}

bool jinja_call_loop(jinja_render *r, const jinja_loop *loop, const jinja_args *args, jinja_value *out)
{
    if (!loop->node->op) {
        return jinja_fail(r, "The loop must have the 'recursive' marker to be called recursively.");
    }
    if (args->n_pos != 1 || (args->named && args->named->len > 0)) {
        return jinja_fail(r, "a recursive loop is called with one iterable");
    }
    jinja_scope *scope = r->scope;
    const capture_frame outer = begin_capture(r);
    r->scope = loop->outer;
    jinja_flow flow = run_loop(r, loop->node, &args->pos[0], loop->depth + 1);
    r->scope = scope;
    return end_capture(r, &outer, out) && flow != JINJA_ERROR;
}

/* ---- macros ---- */

static bool is_param(const jinja_node *node, const jinja_value *name)
{
    for (size_t i = 0; i < node->n_items; i++) {
        if (jinja_is_text(name, node->items[i]->text)) {
            return true;
        }
    }
    return false;
}

/* Sets the parameters in the macro's scope, from the arguments or the defaults. */
static bool bind_params(jinja_render *r, const jinja_node *node, const jinja_args *args)
{
    for (size_t i = 0; i < node->n_items; i++) {
        const jinja_node *param = node->items[i];
        const jinja_value *named = jinja_named_arg(args, param->text, param->len);
        jinja_value v = jinja_undefined(param->text, param->len, NULL);
        if (i < args->n_pos) {
            if (named) {
                return jinja_fail(r, "macro '%s' got several values for '%s'", node->text, param->text);
            }
            v = args->pos[i];
        } else if (named) {
            v = *named;
        } else if (param->a && !jinja_eval(r, param->a, &v)) {
            return false;
        }
        if (!set_in_scope(r, r->scope, param->symbol, v)) {
            return false;
        }
    }
    return true;
}

/* caller, varargs and kwargs; without a use of them, more arguments are an error. */
static bool bind_extras(jinja_render *r, const jinja_node *node, const jinja_args *args)
{
    jinja_value varargs = jinja_new_seq(&r->m, JINJA_TUPLE, 0), kwargs = jinja_new_map(&r->m, JINJA_DICT);
    const size_t n_params = node->n_items;
    if (args->n_pos > n_params) {
        jinja_push_all(&r->m, varargs.as.seq, args->pos + n_params, args->n_pos - n_params);
    }
    if (args->n_pos > n_params && !node->uses_varargs) {
        return jinja_fail(r, "macro '%s' takes not more than %zu argument(s)", node->text, node->n_items);
    }
    const jinja_value missing = jinja_missing("No caller defined"), caller_name = jinja_borrow("caller", 6);
    const jinja_value *caller = jinja_named_arg(args, "caller", 6);
    const bool sets_caller = node->uses_caller && !is_param(node, &caller_name);
    for (size_t i = 0; args->named && i < args->named->len; i++) {
        const jinja_entry *e = &args->named->entries[i];
        if (is_param(node, &e->key) || (node->uses_caller && &e->value == caller)) {
            continue;
        }
        if (!node->uses_kwargs) {
            return jinja_fail(r, "macro '%s' takes no keyword argument '%.*s'", node->text, (int)e->key.len,
                              e->key.as.text);
        }
        jinja_map_set(&r->m, kwargs.as.map, e->key, e->value);
    }
    return (!sets_caller || set_in_scope(r, r->scope, r->program->caller, caller ? *caller : missing)) &&
           (!node->uses_varargs || set_in_scope(r, r->scope, r->program->varargs, varargs)) &&
           (!node->uses_kwargs || set_in_scope(r, r->scope, r->program->kwargs, kwargs)) &&
           jinja_check_memory(r);
}

bool jinja_call_macro(jinja_render *r, const jinja_macro *macro, const jinja_args *args, jinja_value *out)
{
    jinja_scope *outer = r->scope;
    int line = r->line;
    r->scope = macro->closure;
    bool ok = push_scope(r) && bind_params(r, macro->node, args) && bind_extras(r, macro->node, args) &&
              capture(r, macro->node->body, out) != JINJA_ERROR;
    r->scope = outer;
    r->line = ok ? line : r->line;
    return ok;
}

bool jinja_make_macro(jinja_render *r, const jinja_node *node, jinja_value *out)
{
    jinja_macro *macro = jinja_alloc(&r->m, sizeof *macro);
    if (!macro) {
        return jinja_check_memory(r);
    }
    *macro = (jinja_macro){node, r->scope};
    *out = (jinja_value){.type = JINJA_MACRO, .as.macro = macro};
    return true;
}

/* ---- the other statements ---- */

/* A chain of filters over a captured text; the innermost has no input of its own. */
static bool apply_filters(jinja_render *r, const jinja_node *filter, jinja_value *text)
{
    if (!filter) {
        return true;
    }
    jinja_value input = *text;
    return apply_filters(r, filter->a, &input) && jinja_apply_filter(r, filter, &input, text);
}

static jinja_flow exec_captured(jinja_render *r, const jinja_node *n)
{
    jinja_value text;
    jinja_scope *outer = r->scope;
    if (!push_scope(r)) {
        return JINJA_ERROR;
    }
    jinja_flow flow = capture(r, n->body, &text);
    r->scope = outer;
    if (flow == JINJA_ERROR || !apply_filters(r, n->b, &text)) {
        return JINJA_ERROR;
    }
    bool ok = n->kind == NODE_SET_BLOCK ? assign(r, n->a, &text) : emit(r, &text);
    return ok ? flow : JINJA_ERROR;
}

static jinja_flow exec_if(jinja_render *r, const jinja_node *n)
{
    for (size_t i = 0; i < n->n_items; i++) {
        jinja_value cond;
        r->line = n->items[i]->line;
        if (!jinja_eval(r, n->items[i]->a, &cond)) {
            return JINJA_ERROR;
        }
        if (jinja_truth(&cond)) {
            return jinja_exec(r, n->items[i]->body);
        }
    }
    return jinja_exec(r, n->orelse);
}

static bool set_all(jinja_render *r, const jinja_node *n)
{
    jinja_scope *outer = r->scope, *inner;
    if (!push_scope(r)) {
        return false;
    }
    inner = r->scope;
    for (size_t i = 0; i < n->n_items; i++) {
        jinja_value v;
        r->scope = outer; /* the values do not see the new names */
        bool ok = jinja_eval(r, n->items[i]->b, &v);
        r->scope = inner;
        if (!ok || !assign(r, n->items[i]->a, &v)) {
            return false;
        }
    }
    return true;
}

/* {% with %} and {% generation %}. */
static jinja_flow exec_scope(jinja_render *r, const jinja_node *n)
{
    jinja_scope *outer = r->scope;
    jinja_flow flow = set_all(r, n) ? jinja_exec(r, n->body) : JINJA_ERROR;
    r->scope = outer;
    return flow;
}

static jinja_flow exec_one(jinja_render *r, const jinja_node *n)
{
    jinja_value v;
    bool ok;
    switch (n->kind) {
    case NODE_TEXT:
        v = jinja_borrow(n->text, n->len);
        v.own = true;
        ok = emit(r, &v);
        break;
    case NODE_OUTPUT:
        ok = jinja_eval(r, n->a, &v) && emit(r, &v);
        break;
    case NODE_SET:
        ok = jinja_eval(r, n->b, &v) && assign(r, n->a, &v);
        break;
    case NODE_MACRO:
        ok = jinja_make_macro(r, n, &v) && set_name(r, n->symbol, v);
        break;
    case NODE_IF:
        return exec_if(r, n);
    case NODE_FOR:
        return exec_for(r, n);
    case NODE_SET_BLOCK:
    case NODE_FILTER_BLOCK:
        return exec_captured(r, n);
    case NODE_WITH:
    case NODE_SCOPE:
        return exec_scope(r, n);
    case NODE_BREAK:
        return JINJA_BREAK;
    case NODE_CONTINUE:
        return JINJA_CONTINUE;
    default:
        ok = jinja_fail(r, "a value stands where a statement is needed");
        break;
    }
    return ok ? JINJA_GO_ON : JINJA_ERROR;
}

jinja_flow jinja_exec(jinja_render *r, const jinja_node *body)
{
    jinja_flow flow = JINJA_GO_ON;
    if (r->depth >= JINJA_MAX_DEPTH) {
        jinja_fail(r, "the template is nested too deeply");
        return JINJA_ERROR;
    }
    r->depth++;
    for (const jinja_node *n = body; n && flow == JINJA_GO_ON; n = n->next) {
        r->line = n->line;
        flow = jinja_work(r, 0) ? exec_one(r, n) : JINJA_ERROR;
    }
    r->depth--;
    return flow;
}
