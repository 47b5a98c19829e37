#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"

/* Upper bounds far above every released model; they keep products of dimensions inside size_t and int32_t. */
enum {
    MAX_WIDTH = 1 << 20, /* hidden, intermediate */
    MAX_VOCAB = 1 << 24,
    MAX_HEADS = 4096,
    MAX_HEAD_DIM = 4096,
    MAX_CONTEXT = 1 << 26,
};

/* Where a number is looked for: the object and the file it came from, for messages. */
typedef struct section {
    const json *object;
    const char *path;
    err_detail *detail;
} section;

/* An integer field in [min, max]; absent or null gives the fallback (INT32_MIN: the field is required). */
static err_code read_int(int32_t *out, const section *s, const char *name, int32_t min, int32_t max,
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

static err_code read_required(int32_t *out, const section *s, const char *name, int32_t max)
{
    return read_int(out, s, name, 1, max, INT32_MIN);
}

/* A finite number in [min, max], with a fallback for an absent field. */
static err_code read_number(double *out, const section *s, const char *name, double min, double max,
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

/* A text field that, where present, must be one of the two words given. */
static err_code expect_word(const section *s, const char *name, const char *word, const char *other)
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

/* A flag that must not be set. */
static err_code refuse_flag(const section *s, const char *name)
{
    if (json_is_true(json_get(s->object, name))) {
        return err_set(s->detail, ERR_UNSUPPORTED, "%s: \"%s\": true is not supported", s->path, name);
    }
    return ERR_OK;
}

static err_code read_layer_kinds(model_config *cfg, const section *text)
{
    const json *types = json_get(text->object, "layer_types");
    int32_t interval = 4, i = 0;
    err_code err = read_int(&interval, text, "full_attention_interval", 1, MODEL_MAX_LAYERS, 4);
    if (err || interval < 1) {
        return err;
    }
    if (!types || json_is(types, JSON_NULL)) {
        for (i = 0; i < cfg->n_layers; i++) {
            cfg->layers[i] = (i + 1) % interval == 0 ? LAYER_ATTENTION : LAYER_DELTANET;
        }
    } else {
        if (!json_is(types, JSON_ARRAY) || json_len(types) != (size_t)cfg->n_layers) {
            return err_set(text->detail, ERR_INVALID, "%s: \"layer_types\" must list %d layers", text->path,
                           cfg->n_layers);
        }
        for (const json *v = json_child(types); v; v = json_next(v), i++) {
            const char *kind = json_str(v, "");
            if (strcmp(kind, "full_attention") == 0) {
                cfg->layers[i] = LAYER_ATTENTION;
            } else if (strcmp(kind, "linear_attention") == 0) {
                cfg->layers[i] = LAYER_DELTANET;
            } else {
                return err_set(text->detail, ERR_UNSUPPORTED, "%s: layer %d is of type \"%.40s\"", text->path,
                               i, kind);
            }
        }
    }
    for (i = 0; i < cfg->n_layers; i++) {
        cfg->n_attention_layers += cfg->layers[i] == LAYER_ATTENTION;
        cfg->n_deltanet_layers += cfg->layers[i] == LAYER_DELTANET;
    }
    return ERR_OK;
}

static err_code read_rope(model_config *cfg, const section *text)
{
    const json *params = json_get(text->object, "rope_parameters");
    section rope = *text;
    double factor = 0, outer_factor = 0;
    err_code err = read_number(&outer_factor, text, "partial_rotary_factor", 0.0, 1.0, 0.25);
    if (err) {
        return err;
    }
    if (!params) {
        params = json_get(text->object, "rope_scaling");
    }
    if (params && json_is(params, JSON_OBJECT)) {
        rope.object = params;
    }
    err = expect_word(&rope, "rope_type", "default", "default");
    if (!err) {
        err = read_number(&factor, &rope, "partial_rotary_factor", 0.0, 1.0, outer_factor);
    }
    if (!err && !json_get(rope.object, "rope_theta")) {
        rope.object = text->object; /* older exports keep theta beside rope_scaling */
    }
    if (!err) {
        err = read_number(&cfg->rope_theta, &rope, "rope_theta", 1.0, 1e12, NAN);
    }
    if (err) {
        return err;
    }
    cfg->rope_pairs = (int32_t)(cfg->head_dim * factor) / 2;
    if (cfg->rope_pairs < 1) {
        return err_set(text->detail, ERR_INVALID, "%s: \"partial_rotary_factor\" leaves no rotary dimensions",
                       text->path);
    }
    const json *sections = json_get(params, "mrope_section");
    const int32_t released[3] = {11, 11, 10};
    int32_t sum = 0, i = 0;
    memcpy(cfg->mrope_section, released, sizeof released);
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

static err_code read_deltanet(model_config *cfg, const section *text)
{
    err_code err = read_required(&cfg->delta_n_k, text, "linear_num_key_heads", MAX_HEADS);
    if (!err) {
        err = read_required(&cfg->delta_n_v, text, "linear_num_value_heads", MAX_HEADS);
    }
    if (!err) {
        err = read_required(&cfg->delta_dk, text, "linear_key_head_dim", MAX_HEAD_DIM);
    }
    if (!err) {
        err = read_required(&cfg->delta_dv, text, "linear_value_head_dim", MAX_HEAD_DIM);
    }
    if (!err) {
        err = read_int(&cfg->conv_kernel, text, "linear_conv_kernel_dim", 1, 64, 4);
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

static err_code read_sizes(model_config *cfg, const section *text)
{
    double eps = 0;
    err_code err = read_required(&cfg->vocab_size, text, "vocab_size", MAX_VOCAB);
    if (!err) {
        err = read_required(&cfg->hidden_size, text, "hidden_size", MAX_WIDTH);
    }
    if (!err) {
        err = read_required(&cfg->intermediate_size, text, "intermediate_size", MAX_WIDTH);
    }
    if (!err) {
        err = read_required(&cfg->n_layers, text, "num_hidden_layers", MODEL_MAX_LAYERS);
    }
    if (!err) {
        err = read_required(&cfg->n_heads, text, "num_attention_heads", MAX_HEADS);
    }
    if (!err) {
        err = read_required(&cfg->n_kv_heads, text, "num_key_value_heads", MAX_HEADS);
    }
    if (!err) {
        err = read_int(&cfg->head_dim, text, "head_dim", 2, MAX_HEAD_DIM, 256);
    }
    if (!err) {
        err = read_int(&cfg->max_position_embeddings, text, "max_position_embeddings", 1, MAX_CONTEXT, 32768);
    }
    if (!err) {
        err = read_int(&cfg->n_mtp_layers, text, "mtp_num_hidden_layers", 0, 64, 0);
    }
    if (!err) {
        err = read_number(&eps, text, "rms_norm_eps", 0.0, 1.0, 1e-6);
    }
    if (err) {
        return err;
    }
    cfg->rms_norm_eps = (float)eps;
    if (cfg->n_heads % cfg->n_kv_heads != 0) {
        return err_set(text->detail, ERR_INVALID, "%s: %d query heads are no multiple of %d key heads",
                       text->path, cfg->n_heads, cfg->n_kv_heads);
    }
    if (cfg->n_mtp_layers > 1) {
        return err_set(text->detail, ERR_UNSUPPORTED,
                       "%s: \"mtp_num_hidden_layers\" is %d; at most 1 is supported", text->path,
                       cfg->n_mtp_layers);
    }
    return ERR_OK;
}

/* Fields that would change the arithmetic in ways this decoder does not know. */
static err_code refuse_unknown(const section *top, const section *text)
{
    static const char *const quantized[] = {"quantization", "quantization_config"};
    err_code err = ERR_OK;
    for (size_t i = 0; i < 2; i++) {
        if (json_is(json_get(top->object, quantized[i]), JSON_OBJECT) ||
            json_is(json_get(text->object, quantized[i]), JSON_OBJECT)) {
            return err_set(top->detail, ERR_UNSUPPORTED,
                           "%s: \"%s\": quantised checkpoints are not supported", top->path, quantized[i]);
        }
    }
    err = expect_word(text, "hidden_act", "silu", "swish");
    if (!err) {
        err = expect_word(text, "output_gate_type", "swish", "silu");
    }
    if (!err) {
        err = refuse_flag(text, "attention_bias");
    }
    if (!err) {
        err = refuse_flag(text, "layer_scale");
    }
    if (!err) {
        err = refuse_flag(text, "mtp_use_dedicated_embeddings");
    }
    if (!err && json_is(json_get(text->object, "attn_output_gate"), JSON_BOOL) &&
        !json_is_true(json_get(text->object, "attn_output_gate"))) {
        err = err_set(text->detail, ERR_UNSUPPORTED, "%s: \"attn_output_gate\": false is not supported",
                      text->path);
    }
    return err;
}

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

/* eos_token_id: one number or a list; returns whether there was any. */
static bool add_stops(model_config *cfg, const json *eos)
{
    int64_t id = 0;
    bool any = false;
    if (json_int(eos, 0, INT32_MAX, &id)) {
        model_config_add_stop(cfg, id);
        return true;
    }
    for (const json *v = json_is(eos, JSON_ARRAY) ? json_child(eos) : NULL; v; v = json_next(v)) {
        if (json_int(v, 0, INT32_MAX, &id)) {
            model_config_add_stop(cfg, id);
            any = true;
        }
    }
    return any;
}

static err_code read_special_ids(model_config *cfg, const section *top)
{
    int32_t max = cfg->vocab_size - 1;
    err_code err = read_int(&cfg->image_token_id, top, "image_token_id", 0, max, -1);
    if (!err) {
        err = read_int(&cfg->video_token_id, top, "video_token_id", 0, max, -1);
    }
    if (!err) {
        err = read_int(&cfg->vision_start_token_id, top, "vision_start_token_id", 0, max, -1);
    }
    if (!err) {
        err = read_int(&cfg->vision_end_token_id, top, "vision_end_token_id", 0, max, -1);
    }
    return err;
}

static err_code read_config(model_config *cfg, const char *dir, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    err_code err = ERR_OK;
    if (!file_join(path, sizeof path, dir, "config.json")) {
        return err_set(detail, ERR_INVALID, "the path of the model folder is too long");
    }
    err = json_parse_file(&doc, path, LIMIT_CONFIG_BYTES, detail);
    if (err) {
        return err;
    }
    const json *root = json_root(doc), *nested = json_get(root, "text_config");
    section top = {root, path, detail};
    section text = {json_is(nested, JSON_OBJECT) ? nested : root, path, detail};
    const char *family = json_str(json_get(root, "model_type"), "");
    snprintf(cfg->family, sizeof cfg->family, "%s", family);
    if (strcmp(family, "qwen3_5") != 0 && strcmp(family, "qwen3_5_text") != 0) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "%s: model_type \"%.40s\" is not supported; this version runs qwen3_5", path, family);
        goto out;
    }
    err = refuse_unknown(&top, &text);
    if (!err) {
        err = read_sizes(cfg, &text);
    }
    if (!err) {
        err = read_layer_kinds(cfg, &text);
    }
    if (!err && cfg->n_deltanet_layers > 0) {
        err = read_deltanet(cfg, &text);
    }
    if (!err) {
        err = read_rope(cfg, &text);
    }
    if (!err) {
        err = read_special_ids(cfg, &top);
    }
    if (err) {
        goto out;
    }
    const json *tied = json_get(root, "tie_word_embeddings");
    cfg->tie_word_embeddings = json_bool(tied ? tied : json_get(text.object, "tie_word_embeddings"), false);
    cfg->has_vision = json_is(json_get(root, "vision_config"), JSON_OBJECT) &&
                      !json_is_true(json_get(root, "language_model_only"));
    if (!add_stops(cfg, json_get(root, "eos_token_id"))) {
        add_stops(cfg, json_get(text.object, "eos_token_id"));
    }
out:
    json_free(doc);
    return err;
}

/* generation_config.json: the defaults of sampling; its eos replaces the one of config.json. */
static err_code read_generation(model_config *cfg, const char *dir, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    double temperature = 1, top_p = 1, min_p = 0, penalty = 1;
    err_code err = ERR_OK;
    cfg->temperature = 1.0f;
    cfg->top_p = 1.0f;
    cfg->repetition_penalty = 1.0f;
    if (!file_join(path, sizeof path, dir, "generation_config.json") || !file_exists(path)) {
        return ERR_OK;
    }
    err = json_parse_file(&doc, path, LIMIT_CONFIG_BYTES, detail);
    if (err) {
        return err;
    }
    section s = {json_root(doc), path, detail};
    err = read_number(&temperature, &s, "temperature", 0.0, 100.0, 1.0);
    if (!err) {
        err = read_number(&top_p, &s, "top_p", 0.0, 1.0, 1.0);
    }
    if (!err) {
        err = read_number(&min_p, &s, "min_p", 0.0, 1.0, 0.0);
    }
    if (!err) {
        err = read_number(&penalty, &s, "repetition_penalty", 1e-3, 1e3, 1.0);
    }
    if (!err) {
        err = read_int(&cfg->top_k, &s, "top_k", 0, MAX_VOCAB, 0);
    }
    if (!err) {
        cfg->do_sample = json_bool(json_get(s.object, "do_sample"), false);
        cfg->temperature = (float)temperature;
        cfg->top_p = (float)top_p;
        cfg->min_p = (float)min_p;
        cfg->repetition_penalty = (float)penalty;
        const json *eos = json_get(s.object, "eos_token_id");
        if (json_is(eos, JSON_NUMBER) || json_is(eos, JSON_ARRAY)) {
            cfg->n_stop_ids = 0;
            add_stops(cfg, eos);
        }
    }
    json_free(doc);
    return err;
}

/* tokenizer_config.json: the eos token, a text or {"content": text}. */
static err_code read_eos_token(model_config *cfg, const char *dir, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    if (!file_join(path, sizeof path, dir, "tokenizer_config.json") || !file_exists(path)) {
        return ERR_OK;
    }
    err_code err = json_parse_file(&doc, path, LIMIT_CONFIG_BYTES, detail);
    if (err) {
        return err;
    }
    const json *eos = json_get(json_root(doc), "eos_token");
    const char *text = json_str(json_is(eos, JSON_OBJECT) ? json_get(eos, "content") : eos, "");
    if (strlen(text) < sizeof cfg->eos_token) {
        snprintf(cfg->eos_token, sizeof cfg->eos_token, "%s", text);
    }
    json_free(doc);
    return ERR_OK;
}

err_code model_config_load(model_config *cfg, const char *dir, err_detail *detail)
{
    memset(cfg, 0, sizeof *cfg);
    err_code err = read_config(cfg, dir, detail);
    if (!err) {
        err = read_generation(cfg, dir, detail);
    }
    if (!err) {
        err = read_eos_token(cfg, dir, detail);
    }
    return err;
}
