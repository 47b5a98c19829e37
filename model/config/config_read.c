#include "model/config/config_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void config_fail(const config_section *s, err_code code, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    if (*s->err) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *s->err = err_set(s->detail, code, "%s: %s", s->path, text);
}

int32_t config_int(const config_section *s, const char *name, int32_t min, int32_t max, int32_t fallback)
{
    const json *v = json_get(s->object, name);
    int64_t value = fallback;
    if (v && !json_is(v, JSON_NULL)) {
        if (!json_int(v, min, max, &value)) {
            config_fail(s, ERR_INVALID, "\"%s\" must be an integer from %d to %d", name, min, max);
        }
    } else if (fallback == INT32_MIN) {
        config_fail(s, ERR_INVALID, "\"%s\" is missing", name);
    }
    return *s->err ? min : (int32_t)value;
}

static int32_t required(const config_section *s, const char *name, int32_t max)
{
    return config_int(s, name, 1, max, INT32_MIN);
}

double config_number(const config_section *s, const char *name, double min, double max, double fallback)
{
    const json *v = json_get(s->object, name);
    const double value = v && !json_is(v, JSON_NULL) ? json_num(v, NAN) : fallback;
    if (!(value >= min && value <= max)) {
        config_fail(s, ERR_INVALID, "\"%s\" must be a number from %g to %g", name, min, max);
    }
    return *s->err ? min : value;
}

void config_expect_word(const config_section *s, const char *name, const char *word, const char *other)
{
    const json *v = json_get(s->object, name);
    const char *text = json_str(v, NULL);
    const bool fits = text && (strcmp(text, word) == 0 || strcmp(text, other) == 0);
    if (v && !json_is(v, JSON_NULL) && !fits) {
        config_fail(s, ERR_UNSUPPORTED, "\"%s\" is \"%.40s\"; only \"%s\" is supported", name,
                    text ? text : "not a text", word);
    }
}

void config_refuse_flag(const config_section *s, const char *name)
{
    if (json_is_true(json_get(s->object, name))) {
        config_fail(s, ERR_UNSUPPORTED, "\"%s\": true is not supported", name);
    }
}

int32_t config_head_dim(const config_section *text)
{
    const int32_t width = required(text, "hidden_size", CONFIG_MAX_WIDTH);
    const int32_t size = width / required(text, "num_attention_heads", CONFIG_MAX_HEADS);
    return size < 2 ? 2 : size > CONFIG_MAX_HEAD_DIM ? CONFIG_MAX_HEAD_DIM : size;
}

void config_read_sizes(model_config *cfg, const config_section *text, const config_defaults *d)
{
    cfg->vocab_size = required(text, "vocab_size", CONFIG_MAX_VOCAB);
    cfg->hidden_size = required(text, "hidden_size", CONFIG_MAX_WIDTH);
    cfg->n_layers =
        config_int(text, "num_hidden_layers", 1, MODEL_MAX_LAYERS, d->n_layers ? d->n_layers : INT32_MIN);
    cfg->n_heads = required(text, "num_attention_heads", CONFIG_MAX_HEADS);
    cfg->full.n_kv_heads = required(text, "num_key_value_heads", CONFIG_MAX_HEADS);
    cfg->full.head_dim = config_int(text, "head_dim", 2, CONFIG_MAX_HEAD_DIM, d->head_dim);
    cfg->max_position_embeddings = config_int(text, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 32768);
    cfg->rms_norm_eps = (float)config_number(text, "rms_norm_eps", 0.0, 1.0, 1e-6);
    if (cfg->n_heads % cfg->full.n_kv_heads != 0) {
        config_fail(text, ERR_INVALID, "%d query heads are not a multiple of %d key heads", cfg->n_heads,
                    cfg->full.n_kv_heads);
    }
}

