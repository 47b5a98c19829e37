#include "base/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* signalled per push, broadcast on close; runs on CLOCK_MONOTONIC */
    void **items;           /* {lock} ring of `cap` slots */
    size_t cap;
    size_t first; /* {lock} oldest message */
    size_t len;   /* {lock} */
    bool closed;  /* {lock} */
};

mailbox *mailbox_create(size_t cap)
{
    mailbox *mb = calloc(1, sizeof *mb);
    if (mb) {
        mb->cap = cap > 0 ? cap : 1;
        mb->items = calloc(mb->cap, sizeof *mb->items);
    }
    if (!mb || !mb->items || !clock_init_condition(&mb->arrived)) {
        free(mb ? mb->items : NULL);
        free(mb);
        return NULL;
    }
    pthread_mutex_init(&mb->lock, NULL);
    return mb;
}

/* The oldest message; the caller holds the lock and has seen len > 0. */
static void *take_first(mailbox *mb)
{
    void *message = mb->items[mb->first];
    mb->first = (mb->first + 1) % mb->cap;
    mb->len--;
    return message;
}

void mailbox_destroy(mailbox *mb, void (*drop)(void *message))
{
    if (!mb) {
        return;
    }
    while (mb->len > 0) {
        void *message = take_first(mb);
        if (drop) {
            drop(message);
        }
    }
    pthread_cond_destroy(&mb->arrived);
    pthread_mutex_destroy(&mb->lock);
    free(mb->items);
    free(mb);
}

bool mailbox_push(mailbox *mb, void *message)
{
    pthread_mutex_lock(&mb->lock);
    bool accepted = !mb->closed && mb->len < mb->cap;
    if (accepted) {
        mb->items[(mb->first + mb->len) % mb->cap] = message;
        mb->len++;
        pthread_cond_signal(&mb->arrived);
    }
    pthread_mutex_unlock(&mb->lock);
    return accepted;
}

/* Takes the oldest message, waiting for one until the deadline; NULL: without end. */
static bool take(mailbox *mb, void **message, const struct timespec *deadline)
{
    int waited = 0;
    pthread_mutex_lock(&mb->lock);
    while (mb->len == 0 && !mb->closed && waited != ETIMEDOUT) {
        waited = deadline ? pthread_cond_timedwait(&mb->arrived, &mb->lock, deadline)
                          : pthread_cond_wait(&mb->arrived, &mb->lock);
    }
    bool found = mb->len > 0;
    if (found) {
        *message = take_first(mb);
    }
    pthread_mutex_unlock(&mb->lock);
    return found;
}

bool mailbox_pop(mailbox *mb, void **message)
{
    return take(mb, message, NULL);
}

bool mailbox_try_pop(mailbox *mb, void **message)
{
    pthread_mutex_lock(&mb->lock);
    const bool has_message = mb->len > 0;
    pthread_mutex_unlock(&mb->lock);
    return has_message && mailbox_pop_wait(mb, message, 0);
}

bool mailbox_pop_wait(mailbox *mb, void **message, int64_t timeout_ms)
{
    const struct timespec deadline = clock_deadline(timeout_ms);
    return take(mb, message, &deadline);
}

void mailbox_close(mailbox *mb)
{
    pthread_mutex_lock(&mb->lock);
    mb->closed = true;
    pthread_cond_broadcast(&mb->arrived);
    pthread_mutex_unlock(&mb->lock);
}
