/* sandbox: what each use of a folder and of a file lets a process do, and nothing else. Each is tried in a process of its
 * own, which is confined first. Then what is asked of kernels of each kind, which are made up, and which calls are left. */
#define _GNU_SOURCE
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/call_filter.h"
#include "base/compiler.h"
#include "tests/call_filter_answer.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

/* What can be tried. */
enum {
    READ = 1,
    WRITE = 2,
    LIST = 4,
    MAKE = 8,
    MAKE_FOLDER = 16,
    REMOVE = 32,
    REMOVE_FOLDER = 64,
    RUN = 128,
    BIND = 256,
    CUT = 512,
    READ_LINKED = 1024,
    ALL = 2047
};

static char dir[FOLDER_NAME], other[FOLDER_NAME];

static const char *in_dir(const char *name)
{
    static char path[FOLDER_NAME + 32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void make_file(const char *path, mode_t mode)
{
    const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
    CHECK(fd >= 0 && write(fd, "text", 4) == 4);
    close(fd);
}

static bool opens(const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static bool binds(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    return bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
}

/* Text is no program: the kernel says so to who may run it. */
static bool runs(const char *path)
{
    char *argv[] = {(char *)path, NULL}, *environment[] = {NULL};
    return execve(path, argv, environment) != 0 && errno == ENOEXEC;
}

static unsigned try_all(void)
{
    unsigned can = 0;
    can |= opens(in_dir("file"), O_RDONLY) ? READ : 0;
    can |= opens(in_dir("file"), O_WRONLY) ? WRITE : 0;
    can |= opens(dir, O_RDONLY | O_DIRECTORY) ? LIST : 0;
    can |= opens(in_dir("new"), O_WRONLY | O_CREAT) ? MAKE : 0;
    can |= mkdir(in_dir("made"), 0700) == 0 ? MAKE_FOLDER : 0;
    can |= unlink(in_dir("old")) == 0 ? REMOVE : 0;
    can |= rmdir(in_dir("empty")) == 0 ? REMOVE_FOLDER : 0;
    can |= runs(in_dir("file")) ? RUN : 0;
    can |= binds(in_dir("socket")) ? BIND : 0;
    can |= truncate(in_dir("file"), 1) == 0 ? CUT : 0;
    can |= opens(in_dir("link"), O_RDONLY) ? READ_LINKED : 0;
    return can;
}

/* What a process can do to whom a path below the folder ("": the folder) is allowed for a use; none: nothing is. */
static unsigned can_do(const char *path, const sandbox_use *use)
{
    int ends[2];
    unsigned can = 0;
    char linked[FOLDER_NAME + 16];
    folder_make(dir);
    make_file(in_dir("file"), 0700);
    make_file(in_dir("old"), 0600);
    CHECK(mkdir(in_dir("empty"), 0700) == 0);
    snprintf(linked, sizeof linked, "%s/linked", other);
    CHECK(symlink(linked, in_dir("link")) == 0);
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        sandbox *s = sandbox_create(false);
        if (use) {
            sandbox_allow(s, path[0] ? in_dir(path) : dir, *use);
        }
        can = s && sandbox_enter_files(s) ? try_all() : ALL + 1;
        _exit(write(ends[1], &can, sizeof can) == (ssize_t)sizeof can ? 0 : 1);
    }
    close(ends[1]);
    CHECK(read(ends[0], &can, sizeof can) == (ssize_t)sizeof can);
    close(ends[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
    return can;
}

static void test_uses(void)
{
    static const struct {
        const char *path;
        sandbox_use use;
        unsigned can;
    } CASES[] = {
        {"", SANDBOX_READ, READ | LIST | READ_LINKED},
        {"", SANDBOX_BELOW, READ | LIST},
        {"", SANDBOX_WRITE, READ | LIST | WRITE | MAKE | MAKE_FOLDER | REMOVE | REMOVE_FOLDER | CUT},
        {"", SANDBOX_RUN, READ | RUN},
        {"", SANDBOX_LIST, LIST},
        {"", SANDBOX_SOCKET, BIND | REMOVE},
        {"file", SANDBOX_READ, READ},
        {"file", SANDBOX_WRITE, READ | WRITE | CUT},
        {"file", SANDBOX_RUN, READ | RUN},
        {"file", SANDBOX_LIST, 0},
        {"not there", SANDBOX_WRITE, 0},
    };
    folder_make(other);
    char linked[FOLDER_NAME + 16];
    snprintf(linked, sizeof linked, "%s/linked", other);
    make_file(linked, 0600);
    CHECK_INT(can_do("", NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const unsigned can = can_do(CASES[i].path, &CASES[i].use);
        if (can != CASES[i].can) {
            fprintf(stderr, "  \"%s\" for use %d: can %#x, not %#x\n", CASES[i].path, (int)CASES[i].use, can,
                    CASES[i].can);
            check_fail(__FILE__, __LINE__, "what a use allows");
        }
    }
    size_t used = 0;
    for (int i = 0; i < 20; i++) { /* the allocator keeps the first few for later */
        sandbox *unused = sandbox_create(true);
        CHECK(unused != NULL);
        sandbox_destroy(unused);
        used = i == 10 ? mallinfo2().uordblks : used;
    }
    CHECK_INT(mallinfo2().uordblks, used);
    sandbox_destroy(NULL);
}

/* ---- over a kernel that is made up ---- */

enum { CREATE = 444, ADD = 445, RESTRICT = 446, REAL = -2 };

static int version = REAL; /* of Landlock; -1: none */
static int n_calls, fails_at;
static bytes said;
static struct sock_filter lines[CALL_FILTER_LINES];
static size_t n_lines;

/* What was allowed, in the order of names: a folder has none of its own. */
static char rules[16][128];
static size_t n_rules;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void allow(sandbox *s, const char *path, sandbox_use use)
{
    n_rules = 0;
    sandbox_allow(s, path, use);
    qsort(rules, n_rules, sizeof *rules, by_name);
    for (size_t i = 0; i < n_rules; i++) {
        bytes_printf(&said, "  %s\n", rules[i]);
    }
}

static bool fails(void)
{
    const bool is_failing = ++n_calls == fails_at;
    bytes_append_str(&said, is_failing ? " fails" : "");
    return is_failing;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(more, long);
    }
    va_end(more);
    if (version == REAL) {
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    if (number == CREATE && !a[0]) {
        CHECK(a[1] == 0 && a[2] == 1);
        errno = EOPNOTSUPP;
        return version;
    }
    if (number == CREATE) {
        uint64_t asked[3] = {0};
        CHECK(a[1] <= (long)sizeof asked && (int)a[2] == 0);
        memcpy(asked, (const void *)a[0], (size_t)a[1]);
        bytes_printf(&said, "  rules: %ld bytes, files %#llx, net %#llx, scoped %#llx", a[1],
                     (unsigned long long)asked[0], (unsigned long long)asked[1],
                     (unsigned long long)asked[2]);
    } else if (number == ADD) {
        struct {
            uint64_t allowed;
            int32_t fd;
        } __attribute__((packed)) rule;
        char path[4096], link[64];
        memcpy(&rule, (const void *)a[2], sizeof rule);
        snprintf(link, sizeof link, "/proc/self/fd/%d", rule.fd);
        const ssize_t n = readlink(link, path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
        const char *name =
            strncmp(path, folder_root, strlen(folder_root)) == 0 ? path + strlen(folder_root) : path;
        CHECK(a[1] == 1 && (int)a[3] == 0);
        CHECK((fcntl(rule.fd, F_GETFL) & O_PATH) && fcntl(rule.fd, F_GETFD) == FD_CLOEXEC);
        CHECK(n_rules < ARRAY_LEN(rules));
        if (n_rules < ARRAY_LEN(rules)) {
            snprintf(rules[n_rules++], sizeof *rules, "%.100s: %#llx", name,
                     (unsigned long long)rule.allowed);
        }
        return 0;
    } else if (number == RESTRICT) {
        CHECK((int)a[1] == 0);
        bytes_printf(&said, "  restrict");
    } else if (number == SYS_memfd_create) {
        CHECK_STR((const char *)a[0], "trial");
        bytes_printf(&said, "  memory: %ld", a[1]);
    } else {
        const struct sock_fprog *program = (const void *)a[2];
        CHECK_INT(number, SYS_seccomp);
        n_lines = program->len;
        memcpy(lines, program->filter, n_lines * sizeof *lines);
        bytes_printf(&said, "  filter: %ld, %ld", a[0], a[1]);
    }
    const long value = fails() ? -1
                       : number == CREATE || number == SYS_memfd_create
                           ? open("/dev/null", O_RDONLY | O_CLOEXEC)
                           : 0;
    bytes_append_char(&said, '\n');
    return value;
}

int __real_prctl(int what, ...);
int __wrap_prctl(int what, ...);
int __wrap_prctl(int what, ...)
{
    unsigned long a[4];
    va_list more;
    va_start(more, what);
    for (int i = 0; i < 4; i++) {
        a[i] = va_arg(more, unsigned long);
    }
    va_end(more);
    if (version == REAL) {
        return __real_prctl(what, a[0], a[1], a[2], a[3]);
    }
    bytes_printf(&said, "  prctl %s%s",
                 what == PR_GET_SECCOMP        ? "get seccomp"
                 : what == PR_SET_NO_NEW_PRIVS ? "no new privileges"
                                               : "?",
                 (int)a[0] == 1 ? ", 1" : "");
    const int value = fails() ? -1 : 0;
    bytes_append_char(&said, '\n');
    return value;
}

/* All that a server asks for, with the nth call failing; 0: none. */
static void ask_all(int nth, bool connects)
{
    char path[FOLDER_NAME + 32];
    n_calls = 0;
    fails_at = nth;
    sandbox *s = sandbox_create(connects);
    bytes_printf(&said, "  %s\n", s ? "made" : "not made");
    for (int use = SANDBOX_READ; use <= (int)SANDBOX_SOCKET && nth == 0; use++) {
        allow(s, dir, (sandbox_use)use);
        snprintf(path, sizeof path, "%s/file", dir);
        allow(s, path, (sandbox_use)use);
        snprintf(path, sizeof path, "%s/none", dir);
        allow(s, path, (sandbox_use)use);
    }
    allow(s, NULL, SANDBOX_READ);
    bytes_printf(&said, "  files: %s\n", sandbox_enter_files(s) ? "held" : "refused");
}

static void test_versions(void)
{
    char path[FOLDER_NAME + 32], inner[FOLDER_NAME + 64];
    folder_make(dir);
    snprintf(path, sizeof path, "%s/file", dir);
    make_file(path, 0600);
    static const char *const FOLDERS[] = {"1", "1/2", "1/2/3",
                                          "1/2/3/4"}; /* links below are followed so far */
    snprintf(inner, sizeof inner, "%s/link", dir);
    CHECK(symlink(path, inner) == 0);
    for (size_t i = 0; i < ARRAY_LEN(FOLDERS); i++) {
        snprintf(inner, sizeof inner, "%s/%s", dir, FOLDERS[i]);
        CHECK(mkdir(inner, 0700) == 0);
        snprintf(path, sizeof path, "%s/target-%zu", dir, i + 1);
        make_file(path, 0600);
        snprintf(inner, sizeof inner, "%s/%s/link", dir, FOLDERS[i]);
        CHECK(symlink(path, inner) == 0);
    }
    for (version = -1; version <= 7; version++) {
        bytes_printf(&said, "Landlock %d\n", version);
        CHECK_INT(sandbox_look().landlock, version > 0 ? version : 0);
        ask_all(0, false);
        bytes_printf(&said, "Landlock %d, which connects\n", version);
        fails_at = 0;
        sandbox *s = sandbox_create(true);
        sandbox_destroy(s);
    }
    version = 6;
    for (int nth = 1; nth <= 3; nth++) {
        bytes_printf(&said, "call %d fails\n", nth);
        ask_all(nth, false);
    }
    const bytes kept = said; /* what fails leaves nothing behind; nothing is written meanwhile */
    said = bytes_empty(0);
    size_t used = 0;
    for (int i = 0; i < 20; i++) {
        n_calls = 0;
        fails_at = 1;
        CHECK(sandbox_create(false) == NULL);
        used = i == 10 ? mallinfo2().uordblks : used;
    }
    CHECK_INT(mallinfo2().uordblks, used);
    said = kept;
    bytes_printf(&said, "what the kernel makes anew\n");
    fails_at = 0;
    sandbox *s = sandbox_create(false);
    const size_t n_open = open_files();
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    n_rules = 0;
    sandbox_allow(s, "/sys/class/tty", SANDBOX_READ); /* full of links, which are not looked at */
    CHECK(n_rules <= 1);
    CHECK_INT(open_files(), n_open);
    allow(s, "/proc/version", SANDBOX_READ); /* stays open */
    CHECK_INT(open_files(), n_open + 1);
    CHECK(close(next) == 0);
    sandbox_destroy(s);
    bytes_printf(&said, "without a sandbox\n");
    CHECK(sandbox_enter_files(NULL));
    for (fails_at = 0; fails_at <= 1; fails_at++) {
        n_calls = 0;
        CHECK_INT(sandbox_look().seccomp, fails_at == 0);
    }
    version = REAL;
}

#ifdef CALL_FILTER_ARCHITECTURE
static unsigned answer_of(int number, unsigned flags)
{
    const struct seccomp_data call = {.nr = number, .arch = CALL_FILTER_ARCHITECTURE, .args = {0, flags}};
    return call_filter_answer_of(lines, n_lines, &call);
}

/* The calls that are left, of kernels with and without memory that is no program. */
static void test_calls(void)
{
    static const int REFUSED[] = {SYS_ptrace,
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
                                  SYS_socket,
                                  SYS_connect};
    enum { OF_CONNECTIONS = 2, EXECUTABLE = 1 | 2 | 16 };
    const unsigned no = SECCOMP_RET_ERRNO | EPERM;
    version = 6;
    for (int i = 0; i < 4; i++) {
        const bool connects = i % 2, knows = i < 2;
        bytes_printf(&said, "calls, %s, %s\n", connects ? "which connects" : "which does not connect",
                     knows ? "memory may be no program" : "without that");
        n_calls = 0;
        fails_at = knows ? 0 : 1;
        CHECK(sandbox_enter_calls(connects));
        for (int number = 0; number < 1000; number++) {
            bool is_refused = false;
            for (size_t k = 0; k < ARRAY_LEN(REFUSED) - (connects ? OF_CONNECTIONS : 0); k++) {
                is_refused = is_refused || REFUSED[k] == number;
            }
            CHECK_INT(answer_of(number, 8), is_refused ? no : SECCOMP_RET_ALLOW);
            CHECK_INT(answer_of(number, EXECUTABLE),
                      is_refused || (knows && number == SYS_memfd_create) ? no : SECCOMP_RET_ALLOW);
        }
    }
    for (fails_at = 2; fails_at <= 3; fails_at++) {
        n_calls = 0;
        bytes_printf(&said, "call %d fails\n", fails_at);
        CHECK(!sandbox_enter_calls(false));
    }
    version = REAL;
}
#endif

int main(void)
{
    const sandbox_support support = sandbox_look();
    if (support.is_sanitized) {
        CHECK(sandbox_create(false) == NULL && sandbox_enter_files(NULL) && sandbox_enter_calls(false));
        CHECK_SKIP("a build with a sanitizer has no sandbox");
    }
    said = bytes_empty(1 << 20);
    test_versions();
#ifdef CALL_FILTER_ARCHITECTURE
    test_calls();
#endif
    recorded_check("server/sandbox.txt", bytes_str(&said));
    bytes_deinit(&said);
    if (support.landlock >= 3) {
        test_uses();
    }
    CHECK_ALL_CLOSED();
    if (support.landlock < 3 && check_failures == 0) {
        CHECK_SKIP("the rest needs Landlock 3");
    }
    CHECK_DONE();
}
