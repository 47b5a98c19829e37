/* net: replies to the last byte, for clients of both versions of HTTP, of pages elsewhere, of those that send no more, that ask
 * several times at once or not rightly; what the access log hears of each. Recorded, but for dates and ids. */
#define _GNU_SOURCE /* memmem */
#include <fcntl.h>

#include <libwebsockets.h>

#include "base/ledger.h"
#include "base/log.h"
#include "tests/recorded.h"
#include "tests/server/net/test_net.h"

static bytes all;
static int fd; /* of the client */
static char two_bytes[FOLDER_NAME + 16], large_file[FOLDER_NAME + 16];

/* Of a reply's body in memory, and of its file, what is left to be sent. */
static size_t left, file_left;
static bool asks_head; /* the last request */

enum { WRITE = 16384, FILE_WRITE = 65536 };

ssize_t __real_sendmsg(int to, const struct msghdr *m, int how);
ssize_t __wrap_sendmsg(int to, const struct msghdr *m, int how);
ssize_t __wrap_sendmsg(int to, const struct msghdr *m, int how)
{
    const size_t n = m->msg_iov[0].iov_len, body = m->msg_iov[1].iov_len;
    CHECK(m->msg_iovlen == 2 && (n > 0 || body > 0));
    CHECK_INT(how & (MSG_NOSIGNAL | MSG_DONTWAIT), MSG_NOSIGNAL | MSG_DONTWAIT);
    CHECK_INT(body, left < WRITE - n ? left : WRITE - n);
    const ssize_t sent = __real_sendmsg(to, m, how);
    left -= sent > (ssize_t)n ? (size_t)sent - n : 0;
    bytes_append_str(&all, how & MSG_MORE ? "  more follows\n" : "");
    return sent;
}

ssize_t __real_sendfile(int to, int from, off_t *place, size_t n);
ssize_t __wrap_sendfile(int to, int from, off_t *place, size_t n);
ssize_t __wrap_sendfile(int to, int from, off_t *place, size_t n)
{
    CHECK_INT(n, file_left < FILE_WRITE ? file_left : FILE_WRITE);
    const ssize_t sent = __real_sendfile(to, from, place, n);
    file_left -= sent > 0 ? (size_t)sent : 0;
    return sent;
}

int __real_lws_rx_flow_control(struct lws *wsi, int reads);
int __wrap_lws_rx_flow_control(struct lws *wsi, int reads);
int __wrap_lws_rx_flow_control(struct lws *wsi, int reads)
{
    bytes_printf(&all, reads ? "  reads\n" : "  reads no more\n");
    return __real_lws_rx_flow_control(wsi, reads);
}

/* All that came, with a date and an id that are as they should be. */
static void hear(void)
{
    enum { DATE_LETTERS = 29 };
    char last[64] = "";
    const bool is_gone = is_closed(fd);
    for (const char *c = seen; *c;) {
        const size_t n = strcspn(c, "\r\n");
        const char *colon = memmem(c, n, "request-id: ", 12);
        bytes_append_str(&all, "  ");
        if (strncmp(c, "Date: ", 6) == 0) {
            bytes_printf(&all, "%s",
                         n == 6 + DATE_LETTERS && memcmp(c + n - 4, " GMT", 4) == 0 ? "Date: DATE" : c);
        } else if (colon) {
            const bool is_same = !last[0] || strncmp(last, colon, strlen(last)) == 0;
            CHECK(n - (size_t)(colon - c) < sizeof last);
            snprintf(last, sizeof last, "%.*s", (int)(n - (size_t)(colon - c)), colon);
            bytes_printf(&all, "%.*sID%s", (int)(colon - c) + 12, c, is_same ? "" : ", ANOTHER");
        } else if (n > 500) {
            bytes_printf(&all, "%zu letters", n);
        } else {
            bytes_append(&all, c, n);
        }
        c += n;
        for (; *c == '\r' || *c == '\n'; c++) {
            bytes_append_char(&all, *c == '\r' ? '^' : '|');
            if (*c == '\n' && c[1] == '\r') {
                bytes_append_str(&all, "\n  ");
            }
        }
        bytes_append_char(&all, '\n');
    }
    char *ms = strrchr(logged, ' '); /* a look takes some, too */
    bytes_printf(&all, is_gone ? "  gone" : "  there");
    if (ms) {
        *ms = '\0';
        bytes_printf(&all, ", logged \"%s\" after %.1f s", logged, strtod(ms + 1, NULL) / 1e3);
    }
    bytes_append_char(&all, '\n');
    logged[0] = '\0';
}

static void begin(const char *what)
{
    bytes_printf(&all, "%s\n", what);
    logged[0] = '\0';
    CHECK_INT(try_open(false), ERR_OK);
    fd = caller();
    pass(1);
}

static void end(void)
{
    close(fd);
    pass(1);
    bytes_printf(&all, "  requests %d, done %d, closed %d of %d\n", at.requests, at.done, at.closed,
                 at.announced);
    net_close(server);
}

static void ask(const char *text)
{
    asks_head = strncmp(text, "HEAD", 4) == 0 || (asks_head && text[0] == '\r');
    (void)!write(fd, text, strlen(text));
    pass(1);
}

