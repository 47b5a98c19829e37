/* completion_reply: what POST /v1/completions answers: one object, or server-sent chunks. Loop
 * thread; plain text building, no state of its own. The counterpart of chat_reply: the same meta,
 * pieces and entries of logprobs.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REPLY_H

#include "server/protocol/dialects/chat_reply.h"

/* The whole reply. logprobs: the entries as chat_reply_whole takes them, or NULL. */
void completion_reply_whole(bytes *out, const chat_reply_meta *m, const reply_pieces *pieces,
                            const char *logprobs, const char *finish, const reply_usage *usage,
                            const gen_timings *t);
/* One chunk with all new text; logprobs and timings may be NULL. */
void completion_reply_delta(bytes *out, const chat_reply_meta *m, const reply_pieces *pieces,
                            const char *logprobs, const gen_timings *t);
/* The chunk with finish_reason, the usage chunk if wanted, and [DONE]. */
void completion_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const reply_usage *usage,
                           const gen_timings *t);

#endif
