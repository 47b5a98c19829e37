/* chat_reply: the reply of POST /v1/chat/completions: one object, or server-sent chunks. Loop
 * thread; plain text building, no state of its own.
 *
 *     chat_reply_meta m = {.id = "chatcmpl-..", .created = t, .model = "seedling"};
 *     chat_reply_first(&sse, &m);
 *     chat_reply_delta(&sse, &m, &state, &pieces, NULL, NULL);
 *     chat_reply_last(&sse, &m, "stop", &timings);
 *     chat_reply_end(&sse, &m, CHAT_REPLY_CHUNK, &usage);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_CHAT_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_CHAT_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "server/api_error.h"
#include "server/protocol/reply_json.h"
#include "server/protocol/output/reply_pieces.h"

/* The object that a chunk is. */
#define CHAT_REPLY_CHUNK "chat.completion.chunk"

typedef struct chat_reply_meta {
    const char *id;
    int64_t created;
    const char *model;
    const char *fingerprint;
    bool include_usage;          /* every chunk says "usage":null, an extra one has it */
    const char *reasoning_field; /* "content" (or NULL): reasoning_content; "reasoning"; "both" */
    int index;                   /* of the choice that a chunk is of */
} chat_reply_meta;

/* One of the answers of a whole reply. */
typedef struct chat_reply_choice {
    const reply_pieces *pieces;
    const char *logprobs; /* the text of the entries ("{..},{..}"), or NULL */
    const char *finish;
} chat_reply_choice;

/* State carried between chunks of an answer. Starts all zero. */
typedef struct chat_reply_state {
    int n_calls;
    bool has_content; /* text was sent ... */
    bool needs_gap;   /* ... and a call behind it: more text begins a paragraph of its own */
} chat_reply_state;

/* The members that every reply and chunk begins with, of a completion too:
 * {"id":..,"object":..,"created":..,"model":..,"system_fingerprint":.. */
void chat_reply_identity(bytes *out, const chat_reply_meta *m, const char *object);
/* The chunk that ends a stream with its usage, if it was asked for, and [DONE]. */
void chat_reply_end(bytes *out, const chat_reply_meta *m, const char *object, const reply_usage *usage);

/* The whole reply, in four parts: its head, "," between its choices, each choice, its end. Empty
 * reasoning is left out; content is null if there are calls and no text. */
void chat_reply_begin_whole(bytes *out, const chat_reply_meta *m, const char *object);
void chat_reply_choice_whole(bytes *out, const chat_reply_meta *m, const chat_reply_choice *choice);
void chat_reply_end_whole(bytes *out, const reply_usage *usage, const gen_timings *t);

/* Chunks, each a complete "data: ..\n\n". */
void chat_reply_first(bytes *out, const chat_reply_meta *m);
/* One chunk a piece. timings and logprobs may be NULL; logprobs go out with the first content. True
 * if they did. */
bool chat_reply_delta(bytes *out, const chat_reply_meta *m, chat_reply_state *state,
                      const reply_pieces *pieces, const char *logprobs, const gen_timings *t);
void chat_reply_progress(bytes *out, const chat_reply_meta *m, const char *object, int32_t total,
                         int32_t cache, int32_t processed, double ms);
/* The chunk with finish_reason; chat_reply_end follows behind the last of all choices. */
void chat_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const gen_timings *t);
/* A failure in the middle; [DONE] never follows. */
void chat_reply_error(bytes *out, const api_error *e);

#endif
