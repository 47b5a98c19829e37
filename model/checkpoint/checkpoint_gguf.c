/* The GGUF form: one file, or its parts, with everything inside; and, beside it, an mmproj file
 * with the vision tower. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "model/checkpoint/checkpoint_form.h"
#include "model/checkpoint/gguf_config.h"
#include "model/checkpoint/gguf_set.h"
#include "model/checkpoint/gguf_tokenizer.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 320, DOCUMENT_BYTES = 1 << 20 };

typedef struct gguf_form {
    gguf_set *set;
    gguf_file *vision;      /* or NULL */
    uint64_t n_layers;      /* of the decoder; those behind them are the draft head's */
    uint64_t permuted_head; /* see gguf_config_permuted_head */
    gguf_names names;
    bool is_gemma_tower;
    const char *path;
    char vision_path[PATH_BYTES];
} gguf_form;

/* ---- names ---- */

typedef struct name_pair {
    const char *stored, *canonical;
} name_pair;

static const name_pair WHOLE_NAMES[] = {
    {"token_embd.weight", "embed_tokens.weight"},
    {"output_norm.weight", "norm.weight"},
    {"output.weight", "lm_head.weight"},
    {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight"},
    {"rope_freqs.weight", "rope_freqs.weight"}, /* the config says the same (gguf_config.c) */
    {"v.patch_embd.bias", "visual.patch_embed.proj.bias"},
    {"v.position_embd.weight", "visual.pos_embed.weight"},
    {"v.post_ln.weight", "visual.merger.norm.weight"},
    {"v.post_ln.bias", "visual.merger.norm.bias"},
    {"mm.0.weight", "visual.merger.linear_fc1.weight"},
    {"mm.0.bias", "visual.merger.linear_fc1.bias"},
    {"mm.2.weight", "visual.merger.linear_fc2.weight"},
    {"mm.2.bias", "visual.merger.linear_fc2.bias"},
};

/* Behind "blk.N.". */
static const name_pair LAYER_NAMES[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_qkv.weight", "linear_attn.in_proj_qkv.weight"},
    {"attn_gate.weight", "linear_attn.in_proj_z.weight"},
    {"ssm_beta.weight", "linear_attn.in_proj_b.weight"},
    {"ssm_alpha.weight", "linear_attn.in_proj_a.weight"},
    {"ssm_ba.weight", "linear_attn.in_proj_ba.weight"},
    {"ssm_in.weight", "linear_attn.in_proj_qkvz.weight"},
    {"ssm_conv1d.weight", "linear_attn.conv1d.weight"},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_a", "linear_attn.A_log"},
    {"ssm_norm.weight", "linear_attn.norm.weight"},
    {"ssm_out.weight", "linear_attn.out_proj.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_exps.weight", "mlp.experts.gate_proj"},
    {"ffn_up_exps.weight", "mlp.experts.up_proj"},
    {"ffn_down_exps.weight", "mlp.experts.down_proj"},
    {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ffn_gate_inp.bias", "mlp.gate.bias"},
    {"ffn_gate_exps.bias", "mlp.experts.gate_proj_bias"},
    {"ffn_up_exps.bias", "mlp.experts.up_proj_bias"},
    {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight"},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_latent_down.weight", "mlp.fc1_latent_proj.weight"},
    {"ffn_latent_up.weight", "mlp.fc2_latent_proj.weight"},
};

/* The same in architectures of Mamba-2, before the table above. */
static const name_pair MAMBA_NAMES[] = {
    {"ssm_in.weight", "mamba.in_proj.weight"},
    {"ssm_conv1d.weight", "mamba.conv1d.weight"},
    {"ssm_conv1d.bias", "mamba.conv1d.bias"},
    {"ssm_dt.bias", "mamba.dt_bias"},
    {"ssm_a", "mamba.A_log"},
    {"ssm_d", "mamba.D"},
    {"ssm_norm.weight", "mamba.norm.weight"},
    {"ssm_out.weight", "mamba.out_proj.weight"},
};

/* The same in Gemma 4. */
static const name_pair GEMMA_NAMES[] = {
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    {"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight"},
    {"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight"},
    {"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight"},
    {"layer_output_scale.weight", "layer_scalar"},
    {"inp_gate.weight", "per_layer_input_gate.weight"},
    {"proj.weight", "per_layer_projection.weight"},
    {"post_norm.weight", "post_per_layer_input_norm.weight"},
    {"ffn_gate_inp.scale", "mlp.gate.scale"},
    {"ffn_down_exps.scale", "mlp.gate.per_expert_scale"},
};

/* Behind "blk.N." of a draft layer. */
static const name_pair DRAFT_NAMES[] = {
    {"nextn.eh_proj.weight", "mtp.fc.weight"},
    {"nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight"},
    {"nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"},
    {"nextn.shared_head_norm.weight", "mtp.norm.weight"},
};

/* Behind "v.blk.N." and "v.deepstack.N.", before ".weight" or ".bias". */
static const name_pair VISION_NAMES[] = {
    {"attn_qkv", "attn.qkv"}, {"attn_out", "attn.proj"},    {"ln1", "norm1"},
    {"ln2", "norm2"},         {"ffn_up", "mlp.linear_fc1"}, {"ffn_down", "mlp.linear_fc2"},
};
/* The same of Gemma 4's tower, before ".weight" and the names of bounds. */
static const name_pair GEMMA_VISION_NAMES[] = {
    {"attn_q", "self_attn.q_proj"},       {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},       {"attn_out", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},  {"attn_k_norm", "self_attn.k_norm"},
    {"ln1", "input_layernorm"},           {"attn_post_norm", "post_attention_layernorm"},
    {"ln2", "pre_feedforward_layernorm"}, {"ffn_post_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},        {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
static const name_pair GEMMA_TOWER_NAMES[] = {
    {"v.patch_embd.weight", "visual.patch_embedder.input_proj.weight"},
    {"v.position_embd.weight", "visual.patch_embedder.position_embedding_table"},
    {"v.std_bias", "visual.std_bias"},
    {"v.std_scale", "visual.std_scale"},
    {"mm.input_projection.weight", "visual.embedding_projection.weight"},
};
static const name_pair DEEPSTACK_NAMES[] = {{"norm", "norm"}, {"fc1", "linear_fc1"}, {"fc2", "linear_fc2"}};

/* The canonical name of the one of n that is text[0..len); NULL if there is none. */
static const char *find_name(const name_pair *names, size_t n, const char *text, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i].stored) == len && memcmp(names[i].stored, text, len) == 0) {
            return names[i].canonical;
        }
    }
    return NULL;
}