void config_count_layers(model_config *cfg)
{
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        const layer_kind kind = cfg->layers[i];
        const bool is_shared = i >= cfg->n_layers - cfg->n_shared_layers;
        for (int32_t k = i - 1; is_shared && k >= 0; k--) { /* of the last of its kind that has one */
            if (cfg->layers[k] == kind) {
                cfg->state_of[i] = cfg->state_of[k];
                break;
            }
        }
        if (is_shared) {
            continue;
        }
        if (layer_is_attention(kind)) {
            cfg->state_of[i] = cfg->n_attention_layers++;
        } else if (kind != LAYER_NONE) {
            cfg->state_of[i] = cfg->n_recurrent_layers++;
        }
        cfg->n_sliding_layers += kind == LAYER_SLIDING;
    }
}

void config_read_layer_types(model_config *cfg, const config_section *text, unsigned kinds)
{
    static const char *const names[LAYER_KINDS] = {[LAYER_DELTANET] = "linear_attention",
                                                   [LAYER_ATTENTION] = "full_attention",
                                                   [LAYER_SLIDING] = "sliding_attention"};
    const json *types = json_get(text->object, "layer_types");
    int32_t i = 0;
    if (!types || json_is(types, JSON_NULL)) {
        return;
    }
    if (!json_is(types, JSON_ARRAY) || json_len(types) != (size_t)cfg->n_layers) {
        config_fail(text, ERR_INVALID, "\"layer_types\" must list %d layers", cfg->n_layers);
        return;
    }
    for (const json *v = json_child(types); v; v = json_next(v), i++) {
        const char *name = json_str(v, "");
        int kind = 0;
        while (kind < LAYER_KINDS && !((kinds >> kind & 1) && strcmp(name, names[kind]) == 0)) {
            kind++;
        }
        if (kind == LAYER_KINDS) {
            config_fail(text, ERR_UNSUPPORTED, "layer %d is of type \"%.40s\", which \"%s\" does not have", i,
                        name, cfg->family);
            return;
        }
        cfg->layers[i] = (layer_kind)kind;
    }
}

void config_read_layers(model_config *cfg, const config_section *text, int32_t interval)
{
    const unsigned delta = interval == 1 ? 0 : 1u << LAYER_DELTANET;
    if (delta) {
        interval = config_int(text, "full_attention_interval", 1, MODEL_MAX_LAYERS, interval);
    }
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->layers[i] = (i + 1) % interval == 0 ? LAYER_ATTENTION : LAYER_DELTANET;
    }
    config_read_layer_types(cfg, text, 1u << LAYER_ATTENTION | delta);
    config_count_layers(cfg);
}

void config_read_windows(model_config *cfg, const config_section *text)
{
    config_read_layer_types(cfg, text, 1u << LAYER_ATTENTION | 1u << LAYER_SLIDING);
    config_count_layers(cfg);
    cfg->sliding = cfg->full;
    if (cfg->n_sliding_layers > 0) {
        cfg->sliding.window = required(text, "sliding_window", CONFIG_MAX_CONTEXT);
    }
}

void config_read_sliding(model_config *cfg, const config_section *text)
{
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->layers[i] = i % 2 == 0 ? LAYER_SLIDING : LAYER_ATTENTION;
    }
    config_read_windows(cfg, text);
}

void config_read_kind_rope(model_config *cfg, const config_section *text, const char *kind,
                           attention_spec *spec)
{
    const json *all = json_get(text->object, "rope_parameters");
    config_section rope = *text;
    rope.object = json_get(all, kind);
    if (!json_is(rope.object, JSON_OBJECT)) {
        config_fail(text, ERR_INVALID, "\"rope_parameters\" must have an object \"%s\"", kind);
        return;
    }
    config_expect_word(&rope, "rope_type", "default", "proportional");
    const double fraction = config_number(&rope, "partial_rotary_factor", 0.0, 1.0, 1.0);
    config_number(&rope, "factor", 1.0, 1.0, 1.0);
    spec->rope = (rope_spec){.theta = config_number(&rope, "rope_theta", 1.0, 1e12, NAN),
                             .pairs = spec->head_dim / 2,
                             .magnitude = 1.0};
    spec->rope.n_still = spec->rope.pairs - (int32_t)(spec->head_dim * fraction) / 2;
    if (spec->rope.pairs > cfg->mrope_section[0]) {
        cfg->mrope_section[0] = spec->rope.pairs;
    }
    cfg->mrope_interleaved = true;
}

