/* answer: one generation, from the arrival of the request to its end, for every protocol. Loop
 * thread.
 *
 *     answer *a = answer_create(&dialect_chat, id, conn);
 *     answer_begin(a, &info, form);              // prepared and submitted
 *     answer_take_event(a, e, &event);           // tokens to text, until a->done
 *     // a->pieces holds what is new; the protocol's reply takes it
 *     answer_destroy(a);
 */
#ifndef PARLEY_SERVER_SERVICE_ANSWER_H
#define PARLEY_SERVER_SERVICE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ledger.h"
#include "engine/engine.h"
#include "server/protocol/dialects/chat_reply.h"
#include "server/protocol/dialects/messages_reply.h"
#include "server/net/net.h"
#include "server/service/dialect.h"
#include "server/service/prep.h"
#include "server/protocol/reply_json.h"
#include "server/protocol/output/reply_parser.h"
#include "server/protocol/request_fields.h"
#include "server/protocol/dialects/responses_reply.h"
#include "server/protocol/output/stop_filter.h"

typedef enum answer_state {
    ANSWER_HELD,      /* waits for its model (serve_switch.c) */
    ANSWER_PREPARING, /* with the prep workers */
    ANSWER_READY,     /* prepared, waits for its lane */
    ANSWER_RUNNING,   /* with the engine */
    ANSWER_FINISHED   /* kept for clients that reconnect */
} answer_state;

/* Why the engine was told to stop early. */
typedef enum answer_timeout {
    ANSWER_IN_TIME,
    ANSWER_WAITED_TOO_LONG, /* in the queue */
    ANSWER_TOOK_TOO_LONG,
    ANSWER_STALLED, /* the engine thread makes no progress */
    ANSWER_SERVER_ENDS
} answer_timeout;

/* A call of a tool that this server runs. */
typedef struct tool_run {
    char id[48];                        /* of its item */
    char approval_id[48];               /* of the person's word that allowed it; "": nobody was asked */
    bytes label, tool, name, arguments; /* of the server, of the tool there, for the model */
    bool is_unknown;                    /* there is no tool of this name; the model is told */
    bool runs_unasked, is_done;
    double begun_ms;
} tool_run;

typedef enum tool_stage {
    TOOLS_IDLE,
    TOOLS_CALLING,  /* results are awaited */
    TOOLS_PREPARING /* the next round is with the prep workers */
} tool_stage;

/* What an answer adds to its conversation (serve_extend_conversation). */
typedef enum talk_stage {
    TALK_IDLE,
    TALK_WAITING, /* the history had no place for it */
    TALK_WRITING, /* the history writes it */
    TALK_ADDED    /* or there is nothing more to be done */
} talk_stage;

/* The rounds of an answer whose tools this server runs (serve_tools.c). While calls run its state is
 * ANSWER_RUNNING. */
typedef struct tool_rounds {
    tool_stage stage;
    int n_rounds;
    int32_t n_ran;  /* calls that were not refused, in all rounds */
    tool_run *runs; /* of this round */
    size_t n_runs, cap_runs, n_waiting;
    bool is_open;                   /* the last is still being written */
    bool has_own, asks, is_stopped; /* the client's tools were called; a person is asked; it is to end */
    bytes turns;                    /* items of all rounds so far, "{..},{..}" */
    bytes reasoning, content;       /* of this round */
    int32_t prompt_tokens, cached_tokens; /* of the rounds before */
    bool is_summary;                      /* this round sums the conversation up; nobody sees its words */
    bool has_summary;                     /* there was such a round: */
    int32_t summary_tokens;
} tool_rounds;

