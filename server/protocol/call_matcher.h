/* call_matcher: matches tool results with the tool calls of the conversation in a request. Prep
 * threads.
 *
 *     call_matcher l; err = call_matcher_init(&l, in, n_messages, &detail);
 *     err = call_matcher_call(&l, "call_1", "messages[1].tool_calls[0]", &detail);
 *     err = call_matcher_result(&l, "call_1", 2, "messages[2].tool_call_id", &detail);   // behind adding the message
 *     call_matcher_sort(&l);                                                           // before chat_normalize
 *
 * Templates show results without ids, so consecutive results must be in the order of their calls:
 * only the order identifies them.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CALL_MATCHER_H
#define PARLEY_SERVER_PROTOCOL_CALL_MATCHER_H

#include "engine/chat.h"

typedef struct matched_call {
    const char *id; /* NULL: the client gave none */
    bool answered;
} matched_call;

typedef struct call_matcher {
    chat_input *in;
    matched_call *calls; /* in the chat's arena */
    size_t n, cap;
    size_t first_open; /* calls before it are answered */
    size_t *order;     /* [messages] of a result: its call */
    size_t n_order;
} call_matcher;

/* n_messages: how many the conversation may have. ERR_NOMEM. */
MUST_CHECK err_code call_matcher_init(call_matcher *l, chat_input *in, size_t n_messages, err_detail *d);

/* Adds a call by the assistant. ERR_INVALID at `path` if a call with this id is still without a
 * result. */
MUST_CHECK err_code call_matcher_call(call_matcher *l, const char *id, const char *path, err_detail *d);

/* Message number `message` is a result. id NULL: of the first call without one. ERR_INVALID at
 * `path`: there is no such call, or it already has a result. */
MUST_CHECK err_code call_matcher_result(call_matcher *l, const char *id, size_t message, const char *path,
                                        err_detail *d);

/* Sorts consecutive results into the order of their calls. */
void call_matcher_sort(call_matcher *l);

#endif
