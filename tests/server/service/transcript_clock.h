/* transcript_clock: the time of a whole server that passes only where a test says so. It takes the place of clock_gettime, of
 * poll and of pthread_cond_timedwait for the libraries, too. Threads that accept connections and the double of the engine are
 * waited for before time goes on, and it goes on to where the next of them has something to do. One program file, linked
 * with --wrap=pthread_join.
 *
 *     clock_stop();    // before the server starts
 *     clock_settle();  // what is to be done now has been done
 *     clock_pass(61);  // seconds; they have passed, and what they brought about has been done
 *     clock_run();     // as fast as it can, once somebody waits for the end of the server's thread
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_CLOCK_H
#define PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_CLOCK_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/fake_engine.h"

enum { CLOCK_POLLERS = 8, CLOCK_MS = 1000000 };
#define CLOCK_S ((int64_t)1000000000)

/* A thread in poll, or one that accepts connections and does something now. */
typedef struct clock_poller {
    bool accepts, waits;
    struct pollfd *fds;
    nfds_t n;
    int64_t end_ns; /* of its wait */
} clock_poller;

static struct {
    atomic_bool is_stopped;
    _Atomic int64_t now_ns, goal_ns; /* whole milliseconds */
    _Atomic int64_t more_ns;         /* for libraries, which wait for less than a millisecond, too */
    int64_t unix_ns;                 /* what the other clock is ahead */
    atomic_bool ends;                /* time passes as soon as somebody waits for the end of a thread */
    pthread_mutex_t lock;
    clock_poller pollers[CLOCK_POLLERS];
    int n_pollers;
} made_up = {.lock = PTHREAD_MUTEX_INITIALIZER};

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

/* Of the program's code. */
extern const char __executable_start, etext;

/* The linker's names: headers may have declared these as something else. */
int clock_made_up(clockid_t id, struct timespec *out) __asm__("clock_gettime");
int clock_poll(struct pollfd *fds, nfds_t n, int timeout_ms) __asm__("poll");
int clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
               const struct timespec *until) __asm__("pthread_cond_timedwait");

static int64_t clock_system(clockid_t id)
{
    struct timespec t;
    syscall(SYS_clock_gettime, id, &t);
    return t.tv_sec * CLOCK_S + t.tv_nsec;
}

int clock_made_up(clockid_t id, struct timespec *out)
{
    if (!made_up.is_stopped || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME)) {
        return (int)syscall(SYS_clock_gettime, id, out);
    }
    const char *caller = __builtin_return_address(0);
    const bool is_library = caller < &__executable_start || caller >= &etext;
    const int64_t now =
        made_up.now_ns + (is_library ? made_up.more_ns : 0) + (id == CLOCK_REALTIME ? made_up.unix_ns : 0);
    *out = (struct timespec){.tv_sec = now / CLOCK_S, .tv_nsec = now % CLOCK_S};
    return 0;
}

/* Whoever waits with an end looks again soon, and asks the clock whether that has come. */
int clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    const bool is_unix = until->tv_sec > 1000000000;
    const clockid_t id = is_unix ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    struct timespec soon = *until;
    if (made_up.is_stopped) {
        const int64_t at = clock_system(id) + 2 * CLOCK_MS;
        soon = (struct timespec){.tv_sec = at / CLOCK_S, .tv_nsec = at % CLOCK_S};
    }
    return pthread_cond_clockwait(condition, mutex, id, &soon);
}

static int clock_look(struct pollfd *fds, nfds_t n, int ms)
{
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = (long)ms % 1000 * CLOCK_MS};
    return (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &wait, NULL, 0);
}

/* {lock} When something is due, INT64_MAX for never; -1 if somebody does something now, or has something to do. */
static int64_t clock_due(void)
{
    int64_t due = fake_engine_due();
    for (int i = 0; i < made_up.n_pollers && due >= 0; i++) {
        const clock_poller *p = &made_up.pollers[i];
        if (p->accepts && !p->waits) {
            due = -1;
        } else if (p->waits) {
            struct pollfd fds[256];
            const nfds_t n = p->n < 256 ? p->n : 256;
            memcpy(fds, p->fds, n * sizeof *fds);
            due = clock_look(fds, n, 0) > 0 || p->end_ns <= made_up.now_ns ? -1
                  : p->end_ns < due                                        ? p->end_ns
                                                                           : due;
        }
    }
    return due;
}

