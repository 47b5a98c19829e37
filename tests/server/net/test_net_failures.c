/* net: what comes of exchanges with a client when a call of the system or of libwebsockets, or an allocation, fails once: what
 * the client hears, what the server's callbacks hear, and that nothing is left behind. Then heads of each kind, words for
 * each status, memory that is in use. All of it is recorded. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/sendfile.h>

#include "base/ledger.h"
#include "base/log.h"
#include "server/net/listen.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/net/test_net.h"

/* ---- what fails ---- */

static int why = EIO;

#define FAILED (errno = why, -1)

ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t n), (old, n), NULL)
ONE_FAILS(ssize_t, send, (int fd, const void *data, size_t n, int how), (fd, data, n, how), FAILED)
ONE_FAILS(ssize_t, sendfile, (int to, int from, off_t *place, size_t n), (to, from, place, n), FAILED)
ONE_FAILS(bool, ledger_try, (ledger_hold * hold, size_t n), (hold, n), false)
ONE_FAILS(struct lws_context *, lws_create_context, (const struct lws_context_creation_info *info), (info),
          NULL)
ONE_FAILS(struct lws_vhost *, lws_create_vhost,
          (struct lws_context * context, const struct lws_context_creation_info *info), (context, info), NULL)
ONE_FAILS(int, lws_write, (struct lws * wsi, unsigned char *data, size_t n, enum lws_write_protocol how),
          (wsi, data, n, how), -1)

/* So many bytes go at once; 0: all. */
static size_t most_sent;

ssize_t __real_sendmsg(int to, const struct msghdr *m, int how);
ssize_t __wrap_sendmsg(int to, const struct msghdr *m, int how);
ssize_t __wrap_sendmsg(int to, const struct msghdr *m, int how)
{
    struct iovec parts[2] = {m->msg_iov[0], m->msg_iov[1]};
    CHECK_INT(m->msg_iovlen, 2);
    for (size_t i = 0, left = most_sent; i < 2 && most_sent; i++) {
        parts[i].iov_len = parts[i].iov_len < left ? parts[i].iov_len : left;
        left -= parts[i].iov_len;
    }
    const struct msghdr less = {.msg_iov = parts, .msg_iovlen = 2};
    return one_fails_now("sendmsg") ? FAILED : __real_sendmsg(to, &less, how);
}

/* Where clients come from; NULL: where they do. */
static const char *peer_is;

int __real_listeners_accept(listeners *l, size_t i, char peer[LISTEN_PEER_MAX]);
int __wrap_listeners_accept(listeners *l, size_t i, char peer[LISTEN_PEER_MAX]);
int __wrap_listeners_accept(listeners *l, size_t i, char peer[LISTEN_PEER_MAX])
{
    const int accepted = __real_listeners_accept(l, i, peer);
    if (accepted >= 0 && peer_is) {
        snprintf(peer, LISTEN_PEER_MAX, "%s", peer_is);
    }
    return accepted;
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    const int value = va_arg(args, int);
    va_end(args);
    return one_fails_now("fcntl") ? FAILED : __real_fcntl(fd, what, value);
}

/* Those of libwebsockets close what they cannot take over. */
struct lws *__real_lws_adopt_descriptor_vhost(struct lws_vhost *vh, lws_adoption_type type,
                                              lws_sock_file_fd_type fd, const char *name, struct lws *parent);
struct lws *__wrap_lws_adopt_descriptor_vhost(struct lws_vhost *vh, lws_adoption_type type,
                                              lws_sock_file_fd_type fd, const char *name, struct lws *parent);
struct lws *__wrap_lws_adopt_descriptor_vhost(struct lws_vhost *vh, lws_adoption_type type,
                                              lws_sock_file_fd_type fd, const char *name, struct lws *parent)
{
    if (one_fails_now("lws_adopt_descriptor_vhost")) {
        close(fd.filefd);
        return NULL;
    }
    return __real_lws_adopt_descriptor_vhost(vh, type, fd, name, parent);
}

