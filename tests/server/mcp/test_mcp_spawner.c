/* mcp_spawner: what a program that it starts gets, and how it is ended. Programs are scripts that tell what they see. What
 * a keeper does is noted in memory that all processes share; it naps no longer than the test says. */
#define _GNU_SOURCE /* close_range, pipe2 */
#include "server/mcp/mcp_spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

/* SPAWNERS: descriptors that the process has which starts programs: four of this one's, and its line. */
enum { KINDS = 16, PATIENCE_MS = 60000, SPAWNERS = 5, LOOK_MS = 200 };

/* ---- what keepers do ---- */

typedef struct notes {
    struct {
        char what[64];
        int n;
    } done[KINDS];   /* each kind of thing, in the order in which it was first done */
    double ms;       /* made-up time */
    int ends_at;     /* with this nap a keeper waits until a process of its own has ended; 0: with each */
    int looks, naps; /* how often it looked whether its server runs, and waited for its end */
    bool never_dies; /* SIGKILL comes to nothing */
} notes;

static notes first_notes, *noted = &first_notes;

static void note(const char *format, ...)
{
    char what[sizeof noted->done[0].what];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    int i = 0;
    while (i < KINDS - 1 && noted->done[i].n > 0 && strcmp(noted->done[i].what, what) != 0) {
        i++;
    }
    snprintf(noted->done[i].what, sizeof what, "%s", what);
    noted->done[i].n++;
}

int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    siginfo_t ended;
    const int ms = (int)(t->tv_sec * 1000 + t->tv_nsec / 1000000);
    noted->ms += ms;
    if (ms >= 20 || noted->never_dies) { /* how often it looks whether all are dead, only they know */
        note("nap %d", ms);
    }
    if (ms < 20 && !noted->never_dies) {
        return __real_nanosleep(t, left);
    }
    if (++noted->naps == noted->ends_at || noted->ends_at == 0) {
        (void)waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
    }
    return 0;
}

/* A keeper looks often, that nothing here waits for it. */
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    noted->looks += ms == LOOK_MS;
    return __real_poll(fds, n, ms == LOOK_MS ? 2 : ms);
}

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return noted->ms;
}

/* The parent of a process; 0: it is gone. */
static pid_t parent(pid_t pid)
{
    char path[64], text[512] = "";
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    const char *behind = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
    if (behind && sscanf(behind, ") %*c %d", &found) != 1) {
        found = 0;
    }
    if (f) {
        fclose(f);
    }
    return (pid_t)found;
}

int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);
/* A mistake in the keeper must not end what is not its own. */
int __wrap_kill(pid_t pid, int number)
{
    const pid_t of = pid < 0 ? -pid : pid, above = of > 1 ? parent(of) : 1;
    const bool is_own = above == getpid() || (above == 0 && pid < 0);
    if (!is_own || pid < 0) {
        note("signal %d to %s", number, is_own ? "its group" : "another's process");
    }
    return !is_own || (noted->never_dies && number == SIGKILL) ? 0 : __real_kill(pid, number);
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    return noted->never_dies && strcmp(path, "/proc") == 0 ? NULL : __real_opendir(path);
}

static void write_notes(bytes *out)
{
    for (int i = 0; i < KINDS && noted->done[i].n > 0; i++) {
        const bool counts = strcmp(noted->done[i].what, "nap 20") == 0 || noted->never_dies;
        bytes_printf(out, "  %s", noted->done[i].what);
        bytes_printf(out, counts ? " times %d\n" : "\n", noted->done[i].n);
    }
    *noted = (notes){0};
}

/* ---- calls that fail, and the last process that was made ---- */

ONE_FAILS(int, pipe2, (int fds[2], int flags), (fds, flags), (errno = EMFILE, -1))
ONE_FAILS(int, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds),
          (errno = ENFILE, -1))
ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), (errno = ENOMEM, NULL))
ONE_FAILS(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags),
          (errno = EPIPE, -1))
ONE_FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags),
          (errno = ENOBUFS, -1))
ONE_FAILS(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), (errno = ECONNRESET, -1))

static pid_t forked;
pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    forked = one_fails_now("fork") ? (errno = EAGAIN, -1) : __real_fork();
    return forked;
}

/* ---- the programs ---- */

static char folder[FOLDER_NAME];
static mcp_config config;

