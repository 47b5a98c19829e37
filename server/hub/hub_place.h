/* hub_place: which hub is asked, with which key, and where its files are kept: the environment
 * variables of other tools for the same hub. Main thread; plain values.
 *
 *     hub_place place; err_code err = hub_place_find(&place, &detail);
 *
 * HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, $HF_HOME/token), HF_HUB_CACHE, HF_HOME,
 * XDG_CACHE_HOME, HF_HUB_OFFLINE.
 */
#ifndef PARLEY_SERVER_HUB_HUB_PLACE_H
#define PARLEY_SERVER_HUB_HUB_PLACE_H

#include <stdbool.h>

#include "base/err.h"

enum { HUB_URL_MAX = 1024, HUB_KEY_MAX = 512, HUB_CACHE_MAX = 1024 };

typedef struct hub_place {
    char endpoint[HUB_URL_MAX]; /* without a slash at its end */
    char key[HUB_KEY_MAX];      /* "" if there is none */
    char cache[HUB_CACHE_MAX];  /* absolute; it may not exist yet */
    bool is_offline;
} hub_place;

/* ERR_INVALID names the variable that is wrong. */
MUST_CHECK err_code hub_place_find(hub_place *out, err_detail *detail);

#endif