struct lws *__real_lws_adopt_descriptor_vhost_via_info(const lws_adopt_desc_t *info);
struct lws *__wrap_lws_adopt_descriptor_vhost_via_info(const lws_adopt_desc_t *info);
struct lws *__wrap_lws_adopt_descriptor_vhost_via_info(const lws_adopt_desc_t *info)
{
    if (one_fails_now("lws_adopt_descriptor_vhost_via_info")) {
        close(info->fd.sockfd);
        return NULL;
    }
    return __real_lws_adopt_descriptor_vhost_via_info(info);
}

static bool is_no_upgrade; /* libwebsockets sees none in what it is given */

struct lws *__real_lws_adopt_socket_vhost_readbuf(struct lws_vhost *vh, int fd, const char *data, size_t n);
struct lws *__wrap_lws_adopt_socket_vhost_readbuf(struct lws_vhost *vh, int fd, const char *data, size_t n);
struct lws *__wrap_lws_adopt_socket_vhost_readbuf(struct lws_vhost *vh, int fd, const char *data, size_t n)
{
    if (one_fails_now("lws_adopt_socket_vhost_readbuf")) {
        close(fd);
        return NULL;
    }
    return is_no_upgrade ? __real_lws_adopt_socket_vhost_readbuf(vh, fd, HEAD("GET", "/") "\r\n",
                                                                 strlen(HEAD("GET", "/") "\r\n"))
                         : __real_lws_adopt_socket_vhost_readbuf(vh, fd, data, n);
}

static const char *const CALLS[] = {"malloc",
                                    "calloc",
                                    "realloc",
                                    "ledger_try",
                                    "fcntl",
                                    "send",
                                    "sendmsg",
                                    "sendfile",
                                    "lws_create_context",
                                    "lws_create_vhost",
                                    "lws_write",
                                    "lws_adopt_descriptor_vhost",
                                    "lws_adopt_descriptor_vhost_via_info",
                                    "lws_adopt_socket_vhost_readbuf"};

/* ---- a client ---- */

static char said[1 << 14]; /* takes no memory */
static size_t n_said;
static int fd; /* of the client */
static char ten_bytes[FOLDER_NAME + 16];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(said + n_said, sizeof said - n_said, format, args);
    va_end(args);
    n_said += (size_t)n < sizeof said - n_said ? (size_t)n : sizeof said - n_said - 1;
}

/* What came: of a head its first line alone. */
static void hear(void)
{
    const bool is_gone = is_closed(fd);
    note(" [");
    for (const char *c = seen; *c;) {
        const char *end = strncmp(c, "HTTP/1.1 ", 9) == 0 ? strstr(c, "\r\n\r\n") : NULL;
        if (end) {
            note("%.*s: ", (int)strcspn(c + 9, "\r"), c + 9);
            c = end + 4;
        } else if (*c < ' ' || *c > '~') {
            note(*c == '\r' ? "" : *c == '\n' ? "|" : "<%02x>", (unsigned char)*c);
            c++;
        } else {
            note("%c", *c++);
        }
    }
    note(is_gone ? "] gone" : "]");
}

/* Who is gone already hears nothing more. */
static void ask(const char *text)
{
    (void)!write(fd, text, strlen(text));
    pass(1);
}

static void answer(const char *text)
{
    reply(text);
    pass(1);
    hear();
}

static void send_file_of(size_t n)
{
    const int file = open(ten_bytes, O_RDONLY | O_CLOEXEC);
    net_send_reply(
        server, at.conn,
        &(net_reply){
            .status = 200, .content_type = "text/plain", .has_file = true, .file = file, .body_bytes = n});
    pass(1);
    hear();
}

