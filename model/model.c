#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/model_parts.h"

struct model {
    model_config cfg;
    model_parts parts;
    tokenizer *tok;
    chat_template *template;
    char dir[4096];
};

static err_code open_tokenizer(model *m, err_detail *detail)
{
    char path[4096];
    if (!file_join(path, sizeof path, m->dir, "tokenizer.json")) {
        return err_set(detail, ERR_INVALID, "the path of the model folder is too long");
    }
    err_code err = tokenizer_open(&m->tok, path, detail);
    if (!err && m->cfg.eos_token[0] != '\0') {
        model_config_add_stop(&m->cfg, tokenizer_added_id(m->tok, m->cfg.eos_token));
    }
    return err;
}

/* The template inside tokenizer_config.json: a text, or a list of {name, template} of which "default" counts.
 * Leaves `text` empty if there is none. */
static err_code read_embedded_template(bytes *text, const char *dir, err_detail *detail)
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
    const json *v = json_get(json_root(doc), "chat_template");
    const char *found = json_str(v, NULL);
    for (const json *item = json_is(v, JSON_ARRAY) ? json_child(v) : NULL; item && !found;
         item = json_next(item)) {
        if (strcmp(json_str(json_get(item, "name"), ""), "default") == 0) {
            found = json_str(json_get(item, "template"), NULL);
        }
    }
    if (found) {
        bytes_append_str(text, found);
    }
    json_free(doc);
    return ERR_OK;
}

static err_code open_template(model *m, err_detail *detail)
{
    char path[4096];
    bytes text;
    err_code err = ERR_OK;
    bytes_init(&text, LIMIT_TEMPLATE_BYTES);
    if (file_join(path, sizeof path, m->dir, "chat_template.jinja") && file_exists(path)) {
        err = file_read(&text, path, detail);
    } else {
        err = read_embedded_template(&text, m->dir, detail);
    }
    if (!err && text.failed) {
        err = err_set(detail, ERR_LIMIT, "%s: the chat template is too large", m->dir);
    }
    if (!err && text.len > 0) {
        err = chat_template_compile(&m->template, bytes_str(&text), text.len, detail);
        if (err) {
            err = err_prefix(detail, err, "chat template of %s", m->dir);
        }
    }
    bytes_deinit(&text);
    return err;
}

err_code model_open(model **out, const char *dir, const model_open_options *opt, err_detail *detail)
{
    *out = NULL;
    model *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(detail, ERR_NOMEM, "no memory to open %s", dir);
    }
    err_code err = ERR_OK;
    if (snprintf(m->dir, sizeof m->dir, "%s", dir) >= (int)sizeof m->dir) {
        err = err_set(detail, ERR_INVALID, "the path of the model folder is too long");
    }
    if (!err) {
        err = model_config_load(&m->cfg, dir, detail);
    }
    if (!err) {
        err = tensor_set_open(&m->parts.tensors, dir, detail);
    }
    if (!err) {
        err = weights_open(&m->parts.weights, &m->cfg, m->parts.tensors, opt->progress, opt->progress_ctx,
                           detail);
        if (err) {
            err = err_prefix(detail, err, "%s", dir);
        }
    }
    if (!err && opt->quantize.c) {
        err = quantized_open(&m->parts.quantized, m->parts.weights, &opt->quantize, detail);
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
    quantized_close(m->parts.quantized);
    tensor_set_close(m->parts.tensors);
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
    return m->dir;
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

uint64_t model_n_params(const model *m)
{
    return m->parts.weights->n_params;
}

uint64_t model_weight_bytes(const model *m)
{
    return m->parts.weights->n_bytes;
}

tensor_source model_tensors(const model *m)
{
    return tensor_set_source(m->parts.tensors);
}
