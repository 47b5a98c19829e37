#include "text/jinja/jinja_parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/jinja_library.h"

enum { PARSE_DEPTH = 150, ITEMS_MIN = 4 };

/* ---- tokens and nodes ---- */

/* The token so many behind the next one. The last token is the end. */
static const jinja_token *look(const jinja_parser *p, size_t ahead)
{
    size_t last = p->tokens.len - 1;
    return &p->tokens.items[p->err || p->at + ahead > last ? last : p->at + ahead];
}

const jinja_token *jinja_peek(const jinja_parser *p)
{
    return look(p, 0);
}

const jinja_token *jinja_peek_second(const jinja_parser *p)
{
    return look(p, 1);
}

const jinja_token *jinja_take(jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    p->at += t->kind != JINJA_TOKEN_END;
    return t;
}

bool jinja_token_is(const jinja_token *t, jinja_token_kind kind, const char *text)
{
    return t->kind == kind && (!text || (t->len == strlen(text) && memcmp(t->text, text, t->len) == 0));
}

bool jinja_next_is(const jinja_parser *p, jinja_token_kind kind, const char *text)
{
    return jinja_token_is(jinja_peek(p), kind, text);
}

bool jinja_accept(jinja_parser *p, jinja_token_kind kind, const char *text)
{
    bool found = jinja_next_is(p, kind, text);
    p->at += found;
    return found;
}

jinja_node *jinja_syntax_error(jinja_parser *p, const char *what)
{
    if (!p->err) {
        p->err = err_set(p->detail, ERR_INVALID, "chat template, line %d: %s", jinja_peek(p)->line, what);
    }
    return &p->spare;
}

static void no_memory(jinja_parser *p)
{
    p->err = p->err ? p->err : err_set(p->detail, ERR_NOMEM, "no memory to read the chat template");
}

const jinja_token *jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *text)
{
    static const char *const names[] = {"the end",    "text",
                                        "a block",    "the end of the block",
                                        "an output",  "the end of the output",
                                        "a name",     "a string",
                                        "a number",   "a number",
                                        "an operator"};
    if (!jinja_next_is(p, kind, text)) {
        char what[96];
        snprintf(what, sizeof what, "expected %s%s%s", text ? "'" : "", text ? text : names[kind],
                 text ? "'" : "");
        jinja_syntax_error(p, what);
    }
    return jinja_take(p);
}

void jinja_nest(jinja_parser *p)
{
    if (++p->depth > PARSE_DEPTH) {
        jinja_syntax_error(p, "the template is nested too deeply");
    }
}

jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind)
{
    jinja_node *n = p->err ? NULL : arena_calloc(p->arena, 1, sizeof *n);
    if (!n) {
        no_memory(p);
        n = &p->spare;
        memset(n, 0, sizeof *n);
    }
    n->kind = kind;
    n->line = jinja_peek(p)->line;
    n->symbol = -1;
    return n;
}

void jinja_add_item(jinja_parser *p, jinja_node *to, jinja_node *item)
{
    size_t n = to->n_items;
    /* The room doubles at powers of two. */
    if (!p->err && (n == 0 || (n >= ITEMS_MIN && (n & (n - 1)) == 0))) {
        jinja_node **items = arena_calloc(p->arena, n ? 2 * n : ITEMS_MIN, sizeof *items);
        if (!items) {
            no_memory(p);
        } else if (n) {
            memcpy(items, to->items, n * sizeof *items);
        }
        to->items = items;
    }
    if (!p->err) {
        to->items[to->n_items++] = item;
    }
}

