/* remote_get: one file of another host, within the hosts that rules allow. Redirects are followed here, so
 * that each host on the way is checked as the first was. The calling thread waits; constant settings.
 *
 *     remote_order order = {.url = "https://example.org/a.png"};     // and which rules, how long, how much
 *     remote_reply reply; remote_end end = remote_get(&reply, &order);    // reply.host: whom it was about
 *
 * fetch_start (server/media/fetch.h) was called before.
 */
#ifndef PARLEY_SERVER_MEDIA_REMOTE_GET_H
#define PARLEY_SERVER_MEDIA_REMOTE_GET_H

#include "server/media/fetch.h"

typedef enum remote_end {
    REMOTE_DONE,       /* status 200, all bytes were written */
    REMOTE_NO_URL,     /* no http or https URL, or one with a password */
    REMOTE_NO_RULE,    /* no rule names the host */
    REMOTE_INSECURE,   /* an https address leads to one without encryption */
    REMOTE_NOT_PUBLIC, /* the host is at an address that the rules do not allow */
    REMOTE_STATUS,     /* another status */
    REMOTE_HOPS,       /* more than LIMIT_REMOTE_HOPS redirects */
    REMOTE_TOO_LARGE,
    REMOTE_TIMEOUT,
    REMOTE_CANCELLED,
    REMOTE_UNWRITTEN, /* write failed */
    REMOTE_FAILED     /* no name, no connection, no certificate, no HTTP, cut off */
} remote_end;

typedef struct remote_order {
    const char *const *rules; /* of remote_host.h */
    size_t n_rules;
    const char *url;
    double end_ms; /* by clock_ms: for all of it */
    uint64_t max_bytes;
    bool (*write)(void *ctx, const void *data, size_t n); /* false ends it */
    bool (*cancelled)(void *ctx);                         /* asked at least once a second */
    void *ctx;
} remote_order;

typedef struct remote_reply {
    int status;
    char host[FETCH_HOST_MAX]; /* the last one that was asked, or would have been */
    char url[FETCH_URL_MAX];   /* likewise */
    char type[FETCH_TYPE_MAX]; /* Content-Type; "" if there is none */
} remote_reply;

remote_end remote_get(remote_reply *out, const remote_order *order);

/* The part that asks nobody: REMOTE_DONE if the URL may be fetched. host: FETCH_HOST_MAX bytes. */
remote_end remote_check(const char *const *rules, size_t n_rules, const char *url, char *host);

#endif
