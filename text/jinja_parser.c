#include "text/jinja_parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja_library.h"

/* ---- tokens and nodes ---- */

const jinja_token *jinja_peek(const jinja_parser *p)
{
    return &p->tokens.items[p->at];
}

const jinja_token *jinja_take(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    p->at += t->kind != JINJA_TOKEN_END;
    return t;
}

static bool token_is(const jinja_token *t, jinja_token_kind kind, const char *text)
{
    return t->kind == kind && (!text || (t->len == strlen(text) && memcmp(t->text, text, t->len) == 0));
}

bool jinja_next_is(const jinja_parser *p, jinja_token_kind kind, const char *text)
{
    return token_is(jinja_peek(p), kind, text);
}

bool jinja_accept(jinja_parser *p, jinja_token_kind kind, const char *text)
{
    if (!jinja_next_is(p, kind, text)) {
        return false;
    }
    p->at++;
    return true;
}

void *jinja_syntax_error(jinja_parser *p, const char *what)
{
    if (!p->err) {
        p->err = err_set(p->detail, ERR_INVALID, "chat template, line %d: %s", jinja_peek(p)->line, what);
    }
    return NULL;
}

static void *no_memory(jinja_parser *p)
{
    p->err = p->err ? p->err : err_set(p->detail, ERR_NOMEM, "no memory to read the chat template");
    return NULL;
}

bool jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *text)
{
    static const char *const names[] = {"the end",    "text",
                                        "a block",    "the end of the block",
                                        "an output",  "the end of the output",
                                        "a name",     "a string",
                                        "a number",   "a number",
                                        "an operator"};
    if (jinja_accept(p, kind, text)) {
        return true;
    }
    char what[96];
    snprintf(what, sizeof what, "expected %s%s%s", text ? "'" : "", text ? text : names[kind],
             text ? "'" : "");
    jinja_syntax_error(p, what);
    return false;
}

jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind)
{
    jinja_node *n = arena_calloc(p->arena, 1, sizeof *n);
    if (!n) {
        return no_memory(p);
    }
    n->kind = kind;
    n->line = jinja_peek(p)->line;
    n->symbol = -1;
    return n;
}

