#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "compute/quant.h"

/* LAYER_MATRICES: most that a layer keeps in blocks. */
enum { NAME_MAX_BYTES = 256, WEIGHTS_ARENA_BYTES = 1 << 30, LAYER_MATRICES = 7 };

/* Prefixes of the decoder's tensors: official, converted by MLX tools, text-only exports. */
static const char *const PREFIXES[] = {"model.language_model.", "language_model.model.", "model."};

/* What a reading function needs: where tensors come from and where names begin. */
typedef struct loader {
    const tensor_set *set;
    const model_config *cfg;
    arena *memory;
    char prefix[NAME_MAX_BYTES]; /* "model.language_model.layers.3." */
    uint64_t n_params, n_bytes;
    matrix_ref *matrices;
    size_t n_matrices;
    err_detail *detail;
} loader;

static void append_shape(bytes *b, const size_t *dims, size_t n)
{
    bytes_append_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        bytes_printf(b, i ? ", %zu" : "%zu", dims[i]);
    }
    bytes_append_char(b, ']');
}

static err_code wrong_shape(const loader *ld, const char *name, const size_t *want, size_t n_want,
                            const tensor *found)
{
    bytes text;
    bytes_init(&text, ERR_TEXT_MAX);
    append_shape(&text, want, n_want);
    bytes_append_str(&text, " by config.json, but is ");
    append_shape(&text, found->dims, (size_t)found->n_dims);
    err_code err =
        err_set(ld->detail, ERR_CORRUPT, "tensor %s should have the shape %s", name, bytes_str(&text));
    bytes_deinit(&text);
    return err;
}