static void send_reply(const net_reply *r)
{
    left = r->body_lives && !r->head_only && !asks_head ? r->body_bytes : 0;
    file_left = r->has_file ? r->body_bytes : 0;
    net_send_reply(server, at.conn, r);
    pass(1);
    hear();
}

/* ---- tests ---- */

static void test_replies(void)
{
    static const net_reply REPLIES[] = {
        {.status = 200,
         .content_type = "text/plain",
         .headers = "X-More: yes\r\nX-And: so\r\n",
         .body = "text",
         .body_bytes = 4},
        {.status = 404, .body = "x", .body_bytes = 1},
        {.status = 200, .content_type = "text/plain", .body = "y", .body_bytes = 1, .body_lives = true},
        {.status = 200, .content_type = "text/plain", .body = "unseen", .body_bytes = 6, .head_only = true},
        {.status = 200, .content_type = "text/plain"},
        {.status = 204},
        {.status = 304, .headers = "ETag: \"e\"\r\n"},
    };
    static const char *const HEADS[] = {HEAD("GET", "/"), HEAD("HEAD", "/"),
                                        "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n"};
    for (size_t k = 0; k < ARRAY_LEN(HEADS); k++) {
        begin(k == 0 ? "replies" : k == 1 ? "replies to HEAD" : "replies to HTTP/1.0");
        for (size_t i = 0; i < ARRAY_LEN(REPLIES); i++) {
            ask(HEADS[k]);
            ask("\r\n");
            send_reply(&REPLIES[i]);
        }
        end();
    }
    begin("a last one");
    ask(HEAD("GET", "/a%20b") "Connection: close\r\n\r\n");
    send_reply(&REPLIES[0]);
    end();
    static char large[50000];
    memset(large, 'l', sizeof large);
    begin("a large one that is not copied");
    ask(HEAD("GET", "/") "\r\n");
    send_reply(&(net_reply){.status = 200, .body = large, .body_bytes = sizeof large, .body_lives = true});
    CHECK_INT(left, 0);
    end();
}

/* Also one whose descriptor is the lowest there is, and one that is sent in several pieces. */
static void test_files(void)
{
    enum { MORE = FILE_WRITE + 4000 };
    static char whole[2 * MORE];
    size_t n_whole = 0;
    begin("files");
    for (size_t n = 1; n <= 2; n++) {
        ask(HEAD("GET", "/") "\r\n");
        if (n == 1) {
            close(STDIN_FILENO);
        }
        const int file = open(two_bytes, O_RDONLY | O_CLOEXEC);
        CHECK_INT(file == STDIN_FILENO, n == 1);
        send_reply(&(net_reply){.status = 200, .has_file = true, .file = file, .body_bytes = n});
        CHECK_INT(file_left, 0);
        if (n == 1) {
            CHECK_INT(open("/dev/null", O_RDONLY), STDIN_FILENO);
        }
    }
    ask(HEAD("GET", "/") "\r\n");
    file_left = MORE;
    net_send_reply(server, at.conn,
                   &(net_reply){.status = 200,
                                .has_file = true,
                                .file = open(large_file, O_RDONLY | O_CLOEXEC),
                                .body_bytes = MORE});
    for (ssize_t n = 1; n > 0; n_whole += n > 0 ? (size_t)n : 0) {
        pass(0.1);
        n = recv(fd, whole + n_whole, sizeof whole - n_whole, MSG_DONTWAIT);
    }
    const char *body = memmem(whole, n_whole, "\r\n\r\n", 4);
    CHECK(body && (size_t)(whole + n_whole - body) == MORE + 4);
    CHECK_INT(file_left, 0);
    end();
}

static void test_streams(void)
{
    static const char *const HEADS[] = {HEAD("GET", "/s") "\r\n",
                                        "GET /s HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"};
    for (size_t k = 0; k < ARRAY_LEN(HEADS); k++) {
        begin(k ? "a stream of HTTP/1.0" : "streams");
        for (size_t n = 0; n <= 17 && !(k && n); n += 17) {
            ask(HEADS[k]);
            at.stream_left = n + k;
            at.ends = true;
            net_begin_stream(server, at.conn, 200, "text/plain", n ? "X-More: yes\r\n" : NULL);
            pass(1);
            hear();
        }
        end();
    }
}

/* Pages elsewhere: one origin that may read, or none. */
static void test_origins(void)
{
    static const char *const ALLOWED[] = {"http://a"};
    origins = ALLOWED;
    for (n_origins = 0; n_origins <= 1; n_origins++) {
        begin(n_origins ? "one origin may read" : "no origin may read");
        ask(HEAD("GET", "/") "Origin: http://a\r\n\r\n");
        send_reply(&(net_reply){.status = 204});
        ask(HEAD("GET", "/") "Origin: http://b\r\n\r\n");
        send_reply(&(net_reply){.status = 204});
        end();
    }
    origins = NULL;
    n_origins = 0;
}

