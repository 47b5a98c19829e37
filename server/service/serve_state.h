/* serve_state: the server's state, shared by the serve_*.c files and owned by the loop thread.
 * Private.
 *
 * serve.c          life cycle, mailbox, timer
 * serve_parts.c    opening and closing what it is made of
 * serve_http.c     requests and replies, one function a route
 * serve_socket.c   WebSocket sessions
 * serve_models.c   the list of models, and those that stay in memory beside the one that answers
 * serve_switch.c   loading and switching models
 * serve_prepare.c  a request from its body to the engine
 * serve_answers.c  an answer from the engine's first event to its last
 * serve_tools.c    the rounds of an answer whose tools this server runs
 * serve_dialects.c  what the protocols do differently, a table each
 * serve_idempotency.c  idempotency: requests sent again, and the readers of a reply
 * serve_responses.c  kept responses, conversations
 * serve_kept.c     finished answers, for readers that come back
 * serve_files.c    uploaded files over HTTP, forms
 * serve_uploads.c  uploads in parts over HTTP
 * serve_socket_uploads.c  uploads over a WebSocket
 * serve_previews.c  previews of uploaded images and videos
 * serve_history.c  stored chats
 * serve_watchdog.c    watchdog: whether the engine is ready or stalled
 * serve_status.c   /v1/status, cancelling by id, clearing the cache
 */
#ifndef PARLEY_SERVER_SERVICE_SERVE_STATE_H
#define PARLEY_SERVER_SERVICE_SERVE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/mailbox.h"
#include "engine/catalog.h"
#include "server/service/access.h"
#include "server/protocol/dialects/warm.h"
#include "server/service/answer.h"
#include "server/protocol/dialects/chat_reply.h"
#include "server/protocol/dialects/completion_reply.h"
#include "server/id_table.h"
#include "server/load_bar.h"
#include "server/service/metrics.h"
#include "server/net/net.h"
#include "server/notify.h"
#include "server/service/prep.h"
#include "server/service/router.h"
#include "server/service/serve.h"
#include "server/shares.h"
#include "server/media/uploads.h"

/* Of the program. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MODEL = 3, EXIT_MEMORY = 4, EXIT_PORT = 5 };

enum {
    SERVE_MAX_READERS = 32,            /* responses one socket follows */
    SERVE_MAX_UNFINISHED = 8,          /* unfinished responses of one socket */
    SERVE_SMALL_MESSAGE_BYTES = 16384, /* parsed on the loop thread */
    /* Documents of larger bodies are read again when their model is there: the wait is long, and they
     * take several times as much. */
    SERVE_HELD_DOCUMENT = 1 << 20,
    SERVE_FLUSH_MS = 33,
    SERVE_STATS_MS = 500,
    SERVE_TICK_MS = 250,
    SERVE_KEPT_ANSWERS = 2048,
    SERVE_KEPT_BYTES = 64 << 20,
    /* a repeated event_id or Idempotency-Key replays the same answer for so long */
    SERVE_IDEMPOTENCY_S = 600,
    SERVE_PREVIEWS = 16,       /* files being previewed or queued for it; further ones get no preview */
    SERVE_CHUNK_HEADER = 16,   /* of a binary frame */
    SERVE_INFLIGHT_BODIES = 6, /* limit of queued bodies, in bodies of the largest size */
    SERVE_PATH_MAX = 4096,
};

/* One follower of one response. */
typedef struct reader {
    uint64_t answer;
    int64_t next_seq;
    uint32_t progress_seen, stats_seen;
} reader;

typedef struct form_reader form_reader; /* serve_files.c */

/* Writes the body of a refusal as a client of its dialect reads it. */
typedef void (*error_form)(bytes *out, const api_error *e);

