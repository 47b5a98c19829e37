/* sampler: from logits to one token. One sampler a sequence; engine thread.
 *
 *     sampler *s; err = sampler_create(&s, &params, vocab_size, n_valid, &detail);
 *     sampler_prompt(s, ids, n);                 // for the repetition penalty
 *     int32_t id = sampler_pick(s, logits, 0);   // logits are overwritten
 *     sampler_accept(s, id);
 *
 * Order: logit_bias -> repetition penalty (prompt and output; positive logits divided, negative
 * multiplied) -> presence and frequency penalty (output only, OpenAI's meaning) -> what a grammar
 * allows -> temperature -> top-k -> top-p -> min-p -> draw. Temperature 0 (or top-k 1) is argmax,
 * lowest id first among equals.
 *
 * The draw is Gumbel-max: the id with the largest log-probability + noise, where the noise is a
 * function of the seed, the token's place in the answer and the id. That is an exact draw from the
 * distribution, and the same seed gives the same answer however the tokens were computed. A draft
 * drawn for the same place meets the same noise, so a drafter whose distribution is close to the
 * model's guesses the model's own draw.
 */
#ifndef PARLEY_MODEL_SAMPLER_H
#define PARLEY_MODEL_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "text/grammar/grammar_cursor.h"

typedef struct sampler_bias {
    int32_t id;
    float bias; /* added to the logit; -100 or less forbids in practice */
} sampler_bias;

typedef struct sampler_params {
    float temperature;          /* 0 = greedy */
    int32_t top_k;              /* 0 = off */
    float top_p;                /* 1 = off */
    float min_p;                /* 0 = off */
    float repetition_penalty;   /* 1 = off */
    float presence_penalty;     /* 0 = off */
    float frequency_penalty;    /* 0 = off */
    uint64_t seed;              /* same seed, same input: same tokens */
    const sampler_bias *biases; /* copied by sampler_create */
    size_t n_biases;
} sampler_params;

typedef struct sampler sampler;

enum { SAMPLER_LOOKAHEAD = 16 };

/* n_valid: ids >= n_valid (rows the tokenizer never produces) are never picked. */
MUST_CHECK err_code sampler_create(sampler **out, const sampler_params *p, int32_t vocab_size,
                                   int32_t n_valid, err_detail *detail);
void sampler_destroy(sampler *s); /* NULL allowed */

/* Counts the prompt for the repetition penalty. */
void sampler_prompt(sampler *s, const int32_t *ids, size_t n);

/* Restricts draws to tokens that the cursor allows; accepted tokens advance it. It stays the
 * caller's and must outlive the sampler; NULL: every token is allowed. */
void sampler_constrain(sampler *s, grammar_cursor *cursor);

/* Draws the token `ahead` places behind the accepted output (0: the next one) from logits
 * [vocab_size], which are overwritten. Does not count it: see sampler_accept. Under a grammar the
 * tokens between are those that the last calls for 0 .. ahead-1 gave; ahead is below
 * SAMPLER_LOOKAHEAD then, and a failure of the cursor must be looked for. */
int32_t sampler_pick(sampler *s, float *logits, int32_t ahead);

/* Log-probability of `id` under the raw logits (before penalties), and the n most likely ids with
 * theirs, most likely first; top_ids and top_logprobs hold n entries. Call before sampler_pick. */
float sampler_logprobs(const float *logits, int32_t vocab_size, int32_t id, int32_t *top_ids,
                       float *top_logprobs, size_t n);

/* Counts a token that became part of the output. */
void sampler_accept(sampler *s, int32_t id);

#endif
