#include <stdio.h>
#include <string.h>

#include "text/jinja/jinja_library.h"
#include "text/jinja/jinja_parser.h"

static jinja_node *parse_body(jinja_parser *p, const char *const *ends);

/* ---- targets of assignments ---- */

static jinja_node *parse_target_name(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_NAME);
    const jinja_token *t = jinja_expect(p, JINJA_TOKEN_NAME, NULL);
    n->symbol = jinja_intern(p, t->text, t->len, false);
    return n;
}

/* "a", "a, b", "(a, b)", "a, (b, c)". */
static jinja_node *parse_target(jinja_parser *p)
{
    jinja_node *tuple = jinja_new_node(p, NODE_TUPLE);
    bool comma = false;
    do {
        if (jinja_next_is(p, JINJA_TOKEN_NAME, "in") || jinja_next_is(p, JINJA_TOKEN_OP, "=")) {
            break; /* a trailing comma */
        }
        jinja_nest(p);
        if (jinja_accept(p, JINJA_TOKEN_OP, "(")) {
            jinja_add_item(p, tuple, parse_target(p));
            jinja_expect(p, JINJA_TOKEN_OP, ")");
        } else {
            jinja_add_item(p, tuple, parse_target_name(p));
        }
        p->depth--;
        comma = comma || jinja_next_is(p, JINJA_TOKEN_OP, ",");
    } while (jinja_accept(p, JINJA_TOKEN_OP, ","));
    if (tuple->n_items == 0) {
        return jinja_syntax_error(p, "expected a name to assign to");
    }
    return comma ? tuple : tuple->items[0];
}

/* What {% set %} assigns to: a target or name.attribute. */
static jinja_node *parse_set_target(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    if (t->kind != JINJA_TOKEN_NAME || !jinja_token_is(jinja_peek_second(p), JINJA_TOKEN_OP, ".")) {
        return parse_target(p);
    }
    jinja_node *n = jinja_new_node(p, NODE_NAMESPACE_ATTR);
    jinja_take(p);
    jinja_take(p);
    jinja_set_text(p, n, jinja_expect(p, JINJA_TOKEN_NAME, NULL));
    n->symbol = jinja_intern(p, t->text, t->len, true);
    return n;
}

/* ---- statements: the name of each is the next token ---- */

static void end_tag(jinja_parser *p)
{
    jinja_expect(p, JINJA_TOKEN_BLOCK_END, NULL);
}

/* The body up to the tag `end`, which is taken. */
static jinja_node *parse_body_to(jinja_parser *p, const char *end)
{
    const char *const ends[] = {end, NULL};
    jinja_node *body = parse_body(p, ends);
    jinja_take(p);
    end_tag(p);
    return body;
}

/* What follows the first body of an if or a for: perhaps {% else %} and a body, then the tag
 * `end`. */
static jinja_node *parse_else(jinja_parser *p, const char *end)
{
    bool otherwise = jinja_next_is(p, JINJA_TOKEN_NAME, "else");
    jinja_take(p);
    end_tag(p);
    return otherwise ? parse_body_to(p, end) : NULL;
}

static jinja_node *parse_if(jinja_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    jinja_node *n = jinja_new_node(p, NODE_IF);
    do {
        jinja_node *branch = jinja_new_node(p, NODE_BRANCH);
        jinja_take(p); /* if or elif */
        branch->a = jinja_parse_tuple(p, JINJA_WITHOUT_CONDITION);
        end_tag(p);
        branch->body = parse_body(p, ends);
        jinja_add_item(p, n, branch);
    } while (jinja_next_is(p, JINJA_TOKEN_NAME, "elif"));
    n->orelse = parse_else(p, "endif");
    return n;
}

static jinja_node *parse_for(jinja_parser *p)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    jinja_node *n = jinja_new_node(p, NODE_FOR);
    jinja_take(p);
    n->a = parse_target(p);
    jinja_expect(p, JINJA_TOKEN_NAME, "in");
    n->b = jinja_parse_tuple(p, JINJA_WITHOUT_CONDITION);
    if (jinja_accept(p, JINJA_TOKEN_NAME, "if")) {
        n->c = jinja_parse_expression(p, JINJA_WITH_CONDITION);
    }
    n->op = jinja_accept(p, JINJA_TOKEN_NAME, "recursive");
    end_tag(p);
    p->n_loops++;
    n->body = parse_body(p, ends);
    p->n_loops--;
    n->orelse = parse_else(p, "endfor");
    return n;
}

