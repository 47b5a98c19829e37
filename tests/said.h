/* said: what this program writes to standard output and standard error while something runs.
 *
 *     said_begin(); puts("x"); said_end(); CHECK_STR(said_out, "x\n"); CHECK_STR(said_err, "");
 */
#ifndef PARLEY_TESTS_SAID_H
#define PARLEY_TESTS_SAID_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

enum { SAID_BYTES = 1 << 19 };

/* Of the last one; cut at SAID_BYTES. */
static char said_out[SAID_BYTES], said_err[SAID_BYTES];
static int said_kept[2];   /* where both went before */
static FILE *said_file[2]; /* where both go meanwhile */

static inline void said_begin(void)
{
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        said_kept[i] = dup(1 + i);
        said_file[i] = tmpfile();
        if (said_kept[i] < 0 || !said_file[i] || dup2(fileno(said_file[i]), 1 + i) < 0) {
            abort();
        }
    }
}

static inline void said_end(void)
{
    for (int i = 0; i < 2; i++) {
        char *text = i ? said_err : said_out;
        fflush(i ? stderr : stdout);
        const ssize_t n = pread(fileno(said_file[i]), text, SAID_BYTES - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        dup2(said_kept[i], 1 + i);
        close(said_kept[i]);
        fclose(said_file[i]);
    }
}

/* Checks that a text holds another one, and prints both if not. */
#define CHECK_HAS(text, part)                                                                                \
    do {                                                                                                     \
        const char *check_t = (text), *check_p = (part);                                                     \
        if (!check_t || !strstr(check_t, check_p)) {                                                         \
            fprintf(stderr, "  \"%s\"\n  is not in\n    \"%s\"\n", check_p, check_t ? check_t : "(null)");   \
            check_fail(__FILE__, __LINE__, #text " has " #part);                                             \
        }                                                                                                    \
    } while (0)

#endif
