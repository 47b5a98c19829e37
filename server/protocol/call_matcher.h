/* call_matcher: matches tool results with the tool calls of the conversation in a request. Prep
 * threads.
 *
 *     call_matcher l; call_matcher_init(&l, &e, in, n_messages);
 *     call_matcher_call(&l, "call_1", "messages[1].tool_calls[0]");
 *     call_matcher_result(&l, "call_1", 2, "messages[2].tool_call_id");
 *     call_matcher_sort(&l);
 *
 * Templates show results without ids, so consecutive results must be in the order of their calls:
 * only the order identifies them.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CALL_MATCHER_H
#define PARLEY_SERVER_PROTOCOL_CALL_MATCHER_H

#include "engine/chat.h"
#include "server/protocol/first_error.h"

typedef struct matched_call {
    const char *id; /* NULL: the client gave none */
    bool answered;
} matched_call;

typedef struct call_matcher {
    first_error *error;
    chat_input *in;
    matched_call *calls; /* in the chat's arena */
    size_t n, cap;
    size_t first_open; /* calls before it are answered */
    size_t *order;     /* [messages] of a result: its call */
    size_t n_order;
} call_matcher;

/* n_messages: how many the conversation may have. Errors go to *e: ERR_NOMEM here. */
void call_matcher_init(call_matcher *l, first_error *e, chat_input *in, size_t n_messages);

/* Adds a call by the assistant. ERR_INVALID at `path` if a call with this id is still without a
 * result. */
void call_matcher_call(call_matcher *l, const char *id, const char *path);

/* Message number `message` is a result. id NULL: of the first call without one. ERR_INVALID at
 * `path`: there is no such call, or it already has a result. */
void call_matcher_result(call_matcher *l, const char *id, size_t message, const char *path);

/* Sorts consecutive results into the order of their calls. */
void call_matcher_sort(call_matcher *l);

#endif
