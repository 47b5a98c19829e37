/* mcp_state: what the files of `mcp` share. Private.
 *
 * mcp.c          the interface and the thread
 * mcp_ask.c      requests
 * mcp_session.c  the protocol with one server: connecting, lists, calls, their replies
 * mcp_pipe.c     messages over standard streams
 * mcp_post.c     messages over HTTP
 * mcp_worker.c   calls of built-in tools, each on a thread
 */
#ifndef PARLEY_SERVER_MCP_MCP_STATE_H
#define PARLEY_SERVER_MCP_MCP_STATE_H

#include <pthread.h>

#include "server/http_client.h"
#include "server/mcp/mcp.h"

enum { MCP_TEXT_MAX = 300, MCP_FLOOD_BYTES = 64 << 20 /* read without a reply among it */ };

/* What a request is for. */
typedef enum mcp_purpose {
    MCP_DISCOVER,
    MCP_INITIALIZE,
    MCP_LIST_TOOLS,
    MCP_LIST_RESOURCES,
    MCP_LIST_PROMPTS,
    MCP_WORK,  /* an order */
    MCP_NOTICE /* nothing is awaited but the end of the transfer */
} mcp_purpose;

typedef struct mcp_session mcp_session;

/* A request that is under way. */
typedef struct mcp_ask {
    mcp_session *s;
    int64_t id;
    mcp_purpose purpose;
    double until_ms, last_ms; /* ends without a sign of life; ends in any case */
    /* an order */
    uint64_t owner;
    uint32_t place;
    int what;
    char *name, *arguments; /* owned */
    char *cursor;           /* of a list: where the page begins; NULL: the first */
    char *more; /* ,"inputResponses":{..},"requestState":"..": what the server has asked for; NULL */
    double begun_ms, told_ms;
    int n_tries;    /* rounds of input, or sessions, or streams */
    double send_ms; /* when it is to be sent; 0: it was. All begins in mcp_session_tick, as libcurl allows no
                         new request inside of its calls */
    /* HTTP */
    http_transfer *transfer;                /* NULL: none, or it has ended */
    bytes body, reply, headers;             /* headers: NUL-terminated lines, one behind the other */
    const char *lines[MCP_HEADERS_MAX + 8]; /* those of the configuration all have a place */
    size_t n_read;
    int status;
    bool is_stream, is_answered;
    char type[64], redirect[256];
    char last_event[128]; /* where a stream goes on that was cut; "": it cannot */
    int retry_ms;
    struct mcp_worker *worker; /* that runs a built-in tool for it; NULL: none */
    struct mcp_ask *next, **link;
} mcp_ask;

typedef enum mcp_step { STEP_CLOSED, STEP_OPENING, STEP_LISTING, STEP_OPEN } mcp_step;

struct mcp_session {
    mcp *all;
    const mcp_server_config *config;
    size_t index;
    mcp_step step;
    bool is_modern;    /* 2026-07-28: every request says all, there is no session */
    bool knows_era;    /* is_modern is known: of this server from an earlier connection */
    bool is_failing;   /* why says it; the tick closes it */
    bool is_relisting; /* STEP_OPEN: its lists are being read again */
    bool wants_relist; /* they have changed */
    bool has_tools, has_resources, has_prompts;
    char session_id[256], protocol[32], name[128], version[64], why[MCP_PROBLEM_MAX];
    double next_try_ms, opened_ms, relist_ms; /* relist_ms: when the lists are stale; 0: never */
    double ttl_ms;
    int64_t greeting_id; /* of the notice that the listing waits for; 0: none */
    int n_failed;        /* in a row */
    mcp_offer *offer;
    bytes lists[3]; /* of tools, resources, prompts while they are read */
    int n_pages;
    /* standard streams */
    mcp_child child;
    size_t n_read;  /* since its last reply */
    bytes in, out;  /* a line that is being read; what waits to be written */
    char said[256]; /* the last line on its stream of errors */
};

typedef struct mcp_job {
    mcp_order order;
    char *server, *name, *arguments;
    double begun_ms;
    struct mcp_job *next;
} mcp_job;

