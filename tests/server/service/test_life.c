/* life: the server as a program, with the double of the engine: how it begins, what it says to who started it and to its
 * service manager, what signals do, how it ends. Each life is a process of its own; what it wrote, said and returned is
 * compared with a file.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/folder.h"
#include "tests/recorded.h"
#include "tests/server/fake_options.h"

enum { MOST = 1 << 20, DEADLINE_MS = 60000, ID_BYTES = 64 };

static char folder[FOLDER_NAME];
static bytes all;
static int manager = -1; /* the socket of a service manager */

/* ---- one life ---- */

typedef struct life {
    pid_t child;
    int port, log, wrote; /* log, wrote: its standard error, its standard output */
} life;

static struct {
    int n_reads;
    const char *keys[2];
} reading;

/* First another key, then one that cannot be read, then the first again. */
static err_code read_keys(void *ctx, const char *const **keys, size_t *n, err_detail *d)
{
    (void)ctx;
    if (++reading.n_reads == 2) {
        return err_set(d, ERR_INVALID, "the file of keys is gone");
    }
    reading.keys[0] = reading.n_reads == 1 ? "another-key-of-enough-letters" : "a-key-of-enough-letters";
    *keys = reading.keys;
    *n = 1;
    return ERR_OK;
}

static void on_listening(void *ctx, int port)
{
    const int *fd = ctx;
    CHECK(write(*fd, &port, sizeof port) == sizeof port);
}

static void live(const char *const *words, int port_fd)
{
    static fake_options f;
    char *copies[16];
    int n = 0;
    while (words[n]) {
        copies[n] = strdup(words[n]);
        n++;
    }
    if (!fake_options_read(&f, n, copies)) {
        exit(99);
    }
    f.serve.upload_dir = f.serve.upload_dir ? f.serve.upload_dir : folder;
    f.serve.on_listening = on_listening;
    f.serve.on_listening_ctx = &port_fd;
    f.serve.read_keys = f.serve.n_api_keys ? read_keys : NULL;
    log_set_level(LOG_INFO);
    const int code = serve_run(&f.serve);
    fake_options_end(&f);
    for (int i = 0; i < n; i++) {
        free(copies[i]);
    }
    fflush(stdout);
    exit(code);
}

static int file_for(const char *name)
{
    static int n;
    char path[128];
    snprintf(path, sizeof path, "%s/%s%d", folder, name, n++);
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static life begin(const char *what, const char *const *words)
{
    int port[2];
    life l = {.log = file_for("log"), .wrote = file_for("wrote")};
    bytes_printf(&all, "\n%s\n", what);
    CHECK(pipe(port) == 0);
    fflush(stdout);
    l.child = fork();
    if (l.child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that is ended from outside nothing stays */
        close(port[0]);
        dup2(l.log, STDERR_FILENO);
        dup2(l.wrote, STDOUT_FILENO);
        live(words, port[1]);
    }
    close(port[1]);
    l.port = read(port[0], &l.port, sizeof l.port) == sizeof l.port ? l.port : 0;
    close(port[0]);
    bytes_printf(&all, "  it listens: %s\n", l.port ? "yes" : "no");
    return l;
}

/* The lines of a file, without the time in front, its port as PORT. */
static void write_file(int fd, const char *name, int port, size_t skip)
{
    static char text[1 << 16];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
        char one[1024];
        const size_t len = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)(len > skip ? len - skip : 0), line + (len > skip ? skip : 0));
        const char *dir = strstr(one, folder);
        char method[16], path[64];
        int status;
        if (sscanf(one, "INFO srv req=%*s %15s %63s %d %*f ms", method, path, &status) == 3) {
            bytes_printf(&all, "  %s: %s %s %d\n", name, method, path, status);
        }
        if (strstr(one, "req=")) { /* of requests, whose ids and times differ */
            continue;
        }
        if (dir) {
            bytes_printf(&all, "  %s: %.*sFOLDER%s\n", name, (int)(dir - one), one, dir + strlen(folder));
            continue;
        }
        bytes_printf(&all, "  %s: ", name);
        for (const char *c = one; *c;) {
            char *rest;
            const long number = strtol(c, &rest, 10);
            const bool is_port = port && *c != ' ' && rest > c && (number == port || number == port + 1);
            if (is_port) {
                bytes_append_str(&all, number == port ? "PORT" : "PORT+1");
                c = rest;
            } else {
                bytes_append_char(&all, *c++);
            }
        }
        bytes_append_char(&all, '\n');
    }
    close(fd);
}

