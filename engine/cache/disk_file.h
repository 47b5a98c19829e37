/* disk_file: one file of the disk cache: a header, then bytes that its checksum covers. Any thread.
 *
 *     disk_file f = {.kind = DISK_BLOCK, .id = id, .fingerprint = fingerprint};
 *     err_code err = disk_file_write(dir, &f, parts, n_parts, &detail);   // whole or not at all
 *     err = disk_file_open(&fd, dir, &f, false, &detail);                 // f.n_bytes of payload follow
 *     err = disk_file_read(fd, &f, parts, n_parts, &detail);              // checked; closes fd
 *
 * A file is written under another name, synchronized and renamed. A reader believes nothing that
 * the header and the checksum do not confirm: it gets ERR_CORRUPT for a torn or changed file, and
 * ERR_UNSUPPORTED for one of another version, model or place. Numbers are those of the machine; a
 * machine of the other byte order sees another version.
 */
#ifndef PARLEY_ENGINE_CACHE_DISK_FILE_H
#define PARLEY_ENGINE_CACHE_DISK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

enum { DISK_FORMAT_VERSION = 1, DISK_NAME_CHARS = 2 * HASH_BYTES + 16, DISK_HEADER_BYTES = 128 };

/* DISK_NAME: what the owner calls the entry of the same id. */
typedef enum disk_kind { DISK_BLOCK = 1, DISK_ENTRY = 2, DISK_NAME = 3 } disk_kind;

typedef struct disk_id {
    uint8_t bytes[HASH_BYTES];
} disk_id;

typedef struct disk_part {
    void *data; /* not written to by disk_file_write */
    size_t n;
} disk_part;

typedef struct disk_file {
    disk_kind kind;
    disk_id id;          /* of the contents: what they are, not what they look like */
    disk_id fingerprint; /* of the model */
    uint64_t n_bytes;    /* of the payload */
    uint32_t version;    /* of a file that was opened */
    disk_id checksum;
} disk_file;

/* The name of the file of an id: out holds DISK_NAME_CHARS. */
void disk_file_name(char *out, disk_kind kind, const disk_id *id);
/* Takes a name apart; false if it is none of ours. *is_temporary: it is one that was being
 * written. */
bool disk_file_parse_name(const char *name, disk_kind *kind, disk_id *id, bool *is_temporary);

/* Writes the parts one behind the other. ERR_IO says why not; then nothing is left. */
MUST_CHECK err_code disk_file_write(int dir, const disk_file *f, const disk_part *parts, size_t n_parts,
                                    err_detail *detail);

/* Opens the file of f->kind and f->id and checks all but the checksum; the caller closes *fd.
 * any_model: f->fingerprint is filled, not compared. ERR_NOT_FOUND, ERR_CORRUPT, ERR_UNSUPPORTED
 * (f->version then says of what version it is), ERR_IO. */
MUST_CHECK err_code disk_file_open(int *fd, int dir, disk_file *f, bool any_model, err_detail *detail);
/* Reads just n bytes. False at the end of the file, with errno 0, and on an error. */
MUST_CHECK bool disk_file_take(int fd, void *data, size_t n);
/* Fills the parts, which must take f->n_bytes together, and compares the checksum. Closes fd in any
 * case. */
MUST_CHECK err_code disk_file_read(int fd, const disk_file *f, const disk_part *parts, size_t n_parts,
                                   err_detail *detail);

#endif
