#define _GNU_SOURCE /* accept4 */
#include "server/net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"

enum { BACKLOG = 512, FIRST_INHERITED = 3, PROBE_S = 30, PROBE_GAP_S = 10, PROBES = 3, REFUSED_READS = 16 };
/* What the system holds for a client: as much may be on its way, so that a distant one is served at full speed, and so
 * much more may wait for one that does not read. Left alone these are megabytes. */
enum { SEND_BUFFER_BYTES = 256 << 10, UNSENT_BYTES = 32 << 10 };

static const char UNIX_PREFIX[] = "unix:";

/* ---- what a socket is ---- */

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    }
    return a->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static int port_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)a)->sin_port)
           : a->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)a)->sin6_port)
                                      : 0;
}

static void write_address(char out[LISTEN_PEER_MAX], const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, out, LISTEN_PEER_MAX);
    } else if (a->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, out, LISTEN_PEER_MAX);
    }
}

/* Adds an open, listening socket. */
static void add(listeners *l, int fd)
{
    listener *item = &l->items[l->n++];
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    *item = (listener){.fd = fd};
    if (getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
        item->is_unix = a.ss_family == AF_UNIX;
        item->is_local = item->is_unix || is_loopback(&a);
        l->port = l->port ? l->port : port_of(&a);
    }
}

/* ---- opening ---- */

static void begin(listeners *l)
{
    *l = (listeners){.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

static err_code explain(err_detail *detail, const char *host, int port, int error)
{
    if (error == EADDRINUSE) {
        return err_set(detail, ERR_BUSY, "port %d is in use; try --port %d", port, port + 1);
    }
    if (error == EADDRNOTAVAIL) {
        return err_set(detail, ERR_INVALID, "%s is not an address of this machine; try --host 127.0.0.1",
                       host);
    }
    return err_set(detail, ERR_IO, "cannot listen on %s port %d: %s", host, port, strerror(error));
}

static err_code open_address(listeners *l, const char *host, int port, bool v6_only, err_detail *detail)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *info = NULL;
    char service[16];
    const int on = 1;
    snprintf(service, sizeof service, "%d", port);
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (getaddrinfo(numeric, service, &hints, &info) != 0) {
        return err_set(detail, ERR_INVALID,
                       "host '%s' is not an IP address; try --host 127.0.0.1, or unix:/path", host);
    }
    err_code err = ERR_OK;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (v6_only && info->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        err = explain(detail, host, port, errno);
        file_close(fd);
    } else {
        add(l, fd);
    }
    freeaddrinfo(info);
    return err;
}

/* A socket file whose server is gone refuses to connect. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                   errno == ECONNREFUSED;
    file_close(fd);
    return refused;
}

static err_code open_file(listeners *l, const char *path, err_detail *detail)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    if (path[0] != '/' || len >= sizeof address.sun_path) {
        return err_set(detail, ERR_INVALID, "unix: needs a path from the root of at most %zu characters",
                       sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, len + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && is_stale(&address)) {
        unlink(path);
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const int error = errno;
        file_close(fd);
        return error == EADDRINUSE
                   ? err_set(detail, ERR_BUSY, "%s is in use; another server listens there", path)
                   : err_set(detail, ERR_INVALID, "cannot listen on %s: %s", path, strerror(error));
    }
    if (listen(fd, BACKLOG) != 0) {
        close(fd);
        return err_set(detail, ERR_IO, "cannot listen on %s: %s", path, strerror(errno));
    }
    add(l, fd);
    memcpy(l->items[l->n - 1].path, path, len + 1);
    return ERR_OK;
}

/* Whether this address is one that is listened on already, or of all addresses of its kind. */
static bool overlaps(const listeners *l, const char *host, int port)
{
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    const char *all = strchr(numeric, ':') ? "::" : "0.0.0.0";
    for (size_t i = 0; i < l->n; i++) {
        struct sockaddr_storage a = {0};
        socklen_t len = sizeof a;
        char name[LISTEN_PEER_MAX] = "";
        if (l->items[i].is_unix || getsockname(l->items[i].fd, (struct sockaddr *)&a, &len) != 0 ||
            port_of(&a) != port || (a.ss_family == AF_INET6) != (strchr(numeric, ':') != NULL)) {
            continue;
        }
        write_address(name, &a);
        if (strcmp(name, numeric) == 0 || strcmp(name, all) == 0 || strcmp(numeric, all) == 0) {
            return true;
        }
    }
    return false;
}

err_code listeners_open(listeners *l, const char *const *hosts, size_t n_hosts, int port, err_detail *detail)
{
    begin(l);
    err_code err = ERR_OK;
    if (n_hosts == 0 || n_hosts > LISTENERS_MAX) {
        err = err_set(detail, ERR_INVALID, "--host takes 1 to %d addresses", LISTENERS_MAX);
    }
    for (size_t i = 0; i < n_hosts && err == ERR_OK; i++) {
        const size_t prefix = sizeof UNIX_PREFIX - 1;
        const int at = port ? port : l->port;
        if (strncmp(hosts[i], UNIX_PREFIX, prefix) == 0) {
            err = open_file(l, hosts[i] + prefix, detail);
        } else if (overlaps(l, hosts[i], at)) {
            err =
                err_set(detail, ERR_INVALID,
                        "--host %s overlaps another --host (0.0.0.0 and :: are all addresses); leave one out",
                        hosts[i]);
        } else {
            err = open_address(l, hosts[i], at, n_hosts > 1, detail);
        }
    }
    if (err != ERR_OK) {
        listeners_close(l);
    }
    return err;
}

err_code listeners_inherit(listeners *l, err_detail *detail)
{
    begin(l);
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    const long n = pid && count && strtol(pid, NULL, 10) == (long)getpid() ? strtol(count, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (n < 0 || n > LISTENERS_MAX) {
        return err_set(detail, ERR_INVALID,
                       "the service manager hands over %ld sockets; at most %d are taken", n, LISTENERS_MAX);
    }
    for (int fd = FIRST_INHERITED; fd < FIRST_INHERITED + (int)n; fd++) {
        int listens = 0;
        socklen_t len = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || !listens ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) != 0) {
            listeners_close(l);
            return err_set(detail, ERR_INVALID,
                           "what the service manager hands over is no listening stream socket");
        }
        add(l, fd);
    }
    return ERR_OK;
}

