/* memory_file: gives bytes a path, for code that opens files, without a disk. One thread; one file,
 * overwritten by each call.
 *
 *     const char *path = memory_file(data, size);
 *     err = tokenizer_open(&tok, path, &detail);
 */
#ifndef PARLEY_TESTS_FUZZ_MEMORY_FILE_H
#define PARLEY_TESTS_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A file in memory with these contents, and zeros behind them up to `n` bytes, which take no memory. *fd: 0 at
 * first, then the file that is written anew. Aborts if the system refuses. */
static inline void memory_file_write(int *fd, const void *data, size_t size, size_t n)
{
    char name[] = "/dev/shm/parley_fuzz_XXXXXX";
    if (*fd == 0 && ((*fd = mkstemp(name)) <= 0 || unlink(name) != 0)) {
        abort();
    }
    if (ftruncate(*fd, 0) != 0 || (size > 0 && pwrite(*fd, data, size, 0) != (ssize_t)size) ||
        ftruncate(*fd, (off_t)(n > size ? n : size)) != 0) {
        abort();
    }
}

/* Path of a file with these contents, valid until the next call. */
static inline const char *memory_file(const void *data, size_t size)
{
    static char path[64];
    static int fd;
    memory_file_write(&fd, data, size, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

#endif
