/* chat_template: renders a checkpoint's own chat template, an interpreter for the Jinja that such
 * templates use. A compiled template is immutable: any number of threads may render at once, each
 * with its own arena.
 *
 *     chat_template *t; chat_template_compile(&t, text, len, &detail);
 *     jinja_value *vars = jinja_dict(a);     // and its members: jinja_build.h
 *     chat_template_render(t, &out, NULL, vars, NULL, a, &detail);
 *
 * Semantics are those of Jinja2's sandbox as Hugging Face transformers sets it up (trim_blocks,
 * lstrip_blocks, loop controls, tojson, raise_exception, strftime_now, the generation block). Cost
 * is bounded: steps, recursion and output bytes (a template is code from a file, but messages are
 * from users).
 */
#ifndef PARLEY_TEXT_JINJA_CHAT_TEMPLATE_H
#define PARLEY_TEXT_JINJA_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "text/tokenizer/guard.h"
#include "text/jinja/jinja_build.h"

typedef struct chat_template chat_template;

/* Compiles the template; ERR_INVALID with line number for a syntax error. *out is closed by the
 * caller. */
MUST_CHECK err_code chat_template_compile(chat_template **out, const char *text, size_t len,
                                          err_detail *detail);
void chat_template_close(chat_template *t); /* NULL allowed */

/* The text it was compiled from, NUL-terminated; lives as long as the template. */
const char *chat_template_text(const chat_template *t);

/* Filters, tests and functions that it uses and that are not known here, with their lines: "the filter 'x' (line
 * 3)"; "" if there are none. A rendering that comes to one fails. Lives as long as the template. */
const char *chat_template_unknown(const chat_template *t);

/* The markers in its text: what it writes, and what it looks for in contents. Lives as long as the
 * template. */
const added_tokens *chat_template_markers(const chat_template *t);

/* Whether the template reads a variable of that name ("enable_thinking"). */
bool chat_template_has_variable(const chat_template *t, const char *name);

/* A member of `vars` of this name, an integer of seconds since 1970, is the time that strftime_now
 * shows (in the local zone); without it the machine's clock is. No template can read it. */
#define CHAT_TEMPLATE_NOW "%now"

/* Where things stand in a rendered text, counted from its own begin. */
typedef struct chat_template_trace {
    /* Bytes before the place where the template last asked for add_generation_prompt, so that what
     * follows is the generation prompt; 0 if it never asks. It is a guess: macros and set blocks
     * that ask do not count, and a template may write more behind it. */
    size_t history_len;
    /* Set before: room for a span for each of the list `messages`, or NULL. What the loop over the
     * messages wrote for each of them; an empty span for one that it passed over, or that was
     * written elsewhere. */
    jinja_span *spans;
    bool is_torn; /* a message was written in two places; the spans then say nothing */
} chat_template_trace;

/* Renders with `vars` (a dict: messages, tools, add_generation_prompt, bos_token, eos_token, ...)
 * and appends the text to out. ERR_INVALID: raise_exception, with the template's message; a type
 * error or an undefined variable, with the template's line. ERR_LIMIT: the bounds above or
 * out->max. A full arena is such a bound, too; ERR_NOMEM: the machine has no memory.
 *
 * trace: NULL, or receives what was seen on the way.
 *
 * g: NULL, or what the variables' strings were guarded with (guard_text). Then what the template
 * makes of them spells no marker either, be it out of pieces ("<" ~ name ~ ">") or by a filter.
 * Markers that it writes itself stand whole. */
MUST_CHECK err_code chat_template_render(const chat_template *t, bytes *out, chat_template_trace *trace,
                                         const jinja_value *vars, const guard *g, arena *a,
                                         err_detail *detail);

#endif
