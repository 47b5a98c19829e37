/* call_filter: calls are answered by number and by argument, those of other architectures end the process, and a filter
 * that does not fit is not entered. Each filter is for good, so each has a process of its own. */
#include "base/call_filter.h"

#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CALL_FILTER_ARCHITECTURE
int main(void)
{
    return 77;
}
#else

enum { SKIPPED = 77, FIELD = 0x10 };

/* getppid is refused, and lseek whose third argument has a bit of FIELD; all else is allowed. */
static bool enter(unsigned short more_lines)
{
    call_filter f;
    call_filter_begin(&f);
    call_filter_answer_if(&f, SYS_getppid, SECCOMP_RET_ERRNO | EXDEV);
    call_filter_jump(&f, BPF_JEQ, SYS_lseek, 0, 3);
    call_filter_load(&f, offsetof(struct seccomp_data, args[2]));
    call_filter_jump(&f, BPF_JSET, FIELD, 0, 1);
    call_filter_answer(&f, SECCOMP_RET_ERRNO | EDOM);
    while (f.n < more_lines) {
        call_filter_answer(&f, SECCOMP_RET_ALLOW);
    }
    call_filter_answer(&f, SECCOMP_RET_ALLOW);
    return call_filter_enter(&f, 0);
}

/* An emulator has no filters. */
static int try_any(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &all};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : SKIPPED;
}

static int use_filter(void)
{
    const pid_t parent = getppid();
    const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (!enter(0)) {
        return 1;
    }
    errno = 0;
    const bool refused = syscall(SYS_getppid) == -1 && errno == EXDEV && parent > 0;
    errno = 0;
    const bool by_argument = syscall(SYS_lseek, fd, 0, FIELD | SEEK_SET) == -1 && errno == EDOM;
    return refused && by_argument && syscall(SYS_lseek, fd, 0, SEEK_SET) == 0 && getpid() > 0 ? 0 : 1;
}

static int fit_in(void)
{
    return enter(CALL_FILTER_LINES - 1) ? 0 : 1;
}

static int overflow(void)
{
    return enter(CALL_FILTER_LINES) ? 1 : 0;
}

static int never_fit(void)
{
    call_filter f;
    call_filter_begin(&f);
    for (int i = 0; i < 3 * CALL_FILTER_LINES; i++) {
        call_filter_answer(&f, SECCOMP_RET_ALLOW);
        CHECK(f.n <= CALL_FILTER_LINES + 1);
    }
    return call_filter_enter(&f, 0) ? 1 : 0;
}

#ifdef __x86_64__
static int call_as_x32(void)
{
    if (enter(0)) {
        syscall(0x40000000 | SYS_getpid);
    }
    return 1;
}

/* The highest number that is not of the x32 ABI: there is no such call. */
static int call_below_x32(void)
{
    return enter(0) && syscall(0x3fffffff) == -1 && errno == ENOSYS ? 0 : 1;
}

static int call_as_i386(void)
{
    long result = 20;         /* getpid */
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's own would end the process otherwise */
    if (enter(0)) {
        __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    }
    return 1;
}
#endif

/* The exit status of fn in a process, or minus the signal that ended it. */
static int in_process(int (*fn)(void))
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? fn() : SKIPPED);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
    if (in_process(try_any) == SKIPPED) {
        printf("skipped: filters of system calls cannot be entered here\n");
        return SKIPPED;
    }
    CHECK_INT(in_process(use_filter), 0);
    CHECK_INT(in_process(fit_in), 0);
    CHECK_INT(in_process(overflow), 0);
    CHECK_INT(in_process(never_fit), 0);
#ifdef __x86_64__
    CHECK_INT(in_process(call_as_x32), -SIGSYS);
    CHECK_INT(in_process(call_below_x32), 0);
    const int i386 = in_process(call_as_i386);
    CHECK(i386 == -SIGSYS || i386 == -SIGSEGV); /* the latter where the kernel has no such calls */
#endif
    CHECK_DONE();
}
#endif
