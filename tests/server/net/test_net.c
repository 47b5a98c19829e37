/* net: what the clock does to connections, in time that is made up: heads and bodies that do not come, clients that do not
 * read or are silent, the timer; and clients that send no more, limits of connections. */
#define _GNU_SOURCE /* memmem */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/net/net_unread.h"
#include "tests/said.h"
#include "tests/server/net/test_net.h"

/* ---- tests ---- */

static void test_heads(void)
{
    ends_after(client(), HEAD_S, ""); /* says nothing */
    int fd = client();
    pass(5);
    say(fd, "GET / HT"); /* gives it no more time */
    ends_after(fd, HEAD_S - 5, "HTTP/1.1 408 Request Timeout");

    fd = client();
    say(fd, HEAD("GET", "/") "\r\n");
    CHECK_INT(at.requests, 1);
    pass(200); /* an answer may take as long as it wants */
    reply("yes");
    CHECK_INT(at.done, 1);
    CHECK(strstr(heard(fd), "\r\n\r\nyes"));
    pass(20);
    say(fd, "G"); /* from the first byte on, the next head has its time */
    ends_after(fd, HEAD_S, "header_timeout");

    fd = client();
    say(fd, HEAD("GET", "/") "\r\n" HEAD("GET", "/2")); /* and one that came already, from the reply on */
    pass(200);
    reply("yes");
    CHECK(strstr(heard(fd), "yes"));
    ends_after(fd, HEAD_S, "header_timeout");

    fd = client();
    say(fd, HEAD("GET", "/") "\r\n");
    reply("yes");
    (void)heard(fd);
    ends_after(fd, IDLE_S, "");

    fd = caller(); /* whatever descriptor is the lowest that is free */
    close(STDIN_FILENO);
    pass(0);
    const int before = at.requests;
    say(fd, HEAD("GET", "/") "\r\n");
    CHECK_INT(at.requests, before + 1);
    close(fd);
    pass(1);
    CHECK_INT(open("/dev/null", O_RDONLY), STDIN_FILENO);
}

/* What the access log hears: from the head on, also of one that cannot be read. */
static void test_sent(void)
{
    int fd = client();
    pass(1);
    say(fd, HEAD("GET", "/a") "\r\n");
    pass(1.5);
    reply("yes");
    CHECK_HAS(heard(fd), "yes");
    CHECK_STR(logged, "GET /a 200 1500.0");
    say(fd, HEAD("DELETE", "/b%20c?d") "\r\n");
    reply("no");
    CHECK_HAS(heard(fd), "no");
    CHECK_STR(logged, "DELETE /b%20c 200 0.0");
    say(fd, "nonsense\r\n\r\n");
    CHECK(is_closed(fd));
    CHECK_HAS(seen, "400 Bad Request");
    CHECK_STR(logged, "- - 400 0.0");
    close(fd);
    pass(1);
}

