#define _GNU_SOURCE /* close_range, pipe2 */
#include "server/hub/hub_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "server/hub/hub_pull.h"

enum {
    NAME_MAX_BYTES = HUB_REPO_MAX + HUB_QUANT_MAX + HUB_REVISION_MAX,
    REPORT_BYTES = 1 << 20, /* of a line that a job says: what inspect has to tell */
    SAY_MS = 200,
    RATE_MS = 500,
    LINE_FD = 3
};

static const char *const ACTIONS[] = {
    [HUB_PULL] = "pull", [HUB_REMOVE] = "remove", [HUB_INSPECT] = "inspect"};

typedef struct order {
    hub_action action;
    char model[NAME_MAX_BYTES];
} order;

typedef struct job {
    order asked;
    int fd;     /* what it says, a line of JSON each time; -1: it has ended */
    bytes line; /* the last whole one, without its first brace */
    bytes rest; /* of the next one */
    bool failed;
} job;

struct hub_jobs {
    hub_place place;
    int line;
    pid_t pid;
    job jobs[HUB_JOBS]; /* the last that was begun first */
    size_t n;
};

/* ---- a job: a process of its own ---- */

typedef struct worker {
    const hub_place *place;
    const hub_jobs_hooks *hooks;
    const order *o;
    hub_name name;
    int out;
    double said_ms, rate_ms, rate;
    int64_t seen; /* bytes that were there at rate_ms */
} worker;

/* Nobody listens any more: the job is not wanted. */
static void *watch(void *out)
{
    struct pollfd p = {.fd = *(const int *)out};
    while (!(p.revents & (POLLERR | POLLHUP | POLLNVAL))) {
        (void)poll(&p, 1, -1);
    }
    _exit(1);
}

static void say(const worker *w, bytes *line)
{
    bytes_append_char(line, '\n');
    for (size_t at = 0; at < line->len && !line->failed;) {
        const ssize_t n = write(w->out, line->data + at, line->len - at);
        if (n < 0 && errno != EINTR) {
            _exit(1);
        }
        at += n > 0 ? (size_t)n : 0;
    }
    bytes_clear(line);
}

static void on_tick(void *ctx, const hub_task *tasks, size_t n)
{
    worker *w = ctx;
    int64_t at = 0, total = 0;
    size_t n_done = 0;
    const double now = clock_ms();
    bool checks = false;
    for (size_t i = 0; i < n; i++) {
        at += tasks[i].at;
        total += tasks[i].file->size;
        n_done += tasks[i].phase == HUB_DONE;
        checks = checks || tasks[i].phase == HUB_CHECKING;
    }
    if (w->rate_ms == 0.0 || checks || at < w->seen) { /* what lay there comes at no rate */
        w->rate_ms = now;
        w->seen = at;
    } else if (now - w->rate_ms >= RATE_MS) {
        const double rate = (double)(at - w->seen) * 1000.0 / (now - w->rate_ms);
        w->rate = w->rate > 0.0 ? 0.7 * w->rate + 0.3 * rate : rate;
        w->rate_ms = now;
        w->seen = at;
    }
    if (now - w->said_ms < SAY_MS) {
        return;
    }
    w->said_ms = now;
    bytes line = bytes_empty(REPORT_BYTES);
    bytes_json(&line,
               "{\"state\":\"running\",\"n_files\":%zu,\"n_done\":%zu,\"bytes\":%lld,\"total\":%lld,"
               "\"rate\":%.0f,\"files\":[",
               n, n_done, (long long)at, (long long)total, w->rate);
    const char *comma = "";
    for (size_t i = 0; i < n; i++) {
        const hub_task *t = &tasks[i];
        if (t->phase != HUB_DONE && t->phase != HUB_WAITING) {
            bytes_json(&line, "%-s{\"name\":%s,\"bytes\":%lld,\"total\":%lld,\"checking\":%hhd,\"wait\":%s}",
                       comma, t->file->path, (long long)t->at, (long long)t->file->size,
                       t->phase == HUB_CHECKING, t->phase == HUB_PAUSED ? t->wait_why : "");
            comma = ",";
        }
    }
    bytes_append_str(&line, "]}");
    say(w, &line);
    bytes_deinit(&line);
}

static err_code pull(worker *w, bytes *line, err_detail *d)
{
    hub_found found;
    const hub_pull_hooks hooks = {.check_config = w->hooks->check_config,
                                  .check_gguf = w->hooks->check_gguf,
                                  .on_tick = on_tick,
                                  .ctx = w};
    const err_code err = hub_pull(&found, w->place, &w->name, &hooks, d);
    bytes_append_str(line, "{\"state\":\"done\"}");
    return err;
}

static err_code take_away(const worker *w, bytes *line, err_detail *d)
{
    int64_t n_bytes = 0;
    const err_code err = hub_cache_remove(w->place->cache, &w->name, &n_bytes, d);
    bytes_json(line, "{\"state\":\"done\",\"freed\":%lld}", (long long)n_bytes);
    return err;
}