int32_t jinja_intern(jinja_parser *p, const char *name, size_t len, bool read)
{
    jinja_program *g = p->program;
    for (size_t i = 0; i < g->n_symbols; i++) {
        if (g->symbols[i].len == len && memcmp(g->symbols[i].name, name, len) == 0) {
            g->symbols[i].is_read = g->symbols[i].is_read || read;
            g->symbols[i].is_set = g->symbols[i].is_set || !read;
            return (int32_t)i;
        }
    }
    if (p->err) {
        return -1;
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
    g->symbols[g->n_symbols] = (jinja_symbol){copy, len, read, !read, 0};
    return (int32_t)g->n_symbols++;
}

void jinja_note_unknown(jinja_parser *p, const char *kind, const char *name, int line)
{
    char *out = p->program->unknown, note[96];
    const size_t n = strlen(out);
    const int len =
        snprintf(note, sizeof note, "%sthe %s '%.40s' (line %d)", n ? ", " : "", kind, name, line);
    if (len > 0 && n + (size_t)len < sizeof p->program->unknown) {
        memcpy(out + n, note, (size_t)len + 1);
    }
}

void jinja_set_text(jinja_parser *p, jinja_node *n, const jinja_token *t)
{
    n->text = arena_strdup(p->arena, t->text, t->len);
    n->len = t->len;
    if (!n->text) {
        no_memory(p);
        n->text = "";
    }
}

static jinja_node *unary_node(jinja_parser *p, jinja_node_kind kind, jinja_node *a)
{
    jinja_node *n = jinja_new_node(p, kind);
    n->a = a;
    n->line = a->line;
    return n;
}

static jinja_node *binary_node(jinja_parser *p, jinja_node_kind kind, jinja_op op, jinja_node *a,
                               jinja_node *b)
{
    jinja_node *n = unary_node(p, kind, a);
    n->op = (int)op;
    n->b = b;
    return n;
}

static jinja_node *const_node(jinja_parser *p, jinja_value value)
{
    jinja_node *n = jinja_new_node(p, NODE_CONST);
    n->value = value;
    return n;
}

/* Whether one more item of a list precedes `closing`; takes the comma, which may also stand behind
 * the last item, and the closing bracket. */
static bool next_item(jinja_parser *p, bool first, const char *closing)
{
    if (!first && !jinja_next_is(p, JINJA_TOKEN_OP, closing)) {
        jinja_expect(p, JINJA_TOKEN_OP, ",");
    }
    return !jinja_accept(p, JINJA_TOKEN_OP, closing) && !p->err;
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
    if (m.failed) {
        no_memory(p);
    }
    return const_node(p, text);
}

static jinja_node *parse_name(jinja_parser *p)
{
    static const struct {
        const char *name;
        jinja_value value;
    } constants[] = {
        {"true", {.type = JINJA_BOOL, .as.boolean = true}},
        {"True", {.type = JINJA_BOOL, .as.boolean = true}},
        {"false", {.type = JINJA_BOOL}},
        {"False", {.type = JINJA_BOOL}},
        {"none", {.type = JINJA_NONE}},
        {"None", {.type = JINJA_NONE}},
    };
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        if (jinja_accept(p, JINJA_TOKEN_NAME, constants[i].name)) {
            return const_node(p, constants[i].value);
        }
    }
    jinja_node *n = jinja_new_node(p, NODE_NAME);
    const jinja_token *t = jinja_take(p);
    n->symbol = jinja_intern(p, t->text, t->len, true);
    if (p->macro) {
        p->macro->uses_caller = p->macro->uses_caller || n->symbol == p->program->caller;
        p->macro->uses_varargs = p->macro->uses_varargs || n->symbol == p->program->varargs;
        p->macro->uses_kwargs = p->macro->uses_kwargs || n->symbol == p->program->kwargs;
    }
    return n;
}

static jinja_node *parse_list(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_LIST);
    jinja_take(p);
    while (next_item(p, n->n_items == 0, "]")) {
        jinja_add_item(p, n, jinja_parse_expression(p, JINJA_WITH_CONDITION));
    }
    return n;
}

static jinja_node *parse_dict(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_DICT);
    jinja_take(p);
    while (next_item(p, n->n_items == 0, "}")) {
        jinja_add_item(p, n, jinja_parse_expression(p, JINJA_WITH_CONDITION));
        jinja_expect(p, JINJA_TOKEN_OP, ":");
        jinja_add_item(p, n, jinja_parse_expression(p, JINJA_WITH_CONDITION));
    }
    return n;
}

static jinja_node *parse_parentheses(jinja_parser *p)
{
    jinja_take(p);
    jinja_node *n = jinja_next_is(p, JINJA_TOKEN_OP, ")") ? jinja_new_node(p, NODE_TUPLE)
                                                          : jinja_parse_tuple(p, JINJA_WITH_CONDITION);
    jinja_expect(p, JINJA_TOKEN_OP, ")");
    return n;
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
    jinja_node *n = unary_node(p, NODE_ATTR, of);
    jinja_set_text(p, n, jinja_expect(p, JINJA_TOKEN_NAME, NULL));
    return n;
}

