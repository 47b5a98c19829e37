/* hub_jobs with processes, lines and a hub that are made up: what the process that starts jobs and the jobs themselves do, call
 * by call, what a job says when, and what the server does with what it hears. tests/server/hub/jobs_calls.txt has all of it;
 * real processes are in test_hub_jobs. */
#define _GNU_SOURCE /* sigabbrev_np, pipe2 */
#include "server/hub/hub_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "server/hub/hub_pull.h"
#include "tests/recorded.h"

enum {
    LINE = 900,
    ITS_LINE = 901,
    HIGH = 902,
    NULL_FD = 903,
    READ_END = 904,
    WRITE_END = 905,
    JOB_FD = 910,
    ITS_PLACE = 3, /* where the starter has its line */
    LOG = 1 << 18
};

/* What is done in processes of this program's own, too, as each of ours ends with _exit. */
static struct {
    size_t n;
    char text[LOG];
} * said;

static void note(const char *format, ...) PRINTF_LIKE(1, 2);
static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(said->text + said->n, LOG - said->n, format, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n < LOG - said->n);
    said->n += (size_t)n;
}

/* ---- the system ---- */

static int given_fd = JOB_FD; /* of a job's line */
static bool is_made_up;       /* this is one of those processes */
static const char *failing;   /* a call that fails; each of them */
static pid_t forks[4];        /* what fork returns, one after the other */
static size_t n_forked;
static double now_ms;
static const char *const *orders; /* "pull NAME" and the like, that the starter gets; NULL: its line ends */

static bool fails(const char *call)
{
    errno = EMFILE;
    return failing && strcmp(failing, call) == 0;
}

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return now_ms;
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    note("  fork\n");
    errno = EAGAIN;
    return forks[n_forked++];
}

void __real__exit(int code);
void __wrap__exit(int code);
void __wrap__exit(int code)
{
    note("  _exit %d\n", code);
    __real__exit(check_failures ? 1 : 0);
}

int __wrap_socketpair(int family, int kind, int protocol, int out[2]);
int __wrap_socketpair(int family, int kind, int protocol, int out[2])
{
    note("  socketpair%s %d\n", family == AF_UNIX && kind == (SOCK_STREAM | SOCK_CLOEXEC) ? "" : "?",
         protocol);
    out[0] = LINE;
    out[1] = ITS_LINE;
    return fails("socketpair") ? -1 : 0;
}

int __wrap_pipe2(int out[2], int flags);
int __wrap_pipe2(int out[2], int flags)
{
    note("  pipe2%s\n", flags == O_CLOEXEC ? "" : "?");
    if (fails("pipe2")) {
        return -1;
    }
    out[0] = READ_END;
    out[1] = WRITE_END;
    return 0;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (fd < LINE && fd != given_fd && !(is_made_up && fd == ITS_PLACE)) {
        return __real_close(fd);
    }
    note("  close %d\n", fd);
    return 0;
}

int __wrap_close_range(unsigned from, unsigned to, int flags);
int __wrap_close_range(unsigned from, unsigned to, int flags)
{
    note("  close_range %u to %s, %d\n", from, to == ~0U ? "all" : "?", flags);
    return 0;
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    const int value = va_arg(args, int);
    va_end(args);
    if (fd < LINE && fd != given_fd) {
        return __real_fcntl(fd, what, value);
    }
    note("  fcntl %d %s%s\n", fd,
         what == F_DUPFD_CLOEXEC ? "above "
         : what == F_SETFL       ? "flags "
                                 : "?",
         what == F_DUPFD_CLOEXEC ? (value == 4 ? "4" : "?")
         : value == O_NONBLOCK   ? "nonblock"
                                 : "?");
    return HIGH;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (strcmp(path, "/dev/null") != 0) {
        return __real_open(path, flags, 0600);
    }
    note("  open %s%s\n", path, flags == (O_RDWR | O_CLOEXEC) ? "" : "?");
    return NULL_FD;
}

int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to)
{
    note("  dup2 %d %d\n", from, to);
    return to;
}

void (*__wrap_signal(int number, void (*handler)(int)))(int);
void (*__wrap_signal(int number, void (*handler)(int)))(int)
{
    note("  signal %s %s\n", sigabbrev_np(number),
         handler == SIG_DFL   ? "as ever"
         : handler == SIG_IGN ? "ignored"
                              : "?");
    return SIG_DFL;
}

