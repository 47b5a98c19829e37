/* net: sockets, HTTP/1.1, and WebSocket framing (by libwebsockets, whose loop this is too). Loop
 * thread, but for net_wake.
 *
 *     net *n; net_open(&n, &options, &callbacks, &detail);      // listens
 *     while (running) { net_poll(n); }
 *     net_close(n);
 *
 * A connection is a uint64_t id, never reused; calls for an id that is gone do nothing.
 * libwebsockets is not visible above this header, so the transport could be replaced. Checked here:
 * a well-formed header section, one Host header, digits-only Content-Length or chunks and not both,
 * size and deadline of header section and body, WebSocket message size. A body is delivered whole,
 * unless on_head asks for its pieces (net_stream_body).
 */
#ifndef PARLEY_SERVER_NET_NET_H
#define PARLEY_SERVER_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

typedef struct net net;

typedef enum net_method {
    NET_GET = 1,
    NET_HEAD = 2,
    NET_POST = 4,
    NET_PUT = 8,
    NET_PATCH = 16,
    NET_DELETE = 32,
    NET_OPTIONS = 64
} net_method;

enum { NET_PATH_MAX = 1024, NET_HEADER_MAX = 512, NET_IDEMPOTENCY_KEY_MAX = 255, NET_REQUEST_ID = 48 };

/* The head of a request; strings are "" when absent and valid only during on_head. */
typedef struct net_head {
    net_method method;
    char path[NET_PATH_MAX];           /* percent-decoded and folded, without the query */
    char query_string[NET_HEADER_MAX]; /* as it was sent, and valid: for http_query_value */
    char host[NET_HEADER_MAX];
    char origin[NET_HEADER_MAX];
    char authorization[NET_HEADER_MAX];
    char x_api_key[NET_HEADER_MAX];
    bool is_anthropic; /* has an anthropic-version */
    char content_type[NET_HEADER_MAX];
    char sec_fetch_site[32];
    char if_none_match[128];
    char accept_encoding[128];
    char ws_protocols[NET_HEADER_MAX];
    char idempotency_key[NET_IDEMPOTENCY_KEY_MAX + 1]; /* Idempotency-Key; "?" if it is longer */
    char cors_headers[NET_HEADER_MAX];                 /* Access-Control-Request-Headers */
    /* a CORS preflight: OPTIONS with Origin and Access-Control-Request-Method */
    bool is_preflight;
    /* ... from a public page to a private address (Access-Control-Request-Private-Network) */
    bool cors_private;
    bool is_upgrade; /* asks for a WebSocket */
    /* From this machine's loopback address, as a browser there sends it: no proxy has handed it on, as far as
     * one tells. */
    bool is_direct;
    const char *request_id; /* the x-request-id of its reply; valid during the call */
    bool has_body;
    uint64_t body_bytes; /* announced */
} net_head;

typedef struct net_reply {
    int status;
    const char *content_type; /* NULL: no body */
    const char *headers;      /* further lines, each ending in \r\n, or NULL */
    const void *body;
    size_t body_bytes;
    bool body_lives; /* the body outlives the connection and is not copied */
    bool has_file;   /* the body is the first body_bytes of `file`, which is taken over */
    int file;
    bool head_only; /* HEAD: announce the length, send no body */
} net_reply;

/* A reply that was started, for the access log. Strings are valid during the call. */
typedef struct net_sent {
    const char *id; /* the header x-request-id */
    const char *method, *path;
    int status;
    double ms; /* since the request's head was read */
} net_sent;

/* What on_writable left in `out`. */
typedef enum net_pull {
    NET_PULL_IDLE, /* nothing more now: net_want_write will be called */
    NET_PULL_MORE, /* ask again when this is sent */
    NET_PULL_END   /* HTTP stream: this was the last piece */
} net_pull;

