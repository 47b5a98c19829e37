#define _GNU_SOURCE /* O_PATH */
#include "server/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/compiler.h"

/* ---- Landlock: the headers of Debian 12 know its second version; these are of later ones ---- */

typedef struct ruleset_attr {
    uint64_t files, net, scoped;
} ruleset_attr;

typedef struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed)) path_attr;

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, VERSION_FLAG = 1, PATH_BENEATH = 1 };

#define EXECUTE       UINT64_C(1)
#define WRITE_FILE    UINT64_C(2)
#define READ_FILE     UINT64_C(4)
#define READ_DIR      UINT64_C(8)
#define REMOVE_DIR    UINT64_C(0x10)
#define REMOVE_FILE   UINT64_C(0x20)
#define MAKE_DIR      UINT64_C(0x80)
#define MAKE_REG      UINT64_C(0x100)
#define MAKE_SOCK     UINT64_C(0x200)
#define ALL_FILES     UINT64_C(0x1fff) /* of the first version */
#define REFER         UINT64_C(0x2000) /* 2: to rename into another folder */
#define TRUNCATE      UINT64_C(0x4000) /* 3 */
#define IOCTL_DEV     UINT64_C(0x8000) /* 5 */
#define CONNECT_TCP   UINT64_C(2)      /* 4 */
#define SCOPE_SIGNAL  UINT64_C(2)      /* 6 */
#define RIGHTS_OF_ONE (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV) /* that a file can have */

/* MFD_NOEXEC_SEAL, since Linux 6.3 */
enum { NO_EXEC = 8 };

struct sandbox {
    int ruleset;
    uint64_t handled;
};

static int landlock_version(void)
{
    const long version = syscall(CREATE_RULESET, NULL, (size_t)0, VERSION_FLAG);
    return version > 0 ? (int)version : 0;
}

sandbox_support sandbox_look(void)
{
    return (sandbox_support){.landlock = landlock_version(),
                             .seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
                             .is_sanitized = IS_SANITIZED};
}

static uint64_t files_of(int version)
{
    return ALL_FILES | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
           (version >= 5 ? IOCTL_DEV : 0);
}

sandbox *sandbox_create(bool connects)
{
    const int version = IS_SANITIZED ? 0 : landlock_version();
    const ruleset_attr attr = {.files = files_of(version),
                               .net = version >= 4 && !connects ? CONNECT_TCP : 0,
                               .scoped = version >= 6 ? SCOPE_SIGNAL : 0};
    const size_t size = version >= 6   ? sizeof attr
                        : version >= 4 ? offsetof(ruleset_attr, scoped)
                                       : offsetof(ruleset_attr, net);
    sandbox *s = version > 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        return NULL;
    }
    s->handled = attr.files;
    s->ruleset = (int)syscall(CREATE_RULESET, &attr, size, 0);
    if (s->ruleset < 0) {
        free(s);
        return NULL;
    }
    return s;
}

void sandbox_destroy(sandbox *s)
{
    if (s) {
        close(s->ruleset);
        free(s);
    }
}

static uint64_t rights_of(sandbox_use use)
{
    switch (use) {
    case SANDBOX_READ:
    case SANDBOX_BELOW:
        return READ_FILE | READ_DIR;
    case SANDBOX_WRITE:
        return READ_FILE | READ_DIR | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER |
               TRUNCATE;
    case SANDBOX_RUN:
        return READ_FILE | EXECUTE;
    case SANDBOX_LIST:
        return READ_DIR;
    default:
        return MAKE_SOCK | REMOVE_FILE;
    }
}

/* What a kernel makes anew at each look (/proc) is the same as long as it is open, so that stays open. */
static void allow_one(sandbox *s, const char *path, sandbox_use use)
{
    struct stat st;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    path_attr rule = {.parent_fd = fd, .allowed = rights_of(use) & s->handled};
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
        rule.allowed &= RIGHTS_OF_ONE;
    }
    const bool stays = strncmp(path, "/proc/", 6) == 0;
    (void)syscall(ADD_RULE, s->ruleset, PATH_BENEATH, &rule, 0);
    if (!stays) {
        close(fd);
    }
}

/* Published checkpoints are often folders of links to files that lie elsewhere. */
static void allow_links(sandbox *s, const char *folder, int depth)
{
    char path[4096];
    DIR *d = opendir(folder);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n < 0 || (size_t)n >= sizeof path || strcmp(e->d_name, ".") == 0 ||
            strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (e->d_type == DT_LNK) {
            allow_one(s, path, SANDBOX_READ);
        }
        if (depth > 0 && (e->d_type == DT_DIR || e->d_type == DT_LNK)) {
            allow_links(s, path, depth - 1);
        }
    }
    if (d) {
        closedir(d);
    }
}

void sandbox_allow(sandbox *s, const char *path, sandbox_use use)
{
    enum { DEPTH = 2 };
    if (!s || !path) {
        return;
    }
    allow_one(s, path, use);
    if (use == SANDBOX_READ && strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0) {
        allow_links(s, path, DEPTH);
    }
}

bool sandbox_enter_files(sandbox *s)
{
    bool ok = IS_SANITIZED || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    ok = ok && (!s || syscall(RESTRICT_SELF, s->ruleset, 0) == 0);
    sandbox_destroy(s);
    return ok;
}

/* ---- system calls ---- */

#ifdef CALL_FILTER_ARCHITECTURE
/* Other processes, the kernel's keys, modules, mounts and clocks; programs without a name. */
static const int REFUSED[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_execveat,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_personality,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_quotactl,
    SYS_vhangup,
    SYS_syslog,
    SYS_process_madvise,
    SYS_bind,
    SYS_listen,
};
static const int OF_CONNECTIONS[] = {SYS_socket, SYS_connect};

static void refuse(call_filter *f, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        call_filter_answer_if(f, calls[i], SECCOMP_RET_ERRNO | EPERM);
    }
}

bool sandbox_enter_calls(bool connects)
{
    if (IS_SANITIZED) {
        return true; /* leaks are looked for with ptrace */
    }
    call_filter f;
    call_filter_begin(&f);
    refuse(&f, REFUSED, ARRAY_LEN(REFUSED));
    if (!connects) {
        refuse(&f, OF_CONNECTIONS, ARRAY_LEN(OF_CONNECTIONS));
    }
    /* Memory with a name is a file that Landlock does not see: it must not be a program. */
    const int trial = (int)syscall(SYS_memfd_create, "trial", (unsigned)NO_EXEC);
    if (trial >= 0) {
        close(trial);
        call_filter_jump(&f, BPF_JEQ, SYS_memfd_create, 0, 3);
        call_filter_load(&f, offsetof(struct seccomp_data, args[1]));
        call_filter_jump(&f, BPF_JSET, NO_EXEC, 1, 0);
        call_filter_answer(&f, SECCOMP_RET_ERRNO | EPERM);
    }
    call_filter_answer(&f, SECCOMP_RET_ALLOW);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && call_filter_enter(&f, SECCOMP_FILTER_FLAG_TSYNC);
}
#else
bool sandbox_enter_calls(bool connects)
{
    (void)connects;
    return true; /* no list for this processor: the other limits hold */
}
#endif
