/* local_server: which address is asked for each host, what is sent, what comes of each reply, whose process it is. */
#include "server/local_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/said.h"

#define EIO_OF(value) (errno = EIO, value)

ONE_FAILS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n),
          (fd, level, name, value, n), EIO_OF(-1))
ONE_FAILS(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
          (fd, level, name, value, n), EIO_OF(-1))
ONE_FAILS(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), EIO_OF(-1))
ONE_FAILS(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), EIO_OF(-1))
ONE_FAILS(FILE *, fopen, (const char *path, const char *how), (path, how), EIO_OF(NULL))
ONE_FAILS(DIR *, opendir, (const char *path), (path), EIO_OF(NULL))
ONE_FAILS(ssize_t, send, (int fd, const void *data, size_t n, int how), (fd, data, n, how), EIO_OF(-1))

static int listening = -1, answering = -1;
static char asked[8192];

/* Answers one request with ctx, its head read whole; its end of the connection stays, so that its process is seen. */
static void *answer(void *ctx)
{
    const char *text = ctx;
    const int fd = answering = accept(listening, NULL, NULL);
    size_t n = 0;
    asked[0] = '\0';
    for (ssize_t got = 1; got > 0 && !strstr(asked, "\r\n\r\n") && n + 1 < sizeof asked; asked[n] = '\0') {
        got = recv(fd, asked + n, sizeof asked - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
    }
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    return NULL;
}

/* What came of a request that is answered so: "STATUS BODY", or why nothing did. */
static const char *comes(const local_address *at, const char *key, char *text, pid_t *process)
{
    static char out[512];
    pthread_t thread;
    local_reply r;
    CHECK(pthread_create(&thread, NULL, answer, text) == 0);
    const bool is_there = local_server_get(&r, at, "/status", key);
    snprintf(out, sizeof out, is_there ? "%d %s" : "%d: %s", r.status, is_there ? bytes_str(&r.body) : r.why);
    *process = local_server_process(&r);
    local_reply_deinit(&r);
    CHECK_INT(r.fd, -1);
    pthread_join(thread, NULL);
    close(answering);
    return out;
}

static void listens(int family, const void *address, socklen_t n)
{
    listening = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listening >= 0 && bind(listening, address, n) == 0 && listen(listening, 4) == 0);
}

static void test_replies(const local_address *at)
{
    static struct {
        char text[200];
        const char *comes;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 hi"},
        {"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", "404 "},
        {"HTTP/1.1 503 No\r\nX: y\r\nCONTENT-LENGTH:3\r\n\r\nnot", "503 not"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", "0: no Parley server answers there"},
        {"HTTP/1.1 200 OK\r\n\r\nContent-Length: 2\r\n", "0: no Parley server answers there"},
        {"HTTP/1.1 200 OK\r\n\r\n\r\nContent-Length: 2\r\n", "0: no Parley server answers there"},
        {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "0: no Parley server answers there"},
        {"SSH-2.0\r\n", "0: no Parley server answers there"},
        {"", "0: no answer"},
    };
    pid_t process = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(comes(at, NULL, rows[i].text, &process), rows[i].comes);
        CHECK_STR(asked, "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK_INT(process, getpid());
    }
    local_address below = *at;
    below.prefix = "/below";
    CHECK_STR(comes(&below, "a-key", rows[0].text, &process), "200 hi");
    CHECK_STR(asked, "GET /below/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-key\r\n\r\n");
}

/* Where nobody listens: where it was looked, and why nothing came. */
static void test_hosts(int port)
{
    static const struct {
        const char *hosts, *where, *why;
    } ROWS[] = {
        {"127.0.0.1", "127.0.0.1 port %d", "(Connection refused)"},
        {"0.0.0.0", "127.0.0.1 port %d", "(Connection refused)"},
        {"localhost,127.0.0.2", "127.0.0.1 port %d", "(Connection refused)"},
        {"127.0.0.2 127.0.0.1", "127.0.0.2 port %d", "(Connection refused)"},
        {"::", "::1 port %d", "no server answers there ("}, /* not every machine has it */
        {"a.host", "a.host port %d", "(Cannot assign requested address)"},
        {"unix:/nowhere/s", "unix:/nowhere/s", "(No such file or directory)"},
    };
    char where[64], longer[200];
    local_reply r;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const local_address at = {.hosts = ROWS[i].hosts, .port = port};
        CHECK(!local_server_get(&r, &at, "/status", NULL));
        snprintf(where, sizeof where, ROWS[i].where, port);
        CHECK_STR(r.where, where);
        CHECK_HAS(r.why, ROWS[i].why);
        CHECK_INT(local_server_process(&r), 0);
        local_reply_deinit(&r);
    }
    const size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    for (size_t n = most; n <= most + 1; n++) {
        snprintf(longer, sizeof longer, "unix:/%0*d", (int)n - 1, 0);
        CHECK(!local_server_get(&r, &(local_address){.hosts = longer}, "/status", NULL));
        CHECK_HAS(r.why, n == most ? "(No such file or directory)" : "(File name too long)");
        local_reply_deinit(&r);
    }
}

