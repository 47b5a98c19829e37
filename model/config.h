/* config: model_config, the immutable recipe read from config.json and generation_config.json. Plain data.
 *
 *     model_config cfg; model_config_load(&cfg, "DIR", &detail);
 *
 * Every number is validated here, so later code may multiply without fear. Names follow config.json.
 */
#ifndef PARLEY_MODEL_CONFIG_H
#define PARLEY_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MODEL_MAX_LAYERS = 256, MODEL_MAX_STOP_IDS = 16 };

typedef enum layer_kind { LAYER_DELTANET, LAYER_ATTENTION } layer_kind;

typedef struct model_config {
    char family[48]; /* model_type at the top level: "qwen3_5" */
    int32_t vocab_size, hidden_size, intermediate_size, n_layers;
    int32_t n_heads, n_kv_heads, head_dim;
    layer_kind layers[MODEL_MAX_LAYERS];
    int32_t n_attention_layers, n_deltanet_layers;
    /* GatedDeltaNet */
    int32_t delta_n_k, delta_n_v, delta_dk, delta_dv, conv_kernel;
    /* rotary positions */
    double rope_theta;
    int32_t rope_pairs;       /* head_dim * partial_rotary_factor / 2 */
    int32_t mrope_section[3]; /* T, H, W */
    bool mrope_interleaved;
    float rms_norm_eps;
    bool tie_word_embeddings;
    int32_t max_position_embeddings;
    int32_t n_mtp_layers; /* 0 or 1, from the config; model_has_mtp says whether the tensors are there */
    /* special ids, -1 if absent */
    int32_t image_token_id, video_token_id, vision_start_token_id, vision_end_token_id;
    int32_t stop_ids[MODEL_MAX_STOP_IDS]; /* generation_config eos united with the tokenizer's eos */
    int32_t n_stop_ids;
    char eos_token[64]; /* the tokenizer's eos as text, "" if unknown; model_open adds its id to stop_ids */
    bool has_vision;    /* a vision_config is present */
    /* generation_config.json; has_* false where the file is silent */
    bool do_sample;
    float temperature, top_p, min_p, repetition_penalty;
    int32_t top_k;
} model_config;

/* Reads DIR/config.json and, if present, generation_config.json, tokenizer_config.json (eos). */
MUST_CHECK err_code model_config_load(model_config *cfg, const char *dir, err_detail *detail);

/* Whether the id ends an answer. */
bool model_config_is_stop(const model_config *cfg, int32_t id);

/* Adds an id to stop_ids unless it is there, out of the vocabulary, or the list is full. */
void model_config_add_stop(model_config *cfg, int64_t id);

#endif
