/* net_unread: whether a client takes what is sent to it. Asked again and again while something may
 * be on its way; the kernel knows what the other side has acknowledged, so neither its buffers nor
 * ours count as read. Embedded by value.
 *
 *     net_unread u = {0};
 *     bool stalled = net_unread_look(&u, fd, sent, has_more, clock_ns(), 30, 4096);     // every half second
 *
 * A client with nothing on its way is never at fault. As long as something is, every timeout_s
 * seconds it must have taken what was on its way when they began, or rate bytes for each of them.
 */
#ifndef PARLEY_SERVER_NET_NET_UNREAD_H
#define PARLEY_SERVER_NET_NET_UNREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct net_unread {
    int64_t since_ns; /* 0: nothing is on its way */
    uint64_t taken;   /* bytes, then */
    uint64_t wanted;  /* what was on its way then ends there; UINT64_MAX: more waited behind it */
} net_unread;

/* sent: bytes handed to the socket so far; has_more: more wait for room in it. rate 0: any. True if
 * the client did not take its share; never for a socket whose state the kernel does not tell. */
bool net_unread_look(net_unread *u, int fd, uint64_t sent, bool has_more, int64_t now_ns, int timeout_s,
                     size_t rate);

#endif
