/* file_store: the files that clients uploaded: who owns each, its hash, how long it stays, how much
 * disk each owner may take. Loop thread; file_store_open from any thread (one lock inside).
 *
 * A file is seen by its owner only (scope: a hash of the API key). Equal contents of one owner are
 * kept once, under as many ids as were given out. The files have no names on disk (file_writer.h)
 * and end with the process.
 */
#ifndef PARLEY_SERVER_MEDIA_FILE_STORE_H
#define PARLEY_SERVER_MEDIA_FILE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "server/media/file_writer.h"

enum { FILE_ID_MAX = 48, FILE_NAME_MAX = 256, FILE_PURPOSE_MAX = 32 };

typedef struct file_store file_store;

typedef struct file_store_options {
    const char *dir;    /* must outlive the store */
    uint64_t max_bytes; /* of one file */
    uint64_t quota;     /* bytes of all files of one owner and of what is on its way */
    int64_t expire_s;   /* after the last use */
} file_store_options;

/* What a client says of a file. */
typedef struct file_facts {
    uint64_t scope;
    char name[FILE_NAME_MAX];
    char purpose[FILE_PURPOSE_MAX];
    int64_t expire_s; /* 0: as the store does; a longer time is cut to that */
} file_facts;

typedef struct stored_file {
    char id[FILE_ID_MAX];
    file_facts facts;
    uint64_t bytes;
    uint8_t hash[HASH_BYTES];
    const char *mime;               /* by its first bytes, constant; NULL: neither an image nor a video */
    int64_t created_at, expires_at; /* seconds of the epoch */
    bool was_known;                 /* set when it was added: these bytes were here already */
} stored_file;

/* An open file; the owner closes fd. */
typedef struct file_handle {
    int fd;
    uint64_t bytes;
    uint8_t hash[HASH_BYTES];
    const char *mime;
} file_handle;

/* NULL if out of memory. */
MUST_CHECK file_store *file_store_create(const file_store_options *opt);
void file_store_destroy(file_store *fs); /* NULL allowed */
const file_store_options *file_store_get_options(const file_store *fs);
/* Bytes on disk and set aside, and the number of files: of everybody, and of one owner. */
void file_store_usage(file_store *fs, uint64_t *n_bytes, size_t *n_files);
void file_store_usage_of(file_store *fs, uint64_t scope, uint64_t *n_bytes, size_t *n_files);

/* Sets n_bytes of the owner's quota aside. ERR_LIMIT: upload_too_large, upload_quota_exceeded;
 * ERR_NOMEM. */
MUST_CHECK err_code file_store_reserve(file_store *fs, uint64_t scope, uint64_t n_bytes, err_detail *detail);
void file_store_release(file_store *fs, uint64_t scope, uint64_t n_bytes);
/* Takes a written file and the n_bytes set aside for it, also on failure (ERR_LIMIT: too_many_files; ERR_NOMEM). */
MUST_CHECK err_code file_store_add(file_store *fs, file_writer *w, uint64_t n_bytes, const file_facts *facts,
                                   stored_file *out, err_detail *detail);
/* Gives bytes that are here already a further id; false if the owner has no such file (or too
 * many). */
bool file_store_link(file_store *fs, const uint8_t hash[HASH_BYTES], uint64_t n_bytes,
                     const file_facts *facts, stored_file *out);

/* A copy of what is known of a file; false if the owner has none of this id. */
bool file_store_get(file_store *fs, uint64_t scope, const char *id, stored_file *out);
/* Calls fn with each of the owner's files in order of creation, or the newest first, from the one
 * behind `after` on ("": from the first), until fn returns false; fn must not call the store. False
 * if `after` is none of the owner's. */
bool file_store_list(file_store *fs, uint64_t scope, const char *after, bool newest_first,
                     bool (*fn)(void *ctx, const stored_file *f), void *ctx);
/* Forgets the id; the bytes go with the last id that names them and the last request that reads
 * them. */
bool file_store_delete(file_store *fs, uint64_t scope, const char *id);

/* Any thread. Opens a file for reading and counts that as a use of it. ERR_NOT_FOUND
 * (file_not_found), ERR_IO. */
MUST_CHECK err_code file_store_open(file_store *fs, uint64_t scope, const char *id, file_handle *out,
                                    err_detail *detail);

/* Forgets what nobody has used for too long. */
void file_store_expire(file_store *fs, int64_t now_s);

#endif
