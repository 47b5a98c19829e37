/* jinja_ast: the tree of a compiled chat template, and its parser. Immutable after parsing; lives
 * in an arena.
 *
 *     jinja_program p;
 *     err_code err = jinja_parse(&p, text, len, arena, &detail);
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_AST_H
#define PARLEY_TEXT_JINJA_JINJA_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "text/jinja/jinja_value.h"

typedef enum jinja_node_kind {
    /* expressions */
    NODE_CONST,   /* value */
    NODE_NAME,    /* symbol */
    NODE_LIST,    /* items */
    NODE_TUPLE,   /* items */
    NODE_DICT,    /* items: key, value, key, value ... */
    NODE_ATTR,    /* a.text */
    NODE_ITEM,    /* a[b] */
    NODE_SLICE,   /* a[b:c:d], each of b, c, d may be NULL */
    NODE_CALL,    /* a(items) */
    NODE_FILTER,  /* a|text(items); a NULL inside a filter block */
    NODE_TEST,    /* a is text(items) */
    NODE_ARG,     /* one argument: a; text set for name=a; op 1 for *a, 2 for **a */
    NODE_NEG,     /* -a */
    NODE_POS,     /* +a */
    NODE_NOT,     /* not a */
    NODE_AND,     /* a and b */
    NODE_OR,      /* a or b */
    NODE_BINARY,  /* a op b, op is a jinja_op */
    NODE_COMPARE, /* a, then items: NODE_BINARY with op and b, chained as in Python */
    NODE_CONCAT,  /* items joined by ~ */
    NODE_COND,    /* b if a else c; c may be NULL */
    /* statements, linked by next */
    NODE_TEXT,         /* text */
    NODE_OUTPUT,       /* {{ a }} */
    NODE_IF,           /* items: NODE_BRANCH; orelse */
    NODE_BRANCH,       /* a, body */
    NODE_FOR,          /* a target, b over, c condition or NULL, body, orelse; op 1: recursive */
    NODE_SET,          /* a target = b */
    NODE_SET_BLOCK,    /* a target, b filters (innermost has a NULL) or NULL, body */
    NODE_MACRO,        /* symbol, items: NODE_PARAM, body; as an expression: the macro of a call block */
    NODE_PARAM,        /* symbol, text its name, a default or NULL */
    NODE_FILTER_BLOCK, /* b filters, body */
    NODE_WITH,         /* items: NODE_SET, body */
    NODE_SCOPE,        /* body */
    NODE_BREAK,
    NODE_CONTINUE,
    /* what is assigned to: NODE_NAME, NODE_TUPLE of targets, or */
    NODE_NAMESPACE_ATTR, /* symbol.text */
} jinja_node_kind;

typedef enum jinja_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
} jinja_op;

enum { ARG_PLAIN, ARG_LIST, ARG_DICT };

typedef struct jinja_node jinja_node;
struct jinja_node {
    jinja_node_kind kind;
    int op;
    int line;
    int32_t symbol;
    const char *text; /* NUL-terminated for names */
    size_t len;
    jinja_value value;
    jinja_node *a, *b, *c, *d;
    jinja_node **items;
    size_t n_items;
    jinja_node *body, *orelse, *next;
    const void *found; /* FILTER, TEST: the table entry, NULL if there is none of that name */
    bool uses_caller, uses_varargs, uses_kwargs; /* MACRO */
};

/* A name that the template uses. */
typedef struct jinja_symbol {
    const char *name; /* NUL-terminated */
    size_t len;
    bool is_read;
    bool is_set;     /* by the template: a macro, a parameter, a target */
    int called_line; /* where it is first called as a function; 0: nowhere */
} jinja_symbol;

typedef struct jinja_program {
    jinja_node *body;
    jinja_symbol *symbols;
    size_t n_symbols;
    int32_t loop, caller, varargs, kwargs; /* symbols with a meaning */
    char unknown[192]; /* filters, tests and functions that are not known here: "the filter 'x'
                                            * (line 3), ..."; "": none */
} jinja_program;

enum { JINJA_MAX_SYMBOLS = 4096 };

/* ERR_INVALID with the line for a syntax error, ERR_LIMIT, ERR_NOMEM. */
MUST_CHECK err_code jinja_parse(jinja_program *out, const char *text, size_t len, arena *a,
                                err_detail *detail);

#endif
