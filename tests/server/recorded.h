/* recorded: a long text that a test made, compared with a file beside it. PARLEY_WRITE=1 writes the file anew, whose
 * difference is then to be read.
 *
 *     recorded_check("cli/engine_commands.txt", text);     // below tests/server
 */
#ifndef PARLEY_TESTS_SERVER_RECORDED_H
#define PARLEY_TESTS_SERVER_RECORDED_H

#include "base/file.h"
#include "tests/check.h"

static inline void recorded_check(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/tests/server/%s", name);
    if (getenv("PARLEY_WRITE")) {
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
        return;
    }
    bytes was = bytes_empty((size_t)1 << 24);
    err_detail d;
    CHECK_OK(file_read(&was, path, &d), d);
    const char *a = text, *b = bytes_str(&was);
    int line = 1;
    while (*a && *a == *b) { /* to the line where they part */
        const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || strncmp(a, b, n) != 0) {
            break;
        }
        a += n + (a[n] == '\n');
        b += n + (b[n] == '\n');
        line++;
    }
    if (*a || *b) {
        fprintf(stderr, "  %s:%d\n  is \"%.*s\"\n  was \"%.*s\"\n", name, line, (int)strcspn(a, "\n"), a,
                (int)strcspn(b, "\n"), b);
        check_fail(__FILE__, __LINE__, "the text is the one that was recorded");
    }
    bytes_deinit(&was);
}

#endif