bool jinja_add_node(jinja_parser *p, jinja_nodes *list, jinja_node *item)
{
    if (!item) {
        return false;
    }
    if (list->len == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 4;
        jinja_node **items = arena_calloc(p->arena, cap, sizeof *items);
        if (!items) {
            no_memory(p);
            return false;
        }
        if (list->len) {
            memcpy(items, list->items, list->len * sizeof *items);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->len++] = item;
    return true;
}

int32_t jinja_intern(jinja_parser *p, const char *name, size_t len, bool read)
{
    jinja_program *g = p->program;
    for (size_t i = 0; i < g->n_symbols; i++) {
        if (g->symbols[i].len == len && memcmp(g->symbols[i].name, name, len) == 0) {
            g->symbols[i].is_read = g->symbols[i].is_read || read;
            return (int32_t)i;
        }
    }
    if (g->n_symbols == JINJA_MAX_SYMBOLS) {
        p->err =
            err_set(p->detail, ERR_LIMIT, "the chat template uses more than %d names", JINJA_MAX_SYMBOLS);
        return -1;
    }
    char *copy = arena_strdup(p->arena, name, len);
    if (!copy) {
        no_memory(p);
        return -1;
    }
    g->symbols[g->n_symbols] = (jinja_symbol){copy, len, read};
    return (int32_t)g->n_symbols++;
}

const char *jinja_copy_name(jinja_parser *p, const jinja_token *t)
{
    const char *copy = arena_strdup(p->arena, t->text, t->len);
    return copy ? copy : no_memory(p);
}

static bool enter(jinja_parser *p)
{
    if (++p->depth > JINJA_PARSE_DEPTH) {
        jinja_syntax_error(p, "the template is nested too deeply");
        return false;
    }
    return true;
}

static jinja_node *leave(jinja_parser *p, jinja_node *n)
{
    p->depth--;
    return p->err ? NULL : n;
}

static jinja_node *unary_node(jinja_parser *p, jinja_node_kind kind, jinja_node *a)
{
    jinja_node *n = a ? jinja_new_node(p, kind) : NULL;
    if (n) {
        n->a = a;
        n->line = a->line;
    }
    return n;
}

static jinja_node *binary_node(jinja_parser *p, jinja_node_kind kind, int op, jinja_node *a, jinja_node *b)
{
    jinja_node *n = b ? unary_node(p, kind, a) : NULL;
    if (n) {
        n->op = op;
        n->b = b;
    }
    return n;
}

static jinja_node *const_node(jinja_parser *p, jinja_value value)
{
    jinja_node *n = jinja_new_node(p, NODE_CONST);
    if (n) {
        n->value = value;
    }
    return n;
}

/* ---- primary expressions ---- */

static jinja_node *parse_number(jinja_parser *p)
{
    const jinja_token *t = jinja_take(p);
    if (t->kind == JINJA_TOKEN_FLOAT) {
        return const_node(p, jinja_make_float(strtod(t->text, NULL)));
    }
    const char *digits = t->text;
    int base = 10;
    if (t->len > 2 && digits[0] == '0' && strchr("xXoObB", digits[1])) {
        base = strchr("xX", digits[1]) ? 16 : strchr("oO", digits[1]) ? 8 : 2;
        digits += 2;
    }
    char *end;
    errno = 0;
    long long i = strtoll(digits, &end, base);
    if (errno || *end) {
        return jinja_syntax_error(p, "a number that cannot be read");
    }
    return const_node(p, jinja_make_int(i));
}

/* Neighbouring string literals are one string. */
static jinja_node *parse_string(jinja_parser *p)
{
    const jinja_token *t = jinja_take(p);
    jinja_value text = jinja_borrow(t->text, t->len);
    jinja_memory m = {.arena = p->arena};
    while (jinja_next_is(p, JINJA_TOKEN_STRING, NULL)) {
        t = jinja_take(p);
        jinja_value more = jinja_borrow(t->text, t->len);
        text = jinja_concat(&m, &text, &more);
        text.extra.buffer = NULL;
    }
    return m.failed ? no_memory(p) : const_node(p, text);
}

static jinja_node *parse_name(jinja_parser *p)
{
    static const struct {
        const char *name;
        jinja_type type;
        bool truth;
    } constants[] = {{"true", JINJA_BOOL, true},   {"True", JINJA_BOOL, true},  {"false", JINJA_BOOL, false},
                     {"False", JINJA_BOOL, false}, {"none", JINJA_NONE, false}, {"None", JINJA_NONE, false}};
    const jinja_token *t = jinja_peek(p);
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        if (token_is(t, JINJA_TOKEN_NAME, constants[i].name)) {
            jinja_take(p);
            return const_node(p, constants[i].type == JINJA_BOOL ? jinja_make_bool(constants[i].truth)
                                                                 : jinja_make_none());
        }
    }
    jinja_node *n = jinja_new_node(p, NODE_NAME);
    if (!n) {
        return NULL;
    }
    jinja_take(p);
    n->symbol = jinja_intern(p, t->text, t->len, true);
    if (p->macro && n->symbol >= 0) {
        p->macro->uses_caller = p->macro->uses_caller || n->symbol == p->program->caller;
        p->macro->uses_varargs = p->macro->uses_varargs || n->symbol == p->program->varargs;
        p->macro->uses_kwargs = p->macro->uses_kwargs || n->symbol == p->program->kwargs;
    }
    return n->symbol < 0 ? NULL : n;
}

static jinja_node *finish_list(jinja_node *n, const jinja_nodes *list)
{
    n->items = list->items;
    n->n_items = list->len;
    return n;
}

static jinja_node *parse_list(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_LIST);
    jinja_nodes list = {0};
    jinja_take(p);
    while (n && !jinja_accept(p, JINJA_TOKEN_OP, "]")) {
        if ((list.len && !jinja_expect(p, JINJA_TOKEN_OP, ",")) ||
            (!jinja_next_is(p, JINJA_TOKEN_OP, "]") &&
             !jinja_add_node(p, &list, jinja_parse_expression(p, JINJA_WITH_CONDITION)))) {
            return NULL;
        }
    }
    return n ? finish_list(n, &list) : NULL;
}