int __wrap_prctl(int what, ...);
int __wrap_prctl(int what, ...)
{
    va_list args;
    va_start(args, what);
    if (what == PR_SET_NAME) {
        note("  prctl name %s\n", va_arg(args, char *));
    } else {
        note("  prctl %s %s\n", what == PR_SET_PDEATHSIG ? "at the parent's death" : "?",
             sigabbrev_np(va_arg(args, int)));
    }
    va_end(args);
    return 0;
}

pid_t __real_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
    if (status) {
        return __real_waitpid(pid, status, flags); /* of this program's own */
    }
    note("  waitpid %d, %d\n", (int)pid, flags);
    return pid;
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *ctx)
{
    *out = pthread_self();
    note("  a thread%s\n", how ? "?" : "");
    if (fails("watch")) {
        run(ctx); /* which ends the process */
    }
    return fails("pthread_create") ? EAGAIN : 0;
}

static short looks[4]; /* what a watcher sees, one after the other */
static size_t n_looks;

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    note("  poll %d for %d, of %d, %d ms\n", fds->fd, fds->events, (int)n, ms);
    fds->revents = looks[n_looks++];
    return 1;
}

/* ---- lines between processes ---- */

/* As hub_jobs.c has it. */
typedef struct order {
    hub_action action;
    char model[HUB_REPO_MAX + HUB_QUANT_MAX + HUB_REVISION_MAX];
} order;

static const char *const ACTIONS[] = {"pull", "remove", "inspect"};

ssize_t __wrap_recv(int fd, void *out, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *out, size_t n, int flags)
{
    order o = {.action = HUB_PULL};
    note("  recv %d%s\n", fd, flags == MSG_WAITALL && n == sizeof o ? "" : "?");
    if (!*orders) {
        return 0;
    }
    const char *text = *orders++;
    while (strncmp(ACTIONS[o.action], text, strlen(ACTIONS[o.action])) != 0) {
        o.action++;
    }
    snprintf(o.model, sizeof o.model, "%s", strchr(text, ' ') + 1);
    memcpy(out, &o, sizeof o);
    return (ssize_t)(strcmp(o.model, "half") == 0 ? sizeof o / 2 : sizeof o);
}

ssize_t __wrap_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags)
{
    const order *o = data;
    if (n == 1) {
        note("  send %d %c%s\n", fd, *(const char *)data, flags == MSG_NOSIGNAL ? "" : "?");
    } else {
        CHECK_INT(n, sizeof *o);
        note("  send %d %s %s%s\n", fd, ACTIONS[o->action], o->model, flags == MSG_NOSIGNAL ? "" : "?");
    }
    return fails("send") ? (ssize_t)n - 1 : (ssize_t)n;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    const struct cmsghdr *h = CMSG_FIRSTHDR(m);
    int sent = -1;
    CHECK(h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
          h->cmsg_len == CMSG_LEN(sizeof sent));
    memcpy(&sent, CMSG_DATA(h), sizeof sent);
    CHECK(m->msg_iovlen == 1 && m->msg_iov->iov_len == 1 && m->msg_controllen == CMSG_SPACE(sizeof sent));
    note("  sendmsg %d %c with %d%s\n", fd, *(const char *)m->msg_iov->iov_base, sent,
         flags == MSG_NOSIGNAL ? "" : "?");
    return fails("sendmsg") ? -1 : 1;
}

static bool has_descriptor;

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
    note("  recvmsg %d%s\n", fd, flags == MSG_CMSG_CLOEXEC ? "" : "?");
    CHECK(m->msg_iovlen == 1 && m->msg_iov->iov_len == 1 && m->msg_controllen == CMSG_SPACE(sizeof given_fd));
    if (has_descriptor) {
        struct cmsghdr *h = CMSG_FIRSTHDR(m);
        *h = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof given_fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), &given_fd, sizeof given_fd);
    } else {
        m->msg_controllen = 0;
    }
    return fails("recvmsg") ? 0 : 1;
}

