/* What confining asks of the system, over a system that the test makes up: what is asked for and in which order, limits
 * that were lower before, each call failing once, and which calls are left. In test_video_worker a process is confined
 * really.
 */
#define _GNU_SOURCE
#include "vision/video/video_confine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/call_filter.h"
#include "base/compiler.h"
#include "tests/call_filter_answer.h"
#include "tests/check.h"

enum { MEMORY = 64 << 20, SECONDS = 5, FINENESS = 64 << 10 };

/* ---- the system ---- */

static size_t mapped; /* what the process has of addresses */
static struct rlimit limits[RLIM_NLIMITS], addresses_before;
static int n_pages;       /* that were mapped and not given back */
static bool is_confining; /* the search for what is mapped is over */
static bytes said;        /* a line for each call from then on */
static int n_calls, fails_at;
static struct sock_filter lines[CALL_FILTER_LINES];
static size_t n_lines; /* 0: no filter was entered */

static bool fails(void)
{
    return ++n_calls == fails_at;
}

int __wrap_getrlimit(__rlimit_resource_t what, struct rlimit *out);
int __wrap_getrlimit(__rlimit_resource_t what, struct rlimit *out)
{
    *out = limits[what];
    return fails() ? -1 : 0;
}

int __wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *new);
int __wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *new)
{
    if (fails() || new->rlim_cur > new->rlim_max || new->rlim_max > limits[what].rlim_max) {
        return -1;
    }
    limits[what] = *new;
    if (is_confining && what != RLIMIT_AS) {
        bytes_printf(&said, "limit %d: %lld, %lld\n", (int)what, (long long)new->rlim_cur,
                     (long long)new->rlim_max);
    }
    return 0;
}

void *__wrap_mmap(void *at, size_t n, int access, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int access, int flags, int fd, off_t offset)
{
    static char page;
    CHECK(!at && access == PROT_NONE && flags == (MAP_PRIVATE | MAP_ANONYMOUS) && fd == -1 && offset == 0);
    CHECK_INT(n, sysconf(_SC_PAGESIZE));
    if (fails() || mapped + n > limits[RLIMIT_AS].rlim_cur) {
        return MAP_FAILED;
    }
    n_pages++;
    return &page;
}

int __wrap_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n)
{
    CHECK(at != MAP_FAILED && n == (size_t)sysconf(_SC_PAGESIZE));
    n_pages--;
    return fails() ? -1 : 0;
}

int __wrap_prctl(int what, ...);
int __wrap_prctl(int what, ...)
{
    va_list more;
    va_start(more, what);
    const unsigned value = va_arg(more, unsigned);
    va_end(more);
    bytes_printf(&said, "prctl %d: %u\n", what, value);
    return fails() ? -1 : 0;
}

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list more;
    va_start(more, number);
    const unsigned first = va_arg(more, unsigned), second = va_arg(more, unsigned);
    if (number == SYS_seccomp) {
        const struct sock_fprog *program = va_arg(more, void *);
        n_lines = program->len;
        memcpy(lines, program->filter, n_lines * sizeof *lines);
        bytes_printf(&said, "filter: %u, %u\n", first, second);
    } else {
        CHECK_INT(number, SYS_close_range);
        CHECK_INT(limits[RLIMIT_AS].rlim_cur, addresses_before.rlim_cur);
        CHECK_INT(limits[RLIMIT_AS].rlim_max, addresses_before.rlim_max);
        is_confining = true;
        bytes_printf(&said, "close: %u to %u, %u\n", first, second, va_arg(more, unsigned));
    }
    va_end(more);
    return fails() ? -1 : 0;
}

/* Confines, with the nth call failing (0: none), a process that has so much and whose limits are these. */
static bool confine(int nth, const struct rlimit *processor, const struct rlimit *addresses)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    for (size_t i = 0; i < RLIM_NLIMITS; i++) {
        limits[i] = none;
    }
    limits[RLIMIT_CPU] = processor ? *processor : none;
    limits[RLIMIT_AS] = addresses_before = addresses ? *addresses : none;
    bytes_clear(&said);
    mapped = (size_t)123456789;
    is_confining = false;
    n_pages = n_calls = 0;
    n_lines = 0;
    fails_at = nth;
    return video_confine(MEMORY, SECONDS);
}

/* ---- what is asked ---- */

static void test_whole(void)
{
    CHECK(confine(0, NULL, NULL));
    CHECK_INT(n_pages, 0);
    CHECK_STR(bytes_str(&said), IS_SANITIZED ? "close: 3 to 4294967295, 0\n"
                                               "prctl 1: 9\n"  /* ends with its parent */
                                               "prctl 38: 1\n" /* no new privileges */
                                               "limit 0: 5, 6\n"
                                               "limit 4: 0, 0\n"
                                               "limit 1: 0, 0\n"
                                             : "close: 3 to 4294967295, 0\n"
                                               "prctl 1: 9\n"
                                               "prctl 38: 1\n"
                                               "limit 0: 5, 6\n"
                                               "limit 4: 0, 0\n"
                                               "limit 1: 0, 0\n"
                                               "prctl 4: 0\n" /* nobody may look into it */
                                               "limit 7: 3, 3\n"
                                               "filter: 1, 0\n");
    if (!IS_SANITIZED) {
        const size_t least = mapped + (size_t)sysconf(_SC_PAGESIZE) + MEMORY;
        CHECK(limits[RLIMIT_AS].rlim_cur >= least && limits[RLIMIT_AS].rlim_cur <= least + FINENESS);
        CHECK_INT(limits[RLIMIT_AS].rlim_max, limits[RLIMIT_AS].rlim_cur);
    }
}