static mcp_words words(const char *const *list)
{
    mcp_words w = {.items = (char **)list};
    while (list[w.n]) {
        w.n++;
    }
    return w;
}

#define WORDS(...) words((const char *const[]){__VA_ARGS__, NULL})

/* Server 0 runs this script; NULL: it stays as it is. */
static void set_script(const char *script)
{
    static const char *argv[] = {"/bin/sh", "-c", NULL, NULL}, *env[] = {"PATH=/usr/bin:/bin", NULL};
    argv[2] = script;
    config.servers[0] =
        (mcp_server_config){.kind = MCP_STDIO, .argv = words(argv), .env = words(env), .memory_mib = 512};
    config.n = 1;
}

/* What a test waits for has not come: the rest would wait in vain, too. */
static void give_up(const char *what)
{
    fprintf(stderr, "waited in vain: %s\n", what);
    exit(1);
}

/* What comes of a stream up to a text, or to its end. */
static void read_until(int fd, bytes *out, const char *end)
{
    const size_t from = out->len;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    for (;;) {
        if (poll(&p, 1, PATIENCE_MS) != 1) {
            give_up("a stream says something, or ends");
        }
        if (read(fd, &byte, 1) != 1) {
            break;
        }
        bytes_append_char(out, byte);
        if (end && strstr(bytes_str(out) + from, end)) {
            return;
        }
    }
    bytes_append_str(out, end ? "(it ended)\n" : "");
}

/* Two numbers that a script begins with: its own process, and its keeper. */
static void read_ids(const mcp_child *c, int *server, int *keeper)
{
    bytes line = bytes_empty(4096);
    read_until(c->out, &line, "\n");
    CHECK(sscanf(bytes_str(&line), "%d %d", server, keeper) == 2);
    bytes_deinit(&line);
}

static bool is_gone(pid_t pid)
{
    return __real_kill(pid, 0) != 0 && errno == ESRCH;
}

static void wait_gone(pid_t pid)
{
    for (int i = 0; i < PATIENCE_MS && !is_gone(pid); i++) {
        usleep(1000);
    }
    if (!is_gone(pid)) {
        give_up("a process is gone");
    }
}

/* Descriptors below 64 that a process has open. What is above, whoever runs this test may have left to it. */
static int open_of(pid_t pid)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = __real_opendir(path);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += e->d_name[0] != '.' && strtol(e->d_name, NULL, 10) < 64;
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* Waits until they are so many. */
static void settle(pid_t pid, int n)
{
    for (int i = 0; i < PATIENCE_MS && open_of(pid) != n; i++) {
        usleep(1000);
    }
    if (open_of(pid) != n) {
        give_up("descriptors are closed");
    }
}

static mcp_child start(mcp_spawner *p)
{
    mcp_child c;
    err_detail d = {0};
    CHECK_OK(mcp_spawner_start(p, 0, &c, &d), d);
    return c;
}

static mcp_spawner *spawner(void)
{
    mcp_spawner *p;
    err_detail d = {0};
    *noted = (notes){0};
    CHECK_OK(mcp_spawner_create(&p, &config, &d), d);
    return p;
}

/* ---- what a program gets ---- */

static const char FACTS[] =
    "read pid name state parent group rest < /proc/$$/stat; [ $group = $$ ] && echo leads a group\n"
    "for word in \"$0\" \"$@\"; do echo \"word <$word>\"; done; pwd; tr '\\0' '\\n' < /proc/$$/environ\n"
    "for what in c n d; do echo limits $what; ulimit -S$what; ulimit -H$what; done\n"
    "for fd in /proc/$$/fd/*; do echo open ${fd##*/}; done\n" /* one of them is the folder itself */
    "while read line; do case $line in SigBlk*|SigIgn*|NoNewPrivs*) echo $line;; esac; done < "
    "/proc/$$/status\n"
    "read name < /proc/$parent/comm; echo $name\n"
    "while read line; do echo \"read <$line>\"; done; echo what is wrong >&2\n";

