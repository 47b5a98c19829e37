/* Mistral, and Ministral 3 (its text alone): Llama's layers, all of them with a window where the file names one;
 * Ministral 3's queries grow behind the context that YaRN began with. docs/model.md A.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    const config_defaults defaults = {
        .head_dim = config_head_dim(text), .rotary_fraction = 1.0, .rope_theta = 10000.0};
    const json *window = json_get(text->object, "sliding_window");
    cfg->text_alone = text->object != top->object; /* mistral3 has a tower, which is not supported */
    cfg->qk_norm = QK_NORM_NONE;
    config_read_sizes(cfg, text, &defaults);
    const bool windowed = window && !json_is(window, JSON_NULL);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->layers[i] = windowed ? LAYER_SLIDING : LAYER_ATTENTION;
    }
    config_read_windows(cfg, text);
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
    config_section rope = *text;
    rope.object = json_get(text->object, "rope_parameters");
    if (json_is(rope.object, JSON_OBJECT)) {
        cfg->query_growth = config_number(&rope, "llama_4_scaling_beta", 0.0, 100.0, 0.0);
        cfg->query_growth_tokens = config_int(&rope, "original_max_position_embeddings", 1,
                                              CONFIG_MAX_CONTEXT, cfg->max_position_embeddings);
    }
}

const family FAMILY_MISTRAL = {
    .model_types = (const char *const[]){"mistral", "ministral3", "mistral3", NULL},
    .read = read,
};
