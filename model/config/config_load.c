#include "model/config/config_load.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "model/config/family.h"

/* Whether weights packed in this way are read. */
static bool is_known_packing(const json *how, const family *f)
{
    const char *method = json_str(json_get(how, "quant_method"), NULL);
    if (!method) {
        return json_get(how, "bits") != NULL; /* MLX's */
    }
    return strcmp(method, "fp8") == 0 || (f->packed_by && strcmp(method, f->packed_by) == 0);
}

/* Fields that would change the arithmetic in ways that this family does not know. */
static void refuse_unknown(const config_section *top, const config_section *text, const family *f)
{
    static const char *const quantized[] = {"quantization", "quantization_config"};
    static const char *const flags[] = {"layer_scale", "mtp_use_dedicated_embeddings"};
    for (size_t i = 0; i < ARRAY_LEN(quantized); i++) {
        const json *how = json_get(top->object, quantized[i]);
        how = json_is(how, JSON_OBJECT) ? how : json_get(text->object, quantized[i]);
        if (json_is(how, JSON_OBJECT) && !is_known_packing(how, f)) {
            config_fail(top, ERR_UNSUPPORTED,
                        "\"%s\": weights packed by \"%.40s\" are not supported (those of MLX, and fp8 "
                        "in blocks, are); take the original model and let --quantize bring it into blocks",
                        quantized[i], json_str(json_get(how, "quant_method"), "an unknown method"));
        }
    }
    config_expect_word(text, "hidden_act", "silu", "swish");
    config_expect_word(text, "output_gate_type", "swish", "silu");
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        config_refuse_flag(text, flags[i]);
    }
    const json *gate = json_get(text->object, "attn_output_gate");
    if (json_is(gate, JSON_BOOL) && !json_is_true(gate)) {
        config_fail(text, ERR_UNSUPPORTED, "\"attn_output_gate\": false is not supported");
    }
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

static void refuse_family(const config_section *top, const char *model_type)
{
    bytes known;
    bytes_init(&known, ERR_TEXT_MAX);
    family_list(&known);
    if (model_type[0]) {
        config_fail(top, ERR_UNSUPPORTED, "model_type \"%.40s\" is not supported; this version runs %s",
                    model_type, bytes_str(&known));
    } else {
        config_fail(top, ERR_UNSUPPORTED, "\"model_type\" is missing; this version runs %s",
                    bytes_str(&known));
    }
    bytes_deinit(&known);
}

/* What is read alike for all families, before and after the family's own reader. */
static void read_root(model_config *cfg, const config_section *top)
{
    const json *nested = json_get(top->object, "text_config");
    config_section text = *top;
    text.object = json_is(nested, JSON_OBJECT) ? nested : top->object;
    const char *model_type = json_str(json_get(top->object, "model_type"), "");
    const family *f = family_find(model_type);
    if (!f) {
        refuse_family(top, model_type);
        return;
    }
    snprintf(cfg->family, sizeof cfg->family, "%s", model_type);
    refuse_unknown(top, &text, f);
    cfg->attention_biases = json_bool(json_get(text.object, "attention_bias"), false);
    f->read(cfg, top, &text);
    const int32_t last_id = cfg->vocab_size - 1;
    cfg->image_token_id = config_int(top, "image_token_id", 0, last_id, -1);
    cfg->video_token_id = config_int(top, "video_token_id", 0, last_id, -1);
    cfg->vision_start_token_id =
        config_int(top, "vision_start_token_id", 0, last_id, config_int(top, "boi_token_id", 0, last_id, -1));
    cfg->vision_end_token_id =
        config_int(top, "vision_end_token_id", 0, last_id, config_int(top, "eoi_token_id", 0, last_id, -1));
    const json *tied = json_get(top->object, "tie_word_embeddings");
    cfg->tie_word_embeddings = json_bool(tied ? tied : json_get(text.object, "tie_word_embeddings"), false);
    cfg->has_vision = json_is(json_get(top->object, "vision_config"), JSON_OBJECT) && !cfg->text_alone &&
                      !json_is_true(json_get(top->object, "language_model_only"));
    int64_t bos = -1;
    cfg->bos_token_id =
        json_int(json_get(top->object, "bos_token_id"), 0, CONFIG_MAX_VOCAB, &bos) ? (int32_t)bos : -1;
    if (!add_stops(cfg, json_get(top->object, "eos_token_id"))) {
        add_stops(cfg, json_get(text.object, "eos_token_id"));
    }
}

/* generation_config.json: the defaults of sampling; its eos replaces the one of config.json. */
static void read_generation(model_config *cfg, const config_section *s)
{
    cfg->temperature = (float)config_number(s, "temperature", 0.0, 100.0, 1.0);
    cfg->top_p = (float)config_number(s, "top_p", 0.0, 1.0, 1.0);
    cfg->min_p = (float)config_number(s, "min_p", 0.0, 1.0, 0.0);
    cfg->repetition_penalty = (float)config_number(s, "repetition_penalty", 1e-3, 1e3, 1.0);
    cfg->top_k = config_int(s, "top_k", 0, CONFIG_MAX_VOCAB, 0);
    cfg->do_sample = json_bool(json_get(s->object, "do_sample"), false);
    const json *eos = json_get(s->object, "eos_token_id");
    if (json_is(eos, JSON_NUMBER) || json_is(eos, JSON_ARRAY)) {
        cfg->n_stop_ids = 0;
        add_stops(cfg, eos);
    }
}

/* A token of tokenizer_config.json: a text or {"content": text}. */
static void read_token(char *out, size_t cap, const json *token)
{
    const char *text = json_str(json_is(token, JSON_OBJECT) ? json_get(token, "content") : token, "");
    if (strlen(text) < cap) {
        snprintf(out, cap, "%s", text);
    }
}

static void read_tokens(model_config *cfg, const config_section *s)
{
    read_token(cfg->bos_token, sizeof cfg->bos_token, json_get(s->object, "bos_token"));
    read_token(cfg->eos_token, sizeof cfg->eos_token, json_get(s->object, "eos_token"));
}

/* Reads one document into cfg; one that is not required may be absent. */
static err_code read_document(model_config *cfg, json_source docs, const char *name, bool required,
                              void (*read)(model_config *cfg, const config_section *s), err_detail *detail)
{
    char path[4096];
    json_doc *doc = NULL;
    snprintf(path, sizeof path, "%s/%s", docs.where, name);
    err_code err = docs.read(docs.ctx, name, &doc, detail);
    if (!err && !doc && required) {
        err = err_set(detail, ERR_NOT_FOUND, "%s: there is no such file; a model folder has one", path);
    }
    if (!err && doc) {
        read(cfg, &(config_section){json_root(doc), path, detail, &err});
    }
    json_free(doc);
    return err;
}

err_code model_config_load(model_config *cfg, json_source docs, err_detail *detail)
{
    *cfg = (model_config){.temperature = 1.0f, .top_p = 1.0f, .repetition_penalty = 1.0f};
    err_code err = read_document(cfg, docs, "config.json", true, read_root, detail);
    if (!err) {
        err = read_document(cfg, docs, "generation_config.json", false, read_generation, detail);
    }
    if (!err) {
        err = read_document(cfg, docs, "tokenizer_config.json", false, read_tokens, detail);
    }
    return err;
}
