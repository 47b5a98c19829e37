/* Qwen3-Next: layers as in Qwen3.5, text alone; the projections of GatedDeltaNet may be fused
 * (in_proj_qkvz, in_proj_ba), and not every layer has to have experts. docs/model.md A.5, B.4.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {.head_dim = 256, .rotary_fraction = 0.25};
    cfg->zero_centred_norms = true;
    cfg->attention_gate = true;
    cfg->norm_expert_weights = json_bool(json_get(text->object, "norm_topk_prob"), true);
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 4);
    config_read_deltanet(cfg, text);
    config_read_experts(cfg, text, true);
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
    /* Released files name no number; whether the head is there is seen from its tensors. */
    const bool own = json_get(text->object, "mtp_num_hidden_layers") != NULL;
    config_read_mtp(cfg, text, own ? "mtp_num_hidden_layers" : "num_nextn_predict_layers", 1);
}

const family FAMILY_QWEN3_NEXT = {
    .model_types = (const char *const[]){"qwen3_next", NULL},
    .read = read,
};
