#include "engine/inbox.h"

#include <pthread.h>
#include <sched.h>

#include "engine/engine.h"
#include "tests/check.h"

static gen_request *request(uint64_t id)
{
    gen_request *r = gen_request_create();
    r->id = id;
    return r;
}

/* False if there is no place for it. */
static bool submit(inbox *in, gen_request *r)
{
    if (!inbox_reserve(in, r)) {
        return false;
    }
    inbox_submit(in, r);
    return true;
}

static void test_order_and_bound(void)
{
    inbox *in = inbox_create(2, 1);
    gen_request *extra = request(3), *r = NULL;
    CHECK(submit(in, request(1)));
    CHECK(submit(in, request(2)));
    CHECK(!submit(in, extra)); /* full: it stays ours */
    CHECK(inbox_take(in, &r));
    CHECK_INT(r->id, 1);
    gen_request_free(r);
    CHECK(submit(in, extra)); /* one runs, two wait */
    int32_t waiting = 0, running = 0;
    inbox_count(in, &waiting, &running);
    CHECK_INT(waiting, 2);
    CHECK_INT(running, 1);
    inbox_finish(in, 1);
    CHECK(inbox_take(in, &r));
    CHECK_INT(r->id, 2);
    gen_request_free(r);
    inbox_destroy(in); /* frees request 3 */
}

static void test_cancel(void)
{
    inbox *in = inbox_create(4, 2);
    gen_request *r = NULL;
    CHECK(submit(in, request(7)));
    CHECK(submit(in, request(8)));
    CHECK(inbox_take(in, &r));
    gen_request_free(r);
    inbox_cancel(in, 99); /* unknown: nothing */
    CHECK(!inbox_is_cancelled(in, 7));
    inbox_cancel(in, 7);
    CHECK(inbox_is_cancelled(in, 7));
    CHECK(!inbox_take_cancelled(in, &r)); /* 7 runs, 8 was not cancelled */
    inbox_cancel(in, 8);
    CHECK(inbox_take_cancelled(in, &r));
    CHECK_INT(r->id, 8);
    gen_request_free(r);
    inbox_finish(in, 7);
    CHECK(!inbox_is_cancelled(in, 7));
    inbox_destroy(in);
}

static void test_end_thinking(void)
{
    inbox *in = inbox_create(2, 1);
    gen_request *r = NULL;
    CHECK(submit(in, request(7)));
    inbox_end_thinking(in, 9); /* unknown: nothing */
    inbox_end_thinking(in, 7); /* while it waits */
    CHECK(inbox_take(in, &r));
    gen_request_free(r);
    CHECK(inbox_ends_thinking(in, 7));
    CHECK(!inbox_ends_thinking(in, 9));
    CHECK(!inbox_is_cancelled(in, 7));
    inbox_finish(in, 7);
    CHECK(!inbox_ends_thinking(in, 7));
    inbox_destroy(in);
}

static void *close_later(void *arg)
{
    inbox_close(arg);
    return NULL;
}

static void test_close_wakes(void)
{
    inbox *in = inbox_create(1, 1);
    gen_request *r = request(1);
    pthread_t t;
    pthread_create(&t, NULL, close_later, in);
    CHECK(!inbox_wait(in, -1));
    pthread_join(t, NULL);
    CHECK(!submit(in, r));
    CHECK(inbox_is_cancelled(in, 5));
    gen_request_free(r);
    inbox_destroy(in);
}

/* A wake is not lost if nobody sleeps yet, and ends one sleep only. */
static void test_wake(void)
{
    inbox *in = inbox_create(1, 1);
    pthread_t t;
    inbox_wake(in);
    CHECK(inbox_wait(in, -1));
    CHECK(inbox_wait(in, 1)); /* nothing comes: the time is over */
    pthread_create(&t, NULL, close_later, in);
    CHECK(!inbox_wait(in, -1));
    pthread_join(t, NULL);
    inbox_destroy(in);
}