static err_code inspect(const worker *w, bytes *line, err_detail *d)
{
    hub_found found;
    bytes text = bytes_empty(REPORT_BYTES / 2);
    err_code err = hub_cache_find(&found, w->place->cache, &w->name, d);
    err = err ? err : w->hooks->inspect(&text, found.path, found.mmproj[0] ? found.mmproj : NULL, false, d);
    bytes_json(line, "{\"state\":\"done\",\"text\":%s}", bytes_str(&text));
    bytes_deinit(&text);
    return err;
}

_Noreturn static void worker_main(worker *w)
{
    err_detail d = {0};
    bytes line = bytes_empty(REPORT_BYTES);
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, &w->out) != 0) {
        _exit(1);
    }
    err_code err = hub_name_parse(&w->name, w->o->model) ? ERR_OK : ERR_INVALID;
    err = err                          ? err
          : w->o->action == HUB_PULL   ? pull(w, &line, &d)
          : w->o->action == HUB_REMOVE ? take_away(w, &line, &d)
                                       : inspect(w, &line, &d);
    if (err || line.failed) {
        bytes_clear(&line);
        bytes_json(&line, "{\"state\":\"failed\",\"message\":%s}",
                   d.text[0] ? d.text
                   : err     ? err_name(err)
                             : "there is too much to tell");
    }
    say(w, &line);
    _exit(0);
}

/* ---- the process that starts them ---- */

static bool send_fd(int line, int fd)
{
    char data = 'j', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    return sendmsg(line, &m, MSG_NOSIGNAL) == 1;
}

static void start_one(const hub_place *place, const hub_jobs_hooks *hooks, const order *o)
{
    int ends[2] = {-1, -1};
    const char failed = 'f';
    const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        close(LINE_FD);
        close(ends[0]);
        signal(SIGCHLD, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        worker_main(&(worker){.place = place, .hooks = hooks, .o = o, .out = ends[1]});
    }
    if (pid < 0 || !send_fd(LINE_FD, ends[0])) {
        (void)send(LINE_FD, &failed, 1, MSG_NOSIGNAL);
    }
    if (ends[0] >= 0) {
        close(ends[0]);
        close(ends[1]);
    }
}

/* Of the server's descriptors it keeps its line alone; signals of a terminal are for the server, whose end
 * ends it. */
_Noreturn static void starter_main(const hub_place *place, const hub_jobs_hooks *hooks, int line)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const int high = fcntl(line, F_DUPFD_CLOEXEC, LINE_FD + 1), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    order o;
    for (int i = 0; i < LINE_FD; i++) {
        (void)dup2(null, i);
    }
    (void)dup2(high, LINE_FD);
    close_range(LINE_FD + 1, ~0U, 0);
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        signal(SIGNALS[i], SIG_IGN);
    }
    signal(SIGCHLD, SIG_IGN); /* nobody waits for jobs */
    prctl(PR_SET_NAME, "parley-hub", 0, 0, 0);
    while (recv(LINE_FD, &o, sizeof o, MSG_WAITALL) == (ssize_t)sizeof o) {
        start_one(place, hooks, &o);
    }
    _exit(0);
}

err_code hub_jobs_create(hub_jobs **out, const hub_jobs_hooks *hooks, err_detail *detail)
{
    int pair[2];
    *out = NULL;
    hub_jobs *j = calloc(1, sizeof *j);
    if (!j) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to fetch models");
    }
    const err_code err = hub_place_find(&j->place, detail);
    if (err || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        free(j);
        return err ? err : err_set(detail, ERR_IO, "%s", strerror(errno));
    }
    j->line = pair[0];
    j->pid = fork();
    if (j->pid == 0) {
        close(pair[0]);
        starter_main(&j->place, hooks, pair[1]);
    }
    close(pair[1]);
    if (j->pid < 0) {
        const int code = errno;
        close(pair[0]);
        free(j);
        return err_set(detail, ERR_IO, "%s", strerror(code));
    }
    *out = j;
    return ERR_OK;
}

static void end_job(job *b)
{
    if (b->fd >= 0) {
        close(b->fd);
        b->fd = -1;
    }
}

static void forget(hub_jobs *j, size_t at)
{
    end_job(&j->jobs[at]);
    bytes_deinit(&j->jobs[at].line);
    bytes_deinit(&j->jobs[at].rest);
    j->n--;
    memmove(&j->jobs[at], &j->jobs[at + 1], (j->n - at) * sizeof *j->jobs);
}

void hub_jobs_destroy(hub_jobs *j)
{
    if (j) {
        while (j->n > 0) {
            forget(j, j->n - 1);
        }
        close(j->line);
        waitpid(j->pid, NULL, 0);
        free(j);
    }
}

const hub_place *hub_jobs_place(const hub_jobs *j)
{
    return &j->place;
}

/* ---- the server's side ---- */

