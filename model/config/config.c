#include "model/config/config.h"

bool model_config_is_stop(const model_config *cfg, int32_t id)
{
    for (int32_t i = 0; i < cfg->n_stop_ids; i++) {
        if (cfg->stop_ids[i] == id) {
            return true;
        }
    }
    return false;
}

void model_config_add_stop(model_config *cfg, int64_t id)
{
    if (id < 0 || id >= cfg->vocab_size || cfg->n_stop_ids == MODEL_MAX_STOP_IDS ||
        model_config_is_stop(cfg, (int32_t)id)) {
        return;
    }
    cfg->stop_ids[cfg->n_stop_ids++] = (int32_t)id;
}