/* Limits stay where they were lower, and what is searched ends where addresses do. */
static void test_lower_before(void)
{
    static const rlim_t processor[][2] = {{3, 3}, {5, 5}, {6, 6}, {7, 6}};
    for (size_t i = 0; i < ARRAY_LEN(processor); i++) {
        const rlim_t most = processor[i][0], beyond = processor[i][1];
        CHECK(confine(0, &(struct rlimit){1, most}, NULL));
        CHECK_INT(limits[RLIMIT_CPU].rlim_cur, most < SECONDS ? most : SECONDS);
        CHECK_INT(limits[RLIMIT_CPU].rlim_max, beyond);
    }
    CHECK(confine(0, NULL, NULL));
    const rlim_t plain = limits[RLIMIT_AS].rlim_cur;
    const int n_plain = n_calls;
    const size_t little = 32 << 20;
    CHECK(confine(0, NULL, &(struct rlimit){mapped + little, RLIM_INFINITY}));
    CHECK(n_calls < n_plain);
    if (!IS_SANITIZED) {
        CHECK(limits[RLIMIT_AS].rlim_cur <= plain + FINENESS &&
              limits[RLIMIT_AS].rlim_cur >= plain - FINENESS);
        CHECK(confine(0, NULL, &(struct rlimit){mapped + little, mapped + little}));
        CHECK_INT(limits[RLIMIT_AS].rlim_cur, mapped + little);
        CHECK_INT(limits[RLIMIT_AS].rlim_max, mapped + little);
    }
}

/* Whatever is refused, the process does not go on; what is refused in the search, which asks for what may be refused, makes
 * the process seem larger. */
static void test_refused(void)
{
    CHECK(confine(0, NULL, NULL));
    const rlim_t plain = limits[RLIMIT_AS].rlim_cur;
    const int n = n_calls, n_after = IS_SANITIZED ? 9 : 15;
    CHECK_INT(n, 1 + 32 * 2 + 24 + 1 + n_after); /* 48 bits down to 16; 24 of 32 fit */
    for (int i = 1; i <= n; i++) {
        const bool is_search = i > 1 && i < n - n_after;
        CHECK_INT(confine(i, NULL, NULL), is_search);
        CHECK(!is_search || limits[RLIMIT_AS].rlim_cur >= plain);
        CHECK(n_pages == 0);
    }
}

/* ---- which calls are left ---- */

#ifdef CALL_FILTER_ARCHITECTURE
static unsigned answer_of(int number, uint64_t argument)
{
    struct seccomp_data call = {.nr = number, .arch = CALL_FILTER_ARCHITECTURE, .args = {argument}};
    return call_filter_answer_of(lines, n_lines, &call);
}

static void test_calls(void)
{
    static const int left[] = {SYS_read,
                               SYS_write,
                               SYS_pread64,
                               SYS_lseek,
                               SYS_close,
                               SYS_fstat,
                               SYS_newfstatat,
                               SYS_mmap,
                               SYS_munmap,
                               SYS_mremap,
                               SYS_mprotect,
                               SYS_madvise,
                               SYS_brk,
                               SYS_futex,
                               SYS_exit,
                               SYS_exit_group,
                               SYS_rt_sigaction,
                               SYS_rt_sigprocmask,
                               SYS_rt_sigreturn,
                               SYS_sigaltstack,
                               SYS_clock_gettime,
                               SYS_clock_nanosleep,
                               SYS_gettimeofday,
                               SYS_nanosleep,
                               SYS_getpid,
                               SYS_gettid,
                               SYS_sched_yield,
                               SYS_sched_getaffinity,
                               SYS_set_robust_list,
                               SYS_rseq,
                               SYS_getrandom,
                               SYS_membarrier,
                               SYS_restart_syscall,
                               SYS_tgkill};
    CHECK(confine(0, NULL, NULL));
    for (int number = 0; number < 1000; number++) {
        bool is_left = false;
        for (size_t i = 0; i < ARRAY_LEN(left); i++) {
            is_left = is_left || left[i] == number;
        }
        const unsigned expected = is_left                ? SECCOMP_RET_ALLOW
                                  : number == SYS_clone3 ? (unsigned)(SECCOMP_RET_ERRNO | ENOSYS)
                                                         : (unsigned)(SECCOMP_RET_ERRNO | EPERM);
        CHECK_INT(answer_of(number, 0), expected);
        CHECK_INT(answer_of(number, CLONE_THREAD), number == SYS_clone ? SECCOMP_RET_ALLOW : expected);
        CHECK_INT(answer_of(number, ~(uint64_t)CLONE_THREAD), expected);
    }
}
#endif

int main(void)
{
    said = bytes_empty(1 << 16);
    test_whole();
    test_lower_before();
    test_refused();
#ifdef CALL_FILTER_ARCHITECTURE
    if (!IS_SANITIZED) {
        test_calls();
    }
#endif
    bytes_deinit(&said);
    CHECK_DONE();
}
