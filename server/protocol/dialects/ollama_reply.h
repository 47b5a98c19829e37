/* ollama_reply: the reply of Ollama's POST /api/chat and /api/generate: one object, or a line for each
 * piece. Loop thread; plain text building.
 *
 *     ollama_reply_meta m = {.model = "seedling", .is_generate = false};
 *     ollama_reply_delta(&lines, &m, &pieces);
 *     ollama_reply_end(&lines, &m, &all, true, "stop", &usage, &timings);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_OLLAMA_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_OLLAMA_REPLY_H

#include <stdbool.h>

#include "server/api_error.h"
#include "server/protocol/output/reply_pieces.h"
#include "server/protocol/reply_json.h"

typedef struct ollama_reply_meta {
    const char *model;
    bool is_generate; /* "response" in place of "message" */
} ollama_reply_meta;

/* One line for each piece of text or thought; calls wait for the end. */
void ollama_reply_delta(bytes *out, const ollama_reply_meta *m, const reply_pieces *pieces);

/* The last line, or the whole reply: with the calls among all pieces, and, unless the text was streamed,
 * with the text. */
void ollama_reply_end(bytes *out, const ollama_reply_meta *m, const reply_pieces *all, bool was_streamed,
                      const char *finish, const reply_usage *usage, const gen_timings *t);

/* {"error":".."}: of a refusal, and as the last line of a stream. */
void ollama_reply_error_body(bytes *out, const api_error *e);
void ollama_reply_error(bytes *out, const api_error *e);

#endif
