/* ledger: how much memory may be taken for requests, and who has it. Any thread.
 *
 *     ledger *l = ledger_create(512 << 20);
 *     ledger_hold hold = {.ledger = l};
 *     err = ledger_take(&hold, "the image", n, NULL, &detail);     // then malloc(n)
 *     ledger_give(&hold, n);                                      // or ledger_give_all(&hold)
 *
 * Bytes are reserved before they are taken from the machine, as an upper bound of what a piece of
 * work needs. Who must not wait (the loop thread) asks with ledger_try and refuses the client; who
 * may wait (prep threads) asks with ledger_take, which serves those who wait in their order, for
 * LIMIT_MEMORY_WAIT_MS at most. What could never fit is refused at once.
 *
 * A hold is what one owner has reserved: a connection, a job, a request. It is a plain value with
 * one owner at a time and may be copied when ownership moves. A hold without a ledger takes what it
 * is asked for, without a limit.
 */
#ifndef PARLEY_BASE_LEDGER_H
#define PARLEY_BASE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct ledger ledger;

typedef struct ledger_hold {
    ledger *ledger; /* NULL: no limit */
    size_t bytes;
} ledger_hold;

typedef struct ledger_status {
    size_t limit, used, peak; /* bytes; peak: the largest `used` so far */
    uint64_t n_waited, n_refused;
} ledger_status;

/* Until when a caller of ledger_take waits; NULL: until the time is over. */
typedef struct ledger_patience {
    bool (*cancelled)(void *ctx); /* may be NULL; polled on the calling thread */
    void *ctx;
} ledger_patience;

/* Hands out at most `limit` bytes; NULL if out of memory. Nobody may hold anything when it is
 * destroyed. */
MUST_CHECK ledger *ledger_create(size_t limit);
void ledger_destroy(ledger *l); /* NULL allowed */

/* What is held stays held, even above a lower limit. */
void ledger_set_limit(ledger *l, size_t limit);
ledger_status ledger_get_status(ledger *l);
/* Whether what may be given up should be: somebody waits, or `bytes` more do not fit. l may be NULL. */
bool ledger_is_short(ledger *l, size_t bytes);

/* Reserves `bytes` more now, or nothing. False if they are not free. */
MUST_CHECK bool ledger_try(ledger_hold *h, size_t bytes);

/* The same, but waits its turn. ERR_LIMIT (memory_limit) if it could never fit, ERR_BUSY
 * (memory_busy) if it does not in time, ERR_CANCELLED. `what` is for the text: "the image". */
MUST_CHECK err_code ledger_take(ledger_hold *h, const char *what, size_t bytes,
                                const ledger_patience *patience, err_detail *detail);

/* Gives back `bytes` of what the hold has, at most all. */
void ledger_give(ledger_hold *h, size_t bytes);
void ledger_give_all(ledger_hold *h);

#endif