static void say_facts(bytes *out)
{
    bytes text = bytes_empty(1 << 20);
    mcp_spawner *p = spawner();
    mcp_child c = start(p);
    const int fds[] = {c.in, c.out, c.errors, c.line};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        const int flags = fcntl(fds[i], F_GETFL), kind = flags & O_ACCMODE;
        bytes_printf(out, "  %s%s%s\n",
                     kind == O_RDONLY   ? "read"
                     : kind == O_WRONLY ? "written"
                                        : "both",
                     flags & O_NONBLOCK ? ", without waiting" : "",
                     fcntl(fds[i], F_GETFD) & FD_CLOEXEC ? "" : ", kept");
    }
    CHECK(write(c.in, "one\ntwo\n", 8) == 8 || errno == EPIPE); /* where it could not begin */
    close(c.in);
    read_until(c.out, &text, NULL);
    bytes_append_str(&text, "errors: ");
    read_until(c.errors, &text, NULL);
    bytes_append_str(&text, text.data[text.len - 1] == '\n' ? "" : "none\n");
    struct pollfd line = {.fd = c.line, .events = POLLIN}; /* its keeper ends, too */
    char byte;
    if (poll(&line, 1, PATIENCE_MS) != 1) {
        give_up("a keeper ends");
    }
    CHECK(recv(c.line, &byte, 1, MSG_DONTWAIT) == 0);
    for (char *at = strstr(text.data, folder); at;
         at = strstr(at, folder)) { /* it has another name each time */
        memset(at, 'F', strlen(folder));
    }
    bytes_append(out, text.data, text.len);
    bytes_deinit(&text);
    c.in = -1;
    mcp_child_end(&c);
    CHECK(c.in == -1 && c.out == -1 && c.errors == -1 && c.line == -1);
    mcp_spawner_destroy(p);
}

static void make_tool(void)
{
    char path[FOLDER_NAME + 8];
    snprintf(path, sizeof path, "%s/tool", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "#!/bin/sh\nPATH=/usr/bin:/bin\n%s", FACTS) > 0 && fclose(f) == 0 &&
          chmod(path, 0700) == 0);
}

static void test_facts(bytes *out)
{
    char search[FOLDER_NAME + 16];
    snprintf(search, sizeof search, "PATH=%s", folder);
    config.n = 1;
    config.servers[0] = (mcp_server_config){.kind = MCP_STDIO,
                                            .memory_mib = 64,
                                            .cwd = folder,
                                            .argv = WORDS("tool", "a b", "", "*"),
                                            .env = WORDS("A=1", search, "B= ")};
    bytes_append_str(out, "a program by its name\n");
    say_facts(out);
    bytes_append_str(out, "one in no folder of its own, with all its environment\n");
    config.servers[0].cwd = NULL;
    config.servers[0].memory_mib = 65;
    config.servers[0].argv = WORDS("/bin/sh", "-c", FACTS);
    config.servers[0].env = WORDS("PATH=/usr/bin:/bin");
    CHECK(chdir("/") == 0);
    say_facts(out);
    bytes_append_str(out, "a program that is not there\n");
    config.servers[0].argv = WORDS("nowhere");
    say_facts(out);
    bytes_append_str(out, "a folder that is not there\n");
    config.servers[0].argv = WORDS("/bin/sh", "-c", "echo runs");
    config.servers[0].cwd = "/nowhere at all";
    say_facts(out);
}

/* Ends one that has told both processes, if it runs. */
static void end(mcp_child *c, bool runs)
{
    int server = 0, keeper = 0;
    if (runs) {
        read_ids(c, &server, &keeper);
    }
    mcp_child_end(c);
    if (runs) {
        wait_gone(keeper);
        CHECK(is_gone(server));
    }
}

/* What is refused, and the process that starts programs itself. */
static void test_refused(bytes *out)
{
    static const mcp_kind KINDS_OF[] = {MCP_HTTP, MCP_BUILTIN, MCP_STDIO};
    char path[64], line[256];
    bytes_append_str(out, "what starts no program\n");
    set_script("echo $$ $PPID; read end");
    for (size_t i = 0; i < ARRAY_LEN(KINDS_OF); i++) {
        config.servers[i + 1] = config.servers[0];
        config.servers[i + 1].kind = KINDS_OF[i];
    }
    config.servers[3].argv.n = 0;
    config.n = 4;
    config.servers[4] = config.servers[0];
    mcp_spawner *p = spawner();
    const pid_t pid = forked;
    for (size_t i = 0; i < 6; i++) {
        mcp_child c;
        err_detail d = {0};
        const err_code err = mcp_spawner_start(p, i, &c, &d);
        bytes_printf(out, "  %zu: %s %s\n", i, err_name(err), d.text);
        CHECK((c.in >= 0) == !err && (c.line >= 0) == !err);
        end(&c, !err);
    }
    bytes_append_str(out, "the process that starts them\n");
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Name:", 5) == 0 || strncmp(line, "SigIgn:", 7) == 0) {
            bytes_printf(out, "  %s", line);
        }
    }
    if (f) {
        fclose(f);
    }
    mcp_child c = start(p);
    settle(pid, SPAWNERS); /* it keeps nothing of what it hands over */
    end(&c, true);
    mcp_spawner_destroy(p);
    CHECK(is_gone(pid));
    mcp_spawner_destroy(NULL);
}

