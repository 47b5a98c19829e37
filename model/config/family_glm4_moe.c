/* GLM-4.5 to 4.7 with experts: a sigmoid router with a bias, experts behind the first dense layers and a
 * shared one beside them, half of a head rotated, biases and norms of queries and keys by the file.
 * Its draft layer is not used. docs/model.md A.5, B.6. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {.head_dim = config_head_dim(text), .rotary_fraction = 0.5};
    cfg->qk_norm = json_is_true(json_get(text->object, "use_qk_norm")) ? QK_NORM_HEAD : QK_NORM_NONE;
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    config_read_expert_sizes(cfg, text, "n_routed_experts");
    cfg->expert_size = config_int(text, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    cfg->shared_expert_size = cfg->expert_size * config_int(text, "n_shared_experts", 0, 64, 1);
    cfg->shared_expert_ungated = true;
    config_read_sigmoid_router(cfg, text);
    const int32_t first = config_int(text, "first_k_dense_replace", 0, MODEL_MAX_LAYERS, 1);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->feeds[i] = i < first ? FEED_DENSE : FEED_EXPERTS;
    }
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
}

const family FAMILY_GLM4_MOE = {
    .model_types = (const char *const[]){"glm4_moe", NULL},
    .read = read,
};
