/* own_server: the server of a chat, with processes, folders and signals that are made up: what is done on both sides of the fork,
 * in which order, and what the server is told. tests/server/cli/own_server.txt has all of it. */
#define _GNU_SOURCE /* sigabbrev_np */
#include "server/cli/own_server.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/cli/commands.h"
#include "server/local_server.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/cli/typed_options.h"

enum { PARENT = 500, CHILD = 501, NULL_FD = 900 };

static bytes all;

/* ---- folders and processes ---- */

static int folders_fail; /* so many cannot be made */
static pid_t forked;     /* what fork returns */
static pid_t parent_now;
static const char *failing; /* the call that fails */
static jmp_buf child_ends;

static bool fails(const char *call)
{
    errno = EMFILE;
    return failing && strcmp(failing, call) == 0;
}

char *__wrap_mkdtemp(char *name);
char *__wrap_mkdtemp(char *name)
{
    bytes_printf(&all, "  mkdtemp %s\n", name);
    errno = EROFS;
    if (folders_fail > 0) {
        folders_fail--;
        return NULL;
    }
    memcpy(name + strlen(name) - 6, "abcdef", 6);
    return name;
}

int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    bytes_printf(&all, "  rmdir %s\n", path);
    errno = ENOENT;
    return -1;
}

int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    bytes_printf(&all, "  unlink %s\n", path);
    return 0;
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    bytes_append_str(&all, "  fork\n");
    errno = EAGAIN;
    return forked;
}

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return PARENT;
}

pid_t __wrap_getppid(void);
pid_t __wrap_getppid(void)
{
    return parent_now;
}

pid_t __wrap_setsid(void);
pid_t __wrap_setsid(void)
{
    bytes_append_str(&all, "  setsid\n");
    return -1;
}

int __wrap_prctl(int what, ...);
int __wrap_prctl(int what, ...)
{
    va_list args;
    va_start(args, what);
    const int number = va_arg(args, int);
    va_end(args);
    bytes_printf(&all, "  prctl %s %s\n", what == PR_SET_PDEATHSIG ? "at the parent's death" : "?",
                 sigabbrev_np(number));
    return 0;
}

void (*__wrap_signal(int number, void (*handler)(int)))(int);
void (*__wrap_signal(int number, void (*handler)(int)))(int)
{
    bytes_printf(&all, "  signal %s %s\n", sigabbrev_np(number), handler == SIG_DFL ? "as ever" : "?");
    return SIG_DFL;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (strcmp(path, "/dev/null") != 0) {
        return __real_open(path, flags, 0600);
    }
    bytes_printf(&all, "  open %s %s\n", path, flags == O_RDWR ? "read and write" : "?");
    return fails("open") ? -1 : NULL_FD;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (fd != NULL_FD) {
        return __real_close(fd);
    }
    bytes_printf(&all, "  close %d\n", fd);
    return 0;
}

int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to)
{
    if (from != NULL_FD) {
        return __real_dup2(from, to);
    }
    bytes_printf(&all, "  dup2 %d %d\n", from, to);
    return fails(to == STDIN_FILENO ? "stdin" : "stdout") ? -1 : to;
}

int __wrap_unsetenv(const char *name);
int __wrap_unsetenv(const char *name)
{
    bytes_printf(&all, "  unsetenv %s\n", name);
    return fails("unsetenv") ? -1 : 0;
}

void __wrap__exit(int code);
void __wrap__exit(int code)
{
    bytes_printf(&all, "  _exit %d\n", code);
    longjmp(child_ends, 1);
}

int __wrap_command_serve(const options *o);
int __wrap_command_serve(const options *o)
{
    bytes_printf(&all,
                 "  serves%s, host %s, port %d, model %s, %d MiB, parallel %d, drain %d, ui %d, context %d\n",
                 o->command == COMMAND_SERVE ? "" : "?", o->host, (int)o->port, o->model,
                 (int)o->max_body_mib, (int)o->parallel, (int)o->drain_timeout, o->ui, (int)o->ctx_size);
    return 5;
}

/* ---- waiting for it ---- */

static pid_t waited; /* what waitpid returns */
static int wait_status;
static bool answers;
static int answer_status;

pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
    bytes_printf(&all, "  waitpid %d%s\n", (int)pid, flags == WNOHANG ? " at once" : flags ? "?" : "");
    if (status) {
        *status = wait_status;
    }
    return waited;
}

int __wrap_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number)
{
    bytes_printf(&all, "  kill %d %s\n", (int)pid, sigabbrev_np(number));
    return 0;
}

