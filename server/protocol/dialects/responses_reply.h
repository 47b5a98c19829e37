/* responses_reply: the numbered events of one response, written to its event log; and the response
 * object itself. Loop thread.
 *
 *     responses_reply r; responses_reply_init(&r, &options, "seedling", EVENT_LOG_BYTES);
 *     responses_reply_created(&r);  responses_reply_in_progress(&r);
 *     responses_reply_delta(&r, &pieces, &logprobs);
 *     responses_reply_finish(&r, &result);
 *     responses_reply_deinit(&r);
 *
 * Serves HTTP and WebSocket alike. Exactly one terminal event is written, and nothing after it.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_REPLY_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/api_error.h"
#include "server/protocol/event_log.h"
#include "server/protocol/reply_json.h"
#include "server/protocol/output/reply_pieces.h"
#include "server/protocol/request_fields.h"

/* One of the response's output. */
typedef struct reply_item {
    reply_kind kind; /* REPLY_REASONING, REPLY_CONTENT, REPLY_CALL; REPLY_ITEM: text is all of it */
    char id[48];
    char call_id[48]; /* REPLY_CALL */
    bytes name;       /* of the function */
    bytes text;       /* or the arguments */
    bytes logprobs;   /* of its tokens, "{..},{..}" */
    bool open;        /* added, not done */
    bool was_cut;     /* the answer ended inside of it */
} reply_item;

typedef enum response_status {
    RESPONSE_QUEUED,
    RESPONSE_IN_PROGRESS,
    RESPONSE_COMPLETED,
    RESPONSE_INCOMPLETE, /* the token limit */
    RESPONSE_CANCELLED,
    RESPONSE_FAILED
} response_status;

/* How it ended. */
typedef struct response_result {
    response_status status;
    const api_error *error; /* RESPONSE_FAILED */
    bool is_filtered; /* RESPONSE_INCOMPLETE, as another engine withheld the rest; else by the token limit */
    reply_usage usage;
    gen_timings timings;
} response_result;

typedef struct responses_reply {
    event_log log;
    char id[48];
    char model[REQUEST_MODEL_MAX];
    const reply_options *opt; /* not owned; outlives the reply */
    int64_t created_at, completed_at;
    response_status status;
    bool is_created, is_queued, is_started;
    bool has_lost; /* for lack of memory text of it is missing: it must not end as if it were whole */
    reply_item *items;
    int n_items;
    size_t cap_items;
    response_result result; /* once finished; error is then NULL and error_json holds its text */
    bytes error_json;
    bytes line; /* the event being built */
} responses_reply;

/* log_bytes: what the log holds before its oldest events go. */
void responses_reply_init(responses_reply *r, const reply_options *opt, const char *model, size_t log_bytes);
void responses_reply_deinit(responses_reply *r); /* frees the log too */

/* Each writes its event once; later calls do nothing. */
void responses_reply_created(responses_reply *r);
void responses_reply_queued(responses_reply *r, int32_t position);
void responses_reply_in_progress(responses_reply *r);
/* What is new since the last call. Each run of text of one kind and each call is an item. logprobs,
 * the entries of new content tokens, go out with the first content and are cleared then. */
void responses_reply_delta(responses_reply *r, const reply_pieces *pieces, bytes *logprobs);
/* Nothing more comes: closes what is open, as an answer ends that is finished with this status. */
void responses_reply_close(responses_reply *r, response_status status);
/* The same, then the terminal event. */
void responses_reply_finish(responses_reply *r, const response_result *result);

/* The response object as it stands. */
void responses_reply_write(bytes *out, const responses_reply *r);
/* Appends the output to a conversation (see response_store): ",{item},{item}", without calls that
 * were cut short. */
void responses_reply_append_output(bytes *out, const responses_reply *r);
/* For a reader whose event *next is no longer in the log: a response.snapshot, or the last event
 * itself. Returns the event's type; *next is the number it goes on with. Whoever reads on always
 * comes to the last event. */
const char *responses_reply_catch_up(bytes *out, const responses_reply *r, int64_t *next);
/* Ephemeral events, never logged. */
void responses_reply_progress(bytes *out, const responses_reply *r, gen_phase phase, int32_t processed,
                              int32_t total, int32_t cached, double elapsed_ms, double eta_ms);
void responses_reply_stats(bytes *out, const responses_reply *r, const gen_timings *t, int32_t n_ctx);

#endif
