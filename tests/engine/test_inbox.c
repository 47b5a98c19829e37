#include "engine/inbox.h"

#include <pthread.h>

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

int main(void)
{
    test_together();
    test_reserved();
    test_order_and_bound();
    test_cancel();
    test_end_thinking();
    test_close_wakes();
    test_wake();
    CHECK_DONE();
}