/* What the service manager hears, to a line that it waits for. */
static void hear(const char *last)
{
    char text[1024];
    for (bool is_over = false; !is_over;) {
        struct pollfd p = {.fd = manager, .events = POLLIN};
        const ssize_t n = poll(&p, 1, DEADLINE_MS) > 0 ? recv(manager, text, sizeof text - 1, 0) : -1;
        text[n > 0 ? n : 0] = '\0';
        is_over = n <= 0 || strstr(text, last);
        for (char *c = text; *c; c++) {
            *c = *c == '\n' ? '|' : *c;
        }
        /* how often it says that it loads depends on time */
        if (n <= 0 || !(strstr(text, "STATUS=Loading") || strncmp(text, "EXTEND_TIMEOUT_USEC", 19) == 0)) {
            bytes_printf(&all, "  the manager hears: %s\n", n > 0 ? text : "nothing");
        }
    }
}

static void end(life *l)
{
    int status = 0;
    CHECK(waitpid(l->child, &status, 0) == l->child);
    write_file(l->log, "log", l->port, strlen("2026-11-20T12:07:01.123Z "));
    write_file(l->wrote, "written", l->port, 0);
    bytes_printf(&all, "  it ends: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- what is asked of it ---- */

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* The status of the reply to a request; its body goes to `body`. */
static int ask(int port, const char *key, bytes *body)
{
    char text[512], piece[4096];
    const int fd = connect_to(port);
    const int n = snprintf(text, sizeof text,
                           "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                           "Connection: close\r\n\r\n",
                           key);
    CHECK(write(fd, text, (size_t)n) == n);
    bytes_clear(body);
    for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;) {
        bytes_append(body, piece, (size_t)got);
    }
    close(fd);
    return body->len > 12 ? (int)strtol(bytes_str(body) + 9, NULL, 10) : 0;
}

static void ask_until(const life *l, const char *key, int wanted)
{
    bytes body = bytes_empty(MOST);
    int status = 0;
    for (int i = 0; i < DEADLINE_MS / 5 && (status = ask(l->port, key, &body)) != wanted; i++) {
        usleep(5000);
    }
    bytes_printf(&all, "  with %s: %d\n", key, status);
    bytes_deinit(&body);
}

/* Waits until the log has a text so many times. */
static void wait_log(const life *l, const char *text, int times)
{
    static char log[1 << 16];
    for (int i = 0; i < DEADLINE_MS / 5; i++) {
        const ssize_t n = pread(l->log, log, sizeof log - 1, 0);
        log[n > 0 ? n : 0] = '\0';
        int found = 0;
        for (const char *at = log; (at = strstr(at, text)); at++) {
            found++;
        }
        if (found >= times) {
            return;
        }
        usleep(5000);
    }
    CHECK_STR(log, text);
}

/* ---- lives ---- */

static void open_manager(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "%s/manager", folder);
    unlink(address->sun_path);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(manager, (struct sockaddr *)address, sizeof *address) == 0);
    setenv("NOTIFY_SOCKET", address->sun_path, 1);
}

/* Begins a chat, and waits for the first of its answer; its id, as the reply has it, goes to `id`, if that is not NULL. */
static int begin_chat(const life *l, const char *says, char id[ID_BYTES])
{
    char text[512], body[256], piece[1024];
    snprintf(body, sizeof body,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], \"stream\": true}", says);
    const int n = snprintf(text, sizeof text,
                           "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                           "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           strlen(body), body);
    const int fd = connect_to(l->port);
    CHECK(write(fd, text, (size_t)n) == n);
    const ssize_t got = read(fd, piece, sizeof piece - 1);
    CHECK(got > 0);
    piece[got > 0 ? got : 0] = '\0';
    const char *named = strstr(piece, "x-request-id: ");
    if (id) {
        CHECK(named && sscanf(named, "x-request-id: %63s", id) == 1);
    }
    return fd;
}

/* What is logged of a request has the id that its reply has. */
static void log_of_a_chat(const life *l)
{
    char id[ID_BYTES] = "", logged[ID_BYTES + 8];
    const int fd = begin_chat(l, "short", id);
    snprintf(logged, sizeof logged, "req=%s ", id);
    wait_log(l, logged, 1);
    close(fd);
}

static void whole_life(void)
{
    struct sockaddr_un address;
    open_manager(&address);
    life l = begin("a whole life, with a service manager", (const char *const[]){"--drain", "7", NULL});
    unsetenv("NOTIFY_SOCKET");
    hear("READY=1");
    ask_until(&l, "no-key", 200);
    log_of_a_chat(&l);
    kill(l.child, SIGTERM);
    hear("STOPPING=1");
    end(&l);
    close(manager);
}

