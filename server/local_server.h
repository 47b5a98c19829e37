/* local_server: a Parley of this machine, as `parley health`, `status` and `stop` speak to it. One
 * connection a request. Main thread.
 *
 *     local_reply r; local_address at = {.hosts = "127.0.0.1", .port = 8080};
 *     if (local_server_get(&r, &at, "/health", NULL)) { printf("%d %s", r.status, bytes_str(&r.body)); }
 *     local_reply_deinit(&r);
 */
#ifndef PARLEY_SERVER_LOCAL_SERVER_H
#define PARLEY_SERVER_LOCAL_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

enum { LOCAL_WHERE_MAX = 288 };

/* What its options say of it. */
typedef struct local_address {
    const char *hosts; /* of --host: the first counts */
    int64_t port;
    const char *prefix; /* of --api-prefix; NULL: none */
} local_address;

typedef struct local_reply {
    char where[LOCAL_WHERE_MAX]; /* "127.0.0.1 port 8080", for people */
    char why[128];               /* where there was no reply */
    int status;                  /* 0: no HTTP */
    bytes body;
    int fd; /* the connection, until local_reply_deinit */
} local_reply;

/* GETs a path; key: a bearer, or NULL. False if nothing answers:
 * then out->why says why. */
bool local_server_get(local_reply *out, const local_address *at, const char *path, const char *key);
void local_reply_deinit(local_reply *r);

/* The process at the other end of the connection; 0 if this user cannot see it. */
pid_t local_server_process(const local_reply *r);

#endif