static void exchange_replies(void)
{
    ask(HEAD("GET", "/") "\r\n");
    answer("yes");
    ask(HEAD("HEAD", "/") "\r\n");
    answer("unseen");
    ask(HEAD("POST", "/") "Content-Length: 4\r\n\r\nbody");
    note(" body %zu", at.body_bytes);
    answer("yes");
    ask(HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    note(" body %zu", at.body_bytes);
    answer("yes");
    ask(HEAD("GET", "/no") "\r\n");
    hear();
}

static void exchange_file(void)
{
    ask(HEAD("GET", "/") "\r\n");
    send_file_of(10);
    ask(HEAD("HEAD", "/") "\r\n");
    send_file_of(10);
    ask(HEAD("GET", "/") "\r\n"); /* one that is shorter than was said */
    send_file_of(11);
}

static void exchange_stream(void)
{
    ask(HEAD("GET", "/") "\r\n");
    at.stream_left = 3;
    at.ends = asks_late = true;
    net_begin_stream(server, at.conn, 200, "text/plain", "X-More: yes\r\n");
    net_begin_stream(server, at.conn, 500, "text/plain", NULL); /* no second one */
    pass(1);
    hear();
    asks_late = false;
    ask("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"); /* its end is that of the connection */
    at.stream_left = 4;
    net_begin_stream(server, at.conn, 200, "text/plain", NULL);
    pass(1);
    hear();
}

static void exchange_pieces(void)
{
    ask(HEAD("POST", "/pieces") "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    hear();
    ask("ab");
    ask("cd");
    note(" pieces %zu", at.pieces);
    answer("yes");
    ask(HEAD("POST", "/no") "Content-Length: 4\r\n\r\nab");
    hear();
}

#define UPGRADE(more)                                                                                        \
    HEAD("GET", "/")                                                                                         \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"                             \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" more "\r\n"

static void exchange_socket(void)
{
    static const char HI[] = {(char)0x81, (char)0x82, 1, 1, 1, 1, 'i', 'h', '\0'};
    ask(UPGRADE("Sec-WebSocket-Protocol: parley.v1\r\n"));
    hear();
    ask(HI);
    note(" messages %d, held %zu", at.messages, memory ? ledger_get_status(memory).used : 0);
    at.stream_left = 5;
    net_want_write(server, at.conn);
    pass(1);
    hear();
    net_close_socket(server, at.conn, 1001, "enough");
    pass(1);
    hear();
}

static void exchange_no_upgrade(void)
{
    is_no_upgrade = true;
    ask(UPGRADE(""));
    hear();
    is_no_upgrade = false;
}

static void exchange_half_closed(void)
{
    ask(HEAD("GET", "/") "\r\n");
    shutdown(fd, SHUT_WR);
    pass(1);
    hear();
    answer("yes");
}

static const struct {
    const char *name;
    void (*run)(void);
} EXCHANGES[] = {
    {"replies", exchange_replies},
    {"a file", exchange_file},
    {"a stream", exchange_stream},
    {"a body in pieces", exchange_pieces},
    {"a socket", exchange_socket},
    {"no socket to libwebsockets", exchange_no_upgrade},
    {"a half closed one", exchange_half_closed},
};

/* ---- what is recorded ---- */

static bytes all;
static ledger *room;

/* From the opening of the server to its end, with the nth call failing; NULL and 0: they are counted. */
static bool try_once(size_t which, const char *call, int n)
{
    const size_t n_open = open_files();
    n_said = 0;
    said[0] = '\0';
    fd = -1;
    memory = room;
    one_fails(call, n);
    const err_code err = try_open(false);
    if (err) {
        note(" not open: %s", err_name(err));
    } else {
        fd = caller();
        pass(1);
        EXCHANGES[which].run();
        const bool is_over = one_fails_left == 0;
        close(fd);
        pass(1);
        note(" requests %d, done %d, closed %d of %d", at.requests, at.done, at.closed, at.announced);
        CHECK(!call || is_over);
        CHECK_INT(net_connections(server), 0);
        net_close(server);
    }
    const bool has_failed = one_fails_over();
    CHECK_INT(ledger_get_status(room).used, 0);
    CHECK_INT(open_files(), n_open);
    return has_failed;
}

static void record(size_t which)
{
    int n_calls[ARRAY_LEN(CALLS)];
    (void)try_once(which, NULL, 0);
    bytes_printf(&all, "%s:%s\n", EXCHANGES[which].name, said);
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        n_calls[i] = one_fails_counted(CALLS[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        for (int n = 1; n <= n_calls[i]; n++) {
            CHECK(try_once(which, CALLS[i], n));
            one_fails_say(&all, CALLS[i], n, said);
        }
    }
    /* What the system could not do just then is done later. */
    static const int LATER[] = {EAGAIN, EINTR};
    static const char *const WRITING[] = {"sendmsg", "sendfile"};
    for (size_t k = 0; k < 4; k++) {
        why = LATER[k % 2];
        one_fails(NULL, 0);
        for (int n = 1; n <= n_calls[k / 2 ? 7 : 6]; n++) {
            CHECK(try_once(which, WRITING[k / 2], n));
            one_fails_say(&all, k % 2 ? "interrupted" : "later", n, said);
        }
    }
    why = EIO;
    one_fails_say(&all, NULL, 0, NULL);
}

/* ---- heads ---- */

static void note_head(const net_head *h)
{
    note(" (method %d", (int)h->method);
    const struct {
        const char *name, *text;
    } TEXTS[] = {{"path", h->path},
                 {"query", h->query_string},
                 {"host", h->host},
                 {"origin", h->origin},
                 {"authorization", h->authorization},
                 {"x-api-key", h->x_api_key},
                 {"type", h->content_type},
                 {"site", h->sec_fetch_site},
                 {"etag", h->if_none_match},
                 {"encoding", h->accept_encoding},
                 {"protocols", h->ws_protocols},
                 {"cors headers", h->cors_headers},
                 {"idempotency", h->idempotency_key}};
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        note(TEXTS[i].text[0] ? ", %s \"%s\"" : "", TEXTS[i].name, TEXTS[i].text);
    }
    const struct {
        const char *name;
        bool is;
    } FLAGS[] = {{"anthropic", h->is_anthropic}, {"preflight", h->is_preflight}, {"private", h->cors_private},
                 {"upgrade", h->is_upgrade},     {"direct", h->is_direct},       {"body", h->has_body}};
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        note(FLAGS[i].is ? ", %s" : "", FLAGS[i].name);
    }
    note(h->body_bytes ? ", %llu bytes)" : ")", (unsigned long long)h->body_bytes);
}

#define X119                                                                                                 \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                                           \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void test_heads(void)
{
    static const char *const HEADS[] = {
        HEAD("GET", "/a/./b/../%63?q=1&r=%20"),
        HEAD("GET", "http://other/a"),
        HEAD("GET", "/%zz"),
        HEAD("GET", "/?%zz"),
        HEAD("BREW", "/"),
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n",
        HEAD("GET", "/") "Host: h\r\n",
        "GET / HTTP/1.0\r\nHost: h\r\n",
        "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n",
        HEAD("GET", "/") "Connection: close\r\n",
        HEAD("GET", "/") "Connection: TE, Close\r\n",
        HEAD("GET", "/") "Connection: close, " X119 "x\r\n",
        HEAD("GET", "/") "Connection: close, " X119 "xx\r\n",
        HEAD("GET", "/") "Origin: http://a\r\nSec-Fetch-Site: same-origin\r\n",
        HEAD("GET", "/") "Origin: http://b\r\n",
        HEAD("OPTIONS", "/") "Origin: http://a\r\n",
        HEAD("OPTIONS", "/") "Access-Control-Request-Method: POST\r\n",
        HEAD(
            "OPTIONS",
            "/") "Origin: http://a\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
                 "x-a, x-b\r\nAccess-Control-Request-Private-Network: TRUE\r\n",
        HEAD("GET", "/") "Access-Control-Request-Private-Network: yes\r\n",
        HEAD(
            "GET",
            "/") "Authorization: Bearer a\r\nX-Api-Key: b\r\nanthropic-version: 1\r\nIf-None-Match: \"c\"\r\n"
                 "Accept-Encoding: gzip\r\nIdempotency-Key: d\r\n",
        HEAD("GET", "/") "Forwarded: for=x\r\n",
        HEAD("GET", "/") "X-Forwarded-For: x\r\n",
        HEAD("GET", "/") "X-Forwarded-Host: x\r\n",
        HEAD("GET", "/") "X-Forwarded-Proto: x\r\n",
        HEAD("GET", "/") "X-Real-IP: x\r\n",
        HEAD("GET", "/") "Via: x\r\n",
        HEAD("GET", "/") "Content-Length: 0\r\n",
        HEAD("POST", "/"),
        HEAD("PUT", "/"),
        HEAD("PATCH", "/"),
        HEAD("DELETE", "/"),
        HEAD("PATCH", "/") "Content-Length: 1\r\n",
        HEAD("POST", "/") "Content-Type: text/plain\r\nContent-Length: 3\r\n",
        HEAD("POST", "/") "Content-Length:\r\n",
        HEAD("POST", "/") "Content-Length: 1x\r\n",
        HEAD("POST", "/") "Content-Length: +1\r\n",
        HEAD("POST", "/") "Content-Length: 1, 1\r\n",
        HEAD("POST", "/") "Content-Length: 000000000000001\r\n",
        HEAD("POST", "/") "Content-Length: 0000000000000001\r\n",
        HEAD("POST", "/") "Content-Length: 1048576\r\n",
        HEAD("POST", "/") "Content-Length: 1048577\r\n",
        HEAD("POST", "/pieces") "Content-Length: 1048577\r\n",
        HEAD("POST", "/") "Transfer-Encoding: chunked\r\n",
        HEAD("POST", "/") "Transfer-Encoding: CHUNKED\r\n",
        HEAD("POST", "/") "Transfer-Encoding: gzip\r\n",
        HEAD("POST", "/") "Transfer-Encoding: gzip, chunked\r\n",
        HEAD("GET", "/") "Transfer-Encoding: chunked\r\n",
        HEAD("POST", "/") "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
        "GET / HTTP/2.0\r\nHost: h\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        HEAD("GET", "/") "Upgrade: h2c\r\nConnection: upgrade\r\n",
        HEAD("POST", "/") "Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 0\r\n",
        "GET / HTTP/1.0\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nConnection: upgrade\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nConnection: upgrade," X119 "\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nConnection: upgrade, " X119 "\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: short\r\n",
        HEAD("GET", "/") "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        HEAD("GET",
             "/") "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Protocol: x, parley.v1\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    };
    static const char *const PEERS[] = {
        "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "10.127.0.1",
        "128.0.0.1", "::11",      ""};
    static const char *const ORIGINS[] = {"http://a", "http://c"};
    origins = ORIGINS;
    n_origins = 2;
    head_seen = note_head;
    for (size_t i = 0; i < ARRAY_LEN(HEADS) + ARRAY_LEN(PEERS); i++) {
        const bool is_head = i < ARRAY_LEN(HEADS);
        const char *head = is_head ? HEADS[i] : HEAD("GET", "/");
        n_said = 0;
        said[0] = '\0';
        peer_is = is_head ? "127.0.0.1" : PEERS[i - ARRAY_LEN(HEADS)];
        CHECK_INT(try_open(false), ERR_OK);
        fd = caller();
        pass(1);
        ask(head);
        ask("\r\n");
        hear();
        if (at.requests) {
            answer("yes");
            note(strstr(seen, "Vary: Origin\r\n") ? "" : " for every origin");
            note(strstr(seen, "Access-Control-Allow-Origin: http://a\r\n") ? " for its page" : "");
        }
        close(fd);
        pass(1);
        net_close(server);
        bytes_printf(&all, is_head ? "" : "from %s: ", peer_is);
        for (const char *c = head; *c; c++) {
            *c == '\n' ? bytes_append_char(&all, '|') : *c == '\r' ? (void)0 : bytes_append_char(&all, *c);
        }
        bytes_printf(&all, "\n %s\n", said);
    }
    origins = NULL;
    n_origins = 0;
    head_seen = NULL;
    peer_is = NULL;
}

/* ---- in small pieces ---- */

static void test_small_pieces(void)
{
    static const size_t MOST[] = {7, 300, 4096};
    static const char lives[] = "a body that is not copied";
    for (size_t i = 0; i < ARRAY_LEN(MOST); i++) {
        for (size_t which = 0; which < 3; which++) {
            most_sent = MOST[i];
            (void)try_once(which, NULL, 0);
            bytes_printf(&all, "%s, %zu bytes at once:%s\n", EXCHANGES[which].name, most_sent, said);
        }
        n_said = 0;
        CHECK_INT(try_open(false), ERR_OK);
        fd = caller();
        pass(1);
        ask(HEAD("GET", "/") "\r\n");
        reply_bytes(lives, sizeof lives - 1, true);
        pass(1);
        hear();
        close(fd);
        net_close(server);
        bytes_printf(&all, "not copied, %zu bytes at once:%s\n", most_sent, said);
    }
    most_sent = 0;
}

/* ---- words for each status ---- */

static void test_statuses(void)
{
    CHECK_INT(try_open(false), ERR_OK);
    fd = caller();
    pass(1);
    for (int status = 200; status <= 600; status++) {
        ask(HEAD("GET", "/") "\r\n");
        net_send_reply(server, at.conn, &(net_reply){.status = status});
        pass(1);
        (void)heard(fd);
        if (!strstr(seen, " Status\r\n")) {
            bytes_printf(&all, "%.*s%s\n", (int)strcspn(seen, "\r"), seen,
                         strstr(seen, "Content-Length: 0") ? "" : ", no length");
        }
    }
    close(fd);
    net_close(server);
}

/* ---- memory that is in use ---- */

static void test_busy(void)
{
    static const struct {
        size_t used, limit, inflight, announced; /* of who came before */
        const char *length;
    } ROWS[] = {{0, 100, 1000, 0, "100"},    {0, 100, 1000, 0, "101"},    {60, 100, 1000, 0, "40"},
                {60, 100, 1000, 0, "41"},    {60, 50, 1000, 0, "1"},      {60, 60, 1000, 0, "0"},
                {0, 10000, 1000, 0, "1000"}, {0, 10000, 1000, 0, "1001"}, {0, 10000, 1000, 400, "600"},
                {0, 10000, 1000, 400, "601"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char head[128];
        int other;
        ledger_hold held = {.ledger = room};
        n_said = 0;
        ledger_set_limit(room, 1 << 20);
        CHECK(ledger_try(&held, ROWS[i].used));
        ledger_set_limit(room, ROWS[i].limit);
        max_inflight = ROWS[i].inflight;
        memory = room;
        CHECK_INT(try_open(false), ERR_OK);
        fd = other = caller();
        pass(1);
        if (ROWS[i].announced) {
            ask(HEAD("POST", "/") "Content-Length: 500\r\n\r\n");
            say_bytes(other, ROWS[i].announced);
        }
        fd = caller();
        pass(1);
        snprintf(head, sizeof head, HEAD("POST", "/") "Content-Length: %s\r\n\r\n", ROWS[i].length);
        ask(head);
        hear();
        bytes_printf(&all, "%s bytes, %zu of %zu used, %zu of %zu on their way:%s\n", ROWS[i].length,
                     ROWS[i].used, ROWS[i].limit, ROWS[i].announced, ROWS[i].inflight, said);
        close(fd);
        close(other);
        net_close(server);
        ledger_give_all(&held);
        CHECK_INT(ledger_get_status(room).used, 0);
    }
    ledger_set_limit(room, 1 << 20);
    max_inflight = 1000; /* bodies that had room each, but have none together */
    CHECK_INT(try_open(false), ERR_OK);
    const int first = caller(), second = caller();
    pass(1);
    say(first, HEAD("POST", "/") "Content-Length: 600\r\n\r\n");
    say(second, HEAD("POST", "/") "Content-Length: 600\r\n\r\n");
    say_bytes(first, 500);
    fd = second;
    n_said = 0;
    say_bytes(second, 500);
    hear();
    say_bytes(second, 1);
    hear();
    fd = first;
    say_bytes(first, 100);
    hear();
    bytes_printf(&all, "two:%s\n", said);
    close(first);
    close(second);
    net_close(server);
    CHECK_INT(ledger_get_status(room).used, 0);
    max_inflight = (size_t)8 << 20;
    memory = NULL;
}

/* Each address has its own limit. */
static void test_addresses(void)
{
    static const char *const FROM[] = {"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.2", "127.0.0.3"};
    static const bool REFUSED[] = {false, false, false, true, false};
    int fds[ARRAY_LEN(FROM)];
    CHECK_INT(try_open(true), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(FROM); i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)net_port(server))},
                           from = {.sin_family = AF_INET};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(inet_pton(AF_INET, FROM[i], &from.sin_addr) == 1);
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(bind(fds[i], (void *)&from, sizeof from) == 0 && connect(fds[i], (void *)&to, sizeof to) == 0);
        pass(0.1);
        CHECK_INT(is_closed(fds[i]), REFUSED[i]);
    }
    CHECK_INT(net_connections(server), 4);
    for (size_t i = 0; i < ARRAY_LEN(FROM); i++) {
        close(fds[i]);
    }
    net_close(server);
}