/* a[b] or a[b:c:d]. */
static jinja_node *parse_subscript(jinja_parser *p, jinja_node *of)
{
    jinja_node *parts[3] = {NULL, NULL, NULL};
    size_t i = 0;
    bool slice = false;
    jinja_take(p);
    while (!p->err && !jinja_next_is(p, JINJA_TOKEN_OP, "]")) {
        if (jinja_accept(p, JINJA_TOKEN_OP, ":")) {
            slice = true;
            if (++i > 2) {
                return jinja_syntax_error(p, "a slice has at most three parts");
            }
        } else if (parts[i]) {
            jinja_expect(p, JINJA_TOKEN_OP, "]");
        } else {
            parts[i] = jinja_parse_expression(p, JINJA_WITH_CONDITION);
        }
    }
    if (!slice && !parts[0]) {
        return jinja_syntax_error(p, "expected a subscript");
    }
    jinja_take(p);
    jinja_node *n = binary_node(p, slice ? NODE_SLICE : NODE_ITEM, 0, of, parts[0]);
    n->c = parts[1];
    n->d = parts[2];
    return n;
}

static jinja_node *parse_argument(jinja_parser *p)
{
    jinja_node *n = jinja_new_node(p, NODE_ARG);
    if (jinja_accept(p, JINJA_TOKEN_OP, "*")) {
        n->op = ARG_LIST;
    } else if (jinja_accept(p, JINJA_TOKEN_OP, "**")) {
        n->op = ARG_DICT;
    } else if (jinja_next_is(p, JINJA_TOKEN_NAME, NULL) &&
               jinja_token_is(jinja_peek_second(p), JINJA_TOKEN_OP, "=")) {
        jinja_set_text(p, n, jinja_take(p));
        jinja_take(p);
    }
    n->a = jinja_parse_expression(p, JINJA_WITH_CONDITION);
    return n;
}

/* Arguments behind "(" up to ")". */
static void parse_arguments(jinja_parser *p, jinja_node *call)
{
    bool named = false;
    while (next_item(p, call->n_items == 0, ")")) {
        jinja_node *n = parse_argument(p);
        jinja_add_item(p, call, n);
        if (named && n->op == ARG_PLAIN && !n->text) {
            jinja_syntax_error(p, "a positional argument after a named one");
        }
        named = named || n->text || n->op == ARG_DICT;
    }
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *of)
{
    jinja_node *n = unary_node(p, NODE_CALL, of);
    if (of->kind == NODE_NAME && of->symbol >= 0 && p->program->symbols[of->symbol].called_line == 0) {
        p->program->symbols[of->symbol].called_line = n->line;
    }
    jinja_take(p);
    parse_arguments(p, n);
    return n;
}

/* A name with dots, as filters and tests have it: the last part counts. */
static void parse_dotted_name(jinja_parser *p, jinja_node *n)
{
    const jinja_token *t = jinja_expect(p, JINJA_TOKEN_NAME, NULL);
    while (jinja_next_is(p, JINJA_TOKEN_OP, ".") &&
           jinja_token_is(jinja_peek_second(p), JINJA_TOKEN_NAME, NULL)) {
        jinja_take(p);
        t = jinja_take(p);
    }
    jinja_set_text(p, n, t);
}

static jinja_node *parse_filter(jinja_parser *p, jinja_node *input)
{
    jinja_node *n = jinja_new_node(p, NODE_FILTER);
    parse_dotted_name(p, n);
    n->a = input;
    n->found = jinja_find_filter(n->text, n->len);
    if (!n->found) {
        jinja_note_unknown(p, "filter", n->text, n->line);
    }
    if (jinja_accept(p, JINJA_TOKEN_OP, "(")) {
        parse_arguments(p, n);
    }
    return n;
}

