#include "server/notify.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 512, EXTEND_EVERY_MS = 5000, EXTEND_US = 60000000 };

/* Half of what the manager allows, as it recommends. */
static double watchdog_interval(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    const bool is_ours = !pid || strtol(pid, NULL, 10) == (long)getpid();
    const double interval = us && is_ours ? strtod(us, NULL) / 2000.0 : 0.0;
    return interval > 0.0 ? interval : 0.0;
}

void notify_open(notify *n)
{
    memset(n, 0, sizeof *n);
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t len = path ? strlen(path) : 0;
    if (len > 1 && len < sizeof n->address.sun_path && (path[0] == '/' || path[0] == '@')) {
        n->address.sun_family = AF_UNIX;
        memcpy(n->address.sun_path, path, len);
        if (path[0] == '@') {
            n->address.sun_path[0] = '\0'; /* an abstract name */
        }
        n->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        n->is_open = n->fd >= 0;
        n->watchdog_ms = watchdog_interval();
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_close(notify *n)
{
    if (n->is_open) {
        close(n->fd);
        n->is_open = false;
    }
}

void notify_send(const notify *n, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    if (!n->is_open) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ssize_t sent =
        sendto(n->fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&n->address, n->address_len);
    (void)sent;
}

void notify_tick(notify *n, double now_ms, bool is_loading)
{
    if (n->watchdog_ms > 0.0 && now_ms >= n->watchdog_at_ms) {
        n->watchdog_at_ms = now_ms + n->watchdog_ms;
        notify_send(n, "WATCHDOG=1");
    }
    if (is_loading && now_ms >= n->extend_at_ms) {
        n->extend_at_ms = now_ms + EXTEND_EVERY_MS;
        notify_send(n, "EXTEND_TIMEOUT_USEC=%d", EXTEND_US);
    }
}
