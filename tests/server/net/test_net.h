/* test_net.h: a server in time that is made up, with what it heard, and clients that are descriptors. One program file.
 *
 *     open_server(false);                              // on a socket file alone
 *     int fd = client(); say(fd, HEAD("GET", "/") "\r\n"); reply("yes"); pass(2);
 *     CHECK(strstr(heard(fd), "yes")); close(fd); net_close(server);
 */
#ifndef PARLEY_TESTS_SERVER_NET_TEST_NET_H
#define PARLEY_TESTS_SERVER_NET_TEST_NET_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/net/net.h"
#include "tests/folder.h"
#include "tests/server/made_up_time.h"

enum {
    HEAD_S = 10,
    BODY_S = 20,
    IDLE_S = 30,
    DISCARD_S = 2,
    SEND_S = 40,
    PING_S = 50,
    PONG_S = 7,
    RATE = 100
};
enum { SEEN_BYTES = 1 << 16, PIECE = 1 << 17, CLIENTS = 5, MUCH = 4 << 20 };

/* ---- the server ---- */

static net *server;
static size_t send_rate;
static struct ledger *memory; /* NULL: none */
static size_t max_inflight = (size_t)8 << 20;
static const char *const *origins;
static size_t n_origins;
static bool asks_late;                          /* for writing, though nothing more comes */
static bool pauses_at_close;                    /* which does nothing any more */
static bool is_plain;                           /* without the callbacks that may be left out */
static void (*head_seen)(const net_head *head); /* NULL: nobody looks */
static char folder[FOLDER_NAME], socket_file[100];
static struct {
    int requests, timers, half_closed, closed, done, opened, messages;
    int announced;             /* connections of which a request was taken */
    size_t body_bytes, pieces; /* of the last body; of all */
    size_t stream_left;        /* bytes that a stream has still to send */
    bool ends;                 /* ... and then its end */
    uint64_t conn;             /* of the last request, piece of a body or socket */
} at;

static bool on_head(void *ctx, uint64_t conn, const net_head *head, net_reply *refusal)
{
    static uint64_t last;
    (void)ctx;
    if (head_seen) {
        head_seen(head);
    }
    if (strcmp(head->path, "/no") == 0) {
        *refusal = (net_reply){.status = 403, .content_type = "text/plain", .body = "no", .body_bytes = 2};
        return false;
    }
    if (strcmp(head->path, "/pieces") == 0) {
        net_stream_body(server, conn);
    }
    at.announced += at.announced == 0 || conn != last;
    last = conn;
    return true;
}

static bool on_body(void *ctx, uint64_t conn, const void *data, size_t n, net_reply *refusal)
{
    (void)ctx, (void)data, (void)refusal;
    at.conn = conn;
    at.pieces += n;
    return true;
}

/* A request without a body is never answered by itself. */
static void on_request(void *ctx, uint64_t conn, bytes *body)
{
    (void)ctx;
    at.requests++;
    at.conn = conn;
    at.body_bytes = body->len;
}

static void on_open(void *ctx, uint64_t conn, bool extended)
{
    (void)ctx, (void)extended;
    at.opened++;
    at.conn = conn;
}

static void on_message(void *ctx, uint64_t conn, bytes *message)
{
    (void)ctx, (void)conn, (void)message;
    at.messages++;
}

static net_pull on_writable(void *ctx, uint64_t conn, bytes *out)
{
    char piece[PIECE];
    (void)ctx;
    const size_t n = at.stream_left < sizeof piece ? at.stream_left : sizeof piece;
    memset(piece, 'x', sizeof piece);
    bytes_append(out, piece, n);
    at.stream_left -= n;
    if (asks_late && n == 0) {
        net_want_write(server, conn);
    }
    return n ? NET_PULL_MORE : at.ends ? NET_PULL_END : NET_PULL_IDLE;
}

static void on_half_closed(void *ctx, uint64_t conn)
{
    (void)ctx, (void)conn;
    at.half_closed++;
}

static void on_done(void *ctx, uint64_t conn)
{
    (void)ctx, (void)conn;
    at.done++;
}

static void on_close(void *ctx, uint64_t conn)
{
    (void)ctx;
    at.closed++;
    if (pauses_at_close) {
        net_pause(server, conn, false);
        net_pause(server, conn, true);
    }
}

static char logged[256]; /* the last reply, as the access log has it */

