/* health: asks the server of this machine whether it is ready, as a container's health check does.
 * The address is the one that `parley serve` would take: the same options, environment and config
 * file.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "server/cli/commands.h"

enum { TIMEOUT_S = 5, REPLY_BYTES = 16384, HOST_BYTES = 256 };

static int fail(const char *where, const char *what)
{
    fprintf(stderr, "parley: %s: %s\n", where, what);
    return 1;
}

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

int command_health(const options *o)
{
    char host[HOST_BYTES], where[HOST_BYTES + 24], piece[4096], request[4096];
    first_host(host, sizeof host, o->host);
    snprintf(where, sizeof where, strncmp(host, "unix:", 5) == 0 ? "%s" : "%s port %lld", host,
             (long long)o->port);
    int fd = open_connection(host, o->port);
    if (fd < 0) {
        return fail(where, strerror(errno));
    }
    bytes reply = bytes_empty(REPLY_BYTES);
    snprintf(request, sizeof request,
             "GET %s/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             o->api_prefix ? o->api_prefix : "");
    ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);
    while (n > 0 && !reply.failed && (n = recv(fd, piece, sizeof piece, 0)) > 0) {
        bytes_append(&reply, piece, (size_t)n);
    }
    close(fd);
    const char *text = bytes_str(&reply), *body = strstr(text, "\r\n\r\n");
    int code = 1;
    if (strncmp(text, "HTTP/1.1 200 ", 13) == 0) {
        code = 0;
        puts("ok");
    } else if (strncmp(text, "HTTP/1.1 503 ", 13) == 0 && body) {
        const char *message = strstr(body, "\"message\":\"");
        message = message ? message + strlen("\"message\":\"") : "not ready";
        fprintf(stderr, "parley: %s: %.*s\n", where, (int)strcspn(message, "\""), message);
    } else {
        fail(where, reply.len ? "no Parley server answers there" : "no answer");
    }
    bytes_deinit(&reply);
    return code;
}
