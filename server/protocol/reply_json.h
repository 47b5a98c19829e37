/* reply_json: the pieces of JSON that every protocol's reply shares: usage and timings. Any
 * thread. */
#ifndef PARLEY_SERVER_PROTOCOL_REPLY_JSON_H
#define PARLEY_SERVER_PROTOCOL_REPLY_JSON_H

#include <stdint.h>

#include "base/bytes.h"
#include "engine/gen.h"

typedef struct reply_usage {
    int32_t prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens;
    int32_t sparse_tokens, sparse_kept_tokens; /* see gen_timings.sparse_n; 0: not shown */
} reply_usage;

/* ,"usage":{"prompt_tokens":..} of Chat Completions. */
void reply_json_usage(bytes *out, const reply_usage *u);
/* ,"usage":{"input_tokens":..} of Responses. */
void reply_json_responses_usage(bytes *out, const reply_usage *u);
/* ,"timings":{"server":null|NAME,"route":"text"|"media","cache_n":..}; nothing if t is NULL. */
void reply_json_timings(bytes *out, const gen_timings *t);
/* One entry of logprobs.content for a token with these bytes. */
void reply_json_logprob_head(bytes *out, const char *token, size_t len, double logprob);

#endif