/* More callers at once than are taken at once. */
static void test_crowd(void)
{
    enum { CALLERS = 40 };
    int fds[CALLERS], n = 0;
    CHECK_INT(try_open(false), ERR_OK);
    for (int i = 0; i < CALLERS; i++) {
        fds[i] = caller();
    }
    log_set_level(LOG_WARN);
    said_begin();
    pass(1);
    said_end();
    log_set_level(LOG_OFF);
    const char *line = said_err;
    for (int i = CLIENTS; i < CALLERS; i++) {
        line = strstr(line, " WARN net connection refused: limit reached (5 open)\n");
        CHECK(line != NULL);
        line += line ? 1 : 0;
    }
    for (int i = 0; i < CALLERS; i++) {
        n += is_closed(fds[i]);
        close(fds[i]);
    }
    CHECK_INT(n, CALLERS - CLIENTS);
    pass(1);
    CHECK_INT(net_connections(server), 0);
    net_close(server);
}

/* A connection that is idle again has nothing open of the reply before. */
static void test_idle_file(void)
{
    CHECK_INT(try_open(false), ERR_OK);
    fd = caller();
    pass(1);
    ask(HEAD("GET", "/") "\r\n");
    n_said = 0;
    const size_t n_open = open_files();
    send_file_of(10);
    CHECK_STR(said, " [200 OK: 0123456789]");
    CHECK_INT(open_files(), n_open);
    ask(HEAD("HEAD", "/") "\r\n");
    send_file_of(10);
    CHECK_INT(open_files(), n_open);
    close(fd);
    net_close(server);
}

