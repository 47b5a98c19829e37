/* file: whole files in memory, read or mapped. Any thread.
 *
 *     file_map m; err_code err = file_map_open(&m, path, &detail);     // m.data[0..m.bytes)
 *     file_map_close(&m);
 */
#ifndef PARLEY_BASE_FILE_H
#define PARLEY_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

typedef struct file_map {
    const uint8_t *data; /* read-only pages of the file; NULL for an empty or closed map */
    size_t bytes;
} file_map;

/* Maps a regular file read-only. ERR_NOT_FOUND, ERR_IO, or ERR_INVALID for a directory or
 * device. */
MUST_CHECK err_code file_map_open(file_map *m, const char *path, err_detail *detail);
void file_map_close(file_map *m);

/* Closes a descriptor; -1 is allowed. */
void file_close(int fd);
/* Writes data[0..n), or reads n bytes, where the descriptor stands; false on failure, and if the file
 * ends before. */
MUST_CHECK bool file_write_all(int fd, const void *data, size_t n);
MUST_CHECK bool file_read_all(int fd, void *data, size_t n);

/* Asks the system to load a mapped file into huge pages, which are read faster. Only some file
 * systems can (ext4 of Linux 6.18 was seen to); elsewhere nothing changes. file_map_open does so by
 * itself. */
void file_map_ask_for_huge_pages(void *data, size_t n_bytes);

/* Appends the whole file to `out` (initialised by the caller with its maximum); ERR_LIMIT beyond
 * it. */
MUST_CHECK err_code file_read(bytes *out, const char *path, err_detail *detail);

/* True if a regular file can be read there. */
bool file_exists(const char *path);

/* Writes "dir/name" to out; false if it does not fit. */
MUST_CHECK bool file_join(char *out, size_t out_cap, const char *dir, const char *name);

#endif