/* ---- how it ends ---- */

/* A script that tells both processes first, and is left by its client as soon as it has said that it is ready. Its input ends
 * when its keeper has come to the nap in which it is to end, that neither is ever quicker than the other. */
static void say_end(bytes *out, const char *what, const char *script, int ends_at, bool never_dies)
{
    int server = 0, keeper = 0;
    bytes said = bytes_empty(1 << 16);
    set_script(script);
    mcp_spawner *p = spawner();
    noted->ends_at = ends_at;
    noted->never_dies = never_dies;
    mcp_child c = start(p);
    read_ids(&c, &server, &keeper);
    settle(keeper, 0); /* its line is above */
    CHECK(!is_gone(server));
    read_until(c.out, &said, "ready\n");
    close(c.line);
    c.line = -1;
    for (int i = 0; i < PATIENCE_MS && noted->naps < (ends_at > 0 ? ends_at : 1); i++) {
        usleep(1000);
    }
    close(c.in);
    c.in = -1;
    wait_gone(keeper);
    CHECK(never_dies || is_gone(server));
    if (!is_gone(server)) {
        (void)__real_kill(-server, SIGKILL);
    }
    read_until(c.out, &said, NULL);
    mcp_child_end(&c);
    bytes_printf(out, "%s\n  says %s", what, bytes_str(&said));
    write_notes(out);
    bytes_deinit(&said);
    mcp_spawner_destroy(p);
}

static void test_ends(bytes *out)
{
    say_end(out, "one that ends with its input", "echo $$ $PPID; echo ready; cat; echo has ended", 3, false);
    say_end(out, "one that ends in the last moment", "echo $$ $PPID; echo ready; cat", 24, false);
    say_end(out, "one that must be asked",
            "trap 'echo is asked; cat; exit' TERM; echo $$ $PPID; echo ready; while :; do :; done", 29,
            false);
    say_end(out, "one that does as it likes", "trap '' TERM; echo $$ $PPID; echo ready; cat; sleep 30", -1,
            false);
    say_end(out, "one that cannot be killed", "trap '' TERM; echo $$ $PPID; echo ready; cat; sleep 30", -1,
            true);
}

/* Nothing of what it started is left, wherever it went; names of processes say what they like. */
static void test_left_behind(bytes *out)
{
    int server = 0, keeper = 0, first = 0, second = 0;
    char script[1024], pipe_path[FOLDER_NAME + 8];
    bytes said = bytes_empty(4096);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder); /* nobody writes to it */
    CHECK(mkfifo(pipe_path, 0600) == 0);
    snprintf(script, sizeof script,
             "ln -s \"$(command -v sleep)\" '%s/a) S 1 (b'; PATH=%s:$PATH; sleep 30 & echo $$ $PPID\n"
             "setsid sh -c 'setsid \"a) S 1 (b\" 30 & echo $$ $!; read never < %s' & wait $!",
             folder, folder, pipe_path);
    bytes_append_str(out, "what it leaves behind, in other groups\n");
    set_script(script);
    mcp_spawner *p = spawner();
    mcp_child c = start(p);
    read_ids(&c, &server, &keeper);
    read_ids(&c, &first, &second);
    CHECK(!is_gone(first) && !is_gone(second) && first != second && second > 0);
    (void)__real_kill(server, SIGKILL); /* its line stays open */
    wait_gone(keeper);
    CHECK(is_gone(server) && is_gone(first) && is_gone(second));
    read_until(c.out, &said, NULL);
    CHECK_STR(bytes_str(&said), "");
    mcp_child_end(&c);
    write_notes(out);
    mcp_spawner_destroy(p);
    bytes_deinit(&said);
}