static void keys_again(void)
{
    static const char OLD[] = "a-key-of-enough-letters", NEW[] = "another-key-of-enough-letters",
                      ADMIN[] = "the-key-of-who-manages-models";
    life l = begin("keys are read again", (const char *const[]){"--key", OLD, "--admin-key", ADMIN, NULL});
    ask_until(&l, ADMIN, 200);
    ask_until(&l, OLD, 200);
    ask_until(&l, NEW, 401);
    kill(l.child, SIGHUP);
    ask_until(&l, NEW, 200);
    ask_until(&l, OLD, 401);
    kill(l.child, SIGHUP);
    wait_log(&l, "the keys stay", 1);
    ask_until(&l, NEW, 200);
    kill(l.child, SIGHUP);
    ask_until(&l, OLD, 200);
    ask_until(&l, ADMIN, 200);
    kill(l.child, SIGINT);
    end(&l);
    l = begin("there are no keys to be read again", (const char *const[]){"--access-log", "on", NULL});
    wait_log(&l, "tool calls", 1); /* each request is logged: the first comes when the model is there */
    ask_until(&l, "no-key", 200);
    kill(l.child, SIGHUP);
    wait_log(&l, "reloaded", 1);
    ask_until(&l, "no-key", 200);
    kill(l.child, SIGINT);
    end(&l);
}

/* One whose address, or whose model, is not the usual one. */
static void ready_elsewhere(const char *what, const char *const *words, const char *logged)
{
    struct sockaddr_un address;
    open_manager(&address);
    life l = begin(what, words);
    unsetenv("NOTIFY_SOCKET");
    hear("READY=1");
    wait_log(&l, logged, 1);
    kill(l.child, SIGTERM);
    hear("STOPPING=1");
    end(&l);
    close(manager);
}

/* An answer that goes on holds up the end; a second signal does not wait for it. */
static void second_signal(int first, int second, const char *what)
{
    life l = begin(what, (const char *const[]){"--drain", "600", NULL});
    ask_until(&l, "no-key", 200);
    const int fd = begin_chat(&l, "!delay=60000 long", NULL);
    kill(l.child, first);
    wait_log(&l, "shutting down", 1);
    kill(l.child, second);
    end(&l);
    close(fd);
}

/* The first line and the body of the reply to a request, on a connection that goes on. */
static void ask_on(int fd, const char *request)
{
    bytes got = bytes_empty(MOST);
    size_t wanted = SIZE_MAX;
    CHECK(write(fd, request, strlen(request)) == (ssize_t)strlen(request));
    char piece[4096];
    for (ssize_t n; got.len < wanted && (n = read(fd, piece, sizeof piece)) > 0;) {
        bytes_append(&got, piece, (size_t)n);
        const char *length = strstr(bytes_str(&got), "Content-Length: "),
                   *end = strstr(bytes_str(&got), "\r\n\r\n");
        wanted = length && end ? (size_t)(end + 4 - got.data) + strtoul(length + 16, NULL, 10) : wanted;
    }
    const char *text = bytes_str(&got), *body = strstr(text, "\r\n\r\n");
    bytes_printf(&all, "  %.*s: %.*s %s\n", (int)strcspn(request, "\r"), request, (int)strcspn(text, "\r"),
                 text, body ? body + 4 : "");
    bytes_deinit(&got);
}

