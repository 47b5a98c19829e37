#include "server/net/net_unread.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* What the other side has taken of a stream in all, and what is on its way to it; false if that is
 * not known. */
static bool look(int fd, uint64_t sent, uint64_t *taken, uint64_t *waiting)
{
    struct tcp_info info;
    socklen_t n = sizeof info;
    int queued = 0;
    if (ioctl(fd, SIOCOUTQ, &queued) != 0 || queued < 0) {
        return false;
    }
    *waiting = (uint64_t)queued;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
        n >= offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) {
        *taken = info.tcpi_bytes_acked;
    } else {
        *taken = sent > *waiting ? sent - *waiting : 0; /* a socket file */
    }
    return true;
}

bool net_unread_look(net_unread *u, int fd, uint64_t sent, bool has_more, int64_t now_ns, int timeout_s,
                     size_t rate)
{
    uint64_t taken, waiting;
    if (!look(fd, sent, &taken, &waiting) || waiting == 0) {
        u->since_ns = 0;
        return false;
    }
    const int64_t passed_ns = now_ns - u->since_ns, timeout_ns = (int64_t)timeout_s * 1000000000;
    if (u->since_ns && passed_ns < timeout_ns) {
        return false;
    }
    const uint64_t share = rate > 0 ? (uint64_t)((double)rate * (double)passed_ns / 1e9) : 1;
    if (u->since_ns && taken < u->wanted && taken - u->taken < share) {
        return true;
    }
    *u = (net_unread){.since_ns = now_ns, .taken = taken, .wanted = has_more ? UINT64_MAX : taken + waiting};
    return false;
}
