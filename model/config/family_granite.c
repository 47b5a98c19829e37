/* Granite 3: Llama's layers with multipliers of embeddings, of what layers add, of attention and of
 * logits. docs/model.md A.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    cfg->embed_scale = (float)config_number(text, "embedding_multiplier", 1e-6, 1e6, 1.0);
    cfg->residual_scale = (float)config_number(text, "residual_multiplier", 1e-6, 1e6, 1.0);
    cfg->attention_scale = config_number(text, "attention_multiplier", 1e-6, 1e6, 1.0);
    cfg->logit_scale = (float)(1.0 / config_number(text, "logits_scaling", 1e-6, 1e6, 1.0));
    config_read_llama(cfg, text);
}

const family FAMILY_GRANITE = {
    .model_types = (const char *const[]){"granite", NULL},
    .read = read,
};
