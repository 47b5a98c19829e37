/* Options of a command, from words as they are typed.
 *
 *     options o = typed_options("parley run -m org/name");
 *     options_deinit(&o);
 */
#ifndef PARLEY_TESTS_SERVER_CLI_TYPED_OPTIONS_H
#define PARLEY_TESTS_SERVER_CLI_TYPED_OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "server/cli/options_parse.h"
#include "tests/check.h"

/* They must be taken. Words are at blanks, and at most 63; they hold until the next call. */
static inline options typed_options(const char *words)
{
    static char text[8192];
    char *argv[64];
    int argc = 0;
    options o;
    snprintf(text, sizeof text, "%s", words);
    for (char *next = text; next;) {
        argv[argc++] = next;
        next = strchr(next, ' ');
        if (next) {
            *next++ = '\0';
        }
    }
    argv[argc] = NULL;
    CHECK_INT(options_parse(&o, argc, argv), -1);
    return o;
}

#endif
