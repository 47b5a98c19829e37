/* Qwen3.5, and 3.6 and 3.8, which have its form: GatedDeltaNet with gated full attention every
 * fourth layer, zero-centred norms, M-RoPE on a quarter of each head; dense or with experts, with
 * or without a vision tower. docs/model.md A, B. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {
        .head_dim = 256, .rotary_fraction = 0.25, .mrope_section = {11, 11, 10}};
    cfg->zero_centred_norms = true;
    cfg->attention_gate = true;
    cfg->norm_expert_weights = true; /* no field says so: it is not a choice here */
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 4);
    config_read_deltanet(cfg, text);
    if (strncmp(cfg->family, "qwen3_5_moe", strlen("qwen3_5_moe")) == 0) {
        config_read_experts(cfg, text, true);
    }
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
    config_read_mtp(cfg, text, "mtp_num_hidden_layers", 0);
}

const family FAMILY_QWEN3_5 = {
    .model_types = (const char *const[]){"qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", NULL},
    .read = read,
};
