#define _GNU_SOURCE /* strcasestr, struct ucred */
#include "server/local_server.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_S = 5, HOST_BYTES = 256, REQUEST_BYTES = 4096 };
#define REPLY_BYTES ((size_t)4 << 20)

/* The first host, as somebody on this machine reaches it. */
static void first_host(char *out, size_t cap, const char *hosts)
{
    snprintf(out, cap, "%.*s", (int)strcspn(hosts, ", "), hosts);
    if (strcmp(out, "0.0.0.0") == 0 || strcmp(out, "localhost") == 0) {
        snprintf(out, cap, "127.0.0.1");
    } else if (strcmp(out, "::") == 0) {
        snprintf(out, cap, "::1");
    }
}

static int connect_to(const struct sockaddr *address, socklen_t len)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0 ||
                    connect(fd, address, len) != 0)) {
        const int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

/* A connected socket, or -1 and errno. */
static int open_connection(const char *host, int64_t port)
{
    if (strncmp(host, "unix:", 5) == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        if (strlen(host + 5) >= sizeof address.sun_path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(address.sun_path, host + 5, strlen(host + 5));
        return connect_to((const struct sockaddr *)&address, sizeof address);
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *info = NULL;
    char service[24];
    snprintf(service, sizeof service, "%lld", (long long)port);
    if (getaddrinfo(host, service, &hints, &info) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = connect_to(info->ai_addr, info->ai_addrlen);
    const int error = errno;
    freeaddrinfo(info);
    errno = error;
    return fd;
}

/* Status and body out of what was received, which is as long as its head says; false: not yet. */
static bool read_reply(local_reply *out)
{
    const char *text = bytes_str(&out->body), *end = strstr(text, "\r\n\r\n");
    const char *length = end ? strcasestr(text, "\r\ncontent-length:") : NULL;
    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || !length || length > end) {
        return false;
    }
    const size_t head = (size_t)(end + 4 - text), wanted = (size_t)strtoull(length + 17, NULL, 10);
    if (out->body.len - head < wanted) {
        return false;
    }
    out->status = (int)strtol(text + 9, NULL, 10);
    bytes_consume(&out->body, head);
    return true;
}

bool local_server_get(local_reply *out, const local_address *at, const char *path, const char *key)
{
    char host[HOST_BYTES], piece[4096], request[REQUEST_BYTES];
    *out = (local_reply){.body = bytes_empty(REPLY_BYTES)};
    first_host(host, sizeof host, at->hosts);
    snprintf(out->where, sizeof out->where, strncmp(host, "unix:", 5) == 0 ? "%s" : "%s port %lld", host,
             (long long)at->port);
    out->fd = open_connection(host, at->port);
    if (out->fd < 0) {
        snprintf(out->why, sizeof out->why, "no server answers there (%s)", strerror(errno));
        return false;
    }
    const int length = snprintf(request, sizeof request, "GET %s%s HTTP/1.1\r\nHost: localhost\r\n%s%s%s\r\n",
                                at->prefix ? at->prefix : "", path, key ? "Authorization: Bearer " : "",
                                key ? key : "", key ? "\r\n" : "");
    ssize_t n = length < REQUEST_BYTES ? send(out->fd, request, (size_t)length, MSG_NOSIGNAL) : -1;
    while (n > 0 && !out->body.failed && !read_reply(out) &&
           (n = recv(out->fd, piece, sizeof piece, 0)) > 0) {
        bytes_append(&out->body, piece, (size_t)n);
    }
    if (!out->status) {
        snprintf(out->why, sizeof out->why, "%s",
                 out->body.len ? "no Parley server answers there" : "no answer");
    }
    return out->status != 0;
}

void local_reply_deinit(local_reply *r)
{
    bytes_deinit(&r->body);
    if (r->fd >= 0) {
        close(r->fd);
    }
    r->fd = -1;
}

/* ---- whose process it is ---- */

/* The port of an address; 0: it has none. */
static unsigned port_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)a)->sin_port)
           : a->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)a)->sin6_port)
                                      : 0;
}

/* The inode of the other end of a connection, in one of the kernel's tables; 0: not there. */
static uint64_t find_inode(const char *table, unsigned port, unsigned peer)
{
    char line[512];
    uint64_t found = 0, inode;
    unsigned from, to;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        if (sscanf(line, " %*[^:]: %*[^:]:%8x %*[^:]:%8x %*s %*s %*s %*s %*s %*s %" SCNu64, &from, &to,
                   &inode) == 3 &&
            from == port && to == peer) {
            found = inode;
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

static bool holds(const char *process, uint64_t inode)
{
    char folder[64], path[128], link[64], wanted[64];
    bool found = false;
    snprintf(folder, sizeof folder, "/proc/%.16s/fd", process);
    snprintf(wanted, sizeof wanted, "socket:[%" PRIu64 "]", inode);
    DIR *d = opendir(folder);
    for (const struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
        snprintf(path, sizeof path, "%s/%.16s", folder, e->d_name);
        const ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        found = strcmp(link, wanted) == 0;
    }
    if (d) {
        closedir(d);
    }
    return found;
}

pid_t local_server_process(const local_reply *r)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n_here = sizeof here, n_there = sizeof there;
    if (r->fd < 0 || getsockname(r->fd, (struct sockaddr *)&here, &n_here) != 0 ||
        getpeername(r->fd, (struct sockaddr *)&there, &n_there) != 0) {
        return 0;
    }
    if (there.ss_family == AF_UNIX) {
        struct ucred who = {0};
        socklen_t n = sizeof who;
        return getsockopt(r->fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.pid : 0;
    }
    uint64_t inode = find_inode("/proc/net/tcp", port_of(&there), port_of(&here));
    inode = inode ? inode : find_inode("/proc/net/tcp6", port_of(&there), port_of(&here));
    pid_t found = 0;
    DIR *d = inode ? opendir("/proc") : NULL;
    for (const struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && holds(e->d_name, inode)) {
            found = (pid_t)strtol(e->d_name, NULL, 10);
        }
    }
    if (d) {
        closedir(d);
    }
    return found;
}
