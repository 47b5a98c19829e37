/* clock: time for intervals and for people. Any thread. */
#ifndef PARLEY_BASE_CLOCK_H
#define PARLEY_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never jumps; only differences mean something. */
int64_t clock_ns(void);

/* The same in milliseconds with fractions. */
double clock_ms(void);

/* Seconds since 1970, for `created` fields. */
int64_t clock_unix_s(void);

#endif
