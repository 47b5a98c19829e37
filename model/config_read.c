#include "model/config_read.h"

#include <math.h>
#include <string.h>

err_code config_read_int(int32_t *out, const config_section *s, const char *name, int32_t min, int32_t max,
                         int32_t fallback)
{
    const json *v = json_get(s->object, name);
    int64_t value = 0;
    if (!v || json_is(v, JSON_NULL)) {
        if (fallback == INT32_MIN) {
            return err_set(s->detail, ERR_INVALID, "%s: \"%s\" is missing", s->path, name);
        }
        *out = fallback;
        return ERR_OK;
    }
    if (!json_int(v, min, max, &value)) {
        return err_set(s->detail, ERR_INVALID, "%s: \"%s\" must be an integer from %d to %d", s->path, name,
                       min, max);
    }
    *out = (int32_t)value;
    return ERR_OK;
}

static err_code read_required(int32_t *out, const config_section *s, const char *name, int32_t max)
{
    return config_read_int(out, s, name, 1, max, INT32_MIN);
}

err_code config_read_number(double *out, const config_section *s, const char *name, double min, double max,
                            double fallback)
{
    const json *v = json_get(s->object, name);
    double value = fallback;
    if (v && !json_is(v, JSON_NULL)) {
        value = json_num(v, NAN);
    }
    if (!(value >= min && value <= max)) {
        return err_set(s->detail, ERR_INVALID, "%s: \"%s\" must be a number from %g to %g", s->path, name,
                       min, max);
    }
    *out = value;
    return ERR_OK;
}

err_code config_expect_word(const config_section *s, const char *name, const char *word, const char *other)
{
    const json *v = json_get(s->object, name);
    const char *text = json_str(v, NULL);
    if (!v || json_is(v, JSON_NULL)) {
        return ERR_OK;
    }
    if (!text || (strcmp(text, word) != 0 && strcmp(text, other) != 0)) {
        return err_set(s->detail, ERR_UNSUPPORTED, "%s: \"%s\" is \"%.40s\"; only \"%s\" is supported",
                       s->path, name, text ? text : "not a text", word);
    }
    return ERR_OK;
}

err_code config_refuse_flag(const config_section *s, const char *name)
{
    if (json_is_true(json_get(s->object, name))) {
        return err_set(s->detail, ERR_UNSUPPORTED, "%s: \"%s\": true is not supported", s->path, name);
    }
    return ERR_OK;
}

err_code config_read_sizes(model_config *cfg, const config_section *text, const config_defaults *d)
{
    double eps = 0;
    err_code err = read_required(&cfg->vocab_size, text, "vocab_size", CONFIG_MAX_VOCAB);
    if (!err) {
        err = read_required(&cfg->hidden_size, text, "hidden_size", CONFIG_MAX_WIDTH);
    }
    if (!err) {
        err = read_required(&cfg->n_layers, text, "num_hidden_layers", MODEL_MAX_LAYERS);
    }
    if (!err) {
        err = read_required(&cfg->n_heads, text, "num_attention_heads", CONFIG_MAX_HEADS);
    }
    if (!err) {
        err = read_required(&cfg->n_kv_heads, text, "num_key_value_heads", CONFIG_MAX_HEADS);
    }
    if (!err) {
        err = config_read_int(&cfg->head_dim, text, "head_dim", 2, CONFIG_MAX_HEAD_DIM, d->head_dim);
    }
    if (!err) {
        err = config_read_int(&cfg->max_position_embeddings, text, "max_position_embeddings", 1,
                              CONFIG_MAX_CONTEXT, 32768);
    }
    if (!err) {
        err = config_read_number(&eps, text, "rms_norm_eps", 0.0, 1.0, 1e-6);
    }
    if (err) {
        return err;
    }
    cfg->rms_norm_eps = (float)eps;
    if (cfg->n_heads % cfg->n_kv_heads != 0) {
        return err_set(text->detail, ERR_INVALID, "%s: %d query heads are no multiple of %d key heads",
                       text->path, cfg->n_heads, cfg->n_kv_heads);
    }
    return ERR_OK;
}

