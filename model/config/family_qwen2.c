/* Qwen2 and Qwen2.5: Llama's layers with biases of queries, keys and values; the last of them may have
 * a window. Of their models that see the text is read: it has one position on all three axes, so that it
 * does not matter how these share a head. docs/model.md A.5. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {
        .head_dim = config_head_dim(text), .rotary_fraction = 1.0, .rope_theta = 10000.0};
    cfg->text_alone = strstr(cfg->family, "_vl") != NULL; /* their tower is not supported */
    cfg->qk_norm = QK_NORM_NONE;
    cfg->attention_biases = true; /* no field says so: it is not a choice here */
    config_read_sizes(cfg, text, &defaults);
    const bool windows = json_is_true(json_get(text->object, "use_sliding_window"));
    const int32_t first = config_int(text, "max_window_layers", 0, INT32_MAX, 28);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->layers[i] = windows && i >= first ? LAYER_SLIDING : LAYER_ATTENTION;
    }
    config_read_windows(cfg, text);
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
}

const family FAMILY_QWEN2 = {
    .model_types = (const char *const[]){"qwen2", "qwen2_vl", "qwen2_5_vl", NULL},
    .read = read,
};