static jinja_node *parse_dict(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_DICT);
    jinja_nodes list = {0};
    jinja_take(p);
    while (n && !jinja_accept(p, JINJA_TOKEN_OP, "}")) {
        if (list.len && !jinja_expect(p, JINJA_TOKEN_OP, ",")) {
            return NULL;
        }
        if (jinja_accept(p, JINJA_TOKEN_OP, "}")) {
            break;
        }
        if (!jinja_add_node(p, &list, jinja_parse_expression(p, JINJA_WITH_CONDITION)) ||
            !jinja_expect(p, JINJA_TOKEN_OP, ":") ||
            !jinja_add_node(p, &list, jinja_parse_expression(p, JINJA_WITH_CONDITION))) {
            return NULL;
        }
    }
    return n ? finish_list(n, &list) : NULL;
}

static jinja_node *parse_parentheses(jinja_parser *p)
{
    jinja_take(p);
    if (jinja_next_is(p, JINJA_TOKEN_OP, ")")) {
        jinja_node *empty = jinja_new_node(p, NODE_TUPLE);
        jinja_take(p);
        return empty;
    }
    jinja_node *n = jinja_parse_tuple(p, JINJA_WITH_CONDITION);
    return n && jinja_expect(p, JINJA_TOKEN_OP, ")") ? n : NULL;
}

static jinja_node *parse_primary(jinja_parser *p)
{
    switch (jinja_peek(p)->kind) {
    case JINJA_TOKEN_NAME:
        return parse_name(p);
    case JINJA_TOKEN_STRING:
        return parse_string(p);
    case JINJA_TOKEN_INT:
    case JINJA_TOKEN_FLOAT:
        return parse_number(p);
    default:
        break;
    }
    if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
        return parse_parentheses(p);
    }
    if (jinja_next_is(p, JINJA_TOKEN_OP, "[")) {
        return parse_list(p);
    }
    if (jinja_next_is(p, JINJA_TOKEN_OP, "{")) {
        return parse_dict(p);
    }
    return jinja_syntax_error(p, "expected an expression");
}

/* ---- postfix: attributes, subscripts, calls, filters, tests ---- */

static jinja_node *parse_attribute(jinja_parser *p, jinja_node *of)
{
    jinja_take(p);
    if (jinja_next_is(p, JINJA_TOKEN_INT, NULL)) {
        return binary_node(p, NODE_ITEM, 0, of, parse_number(p));
    }
    const jinja_token *t = jinja_peek(p);
    if (!jinja_expect(p, JINJA_TOKEN_NAME, NULL)) {
        return NULL;
    }
    jinja_node *n = unary_node(p, NODE_ATTR, of);
    if (!n || !(n->text = jinja_copy_name(p, t))) {
        return NULL;
    }
    n->len = t->len;
    return n;
}

/* The parts of [b:c:d]; true in *slice if there was a colon. */
static bool parse_subscript_parts(jinja_parser *p, jinja_node *parts[3], bool *slice)
{
    size_t i = 0;
    *slice = false;
    while (!jinja_next_is(p, JINJA_TOKEN_OP, "]")) {
        if (jinja_accept(p, JINJA_TOKEN_OP, ":")) {
            *slice = true;
            if (++i > 2) {
                jinja_syntax_error(p, "a slice has at most three parts");
                return false;
            }
        } else if (parts[i]) {
            return jinja_expect(p, JINJA_TOKEN_OP, "]");
        } else if (!(parts[i] = jinja_parse_expression(p, JINJA_WITH_CONDITION))) {
            return false;
        }
    }
    if (!*slice && !parts[0]) {
        jinja_syntax_error(p, "expected a subscript");
        return false;
    }
    jinja_take(p);
    return true;
}

static jinja_node *parse_subscript(jinja_parser *p, jinja_node *of)
{
    jinja_node *parts[3] = {NULL, NULL, NULL};
    bool slice;
    jinja_take(p);
    if (!parse_subscript_parts(p, parts, &slice)) {
        return NULL;
    }
    jinja_node *n = unary_node(p, slice ? NODE_SLICE : NODE_ITEM, of);
    if (n) {
        n->b = parts[0];
        n->c = parts[1];
        n->d = parts[2];
    }
    return n;
}

