/* http_client: many HTTP requests at once on one thread, by libcurl's multi interface. HTTP/2 where
 * it is offered, connections are kept, certificates are verified. A redirect is not followed but told.
 *
 *     http_client *c = http_client_create();
 *     http_transfer *t = http_client_start(c, &(http_order){.url = "http://10.0.0.5:8000/v1/models"});
 *     http_client_poll(c, 1000);                          // again and again: calls on_head, on_data, on_end
 *     http_client_stop(c, t); http_client_destroy(c);
 *
 * Threads: everything on one thread, but http_client_wake, which ends a poll from any thread.
 * fetch_start (server/media/fetch.h) was called before.
 */
#ifndef PARLEY_SERVER_HTTP_CLIENT_H
#define PARLEY_SERVER_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct http_client http_client;
typedef struct http_transfer http_transfer;

typedef enum http_end {
    HTTP_DONE,        /* the reply is complete, whatever its status */
    HTTP_UNREACHABLE, /* no name, no connection (`why` says which): nothing was sent */
    HTTP_UNTRUSTED,   /* a certificate that does not verify: nothing was sent */
    HTTP_NO_TLS,      /* no TLS at the other end: nothing was sent */
    HTTP_BROKEN,      /* cut off, or no HTTP */
    HTTP_SILENT,      /* nothing came for silence_s, or not all within timeout_s */
    HTTP_STOPPED      /* a callback said so */
} http_end;

/* The head of a reply. Texts are valid during the call. */
typedef struct http_head {
    int status;
    const char *content_type; /* "" if there is none */
    const char *redirect;     /* where a redirect leads, as an absolute URL; NULL: nowhere */
    const char *error_code;   /* X-Error-Code, the word of a hub of models; NULL: none */
    const char *session;      /* Mcp-Session-Id; NULL: none */
    int64_t retry_after_s;    /* 0: not said */
    int64_t range_from;       /* of 206: the first byte that comes; -1: not said */
} http_head;

typedef struct http_order {
    const char *url;
    const char *unix_path; /* a socket file to connect to in place of the URL's host; NULL: none */
    const char *key;       /* Authorization: Bearer KEY; NULL: none */
    const char *body;      /* a JSON document to POST, which lives until the end; NULL: GET */
    size_t n_body;
    const char *method;         /* in place of GET or POST; NULL: as said */
    const char *accept;         /* what may come; NULL: after a POST an event stream */
    const char *const *headers; /* "Name: value", n_headers of them; copied */
    size_t n_headers;
    const char *ca_file; /* NULL: the system's certificates */
    const char *range;   /* "100-": bytes of the file, or NULL */
    bool uses_proxy;     /* the one of the environment */
    int connect_s, silence_s;
    int timeout_s;                                          /* for all of it; 0: none */
    bool (*on_head)(void *ctx, const http_head *head);      /* false ends the transfer */
    bool (*on_data)(void *ctx, const char *data, size_t n); /* false ends it */
    /* The last call of a transfer, which is gone then. why: a word for people, of HTTP_UNREACHABLE
     * and the like. */
    void (*on_end)(void *ctx, http_end end, const char *why);
    void *ctx;
} http_order;

/* NULL if out of memory. */
MUST_CHECK http_client *http_client_create(void);
/* Ends every transfer without a further call. NULL allowed. */
void http_client_destroy(http_client *c);

/* Begins a request; NULL if out of memory (on_end is not called). `order` is copied, its texts are not: they
 * live until the end. */
MUST_CHECK http_transfer *http_client_start(http_client *c, const http_order *order);
/* Ends a transfer at once, and its connection if it cannot be used again; no further call. Not from
 * inside a callback. */
void http_client_stop(http_client *c, http_transfer *t);

/* Waits at most so long for something to happen, and makes the calls of what did. */
void http_client_poll(http_client *c, int timeout_ms);
/* The same, also until one of n other descriptors can be read or, where `writes`, written. `ready` is set
 * for those that can. */
typedef struct http_other {
    int fd;
    bool writes, ready;
} http_other;
void http_client_poll_with(http_client *c, http_other *others, size_t n, int timeout_ms);
/* Whether two URLs have one scheme, host and port, so that what one may be told the other may. Any
 * thread. */
bool http_same_origin(const char *a, const char *b);

/* Whether no transfer is under way. */
bool http_client_is_idle(const http_client *c);

/* Any thread: a poll that waits, or the next one, returns at once. */
void http_client_wake(http_client *c);

#endif
