/* inspect: what a checkpoint (a folder or a GGUF file) holds, without starting an engine. Any thread.
 *
 *     inspect_model(&out, "DIR", NULL, as_json, &detail);
 */
#ifndef PARLEY_ENGINE_INSPECT_H
#define PARLEY_ENGINE_INSPECT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

/* Appends a readable table or one JSON object. mmproj as in model_open_options. Fails as model_open does, naming what is
 * missing or wrong. */
MUST_CHECK err_code inspect_model(bytes *out, const char *path, const char *mmproj, bool as_json,
                                  err_detail *detail);

#endif
