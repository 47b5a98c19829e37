/* The server with the double of the engine: fake_main [--port N] [--key K] [--ui-dir D] ... Prints
 * its port. While there is a file of the name in PARLEY_TEST_DISK_STOP, writes to files wait, as on
 * a disk that does not answer. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/fake_options.h"

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    const char *stop = getenv("PARLEY_TEST_DISK_STOP");
    struct stat st;
    while (stop && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && access(stop, F_OK) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return __real_write(fd, data, n);
}

static void on_listening(void *ctx, int port)
{
    (void)ctx;
    printf("port %d\n", port);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static fake_options f;
    if (!fake_options_read(&f, argc - 1, argv + 1)) {
        return 2;
    }
    f.serve.on_listening = on_listening;
    const int code = serve_run(&f.serve);
    fake_options_end(&f);
    return code;
}