/* "PREFIX" NUMBER "." at the beginning; *rest is what follows. */
static bool take_number(const char *name, const char *prefix, uint64_t *number, const char **rest)
{
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9') {
        return false;
    }
    char *end = NULL;
    *number = strtoull(name + n, &end, 10);
    *rest = end + 1;
    return *end == '.';
}

static uint64_t deepstack_place(const gguf_form *g, uint64_t layer)
{
    const gguf_value *deep = gguf_find(g->vision, "clip.vision.is_deepstack_layers");
    uint64_t place = 0;
    for (uint64_t i = 0; deep && deep->type == GGUF_BOOL && i < deep->n && i < layer; i++) {
        place += deep->data[i];
    }
    return place;
}

/* What a tensor behind "blk.N." is called. */
static const char *layer_name(const gguf_form *g, const char *rest)
{
    const size_t n = strlen(rest);
    const char *found = g->names == GGUF_NAMES_MAMBA ? find_name(MAMBA_NAMES, ARRAY_LEN(MAMBA_NAMES), rest, n)
                        : g->names == GGUF_NAMES_GEMMA
                            ? find_name(GEMMA_NAMES, ARRAY_LEN(GEMMA_NAMES), rest, n)
                            : NULL;
    return found ? found : find_name(LAYER_NAMES, ARRAY_LEN(LAYER_NAMES), rest, n);
}

