/* SmolLM3: Llama's layers, some of them (every fourth as published) without rotation. docs/model.md
 * A.5. */
#include "model/config/family.h"

static void read(model_config *cfg, const config_section *top, const config_section *text)
{
    (void)top;
    config_refuse_flag(text, "use_sliding_window");
    config_read_llama(cfg, text);
    const json *rotated = json_get(text->object, "no_rope_layers"); /* 1 where a layer rotates */
    const int32_t interval = config_int(text, "no_rope_layer_interval", 1, MODEL_MAX_LAYERS, 4);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->no_rope[i] = (i + 1) % interval == 0;
    }
    if (json_is(rotated, JSON_ARRAY) && json_len(rotated) != (size_t)cfg->n_layers) {
        config_fail(text, ERR_INVALID, "\"no_rope_layers\" must list %d layers", cfg->n_layers);
        return;
    }
    int32_t i = 0;
    for (const json *v = json_is(rotated, JSON_ARRAY) ? json_child(rotated) : NULL; v; v = json_next(v)) {
        cfg->no_rope[i++] = json_num(v, 1) == 0;
    }
}

const family FAMILY_SMOLLM3 = {
    .model_types = (const char *const[]){"smollm3", NULL},
    .read = read,
};
