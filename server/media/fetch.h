/* fetch: the fetcher: one GET over HTTP or HTTPS, by libcurl, on the calling thread. Prep threads,
 * several at once.
 *
 *     fetch_start();                                          // once, before other threads
 *     fetch_target t; if (!fetch_parse(&t, url)) { return ERR_INVALID; }   // t.host: the host to ask
 *     fetch_reply reply; fetch_end how = fetch_get(&reply, &(fetch_order){.url = url});
 *     fetch_stop();
 *
 * It follows no redirect (reply.redirect says where one leads), uses no proxy, cookie, credential
 * or netrc, decodes nothing, and asks before it connects: may_connect sees the resolved address.
 */
#ifndef PARLEY_SERVER_MEDIA_FETCH_H
#define PARLEY_SERVER_MEDIA_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"

enum { FETCH_URL_MAX = 4096, FETCH_HOST_MAX = 256, FETCH_TYPE_MAX = 128 };

typedef struct fetch_target {
    bool is_secure;            /* https */
    bool is_short;             /* of memory to read it: it may be right */
    char host[FETCH_HOST_MAX]; /* lower case, an IPv6 address without brackets */
} fetch_target;

typedef enum fetch_end {
    FETCH_DONE,      /* status 200, all bytes were written */
    FETCH_REDIRECT,  /* reply.redirect */
    FETCH_STATUS,    /* another status */
    FETCH_REFUSED,   /* may_connect allowed no address */
    FETCH_TOO_LARGE, /* announced or sent more than max_bytes */
    FETCH_TIMEOUT,
    FETCH_CANCELLED,
    FETCH_UNWRITTEN, /* write failed */
    FETCH_FAILED     /* no name, no connection, no certificate, no HTTP, cut off */
} fetch_end;

typedef struct fetch_order {
    const char *url;
    int timeout_ms; /* for all of it */
    uint64_t max_bytes;
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    bool (*write)(void *ctx, const void *data, size_t n); /* false ends it */
    bool (*cancelled)(void *ctx);                         /* asked at least once a second */
    void *ctx;
} fetch_order;

typedef struct fetch_reply {
    int status;
    char redirect[FETCH_URL_MAX]; /* an absolute URL */
    char type[FETCH_TYPE_MAX];    /* Content-Type; "" if there is none */
} fetch_reply;

/* False if out of memory. */
MUST_CHECK bool fetch_start(void);
void fetch_stop(void);

/* False for what is no http or https URL, is too long, or holds a user or a password. */
MUST_CHECK bool fetch_parse(fetch_target *out, const char *url);

fetch_end fetch_get(fetch_reply *out, const fetch_order *order);

#endif
