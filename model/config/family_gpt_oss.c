/* GPT-OSS: full and sliding attention by turns, each head with a sink; biases throughout; YaRN; a
 * clamped SwiGLU; experts in every layer, published in MXFP4. docs/model.md B.3, B.6. */
#include <string.h>

#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    const config_defaults defaults = {.head_dim = 64, .rotary_fraction = 1.0};
    cfg->attention_biases = json_bool(json_get(text->object, "attention_bias"), true);
    cfg->attention_sinks = true;
    cfg->qk_norm = QK_NORM_NONE;
    cfg->ffn = FFN_SWIGLU_CLAMPED;
    cfg->swiglu_limit = config_number(text, "swiglu_limit", 1e-3, 1e6, 7.0);
    cfg->expert_biases = true;
    cfg->norm_expert_weights = true; /* the softmax is taken over the experts that were chosen */
    config_read_sizes(cfg, text, &defaults);
    config_read_sliding(cfg, text);
    config_read_rope(cfg, text, &defaults);
    config_read_experts(cfg, text, false);
}

const family FAMILY_GPT_OSS = {
    .model_types = (const char *const[]){"gpt_oss", NULL},
    .read = read,
    .packed_by = "mxfp4",
};
