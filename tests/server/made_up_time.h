/* made_up_time: time that passes only while this program waits, and then at once. It takes the place of clock_gettime (of
 * the clock that never jumps) and of poll for the libraries, too. One program file; one thread that waits.
 *
 *     bool (*world)(void) = NULL;              // what others do while this program waits; true: there was something
 *     made_up_world = world;
 *     made_up_until(made_up_ns + MADE_UP_S);   // a wait goes no further: made_up_is_over says that it has come there
 *     made_up_at(made_up_ns + 5 * MADE_UP_S);  // in world: it is to be called again then
 *     made_up_error = EINTR;                   // in world: this wait ends with it
 */
#ifndef PARLEY_TESTS_SERVER_MADE_UP_TIME_H
#define PARLEY_TESTS_SERVER_MADE_UP_TIME_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define MADE_UP_S ((int64_t)1000000000)
/* What a look takes that does not wait, so that a loop of them comes to an end. */
enum { MADE_UP_LOOK_NS = 20000 };

static int64_t made_up_ns = 5000 * MADE_UP_S; /* now */
static int64_t made_up_most_ns = INT64_MAX, made_up_next_ns = INT64_MAX;
static bool made_up_is_over;
static int made_up_error; /* 0: none */
static bool (*made_up_world)(void);

/* The linker's names: headers may have declared these as something else. */
int made_up_clock(clockid_t id, struct timespec *out) __asm__("clock_gettime");
int made_up_poll(struct pollfd *fds, nfds_t n, int timeout_ms) __asm__("poll");

int made_up_clock(clockid_t id, struct timespec *out)
{
    if (id != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, id, out);
    }
    *out = (struct timespec){.tv_sec = made_up_ns / MADE_UP_S, .tv_nsec = made_up_ns % MADE_UP_S};
    return 0;
}

static inline void made_up_until(int64_t ns)
{
    made_up_most_ns = ns;
    made_up_is_over = false;
}

static inline void made_up_at(int64_t ns)
{
    made_up_next_ns = ns < made_up_next_ns ? ns : made_up_next_ns;
}

int made_up_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    static const struct timespec NONE = {0};
    const int64_t end = timeout_ms < 0 ? INT64_MAX : made_up_ns + timeout_ms * (MADE_UP_S / 1000);
    for (;;) {
        made_up_next_ns = INT64_MAX;
        const bool moved = made_up_world && made_up_world();
        if (made_up_error) {
            errno = made_up_error;
            made_up_error = 0;
            return -1;
        }
        const int ready = (int)syscall(SYS_ppoll, fds, n, &NONE, NULL, 0);
        if (ready != 0) {
            return ready;
        }
        if (moved) {
            continue;
        }
        int64_t to = end < made_up_next_ns ? end : made_up_next_ns;
        to = to < made_up_most_ns ? to : made_up_most_ns;
        if (to == INT64_MAX) {
            fprintf(stderr, "the program waits for what never comes\n");
            exit(1);
        }
        if (made_up_ns >= made_up_most_ns) {
            made_up_is_over = true;
        }
        if (to > made_up_ns) {
            made_up_ns = to;
            if (to == end) {
                return 0;
            }
        } else {
            made_up_ns += timeout_ms == 0 ? MADE_UP_LOOK_NS : 0;
            return 0;
        }
    }
}

#endif
