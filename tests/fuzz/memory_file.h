/* memory_file: gives bytes a path, for code that opens files. One thread; one file, overwritten by
 * each call.
 *
 *     const char *path = memory_file(data, size);
 *     err = tokenizer_open(&tok, path, &detail);
 */
#ifndef PARLEY_TESTS_FUZZ_MEMORY_FILE_H
#define PARLEY_TESTS_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Path of a file with these contents, valid until the next call. Aborts if the system refuses. */
static inline const char *memory_file(const void *data, size_t size)
{
    static char path[64];
    static FILE *file; /* deleted as soon as it is made, so nothing is left behind */
    if (!file) {
        file = tmpfile();
        if (!file) {
            abort();
        }
        snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    }
    if (ftruncate(fileno(file), 0) != 0 || pwrite(fileno(file), data, size, 0) != (ssize_t)size) {
        abort();
    }
    return path;
}

#endif
