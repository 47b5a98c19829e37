#include "server/media/open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int open_below(const char *folder, const char *path, bool wants_folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *step = path; fd >= 0 && *path;) {
        char name[NAME_MAX + 1];
        const size_t n = strcspn(step, "/");
        const bool is_last = step[n] == '\0';
        int next = -1, why = ENAMETOOLONG;
        if (n < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)n, step);
            const bool is_step = n > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
            const int kind = wants_folder || !is_last ? O_DIRECTORY : 0;
            next = is_step ? openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | kind) : -1;
            why = is_step ? errno : EACCES;
        }
        close(fd);
        fd = next;
        if (fd < 0) {
            errno = why;
        }
        if (is_last) {
            break;
        }
        step += n + 1;
    }
    return fd;
}
