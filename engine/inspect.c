#include "engine/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "compute/nn.h"
#include "engine/catalog.h"
#include "engine/engine.h"
#include "model/checkpoint/gguf_config.h"
#include "model/config/config_load.h"
#include "model/model.h"
#include "model/quantized.h"
#include "model/seq_state.h"

/* One line of the report: a name for JSON, words for people, and a text or number. */
typedef struct row {
    char key[40], label[40], text[128];
    bool is_number;
} row;

enum { MAX_ROWS = 48 };

typedef struct report {
    row rows[MAX_ROWS];
    size_t n;
} report;

static void add_text(report *r, const char *key, const char *label, const char *text)
{
    row *x = &r->rows[r->n++];
    snprintf(x->key, sizeof x->key, "%s", key);
    snprintf(x->label, sizeof x->label, "%s", label);
    snprintf(x->text, sizeof x->text, "%s", text);
}

static void add_number(report *r, const char *key, const char *label, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    add_text(r, key, label, text);
    r->rows[r->n - 1].is_number = true;
}

static void add_bool(report *r, const char *key, const char *label, bool v)
{
    add_text(r, key, label, v ? "yes" : "no");
}

/* How many layers are of that kind; of Mamba-2 nothing is said where there is none. */
static void add_layers(report *r, const char *key, const char *label, const model_config *c, layer_kind kind)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < c->n_layers; i++) {
        n += c->layers[i] == kind;
    }
    if (n > 0 || kind == LAYER_ATTENTION || kind == LAYER_DELTANET) {
        add_number(r, key, label, n);
    }
}

/* How much of the files is of which type. */
static void add_types(report *r, const model *m)
{
    char key[40], label[40];
    for (dtype type = DTYPE_F32; type < DTYPES; type++) {
        const uint64_t n = model_type_bytes(m, type);
        if (n > 0) {
            snprintf(key, sizeof key, "bytes_%s", dtype_name(type));
            snprintf(label, sizeof label, "  of them %s", dtype_name(type));
            add_number(r, key, label, n);
        }
    }
}

static void fill(report *r, const model *m)
{
    const model_config *c = model_get_config(m);
    add_text(r, "folder", "folder", model_dir(m));
    add_text(r, "family", "family", c->family);
    add_number(r, "parameters", "parameters", model_n_params(m));
    add_number(r, "weight_bytes", "weights, bytes", model_weight_bytes(m));
    add_types(r, m);
    add_number(r, "weight_bytes_q8", "  with --quantize q8", model_weight_bytes_as(m, 8, 8));
    add_number(r, "weight_bytes_q4", "  with --quantize q4", model_weight_bytes_as(m, 4, 8));
    add_number(r, "layers", "layers", (uint64_t)c->n_layers);
    add_layers(r, "attention_layers", "  with full attention", c, LAYER_ATTENTION);
    add_layers(r, "sliding_layers", "  with sliding attention", c, LAYER_SLIDING);
    add_layers(r, "deltanet_layers", "  with GatedDeltaNet", c, LAYER_DELTANET);
    add_layers(r, "mamba_layers", "  with Mamba-2", c, LAYER_MAMBA);
    if (c->n_experts > 0) {
        add_number(r, "experts", "experts", (uint64_t)c->n_experts);
        add_number(r, "experts_used", "  used by a token", (uint64_t)c->n_experts_used);
    }
    add_number(r, "hidden_size", "width", (uint64_t)c->hidden_size);
    add_number(r, "vocab_size", "vocabulary", (uint64_t)c->vocab_size);
    add_number(r, "context", "trained context, tokens", (uint64_t)c->max_position_embeddings);
    add_bool(r, "vision", "vision tower", c->has_vision);
    add_bool(r, "mtp", "multi-token-prediction head", model_has_mtp(m));
    add_bool(r, "chat_template", "chat template", model_chat_template(m) != NULL);
    add_number(r, "state_bytes_4096", "state for 4096 tokens, bytes",
               seq_state_bytes(c, KV_F16, false, 4096));
    add_number(r, "state_bytes_4096_q8", "  with --cache-type q8", seq_state_bytes(c, KV_Q8, false, 4096));
    add_number(r, "state_bytes_4096_q4", "  with --cache-type q4", seq_state_bytes(c, KV_Q4, false, 4096));
    add_number(r, "state_bytes_4096_f32", "  with --cache-type f32", seq_state_bytes(c, KV_F32, false, 4096));
}

static void write_json(bytes *out, const report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const row *x = &r->rows[i];
        bytes_printf(out, "%s\"%s\":", i ? "," : "", x->key);
        if (x->is_number) {
            bytes_append_str(out, x->text);
        } else {
            bytes_append_json(out, x->text, strlen(x->text));
        }
    }
}

err_code inspect_model(bytes *out, const char *path, const char *mmproj, bool as_json, err_detail *detail)
{
    model *m = NULL;
    const model_open_options opt = {.mmproj = mmproj};
    err_code err = model_open(&m, path, &opt, detail);
    if (err != ERR_OK) {
        return err;
    }
    report r = {0};
    fill(&r, m);
    if (as_json) {
        bytes_append_char(out, '{');
        write_json(out, &r);
        bytes_append_str(out, "}\n");
    }
    for (size_t i = 0; i < r.n && !as_json; i++) {
        bytes_printf(out, "%-30s %s\n", r.rows[i].label, r.rows[i].text);
    }
    model_close(m);
    return ERR_OK;
}