static size_t find(const hub_jobs *j, const char *model)
{
    size_t i = 0;
    while (i < j->n && strcmp(j->jobs[i].asked.model, model) != 0) {
        i++;
    }
    return i;
}

/* The stream of a job that was begun; -1: it could not be. */
static int ask(const hub_jobs *j, const order *o)
{
    char data = 0, room[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (send(j->line, o, sizeof *o, MSG_NOSIGNAL) != (ssize_t)sizeof *o ||
        recvmsg(j->line, &m, MSG_CMSG_CLOEXEC) != 1) {
        return -1;
    }
    const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (h) {
        memcpy(&fd, CMSG_DATA(h), sizeof fd);
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
}

/* Room for one more: what ended longest ago goes. */
static bool make_room(hub_jobs *j)
{
    for (size_t i = j->n; j->n == HUB_JOBS && i > 0; i--) {
        if (j->jobs[i - 1].fd < 0) {
            forget(j, i - 1);
        }
    }
    return j->n < HUB_JOBS;
}

err_code hub_jobs_start(hub_jobs *j, hub_action action, const char *model, err_detail *detail)
{
    hub_name name;
    order o = {.action = action};
    if (strlen(model) >= sizeof o.model || !hub_name_parse(&name, model)) {
        return err_set(detail, ERR_INVALID,
                       "\"%.200s\" is not the name of a model: it is ORG/NAME, ORG/NAME:QUANT or "
                       "ORG/NAME@REVISION",
                       model);
    }
    snprintf(o.model, sizeof o.model, "%s", model);
    const size_t at = find(j, model);
    if (at < j->n && j->jobs[at].fd >= 0) {
        return err_set(detail, ERR_BUSY, "%s: another job for it (%s) still runs", model,
                       ACTIONS[j->jobs[at].asked.action]);
    }
    if (at < j->n) {
        forget(j, at);
    }
    if (!make_room(j)) {
        return err_set(detail, ERR_LIMIT, "%d models are being fetched; wait for one of them", HUB_JOBS);
    }
    const int fd = ask(j, &o);
    if (fd < 0) {
        return err_set(detail, ERR_IO, "no process could be started for it");
    }
    memmove(&j->jobs[1], &j->jobs[0], j->n++ * sizeof *j->jobs);
    j->jobs[0] =
        (job){.asked = o, .fd = fd, .line = bytes_empty(REPORT_BYTES), .rest = bytes_empty(2 * REPORT_BYTES)};
    bytes_append_str(&j->jobs[0].line, "\"state\":\"running\"}");
    return ERR_OK;
}

bool hub_jobs_cancel(hub_jobs *j, const char *model)
{
    const size_t at = find(j, model);
    if (at < j->n) {
        forget(j, at);
        return true;
    }
    return false;
}

/* Keeps the last whole line, from behind its first brace on. */
static void take_lines(job *b)
{
    const char *from = bytes_str(&b->rest), *end = strrchr(from, '\n');
    if (!end) {
        return;
    }
    const char *start = end;
    while (start > from && start[-1] != '\n') {
        start--;
    }
    bytes_clear(&b->line);
    bytes_append(&b->line, start + 1, (size_t)(end - start - 1));
    bytes_consume(&b->rest, (size_t)(end + 1 - from));
}

static bool is_done(const job *b)
{
    return strncmp(bytes_str(&b->line), "\"state\":\"done\"", sizeof "\"state\":\"done\"" - 1) == 0;
}

static bool has_failed(const job *b)
{
    return strncmp(bytes_str(&b->line), "\"state\":\"failed\"", sizeof "\"state\":\"failed\"" - 1) == 0;
}

void hub_jobs_look(hub_jobs *j, void (*on_done)(void *ctx, hub_action action, const char *model), void *ctx)
{
    char piece[16384];
    for (size_t i = 0; i < j->n; i++) {
        job *b = &j->jobs[i];
        ssize_t n = -1;
        while (b->fd >= 0 && (n = read(b->fd, piece, sizeof piece)) > 0) {
            bytes_append(&b->rest, piece, (size_t)n);
            take_lines(b);
        }
        if (b->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
            continue;
        }
        end_job(b);
        if (is_done(b)) {
            on_done(ctx, b->asked.action, b->asked.model);
        } else if (!has_failed(b)) {
            bytes_clear(&b->line);
            bytes_append_str(
                &b->line,
                "\"state\":\"failed\",\"message\":\"the process that did it is gone; say it again\"}");
        }
    }
}

void hub_jobs_write(const hub_jobs *j, bytes *out)
{
    bytes_append_char(out, '[');
    for (size_t i = 0; i < j->n; i++) {
        const job *b = &j->jobs[i];
        bytes_json(out, "%-s{\"model\":%s,\"action\":%s,%-s", i ? "," : "", b->asked.model,
                   ACTIONS[b->asked.action], bytes_str(&b->line));
    }
    bytes_append_char(out, ']');
}