/* Finds prefix + suffix and checks type and shape. */
static err_code find_shaped(loader *ld, tensor *out, const char *suffix, const size_t *dims, size_t n_dims)
{
    char name[2 * NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s%s", ld->prefix, suffix);
    if (!tensor_set_find(ld->set, name, out)) {
        return err_set(ld->detail, ERR_NOT_FOUND, "tensor %s is missing", name);
    }
    if ((size_t)out->n_dims != n_dims || memcmp(out->dims, dims, n_dims * sizeof *dims) != 0) {
        return wrong_shape(ld, name, dims, n_dims, out);
    }
    if (out->type == DTYPE_OTHER) {
        return err_set(ld->detail, ERR_UNSUPPORTED,
                       "tensor %s has a type that is not supported (F32, BF16, F16 are)", name);
    }
    ld->n_params += tensor_len(out);
    ld->n_bytes += out->bytes;
    return ERR_OK;
}

static err_code find_matrix(loader *ld, tensor *out, const char *suffix, int32_t rows, int32_t cols)
{
    return find_shaped(ld, out, suffix, (size_t[]){(size_t)rows, (size_t)cols}, 2);
}

/* Remembers a matrix that may be kept in blocks. */
static err_code remember(loader *ld, tensor *at, const char *name, bool is_head)
{
    size_t n = strlen(name) + 1;
    char *copy = arena_calloc(ld->memory, n, 1);
    if (!copy) {
        return err_set(ld->detail, ERR_NOMEM, "no memory for the table of weights");
    }
    memcpy(copy, name, n);
    ld->matrices[ld->n_matrices++] = (matrix_ref){at, copy, is_head};
    return ERR_OK;
}

/* Finds NAME.q8 or NAME.q4: bytes [rows, bytes of a row]. */
static bool find_blocks(const loader *ld, tensor *out, const char *name, size_t rows, size_t cols)
{
    char full[2 * NAME_MAX_BYTES + 8];
    for (dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        snprintf(full, sizeof full, "%s.%s", name, dtype_name(type));
        if (tensor_set_find(ld->set, full, out) && out->n_dims == 2 && out->dims[0] == rows &&
            out->bytes == rows * quant_row_bytes(type, cols)) {
            out->type = type;
            out->dims[1] = cols;
            return true;
        }
    }
    return false;
}

/* A matrix of a layer: as numbers or in blocks. */
static err_code find_layer_matrix(loader *ld, tensor *out, const char *suffix, int32_t rows, int32_t cols)
{
    char name[2 * NAME_MAX_BYTES];
    tensor t;
    snprintf(name, sizeof name, "%s%s", ld->prefix, suffix);
    if (tensor_set_find(ld->set, name, &t) || !find_blocks(ld, out, name, (size_t)rows, (size_t)cols)) {
        err_code err = find_matrix(ld, out, suffix, rows, cols);
        return err ? err : remember(ld, out, name, false);
    }
    ld->n_params += tensor_len(out);
    ld->n_bytes += out->bytes;
    return ERR_OK;
}

/* Widens a tensor to float32 in the arena, plus `shift` (1 for zero-centred norms). */
static err_code widen(loader *ld, const float **out, const tensor *t, float shift)
{
    size_t n = tensor_len(t);
    float *copy = arena_calloc(ld->memory, n, sizeof *copy);
    if (!copy) {
        return err_set(ld->detail, ERR_NOMEM, "no memory for the norm weights");
    }
    tensor_to_f32(copy, t, 0, n);
    for (size_t i = 0; i < n; i++) {
        copy[i] += shift;
    }
    *out = copy;
    return ERR_OK;
}

static err_code find_vector(loader *ld, const float **out, const char *suffix, int32_t n, float shift)
{
    tensor t;
    err_code err = find_shaped(ld, &t, suffix, (size_t[]){(size_t)n}, 1);
    return err ? err : widen(ld, out, &t, shift);
}

/* A zero-centred norm: used as 1 + stored. */
static err_code find_norm(loader *ld, const float **out, const char *suffix, int32_t n)
{
    return find_vector(ld, out, suffix, n, 1.0f);
}

static err_code load_attention(loader *ld, attention_weights *w)
{
    const model_config *cfg = ld->cfg;
    int32_t H = cfg->hidden_size, hd = cfg->head_dim;
    err_code err = find_layer_matrix(ld, &w->q_proj, "self_attn.q_proj.weight", cfg->n_heads * 2 * hd, H);
    if (!err) {
        err = find_layer_matrix(ld, &w->k_proj, "self_attn.k_proj.weight", cfg->n_kv_heads * hd, H);
    }
    if (!err) {
        err = find_layer_matrix(ld, &w->v_proj, "self_attn.v_proj.weight", cfg->n_kv_heads * hd, H);
    }
    if (!err) {
        err = find_layer_matrix(ld, &w->o_proj, "self_attn.o_proj.weight", H, cfg->n_heads * hd);
    }
    if (!err) {
        err = find_norm(ld, &w->q_norm, "self_attn.q_norm.weight", hd);
    }
    if (!err) {
        err = find_norm(ld, &w->k_norm, "self_attn.k_norm.weight", hd);
    }
    return err;
}

static err_code load_deltanet(loader *ld, deltanet_weights *w)
{
    const model_config *cfg = ld->cfg;
    int32_t H = cfg->hidden_size, nv = cfg->delta_n_v;
    int32_t value_width = nv * cfg->delta_dv, channels = 2 * cfg->delta_n_k * cfg->delta_dk + value_width;
    tensor conv;
    err_code err = find_layer_matrix(ld, &w->in_proj_qkv, "linear_attn.in_proj_qkv.weight", channels, H);
    if (!err) {
        err = find_layer_matrix(ld, &w->in_proj_z, "linear_attn.in_proj_z.weight", value_width, H);
    }
    if (!err) {
        err = find_matrix(ld, &w->in_proj_b, "linear_attn.in_proj_b.weight", nv, H);
    }
    if (!err) {
        err = find_matrix(ld, &w->in_proj_a, "linear_attn.in_proj_a.weight", nv, H);
    }
    if (!err) {
        err = find_layer_matrix(ld, &w->out_proj, "linear_attn.out_proj.weight", H, value_width);
    }
    if (!err) {
        err = find_shaped(ld, &conv, "linear_attn.conv1d.weight",
                          (size_t[]){(size_t)channels, 1, (size_t)cfg->conv_kernel}, 3);
    }
    if (!err) {
        err = widen(ld, &w->conv, &conv, 0.0f);
    }
    if (!err) {
        err = find_vector(ld, &w->A_log, "linear_attn.A_log", nv, 0.0f);
    }
    if (!err) {
        err = find_vector(ld, &w->dt_bias, "linear_attn.dt_bias", nv, 0.0f);
    }
    if (!err) {
        err = find_vector(ld, &w->norm, "linear_attn.norm.weight", cfg->delta_dv, 0.0f);
    }
    return err;
}

static err_code load_ffn(loader *ld, ffn_weights *w)
{
    int32_t H = ld->cfg->hidden_size, I = ld->cfg->intermediate_size;
    err_code err = find_layer_matrix(ld, &w->gate, "mlp.gate_proj.weight", I, H);
    if (!err) {
        err = find_layer_matrix(ld, &w->up, "mlp.up_proj.weight", I, H);
    }
    if (!err) {
        err = find_layer_matrix(ld, &w->down, "mlp.down_proj.weight", H, I);
    }
    return err;
}

/* ld->prefix is the layer's. */
static err_code load_layer(loader *ld, layer_weights *w, layer_kind kind)
{
    w->kind = kind;
    err_code err = find_norm(ld, &w->input_norm, "input_layernorm.weight", ld->cfg->hidden_size);
    if (!err) {
        err = find_norm(ld, &w->post_norm, "post_attention_layernorm.weight", ld->cfg->hidden_size);
    }
    if (!err) {
        err = kind == LAYER_ATTENTION ? load_attention(ld, &w->attention) : load_deltanet(ld, &w->deltanet);
    }
    return err ? err : load_ffn(ld, &w->ffn);
}

/* Picks the prefix under which the embedding table is found. */
static err_code find_prefix(loader *ld, const char **prefix)
{
    char name[NAME_MAX_BYTES];
    tensor t;
    for (size_t i = 0; i < ARRAY_LEN(PREFIXES); i++) {
        snprintf(name, sizeof name, "%sembed_tokens.weight", PREFIXES[i]);
        if (tensor_set_find(ld->set, name, &t)) {
            *prefix = PREFIXES[i];
            return ERR_OK;
        }
    }
    return err_set(ld->detail, ERR_NOT_FOUND, "tensor %sembed_tokens.weight is missing", PREFIXES[0]);
}

static err_code load_head(loader *ld, weights *w)
{
    static const char name[] = "lm_head.weight";
    const model_config *cfg = ld->cfg;
    const size_t V = (size_t)cfg->vocab_size, H = (size_t)cfg->hidden_size;
    tensor t;
    bool outer = tensor_set_find(ld->set, "language_model.lm_head.weight", &t);
    ld->prefix[0] = '\0';
    if (find_blocks(ld, &w->head, name, V, H)) {
        ld->n_bytes += w->head.bytes;
        ld->n_params += cfg->tie_word_embeddings ? 0 : tensor_len(&w->head);
        return ERR_OK;
    }
    if (cfg->tie_word_embeddings) {
        w->head = w->embed; /* some fine-tunes ship a copy: the table counts */
        return remember(ld, &w->head, name, true);
    }
    snprintf(ld->prefix, sizeof ld->prefix, "%s", outer ? "language_model." : "");
    err_code err = find_matrix(ld, &w->head, name, cfg->vocab_size, cfg->hidden_size);
    return err ? err : remember(ld, &w->head, name, true);
}

/* Whether the files hold a draft head: none of its tensors is "no", some without fc is a fault. */
static err_code detect_mtp(const loader *ld, bool *has, const char **prefix)
{
    static const char *const prefixes[] = {"mtp.", "language_model.mtp."};
    char name[NAME_MAX_BYTES];
    tensor t;
    *has = false;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        *prefix = prefixes[i];
        snprintf(name, sizeof name, "%sfc.weight", prefixes[i]);
        const size_t H = (size_t)ld->cfg->hidden_size;
        if (tensor_set_find(ld->set, name, &t) || find_blocks(ld, &t, name, H, 2 * H)) {
            *has = true;
            return ERR_OK;
        }
        for (size_t k = 0; k < tensor_set_count(ld->set); k++) {
            const char *found = tensor_set_at(ld->set, k, &t);
            if (strncmp(found, prefixes[i], n) == 0) {
                return err_set(ld->detail, ERR_NOT_FOUND, "tensor %s is missing, although %s is there", name,
                               found);
            }
        }
    }
    return ERR_OK;
}

