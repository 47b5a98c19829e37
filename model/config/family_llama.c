/* Llama 3.x, and what has its form: full attention in every layer without norms of queries and keys,
 * dense. Llama 3's frequencies follow from rope_type (config_read_rope). docs/model.md A.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {
        .head_dim = config_head_dim(text), .rotary_fraction = 1.0, .rope_theta = 10000.0};
    config_refuse_flag(text, "mlp_bias");
    cfg->qk_norm = QK_NORM_NONE;
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
}

const family FAMILY_LLAMA = {
    .model_types = (const char *const[]){"llama", NULL},
    .read = read,
};
