#include "model/config.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "model/family.h"

/* Fields that would change the arithmetic in ways that no family knows. */
static err_code refuse_unknown(const config_section *top, const config_section *text)
{
    static const char *const quantized[] = {"quantization", "quantization_config"};
    static const char *const flags[] = {"attention_bias", "layer_scale", "mtp_use_dedicated_embeddings"};
    for (size_t i = 0; i < ARRAY_LEN(quantized); i++) {
        const json *how = json_get(top->object, quantized[i]);
        how = json_is(how, JSON_OBJECT) ? how : json_get(text->object, quantized[i]);
        const char *method = json_str(json_get(how, "quant_method"), NULL);
        if (json_is(how, JSON_OBJECT) &&
            !(method ? strcmp(method, "fp8") == 0 : json_get(how, "bits") != NULL)) {
            return err_set(top->detail, ERR_UNSUPPORTED,
                           "%s: \"%s\": weights packed by \"%.40s\" are not supported (those of MLX, and fp8 "
                           "in blocks, are); "
                           "take the original model and let --quantize bring it into blocks",
                           top->path, quantized[i], method ? method : "an unknown method");
        }
    }
    err_code err = config_expect_word(text, "hidden_act", "silu", "swish");
    if (!err) {
        err = config_expect_word(text, "output_gate_type", "swish", "silu");
    }
    for (size_t i = 0; !err && i < ARRAY_LEN(flags); i++) {
        err = config_refuse_flag(text, flags[i]);
    }
    const json *gate = json_get(text->object, "attn_output_gate");
    if (!err && json_is(gate, JSON_BOOL) && !json_is_true(gate)) {
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

static err_code read_special_ids(model_config *cfg, const config_section *top)
{
    const struct {
        const char *name;
        int32_t *id;
    } ids[] = {
        {"image_token_id", &cfg->image_token_id},
        {"video_token_id", &cfg->video_token_id},
        {"vision_start_token_id", &cfg->vision_start_token_id},
        {"vision_end_token_id", &cfg->vision_end_token_id},
    };
    err_code err = ERR_OK;
    for (size_t i = 0; !err && i < ARRAY_LEN(ids); i++) {
        err = config_read_int(ids[i].id, top, ids[i].name, 0, cfg->vocab_size - 1, -1);
    }
    return err;
}

static err_code refuse_family(const char *path, const char *model_type, err_detail *detail)
{
    bytes known;
    bytes_init(&known, ERR_TEXT_MAX);
    family_list(&known);
    err_code err = model_type[0] ? err_set(detail, ERR_UNSUPPORTED,
                                           "%s: model_type \"%.40s\" is not supported; this version runs %s",
                                           path, model_type, bytes_str(&known))
                                 : err_set(detail, ERR_UNSUPPORTED,
                                           "%s: \"model_type\" is missing; this version runs %s", path,
                                           bytes_str(&known));
    bytes_deinit(&known);
    return err;
}

/* What is read alike for all families, before and after the family's own reader. */
static err_code read_root(model_config *cfg, const json *root, const char *path, err_detail *detail)
{
    const json *nested = json_get(root, "text_config");
    const config_section top = {root, path, detail};
    const config_section text = {json_is(nested, JSON_OBJECT) ? nested : root, path, detail};
    const char *model_type = json_str(json_get(root, "model_type"), "");
    const family *f = family_find(model_type);
    if (!f) {
        return refuse_family(path, model_type, detail);
    }
    snprintf(cfg->family, sizeof cfg->family, "%s", model_type);
    err_code err = refuse_unknown(&top, &text);
    if (!err) {
        err = f->read(cfg, &top, &text);
    }
    if (!err) {
        err = read_special_ids(cfg, &top);
    }
    if (err) {
        return err;
    }
    const json *tied = json_get(root, "tie_word_embeddings");
    cfg->tie_word_embeddings = json_bool(tied ? tied : json_get(text.object, "tie_word_embeddings"), false);
    cfg->has_vision = json_is(json_get(root, "vision_config"), JSON_OBJECT) &&
                      !json_is_true(json_get(root, "language_model_only"));
    if (!add_stops(cfg, json_get(root, "eos_token_id"))) {
        add_stops(cfg, json_get(text.object, "eos_token_id"));
    }
    return ERR_OK;
}

/* The document `name`, whose path for messages goes to path; *doc NULL if there is none. */
static err_code open_document(json_doc **doc, char *path, size_t cap, json_source docs, const char *name,
                              err_detail *detail)
{
    snprintf(path, cap, "%s/%s", docs.where, name);
    return docs.read(docs.ctx, name, doc, detail);
}

static err_code read_config(model_config *cfg, json_source docs, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    err_code err = open_document(&doc, path, sizeof path, docs, "config.json", detail);
    if (err) {
        return err;
    }
    if (!doc) {
        return err_set(detail, ERR_NOT_FOUND, "%s: there is no such file; a model folder has one", path);
    }
    err = read_root(cfg, json_root(doc), path, detail);
    json_free(doc);
    return err;
}

/* generation_config.json: the defaults of sampling; its eos replaces the one of config.json. */
static err_code read_generation(model_config *cfg, json_source docs, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    double temperature = 1, top_p = 1, min_p = 0, penalty = 1;
    err_code err = ERR_OK;
    cfg->temperature = 1.0f;
    cfg->top_p = 1.0f;
    cfg->repetition_penalty = 1.0f;
    err = open_document(&doc, path, sizeof path, docs, "generation_config.json", detail);
    if (err || !doc) {
        return err;
    }
    const config_section s = {json_root(doc), path, detail};
    err = config_read_number(&temperature, &s, "temperature", 0.0, 100.0, 1.0);
    if (!err) {
        err = config_read_number(&top_p, &s, "top_p", 0.0, 1.0, 1.0);
    }
    if (!err) {
        err = config_read_number(&min_p, &s, "min_p", 0.0, 1.0, 0.0);
    }
    if (!err) {
        err = config_read_number(&penalty, &s, "repetition_penalty", 1e-3, 1e3, 1.0);
    }
    if (!err) {
        err = config_read_int(&cfg->top_k, &s, "top_k", 0, CONFIG_MAX_VOCAB, 0);
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
static err_code read_eos_token(model_config *cfg, json_source docs, err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    err_code err = open_document(&doc, path, sizeof path, docs, "tokenizer_config.json", detail);
    if (err || !doc) {
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

err_code model_config_load(model_config *cfg, json_source docs, err_detail *detail)
{
    memset(cfg, 0, sizeof *cfg);
    err_code err = read_config(cfg, docs, detail);
    if (!err) {
        err = read_generation(cfg, docs, detail);
    }
    if (!err) {
        err = read_eos_token(cfg, docs, detail);
    }
    return err;
}
