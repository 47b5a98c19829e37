/* regex: the patterns of JSON Schema (ECMA-262 with the u flag) as automata over the bytes of the
 * text. Any thread.
 *
 *     err = regex_compile(&d, "^[a-z]+$", 8, CHARS_JSON, NULL, &detail);
 *
 * As in JSON Schema a pattern is searched for: without ^ and $ anything may stand around it. Done:
 * literals, ".", classes, \d \w \s and their opposites, escapes, groups, "|", quantifiers (greedy
 * or lazy: the same language), ^ and $. Not done, because they are no regular language or need
 * tables: look-around, back references, \b, \p. They are ERR_UNSUPPORTED and named.
 */
#ifndef PARLEY_TEXT_GRAMMAR_REGEX_H
#define PARLEY_TEXT_GRAMMAR_REGEX_H

#include "text/grammar/dfa.h"

/* The language of the pattern; `chars` says how its characters are written, work (may be NULL)
 * counts the steps. ERR_INVALID (no pattern), ERR_UNSUPPORTED, ERR_LIMIT, ERR_NOMEM, ERR_CANCELLED;
 * the text is a sentence about "pattern". The caller frees *out with dfa_free. */
MUST_CHECK err_code regex_compile(dfa *out, const char *pattern, size_t len, nfa_chars chars,
                                  work_count *work, err_detail *detail);

#endif
