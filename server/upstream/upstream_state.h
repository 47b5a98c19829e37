/* upstream_state: what the files of `upstream` share. Private.
 *
 * upstream.c       the interface: names, lists, requests
 * upstream_loop.c  the thread: looking at servers, answers from their first byte to their last
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_STATE_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_STATE_H

#include <pthread.h>

#include "server/http_client.h"
#include "server/upstream/affinity.h"
#include "server/upstream/upstream.h"
#include "server/upstream/upstream_reply.h"

enum { UPSTREAM_URL_MAX = 4200, UPSTREAM_WHY_MAX = 200 };

struct upstream_request {
    upstreams *all;
    size_t server;
    upstream_wire wire;
    bytes body;
    ledger_hold memory;
    gen_request_info info;
    affinity_chain chain;
    const char *rule; /* that sent it there; NULL: it names the model */
    uint64_t id;
    upstream_request *next; /* of those that wait for the thread; before, the next choice (upstream.h) */
};

typedef enum replica_state { REPLICA_NEW, REPLICA_UP, REPLICA_DOWN } replica_state;

/* One address of a server. What has {lock} is read by other threads. */
typedef struct replica {
    const char *url;
    char models_url[UPSTREAM_URL_MAX], chat_url[UPSTREAM_URL_MAX], completions_url[UPSTREAM_URL_MAX];
    replica_state state;        /* {lock} */
    char why[UPSTREAM_WHY_MAX]; /* {lock} it is down */
    int n_running;              /* {lock} */
    uint64_t n_sent, n_failed;  /* {lock} */
    uint64_t n_followed;        /* {lock} of n_sent, conversations that it had seen */
    uint64_t n_ruled;           /* {lock} of n_sent, those that a rule has sent */
    int n_bad;                  /* answers in a row that it failed: it rests after some */
    http_transfer *check;       /* NULL: none is under way */
    int check_status;
    bytes check_body;
    double next_check_ms;
    upstreams *all;
    size_t server;
} replica;

typedef struct server_state {
    replica replicas[UPSTREAM_REPLICAS];
    size_t n_replicas;
    upstream_models models; /* {lock} */
    bool was_reached;       /* {lock} its models were read once */
} server_state;

/* An answer that is being given. */
typedef struct upstream_run {
    upstreams *all;
    upstream_request *request;
    replica *at;    /* where it runs; NULL once it has ended */
    uint32_t tried; /* bits of replicas */
    http_transfer *transfer;
    upstream_reply reply;
    bool has_begun; /* the server has accepted it */
    bool has_ended; /* GEN_DONE was said; the rest of the reply is thrown away */
    double submitted_ms, first_ms;
    double said_ms; /* when text of it was said last; 0: never */
    bool is_fast;   /* several pieces of it came within REST_MS, lately */
    struct upstream_run *next, **link;
} upstream_run;

struct upstreams {
    upstream_config config;
    upstream_hooks hooks;
    http_client *client;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t has_orders;         /* {lock} ends a rest */
    bool closing;                      /* {lock} */
    upstream_request *waiting, **last; /* {lock} for the thread, in order */
    uint64_t *cancels;                 /* {lock} ids */
    size_t n_cancels, cap_cancels;     /* {lock} */
    size_t n_open;                     /* {lock} requests that wait or run */
    server_state servers[UPSTREAM_SERVERS];
    upstream_run *runs;
    double due_ms;      /* of the thread: no text that waits is due before; 0: none waits */
    affinity *affinity; /* of the thread */
};

/* upstream_loop.c: the thread's function; ctx is upstreams. */
void *upstream_loop(void *ctx);

#endif
