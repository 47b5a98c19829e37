#include "text/jinja_parser.h"

#include <stdio.h>
#include <string.h>

static jinja_node *parse_body(jinja_parser *p, const char *const *ends);

/* ---- targets of assignments ---- */

static jinja_node *parse_target_name(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    jinja_node *n = jinja_new_node(p, NODE_NAME);
    if (!n || !jinja_expect(p, JINJA_TOKEN_NAME, NULL)) {
        return NULL;
    }
    n->symbol = jinja_intern(p, t->text, t->len, false);
    return n->symbol < 0 ? NULL : n;
}

/* "a", "a, b", "(a, b)", "a, (b, c)". */
static jinja_node *parse_target(jinja_parser *p)
{
    jinja_nodes list = {0};
    bool tuple = false;
    jinja_node *first = NULL;
    do {
        jinja_node *n;
        if (jinja_next_is(p, JINJA_TOKEN_NAME, "in") || jinja_next_is(p, JINJA_TOKEN_OP, "=")) {
            break; /* a trailing comma */
        }
        if (++p->depth > JINJA_PARSE_DEPTH) {
            return jinja_syntax_error(p, "the template is nested too deeply");
        }
        if (jinja_accept(p, JINJA_TOKEN_OP, "(")) {
            n = parse_target(p);
            if (!n || !jinja_expect(p, JINJA_TOKEN_OP, ")")) {
                return NULL;
            }
        } else {
            n = parse_target_name(p);
        }
        p->depth--;
        first = first ? first : n;
        if (!jinja_add_node(p, &list, n)) {
            return NULL;
        }
        tuple = tuple || jinja_next_is(p, JINJA_TOKEN_OP, ",");
    } while (jinja_accept(p, JINJA_TOKEN_OP, ","));
    if (!tuple) {
        return first ? first : jinja_syntax_error(p, "expected a name to assign to");
    }
    jinja_node *n = jinja_new_node(p, NODE_TUPLE);
    if (n) {
        n->items = list.items;
        n->n_items = list.len;
    }
    return n;
}

/* What {% set %} assigns to: a target or name.attribute. */
static jinja_node *parse_set_target(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p), *dot = t + (t->kind == JINJA_TOKEN_NAME);
    bool attribute =
        t->kind == JINJA_TOKEN_NAME && dot->kind == JINJA_TOKEN_OP && dot->len == 1 && *dot->text == '.';
    if (!attribute) {
        return parse_target(p);
    }
    jinja_node *n = jinja_new_node(p, NODE_NAMESPACE_ATTR);
    p->at += 2;
    const jinja_token *name = jinja_peek(p);
    if (!n || !jinja_expect(p, JINJA_TOKEN_NAME, NULL) || !(n->text = jinja_copy_name(p, name))) {
        return NULL;
    }
    n->len = name->len;
    n->symbol = jinja_intern(p, t->text, t->len, true);
    return n->symbol < 0 ? NULL : n;
}

/* ---- statements ---- */

static bool end_block(jinja_parser *p)
{
    return jinja_expect(p, JINJA_TOKEN_BLOCK_END, NULL);
}

/* Takes the end tag of the statement, whose name parse_body has found. */
static bool take_end(jinja_parser *p)
{
    jinja_take(p);
    return end_block(p);
}

static jinja_node *parse_if(jinja_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    jinja_node *n = jinja_new_node(p, NODE_IF);
    jinja_nodes branches = {0};
    for (;;) {
        jinja_node *branch = jinja_new_node(p, NODE_BRANCH);
        jinja_take(p); /* if or elif */
        if (!n || !branch || !(branch->a = jinja_parse_tuple(p, JINJA_WITHOUT_CONDITION)) || !end_block(p)) {
            return NULL;
        }
        branch->body = parse_body(p, ends);
        if (p->err || !jinja_add_node(p, &branches, branch)) {
            return NULL;
        }
        if (!jinja_next_is(p, JINJA_TOKEN_NAME, "elif")) {
            break;
        }
    }
    if (jinja_next_is(p, JINJA_TOKEN_NAME, "else")) {
        if (!take_end(p)) {
            return NULL;
        }
        n->orelse = parse_body(p, last);
    }
    n->items = branches.items;
    n->n_items = branches.len;
    return !p->err && take_end(p) ? n : NULL;
}