static int n_short; /* writes from now on that are disturbed, and then short */

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    if (fd < LINE) {
        return __real_write(fd, data, n);
    }
    if (fails("write")) {
        note("  write %d fails\n", fd);
        return -1;
    }
    if (n_short > 0) {
        n_short--;
        errno = EINTR;
        n = n_short % 2 ? 0 : 5;
    }
    note("  write %d: %.*s%s\n", fd, (int)n, (const char *)data, n == 0 ? "(disturbed)" : "");
    return n ? (ssize_t)n : -1;
}

static const char *const *pieces; /* what jobs say; "": nothing yet, "!": an error, NULL: the end */

ssize_t __real_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n)
{
    if (fd < LINE) {
        return __real_read(fd, out, n);
    }
    const char *piece = *pieces;
    note("  read %d: %zu bytes\n", fd, n);
    if (!piece) {
        return 0;
    }
    pieces++;
    if (piece[0] == '\0' || piece[0] == '!') {
        errno = piece[0] == '!' ? EIO : EAGAIN;
        return -1;
    }
    memcpy(out, piece, strlen(piece));
    return (ssize_t)strlen(piece);
}

/* ---- the hub and its cache ---- */

err_code __wrap_hub_place_find(hub_place *out, err_detail *d);
err_code __wrap_hub_place_find(hub_place *out, err_detail *d)
{
    *out = (hub_place){.endpoint = "https://hub", .cache = "/cache"};
    return fails("hub_place_find") ? err_set(d, ERR_INVALID, "HF_ENDPOINT is odd") : ERR_OK;
}

static void note_name(const char *what, const hub_name *name)
{
    note("  %s %s, %s, %s\n", what, name->repo, name->quant, name->revision);
}

static err_code check_config(const char *text, size_t n, err_detail *d)
{
    (void)text;
    return err_set(d, ERR_INVALID, "%zu", n);
}

static err_code check_gguf(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *d)
{
    *is_whole = is_first && data && n == n_file;
    return err_set(d, ERR_INVALID, "no file");
}

static err_code inspect(bytes *out, const char *path, const char *mmproj, bool as_json, err_detail *d)
{
    note("  inspect %s, %s, %d\n", path, mmproj ? mmproj : "-", as_json);
    bytes_append_str(out, "a \"table\"\n");
    return fails("inspect") ? err_set(d, ERR_CORRUPT, "it is damaged") : ERR_OK;
}

static const hub_jobs_hooks HOOKS = {
    .check_config = check_config, .check_gguf = check_gguf, .inspect = inspect};

/* Three files, and what becomes of them. */
static void tick(const hub_pull_hooks *hooks, double ms, int64_t a, hub_phase phase_a, int64_t b,
                 hub_phase phase_b)
{
    static const hub_file FILES[] = {
        {.path = "a.gguf", .size = 1000000}, {.path = "b \"b\"", .size = 500}, {.path = "c", .size = 7}};
    hub_task tasks[] = {{.file = &FILES[0], .at = a, .phase = phase_a, .wait_why = "the hub asks to wait"},
                        {.file = &FILES[1], .at = b, .phase = phase_b, .wait_why = "never said"},
                        {.file = &FILES[2], .phase = HUB_WAITING}};
    now_ms = ms;
    note("  %.0f ms:\n", ms);
    hooks->on_tick(hooks->ctx, tasks, ARRAY_LEN(tasks));
}

err_code __wrap_hub_pull(hub_found *out, const hub_place *place, const hub_name *name,
                         const hub_pull_hooks *hooks, err_detail *d);
