/* call_ledger: which calls of a replayed conversation have their results. Reading a request; prep threads.
 *
 *     call_ledger l; call_ledger_init(&l, r->in);
 *     err = call_ledger_call(&l, "call_1", "messages[1].tool_calls[0]", &detail);
 *     err = call_ledger_result(&l, "call_1", "messages[2].tool_call_id", &detail);   // behind adding the message
 *     call_ledger_sort(&l);                                                           // before chat_normalize
 *
 * Templates show results without ids, so results that follow each other must stand in the order of their calls: that
 * is how the model tells them apart.
 */
#ifndef PARLEY_SERVER_CALL_LEDGER_H
#define PARLEY_SERVER_CALL_LEDGER_H

#include "engine/chat.h"

typedef struct ledger_call {
    const char *id; /* NULL: the client gave none */
    bool answered;
} ledger_call;

typedef struct call_ledger {
    chat_input *in;
    ledger_call *calls; /* in the chat's arena */
    size_t n, cap;
    size_t first_open; /* calls before it are answered */
    size_t *order;     /* [messages] of a result: its call */
    size_t n_order;
} call_ledger;

/* n_messages: how many the conversation may have. ERR_NOMEM. */
MUST_CHECK err_code call_ledger_init(call_ledger *l, chat_input *in, size_t n_messages, err_detail *d);

/* An assistant made a call. ERR_INVALID at `path` if a call with this id waits for its result already. */
MUST_CHECK err_code call_ledger_call(call_ledger *l, const char *id, const char *path, err_detail *d);

/* Message number `message` is a result. id NULL: of the first call that has none. ERR_INVALID at `path`: there is no
 * such call, or it has its result. */
MUST_CHECK err_code call_ledger_result(call_ledger *l, const char *id, size_t message, const char *path,
                                       err_detail *d);

/* Puts results that follow each other into the order of their calls. */
void call_ledger_sort(call_ledger *l);

#endif
