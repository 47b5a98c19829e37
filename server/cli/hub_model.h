/* hub_model: models of a hub by name, for -m and for the commands about them. Main thread.
 *
 *     hub_found found; err_code err = hub_model_find(&found, "ORG/NAME:Q4_K_M", true, &detail);
 */
#ifndef PARLEY_SERVER_CLI_HUB_MODEL_H
#define PARLEY_SERVER_CLI_HUB_MODEL_H

#include "server/hub/hub_cache.h"

/* Fetches a model, with bars; asks first on a terminal if `asks`. Fails as hub_pull does, with the name in
 * front, and with ERR_CANCELLED. */
MUST_CHECK err_code hub_model_pull(hub_found *out, const char *text, bool asks, err_detail *detail);

/* Finds a model by its name. Where it is not there: fetches it if `fetches`, asks on a terminal, else
 * ERR_NOT_FOUND with what to do. */
MUST_CHECK err_code hub_model_find(hub_found *out, const char *text, bool fetches, err_detail *detail);

#endif