/* What the server knows of a connection. */
typedef struct conn {
    uint64_t id;
    /* HTTP, of the current request */
    const route *route;
    net_method method;
    unsigned allow; /* what its path takes, for NET_OPTIONS */
    char param[NET_HEADER_MAX];
    char path[NET_PATH_MAX];
    char query_string[NET_HEADER_MAX]; /* as it was sent */
    char accept_encoding[128], if_none_match[128];
    bool is_anthropic; /* a client of that dialect: of models and files, too */
    error_form write_error;
    uint64_t scope;  /* of the key it came with (access_scope) */
    bool is_admin;   /* it may manage models (access_is_admin) */
    uint64_t answer; /* the answer it waits for, 0: none */
    size_t sse_pos;  /* how much of its stream was taken */
    char idempotency_key[NET_IDEMPOTENCY_KEY_MAX + 1];
    char request_id[NET_REQUEST_ID]; /* what log lines call it */
    bool is_streaming;
    bool follows_log; /* a Responses stream: read[0] is its place */
    bool is_cut;      /* it did not read: its stream ends with an error in place of what waits */
    double started_ms, last_write_ms;
    form_reader *form;       /* a form that is being read */
    bool is_paused;          /* too much of it waits for the disk: nothing is read */
    uint64_t history_ticket; /* the job of the history it waits for; 0: none */
    uint64_t
        mcp_ticket; /* the resource or prompt of an MCP server it waits for, an owner of orders; 0: none */
    /* WebSocket */
    bool is_socket, is_extended;
    uint64_t
        chain; /* of a plain socket: whose (response_store) the last answer is that was not to be stored; */
    char chain_end[48]; /* the socket alone may go on from it; "": there is none */
    bytes frames;       /* direct messages: u32 length, text, ... */
    size_t frames_pos;
    uint32_t status_seen, session_seen;
    uint32_t unknown_handle; /* of the last upload that was reported as unknown */
    reader readers[SERVE_MAX_READERS];
    int n_readers, next_reader;
} conn;

/* An uploaded file whose preview is being made. */
typedef struct preview_wait {
    uint64_t id;   /* 0: free */
    uint64_t conn; /* 0: gone */
    prep_ticket *ticket;
    bytes completed; /* upload.completed, up to its media */
    const char *mime;
    double until_ms; /* then upload.completed is sent without the missing facts */
    bool told;
} preview_wait;

/* EMPTY: no model is loaded: neither the requested one nor the previous one could be loaded. */
typedef enum serve_phase { SERVE_LOADING, SERVE_READY, SERVE_DRAINING, SERVE_EMPTY } serve_phase;

typedef struct model_ref {
    char name[REQUEST_MODEL_MAX]; /* as clients see it */
    char path[SERVE_PATH_MAX];
} model_ref;

typedef enum switch_state {
    SWITCH_NONE,
    SWITCH_FINISHING, /* answers of the loaded model finish; new requests wait */
    SWITCH_LOADING    /* the loader thread closes it and opens the new one */
} switch_state;

/* A model in memory that does not answer now: an engine without work. */
typedef struct resident {
    engine *engine;
    model_ref ref;
    double used_ms; /* when it answered last (clock_ms) */
    size_t n_bytes; /* of weights and states */
} resident;

/* The job of the loader thread. The loop does not touch it until LOOP_LOADED arrives. */
typedef struct load_job {
    engine_options wanted, previous;
    bool
        has_previous; /* the last that was lent, opened again if it was closed and `wanted` cannot be opened */
    /* Residents that may be closed to make room, those that were used longest ago first: n_must of them in any case.
     * n_closed of them are gone. */
    resident lent[LIMIT_MODELS];
    size_t n_lent, n_must, n_closed;
    size_t memory_bytes, kept_bytes,
        wanted_bytes; /* of all models; of residents that stay; of the files wanted */
    bool only_closes; /* all that was lent; nothing is opened */
    uint64_t *scopes; /* [n_scopes] of all keys, for --warm-prompts; freed by the loader */
    size_t n_scopes;
    loop_message *loaded; /* what the loader will say last: made beforehand, so that it can be said */
} load_job;

