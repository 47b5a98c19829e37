/* jinja_parser: what the two halves of the parser share: jinja_parser.c reads expressions,
 * jinja_statements.c statements.
 *
 *     jinja_node *n = jinja_parse_expression(p, JINJA_WITH_CONDITION);
 *
 * Errors stick: after the first one p->err is set, no more tokens come, and what a parse function
 * gives is a node that must not be used. So one look at p->err at the end is enough.
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_PARSER_H
#define PARLEY_TEXT_JINJA_JINJA_PARSER_H

#include "text/jinja/jinja_ast.h"
#include "text/jinja/jinja_lexer.h"

typedef struct jinja_parser {
    jinja_tokens tokens;
    size_t at;
    int depth;
    int n_loops; /* loops around, for break and continue */
    arena *arena;
    jinja_program *program;
    jinja_node *macro; /* the macro in work, or NULL */
    jinja_node spare;  /* given after an error */
    err_code err;
    err_detail *detail;
} jinja_parser;

/* The next token, and the one behind it; the end after an error. */
const jinja_token *jinja_peek(const jinja_parser *p);
const jinja_token *jinja_peek_second(const jinja_parser *p);
const jinja_token *jinja_take(jinja_parser *p);
bool jinja_token_is(const jinja_token *t, jinja_token_kind kind, const char *text); /* text NULL: any */
bool jinja_next_is(const jinja_parser *p, jinja_token_kind kind, const char *text);
bool jinja_accept(jinja_parser *p, jinja_token_kind kind, const char *text);
/* Takes the token or fails with "expected ...". */
const jinja_token *jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *text);
/* Sets the error with the line of the current token; returns the spare node. */
jinja_node *jinja_syntax_error(jinja_parser *p, const char *what);
/* One level of nesting more; an error beyond the limit. p->depth-- leaves it. */
void jinja_nest(jinja_parser *p);

jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind);
void jinja_add_item(jinja_parser *p, jinja_node *to, jinja_node *item);
/* Number of a name; -1 after an error. */
int32_t jinja_intern(jinja_parser *p, const char *name, size_t len, bool read);
/* Notes that the template uses something that is not known. */
void jinja_note_unknown(jinja_parser *p, const char *kind, const char *name, int line);
/* A NUL-terminated copy of the token becomes the node's text. */
void jinja_set_text(jinja_parser *p, jinja_node *n, const jinja_token *t);

typedef enum jinja_condition { JINJA_WITHOUT_CONDITION, JINJA_WITH_CONDITION } jinja_condition;

/* One expression; with or without "x if y else z" at the top. */
jinja_node *jinja_parse_expression(jinja_parser *p, jinja_condition condition);
/* An expression or, with commas, a tuple. */
jinja_node *jinja_parse_tuple(jinja_parser *p, jinja_condition condition);
/* A chain of filters "upper|trim" over `input` (may be NULL: filled in when rendering). */
jinja_node *jinja_parse_filters(jinja_parser *p, jinja_node *input, bool first_without_pipe);
/* The postfix parts (.a, [b], (c)) of a primary expression. */
jinja_node *jinja_parse_call(jinja_parser *p);

#endif
