/* request_fields: reads the fields that all generating protocols share and checks their ranges.
 * Prep threads.
 *
 *     err = request_read_sampling(in, root, info, &detail);
 *     err = request_read_stop(&reply, root, &detail);
 *
 * A missing or null field leaves the value as it was; a wrong type or range is ERR_INVALID naming
 * the field.
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
#include "server/protocol/output/tool_set.h"

enum {
    REQUEST_MODEL_MAX = 128,
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
    bool store;                              /* keep the conversation for previous_response_id */
    bool store_given, cancel_on_disconnect;  /* as requested; store_given: set explicitly */
    bool keep_on_disconnect;                 /* derived: continue when the client is gone */
    char model[REQUEST_MODEL_MAX];           /* as asked for; "" if absent */
    char stream_id[REQUEST_ID_MAX + 1];      /* lane, WebSocket only */
    char event_id[REQUEST_EVENT_ID_MAX + 1]; /* the client's, echoed in errors */
    uint8_t body_hash[HASH_BYTES];           /* of a body that may come again, see prep_order */
    char *stops[LIMIT_STOP_STRINGS];         /* owned copies */
    size_t n_stops;
    char *echo;                                /* text echoed before the answer, owned; NULL: none */
    char *metadata;                            /* JSON object as text, owned; NULL: none */
    char *text_options;                        /* "text" of Responses likewise */
    double temperature, top_p;                 /* as asked for, NAN if not: echoed by Responses */
    int32_t max_tokens;                        /* as asked for, -1 if not */
    char previous_id[REQUEST_RESPONSE_ID_MAX]; /* previous_response_id, "" if not given */
    /* the conversation so far, to be kept (see response_store); owned */
    bytes items;
    char effort[16], summary[16];        /* of the reasoning, as asked for; "" if not */
    tool_set *tools;                     /* that may be called, owned; NULL: none */
    bool one_call;                       /* the answer ends after its first call */
    char *tools_text, *tool_choice_text; /* JSON as it was sent, owned, echoed by Responses; NULL: not sent */
} reply_options;

void reply_options_init(reply_options *o);
void reply_options_deinit(reply_options *o);

/* Writes the name of a field for errors ("messages[0].content"), cut at ERR_PARAM_MAX. */
void request_path(char out[ERR_PARAM_MAX], const char *format, ...) PRINTF_LIKE(2, 3);

MUST_CHECK err_code request_number(double *out, const json *root, const char *name, double min, double max,
                                   err_detail *d);
MUST_CHECK err_code request_int(int64_t *out, const json *root, const char *name, int64_t min, int64_t max,
                                err_detail *d);
MUST_CHECK err_code request_bool(bool *out, const json *root, const char *name, err_detail *d);
/* *out points into the document; NULL stays NULL when missing. At most max_bytes long. */
MUST_CHECK err_code request_string(const char **out, const json *root, const char *name, size_t max_bytes,
                                   err_detail *d);

/* temperature, top_p, top_k, min_p, penalties, seed, logit_bias, mtp, cache_prompt. info may be
 * NULL (no vocabulary check). */
MUST_CHECK err_code request_read_sampling(chat_input *in, const json *root, const engine_info *info,
                                          err_detail *d);
MUST_CHECK err_code request_read_stop(reply_options *o, const json *root, err_detail *d);

/* continue_final_message (assistant prefill), after in->messages are read: the last must then be an
 * assistant message without calls. */
MUST_CHECK err_code request_read_continue(chat_input *in, const json *root, err_detail *d);

/* chat_template_kwargs, enable_thinking, reasoning_budget and the given effort ("none" turns
 * thinking off, the others on, the lower ones with a budget; NULL: not given) into
 * in->template_kwargs and in->params. standard: defaults of the template variables, or NULL. *doc
 * is a document that the caller frees after in; NULL if none was needed. */
MUST_CHECK err_code request_read_thinking(chat_input *in, json_doc **doc, const json *root,
                                          const json *standard, const char *effort, const char *effort_param,
                                          err_detail *d);

#endif
