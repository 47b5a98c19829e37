/* prep_waits: turns on one thread, where time, the processor and the locks are the test's: what is waited for and until when, who is
 * told, what is charged, and what each call leaves of every turn. A line of prep_waits.txt is a story of steps; what stands behind ">"
 * happens while the step before it waits, and where nothing is left to happen, nobody wants it any more. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "server/service/prep_turns.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/wrap.h"

enum { TURNS = 4 };

/* ---- what is asked of the system ---- */

static bytes *out;             /* what came of the line */
static int64_t now_ns, cpu_ns; /* the clock, and the processor time of this thread */
static int depth;              /* of locks: 1 within a call */
static bool is_told;

static void note(const char *what)
{
    bytes_printf(out, " %s", what);
}

WRAP(int, pthread_mutex_lock, (pthread_mutex_t * m), (void)m; CHECK_INT(depth++, 0); return 0;)
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * m), (void)m; CHECK_INT(depth--, 1); return 0;)
WRAP(int, pthread_cond_broadcast, (pthread_cond_t * c), (void)c; CHECK_INT(depth, 1); is_told = true;
     note("told"); return 0;)
ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(int, pthread_condattr_init, (pthread_condattr_t * a), memset(a, 0, sizeof *a); note("how one waits:");
     return 0;)
WRAP(int, pthread_condattr_setclock, (pthread_condattr_t * a, clockid_t id), (void)a;
     CHECK_INT(id, CLOCK_MONOTONIC); note("by the clock that is never set"); return 0;)
WRAP(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), CHECK(c &&a);
     note("a condition"); return 0;)
WRAP(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), CHECK(m && !a);
     note("a lock"); return 0;)
WRAP(double, clock_ms, (void), return (double)now_ns / 1e6;)
WRAP(int, clock_gettime, (clockid_t id, struct timespec *t),
     const int64_t ns = id == CLOCK_THREAD_CPUTIME_ID ? cpu_ns : now_ns;
     CHECK(id == CLOCK_MONOTONIC || id == CLOCK_THREAD_CPUTIME_ID);
     *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}; return 0;)

/* ---- turns ---- */

typedef struct job {
    prep_turn turn;
    bool is_in, is_unwanted;
} job;

static prep_turns *turns;
static job jobs[TURNS];
static const char *rest; /* of the story */
static job *waiting;

static void step(void);

static bool is_cancelled(void *ctx)
{
    const job *j = ctx;
    CHECK_INT(depth, 0);
    bytes_printf(out, " asks-%c", (char)('a' + (j - jobs)));
    return j->is_unwanted;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    (void)c, (void)m;
    const int64_t at = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec;
    job *const j = waiting;
    CHECK(until->tv_nsec >= 0 && until->tv_nsec < 1000000000);
    CHECK(j->turn.waits && !j->turn.holds);
    bytes_printf(out, " (%gms", (double)(at - now_ns) / 1e6);
    CHECK_INT(depth--, 1);
    is_told = false;
    if (*rest == '>') {
        rest += 2;
        step();
    } else {
        j->is_unwanted = true;
    }
    waiting = j;
    now_ns = is_told || now_ns > at ? now_ns : at;
    CHECK_INT(depth++, 0);
    note(")");
    return is_told ? 0 : ETIMEDOUT;
}

/* Those that are inside, with what they have, and the whole. */
static void tell_all(void)
{
    prep_turns_status s;
    for (int i = 0; i < TURNS; i++) {
        const prep_turn *t = &jobs[i].turn;
        if (jobs[i].is_in) {
            bytes_printf(out, " %c%s%s%s%s=%g", 'a' + i, t->holds ? "+" : "", t->waits ? "?" : "",
                         t->pauses ? "-" : "", prep_turns_is_evicted(turns, t) ? "!" : "", t->used_ms);
        }
    }
    prep_turns_get_status(turns, &s);
    bytes_printf(out, " [%d/%d old %g silent %g]", s.n_computing, s.n_begun, s.oldest_ms, s.silent_ms);
}

/* One step: a word, the letter of a turn, a number. */
static void step(void)
{
    char what[16], who = '\0';
    double n = 0;
    const size_t len = strcspn(rest, ";>\n");
    CHECK(sscanf(rest, "%15[a-z]", what) == 1);
    const char *more = rest + strlen(what);
    while (*more == ' ') {
        more++;
    }
    if (*more >= 'a' && *more < 'a' + TURNS) {
        who = *more++;
    }
    n = strtod(more, NULL);
    rest += len;
    job *const j = &jobs[who ? who - 'a' : 0];
    prep_turn *const t = &j->turn;
    bytes_printf(out, "\n<  %s%s:", what, who ? (const char[]){' ', who, '\0'} : "");
    waiting = j;
    if (strcmp(what, "enter") == 0) {
        *j = (job){.turn = {.used_ms = n, .cancelled = is_cancelled, .ctx = j}, .is_in = true};
        note(prep_turns_enter(turns, t) ? "yes" : "no");
    } else if (strcmp(what, "hook") == 0) {
        note(prep_turns_hook(turns, t) ? "yes" : "no");
    } else if (strcmp(what, "pause") == 0) {
        note(prep_turns_pause(turns, t, (int)n) ? "yes" : "no");
    } else if (strcmp(what, "resume") == 0) {
        note(prep_turns_resume(turns, t) ? "yes" : "no");
    } else if (strcmp(what, "leave") == 0) {
        j->is_in = false;
        prep_turns_leave(turns, t);
    } else if (strcmp(what, "room") == 0) {
        prep_turns_make_room(turns);
    } else if (strcmp(what, "later") == 0) {
        now_ns += (int64_t)(n * 1e6);
    } else if (strcmp(what, "compute") == 0) {
        now_ns += (int64_t)(n * 1e6);
        cpu_ns += (int64_t)(n * 1e6);
    } else if (strcmp(what, "forget") == 0) {
        j->is_unwanted = true;
    } else {
        CHECK_STR(what, "a step");
    }
    CHECK_INT(depth, 0);
    tell_all();
}

/* "2 7.98: enter a; hook a": two turns, from so many seconds on. */
static void tell(void *ctx, bytes *to, const char *line, size_t len)
{
    char text[1024], *at;
    (void)ctx;
    snprintf(text, sizeof text, "%.*s\n", (int)len, line);
    if (text[0] < '0' || text[0] > '9') {
        return;
    }
    out = to;
    memset(jobs, 0, sizeof jobs);
    bytes_append_str(out, "<");
    const int n = (int)strtol(text, &at, 10);
    now_ns = (int64_t)(strtod(at, &at) * 1e9);
    cpu_ns = 3700000000;
    turns = prep_turns_create(n);
    CHECK(turns != NULL);
    rest = at + strspn(at, ": ");
    while (*rest != '\n') {
        step();
        rest += strspn(rest, "; ");
    }
    prep_turns_destroy(turns);
    bytes_append_char(out, '\n');
}

int main(void)
{
    recorded_answers(PARLEY_SOURCE_DIR "/tests/server/service/recorded/prep_waits.txt", tell, NULL);
    one_fails("calloc", 1);
    CHECK(!prep_turns_create(1));
    CHECK(one_fails_over());
    CHECK_DONE();
}
