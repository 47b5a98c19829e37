/* spares: memory for copied states that is there before it is needed. The first write to a page of
 * fresh memory is many times slower than a copy, and a state is copied while somebody waits for a
 * first token. Engine thread.
 *
 *     spares_want(s, n_bytes, 4);                     // so many pieces of that size
 *     while (idle && spares_fill(s)) { }              // 2 MiB at a time
 *     float *memory = spares_take(s, n_bytes);        // undefined contents
 *     spares_give(s, memory, n_bytes);
 */
#ifndef PARLEY_MODEL_SPARES_H
#define PARLEY_MODEL_SPARES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "compute/nn.h"

enum { SPARES_MAX = 8 };

/* By value in its owner. */
typedef struct spares {
    compute *c;
    size_t n_bytes, n_wanted; /* of one; how many */
    void *ready[SPARES_MAX];
    size_t n_ready;
    unsigned char *filling; /* the next one, touched up to n_filled; NULL: none is begun */
    size_t n_filled;
} spares;

/* Keeps n (at most SPARES_MAX) of n_bytes each; before the first use. Without it memory comes and goes
 * as it is asked for. */
void spares_want(spares *s, size_t n_bytes, size_t n);
/* Frees what is ready; more is made ready when spares_fill is called again. */
void spares_drop(spares *s);

/* Memory of n_bytes, aligned as compute_alloc's; NULL if there is none. */
MUST_CHECK void *spares_take(spares *s, size_t n_bytes);
/* Takes it back; NULL allowed. */
void spares_give(spares *s, void *memory, size_t n_bytes);
/* Makes a little more ready, some milliseconds at most; false: all is, or there is no memory. */
bool spares_fill(spares *s);

#endif
