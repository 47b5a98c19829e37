/* work: how much a task may still do, counted in steps of about a few nanoseconds each, and whether
 * it is still wanted. A count ends a task at the same place on every machine, which a clock does
 * not. One thread.
 *
 *     work_count w = {.limit = LIMIT_SCHEMA_WORK, .cancelled = is_cancelled, .ctx = ctx};
 *     while (work_do(&w, 1)) { break; }       // one step of the task a round; false: it has to stop
 *     return work_error(&w);                  // ERR_OK, ERR_LIMIT or ERR_CANCELLED
 *
 * Long loops count their rounds, and calls that take a time in proportion to bytes count those.
 */
#ifndef PARLEY_BASE_WORK_H
#define PARLEY_BASE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct work_count {
    uint64_t limit;               /* 0: none */
    bool (*cancelled)(void *ctx); /* NULL: never; asked every WORK_GAP steps */
    void *ctx;
    uint64_t done, asked; /* steps so far; and when the hook was last asked */
    err_code err;         /* why it stopped, or ERR_OK; it stays */
} work_count;

enum { WORK_GAP = 200000 };

/* Counts `steps`; false if the task must end: it went beyond its limit or was cancelled. w NULL:
 * always true. */
bool work_do(work_count *w, size_t steps);

/* Why the task must end, or ERR_OK. w may be NULL. */
err_code work_error(const work_count *w);

#endif