/* ---- in use ---- */

/* Without a free descriptor a waiting connection would wake the loop forever: it is accepted with
 * the spare descriptor, told why, and closed. What it has sent by now is read first: closing over
 * unread bytes is a reset, which may overtake the reply. */
static void refuse_one(listeners *l, int listening_fd)
{
    static const char BODY[] =
        "{\"error\":{\"message\":\"the server has no descriptor left for this connection\","
        "\"type\":\"unavailable_error\",\"param\":null,\"code\":\"no_descriptors\"}}";
    char text[4096];
    if (l->spare_fd >= 0) {
        close(l->spare_fd);
        const int fd = accept4(listening_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            for (int i = 0; i < REFUSED_READS && recv(fd, text, sizeof text, 0) > 0; i++) {
            }
            const int n = snprintf(text, sizeof text,
                                   "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                                   "Content-Length: %zu\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
                                   sizeof BODY - 1, BODY);
            (void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
            (void)shutdown(fd, SHUT_WR);
            close(fd);
        }
    }
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int listeners_accept(listeners *l, size_t i, char peer[LISTEN_PEER_MAX])
{
    const listener *from = &l->items[i];
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    int fd = accept4(from->fd, (struct sockaddr *)&a, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) {
            refuse_one(l, from->fd);
        }
        return -1;
    }
    snprintf(peer, LISTEN_PEER_MAX, "unix");
    write_address(peer, &a);
    if (!from->is_unix) {
        /* Failures are ignored: these options concern latency and vanished peers, not correctness.
         * */
        const int on = 1, idle = PROBE_S, gap = PROBE_GAP_S, n = PROBES, unread = SEND_BUFFER_BYTES,
                  unsent = UNSENT_BYTES;
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof unread);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap, sizeof gap);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n, sizeof n);
    }
    return fd;
}

bool listeners_are_local(const listeners *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!l->items[i].is_local) {
            return false;
        }
    }
    return true;
}

void listeners_close(listeners *l)
{
    for (size_t i = 0; i < l->n; i++) {
        listener *item = &l->items[i];
        if (item->path[0]) {
            unlink(item->path);
        }
        file_close(item->fd);
    }
    file_close(l->spare_fd);
    *l = (listeners){.spare_fd = -1};
}
