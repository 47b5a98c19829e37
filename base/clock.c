#include "base/clock.h"

int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double clock_ms(void)
{
    return (double)clock_ns() / 1e6;
}

bool clock_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) {
        return false;
    }
    const bool ok =
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 && pthread_cond_init(condition, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

struct timespec clock_deadline(int64_t ms)
{
    const int64_t wait = ms > 0 ? ms : 0, at = clock_ns() + wait % 1000 * 1000000;
    return (struct timespec){.tv_sec = at / 1000000000 + wait / 1000, .tv_nsec = at % 1000000000};
}

int64_t clock_unix_s(void)
{
    return clock_unix_ns() / 1000000000;
}

int64_t clock_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void clock_date(char out[CLOCK_DATE_MAX], int64_t unix_s)
{
    const time_t t = (time_t)unix_s;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, CLOCK_DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        out[0] = '\0';
    }
}