typedef struct serve {
    const serve_options *opt;
    net *net;
    access_rules access;
    struct ledger *memory; /* what requests reserve (base/ledger.h) */
    prep *prep;
    mailbox *inbox;       /* of loop_message */
    engine *engine;       /* NULL while loading */
    upstreams *upstreams; /* NULL: there are no other servers */
    media_copier *media;  /* for them */
    mcp *mcp;             /* NULL: there are no servers of tools */
    const engine_info *info;
    load_job load;
    const tool_form *tool_form; /* the model's tool-call syntax; NULL: none */
    warm *warm;                 /* NULL: there are no prompts to be computed at the start */
    pthread_t loader;
    bool loader_started;
    char model_name[REQUEST_MODEL_MAX];
    catalog *catalog; /* NULL: no other model can be loaded */
    double catalog_read_ms;
    model_ref home, current, wanted; /* the command line's, the loaded one, the next one */
    switch_state switching;
    resident shelf[LIMIT_MODELS];
    size_t n_shelf;
    size_t memory_bytes; /* for all models: --mem-limit, or what was free at the start */
    file_store *files;
    write_queue *writes;
    uploads uploads;
    prep *previewer; /* its own worker, so that no request waits for a preview */
    preview_wait previews[SERVE_PREVIEWS];
    uint64_t preview_id; /* given out last */
    remote_media remote;
    bool fetch_started;
    response_store *response_store;
    history *history;        /* NULL: chats are not kept */
    kept_talks talks;        /* of it, for requests */
    uint64_t history_ticket; /* given out last */
    int64_t files_checked_s;
    id_table conns;
    id_table answers;
    shares kept; /* of the finished ones, by scope */
    double expired_ms;
    uint64_t next_answer;
    metrics metrics;
    double started_ms;
    serve_phase phase;
    load_bar bar; /* of the first model */
    char load_stage[48];
    double load_fraction;
    bool was_busy;
    uint64_t progress_counter;              /* of the engine, as last read */
    double progress_counter_ms, stalled_ms; /* when that was, and for how long it has not changed */
    bool is_stalled;                        /* for longer than --step-timeout */
    double prep_look_ms, prep_silent_ms;    /* the same of the preparation: see serve_watchdog.c */
    bool is_prep_stalled;                   /* no request could be prepared for as long */
    char redirect[NET_PATH_MAX];            /* headers of a refusal that is being made */
    uint32_t status_version;                /* sockets that have seen less get a server.status */
    uint32_t session_version;               /* the same, of another model: session.updated */
    double drain_until_ms;
    double close_until_ms; /* after the drain: until sockets had time for their close frame */
    bool done;
    int exit_code;
    bool handles_signals;
    notify notify;
    atomic_bool stop_wanted; /* set by serve_thread_stop */
    atomic_bool closing;     /* the loop reads its mailbox no more */
} serve;

/* serve.c */
void serve_schedule(serve *s, int ms);
/* Any thread: hands a message to the loop. */
void serve_post(void *ctx, loop_message *m);
/* For serve_post, not on the loop's thread. What must arrive does so without memory, too: it is tried
 * again until some is free. NULL once the loop is gone, and without memory for what need not arrive. */
loop_message *serve_new_message(const serve *s, loop_message_type type, uint64_t id, bool must_arrive);
/* Frees a message that will not be handled, with the engine that it may bring. */
void serve_drop_message(void *message);
/* net_callbacks */
void serve_on_wake(void *ctx);
void serve_on_timer(void *ctx);
/* engine_options.on_event */
void serve_on_engine_event(void *ctx, gen_event *event);
int serve_count_sockets(const serve *s);
int serve_count_open_answers(const serve *s);
int64_t serve_started_at(void);

/* serve_parts.c */
/* Opens everything and begins to load the model. On failure what was opened is closed by the next. */
MUST_CHECK err_code serve_open_parts(serve *s, err_detail *d);
void serve_close_parts(serve *s);

/* serve_http.c */
conn *serve_conn(serve *s, uint64_t id);
bool serve_on_head(void *ctx, uint64_t id, const net_head *head, net_reply *refusal);
void serve_on_request(void *ctx, uint64_t id, bytes *body);
net_pull serve_on_writable(void *ctx, uint64_t id, bytes *out);
void serve_on_half_closed(void *ctx, uint64_t id);
void serve_on_done(void *ctx, uint64_t id);
void serve_on_close(void *ctx, uint64_t id);
void serve_send_json(serve *s, conn *c, int status, const bytes *body, const char *headers);
/* 200; frees the body. */
void serve_send_body(serve *s, conn *c, bytes *body);
void serve_send_error(serve *s, conn *c, const api_error *e);
/* The same for an error that the server itself has found; code and param as in api_error_set. */
void serve_send_fault(serve *s, conn *c, int status, const char *code, const char *param, const char *text);