/* ---- a folder of models ---- */

static double gigabytes(uint64_t n)
{
    return (double)n / 1e9;
}

static void write_line(bytes *out, const char *name, const model *m)
{
    bytes_printf(out, "%-40s %8.2f %8.2f %8.2f %8.2f %9d  %-6s %s\n", name, gigabytes(model_n_params(m)),
                 gigabytes(model_weight_bytes(m)), gigabytes(model_weight_bytes_as(m, 8, 8)),
                 gigabytes(model_weight_bytes_as(m, 4, 8)), model_get_config(m)->max_position_embeddings,
                 model_get_config(m)->has_vision ? "yes" : "no", model_has_mtp(m) ? "yes" : "no");
}

static void inspect_one(bytes *out, const catalog *c, const catalog_model *entry, bool as_json)
{
    model *m = NULL;
    err_detail why = {0};
    const model_open_options opt = {0};
    err_code err = entry->error;
    if (err) {
        snprintf(why.text, sizeof why.text, "%s", entry->reason);
    } else {
        err_detail d = {0};
        err = model_open(&m, entry->path, &opt, &d);
        catalog_hide_folder(c, why.text, sizeof why.text, d.text);
    }
    if (as_json) {
        report r = {0};
        bytes_append_str(out, "{\"name\":");
        bytes_append_json(out, entry->name, strlen(entry->name));
        bytes_append_char(out, ',');
        if (err) {
            bytes_append_str(out, "\"error\":");
            bytes_append_json(out, why.text, strlen(why.text));
        } else {
            fill(&r, m);
            write_json(out, &r);
        }
        bytes_append_char(out, '}');
    } else if (err) {
        bytes_printf(out, "%-40s cannot be loaded: %s\n", entry->name, why.text);
    } else {
        write_line(out, entry->name, m);
    }
    model_close(m);
}

err_code inspect_folder(bytes *out, const char *dir, bool as_json, err_detail *detail)
{
    catalog *c = NULL;
    err_code err = catalog_open(&c, dir, detail);
    if (!err && catalog_count(c) == 0) {
        err = err_set(detail, ERR_NOT_FOUND, "%s holds no models", dir);
    }
    if (!err && !as_json) {
        bytes_printf(out, "%-40s %8s %8s %8s %8s %9s  %-6s %s\n", "name", "params/G", "GB", "q8", "q4",
                     "context", "vision", "mtp");
    }
    for (size_t i = 0; !err && i < catalog_count(c); i++) {
        bytes_append_str(out, !as_json ? "" : i ? "," : "[");
        inspect_one(out, c, catalog_at(c, i), as_json);
    }
    bytes_append_str(out, !err && as_json ? "]\n" : "");
    catalog_close(c);
    return err;
}

/* ---- before a model is there ---- */

typedef struct one_document {
    const char *text;
    size_t n;
} one_document;

static err_code read_one(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    const one_document *d = ctx;
    *out = NULL;
    return strcmp(name, "config.json") == 0 ? json_parse(out, d->text, d->n, LIMIT_JSON_DEPTH, detail)
                                            : ERR_OK;
}

err_code inspect_config(const char *text, size_t n, err_detail *detail)
{
    one_document d = {text, n};
    model_config cfg;
    return model_config_load(&cfg, (json_source){.read = read_one, .ctx = &d, .where = "the model"}, detail);
}

err_code inspect_gguf_head(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *detail)
{
    gguf_file *f = NULL;
    const char *name = NULL;
    size_t n_name = 0;
    err_code err = gguf_file_open_head(&f, data, n, n_file, "the model", is_whole, detail);
    if (err) {
        return err;
    }
    if (is_first && gguf_text(gguf_find(f, "general.architecture"), &name, &n_name)) {
        err = gguf_config_check("the model", name, n_name, detail);
    }
    const tensor_table *all = gguf_file_tensors(f);
    for (size_t i = 0; !err && i < all->n; i++) {
        if (all->items[i].view.type == DTYPE_OTHER) {
            err = gguf_file_refuse_type(&all->items[i], "the model", detail);
        }
    }
    gguf_file_close(f);
    return err;
}

/* ---- a checkpoint with weights in blocks ---- */

bool engine_parse_quantize(const char *text, int *n_bits)
{
    static const struct {
        const char *name;
        int n_bits;
    } formats[] = {{"none", 0}, {"q8", 8}, {"q4", 4}};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(text, formats[i].name) == 0) {
            *n_bits = formats[i].n_bits;
            return true;
        }
    }
    return false;
}

static void report_weights(void *ctx, uint64_t done, uint64_t total)
{
    const engine_convert_options *o = ctx;
    o->on_load(o->on_load_ctx, "weights", total ? (double)done / (double)total : 1.0);
}

err_code engine_convert(const char *dir, const char *out_dir, const engine_convert_options *o,
                        err_detail *detail)
{
    compute *c = NULL;
    engine_convert_options options = *o;
    const compute_options co = {.n_threads = o->n_threads, .cpu_mask = ~0u};
    err_code err = compute_create(&c, &co, detail);
    if (err == ERR_OK) {
        const quantize_options opt = {.layer_bits = o->layer_bits,
                                      .head_bits = o->head_bits,
                                      .c = c,
                                      .progress = {o->on_load ? report_weights : NULL, &options}};
        err = model_convert(dir, out_dir, &opt, detail);
    }
    compute_destroy(c);
    return err;
}
