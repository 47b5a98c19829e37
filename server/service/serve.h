/* serve: the whole server: listens, loads the model, answers until it is told to stop.
 *
 *     serve_options opt; serve_options_init(&opt);  opt.engine = &options;
 *     return serve_run(&opt);                       // blocks; the return value is the exit code
 *
 * Threads: the caller's thread becomes the loop thread (sockets, all server state). A loader thread
 * opens the engine, prep workers parse requests, the engine's thread pushes events; all of them
 * reach the loop through one mailbox.
 */
#ifndef PARLEY_SERVER_SERVICE_SERVE_H
#define PARLEY_SERVER_SERVICE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "engine/engine.h"
#include "server/hub/hub_jobs.h"
#include "server/mcp/mcp.h"
#include "server/upstream/upstream_config.h"

typedef struct serve_options {
    const char *const *hosts; /* IP addresses or "unix:/path"; see listeners_open */
    size_t n_hosts;
    int port;                  /* 0: any free one */
    const char *path_prefix;   /* "/ai": everything is below it; NULL: at the root */
    bool no_metrics, no_slots; /* without these routes */
    /* an object: default variables of the chat template; or NULL */
    const json *template_kwargs;
    bool allows_no_key;           /* other machines may use the server without a key */
    const engine_options *engine; /* on_event, on_load and their contexts are set by the server */
    bool has_no_model;            /* nothing is loaded: only models of other servers answer */
    upstream_settings upstreams;  /* other servers; .servers NULL: none */
    const mcp_config *mcp;        /* servers of tools; NULL: none */
    mcp_spawner *mcp_spawner;     /* that starts them; NULL: none is a program */
    int tool_rounds;              /* of calls in one answer */
    const char *warm_prompts;     /* a file (warm.h); NULL: none */
    const char *alias;            /* name shown for the model; NULL: the folder's */
    /* a form's name (tool_scanner.h), "none", or NULL or "auto": as the template says */
    const char *tool_scanner;
    const char *reasoning_field; /* of chats: "content" (or NULL), "reasoning", "both" */
    const char *ui_dir;          /* NULL: the embedded page */
    bool no_ui;
    bool strict_model;         /* requests that name another model are refused */
    const char *models_dir;    /* models that may be loaded instead (engine/catalog.h); NULL: none */
    bool switches_model;       /* a request that names one of them loads it */
    int models_max;            /* so many stay in memory, at most LIMIT_MODELS */
    const char *const *pinned; /* names of those that never leave */
    size_t n_pinned;
    int idle_unload_s; /* those that do not answer leave after so long; 0: never */
    const char *const *api_keys;
    size_t n_api_keys;
    const char *admin_key; /* of who manages models; NULL: who sits at this machine does */
    hub_jobs *hub;         /* models of a hub, by who may; NULL: not offered */
    const char *const *allowed_hosts;
    size_t n_allowed_hosts;
    const char *const *allowed_origins;
    size_t n_allowed_origins;
    size_t max_body;                  /* bytes */
    size_t max_ws_message;            /* bytes */
    size_t max_header;                /* bytes */
    size_t event_log_bytes;           /* kept of one response; older events are replaced by a snapshot */
    const char *upload_dir;           /* at first /var/tmp */
    bool needs_uploads;               /* one that cannot be written is an error */
    const char *const *media_domains; /* hosts that media may be fetched from (remote_host.h) */
    size_t n_media_domains;
    const char *media_path;            /* files below it may be named by file: URLs; NULL: none */
    uint64_t max_upload, upload_quota; /* bytes */
    int64_t upload_expire_s;
    const char *history_dir; /* NULL: chats are not kept */
    uint64_t history_quota;  /* bytes */
    int max_connections;
    int max_connections_per_address;
    int n_prep_threads;
    int n_queue; /* bodies waiting for a prep worker */
    int header_timeout_s;
    int body_timeout_s;
    int queue_timeout_s;      /* waiting in the queue */
    int request_timeout_s;    /* from the request to the answer's end */
    int step_timeout_s;       /* without any progress of a computation */
    int keepalive_s;          /* SSE comment interval */
    int ws_ping_s, ws_pong_s; /* see net_options */
    size_t min_body_rate;     /* see net_options */
    int send_timeout_s;       /* see net_options */
    size_t send_rate;         /* see net_options */
    size_t max_unread;        /* bytes queued for a client that does not read its socket or stream */
    /* answers continue when their clients disconnect, unless a request says otherwise */
    bool finish_on_disconnect;
    int drain_timeout_s;
    bool access_log; /* a line for every reply of HTTP */
    bool quiet;      /* no ready line */
    /* Called on the loop thread after SIGHUP: returns the new keys, which live until the next call.
     * On an error the old ones stay. NULL: keys do not change. */
    err_code (*read_keys)(void *ctx, const char *const **keys, size_t *n, err_detail *detail);
    void *read_keys_ctx;
    /* Called on the loop thread when the port is known; NULL allowed. For tests with port 0. */
    void (*on_listening)(void *ctx, int port);
    void *on_listening_ctx;
} serve_options;

void serve_options_init(serve_options *opt); /* the defaults of base/limits.h, 127.0.0.1:8080 */

/* Serves until SIGINT or SIGTERM (a second one ends the process at once); SIGHUP opens the log file
 * again and reads the keys again. Returns the exit code: 0 after a clean end, 1 failure, 2 bad
 * address, 3 model missing or invalid, 4 no memory, 5 address in use. */
int serve_run(const serve_options *opt);

/* The same in a thread of its own, for tests. */
typedef struct serve_thread serve_thread;
/* Returns when the port is known; *port is it. NULL and the exit code in *port (negated) if it
 * could not start. */
serve_thread *serve_thread_start(const serve_options *opt, int *port);
/* Stops as SIGTERM would, joins, frees; returns the exit code. */
int serve_thread_stop(serve_thread *t);

#endif
