/* jinja_parser: what the two halves of the parser share: jinja_parser.c reads expressions,
 * jinja_statements.c statements. A parse function returns NULL after an error, which is then in
 * p->err.
 *
 *     jinja_node *n = jinja_parse_expression(p, JINJA_WITH_CONDITION);
 *     if (!n) { return NULL; }
 */
#ifndef PARLEY_TEXT_JINJA_PARSER_H
#define PARLEY_TEXT_JINJA_PARSER_H

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

enum { JINJA_PARSE_DEPTH = 150 };

typedef struct jinja_parser {
    jinja_tokens tokens;
    size_t at;
    int depth;
    int n_loops; /* loops around, for break and continue */
    arena *arena;
    jinja_program *program;
    jinja_node *macro; /* the macro in work, or NULL */
    err_code err;
    err_detail *detail;
} jinja_parser;

/* List of nodes while it grows. */
typedef struct jinja_nodes {
    jinja_node **items;
    size_t len, cap;
} jinja_nodes;

const jinja_token *jinja_peek(const jinja_parser *p);
const jinja_token *jinja_take(jinja_parser *p);
bool jinja_next_is(const jinja_parser *p, jinja_token_kind kind, const char *text); /* text NULL: any */
bool jinja_accept(jinja_parser *p, jinja_token_kind kind, const char *text);
/* Takes the token or fails with "expected ...". */
bool jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *text);
/* Sets the error with the line of the current token, returns NULL. */
void *jinja_syntax_error(jinja_parser *p, const char *what);
jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind);
bool jinja_add_node(jinja_parser *p, jinja_nodes *list, jinja_node *item);
/* Number of a name; -1 after an error. */
int32_t jinja_intern(jinja_parser *p, const char *name, size_t len, bool read);
/* NUL-terminated copy; NULL after an error. */
const char *jinja_copy_name(jinja_parser *p, const jinja_token *t);

typedef enum jinja_condition { JINJA_WITHOUT_CONDITION, JINJA_WITH_CONDITION } jinja_condition;

/* One expression; with or without "x if y else z" at the top. */
jinja_node *jinja_parse_expression(jinja_parser *p, jinja_condition condition);
/* An expression or, with commas, a tuple. */
jinja_node *jinja_parse_tuple(jinja_parser *p, jinja_condition condition);
/* A chain of filters "upper|trim" over `input` (may be NULL: filled in when rendering). */
jinja_node *jinja_parse_filters(jinja_parser *p, jinja_node *input, bool first_without_pipe);
/* Arguments behind "(" up to ")". */
bool jinja_parse_arguments(jinja_parser *p, jinja_node *call);
/* The postfix parts (.a, [b], (c)) of a primary expression. */
jinja_node *jinja_parse_call(jinja_parser *p);

#endif
