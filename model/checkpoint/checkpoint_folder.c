/* A folder as Hugging Face publishes models: config.json, safetensors, tokenizer.json,
 * chat_template.jinja (or a template inside one of the documents); the same with matrices in our
 * blocks, as `parley convert` writes it (NAME.q8, NAME.q4 or NAME.q5 in place of NAME); as MLX tools convert
 * it (mlx.h); and with matrices in 8-bit floats (fp8.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "compute/formats/quant.h"
#include "model/checkpoint/checkpoint_form.h"
#include "model/checkpoint/fp8.h"
#include "model/checkpoint/gpt_oss_experts.h"
#include "model/checkpoint/mlx.h"
#include "model/checkpoint/tensor_file.h"
#include "model/checkpoint/tensor_names.h"

typedef struct folder {
    tensor_set *set;
    const char *dir;
} folder;

/* Turns bytes [rows, bytes of a row] under NAME.q8, NAME.q4 or NAME.q5 into a packed matrix, and cuts the
 * name. ERR_UNSUPPORTED for rows of another length: 4 bits had other scales once. */
static err_code recognise_blocks(char *name, tensor *t, err_detail *detail)
{
    const size_t n = strlen(name);
    for (dtype type = DTYPE_Q8; type <= DTYPE_Q5; type++) {
        const char *suffix = dtype_name(type);
        const size_t n_suffix = strlen(suffix) + 1;
        if (t->type != DTYPE_OTHER || t->n_dims != 2 || n <= n_suffix || name[n - n_suffix] != '.' ||
            strcmp(name + n - n_suffix + 1, suffix) != 0) {
            continue;
        }
        const size_t base = quant_row_bytes(type, 0), group = quant_row_bytes(type, QUANT_GROUP) - base;
        const size_t columns = t->dims[1] < base ? 0 : (t->dims[1] - base) / group * QUANT_GROUP;
        if (t->bytes == t->dims[0] * t->dims[1] && quant_row_bytes(type, columns) == t->dims[1]) {
            t->type = type;
            t->dims[1] = columns;
            name[n - n_suffix] = '\0';
            return ERR_OK;
        }
        return err_set(
            detail, ERR_UNSUPPORTED,
            "%s: its rows of %zu bytes are not those of this version's %s; convert the checkpoint again "
            "(parley convert)",
            name, t->dims[1], suffix);
    }
    return ERR_OK;
}

static err_code no_memory(err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "no memory for the table of tensors");
}

static err_code add_tensors(checkpoint_contents *out, const folder *f, err_detail *detail)
{
    const json_source documents = json_folder(f->dir);
    const tensor_table *all = tensor_set_tensors(f->set);
    mlx *m = NULL;
    err_code err = mlx_open(&m, all, &documents, out->memory, detail);
    if (m) {
        mlx_traits(m, &out->traits);
    }
    for (size_t i = 0; !err && i < all->n; i++) {
        named_tensor t = all->items[i];
        bool skip = false;
        char *name = tensor_name_make(out->memory, t.stored);
        if (!name) {
            err = no_memory(detail);
            break;
        }
        t.name = name;
        err = recognise_blocks(name, &t.view, detail);
        if (err) {
            break;
        }
        err = m ? mlx_adapt(m, t.stored, name, &t.view, &skip, detail)
                : fp8_adapt(all, &t, out->memory, &skip, detail);
        if (!err && !skip && !m) {
            err = gpt_oss_experts_adapt(&out->tensors, all, &t, out->memory, &skip, detail);
        }
        if (!err && !skip && !tensor_table_add(&out->tensors, &t)) {
            err = no_memory(detail);
        }
    }
    mlx_close(m);
    return err;
}

static err_code read_document(void *self, const char *name, json_doc **out, err_detail *detail)
{
    const folder *f = self;
    const json_source files = json_folder(f->dir);
    return files.read(files.ctx, name, out, detail);
}

static err_code open_tokenizer(void *self, tokenizer **out, err_detail *detail)
{
    const folder *f = self;
    char path[4096];
    if (!file_join(path, sizeof path, f->dir, "tokenizer.json")) {
        return err_set(detail, ERR_INVALID, "the path of the model folder is too long");
    }
    return tokenizer_open(out, path, detail);
}

/* The template inside a document: a text, or a list of {name, template} of which "default"
 * counts. */
static err_code read_embedded_template(void *self, const char *document, bytes *out, err_detail *detail)
{
    json_doc *doc = NULL;
    err_code err = read_document(self, document, &doc, detail);
    if (err || !doc) {
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
        bytes_append_str(out, found);
    }
    json_free(doc);
    return ERR_OK;
}

static err_code read_template(void *self, bytes *out, err_detail *detail)
{
    const folder *f = self;
    char path[4096];
    if (file_join(path, sizeof path, f->dir, "chat_template.jinja") && file_exists(path)) {
        return file_read(out, path, detail);
    }
    /* The processor's comes before the tokenizer's, which may know no images. */
    static const char *const DOCUMENTS[] = {"chat_template.json", "processor_config.json",
                                            "tokenizer_config.json"};
    err_code err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(DOCUMENTS) && !err && out->len == 0; i++) {
        err = read_embedded_template(self, DOCUMENTS[i], out, detail);
    }
    return err;
}

static void close_folder(void *self)
{
    folder *f = self;
    if (f) {
        tensor_set_close(f->set);
        free(f);
    }
}

static err_code open_folder(void **self, checkpoint_contents *out, const char *dir, const char *mmproj,
                            err_detail *detail)
{
    (void)mmproj;
    char path[4096];
    folder *f = *self = calloc(1, sizeof *f);
    if (!f) {
        return err_set(detail, ERR_NOMEM, "no memory to open %s", dir);
    }
    f->dir = dir;
    if (!(file_join(path, sizeof path, dir, "config.json") && file_exists(path))) {
        return err_set(
            detail, ERR_NOT_FOUND,
            "%s/config.json: there is no such file; a model is a folder with config.json, tokenizer.json "
            "and .safetensors files",
            dir);
    }
    err_code err = tensor_set_open(&f->set, dir, detail);
    return err ? err : add_tensors(out, f, detail);
}

const checkpoint_form CHECKPOINT_FOLDER = {open_folder, read_document, open_tokenizer, read_template,
                                           close_folder};