struct mcp {
    const mcp_config *config;
    mcp_spawner *spawner;
    mcp_hooks hooks;
    http_client *client;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closing;              /* {lock} */
    mcp_catalog *catalog;      /* {lock} */
    mcp_job *jobs, **last_job; /* {lock} in order */
    uint64_t *cancels;         /* {lock} */
    size_t n_cancels, cap_cancels;
    bool retries[MCP_SERVERS]; /* {lock} */
    size_t n_orders;           /* {lock} that wait or run */
    mcp_session sessions[MCP_SERVERS];
    size_t n_sessions;
    mcp_ask *asks;
    int64_t last_id;
    struct mcp_worker *workers;
    bool is_unpublished; /* for want of memory */
};

/* mcp.c: publishes what there is now. */
void mcp_publish(mcp *m);
/* An order has ended: hands the result over. NULL: nothing is said. */
void mcp_tell(mcp *m, mcp_result *result);
/* For what ends an order, which must arrive: without memory it is tried again until some is free. NULL
 * once all ends. */
mcp_result *mcp_last_result(mcp *m, uint64_t owner, uint32_t place);

/* mcp_session.c */
void mcp_session_open(mcp_session *s);
/* The connection is gone: with the next tick calls fail, and later it is tried again. */
void mcp_session_fail(mcp_session *s, const char *format, ...) PRINTF_LIKE(2, 3);
void mcp_session_close(mcp_session *s);
/* Begins an order, whose name and arguments it takes; what goes wrong is its result. */
void mcp_session_work(mcp_session *s, mcp_job *job);
/* A message of the server has come. ask: the request whose reply it may be; NULL: it says its id itself. */
void mcp_session_read(mcp_session *s, mcp_ask *ask, const char *text, size_t len);
/* The server does not know the session of this order any more, and the order may be tried in a new one. */
bool mcp_session_is_lost(const mcp_ask *ask);
/* The transfer of a request has ended, over HTTP. */
void mcp_session_ended(mcp_ask *ask, http_end end, const char *why);
/* Looks at the time; returns when it wants to be called again, in clock_ms. */
double mcp_session_tick(mcp_session *s, double now);

/* mcp_ask.c */
#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"
/* A request that is sent with the next tick; NULL without memory, the session then fails. */
mcp_ask *mcp_ask_new(mcp_session *s, mcp_purpose purpose, int seconds);
void mcp_ask_send(mcp_ask *ask);
void mcp_ask_free(mcp_ask *ask);
/* Ends a request without a result. is_told: the server hears of it. */
void mcp_ask_drop(mcp_ask *ask, bool is_told);
/* The result of an order is this failure. */
void mcp_ask_fail(mcp_ask *ask, const char *format, ...) PRINTF_LIKE(2, 3);
const char *mcp_ask_method(const mcp_ask *ask);
/* Sends a message that no reply belongs to; returns the id of the request over HTTP that carries it, or 0. */
int64_t mcp_notice_send(mcp_session *s, const bytes *text);

/* mcp_pipe.c */
err_code mcp_pipe_open(mcp_session *s, err_detail *d);
void mcp_pipe_close(mcp_session *s);
/* Queues a message, without a line break in it. */
void mcp_pipe_send(mcp_session *s, const char *text, size_t len);
/* What its output, input and errors are ready for. */
void mcp_pipe_ready(mcp_session *s, bool can_read, bool can_write, bool has_errors);

/* mcp_post.c: sends ask->body; false if that could not begin. */
bool mcp_post_send(mcp_ask *ask, const char *method, const char *name);
/* Ends a session at its server (DELETE). */
void mcp_post_end(mcp_session *s);

/* mcp_builtin.c: answers a request of a built-in server; out: the reply. may_go_on: whether somebody waits. */
void mcp_builtin_answer(const mcp_server_config *config, const json *request, bytes *out,
                        bool (*may_go_on)(void *ctx), void *ctx);

/* mcp_worker.c: has another thread answer the request, whose body is written; false: too many are at work. */
bool mcp_worker_start(mcp_ask *ask);
/* Nobody waits for the worker any more. */
void mcp_worker_cancel(struct mcp_worker *w);
/* Takes the replies of those that are ready; all: waits for each, which is cancelled. */
void mcp_worker_collect(mcp *m, bool all);

#endif
