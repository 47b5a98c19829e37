/* net_lws: what net.c, net_http.c and net_ws.c share. Private; the only files that include
 * libwebsockets.h are the three that include this header.
 *
 * libwebsockets waits for sockets, and speaks WebSocket. HTTP is read and written here: a
 * connection begins as a plain socket (its RAW role), and one that asks for a WebSocket is handed
 * over with a head that net_http.c has written itself.
 */
#ifndef PARLEY_SERVER_NET_NET_LWS_H
#define PARLEY_SERVER_NET_NET_LWS_H

#include <libwebsockets.h>
#include <stdatomic.h>

#include "base/ledger.h"
#include "server/id_table.h"
#include "server/net/listen.h"
#include "server/net/net.h"
#include "server/net/net_chunked.h"
#include "server/net/net_unread.h"

enum { NET_WRITE_BYTES = 16384, NET_FILE_BYTES = 65536, NET_LOG_PATH = 128, NET_KEEPALIVE_S = 30 };

enum { NET_S_NS = 1000000000, NET_MS_NS = 1000000, NET_MS_US = 1000 };

typedef enum conn_phase {
    CONN_HEAD,    /* reading the head of a request */
    CONN_IDLE,    /* between requests: nothing of the next one has come */
    CONN_BODY,    /* reading a body */
    CONN_WAIT,    /* the request was handed up, no reply yet */
    CONN_REPLY,   /* a whole reply is being written */
    CONN_STREAM,  /* a stream is being written */
    CONN_DISCARD, /* refused before all of it was read: swallow the rest until the client has our answer */
    CONN_SOCKET   /* WebSocket */
} conn_phase;

typedef struct net_conn {
    uint64_t id;
    net *net;
    struct lws *wsi; /* NULL while libwebsockets takes it over */
    char peer[LISTEN_PEER_MAX];
    conn_phase phase;
    bool announced;  /* on_head accepted a request of it: on_close is owed */
    bool in_request; /* on_head accepted the current one: on_done is owed */
    bool http11;
    bool head_only;
    bool close_after;    /* end the connection after this reply */
    bool body_unread;    /* bytes of a refused body may still arrive */
    bool streams_body;   /* its pieces are handed up as they come */
    bool is_chunked;     /* the body's length is not announced */
    bool is_paused;      /* nothing is read */
    bool is_half_closed; /* the client sends no more */
    net_chunked chunked;
    uint64_t body_left; /* of the announced length */
    bool is_extended;   /* a socket that speaks parley.v1 */
    bool stream_end;
    char method[8], path[NET_LOG_PATH]; /* of the current request, as sent, cut: for the log */
    int64_t head_ns;                    /* when its head was whole */
    char request_id[NET_REQUEST_ID];    /* of the current request: x-request-id */
    const char *origin;                 /* one of net_options.origins: where its page came from; or NULL */
    bytes rx; /* HTTP: what was read and is not looked at yet: a head, and what comes behind a request */
    bytes in; /* body or message so far */
    size_t in_counted;  /* part of net.inflight */
    ledger_hold memory; /* of `in` */
    bytes out;          /* bytes of head and body to be written */
    size_t out_pos;
    const uint8_t *body; /* a reply's body that is not copied */
    int file;            /* ... or that is a file, owned; -1: none */
    size_t body_bytes, body_pos;
    bytes piece;         /* the piece that on_writable fills */
    int64_t deadline_ns; /* 0: none */
    int64_t body_ns;     /* when the body began */
    uint64_t sent_bytes; /* handed to the socket so far */
    net_unread unread;
    int close_code;  /* WebSocket: send this and end */
    bool is_closing; /* ... sent */
    char close_reason[64];
} net_conn;

struct net {
    net_options opt;
    net_callbacks cb;
    struct lws_context *context;
    struct lws_vhost *vhost;
    lws_retry_bo_t idle_policy;
    id_table conns;
    uint64_t next_id;
    size_t inflight; /* bytes held in all `in` buffers */
    int n_conns;
    listeners listeners;
    struct lws *listening[LISTENERS_MAX]; /* one each */
    net_conn *upgrading;                  /* in net_upgrade */
    atomic_bool wake_pending;
    lws_sorted_usec_list_t timer;
    int64_t timer_at_ns; /* 0: not set */
    lws_sorted_usec_list_t watchdog;
    int64_t looked_ns; /* its last look; 0: none */
};

/* net.c */
net_conn *net_conn_of(struct lws *wsi);
net_conn *net_find(net *n, uint64_t id); /* NULL if it is gone */
/* Appends to c->in within the limits; false if the connection must end. */
bool net_conn_receive(net_conn *c, const void *data, size_t len, size_t max);
void net_conn_drop_input(net_conn *c); /* frees c->in */
/* Hands a connection over to be a WebSocket; `head` is the request for it, and what the client sent
 * behind. Returns -1, for the caller to return to libwebsockets; c may be gone. */
int net_upgrade(net_conn *c, const bytes *head);

/* net_http.c: what callbacks return to libwebsockets (0 go on, -1 close). */
int net_http_receive(net_conn *c, const void *data, size_t len);
int net_http_writable(net_conn *c); /* writes what waits */
/* While a request is answered nothing is read; this finds out whether its client sends no more, and
 * whether that means that it has left. */
void net_http_look(net_conn *c);
/* A head or body took too long to arrive, or nothing came. */
void net_http_timeout(net_conn *c);

/* net_ws.c */
int net_ws_open(net_conn *c);
int net_ws_receive(net_conn *c, const void *data, size_t len); /* a piece of a message */
int net_ws_writable(net_conn *c);                              /* writes one message */

#endif