static void on_sent(void *ctx, const net_sent *s)
{
    (void)ctx;
    CHECK(strncmp(s->id, "req_", 4) == 0 && s->id[4]);
    snprintf(logged, sizeof logged, "%s %s %d %.1f", s->method, s->path, s->status, s->ms);
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static void on_timer(void *ctx)
{
    (void)ctx;
    at.timers++;
}

static err_code try_open(bool is_tcp)
{
    const char *const hosts[] = {socket_file, "127.0.0.1"};
    const net_callbacks callbacks = {.on_head = on_head,
                                     .on_body = on_body,
                                     .on_request = on_request,
                                     .on_open = on_open,
                                     .on_message = on_message,
                                     .on_writable = on_writable,
                                     .on_half_closed = is_plain ? NULL : on_half_closed,
                                     .on_done = on_done,
                                     .on_close = on_close,
                                     .on_sent = is_plain ? NULL : on_sent,
                                     .on_wake = on_wake,
                                     .on_timer = on_timer};
    const net_options options = {.hosts = hosts,
                                 .n_hosts = is_tcp ? 2 : 1,
                                 .max_body = 1 << 20,
                                 .max_message = 1 << 16,
                                 .max_header = 8192,
                                 .max_inflight = max_inflight,
                                 .origins = origins,
                                 .n_origins = n_origins,
                                 .memory = memory,
                                 .max_connections = CLIENTS,
                                 .max_connections_per_address = 2,
                                 .header_timeout_s = HEAD_S,
                                 .body_timeout_s = BODY_S,
                                 .min_body_rate = RATE,
                                 .send_timeout_s = SEND_S,
                                 .send_rate = send_rate,
                                 .ws_ping_s = PING_S,
                                 .ws_pong_s = PONG_S};
    memset(&at, 0, sizeof at);
    return net_open(&server, &options, &callbacks, NULL);
}

static inline void open_server(bool is_tcp)
{
    CHECK_INT(try_open(is_tcp), ERR_OK);
}

static void pass(double seconds)
{
    made_up_until(made_up_ns + (int64_t)(seconds * 1e9));
    while (!made_up_is_over) {
        net_poll(server);
    }
}

/* ---- clients ---- */

static char seen[SEEN_BYTES]; /* what came since the last look */

/* One that was not accepted yet. */
static int caller(void)
{
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)net_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(file.sun_path, sizeof file.sun_path, "%s", socket_file + strlen("unix:"));
    const bool is_tcp = net_port(server) > 0;
    const int fd = socket(is_tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, is_tcp ? (void *)&address : (void *)&file, is_tcp ? sizeof address : sizeof file) == 0);
    return fd;
}

static inline int client(void)
{
    const int fd = caller();
    pass(0);
    return fd;
}

static inline void say(int fd, const char *text)
{
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    pass(0);
}

static inline void say_bytes(int fd, size_t n)
{
    static const char zeros[1 << 15];
    CHECK(send(fd, zeros, n, MSG_NOSIGNAL) == (ssize_t)n);
    pass(0);
}

/* Whether the server has closed it; what it said until then is in `seen`. */
static bool is_closed(int fd)
{
    size_t n = 0;
    ssize_t got;
    while ((got = recv(fd, seen + n, sizeof seen - 1 - n, MSG_DONTWAIT)) > 0) {
        n += (size_t)got;
    }
    seen[n] = '\0';
    return got == 0 || errno != EAGAIN;
}

static inline const char *heard(int fd)
{
    CHECK(!is_closed(fd));
    return seen;
}

/* It ends between a bit before `seconds` from now and a bit after that: it is looked at every half second. */
static inline void ends_after(int fd, double seconds, const char *last)
{
    pass(seconds - 0.1);
    CHECK(!is_closed(fd));
    CHECK_STR(seen, "");
    pass(0.7);
    CHECK(is_closed(fd) || last[0]);
    CHECK(last[0] ? strstr(seen, last) != NULL : !seen[0]);
    close(fd);
    pass(0);
}

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: h\r\n"

static inline void reply_bytes(const char *text, size_t n, bool lives)
{
    net_send_reply(
        server, at.conn,
        &(net_reply){
            .status = 200, .content_type = "text/plain", .body = text, .body_bytes = n, .body_lives = lives});
    pass(0);
}

static inline void reply(const char *text)
{
    reply_bytes(text, strlen(text), false);
}

#endif
