#define _GNU_SOURCE /* close_range, pipe2 */
#include "server/mcp/mcp_spawner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { N_FDS = 4, LOOK_MS = 200, END_MS = 500, TERM_MS = 1000, SWEEP_MS = 10000, FILES = 1024 };

struct mcp_spawner {
    const mcp_config *config;
    int line;
    pid_t pid;
};

static void nap(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- the keeper: a process for each server ---- */

/* The parent of a process, and the group that it is in; 0 if it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (n > 0) {
        text[n] = '\0';
        const char *p = strrchr(text, ')'); /* behind the name, which may hold anything */
        parent = p && strlen(p) > 4 ? strtol(p + 4, NULL, 10) : 0;
    }
    return (pid_t)parent;
}

static void kill_children(void)
{
    DIR *d = opendir("/proc");
    const pid_t self = getpid();
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (isdigit((unsigned char)e->d_name[0]) && parent_of(e->d_name) == self) {
            kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* Whether the server still runs; its children that were left behind are reaped as well. */
static bool reap(pid_t server, bool was_running)
{
    bool runs = was_running;
    for (pid_t ended = waitpid(-1, NULL, WNOHANG); ended > 0; ended = waitpid(-1, NULL, WNOHANG)) {
        runs = runs && ended != server;
    }
    return runs;
}

static bool wait_for(pid_t server, bool runs, int ms)
{
    for (int left = ms; runs && left > 0; left -= 20) {
        runs = reap(server, runs);
        if (runs) {
            nap(20);
        }
    }
    return runs;
}

/* Nothing of the server is left when it returns: what its processes leave behind becomes a child of
 * this one, so that a kill of the children reaches the next generation, until there is none. */
static void sweep(pid_t server)
{
    const double until = clock_ms() + SWEEP_MS;
    do {
        kill(-server, SIGKILL);
        kill_children();
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) {
            return;
        }
        nap(2);
    } while (clock_ms() < until);
}

static void keep(int line, pid_t server)
{
    bool runs = true;
    for (bool is_open = true; is_open && runs;) {
        struct pollfd p = {.fd = line, .events = POLLIN};
        char byte;
        is_open = poll(&p, 1, LOOK_MS) <= 0 || recv(line, &byte, 1, MSG_DONTWAIT) != 0;
        runs = reap(server, runs);
    }
    runs = wait_for(server, runs, runs ? END_MS : 0); /* its input has ended */
    if (runs) {
        kill(-server, SIGTERM);
        wait_for(server, runs, TERM_MS);
    }
    sweep(server);
}

/* ---- the server's own process, up to its program ---- */

static void limit(int what, rlim_t value)
{
    struct rlimit r;
    if (getrlimit(what, &r) == 0) {
        r.rlim_cur = r.rlim_max != RLIM_INFINITY && r.rlim_max < value ? r.rlim_max : value;
        r.rlim_max = r.rlim_cur;
        (void)setrlimit(what, &r);
    }
}

static void complain(const char *what, const char *name)
{
    char text[512];
    const int n = snprintf(text, sizeof text, "%s %.300s: %s\n", what, name, strerror(errno));
    if (n > 0 && write(STDERR_FILENO, text, strlen(text)) < 0) {
        _exit(127);
    }
}

static void run_program(const mcp_server_config *s, const int fds[3])
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < NSIG; i++) {
        signal(i, SIG_DFL);
    }
    setpgid(0, 0);
    for (int i = 0; i < 3; i++) {
        dup2(fds[i], i);
    }
    close_range(3, ~0U, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, FILES);
    limit(RLIMIT_DATA, (rlim_t)s->memory_mib << 20);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (s->cwd && chdir(s->cwd) != 0) {
        complain("cannot go to the folder", s->cwd);
        _exit(127);
    }
    execvpe(s->argv.items[0], s->argv.items, s->env.items);
    complain("cannot run", s->argv.items[0]);
    _exit(127);
}

static void keeper_main(const mcp_server_config *s, int line, const int fds[3])
{
    /* above all others, so that nothing is written over */
    int high[3];
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signal(SIGCHLD, SIG_DFL);
    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
    }
    const pid_t server = fork();
    if (server == 0) {
        for (size_t i = 0; i < s->env.n; i++) { /* PATH, where the program is looked for */
            if (strncmp(s->env.items[i], "PATH=", 5) == 0) {
                (void)setenv("PATH", s->env.items[i] + 5, 1);
            }
        }
        run_program(s, high);
    }
    if (server > 0) {
        setpgid(server, server);
        const int kept = fcntl(line, F_DUPFD_CLOEXEC, 64);
        for (int fd = 0; fd < 64; fd++) {
            close(fd);
        }
        keep(kept, server);
    }
    _exit(0);
}