/* layer_types as it is in the file. */
static err_code read_layer_types(model_config *cfg, const config_section *text, const json *types,
                                 bool all_attention)
{
    int32_t i = 0;
    if (!json_is(types, JSON_ARRAY) || json_len(types) != (size_t)cfg->n_layers) {
        return err_set(text->detail, ERR_INVALID, "%s: \"layer_types\" must list %d layers", text->path,
                       cfg->n_layers);
    }
    for (const json *v = json_child(types); v; v = json_next(v), i++) {
        const char *kind = json_str(v, "");
        if (strcmp(kind, "full_attention") == 0) {
            cfg->layers[i] = LAYER_ATTENTION;
        } else if (strcmp(kind, "linear_attention") == 0 && !all_attention) {
            cfg->layers[i] = LAYER_DELTANET;
        } else {
            return err_set(text->detail, ERR_UNSUPPORTED, "%s: layer %d is of type \"%.40s\"", text->path, i,
                           kind);
        }
    }
    return ERR_OK;
}

err_code config_read_layers(model_config *cfg, const config_section *text, int32_t interval)
{
    const json *types = json_get(text->object, "layer_types");
    const bool all_attention = interval == 1;
    err_code err = ERR_OK;
    if (!all_attention) {
        err = config_read_int(&interval, text, "full_attention_interval", 1, MODEL_MAX_LAYERS, interval);
    }
    if (err) {
        return err;
    }
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->layers[i] = (i + 1) % interval == 0 ? LAYER_ATTENTION : LAYER_DELTANET;
    }
    if (types && !json_is(types, JSON_NULL)) {
        err = read_layer_types(cfg, text, types, all_attention);
    }
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->n_attention_layers += cfg->layers[i] == LAYER_ATTENTION;
        cfg->n_deltanet_layers += cfg->layers[i] == LAYER_DELTANET;
    }
    return err;
}

err_code config_read_deltanet(model_config *cfg, const config_section *text)
{
    if (cfg->n_deltanet_layers == 0) {
        return ERR_OK;
    }
    err_code err = read_required(&cfg->delta_n_k, text, "linear_num_key_heads", CONFIG_MAX_HEADS);
    if (!err) {
        err = read_required(&cfg->delta_n_v, text, "linear_num_value_heads", CONFIG_MAX_HEADS);
    }
    if (!err) {
        err = read_required(&cfg->delta_dk, text, "linear_key_head_dim", CONFIG_MAX_HEAD_DIM);
    }
    if (!err) {
        err = read_required(&cfg->delta_dv, text, "linear_value_head_dim", CONFIG_MAX_HEAD_DIM);
    }
    if (!err) {
        err = config_read_int(&cfg->conv_kernel, text, "linear_conv_kernel_dim", 1, 64, 4);
    }
    if (!err && cfg->conv_kernel != 4) {
        err = err_set(text->detail, ERR_UNSUPPORTED,
                      "%s: \"linear_conv_kernel_dim\" is %d; only 4 is supported", text->path,
                      cfg->conv_kernel);
    }
    if (!err && cfg->delta_n_v % cfg->delta_n_k != 0) {
        err = err_set(text->detail, ERR_INVALID,
                      "%s: %d value heads are no multiple of %d key heads (linear_num_*_heads)", text->path,
                      cfg->delta_n_v, cfg->delta_n_k);
    }
    return err;
}

/* Which axis each pair of a head reads. Without sections all read the first, as text needs. */
static err_code read_mrope(model_config *cfg, const config_section *text, const json *params,
                           const config_defaults *d)
{
    const json *sections = json_get(params, "mrope_section");
    int32_t sum = 0, i = 0;
    if (!sections && d->mrope_section[0] == 0) {
        cfg->mrope_section[0] = cfg->rope_pairs;
        cfg->mrope_interleaved = true;
        return ERR_OK;
    }
    memcpy(cfg->mrope_section, d->mrope_section, sizeof cfg->mrope_section);
    for (const json *v = json_child(sections); v && i < 3; v = json_next(v), i++) {
        int64_t n = -1;
        if (!json_int(v, 0, cfg->rope_pairs, &n)) {
            return err_set(text->detail, ERR_INVALID, "%s: \"mrope_section\" must hold three counts of pairs",
                           text->path);
        }
        cfg->mrope_section[i] = (int32_t)n;
    }
    for (i = 0; i < 3; i++) {
        sum += cfg->mrope_section[i];
    }
    if ((sections && json_len(sections) != 3) || sum != cfg->rope_pairs) {
        return err_set(text->detail, ERR_INVALID,
                       "%s: \"mrope_section\" must be three counts with the sum %d (rotary pairs)",
                       text->path, cfg->rope_pairs);
    }
    cfg->mrope_interleaved = json_bool(json_get(params, "mrope_interleaved"), true);
    if (!cfg->mrope_interleaved) {
        return err_set(text->detail, ERR_UNSUPPORTED, "%s: \"mrope_interleaved\": false is not supported",
                       text->path);
    }
    return ERR_OK;
}

