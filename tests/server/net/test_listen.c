/* listen: what is opened for each list of hosts and what is refused, what a connection gets, what happens where descriptors run
 * out, sockets of a service manager; and each call of the system failing once, which is recorded. */
#include "server/net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

static int error = EIO; /* of what fails */

#define FAILED (errno = error, -1)

ONE_FAILS(int, socket, (int family, int type, int protocol), (family, type, protocol), FAILED)
ONE_FAILS(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), FAILED)
ONE_FAILS(int, listen, (int fd, int n), (fd, n), FAILED)
ONE_FAILS(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), FAILED)
ONE_FAILS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n),
          (fd, level, name, value, n), FAILED)
ONE_FAILS(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
          (fd, level, name, value, n), FAILED)
ONE_FAILS(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), FAILED)
ONE_FAILS(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), FAILED)
ONE_FAILS(int, lstat, (const char *path, struct stat *out), (path, out), FAILED)
ONE_FAILS(int, unlink, (const char *path), (path), FAILED)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return one_fails_now("open") ? FAILED : __real_open(path, flags);
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

/* ---- lists of hosts ---- */

static char folder[FOLDER_NAME], text[4096];

/* DIR in place of the folder, PORT in place of this port, NEXT of the one behind, SOME of another one. */
static const char *plain(const char *from, int port)
{
    char number[16], next[16];
    size_t n = 0;
    snprintf(number, sizeof number, "%d", port);
    snprintf(next, sizeof next, "%d", port + 1);
    while (*from && n < sizeof text - 8) {
        const char *sign = "";
        if (strncmp(from, folder, strlen(folder)) == 0) {
            sign = "DIR";
            from += strlen(folder);
        } else if (port && strncmp(from, number, strlen(number)) == 0) {
            sign = "PORT";
            from += strlen(number);
        } else if (port && strncmp(from, next, strlen(next)) == 0) {
            sign = "NEXT";
            from += strlen(next);
        } else if (strspn(from, "0123456789") > 3) {
            sign = "SOME";
            from += strspn(from, "0123456789");
        } else {
            text[n++] = *from++;
        }
        n += (size_t)snprintf(text + n, 8, "%s", sign);
    }
    text[n] = '\0';
    return text;
}

/* What is opened for hosts with spaces between, or what is said. */
static const char *opened(const char *list, int port)
{
    const char *hosts[16];
    static char copy[1024];
    size_t n = 0;
    listeners l;
    err_detail d = {0};
    snprintf(copy, sizeof copy, "%s", list);
    for (char *p = copy; *p && n < 16;) {
        hosts[n++] = p;
        p += strcspn(p, " ");
        if (*p) {
            *p++ = '\0';
        }
    }
    const err_code err = listeners_open(&l, hosts, n, port, &d);
    char said[2048];
    size_t used =
        (size_t)snprintf(said, sizeof said, "%s%s%s", err_name(err), err ? ": " : "", err ? d.text : "");
    if (err != ERR_OK) {
        CHECK_INT(l.n, 0);
        CHECK_INT(l.spare_fd, -1);
        return plain(said, port);
    }
    CHECK(l.port == port || port == 0 || l.port == 0);
    for (size_t i = 0; i < l.n; i++) {
        CHECK(l.items[i].fd >= 0 && (fcntl(l.items[i].fd, F_GETFL, 0) & O_NONBLOCK));
        used +=
            (size_t)snprintf(said + used, sizeof said - used, ", %s%s%s", l.items[i].is_unix ? "file " : "",
                             l.items[i].path, l.items[i].is_local ? "(local)" : "(any)");
    }
    snprintf(said + used, sizeof said - used, "; %s%s%s", listeners_are_local(&l) ? "local" : "open",
             l.port ? "" : ", no port", l.spare_fd < 0 ? ", no spare" : "");
    listeners_close(&l);
    CHECK_INT(l.n, 0);
    listeners_close(&l);
    return plain(said, port);
}

static int listening_at(const char *path, bool listens)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.107s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0 && (!listens || listen(fd, 1) == 0));
    return fd;
}

