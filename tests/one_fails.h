/* one_fails: lets the nth call of one function fail, wherever our own code makes it. The function is wrapped by the linker
 * (cmake/tests.cmake: -Wl,--wrap=NAME), so that what libraries call stays as it is.
 *
 *     one_fails("rename", 1);                          // the first call from now on
 *     bool is_done = rename("from", "to") == 0;
 *     bool has_failed = one_fails_over();              // whether there was one
 *
 * For each function there stands in the program ONE_FAILS(int, rename, (const char *from, const char *to), (from, to),
 * (errno = EIO, -1)).
 */
#ifndef PARLEY_TESTS_ONE_FAILS_H
#define PARLEY_TESTS_ONE_FAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *one_fails_name;                /* NULL: none */
static int one_fails_left;                        /* calls until it fails; 0: it has */
static void (*one_fails_watch)(const char *name); /* is told each call; NULL: nobody */

static inline void one_fails(const char *name, int n)
{
    one_fails_name = name;
    one_fails_left = n;
}

static inline bool one_fails_over(void)
{
    one_fails_name = NULL;
    return one_fails_left == 0;
}

static inline bool one_fails_now(const char *name)
{
    if (one_fails_watch) {
        one_fails_watch(name);
    }
    return one_fails_name && strcmp(one_fails_name, name) == 0 && one_fails_left > 0 && --one_fails_left == 0;
}

/* A function with these parameters, these arguments for the real one, and what it returns when it fails. */
#define ONE_FAILS(type, name, parameters, arguments, failing)                                                \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return one_fails_now(#name) ? failing : __real_##name arguments;                                     \
    }

#endif
