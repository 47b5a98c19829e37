/* listen: opens the listening sockets: addresses of this machine, a socket file, or sockets passed
 * by the service manager. Loop thread; plain descriptors, from which net accepts.
 *
 *     listeners l; err = listeners_open(&l, hosts, n_hosts, port, &detail);
 *     int fd = listeners_accept(&l, 0, peer);
 *     listeners_close(&l);      // also after an error, and again: nothing happens then
 */
#ifndef PARLEY_SERVER_NET_LISTEN_H
#define PARLEY_SERVER_NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { LISTENERS_MAX = 8, LISTEN_PATH_MAX = 108, LISTEN_PEER_MAX = 48 };

typedef struct listener {
    int fd;                     /* -1: closed */
    bool is_unix;               /* a file: whoever may write to it may connect */
    bool is_local;              /* no other machine reaches it */
    char path[LISTEN_PATH_MAX]; /* of a socket file made here, else "" */
} listener;

typedef struct listeners {
    listener items[LISTENERS_MAX];
    size_t n;
    int port; /* of the first that has one; 0: none */
    /* reserve descriptor, closed briefly to accept and drop a connection when descriptors run
     * out */
    int spare_fd;
} listeners;

/* Opens one for each host: an IP address, "localhost" (127.0.0.1) or "unix:/path". Port 0 is any
 * free one, the same for all hosts. A socket file that nobody listens on any more is replaced.
 * ERR_BUSY if an address is taken, ERR_INVALID for a bad one, ERR_IO; then nothing is open. */
MUST_CHECK err_code listeners_open(listeners *l, const char *const *hosts, size_t n_hosts, int port,
                                   err_detail *detail);

/* Takes over the sockets that systemd opened for this process ($LISTEN_FDS); n is 0 if there are
 * none. The variables are removed from the environment. ERR_INVALID if one of them is not a
 * listening stream socket. */
MUST_CHECK err_code listeners_inherit(listeners *l, err_detail *detail);

/* A new connection of item i, not blocking, and in peer who it is ("unix" for a file); -1 if there
 * is none. */
int listeners_accept(listeners *l, size_t i, char peer[LISTEN_PEER_MAX]);

/* True if no other machine can reach any of them. */
bool listeners_are_local(const listeners *l);

/* Closes what is open and removes our socket files. */
void listeners_close(listeners *l);

#endif