static jinja_node *parse_set(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_SET);
    jinja_take(p);
    n->a = parse_set_target(p);
    if (jinja_accept(p, JINJA_TOKEN_OP, "=")) {
        n->b = jinja_parse_tuple(p, JINJA_WITH_CONDITION);
        end_tag(p);
        return n;
    }
    n->kind = NODE_SET_BLOCK;
    n->b = jinja_parse_filters(p, NULL, false);
    end_tag(p);
    n->body = parse_body_to(p, "endset");
    return n;
}

/* "(a, b=1)" into the params of a macro. */
static void parse_params(jinja_parser *p, jinja_node *macro)
{
    bool defaults = false;
    jinja_expect(p, JINJA_TOKEN_OP, "(");
    while (!p->err && !jinja_accept(p, JINJA_TOKEN_OP, ")")) {
        if (macro->n_items) {
            jinja_expect(p, JINJA_TOKEN_OP, ",");
        }
        jinja_node *param = jinja_new_node(p, NODE_PARAM);
        const jinja_token *t = jinja_expect(p, JINJA_TOKEN_NAME, NULL);
        jinja_set_text(p, param, t);
        param->symbol = jinja_intern(p, t->text, t->len, false);
        if (jinja_accept(p, JINJA_TOKEN_OP, "=")) {
            defaults = true;
            param->a = jinja_parse_expression(p, JINJA_WITH_CONDITION);
        } else if (defaults) {
            jinja_syntax_error(p, "a parameter without a default follows one with a default");
        }
        jinja_add_item(p, macro, param);
    }
}

/* Reads the body of a macro or call block up to its end tag. */
static void parse_macro_body(jinja_parser *p, jinja_node *macro, const char *end)
{
    jinja_node *outer = p->macro;
    int n_loops = p->n_loops;
    p->macro = macro;
    p->n_loops = 0;
    macro->body = parse_body_to(p, end);
    p->n_loops = n_loops;
    p->macro = outer;
    if (outer) {
        outer->uses_caller = outer->uses_caller || macro->uses_caller;
        outer->uses_varargs = outer->uses_varargs || macro->uses_varargs;
        outer->uses_kwargs = outer->uses_kwargs || macro->uses_kwargs;
    }
}

static jinja_node *parse_macro(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_MACRO), *outer = p->macro;
    jinja_take(p);
    const jinja_token *t = jinja_expect(p, JINJA_TOKEN_NAME, NULL);
    jinja_set_text(p, n, t);
    n->symbol = jinja_intern(p, t->text, t->len, false);
    p->macro = n; /* what the defaults use counts for this macro */
    parse_params(p, n);
    p->macro = outer;
    end_tag(p);
    parse_macro_body(p, n, "endmacro");
    return n;
}

/* {% call f(x) %}: writes what the call gives, with the block as one more argument named caller. */
static jinja_node *parse_call_block(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_OUTPUT), *macro = jinja_new_node(p, NODE_MACRO);
    jinja_node *arg = jinja_new_node(p, NODE_ARG);
    jinja_take(p);
    if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
        parse_params(p, macro);
    }
    n->a = jinja_parse_call(p);
    end_tag(p);
    if (n->a->kind != NODE_CALL) {
        return jinja_syntax_error(p, "expected a call");
    }
    arg->a = macro;
    arg->text = macro->text = "caller";
    arg->len = macro->len = strlen(macro->text);
    jinja_add_item(p, n->a, arg);
    parse_macro_body(p, macro, "endcall");
    return n;
}

static jinja_node *parse_filter_block(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_FILTER_BLOCK);
    jinja_take(p);
    n->b = jinja_parse_filters(p, NULL, true);
    end_tag(p);
    n->body = parse_body_to(p, "endfilter");
    return n;
}