/* The same behind "v.blk.N."; n: without ".weight" or the like. */
static const char *vision_name(const gguf_form *g, const char *rest, size_t n)
{
    return g->is_gemma_tower ? find_name(GEMMA_VISION_NAMES, ARRAY_LEN(GEMMA_VISION_NAMES), rest, n)
                             : find_name(VISION_NAMES, ARRAY_LEN(VISION_NAMES), rest, n);
}

/* Writes the canonical name; false if the tensor is not part of a model that is known here. */
static bool canonical_name(char out[NAME_BYTES], const gguf_form *g, const char *stored)
{
    const char *rest = stored,
               *found = find_name(WHOLE_NAMES, ARRAY_LEN(WHOLE_NAMES), stored, strlen(stored));
    uint64_t i = 0;
    if (g->is_gemma_tower) {
        const char *own = find_name(GEMMA_TOWER_NAMES, ARRAY_LEN(GEMMA_TOWER_NAMES), stored, strlen(stored));
        found = own ? own : found;
    }
    if (found) {
        snprintf(out, NAME_BYTES, "%s", found);
        return true;
    }
    if (take_number(stored, "blk.", &i, &rest)) {
        found = layer_name(g, rest);
        if (found && i < g->n_layers) {
            snprintf(out, NAME_BYTES, "layers.%llu.%s", (unsigned long long)i, found);
        } else if (found) {
            snprintf(out, NAME_BYTES, "mtp.layers.%llu.%s", (unsigned long long)(i - g->n_layers), found);
        } else if (i >= g->n_layers) {
            found = find_name(DRAFT_NAMES, ARRAY_LEN(DRAFT_NAMES), rest, strlen(rest));
            snprintf(out, NAME_BYTES, "%s", found ? found : "");
        }
        return found != NULL;
    }
    const bool deep = take_number(stored, "v.deepstack.", &i, &rest);
    if (deep || take_number(stored, "v.blk.", &i, &rest)) {
        const char *dot = strrchr(rest, '.');
        const size_t n = dot ? (size_t)(dot - rest) : 0;
        found =
            deep ? find_name(DEEPSTACK_NAMES, ARRAY_LEN(DEEPSTACK_NAMES), rest, n) : vision_name(g, rest, n);
        if (found) {
            snprintf(out, NAME_BYTES, "visual.%s.%llu.%s%s",
                     deep                ? "deepstack_merger_list"
                     : g->is_gemma_tower ? "encoder.layers"
                                         : "blocks",
                     (unsigned long long)(deep ? deepstack_place(g, i) : i), found, dot);
        }
        return found != NULL;
    }
    return false;
}

/* ---- tensors ---- */

static err_code no_memory(const gguf_form *g, err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "%s: no memory for the table of tensors", g->path);
}

/* Rows of queries or keys, stored pair by pair, as they are published; packed rows are moved whole. */
static err_code unpermute(checkpoint_contents *out, const gguf_form *g, named_tensor *named,
                          err_detail *detail)
{
    tensor *t = &named->view;
    const size_t hd = g->permuted_head, rows = t->dims[0];
    if (hd < 2 || hd % 2 != 0 || rows == 0 || rows % hd != 0 || t->bytes % rows != 0) {
        return err_set(detail, ERR_CORRUPT, "%s: tensor %s does not hold whole heads of %zu", g->path,
                       named->stored, hd);
    }
    const size_t n = t->bytes / rows;
    unsigned char *to = arena_alloc(out->memory, t->bytes);
    if (!to) {
        return no_memory(g, detail);
    }
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r % hd, half = hd / 2;
        memcpy(to + r * n, (const unsigned char *)t->data + (r - at + at % half * 2 + at / half) * n, n);
    }
    t->data = to;
    return ERR_OK;
}

static bool is_query_or_key(const char *name)
{
    return strstr(name, ".self_attn.q_proj.") || strstr(name, ".self_attn.k_proj.");
}

/* Some tensors are kept in another form than published: A_log as -exp(A_log), others without a size
 * of 1, or vectors cut into rows. */
