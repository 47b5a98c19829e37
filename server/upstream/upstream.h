/* upstream: other servers that answer in this one's place. It stands where the engine stands: a
 * request in, gen_events out (GEN_PROGRESS once the server has accepted it, GEN_TEXT, GEN_DONE).
 *
 *     upstreams *u; err_code err = upstreams_create(&u, settings, hooks, d);
 *     upstream_model m; upstream_request *q;
 *     if (upstreams_find(u, "gpu/Qwen3-32B", &m, &err, d) == UPSTREAM_FOUND) {
 *         err = upstreams_prepare(u, &q, &m, r, prompt, progress, d);       // prep threads
 *         err = upstreams_submit(u, q, id, d);                              // hands q over
 *     }
 *     upstreams_cancel(u, id); upstreams_destroy(u);
 *
 * Threads: every function but create and destroy from any thread; on_event and on_change are called
 * on the thread that this module starts. The key of a server goes to that server alone.
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_H

#include "base/bytes.h"
#include "base/ledger.h"
#include "engine/engine.h"
#include "engine/media_copy.h"
#include "server/protocol/api_request.h"
#include "server/upstream/upstream_config.h"
#include "server/upstream/upstream_models.h"
#include "server/upstream/upstream_request.h"

typedef struct upstreams upstreams;
typedef struct upstream_request upstream_request;

typedef struct upstream_hooks {
    void (*on_event)(void *ctx, gen_event *event); /* takes it over */
    void (*on_change)(void *ctx);                  /* a server or its models have come or gone */
    void *ctx;
    int gather_ms;             /* text that follows other text sooner waits until then, and is one event */
    struct ledger *memory;     /* where the bodies of requests are reserved; NULL: no limit */
    const media_copier *media; /* reads images and videos; outlives this */
} upstream_hooks;

/* Reads the settings and starts the thread. ERR_INVALID names the option that is wrong; ERR_NOMEM. A
 * server that cannot be reached is no error: it is tried again. fetch_start (server/media/fetch.h) was
 * called before. */
MUST_CHECK err_code upstreams_create(upstreams **out, const upstream_settings *settings,
                                     const upstream_hooks *hooks, err_detail *d);
/* Ends the thread and every answer, without an event. NULL allowed. */
void upstreams_stop(upstreams *u);
/* The same, then frees; no upstream_request is left. NULL allowed. */
void upstreams_destroy(upstreams *u);

/* A model of one of the servers. */
typedef struct upstream_model {
    size_t server;
    char name[REQUEST_MODEL_MAX]; /* NAME/ID */
    upstream_model_facts facts;
    engine_info info; /* for the readers of requests; its texts are empty */
    const char *rule; /* set by the caller: why a request goes there that did not name it; NULL: it did */
} upstream_model;

typedef enum upstream_search {
    UPSTREAM_NONE, /* the name is none of theirs */
    UPSTREAM_FOUND,
    UPSTREAM_REFUSED /* it is, but there is no such model, or the server has not been reached: *d says so */
} upstream_search;

/* NAME/ID, an alias, or "" and "default" for the first model there is. u may be NULL. With ERR_NOT_FOUND or
 * ERR_UPSTREAM in *code when refused. */
upstream_search upstreams_find(upstreams *u, const char *name, upstream_model *out, err_code *code,
                               err_detail *d);
/* Whether the name is an alias, or begins with the name of a server and a slash. */
bool upstreams_is_named(const upstreams *u, const char *name);

/* The rule by which a body goes to another server that names none of them; NULL: it stays here. c has what is known beside
 * the body; count: see upstream_rules.h. u may be NULL. */
const upstream_rule *upstreams_route(const upstreams *u, const json *body, upstream_case c,
                                     upstream_count_fn *count, void *ctx);
/* Appends ,"routes":["when .."], the rules by which requests may leave; nothing if there are none. */
void upstreams_write_rules(const upstreams *u, bytes *out);
/* --local-only */
bool upstreams_is_local_only(const upstreams *u);

/* Makes the parsed request one for the model's server: its media are read, and videos perhaps decoded. The caller frees
 * it unless it is submitted. ERR_UNSUPPORTED, ERR_INVALID, ERR_LIMIT, ERR_BUSY (no memory for its body now),
 * ERR_CANCELLED, ERR_NOMEM, and those of media. */
MUST_CHECK err_code upstreams_prepare(upstreams *u, upstream_request **out, const upstream_model *m,
                                      const api_request *r, const upstream_prompt *prompt,
                                      const prepare_hooks *progress, err_detail *d);
void upstream_request_free(upstream_request *q); /* and those behind it; NULL allowed */
/* Requests for the choices of one answer stand one behind the other; the first owns the rest. */
upstream_request *upstream_request_next(const upstream_request *q); /* NULL: the last */
void upstream_request_append(upstream_request *q, upstream_request *more);
/* Takes the first from in front of the others, and returns them. */
upstream_request *upstream_request_detach(upstream_request *q);
gen_request_info upstream_request_info(const upstream_request *q);
/* The name of the server that it is for; lives as long as u. */
const char *upstream_request_server(const upstream_request *q);

/* Hands the request over under this id; on an error it stays the caller's. ERR_BUSY, ERR_NOMEM. */
MUST_CHECK err_code upstreams_submit(upstreams *u, upstream_request *q, uint64_t id, err_detail *d);
/* GEN_DONE with GEN_FINISH_CANCELLED follows, unless the answer has ended; an unknown id is nothing. u may be NULL. */
void upstreams_cancel(upstreams *u, uint64_t id);

/* Appends their models as entries of /v1/models, ",{..}" each, without the first comma if is_first; returns how
 * many. */
size_t upstreams_write_models(upstreams *u, bytes *out, bool is_first, int64_t created);
/* Appends the entry of one model; false if there is none of this name. */
bool upstreams_write_model(upstreams *u, bytes *out, const char *name, int64_t created);
/* Appends a list of the servers, for /v1/status: what they are, and whether they answer. */
void upstreams_write_status(upstreams *u, bytes *out);
/* Appends a row for each replica, for /metrics. */
void upstreams_write_metrics(upstreams *u, bytes *out);
/* Answers that they are giving. u may be NULL. */
size_t upstreams_count_running(upstreams *u);

#endif
