/* asked: what the code under test asks of its neighbours, each call a line, until the text is compared. The linker wraps the
 * neighbours (cmake/tests.cmake: -Wl,--wrap=NAME).
 *
 *     WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; ask("write to %d", (int)id);)
 *     ask_begin("a socket that is gone");              // the title of what follows
 *     recorded_check("server/service/socket.txt", ask_end());
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_ASKED_H
#define PARLEY_TESTS_SERVER_SERVICE_ASKED_H

#include <stdarg.h>

#include "base/bytes.h"
#include "tests/check.h"

static bytes asked = {.max = 1 << 22};

#define WRAP(type, name, parameters, ...)                                                                    \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

PRINTF_LIKE(1, 2) static inline void ask(const char *format, ...)
{
    char line[8192];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(asked.failed || (n >= 0 && (size_t)n < sizeof line));
    bytes_append_str(&asked, "  ");
    for (const char *p = line; *p; p++) { /* each call is one line */
        bytes_append_str(&asked, *p == '\n' ? "\\n" : (const char[]){*p, '\0'});
    }
    bytes_append_char(&asked, '\n');
}

PRINTF_LIKE(1, 2) static inline void ask_begin(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bytes_printf(&asked, "%s\n", line);
}

/* All of it, for a last comparison. */
static inline const char *ask_end(void)
{
    CHECK(!asked.failed);
    return bytes_str(&asked);
}

#endif