err_code config_read_rope(model_config *cfg, const config_section *text, const config_defaults *d)
{
    const json *params = json_get(text->object, "rope_parameters");
    config_section rope = *text;
    double factor = 0, outer_factor = 0;
    err_code err =
        config_read_number(&outer_factor, text, "partial_rotary_factor", 0.0, 1.0, d->rotary_share);
    if (err) {
        return err;
    }
    if (!params) {
        params = json_get(text->object, "rope_scaling");
    }
    if (params && json_is(params, JSON_OBJECT)) {
        rope.object = params;
    }
    err = config_expect_word(&rope, "rope_type", "default", "default");
    if (!err) {
        err = config_read_number(&factor, &rope, "partial_rotary_factor", 0.0, 1.0, outer_factor);
    }
    if (!err && !json_get(rope.object, "rope_theta")) {
        rope.object = text->object; /* older exports keep theta beside rope_scaling */
    }
    if (!err) {
        err = config_read_number(&cfg->rope_theta, &rope, "rope_theta", 1.0, 1e12, NAN);
    }
    if (err) {
        return err;
    }
    cfg->rope_pairs = (int32_t)(cfg->head_dim * factor) / 2;
    if (cfg->rope_pairs < 1) {
        return err_set(text->detail, ERR_INVALID, "%s: \"partial_rotary_factor\" leaves no rotary dimensions",
                       text->path);
    }
    return read_mrope(cfg, text, params, d);
}

err_code config_read_dense(model_config *cfg, const config_section *text)
{
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        if (!cfg->has_experts[i]) {
            return read_required(&cfg->intermediate_size, text, "intermediate_size", CONFIG_MAX_WIDTH);
        }
    }
    return ERR_OK;
}

err_code config_read_experts(model_config *cfg, const config_section *text, bool shared)
{
    int32_t step = 1;
    /* Newer versions of transformers write the second name for every family. */
    const char *n_experts =
        json_get(text->object, "num_experts") || !json_get(text->object, "num_local_experts")
            ? "num_experts"
            : "num_local_experts";
    err_code err = read_required(&cfg->n_experts, text, n_experts, CONFIG_MAX_EXPERTS);
    if (!err) {
        err = read_required(&cfg->n_experts_used, text, "num_experts_per_tok", MODEL_MAX_EXPERTS_USED);
    }
    if (!err && cfg->n_experts_used > cfg->n_experts) {
        err = err_set(text->detail, ERR_INVALID, "%s: \"num_experts_per_tok\" is %d of %d experts",
                      text->path, cfg->n_experts_used, cfg->n_experts);
    }
    if (!err) {
        err = read_required(&cfg->expert_size, text, "moe_intermediate_size", CONFIG_MAX_WIDTH);
    }
    if (!err && shared) {
        err = read_required(&cfg->shared_expert_size, text, "shared_expert_intermediate_size",
                            CONFIG_MAX_WIDTH);
    }
    if (!err) {
        err = config_read_int(&step, text, "decoder_sparse_step", 1, MODEL_MAX_LAYERS, 1);
    }
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->has_experts[i] = (i + 1) % step == 0;
    }
    for (const json *v = json_child(json_get(text->object, "mlp_only_layers")); !err && v; v = json_next(v)) {
        int64_t layer = 0;
        if (!json_int(v, 0, cfg->n_layers - 1, &layer)) {
            return err_set(text->detail, ERR_INVALID, "%s: \"mlp_only_layers\" must list layers from 0 to %d",
                           text->path, cfg->n_layers - 1);
        }
        cfg->has_experts[layer] = false;
    }
    return err;
}

err_code config_read_mtp(model_config *cfg, const config_section *text, const char *name, int32_t fallback)
{
    err_code err = config_read_int(&cfg->n_mtp_layers, text, name, 0, 64, fallback);
    if (!err && cfg->n_mtp_layers > 1) {
        err = err_set(text->detail, ERR_UNSUPPORTED, "%s: \"%s\" is %d; at most 1 is supported", text->path,
                      name, cfg->n_mtp_layers);
    }
    return err;
}