/* Fills *out for a refusal in on_head or on_body; returns false. allow: for 405, or NULL. to: NULL
 * if unknown. */
bool serve_refuse(serve *s, net_reply *out, const api_error *e, error_form form, const char *allow,
                  const route *to);

/* serve_models.c */
void serve_on_models(serve *s, conn *c);
/* Ollama's lists: /api/tags and /api/ps, /api/show, /api/version. */
void serve_on_tags(serve *s, conn *c);
void serve_on_show(serve *s, conn *c, const bytes *body);
void serve_on_version(serve *s, conn *c);
/* The model that clients call so; false if there is none. */
bool serve_find_model(serve *s, const char *name, model_ref *out);
/* What the list says of the model at this path, and its name there; NULL if it is in no list. */
const catalog_model *serve_catalog_entry(const serve *s, const char *path);
const char *serve_name_of(const serve *s, const char *path);

/* serve_models.c: models of a hub. GET /v1/hub, and POST to what is below it */
void serve_on_hub(serve *s, conn *c);
void serve_on_hub_order(serve *s, conn *c, const bytes *body);
/* Takes what jobs about them have said. */
void serve_tick_hub(serve *s);

/* serve_models.c: models in memory that do not answer now */
bool serve_is_pinned(const serve *s, const model_ref *ref);
/* Keeps an engine that has no work. */
void serve_shelve(serve *s, engine *e, const model_ref *ref, double used_ms);
/* NULL if the model at this path is not on the shelf. */
const resident *serve_find_resident(const serve *s, const char *path);
/* The same, and takes it down. */
engine *serve_take_resident(serve *s, const char *path);
/* Whether not all places of --models-max are pinned. */
bool serve_has_model_room(const serve *s);
/* Hands the residents that may leave to s->load, or those back that were not closed. */
void serve_lend_residents(serve *s);
void serve_take_back(serve *s);
/* The loader thread: opens job->wanted beside the residents, of which those that were used longest ago leave until there is
 * room; closes all that was lent. */
MUST_CHECK err_code serve_open_beside(load_job *job, engine **out, err_detail *d);
void serve_close_lent(load_job *job);
/* A job that only closes has ended. */
void serve_on_unloaded(serve *s);
/* Closes what was idle for --idle-unload. */
void serve_tick_residents(serve *s, double now);
/* Begins to close a resident; false and *e if it is none. */
bool serve_unload(serve *s, const model_ref *ref, api_error *e);
/* "{..},{..}" of /v1/status. */
void serve_write_residents(const serve *s, bytes *out);
/* At the end, when no loader runs. */
void serve_close_residents(serve *s);

/* serve_switch.c */
typedef enum model_turn { MODEL_NOW, MODEL_LATER, MODEL_REFUSED } model_turn;

/* Starts the loader thread for s->load; false if that cannot be. */
bool serve_start_loader(serve *s);
/* Starts the loader thread for the command line's model; false without one. */
bool serve_load_first(serve *s);
/* Where no model is loaded: the server is ready at once. */
void serve_begin_ready(serve *s);
/* LOOP_LOADING and LOOP_LOADED. */
void serve_on_loading(serve *s, const loop_message *m);
void serve_on_loaded(serve *s, loop_message *m);
/* Whether a request with a body of so many bytes may be prepared now, waits for the end of a switch,
 * or is refused with *e. Nothing is known of the body: whoever prepares it says if it needs another
 * model. */
model_turn serve_model_turn(serve *s, const conn *c, size_t n_body, api_error *e);
/* The same once it is known which model the body asks for. name becomes the one of the list; "": any
 * may answer. Those of this connection that came before the one with the id `before` are read first. */