bool __wrap_local_server_get(local_reply *out, const local_address *at, const char *path, const char *key);
bool __wrap_local_server_get(local_reply *out, const local_address *at, const char *path, const char *key)
{
    bytes_printf(&all, "  GET %s of %s, port %d, prefix %s, key %s\n", path, at->hosts, (int)at->port,
                 at->prefix ? at->prefix : "-", key ? key : "-");
    *out = (local_reply){.status = answer_status, .fd = -1};
    return answers;
}

void __wrap_local_reply_deinit(local_reply *r);
void __wrap_local_reply_deinit(local_reply *r)
{
    bytes_printf(&all, "  the reply of %d is freed\n", r->status);
}

/* ---- what is done ---- */

static void start(own_server *s, const char *why)
{
    err_detail d = {0};
    options o = typed_options("parley chat -m name");
    o.parallel = 7;
    o.ctx_size = 999;
    bytes_printf(&all, "==== starts: %s\n", why);
    if (setjmp(child_ends) == 0) {
        const err_code err = own_server_start(s, &o, &d);
        bytes_printf(&all, "  %d %s, process %d in %s: %s\n", (int)err, d.text, (int)s->pid, s->folder,
                     s->host);
    }
    CHECK(o.command == COMMAND_CHAT && o.parallel == 7); /* its own are as they were */
    options_deinit(&o);
}

static void stop(own_server *s)
{
    bytes_append_str(&all, "==== stops\n");
    own_server_stop(s);
    bytes_printf(&all, "  process %d in '%s'\n", (int)s->pid, s->folder);
}

static void look(own_server *s, const char *why)
{
    static const char *const STATES[] = {
        [OWN_SERVER_LOADS] = "loads", [OWN_SERVER_READY] = "ready", [OWN_SERVER_ENDED] = "ended"};
    int code = 77;
    bytes_printf(&all, "==== looks: %s\n", why);
    said_begin();
    const own_server_state state = own_server_look(s, &code);
    said_end();
    bytes_printf(&all, "  %s, %d, process %d%s%s%s", STATES[state], code, (int)s->pid,
                 said_out[0] ? ", printed " : "", said_out, said_err[0] ? ": " : "\n");
    bytes_append_str(&all, said_err);
}

static void test_folders(own_server *s)
{
    static char place[OWN_SERVER_PATH_MAX + 1];
    forked = CHILD;
    setenv("XDG_RUNTIME_DIR", "/run/user", 1);
    setenv("TMPDIR", "/elsewhere", 1);
    for (folders_fail = 0; folders_fail < 4; folders_fail++) {
        const int n = folders_fail;
        start(s, "some folders cannot be made");
        stop(s);
        folders_fail = n;
    }
    folders_fail = 0;
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    start(s, "one that is no place");
    setenv("XDG_RUNTIME_DIR", "", 1);
    start(s, "one without a name");
    for (size_t n = sizeof place - 23; n < sizeof place - 20; n++) { /* both sides of the longest */
        memset(place, 'x', n);
        place[0] = '/';
        place[n] = '\0';
        setenv("XDG_RUNTIME_DIR", place, 1);
        start(s, "a long one");
    }
    setenv("XDG_RUNTIME_DIR", "/run/user", 1);
}

static void test_child(own_server *s)
{
    static const char *const CALLS[] = {NULL, "open", "stdin", "stdout", "unsetenv"};
    forked = 0;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        failing = CALLS[i];
        parent_now = PARENT;
        start(s, CALLS[i] ? CALLS[i] : "the child");
    }
    failing = NULL;
    parent_now = 1;
    start(s, "the child, whose parent is gone");
    forked = -1;
    start(s, "no process can be made");
}

static void test_looks(own_server *s)
{
    forked = CHILD;
    start(s, "a server");
    answer_status = 200;
    look(s, "nobody answers");
    answers = true;
    look(s, "it answers");
    answer_status = 503;
    look(s, "it loads");
    waited = -1;
    look(s, "no such process");
    waited = 1;
    look(s, "another one");
    static const int ENDS[] = {0, 1 << 8, 3 << 8, SIGKILL}; /* as waitpid tells of codes and signals */
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        s->pid = waited = CHILD;
        wait_status = ENDS[i];
        look(s, "it has ended");
    }
    stop(s);
    stop(s);
    s->pid = -1;
    stop(s);
}

int main(void)
{
    own_server s;
    all = bytes_empty(1 << 20);
    setenv("PARLEY_CONFIG", "none", 1);
    test_folders(&s);
    test_child(&s);
    test_looks(&s);
    recorded_check("server/cli/own_server.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