jinja_node *jinja_parse_filters(jinja_parser *p, jinja_node *input, bool first_without_pipe)
{
    jinja_node *n = first_without_pipe ? parse_filter(p, input) : input;
    while (jinja_accept(p, JINJA_TOKEN_OP, "|")) {
        n = parse_filter(p, n);
    }
    return n;
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *n)
{
    for (;;) {
        if (jinja_next_is(p, JINJA_TOKEN_OP, ".")) {
            n = parse_attribute(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "[")) {
            n = parse_subscript(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
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
        return !jinja_token_is(t, t->kind, "else") && !jinja_token_is(t, t->kind, "or") &&
               !jinja_token_is(t, t->kind, "and");
    default:
        return jinja_token_is(t, JINJA_TOKEN_OP, "[") || jinja_token_is(t, JINJA_TOKEN_OP, "{");
    }
}

static jinja_node *parse_test(jinja_parser *p, jinja_node *of)
{
    jinja_take(p);
    bool negated = jinja_accept(p, JINJA_TOKEN_NAME, "not");
    jinja_node *n = unary_node(p, NODE_TEST, of);
    parse_dotted_name(p, n);
    n->found = jinja_find_test(n->text, n->len);
    if (!n->found) {
        jinja_note_unknown(p, "test", n->text, n->line);
    }
    if (jinja_accept(p, JINJA_TOKEN_OP, "(")) {
        parse_arguments(p, n);
    } else if (jinja_next_is(p, JINJA_TOKEN_NAME, "is")) {
        return jinja_syntax_error(p, "tests cannot be chained with 'is'");
    } else if (test_argument_follows(p)) {
        jinja_node *arg = jinja_new_node(p, NODE_ARG);
        arg->a = jinja_parse_call(p);
        jinja_add_item(p, n, arg);
    }
    return negated ? unary_node(p, NODE_NOT, n) : n;
}

/* Filters, tests and calls, which bind tighter than any operator. */
static jinja_node *parse_filter_expression(jinja_parser *p, jinja_node *n)
{
    for (;;) {
        if (jinja_next_is(p, JINJA_TOKEN_OP, "|")) {
            n = jinja_parse_filters(p, n, false);
        } else if (jinja_next_is(p, JINJA_TOKEN_NAME, "is")) {
            n = parse_test(p, n);
        } else if (jinja_next_is(p, JINJA_TOKEN_OP, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
}

/* ---- operators, tightest first ---- */

static jinja_node *parse_unary(jinja_parser *p, bool with_filter)
{
    jinja_node *n;
    jinja_nest(p);
    if (jinja_accept(p, JINJA_TOKEN_OP, "-")) {
        n = unary_node(p, NODE_NEG, parse_unary(p, false));
    } else if (jinja_accept(p, JINJA_TOKEN_OP, "+")) {
        n = unary_node(p, NODE_POS, parse_unary(p, false));
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    n = with_filter ? parse_filter_expression(p, n) : n;
    p->depth--;
    return n;
}

static jinja_node *parse_operand(jinja_parser *p)
{
    return parse_unary(p, true);
}

typedef struct binary_operator {
    const char *text;
    jinja_token_kind token;
    jinja_node_kind node;
    jinja_op op;
} binary_operator;

/* Operands with operators of one level between them, from left to right. The table ends with a NULL
 * text. */
static jinja_node *parse_level(jinja_parser *p, const binary_operator *operators,
                               jinja_node *(*operand)(jinja_parser *p))
{
    jinja_node *n = operand(p);
    for (const binary_operator *o = operators; o->text;) {
        if (jinja_accept(p, o->token, o->text)) {
            n = binary_node(p, o->node, o->op, n, operand(p));
            o = operators;
        } else {
            o++;
        }
    }
    return n;
}

static jinja_node *parse_power(jinja_parser *p)
{
    static const binary_operator operators[] = {{"**", JINJA_TOKEN_OP, NODE_BINARY, OP_POW}, {.text = NULL}};
    return parse_level(p, operators, parse_operand);
}

static jinja_node *parse_product(jinja_parser *p)
{
    static const binary_operator operators[] = {{"*", JINJA_TOKEN_OP, NODE_BINARY, OP_MUL},
                                                {"/", JINJA_TOKEN_OP, NODE_BINARY, OP_DIV},
                                                {"//", JINJA_TOKEN_OP, NODE_BINARY, OP_FLOORDIV},
                                                {"%", JINJA_TOKEN_OP, NODE_BINARY, OP_MOD},
                                                {.text = NULL}};
    return parse_level(p, operators, parse_power);
}

static jinja_node *parse_concat(jinja_parser *p)
{
    jinja_node *first = parse_product(p);
    if (!jinja_next_is(p, JINJA_TOKEN_OP, "~")) {
        return first;
    }
    jinja_node *n = jinja_new_node(p, NODE_CONCAT);
    jinja_add_item(p, n, first);
    while (jinja_accept(p, JINJA_TOKEN_OP, "~")) {
        jinja_add_item(p, n, parse_product(p));
    }
    return n;
}

static jinja_node *parse_sum(jinja_parser *p)
{
    static const binary_operator operators[] = {{"+", JINJA_TOKEN_OP, NODE_BINARY, OP_ADD},
                                                {"-", JINJA_TOKEN_OP, NODE_BINARY, OP_SUB},
                                                {.text = NULL}};
    return parse_level(p, operators, parse_concat);
}

/* The comparison operator that stands next, taken; false if there is none. */
static bool accept_comparison(jinja_parser *p, jinja_op *op)
{
    static const struct {
        const char *text;
        jinja_token_kind token;
        jinja_op op;
    } operators[] = {{"==", JINJA_TOKEN_OP, OP_EQ},  {"!=", JINJA_TOKEN_OP, OP_NE},
                     {"<", JINJA_TOKEN_OP, OP_LT},   {"<=", JINJA_TOKEN_OP, OP_LE},
                     {">", JINJA_TOKEN_OP, OP_GT},   {">=", JINJA_TOKEN_OP, OP_GE},
                     {"in", JINJA_TOKEN_NAME, OP_IN}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (jinja_accept(p, operators[i].token, operators[i].text)) {
            *op = operators[i].op;
            return true;
        }
    }
    *op = OP_NOT_IN;
    bool not_in = jinja_next_is(p, JINJA_TOKEN_NAME, "not") &&
                  jinja_token_is(jinja_peek_second(p), JINJA_TOKEN_NAME, "in");
    p->at += not_in ? 2 : 0;
    return not_in;
}

static jinja_node *parse_comparison(jinja_parser *p)
{
    jinja_node *first = parse_sum(p), *n = NULL;
    jinja_op op;
    while (accept_comparison(p, &op)) {
        n = n ? n : unary_node(p, NODE_COMPARE, first);
        jinja_node *right = jinja_new_node(p, NODE_BINARY);
        right->op = (int)op;
        right->b = parse_sum(p);
        jinja_add_item(p, n, right);
    }
    return n ? n : first;
}

static jinja_node *parse_not(jinja_parser *p)
{
    if (!jinja_accept(p, JINJA_TOKEN_NAME, "not")) {
        return parse_comparison(p);
    }
    jinja_nest(p);
    jinja_node *n = unary_node(p, NODE_NOT, parse_not(p));
    p->depth--;
    return n;
}

static jinja_node *parse_and(jinja_parser *p)
{
    static const binary_operator operators[] = {{"and", JINJA_TOKEN_NAME, NODE_AND, 0}, {.text = NULL}};
    return parse_level(p, operators, parse_not);
}

static jinja_node *parse_or(jinja_parser *p)
{
    static const binary_operator operators[] = {{"or", JINJA_TOKEN_NAME, NODE_OR, 0}, {.text = NULL}};
    return parse_level(p, operators, parse_and);
}

jinja_node *jinja_parse_expression(jinja_parser *p, jinja_condition condition)
{
    jinja_nest(p);
    jinja_node *n = parse_or(p);
    while (condition == JINJA_WITH_CONDITION && jinja_accept(p, JINJA_TOKEN_NAME, "if")) {
        n = binary_node(p, NODE_COND, 0, parse_or(p), n);
        if (jinja_accept(p, JINJA_TOKEN_NAME, "else")) {
            n->c = jinja_parse_expression(p, JINJA_WITH_CONDITION);
        }
    }
    p->depth--;
    return n;
}

static bool tuple_ends(const jinja_parser *p)
{
    const jinja_token *t = jinja_peek(p);
    return t->kind == JINJA_TOKEN_VAR_END || t->kind == JINJA_TOKEN_BLOCK_END ||
           jinja_token_is(t, JINJA_TOKEN_OP, ")") || jinja_token_is(t, JINJA_TOKEN_NAME, "recursive");
}

jinja_node *jinja_parse_tuple(jinja_parser *p, jinja_condition condition)
{
    jinja_node *first = jinja_parse_expression(p, condition);
    if (!jinja_next_is(p, JINJA_TOKEN_OP, ",")) {
        return first;
    }
    jinja_node *n = jinja_new_node(p, NODE_TUPLE);
    jinja_add_item(p, n, first);
    while (jinja_accept(p, JINJA_TOKEN_OP, ",") && !tuple_ends(p)) {
        jinja_add_item(p, n, jinja_parse_expression(p, condition));
    }
    return n;
}