static void test_hosts(void)
{
    static const struct {
        const char *hosts, *opened;
    } ROWS[] = {
        {"127.0.0.1", "ok, (local); local"},
        {"localhost", "ok, (local); local"},
        {"0.0.0.0", "ok, (any); open"},
        {"127.0.0.1 127.0.0.2", "ok, (local), (local); local"},
        {"127.0.0.1 127.0.0.1",
         "invalid: --host 127.0.0.1 overlaps another --host (0.0.0.0 and :: are all addresses); "
         "leave one out"},
        {"127.0.0.1 localhost",
         "invalid: --host localhost overlaps another --host (0.0.0.0 and :: are all addresses); "
         "leave one out"},
        {"0.0.0.0 127.0.0.1",
         "invalid: --host 127.0.0.1 overlaps another --host (0.0.0.0 and :: are all addresses); "
         "leave one out"},
        {"127.0.0.1 0.0.0.0",
         "invalid: --host 0.0.0.0 overlaps another --host (0.0.0.0 and :: are all addresses); "
         "leave one out"},
        {"name.example",
         "invalid: host 'name.example' is not an IP address; try --host 127.0.0.1, or unix:/path"},
        {"192.0.2.1", "invalid: 192.0.2.1 is not an address of this machine; try --host 127.0.0.1"},
        {"", "invalid: --host takes 1 to 8 addresses"},
        {"127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6 127.0.0.7 127.0.0.8",
         "ok, (local), (local), (local), (local), (local), (local), (local), (local); local"},
        {"127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6 127.0.0.7 127.0.0.8 127.0.0.9",
         "invalid: --host takes 1 to 8 addresses"},
        {"unix:relative", "invalid: unix: needs a path from the root of at most 107 characters"},
        {"unix:/nowhere/at/all", "invalid: cannot listen on /nowhere/at/all: No such file or directory"},
        {"::1", "ok, (local); local"},
        {"::", "ok, (any); open"},
        {"::1 127.0.0.1", "ok, (local), (local); local"},
        {":: 0.0.0.0", "ok, (any), (any); open"},
        {":: ::1",
         "invalid: --host ::1 overlaps another --host (0.0.0.0 and :: are all addresses); leave one out"},
        {"::1 ::",
         "invalid: --host :: overlaps another --host (0.0.0.0 and :: are all addresses); leave one out"},
    };
    const bool has_v6 = strcmp(opened("::1", 0), "ok, (local); local") == 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (has_v6 || !strstr(ROWS[i].hosts, "::")) {
            CHECK_STR(opened(ROWS[i].hosts, 0), ROWS[i].opened);
        }
    }
    char hosts[512];
    snprintf(hosts, sizeof hosts, "unix:%s/s", folder);
    CHECK_STR(opened(hosts, 0), "ok, file DIR/s(local); local, no port");
    CHECK(access(hosts + 5, F_OK) != 0); /* it goes with its server */
    snprintf(hosts, sizeof hosts, "unix:%s/s 127.0.0.1 unix:%s/t", folder, folder);
    CHECK_STR(opened(hosts, 0), "ok, file DIR/s(local), (local), file DIR/t(local); local");
    snprintf(hosts, sizeof hosts, "unix:%s/%0*d", folder, (int)(107 - strlen(folder) - 1), 0);
    CHECK(strncmp(opened(hosts, 0), "ok", 2) == 0);
    snprintf(hosts, sizeof hosts, "unix:%s/%0*d", folder, (int)(108 - strlen(folder) - 1), 0);
    CHECK_STR(opened(hosts, 0), "invalid: unix: needs a path from the root of at most 107 characters");
    /* One that nobody listens on any more is replaced, one that is in use is not, nor is a file. */
    snprintf(hosts, sizeof hosts, "unix:%s/u", folder);
    int fd = listening_at(hosts + 5, true);
    CHECK_STR(opened(hosts, 0), "busy: DIR/u is in use; another server listens there");
    close(fd);
    CHECK_STR(opened(hosts, 0), "ok, file DIR/u(local); local, no port");
    fd = __real_open(hosts + 5, O_WRONLY | O_CREAT, 0600);
    close(fd);
    CHECK_STR(opened(hosts, 0), "busy: DIR/u is in use; another server listens there");
    CHECK(unlink(hosts + 5) == 0);
    /* A port that is taken. */
    listeners l;
    err_detail d = {0};
    CHECK_OK(listeners_open(&l, (const char *[]){"127.0.0.1"}, 1, 0, &d), d);
    CHECK_STR(opened("127.0.0.1", l.port), "busy: port PORT is in use; try --port NEXT");
    CHECK_STR(opened("127.0.0.2", l.port), "ok, (local); local");
    listeners_close(&l);
}