err_code __wrap_hub_pull(hub_found *out, const hub_place *place, const hub_name *name,
                         const hub_pull_hooks *hooks, err_detail *d)
{
    *out = (hub_found){.path = "/cache/model"};
    note_name("hub_pull", name);
    CHECK(hooks->check_config == check_config && hooks->check_gguf == check_gguf && !hooks->may_fetch);
    CHECK_STR(place->endpoint, "https://hub");
    tick(hooks, 10000, 1000, HUB_CHECKING, 0, HUB_FETCHING);
    tick(hooks, 10100, 2000, HUB_CHECKING, 0, HUB_FETCHING);
    tick(hooks, 10199, 3000, HUB_CHECKING, 0, HUB_FETCHING);
    tick(hooks, 10200, 4000, HUB_CHECKING, 0, HUB_FETCHING);
    tick(hooks, 10699, 5000, HUB_FETCHING, 0, HUB_FETCHING);
    tick(hooks, 10700, 6000, HUB_FETCHING, 0, HUB_FETCHING); /* 2000 in half a second */
    tick(hooks, 10900, 7000, HUB_FETCHING, 100, HUB_FETCHING);
    tick(hooks, 11700, 9000, HUB_FETCHING, 500, HUB_DONE); /* 3500 in a second */
    tick(hooks, 12000, 9000, HUB_PAUSED, 500, HUB_DONE);
    tick(hooks, 12300, 0, HUB_PAUSED, 500, HUB_DONE); /* it begins anew */
    tick(hooks, 12800, 100, HUB_FETCHING, 500, HUB_DONE);
    tick(hooks, 13000, 1000000, HUB_DONE, 500, HUB_DONE);
    if (fails("silent")) {
        return ERR_NOMEM; /* without a word why */
    }
    return fails("hub_pull") ? err_set(d, ERR_UPSTREAM, "the hub is \"away\"") : ERR_OK;
}

err_code __wrap_hub_cache_remove(const char *cache, const hub_name *name, int64_t *n_bytes, err_detail *d);
err_code __wrap_hub_cache_remove(const char *cache, const hub_name *name, int64_t *n_bytes, err_detail *d)
{
    note_name(cache, name);
    *n_bytes = 12345678901;
    return fails("hub_cache_remove") ? err_set(d, ERR_NOT_FOUND, "there is none") : ERR_OK;
}

err_code __wrap_hub_cache_find(hub_found *out, const char *cache, const hub_name *name, err_detail *d);
err_code __wrap_hub_cache_find(hub_found *out, const char *cache, const hub_name *name, err_detail *d)
{
    note_name(cache, name);
    *out = (hub_found){.path = "/cache/model"};
    snprintf(out->mmproj, sizeof out->mmproj, "%s", fails("sees") ? "/cache/mmproj" : "");
    return fails("hub_cache_find") ? err_set(d, ERR_NOT_FOUND, "it is not here") : ERR_OK;
}

/* ---- what is done ---- */

