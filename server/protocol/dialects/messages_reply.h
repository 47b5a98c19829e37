/* messages_reply: the reply of Anthropic's POST /v1/messages: one message of blocks, or events.
 * Loop thread; plain text building. The counterpart of chat_reply, from the same pieces.
 *
 *     messages_reply_meta m = {.id = "msg_..", .model = "seedling", .usage = usage};
 *     messages_reply_first(&sse, &m, &state);
 *     messages_reply_delta(&sse, &m, &state, &pieces);
 *     m.stop_reason = "end_turn";
 *     messages_reply_last(&sse, &m, &state);
 *
 * Thoughts carry a signature, as clients expect; nobody checks it when it comes back. A call cut off
 * by the end of the answer has the input {} in a complete reply.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_REPLY_H

#include <stdbool.h>

#include "server/api_error.h"
#include "server/protocol/reply_json.h"
#include "server/protocol/output/reply_pieces.h"

typedef struct messages_reply_meta {
    const char *id, *model;
    const char *stop_reason;   /* "end_turn", "max_tokens", "stop_sequence", "tool_use" */
    const char *stop_sequence; /* the one that was found, or NULL */
    reply_usage usage;         /* so far */
    const char *edits;         /* of the conversation, that were applied, as JSON; "": none were asked for */
    const gen_timings
        *elsewhere; /* of an answer that another server gives; NULL: this one, nothing is said */
} messages_reply_meta;

/* State carried between events of an answer. Starts all zero. */
typedef struct messages_reply_state {
    bool is_begun;   /* message_start is written */
    int n_blocks;    /* begun */
    bool is_open;    /* the last of them goes on ... */
    reply_kind kind; /* ... and is of this kind; REPLY_CALL for calls */
} messages_reply_state;

/* The event that keeps a silent stream alive. */
#define MESSAGES_REPLY_PING "event: ping\ndata: {\"type\":\"ping\"}\n\n"

/* The whole reply, for a request that does not stream. */
void messages_reply_whole(bytes *out, const messages_reply_meta *m, const reply_pieces *pieces);

/* Its content alone: blocks with commas between them. */
void messages_reply_content(bytes *out, const messages_reply_meta *m, const reply_pieces *pieces);

/* Events, each a complete "event: ..\ndata: ..\n\n". message_start, once; the next two write it if it is
 * missing. Its usage should be known: clients take the tokens of the input from it. */
void messages_reply_first(bytes *out, const messages_reply_meta *m, messages_reply_state *state);
/* content_block_start, _delta and _stop of new pieces. */
void messages_reply_delta(bytes *out, const messages_reply_meta *m, messages_reply_state *state,
                          const reply_pieces *pieces);
/* The end of the open block, message_delta with reason and usage, message_stop. */
void messages_reply_last(bytes *out, const messages_reply_meta *m, messages_reply_state *state);
/* A failure in the middle: the event "error"; nothing follows. */
void messages_reply_error(bytes *out, const api_error *e);

/* {"type":"error","error":{"type","message","details":{"error_code"}}}: the body of every failure for
 * clients of this dialect. */
void messages_reply_error_body(bytes *out, const api_error *e);

#endif
