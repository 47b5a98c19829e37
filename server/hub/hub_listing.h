/* hub_listing: the files of one commit of a repository, as a hub lists them or as they lie in a folder.
 * One thread.
 *
 *     hub_listing l; err_code err = hub_listing_read(&l, text, n, &detail);   // {"sha": ..., "siblings": [...]}
 *     const hub_file *f = hub_listing_find(&l, "config.json");
 *     hub_listing_deinit(&l);
 */
#ifndef PARLEY_SERVER_HUB_HUB_LISTING_H
#define PARLEY_SERVER_HUB_HUB_LISTING_H

#include <stdint.h>

#include "base/err.h"
#include "server/hub/hub_name.h"

enum { HUB_FILES_MAX = 20000 };

typedef struct hub_file {
    char path[HUB_PATH_MAX];
    char key[HUB_HEX_MAX]; /* the SHA-256 of a large file, the Git hash (SHA-1) of a small one */
    int64_t size;          /* bytes */
    bool is_large;         /* kept by LFS: key is a SHA-256 */
} hub_file;

typedef struct hub_listing {
    char commit[HUB_HEX_MAX];
    hub_file *files; /* by their paths */
    size_t n;
} hub_listing;

/* Reads what /api/models/REPO/revision/REVISION?blobs=true gives. ERR_CORRUPT for what is no such
 * document, and for a path that leads out of the repository; ERR_LIMIT, ERR_NOMEM. Nothing is owned on
 * failure. */
MUST_CHECK err_code hub_listing_read(hub_listing *out, const char *text, size_t n, err_detail *detail);

/* The same of a folder on this machine, sizes of what links lead to, without keys and commit; links
 * that lead nowhere are left out. ERR_NOT_FOUND if there is no such folder. */
MUST_CHECK err_code hub_listing_of_folder(hub_listing *out, const char *dir, err_detail *detail);

void hub_listing_deinit(hub_listing *l); /* NULL is not allowed; an empty one is */

const hub_file *hub_listing_find(const hub_listing *l, const char *path); /* NULL if there is none */

#endif
