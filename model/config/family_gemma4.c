/* Gemma 4: sliding attention with full attention now and then, each kind with its own heads and
 * positions; norms before and behind every part; the last layers may read the caches of earlier ones,
 * values may be keys, layers may have inputs of their own (E2B, E4B), experts may stand beside the
 * dense part (26B-A4B). docs/model.md B.8. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "model/config/family.h"

/* What the full layers have in the place of the usual: in fields of their own, or, as newer versions of
 * transformers write it, layer by layer. */
static void read_full(model_config *cfg, const config_section *text)
{
    const bool same = json_is_true(json_get(text->object, "attention_k_eq_v"));
    const json *by_layer = json_get(text->object, "per_layer_config");
    attention_spec *full = &cfg->full;
    full->keys_are_values = same;
    full->head_dim = config_int(text, "global_head_dim", 2, CONFIG_MAX_HEAD_DIM, full->head_dim);
    if (same) {
        full->n_kv_heads =
            config_int(text, "num_global_key_value_heads", 1, CONFIG_MAX_HEADS, full->n_kv_heads);
    }
    const json *first = json_is(by_layer, JSON_OBJECT) ? json_child(by_layer) : NULL;
    for (const json *v = first; v; v = json_next(v)) {
        int64_t layer = 0, hd = full->head_dim, heads = full->n_kv_heads;
        for (const char *digit = json_key(v); *digit; digit++) {
            layer = layer < MODEL_MAX_LAYERS ? 10 * layer + *digit - '0' : layer;
        }
        const bool fits = layer >= 0 && layer < cfg->n_layers && cfg->layers[layer] == LAYER_ATTENTION;
        json_int(json_get(v, "head_dim"), 2, CONFIG_MAX_HEAD_DIM, &hd);
        json_int(json_get(v, "num_key_value_heads"), 1, CONFIG_MAX_HEADS, &heads);
        if (!fits || (v != first && (hd != full->head_dim || heads != full->n_kv_heads))) {
            config_fail(text, ERR_UNSUPPORTED,
                        "\"per_layer_config\": layer %.20s differs from those of its kind", json_key(v));
        }
        full->head_dim = (int32_t)hd;
        full->n_kv_heads = (int32_t)heads;
    }
    if (cfg->n_heads % full->n_kv_heads != 0) {
        config_fail(text, ERR_INVALID, "%d query heads are not a multiple of %d key heads of full layers",
                    cfg->n_heads, full->n_kv_heads);
    }
}

static void read_layers(model_config *cfg, const config_section *text)
{
    if (!json_is(json_get(text->object, "layer_types"), JSON_ARRAY)) {
        config_fail(text, ERR_INVALID, "\"layer_types\" is missing");
    }
    cfg->n_shared_layers = config_int(text, "num_kv_shared_layers", 0, cfg->n_layers - 1, 0);
    config_read_sliding(cfg, text);
    for (int32_t i = cfg->n_layers - cfg->n_shared_layers; i < cfg->n_layers; i++) {
        int32_t k = 0;
        while (k < cfg->n_layers - cfg->n_shared_layers && cfg->layers[k] != cfg->layers[i]) {
            k++;
        }
        if (k == cfg->n_layers - cfg->n_shared_layers) {
            config_fail(text, ERR_INVALID, "\"num_kv_shared_layers\" leaves no layer of the kind of layer %d",
                        i);
        }
    }
}

static void read_experts(model_config *cfg, const config_section *text)
{
    const bool any = json_is_true(json_get(text->object, "enable_moe_block"));
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->feeds[i] = any ? FEED_BOTH : FEED_DENSE;
    }
    if (!any) {
        return;
    }
    cfg->n_experts = config_int(text, "num_experts", 1, CONFIG_MAX_EXPERTS, INT32_MIN);
    cfg->n_experts_used = config_int(text, "top_k_experts", 1, MODEL_MAX_EXPERTS_USED, INT32_MIN);
    cfg->expert_size = config_int(text, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    cfg->norm_expert_weights = cfg->router_norm = cfg->expert_scales = true;
    cfg->routed_scale = 1.0f;
    if (cfg->n_experts_used > cfg->n_experts) {
        config_fail(text, ERR_INVALID, "\"top_k_experts\" is %d of %d experts", cfg->n_experts_used,
                    cfg->n_experts);
    }
}

static void read_layer_inputs(model_config *cfg, const config_section *text)
{
    cfg->layer_input_size = config_int(text, "hidden_size_per_layer_input", 0, CONFIG_MAX_WIDTH, 0);
    cfg->pad_token_id = config_int(text, "pad_token_id", 0, cfg->vocab_size - 1, 0);
    if (cfg->layer_input_size > 0) {
        cfg->layer_input_vocab = config_int(text, "vocab_size_per_layer_input", cfg->vocab_size,
                                            CONFIG_MAX_VOCAB, cfg->vocab_size);
    }
}

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    const config_defaults defaults = {.head_dim = 256, .rotary_fraction = 1.0};
    config_expect_word(text, "hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh");
    config_expect_word(text, "use_bidirectional_attention", "vision", "vision");
    if (json_is(json_get(top->object, "audio_config"), JSON_OBJECT)) {
        log_warn("model", "%s: its audio tower is not supported; text and images work", top->path);
    }
    config_read_sizes(cfg, text, &defaults);
    read_layers(cfg, text);
    read_full(cfg, text);
    config_read_kind_rope(cfg, text, "full_attention", &cfg->full);
    if (cfg->n_sliding_layers > 0) {
        config_read_kind_rope(cfg, text, "sliding_attention", &cfg->sliding);
    }
    cfg->media_see_both_ways = json_str(json_get(text->object, "use_bidirectional_attention"), NULL) != NULL;
    cfg->bare_placeholders = true;
    cfg->attention_scale = 1.0;
    cfg->value_norm = cfg->output_norms = cfg->layer_scalars = true;
    cfg->ffn = FFN_GELU_TANH;
    cfg->embed_scale = sqrtf((float)cfg->hidden_size);
    cfg->logit_softcap = (float)config_number(text, "final_logit_softcapping", 0.0, 1e6, 0.0);
    cfg->shared_layers_are_wide = json_is_true(json_get(text->object, "use_double_wide_mlp"));
    read_experts(cfg, text);
    cfg->intermediate_size = config_int(text, "intermediate_size", 1, CONFIG_MAX_WIDTH, INT32_MIN);
    read_layer_inputs(cfg, text);
}

const family FAMILY_GEMMA4 = {
    .model_types = (const char *const[]){"gemma4", "gemma4_text", NULL},
    .read = read,
};
