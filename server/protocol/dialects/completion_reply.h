/* completion_reply: what POST /v1/completions answers: one object, or server-sent chunks. Loop
 * thread; plain text building, no state of its own. The counterpart of chat_reply: the same meta,
 * pieces and entries of logprobs.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REPLY_H

#include "server/protocol/dialects/chat_reply.h"

#define COMPLETION_REPLY_OBJECT "text_completion"

/* A choice of a whole reply, which begins and ends as a chat's (chat_reply_begin_whole). */
void completion_reply_choice_whole(bytes *out, const chat_reply_meta *m, const chat_reply_choice *choice);
/* One chunk with all new text; logprobs and timings may be NULL. */
void completion_reply_delta(bytes *out, const chat_reply_meta *m, const reply_pieces *pieces,
                            const char *logprobs, const gen_timings *t);
/* The chunk with finish_reason; chat_reply_end follows behind the last of all choices. */
void completion_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const gen_timings *t);

#endif
