/* hub_pull: fetches a model from a hub into the cache. Main thread.
 *
 *     err_code err = hub_pull(&found, &place, &name, &hooks, &detail);   // found.path is what engine_open takes
 */
#ifndef PARLEY_SERVER_HUB_HUB_PULL_H
#define PARLEY_SERVER_HUB_HUB_PULL_H

#include "server/hub/hub_cache.h"
#include "server/hub/hub_client.h"

enum { HUB_AT_ONCE = 4 };

typedef struct hub_pull_hooks {
    /* Whether Parley runs a model: from its config.json, or from the first n of n_file bytes of a GGUF file,
     * *is_whole telling whether they sufficed. An error ends the pull before a weight is fetched. */
    err_code (*check_config)(const char *text, size_t n, err_detail *detail);
    err_code (*check_gguf)(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *detail);
    /* Whether that much may be fetched; NULL: it may. */
    bool (*may_fetch)(void *ctx, size_t n_files, int64_t n_bytes);
    /* The files that are missing, some times a second while they are fetched, and at the end. */
    void (*on_tick)(void *ctx, const hub_task *tasks, size_t n);
    void *ctx;
} hub_pull_hooks;

/* Fetches what is missing, at most HUB_AT_ONCE files at once, and finds it. Each file has its final name
 * only when its size and hash are right; what a broken try leaves is gone on with the next time.
 * ERR_NOT_FOUND no such model, revision or quantization, or a key is needed; ERR_UNSUPPORTED Parley does not
 * run it; ERR_UPSTREAM the network or the hub; ERR_CORRUPT it sends something else; ERR_IO the disk;
 * ERR_BUSY another program fetches it; ERR_CANCELLED may_fetch said no. The text says it in a sentence, without the model's name. */
MUST_CHECK err_code hub_pull(hub_found *out, const hub_place *place, const hub_name *name,
                             const hub_pull_hooks *hooks, err_detail *detail);

#endif