/* ---- the spawner ---- */

static bool send_fds(int line, const int *fds)
{
    char data = 'k', room[CMSG_SPACE(N_FDS * sizeof(int))] = {0};
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(N_FDS * sizeof(int));
    memcpy(CMSG_DATA(h), fds, N_FDS * sizeof(int));
    return sendmsg(line, &m, MSG_NOSIGNAL) == 1;
}

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
}

/* Starts a server and hands its streams over; a byte without them says that it could not. */
static void start_one(const mcp_config *config, int line, uint32_t index)
{
    /* {read, write} of the three streams, {ours, theirs} of the line */
    int pipes[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const bool ok = index < config->n && config->servers[index].kind == MCP_STDIO &&
                    config->servers[index].argv.n > 0 && pipe2(&pipes[0], O_CLOEXEC) == 0 &&
                    pipe2(&pipes[2], O_CLOEXEC) == 0 && pipe2(&pipes[4], O_CLOEXEC) == 0 &&
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &pipes[6]) == 0;
    const pid_t keeper = ok ? fork() : -1;
    if (keeper == 0) {
        const int theirs[3] = {pipes[0], pipes[3], pipes[5]};
        close(line);
        close(pipes[1]);
        close(pipes[2]);
        close(pipes[4]);
        close(pipes[6]);
        keeper_main(&config->servers[index], pipes[7], theirs);
    }
    const int ours[N_FDS] = {pipes[1], pipes[2], pipes[4], pipes[6]};
    const char failed = 'f';
    if (keeper < 0 || !send_fds(line, ours)) {
        (void)send(line, &failed, 1, MSG_NOSIGNAL);
    }
    close_all(pipes, 8);
}

static void spawner_main(const mcp_config *config, int line)
{
    uint32_t index;
    signal(SIGCHLD, SIG_IGN); /* keepers need no one to wait for them */
    signal(SIGINT, SIG_IGN);  /* of a terminal: the server ends first */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_NAME, "parley-mcp", 0, 0, 0);
    while (recv(line, &index, sizeof index, MSG_WAITALL) == (ssize_t)sizeof index) {
        start_one(config, line, index);
    }
    _exit(0);
}

err_code mcp_spawner_create(mcp_spawner **out, const mcp_config *config, err_detail *d)
{
    int pair[2];
    mcp_spawner *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        free(p);
        return err_set(d, ERR_IO, "MCP servers cannot be started: %s", strerror(errno));
    }
    *p = (mcp_spawner){.config = config, .line = pair[0], .pid = fork()};
    if (p->pid == 0) {
        close(pair[0]);
        spawner_main(config, pair[1]);
    }
    close(pair[1]);
    if (p->pid < 0) {
        const int code = errno;
        close(pair[0]);
        free(p);
        return err_set(d, ERR_IO, "MCP servers cannot be started: %s", strerror(code));
    }
    *out = p;
    return ERR_OK;
}

void mcp_spawner_destroy(mcp_spawner *p)
{
    if (p) {
        close(p->line);
        waitpid(p->pid, NULL, 0);
        free(p);
    }
}

err_code mcp_spawner_start(mcp_spawner *p, size_t index, mcp_child *out, err_detail *d)
{
    const uint32_t number = (uint32_t)index;
    char data = 0, room[CMSG_SPACE(N_FDS * sizeof(int))];
    int fds[N_FDS] = {-1, -1, -1, -1};
    struct iovec part = {&data, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    *out = (mcp_child){-1, -1, -1, -1};
    if (send(p->line, &number, sizeof number, MSG_NOSIGNAL) != (ssize_t)sizeof number ||
        recvmsg(p->line, &m, MSG_CMSG_CLOEXEC) != 1) {
        return err_set(d, ERR_IO, "the process that starts MCP servers is gone; restart parley");
    }
    const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (!h) {
        return err_set(d, ERR_IO, "no process could be started");
    }
    memcpy(fds, CMSG_DATA(h), sizeof fds);
    for (int i = 0; i < 3; i++) {
        fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
    }
    *out = (mcp_child){.in = fds[0], .out = fds[1], .errors = fds[2], .line = fds[3]};
    return ERR_OK;
}

void mcp_child_end(mcp_child *child)
{
    int fds[N_FDS] = {child->in, child->out, child->errors, child->line};
    close_all(fds, N_FDS);
    *child = (mcp_child){-1, -1, -1, -1};
}
