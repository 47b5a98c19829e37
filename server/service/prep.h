/* prep: worker threads that turn request bodies into engine requests: parse, validate, decode
 * media, render, tokenize; and most are handed to the engine here, too.
 *
 *     prep *p = prep_create(2, LIMIT_PREP_JOBS, 32, 256 << 20, files, conversations, NULL, post, ctx);
 *     prep_ticket *t = prep_ticket_create();
 *     const prep_order order = {.dialect = &dialect_chat, .id = id, .engine = e, .submits = true};
 *     err = prep_submit(p, &order, &body, &doc, &hold, t);   // ERR_BUSY: 429
 *     // post(ctx, message) with LOOP_PREPARED or LOOP_REFUSED, before it LOOP_ACCEPTED and LOOP_PROGRESS
 *     prep_ticket_cancel(t); prep_ticket_release(t);
 *     prep_destroy(p);
 *
 * Threads: submit, cancel and release on the loop thread; post is called on the workers. After
 * LOOP_PREPARED, LOOP_OTHER_MODEL, LOOP_REPLIED, LOOP_PREVIEW or LOOP_REFUSED nothing more comes for
 * that id. A request that is submitted here is admitted by the engine before LOOP_PREPARED is posted
 * and started behind that: a cancel of its id always finds it.
 */
#ifndef PARLEY_SERVER_SERVICE_PREP_H
#define PARLEY_SERVER_SERVICE_PREP_H

#include "base/bytes.h"
#include "engine/engine.h"
#include "server/media/file_store.h"
#include "server/net/net.h"
#include "server/protocol/response_store.h"
#include "server/service/dialect.h"
#include "server/service/loop_message.h"
#include "server/media/remote_media.h"
#include "server/protocol/output/tool_scanner.h"

typedef struct prep prep;
typedef struct prep_ticket prep_ticket; /* a shared cancellation flag of one job */

MUST_CHECK prep_ticket *prep_ticket_create(void);
void prep_ticket_cancel(prep_ticket *t);  /* NULL allowed */
void prep_ticket_release(prep_ticket *t); /* NULL allowed */

/* n_turns jobs compute at a time, those first that have had the least time; n_threads (at most
 * LIMIT_PREP_JOBS) are begun together. Further n_queue jobs wait, of all max_bytes of bodies. Where
 * none can begin, the job that has taken the longest is refused with ERR_BUSY. files and
 * conversations: where requests find uploaded files and what they go on from; remote: what they may
 * name by its address. post takes the message over. NULL if memory or threads run out. */
MUST_CHECK prep *prep_create(int n_turns, int n_threads, size_t n_queue, size_t max_bytes, file_store *files,
                             response_store *conversations, const remote_media *remote,
                             void (*post)(void *ctx, loop_message *m), void *ctx);
/* Where bodies that wait and what is made of them are reserved (base/ledger.h; NULL: there is no limit but
 * max_bytes), and where conversations are kept for good (NULL: they are in memory); before the first job. */
void prep_set_stores(prep *p, struct ledger *memory, const kept_talks *talks);
/* Cancels what runs, refuses what waits; false if a thread has not ended in time. NULL allowed. */
bool prep_end(prep *p, int within_ms);
/* The same, then joins the threads, however long they take. NULL allowed. */
void prep_destroy(prep *p);

/* A job for a body. */
typedef struct prep_order {
    /* What the body is; a query is answered by these threads. NULL: the id of an uploaded file
     * (preview.h), LOOP_FACTS perhaps, then LOOP_PREVIEW */
    const dialect *dialect;
    uint64_t id, scope;              /* scope: whose, see chat_input */
    uint64_t chain;                  /* see api_request */
    int64_t key;                     /* which of this server's keys the client has, from 1; 0: none */
    char request_id[NET_REQUEST_ID]; /* what log lines call it; "": nothing */
    engine *engine;                  /* NULL: no model is loaded, LOOP_OTHER_MODEL follows */
    const media_copier *media;       /* of a preview; NULL: only what the engine's model sees is shown */
    const json *template_kwargs;     /* see api_request; lives as long as prep */
    const tool_form *form;           /* the model's tool-call syntax; NULL: none */
    upstreams *upstreams;            /* other servers, whose models a body may name; NULL: none */
    mcp *mcp;                        /* servers whose tools a body may ask for; NULL: none */
    /* Of a later round of an answer: what it has said, called and heard so far, items in a JSON list, copied; NULL:
     * of the first. And the tokens that it has written. */
    const char *turns;
    int32_t n_written;
    bool may_compact;    /* the conversation may be summed up first */
    bool is_remote_only; /* no model is ever loaded here: a body that names none means theirs */
    char cache_name[65]; /* see api_request */
    bool hash_body;      /* wanted in the options, as it is for bodies with an event_id */
    /* What clients call the loaded model, beside "default"; "" for fewer names. A body that asks for another one is
     * LOOP_OTHER_MODEL if asks_model, else ERR_NOT_FOUND if is_strict, else read all the same. */
    char names[4][REQUEST_MODEL_MAX];
    bool asks_model, is_strict;
    bool says_accepted; /* LOOP_ACCEPTED is wanted, as it is for a stream that begins early */
    /* the engine gets the request here, unless it has an event_id, so that it may have come before;
     * else LOOP_PREPARED holds it */
    bool submits;
} prep_order;

/* Queues a job and takes the memory of the body and of its document (*doc NULL: it is not read yet),
 * with what is reserved for both, as LOOP_OTHER_MODEL brought it; an empty hold is filled. On ERR_BUSY
 * (also if its memory is not free now) and ERR_NOMEM they stay with the caller. */
MUST_CHECK err_code prep_submit(prep *p, const prep_order *order, bytes *body, json_doc **doc,
                                ledger_hold *hold, prep_ticket *t);
/* Whether no job is queued or running: all messages were posted, and no job uses an engine. Loop
 * thread. */
bool prep_is_idle(const prep *p);

typedef struct prep_status {
    int n_begun, n_computing,
        n_waiting;    /* jobs with a thread; of them those that have a turn; those without a thread */
    double oldest_ms; /* since the oldest of the former began */
    double silent_ms; /* for so long nothing has moved though every turn is taken: see prep_turns.h */
} prep_status;
/* Any thread. */
void prep_get_status(const prep *p, prep_status *out);

#endif
