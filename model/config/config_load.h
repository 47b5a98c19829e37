/* config_load: reads a model_config from config.json, generation_config.json and
 * tokenizer_config.json. Loading thread.
 *
 *     model_config cfg; err = model_config_load(&cfg, json_folder("DIR"), &detail);
 *
 * Every number is validated here, so later code may multiply without overflow checks.
 */
#ifndef PARLEY_MODEL_CONFIG_CONFIG_LOAD_H
#define PARLEY_MODEL_CONFIG_CONFIG_LOAD_H

#include "base/err.h"
#include "base/json.h"
#include "model/config/config.h"

/* Reads config.json, by the reader of its family (family.h), and if present generation_config.json
 * and tokenizer_config.json (eos). */
MUST_CHECK err_code model_config_load(model_config *cfg, json_source docs, err_detail *detail);

#endif
