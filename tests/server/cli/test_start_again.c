/* serve_sandbox: for which commands the program starts itself again, and what it then finds in its environment; threads that
 * began before the sandbox; what doctor says of kernels. The kernel, the threads and the processor are made up. */
#include "server/cli/serve_sandbox.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/sandbox.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/cli/typed_options.h"

static bytes all;

/* ---- the kernel ---- */

static sandbox_support support;

sandbox_support sandbox_look(void)
{
    return support;
}

sandbox *sandbox_create(bool connects)
{
    (void)connects;
    return NULL;
}

void sandbox_allow(sandbox *s, const char *path, sandbox_use use)
{
    (void)s, (void)path, (void)use;
}

bool sandbox_enter_files(sandbox *s)
{
    return !s;
}

bool sandbox_enter_calls(bool connects)
{
    return !connects;
}

static const char *tasks,
    *wanted_blas; /* the folder with the threads of this process, NULL: the true one; "": none */

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    return __real_opendir(tasks && strcmp(path, "/proc/self/task") == 0 ? tasks : path);
}

const char *__wrap_engine_wanted_blas(void);
const char *__wrap_engine_wanted_blas(void)
{
    return wanted_blas;
}

ssize_t __real_readlink(const char *path, char *out, size_t n);
ssize_t __wrap_readlink(const char *path, char *out, size_t n);
ssize_t __wrap_readlink(const char *path, char *out, size_t n)
{
    if (strcmp(path, "/proc/self/exe") != 0) {
        return __real_readlink(path, out, n);
    }
    CHECK(n == PATH_MAX - 1 || n == 2047);
    memcpy(out, "/program~~~~", 12);
    return wanted_blas && strcmp(wanted_blas, "unread") == 0 ? -1 : (ssize_t)strlen("/program");
}

static char *const *exec_argv;

int __wrap_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[])
{
    const char *core = getenv("OPENBLAS_CORETYPE"), *threads = getenv("OPENBLAS_NUM_THREADS");
    CHECK(argv == exec_argv);
    bytes_printf(&all, " %s for %s on %s threads", path, core ? core : "any", threads ? threads : "all");
    return -1;
}

static void set_or_not(const char *name, const char *value)
{
    value ? setenv(name, value, 1) : unsetenv(name);
}

/* Which command starts again for a library of another processor, or of fewer threads. */
static void test_start_again(void)
{
    static char *const WORDS[] = {NULL, "-m", "serve", "chat", "run", "bench", "pull", "s"};
    static const struct {
        const char *wanted, *core, *threads, *tasks;
        int landlock;
        bool is_sanitized;
    } CASES[] = {
        {NULL, NULL, NULL, "tasks", 1, false},     {"Zen", NULL, NULL, "tasks", 1, false},
        {"Zen", "Any", NULL, "tasks", 1, false},   {NULL, NULL, "1", "tasks", 1, false},
        {"Zen", NULL, "1", "tasks", 1, false},     {NULL, NULL, "2", "tasks", 1, false},
        {NULL, NULL, NULL, "tasks/1", 1, false},   {NULL, NULL, NULL, "", 1, false},
        {NULL, NULL, NULL, "tasks", 0, false},     {NULL, NULL, NULL, "tasks", 1, true},
        {"unread", NULL, NULL, "tasks", 1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        support = (sandbox_support){.landlock = CASES[i].landlock, .is_sanitized = CASES[i].is_sanitized};
        wanted_blas = CASES[i].wanted;
        tasks = CASES[i].tasks;
        bytes_printf(&all, "==== begins: wants %s, %s, %s threads, in %s, landlock %d, sanitized %d\n",
                     wanted_blas ? wanted_blas : "any", CASES[i].core ? CASES[i].core : "-",
                     CASES[i].threads ? CASES[i].threads : "-", tasks, CASES[i].landlock,
                     CASES[i].is_sanitized);
        for (size_t k = 0; k <= ARRAY_LEN(WORDS);
             k++) { /* the last one: without a name of the program, too */
            char *argv[] = {k < ARRAY_LEN(WORDS) ? "parley" : NULL, k < ARRAY_LEN(WORDS) ? WORDS[k] : NULL,
                            NULL};
            set_or_not("OPENBLAS_CORETYPE", CASES[i].core);
            set_or_not("OPENBLAS_NUM_THREADS", CASES[i].threads);
            bytes_printf(&all, "%s:", !argv[0] ? "(nothing)" : argv[1] ? argv[1] : "(no command)");
            exec_argv = argv;
            serve_sandbox_start_again(argv);
            bytes_printf(&all, "\n");
        }
    }
}

static void test_threads(void)
{
    static const char *const TASKS[] = {"tasks", "tasks/1", ""};
    options o = typed_options("parley serve");
    support = (sandbox_support){.landlock = 6, .seccomp = true};
    for (size_t i = 0; i < ARRAY_LEN(TASKS); i++) {
        serve_sandbox box;
        tasks = TASKS[i];
        said_begin();
        serve_sandbox_begin(&box, &o, "uploads", NULL, NULL);
        said_end();
        CHECK(box.is_on && !box.connects);
        CHECK_HAS(said_err, "this kernel has no Landlock");
        CHECK((strstr(said_err, "threads of a library began before it") != NULL) == (i == 0));
    }
    tasks = NULL;
    options_deinit(&o);
}

/* What kernels of other versions hold; the first two lines are of this machine. */
static void test_doctor(void)
{
    for (int i = 0; i < 18; i++) {
        support = (sandbox_support){.landlock = i % 8, .seccomp = i<8, .is_sanitized = i> 15};
        said_begin();
        const int code = command_doctor();
        said_end();
        CHECK_INT(code, 0);
        CHECK_STR(said_err, "");
        char versions[64];
        snprintf(versions, sizeof versions, ", Landlock %d, seccomp %s\nprocessor: ", i % 8,
                 i < 8 ? "there" : "not there");
        CHECK(strncmp(said_out, "kernel ", 7) == 0);
        CHECK_HAS(said_out, versions);
        const char *rest = strstr(said_out, " (--cpu)\n");
        bytes_printf(&all, "==== parley doctor, Landlock %d%s%s\n%s", i % 8, i < 8 ? ", seccomp" : "",
                     i > 15 ? ", sanitized" : "", rest ? rest + 9 : "");
    }
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    CHECK(chdir(folder) == 0);
    CHECK(mkdir("tasks", 0700) == 0 && mkdir("tasks/1", 0700) == 0 && mkdir("tasks/2", 0700) == 0 &&
          mkdir("tasks/1/3", 0700) == 0);
    setenv("PARLEY_CONFIG", "none", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    log_set_level(LOG_INFO);
    bytes_init(&all, (size_t)1 << 20);
    test_start_again();
    test_threads();
    test_doctor();
    CHECK(!command_default_model()); /* there is none beside that program */
    CHECK_ALL_CLOSED();
    recorded_check("server/cli/start_again.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
