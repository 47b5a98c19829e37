/* one_fails: lets the nth call of one function fail, wherever our own code makes it. The function is wrapped by the linker
 * (cmake/tests.cmake: -Wl,--wrap=NAME), so that what libraries call stays as it is.
 *
 *     one_fails(NULL, 0);                              // none fails; how often each is called is counted
 *     bool is_done = rename("from", "to") == 0;
 *     for (int n = 1; n <= one_fails_counted("rename"); n++) {
 *         one_fails("rename", n);                      // the nth call from now on
 *         is_done = rename("from", "to") == 0;
 *         bool has_failed = one_fails_over();          // whether there was one
 *         one_fails_say(&out, "rename", n, has_failed && !is_done ? "not done" : "done");
 *     }
 *     one_fails_say(&out, NULL, 0, NULL);              // "  rename 1 to 3: not done", if all were the same
 *
 * For each function there stands in the program ONE_FAILS(int, rename, (const char *from, const char *to), (from, to),
 * (errno = EIO, -1)).
 */
#ifndef PARLEY_TESTS_ONE_FAILS_H
#define PARLEY_TESTS_ONE_FAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Of each thread: what another one calls neither fails nor counts. */
static _Thread_local const char *one_fails_name; /* NULL: none */
static _Thread_local int one_fails_left;         /* calls until it fails; 0: it has */
static _Thread_local struct {
    const char *name; /* compared by its place: each wrapper has one */
    int n;
} one_fails_calls[64];
static _Thread_local bool one_fails_counts;

static inline void one_fails(const char *name, int n)
{
    one_fails_name = name;
    one_fails_left = n;
    one_fails_counts = !name;
    if (!name) {
        memset(one_fails_calls, 0, sizeof one_fails_calls);
    }
}

static inline bool one_fails_over(void)
{
    one_fails_name = NULL;
    one_fails_counts = false;
    return one_fails_left == 0;
}

static inline int one_fails_counted(const char *name)
{
    for (size_t i = 0; one_fails_calls[i].name; i++) {
        if (strcmp(one_fails_calls[i].name, name) == 0) {
            return one_fails_calls[i].n;
        }
    }
    return 0;
}

static inline bool one_fails_now(const char *name)
{
    if (one_fails_counts) {
        size_t i = 0;
        while (one_fails_calls[i].name && one_fails_calls[i].name != name) {
            i++;
        }
        one_fails_calls[i].name = name;
        one_fails_calls[i].n++;
    }
    return one_fails_name && strcmp(one_fails_name, name) == 0 && one_fails_left > 0 && --one_fails_left == 0;
}

/* A line for what came of the nth call's failure: one for those in a row of which the same came, written when another one
 * begins. call, what NULL: it ends. */
static inline void one_fails_say(bytes *out, const char *call, int n, const char *what)
{
    static char last[1 << 16], name[64];
    static int from, to;
    if (what && call && strcmp(last, what) == 0 && strcmp(name, call) == 0) {
        to = n;
        return;
    }
    if (last[0] && from == to) {
        bytes_printf(out, "  %s %d: %s\n", name, from, last);
    } else if (last[0]) {
        bytes_printf(out, "  %s %d to %d: %s\n", name, from, to, last);
    }
    snprintf(last, sizeof last, "%s", what ? what : "");
    snprintf(name, sizeof name, "%s", call ? call : "");
    from = to = n;
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
