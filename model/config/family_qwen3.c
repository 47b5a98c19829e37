/* Qwen3: full attention in every layer, without gate, plain norms, rotation of the whole head;
 * dense or with experts; text alone. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {.head_dim = 128, .rotary_fraction = 1.0};
    config_refuse_flag(text, "use_sliding_window");
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    if (strcmp(cfg->family, "qwen3_moe") == 0) {
        cfg->norm_expert_weights = json_bool(json_get(text->object, "norm_topk_prob"), false);
        config_read_experts(cfg, text, false);
    }
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
}

const family FAMILY_QWEN3 = {
    .model_types = (const char *const[]){"qwen3", "qwen3_moe", NULL},
    .read = read,
};