/* Refused for what they are, with what was sent behind them. */
static void test_refused(void)
{
    static const char *const ASKED[] = {
        HEAD("GET", "/no") "\r\n" HEAD("GET", "/no") "\r\n",
        HEAD("POST", "/no") "Content-Length: 4\r\n\r\nbody" HEAD("GET", "/") "\r\n",
        HEAD("POST", "/no") "Content-Length: 0\r\n\r\n" HEAD("GET", "/no") "\r\n",
        HEAD("POST", "/") "Content-Length: 1048577\r\n\r\nbody",
        HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n100001\r\nab",
        HEAD("POST", "/") "\r\nbody",
        "nonsense\r\n\r\n" HEAD("GET", "/") "\r\n",
        "\r\n\r\n\r\n" HEAD("GET", "/no") "\r\n",
        "\r\n\r",
        "G",
    };
    for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
        begin("refused");
        ask(ASKED[i]);
        hear();
        pass(HEAD_S + 1);
        hear();
        end();
        begin("refused, of one who sends no more");
        (void)!write(fd, ASKED[i], strlen(ASKED[i]));
        shutdown(fd, SHUT_WR);
        pass(1);
        hear();
        end();
    }
    max_inflight = 10;
    begin("no memory for a body");
    ask(HEAD("POST", "/") "Content-Length: 11\r\n\r\n");
    hear();
    end();
    begin("none for all of it");
    ask(HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n6\r\nabcdef\r\n");
    hear();
    end();
    max_inflight = (size_t)8 << 20;
}

/* Several at once, each answered before the next one is read; in pieces of any size. */
static void test_pipelined(void)
{
    static const char TEXT[] =
        HEAD("GET", "/1") "\r\n" HEAD("POST", "/2") "Content-Length: 3\r\n\r\nabc" HEAD(
            "POST", "/3") "Transfer-Encoding: "
                          "chunked\r\n\r\n2\r\nab\r\n0\r\n\r"
                          "\n" HEAD("GET", "/no") "\r\n" HEAD("GET", "/5") "Conne"
                                                                           "ction"
                                                                           ": "
                                                                           "close"
                                                                           "\r\n"
                                                                           "\r\nr"
                                                                           "est";
    static const size_t SIZES[] = {1, 7, 1000};
    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        begin("one behind the other");
        for (size_t n = 0; n < sizeof TEXT - 1; n += SIZES[i]) {
            const size_t rest = sizeof TEXT - 1 - n;
            (void)!write(fd, TEXT + n, rest < SIZES[i] ? rest : SIZES[i]);
            pass(0.01);
        }
        for (int k = 1; k < 5; k++) {
            bytes_printf(&all, "  body %zu\n", at.body_bytes);
            send_reply(&(net_reply){.status = 204});
        }
        end();
    }
    begin("a later head that is not whole");
    ask(HEAD("GET", "/1") "\r\nGET /2 HT");
    send_reply(&(net_reply){.status = 204});
    ask("TP/1.1\r\nHost: h\r\n\r\n");
    send_reply(&(net_reply){.status = 204});
    end();
}

/* Nothing is read while an answer is made: it stays with the system, and is there when it is sent. */
static void test_unread(void)
{
    begin("more while it is answered");
    ask(HEAD("GET", "/1") "\r\n");
    ask(HEAD("GET", "/no") "\r\n");
    CHECK_INT(at.requests, 1);
    shutdown(fd, SHUT_WR);
    pass(1);
    send_reply(&(net_reply){.status = 204});
    end();
}

/* What is paused is read again when it goes on, or with the next request; not where there is nothing to be read, and not while it
 * is closed. */
static void test_paused(void)
{
    begin("paused");
    ask(HEAD("POST", "/pieces") "Content-Length: 4\r\n\r\nab");
    net_pause(server, at.conn, false);
    net_pause(server, at.conn, true);
    net_pause(server, at.conn, true);
    net_pause(server, at.conn, false);
    net_pause(server, at.conn, true);
    net_pause(server, at.conn, false);
    ask("cd");
    net_pause(server, at.conn, true);
    net_pause(server, at.conn, false);
    net_pause(server, at.conn, true);
    send_reply(&(net_reply){.status = 204});
    net_pause(server, at.conn, true);
    pauses_at_close = true;
    end();
    pauses_at_close = false;
}

int main(void)
{
    log_set_level(LOG_OFF);
    folder_make(folder);
    snprintf(socket_file, sizeof socket_file, "unix:%s/s", folder);
    snprintf(two_bytes, sizeof two_bytes, "%s/two", folder);
    FILE *f = fopen(two_bytes, "w");
    CHECK(f && fputs("12", f) >= 0 && fclose(f) == 0);
    snprintf(large_file, sizeof large_file, "%s/large", folder);
    f = fopen(large_file, "w");
    for (int i = 0; f && i < 20000; i++) {
        CHECK(fputs("0123456", f) >= 0);
    }
    CHECK(f && fclose(f) == 0);
    all = bytes_empty(1 << 20);
    test_replies();
    test_files();
    test_streams();
    test_origins();
    test_refused();
    test_pipelined();
    test_unread();
    test_paused();
    recorded_check("server/net/replies.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
