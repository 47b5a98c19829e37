/* Qwen2 and Qwen2.5: Llama's layers with biases of queries, keys and values; the last of them may have
 * a window. Their models that see have three axes of positions, whose pairs stand one axis after the
 * other. docs/model.md A.5, C.5. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    const config_defaults defaults = {.head_dim = config_head_dim(text),
                                      .rotary_fraction = 1.0,
                                      .rope_theta = 10000.0,
                                      .mrope_split = true};
    const json *vision = json_get(top->object, "vision_config");
    cfg->whole_videos = strstr(cfg->family, "_vl") != NULL;
    if (json_is(vision, JSON_OBJECT) && strncmp(cfg->family, "qwen2_5_vl", strlen("qwen2_5_vl")) == 0) {
        const config_section tower = {vision, top->path, top->detail, top->err};
        cfg->positions_per_second = config_number(&tower, "tokens_per_second", 0.0, 1e4, 4.0);
    }
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
    .model_types =
        (const char *const[]){"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", NULL},
    .read = read,
};
