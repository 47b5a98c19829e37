/* blocks: what one forward of the decoder costs by the number of its rows, beside the memory
 * bandwidth measured in the same rounds. Opens the model by itself; no engine may be computing
 * meanwhile.
 *
 *     block_costs costs; blocks_measure(&costs, "DIR", 2, 20, &detail);
 */
#ifndef PARLEY_BENCH_BLOCKS_H
#define PARLEY_BENCH_BLOCKS_H

#include <stddef.h>

#include "base/err.h"

enum { BLOCK_ROWS_MAX = 4, BLOCK_SEQS = 16 };

/* Medians over the rounds. */
typedef struct block_costs {
    double step_ms;                    /* one row of one sequence */
    double verify[BLOCK_ROWS_MAX + 1]; /* [2..4]: cost of a verify block of that many rows / one step */
    double batch[BLOCK_SEQS + 1];      /* [4], [8], [16]: cost of a step of so many sequences / one step */
    double draft;         /* one forward of the draft head with logits / one step; 0 without it */
    double bandwidth_gbs; /* memory bandwidth (compute/limits.h), of as many bytes as a step moves */
    double share;         /* of the memory bandwidth that a step between two passes of the reader reaches */
    double step_gbs;      /* weights and states that a step must move / step_ms */
    double step_bytes;
} block_costs;

/* n_threads 0: one per core. Every round measures each of the above once. */
MUST_CHECK err_code blocks_measure(block_costs *out, const char *dir, size_t n_threads, int rounds,
                                   err_detail *detail);

#endif