/* The end of another process that has become the keeper's is not the server's. */
static void test_goes_on(void)
{
    int server = 0, keeper = 0, other = 0, none = 0;
    bytes said = bytes_empty(4096);
    set_script("echo $$ $PPID; sh -c 'sh -c \"read line < /dev/null; exit\" & echo $! 0'; cat; echo ready");
    mcp_spawner *p = spawner();
    mcp_child c = start(p);
    read_ids(&c, &server, &keeper);
    read_ids(&c, &other, &none);
    wait_gone(other);
    const int looks = noted->looks;
    for (int i = 0; i < PATIENCE_MS && noted->looks < looks + 3; i++) { /* it looks again */
        usleep(1000);
    }
    CHECK(noted->looks >= looks + 3);
    CHECK(!is_gone(server) && write(c.in, "x\n", 2) == 2);
    read_until(c.out, &said, "x\n");
    CHECK_STR(bytes_str(&said), "x\n");
    mcp_child_end(&c);
    wait_gone(keeper);
    CHECK(is_gone(server));
    mcp_spawner_destroy(p);
    bytes_deinit(&said);
}

/* ---- failures ---- */

static void test_failures(bytes *out)
{
    static const struct {
        const char *call;
        int n;
    } CALLS[] = {{"calloc", 1}, {"socketpair", 2}, {"fork", 3},   {"pipe2", 3},
                 {"send", 1},   {"sendmsg", 1},    {"recvmsg", 1}};
    bytes_append_str(out, "each call fails once\n");
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        for (int n = 1; n <= CALLS[i].n; n++) {
            bytes what = bytes_empty(1 << 16);
            mcp_spawner *p;
            mcp_child c;
            err_detail d = {0};
            const size_t before = open_files();
            set_script("echo $$ $PPID; read end");
            one_fails(CALLS[i].call, n);
            err_code err = mcp_spawner_create(&p, &config, &d);
            const pid_t pid = forked;
            bytes_printf(&what, "create %s %s", err_name(err), d.text);
            for (int k = 0; k < 2 && p; k++) { /* the second works, but where an answer was lost */
                d.text[0] = '\0';
                err = mcp_spawner_start(p, 0, &c, &d);
                bytes_printf(&what, "; start %s %s", err_name(err), d.text);
                if (!err) {
                    int server = 0, keeper = 0;
                    bytes line = bytes_empty(4096);
                    read_until(c.out, &line, "\n");
                    const bool runs = sscanf(bytes_str(&line), "%d %d", &server, &keeper) == 2;
                    bytes_append_str(&what, runs ? ", runs" : ", ends");
                    mcp_child_end(&c);
                    if (runs) {
                        wait_gone(keeper);
                    }
                    bytes_deinit(&line);
                }
                (void)one_fails_over();
            }
            (void)one_fails_over();
            if (p) {
                settle(pid, SPAWNERS);
            }
            mcp_spawner_destroy(p);
            CHECK_INT(open_files(), before);
            one_fails_say(out, CALLS[i].call, n, bytes_str(&what));
            bytes_deinit(&what);
        }
    }
    one_fails_say(out, NULL, 0, NULL);
}

/* A limit that is lower already stays. */
static void test_limits(bytes *out)
{
    const struct rlimit files = {.rlim_cur = 200, .rlim_max = 600};
    bytes_append_str(out, "where no more than 600 files may be open\n");
    set_script("ulimit -Sn; ulimit -Hn");
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    say_facts(out);
}

int main(void)
{
    bytes out = bytes_empty(1 << 20);
    sigset_t some;
    noted = mmap(NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(noted != MAP_FAILED);
    folder_make(folder);
    make_tool();
    CHECK(dup2(0, 3) == 3); /* nobody hands it on knowingly */
    close_range(4, ~0U, 0);
    for (int i = 1; i < NSIG; i++) { /* whatever whoever runs this has said */
        const bool is_fault =
            i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGILL || i == SIGABRT || i == SIGTRAP;
        (void)(is_fault ? SIG_DFL : signal(i, SIG_DFL));
    }
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, NULL);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    const size_t before = open_files();
    test_facts(&out);
    test_refused(&out);
    test_ends(&out);
    test_left_behind(&out);
    test_goes_on();
    test_failures(&out);
    test_limits(&out);
    CHECK_INT(open_files(), before);
    recorded_check("server/mcp/spawner.txt", bytes_str(&out));
    bytes_deinit(&out);
    CHECK_DONE();
}
