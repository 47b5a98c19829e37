/* made_up_server: other servers that run inside the waits of this program (made_up_time.h), on an address of this machine
 * or a socket file. What a server answers is one text, with signs in it: CUT, it hangs up; LATER, a second passes; SOON, two
 * milliseconds do; MUTE, it says nothing more.
 *
 *     const char *(*answer)(int server, const char *head, const char *body) = NULL;   // returns PLAIN("{}") and the like
 *     int port = made_up_listen(NULL);                // the first is server 0
 *     made_up_answer = answer; made_up_world = made_up_serve;
 *     made_up_close();
 */
#ifndef PARLEY_TESTS_SERVER_MADE_UP_SERVER_H
#define PARLEY_TESTS_SERVER_MADE_UP_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "tests/server/made_up_time.h"

#define CUT         "\1"
#define LATER       "\2"
#define MUTE        "\3"
#define SOON        "\4"
#define EVENTS_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define PLAIN_HEAD  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define PLAIN(text) PLAIN_HEAD text CUT

enum { MADE_UP_SERVERS = 4, MADE_UP_CLIENTS = 64 };

typedef struct made_up_client {
    int fd, server; /* fd 0: none */
    bytes in;
    char *said; /* the answer, and what of it comes next */
    const char *next;
    int64_t wait_ns; /* not before */
    bool is_mute;
} made_up_client;

static int made_up_listening[MADE_UP_SERVERS], made_up_n_servers;
static made_up_client made_up_clients[MADE_UP_CLIENTS];
static int made_up_gone; /* clients that hung up in the middle of an answer */
/* head: with its request line; NULL or "": it hangs up. The text is copied. */
static const char *(*made_up_answer)(int server, const char *head, const char *body);

/* Returns the port; path: a socket file instead. */
static inline int made_up_listen(const char *path)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    socklen_t n = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(file.sun_path, sizeof file.sun_path, "%s", path ? path : "");
    const int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int bound =
        path ? bind(fd, (void *)&file, sizeof file) : bind(fd, (void *)&address, sizeof address);
    CHECK(fd >= 0 && bound == 0 && listen(fd, 64) == 0 && made_up_n_servers < MADE_UP_SERVERS);
    made_up_listening[made_up_n_servers++] = fd;
    return !path && getsockname(fd, (void *)&address, &n) == 0 ? ntohs(address.sin_port) : 0;
}

static inline void made_up_drop(made_up_client *c)
{
    close(c->fd);
    free(c->said);
    bytes_deinit(&c->in);
    *c = (made_up_client){0};
}

static inline void made_up_close(void)
{
    for (int i = 0; i < MADE_UP_CLIENTS; i++) {
        if (made_up_clients[i].fd) {
            made_up_drop(&made_up_clients[i]);
        }
    }
    while (made_up_n_servers > 0) {
        close(made_up_listening[--made_up_n_servers]);
    }
}

/* Begins the answer to a request that is whole. */
static inline bool made_up_take(made_up_client *c)
{
    char *text = (char *)(uintptr_t)bytes_str(&c->in), *end = strstr(text, "\r\n\r\n");
    const char *length = end ? strstr(text, "Content-Length: ") : NULL;
    const size_t n = length && length < end ? strtoul(length + 16, NULL, 10) : 0;
    if (!end || c->in.len < (size_t)(end + 4 - text) + n) {
        return false;
    }
    *end = '\0';
    const char *answer = made_up_answer(c->server, text, end + 4);
    c->said = strdup(answer ? answer : "");
    c->next = c->said;
    bytes_clear(&c->in);
    return true;
}

/* Says what is due; whether there was something. */
static inline bool made_up_say(made_up_client *c)
{
    if (c->is_mute) {
        return false;
    }
    if (made_up_ns < c->wait_ns) {
        made_up_at(c->wait_ns);
        return false;
    }
    const size_t n = strcspn(c->next, CUT LATER MUTE SOON);
    const ssize_t sent = n ? send(c->fd, c->next, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (sent < 0 && errno == EAGAIN) {
        return false;
    }
    c->next += sent > 0 ? sent : 0;
    if (sent < 0 || *c->next == CUT[0] || !c->said[0]) {
        made_up_gone += sent < 0;
        made_up_drop(c);
    } else if (*c->next == LATER[0] || *c->next == SOON[0]) {
        c->wait_ns = made_up_ns + (*c->next == LATER[0] ? MADE_UP_S : MADE_UP_S / 500);
        c->next++;
    } else if (*c->next == MUTE[0]) {
        c->is_mute = true;
    } else if (!*c->next) { /* the next request on this connection */
        free(c->said);
        c->said = NULL;
    }
    return true;
}

static inline bool made_up_serve(void)
{
    bool moved = false;
    for (int i = 0; i < made_up_n_servers; i++) {
        int at = 0;
        while (at + 1 < MADE_UP_CLIENTS && made_up_clients[at].fd) {
            at++;
        }
        const int fd = made_up_clients[at].fd ? -1 : accept(made_up_listening[i], NULL, NULL);
        if (fd > 0) {
            made_up_clients[at] = (made_up_client){.fd = fd, .server = i, .in = bytes_empty(1 << 20)};
            moved = true;
        }
    }
    for (int i = 0; i < MADE_UP_CLIENTS; i++) {
        made_up_client *c = &made_up_clients[i];
        char piece[4096];
        if (!c->fd) {
            continue;
        }
        const ssize_t n = recv(c->fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n > 0) {
            bytes_append(&c->in, piece, (size_t)n);
            moved = true;
        } else if (n == 0) {
            made_up_gone += c->said != NULL;
            made_up_drop(c);
            moved = true;
            continue;
        }
        moved = (!c->said && made_up_take(c)) || moved;
        moved = (c->said && made_up_say(c)) || moved;
    }
    return moved;
}

#endif
