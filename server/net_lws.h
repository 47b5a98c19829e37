/* net_lws: what net.c, net_http.c and net_ws.c share. Private; the only files that include libwebsockets.h are the
 * three that include this header.
 */
#ifndef PARLEY_SERVER_NET_LWS_H
#define PARLEY_SERVER_NET_LWS_H

#include <libwebsockets.h>
#include <stdatomic.h>

#include "server/id_table.h"
#include "server/listen.h"
#include "server/net.h"
#include "server/net_chunked.h"

enum { NET_WRITE_BYTES = 16384 };

typedef enum conn_phase {
    CONN_IDLE,    /* between requests */
    CONN_BODY,    /* reading a body */
    CONN_WAIT,    /* the request was handed up, no reply yet */
    CONN_REPLY,   /* a whole reply is being written */
    CONN_STREAM,  /* a stream is being written */
    CONN_DISCARD, /* refused before the body was read: swallow it until the client has our answer */
    CONN_SOCKET   /* WebSocket */
} conn_phase;

typedef struct net_conn {
    uint64_t id;
    net *net;
    struct lws *wsi;
    char peer[LISTEN_PEER_MAX];
    conn_phase phase;
    bool announced;  /* on_head accepted a request of it: on_close is owed */
    bool in_request; /* on_head accepted the current one: on_done is owed */
    bool http11;
    bool head_only;
    bool close_after;  /* end the connection after this reply */
    bool body_unread;  /* bytes of a refused body may still arrive */
    bool streams_body; /* its pieces are handed up as they come */
    bool is_chunked;   /* the body's length is not announced */
    net_chunked chunked;
    bool is_extended; /* a socket that speaks parley.v1 */
    int completions;  /* how often BODY_COMPLETION was seen for this request */
    bool stream_end;
    bytes in;          /* body or message so far */
    size_t in_counted; /* part of net.inflight */
    bytes out;         /* bytes of head and body to be written */
    size_t out_pos;
    const uint8_t *body; /* a reply's body that is not copied */
    size_t body_bytes, body_pos;
    bytes piece;         /* the piece that on_writable fills */
    int64_t deadline_ns; /* 0: none */
    int64_t body_ns;     /* when the body began */
    int close_code;      /* WebSocket: send this and end */
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
    char accepting[LISTEN_PEER_MAX];      /* whose connection is being taken */
    bool accepting_unix;
    atomic_bool wake_pending;
    lws_sorted_usec_list_t timer;
    int64_t timer_at_ns; /* 0: not set */
    lws_sorted_usec_list_t watchdog;
    unsigned char scratch[LWS_PRE + NET_WRITE_BYTES + 64];
};

/* net.c */
net_conn *net_conn_of(struct lws *wsi);
net_conn *net_find(net *n, uint64_t id);
/* Appends to c->in within the limits; false if the connection must end. */
bool net_conn_receive(net_conn *c, const void *data, size_t len, size_t max);
void net_conn_drop_input(net_conn *c);

/* net_http.c: what the callbacks of one request return to libwebsockets (0 go on, -1 close). */
int net_http_confirm_upgrade(net_conn *c, char *upgrade);
int net_http_head(net_conn *c, const char *path, size_t len);
int net_http_body(net_conn *c, const void *data, size_t len);
int net_http_body_done(net_conn *c);
int net_http_writable(net_conn *c);
/* The body took too long. */
void net_http_timeout(net_conn *c);

/* net_ws.c */
int net_ws_open(net_conn *c);
int net_ws_receive(net_conn *c, const void *data, size_t len);
int net_ws_writable(net_conn *c);

#endif
