/* fake_engine: what tests may know of the double of the engine. Any thread.
 *
 *     const int64_t due = fake_engine_due();   // in time that stands still
 */
#ifndef PARLEY_TESTS_SERVER_FAKE_ENGINE_H
#define PARLEY_TESTS_SERVER_FAKE_ENGINE_H

#include "base/ledger.h"
#include "engine/engine.h"

/* When any double has something to do next (clock_ns), INT64_MAX for never; -1 while one does something, or has not looked at
 * the time since the last call. One that stalls has nothing to do. */
int64_t fake_engine_due(void);
/* Slow loads are no longer slow. */
void fake_engine_end_loads(void);

/* ---- fake_said.c, for the double itself ---- */

enum { FAKE_OPENING = 21 }; /* characters with which thoughts begin */

/* The number behind NAME= in what was said; 1 without one; `otherwise` without the name. */
int fake_option(const char *text, const char *name, int otherwise);
void fake_write_answer(bytes *out, const char *said, int n_images);
/* " role:text" of every message, without the words that steer. */
void fake_write_messages(bytes *out, const chat_input *in);
/* Whether there is such a file in a folder; dir may be NULL. */
bool fake_holds(const char *dir, const char *name);
/* How loading fails: a file in the folder says so, or $FAKE_LOAD_FAILS by its name. */
err_code fake_load_error(const char *dir, err_detail *d);
/* What a model of this name is beyond the others. */
void fake_be(const char *kind, engine_info *info, engine_status *status, ledger *memory);

#endif