void config_read_deltanet(model_config *cfg, const config_section *text)
{
    if (cfg->n_recurrent_layers == 0) {
        return;
    }
    cfg->delta_n_k = required(text, "linear_num_key_heads", CONFIG_MAX_HEADS);
    cfg->delta_n_v = required(text, "linear_num_value_heads", CONFIG_MAX_HEADS);
    cfg->delta_dk = required(text, "linear_key_head_dim", CONFIG_MAX_HEAD_DIM);
    cfg->delta_dv = required(text, "linear_value_head_dim", CONFIG_MAX_HEAD_DIM);
    cfg->conv_kernel = config_int(text, "linear_conv_kernel_dim", 1, 64, 4);
    if (cfg->conv_kernel != 4) {
        config_fail(text, ERR_UNSUPPORTED, "\"linear_conv_kernel_dim\" is %d; only 4 is supported",
                    cfg->conv_kernel);
    }
    if (cfg->delta_n_v % cfg->delta_n_k != 0) {
        config_fail(text, ERR_INVALID,
                    "%d value heads are not a multiple of %d key heads (linear_num_*_heads)", cfg->delta_n_v,
                    cfg->delta_n_k);
    }
}

/* Which axis each pair of a head reads. Without sections all read the first, as text needs. */
static void read_mrope(model_config *cfg, const config_section *text, const json *params,
                       const config_defaults *d)
{
    const json *sections = json_get(params, "mrope_section");
    int32_t sum = 0, i = 0;
    if (!sections && d->mrope_section[0] == 0) {
        cfg->mrope_section[0] = cfg->full.rope.pairs;
        cfg->mrope_interleaved = true;
        return;
    }
    memcpy(cfg->mrope_section, d->mrope_section, sizeof cfg->mrope_section);
    for (const json *v = json_child(sections); v && i < 3; v = json_next(v), i++) {
        int64_t n = 0;
        if (!json_int(v, 0, cfg->full.rope.pairs, &n)) {
            config_fail(text, ERR_INVALID, "\"mrope_section\" must hold three counts of pairs");
        }
        cfg->mrope_section[i] = (int32_t)n;
    }
    for (i = 0; i < 3; i++) {
        sum += cfg->mrope_section[i];
    }
    if ((sections && json_len(sections) != 3) || sum != cfg->full.rope.pairs) {
        config_fail(text, ERR_INVALID,
                    "\"mrope_section\" must be three counts with the sum %d (rotary pairs)",
                    cfg->full.rope.pairs);
    }
    cfg->mrope_interleaved = json_bool(json_get(params, "mrope_interleaved"), !d->mrope_split);
}

/* How much YaRN stretches what queries and keys are multiplied with. */
static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

static void read_yarn(rope_spec *out, const model_config *cfg, const config_section *rope)
{
    out->yarn_factor = config_number(rope, "factor", 1.0, 1e6, NAN);
    out->yarn_fast = config_number(rope, "beta_fast", 1e-3, 1e6, 32.0);
    out->yarn_slow = config_number(rope, "beta_slow", 1e-3, 1e6, 1.0);
    out->yarn_original = config_int(rope, "original_max_position_embeddings", 1, CONFIG_MAX_CONTEXT,
                                    cfg->max_position_embeddings);
    out->yarn_truncate = json_bool(json_get(rope->object, "truncate"), true);
    const double mscale = config_number(rope, "mscale", 0.0, 100.0, 0.0);
    const double all = config_number(rope, "mscale_all_dim", 0.0, 100.0, 0.0);
    const double usual = mscale > 0 && all > 0
                             ? yarn_scale(out->yarn_factor, mscale) / yarn_scale(out->yarn_factor, all)
                             : yarn_scale(out->yarn_factor, 1.0);
    out->magnitude = config_number(rope, "attention_factor", 1e-3, 1e3, usual);
}

