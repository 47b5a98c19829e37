/* lexical: how important each token of a prompt is, told without a model: the first and the last
 * stretch, and what stands near the words of the question, rare words before frequent ones. The
 * question is what the prompt ends with.
 *
 *     bool done = lexical_score(importance, tok, ids, n, keep);
 */
#ifndef PARLEY_ENGINE_SPARSE_LEXICAL_H
#define PARLEY_ENGINE_SPARSE_LEXICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "text/tokenizer/tokenizer.h"

/* importance [n] of ids [n], for a choice (select.h) that keeps the share `keep`. A word is a run of
 * letters and digits (and of bytes beyond ASCII), in either case of letters. False if out of
 * memory. */
MUST_CHECK bool lexical_score(float *importance, const tokenizer *tok, const int32_t *ids, int32_t n,
                              double keep);

#endif