static jinja_node *parse_argument(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_ARG);
    if (!n) {
        return NULL;
    }
    const jinja_token *t = jinja_peek(p);
    if (jinja_accept(p, JINJA_TOKEN_OP, "*")) {
        n->op = ARG_LIST;
    } else if (jinja_accept(p, JINJA_TOKEN_OP, "**")) {
        n->op = ARG_DICT;
    } else if (t->kind == JINJA_TOKEN_NAME && token_is(t + 1, JINJA_TOKEN_OP, "=")) {
        p->at += 2;
        if (!(n->text = jinja_copy_name(p, t))) {
            return NULL;
        }
        n->len = t->len;
    }
    n->a = jinja_parse_expression(p, JINJA_WITH_CONDITION);
    return n->a ? n : NULL;
}

bool jinja_parse_arguments(jinja_parser *p, jinja_node *call)
{
    jinja_nodes list = {0};
    bool named = false;
    while (!jinja_accept(p, JINJA_TOKEN_OP, ")")) {
        if (list.len && !jinja_expect(p, JINJA_TOKEN_OP, ",")) {
            return false;
        }
        if (jinja_accept(p, JINJA_TOKEN_OP, ")")) {
            break;
        }
        jinja_node *n = parse_argument(p);
        if (!jinja_add_node(p, &list, n)) {
            return false;
        }
        if (named && n->op == ARG_PLAIN && !n->text) {
            jinja_syntax_error(p, "a positional argument after a named one");
            return false;
        }
        named = named || n->text || n->op == ARG_DICT;
    }
    finish_list(call, &list);
    return true;
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *of)
{
    jinja_node *n = unary_node(p, NODE_CALL, of);
    jinja_take(p);
    return n && jinja_parse_arguments(p, n) ? n : NULL;
}

/* A name with dots, as filters and tests have it. */
static const char *parse_dotted_name(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    if (!jinja_expect(p, JINJA_TOKEN_NAME, NULL)) {
        return NULL;
    }
    while (jinja_next_is(p, JINJA_TOKEN_OP, ".") && token_is(jinja_peek(p) + 1, JINJA_TOKEN_NAME, NULL)) {
        jinja_take(p);
        t = jinja_take(p);
    }
    return jinja_copy_name(p, t);
}

static jinja_node *parse_filter(jinja_parser *p, jinja_node *input)
{
    jinja_node *n = jinja_new_node(p, NODE_FILTER);
    if (!n || !(n->text = parse_dotted_name(p))) {
        return NULL;
    }
    n->a = input;
    n->found = jinja_find_filter(n->text, strlen(n->text));
    if (jinja_accept(p, JINJA_TOKEN_OP, "(") && !jinja_parse_arguments(p, n)) {
        return NULL;
    }
    return n;
}

