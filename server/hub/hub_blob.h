/* hub_blob: one file of a model while it is fetched: blobs/KEY.incomplete, which becomes blobs/KEY when
 * its size and hash are those that the hub told. One thread; a lock keeps other programs away.
 *
 *     hub_blob b; err_code err = hub_blob_open(&b, repo_dir, locks_dir, file, &detail);
 *     while (hub_blob_check_some(&b)) { }                    // hashes what was there before
 *     if (!hub_blob_add(&b, data, n)) { }                    // b.at bytes are there
 *     err = hub_blob_finish(&b, &detail);
 *     hub_blob_close(&b);
 */
#ifndef PARLEY_SERVER_HUB_HUB_BLOB_H
#define PARLEY_SERVER_HUB_HUB_BLOB_H

#include "base/hash.h"
#include "server/hub/hub_listing.h"

enum { HUB_FULL_PATH_MAX = 2048 };

/* A path in the cache. All that there may be have room: the cache's own has less than HUB_CACHE_MAX bytes, and names are
 * bounded (hub_name.h). */
void hub_path(char out[HUB_FULL_PATH_MAX], const char *format, ...) PRINTF_LIKE(2, 3);

typedef struct hub_blob {
    const hub_file *file;
    char path[HUB_FULL_PATH_MAX], part[HUB_FULL_PATH_MAX]; /* under its final name, and until then */
    int fd, lock;
    hash_stream *hash;
    int64_t at;     /* bytes that are there and hashed; of those that lay there before, after the check */
    int64_t before; /* bytes that lay there when it was opened */
    int error;      /* errno of a write that failed; 0: none did */
} hub_blob;

/* Opens or creates it. repo_dir holds blobs/; locks_dir is made where it is missing. ERR_BUSY if another program fetches
 * it, ERR_IO. `file` lives longer. */
MUST_CHECK err_code hub_blob_open(hub_blob *b, const char *repo_dir, const char *locks_dir,
                                  const hub_file *file, err_detail *detail);
void hub_blob_close(hub_blob *b); /* what is there stays */

/* Hashes some more of what lay there before; false when all of it is. */
bool hub_blob_check_some(hub_blob *b);

/* Appends; false if there was more than its size (error is 0), or the disk refused. */
MUST_CHECK bool hub_blob_add(hub_blob *b, const void *data, size_t n);
/* Begins anew with an empty file; false if the disk refused. */
MUST_CHECK bool hub_blob_restart(hub_blob *b);

/* All bytes are there: ERR_CORRUPT if they are not those that the hub promised, ERR_IO. */
MUST_CHECK err_code hub_blob_finish(hub_blob *b, err_detail *detail);

/* Whether the file of a size is there under its final name. */
bool hub_blob_is_there(const char *repo_dir, const hub_file *file);
/* Bytes of it that an earlier try has left. */
int64_t hub_blob_left_over(const char *repo_dir, const hub_file *file);

#endif