/* The longest request that there may be, and one byte more. */
static void test_lengths(const local_address *at)
{
    char key[4200], text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    const int n =
        4095 - (int)strlen("GET /status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \r\n\r\n");
    pid_t process = 0;
    for (int more = 0; more < 2; more++) {
        snprintf(key, sizeof key, "%0*d", n + more, 0);
        CHECK_STR(comes(at, key, text, &process), more ? "0: no answer" : "200 hi");
        CHECK_INT((int)strlen(asked), more ? 0 : 4095);
    }
}

/* Whose process it is where the system does not say, and what is said where nothing can be asked. */
static void test_failures(const local_address *at, const void *address, socklen_t n)
{
    static const struct {
        const char *call;
        bool is_tcp, is_unix; /* whether the process is known all the same */
    } PROCESS[] = {{"none", true, true},   {"getsockname", false, false}, {"getpeername", false, false},
                   {"fopen", false, true}, {"opendir", false, true},      {"getsockopt", true, false}};
    static const struct {
        const char *call;
        int n;
        const char *why;
    } ASKING[] = {{"setsockopt", 1, "no server answers there (Input/output error)"},
                  {"setsockopt", 2, "no server answers there (Input/output error)"},
                  {"send", 1, "no answer"}};
    const int family = ((const struct sockaddr *)address)->sa_family;
    local_reply r = {.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK(connect(r.fd, address, n) == 0);
    const int other = accept(listening, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(PROCESS); i++) {
        one_fails(PROCESS[i].call, 1);
        const pid_t process = local_server_process(&r);
        const bool is_over = one_fails_over();
        CHECK_INT(process, (family == AF_UNIX ? PROCESS[i].is_unix : PROCESS[i].is_tcp) ? getpid() : 0);
        CHECK(is_over || process == getpid());
    }
    close(other);
    local_reply_deinit(&r);
    for (size_t i = 0; i < ARRAY_LEN(ASKING); i++) {
        one_fails(ASKING[i].call, ASKING[i].n);
        CHECK(!local_server_get(&r, at, "/status", NULL));
        CHECK(one_fails_over());
        CHECK_STR(r.why, ASKING[i].why);
        local_reply_deinit(&r);
    }
}

int main(void)
{
    char folder[FOLDER_NAME], host[FOLDER_NAME + 16];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t n = sizeof in;
    folder_make(folder);
    const int before = open_files();
    listens(AF_INET, &in, sizeof in);
    CHECK(getsockname(listening, (struct sockaddr *)&in, &n) == 0);
    const int port = ntohs(in.sin_port);
    test_replies(&(local_address){.hosts = "localhost", .port = port});
    test_lengths(&(local_address){.hosts = "127.0.0.1", .port = port});
    test_failures(&(local_address){.hosts = "127.0.0.1", .port = port}, &in, sizeof in);
    close(listening);
    test_hosts(port);
    snprintf(un.sun_path, sizeof un.sun_path, "%s/s", folder);
    snprintf(host, sizeof host, "unix:%s/s", folder);
    listens(AF_UNIX, &un, sizeof un);
    test_replies(&(local_address){.hosts = host});
    test_failures(&(local_address){.hosts = host}, &un, sizeof un);
    close(listening);
    CHECK_INT(open_files(), before);
    CHECK_DONE();
}
