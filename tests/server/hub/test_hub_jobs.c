/* hub_jobs: models fetched, looked at and removed by processes of their own, from a hub in a thread of this program. */
#include "server/hub/hub_jobs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/said.h"

enum { CLIENTS = 64, HEAD = 4096, LARGE = 40000, TABLE = 200000 };

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

#define FAILING (errno = EMFILE, -1)

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(int, socketpair, (int family, int type, int protocol, int *pair), (family, type, protocol, pair),
          FAILING)
ONE_FAILS(pid_t, fork, (void), (), FAILING)
ONE_FAILS(int, pipe2, (int *ends, int flags), (ends, flags), FAILING)
ONE_FAILS(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags), FAILING)
ONE_FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), FAILING)
ONE_FAILS(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), FAILING)

/* All that comes until the end at once, as where nobody has looked for a while. */
static _Thread_local bool gathers;

ssize_t __real_read(int fd, void *data, size_t n);
ssize_t __wrap_read(int fd, void *data, size_t n);
ssize_t __wrap_read(int fd, void *data, size_t n)
{
    static char held[1 << 14];
    static size_t n_held_back;
    if (!gathers) {
        return __real_read(fd, data, n);
    }
    ssize_t got = 1;
    while (got > 0 && n_held_back < sizeof held) {
        got = __real_read(fd, held + n_held_back, sizeof held - n_held_back);
        n_held_back += got > 0 ? (size_t)got : 0;
    }
    if (got < 0 || n_held_back > n) {
        return -1;
    }
    got = (ssize_t)n_held_back;
    memcpy(data, held, n_held_back);
    n_held_back = 0;
    return got;
}

/* ---- the hub: each model has the same files; of one called "held" the weights come when they may ---- */

static int listening = -1;
static atomic_bool may_go_on, is_over;
static atomic_int n_held; /* transfers that wait */
static char weights[LARGE];

typedef struct file {
    const char *path, *data;
    size_t n;
} file;

static const file FILES[] = {{"config.json", "{\"family\":\"good\"}", 17},
                             {"model.safetensors", weights, sizeof weights},
                             {"tokenizer.json", "{}", 2}};

static void write_listing(bytes *out)
{
    bytes_append_str(out, "{\"sha\":\"" COMMIT "\",\"siblings\":[");
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        uint8_t hash[HASH_BYTES];
        char hex[2 * HASH_BYTES + 1];
        hash_stream *h = hash_stream_create_git(FILES[i].n);
        hash_stream_add(h, FILES[i].data, FILES[i].n);
        hash_stream_end(h, hash);
        hash_stream_destroy(h);
        hash_hex(hex, hash, HASH_GIT_BYTES);
        bytes_printf(out, "%s{\"rfilename\":\"%s\",\"size\":%zu,\"blobId\":\"%s\"}", i ? "," : "",
                     FILES[i].path, FILES[i].n, hex);
    }
    bytes_append_str(out, "]}");
}

static void send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        data += sent;
        n -= (size_t)sent;
    }
}

static void reply(int fd, int status, const char *data, size_t n, size_t n_now)
{
    char head[256];
    snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
             n);
    send_all(fd, head, strlen(head));
    send_all(fd, data, n_now);
}

/* Answers one request, and closes; false: it is kept until it may go on. */
static bool serve(int fd, char *head)
{
    ssize_t n = 0;
    for (ssize_t got = 1; got > 0 && !strstr(head, "\r\n\r\n") && n < HEAD - 1; head[n] = '\0') {
        got = recv(fd, head + n, (size_t)(HEAD - 1 - n), 0);
        n += got > 0 ? got : 0;
    }
    if (strstr(head, "none")) {
        reply(fd, 404, "", 0, 0);
    } else if (strncmp(head, "GET /api/", 9) == 0) {
        bytes list = bytes_empty(1 << 16);
        write_listing(&list);
        reply(fd, 200, bytes_str(&list), list.len, list.len);
        bytes_deinit(&list);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
            const file *f = &FILES[i];
            const bool is_refused = i == 0 && strstr(head, "refused"),
                       is_held = i == 1 && strstr(head, "held");
            const size_t now = is_held && !may_go_on ? f->n / 2 : f->n;
            if (strstr(head, f->path)) {
                reply(fd, 200, is_refused ? "{\"family\":\"evil\"}" : f->data, f->n, now);
                return now == f->n;
            }
        }
    }
    return true;
}

