/* bench_sandbox: what a system call costs more in the sandbox of the server, which is all that it costs there.
 *
 *     build/bench_sandbox [ROUNDS]
 *     strace -f -c -p PID        # beside a server: how many calls a chat makes
 *
 * A process in the sandbox and one outside of it take turns, begun anew for each round. Prints the nanoseconds of processor
 * time of the calls that a chat makes, medians of both, and the median of the differences of a round.
 */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/stats.h"
#include "server/sandbox.h"

enum { ROUNDS_MAX = 999, CALLS = 20000, WAYS = 5 };

static const char FILE_NAME[] = "/etc/passwd";
static const char *const NAMES[WAYS] = {"futex", "poll", "read of 16 bytes", "sendmsg and read",
                                        "open and close"};

typedef struct ends {
    int file, sockets[2];
    uint32_t word;
} ends;

static void call(ends *e, int way)
{
    char text[64] = "";
    struct pollfd one = {.fd = e->sockets[0], .events = POLLIN};
    struct iovec part = {.iov_base = text, .iov_len = sizeof text};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    switch (way) {
    case 0:
        (void)syscall(SYS_futex, &e->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        return;
    case 1:
        (void)poll(&one, 1, 0);
        return;
    case 2:
        (void)!pread(e->file, text, 16, 0);
        return;
    case 3:
        (void)sendmsg(e->sockets[1], &message, MSG_NOSIGNAL);
        (void)!read(e->sockets[0], text, sizeof text);
        return;
    default:
        close(open(FILE_NAME, O_RDONLY | O_CLOEXEC));
    }
}

static bool enter(void)
{
    sandbox *s = sandbox_create(false);
    sandbox_allow(s, FILE_NAME, SANDBOX_READ);
    return s && sandbox_enter_files(s) && sandbox_enter_calls(false);
}

static double processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* In a process of its own: writes the nanoseconds of a call in each way. */
static void measure(int out, bool is_inside)
{
    double ns[WAYS];
    ends e = {.file = open(FILE_NAME, O_RDONLY | O_CLOEXEC)};
    if (e.file < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, e.sockets) != 0 || (is_inside && !enter())) {
        _exit(1);
    }
    for (int way = 0; way < WAYS; way++) {
        const double begin = processor_ns();
        for (int i = 0; i < CALLS; i++) {
            call(&e, way);
        }
        ns[way] = (processor_ns() - begin) / CALLS;
    }
    _exit(write(out, ns, sizeof ns) == (ssize_t)sizeof ns ? 0 : 1);
}

static bool take_turn(double ns[WAYS], bool is_inside)
{
    int line[2], status = 1;
    if (pipe2(line, O_CLOEXEC) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        measure(line[1], is_inside);
    }
    const bool is_whole = child > 0 && read(line[0], ns, WAYS * sizeof *ns) == WAYS * (ssize_t)sizeof *ns;
    close(line[0]);
    close(line[1]);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && is_whole;
}

int main(int argc, char **argv)
{
    static double with[WAYS][ROUNDS_MAX], without[WAYS][ROUNDS_MAX], more[WAYS][ROUNDS_MAX];
    const long asked = argc > 1 ? strtol(argv[1], NULL, 10) : 99;
    const size_t rounds = asked > 0 && asked < ROUNDS_MAX ? (size_t)asked : ROUNDS_MAX;
    for (size_t i = 0; i < rounds; i++) {
        double side[2][WAYS];
        const bool first = i % 2;
        if (!take_turn(side[first], first) || !take_turn(side[!first], !first)) {
            fprintf(stderr,
                    "a process has failed; does this kernel have Landlock and seccomp? (parley doctor)\n");
            return 1;
        }
        for (int way = 0; way < WAYS; way++) {
            with[way][i] = side[1][way];
            without[way][i] = side[0][way];
            more[way][i] = side[1][way] - side[0][way];
        }
    }
    printf("nanoseconds of a call, medians of %zu rounds: outside of the sandbox, inside, difference\n",
           rounds);
    for (int way = 0; way < WAYS; way++) {
        printf("%-18s %7.0f %7.0f %+7.0f\n", NAMES[way], stats_median(without[way], rounds),
               stats_median(with[way], rounds), stats_median(more[way], rounds));
    }
    return 0;
}
