/* recorded: a long text that a test made, compared with a file. PARLEY_WRITE=1 writes the file anew, whose difference is
 * then to be read. One that is not as recorded is a failed check, with the place where they part.
 *
 *     recorded_check("server/cli/engine_commands.txt", text);     // a file below tests
 *     recorded_compare("/tmp/answers.txt", was, text);            // any file, and what stands in it
 *     recorded_answers("/tmp/asked.txt", tell, &subject);       // a file of questions and answers
 */
#ifndef PARLEY_TESTS_RECORDED_H
#define PARLEY_TESTS_RECORDED_H

#include "base/file.h"
#include "tests/check.h"

static inline void recorded_show(const char *path, const char *was, const char *is)
{
    enum { BEFORE = 60, SHOWN = 200 }; /* lines are long */
    int line = 1;
    while (*was && *is) {
        const size_t n = strcspn(was, "\n"), m = strcspn(is, "\n");
        if (n != m || memcmp(was, is, n) != 0) {
            break;
        }
        was += n + (was[n] != '\0');
        is += m + (is[m] != '\0');
        line++;
    }
    const size_t n = strcspn(was, "\n"), m = strcspn(is, "\n");
    size_t same = 0;
    while (same < n && same < m && was[same] == is[same]) {
        same++;
    }
    same -= same < BEFORE ? same : BEFORE;
    fprintf(stderr, "%s:%d: recorded is\n  ...%.*s\nbut now it is\n  ...%.*s\n", path, line,
            (int)(n - same < SHOWN ? n - same : SHOWN), was + same,
            (int)(m - same < SHOWN ? m - same : SHOWN), is + same);
}

static inline void recorded_compare(const char *path, const char *was, const char *is)
{
    if (strcmp(was, is) == 0) {
        return;
    }
    if (getenv("PARLEY_WRITE")) {
        FILE *file = fopen(path, "w");
        CHECK(file && fputs(is, file) >= 0 && fclose(file) == 0);
    } else {
        recorded_show(path, was, is);
        check_fail(__FILE__, __LINE__, "the text is the one that was recorded");
    }
}

static inline void recorded_check(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/tests/%s", name);
    bytes was = bytes_empty((size_t)1 << 24);
    err_detail d;
    const err_code err = file_read(&was, path, &d);
    if (!getenv("PARLEY_WRITE")) { /* which may make it */
        CHECK_OK(err, d);
    }
    recorded_compare(path, bytes_str(&was), text);
    bytes_deinit(&was);
}

/* A file of questions, each with what came of it behind it, in lines that begin with '<': all other lines are kept, and
 * each, its length in bytes, goes to `tell`, which appends such lines to `out`. `path` is absolute. */
static inline void recorded_answers(const char *path,
                                    void (*tell)(void *ctx, bytes *out, const char *line, size_t len),
                                    void *ctx)
{
    bytes was = bytes_empty((size_t)1 << 24), is = bytes_empty((size_t)1 << 24);
    err_detail d;
    CHECK_OK(file_read(&was, path, &d), d);
    for (const char *at = bytes_str(&was); *at;) {
        const size_t len = strcspn(at, "\n");
        if (*at != '<') {
            bytes_append(&is, at, len);
            bytes_append_char(&is, '\n');
            tell(ctx, &is, at, len);
        }
        at += len + (at[len] == '\n');
    }
    recorded_compare(path, bytes_str(&was), bytes_str(&is));
    bytes_deinit(&was);
    bytes_deinit(&is);
}

#endif