static void read_llama3(rope_spec *out, const config_section *rope)
{
    out->llama3_factor = config_number(rope, "factor", 1.0, 1e6, NAN);
    out->llama3_slow = config_number(rope, "low_freq_factor", 1e-3, 1e6, NAN);
    out->llama3_fast = config_number(rope, "high_freq_factor", 1e-3, 1e6, NAN);
    out->llama3_original = config_int(rope, "original_max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 8192);
    if (out->llama3_fast <= out->llama3_slow) {
        config_fail(rope, ERR_INVALID, "\"high_freq_factor\" must be larger than \"low_freq_factor\"");
    }
}

/* How frequencies are changed for a longer context. */
static void read_scaling(model_config *cfg, const config_section *rope)
{
    const json *given = json_get(rope->object, "rope_type");
    given = given ? given : json_get(rope->object, "type");
    const char *type = json_str(given, !given || json_is(given, JSON_NULL) ? "default" : "not a text");
    cfg->full.rope.magnitude = 1.0;
    if (strcmp(type, "yarn") == 0) {
        read_yarn(&cfg->full.rope, cfg, rope);
    } else if (strcmp(type, "llama3") == 0) {
        read_llama3(&cfg->full.rope, rope);
    } else if (strcmp(type, "linear") == 0) {
        cfg->full.rope.linear_factor = config_number(rope, "factor", 1.0, 1e6, NAN);
    } else if (strcmp(type, "default") != 0 && strcmp(type, "mrope") != 0) { /* mrope: sections alone */
        config_fail(rope, ERR_UNSUPPORTED,
                    "\"rope_type\" is \"%.40s\"; default, linear, llama3 and yarn are supported", type);
    }
}

void config_read_rope(model_config *cfg, const config_section *text, const config_defaults *d)
{
    const json *params = json_get(text->object, "rope_parameters");
    config_section rope = *text;
    const double outer_factor = config_number(text, "partial_rotary_factor", 0.0, 1.0, d->rotary_fraction);
    if (!json_is(params, JSON_OBJECT)) {
        params = json_get(text->object, "rope_scaling");
    }
    if (params && json_is(params, JSON_OBJECT)) {
        rope.object = params;
    }
    read_scaling(cfg, &rope);
    const double factor = config_number(&rope, "partial_rotary_factor", 0.0, 1.0, outer_factor);
    if (!json_get(rope.object, "rope_theta")) {
        rope.object = text->object; /* older exports keep theta beside rope_scaling */
    }
    cfg->full.rope.theta =
        config_number(&rope, "rope_theta", 1.0, 1e12, d->rope_theta > 0 ? d->rope_theta : NAN);
    cfg->full.rope.pairs = (int32_t)(cfg->full.head_dim * factor) / 2;
    if (cfg->full.rope.pairs < 1) {
        config_fail(text, ERR_INVALID, "\"partial_rotary_factor\" leaves no rotary dimensions");
    }
    cfg->sliding.rope = cfg->full.rope;
    read_mrope(cfg, text, params, d);
}

void config_read_dense(model_config *cfg, const config_section *text)
{
    for (int32_t i = 0; i < cfg->n_layers && cfg->intermediate_size == 0; i++) {
        if (cfg->feeds[i] == FEED_DENSE) {
            cfg->intermediate_size = required(text, "intermediate_size", CONFIG_MAX_WIDTH);
        }
    }
}

void config_read_expert_sizes(model_config *cfg, const config_section *text, const char *count)
{
    cfg->n_experts = required(text, count, CONFIG_MAX_EXPERTS);
    cfg->n_experts_used = required(text, "num_experts_per_tok", MODEL_MAX_EXPERTS_USED);
    if (cfg->n_experts_used > cfg->n_experts) {
        config_fail(text, ERR_INVALID, "\"num_experts_per_tok\" is %d of %d experts", cfg->n_experts_used,
                    cfg->n_experts);
    }
    cfg->routed_scale = 1;
    cfg->n_router_groups = cfg->n_router_groups_used = 1;
}

void config_read_experts(model_config *cfg, const config_section *text, bool shared)
{
    /* Newer versions of transformers write the second name for every family. */
    const bool local = !json_get(text->object, "num_experts") && json_get(text->object, "num_local_experts");
    config_read_expert_sizes(cfg, text, local ? "num_local_experts" : "num_experts");
    const bool own = json_get(text->object, "moe_intermediate_size") ||
                     !json_get(text->object, "intermediate_size"); /* where all layers have experts */
    cfg->expert_size = required(text, own ? "moe_intermediate_size" : "intermediate_size", CONFIG_MAX_WIDTH);
    if (shared) {
        cfg->shared_expert_size = required(text, "shared_expert_intermediate_size", CONFIG_MAX_WIDTH);
    }
    const int32_t step = config_int(text, "decoder_sparse_step", 1, MODEL_MAX_LAYERS, 1);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        cfg->feeds[i] = (i + 1) % step == 0 ? FEED_EXPERTS : FEED_DENSE;
    }
    for (const json *v = json_child(json_get(text->object, "mlp_only_layers")); v; v = json_next(v)) {
        int64_t layer = 0;
        if (!json_int(v, 0, cfg->n_layers - 1, &layer)) {
            config_fail(text, ERR_INVALID, "\"mlp_only_layers\" must list layers from 0 to %d",
                        cfg->n_layers - 1);
        }
        cfg->feeds[layer] = FEED_DENSE;
    }
}

