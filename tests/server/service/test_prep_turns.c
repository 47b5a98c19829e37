/* turns: who has had less goes first, a long job leaves a turn, who is not wanted any more waits no
 * longer, and room is made by the one that had the most. Threads meet at events, not at times.
 */
#include "server/service/prep_turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "tests/check.h"

typedef struct job {
    prep_turns *turns;
    prep_turn turn;
    double guess_ms, compute_ms; /* of processor time */
    atomic_bool unwanted, began;
    atomic_int place; /* 1: it ended first */
    bool entered, ended_early, evicted;
} job;

static atomic_int n_ended;

static bool is_unwanted(void *ctx)
{
    return atomic_load(&((job *)ctx)->unwanted);
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void *run(void *ctx)
{
    job *j = ctx;
    j->turn = (prep_turn){.used_ms = j->guess_ms, .cancelled = is_unwanted, .ctx = j};
    j->entered = prep_turns_enter(j->turns, &j->turn);
    atomic_store(&j->began, true);
    const double until = processor_ms() + j->compute_ms;
    while (j->entered && !j->ended_early && processor_ms() < until) {
        j->ended_early = !prep_turns_hook(j->turns, &j->turn);
    }
    j->evicted = prep_turns_is_evicted(j->turns, &j->turn);
    prep_turns_leave(j->turns, &j->turn);
    atomic_store(&j->place, atomic_fetch_add(&n_ended, 1) + 1);
    return NULL;
}

static pthread_t start(job *j)
{
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, run, j), 0);
    return thread;
}