/* Lets time go on to what is next; false if it does not yet. */
static bool clock_step(void)
{
    pthread_mutex_lock(&made_up.lock);
    const int64_t due = made_up.goal_ns > made_up.now_ns ? clock_due() : -1;
    const bool passes = due > made_up.now_ns;
    if (passes) {
        made_up.now_ns = due < made_up.goal_ns ? due : made_up.goal_ns;
        made_up.more_ns = 0;
    }
    pthread_mutex_unlock(&made_up.lock);
    return passes;
}

static clock_poller *clock_join(const struct pollfd *fds, nfds_t n)
{
    clock_poller *p = NULL;
    pthread_mutex_lock(&made_up.lock);
    if (made_up.n_pollers < CLOCK_POLLERS) {
        p = &made_up.pollers[made_up.n_pollers++];
        for (nfds_t i = 0; i < n; i++) {
            int is_listening = 0;
            socklen_t size = sizeof is_listening;
            p->accepts =
                p->accepts ||
                (getsockopt(fds[i].fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening);
        }
    }
    pthread_mutex_unlock(&made_up.lock);
    return p;
}

int clock_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    static _Thread_local clock_poller *own;
    if (!made_up.is_stopped) {
        return clock_look(fds, n, timeout_ms);
    }
    own = own ? own : clock_join(fds, n);
    const int64_t end = timeout_ms < 0 ? INT64_MAX : made_up.now_ns + (int64_t)timeout_ms * CLOCK_MS;
    static _Thread_local int n_looks; /* in a row that found nothing and waited for nothing */
    int ready = clock_look(fds, n, 0);
    n_looks = ready == 0 && timeout_ms == 0 ? n_looks + 1 : 0;
    if (n_looks > 2 && own && own->accepts && made_up.more_ns < CLOCK_MS * 9 / 10) {
        made_up.more_ns += CLOCK_MS / 50;
    }
    if (ready != 0 || timeout_ms == 0 || !own) {
        return ready;
    }
    pthread_mutex_lock(&made_up.lock);
    own->fds = fds;
    own->n = n;
    own->end_ns = end;
    own->waits = true;
    pthread_mutex_unlock(&made_up.lock);
    while (ready == 0 && made_up.now_ns < end) {
        const bool passes = own->accepts && clock_step();
        ready = clock_look(fds, n, passes ? 0 : 1);
    }
    pthread_mutex_lock(&made_up.lock);
    own->waits = false;
    pthread_mutex_unlock(&made_up.lock);
    return ready;
}

static inline void clock_stop(void)
{
    made_up.now_ns = clock_system(CLOCK_MONOTONIC) / CLOCK_MS * CLOCK_MS;
    made_up.goal_ns = (int64_t)made_up.now_ns;
    made_up.unix_ns = clock_system(CLOCK_REALTIME) / CLOCK_S * CLOCK_S - made_up.now_ns;
    made_up.is_stopped = true;
}

static inline void clock_run(void)
{
    made_up.ends = true;
}

/* The server has been told to end by then. */
int __wrap_pthread_join(pthread_t thread, void **result)
{
    static atomic_int n_joins; /* at the end */
    if (made_up.ends) {
        made_up.goal_ns = INT64_MAX / 2;
        if (atomic_fetch_add(&n_joins, 1) > 0) { /* the server's own: the first was for the server */
            fake_engine_end_loads();
        }
    }
    return __real_pthread_join(thread, result);
}

/* Waits until there is nothing more to do now. */
static inline void clock_settle(void)
{
    for (bool is_over = false; !is_over;) {
        pthread_mutex_lock(&made_up.lock);
        is_over = clock_due() >= 0;
        pthread_mutex_unlock(&made_up.lock);
        clock_look(NULL, 0, is_over ? 0 : 1);
    }
}

static inline void clock_pass(double seconds)
{
    const int64_t goal = made_up.now_ns + (int64_t)(seconds * 1000.0 + 0.5) * CLOCK_MS;
    made_up.goal_ns = goal;
    while (made_up.now_ns < goal) {
        clock_look(NULL, 0, 1);
    }
    clock_settle();
}

#endif