/* Connections from before the end are told what goes on. */
static void asked_while_it_ends(void)
{
    static const char HEALTH[] = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    life l = begin("what is asked while it ends", (const char *const[]){"--drain", "600", NULL});
    ask_until(&l, "no-key", 200);
    const int fd = begin_chat(&l, "!delay=60000 long", NULL), own = connect_to(l.port),
              other = connect_to(l.port);
    ask_on(own, HEALTH);
    ask_on(other, HEALTH);
    kill(l.child, SIGTERM);
    wait_log(&l, "shutting down", 1);
    ask_on(own, HEALTH);
    ask_on(own, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                "Content-Length: 47\r\n\r\n{\"messages\":[{\"role\":\"user\",\"content\":\"late\"}]}");
    ask_on(other,
           "GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    kill(l.child, SIGTERM);
    end(&l);
    close(fd);
    close(own);
    close(other);
}

/* Nothing can end the computation, so the program ends without it. */
static void stalled(void)
{
    char go[FOLDER_NAME + 8];
    snprintf(go, sizeof go, "%s/go", folder);
    setenv("FAKE_STUCK_UNTIL", go, 1);
    life l = begin("a computation that stalls",
                   (const char *const[]){"--step-timeout", "4", "--drain", "0", NULL});
    ask_until(&l, "no-key", 200);
    const int fd = begin_chat(&l, "!stuck long", NULL);
    wait_log(&l, "ERROR", 1);
    kill(l.child, SIGTERM);
    end(&l);
    close(fd);
}

/* What is said to whom other machines can reach. */
static void open_to_all(const char *what, const char *const *words)
{
    life l = begin(what, words);
    ask_until(&l, "a-key-of-enough-letters", 200);
    kill(l.child, SIGTERM);
    end(&l);
}

static void does_not_begin(const char *what, const char *const *words)
{
    life l = begin(what, words);
    end(&l);
}

int main(void)
{
    char port[16], socket_path[FOLDER_NAME + 16], chats[FOLDER_NAME + 16];
    all = bytes_empty(MOST);
    folder_make(folder);
    whole_life();
    keys_again();
    second_signal(SIGTERM, SIGTERM, "two signals, while an answer goes on");
    second_signal(SIGINT, SIGINT, "two of the other signal");
    asked_while_it_ends();
    stalled();
    does_not_begin("an address that is none", (const char *const[]){"--host", "nowhere", NULL});
    does_not_begin("open to all without a key", (const char *const[]){"--host", "0.0.0.0", NULL});
    open_to_all("open to all with a key",
                (const char *const[]){"--host", "0.0.0.0", "--key", "a-key-of-enough-letters", NULL});
    open_to_all("open to all without a key, as it was asked for",
                (const char *const[]){"--host", "0.0.0.0", "--insecure-no-key", "on", NULL});
    snprintf(socket_path, sizeof socket_path, "unix:%s/server", folder);
    ready_elsewhere("at a socket of this machine", (const char *const[]){"--host", socket_path, NULL},
                    "tool calls");
    ready_elsewhere(
        "with models of other servers alone",
        (const char *const[]){"--no-model", "on", "--upstream", "far=http://127.0.0.1:1/v1", NULL},
        "Couldn't connect");
    does_not_begin("a pinned model that is not there",
                   (const char *const[]){"--models-dir", folder, "--pin", "ash", NULL});
    does_not_begin("a pinned model without a folder of models", (const char *const[]){"--pin", "ash", NULL});
    does_not_begin("a host of media that is none", (const char *const[]){"--media-domain", "a b", NULL});
    does_not_begin("a folder of media that is not there",
                   (const char *const[]){"--media-path", "/nowhere", NULL});
    does_not_begin("a folder of models that is not there",
                   (const char *const[]){"--models-dir", "/nowhere", NULL});
    does_not_begin("a folder of media that is a file",
                   (const char *const[]){"--media-path", "/dev/null", NULL});
    does_not_begin("more models without a folder of models",
                   (const char *const[]){"--models-max", "2", NULL});
    does_not_begin("models that are unloaded without a folder of models",
                   (const char *const[]){"--idle-unload", "60", NULL});
    does_not_begin("a folder of uploads that was asked for and is not there",
                   (const char *const[]){"--upload-dir", "/nowhere", "--needs-uploads", "on", NULL});
    open_to_all("a folder of uploads that is not there",
                (const char *const[]){"--upload-dir", "/nowhere", NULL});
    does_not_begin("a folder of chats that is a file", (const char *const[]){"--history", "/dev/null", NULL});
    snprintf(chats, sizeof chats, "%s/chats", folder);
    life l = begin("the first one", (const char *const[]){"--history", chats, NULL});
    ask_until(&l, "no-key", 200);
    snprintf(port, sizeof port, "%d", l.port);
    bytes other = all;
    all = bytes_empty(MOST);
    life second = begin("one at the same port", (const char *const[]){"--port", port, NULL});
    second.port = l.port;
    end(&second);
    does_not_begin("one with the same chats", (const char *const[]){"--history", chats, NULL});
    bytes told = all;
    all = other;
    kill(l.child, SIGTERM);
    end(&l);
    bytes_append(&all, told.data, told.len);
    bytes_deinit(&told);
    static const char *const HOW[][2] = {{"corrupt", "a model that is damaged"},
                                         {"refuse", "a model for which there is no memory"},
                                         {"unfit", "options that do not fit the model"},
                                         {"failing", "a model that cannot be read"}};
    for (size_t i = 0; i < ARRAY_LEN(HOW); i++) {
        setenv("FAKE_LOAD_FAILS", HOW[i][0], 1);
        does_not_begin(HOW[i][1], (const char *const[]){NULL});
    }
    recorded_check("server/service/recorded/life.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
