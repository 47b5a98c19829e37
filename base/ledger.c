#include "base/ledger.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"

enum { LOOK_MS = 20 }; /* how often somebody who waits asks whether it was cancelled */

struct ledger {
    pthread_mutex_t lock;
    pthread_cond_t given; /* broadcast when bytes or a turn become free; runs on CLOCK_MONOTONIC */
    ledger_status status; /* {lock} */
    struct waiter *first; /* {lock} who waits, in order */
};

/* On the stack of the thread that waits. */
typedef struct waiter {
    struct waiter *next;
    size_t bytes;
} waiter;

ledger *ledger_create(size_t limit)
{
    ledger *l = calloc(1, sizeof *l);
    if (!l || !clock_init_condition(&l->given)) {
        free(l);
        return NULL;
    }
    l->status.limit = limit;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void ledger_destroy(ledger *l)
{
    if (l) {
        pthread_cond_destroy(&l->given);
        pthread_mutex_destroy(&l->lock);
        free(l);
    }
}

void ledger_set_limit(ledger *l, size_t limit)
{
    pthread_mutex_lock(&l->lock);
    l->status.limit = limit;
    pthread_cond_broadcast(&l->given);
    pthread_mutex_unlock(&l->lock);
}

ledger_status ledger_get_status(ledger *l)
{
    pthread_mutex_lock(&l->lock);
    const ledger_status s = l->status;
    pthread_mutex_unlock(&l->lock);
    return s;
}

/* {lock} */
static bool fits(const ledger *l, size_t bytes)
{
    return l->status.used <= l->status.limit && bytes <= l->status.limit - l->status.used;
}

bool ledger_is_short(ledger *l, size_t bytes)
{
    if (!l) {
        return false;
    }
    pthread_mutex_lock(&l->lock);
    const bool is_short = !fits(l, bytes) || (l->first && !fits(l, l->first->bytes));
    pthread_mutex_unlock(&l->lock);
    return is_short;
}

/* {lock} */
static void reserve(ledger_hold *h, size_t bytes)
{
    ledger_status *s = &h->ledger->status;
    s->used += bytes;
    s->peak = s->used > s->peak ? s->used : s->peak;
    h->bytes += bytes;
}

bool ledger_try(ledger_hold *h, size_t bytes)
{
    ledger *l = h->ledger;
    if (!l) {
        return true;
    }
    pthread_mutex_lock(&l->lock);
    const bool ok = fits(l, bytes);
    if (ok) {
        reserve(h, bytes);
    } else {
        l->status.n_refused++;
    }
    pthread_mutex_unlock(&l->lock);
    return ok;
}

/* {lock} */
static void leave(ledger *l, const waiter *w)
{
    waiter **at = &l->first;
    while (*at != w) {
        at = &(*at)->next;
    }
    *at = w->next;
    pthread_cond_broadcast(&l->given); /* the next in line may fit */
}

/* {lock} Stands in line until the bytes are free. */
static err_code stand_in_line(ledger *l, size_t bytes, const ledger_patience *patience)
{
    waiter w = {.bytes = bytes}, **end = &l->first;
    const double deadline = clock_ms() + LIMIT_MEMORY_WAIT_MS;
    err_code err = ERR_OK;
    while (*end) {
        end = &(*end)->next;
    }
    *end = &w;
    l->status.n_waited++;
    while (err == ERR_OK && (l->first != &w || !fits(l, bytes))) {
        const struct timespec until = clock_deadline(LOOK_MS);
        (void)pthread_cond_timedwait(&l->given, &l->lock, &until);
        pthread_mutex_unlock(&l->lock); /* what is asked may take locks of its own */
        if (patience && patience->cancelled && patience->cancelled(patience->ctx)) {
            err = ERR_CANCELLED;
        }
        pthread_mutex_lock(&l->lock);
        if (err == ERR_OK && clock_ms() > deadline && (l->first != &w || !fits(l, bytes))) {
            err = ERR_BUSY;
        }
    }
    leave(l, &w);
    return err;
}

err_code ledger_take(ledger_hold *h, const char *what, size_t bytes, const ledger_patience *patience,
                     err_detail *detail)
{
    ledger *l = h->ledger;
    if (!l) {
        return ERR_OK;
    }
    err_code err = ERR_OK;
    pthread_mutex_lock(&l->lock);
    const size_t limit = l->status.limit;
    if (h->bytes > limit || bytes > limit - h->bytes) { /* nobody else can make this room */
        err = ERR_LIMIT;
    } else if (l->first || !fits(l, bytes)) {
        err = stand_in_line(l, bytes, patience);
    }
    if (err == ERR_OK) {
        reserve(h, bytes);
    } else {
        l->status.n_refused += err != ERR_CANCELLED;
    }
    pthread_mutex_unlock(&l->lock);
    switch (err) {
    case ERR_LIMIT:
        return err_set_param(
            detail, err, NULL, "memory_limit",
            "%s would take %zu MiB of memory; %zu MiB are there for all requests (--mem-limit): "
            "send less at once",
            what, (h->bytes + bytes) >> 20, limit >> 20);
    case ERR_BUSY:
        return err_set_param(detail, err, NULL, "memory_busy",
                             "the memory for requests is in use (%s would take %zu MiB of %zu MiB); "
                             "try again in a moment",
                             what, bytes >> 20, limit >> 20);
    case ERR_CANCELLED:
        return err_set(detail, err, "cancelled while waiting for memory");
    default:
        return ERR_OK;
    }
}

void ledger_give(ledger_hold *h, size_t bytes)
{
    ledger *l = h->ledger;
    if (!l || h->bytes == 0) {
        return;
    }
    bytes = bytes < h->bytes ? bytes : h->bytes;
    pthread_mutex_lock(&l->lock);
    h->bytes -= bytes;
    l->status.used -= bytes;
    if (l->first) {
        pthread_cond_broadcast(&l->given);
    }
    pthread_mutex_unlock(&l->lock);
}

void ledger_give_all(ledger_hold *h)
{
    ledger_give(h, h->bytes);
}
