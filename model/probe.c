#include "model/probe.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "model/checkpoint/checkpoint.h"
#include "model/config/config_load.h"
#include "model/checkpoint/gguf_file.h"
#include "model/checkpoint/tensor_file.h"

/* What the names of the tensors tell. */
typedef struct parts {
    bool has_table, has_vision, has_mtp;
    uint64_t n_bytes;
} parts;

static parts look_through(const tensor_table *all)
{
    parts p = {0};
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->items[i].name;
        p.has_vision = p.has_vision || strstr(name, "visual.") || strstr(name, "vision_tower.");
        p.has_mtp = p.has_mtp || strncmp(name, "mtp.", 4) == 0 || strstr(name, ".mtp.");
        p.has_table = p.has_table || strstr(name, "embed_tokens.");
        p.n_bytes += all->items[i].view.bytes;
    }
    return p;
}

static void take(model_probe *out, const tensor_table *all, const model_config *cfg)
{
    const parts p = look_through(all);
    snprintf(out->family, sizeof out->family, "%s", cfg->family);
    out->context = cfg->max_position_embeddings;
    out->n_bytes = p.n_bytes;
    out->has_vision = cfg->has_vision && p.has_vision;
    out->has_mtp = cfg->n_mtp_layers > 0 && p.has_mtp;
    out->is_side_file = !p.has_table && (p.has_vision || p.has_mtp);
}

/* Opening the checkpoint would convert some forms as a whole, so the files are looked at here. */
static err_code look_at_folder(model_probe *out, const char *dir, err_detail *detail)
{
    char path[4096];
    tensor_set *set = NULL;
    model_config cfg;
    err_code err = model_config_load(&cfg, json_folder(dir), detail);
    if (!err) {
        err = tensor_set_open(&set, dir, detail);
    }
    if (err) {
        return err;
    }
    take(out, tensor_set_tensors(set), &cfg);
    tensor_set_close(set);
    if (!out->is_side_file && !(file_join(path, sizeof path, dir, "tokenizer.json") && file_exists(path))) {
        return err_set(detail, ERR_NOT_FOUND, "%s/tokenizer.json: there is no such file", dir);
    }
    return ERR_OK;
}

/* A vision tower says of itself that it is one, whatever the file is called. */
static bool is_vision_file(const char *path)
{
    gguf_file *f = NULL;
    if (gguf_file_open(&f, path, NULL) != ERR_OK) {
        return false;
    }
    const bool is_clip = gguf_is_text(gguf_find(f, "general.architecture"), "clip");
    gguf_file_close(f);
    return is_clip;
}

static err_code look_at_gguf(model_probe *out, const char *path, err_detail *detail)
{
    checkpoint *ck = NULL;
    model_config cfg;
    err_code err = checkpoint_open(&ck, path, NULL, detail);
    if (err == ERR_UNSUPPORTED && is_vision_file(path)) {
        out->is_side_file = true;
        return ERR_OK;
    }
    if (!err) {
        err = model_config_load(&cfg, checkpoint_documents(ck), detail);
    }
    if (!err) {
        take(out, checkpoint_tensors(ck), &cfg);
    }
    checkpoint_close(ck);
    return err;
}

err_code model_probe_at(model_probe *out, const char *path, err_detail *detail)
{
    char config[4096];
    *out = (model_probe){0};
    const bool is_folder = file_join(config, sizeof config, path, "config.json") && file_exists(config);
    return is_folder ? look_at_folder(out, path, detail) : look_at_gguf(out, path, detail);
}