static err_code restore(checkpoint_contents *out, const gguf_form *g, named_tensor *named, err_detail *detail)
{
    tensor *t = &named->view;
    if (g->permuted_head > 0 && is_query_or_key(named->name)) {
        return unpermute(out, g, named, detail);
    }
    if (strstr(named->name, ".mamba.") && t->n_dims == 2 && t->type < DTYPE_OTHER &&
        (name_ends_with(named->name, ".A_log") || name_ends_with(named->name, ".D") ||
         name_ends_with(named->name, ".norm.weight"))) {
        t->dims[0] *= t->dims[1];
        t->n_dims = 1;
    }
    if (name_ends_with(named->name, ".shared_expert_gate.weight") && t->n_dims == 1) {
        t->dims[1] = t->dims[0];
        t->dims[0] = 1;
        t->n_dims = 2;
    } else if (name_ends_with(named->name, ".conv1d.weight") && t->n_dims == 2) {
        t->dims[2] = t->dims[1];
        t->dims[1] = 1;
        t->n_dims = 3;
    } else if (name_ends_with(named->name, ".A_log") && t->type < DTYPE_OTHER) {
        const size_t n = tensor_len(t);
        float *values = arena_calloc(out->memory, n, sizeof *values);
        if (!values) {
            return no_memory(g, detail);
        }
        tensor_to_f32(values, t, 0, n);
        for (size_t i = 0; i < n; i++) {
            if (!(values[i] < 0)) {
                return err_set(detail, ERR_CORRUPT, "%s: tensor %s: a decay is not below zero", g->path,
                               named->stored);
            }
            values[i] = logf(-values[i]);
        }
        *t = (tensor){DTYPE_F32, t->n_dims, {t->dims[0]}, values, n * sizeof *values};
    }
    return ERR_OK;
}

/* A tensor of the file `path`, under its canonical name. */
static err_code add_tensor(checkpoint_contents *out, const gguf_form *g, const named_tensor *from,
                           const char *path, err_detail *detail)
{
    char name[NAME_BYTES];
    if (!canonical_name(name, g, from->stored)) {
        return err_set(detail, ERR_UNSUPPORTED, "%s: tensor %.200s is not part of a model that is known here",
                       path, from->stored);
    }
    if (from->view.type == DTYPE_OTHER) {
        return gguf_file_refuse_type(from, path, detail);
    }
    named_tensor t = *from;
    t.name = arena_strdup(out->memory, name, strlen(name));
    err_code err = t.name ? restore(out, g, &t, detail) : no_memory(g, detail);
    return err || tensor_table_add(&out->tensors, &t) ? err : no_memory(g, detail);
}

static err_code add_set(checkpoint_contents *out, const gguf_form *g, err_detail *detail)
{
    const tensor_table *all = gguf_set_tensors(g->set);
    err_code err = ERR_OK;
    for (size_t i = 0; !err && i < all->n; i++) {
        err = add_tensor(out, g, &all->items[i], g->path, detail);
    }
    return err;
}

/* ---- the vision tower ---- */

/* The patch embedding of a pair of frames: two tensors [vh, 3, patch, patch] become one [vh, 3, 2,
 * patch, patch]. */
