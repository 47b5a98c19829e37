/* grammar: constrains an answer by a context-free grammar over bytes: a pushdown automaton whose
 * leaves are texts, finite automata and JSON strings. Built by one thread, then immutable: any
 * number of threads may read it.
 *
 *     grammar *g; grammar_create(&g, NULL, &detail);
 *     int32_t word = grammar_text(g, "true", 4);
 *     err = grammar_finish(g, word, &detail);            // checks it; ERR_LIMIT if building ran out of room
 *     // grammar_cursor walks it (text/grammar/grammar_cursor.h)
 *     grammar_destroy(g);
 *
 * Nodes are numbers. A builder call that fails (no memory, too large) gives GRAMMAR_NEVER and is
 * remembered: grammar_finish reports it, so that callers need no check of their own. Recursion:
 * grammar_hole makes a node that grammar_fill completes later, when the nodes that mention it
 * exist.
 *
 * json_schema.h builds the grammar of a JSON Schema, the engine's grammar_spec.h that of a whole
 * answer from parts.
 */
#ifndef PARLEY_TEXT_GRAMMAR_GRAMMAR_H
#define PARLEY_TEXT_GRAMMAR_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "text/grammar/dfa.h"

typedef struct grammar grammar;

enum {
    GRAMMAR_NEVER = 0, /* a node that matches nothing */
    GRAMMAR_EMPTY = 1, /* a node that matches the empty text */
    GRAMMAR_MANY = INT32_MAX
};

/* work counts what building takes, may be NULL, and must live until grammar_finish. */
MUST_CHECK err_code grammar_create(grammar **out, work_count *work, err_detail *detail);
void grammar_destroy(grammar *g); /* NULL allowed */

/* Memory that lives as long as the grammar; the arena is bounded by LIMIT_GRAMMAR_BYTES. */
arena *grammar_arena(grammar *g);
/* A text that the grammar is built with: if it failed, grammar_finish will be ERR_NOMEM or ERR_LIMIT. */
void grammar_note_text(grammar *g, const bytes *text);
/* Whether building lacked memory so far; errors that say anything else are then of no account. */
bool grammar_lacked_memory(const grammar *g);
work_count *grammar_work(grammar *g); /* as given to grammar_create */

/* Exactly these bytes. */
int32_t grammar_text(grammar *g, const char *text, size_t len);
/* These bytes; where one token of the vocabulary is the whole text (<tool_call>), that token and no
 * other spelling. */
int32_t grammar_marker(grammar *g, const char *text, size_t len);
/* A text of d's language. Takes d over, also on failure. */
int32_t grammar_automaton(grammar *g, dfa *d);
/* A JSON string with its quotes, of min..max characters; every escape is allowed but \u0000, and
 * only valid UTF-8. */
int32_t grammar_string(grammar *g, int32_t min_chars, int32_t max_chars);
/* Any valid UTF-8 up to and with the first occurrence of `end` (ASCII). */
int32_t grammar_until(grammar *g, const char *end);
/* The parts one after the other; one of the choices. items are copied. */
int32_t grammar_sequence(grammar *g, const int32_t *items, size_t n);
int32_t grammar_choice(grammar *g, const int32_t *items, size_t n);
/* min..max times: `first`, then `again` for all others (a comma before the item). Neither may match
 * the empty text. */
int32_t grammar_repeat(grammar *g, int32_t first, int32_t again, int32_t min, int32_t max);
/* JSON white space, bounded: nothing, one space, or a line break and an indentation. */
int32_t grammar_space(grammar *g);

/* A node to be defined later; grammar_fill makes it equal to `node` (which must not be an empty
 * hole itself). */
int32_t grammar_hole(grammar *g);
void grammar_fill(grammar *g, int32_t hole, int32_t node);

/* Completes the grammar: root is what an answer is, behind the think block if it begins inside one.
 * ERR_INVALID if no text at all matches, ERR_LIMIT if it is too large or every text of it is nested
 * too deeply, ERR_NOMEM, or why the work ended. */
MUST_CHECK err_code grammar_finish(grammar *g, int32_t root, err_detail *detail);

#endif
