/* say: a fuzz target says in words what came of an input; replay.c compares that with tests/fuzz/outcomes/NAME.txt.
 * Under libFuzzer nobody listens, and saying costs next to nothing. One thread.
 *
 *     say("%d tensors", 3);                                   // a line each
 *     say_text("name", "a\nb", 3);
 *     say_error(ERR_INVALID, &(err_detail){.text = "line 3"});
 *
 * Said is what a wrong line in the code would change, and what is the same on every machine: no time, no address, no
 * sum of floats, no name of a file that was made for the occasion (say_hide).
 */
#ifndef PARLEY_TESTS_FUZZ_SAY_H
#define PARLEY_TESTS_FUZZ_SAY_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* A line; breaks and controls in it are escaped. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);
/* `name "text"`, escaped; of a long one the beginning, its length and its sum. */
void say_text(const char *name, const char *text, size_t n);
/* `name: n bytes, sum`. */
void say_sum(const char *name, const void *data, size_t n);
/* The code, the text, the field, the name and the two numbers, as far as there are any. */
void say_error(err_code err, const err_detail *d);

/* From now on this text (a path, kept by the caller) is said as FILE. "" or NULL: nothing is hidden. */
void say_hide(const char *text);

/* What is said from now on is collected; NULL: no more. */
void say_to(bytes *out);
/* A sum of any bytes. */
uint32_t say_sum_of(const void *data, size_t n);
/* Appends a text in printable ASCII: \n, \t, \\ and \xHH for what is not. */
void say_escaped(bytes *out, const char *text, size_t n);

#endif
