/* shares: how much of what is kept belongs to whom, who has to give when there is too much, and
 * what had to go before its time. One thread at a time; embedded by value.
 *
 *     shares s; shares_init(&s, 2048, 64 << 20, memory);
 *     if (!shares_add(&s, owner, n_bytes)) { return ERR_NOMEM; }
 *     while (shares_is_over(&s, 0, 0, &owner)) { shares_remove(&s, owner, n_bytes); }     // the oldest of it
 *     shares_note_gone(&s, owner, "resp_1", until_ms);
 *     bool gone = shares_is_gone(&s, owner, "resp_1", now_ms);
 *     shares_deinit(&s);
 *
 * It is always the owner with most that gives, so nobody loses anything to another who has more:
 * with k owners, each has its k-th part for sure, and what others leave. The bytes are taken from the
 * ledger of requests, where there is one, and given up again when requests want them.
 */
#ifndef PARLEY_SERVER_SHARES_H
#define PARLEY_SERVER_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ledger.h"

enum { SHARES_GONE = 16384 }; /* notes of what is gone; the oldest are forgotten */

typedef struct share {
    uint64_t owner;
    size_t n, n_bytes;
} share;

typedef struct shares_note shares_note;

typedef struct shares {
    size_t max_n, max_bytes;
    size_t n, n_bytes;  /* of all owners */
    ledger_hold memory; /* for n_bytes */
    share *items;       /* one for each owner that has something */
    size_t n_items, cap_items;
    shares_note *notes; /* a ring; NULL until something is gone */
    size_t n_notes, next_note;
} shares;

/* memory may be NULL, and outlives s. */
void shares_init(shares *s, size_t max_n, size_t max_bytes, ledger *memory);
void shares_deinit(shares *s);

/* Counts one thing more, or less. Where there is no memory for it nothing is counted: false. */
MUST_CHECK bool shares_add(shares *s, uint64_t owner, size_t n_bytes);
void shares_remove(shares *s, uint64_t owner, size_t n_bytes);
/* Whether there is too much once n more things of n_bytes more bytes are added, or requests wait for
 * memory; then *owner has to give one. */
bool shares_is_over(const shares *s, size_t n, size_t n_bytes, uint64_t *owner);

/* Remembers until then that this had to go. Without memory it is not remembered. */
void shares_note_gone(shares *s, uint64_t owner, const char *name, double until_ms);
bool shares_is_gone(const shares *s, uint64_t owner, const char *name, double now_ms);

#endif
