/* clock: dates, deadlines. */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

#include "base/compiler.h"
#include "tests/check.h"

static void test_date(void)
{
    static const struct {
        int64_t seconds;
        const char *date;
    } CASES[] = {
        {0, "1970-01-01T00:00:00Z"},
        {951826153, "2000-02-29T12:09:13Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {253402300799, "9999-12-31T23:59:59Z"},
        {INT64_MAX, ""}, /* of no year that a calendar here has */
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char out[CLOCK_DATE_MAX] = "before";
        clock_date(out, CASES[i].seconds);
        CHECK_STR(out, CASES[i].date);
    }
}

static int64_t nanoseconds(struct timespec t)
{
    CHECK(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A deadline lies between what the clock says before and after it was made, and the wait. */
static void test_deadline(void)
{
    static const int64_t waits[] = {-5, 0, 1, 999, 1000, 1999, 3600000};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        const int64_t wait = waits[i] > 0 ? waits[i] * 1000000 : 0, before = clock_ns();
        const int64_t at = nanoseconds(clock_deadline(waits[i]));
        CHECK(at >= before + wait && at <= clock_ns() + wait);
    }
}

/* A condition waits by the clock that deadlines are of. */
static void test_condition(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    CHECK(clock_init_condition(&condition));
    const struct timespec deadline = clock_deadline(20);
    int rc = 0;
    pthread_mutex_lock(&lock);
    while (rc == 0) {
        rc = pthread_cond_timedwait(&condition, &lock, &deadline);
    }
    pthread_mutex_unlock(&lock);
    CHECK_INT(rc, ETIMEDOUT);
    CHECK(clock_ns() >= nanoseconds(deadline));
    pthread_cond_destroy(&condition);
}

static int64_t system_ns(clockid_t id)
{
    struct timespec t;
    CHECK(clock_gettime(id, &t) == 0);
    return nanoseconds(t);
}

/* What each clock says lies between what the system says before and after. */
static void test_now(void)
{
    for (int i = 0; i < 20; i++) {
        const int64_t before = system_ns(CLOCK_MONOTONIC), ns = clock_ns();
        const double ms = clock_ms();
        const int64_t after = system_ns(CLOCK_MONOTONIC);
        CHECK(before <= ns && ns <= after);
        CHECK((double)ns / 1e6 <= ms && ms <= (double)after / 1e6);
        const int64_t date = system_ns(CLOCK_REALTIME), unix_ns = clock_unix_ns(), unix_s = clock_unix_s();
        const int64_t end = system_ns(CLOCK_REALTIME);
        CHECK(date <= unix_ns && unix_ns <= end);
        CHECK(date / 1000000000 <= unix_s && unix_s <= end / 1000000000);
    }
}

int main(void)
{
    test_date();
    test_condition();
    test_deadline();
    test_now();
    CHECK_DONE();
}