static err_code add_patch_embedding(checkpoint_contents *out, const gguf_form *g, err_detail *detail)
{
    const tensor_table *all = gguf_file_tensors(g->vision);
    tensor halves[2];
    if (!tensor_table_get(all, "v.patch_embd.weight", &halves[0]) ||
        !tensor_table_get(all, "v.patch_embd.weight.1", &halves[1])) {
        return err_set(detail, ERR_NOT_FOUND,
                       "%s: tensor v.patch_embd.weight or v.patch_embd.weight.1 is missing", g->vision_path);
    }
    const tensor *a = &halves[0], *b = &halves[1];
    if (a->n_dims != 4 || a->type >= DTYPE_OTHER || b->type != a->type || b->n_dims != 4 ||
        memcmp(a->dims, b->dims, 4 * sizeof *a->dims) != 0) {
        return err_set(
            detail, ERR_CORRUPT,
            "%s: tensors v.patch_embd.weight and v.patch_embd.weight.1 are not two halves of float weights",
            g->vision_path);
    }
    const size_t n_bytes = a->dims[2] * a->dims[3] * dtype_bytes(a->type), n = a->dims[0] * a->dims[1];
    unsigned char *both = arena_calloc(out->memory, 2 * n, n_bytes);
    if (!both) {
        return no_memory(g, detail);
    }
    for (size_t i = 0; i < 2 * n; i++) {
        memcpy(both + i * n_bytes, (const unsigned char *)halves[i % 2].data + i / 2 * n_bytes, n_bytes);
    }
    const named_tensor whole = {
        .name = "visual.patch_embed.proj.weight",
        .stored = "v.patch_embd.weight",
        .view = {a->type, 5, {a->dims[0], a->dims[1], 2, a->dims[2], a->dims[3]}, both, 2 * n * n_bytes}};
    return tensor_table_add(&out->tensors, &whole) ? ERR_OK : no_memory(g, detail);
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static err_code add_vision(checkpoint_contents *out, const gguf_form *g, err_detail *detail)
{
    const tensor_table *all = gguf_file_tensors(g->vision);
    err_code err = g->is_gemma_tower ? ERR_OK : add_patch_embedding(out, g, detail);
    size_t n_of_audio = 0;
    for (size_t i = 0; !err && i < all->n; i++) {
        const char *name = all->items[i].name;
        const bool is_audio = begins(name, "a.") || begins(name, "mm.a.");
        n_of_audio += is_audio;
        if (!is_audio && (g->is_gemma_tower || !begins(name, "v.patch_embd.weight"))) {
            err = add_tensor(out, g, &all->items[i], g->vision_path, detail);
        }
    }
    if (n_of_audio > 0) {
        log_warn("mod", "%s: its audio tower is not supported; text and images work", g->vision_path);
    }
    return err;
}

/* Whether the file is a vision tower whose rows fit the model. */
static bool fits(const gguf_file *vision, const gguf_form *g)
{
    uint64_t width = 0;
    const gguf_value *kind = gguf_find(vision, "clip.vision.projector_type");
    const named_tensor *table = tensor_table_find(gguf_set_tensors(g->set), "token_embd.weight");
    const char *wanted = g->names == GGUF_NAMES_GEMMA ? "gemma4v" : "qwen3vl_merger";
    return gguf_is_text(kind ? kind : gguf_find(vision, "clip.projector_type"), wanted) && table &&
           table->view.n_dims == 2 && gguf_uint(gguf_find(vision, "clip.vision.projection_dim"), &width) &&
           width == table->view.dims[1];
}

/* Looks for *mmproj*.gguf in the model's folder; the first in alphabetical order that fits is
 * taken. */
static void find_vision(gguf_form *g)
{
    char dir[PATH_BYTES], best[NAME_BYTES] = "", path[PATH_BYTES];
    const char *slash = strrchr(g->path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - g->path) : 1, slash ? g->path : ".");
    DIR *d = opendir(dir[0] ? dir : "/");
    for (struct dirent *e; d && (e = readdir(d));) {
        gguf_file *f = NULL;
        err_detail why = {0};
        const bool better = best[0] == '\0' || strcmp(e->d_name, best) < 0;
        if (!strstr(e->d_name, "mmproj") || !name_ends_with(e->d_name, ".gguf") || !better ||
            !file_join(path, sizeof path, dir, e->d_name)) {
            continue;
        }
        if (gguf_file_open(&f, path, &why) != ERR_OK) {
            log_warn("mod", "%s; it is left out", why.text);
        } else if (!fits(f, g)) {
            gguf_file_close(f);
        } else {
            gguf_file_close(g->vision);
            g->vision = f;
            snprintf(best, sizeof best, "%s", e->d_name);
            snprintf(g->vision_path, sizeof g->vision_path, "%s", path);
        }
    }
    if (d) {
        closedir(d);
    }
    if (g->vision) {
        log_info("mod", "the vision tower is taken from %s", g->vision_path);
    }
}

