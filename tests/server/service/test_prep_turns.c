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

int main(void)
{
    test_short_first();
    test_long_leaves_a_turn();
    test_room();
    test_pause();
    CHECK_DONE();
}
