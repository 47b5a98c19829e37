/* notify: what a service manager hears, where it listens, and when. */
#include "server/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/open_files.h"

static int manager; /* its socket */

/* A manager that listens at a path, or at an abstract name ("@..."). */
static void listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    memcpy(at.sun_path, path, len);
    at.sun_path[0] = path[0] == '@' ? '\0' : path[0];
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(bind(manager, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
          0);
}

/* The next that it has heard, "" if there is nothing. */
static const char *heard(void)
{
    static char text[2048];
    const ssize_t n = recv(manager, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void open_with(notify *n, const char *path, const char *watchdog_us, const char *pid)
{
    path ? setenv("NOTIFY_SOCKET", path, 1) : unsetenv("NOTIFY_SOCKET");
    watchdog_us ? setenv("WATCHDOG_USEC", watchdog_us, 1) : unsetenv("WATCHDOG_USEC");
    pid ? setenv("WATCHDOG_PID", pid, 1) : unsetenv("WATCHDOG_PID");
    notify_open(n);
    CHECK(!getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
}

static void test_places(const char *folder)
{
    struct sockaddr_un room;
    char longest[sizeof room.sun_path + 1];
    notify n;
    snprintf(longest, sizeof longest, "%s/%0*d", folder, (int)(sizeof longest - strlen(folder) - 3), 0);
    const char *const HEARD[] = {longest, "@parley-test-of-notify"};
    for (size_t i = 0; i < ARRAY_LEN(HEARD); i++) {
        listen_at(HEARD[i]);
        open_with(&n, HEARD[i], NULL, NULL);
        CHECK(n.is_open);
        notify_send(&n, "READY=1\nSTATUS=%d of %s", 5, "all");
        CHECK_STR(heard(), "READY=1\nSTATUS=5 of all");
        notify_tick(&n, 1e9, false); /* who does not watch */
        CHECK_STR(heard(), "");
        notify_close(&n);
        CHECK(!n.is_open);
        notify_close(&n);
        notify_send(&n, "LATE=1");
        CHECK_STR(heard(), "");
        close(manager);
    }
    snprintf(longest, sizeof longest, "%s/%0*d", folder, (int)(sizeof longest - strlen(folder) - 2), 0);
    const char *const NOT[] = {NULL, "", "/", "@", "relative", longest};
    for (size_t i = 0; i < ARRAY_LEN(NOT); i++) {
        open_with(&n, NOT[i], "1000", NULL);
        CHECK(!n.is_open && n.watchdog_ms == 0.0);
        notify_send(&n, "READY=1");
        notify_tick(&n, 5, true);
        notify_close(&n);
    }
    open_with(&n, "/nowhere/at/all", NULL, NULL); /* what is not heard is lost */
    notify_send(&n, "READY=1");
    notify_close(&n);
}

static void test_long(const char *path)
{
    char text[1024];
    notify n;
    open_with(&n, path, NULL, NULL);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    notify_send(&n, "%s", text);
    CHECK_INT(strlen(heard()), 511);
    notify_close(&n);
}

static void test_times(const char *path)
{
    char own[32], others[32];
    notify n;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    snprintf(others, sizeof others, "%ld", (long)getpid() + 1);
    const struct {
        const char *us, *pid;
        double ms;
    } ROWS[] = {{"3000000", NULL, 1500}, {"3000000", own, 1500}, {"3000000", others, 0},
                {NULL, own, 0},          {"0", own, 0},          {"-5", NULL, 0}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        open_with(&n, path, ROWS[i].us, ROWS[i].pid);
        CHECK_NEAR(n.watchdog_ms, ROWS[i].ms, 0);
        notify_tick(&n, 100, false);
        CHECK_STR(heard(), ROWS[i].ms > 0 ? "WATCHDOG=1" : "");
        notify_tick(&n, 1599, false);
        CHECK_STR(heard(), "");
        notify_tick(&n, 1600, false); /* when half of the time is over */
        CHECK_STR(heard(), ROWS[i].ms > 0 ? "WATCHDOG=1" : "");
        CHECK_STR(heard(), "");
        notify_close(&n);
    }
    /* While it loads it asks for more time. */
    open_with(&n, path, NULL, NULL);
    notify_tick(&n, 100, true);
    CHECK_STR(heard(), "EXTEND_TIMEOUT_USEC=60000000");
    notify_tick(&n, 5099, true);
    CHECK_STR(heard(), "");
    notify_tick(&n, 5100, true);
    CHECK_STR(heard(), "EXTEND_TIMEOUT_USEC=60000000");
    notify_tick(&n, 90000, false);
    CHECK_STR(heard(), "");
    notify_close(&n);
}

int main(void)
{
    char folder[FOLDER_NAME], path[128];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/manager", folder);
    const size_t open = open_files();
    test_places(folder);
    listen_at(path);
    test_long(path);
    test_times(path);
    close(manager);
    CHECK_INT(open_files(), open);
    CHECK_DONE();
}
