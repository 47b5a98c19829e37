/* memory: arrays that grow. clock: when a deadline is. */
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/check.h"

static void test_grow(void)
{
    int *items = NULL;
    size_t cap = 0;
    CHECK(memory_grow(&items, &cap, 0, 4, sizeof *items));
    CHECK(items == NULL && cap == 0);
    for (int i = 0; i < 100; i++) {
        CHECK(memory_grow(&items, &cap, (size_t)i + 1, 4, sizeof *items));
        items[i] = i;
    }
    CHECK_INT(cap, 128);
    CHECK(memory_grow(&items, &cap, 1000, 4, sizeof *items)); /* more than twice */
    CHECK_INT(cap, 1000);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(items[i], i);
    }

    int *before = items;
    CHECK(!memory_grow(&items, &cap, SIZE_MAX / 2, 4, sizeof *items)); /* the size overflows */
    CHECK(items == before && cap == 1000);
    free(items);
}

static void test_deadline(void)
{
    pthread_cond_t condition;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    CHECK(clock_init_condition(&condition));
    pthread_mutex_lock(&lock);
    struct timespec past = clock_deadline(-5), soon = clock_deadline(1999);
    CHECK(past.tv_nsec >= 0 && soon.tv_nsec < 1000000000);
    CHECK(soon.tv_sec == past.tv_sec + 1 || soon.tv_sec == past.tv_sec + 2);
    CHECK_INT(pthread_cond_timedwait(&condition, &lock, &past), ETIMEDOUT);

    int64_t start = clock_ns();
    soon = clock_deadline(20);
    int rc = 0;
    while (!rc) {
        rc = pthread_cond_timedwait(&condition, &lock, &soon);
    }
    CHECK_INT(rc, ETIMEDOUT);
    CHECK(clock_ns() - start >= 20000000);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&condition);
}

int main(void)
{
    test_grow();
    test_deadline();
    CHECK_DONE();
}