typedef struct net_callbacks {
    void *ctx;
    /* Headers are complete. True: go on (read the body, or accept the WebSocket). False: refused,
     * and the callee has filled *refusal, whose texts must live until the call returns (they are
     * copied). */
    bool (*on_head)(void *ctx, uint64_t conn, const net_head *head, net_reply *refusal);
    /* A piece of a body that on_head wanted as a stream; on_request follows the last, with an empty
     * body. False: refused, as in on_head; nothing more of this request comes. */
    bool (*on_body)(void *ctx, uint64_t conn, const void *data, size_t n, net_reply *refusal);
    /* The whole body is there (empty without one). The callee may take the memory by moving it out
     * of *body. */
    void (*on_request)(void *ctx, uint64_t conn, bytes *body);
    /* A WebSocket is open; extended: the client speaks parley.v1. */
    void (*on_open)(void *ctx, uint64_t conn, bool extended);
    /* A whole binary message of at most max_binary bytes, on an extended socket. */
    void (*on_binary)(void *ctx, uint64_t conn, const void *data, size_t n);
    /* A whole text message, valid UTF-8; the memory may be taken. */
    void (*on_message)(void *ctx, uint64_t conn, bytes *message);
    /* Writable: append one WebSocket message, or the next piece of an HTTP stream. */
    net_pull (*on_writable)(void *ctx, uint64_t conn, bytes *out);
    /* HTTP: the client of a running stream sends no more. It has left, or waits: what is written to
     * one that has left comes back as an error and closes the connection, so on_writable should
     * write something soon. NULL: not wanted. */
    void (*on_half_closed)(void *ctx, uint64_t conn);
    /* HTTP: a reply was sent whole, and the connection may carry another request. */
    void (*on_done)(void *ctx, uint64_t conn);
    void (*on_close)(void *ctx, uint64_t conn);
    void (*on_sent)(void *ctx, const net_sent *sent); /* of every reply; NULL: not wanted */
    void (*on_wake)(void *ctx);                       /* after net_wake, on the loop thread */
    void (*on_timer)(void *ctx);                      /* after net_set_timer */
} net_callbacks;

typedef struct net_options {
    const char *const *hosts; /* "127.0.0.1", "0.0.0.0", "::1", "unix:/path"; see listeners_open */
    size_t n_hosts;
    int port; /* 0: any free one */
    size_t max_body;
    size_t max_message;
    size_t max_binary; /* binary message; 0: none are taken */
    size_t max_header;
    const char *const *
        /* whose pages may read what the server answers (CORS); not owned, they live as long as the
         * net */
        origins;
    size_t n_origins;
    size_t max_inflight;   /* bytes of all bodies and messages being read */
    struct ledger *memory; /* where they are reserved (base/ledger.h); NULL: nowhere */
    int max_connections;
    int max_connections_per_address;
    int header_timeout_s; /* from connecting, or from the first byte of a later head, to its end */
    int body_timeout_s;
    /* minimum rate of a body in bytes per second, after its first seconds; 0: any */
    size_t min_body_rate;
    int send_timeout_s; /* what waits for a client must be taken within it ... */
    size_t send_rate;   /* ... or so many bytes a second of it; 0: any */
    /* seconds of silence before a socket is pinged, and until it is dropped after that */
    int ws_ping_s, ws_pong_s;
} net_options;

/* Starts listening; on the sockets passed by the service manager if there are any. ERR_BUSY if the
 * port is taken, ERR_INVALID for a bad address, ERR_IO. `callbacks` is copied. */
MUST_CHECK err_code net_open(net **out, const net_options *opt, const net_callbacks *callbacks,
                             err_detail *detail);
/* Closes every connection (on_close is called for each) and the listening socket. NULL allowed. */
void net_close(net *n);

int net_port(const net *n);      /* 0: none, only socket files */
bool net_is_local(const net *n); /* no other machine can reach it */
int net_connections(const net *n);

/* Whether a reply or a stream is not sent to its end, or a WebSocket not to its close frame. */
bool net_is_sending(const net *n);

/* Serves what is ready, or waits until something is. */
void net_poll(net *n);

/* Any thread: on_wake will be called soon on the loop thread. Cheap when repeated. */
void net_wake(net *n);

/* Calls on_timer once, after `ms` at the latest; an earlier deadline already set is kept. */
void net_set_timer(net *n, int ms);

/* During on_head: the body comes in pieces and may be of any length; the deadline grows with it. */
void net_stream_body(net *n, uint64_t conn);
/* Whether nothing is read from the connection for now: its client has to wait. */
void net_pause(net *n, uint64_t conn, bool is_paused);
/* Sends a whole reply to the current request. */
void net_send_reply(net *n, uint64_t conn, const net_reply *reply);
/* Starts a reply of unknown length, pulled through on_writable. */
void net_begin_stream(net *n, uint64_t conn, int status, const char *content_type, const char *headers);
/* Asks for a call of on_writable. */
void net_want_write(net *n, uint64_t conn);
/* Ends a WebSocket with a close frame, after what is queued in lws. */
void net_close_socket(net *n, uint64_t conn, int code, const char *reason);
/* Closes the connection at once. */
void net_abort(net *n, uint64_t conn);
/* Stops accepting; open connections go on. */
void net_stop_listening(net *n);

#endif
