/* Llama 3.x, and what has its form: full attention in every layer without norms of queries and keys,
 * dense. Llama 3's frequencies follow from rope_type (config_read_rope). docs/model.md A.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    config_read_llama(cfg, text);
}

const family FAMILY_LLAMA = {
    .model_types = (const char *const[]){"llama", NULL},
    .read = read,
};
