/* importance: how much each token of a prompt matters to what a model says next (SpecPrefill, arXiv
 * 2502.02789): the softmax of the queries of a few look-ahead tokens over the prompt's keys, averaged
 * over IMPORTANCE_WINDOW neighbours, the maximum over all full-attention layers and heads, the mean
 * over the tokens. Engine thread.
 *
 *     importance_begin(im, n_prompt);
 *     importance_watch(im, sc);            // then IMPORTANCE_ROWS forwards of one row each
 *     importance_watch(NULL, sc);
 *     while (importance_next(im, seq)) {}  // a head of a layer at a time
 *     const float *share = importance_get(im);
 */
#ifndef PARLEY_MODEL_IMPORTANCE_H
#define PARLEY_MODEL_IMPORTANCE_H

#include "base/err.h"
#include "compute/nn.h"
#include "model/decoder.h"

enum { IMPORTANCE_ROWS = 8, IMPORTANCE_WINDOW = 13 };

typedef struct importance importance;

/* Room for prompts of up to max_tokens. ERR_NOMEM says how many bytes were wanted. */
MUST_CHECK err_code importance_create(importance **out, const model_config *cfg, compute *c,
                                      int32_t max_tokens, err_detail *detail);
void importance_destroy(importance *im); /* NULL allowed */
/* Bytes that importance_create takes. */
size_t importance_bytes(const model_config *cfg, int32_t max_tokens);

/* A new prompt of n tokens, 1 .. max_tokens: nothing is remembered yet. */
void importance_begin(importance *im, int32_t n);
/* Remembers the queries of the next forwards in sc, one row each, at most IMPORTANCE_ROWS of them;
 * im NULL: no longer. */
void importance_watch(importance *im, decoder_scratch *sc);
/* One head of one layer against the prompt's keys in seq; false when all are done. */
bool importance_next(importance *im, const seq_state *seq);
/* [n], valid when importance_next has said false, until the next begin. */
const float *importance_get(const importance *im);

#endif