static void test_bodies(void)
{
    int fd = client();
    say(fd, HEAD("POST", "/") "Content-Length: 1000000\r\n\r\n");
    for (int i = 0; i < BODY_S - 1; i++) {
        say_bytes(fd, 2 * RATE);
        pass(0.99);
        CHECK_STR(heard(fd), "");
    }
    pass(0.05);
    ends_after(fd, 1.05, "body_timeout");

    fd = client(); /* too slow: looked at once its first seconds are over */
    say(fd, HEAD("POST", "/") "Content-Length: 1000000\r\n\r\n");
    say_bytes(fd, 5 * RATE);
    ends_after(fd, 10, "body_timeout");
    fd = client();
    say(fd, HEAD("POST", "/") "Content-Length: 1000000\r\n\r\n");
    ends_after(fd, 5, "body_timeout");

    fd = client(); /* what is handed up in pieces has time for its length at 16384 bytes a second */
    say(fd, HEAD("POST", "/pieces") "Content-Length: 163840\r\n\r\n");
    say_bytes(fd, 1);
    CHECK_INT(at.pieces, 1);
    ends_after(fd, BODY_S + 10, "body_timeout");
    fd = client(); /* or for what has come, where nobody tells the length */
    say(fd, HEAD("POST", "/pieces") "Transfer-Encoding: chunked\r\n\r\n");
    say(fd, "8000\r\n");
    say_bytes(fd, 0x8000);
    say(fd, "\r\n8000\r\n");
    say_bytes(fd, 0x8000);
    ends_after(fd, BODY_S + 4, "body_timeout");
    fd = client(); /* which is no reason to wait for a body that is gathered */
    say(fd, HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n8000\r\n");
    say_bytes(fd, 0x8000);
    ends_after(fd, BODY_S, "body_timeout");

    fd = client();
    const int before = at.requests;
    say(fd, HEAD("POST", "/") "Content-Length: 4\r\n\r\nab");
    pass(4);
    CHECK_INT(at.requests, before);
    say(fd, "cd");
    CHECK_INT(at.requests, before + 1);
    CHECK_INT(at.body_bytes, 4);
    pass(100); /* it is whole: nothing of it is waited for */
    CHECK_STR(heard(fd), "");
    close(fd);
    pass(1);
}

/* A client that still sends when it is refused: it gets the refusal, and some time to hear it. */
static void test_discard(void)
{
    int fd = client();
    say(fd, HEAD("POST", "/no") "Content-Length: 100000\r\n\r\n");
    CHECK(recv(fd, seen, sizeof seen, MSG_DONTWAIT) > 0 && strstr(seen, "HTTP/1.1 403 Forbidden"));
    CHECK(recv(fd, seen, sizeof seen, MSG_DONTWAIT) == 0);
    say_bytes(fd, 20000);
    pass(DISCARD_S - 0.1);
    say_bytes(fd, 1);
    pass(0.7);
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
    close(fd);
}

/* The program had no processor: nobody else is to blame. */
static void test_late(void)
{
    int fd = client();
    say(fd, "GET / HT");
    pass(1);
    made_up_ns += 15 * MADE_UP_S;
    pass(0.6);
    CHECK_STR(heard(fd), "");
    ends_after(fd, HEAD_S - 2.1, "header_timeout"); /* between two looks nobody knows */

    fd = client(); /* what has come meanwhile is read first */
    say(fd, "GET / HT");
    pass(HEAD_S - 0.3);
    CHECK(send(fd, "TP/1.1\r\nHost: h\r\n\r\n", 19, MSG_NOSIGNAL) == 19);
    made_up_ns += MADE_UP_S * 8 / 10; /* which is not late yet */
    const int before = at.requests;
    pass(1);
    CHECK_INT(at.requests, before + 1);
    close(fd);
    pass(1);
    fd = client(); /* of a body, too, and behind a reply */
    say(fd, HEAD("POST", "/") "Content-Length: 9000\r\n\r\n");
    say_bytes(fd, 8999);
    pass(BODY_S - 0.3);
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
    made_up_ns += MADE_UP_S * 8 / 10;
    pass(1);
    reply("yes");
    pass(IDLE_S - 0.3);
    CHECK(send(fd, HEAD("GET", "/") "\r\n", strlen(HEAD("GET", "/") "\r\n"), MSG_NOSIGNAL) > 0);
    made_up_ns += MADE_UP_S * 8 / 10;
    pass(1);
    CHECK_INT(at.requests, before + 3);
    close(fd);
    pass(1);
    fd = client(); /* half a second more than usual is not late: it counts */
    say(fd, "GET / HT");
    for (int i = 0; i < 10; i++) {
        pass(0.01);
        made_up_ns += MADE_UP_S * 99 / 100;
    }
    pass(1.2);
    (void)is_closed(fd);
    CHECK(strstr(seen, "header_timeout"));
    close(fd);
    pass(1);
}

static void test_timer(void)
{
    const int before = at.timers;
    net_set_timer(server, 100);
    net_set_timer(server, 5000); /* the earlier one stays */
    pass(0.09);
    CHECK_INT(at.timers, before);
    pass(0.02);
    CHECK_INT(at.timers, before + 1);
    pass(10);
    CHECK_INT(at.timers, before + 1);
    net_set_timer(server, 5000);
    net_set_timer(server, 100);
    pass(0.11);
    CHECK_INT(at.timers, before + 2);
    net_set_timer(server, 200); /* it is the only one now */
    pass(0.21);
    CHECK_INT(at.timers, before + 3);
    pass(10);
    CHECK_INT(at.timers, before + 3);
}

static void test_half_closed(void)
{
    int fd = client(); /* it may wait for its answer */
    say(fd, HEAD("GET", "/") "\r\n");
    shutdown(fd, SHUT_WR);
    pass(1);
    CHECK_STR(heard(fd), "HTTP/1.1 100 Continue\r\n\r\n"); /* who has left would not take that */
    pass(3);
    CHECK_STR(heard(fd), "");
    reply("yes");
    pass(1);
    (void)is_closed(fd);
    CHECK(strstr(seen, "\r\n\r\nyes"));
    close(fd);
    pass(1);

    int closed = at.closed;
    fd = client();
    say(fd, "GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    shutdown(fd, SHUT_WR);
    pass(1);
    CHECK(is_closed(fd)); /* there is no word for asking it */
    CHECK_INT(at.closed, closed + 1);
    close(fd);

    fd = client();
    closed = at.closed;
    say(fd, HEAD("GET", "/") "\r\n");
    net_begin_stream(server, at.conn, 200, "text/plain", NULL);
    pass(1);
    CHECK_INT(at.half_closed, 0);
    shutdown(fd, SHUT_WR);
    pass(3);
    CHECK_INT(at.half_closed, 1);
    CHECK_INT(at.closed, closed);
    close(fd); /* it is written to, and that says that it is gone */
    at.stream_left = PIECE;
    net_want_write(server, at.conn);
    pass(1);
    CHECK_INT(at.closed, closed + 1);
    at.stream_left = 0;

    fd = client();
    closed = at.closed;
    say(fd, HEAD("GET", "/") "\r\n");
    close(fd);
    pass(1);
    CHECK_INT(at.closed, closed + 1);
}

static void stream(int fd, size_t n, bool ends)
{
    say(fd, HEAD("GET", "/") "\r\n");
    at.stream_left = n;
    at.ends = ends;
    net_begin_stream(server, at.conn, 200, "text/plain", NULL);
    pass(0);
}

static int begin_stream(size_t n)
{
    const int fd = client();
    stream(fd, n, true);
    return fd;
}

static void test_unread(void)
{
    const int closed = at.closed;
    int fd = begin_stream((size_t)64 << 20);
    pass(SEND_S - 1);
    CHECK_INT(at.closed, closed);
    CHECK(net_is_sending(server));
    pass(2);
    CHECK_INT(at.closed, closed + 1);
    CHECK(!net_is_sending(server));
    close(fd);

    fd = begin_stream((size_t)64 << 20); /* who takes something has as long again */
    for (int i = 0; i < 4; i++) {
        pass(SEND_S - 1);
        CHECK(recv(fd, seen, sizeof seen, MSG_DONTWAIT) > 0);
        pass(0);
    }
    CHECK_INT(at.closed, closed + 1);
    close(fd);
    pass(1);
    CHECK_INT(at.closed, closed + 2);

    fd = begin_stream(1000); /* all of it is taken: nothing is on its way */
    CHECK(strstr(heard(fd), "0\r\n\r\n"));
    say(fd, HEAD("GET", "/") "\r\n");
    pass(4 * SEND_S);
    CHECK_INT(at.closed, closed + 2);
    close(fd);
    pass(1);
    at.stream_left = 0;
}

/* How much must be taken by when. */
static void test_share(void)
{
    int pair[2], size = 1 << 16;
    static const char data[1 << 14];
    const int64_t begin = made_up_ns;
    net_unread u = {0};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    CHECK(!net_unread_look(&u, pair[0], 0, false, begin, 10, 100));
    CHECK_INT(u.since_ns, 0);
    CHECK(send(pair[0], data, sizeof data, 0) == sizeof data);
    const uint64_t sent = 1 << 20; /* more than what is on its way takes of the system */
    CHECK(!net_unread_look(&u, pair[0], sent, true, begin, 10, 100));
    CHECK_INT(u.since_ns, begin);
    CHECK(u.wanted == UINT64_MAX);
    CHECK(!net_unread_look(&u, pair[0], sent, true, begin + 10 * MADE_UP_S - 1, 10, 100));
    net_unread other = u;
    CHECK(net_unread_look(&other, pair[0], sent, true, begin + 10 * MADE_UP_S, 10,
                          100));                    /* nothing was taken */
    for (int share = 999; share <= 1000; share++) { /* of 10 s at 100 bytes each */
        other = u;
        CHECK_INT(
            net_unread_look(&other, pair[0], sent + (uint64_t)share, true, begin + 10 * MADE_UP_S, 10, 100),
            share < 1000);
    }
    CHECK_INT(other.since_ns, begin + 10 * MADE_UP_S); /* the next seconds count anew */
    for (size_t rate = 1; rate <= 7; rate++) {         /* the least there can be */
        other = u;
        CHECK(net_unread_look(&other, pair[0], sent + 10 * rate - 1, true, begin + 10 * MADE_UP_S, 10, rate));
    }
    other = u;
    CHECK(!net_unread_look(&other, pair[0], sent + 1, true, begin + 10 * MADE_UP_S, 10, 0)); /* any rate */
    other = u;
    CHECK(net_unread_look(&other, pair[0], sent, true, begin + 10 * MADE_UP_S, 10, 0));
    u = (net_unread){0}; /* without more behind it, all that was on its way is as good */
    CHECK(!net_unread_look(&u, pair[0], sent, false, begin, 10, 1 << 20));
    CHECK(u.wanted > u.taken && u.wanted < UINT64_MAX);
    CHECK(!net_unread_look(&u, pair[0], sent + (u.wanted - u.taken), true, begin + 11 * MADE_UP_S, 10,
                           1 << 20));
    CHECK(recv(pair[1], seen, sizeof data, 0) == sizeof data);
    CHECK(!net_unread_look(&u, pair[0], sent, true, begin + 99 * MADE_UP_S, 10, 100));
    CHECK_INT(u.since_ns, 0);
    CHECK(!net_unread_look(&u, -1, sent, true, begin, 10, 100)); /* the kernel does not tell */
    close(pair[0]);
    close(pair[1]);
}

static const char HI[] = {(char)0x81, (char)0x82, 1, 1, 1, 1, 'i', 'h', '\0'};

#define UPGRADE                                                                                              \
    HEAD("GET", "/")                                                                                         \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"                             \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static int open_socket_of(int fd)
{
    const int before = at.opened;
    say(fd, UPGRADE);
    CHECK_INT(at.opened, before + 1);
    CHECK(strncmp(heard(fd), "HTTP/1.1 101", 12) == 0);
    return fd;
}

static int open_socket(void)
{
    return open_socket_of(client());
}

/* The second descriptor of a connection that becomes a WebSocket: the lowest that is free, or there is none. */
static void test_upgrade(void)
{
    int fd = caller();
    struct rlimit was, full;
    pass(0);
    close(STDIN_FILENO);
    open_socket_of(fd);
    close(fd);
    pass(1);
    CHECK_INT(open("/dev/null", O_RDONLY), STDIN_FILENO);
    fd = client();
    CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
    full = was;
    full.rlim_cur = (rlim_t)dup(fd); /* which nobody has from now on */
    close((int)full.rlim_cur);
    CHECK(setrlimit(RLIMIT_NOFILE, &full) == 0);
    say(fd, UPGRADE);
    CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CHECK(is_closed(fd) && !seen[0]);
    close(fd);
    pass(1);
}

static void test_sockets(void)
{
    static const char PONG[] = {(char)0x8a, (char)0x80, 1, 1, 1, 1, '\0'};
    int fd = open_socket();
    const int closed = at.closed;
    for (int i = 0; i < 3; i++) {
        pass(PING_S - 2);
        CHECK_STR(heard(fd), "");
        pass(3);
        CHECK(heard(fd)[0] == (char)0x89);
        pass(PONG_S - 3);
        say(fd, PONG);
        CHECK_INT(at.closed, closed);
    }
    pass(PING_S + 1);
    CHECK(heard(fd)[0] == (char)0x89);
    pass(PONG_S - 3);
    CHECK(!is_closed(fd));
    pass(4);
    CHECK(is_closed(fd));
    CHECK_INT(at.closed, closed + 1);
    close(fd);

    fd = open_socket(); /* time in which the program did not run is not silence of the client */
    pass(PING_S + 1);
    (void)heard(fd);
    made_up_ns += 5 * PONG_S * MADE_UP_S;
    pass(1);
    say(fd, HI);
    CHECK_INT(at.messages, 1);
    CHECK(!is_closed(fd));
    net_close_socket(server, at.conn, 1001, "enough");
    CHECK(net_is_sending(server));
    pass(1);
    CHECK(!net_is_sending(server));
    (void)is_closed(fd);
    CHECK(memmem(seen, sizeof seen,
                 "\x88\x08\x03\xe9"
                 "enough",
                 10));
    const int open = at.closed;
    pass(2);
    CHECK_INT(at.closed, open);
    pass(18); /* its own close frame does not come */
    CHECK_INT(at.closed, open + 1);
    close(fd);
    pass(1);
}

/* Nothing is read of who is paused, until it goes on; it has no more time for that. */
static void test_pause(void)
{
    int fd = client();
    say(fd, HEAD("POST", "/pieces") "Content-Length: 16384\r\n\r\n");
    const size_t before = at.pieces;
    for (size_t i = 1; i < 6; i += 2) {
        say_bytes(fd, 10);
        CHECK_INT(at.pieces, before + 10 * i);
        net_pause(server, at.conn, true);
        say_bytes(fd, 10);
        CHECK_INT(at.pieces, before + 10 * i);
        net_pause(server, at.conn, false);
        pass(0);
    }
    net_pause(server, at.conn, true);
    say_bytes(fd, 10);
    ends_after(fd, BODY_S + 1, "body_timeout");
    CHECK_INT(at.pieces, before + 60);
    fd = open_socket();
    at.messages = 0;
    net_pause(server, at.conn, true);
    say(fd, HI);
    CHECK_INT(at.messages, 0);
    net_pause(server, at.conn, false);
    pass(0);
    CHECK_INT(at.messages, 1);
    close(fd);
    pass(1);
}

static void take(int fd, size_t n)
{
    for (size_t taken = 0; taken < n;) {
        const ssize_t got = recv(fd, seen, n - taken < sizeof seen ? n - taken : sizeof seen, MSG_DONTWAIT);
        CHECK(got > 0);
        taken += got > 0 ? (size_t)got : n;
        pass(0);
    }
}

/* More to send on the open connection. */
static void feed(size_t n)
{
    at.stream_left = n;
    net_want_write(server, at.conn);
    pass(0);
}

static void take_all(int fd)
{
    at.stream_left = 0;
    while (recv(fd, seen, sizeof seen, MSG_DONTWAIT) > 0) {
        pass(0);
    }
    pass(1);
}

/* With a rate: who has taken what was on its way, but is slower, has done enough only if nothing waits behind it. */
static void test_rates(void)
{
    enum { STREAM, SOCKET, REPLY, OF_FILE, KINDS, TAKEN = 500000 };
    static const char body[MUCH];
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/much", folder);
    for (int kind = 0; kind < KINDS; kind++) {
        const int fd = kind == SOCKET ? open_socket() : client(), closed = at.closed;
        if (kind == STREAM) {
            stream(fd, MUCH, true);
        } else if (kind == SOCKET) {
            feed(MUCH);
        } else if (kind == OF_FILE) {
            const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
            CHECK_INT(ftruncate(file, MUCH), 0);
            say(fd, HEAD("GET", "/") "\r\n");
            net_send_reply(server, at.conn,
                           &(net_reply){.status = 200, .has_file = true, .file = file, .body_bytes = MUCH});
            pass(0);
        } else {
            say(fd, HEAD("GET", "/") "\r\n");
            reply_bytes(body, sizeof body, true);
        }
        pass(1);
        take(fd, TAKEN);
        pass(SEND_S - 3);
        CHECK_INT(at.closed, closed);
        pass(4);
        CHECK_INT(at.closed, closed + 1);
        at.stream_left = 0;
        close(fd);
        pass(1);
    }
    for (int kind = STREAM; kind <= SOCKET; kind++) {
        const int fd = kind == SOCKET ? open_socket() : client(), closed = at.closed;
        if (kind == STREAM) {
            stream(fd, 0, false);
        }
        for (int i = 0; i < SEND_S + 5; i++) {
            feed(1000);
            pass(1);
            take(fd, 900);
        }
        CHECK_INT(at.closed, closed);
        close(fd);
        pass(1);
    }
    const int fd = begin_stream(MUCH), closed = at.closed;
    pass(1);
    take_all(fd);
    stream(fd, MUCH, true); /* how slow it was with the one before does not count */
    pass(5);
    CHECK_INT(at.closed, closed);
    take_all(fd);
    say(fd, HEAD("GET", "/") "\r\n"); /* an answer that nobody has read, and a long computation behind it */
    reply("yes");
    say(fd, HEAD("GET", "/") "\r\n");
    pass(4 * SEND_S);
    CHECK_INT(at.closed, closed);
    close(fd);
    pass(1);
}

static void test_limits(void)
{
    int fds[CLIENTS + 1], n = 0;
    CHECK_INT(net_connections(server), 0);
    for (int i = 0; i < CLIENTS + 1; i++) { /* the limit of an address is none of a socket file */
        fds[i] = client();
        n += !is_closed(fds[i]);
    }
    CHECK_INT(n, net_port(server) ? 2 : CLIENTS);
    CHECK_INT(net_connections(server), n);
    for (int i = 0; i < CLIENTS + 1; i++) {
        close(fds[i]);
    }
    pass(1);
    CHECK_INT(net_connections(server), 0);
}

/* Nobody wants to hear that the client of a stream sends no more, nor what is sent. */
static void test_half_closed_unheard(void)
{
    const int fd = begin_stream(0);
    logged[0] = '\0';
    (void)is_closed(fd);
    stream(fd, 0, false);
    shutdown(fd, SHUT_WR);
    pass(3);
    CHECK_INT(at.half_closed, 0);
    CHECK_STR(logged, "");
    CHECK(!is_closed(fd));
    close(fd);
    pass(1);
}

/* What is asked of a connection that is gone, or not so far, does nothing. */
static void test_unknown(void)
{
    static const net_reply yes = {
        .status = 200, .content_type = "text/plain", .body = "yes", .body_bytes = 3};
    for (int is_known = 0; is_known < 2; is_known++) {
        const int fd = client();
        say(fd, HEAD("GET", "/") "\r\n");
        const uint64_t conn = is_known ? at.conn : at.conn + 1000;
        net_stream_body(server, conn);
        net_want_write(server, conn); /* of who waits for a reply */
        net_close_socket(server, conn, 1000, "no socket");
        net_pause(server, conn, true);
        net_pause(server, conn, false);
        shutdown(fd, SHUT_WR); /* is read when the reply has gone, and not before */
        pass(0.2);
        const int closed = at.closed;
        if (!is_known) {
            net_abort(server, conn);
            net_send_reply(server, conn, &yes);
            net_begin_stream(server, conn, 200, "text/plain", NULL);
        }
        pass(0.2);
        CHECK(!is_closed(fd));
        CHECK_INT(at.closed, closed);
        reply("yes");
        net_send_reply(server, at.conn, &yes); /* once */
        pass(1);
        CHECK(is_closed(fd));
        const char *body = strstr(seen, "\r\n\r\nyes");
        CHECK(body && !body[7]);
        close(fd);
        pass(1);
    }
}

/* Messages: in pieces, too long, of the wrong kind, behind the end; and long ones of the server. */
static void test_frames(void)
{
    static char large[1 << 18];
    static const struct {
        unsigned char kind; /* of the first piece */
        size_t pieces[3];   /* 0: no more */
        const char *close;  /* NULL: it is a message */
    } ROWS[] = {
        {1, {2}, NULL},
        {1, {2, 3, 4}, NULL},
        {1, {65536}, NULL},
        {1, {65537}, "message too large"},
        {1, {65000, 536}, NULL},
        {1, {65000, 537}, "message too large"},
        {1, {30000, 30000, 5537}, "message too large"},
        {2, {2}, "binary frames are not understood"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const int fd = open_socket(), messages = at.messages;
        for (size_t k = 0; k < 3 && ROWS[i].pieces[k]; k++) {
            const size_t n = ROWS[i].pieces[k];
            size_t m = 0;
            const bool is_last = k == 2 || !ROWS[i].pieces[k + 1];
            CHECK_INT(at.messages, messages);
            large[m++] = (char)((is_last ? 0x80 : 0) | (k == 0 ? ROWS[i].kind : 0));
            large[m++] = (char)(0x80 | (n < 126 ? n : n < 65536 ? 126 : 127));
            for (int byte = n < 126 ? 0 : n < 65536 ? 2 : 8; byte-- > 0;) {
                large[m++] = (char)(n >> 8 * byte);
            }
            memset(large + m, 0, 4); /* the mask */
            memset(large + m + 4, 'x', n);
            m += 4 + n;
            for (size_t sent = 0; sent < m;) {
                const size_t step = m - sent < 20000 ? m - sent : 20000;
                const ssize_t got = send(fd, large + sent, step, MSG_NOSIGNAL);
                sent += got > 0 ? (size_t)got : m;
                pass(0.1);
            }
        }
        CHECK_INT(at.messages, messages + !ROWS[i].close);
        CHECK(is_closed(fd) == false || ROWS[i].close);
        CHECK((memmem(seen, 200, ROWS[i].close ? ROWS[i].close : "?",
                      ROWS[i].close ? strlen(ROWS[i].close) : 1) != NULL) == (ROWS[i].close != NULL));
        close(fd);
        pass(25);
    }
    int fd = open_socket();
    CHECK(!net_is_sending(server)); /* it is open, and nothing has to be sent */
    feed(MUCH);                     /* more than what lies in the system's buffers */
    net_close_socket(server, at.conn, 1000, "first");
    net_close_socket(server, at.conn, 1001, "second");
    const int messages = at.messages;
    CHECK(send(fd, HI, strlen(HI), MSG_NOSIGNAL) > 0); /* too late */
    pass(1);
    CHECK_INT(at.messages, messages);
    CHECK(net_is_sending(server));
    static char all[MUCH + (1 << 16)];
    size_t n_all = 0;
    for (ssize_t n; (n = recv(fd, all + n_all, sizeof all - n_all, MSG_DONTWAIT)) > 0; pass(0.1)) {
        n_all += (size_t)n;
    }
    CHECK(n_all > MUCH && memmem(all + MUCH, n_all - MUCH, "first", 5) &&
          !memmem(all + MUCH, n_all - MUCH, "second", 6));
    close(fd);
    pass(25);
}

int main(void)
{
    log_set_level(LOG_OFF);
    folder_make(folder);
    snprintf(socket_file, sizeof socket_file, "unix:%s/s", folder);
    open_server(false);
    test_heads();
    test_sent();
    test_bodies();
    test_discard();
    test_late();
    test_timer();
    test_half_closed();
    test_unread();
    test_share();
    test_sockets();
    test_pause();
    test_upgrade();
    test_limits();
    test_unknown();
    test_frames();
    net_close(server);
    is_plain = true;
    open_server(false);
    test_half_closed_unheard();
    net_close(server);
    is_plain = false;
    send_rate = 20000; /* more than what lies in the system's buffers, in all of the time */
    open_server(false);
    test_rates();
    net_close(server);
    open_server(true);
    CHECK(net_is_local(server));
    test_limits(); /* of the second of its addresses */
    net_close(server);
    CHECK_DONE();
}
