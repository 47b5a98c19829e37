/* MiniMax-M2: attention in every layer, queries and keys normed over their whole width, rotation of a
 * part of the head; experts everywhere behind a sigmoid router with a bias. docs/model.md B.6. */
#include "model/config/family.h"

/* What earlier models of this maker had, and the published ones do not. */
static void refuse_others(const config_section *text)
{
    const json *layers = json_get(text->object, "attn_type_list"),
               *norm = json_get(text->object, "use_qk_norm");
    config_expect_word(text, "qk_norm_type", "per_layer", "per_layer");
    if (json_is(norm, JSON_BOOL) && !json_is_true(norm)) {
        config_fail(text, ERR_UNSUPPORTED, "\"use_qk_norm\": false is not supported");
    }
    if (config_int(text, "shared_intermediate_size", 0, CONFIG_MAX_WIDTH, 0) > 0) {
        config_fail(text, ERR_UNSUPPORTED,
                    "\"shared_intermediate_size\": shared experts are not supported here");
    }
    for (const json *v = json_is(layers, JSON_ARRAY) ? json_child(layers) : NULL; v; v = json_next(v)) {
        if (json_num(v, 0) != 1) {
            config_fail(
                text, ERR_UNSUPPORTED,
                "\"attn_type_list\": linear attention (0) is not supported here, only full attention (1)");
        }
    }
}

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    refuse_others(text);
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