jinja_node *jinja_parse_filters(jinja_parser *p, jinja_node *input, bool first_without_pipe)
{
    jinja_node *n = input;
    if (first_without_pipe && !(n = parse_filter(p, n))) {
        return NULL;
    }
    while (jinja_accept(p, JINJA_TOKEN_OP, "|")) {
        if (!(n = parse_filter(p, n))) {
            return NULL;
        }
    }
    return n;
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *n)
{
    while (n && jinja_peek(p)->kind == JINJA_TOKEN_OP) {
        if (jinja_next_is(p, JINJA_TOKEN_OP, ".")) {
            n = parse_attribute(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "[")) {
            n = parse_subscript(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
            n = parse_call(p, n);
        } else {
            break;
        }
    }
    return n;
}

jinja_node *jinja_parse_call(jinja_parser *p)
{
    return parse_postfix(p, parse_primary(p));
}

/* Whether an argument without parentheses stands behind the name of a test: "is divisibleby 3". */
static bool test_argument_follows(const jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    switch (t->kind) {
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_INT:
    case JINJA_TOKEN_FLOAT:
        return true;
    case JINJA_TOKEN_NAME:
        return !token_is(t, t->kind, "else") && !token_is(t, t->kind, "or") && !token_is(t, t->kind, "and");
    default:
        return token_is(t, JINJA_TOKEN_OP, "[") || token_is(t, JINJA_TOKEN_OP, "{");
    }
}

static jinja_node *parse_test(jinja_parser *p, jinja_node *of)
{
    jinja_take(p);
    bool negated = jinja_accept(p, JINJA_TOKEN_NAME, "not");
    jinja_node *n = unary_node(p, NODE_TEST, of);
    if (!n || !(n->text = parse_dotted_name(p))) {
        return NULL;
    }
    n->found = jinja_find_test(n->text, strlen(n->text));
    if (jinja_accept(p, JINJA_TOKEN_OP, "(")) {
        if (!jinja_parse_arguments(p, n)) {
            return NULL;
        }
    } else if (test_argument_follows(p)) {
        if (jinja_next_is(p, JINJA_TOKEN_NAME, "is")) {
            return jinja_syntax_error(p, "tests cannot be chained with 'is'");
        }
        jinja_node *arg = jinja_new_node(p, NODE_ARG);
        jinja_nodes list = {0};
        if (!arg || !(arg->a = parse_postfix(p, parse_primary(p))) || !jinja_add_node(p, &list, arg)) {
            return NULL;
        }
        finish_list(n, &list);
    }
    return negated ? unary_node(p, NODE_NOT, n) : n;
}

/* Filters, tests and calls, which bind tighter than any operator. */
static jinja_node *parse_filter_expression(jinja_parser *p, jinja_node *n)
{
    while (n) {
        if (jinja_next_is(p, JINJA_TOKEN_OP, "|")) {
            n = jinja_parse_filters(p, n, false);
        } else if (jinja_next_is(p, JINJA_TOKEN_NAME, "is")) {
            n = parse_test(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
            n = parse_call(p, n);
        } else {
            break;
        }
    }
    return n;
}

/* ---- operators, tightest first ---- */

static jinja_node *parse_unary(jinja_parser *p, bool with_filter)
{
    jinja_node *n;
    if (!enter(p)) {
        return leave(p, NULL);
    }
    if (jinja_accept(p, JINJA_TOKEN_OP, "-")) {
        n = unary_node(p, NODE_NEG, parse_unary(p, false));
    } else if (jinja_accept(p, JINJA_TOKEN_OP, "+")) {
        n = unary_node(p, NODE_POS, parse_unary(p, false));
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    return leave(p, with_filter ? parse_filter_expression(p, n) : n);
}

static jinja_node *parse_power(jinja_parser *p)
{
    jinja_node *n = parse_unary(p, true);
    while (n && jinja_accept(p, JINJA_TOKEN_OP, "**")) {
        n = binary_node(p, NODE_BINARY, OP_POW, n, parse_unary(p, true));
    }
    return n;
}

static jinja_node *parse_product(jinja_parser *p)
{
    static const struct {
        const char *text;
        jinja_op op;
    } operators[] = {{"*", OP_MUL}, {"/", OP_DIV}, {"//", OP_FLOORDIV}, {"%", OP_MOD}};
    jinja_node *n = parse_power(p);
    for (size_t i = 0; n && i < ARRAY_LEN(operators); i++) {
        if (jinja_accept(p, JINJA_TOKEN_OP, operators[i].text)) {
            n = binary_node(p, NODE_BINARY, (int)operators[i].op, n, parse_power(p));
            i = (size_t)-1; /* look for all of them again */
        }
    }
    return n;
}

static jinja_node *parse_concat(jinja_parser *p)
{
    jinja_nodes list = {0};
    jinja_node *first = parse_product(p);
    if (!first || !jinja_next_is(p, JINJA_TOKEN_OP, "~")) {
        return first;
    }
    jinja_node *n = jinja_new_node(p, NODE_CONCAT);
    if (!n || !jinja_add_node(p, &list, first)) {
        return NULL;
    }
    while (jinja_accept(p, JINJA_TOKEN_OP, "~")) {
        if (!jinja_add_node(p, &list, parse_product(p))) {
            return NULL;
        }
    }
    return finish_list(n, &list);
}

static jinja_node *parse_sum(jinja_parser *p)
{
    jinja_node *n = parse_concat(p);
    while (n) {
        bool plus = jinja_accept(p, JINJA_TOKEN_OP, "+");
        if (!plus && !jinja_accept(p, JINJA_TOKEN_OP, "-")) {
            break;
        }
        n = binary_node(p, NODE_BINARY, plus ? OP_ADD : OP_SUB, n, parse_concat(p));
    }
    return n;
}

/* The comparison operator that stands next, taken; false if there is none. */
static bool accept_comparison(jinja_parser *p, jinja_op *op)
{
    static const struct {
        const char *text;
        jinja_op op;
    } operators[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<", OP_LT}, {"<=", OP_LE}, {">", OP_GT}, {">=", OP_GE}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (jinja_accept(p, JINJA_TOKEN_OP, operators[i].text)) {
            *op = operators[i].op;
            return true;
        }
    }
    if (jinja_accept(p, JINJA_TOKEN_NAME, "in")) {
        *op = OP_IN;
        return true;
    }
    if (jinja_next_is(p, JINJA_TOKEN_NAME, "not") && token_is(jinja_peek(p) + 1, JINJA_TOKEN_NAME, "in")) {
        p->at += 2;
        *op = OP_NOT_IN;
        return true;
    }
    return false;
}

static jinja_node *parse_comparison(jinja_parser *p)
{
    jinja_node *first = parse_sum(p);
    jinja_nodes list = {0};
    jinja_op op;
    while (first && accept_comparison(p, &op)) {
        jinja_node *n = jinja_new_node(p, NODE_BINARY);
        if (!n || !(n->b = parse_sum(p)) || !jinja_add_node(p, &list, n)) {
            return NULL;
        }
        n->op = (int)op;
    }
    if (!first || list.len == 0) {
        return first;
    }
    jinja_node *n = unary_node(p, NODE_COMPARE, first);
    return n ? finish_list(n, &list) : NULL;
}

static jinja_node *parse_not(jinja_parser *p)
{
    if (!jinja_accept(p, JINJA_TOKEN_NAME, "not")) {
        return parse_comparison(p);
    }
    jinja_node *n = enter(p) ? unary_node(p, NODE_NOT, parse_not(p)) : NULL;
    return leave(p, n);
}

static jinja_node *parse_and(jinja_parser *p)
{
    jinja_node *n = parse_not(p);
    while (n && jinja_accept(p, JINJA_TOKEN_NAME, "and")) {
        n = binary_node(p, NODE_AND, 0, n, parse_not(p));
    }
    return n;
}

static jinja_node *parse_or(jinja_parser *p)
{
    jinja_node *n = parse_and(p);
    while (n && jinja_accept(p, JINJA_TOKEN_NAME, "or")) {
        n = binary_node(p, NODE_OR, 0, n, parse_and(p));
    }
    return n;
}

static jinja_node *parse_condition(jinja_parser *p)
{
    jinja_node *n = parse_or(p);
    while (n && jinja_accept(p, JINJA_TOKEN_NAME, "if")) {
        jinja_node *cond = parse_or(p);
        jinja_node *whole = cond ? binary_node(p, NODE_COND, 0, cond, n) : NULL;
        if (!whole) {
            return NULL;
        }
        if (jinja_accept(p, JINJA_TOKEN_NAME, "else") &&
            !(whole->c = jinja_parse_expression(p, JINJA_WITH_CONDITION))) {
            return NULL;
        }
        n = whole;
    }
    return n;
}

jinja_node *jinja_parse_expression(jinja_parser *p, jinja_condition condition)
{
    jinja_node *n = NULL;
    if (enter(p)) {
        n = condition == JINJA_WITH_CONDITION ? parse_condition(p) : parse_or(p);
    }
    return leave(p, n);
}

static bool tuple_ends(const jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    return t->kind == JINJA_TOKEN_VAR_END || t->kind == JINJA_TOKEN_BLOCK_END ||
           token_is(t, JINJA_TOKEN_OP, ")") || token_is(t, JINJA_TOKEN_NAME, "recursive");
}

jinja_node *jinja_parse_tuple(jinja_parser *p, jinja_condition condition)
{
    jinja_node *first = jinja_parse_expression(p, condition);
    if (!first || !jinja_next_is(p, JINJA_TOKEN_OP, ",")) {
        return first;
    }
    jinja_nodes list = {0};
    jinja_node *n = jinja_new_node(p, NODE_TUPLE);
    if (!n || !jinja_add_node(p, &list, first)) {
        return NULL;
    }
    while (jinja_accept(p, JINJA_TOKEN_OP, ",") && !tuple_ends(p)) {
        if (!jinja_add_node(p, &list, jinja_parse_expression(p, condition))) {
            return NULL;
        }
    }
    return finish_list(n, &list);
}
