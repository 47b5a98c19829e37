#define _GNU_SOURCE /* close_range */
#include "vision/video/video_confine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/compiler.h"

/* ---- system calls ---- */

#ifdef CALL_FILTER_ARCHITECTURE
static const int ALLOWED[] = {
    SYS_read,
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
    SYS_tgkill,
};

static bool filter_calls(void)
{
    call_filter f;
    call_filter_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(ALLOWED); i++) {
        call_filter_answer_if(&f, ALLOWED[i], SECCOMP_RET_ALLOW);
    }
    /* The C library tries clone3 first, whose flags cannot be seen here; clone may make threads only. */
    call_filter_answer_if(&f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    call_filter_jump(&f, BPF_JEQ, SYS_clone, 0, 3);
    call_filter_load(&f, offsetof(struct seccomp_data, args[0]));
    call_filter_jump(&f, BPF_JSET, CLONE_THREAD, 0, 1);
    call_filter_answer(&f, SECCOMP_RET_ALLOW);
    call_filter_answer(&f, SECCOMP_RET_ERRNO | EPERM);
    return call_filter_enter(&f, 0);
}
#else
static bool filter_calls(void)
{
    return true; /* no list for this processor: the other limits hold */
}
#endif

/* ---- resources ---- */

/* At `value` the process is told, `beyond` it is stopped. */
static bool limit(int what, size_t value, size_t beyond)
{
    struct rlimit old;
    if (getrlimit((__rlimit_resource_t)what, &old) != 0) {
        return false;
    }
    rlim_t hard = old.rlim_max < value + beyond ? old.rlim_max : (rlim_t)(value + beyond);
    rlim_t soft = hard < value ? hard : (rlim_t)value;
    return setrlimit((__rlimit_resource_t)what, &(struct rlimit){soft, hard}) == 0;
}

/* Whether one more page may be mapped if addresses end at `limit`. */
static bool fits_below(size_t addresses, rlim_t most)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = MAP_FAILED;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){addresses, most}) == 0) {
        p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (p != MAP_FAILED) {
        munmap(p, page);
    }
    return p != MAP_FAILED;
}

/* Addresses in use now, found by what still fits: /proc may be closed. 0 if unknown. */
static size_t mapped_bytes(void)
{
    struct rlimit old;
    if (getrlimit(RLIMIT_AS, &old) != 0) {
        return 0;
    }
    size_t low = 0, high = old.rlim_cur < (rlim_t)1 << 48 ? (size_t)old.rlim_cur : (size_t)1 << 48;
    while (high - low > (size_t)64 << 10) {
        const size_t middle = low + (high - low) / 2;
        if (fits_below(middle, old.rlim_max)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return setrlimit(RLIMIT_AS, &old) == 0 ? high : 0;
}

bool video_confine(size_t memory_bytes, int cpu_s)
{
    const size_t mapped = mapped_bytes();
    if (mapped == 0 || syscall(SYS_close_range, 3u, ~0u, 0u) != 0) {
        return false;
    }
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              limit(RLIMIT_CPU, (size_t)cpu_s, 1) && limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_FSIZE, 0, 0);
    if (IS_SANITIZED) {
        return ok;
    }
    return ok && prctl(PR_SET_DUMPABLE, 0) == 0 && limit(RLIMIT_AS, mapped + memory_bytes, 0) &&
           limit(RLIMIT_NOFILE, 3, 0) && filter_calls();
}