void config_read_sigmoid_router(model_config *cfg, const config_section *text)
{
    cfg->router = ROUTER_SIGMOID;
    config_expect_word(text, "scoring_func", "sigmoid", "sigmoid");
    config_expect_word(text, "topk_method", "noaux_tc", "noaux_tc");
    cfg->norm_expert_weights = json_bool(json_get(text->object, "norm_topk_prob"), true);
    cfg->routed_scale = (float)config_number(text, "routed_scaling_factor", 0.0, 1e6, 1.0);
    cfg->n_router_groups = config_int(text, "n_group", 1, MODEL_MAX_ROUTER_GROUPS, 1);
    cfg->n_router_groups_used = config_int(text, "topk_group", 1, MODEL_MAX_ROUTER_GROUPS, 1);
    if (cfg->n_experts % cfg->n_router_groups != 0 || cfg->n_router_groups_used > cfg->n_router_groups ||
        cfg->n_experts_used > cfg->n_experts / cfg->n_router_groups * cfg->n_router_groups_used) {
        config_fail(text, ERR_INVALID, "%d of %d experts cannot be chosen from %d of %d groups",
                    cfg->n_experts_used, cfg->n_experts, cfg->n_router_groups_used, cfg->n_router_groups);
    }
}

void config_read_mtp(model_config *cfg, const config_section *text, const char *name, int32_t fallback)
{
    cfg->n_mtp_layers = config_int(text, name, 0, 64, fallback);
    if (cfg->n_mtp_layers > 1) {
        config_fail(text, ERR_UNSUPPORTED, "\"%s\" is %d; at most 1 is supported", name, cfg->n_mtp_layers);
    }
}

void config_read_llama(model_config *cfg, const config_section *text)
{
    const config_defaults defaults = {
        .head_dim = config_head_dim(text), .rotary_fraction = 1.0, .rope_theta = 10000.0};
    config_refuse_flag(text, "mlp_bias");
    cfg->qk_norm = QK_NORM_NONE;
    config_read_sizes(cfg, text, &defaults);
    config_read_layers(cfg, text, 1);
    config_read_dense(cfg, text);
    config_read_rope(cfg, text, &defaults);
}
