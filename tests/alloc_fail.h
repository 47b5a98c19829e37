/* alloc_fail: makes allocations of the calling thread fail, one after the other, to walk every path
 * that a lack of memory can take. Link tests/alloc_fail.c (cmake/tests.cmake lists the programs).
 *
 *     bool tried = alloc_fail_each(parse, &context, 100000) > 3;     // err_code parse(void *context)
 */
#ifndef PARLEY_TESTS_ALLOC_FAIL_H
#define PARLEY_TESTS_ALLOC_FAIL_H

#include <stddef.h>

#include "base/err.h"

/* Calls fn(context) with the first allocation failing, then with the second, ... until a call meets
 * no failure or max_points calls were made; then the same with all allocations from that one on
 * failing. Each call must return ERR_OK (it could do without) or ERR_NOMEM, and the one that meets
 * no failure ERR_OK, and none holds memory behind it that the next one would take once more. Returns how
 * many allocations fn makes (at most max_points); 0 if a call returned something else or kept memory, told on
 * standard error. */
size_t alloc_fail_each(err_code (*fn)(void *context), void *context, size_t max_points);

/* Calls fn(context), whatever it returns, with none failing. Returns how many blocks of memory it keeps that the next call
 * would take once more: those of libraries, too, unless a sanitizer has the memory, which tells of them itself. */
long alloc_fail_kept(err_code (*fn)(void *context), void *context);

/* Lets the nth allocation of the calling thread from now on fail, until it is called again; 0: none. */
void alloc_fail_at(size_t n);

/* How many blocks the calling thread has taken and not given back, since some time before. */
long alloc_fail_held(void);

#endif
