/* sandbox: what each use of a folder and of a file lets a process do, and nothing else. Each is tried in a process of its
 * own, which is confined first. */
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/open_files.h"

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

int main(void)
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
    const sandbox_support support = sandbox_look();
    if (support.landlock < 3 || support.is_sanitized) {
        CHECK_SKIP("needs Landlock 3, and a build without a sanitizer");
    }
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
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
