/* inbox: what other threads pass to the engine thread: submitted requests, in order, and
 * cancellations by id. Lock: one mutex inside; all functions may be called from any thread unless
 * they say "engine thread".
 *
 * A request is live from the reservation of its place (inbox_reserve) to finish. A cancel of an id that
 * is not live does nothing, so late
 * and repeated cancels are harmless.
 */
#ifndef PARLEY_ENGINE_INBOX_H
#define PARLEY_ENGINE_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "engine/request.h"

typedef struct inbox inbox;

/* Room for n_queue waiting requests and n_running running ones; NULL if out of memory. */
MUST_CHECK inbox *inbox_create(int32_t n_queue, int32_t n_running);
/* Requests still waiting are freed. NULL allowed. */
void inbox_destroy(inbox *in);

/* Takes places in the queue, one behind the other, for a request and those behind it (gen_request_next);
 * false, and none is taken, if there is not room for all or it is closed. */
MUST_CHECK bool inbox_reserve(inbox *in, const gen_request *r);
/* Hands over r, whose place was reserved, and those behind it. */
void inbox_submit(inbox *in, gen_request *r);
/* The most requests that may wait. */
int32_t inbox_room(const inbox *in);
void inbox_cancel(inbox *in, uint64_t id);
/* Records that the reasoning of the request must end. */
void inbox_end_thinking(inbox *in, uint64_t id);
/* Refuses further requests and wakes the engine thread. */
void inbox_close(inbox *in);

/* Engine thread: the oldest waiting request, now running. False if none waits. */
bool inbox_take(inbox *in, gen_request **r);
/* Engine thread: a cancelled request that still waits; it is removed from the queue and no longer
 * live. */
bool inbox_take_cancelled(inbox *in, gen_request **r);
/* Engine thread: whether the running request was cancelled, or the inbox closed. */
bool inbox_is_cancelled(inbox *in, uint64_t id);
/* Engine thread: whether the reasoning of the running request must end. */
bool inbox_ends_thinking(inbox *in, uint64_t id);
/* Engine thread: the running request is over. */
void inbox_finish(inbox *in, uint64_t id);
/* Ends the engine thread's sleep, or its next one. */
void inbox_wake(inbox *in);
/* Engine thread: sleeps until a request arrives, inbox_wake is called, the inbox is closed or `ms`
 * milliseconds are over (-1: never); returns false when closed. */
bool inbox_wait(inbox *in, int64_t ms);
bool inbox_is_closed(inbox *in);
/* Requests waiting, those with no more than a place among them, and running now. */
void inbox_count(inbox *in, int32_t *n_waiting, int32_t *n_running);

#endif
