/* Qwen3-VL: Qwen3's layers with M-RoPE on the whole head, and a vision tower whose inner layers
 * also reach the decoder's first ones (DeepStack); dense or with experts. docs/model.md A.5,
 * C.2. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    const config_defaults defaults = {.head_dim = 128, .rotary_fraction = 1.0, .mrope_section = {24, 20, 20}};
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    if (strncmp(cfg->family, "qwen3_vl_moe", strlen("qwen3_vl_moe")) == 0) {
        cfg->norm_expert_weights = true; /* no field says so: it is not a choice here */
        config_read_experts(cfg, text, false);
    }
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
    const json *vision = json_get(top->object, "vision_config");
    const size_t n = json_len(json_get(vision, "deepstack_visual_indexes"));
    if (n > (size_t)cfg->n_layers) {
        config_fail(top, ERR_INVALID, "\"deepstack_visual_indexes\" names %zu layers; the decoder has %d", n,
                    cfg->n_layers);
    }
    cfg->n_deepstack = *top->err ? 0 : (int32_t)n;
}

const family FAMILY_QWEN3_VL = {
    .model_types =
        (const char *const[]){"qwen3_vl", "qwen3_vl_text", "qwen3_vl_moe", "qwen3_vl_moe_text", NULL},
    .read = read,
};