model_turn serve_named_turn(serve *s, uint64_t connection, uint64_t before, char name[REQUEST_MODEL_MAX],
                            size_t n_body, api_error *e);
/* Reserves the memory of the answer's body; false if there is none now. */
bool serve_reserve_body(serve *s, answer *a);
/* Holds the answer until its model is loaded, or, if that is not known, until no switch is under
 * way. */
void serve_hold_answer(serve *s, answer *a);
/* The model that a request of a socket asks for has become known: goes on with those behind it. */
void serve_try_held(serve *s);
/* POST /models/load, /models/unload */
/* The model that a small body names, or "". */
void serve_read_model(char out[REQUEST_MODEL_MAX], const bytes *body);
void serve_on_load_model(serve *s, conn *c, bytes *body);
void serve_on_unload_model(serve *s, conn *c, const bytes *body);
/* No worker uses the engine, and all messages were handled: starts loading if a switch waits for
 * that. */
void serve_advance_switch(serve *s);
/* Returns milliseconds until it wants to be called again. */
int serve_tick_switch(serve *s, double now);
/* Shutdown: fails all requests that wait for a model. */
void serve_refuse_held(serve *s);

/* serve_files.c */
/* on_head of a route that takes a form; false and *e if it is refused. */
bool serve_begin_form(serve *s, conn *c, const net_head *head, api_error *e);
bool serve_on_body(void *ctx, uint64_t id, const void *data, size_t n, net_reply *refusal);
/* The whole form has arrived: stores its file and replies, once all of it is written. */
void serve_finish_form(serve *s, conn *c);
/* Something may have been written of the connection's form. */
void serve_form_written(serve *s, conn *c);
/* Bytes of memory of the connection's form that wait for the disk. */
size_t serve_form_waiting(const conn *c);
/* Discards what has arrived; does nothing without a form. */
void serve_drop_form(conn *c);
void serve_on_files(serve *s, conn *c);
void serve_write_file(bytes *out, const stored_file *f);
bool serve_valid_purpose(const char *text);

/* serve_uploads.c */
void serve_on_uploads(serve *s, conn *c, const bytes *body);
void serve_send_part(serve *s, conn *c, const upload *up, const upload_part *part);
/* Begins an upload as described by a client. If the content is already stored, it becomes a file at
 * once: then *out is NULL and *known is that file. */
MUST_CHECK err_code serve_begin_upload(serve *s, uint64_t scope, const json *root, upload_kind kind,
                                       upload **out, stored_file *known, err_detail *d);
/* Goes on with an upload that is ending, and says how it ended. */
void serve_step_upload(serve *s, upload *up);
/* Reads from the connection, or not while too much of it waits for the disk. */
void serve_pace(serve *s, conn *c);
/* The writer thread has written something. */
void serve_on_written(serve *s);
/* Expires files, acknowledges chunks. */
void serve_tick_uploads(serve *s);

/* serve_socket.c */
void serve_on_open(void *ctx, uint64_t id, bool extended);
void serve_on_message(void *ctx, uint64_t id, bytes *message);
net_pull serve_socket_pull(serve *s, conn *c, bytes *out);
/* Queues a message; a socket that does not read is closed. */
void serve_queue_frame(serve *s, conn *c, const bytes *text);
/* Queues an error event. answer may be NULL. */
/* The conversation of an answer that was not to be stored: its socket, if it is a plain one, may go on from it, and
 * from nothing else that was not stored. */
void serve_extend_chain(serve *s, const answer *a);
/* An answer has failed: what it went on from is gone, too. */
void serve_break_chain(serve *s, const answer *a);
void serve_end_chain(serve *s, conn *c);
void serve_socket_error(serve *s, conn *c, const api_error *e, const char *event_id, const char *stream_id,
                        const char *response_id);
/* Sends the reply to input_tokens.count. */
void serve_socket_count(serve *s, conn *c, const char *event_id, const bytes *reply);
bool serve_add_reader(conn *c, uint64_t answer_id, int64_t next_seq);
/* Appends one transient event that this reader has not seen, only the latest of each kind. Returns
 * its type, or NULL if there is none. */