static err_code load_mtp(loader *ld, weights *w)
{
    int32_t H = ld->cfg->hidden_size;
    const char *prefix = "";
    mtp_weights *mtp = &w->mtp;
    err_code err = ld->cfg->n_mtp_layers ? detect_mtp(ld, &w->has_mtp, &prefix) : ERR_OK;
    if (err || !w->has_mtp) {
        return err;
    }
    snprintf(ld->prefix, sizeof ld->prefix, "%s", prefix);
    err = find_layer_matrix(ld, &mtp->fc, "fc.weight", H, 2 * H);
    if (!err) {
        err = find_norm(ld, &mtp->embedding_norm, "pre_fc_norm_embedding.weight", H);
    }
    if (!err) {
        err = find_norm(ld, &mtp->hidden_norm, "pre_fc_norm_hidden.weight", H);
    }
    if (!err) {
        err = find_norm(ld, &mtp->norm, "norm.weight", H);
    }
    if (!err) {
        snprintf(ld->prefix, sizeof ld->prefix, "%slayers.0.", prefix);
        err = load_layer(ld, &mtp->layer, LAYER_ATTENTION);
    }
    return err;
}

/* The vision tower's share of the counts: everything under its prefixes. */
static void count_vision(loader *ld)
{
    tensor t;
    for (size_t i = 0; i < tensor_set_count(ld->set); i++) {
        const char *name = tensor_set_at(ld->set, i, &t);
        if (strncmp(name, "model.visual.", 13) == 0 || strncmp(name, "vision_tower.", 13) == 0) {
            ld->n_params += tensor_len(&t);
            ld->n_bytes += t.bytes;
        }
    }
}