static void wait_until_began(const job *j)
{
    while (!atomic_load(&j->began)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static prep_turns_status look(prep_turns *t)
{
    prep_turns_status s;
    prep_turns_get_status(t, &s);
    return s;
}

static void test_short_first(void)
{
    enum { LONG = 6 };
    prep_turns *t = prep_turns_create(2);
    job jobs[LONG] = {0}, small = {.turns = t, .compute_ms = 2};
    pthread_t threads[LONG];
    atomic_store(&n_ended, 0);
    for (int i = 0; i < LONG; i++) {
        jobs[i] = (job){.turns = t, .compute_ms = 1e9};
        threads[i] = start(&jobs[i]);
    }
    for (int i = 0; i < LONG; i++) {
        wait_until_began(&jobs[i]); /* all have had a slice, though there are two turns */
    }
    CHECK_INT(look(t).n_begun, LONG);
    CHECK(look(t).n_computing <= 2);
    pthread_join(start(&small), NULL);
    CHECK_INT(atomic_load(&small.place), 1);
    CHECK(small.entered && !small.ended_early);
    for (int i = 0; i < LONG; i++) {
        atomic_store(&jobs[i].unwanted, true);
    }
    for (int i = 0; i < LONG; i++) {
        pthread_join(threads[i], NULL);
        CHECK(jobs[i].ended_early || !jobs[i].entered);
    }
    CHECK_INT(look(t).n_begun, 0);
    prep_turns_destroy(t);
}

static void test_long_leaves_a_turn(void)
{
    prep_turns *t = prep_turns_create(2);
    job a = {.turns = t, .guess_ms = PREP_LONG_MS, .compute_ms = 1e9}, b = a;
    const pthread_t first = start(&a);
    wait_until_began(&a);
    const pthread_t second = start(&b);
    /* Between two turns nobody computes for a moment. */
    while (look(t).n_begun < 2 || look(t).n_computing < 1) {
    }
    for (int i = 0; i < 1000; i++) {
        CHECK(look(t).n_computing <= 1);
        CHECK(look(t).silent_ms <= 0.0); /* one turn is free: nothing stalls */
    }
    atomic_store(&a.unwanted, true);
    atomic_store(&b.unwanted, true);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    prep_turns_destroy(t);
}

static void test_room(void)
{
    prep_turns *t = prep_turns_create(1);
    job most = {.turns = t, .compute_ms = 1e9}, none = {.turns = t, .guess_ms = 1e6, .compute_ms = 1};
    prep_turns_make_room(t); /* nobody has had anything */
    const pthread_t first = start(&most), second = start(&none);
    while (!atomic_load(&most.place)) { /* until it has had enough to be the one */
        prep_turns_make_room(t);
    }
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    CHECK(most.evicted && most.ended_early);
    CHECK(none.entered && !none.evicted); /* a guess alone is no reason */
    prep_turns_destroy(t);
}

static void test_pause(void)
{
    prep_turns *t = prep_turns_create(1);
    job a = {.turns = t}, b = {.turns = t, .compute_ms = 1};
    a.turn = (prep_turn){.cancelled = is_unwanted, .ctx = &a};
    CHECK(prep_turns_enter(t, &a.turn));
    CHECK(!prep_turns_pause(t, &a.turn, 0));
    CHECK(prep_turns_pause(t, &a.turn, 1));
    pthread_join(start(&b), NULL); /* would never come to its end otherwise */
    CHECK(prep_turns_resume(t, &a.turn));
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    CHECK(look(t).silent_ms > 0.0 && look(t).oldest_ms > 0.0); /* it holds the only turn and says nothing */
    CHECK(prep_turns_hook(t, &a.turn));
    prep_turns_leave(t, &a.turn);
    CHECK(look(t).silent_ms <= 0.0);
    prep_turns_destroy(t);
}

/* The same on one thread, with times that are made up: a turn is held, given back and kept track of once. */

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Asked the second time. */
static bool soon(void *ctx)
{
    return ++*(int *)ctx > 1;
}

static void test_ends_waiting(void)
{
    prep_turns *t = prep_turns_create(1);
    job other = {.unwanted = true};
    prep_turn a = {.cancelled = never}, b = {.cancelled = is_unwanted, .ctx = &other};
    CHECK(prep_turns_enter(t, &a));
    CHECK(!prep_turns_enter(t, &b)); /* nobody wants it any more, and it waits for no turn */
    CHECK_INT(look(t).n_begun, 2);
    CHECK(!prep_turns_hook(t, &b));
    atomic_store(&other.unwanted, false);
    CHECK(prep_turns_hook(t, &b)); /* it holds none, so that it gives none back */
    prep_turns_leave(t, &b);
    CHECK_INT(look(t).n_begun, 1);
    CHECK_INT(look(t).n_computing, 1);
    CHECK(prep_turns_hook(t, &a));
    prep_turns_leave(t, &a);
    CHECK_INT(look(t).n_begun, 0);
    CHECK_INT(look(t).n_computing, 0);
    prep_turns_destroy(t);
    prep_turns_destroy(NULL);
}

static void test_evicted(void)
{
    prep_turns *t = prep_turns_create(3);
    prep_turn a = {.cancelled = never}, b = a, c = a;
    CHECK(prep_turns_enter(t, &a) && prep_turns_enter(t, &b) && prep_turns_enter(t, &c));
    a.used_ms += 300;
    b.used_ms += 200;
    c.used_ms += 1000;
    CHECK(prep_turns_pause(t, &c, 3)); /* waits for others: it has nothing that would make room */
    prep_turns_make_room(t);
    CHECK(prep_turns_is_evicted(t, &a) && !prep_turns_is_evicted(t, &b));
    prep_turns_make_room(t);
    CHECK(prep_turns_is_evicted(t, &b) && !prep_turns_is_evicted(t, &c));
    prep_turns_make_room(t);
    CHECK(!prep_turns_is_evicted(t, &c));
    CHECK(!prep_turns_hook(t, &a));
    CHECK_INT(look(t).n_computing, 2);
    CHECK(prep_turns_pause(t, &a, 3));
    CHECK(!prep_turns_pause(t, &b, 2)); /* as many as may */
    CHECK_INT(look(t).n_computing, 1);
    CHECK(!prep_turns_resume(t, &a)); /* waits for no turn, and has none */
    CHECK_INT(look(t).n_computing, 1);
    CHECK(prep_turns_resume(t, &c));
    CHECK_INT(look(t).n_computing, 2);
    prep_turns_leave(t, &b); /* in the midst of the list, at its end, the last one */
    prep_turns_leave(t, &a);
    CHECK_INT(look(t).n_begun, 1);
    CHECK(prep_turns_hook(t, &c));
    prep_turns_leave(t, &c);
    CHECK_INT(look(t).n_begun, 0);
    CHECK_INT(look(t).n_computing, 0);
    prep_turns_destroy(t);
}

/* All turns with long ones: one of them gives way, though nobody waits. */
static void test_all_long(void)
{
    for (int n = 1; n <= 2; n++) {
        int n_asked = 0;
        prep_turns *t = prep_turns_create(n);
        prep_turn a = {.cancelled = never}, b = {.cancelled = soon, .ctx = &n_asked};
        CHECK(n == 1 || prep_turns_enter(t, &a));
        CHECK(prep_turns_enter(t, &b));
        a.since_ms -= 10.0 * (PREP_LONG_MS + 1);
        b.since_ms -= 10.0 * (PREP_LONG_MS + 1);
        CHECK(n == 1 || prep_turns_hook(t, &a));
        CHECK_INT(prep_turns_hook(t, &b), n == 1); /* the only turn stays with its job */
        CHECK_INT(look(t).n_computing, 1);
        prep_turns_leave(t, &b);
        if (n > 1) {
            prep_turns_leave(t, &a);
        }
        CHECK_INT(look(t).n_computing, 0);
        prep_turns_destroy(t);
    }
}

/* Of several that hold a turn, the one that was heard last counts; without a turn none does. */
static void test_silence(void)
{
    prep_turns *t = prep_turns_create(2);
    prep_turn a = {.cancelled = never}, b = a, c = a;
    CHECK(prep_turns_enter(t, &c) && prep_turns_pause(t, &c, 1));
    CHECK(prep_turns_enter(t, &a) && prep_turns_enter(t, &b));
    for (int i = 0; i < 2; i++) {
        const double now = clock_ms();
        a.heard_ms = now - (i ? 1e7 : 3e7);
        b.heard_ms = now - (i ? 3e7 : 1e7);
        c.heard_ms = now;
        a.began_ms = now - (i ? 5e7 : 6e7);
        b.began_ms = now - (i ? 6e7 : 5e7);
        const prep_turns_status s = look(t);
        CHECK(s.silent_ms >= 1e7 && s.silent_ms < 2e7);
        CHECK(s.oldest_ms >= 6e7 && s.oldest_ms < 7e7);
    }
    CHECK(prep_turns_hook(t, &a));
    CHECK(look(t).silent_ms < 1e7);
    prep_turns_leave(t, &a);
    prep_turns_leave(t, &b);
    prep_turns_leave(t, &c);
    prep_turns_destroy(t);
}

int main(void)
{
    test_short_first();
    test_long_leaves_a_turn();
    test_room();
    test_pause();
    test_ends_waiting();
    test_evicted();
    test_all_long();
    test_silence();
    CHECK_DONE();
}