const char *serve_take_news(const serve *s, reader *r, const answer *a, bytes *out);
/* The server's state changed: notifies every extended socket. */
void serve_status_changed(serve *s);
/* Appends ,"video":{...}: how videos are sampled and sized, from which a client can tell their
 * tokens. */
void serve_write_video(bytes *out, const engine_info *info);

/* serve_socket_uploads.c */
/* Takes a message whose type begins with "upload."; others are not its affair. */
void serve_socket_upload(serve *s, conn *c, const char *type, const json *root, const char *event_id);
void serve_on_binary(void *ctx, uint64_t id, const void *data, size_t n);
/* Writes an acknowledgement that is due on this socket; false if none is. */
bool serve_take_ack(serve *s, conn *c, bytes *out);
/* Acknowledges what was written since the last time. */
void serve_ack_all(serve *s);
/* Chunks of a pending upload were written, or could not be. */
void serve_chunks_written(serve *s, upload *up);
/* An upload by chunks has ended: tells everybody who asked. failure: why without a file, or NULL;
 * then the upload is gone. */
void serve_tell_ended(serve *s, upload *up, const api_error *failure);

/* serve_previews.c */
/* Ends the message upload.completed with what the file is, as soon as that is known, and sends it;
 * a preview may follow. text is the message up to its member media, and is moved from. */
void serve_tell_completed(serve *s, conn *c, bytes *text, const stored_file *f);
void serve_on_preview(serve *s, const loop_message *m);
void serve_tick_previews(serve *s);
/* The connection is gone. */
void serve_drop_previews(serve *s, uint64_t conn_id);
/* Gives up all previews; true while one still uses the engine. */
bool serve_end_previews(serve *s);
/* Ends the worker, which uses the engine. */
void serve_close_previews(serve *s);

/* serve_answers.c */
/* Streams the events of a response to an HTTP connection, from number next_seq on. */
void serve_begin_follow(serve *s, conn *c, const answer *a, int64_t next_seq);

/* Begins the stream of an answer that runs or has ended, with its first event. */
void serve_begin_stream(serve *s, conn *c, const answer *a);
/* Sends the reply of a finished answer that is not streamed. */
void serve_send_whole(serve *s, conn *c, answer *a);

/* For everybody who waits for the answer. */
void serve_begin_streams(serve *s, answer *a);
/* There is something new for those who follow the answer. */
void serve_wake_followers(serve *s, const answer *a);

/* serve_prepare.c */
/* Hands the answer's body to the prep workers. */
MUST_CHECK err_code serve_prepare_answer(serve *s, answer *a);
/* LOOP_OTHER_MODEL, LOOP_ACCEPTED, LOOP_PREPARED and LOOP_REPLIED. The answer may be gone when these return. */
void serve_on_other_model(serve *s, answer *a, loop_message *m);
void serve_on_accepted(serve *s, answer *a, loop_message *m);
void serve_on_prepared(serve *s, answer *a, loop_message *m);
void serve_on_tools(serve *s, answer *a, loop_message *m);
void serve_on_replied(serve *s, answer *a, const loop_message *m);
/* Whoever computes the answer has taken it: its stream begins, once. */
void serve_begin_answer(serve *s, answer *a);
/* An answer of this socket has ended: submits those that waited for their turn behind it. */
void serve_try_lanes(serve *s, uint64_t conn_id);

/* serve_answers.c, for serve_tools.c: an item goes into the reply; is_over: it will not change. */
void serve_emit_item(serve *s, answer *a, const bytes *item, bool is_over);
/* The last event was taken, or there will be none. */
void serve_end_answer(serve *s, answer *a);
/* Puts the answer behind what its request keeps (a->opt.items), once. */
void serve_compose_kept(serve *s, answer *a);

/* serve_choices.c */
/* Makes the answers behind the first, for the requests behind its own, which get their ids. False if
 * there is no memory. */
bool serve_make_choices(serve *s, answer *a);
/* Hands over what was prepared for the answer and for its other choices; nothing of it runs after an
 * error. */