/* ---- connections ---- */

enum { KEPT_IDLE_S = 30, KEPT_GAP_S = 10, KEPT_PROBES = 3, SEND_BYTES = 256 << 10, UNSENT_BYTES = 32 << 10 };

static int connected(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (void *)&a, sizeof a) == 0);
    return fd;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t n = sizeof value;
    CHECK(getsockopt(fd, level, name, &value, &n) == 0);
    return value;
}

static void test_connections(void)
{
    listeners l;
    err_detail d = {0};
    char peer[LISTEN_PEER_MAX], path[128], got[1024] = "";
    snprintf(path, sizeof path, "unix:%s/s", folder);
    CHECK_OK(listeners_open(&l, (const char *[]){"127.0.0.1", path}, 2, 0, &d), d);
    CHECK_INT(listeners_accept(&l, 0, peer), -1); /* nobody is there */
    int client = connected(l.port), fd = listeners_accept(&l, 0, peer);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFL, 0) & O_NONBLOCK) && (fcntl(fd, F_GETFD, 0) & FD_CLOEXEC));
    CHECK_STR(peer, "127.0.0.1");
    CHECK_INT(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    CHECK_INT(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    CHECK_INT(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), KEPT_IDLE_S);
    CHECK_INT(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), KEPT_GAP_S);
    CHECK_INT(option(fd, IPPROTO_TCP, TCP_KEEPCNT), KEPT_PROBES);
    /* The system counts its own, too, and has a limit. */
    FILE *f = fopen("/proc/sys/net/core/wmem_max", "r");
    int most = 0;
    CHECK(f && fscanf(f, "%d", &most) == 1 && fclose(f) == 0);
    CHECK_INT(option(fd, SOL_SOCKET, SO_SNDBUF), 2 * (most < SEND_BYTES ? most : SEND_BYTES));
    CHECK_INT(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), UNSENT_BYTES);
    close(fd);
    close(client);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.107s", path + 5);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(client, (void *)&a, sizeof a) == 0);
    fd = listeners_accept(&l, 1, peer);
    CHECK(fd >= 0);
    CHECK_STR(peer, "unix");
    close(fd);
    close(client);
    /* No descriptor is left, time and again: whoever waits is told. */
    static const int ERRORS[] = {EMFILE, ENFILE, EMFILE};
    for (size_t i = 0; i < 3; i++) {
        client = connected(l.port);
        CHECK(send(client, "GET / HTTP/1.1\r\n\r\n", 18, 0) == 18);
        error = ERRORS[i];
        one_fails("accept4", 1);
        CHECK_INT(listeners_accept(&l, 0, peer), -1);
        CHECK(one_fails_over() && l.spare_fd >= 0);
        memset(got, 0, sizeof got);
        CHECK(recv(client, got, sizeof got - 1, MSG_WAITALL) > 0);
        CHECK_STR(
            got,
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 141\r\n"
            "Retry-After: 1\r\nConnection: close\r\n\r\n"
            "{\"error\":{\"message\":\"the server has no descriptor left for this connection\","
            "\"type\":\"unavailable_error\",\"param\":null,\"code\":\"no_descriptors\"}}");
        close(client);
    }
    client = connected(l.port);
    error = ECONNABORTED; /* another one tells nobody */
    one_fails("accept4", 1);
    CHECK_INT(listeners_accept(&l, 0, peer), -1);
    CHECK(one_fails_over());
    fd = listeners_accept(&l, 0, peer);
    CHECK(fd >= 0);
    close(fd);
    close(client);
    listeners_close(&l);
}

/* ---- a service manager ---- */

