/* outcomes: compares what a fuzz target said of its inputs with a recorded file, or writes that anew. One thread; for
 * replay.c alone.
 *
 *     outcomes o;
 *     outcomes_begin(&o, "tests/fuzz/outcomes/json.txt", n_seeds);
 *     outcomes_add(&o, "empty.json", data, n, &said);                // a seed; then its changes:
 *     outcomes_add(&o, " cut 3", data, n, &said);
 *     const bool is_as_recorded = outcomes_end(&o);
 *
 * The file has a line for each input that is recorded, a seed or, indented by one, a change of the one above; and under
 * it what was said, indented by two. Of a change, lines at the beginning and the end that are those of the seed are
 * left out. Recorded are all seeds, and of the changes those whose outcome is new, until the seed's share of the file is
 * full; of all of them there is a sum.
 */
#ifndef PARLEY_TESTS_FUZZ_OUTCOMES_H
#define PARLEY_TESTS_FUZZ_OUTCOMES_H

#include <stdint.h>

#include "base/bytes.h"

typedef struct outcomes {
    const char *path;
    bool writes;              /* PARLEY_WRITE */
    bytes old, out;           /* the file, and what is to become of it */
    const char *next;         /* in old: the next input that is recorded */
    bytes seed, block, shape; /* said of the seed; being made */
    uint64_t *seen;           /* shapes of outcomes, a hash table */
    size_t n_seen, cap_seen;
    size_t n_seeds_left, full_at; /* when writing */
    size_t n_changes;             /* of the seed */
    uint64_t sum;                 /* of what was said of them */
    size_t n_wrong;
} outcomes;

void outcomes_begin(outcomes *o, const char *path, size_t n_seeds);
/* Whether the next recorded input is this one, which then has to run. */
bool outcomes_has(const outcomes *o, const char *key);
/* What was said of an input; a key with a space in front is a change of the seed before. */
void outcomes_add(outcomes *o, const char *key, const char *data, size_t n, const bytes *said);
/* All changes of the seed are told; whether all of them ran. */
void outcomes_end_seed(outcomes *o, bool all);
/* Frees everything; false if something was not as recorded, which is told. */
bool outcomes_end(outcomes *o);

#endif