static void *hub(void *ctx)
{
    static int held[CLIENTS];
    static char heads[CLIENTS][HEAD];
    int n = 0;
    (void)ctx;
    while (!is_over) {
        struct pollfd fds[CLIENTS + 1] = {{.fd = listening, .events = POLLIN}};
        for (int i = 0; i < n; i++) {
            fds[i + 1] = (struct pollfd){.fd = held[i], .events = POLLIN};
        }
        (void)poll(fds, (nfds_t)n + 1, 10);
        for (int i = n; i-- > 0;) {
            if (may_go_on || fds[i + 1].revents) { /* it has hung up */
                send_all(held[i], weights + LARGE / 2, may_go_on ? LARGE / 2 : 0);
                close(held[i]);
                held[i] = held[--n];
                n_held = n;
            }
        }
        const int fd = fds[0].revents ? accept(listening, NULL, NULL) : -1;
        if (fd >= 0) {
            heads[n][0] = '\0';
            if (serve(fd, heads[n]) || n + 1 == CLIENTS) {
                close(fd);
            } else {
                held[n++] = fd;
                n_held = n;
            }
        }
    }
    while (n > 0) {
        close(held[--n]);
    }
    return NULL;
}

/* ---- jobs ---- */

static err_code check_config(const char *text, size_t n, err_detail *d)
{
    CHECK(n > 0);
    return strstr(text, "good") ? ERR_OK : err_set(d, ERR_UNSUPPORTED, "no \"family\"\nfor this");
}

static err_code check_gguf(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *d)
{
    (void)data, (void)n, (void)n_file, (void)is_first, (void)d;
    *is_whole = true;
    return ERR_OK;
}

/* The name says what it does. */
static err_code inspect(bytes *out, const char *path, const char *mmproj, bool as_json, err_detail *d)
{
    (void)mmproj;
    if (strstr(path, "dies")) {
        _exit(0);
    }
    for (int i = 0; strstr(path, "endless") && i < 1 << 19; i++) {
        bytes_append_char(out, '"');
    }
    for (int i = 0; strstr(path, "large") && i < TABLE; i++) { /* more than a pipe takes at once */
        bytes_append_char(out, 'a');
    }
    bytes_printf(out, "a \"table\"\n%s", as_json || mmproj ? "?" : strstr(path, COMMIT) ? "of it" : path);
    return strstr(path, "odd") ? err_set(d, ERR_CORRUPT, "odd weights") : ERR_OK;
}

static hub_jobs *jobs;
static char done[1024];
static bytes list;

static void on_done(void *ctx, hub_action action, const char *model)
{
    const size_t n = strlen(done);
    CHECK(ctx == &jobs);
    snprintf(done + n, sizeof done - n, "%d %s|", (int)action, model);
}

static const char *look(void)
{
    hub_jobs_look(jobs, on_done, &jobs);
    bytes_clear(&list);
    hub_jobs_write(jobs, &list);
    return bytes_str(&list);
}

/* Waits until the list has a text. */
static const char *becomes(const char *text)
{
    for (int i = 0; i < 30000 && !strstr(look(), text); i++) {
        usleep(2000);
    }
    CHECK_HAS(bytes_str(&list), text);
    return bytes_str(&list);
}

/* Waits until on_done was called so. */
static void is_told(const char *text)
{
    for (int i = 0; i < 30000 && !strstr(done, text); i++) {
        usleep(2000);
        (void)look();
    }
    CHECK_HAS(done, text);
}