MUST_CHECK err_code serve_submit_choices(serve *s, answer *a, err_detail *d);
/* They run, as the first does. */
void serve_begin_choices(serve *s, answer *a);
/* Whoever computes the choices behind the first stops. */
/* The prompt's logprobs have come for a: the other answers to it have them, too. */
void serve_share_prompt(serve *s, answer *first, const answer *a, const gen_event *event);
void serve_stop_choices(serve *s, const answer *a);
/* Stops and forgets them. */
void serve_drop_choices(serve *s, answer *a);
/* Their reasoning ends, and that of the first. */
void serve_end_thinking(serve *s, const answer *a);

/* serve_tools.c */
/* Takes the calls that are run here out of the new pieces. */
void serve_take_runs(answer *a);
/* The tools that the model may call, as items of a Responses answer, once. */
void serve_emit_lists(serve *s, answer *a);
/* The model has ended: runs what it has called; false: there is nothing to run, the answer ends. */
bool serve_begin_round(serve *s, answer *a);
/* Runs the calls that the request allows. */
void serve_run_allowed(serve *s, answer *a);
void serve_on_result(serve *s, answer *a, const mcp_result *result);
/* The answer ends between two rounds; ERR_CANCELLED, or why it failed (e NULL: the code says it). */
void serve_end_rounds(serve *s, answer *a, err_code code, const api_error *e);
/* The same, soon. */
void serve_stop_rounds(serve *s, answer *a);
/* mcp_hooks.on_result */
void serve_on_mcp_result(void *ctx, mcp_result *result);
/* GET /v1/mcp, POST /v1/mcp/{server_label}/retry */
void serve_on_mcp(serve *s, conn *c);
/* POST /v1/mcp/{server_label}/resources/read, .../prompts/get; the answer comes from the server. */
void serve_on_mcp_order(serve *s, conn *c, const bytes *body);
/* What it says; ticket: the owner of the order. */
void serve_on_mcp_reply(serve *s, uint64_t ticket, const mcp_result *result);

/* serve_idempotency.c */
/* For a valid request: if it was sent before, attaches the client to the earlier answer and frees
 * `a`. */
bool serve_attach_replay(serve *s, answer *a);
/* The HTTP connections that wait for the answer, one a call; *i begins with 0. NULL behind the
 * last. */
conn *serve_next_waiting(const serve *s, const answer *a, size_t *i);
/* Whether this connection reads the answer, or waits for it. */
bool serve_follows(const conn *c, const answer *a);
/* Somebody who does; NULL: nobody. */
conn *serve_find_follower(const serve *s, const answer *a);
/* Something was added to a->sse: ends the streams of those who do not read it. */
void serve_check_stream(serve *s, answer *a);
/* Appends whole events of a->sse that this connection has not had, about max bytes; returns how
 * many are left for it. */
size_t serve_take_stream(const serve *s, conn *c, answer *a, bytes *out, size_t max);

/* serve_kept.c */
/* The answer has ended: it stays for a while if it may be asked for again, and others may have to
 * go for it. It may be gone when this returns. */
void serve_keep_answer(serve *s, answer *a);
/* The memory of requests, with what they have as used; *kept: what answers and conversations that are
 * kept have of it beside. */
ledger_status serve_memory_status(const serve *s, size_t *kept);
/* Drops those whose time is over. */
void serve_expire_answers(serve *s, double now);
/* Why there is no such response: it had to go early, or is not known. */
void serve_no_response(const serve *s, uint64_t scope, const char *response_id, api_error *e);
/* Whether the answer to this repeated request had to go early; then *e says so. */
bool serve_is_repeat_gone(const serve *s, const answer *a, api_error *e);

/* serve_files.c: the value of a parameter of the query, "" if it is absent. False if it is longer than
 * out; then the client has been told. */
MUST_CHECK bool serve_query_string_value(serve *s, conn *c, const char *name, char *out, size_t cap);
/* The same for a whole number; *out stays as it is if it is absent. False if it is none, or outside
 * min and max. */
bool serve_query_string_int(const conn *c, const char *name, int64_t min, int64_t max, int64_t *out);

