/* inspect: what a checkpoint (a folder or a GGUF file) holds, without starting an engine. Any
 * thread.
 *
 *     inspect_model(&out, "DIR", NULL, as_json, &detail);
 *     inspect_folder(&out, "MODELS", as_json, &detail);
 */
#ifndef PARLEY_ENGINE_INSPECT_H
#define PARLEY_ENGINE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* Appends a readable table or one JSON object. mmproj as in model_open_options. Fails as model_open
 * does, naming what is missing or wrong. */
MUST_CHECK err_code inspect_model(bytes *out, const char *path, const char *mmproj, bool as_json,
                                  err_detail *detail);

/* The same for each model in a folder (engine/catalog.h): a line or an object of a list each. Those
 * that cannot be loaded are there with the reason. ERR_NOT_FOUND if there is none. */
MUST_CHECK err_code inspect_folder(bytes *out, const char *dir, bool as_json, err_detail *detail);

/* Whether a model can be run, as far as its config.json tells; where it says nothing it counts as one that
 * can. The text names no file. */
MUST_CHECK err_code inspect_config(const char *text, size_t n, err_detail *detail);
/* The same of the first n bytes of one of its GGUF files, which has n_file: the architecture (of the first
 * file of a model) and the types of its tensors. *is_whole is false where the header goes on behind them: the
 * types are known from more bytes only. */
MUST_CHECK err_code inspect_gguf_head(const void *data, size_t n, uint64_t n_file, bool is_first,
                                      bool *is_whole, err_detail *detail);

#endif
