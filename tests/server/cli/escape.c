/* What somebody would do who has taken over the server: preloaded into it (real_sandbox.mjs), this tries,
 * on SIGUSR1 and in any of its threads, what the sandbox must refuse, and a few things that it must not.
 * One line on standard error for each: its name, and what came of it.
 *
 *     ESCAPE_READ, ESCAPE_WRITE: files; ESCAPE_OWN: a folder of the server's; ESCAPE_PORT: somebody listens;
 *     ESCAPE_PID: another process */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result)
{
    char line[128];
    const int n =
        snprintf(line, sizeof line, "escape %s %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
    (void)!write(2, line, (size_t)n);
    if (result > 2) {
        close((int)result);
    }
}

/* What the test says in the environment; "" for nothing. */
static const char *given(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static pid_t other(void)
{
    return (pid_t)strtol(given("ESCAPE_PID"), NULL, 10);
}

static long start(const char *program, const char *argument)
{
    int link[2], error = 0;
    if (pipe2(link, O_CLOEXEC) != 0) {
        return -1;
    }
    const pid_t child = vfork();
    if (child == 0) {
        execl(program, program, argument, NULL);
        error = errno;
        (void)!write(link[1], &error, sizeof error);
        _exit(1);
    }
    close(link[1]);
    const ssize_t n = read(link[0], &error, sizeof error);
    close(link[0]);
    waitpid(child, NULL, 0);
    errno = error;
    return n > 0 ? -1 : 0;
}

static void try_files(void)
{
    char path[4096];
    say("read", open(given("ESCAPE_READ"), O_RDONLY));
    say("read-home", open(given("HOME"), O_RDONLY | O_DIRECTORY));
    say("read-passwd", open("/etc/passwd", O_RDONLY));
    say("read-process", (snprintf(path, sizeof path, "/proc/%d/cmdline", other()), open(path, O_RDONLY)));
    say("write", open(given("ESCAPE_WRITE"), O_WRONLY | O_CREAT, 0600));
    say("truncate", truncate(given("ESCAPE_READ"), 0));
    snprintf(path, sizeof path, "%s/of-its-own", given("ESCAPE_OWN"));
    say("own", open(path, O_RDWR | O_CREAT, 0600));
    say("own-status", open("/proc/self/statm", O_RDONLY));
}

static void try_programs(void)
{
    char path[64];
    say("shell", start("/bin/sh", "-c"));
    say("loader", start("/lib64/ld-linux-x86-64.so.2", "/bin/true"));
    const int memory = memfd_create("program", 0);
    say("named-memory", memory);
    say("execveat", syscall(SYS_execveat, 2, "", NULL, NULL, AT_EMPTY_PATH));
    say("process", kill(other(), 0));
    say("ptrace", ptrace(PTRACE_ATTACH, other(), NULL, NULL));
    struct iovec piece = {path, sizeof path};
    say("memory-of-another", process_vm_readv(other(), &piece, 1, &piece, 1, 0));
}

static void try_connections(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((unsigned short)strtol(given("ESCAPE_PORT"), NULL, 10));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    say("socket", fd);
    say("connect", connect(fd, (struct sockaddr *)&to, sizeof to));
    say("datagram", socket(AF_INET, SOCK_DGRAM, 0));
    say("unix", socket(AF_UNIX, SOCK_STREAM, 0));
}

static void on_signal(int number)
{
    (void)number;
    const int error = errno;
    try_files();
    try_programs();
    try_connections();
    say("end", 0);
    errno = error;
}

__attribute__((constructor)) static void begin(void)
{
    signal(SIGUSR1, on_signal);
}