static void begin(hub_action action, const char *model)
{
    err_detail d = {0};
    err_code err = ERR_LIMIT;
    for (int i = 0; i < 30000 && (err == ERR_LIMIT || err == ERR_BUSY);
         i++) { /* until the processes of those that said all are gone */
        usleep(i ? 2000 : 0);
        (void)look();
        err = hub_jobs_start(jobs, action, model, &d);
    }
    CHECK_OK(err, d);
}

/* Begins and waits for the end; the list has nothing else. */
static void ends(hub_action action, const char *model, const char *expected)
{
    const size_t n_done = strlen(done);
    begin(action, model);
    const bool succeeds = strstr(expected, "\"done\"") != NULL;
    while (strstr(look(), "\"state\":\"running\"") || (succeeds && strlen(done) == n_done)) {
        usleep(2000);
    }
    CHECK_STR(look(), expected);
    CHECK(hub_jobs_cancel(jobs, model)); /* is forgotten */
    CHECK_STR(look(), "[]");
}

static void test_each(void)
{
    done[0] = '\0';
    ends(HUB_PULL, "org/good", "[{\"model\":\"org/good\",\"action\":\"pull\",\"state\":\"done\"}]");
    ends(HUB_INSPECT, "org/good",
         "[{\"model\":\"org/good\",\"action\":\"inspect\",\"state\":\"done\",\"text\":\"a \\\"table\\\"\\nof "
         "it\"}]");
    gathers = true; /* the last of several lines counts */
    ends(HUB_PULL, "org/again", "[{\"model\":\"org/again\",\"action\":\"pull\",\"state\":\"done\"}]");
    gathers = false;
    ends(HUB_PULL, "org/refused",
         "[{\"model\":\"org/refused\",\"action\":\"pull\",\"state\":\"failed\",\"message\":\"no "
         "\\\"family\\\"\\nfor this\"}]");
    ends(HUB_PULL, "org/none",
         "[{\"model\":\"org/none\",\"action\":\"pull\",\"state\":\"failed\",\"message\":\"there is no such "
         "model or revision on the hub\"}]");
    ends(HUB_INSPECT, "org/none",
         "[{\"model\":\"org/"
         "none\",\"action\":\"inspect\",\"state\":\"failed\",\"message\":\"not_found\"}]");
    ends(HUB_PULL, "org/odd", "[{\"model\":\"org/odd\",\"action\":\"pull\",\"state\":\"done\"}]");
    ends(HUB_INSPECT, "org/odd",
         "[{\"model\":\"org/odd\",\"action\":\"inspect\",\"state\":\"failed\",\"message\":\"odd weights\"}]");
    ends(HUB_PULL, "org/endless", "[{\"model\":\"org/endless\",\"action\":\"pull\",\"state\":\"done\"}]");
    ends(HUB_INSPECT, "org/endless",
         "[{\"model\":\"org/endless\",\"action\":\"inspect\",\"state\":\"failed\",\"message\":\"there is too "
         "much to tell\"}]");
    static char table[TABLE + 200];
    const int n = snprintf(table, sizeof table,
                           "[{\"model\":\"org/large\",\"action\":\"inspect\",\"state\":\"done\",\"text\":\"");
    memset(table + n, 'a', TABLE);
    snprintf(table + n + TABLE, sizeof table - TABLE - (size_t)n, "a \\\"table\\\"\\nof it\"}]");
    ends(HUB_PULL, "org/large", "[{\"model\":\"org/large\",\"action\":\"pull\",\"state\":\"done\"}]");
    ends(HUB_INSPECT, "org/large", table);
    ends(HUB_PULL, "org/dies", "[{\"model\":\"org/dies\",\"action\":\"pull\",\"state\":\"done\"}]");
    ends(HUB_INSPECT, "org/dies",
         "[{\"model\":\"org/dies\",\"action\":\"inspect\",\"state\":\"failed\",\"message\":\"the process "
         "that did it is gone; say it again\"}]");
    ends(HUB_REMOVE, "org/good",
         "[{\"model\":\"org/good\",\"action\":\"remove\",\"state\":\"done\",\"freed\":40019}]");
    ends(HUB_INSPECT, "org/good",
         "[{\"model\":\"org/"
         "good\",\"action\":\"inspect\",\"state\":\"failed\",\"message\":\"not_found\"}]");
    CHECK_STR(
        done,
        "0 org/good|2 org/good|0 org/again|0 org/odd|0 org/endless|0 org/large|2 org/large|0 org/dies|1 "
        "org/good|"); /* those that succeeded */
}