static jinja_node *parse_for(jinja_parser *p)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const last[] = {"endfor", NULL};
    jinja_node *n = jinja_new_node(p, NODE_FOR);
    jinja_take(p);
    if (!n || !(n->a = parse_target(p)) || !jinja_expect(p, JINJA_TOKEN_NAME, "in") ||
        !(n->b = jinja_parse_tuple(p, JINJA_WITHOUT_CONDITION))) {
        return NULL;
    }
    if (jinja_accept(p, JINJA_TOKEN_NAME, "if") &&
        !(n->c = jinja_parse_expression(p, JINJA_WITH_CONDITION))) {
        return NULL;
    }
    n->op = jinja_accept(p, JINJA_TOKEN_NAME, "recursive");
    if (!end_block(p)) {
        return NULL;
    }
    p->n_loops++;
    n->body = parse_body(p, ends);
    p->n_loops--;
    if (!p->err && jinja_next_is(p, JINJA_TOKEN_NAME, "else")) {
        if (!take_end(p)) {
            return NULL;
        }
        n->orelse = parse_body(p, last);
    }
    return !p->err && take_end(p) ? n : NULL;
}

static jinja_node *parse_set(jinja_parser *p)
{
    static const char *const ends[] = {"endset", NULL};
    jinja_node *n = jinja_new_node(p, NODE_SET);
    jinja_take(p);
    if (!n || !(n->a = parse_set_target(p))) {
        return NULL;
    }
    if (jinja_accept(p, JINJA_TOKEN_OP, "=")) {
        n->b = jinja_parse_tuple(p, JINJA_WITH_CONDITION);
        return n->b && end_block(p) ? n : NULL;
    }
    n->kind = NODE_SET_BLOCK;
    n->b = jinja_parse_filters(p, NULL, false);
    if (p->err || !end_block(p)) {
        return NULL;
    }
    n->body = parse_body(p, ends);
    return !p->err && take_end(p) ? n : NULL;
}

/* "(a, b=1)" into the params of a macro. */
static bool parse_params(jinja_parser *p, jinja_node *macro)
{
    jinja_nodes list = {0};
    bool defaults = false;
    if (!jinja_expect(p, JINJA_TOKEN_OP, "(")) {
        return false;
    }
    while (!jinja_accept(p, JINJA_TOKEN_OP, ")")) {
        if (list.len && !jinja_expect(p, JINJA_TOKEN_OP, ",")) {
            return false;
        }
        const jinja_token *t = jinja_peek(p);
        jinja_node *param = jinja_new_node(p, NODE_PARAM);
        if (!param || !jinja_expect(p, JINJA_TOKEN_NAME, NULL) || !(param->text = jinja_copy_name(p, t))) {
            return false;
        }
        param->len = t->len;
        param->symbol = jinja_intern(p, t->text, t->len, false);
        if (jinja_accept(p, JINJA_TOKEN_OP, "=")) {
            defaults = true;
            if (!(param->a = jinja_parse_expression(p, JINJA_WITH_CONDITION))) {
                return false;
            }
        } else if (defaults) {
            jinja_syntax_error(p, "a parameter without a default follows one with a default");
            return false;
        }
        if (param->symbol < 0 || !jinja_add_node(p, &list, param)) {
            return false;
        }
    }
    macro->items = list.items;
    macro->n_items = list.len;
    return true;
}

/* Reads the body of a macro or call block up to its end tag. */
static bool parse_macro_body(jinja_parser *p, jinja_node *macro, jinja_node *outer, const char *const *ends)
{
    int n_loops = p->n_loops;
    p->n_loops = 0;
    macro->body = parse_body(p, ends);
    p->n_loops = n_loops;
    p->macro = outer;
    if (outer) {
        outer->uses_caller = outer->uses_caller || macro->uses_caller;
        outer->uses_varargs = outer->uses_varargs || macro->uses_varargs;
        outer->uses_kwargs = outer->uses_kwargs || macro->uses_kwargs;
    }
    return !p->err && take_end(p);
}

