/* mtp: the multi-token-prediction head: from the hidden state of position p and the token of p+1 it
 * predicts the token of p+2. It has its own keys and values inside seq_state. Engine thread.
 *
 *     err = mtp_forward(m, c, scratch, &input, n_logits, &detail);
 *
 * Entry p of the head's cache belongs to (hidden of p, token of p+1) at position p; its length is
 * committed tokens - 1 (+ drafts).
 */
#ifndef PARLEY_MODEL_MTP_H
#define PARLEY_MODEL_MTP_H

#include "base/err.h"
#include "compute/nn.h"
#include "model/decoder.h"

/* Consecutive rows of one sequence for the head. */
typedef struct mtp_input {
    seq_state *seq;
    /* [n, hidden_size]: after the final norm, or the head's own output when drafting on */
    const float *hidden;
    const int32_t *next_tokens; /* [n] token at p+1 */
    const position *positions;  /* [n] position of p */
    int32_t n;
} mtp_input;

typedef struct mtp_scratch mtp_scratch;
/* Buffers for up to max_rows rows, of which up to max_logit_rows get logits. */
MUST_CHECK err_code mtp_scratch_create(mtp_scratch **out, const model *m, compute *c, int32_t max_rows,
                                       int32_t max_logit_rows, err_detail *detail);
void mtp_scratch_destroy(mtp_scratch *sc); /* NULL allowed */

/* Appends n entries to the sequence's head cache and computes the head. Logits of the last n_logits
 * rows are kept (0 = only fill the cache: keys and values alone are computed). */
MUST_CHECK err_code mtp_forward(const model *m, compute *c, mtp_scratch *sc, const mtp_input *in,
                                int32_t n_logits, err_detail *detail);
/* Logits [vocab_size] of the i-th of those n_logits rows, and the head's own output after mtp.norm
 * [hidden_size]; valid until the next forward, which may be given the output as its `hidden`. With
 * a large vocabulary, ids that are rarely right are never drafted: their logits are -INFINITY,
 * written once, and must stay so when logits are modified (adding and scaling preserve it). */
float *mtp_logits(mtp_scratch *sc, int32_t i);
const float *mtp_hidden(const mtp_scratch *sc, int32_t i);

/* Entries in the head's cache; truncation to a shorter length (attention only, so it can be
 * cut). */
int32_t mtp_len(const seq_state *s);
void mtp_truncate(seq_state *s, int32_t len);

#endif