static void test_names(void)
{
    char longer[2048];
    err_detail d = {0};
    CHECK_INT(hub_jobs_start(jobs, HUB_PULL, "good", &d), ERR_INVALID);
    CHECK_STR(d.text,
              "\"good\" is not the name of a model: it is ORG/NAME, ORG/NAME:QUANT or ORG/NAME@REVISION");
    snprintf(longer, sizeof longer, "o/%02000d", 0);
    CHECK_INT(hub_jobs_start(jobs, HUB_PULL, longer, &d), ERR_INVALID);
    CHECK(!hub_jobs_cancel(jobs, "org/good"));
    CHECK_STR(look(), "[]");
}

/* Several at once: their order, how many, and what makes room. */
static void test_many(void)
{
    char name[64], expected[128];
    err_detail d = {0};
    begin(HUB_INSPECT, "org/ended");
    begin(HUB_INSPECT, "org/ended-2");
    becomes("\"org/ended-2\",\"action\":\"inspect\",\"state\":\"failed\"");
    becomes("\"org/ended\",\"action\":\"inspect\",\"state\":\"failed\"");
    for (int i = 0; i < HUB_JOBS; i++) {
        snprintf(name, sizeof name, "org/held-%d", i);
        begin(HUB_PULL, name);
    }
    for (int i = 0; i < HUB_JOBS; i++) { /* half of it is there, and the other half is waited for */
        snprintf(expected, sizeof expected,
                 "{\"model\":\"org/"
                 "held-%d\",\"action\":\"pull\",\"state\":\"running\",\"n_files\":3,\"n_done\":2,\"bytes\":"
                 "20019,\"total\":40019,\"rate\":",
                 i);
        becomes(expected);
        CHECK_HAS(bytes_str(&list), "\"files\":[{\"name\":\"model.safetensors\",\"bytes\":20000,\"total\":"
                                    "40000,\"checking\":false,\"wait\":\"\"}]}");
    }
    CHECK(!strstr(look(), "ended")); /* those that had ended made room */
    CHECK(strstr(look(), "held-7") < strstr(look(), "held-0"));
    CHECK_INT(n_held, HUB_JOBS);
    CHECK_INT(hub_jobs_start(jobs, HUB_PULL, "org/good", &d), ERR_LIMIT);
    CHECK_STR(d.text, "8 models are being fetched; wait for one of them");
    CHECK_INT(hub_jobs_start(jobs, HUB_REMOVE, "org/held-3", &d), ERR_BUSY);
    CHECK_STR(d.text, "org/held-3: another job for it (pull) still runs");
    CHECK(hub_jobs_cancel(jobs, "org/held-3"));
    CHECK(!strstr(look(), "held-3"));
    for (int i = 0; i < 30000 && n_held == HUB_JOBS; i++) {
        usleep(2000);
    }
    CHECK_INT(n_held, HUB_JOBS - 1); /* nobody wants it any more: its process is gone */
    done[0] = '\0';
    begin(HUB_PULL, "org/good");
    becomes("\"org/good\",\"action\":\"pull\",\"state\":\"done\"");
    begin(HUB_INSPECT, "org/good"); /* takes the place of what was done of it */
    becomes("\"org/good\",\"action\":\"inspect\",\"state\":\"done\"");
    CHECK(!strstr(look(), "\"org/good\",\"action\":\"pull\""));
    is_told("2 org/good|");
    may_go_on = true;
    becomes("\"org/held-0\",\"action\":\"pull\",\"state\":\"done\"");
    for (int i = 0; i < HUB_JOBS; i++) {
        snprintf(expected, sizeof expected, "0 org/held-%d|", i);
        if (i != 3) {
            is_told(expected);
        }
        CHECK((strstr(done, expected) != NULL) == (i != 3));
    }
    may_go_on = false;
    begin(HUB_PULL, "org/held-3");
    becomes(
        "\"n_files\":1,\"n_done\":0,\"bytes\":20000,\"total\":40000,"); /* what was there is not fetched again */
}

