/* select: which tokens of a prompt are read, from how important each is: whole chunks, best first.
 * No threads, no model.
 *
 *     int32_t n_kept = select_tokens(kept, order, importance, n, &choice);
 *     select_gather(ids, positions, kept, n_kept);
 */
#ifndef PARLEY_ENGINE_SPARSE_SELECT_H
#define PARLEY_ENGINE_SPARSE_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/rope.h"

enum { SELECT_CHUNK = 32 };

typedef struct select_choice {
    int32_t chunk;   /* tokens that stay or go together */
    double keep;     /* share of the tokens that is kept, 0 < keep <= 1 */
    double backbone; /* of all chunks, the share that is kept at even distances whatever it says */
    int32_t tail;    /* the last tokens, which are kept in any case */
} select_choice;

/* A chunk and its mean importance; scratch of select_tokens. */
typedef struct select_chunk {
    int32_t index;
    float score;
} select_chunk;

/* A share that a float holds, as the decimal number that was meant: 0.3f is 0.3. */
double select_share(float share);

/* The mean importance of chunk `index` of n tokens; the last one may be shorter. */
float select_score(const float *importance, int32_t n, int32_t chunk, int32_t index);

/* kept [n] = the tokens to read, ascending: the backbone, then best chunks first, until
 * ceil(chunks * keep) chunks and ceil(n * keep) tokens are reached; then the tail. Equal chunks: the
 * earlier one. order: room for ceil(n / chunk). Returns how many, 1 .. n. */
int32_t select_tokens(int32_t *kept, select_chunk *order, const float *importance, int32_t n,
                      const select_choice *choice);

/* Moves the kept tokens of a prompt and their positions to the front. */
void select_gather(int32_t *ids, position *positions, const int32_t *kept, int32_t n_kept);

#endif
