/* jinja_render: one rendering in progress, shared by the evaluator (jinja_eval.c), the statements
 * (jinja_exec.c) and the library of filters, tests, functions and methods. One thread.
 *
 *     jinja_render r = {.program = program, .m = {.arena = a}, .out = out, .detail = &detail};
 *     if (!jinja_eval(&r, node, &value)) { return false; }       // r.err and the detail are set
 *
 * Functions that return bool return false after an error, which is then in r->err.
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_RENDER_H
#define PARLEY_TEXT_JINJA_JINJA_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "text/tokenizer/guard.h"
#include "text/jinja/jinja_ast.h"
#include "text/jinja/jinja_build.h"
#include "text/jinja/jinja_value.h"

/* Bounds of one rendering: nodes visited (a kilobyte of text counts as one more), nesting, items of
 * a range. */
enum {
    JINJA_MAX_STEPS = 20000000,
    JINJA_MAX_DEPTH = 1500,
    JINJA_MAX_RANGE = 100000,
    JINJA_BYTES_A_STEP = 256
};

typedef struct jinja_variable {
    int32_t symbol;
    jinja_value value;
} jinja_variable;

/* Names of one block, inside of its parent; the root's names are in jinja_render.root. */
typedef struct jinja_scope {
    struct jinja_scope *parent;
    jinja_variable *vars;
    size_t len, cap;
} jinja_scope;

typedef struct jinja_macro {
    const jinja_node *node; /* NODE_MACRO */
    jinja_scope *closure;
} jinja_macro;

typedef struct jinja_loop {
    const jinja_node *node; /* NODE_FOR */
    jinja_scope *outer;     /* the scope around it */
    const jinja_seq *items;
    size_t i;
    int depth;           /* calls of a recursive loop around this one */
    jinja_value changed; /* what loop.changed() saw last: a tuple, or none */
} jinja_loop;

typedef struct jinja_render {
    const jinja_program *program;
    jinja_memory m;
    bytes *out;
    const guard *guard; /* markers that only the template may write, or NULL */
    size_t begin;       /* where the current output or capture begins in its buffer */
    size_t own_from;    /* from here on the template wrote all of the current output itself */
    bytes capture;      /* what macros and set blocks write: nested captures one behind another */
    int n_captures;
    int32_t invite;     /* symbol of add_generation_prompt, or -1 */
    size_t history_end; /* where the output stood when it was last read outside of captures */
    /* What each message became, for chat_template_trace; NULL: it is not asked for. */
    const jinja_seq *messages;
    jinja_span *spans;   /* [messages->len], in bytes of out */
    size_t next_message; /* where the next one is looked for first */
    bool in_message;     /* a loop's pass over one is under way */
    bool is_torn;        /* one was written in two places */
    jinja_value *root;   /* [n_symbols] values of the outermost scope */
    bool *root_set;
    jinja_scope *scope;
    int depth;
    uint64_t steps;
    int64_t now; /* seconds since 1970, for strftime_now */
    int line;    /* of the statement in work */
    err_code err;
    err_detail *detail;
} jinja_render;

/* Arguments of a call. */
typedef struct jinja_args {
    jinja_value *pos;
    size_t n_pos;
    jinja_map *named; /* by name; NULL: none */
} jinja_args;

/* ---- errors and limits (jinja_eval.c) ---- */

/* Sets ERR_INVALID with the line and the text; returns false. */
bool jinja_fail(jinja_render *r, const char *format, ...) PRINTF_LIKE(2, 3);
/* Fails with what using the undefined value v means. */
bool jinja_fail_undefined(jinja_render *r, const jinja_value *v);
/* False, with the error of jinja_fail_undefined, if v is undefined. */
bool jinja_defined(jinja_render *r, const jinja_value *v);
/* Counts the work of handling n_bytes; false beyond the limit or without memory. */
bool jinja_work(jinja_render *r, size_t n_bytes);
/* False if memory ran out. */
bool jinja_check_memory(jinja_render *r);

/* ---- expressions (jinja_eval.c, jinja_operators.c, jinja_access.c) ---- */

bool jinja_eval(jinja_render *r, const jinja_node *n, jinja_value *out);
bool jinja_call(jinja_render *r, const jinja_value *callee, const jinja_args *args, jinja_value *out);
/* A filter over a value: n is a NODE_FILTER; its input was evaluated by the caller. */
bool jinja_apply_filter(jinja_render *r, const jinja_node *n, const jinja_value *input, jinja_value *out);

bool jinja_binary(jinja_render *r, int op, const jinja_value *a, const jinja_value *b, jinja_value *out);
/* Comparisons and in; *out is the truth. */
bool jinja_relation(jinja_render *r, int op, const jinja_value *a, const jinja_value *b, bool *out);

/* ---- markers (jinja_guard.c) ---- */

/* a + b, with a guard character between them if they would spell a marker that the template did not
 * write. */
jinja_value jinja_join(jinja_render *r, const jinja_value *a, const jinja_value *b);
/* Breaks the markers in *out, which a filter, a function or an operator made of self and args (each
 * may be NULL), that stand whole in none of these, and says whether the text is the template's
 * own. */
bool jinja_guard_result(jinja_render *r, const jinja_value *self, const jinja_args *args, jinja_value *out);

/* obj.name and obj[key]; what is not there gives undefined. */
bool jinja_getattr(jinja_render *r, const jinja_value *obj, const char *name, size_t len, jinja_value *out);
bool jinja_getitem(jinja_render *r, const jinja_value *obj, const jinja_value *key, jinja_value *out);
/* obj[begin:end:step]; NULL for a missing part. */
bool jinja_slice(jinja_render *r, const jinja_value *obj, const jinja_value *const part[3], jinja_value *out);

/* str(v) as a string value. */
bool jinja_to_str(jinja_render *r, const jinja_value *v, jinja_value *out);
/* Begins to walk v; fails if v cannot be walked. */
bool jinja_walk(jinja_render *r, jinja_iter *it, const jinja_value *v);
/* All items of an iterable as a list; fails if v cannot be walked. */
bool jinja_to_list(jinja_render *r, const jinja_value *v, jinja_value *out);

/* ---- statements (jinja_exec.c) ---- */

typedef enum jinja_flow { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE, JINJA_ERROR } jinja_flow;

jinja_flow jinja_exec(jinja_render *r, const jinja_node *body);
/* loop(items) inside of a recursive loop: what the loop over these items writes. */
bool jinja_call_loop(jinja_render *r, const jinja_loop *loop, const jinja_args *args, jinja_value *out);
/* The macro of a NODE_MACRO, which sees the names that are in scope now. */
bool jinja_make_macro(jinja_render *r, const jinja_node *node, jinja_value *out);
bool jinja_call_macro(jinja_render *r, const jinja_macro *macro, const jinja_args *args, jinja_value *out);

#endif
