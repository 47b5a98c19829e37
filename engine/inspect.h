/* inspect: what a checkpoint folder holds, without starting an engine. Any thread.
 *
 *     inspect_model(&out, "DIR", as_json, &detail);
 */
#ifndef PARLEY_ENGINE_INSPECT_H
#define PARLEY_ENGINE_INSPECT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

/* Appends a readable table or one JSON object. Fails as model_open does, naming what is missing or wrong. */
MUST_CHECK err_code inspect_model(bytes *out, const char *dir, bool as_json, err_detail *detail);

#endif