static jinja_node *parse_with(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_WITH);
    jinja_take(p);
    while (!p->err && !jinja_next_is(p, JINJA_TOKEN_BLOCK_END, NULL)) {
        jinja_node *set = jinja_new_node(p, NODE_SET);
        if (n->n_items) {
            jinja_expect(p, JINJA_TOKEN_OP, ",");
        }
        set->a = parse_target_name(p);
        jinja_expect(p, JINJA_TOKEN_OP, "=");
        set->b = jinja_parse_expression(p, JINJA_WITH_CONDITION);
        jinja_add_item(p, n, set);
    }
    end_tag(p);
    n->body = parse_body_to(p, "endwith");
    return n;
}

/* {% generation %} marks what the assistant wrote, for training; here it only makes a scope. */
static jinja_node *parse_generation(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_SCOPE);
    int n_loops = p->n_loops;
    jinja_take(p);
    end_tag(p);
    p->n_loops = 0;
    n->body = parse_body_to(p, "endgeneration");
    p->n_loops = n_loops;
    return n;
}

static jinja_node *parse_jump(jinja_parser *p)
{
    jinja_node *n =
        jinja_new_node(p, jinja_next_is(p, JINJA_TOKEN_NAME, "break") ? NODE_BREAK : NODE_CONTINUE);
    if (p->n_loops == 0) {
        return jinja_syntax_error(p, "break or continue outside of a loop");
    }
    jinja_take(p);
    end_tag(p);
    return n;
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

/* True if the block that begins here is one of `ends`; its opening is taken then. */
static bool accept_end(jinja_parser *p, const char *const *ends)
{
    for (; ends && *ends && jinja_next_is(p, JINJA_TOKEN_BLOCK_BEGIN, NULL); ends++) {
        if (jinja_token_is(jinja_peek_second(p), JINJA_TOKEN_NAME, *ends)) {
            jinja_take(p);
            return true;
        }
    }
    return false;
}

static jinja_node *parse_one(jinja_parser *p)
{
    if (jinja_next_is(p, JINJA_TOKEN_DATA, NULL)) {
        jinja_node *n = jinja_new_node(p, NODE_TEXT);
        const jinja_token *t = jinja_take(p);
        n->text = t->text;
        n->len = t->len;
        return n;
    }
    if (jinja_next_is(p, JINJA_TOKEN_VAR_BEGIN, NULL)) {
        jinja_node *n = jinja_new_node(p, NODE_OUTPUT);
        jinja_take(p);
        n->a = jinja_parse_tuple(p, JINJA_WITH_CONDITION);
        jinja_expect(p, JINJA_TOKEN_VAR_END, NULL);
        return n;
    }
    jinja_take(p);
    return parse_statement(p);
}

/* Statements up to one of the end tags (NULL: up to the end of the template), of which the last
 * always ends the statement around. NULL for an empty body. */
static jinja_node *parse_body(jinja_parser *p, const char *const *ends)
{
    jinja_node *first = NULL, **link = &first;
    jinja_nest(p);
    bool ended = false;
    while (!jinja_next_is(p, JINJA_TOKEN_END, NULL) && !(ended = accept_end(p, ends))) {
        *link = parse_one(p);
        link = &(*link)->next;
    }
    p->depth--;
    if (ends && !ended) {
        char what[64];
        while (ends[1]) {
            ends++;
        }
        snprintf(what, sizeof what, "the template ends before '%s'", ends[0]);
        jinja_syntax_error(p, what);
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
    err_code err = jinja_lex(&p.tokens, text, len, a, detail);
    if (err) {
        return err;
    }
    out->loop = jinja_intern(&p, "loop", 4, false);
    out->caller = jinja_intern(&p, "caller", 6, false);
    out->varargs = jinja_intern(&p, "varargs", 7, false);
    out->kwargs = jinja_intern(&p, "kwargs", 6, false);
    out->body = parse_body(&p, NULL);
    for (size_t i = 0; i < out->n_symbols; i++) {
        const jinja_symbol *s = &out->symbols[i];
        if (s->called_line > 0 && !s->is_set && !jinja_find_global(s->name, s->len)) {
            jinja_note_unknown(&p, "function", s->name, s->called_line);
        }
    }
    return p.err;
}
