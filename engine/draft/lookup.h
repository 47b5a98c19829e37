/* lookup: speculative decoding without a head: what followed the last tokens where they stood
 * before, in the prompt or in the answer, is guessed to follow again. Engine thread; one `lookup` a
 * slot, one `lookup_policy` an engine.
 *
 *     lookup_match m = lookup_find(&l, text, n, drafts, n_drafts); // the drafts so far count as text
 *     int32_t k = lookup_policy_depth(&policy, &step, m.len, k_max);
 *     n_drafts += lookup_copy(&m, text, n, drafts, n_drafts, k);
 *     // a verify block of the next token and the drafts
 *     lookup_policy_result(&policy, m.len, n_judged, n_right);
 *     lookup_policy_cost(&policy, n_rows, ms);
 *
 * An element of a text is a token, or bits of an image above INT32_MAX: images match, but are never
 * guessed.
 */
#ifndef PARLEY_ENGINE_DRAFT_LOOKUP_H
#define PARLEY_ENGINE_DRAFT_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "compute/nn.h"

/* Guesses of one step at most, and the tokens of a match that are counted at most. */
enum { LOOKUP_MAX = NN_ROWS_EXACT - 1, LOOKUP_LONGEST = 32 };

/* Where pairs of tokens stood: a chain of places for each hash, the latest first. */
typedef struct lookup {
    int32_t *last;   /* [mask + 1]: the latest place + 1; 0: none */
    int32_t *before; /* [n_max]: of each place, the one before it in its chain + 1 */
    uint32_t mask;
    int32_t n_seen; /* elements entered */
    int32_t next;   /* the last match, moved on for as long as it was right: what would follow; -1 */
} lookup;

/* Takes memory for texts of n_max elements; false without. Freed by lookup_deinit. */
MUST_CHECK bool lookup_init(lookup *l, int32_t n_max);
void lookup_deinit(lookup *l);

/* A new text. */
void lookup_reset(lookup *l);

/* The end of the text stood before, up to and with element `end`; len tokens are the same
 * (LOOKUP_LONGEST: or more); 0: it did not. */
typedef struct lookup_match {
    int32_t end, len;
} lookup_match;

/* Looks for the longest end of text[0..n) with n_more guesses behind it; between equals, the latest
 * place. The text is that of the last call, or longer. A constant number of places is looked at,
 * and each element is entered once. */
lookup_match lookup_find(lookup *l, const uint64_t *text, int32_t n, const int32_t *more, int32_t n_more);

/* Writes up to k tokens that followed the match behind drafts[0..n_drafts), and returns how many;
 * text, n and the drafts are those of lookup_find. */
int32_t lookup_copy(const lookup_match *m, const uint64_t *text, int32_t n, int32_t *drafts, int32_t n_drafts,
                    int32_t k);

/* ---- how many ---- */

/* What is known of matches of some lengths. */
typedef struct lookup_class {
    double right; /* chance that a guess is right if those before it were; 0: not seen */
    int32_t n_seen;
    int32_t parked, probe_interval; /* matches not followed since the last probe */
} lookup_class;

enum { LOOKUP_CLASSES = 5 };

/* Averages that forget. All zero is a valid start. */
typedef struct lookup_policy {
    double rows_ms[NN_ROWS_EXACT + 1]; /* a step of so many rows without the draft head; 0: not measured */
    lookup_class classes[LOOKUP_CLASSES];
    uint32_t n_followed;
} lookup_policy;

/* A step as it is planned so far. */
typedef struct lookup_step {
    double tokens, ms; /* that it promises, and what it may take */
    double chance;     /* that what comes before the guesses is right: 1 without other drafts */
    int32_t rows;
} lookup_step;

/* What a step of so many rows may take, without the draft head; 0 before any was measured. */
double lookup_policy_ms(const lookup_policy *p, int32_t rows);

/* How many tokens behind a match of that length promise most tokens a millisecond, 0..k_max; now and
 * then one is a probe. */
int32_t lookup_policy_depth(lookup_policy *p, const lookup_step *step, int32_t len, int32_t k_max);

/* k guesses behind a match of that length are part of the step. */
void lookup_policy_add(const lookup_policy *p, lookup_step *step, int32_t len, int32_t k);

/* A step of so many rows took ms, without the draft head's part. */
void lookup_policy_cost(lookup_policy *p, int32_t rows, double ms);

/* Of k guesses behind a match of that length the first n_right were right. */
void lookup_policy_result(lookup_policy *p, int32_t len, int32_t k, int32_t n_right);

#endif