/* Each call fails once: there is no process that starts others, or none of those; the next one is started. */
static void test_failing(const hub_jobs_hooks *hooks)
{
    static const struct {
        const char *call;
        int n;
        err_code err; /* of the beginning */
        const char *text;
    } ROWS[] = {
        {"calloc", 1, ERR_NOMEM, "there is not enough memory to fetch models"},
        {"socketpair", 1, ERR_IO, "Too many open files"},
        {"fork", 1, ERR_IO, "Too many open files"},
        {"pipe2", 1, ERR_OK, "no process could be started for it"}, /* in the process that starts others */
        {"fork", 2, ERR_OK, "no process could be started for it"},
        {"sendmsg", 1, ERR_OK, "no process could be started for it"},
        {"send", 1, ERR_OK, "no process could be started for it"},
        {"recvmsg", 1, ERR_OK, "no process could be started for it"},
    };
    const int before = open_files();
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        err_detail d = {0};
        one_fails(ROWS[i].call, ROWS[i].n);
        CHECK_INT(hub_jobs_create(&jobs, hooks, &d), ROWS[i].err);
        CHECK((jobs != NULL) == (ROWS[i].err == ERR_OK));
        if (jobs) {
            CHECK_INT(hub_jobs_start(jobs, HUB_INSPECT, "org/none", &d), ERR_IO);
            CHECK_STR(look(), "[]");
        }
        (void)one_fails_over();
        CHECK_STR(d.text, ROWS[i].text);
        if (jobs && strcmp(ROWS[i].call, "recvmsg") != 0) {
            CHECK_OK(hub_jobs_start(jobs, HUB_INSPECT, "org/none", &d), d);
            becomes("not_found");
        }
        hub_jobs_destroy(jobs);
        jobs = NULL;
        CHECK_INT(open_files(), before);
    }
}

int main(void)
{
    char folder[FOLDER_NAME], url[64];
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof address;
    err_detail d = {0};
    pthread_t thread;
    const hub_jobs_hooks hooks = {.check_config = check_config, .check_gguf = check_gguf, .inspect = inspect};
    for (size_t i = 0; i < LARGE; i++) {
        weights[i] = (char)('a' + i % 26);
    }
    folder_make(folder);
    const int before = open_files();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listening, CLIENTS) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&address, &n) == 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("HF_HOME", folder, 1);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HUB_OFFLINE");
    unsetenv("HF_TOKEN");
    unsetenv("http_proxy");
    setenv("HF_ENDPOINT", "nonsense", 1);
    CHECK_INT(hub_jobs_create(&jobs, &hooks, &d), ERR_INVALID);
    CHECK(jobs == NULL);
    setenv("HF_ENDPOINT", url, 1);
    list = bytes_empty(1 << 22);
    test_failing(&hooks);
    CHECK_OK(hub_jobs_create(&jobs, &hooks, &d), d); /* before there is a thread */
    CHECK_STR(hub_jobs_place(jobs)->endpoint, url);
    CHECK(pthread_create(&thread, NULL, hub, NULL) == 0);
    test_names();
    test_each();
    test_many();
    hub_jobs_destroy(jobs); /* and with it the one that runs */
    hub_jobs_destroy(NULL);
    for (int i = 0; i < 30000 && n_held > 0; i++) {
        usleep(2000);
    }
    CHECK_INT(n_held, 0);
    is_over = true;
    pthread_join(thread, NULL);
    close(listening);
    CHECK_INT(open_files(), before);
    bytes_deinit(&list);
    CHECK_DONE();
}
