#define _GNU_SOURCE /* close_range */
#include "vision/video/video_confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A sanitizer reserves terabytes of addresses and looks at its own files. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* ---- system calls ---- */

#ifdef ARCHITECTURE
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
enum { N_ALLOWED = ARRAY_LEN(ALLOWED), FILTER_CAP = 2 * N_ALLOWED + 16 };

static void add(struct sock_filter *f, size_t *n, struct sock_filter line)
{
    f[(*n)++] = line;
}

/* Loads a field of the call, and a line that answers `result` if the loaded value is `value`. */
#define LOAD(field)                                                                                          \
    ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field)))
#define SKIP_UNLESS(value) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), 0, 1))
#define ANSWER(result)     ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (unsigned)(result)))

static bool filter_calls(void)
{
    struct sock_filter lines[FILTER_CAP];
    size_t n = 0;
    add(lines, &n, LOAD(arch));
    add(lines, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add(lines, &n, ANSWER(SECCOMP_RET_KILL_PROCESS));
    add(lines, &n, LOAD(nr));
    for (size_t i = 0; i < N_ALLOWED; i++) {
        add(lines, &n, SKIP_UNLESS(ALLOWED[i]));
        add(lines, &n, ANSWER(SECCOMP_RET_ALLOW));
    }
    /* The C library tries clone3 first, whose flags cannot be seen here; clone may make threads
     * only. */
    add(lines, &n, SKIP_UNLESS(SYS_clone3));
    add(lines, &n, ANSWER(SECCOMP_RET_ERRNO | ENOSYS));
    add(lines, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
    add(lines, &n, LOAD(args[0]));
    add(lines, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    add(lines, &n, ANSWER(SECCOMP_RET_ALLOW));
    add(lines, &n, ANSWER(SECCOMP_RET_ERRNO | EPERM));
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = lines};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