static uint64_t total_bytes(const tensor_set *set)
{
    uint64_t sum = 0;
    tensor t;
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        tensor_set_at(set, i, &t);
        sum += t.bytes;
    }
    return sum;
}

static err_code load_all(weights *w, loader *ld, void (*progress)(void *ctx, uint64_t done, uint64_t total),
                         void *progress_ctx)
{
    const model_config *cfg = ld->cfg;
    const char *prefix = "";
    uint64_t total = progress ? total_bytes(ld->set) : 0;
    err_code err = find_prefix(ld, &prefix);
    if (err) {
        return err;
    }
    snprintf(ld->prefix, sizeof ld->prefix, "%s", prefix);
    err = find_matrix(ld, &w->embed, "embed_tokens.weight", cfg->vocab_size, cfg->hidden_size);
    if (!err) {
        err = find_norm(ld, &w->final_norm, "norm.weight", cfg->hidden_size);
    }
    for (int32_t i = 0; !err && i < cfg->n_layers; i++) {
        snprintf(ld->prefix, sizeof ld->prefix, "%slayers.%d.", prefix, i);
        err = load_layer(ld, &w->layers[i], cfg->layers[i]);
        if (!err && progress) {
            progress(progress_ctx, ld->n_bytes, total);
        }
    }
    if (!err) {
        err = load_head(ld, w);
    }
    if (!err) {
        err = load_mtp(ld, w);
    }
    if (!err) {
        count_vision(ld);
        if (progress) {
            progress(progress_ctx, total, total);
        }
    }
    return err;
}

err_code weights_open(weights **out, const model_config *cfg, const tensor_set *set,
                      void (*progress)(void *ctx, uint64_t done, uint64_t total), void *progress_ctx,
                      err_detail *detail)
{
    *out = NULL;
    arena *memory = arena_create(WEIGHTS_ARENA_BYTES);
    weights *w = memory ? arena_calloc(memory, 1, sizeof *w) : NULL;
    layer_weights *layers = w ? arena_calloc(memory, (size_t)cfg->n_layers, sizeof *layers) : NULL;
    const size_t n_matrices = ((size_t)cfg->n_layers + 1) * LAYER_MATRICES + 2; /* + draft layer, fc, head */
    matrix_ref *matrices = layers ? arena_calloc(memory, n_matrices, sizeof *matrices) : NULL;
    if (!matrices) {
        arena_destroy(memory);
        return err_set(detail, ERR_NOMEM, "no memory for the table of weights");
    }
    loader ld = {.set = set, .cfg = cfg, .memory = memory, .matrices = matrices, .detail = detail};
    w->memory = memory;
    w->layers = layers;
    err_code err = load_all(w, &ld, progress, progress_ctx);
    if (err) {
        arena_destroy(memory);
        return err;
    }
    w->matrices = matrices;
    w->n_matrices = ld.n_matrices;
    w->n_params = ld.n_params;
    w->n_bytes = ld.n_bytes;
    *out = w;
    return ERR_OK;
}

void weights_close(weights *w)
{
    if (w) {
        arena_destroy(w->memory); /* the struct lies in it */
    }
}
