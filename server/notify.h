/* notify: tells the service manager how the server does, as sd_notify(3) would. Loop thread;
 * without $NOTIFY_SOCKET every call does nothing.
 *
 *     notify n; notify_open(&n);
 *     notify_send(&n, "READY=1\nSTATUS=Ready on port %d", port);
 *     notify_tick(&n, clock_ms(), is_loading);          // now and then
 */
#ifndef PARLEY_SERVER_NOTIFY_H
#define PARLEY_SERVER_NOTIFY_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

typedef struct notify {
    bool is_open;
    int fd;
    struct sockaddr_un address;
    socklen_t address_len;
    double watchdog_ms; /* how often the manager wants to hear; 0: it does not care */
    double watchdog_at_ms, extend_at_ms;
} notify;

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that children do
 * not speak for us. Before threads start. */
void notify_open(notify *n);
void notify_close(notify *n);

/* Lines of KEY=value. Nobody waits for the manager; what it cannot take is lost. */
void notify_send(const notify *n, const char *format, ...) PRINTF_LIKE(2, 3);

/* The sign of life, when it is due; while loading also the plea for more time. */
void notify_tick(notify *n, double now_ms, bool is_loading);

#endif
