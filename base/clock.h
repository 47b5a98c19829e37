/* clock: time for intervals and for people. Any thread. */
#ifndef PARLEY_BASE_CLOCK_H
#define PARLEY_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that never jumps; only differences mean something. */
int64_t clock_ns(void);

/* The same in milliseconds with fractions. */
double clock_ms(void);

/* A condition variable whose timeouts are of that clock; false if the system refuses. */
bool clock_init_condition(pthread_cond_t *condition);
/* When ms milliseconds from now have passed, for such a timeout; at once if ms < 0. */
struct timespec clock_deadline(int64_t ms);

/* Seconds since 1970, for `created` fields. */
int64_t clock_unix_s(void);
/* The same in nanoseconds, to compare with times of files. */
int64_t clock_unix_ns(void);

enum { CLOCK_DATE_MAX = 32 };
/* Such seconds as a date: "2026-01-31T12:00:00Z". */
void clock_date(char out[CLOCK_DATE_MAX], int64_t unix_s);

#endif
