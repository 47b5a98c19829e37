/* lookahead: the draft model of sparse prefill. It reads a prompt, adds a few tokens greedily, and
 * what their queries look at is how important each token of the prompt is (model/importance.h). One
 * prompt at a time, in pieces, so that running answers need not wait. Engine thread.
 *
 *     err = lookahead_open(&la, &options, &detail);
 *     err = lookahead_reserve(la, n_ctx, &detail);
 *     err = lookahead_begin(la, ids, n, &detail);
 *     do { err = lookahead_next(la, false, &more, &detail); } while (err == ERR_OK && more);
 *     const float *importance = lookahead_importance(la);
 *     lookahead_end(la);
 */
#ifndef PARLEY_ENGINE_SPARSE_LOOKAHEAD_H
#define PARLEY_ENGINE_SPARSE_LOOKAHEAD_H

#include "model/importance.h"
#include "model/model.h"

typedef struct lookahead lookahead;

typedef struct lookahead_options {
    const char *path;    /* the draft model's folder or file */
    const model *target; /* whose prompts it reads: both have the same vocabulary */
    compute *c;
    kv_type cache_type;
    int32_t chunk; /* prompt tokens computed together */
    quantize_options quantize;
    bool huge_pages, rope_bf16;
} lookahead_options;

/* Loads the draft model. ERR_INVALID: it has another vocabulary, or no full attention to look with;
 * else the errors of model_open. */
MUST_CHECK err_code lookahead_open(lookahead **out, const lookahead_options *o, err_detail *detail);
void lookahead_close(lookahead *la); /* NULL allowed */

const char *lookahead_dir(const lookahead *la);
uint64_t lookahead_weight_bytes(const lookahead *la);
/* Bytes of everything else, for prompts of up to n_tokens. */
size_t lookahead_state_bytes(const lookahead *la, int32_t n_tokens);
/* The longest prompt that the model itself can read. */
int32_t lookahead_longest(const lookahead *la);

/* Takes the memory for prompts of up to n_tokens; once. */
MUST_CHECK err_code lookahead_reserve(lookahead *la, int32_t n_tokens, err_detail *detail);

/* A new prompt of n ids, which stay the caller's and must stay until the end. ERR_LIMIT: it is too
 * long. */
MUST_CHECK err_code lookahead_begin(lookahead *la, const int32_t *ids, int32_t n, err_detail *detail);
/* One piece of the work; *more: there is more of it. After an error only lookahead_end may
 * follow. */
MUST_CHECK err_code lookahead_next(lookahead *la, bool small, bool *more, err_detail *detail);
/* Tokens of the prompt that are read. */
int32_t lookahead_n_read(const lookahead *la);
/* When nothing is left: how important each of the n tokens is, and the IMPORTANCE_ROWS tokens that
 * were looked ahead. */
const float *lookahead_importance(const lookahead *la);
const int32_t *lookahead_tokens(const lookahead *la);
/* Forgets the prompt, read or not. */
void lookahead_end(lookahead *la);

#endif
