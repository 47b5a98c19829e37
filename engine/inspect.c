#include "engine/inspect.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"
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
    add_number(r, "attention_layers", "  with full attention", (uint64_t)c->n_attention_layers);
    add_number(r, "deltanet_layers", "  with GatedDeltaNet", (uint64_t)c->n_deltanet_layers);
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
    add_number(r, "state_bytes_4096_f32", "  with --cache-type f32", seq_state_bytes(c, KV_F32, false, 4096));
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
    for (size_t i = 0; i < r.n; i++) {
        const row *x = &r.rows[i];
        if (!as_json) {
            bytes_printf(out, "%-30s %s\n", x->label, x->text);
            continue;
        }
        bytes_printf(out, "%s\"%s\":", i ? "," : "{", x->key);
        if (x->is_number) {
            bytes_append_str(out, x->text);
        } else {
            bytes_append_json(out, x->text, strlen(x->text));
        }
    }
    bytes_append_str(out, as_json ? "}\n" : "");
    model_close(m);
    return ERR_OK;
}