/* In a process of its own. */
static void in_process(const char *why, const char *call, void (*does)(void))
{
    int status = 0;
    note("==== %s\n", why);
    fflush(NULL);
    pid_t __real_fork(void);
    const pid_t pid = __real_fork();
    if (pid == 0) {
        is_made_up = true;
        failing = call;
        does();
        note("  comes back\n");
        __real__exit(1);
    }
    CHECK(pid > 0 && __real_waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

static void create(void)
{
    hub_jobs *j;
    err_detail d = {0};
    n_forked = 0;
    const err_code err = hub_jobs_create(&j, &HOOKS, &d);
    note("  %d %s\n", (int)err, d.text);
}

static void test_starter(void)
{
    static const char *const NONE[] = {NULL}, *const HALF[] = {"pull half", NULL},
                             *const TWO[] = {"pull a/b:q4@main", "remove c/d", NULL};
    forks[0] = 0;
    orders = NONE;
    in_process("the starter without orders", NULL, create);
    orders = HALF;
    in_process("half an order", NULL, create);
    orders = TWO;
    forks[1] = forks[2] = 77;
    in_process("two orders", NULL, create);
    in_process("no pipe for them", "pipe2", create);
    in_process("nothing can be sent", "sendmsg", create);
    forks[1] = -1;
    in_process("no process for the first", NULL, create);
}

static void test_job(void)
{
    static const char *const PULL[] = {"pull a/b:q4@v1", NULL}, *const REMOVE[] = {"remove a/b", NULL},
                             *const INSPECT[] = {"inspect a/b", NULL}, *const ODD[] = {"pull odd", NULL};
    forks[0] = forks[1] = 0;
    orders = PULL;
    in_process("a pull", NULL, create);
    in_process("a pull that fails", "hub_pull", create);
    in_process("a pull that fails without a word", "silent", create);
    in_process("nobody hears it", "write", create);
    in_process("no thread", "pthread_create", create);
    n_short = 6;
    in_process("it is heard in pieces", NULL, create);
    static const short ENDS[] = {POLLERR, POLLHUP, POLLNVAL};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        looks[0] = 0;
        looks[1] = POLLIN | POLLOUT | POLLPRI;
        looks[2] = ENDS[i];
        in_process("nobody listens any more", "watch", create);
    }
    n_short = 0;
    orders = REMOVE;
    in_process("a removal", NULL, create);
    in_process("a removal that fails", "hub_cache_remove", create);
    orders = INSPECT;
    in_process("an inspection", NULL, create);
    in_process("one with eyes", "sees", create);
    in_process("of a model that is not there", "hub_cache_find", create);
    in_process("of a damaged one", "inspect", create);
    orders = ODD;
    in_process("no name", NULL, create);
}

static void on_done(void *ctx, hub_action action, const char *model)
{
    CHECK(ctx == said);
    note("  %s of %s is done\n", ACTIONS[action], model);
}

static void show(hub_jobs *j)
{
    bytes out = bytes_empty(1 << 16);
    hub_jobs_write(j, &out);
    note("  %s\n", bytes_str(&out));
    bytes_deinit(&out);
}

#define LOOK(j, ...)                                                                                         \
    do {                                                                                                     \
        static const char *const given[] = {__VA_ARGS__, NULL};                                              \
        pieces = given;                                                                                      \
        hub_jobs_look(j, on_done, said);                                                                     \
        show(j);                                                                                             \
    } while (0)

static void start(hub_jobs *j, hub_action action, const char *model)
{
    err_detail d = {0};
    note("==== starts %s\n", model);
    const err_code err = hub_jobs_start(j, action, model, &d);
    note("  %d %s\n", (int)err, d.text);
}

static void test_server(void)
{
    static const char *const CALLS[] = {"hub_place_find", "socketpair"}, *const LOST[] = {"send", "recvmsg"};
    hub_jobs *j;
    err_detail d = {0};
    char name[32];
    forks[0] = -1;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        failing = CALLS[i];
        note("==== %s fails\n", failing);
        create();
    }
    failing = NULL;
    note("==== no process\n");
    create();
    forks[0] = 500;
    n_forked = 0;
    note("==== the server\n");
    CHECK_OK(hub_jobs_create(&j, &HOOKS, &d), d);
    CHECK_STR(hub_jobs_place(j)->cache, "/cache");
    start(j, HUB_PULL, "no name");
    start(j, HUB_PULL, "a/b"); /* nothing comes with the answer */
    has_descriptor = true;
    for (size_t i = 0; i < ARRAY_LEN(LOST); i++) {
        failing = LOST[i];
        start(j, HUB_PULL, "a/b");
    }
    failing = NULL;
    start(j, HUB_PULL, "a/b");
    start(j, HUB_INSPECT, "a/b");
    LOOK(j, "");
    LOOK(j, "{\"state\":\"run", "");
    LOOK(j, "ning\",\"n\":1}\n{\"state\":\"running\",\"n\":2}\n{\"sta", "");
    LOOK(j, "te\":\"done\",\"freed\":5}\n");
    LOOK(j, "never read");
    start(j, HUB_REMOVE, "a/b"); /* again */
    LOOK(j, "{\"state\":\"failed\",\"message\":\"so\"}\n");
    start(j, HUB_REMOVE, "a/b");
    LOOK(j, "{\"state\":\"running\"}\n{\"state\":\"done", "!");
    given_fd = 0; /* as good as any */
    for (int i = 0; i < HUB_JOBS; i++) {
        snprintf(name, sizeof name, "a/n%d", i);
        start(j, HUB_INSPECT, name);
    }
    start(j, HUB_PULL, "one/more");
    note("==== cancels\n");
    CHECK(hub_jobs_cancel(j, "a/n3") && !hub_jobs_cancel(j, "a/b"));
    start(j, HUB_PULL, "one/more");
    show(j);
    note("==== ends\n");
    hub_jobs_destroy(j);
    hub_jobs_destroy(NULL);
    given_fd = JOB_FD;
}

int main(void)
{
    said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(said != MAP_FAILED);
    test_starter();
    test_job();
    test_server();
    recorded_check("server/hub/jobs_calls.txt", said->text);
    munmap(said, sizeof *said);
    CHECK_DONE();
}