static jinja_node *parse_macro(jinja_parser *p)
{
    static const char *const ends[] = {"endmacro", NULL};
    jinja_node *n = jinja_new_node(p, NODE_MACRO), *outer = p->macro;
    jinja_take(p);
    const jinja_token *t = jinja_peek(p);
    if (!n || !jinja_expect(p, JINJA_TOKEN_NAME, NULL) || !(n->text = jinja_copy_name(p, t))) {
        return NULL;
    }
    n->len = t->len;
    n->symbol = jinja_intern(p, t->text, t->len, false);
    p->macro = n;
    if (n->symbol < 0 || !parse_params(p, n) || !end_block(p)) {
        return NULL;
    }
    return parse_macro_body(p, n, outer, ends) ? n : NULL;
}

static jinja_node *parse_call_block(jinja_parser *p)
{
    static const char *const ends[] = {"endcall", NULL};
    jinja_node *n = jinja_new_node(p, NODE_CALL_BLOCK), *outer = p->macro;
    jinja_node *macro = jinja_new_node(p, NODE_MACRO);
    jinja_take(p);
    if (!n || !macro || (jinja_next_is(p, JINJA_TOKEN_OP, "(") && !parse_params(p, macro))) {
        return NULL;
    }
    macro->text = "caller";
    macro->len = strlen(macro->text);
    n->b = macro;
    n->a = jinja_parse_call(p);
    if (!n->a || !end_block(p)) {
        return NULL;
    }
    if (n->a->kind != NODE_CALL) {
        return jinja_syntax_error(p, "expected a call");
    }
    p->macro = macro;
    return parse_macro_body(p, macro, outer, ends) ? n : NULL;
}

static jinja_node *parse_filter_block(jinja_parser *p)
{
    static const char *const ends[] = {"endfilter", NULL};
    jinja_node *n = jinja_new_node(p, NODE_FILTER_BLOCK);
    jinja_take(p);
    if (!n || !(n->b = jinja_parse_filters(p, NULL, true)) || !end_block(p)) {
        return NULL;
    }
    n->body = parse_body(p, ends);
    return !p->err && take_end(p) ? n : NULL;
}

static jinja_node *parse_with(jinja_parser *p)
{
    static const char *const ends[] = {"endwith", NULL};
    jinja_node *n = jinja_new_node(p, NODE_WITH);
    jinja_nodes list = {0};
    jinja_take(p);
    while (n && !jinja_next_is(p, JINJA_TOKEN_BLOCK_END, NULL)) {
        jinja_node *set = jinja_new_node(p, NODE_SET);
        if ((list.len && !jinja_expect(p, JINJA_TOKEN_OP, ",")) || !set || !(set->a = parse_target_name(p)) ||
            !jinja_expect(p, JINJA_TOKEN_OP, "=") ||
            !(set->b = jinja_parse_expression(p, JINJA_WITH_CONDITION)) || !jinja_add_node(p, &list, set)) {
            return NULL;
        }
    }
    if (!n || !end_block(p)) {
        return NULL;
    }
    n->items = list.items;
    n->n_items = list.len;
    n->body = parse_body(p, ends);
    return !p->err && take_end(p) ? n : NULL;
}

/* {% generation %} marks what the assistant wrote, for training; here it only makes a scope. */
static jinja_node *parse_generation(jinja_parser *p)
{
    static const char *const ends[] = {"endgeneration", NULL};
    jinja_node *n = jinja_new_node(p, NODE_SCOPE);
    int n_loops = p->n_loops;
    jinja_take(p);
    if (!n || !end_block(p)) {
        return NULL;
    }
    p->n_loops = 0;
    n->body = parse_body(p, ends);
    p->n_loops = n_loops;
    return !p->err && take_end(p) ? n : NULL;
}

static jinja_node *parse_jump(jinja_parser *p)
{
    jinja_node *n =
        jinja_new_node(p, jinja_next_is(p, JINJA_TOKEN_NAME, "break") ? NODE_BREAK : NODE_CONTINUE);
    if (p->n_loops == 0) {
        return jinja_syntax_error(p, "break or continue outside of a loop");
    }
    jinja_take(p);
    return n && end_block(p) ? n : NULL;
}

