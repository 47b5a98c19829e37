#include "model/config/config_load.h"
#include "model/model.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/log.h"
#include "compute/formats/quant.h"
#include "model/model_parts.h"

struct model {
    model_config cfg;
    model_parts parts;
    tokenizer *tok;
    chat_template *template;
};

/* Whether an id that the config names is one of the tokenizer's. */
static err_code check_id(const model *m, int32_t id, const char *name, err_detail *detail)
{
    if (id < tokenizer_n_tokens(m->tok)) {
        return ERR_OK;
    }
    return err_set(
        detail, ERR_CORRUPT,
        "%s: %s is %d, but the tokenizer ends at %d: it belongs to another model; take the one published "
        "with these weights",
        checkpoint_path(m->parts.checkpoint), name, id, tokenizer_n_tokens(m->tok) - 1);
}

static err_code open_tokenizer(model *m, err_detail *detail)
{
    const model_config *cfg = &m->cfg;
    err_code err = checkpoint_open_tokenizer(m->parts.checkpoint, &m->tok, detail);
    if (!err && tokenizer_n_tokens(m->tok) > cfg->vocab_size) {
        err = err_set(
            detail, ERR_CORRUPT,
            "%s: the tokenizer has ids up to %d, but the model knows %d: it belongs to another model; take "
            "the one published with these weights",
            checkpoint_path(m->parts.checkpoint), tokenizer_n_tokens(m->tok) - 1, cfg->vocab_size);
    }
    if (!err && cfg->has_vision) {
        err = check_id(m, cfg->image_token_id, "image_token_id", detail);
    }
    for (int32_t i = 0; !err && i < cfg->n_stop_ids; i++) {
        err = check_id(m, cfg->stop_ids[i], "eos_token_id", detail);
    }
    if (!err && cfg->eos_token[0] != '\0') {
        model_config_add_stop(&m->cfg, tokenizer_added_id(m->tok, cfg->eos_token));
    }
    return err;
}

static err_code open_template(model *m, err_detail *detail)
{
    bytes text;
    bytes_init(&text, LIMIT_TEMPLATE_BYTES);
    err_code err = checkpoint_read_template(m->parts.checkpoint, &text, detail);
    if (!err && text.failed) {
        err = err_set(detail, ERR_LIMIT, "%s: the chat template is too large", model_dir(m));
    }
    if (!err && text.len > 0) {
        err = chat_template_compile(&m->template, bytes_str(&text), text.len, detail);
        if (err) {
            err = err_set(detail, err, "chat template of %s: %s; --chat-template-file gives it another one",
                          model_dir(m), detail->text);
        }
    }
    bytes_deinit(&text);
    return err;
}

/* The config, and what of it depends on the form of the checkpoint. */
static err_code read_config(model *m, err_detail *detail)
{
    const checkpoint *ck = m->parts.checkpoint;
    err_code err = model_config_load(&m->cfg, checkpoint_documents(ck), detail);
    m->cfg.delta_tiled = checkpoint_get_traits(ck)->value_heads_tiled;
    if (!err && m->cfg.has_vision && !tensor_table_first(checkpoint_tensors(ck), "visual.")) {
        log_warn(
            "mod",
            "%s: config.json describes a vision tower, but its tensors are not there (a conversion for text "
            "alone?); images are refused",
            model_dir(m));
        m->cfg.has_vision = false;
    }
    if (!err && m->cfg.text_alone) {
        log_warn("mod", "%s: vision towers of the family %s are not supported; it reads text alone",
                 model_dir(m), m->cfg.family);
    }
    return err;
}

static err_code open_weights(model *m, const model_open_options *opt, err_detail *detail)
{
    err_code err = weights_open(&m->parts.weights, &m->cfg, m->parts.checkpoint, opt->progress,
                                opt->progress_ctx, detail);
    if (err) {
        return err_prefix(detail, err, "%s", model_dir(m));
    }
    if (opt->quantize.c) {
        const weights *w = m->parts.weights;
        err = quantized_open(&m->parts.quantized, w->matrices, w->n_matrices, &opt->quantize, detail);
    }
    if (!err && opt->huge_pages) {
        weights_copy_open(&m->parts.copy, m->parts.weights, opt->huge_pages);
    }
    return err;
}

err_code model_open(model **out, const char *path, const model_open_options *opt, err_detail *detail)
{
    *out = NULL;
    model *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(detail, ERR_NOMEM, "no memory to open %s", path);
    }
    err_code err = checkpoint_open(&m->parts.checkpoint, path, opt->mmproj, detail);
    if (!err) {
        err = read_config(m, detail);
    }
    m->cfg.rope_bf16 = opt->rope_bf16;
    if (!err) {
        err = open_weights(m, opt, detail);
    }
    if (!err && !opt->weights_only) {
        err = open_tokenizer(m, detail);
    }
    if (!err && !opt->weights_only) {
        err = open_template(m, detail);
    }
    if (err) {
        model_close(m);
        return err;
    }
    *out = m;
    return ERR_OK;
}

void model_close(model *m)
{
    if (!m) {
        return;
    }
    chat_template_close(m->template);
    tokenizer_close(m->tok);
    weights_close(m->parts.weights);
    weights_copy_close(m->parts.copy);
    quantized_close(m->parts.quantized);
    checkpoint_close(m->parts.checkpoint);
    free(m);
}

const model_config *model_get_config(const model *m)
{
    return &m->cfg;
}

const model_parts *model_get_parts(const model *m)
{
    return &m->parts;
}

const char *model_dir(const model *m)
{
    return checkpoint_path(m->parts.checkpoint);
}

const tokenizer *model_tokenizer(const model *m)
{
    return m->tok;
}

const chat_template *model_chat_template(const model *m)
{
    return m->template;
}

bool model_has_mtp(const model *m)
{
    return m->parts.weights->has_mtp;
}

json_source model_documents(const model *m)
{
    return checkpoint_documents(m->parts.checkpoint);
}

uint64_t model_n_params(const model *m)
{
    return m->parts.weights->n_params;
}

uint64_t model_weight_bytes(const model *m)
{
    return m->parts.weights->n_bytes;
}

uint64_t model_weight_bytes_as(const model *m, int layer_bits, int head_bits)
{
    const weights *w = m->parts.weights;
    uint64_t n = w->n_bytes;
    for (size_t i = 0; i < w->n_matrices; i++) {
        const matrix_ref *ref = &w->matrices[i];
        const int bits = ref->is_head ? head_bits : layer_bits;
        const tensor *t = ref->at;
        if (bits == 0 || dtype_is_quantized(t->type)) {
            continue;
        }
        /* A tied head gets blocks of its own; the table stays. */
        n -= ref->is_head && m->cfg.tie_word_embeddings ? 0 : t->bytes;
        n += t->dims[0] * quant_row_bytes(quantized_type(ref, bits), t->dims[1]);
    }
    return n;
}

uint64_t model_type_bytes(const model *m, dtype type)
{
    uint64_t n = 0;
    const tensor_table *all = checkpoint_tensors(m->parts.checkpoint);
    for (size_t i = 0; i < all->n; i++) {
        n += all->items[i].view.type == type ? all->items[i].view.bytes : 0;
    }
    return n;
}

tensor_source model_tensors(const model *m)
{
    return tensor_table_source(checkpoint_tensors(m->parts.checkpoint));
}
