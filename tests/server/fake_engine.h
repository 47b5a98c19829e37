/* fake_engine: what tests may know of the double of the engine. Any thread.
 *
 *     const int64_t due = fake_engine_due();   // in time that stands still
 */
#ifndef PARLEY_TESTS_SERVER_FAKE_ENGINE_H
#define PARLEY_TESTS_SERVER_FAKE_ENGINE_H

#include <stdint.h>

/* When any double has something to do next (clock_ns), INT64_MAX for never; -1 while one does something, or has not looked at
 * the time since the last call. One that stalls has nothing to do. */
int64_t fake_engine_due(void);

#endif
