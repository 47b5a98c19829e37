/* check: what a test program needs. Checks survive NDEBUG and print both values; a program ends
 * with CHECK_DONE(), which exits 0 or 1. Exit code 77 means skipped, with the reason on standard
 * output.
 *
 *     CHECK_INT(1 + 1, 2);
 *     CHECK_STR(name, "x");
 *     CHECK_DONE();                // the end of main
 */
#ifndef PARLEY_TESTS_CHECK_H
#define PARLEY_TESTS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int check_failures;

static inline void check_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    check_failures++;
}

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            check_fail(__FILE__, __LINE__, #condition);                                                      \
        }                                                                                                    \
    } while (0)

/* Integers of any kind. */
#define CHECK_INT(actual, expected)                                                                          \
    do {                                                                                                     \
        long long check_a = (long long)(actual), check_e = (long long)(expected);                            \
        if (check_a != check_e) {                                                                            \
            fprintf(stderr, "  %s is %lld, expected %lld\n", #actual, check_a, check_e);                     \
            check_fail(__FILE__, __LINE__, #actual " == " #expected);                                        \
        }                                                                                                    \
    } while (0)

#define CHECK_STR(actual, expected)                                                                          \
    do {                                                                                                     \
        const char *check_a = (actual), *check_e = (expected);                                               \
        if (!check_a || !check_e || strcmp(check_a, check_e) != 0) {                                         \
            fprintf(stderr, "  %s is\n    \"%s\"\n  expected\n    \"%s\"\n", #actual,                        \
                    check_a ? check_a : "(null)", check_e ? check_e : "(null)");                             \
            check_fail(__FILE__, __LINE__, #actual " == " #expected);                                        \
        }                                                                                                    \
    } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                                              \
    do {                                                                                                     \
        double check_a = (double)(actual), check_e = (double)(expected);                                     \
        if (!(fabs(check_a - check_e) <= (double)(tolerance))) {                                             \
            fprintf(stderr, "  %s is %.9g, expected %.9g +- %g\n", #actual, check_a, check_e,                \
                    (double)(tolerance));                                                                    \
            check_fail(__FILE__, __LINE__, #actual " near " #expected);                                      \
        }                                                                                                    \
    } while (0)

/* err is an err_code and d the err_detail whose text is printed when it is not ERR_OK. */
#define CHECK_OK(err, d)                                                                                     \
    do {                                                                                                     \
        int check_code = (int)(err);                                                                         \
        if (check_code != 0) {                                                                               \
            fprintf(stderr, "  error %d: %s\n", check_code, (d).text);                                       \
            check_fail(__FILE__, __LINE__, #err " is ERR_OK");                                               \
        }                                                                                                    \
    } while (0)

#define CHECK_DONE()                                                                                         \
    do {                                                                                                     \
        if (check_failures) {                                                                                \
            fprintf(stderr, "%d checks failed\n", check_failures);                                           \
        }                                                                                                    \
        exit(check_failures ? 1 : 0);                                                                        \
    } while (0)

#define CHECK_SKIP(reason)                                                                                   \
    do {                                                                                                     \
        printf("skipped: %s\n", reason);                                                                     \
        exit(77);                                                                                            \
    } while (0)

/* PARLEY_SWEEP=small, which scripts/aarch64 sets: of a large sweep a part is run, as an emulator takes a hundred times as
 * long. */
static inline bool check_small_sweep(void)
{
    const char *sweep = getenv("PARLEY_SWEEP");
    return sweep && strcmp(sweep, "small") == 0;
}

/* Whether a case of a sweep is to be run: each is, or in a small sweep one of `every` calls, the first among them. A number
 * that has no divisor in common with those of the loops around it leaves out no size and no kernel table. */
static inline bool check_takes(size_t every)
{
    static size_t n;
    return !check_small_sweep() || n++ % every == 0;
}

/* Folder with the full reference outputs ($PARLEY_SHARED or ../shared beside the checkout), or
 * NULL. */
static inline const char *check_shared_dir(void)
{
    const char *dir = getenv("PARLEY_SHARED");
    struct stat st;
    if (dir && stat(dir, &st) == 0) {
        return dir;
    }
    dir = PARLEY_SOURCE_DIR "/../shared";
    return stat(dir, &st) == 0 ? dir : NULL;
}

/* Path of a file under tests/data; static buffer, overwritten by the next call. */
static inline const char *check_data(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/%s", PARLEY_SOURCE_DIR, name);
    return path;
}

#endif
