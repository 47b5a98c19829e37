/* ledger: what fits, who waits and in which order, who is refused, and many threads that never hold
 * more than the limit. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "base/ledger.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "tests/check.h"

/* Stands in front of that of the C library, for test_no_clock. */
static bool has_no_clock;

int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock)
{
    int (*real)(pthread_condattr_t *, clockid_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_condattr_setclock");
    return has_no_clock ? EINVAL : real(attributes, clock);
}

/* Likewise: how often those who wait were called. */
static atomic_int n_calls;

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    int (*real)(pthread_cond_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    n_calls++;
    return real(condition);
}

/* The clock of those who wait: it goes on by a step when it is asked. */
static atomic_int clock_step, n_asked;
static atomic_llong clock_now;

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    n_asked++;
    return (double)(clock_now += clock_step);
}

/* Nothing is left of it, either, which the sanitizer for leaks would say. */
static void test_no_clock(void)
{
    has_no_clock = true;
    CHECK(!ledger_create(1));
    has_no_clock = false;
}

static void test_one_thread(void)
{
    err_detail d = {0};
    ledger *l = ledger_create(100 << 20);
    ledger_hold a = {.ledger = l}, b = {.ledger = l}, free_hold = {0};
    CHECK(ledger_try(&a, 60 << 20));
    CHECK(!ledger_try(&b, 41 << 20));
    CHECK(ledger_try(&b, 40 << 20));
    CHECK_INT(ledger_get_status(l).used, 100 << 20);
    CHECK_INT(ledger_get_status(l).n_refused, 1);
    ledger_give(&a, 10 << 20);
    CHECK_INT(a.bytes, 50 << 20);
    CHECK_OK(ledger_take(&b, "this", 10 << 20, NULL, &d), d);

    /* What could never fit is refused at once, and what one has counts. */
    CHECK_INT(ledger_take(&a, "the image", 101 << 20, NULL, &d), ERR_LIMIT);
    CHECK_STR(d.name, "memory_limit");
    CHECK(strstr(d.text, "the image would take 151 MiB of memory; 100 MiB are there"));
    CHECK_INT(ledger_take(&a, "the image", 51 << 20, NULL, &d), ERR_LIMIT);
    CHECK_INT(a.bytes, 50 << 20);

    /* A lower limit takes nothing away. */
    ledger_set_limit(l, 10 << 20);
    CHECK(!ledger_try(&a, 1));
    ledger_give(&a, SIZE_MAX);
    ledger_give_all(&b);
    ledger_give_all(&b);
    CHECK_INT(ledger_get_status(l).used, 0);
    CHECK_INT(ledger_get_status(l).peak, 100 << 20);
    CHECK(ledger_try(&a, 10 << 20));
    ledger_give_all(&a);
    ledger_destroy(l);
    ledger_destroy(NULL);

    CHECK(ledger_try(&free_hold, SIZE_MAX));
    CHECK_OK(ledger_take(&free_hold, "all", SIZE_MAX, NULL, &d), d);
    ledger_give_all(&free_hold);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void test_no_room(void)
{
    err_detail d = {0};
    ledger *l = ledger_create(10 << 20);
    ledger_hold a = {.ledger = l}, b = {.ledger = l};
    CHECK(ledger_try(&a, 10 << 20));
    const int calls = n_calls;
    CHECK_INT(ledger_take(&b, "this", 1, &(ledger_patience){.cancelled = always}, &d), ERR_CANCELLED);
    CHECK(n_calls > calls); /* who stands behind it in line may fit */
    clock_step = LIMIT_MEMORY_WAIT_MS / 4;
    n_asked = 0;
    CHECK_INT(ledger_take(&b, "this", 3 << 20, NULL, &d), ERR_BUSY);
    CHECK_INT(n_asked, 1 + 5); /* the fourth time it has just waited as long as it may */
    clock_step = 0;
    CHECK_STR(d.name, "memory_busy");
    CHECK_STR(d.text,
              "the memory for requests is in use (this would take 3 MiB of 10 MiB); try again in a moment");
    CHECK_INT(b.bytes, 0);
    ledger_give_all(&a);
    CHECK_OK(ledger_take(&b, "this", 10 << 20, NULL, &d), d);
    ledger_give_all(&b);
    ledger_destroy(l);
}

typedef struct taker {
    ledger *l;
    size_t bytes;
    atomic_int *order;
    int place;
} taker;

static void *take(void *ctx)
{
    taker *t = ctx;
    err_detail d = {0};
    ledger_hold h = {.ledger = t->l};
    CHECK_OK(ledger_take(&h, "this", t->bytes, NULL, &d), d);
    t->place = atomic_fetch_add(t->order, 1);
    ledger_give_all(&h);
    return NULL;
}

/* A small one that came later does not overtake a large one that waits. */
static void test_order(void)
{
    atomic_int order = 0;
    ledger *l = ledger_create(10);
    ledger_hold a = {.ledger = l};
    taker large = {l, 10, &order, -1}, small = {l, 1, &order, -1};
    pthread_t threads[2];
    CHECK(ledger_try(&a, 5));
    CHECK(pthread_create(&threads[0], NULL, take, &large) == 0);
    while (ledger_get_status(l).n_waited < 1) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(pthread_create(&threads[1], NULL, take, &small) == 0);
    while (ledger_get_status(l).n_waited < 2) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK_INT(order, 0);
    const int calls = n_calls;
    ledger_give_all(&a);
    CHECK(n_calls > calls); /* they need not wait until they look by themselves */
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK_INT(large.place, 0);
    CHECK_INT(small.place, 1);
    CHECK_INT(ledger_get_status(l).used, 0);
    ledger_destroy(l);
}

typedef struct waiting {
    ledger *l;
    size_t bytes;
    atomic_bool is_cancelled;
    err_code err;
    pthread_t thread;
} waiting;

static bool is_cancelled(void *ctx)
{
    return atomic_load(&((waiting *)ctx)->is_cancelled);
}

static void *wait_in_line(void *ctx)
{
    waiting *w = ctx;
    ledger_hold h = {.ledger = w->l};
    w->err = ledger_take(&h, "this", w->bytes, &(ledger_patience){.cancelled = is_cancelled, .ctx = w}, NULL);
    ledger_give_all(&h);
    return NULL;
}

static void begin_waiting(waiting *w, size_t n_before)
{
    CHECK(pthread_create(&w->thread, NULL, wait_in_line, w) == 0);
    while (ledger_get_status(w->l).n_waited <= n_before) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Who leaves from the middle of the line takes nobody along; as long as somebody waits memory is short for all; and a higher
 * limit is room, too. */
static void test_line(void)
{
    ledger *l = ledger_create(10);
    ledger_hold a = {.ledger = l};
    waiting w[] = {{.l = l, .bytes = 10}, {.l = l, .bytes = 9}, {.l = l, .bytes = 8}};
    CHECK(!ledger_is_short(NULL, SIZE_MAX));
    CHECK(!ledger_is_short(l, 10) && ledger_is_short(l, 11));
    CHECK(ledger_try(&a, 4));
    CHECK(!ledger_is_short(l, 6) && ledger_is_short(l, 7));
    for (size_t i = 0; i < ARRAY_LEN(w); i++) {
        begin_waiting(&w[i], i);
    }
    CHECK(ledger_is_short(l, 1) && ledger_is_short(l, 0)); /* there is room, but not for the first in line */
    CHECK(ledger_try(&a, 6));                              /* who does not wait may take it */
    ledger_give(&a, 6);
    atomic_store(&w[1].is_cancelled, true);
    pthread_join(w[1].thread, NULL);
    CHECK_INT(w[1].err, ERR_CANCELLED);
    ledger_set_limit(l, 14);
    pthread_join(w[0].thread, NULL);
    pthread_join(w[2].thread, NULL);
    CHECK(w[0].err == ERR_OK && w[2].err == ERR_OK);
    const ledger_status s = ledger_get_status(l);
    CHECK(s.used == 4 && s.limit == 14 && s.n_waited == 3 && s.n_refused == 0 && s.peak == 14);
    CHECK(!ledger_is_short(l, 10));
    /* What one has is more than there may be by now: it is told at once. */
    err_detail d = {0};
    ledger_set_limit(l, 3);
    CHECK_INT(ledger_take(&a, "this", 1, NULL, &d), ERR_LIMIT);
    CHECK(ledger_is_short(l, 0));
    ledger_set_limit(l, 4);
    CHECK_INT(ledger_take(&a, "this", 1, NULL, &d), ERR_LIMIT);
    CHECK_OK(ledger_take(&a, "nothing", 0, &(ledger_patience){0}, &d), d);
    CHECK_INT(ledger_get_status(l).n_refused, 2);
    ledger_give_all(&a);
    ledger_destroy(l);
}

enum { N_THREADS = 8, N_ROUNDS = 2000, LIMIT = 1000 };

typedef struct worker {
    ledger *l;
    atomic_size_t *held, *most;
    unsigned seed;
} worker;

static void *take_often(void *ctx)
{
    const worker *w = ctx;
    unsigned x = w->seed;
    for (int i = 0; i < N_ROUNDS; i++) {
        x = x * 1664525u + 1013904223u;
        const size_t n = x >> 16 & 511;
        ledger_hold h = {.ledger = w->l};
        err_detail d = {0};
        CHECK(i % 16 != 0 || ledger_is_short(w->l, LIMIT + 1)); /* another thread may ask at any time */
        if (x & 1 ? ledger_try(&h, n) : ledger_take(&h, "this", n, NULL, &d) == ERR_OK) {
            const size_t held = atomic_fetch_add(w->held, n) + n;
            if (held > atomic_load(w->most)) {
                atomic_store(w->most, held);
            }
            atomic_fetch_sub(w->held, n);
            ledger_give_all(&h);
        }
    }
    return NULL;
}

static void test_many_threads(void)
{
    atomic_size_t held = 0, most = 0;
    ledger *l = ledger_create(LIMIT);
    pthread_t threads[N_THREADS];
    worker workers[N_THREADS];
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){l, &held, &most, i + 1};
        CHECK(pthread_create(&threads[i], NULL, take_often, &workers[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(most <= LIMIT);
    CHECK(ledger_get_status(l).peak <= LIMIT);
    CHECK_INT(ledger_get_status(l).used, 0);
    ledger_destroy(l);
}

int main(void)
{
    test_no_clock();
    test_one_thread();
    test_no_room();
    test_order();
    test_line();
    test_many_threads();
    CHECK_DONE();
}