/* A place counts as waiting, keeps its turn, and a cancel finds it before the request has come. */
static void test_reserved(void)
{
    inbox *in = inbox_create(2, 1);
    gen_request *r = NULL;
    int32_t waiting = 0, running = 0;
    gen_request *first = request(1), *second = request(2), *third = request(3);
    CHECK(inbox_reserve(in, first));
    CHECK(inbox_reserve(in, second));
    CHECK(!inbox_reserve(in, third));
    gen_request_free(third);
    inbox_count(in, &waiting, &running);
    CHECK_INT(waiting, 2);
    CHECK_INT(running, 0);
    CHECK(!inbox_take(in, &r));
    inbox_cancel(in, 1);
    CHECK(!inbox_take_cancelled(in, &r));
    inbox_submit(in, second);
    inbox_submit(in, first);
    CHECK(inbox_take_cancelled(in, &r));
    CHECK_INT(r->id, 1);
    gen_request_free(r);
    CHECK(inbox_take(in, &r));
    CHECK_INT(r->id, 2);
    gen_request_free(r);
    inbox_finish(in, 2);
    inbox_destroy(in);
}

/* Requests behind each other get places together or not at all, and keep their order. */
static void test_together(void)
{
    inbox *in = inbox_create(3, 1);
    gen_request *r = request(1), *taken = NULL;
    CHECK(submit(in, request(9)));
    gen_request_append(r, request(2));
    gen_request_append(r, request(3));
    CHECK(!inbox_reserve(in, r));
    CHECK(inbox_take(in, &taken));
    gen_request_free(taken);
    inbox_finish(in, 9);
    CHECK(inbox_reserve(in, r));
    inbox_submit(in, r);
    inbox_cancel(in, 2);
    CHECK(inbox_take_cancelled(in, &taken));
    CHECK_INT(taken->id, 2);
    gen_request_free(taken);
    for (uint64_t id = 1; id <= 3; id += 2) {
        CHECK(inbox_take(in, &taken));
        CHECK_INT(taken->id, id);
        gen_request_free(taken);
    }
    inbox_destroy(in);
}

enum { THREAD_REQUESTS = 300 };

/* What prep threads and the server's loop do. */
static void *ask_and_cancel(void *arg)
{
    inbox *in = arg;
    for (uint64_t id = 1; id <= THREAD_REQUESTS;) {
        gen_request *r = request(id);
        int32_t waiting = 0, running = 0;
        if (!submit(in, r)) {
            gen_request_free(r);
            sched_yield();
            continue;
        }
        inbox_end_thinking(in, id);
        if (id % 3 == 0) {
            inbox_cancel(in, id);
        }
        inbox_count(in, &waiting, &running);
        CHECK(waiting >= 0 && waiting <= 3 && running >= 0 && running <= 2);
        inbox_wake(in);
        id++;
    }
    return NULL;
}

/* Another thread asks and cancels while this one takes, looks and finishes (TSan watches): each request comes once. */
static void test_threads(void)
{
    inbox *in = inbox_create(3, 2);
    uint64_t last = 0, n = 0;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, ask_and_cancel, in) == 0);
    while (n < THREAD_REQUESTS) {
        gen_request *r = NULL;
        CHECK(!inbox_is_closed(in) && inbox_room(in) == 3);
        while (inbox_take_cancelled(in, &r)) {
            CHECK_INT(r->id % 3, 0);
            gen_request_free(r);
            n++;
        }
        if (inbox_take(in, &r)) {
            CHECK(r->id > last);
            last = r->id;
            (void)inbox_is_cancelled(in, last);
            (void)inbox_ends_thinking(in, last);
            inbox_finish(in, last);
            gen_request_free(r);
            n++;
        } else {
            CHECK(inbox_wait(in, 1));
        }
    }
    pthread_join(t, NULL);
    int32_t waiting = 1, running = 1;
    inbox_count(in, &waiting, &running);
    CHECK_INT(waiting + running, 0);
    inbox_destroy(in);
}

int main(void)
{
    test_threads();
    test_together();
    test_reserved();
    test_order_and_bound();
    test_cancel();
    test_end_thinking();
    test_close_wakes();
    test_wake();
    CHECK_DONE();
}
