/* grammar_cursor: walks a grammar token by token and says which tokens may come next. One cursor an
 * answer; one thread at a time. The grammar and the trie must outlive it.
 *
 *     grammar_cursor *c; grammar_cursor_create(&c, g, trie, false, &detail);
 *     const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));   // bit set: the token may come
 *     grammar_cursor_accept(c, id);                                             // the one chosen
 *     // looking ahead (drafts): states are plain numbers, valid until the next accept
 *     int32_t s = grammar_cursor_next(c, grammar_cursor_state(c), id); mask = grammar_cursor_mask(c, s);
 *     grammar_cursor_destroy(c);
 *
 * Every state can be completed: a token that leads to a dead end is never allowed. Where the text
 * is complete the stop tokens are allowed, and if nothing may follow, only they.
 *
 * How: a parse of the text is a stack of open nodes; a state is the set of all parses. Stacks and
 * states are numbered when first seen, transitions by byte and masks by state are cached, so that a
 * known state costs one look-up. The caches are bounded (LIMIT_GRAMMAR_STATE_BYTES,
 * LIMIT_GRAMMAR_MASK_BYTES).
 */
#ifndef PARLEY_TEXT_GRAMMAR_GRAMMAR_CURSOR_H
#define PARLEY_TEXT_GRAMMAR_GRAMMAR_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "text/grammar/grammar.h"
#include "text/grammar/token_trie.h"

typedef struct grammar_cursor grammar_cursor;

enum { GRAMMAR_REFUSED = -1 };

/* thinking: the text begins inside a think block, and the grammar behind it. ERR_NOMEM. */
MUST_CHECK err_code grammar_cursor_create(grammar_cursor **out, const grammar *g, const token_trie *t,
                                          bool thinking, err_detail *detail);
void grammar_cursor_destroy(grammar_cursor *c); /* NULL allowed */

/* Where the accepted text ends. */
int32_t grammar_cursor_state(const grammar_cursor *c);

/* The state behind a token, or GRAMMAR_REFUSED (also for GRAMMAR_REFUSED itself). */
int32_t grammar_cursor_next(grammar_cursor *c, int32_t state, int32_t token);

/* The allowed tokens, a bit each (trie->n_words words); valid until the next call. NULL if there is
 * none, which happens only for GRAMMAR_REFUSED or after a failure: see grammar_cursor_failure. */
const uint64_t *grammar_cursor_mask(grammar_cursor *c, int32_t state);

/* Advances. False if the token is not allowed; the state is then GRAMMAR_REFUSED. Other states
 * become invalid. */
bool grammar_cursor_accept(grammar_cursor *c, int32_t token);

/* Whether the text of the state is complete (more may be allowed all the same). */
bool grammar_cursor_is_complete(const grammar_cursor *c, int32_t state);

/* ERR_OK, or why the cursor gave up: ERR_NOMEM, or ERR_LIMIT where a text has too many readings. */
err_code grammar_cursor_failure(const grammar_cursor *c);

#endif