/* In a process of its own, whose descriptors from 3 on are so many sockets; the last one does not listen if bad. */
static void check_inherited(const char *count, const char *pid, int n, bool is_bad, err_code expected,
                            size_t n_taken, const char *says)
{
    const pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        listeners l;
        err_detail d = {0};
        char own[16];
        for (int i = 0; i < n; i++) {
            const int fd = socket(AF_INET, SOCK_STREAM, 0);
            CHECK(fd >= 0 && ((is_bad && i == n - 1) || listen(fd, 1) == 0) && dup2(fd, 40 + i) >= 0);
        }
        for (int i = 0; i < n; i++) {
            CHECK(dup2(40 + i, 3 + i) >= 0 && close(40 + i) == 0);
        }
        snprintf(own, sizeof own, "%ld", (long)getpid());
        count ? setenv("LISTEN_FDS", count, 1) : unsetenv("LISTEN_FDS");
        setenv("LISTEN_PID", pid ? pid : own, 1);
        setenv("LISTEN_FDNAMES", "a", 1);
        CHECK_INT(listeners_inherit(&l, &d), expected);
        CHECK_INT(l.n, n_taken);
        CHECK_STR(d.text, says);
        CHECK(!getenv("LISTEN_FDS") && !getenv("LISTEN_PID") && !getenv("LISTEN_FDNAMES"));
        for (size_t i = 0; i < l.n; i++) {
            CHECK_INT(l.items[i].fd, 3 + (int)i);
            CHECK((fcntl(l.items[i].fd, F_GETFL, 0) & O_NONBLOCK) &&
                  (fcntl(l.items[i].fd, F_GETFD, 0) & FD_CLOEXEC));
        }
        CHECK(l.n == 0 || l.port > 0);
        listeners_close(&l);
        fflush(stderr);
        _exit(check_failures != 0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_inherited(void)
{
    check_inherited("1", NULL, 1, false, ERR_OK, 1, "");
    check_inherited("3", NULL, 3, false, ERR_OK, 3, "");
    check_inherited("8", NULL, 8, false, ERR_OK, 8, "");
    check_inherited("9", NULL, 9, false, ERR_INVALID, 0,
                    "the service manager hands over 9 sockets; at most 8 are taken");
    check_inherited("-1", NULL, 1, false, ERR_INVALID, 0,
                    "the service manager hands over -1 sockets; at most 8 are taken");
    check_inherited("0", NULL, 1, false, ERR_OK, 0, "");
    check_inherited(NULL, NULL, 1, false, ERR_OK, 0, "");
    check_inherited("1", "1", 1, false, ERR_OK, 0, ""); /* for another process */
    check_inherited("2", NULL, 2, true, ERR_INVALID, 0,
                    "what the service manager hands over is no listening stream socket");
}

/* ---- what fails ---- */

static void test_failures(void)
{
    static const char *const CALLS[] = {"socket",      "bind",  "listen", "connect", "setsockopt",
                                        "getsockname", "lstat", "unlink", "open"};
    static const char *const HOSTS[] = {"127.0.0.1", "127.0.0.1 0.0.0.0", "unix:DIR/v", "unix:DIR/stale"};
    bytes all = bytes_empty(1 << 20);
    char hosts[256], stale[256], fresh[256];
    snprintf(stale, sizeof stale, "%s/stale", folder);
    snprintf(fresh, sizeof fresh, "%s/v", folder);
    error = EACCES;
    for (size_t i = 0; i < sizeof HOSTS / sizeof *HOSTS; i++) {
        bytes_printf(&all, "%s\n", HOSTS[i]);
        const char *name = strrchr(HOSTS[i], '/');
        if (name) {
            snprintf(hosts, sizeof hosts, "unix:%s%s", folder, name);
        } else {
            snprintf(hosts, sizeof hosts, "%s", HOSTS[i]);
        }
        for (size_t k = 0; k < sizeof CALLS / sizeof *CALLS; k++) {
            for (int n = 1, had = 1; had && n < 9; n++) {
                if (i == 3) {
                    close(listening_at(stale, false));
                }
                one_fails(CALLS[k], n);
                const char *said = opened(hosts, 0);
                had = one_fails_over();
                if (had) {
                    one_fails_say(&all, CALLS[k], n, said);
                }
                __real_unlink(stale);
                __real_unlink(fresh);
            }
        }
        one_fails_say(&all, NULL, 0, NULL);
    }
    recorded_check("server/net/listen.txt", bytes_str(&all));
    bytes_deinit(&all);
}

int main(void)
{
    folder_make(folder);
    test_hosts();
    test_connections();
    test_inherited();
    test_failures();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
