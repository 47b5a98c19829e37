/* Nemotron-H, and Nemotron 3 (Nano, Super), which has its form: a layer is one part alone, Mamba-2,
 * attention without positions, a feed-forward part without gate, or experts behind a sigmoid router,
 * which may read a narrower latent. docs/model.md B.6, B.7. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "model/config/family.h"

/* The part that a layer is: by a letter of hybrid_override_pattern, or by a name, older or newer, in
 * layers_block_type. */
static const struct {
    const char *names[3];
    layer_kind kind;
    feed_kind feed;
} PARTS[] = {
    {{"M", "mamba", "linear_attention"}, LAYER_MAMBA, FEED_NONE},
    {{"*", "attention", "full_attention"}, LAYER_ATTENTION, FEED_NONE},
    {{"E", "moe", "moe"}, LAYER_NONE, FEED_EXPERTS},
    {{"-", "mlp", "mlp"}, LAYER_NONE, FEED_DENSE},
};

static void add_layer(model_config *cfg, const config_section *text, const char *name)
{
    const int32_t i = cfg->n_layers;
    if (i == MODEL_MAX_LAYERS) {
        config_fail(text, ERR_LIMIT, "the pattern of layers is longer than %d", MODEL_MAX_LAYERS);
        return;
    }
    for (size_t k = 0; k < ARRAY_LEN(PARTS); k++) {
        for (size_t n = 0; n < ARRAY_LEN(PARTS[k].names); n++) {
            if (strcmp(name, PARTS[k].names[n]) == 0) {
                cfg->layers[i] = PARTS[k].kind;
                cfg->feeds[i] = PARTS[k].feed;
                cfg->n_layers++;
                return;
            }
        }
    }
    config_fail(text, ERR_UNSUPPORTED,
                "layer %d is of type \"%.40s\"; those of this family are mamba (M), attention (*), moe (E) "
                "and mlp (-)",
                i, name);
}

static void read_layers(model_config *cfg, const config_section *text)
{
    const json *types = json_get(text->object, "layers_block_type");
    const char *pattern = json_str(json_get(text->object, "hybrid_override_pattern"), NULL);
    if (json_is(types, JSON_ARRAY)) {
        for (const json *v = json_child(types); v && !*text->err; v = json_next(v)) {
            add_layer(cfg, text, json_str(v, ""));
        }
    } else {
        for (; pattern && *pattern && !*text->err; pattern++) {
            add_layer(cfg, text, (char[]){*pattern, '\0'});
        }
    }
    const int32_t n = config_int(text, "num_hidden_layers", 1, MODEL_MAX_LAYERS, cfg->n_layers);
    if (cfg->n_layers == 0) {
        config_fail(text, ERR_INVALID,
                    "\"layers_block_type\" or \"hybrid_override_pattern\" must say what each layer is");
    } else if (n != cfg->n_layers) {
        config_fail(text, ERR_INVALID, "the pattern of layers names %d of %d", cfg->n_layers, n);
    }
    config_count_layers(cfg);
}

static void read_mamba(model_config *cfg, const config_section *text)
{
    const json *limits = json_get(text->object, "time_step_limit");
    config_refuse_flag(text, "mamba_proj_bias");
    config_refuse_flag(text, "use_bias");
    config_expect_word(text, "mamba_hidden_act", "silu", "swish");
    cfg->delta_n_v = config_int(text, "mamba_num_heads", 1, CONFIG_MAX_HEADS, INT32_MIN);
    cfg->delta_dv = config_int(text, "mamba_head_dim", 1, CONFIG_MAX_HEAD_DIM, INT32_MIN);
    cfg->delta_n_k = config_int(text, "n_groups", 1, CONFIG_MAX_HEADS, INT32_MIN);
    cfg->delta_dk = config_int(text, "ssm_state_size", 1, CONFIG_MAX_HEAD_DIM, INT32_MIN);
    cfg->conv_kernel = config_int(text, "conv_kernel", 1, 64, 4);
    cfg->mamba_conv_bias = json_bool(json_get(text->object, "use_conv_bias"), true);
    /* an infinite limit is no number in JSON: however it is written, none is meant */
    cfg->mamba_least_dt = (float)json_num(json_child(limits), 0);
    cfg->mamba_most_dt = limits && json_len(limits) == 2
                             ? (float)json_num(json_next(json_child(limits)), (double)INFINITY)
                             : INFINITY;
    if (cfg->conv_kernel != 4) {
        config_fail(text, ERR_UNSUPPORTED, "\"conv_kernel\" is %d; only 4 is supported", cfg->conv_kernel);
    }
    if (cfg->delta_n_v % cfg->delta_n_k != 0) {
        config_fail(text, ERR_INVALID, "%d heads (\"mamba_num_heads\") are not a multiple of %d groups",
                    cfg->delta_n_v, cfg->delta_n_k);
    }
    if (!(cfg->mamba_least_dt >= 0 && cfg->mamba_most_dt >= cfg->mamba_least_dt)) {
        config_fail(text, ERR_INVALID, "\"time_step_limit\" must be two numbers, the smaller first");
    }
}

static void read_experts(model_config *cfg, const config_section *text)
{
    bool any = false;
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        any = any || cfg->feeds[i] == FEED_EXPERTS;
    }
    if (!any) {
        return;
    }
    config_read_expert_sizes(cfg, text, "n_routed_experts");
    cfg->expert_size = config_int(text, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    config_read_sigmoid_router(cfg, text);
    cfg->expert_latent_size = config_int(text, "moe_latent_size", 1, CONFIG_MAX_WIDTH, 0);
    cfg->shared_expert_ungated = true;
    if (config_int(text, "n_shared_experts", 0, CONFIG_MAX_EXPERTS, 1) > 0) {
        cfg->shared_expert_size =
            config_int(text, "moe_shared_expert_intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    }
}

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    config_refuse_flag(text, "mlp_bias");
    config_expect_word(text, "mlp_hidden_act", "relu2", "relu2");
    if (json_is(json_get(text->object, "sliding_window"), JSON_NUMBER)) {
        config_fail(text, ERR_UNSUPPORTED, "\"sliding_window\" is not supported in this family");
    }
    read_layers(cfg, text);
    const config_defaults defaults = {.head_dim =
                                          config_int(text, "attention_head_dim", 2, CONFIG_MAX_HEAD_DIM, 128),
                                      .n_layers = cfg->n_layers};
    config_read_sizes(cfg, text, &defaults);
    cfg->rms_norm_eps = (float)config_number(text, "layer_norm_epsilon", 0.0, 1.0, 1e-5);
    cfg->ffn = FFN_RELU2;
    cfg->qk_norm = QK_NORM_NONE;
    cfg->full.rope.theta = 1; /* nothing is rotated */
    if (cfg->n_recurrent_layers > 0) {
        read_mamba(cfg, text);
    }
    read_experts(cfg, text);
    config_read_dense(cfg, text);
}

const family FAMILY_NEMOTRON_H = {
    .model_types = (const char *const[]){"nemotron_h", NULL},
    .read = read,
};
