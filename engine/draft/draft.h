/* draft: speculative decoding with the multi-token-prediction head: the head drafts the next
 * tokens, one forward pass of the model verifies them all. Engine thread; one `drafter` a slot, one
 * `draft_policy` an engine.
 *
 *     int32_t k = draft_policy_depth(&policy, n_running, k_max);
 *     drafter_draft(&d, ctx, seq, sampler, k, true, &detail); // d.drafts[0..d.n_drafts)
 *     // a verify block of the next token and the drafts
 *     drafter_note(&d, ctx, seq, hidden_row, token, &detail);  // for every committed row
 *     draft_policy_result(&policy, n_judged, n_right);        // for each answer
 *     draft_policy_cost(&policy, n_running, k, ms);
 *
 * Output never depends on drafts: the model's own draw at each row is emitted, and an accepted
 * draft only saves a forward pass. The sampler's noise is a function of seed and position, so that
 * drafts drawn with the same noise agree often, and answers are the same with and without drafting,
 * sampled or greedy.
 */
#ifndef PARLEY_ENGINE_DRAFT_DRAFT_H
#define PARLEY_ENGINE_DRAFT_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mtp.h"
#include "model/sampler.h"

enum { DRAFT_MAX = 4, DRAFT_PENDING_MAX = 16, DRAFT_MAX_RUNNING = NN_ROWS_EXACT };

/* What the head is run with. */
typedef struct draft_context {
    const model *model;
    compute *compute;
    mtp_scratch *scratch; /* at least DRAFT_PENDING_MAX rows, 1 logit row */
} draft_context;

typedef struct drafter {
    float *hidden; /* [DRAFT_PENDING_MAX, hidden_size]: committed rows that the head has not seen */
    int32_t tokens[DRAFT_PENDING_MAX]; /* the token behind each of them */
    int32_t n_pending;
    int32_t n_true; /* entries of the head's cache that were made from the model's own hidden states */
    int32_t drafts[NN_ROWS_EXACT]; /* of the step that is being decoded */
    int32_t n_drafts;
    bool ends; /* the last draft would end the answer: what follows it need not be known */
} drafter;

/* Takes memory for models of this width; false without. Freed by drafter_deinit. */
MUST_CHECK bool drafter_init(drafter *d, int32_t hidden_size);
void drafter_deinit(drafter *d);

/* A new sequence, whose prompt is still to come. */
void drafter_reset(drafter *d);

/* Enters prompt rows into the head's cache: hidden [n, H] of slots first.., tokens behind them,
 * positions. */
MUST_CHECK err_code drafter_prompt(drafter *d, const draft_context *ctx, seq_state *seq, const float *hidden,
                                   const int32_t *next_tokens, const position *positions, int32_t n,
                                   err_detail *detail);

/* The sequence was restored to n tokens whose head entries but the last are in the cache. */
void drafter_resume(drafter *d, seq_state *seq, int32_t n);

/* Enters what drafter_note remembered, so that a snapshot of the sequence has it. */
MUST_CHECK err_code drafter_flush(drafter *d, const draft_context *ctx, seq_state *seq, err_detail *detail);

/* Remembers that `token` follows the row with this hidden state [H]; rows come in order. Runs the
 * head only when the memory for such rows is full. */
MUST_CHECK err_code drafter_note(drafter *d, const draft_context *ctx, seq_state *seq, const float *hidden,
                                 int32_t token, err_detail *detail);

/* Guesses k tokens behind the last noted one, fewer if one of them would end the answer (stops:
 * such tokens do). */
MUST_CHECK err_code drafter_draft(drafter *d, const draft_context *ctx, seq_state *seq, sampler *s, int32_t k,
                                  bool stops, err_detail *detail);

/* ---- how many ---- */

/* Averages that forget: what a step costs and how often drafts are right. All zero is a valid
 * start. */
typedef struct draft_policy {
    double cost_ms[DRAFT_MAX_RUNNING + 1]
                  [DRAFT_MAX + 1]; /* by sequences in the step and depth; 0: not measured */
    double right[DRAFT_MAX];       /* chance that draft j is right if those before it were; 0: not seen */
    int32_t n_seen[DRAFT_MAX];     /* how often draft j was judged, up to a few */
    int32_t parked_steps;          /* steps without drafts since the last probe */
    uint32_t drafted_steps;        /* steps for which drafting paid */
    int32_t probe_interval;
} draft_policy;

/* The depth that promises most tokens a millisecond, 0..k_max; now and then one step is a probe. */
int32_t draft_policy_depth(draft_policy *p, int32_t n_running, int32_t k_max);

/* What a step of depth k promises each of its sequences: tokens, and the chance that all drafts are
 * right; returns the milliseconds that it may take. */
double draft_policy_promise(const draft_policy *p, int32_t n_running, int32_t k, double *tokens,
                            double *chance);

/* A step of n_running sequences for which depth k was chosen took ms. */
void draft_policy_cost(draft_policy *p, int32_t n_running, int32_t k, double ms);

/* Of k drafts the first n_right were right. */
void draft_policy_result(draft_policy *p, int32_t k, int32_t n_right);

/* Takes a measured cost (0: none yet) into an average that forgets. */
void draft_average_cost(double *average, double value);

#endif