/* serve_watchdog.c */
/* Whether no model is ever loaded here. */
bool serve_is_remote_only(const serve *s);
/* LOOP_UPSTREAMS */
void serve_on_upstreams(serve *s);
/* Whether requests can be started now; otherwise fills *e with the reason and returns false. */
bool serve_is_ready(const serve *s, api_error *e);
/* Ends every answer that the engine has, as if it had failed; why: in what way. */
void serve_end_answers(serve *s, answer_timeout why);
/* Ends all answers once the engine has been stalled for too long. */
void serve_watchdog_engine(serve *s, const engine_status *status, double now);
void serve_watchdog_prep(serve *s, double now);

/* serve_responses.c */
void serve_on_response(serve *s, conn *c);
void serve_on_input_items(serve *s, conn *c);
void serve_on_conversations(serve *s, conn *c, bytes *body);
/* Adds what was sent and answered (a->opt.items, behind n_before) to the conversation that it belongs to. True: that is
 * being done, and serve_end_answer is called again then; the answer runs until it is written. Where it cannot be, the
 * answer has failed. */
bool serve_extend_conversation(serve *s, answer *a);
/* kept_talks.read, of a serve with a history. */
err_code serve_read_talk(void *s, uint64_t scope, const char *id, bytes *out, err_detail *d);
/* The history has written it, or could not. */
void serve_on_extended(serve *s, const history_reply *r);

/* serve_history.c */
void serve_on_history(serve *s, conn *c, bytes *body);
/* Hands the job to the history: its reply goes to the client, who hears of a full queue. */
void serve_submit_history(serve *s, conn *c, history_job *job);
void serve_on_history_reply(serve *s, history_reply *r);

/* serve_status.c */
void serve_on_slots(serve *s, conn *c);
void serve_on_status(serve *s, conn *c);
void serve_on_cancel(serve *s, conn *c);
void serve_on_control(serve *s, conn *c, const bytes *body);
/* Does to an answer what a control message asks for ("reasoning_end"); ERR_INVALID for another
 * action. Nothing happens to an answer that is past its thoughts. */
MUST_CHECK err_code serve_control_answer(serve *s, answer *a, const char *action, err_detail *d);
void serve_on_cache(serve *s, conn *c);
void serve_on_cache_entry(serve *s, conn *c);
/* A cached prompt as an object of a reply, without its last brace. */
void serve_write_cached(bytes *out, const engine_cached *one);

/* serve_answers.c */
/* A new answer for this client, in the table; NULL: no memory, and *e says so. */
answer *serve_new_answer(serve *s, const conn *c, const dialect *d, api_error *e);
/* Takes the body, and its document if it was read (doc may be NULL). On failure *e is filled and
 * nothing was started. */
answer *serve_start_answer(serve *s, conn *c, const dialect *d, bytes *body, json_doc **doc, api_error *e);
void serve_handle_message(serve *s, loop_message *m);
void serve_cancel_answer(serve *s, answer *a);
/* Whoever computes this one choice stops. */
void serve_stop_one(serve *s, uint64_t id);
/* Whoever computes the answer with this id stops, with all of its choices; nothing happens if nobody does. */
void serve_stop_answer(serve *s, uint64_t id);
/* The connection is gone. */
void serve_abandon_answers(serve *s, uint64_t conn_id);
/* The answer known to its owner by this id: a response's or a chat's, or "req_N" as /v1/status
 * lists it. */
answer *serve_find_answer(serve *s, uint64_t scope, const char *id);
answer *serve_find_response(serve *s, uint64_t scope, const char *response_id);
/* Flushes gathered text, expires old answers; returns milliseconds until it wants to be called
 * again. */
int serve_tick_answers(serve *s, double now);
void serve_drop_answer(serve *s, answer *a);
/* The answer is over without having run; it may be freed. */
void serve_fail_answer(serve *s, answer *a, err_code code, const api_error *e);
/* The same after a failed call below the server; d may be NULL. */
void serve_fail_answer_from(serve *s, answer *a, err_code code, const err_detail *d);

#endif