static jinja_node *parse_statement(jinja_parser *p)
{
    static const struct {
        const char *name;
        jinja_node *(*parse)(jinja_parser *p);
    } statements[] = {{"if", parse_if},           {"for", parse_for},
                      {"set", parse_set},         {"macro", parse_macro},
                      {"call", parse_call_block}, {"filter", parse_filter_block},
                      {"with", parse_with},       {"generation", parse_generation},
                      {"break", parse_jump},      {"continue", parse_jump}};
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        if (jinja_next_is(p, JINJA_TOKEN_NAME, statements[i].name)) {
            return statements[i].parse(p);
        }
    }
    const jinja_token *t = jinja_peek(p);
    char what[96];
    snprintf(what, sizeof what, "unknown tag '%.*s'", (int)(t->len < 40 ? t->len : 40), t->text);
    return jinja_syntax_error(p, what);
}

static jinja_node *parse_output(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_OUTPUT);
    jinja_take(p);
    if (!n || !(n->a = jinja_parse_tuple(p, JINJA_WITH_CONDITION)) ||
        !jinja_expect(p, JINJA_TOKEN_VAR_END, NULL)) {
        return NULL;
    }
    return n;
}

/* True if the block that begins here is one of `ends`; its opening is taken then. */
static bool accept_end(jinja_parser *p, const char *const *ends)
{
    for (size_t i = 0; ends && ends[i]; i++) {
        const jinja_token *t = jinja_peek(p) + 1;
        if (t->kind == JINJA_TOKEN_NAME && t->len == strlen(ends[i]) &&
            memcmp(t->text, ends[i], t->len) == 0) {
            jinja_take(p);
            return true;
        }
    }
    return false;
}

static jinja_node *parse_one(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    if (t->kind == JINJA_TOKEN_DATA) {
        jinja_node *n = jinja_new_node(p, NODE_TEXT);
        if (n) {
            n->text = t->text;
            n->len = t->len;
        }
        jinja_take(p);
        return n;
    }
    if (t->kind == JINJA_TOKEN_VAR_BEGIN) {
        return parse_output(p);
    }
    jinja_take(p);
    return parse_statement(p);
}

/* Statements up to one of the end tags (NULL: up to the end of the template). The result may be
 * NULL without an error: then the body is empty. */
static jinja_node *parse_body(jinja_parser *p, const char *const *ends)
{
    jinja_node *first = NULL, **link = &first;
    if (++p->depth > JINJA_PARSE_DEPTH) {
        return jinja_syntax_error(p, "the template is nested too deeply");
    }
    while (jinja_peek(p)->kind != JINJA_TOKEN_END) {
        if (jinja_peek(p)->kind == JINJA_TOKEN_BLOCK_BEGIN && accept_end(p, ends)) {
            p->depth--;
            return first;
        }
        jinja_node *n = parse_one(p);
        if (!n) {
            return NULL;
        }
        *link = n;
        link = &n->next;
    }
    p->depth--;
    if (ends) {
        char what[64];
        while (ends[1]) { /* the last one always ends the statement */
            ends++;
        }
        snprintf(what, sizeof what, "the template ends before '%s'", ends[0]);
        return jinja_syntax_error(p, what);
    }
    return first;
}

err_code jinja_parse(jinja_program *out, const char *text, size_t len, arena *a, err_detail *detail)
{
    jinja_parser p = {.arena = a, .program = out, .detail = detail};
    memset(out, 0, sizeof *out);
    out->symbols = arena_calloc(a, JINJA_MAX_SYMBOLS, sizeof *out->symbols);
    if (!out->symbols) {
        return err_set(detail, ERR_NOMEM, "no memory to read the chat template");
    }
    p.err = jinja_lex(&p.tokens, text, len, a, detail);
    if (p.err) {
        return p.err;
    }
    out->loop = jinja_intern(&p, "loop", 4, false);
    out->caller = jinja_intern(&p, "caller", 6, false);
    out->varargs = jinja_intern(&p, "varargs", 7, false);
    out->kwargs = jinja_intern(&p, "kwargs", 6, false);
    out->body = parse_body(&p, NULL);
    return p.err;
}