/* What libwebsockets says goes to the log, but for what it says of each WebSocket. */
static void test_log(void)
{
    log_set_level(LOG_INFO);
    said_begin();
    _lws_log(LLL_ERR, "odd: %s\n\n", "a client");
    _lws_log(LLL_WARN, "hm");
    _lws_log(LLL_ERR, "lws_adopt_socket_readbuf: all is well\n");
    _lws_log(LLL_ERR, "\n");
    said_end();
    log_set_level(LOG_OFF);
    CHECK_HAS(said_err, "odd: a client\n");
    CHECK_HAS(said_err, "hm\n");
    CHECK(!strstr(said_err, "all is well"));
    const char *odd = strstr(said_err, "odd");
    CHECK(odd && odd - said_err > 5 && !strstr(odd, "\n\n"));
    CHECK_HAS(said_err, " INFO net odd");
    CHECK_HAS(said_err, " WARN net hm");
}

int main(void)
{
    log_set_level(LOG_OFF);
    signal(SIGPIPE, SIG_IGN);
    folder_make(folder);
    snprintf(socket_file, sizeof socket_file, "unix:%s/s", folder);
    snprintf(ten_bytes, sizeof ten_bytes, "%s/ten", folder);
    FILE *f = fopen(ten_bytes, "w");
    CHECK(f && fputs("0123456789", f) >= 0 && fclose(f) == 0);
    room = ledger_create(1 << 20);
    all = bytes_empty(1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(EXCHANGES); i++) {
        record(i);
    }
    test_heads();
    test_small_pieces();
    test_statuses();
    test_busy();
    test_addresses();
    test_crowd();
    test_idle_file();
    test_log();
    recorded_check("server/net/failures.txt", bytes_str(&all));
    bytes_deinit(&all);
    ledger_destroy(room);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
