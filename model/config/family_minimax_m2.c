/* MiniMax-M2: attention in every layer, queries and keys normed over their whole width, rotation of a
 * part of the head; experts everywhere behind a sigmoid router with a bias. docs/model.md B.6. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const int32_t head_dim = config_int(text, "head_dim", 2, CONFIG_MAX_HEAD_DIM, 128);
    const int32_t rotary = config_int(text, "rotary_dim", 2, head_dim, head_dim / 2);
    const config_defaults defaults = {.head_dim = head_dim,
                                      .rotary_fraction = (double)rotary / (double)head_dim};
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    cfg->qk_norm = QK_NORM_WIDTH;
    config_read_expert_sizes(cfg, text, "num_local_experts");
    cfg->expert_size = config_int(text, "intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    config_read_sigmoid_router(cfg, text);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->feeds[i] = FEED_EXPERTS;
    }
    config_read_rope(cfg, text, &defaults);
}

const family FAMILY_MINIMAX_M2 = {
    .model_types = (const char *const[]){"minimax_m2", NULL},
    .read = read,
};
