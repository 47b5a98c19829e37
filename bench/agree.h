/* agree: how two answers to the same prompt agree, in words.
 *
 *     agree_write(text, sizeof text, &cached, &computed);
 */
#ifndef PARLEY_BENCH_AGREE_H
#define PARLEY_BENCH_AGREE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* One answer. */
typedef struct agree_side {
    const int32_t *tokens; /* [n] */
    const float *logprobs; /* [n] of the likeliest token of each place */
    const float *gaps;     /* [n] from there to the second likeliest */
    int32_t n;
} agree_side;

/* Writes it to out. Likelihoods tell whether states have the same bits; where other tokens follow, the
 * gap between the likeliest two tells whether that was a near tie. */
static inline void agree_write(char *out, size_t size, const agree_side *a, const agree_side *b)
{
    int32_t same = 0;
    double most = 0.0; /* between likelihoods of the same place */
    while (same < a->n && same < b->n && a->tokens[same] == b->tokens[same]) {
        most = fmax(most, fabs((double)a->logprobs[same] - (double)b->logprobs[same]));
        same++;
    }
    if (same == a->n && same == b->n) {
        snprintf(out, size,
                 most > 0 ? "the same answer, logprobs within %.1e" : "the same answer, equal logprobs",
                 most);
    } else {
        most = fmax(most, fabs((double)a->logprobs[same] - (double)b->logprobs[same]));
        snprintf(out, size,
                 "ANOTHER ANSWER from token %d on: its likeliest two lie %.1e apart (%.1e from "
                 "nothing), logprobs until there within %.1e",
                 same, (double)a->gaps[same], (double)b->gaps[same], most);
    }
}

#endif
