/* file_writer: writes a file to disk and computes its SHA-256. Any thread, one at a time.
 *
 *     file_writer *w; file_writer_create(&w, "/var/tmp", n_bytes, &detail);
 *     file_writer_add(w, data, n, &detail);                  // as the bytes arrive
 *     int fd = file_writer_finish(w, hash);                   // or file_writer_destroy(w)
 *
 * The file is created without a name, so nothing is left behind however the process ends.
 */
#ifndef PARLEY_SERVER_MEDIA_FILE_WRITER_H
#define PARLEY_SERVER_MEDIA_FILE_WRITER_H

#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

typedef struct file_writer file_writer;

/* A file of at most max_bytes in `dir`. ERR_IO (upload_storage_failed) if none can be made there,
 * ERR_NOMEM. */
MUST_CHECK err_code file_writer_create(file_writer **out, const char *dir, uint64_t max_bytes,
                                       err_detail *detail);
/* Discards the file. NULL allowed. */
void file_writer_destroy(file_writer *w);

/* Appends. ERR_LIMIT (upload_too_large) beyond max_bytes, ERR_IO (upload_storage_failed) if the
 * disk is full or broken: then the file is unusable. */
MUST_CHECK err_code file_writer_add(file_writer *w, const void *data, size_t n, err_detail *detail);
uint64_t file_writer_bytes(const file_writer *w);
/* The first bytes that were written; how many is in *n. */
const uint8_t *file_writer_head(const file_writer *w, size_t *n);

/* Destroys the writer and returns a descriptor for reading, which the caller closes. */
int file_writer_finish(file_writer *w, uint8_t hash[HASH_BYTES]);

/* Reads up to n bytes at an offset of such a descriptor; returns how many, -1 if the disk fails. */
int64_t file_read_at(int fd, void *out, size_t n, uint64_t offset);

#endif
