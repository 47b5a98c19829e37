/* How the video's own process is started: its words, what it sees of the environment, its descriptors and signals. No process
 * is: the system refuses after it has been told.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/check.h"
#include "tests/open_files.h"
#include "vision/video/video_worker.h"

static bytes said;

int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *a, int from, int to);
int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *a, int from, int to)
{
    char first[2] = {0};
    CHECK(a && from > STDERR_FILENO && (fcntl(from, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_INT(pread(from, first, 1, 0), to == STDIN_FILENO ? 1 : -1);
    bytes_printf(&said, "%d is %s\n", to, to == STDIN_FILENO ? first : "a socket");
    return 0;
}

int __wrap_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *a, int fd, const char *path,
                                            int flags, mode_t mode);
int __wrap_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *a, int fd, const char *path,
                                            int flags, mode_t mode)
{
    CHECK(a && mode == 0);
    bytes_printf(&said, "%d is %s%s\n", fd, path, flags == O_WRONLY ? ", to write" : "");
    return 0;
}

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    sigset_t set;
    short flags = 0;
    int n_blocked = 0, n_default = 0;
    CHECK(pid && files);
    CHECK(posix_spawnattr_getflags(attributes, &flags) == 0);
    CHECK_INT(flags, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    CHECK(posix_spawnattr_getsigmask(attributes, &set) == 0);
    for (int i = 1; i < 32; i++) {
        n_blocked += sigismember(&set, i) == 1;
    }
    CHECK(posix_spawnattr_getsigdefault(attributes, &set) == 0);
    for (int i = 1; i < 32; i++) {
        n_default += sigismember(&set, i) == 1;
    }
    bytes_printf(&said, "%s, signals: %d blocked, %d as they are at first\n", path, n_blocked, n_default);
    for (size_t i = 0; argv[i]; i++) {
        bytes_printf(&said, "word %s\n", argv[i]);
    }
    for (size_t i = 0; environment[i]; i++) {
        const size_t n = strlen(environment[i]);
        bytes_printf(&said, n < 60 ? "sees %s\n" : "sees %.20s... of %zu\n", environment[i], n);
    }
    return EAGAIN;
}

static const char *start(const char *command, const char *libraries)
{
    processor_config pc;
    processor_config_init(&pc);
    err_detail d = {0};
    const video_job job = {.source = {.data = (const uint8_t *)"V", .bytes = 1, .fd = -1},
                           .limits = video_limits_default(),
                           .processor = &pc,
                           .max_shown = 3,
                           .program = "/a/program",
                           .command = command};
    bytes_clear(&said);
    if (libraries) {
        CHECK(setenv("LD_LIBRARY_PATH", libraries, 1) == 0);
    } else {
        CHECK(unsetenv("LD_LIBRARY_PATH") == 0);
    }
    CHECK_INT(video_worker_read(&job, &(video_consumer){0}, &d), ERR_NOMEM);
    CHECK_STR(d.text, "the system refused a process to read the video");
    return bytes_str(&said);
}

int main(void)
{
#define BEFORE                                                                                               \
    "0 is V\n1 is a socket\n2 is /dev/null, to write\n"                                                      \
    "/a/program, signals: 0 blocked, 31 as they are at first\nword /a/program\n"
#define SEES "sees OPENBLAS_NUM_THREADS=1\nsees MALLOC_ARENA_MAX=2\n"
    enum { NAME = 16, ROOM = 1024 }; /* of "LD_LIBRARY_PATH=", and of all of it with its end */
    char libraries[ROOM];
    said = bytes_empty(1 << 16);
    CHECK_STR(start(NULL, NULL), BEFORE "word video-worker\n" SEES);
    CHECK_STR(start("other", ""), BEFORE "word other\n" SEES "sees LD_LIBRARY_PATH=\n");
    CHECK_STR(start(NULL, "/opt/lib"), BEFORE "word video-worker\n" SEES "sees LD_LIBRARY_PATH=/opt/lib\n");
    memset(libraries, 'x', sizeof libraries);
    libraries[ROOM - NAME - 1] = '\0';
    CHECK_STR(start(NULL, libraries),
              BEFORE "word video-worker\n" SEES "sees LD_LIBRARY_PATH=xxxx... of 1023\n");
    libraries[ROOM - NAME - 1] = 'x';
    libraries[ROOM - NAME] = '\0';
    CHECK_STR(start(NULL, libraries), BEFORE "word video-worker\n" SEES);
    bytes_deinit(&said);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