typedef struct answer {
    /* Several choices (serve_choices.c): the first is the answer that the client knows, with the stream,
     * the options and the reply of all. It has the others, which the table of answers owns, until it is
     * freed; each has an id for the engine, and the options that taking its tokens needs. */
    struct answer *first;   /* of one of the others; NULL: it is the first, or alone */
    struct answer **others; /* [n_others] */
    int n_others, n_open;   /* n_open: choices, the first among them, whose last event has not come */
    int index;              /* among the choices */
    uint64_t id;
    uint64_t conn;  /* the client's connection; 0 when gone */
    uint64_t scope; /* the owner (access_scope) */
    uint64_t order; /* of arrival, for lanes */
    const dialect *dialect;
    answer_state state;
    bool is_socket;     /* asked over a WebSocket */
    bool goes_on;       /* from the end of the socket's chain (conn) */
    bool cancelled;     /* by the client */
    bool ends_thinking; /* the client ended the reasoning */
    answer_timeout timeout;
    bool is_accepted;                                  /* the body is valid, and opt holds what it says */
    char idempotency_key[NET_IDEMPOTENCY_KEY_MAX + 1]; /* HTTP: the Idempotency-Key; "" if none */
    char cache_name[65]; /* of the entry that is saved or loaded; "": none, or no name that can be */
    bytes body;          /* until the workers take it, and again if it may have further rounds */
    tool_rounds tools;
    json_doc *doc;      /* of the body, if it was read already */
    ledger_hold memory; /* of both, ANSWER_HELD */
    bool knows_model;   /* ANSWER_HELD: opt.model is what the body asks for; else that was not read */
    prep_ticket *ticket;
    reply_options opt;
    gen_request *request;     /* ANSWER_READY */
    upstream_request *remote; /* the same, for another server */
    const char *server;       /* the name of that server; NULL: this one answers */
    bool is_begun;            /* what it streams was begun: it has accepted the request */
    gen_request_info info;
    gen_timings timings;
    double media_ms; /* spent by the prep workers */

    /* text */
    reply_parser parser;
    stop_filter reasoning_stream, content_stream;
    reply_pieces pieces; /* not yet taken by the reply */
    bytes echo;          /* of the prompt, as far as its logprobs have come */
    bytes edits;         /* that context_management made, as JSON; empty: it was not asked for */
    bytes vectors;       /* floats, of embeddings and ranks ... */
    int32_t n_vectors, vector_size;
    bytes logprobs;  /* entries of new content tokens, "{..},{..}" */
    int32_t n_calls; /* complete tool calls */
    int32_t n_tokens, n_reasoning_tokens;
    bool stop_found; /* a stop string was found: the engine was told to stop, its last event is awaited */
    gen_finish finish;
    err_code error;
    char error_text[256], error_name[ERR_NAME_MAX];

    /* time, milliseconds of clock_ms */
    double created_ms, submitted_ms, first_token_ms, last_flush_ms, last_stats_ms, finished_ms;

    /* transient state; the versions tell readers what they have seen */
    gen_phase phase;
    bool started; /* the engine has dequeued it */
    int32_t processed, total, cached;
    double phase_start_ms;
    uint32_t progress_version, stats_version;

    char chat_id[48]; /* what clients call it; also the response's id */
    /* What log lines call its request: the x-request-id; over a socket, where requests have none, chat_id */
    char request_id[NET_REQUEST_ID];

    /* Chat Completions, Completions and Messages */
    int64_t created_at;
    chat_reply_state chat;
    messages_reply_state messages;
    reply_pieces whole; /* not streaming */
    bytes whole_logprobs;
    bytes sse; /* streaming: what is kept of the text, from byte sse_base on; else the whole reply */
    size_t sse_base;
    bool sse_end;
    bool sse_lost;     /* there was no memory for its last event */
    bool has_lost;     /* nor for some text: it ends with an error */
    size_t kept_bytes; /* that serve_kept.c counts for it; 0: none */

    /* Responses */
    size_t n_kept_input; /* bytes of opt.items without the answer; 0: it is not in there yet */
    talk_stage talk_stage;
    responses_reply reply;
    bool has_reply; /* reply is initialised */
} answer;

/* NULL if out of memory. */
MUST_CHECK answer *answer_create(const dialect *d, uint64_t id, uint64_t conn);
/* Releases everything; cancels a ticket and frees a request that was not submitted. */
void answer_destroy(answer *a);

/* Takes the logprobs of the prompt (GEN_PROMPT), also those that have come for another answer to it. */
void answer_take_prompt(answer *a, const engine *e, const gen_event *event);

/* Whether its stream begins as soon as the request is validated, before its media are read. A later
 * failure is then an event of the stream, not a status. */
bool answer_streams_early(const answer *a);
/* The request was submitted to the engine. form: the model's tool-call syntax; NULL: none. */
void answer_begin(answer *a, const gen_request_info *info, const tool_form *form);
/* The first of the choices that this one is of, or itself. */
static inline const answer *answer_first(const answer *a)
{
    return a->first ? a->first : a;
}
/* Forgets the runs of a round. */
void answer_clear_runs(answer *a);
/* Processes an event. True for the last one; then finish and timings are set and the held-back text
 * is released. */
bool answer_take_event(answer *a, const engine *e, const gen_event *event);
/* Of an answer that has ended: one that misses text for lack of memory has failed. */
void answer_check_lost(answer *a);
/* The memory that a finished answer takes. */
size_t answer_bytes(const answer *a);
/* "stop", "length", "tool_calls" or "content_filter". */
const char *answer_finish_reason(const answer *a);
/* Of all choices; each prompt counts once. */
reply_usage answer_usage(const answer *a);
#endif
