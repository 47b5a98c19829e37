/* request_fields: reads the fields that all generating protocols share and checks their ranges.
 * Prep threads.
 *
 *     request_read_sampling(&e, in, root, info);
 *     request_read_stop(&e, &reply, root);
 *
 * A missing or null field leaves the value as it was; a wrong type or range is ERR_INVALID naming
 * the field. After an error no field is read (see first_error).
 */
#ifndef PARLEY_SERVER_PROTOCOL_REQUEST_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_REQUEST_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/chat.h"
#include "engine/engine.h"
#include "server/protocol/first_error.h"
#include "server/protocol/output/tool_set.h"
#include "server/protocol/tool_plan.h"

enum {
    REQUEST_MODEL_MAX = 512, /* of a path; other names: */
    REQUEST_MODEL_NAME_MAX = 128,
    REQUEST_ID_MAX = 256,
    REQUEST_EVENT_ID_MAX = 64,
    REQUEST_RESPONSE_ID_MAX = 48
};

/* What the reply of a request needs to know; outlives the parsed body. */
typedef struct reply_options {
    bool stream;
    bool include_usage;
    bool return_progress;
    bool timings_per_token;
    bool logprobs;
    int n_choices;                           /* answers to each prompt; 0: one */
    bool store;                              /* keep the conversation for previous_response_id */
    bool store_given, cancel_on_disconnect;  /* as requested; store_given: set explicitly */
    bool keep_on_disconnect;                 /* derived: continue when the client is gone */
    char model[REQUEST_MODEL_MAX];           /* as asked for; "" if absent */
    char stream_id[REQUEST_ID_MAX + 1];      /* lane, WebSocket only */
    char event_id[REQUEST_EVENT_ID_MAX + 1]; /* the client's, echoed in errors */
    uint8_t body_hash[HASH_BYTES];           /* of a body that may come again, see prep_order */
    char *stops[LIMIT_STOP_STRINGS];         /* owned copies */
    size_t n_stops;
    char *echoes[LIMIT_ALL_CHOICES]; /* of each prompt, shown before the answers to it; owned */
    size_t n_echoes;
    bool scores_prompt;     /* echoes have logprobs; one that is NULL is written from its tokens */
    int32_t max_tool_calls; /* that run here, in all rounds; 0: no other limit than that of the rounds */
    int32_t n_dims;         /* of vectors: so many numbers; 0: all */
    int32_t n_top;          /* of ranked documents: the best; 0: all */
    bool is_base64;         /* vectors are written so */
    bool is_plain;          /* Ollama's older form: the first vector alone */
    /* Responses: ,"instructions":.. and so on, what the response says of its request; owned, NULL: nothing */
    char *fields;
    bool background;                            /* it is answered before it is done */
    bool encrypts;                              /* thoughts are also in encrypted_content */
    char conversation[REQUEST_RESPONSE_ID_MAX]; /* that it goes on, and is added to; "" if none */
    size_t n_before;                            /* bytes of `items` that were there before this request */
    double timeout_s;                           /* from the request to the answer's end; 0: the server's */
    /* the conversation so far, to be kept (see response_store); owned */
    bytes items;
    char summary[16]; /* of the reasoning, as asked for; "" if not */
    tool_set *tools;  /* that may be called, owned; NULL: none */
    tool_plan *plan;  /* tools that this server runs, owned; NULL: none */
    bool one_call;    /* the answer ends after its first call */
} reply_options;

/* Empty options; deinit frees what they own and empties them. */
void reply_options_init(reply_options *o);
void reply_options_deinit(reply_options *o);

/* A number from min to max. */
void request_number(first_error *e, double *out, const json *root, const char *name, double min, double max);
/* A whole number from min to max. */
void request_int(first_error *e, int64_t *out, const json *root, const char *name, int64_t min, int64_t max);
/* true or false. */
void request_bool(first_error *e, bool *out, const json *root, const char *name);
/* *out points into the document; NULL stays NULL when missing. At most max_bytes long. */
void request_string(first_error *e, const char **out, const json *root, const char *name, size_t max_bytes);
/* The member, which must be an object; NULL if it is missing or null, and after an error. */
const json *request_object(first_error *e, const json *root, const char *name);

/* temperature, top_p, top_k, min_p, penalties, seed, logit_bias, mtp, cache_prompt (or use_cache),
 * specprefill and its shares. info may be NULL (no vocabulary check). */
void request_read_sampling(first_error *e, chat_input *in, const json *root, const engine_info *info);
/* timeout: the seconds that the answer may take. */
void request_read_timeout(first_error *e, reply_options *o, const json *root);
/* min_tokens, and ignore_eos, which is as many as there may be; behind max_tokens. */
void request_read_min_tokens(first_error *e, gen_params *p, const json *root);
/* stop: a string or a list. */
void request_read_stop(first_error *e, reply_options *o, const json *root);

typedef enum other_protocol { OTHER_CHAT, OTHER_COMPLETION, OTHER_RESPONSES, OTHER_MESSAGES } other_protocol;

/* ERR_INVALID if metadata is no object of up to 16 texts of up to 512 characters, with keys of up to 64; null is fine. */
MUST_CHECK err_code request_metadata_check(const json *metadata, err_detail *d);

/* Fields without effect here are validated and ignored (ERR_INVALID for a wrong type or value); those
 * that are not supported are refused by name (ERR_UNSUPPORTED), so that no answer silently differs from
 * what was asked for. Unknown fields are ignored. */
void other_fields_check(first_error *e, const json *root, other_protocol protocol);

#endif
