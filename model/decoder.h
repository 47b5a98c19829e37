/* decoder: one batch of tokens through all layers. Prefill and decode are the same call. Engine
 * thread.
 *
 *     decoder_scratch *sc; err = decoder_scratch_create(&sc, m, c, max_rows, max_logit_rows, &detail);
 *     err = decoder_forward(m, c, &batch, sc, &detail);
 *     const float *logits = decoder_logits(sc, 0);
 */
#ifndef PARLEY_MODEL_DECODER_H
#define PARLEY_MODEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/nn.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/seq_state.h"

/* Consecutive rows of one sequence; rows go to cache slots seq_state_len(seq) ... */
typedef struct batch_run {
    seq_state *seq;
    int32_t first_row, n_rows;
    bool
        exact_rows; /* decode or verify block: recurrent delta rule row by row; else chunked (prefill). An exact
                      * row's result does not depend on the other rows of the batch (bitwise) */
    bool keep_rows; /* with exact_rows: the state after every row is kept for seq_state_rewind, which needs
                      * seq_state_reserve_rows(seq, >= n_rows) before */
    /* Lengths of the sequence within or at the end of these rows, ascending, at which its state is
     * taken; not with exact_rows. The caller's until the forward ends. */
    const batch_mark *marks;
    int32_t n_marks;
} batch_run;

/* Flat arrays; a sequence occurs in at most one run. All memory is the caller's. */
typedef struct batch {
    int32_t n_rows;
    const int32_t *tokens;     /* [n_rows] ids, 0 <= id < vocab_size */
    const position *positions; /* [n_rows] */
    const batch_run *runs;
    int32_t n_runs;
    const int32_t *logit_rows; /* rows whose logits are wanted, ascending */
    int32_t n_logit_rows;
    const int32_t *embed_rows; /* rows whose embedding is replaced, ascending (media placeholders) */
    const float *embeds;       /* [n_embed_rows, model_config_feature_width] */
    int32_t n_embed_rows;
    /* nothing is asked of these rows but what later ones need of them: no logits, no hidden state */
    bool states_only;
} batch;

typedef struct decoder_scratch decoder_scratch;

/* Buffers for batches of up to max_rows rows with up to max_logit_rows wanted logits. */
MUST_CHECK err_code decoder_scratch_create(decoder_scratch **out, const model *m, compute *c,
                                           int32_t max_rows, int32_t max_logit_rows, err_detail *detail);
void decoder_scratch_destroy(decoder_scratch *sc); /* NULL allowed */
/* Bytes that decoder_scratch_create takes. */
size_t decoder_scratch_bytes(const model *m, int32_t max_rows, int32_t max_logit_rows);

/* Runs the batch; every run's seq_state advances by its n_rows. ERR_LIMIT if a sequence would
 * exceed its capacity (nothing is changed then). */
MUST_CHECK err_code decoder_forward(const model *m, compute *c, const batch *b, decoder_scratch *sc,
                                    err_detail *detail);

/* The same piece by piece (half a layer, or with `small` some rows of it), so that a long forward
 * can be interrupted by one in another scratch: begin, then next until it says false. How it is cut
 * changes no bit of the result. The batch is read by begin alone; its sequences are not to be
 * touched until the end. A forward that was begun may be given up if its sequences are then reset
 * or restored. */
MUST_CHECK err_code decoder_begin(const model *m, compute *c, const batch *b, decoder_scratch *sc,
                                  err_detail *detail);
bool decoder_next(const model *m, decoder_scratch *sc, bool small); /* true: there is more */

/* Logits [vocab_size] of the i-th wanted row of the last forward; writable by the sampler; valid
 * until the next. */
float *decoder_logits(decoder_scratch *sc, int32_t i);

/* The head alone: logits of `rows` [n, hidden_size], hidden states as decoder_hidden has them, into those of this
 * scratch, of which nothing else is under way. Returns of how many: of n, as many as it has room for. */
int32_t decoder_head(const model *m, compute *c, decoder_scratch *sc, const float *rows, int32_t n);

/* Hidden state after the final norm of row r of the last forward [hidden_size]; what the MTP head
 * reads. */
const float *decoder_hidden(const decoder_scratch *sc, int32_t row);

/* For checks: called with the hidden rows [n_rows, hidden_size] before the first layer (layer 0)
 * and after every layer i (layer i+1; the last one after the final norm, as transformers reports
 * it). NULL turns it off. */
void decoder_set_trace(decoder_scratch *sc,
                       void (*trace)(void *ctx, int32_t layer, const float *rows, int32_t n_rows), void *ctx);

/* Shows the queries of every full-attention layer (counted among those alone) as its keys are
 * matched with them, normed and rotated: head h of row t starts at q + t*row_stride +
 * h*head_stride; in pieces where the forward goes in pieces. For forwards begun from now on; NULL
 * turns it off. */
void decoder_set_query_tap(decoder_scratch *sc,
                           void (*tap)(void *ctx, size_t kv_layer, const float *q, size_t n_rows,
                                       size_t row_stride, size_t head_stride),
                           void *ctx);

#endif
