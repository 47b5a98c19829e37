/* chat_reply: what POST /v1/chat/completions answers: one object, or server-sent chunks. Loop thread; plain text
 * building, no state of its own.
 *
 *     chat_reply_meta m = {.id = "chatcmpl-..", .created = t, .model = "seedling"};
 *     chat_reply_first(&sse, &m, usage_in_chunks);
 *     chat_reply_delta(&sse, &m, usage_in_chunks, "", 0, "Hello", 5, NULL);
 *     chat_reply_last(&sse, &m, true, "stop", &usage, &timings);
 */
#ifndef PARLEY_SERVER_CHAT_REPLY_H
#define PARLEY_SERVER_CHAT_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "server/api_error.h"
#include "server/reply_json.h"

typedef struct chat_reply_meta {
    const char *id;
    int64_t created;
    const char *model;
    const char *fingerprint;
    bool include_usage; /* every chunk says "usage":null, an extra one has it */
} chat_reply_meta;

/* The whole reply. logprobs is the text of the entries ("{..},{..}") or NULL. Empty reasoning is left out. */
void chat_reply_whole(bytes *out, const chat_reply_meta *m, const bytes *reasoning, const bytes *content,
                      const char *logprobs, const char *finish, const reply_usage *usage,
                      const gen_timings *t);

/* Chunks, each a complete "data: ..\n\n". */
void chat_reply_first(bytes *out, const chat_reply_meta *m);
/* One chunk for reasoning and one for content, if not empty. timings may be NULL. */
void chat_reply_delta(bytes *out, const chat_reply_meta *m, const bytes *reasoning, const bytes *content,
                      const char *logprobs, const gen_timings *t);
void chat_reply_progress(bytes *out, const chat_reply_meta *m, int32_t total, int32_t cache,
                         int32_t processed, double ms);
/* The chunk with finish_reason, the usage chunk if wanted, and [DONE]. */
void chat_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const reply_usage *usage,
                     const gen_timings *t);
/* A failure in the middle; [DONE] never follows. */
void chat_reply_error(bytes *out, const api_error *e);

#endif
