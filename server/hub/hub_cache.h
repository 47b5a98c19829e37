/* hub_cache: models in the hub's own cache layout, which other tools share. One thread.
 *
 *   CACHE/models--ORG--NAME/blobs/KEY               contents, named by their hashes
 *   CACHE/models--ORG--NAME/snapshots/COMMIT/PATH   links to them
 *   CACHE/models--ORG--NAME/refs/main               which commit a branch was
 *   CACHE/.locks/models--ORG--NAME/KEY.lock
 *
 * Usage:
 *
 *     hub_found found; err_code err = hub_cache_find(&found, place.cache, &name, &detail);
 *     engine_options eo = {.model_dir = found.path, .mmproj = found.mmproj[0] ? found.mmproj : NULL};
 *
 * Links are made when all files are there, the one that is opened last, and the branch behind them: what
 * is found is whole.
 */
#ifndef PARLEY_SERVER_HUB_HUB_CACHE_H
#define PARLEY_SERVER_HUB_HUB_CACHE_H

#include "base/bytes.h"
#include "server/hub/hub_blob.h"
#include "server/hub/hub_select.h"

typedef struct hub_found {
    char path[HUB_FULL_PATH_MAX];   /* a folder or a GGUF file */
    char mmproj[HUB_FULL_PATH_MAX]; /* the vision tower of a GGUF file, or "" */
} hub_found;

/* Where a named model is. ERR_NOT_FOUND if it is not there (detail empty), or not with this quantization; the latter
 * with a text. */
MUST_CHECK err_code hub_cache_find(hub_found *out, const char *cache, const hub_name *name,
                                   err_detail *detail);

/* Where a repository's folder is, whether it is there or not. */
void hub_cache_repo(char repo_dir[HUB_FULL_PATH_MAX], const char *cache, const char *repo);
/* The folders of a repository, made where they are missing. */
MUST_CHECK err_code hub_cache_prepare(char repo_dir[HUB_FULL_PATH_MAX], char locks_dir[HUB_FULL_PATH_MAX],
                                      const char *cache, const char *repo, err_detail *detail);
/* Links the selected files into the snapshot, and lets the revision mean it. */
MUST_CHECK err_code hub_cache_link(const char *repo_dir, const hub_listing *l, const hub_selection *s,
                                   const char *revision, err_detail *detail);

/* One model that is there. */
typedef struct hub_kept {
    char name[HUB_REPO_MAX + HUB_QUANT_MAX + HUB_HEX_MAX]; /* as -m takes it: ORG/NAME[:QUANT][@COMMIT] */
    char path[HUB_FULL_PATH_MAX];
    int64_t n_bytes;
    bool is_whole; /* false: a download that was broken off */
} hub_kept;

/* All of them, by name, in *out, which the caller frees; their number. */
MUST_CHECK err_code hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *detail);

/* Removes a model, or one quantization of it, and what nothing else uses; *n_bytes: what that gave
 * back. */
MUST_CHECK err_code hub_cache_remove(const char *cache, const hub_name *name, int64_t *n_bytes,
                                     err_detail *detail);

#endif