/* The file that was named. */
static err_code take_vision(gguf_form *g, const char *path, err_detail *detail)
{
    if (snprintf(g->vision_path, sizeof g->vision_path, "%s", path) >= (int)sizeof g->vision_path) {
        return err_set(detail, ERR_INVALID, "the path of the vision tower is too long");
    }
    err_code err = gguf_file_open(&g->vision, path, detail);
    if (!err && !fits(g->vision, g)) {
        err = err_set(detail, ERR_INVALID,
                      "%s is not a vision tower of %s: clip.projector_type must be %s, and "
                      "clip.vision.projection_dim the model's embedding_length",
                      path, g->path, g->names == GGUF_NAMES_GEMMA ? "gemma4v" : "qwen3vl_merger");
    }
    return err;
}

/* ---- the form ---- */

static gguf_config_source source_of(const gguf_form *g)
{
    return (gguf_config_source){g->set, g->vision, g->path, g->vision_path};
}

static err_code read_document(void *self, const char *name, json_doc **out, err_detail *detail)
{
    const gguf_form *g = self;
    const gguf_config_source from = source_of(g);
    err_code err = ERR_OK;
    *out = NULL;
    bytes text = bytes_empty(DOCUMENT_BYTES);
    if (strcmp(name, "config.json") == 0) {
        err = gguf_config_json(&text, &from, detail);
    } else if (strcmp(name, "generation_config.json") == 0) {
        gguf_generation_json(&text, &from);
    } else if (strcmp(name, "preprocessor_config.json") == 0) {
        gguf_preprocessor_json(&text, &from);
    }
    if (!err && text.failed) {
        err = err_set(detail, ERR_NOMEM, "no memory to read %s", g->path);
    } else if (!err && text.len > 0) {
        err = json_parse(out, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, detail);
    }
    bytes_deinit(&text);
    return err;
}

static err_code open_tokenizer(void *self, tokenizer **out, err_detail *detail)
{
    const gguf_form *g = self;
    *out = NULL;
    bytes text = bytes_empty(LIMIT_TOKENIZER_BYTES);
    err_code err = gguf_tokenizer_json(&text, gguf_set_head(g->set), g->path, detail);
    err = err ? err : tokenizer_open_json(out, bytes_str(&text), text.len, g->path, detail);
    bytes_deinit(&text);
    return err;
}

static err_code read_template(void *self, bytes *out, err_detail *detail)
{
    (void)detail;
    const gguf_form *g = self;
    const char *text = NULL;
    size_t n = 0;
    if (gguf_text(gguf_find(gguf_set_head(g->set), "tokenizer.chat_template"), &text, &n)) {
        bytes_append(out, text, n);
    }
    return ERR_OK;
}

static void close_form(void *self)
{
    gguf_form *g = self;
    if (g) {
        gguf_set_close(g->set);
        gguf_file_close(g->vision);
        free(g);
    }
}

/* The files, and what they are. */
static err_code open_files(gguf_form *g, const char *path, const char *mmproj, err_detail *detail)
{
    uint64_t n_draft = 0;
    g->path = path;
    err_code err = gguf_set_open(&g->set, path, detail);
    if (!err) {
        const gguf_config_source from = source_of(g);
        err = gguf_config_layers(&from, &g->n_layers, &n_draft, detail);
        g->names = gguf_config_names(&from);
        g->permuted_head = gguf_config_permuted_head(&from);
    }
    if (!err && mmproj) {
        err = take_vision(g, mmproj, detail);
    } else if (!err) {
        find_vision(g);
    }
    g->is_gemma_tower = gguf_config_is_gemma_tower(g->vision);
    return err;
}

static err_code open_form(void **self, checkpoint_contents *out, const char *path, const char *mmproj,
                          err_detail *detail)
{
    gguf_form *g = *self = calloc(1, sizeof *g);
    if (!g) {
        return err_set(detail, ERR_NOMEM, "no memory to open %s", path);
    }
    err_code err = open_files(g, path, mmproj, detail);
    if (err) {
        return err;
    }
    const gguf_config_source from = source_of(g);
    out->traits = (checkpoint_traits){
        .norms_hold_one = true, .mtp_norms_hold_one = true, .value_heads_tiled = gguf_config_is_tiled(&from)};
    err = add_set(out, g, detail);
    return !err && g->vision ? add_vision(out, g, detail) : err;
}

const checkpoint_form CHECKPOINT_GGUF = {open_form, read_document, open_tokenizer, read_template, close_form};
