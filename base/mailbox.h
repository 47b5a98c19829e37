/* mailbox: bounded queue that hands messages from any threads to one or more receiving threads.
 *
 *     mailbox *mb = mailbox_create(64);
 *     if (!mailbox_push(mb, job)) { return ERR_BUSY; }       // the job stays ours
 *     while (mailbox_pop(mb, &job)) { free(job); }
 *
 * Ownership: a successful push transfers the pointer; a failed push leaves it with the sender.
 * Threads: every function but create and destroy may be called from any thread. Lock: one mutex
 * inside, never held while calling out.
 */
#ifndef PARLEY_BASE_MAILBOX_H
#define PARLEY_BASE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct mailbox mailbox;

/* A queue of at most cap messages; NULL if out of memory. */
MUST_CHECK mailbox *mailbox_create(size_t cap);

/* Frees the queue; no thread may be using it. Messages still inside are passed to drop (may be
 * NULL). */
void mailbox_destroy(mailbox *mb, void (*drop)(void *message));

/* Hands message over; false if the queue is full or closed (the sender keeps it). Never blocks. */
MUST_CHECK bool mailbox_push(mailbox *mb, void *message);

/* Waits for a message; false once the queue is closed and empty. */
bool mailbox_pop(mailbox *mb, void **message);

/* Takes a message if there is one; false at once otherwise. */
bool mailbox_try_pop(mailbox *mb, void **message);

/* Waits at most timeout_ms for a message; false on timeout or when closed and empty. */
bool mailbox_pop_wait(mailbox *mb, void **message, int64_t timeout_ms);

/* No further pushes; receivers get what is left, then false. */
void mailbox_close(mailbox *mb);

#endif
