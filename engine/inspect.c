#include "engine/inspect.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "model/seq_state.h"

/* One line of the report: a name for JSON, words for people, and a text or number. */
typedef struct row {
    const char *key, *label;
    char text[128];
    bool is_number;
} row;

enum { MAX_ROWS = 24 };

typedef struct report {
    row rows[MAX_ROWS];
    size_t n;
} report;

static void add_text(report *r, const char *key, const char *label, const char *text)
{
    row *x = &r->rows[r->n++];
    *x = (row){.key = key, .label = label};
    snprintf(x->text, sizeof x->text, "%s", text);
}

static void add_number(report *r, const char *key, const char *label, uint64_t v)
{
    row *x = &r->rows[r->n++];
    *x = (row){.key = key, .label = label, .is_number = true};
    snprintf(x->text, sizeof x->text, "%llu", (unsigned long long)v);
}

static void add_bool(report *r, const char *key, const char *label, bool v)
{
    add_text(r, key, label, v ? "yes" : "no");
}

static void fill(report *r, const model *m)
{
    const model_config *c = model_get_config(m);
    add_text(r, "folder", "folder", model_dir(m));
    add_text(r, "family", "family", c->family);
    add_number(r, "parameters", "parameters", model_n_params(m));
    add_number(r, "weight_bytes", "weights, bytes", model_weight_bytes(m));
    add_number(r, "layers", "layers", (uint64_t)c->n_layers);
    add_number(r, "attention_layers", "  with full attention", (uint64_t)c->n_attention_layers);
    add_number(r, "deltanet_layers", "  with GatedDeltaNet", (uint64_t)c->n_deltanet_layers);
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

err_code inspect_model(bytes *out, const char *dir, bool as_json, err_detail *detail)
{
    model *m = NULL;
    const model_open_options opt = {0};
    err_code err = model_open(&m, dir, &opt, detail);
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
