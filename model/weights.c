#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"

/* LAYER_MATRICES: most that a layer keeps in blocks, besides three for every expert. */
enum { NAME_MAX_BYTES = 256, LAYER_MATRICES = 9 };

/* What a reading function needs: where tensors come from and where names begin. The first fault is
 * kept: after it nothing more is read, and what was asked for stays zeros. */
typedef struct loader {
    const tensor_table *tensors;
    const checkpoint_traits *traits;
    const model_config *cfg;
    arena *memory;
    char outer[NAME_MAX_BYTES]; /* what the file writes before the decoder's names: "model.language_model." */
    char prefix[NAME_MAX_BYTES]; /* canonical: "layers.3." */
    float norm_shift;            /* what zero-centred norms lack */
    uint64_t n_params, n_bytes;
    matrix_ref *matrices;
    size_t n_matrices;
    err_code err;
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

static void refuse_shape(loader *ld, const named_tensor *found, const size_t *want, size_t n_want)
{
    bytes text;
    bytes_init(&text, ERR_TEXT_MAX);
    append_shape(&text, want, n_want);
    bytes_append_str(&text, " by config.json, but is ");
    append_shape(&text, found->view.dims, (size_t)found->view.n_dims);
    ld->err = err_set(ld->detail, ERR_CORRUPT, "tensor %s should have the shape %s", found->stored,
                      bytes_str(&text));
    bytes_deinit(&text);
}

/* prefix + suffix; NULL if there is none. */
static const named_tensor *look_up(const loader *ld, const char *suffix)
{
    char name[2 * NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s%s", ld->prefix, suffix);
    return tensor_table_find(ld->tensors, name);
}

/* The same; NULL also after a fault, and it is one if there is none. */
static const named_tensor *need(loader *ld, const char *suffix)
{
    const named_tensor *t = ld->err ? NULL : look_up(ld, suffix);
    if (!ld->err && !t) {
        ld->err =
            err_set(ld->detail, ERR_NOT_FOUND, "tensor %s%s%s is missing", ld->outer, ld->prefix, suffix);
    }
    return t;
}

/* Zeroed memory that lives as long as the weights; NULL is a fault. */
static void *reserve(loader *ld, size_t n, size_t item_bytes, const char *what)
{
    void *p = ld->err ? NULL : arena_calloc(ld->memory, n, item_bytes);
    if (!ld->err && !p) {
        ld->err = err_set(ld->detail, ERR_NOMEM, "no memory for %s", what);
    }
    return p;
}

/* Takes a tensor of numbers (not packed) of that shape. */
static void take_shaped(loader *ld, tensor *out, const named_tensor *t, const size_t *dims, size_t n_dims)
{
    if ((size_t)t->view.n_dims != n_dims || memcmp(t->view.dims, dims, n_dims * sizeof *dims) != 0) {
        refuse_shape(ld, t, dims, n_dims);
        return;
    }
    if (t->view.type >= DTYPE_OTHER) {
        ld->err = err_set(ld->detail, ERR_UNSUPPORTED,
                          "tensor %s has a type that is not supported here (F32, BF16, F16 are)", t->stored);
        return;
    }
    *out = t->view;
    ld->n_params += tensor_len(out);
    ld->n_bytes += out->bytes;
}

/* Remembers a matrix that may be kept in blocks. */
static void remember(loader *ld, tensor *at, const char *name, bool is_head, bool mixes)
{
    const size_t n = strlen(name) + 1;
    char *copy = reserve(ld, n, 1, "the table of weights");
    if (copy) {
        memcpy(copy, name, n);
        ld->matrices[ld->n_matrices++] = (matrix_ref){at, copy, is_head, mixes};
    }
}

/* Takes a packed matrix, whose last dimension may count padding; false if the shape is another. */
static bool take_packed(loader *ld, tensor *out, const tensor *t, size_t rows, size_t cols)
{
    tensor packed = *t;
    packed.n_dims = 2;
    packed.dims[0] = rows;
    packed.dims[1] = cols;
    /* TRAP: rows of a GGUF file's blocks have no padding: equal bytes could be another shape. */
    const bool other_columns = dtype_is_ggml(t->type) && t->n_dims >= 2 && t->dims[t->n_dims - 1] != cols;
    if (!dtype_is_quantized(t->type) || t->n_dims < 2 || other_columns ||
        rows * tensor_row_bytes(&packed) != t->bytes) {
        return false;
    }
    *out = packed;
    ld->n_params += tensor_len(out);
    ld->n_bytes += out->bytes;
    return true;
}

/* A matrix that is never brought into our blocks: numbers, or the blocks of a GGUF file. */
static void find_matrix(loader *ld, tensor *out, const char *suffix, int32_t rows, int32_t cols)
{
    const size_t dims[2] = {(size_t)rows, (size_t)cols};
    const named_tensor *t = need(ld, suffix);
    if (t && !(dtype_is_ggml(t->view.type) && take_packed(ld, out, &t->view, dims[0], dims[1]))) {
        take_shaped(ld, out, t, dims, 2);
    }
}

/* A matrix of a layer: as numbers or packed. */
static void find_layer_matrix(loader *ld, tensor *out, const char *suffix, int32_t rows, int32_t cols)
{
    const size_t dims[2] = {(size_t)rows, (size_t)cols};
    const named_tensor *t = need(ld, suffix);
    if (t && !take_packed(ld, out, &t->view, dims[0], dims[1])) {
        static const char *const MIXERS[] = {"self_attn.", "linear_attn.", "mamba."};
        bool mixes = false;
        for (size_t i = 0; i < ARRAY_LEN(MIXERS); i++) {
            mixes = mixes || strncmp(suffix, MIXERS[i], strlen(MIXERS[i])) == 0;
        }
        take_shaped(ld, out, t, dims, 2);
        remember(ld, out, t->stored, false, mixes);
    }
}

/* A tensor of that shape, widened to float32 in the arena, plus `shift`. */
static void find_numbers(loader *ld, const float **out, const char *suffix, const size_t *dims, size_t n_dims,
                         float shift)
{
    tensor t = {0};
    const named_tensor *found = need(ld, suffix);
    if (found) {
        take_shaped(ld, &t, found, dims, n_dims);
    }
    const size_t n = tensor_len(&t);
    float *copy = reserve(ld, n, sizeof *copy, "the norm weights");
    if (!copy) {
        return;
    }
    tensor_to_f32(copy, &t, 0, n);
    for (size_t i = 0; i < n; i++) {
        copy[i] += shift;
    }
    *out = copy;
}

static void find_vector(loader *ld, const float **out, const char *suffix, int32_t n)
{
    find_numbers(ld, out, suffix, (size_t[]){(size_t)n}, 1, 0.0f);
}

/* A norm that the family may publish zero-centred. */
static void find_norm(loader *ld, const float **out, const char *suffix, int32_t n)
{
    find_numbers(ld, out, suffix, (size_t[]){(size_t)n}, 1, ld->norm_shift);
}

/* n ones. */
static const float *ones(loader *ld, size_t n)
{
    float *out = reserve(ld, n, sizeof *out, "the norm weights");
    for (size_t i = 0; out && i < n; i++) {
        out[i] = 1.0f;
    }
    return out;
}

static void load_keys(loader *ld, attention_weights *w, const attention_spec *spec)
{
    const model_config *cfg = ld->cfg;
    const int32_t H = cfg->hidden_size, hd = spec->head_dim, kv_rows = spec->n_kv_heads * hd;
    find_layer_matrix(ld, &w->k_proj, "self_attn.k_proj.weight", kv_rows, H);
    if (!spec->keys_are_values) {
        find_layer_matrix(ld, &w->v_proj, "self_attn.v_proj.weight", kv_rows, H);
    }
    if (cfg->qk_norm != QK_NORM_NONE) {
        find_norm(ld, &w->k_norm, "self_attn.k_norm.weight", cfg->qk_norm == QK_NORM_WIDTH ? kv_rows : hd);
    }
    if (cfg->value_norm) {
        w->v_norm = ones(ld, (size_t)hd);
    }
    if (cfg->attention_biases) {
        find_vector(ld, &w->k_bias, "self_attn.k_proj.bias", kv_rows);
    }
    if (cfg->attention_biases && !spec->keys_are_values) {
        find_vector(ld, &w->v_bias, "self_attn.v_proj.bias", kv_rows);
    }
}

static void load_attention(loader *ld, attention_weights *w, layer_kind kind, bool reads_only)
{
    const model_config *cfg = ld->cfg;
    const attention_spec *spec = model_config_attention(cfg, kind);
    int32_t H = cfg->hidden_size, hd = spec->head_dim;
    int32_t q_rows = cfg->n_heads * (cfg->attention_gate ? 2 : 1) * hd;
    w->kind = kind;
    w->reads_only = reads_only;
    find_layer_matrix(ld, &w->q_proj, "self_attn.q_proj.weight", q_rows, H);
    find_layer_matrix(ld, &w->o_proj, "self_attn.o_proj.weight", H, cfg->n_heads * hd);
    if (cfg->qk_norm != QK_NORM_NONE) {
        const bool wide = cfg->qk_norm == QK_NORM_WIDTH;
        find_norm(ld, &w->q_norm, "self_attn.q_norm.weight", wide ? cfg->n_heads * hd : hd);
    }
    if (!reads_only) {
        load_keys(ld, w, spec);
    }
    if (cfg->attention_biases) {
        find_vector(ld, &w->q_bias, "self_attn.q_proj.bias", q_rows);
    }
    if (cfg->attention_biases && look_up(ld, "self_attn.o_proj.bias")) {
        find_vector(ld, &w->o_bias, "self_attn.o_proj.bias", H);
    }
    if (cfg->attention_sinks) {
        find_vector(ld, &w->sinks, "self_attn.sinks", cfg->n_heads);
    }
}

static void load_mamba(loader *ld, mamba_weights *w)
{
    const model_config *cfg = ld->cfg;
    const int32_t H = cfg->hidden_size, heads = cfg->delta_n_v, inner = heads * cfg->delta_dv;
    const int32_t channels = (int32_t)model_config_channels(cfg);
    find_layer_matrix(ld, &w->in_proj, "mamba.in_proj.weight", inner + channels + heads, H);
    find_layer_matrix(ld, &w->out_proj, "mamba.out_proj.weight", H, inner);
    find_numbers(ld, &w->conv, "mamba.conv1d.weight",
                 (size_t[]){(size_t)channels, 1, (size_t)cfg->conv_kernel}, 3, 0.0f);
    if (cfg->mamba_conv_bias) {
        find_vector(ld, &w->conv_bias, "mamba.conv1d.bias", channels);
    }
    find_vector(ld, &w->A_log, "mamba.A_log", heads);
    find_vector(ld, &w->D, "mamba.D", heads);
    find_vector(ld, &w->dt_bias, "mamba.dt_bias", heads);
    find_vector(ld, &w->norm, "mamba.norm.weight", inner);
}

static void load_deltanet(loader *ld, deltanet_weights *w)
{
    const model_config *cfg = ld->cfg;
    int32_t H = cfg->hidden_size, nv = cfg->delta_n_v;
    int32_t value_width = nv * cfg->delta_dv, channels = 2 * cfg->delta_n_k * cfg->delta_dk + value_width;
    /* The projections into the layer: four, or Qwen3-Next's two. */
    w->qkvz_fused = look_up(ld, "linear_attn.in_proj_qkvz.weight") != NULL;
    w->ba_fused = look_up(ld, "linear_attn.in_proj_ba.weight") != NULL;
    if (w->qkvz_fused) {
        find_layer_matrix(ld, &w->in_proj_qkvz, "linear_attn.in_proj_qkvz.weight", channels + value_width, H);
    } else {
        find_layer_matrix(ld, &w->in_proj_qkv, "linear_attn.in_proj_qkv.weight", channels, H);
        find_layer_matrix(ld, &w->in_proj_z, "linear_attn.in_proj_z.weight", value_width, H);
    }
    if (w->ba_fused) {
        find_matrix(ld, &w->in_proj_ba, "linear_attn.in_proj_ba.weight", 2 * nv, H);
    } else {
        find_matrix(ld, &w->in_proj_b, "linear_attn.in_proj_b.weight", nv, H);
        find_matrix(ld, &w->in_proj_a, "linear_attn.in_proj_a.weight", nv, H);
    }
    find_layer_matrix(ld, &w->out_proj, "linear_attn.out_proj.weight", H, value_width);
    find_numbers(ld, &w->conv, "linear_attn.conv1d.weight",
                 (size_t[]){(size_t)channels, 1, (size_t)cfg->conv_kernel}, 3, 0.0f);
    find_vector(ld, &w->A_log, "linear_attn.A_log", nv);
    find_vector(ld, &w->dt_bias, "linear_attn.dt_bias", nv);
    find_vector(ld, &w->norm, "linear_attn.norm.weight", cfg->delta_dv);
}

/* gate_proj.weight and so on behind `name`: "mlp.", or the shared expert's. */
static void load_ffn(loader *ld, ffn_weights *w, const char *name, int32_t width)
{
    const int32_t H = ld->cfg->hidden_size;
    const size_t end = strlen(ld->prefix);
    snprintf(ld->prefix + end, sizeof ld->prefix - end, "%s", name);
    if (ld->cfg->ffn != FFN_RELU2) {
        find_layer_matrix(ld, &w->gate, "gate_proj.weight", width, H);
    }
    find_layer_matrix(ld, &w->up, "up_proj.weight", width, H);
    find_layer_matrix(ld, &w->down, "down_proj.weight", H, width);
    ld->prefix[end] = '\0';
}

/* [E, cols, rows] as [E * rows, cols], in memory of its own. */
static void turn_experts(loader *ld, tensor *out, const named_tensor *t, size_t rows, size_t cols)
{
    const size_t E = (size_t)ld->cfg->n_experts, size = dtype_bytes(t->view.type);
    unsigned char *to = arena_alloc(ld->memory, t->view.bytes);
    if (!to) {
        ld->err = err_set(ld->detail, ERR_NOMEM, "no memory for the experts of %s (%zu MiB)", t->stored,
                          t->view.bytes >> 20);
        return;
    }
    const unsigned char *from = t->view.data;
    for (size_t e = 0; e < E; e++) {
        for (size_t c = 0; c < cols; c++) {
            for (size_t r = 0; r < rows; r++) {
                memcpy(to + ((e * rows + r) * cols + c) * size, from + ((e * cols + c) * rows + r) * size,
                       size);
            }
        }
    }
    *out = (tensor){t->view.type, 2, {E * rows, cols}, to, t->view.bytes};
}

static bool has_dims(const named_tensor *t, size_t a, size_t b, size_t c)
{
    const size_t dims[3] = {a, b, c};
    return t && t->view.n_dims == 3 && memcmp(t->view.dims, dims, sizeof dims) == 0;
}

/* Whether the layer's experts are stored [E, n_in, n_out], what Qwen3-VL publishes. At most one of
 * the two tensors is square, so the other one tells. */
static bool experts_are_turned(const loader *ld)
{
    const size_t E = (size_t)ld->cfg->n_experts, MI = (size_t)ld->cfg->expert_size,
                 H = model_config_expert_width(ld->cfg);
    return (H != 2 * MI && has_dims(look_up(ld, "mlp.experts.gate_up_proj"), E, H, 2 * MI)) ||
           (H != MI && has_dims(look_up(ld, "mlp.experts.down_proj"), E, MI, H));
}

/* All experts' matrices in one tensor: [E, rows, cols], seen as [E * rows, cols] afterwards;
 * packed, or turned the other way ([E, cols, rows]). */
static void take_stack(loader *ld, tensor *out, const named_tensor *t, size_t rows, size_t cols)
{
    const size_t E = (size_t)ld->cfg->n_experts;
    if (take_packed(ld, out, &t->view, E * rows, cols)) {
        return;
    }
    const bool is_turned = has_dims(t, E, cols, rows) && experts_are_turned(ld);
    take_shaped(ld, out, t, (size_t[]){E, is_turned ? cols : rows, is_turned ? rows : cols}, 3);
    if (!ld->err && is_turned) {
        turn_experts(ld, out, t, rows, cols);
    }
    out->n_dims = 2;
    out->dims[0] = E * rows;
    out->dims[1] = cols;
    remember(ld, out, t->stored, false, false);
}

/* gate and up in one tensor: for each expert the rows of gate, then those of up. */
static void load_fused_experts(loader *ld, moe_weights *w, const named_tensor *t)
{
    const size_t MI = (size_t)ld->cfg->expert_size, H = model_config_expert_width(ld->cfg);
    tensor *part = reserve(ld, 1, sizeof *part, "the table of experts");
    if (part) {
        take_stack(ld, part, t, 2 * MI, H);
    }
    w->gate = (expert_matrices){part, true, MI, 2 * MI, 0};
    w->up = (expert_matrices){part, true, MI, 2 * MI, MI};
}

/* One matrix of all experts: "mlp.experts.PART" for all, or "mlp.experts.E.PART.weight" for
 * each. */
static void load_expert_part(loader *ld, expert_matrices *m, const char *part, size_t rows, size_t cols)
{
    const size_t E = (size_t)ld->cfg->n_experts;
    char suffix[NAME_MAX_BYTES];
    snprintf(suffix, sizeof suffix, "mlp.experts.%s", part);
    const named_tensor *stack = look_up(ld, suffix);
    tensor *parts = reserve(ld, stack ? 1 : E, sizeof *parts, "the table of experts");
    *m = (expert_matrices){parts, stack != NULL, rows, rows, 0};
    if (parts && stack) {
        take_stack(ld, parts, stack, rows, cols);
        return;
    }
    for (size_t e = 0; !ld->err && e < E; e++) {
        snprintf(suffix, sizeof suffix, "mlp.experts.%zu.%s.weight", e, part);
        find_layer_matrix(ld, &parts[e], suffix, (int32_t)rows, (int32_t)cols);
    }
}

static void load_moe(loader *ld, moe_weights *w)
{
    const model_config *cfg = ld->cfg;
    const size_t MI = (size_t)cfg->expert_size, H = model_config_expert_width(cfg);
    const named_tensor *fused = look_up(ld, "mlp.experts.gate_up_proj");
    const bool gated = cfg->ffn != FFN_RELU2;
    find_matrix(ld, &w->router, "mlp.gate.weight", cfg->n_experts, cfg->hidden_size);
    if (cfg->router == ROUTER_SIGMOID && look_up(ld, "mlp.gate.e_score_correction_bias")) {
        find_vector(ld, &w->router_bias, "mlp.gate.e_score_correction_bias", cfg->n_experts);
    }
    if (cfg->expert_latent_size > 0) {
        find_layer_matrix(ld, &w->latent_in, "mlp.fc1_latent_proj.weight", (int32_t)H, cfg->hidden_size);
        find_layer_matrix(ld, &w->latent_out, "mlp.fc2_latent_proj.weight", cfg->hidden_size, (int32_t)H);
    }
    if (gated && fused) {
        load_fused_experts(ld, w, fused);
    } else {
        if (gated) {
            load_expert_part(ld, &w->gate, "gate_proj", MI, H);
        }
        load_expert_part(ld, &w->up, "up_proj", MI, H);
    }
    load_expert_part(ld, &w->down, "down_proj", H, MI);
    if (cfg->router_norm) { /* a norm without weight, a number for every column, and one for all */
        float *scaled = NULL;
        find_vector(ld, &w->norm, "mlp.gate.scale", cfg->hidden_size);
        scaled = (float *)(uintptr_t)w->norm;
        for (size_t i = 0; scaled && i < H; i++) {
            scaled[i] /= sqrtf((float)H);
        }
    }
    if (cfg->expert_scales) {
        find_vector(ld, &w->expert_scales, "mlp.gate.per_expert_scale", cfg->n_experts);
    }
    if (cfg->expert_biases) {
        const size_t E = (size_t)cfg->n_experts;
        find_vector(ld, &w->logit_bias, "mlp.gate.bias", cfg->n_experts);
        find_numbers(ld, &w->gate_bias, "mlp.experts.gate_proj_bias", (size_t[]){E, MI}, 2, 0.0f);
        find_numbers(ld, &w->up_bias, "mlp.experts.up_proj_bias", (size_t[]){E, MI}, 2, 0.0f);
        find_numbers(ld, &w->down_bias, "mlp.experts.down_proj_bias", (size_t[]){E, H}, 2, 0.0f);
    }
    if (cfg->shared_expert_size > 0) {
        load_ffn(ld, &w->shared, "mlp.shared_expert.", cfg->shared_expert_size);
    }
    if (cfg->shared_expert_size > 0 && !cfg->shared_expert_ungated) {
        find_matrix(ld, &w->shared_gate, "mlp.shared_expert_gate.weight", 1, cfg->hidden_size);
    }
}

tensor expert_matrix(const expert_matrices *m, size_t expert)
{
    if (!m->stacked) {
        return m->parts[expert];
    }
    const size_t begin = expert * m->stride + m->first;
    return tensor_rows(m->parts, begin, begin + m->rows);
}

/* The norms around a layer's parts. A layer of one part alone has one; where what a part gives is normed
 * too, the published names mean other places. */
static void load_norms(loader *ld, layer_weights *w)
{
    const int32_t H = ld->cfg->hidden_size;
    const bool both = ld->cfg->output_norms;
    if (w->kind != LAYER_NONE) {
        find_norm(ld, &w->input_norm, "input_layernorm.weight", H);
    }
    if (w->feed != FEED_NONE) {
        find_norm(ld, &w->post_norm,
                  w->kind == LAYER_NONE ? "input_layernorm.weight"
                  : both                ? "pre_feedforward_layernorm.weight"
                                        : "post_attention_layernorm.weight",
                  H);
    }
    if (both) {
        find_norm(ld, &w->mixed_norm, "post_attention_layernorm.weight", H);
        find_norm(ld, &w->fed_norm, "post_feedforward_layernorm.weight", H);
    }
    if (w->feed == FEED_BOTH) {
        find_norm(ld, &w->dense_norm, "post_feedforward_layernorm_1.weight", H);
        find_norm(ld, &w->expert_in_norm, "pre_feedforward_layernorm_2.weight", H);
        find_norm(ld, &w->expert_norm, "post_feedforward_layernorm_2.weight", H);
    }
}

/* What a layer has beside its parts. */
static void load_extras(loader *ld, layer_weights *w)
{
    const model_config *cfg = ld->cfg;
    const int32_t H = cfg->hidden_size, P = cfg->layer_input_size;
    const float *scalar = NULL;
    w->scalar = 1.0f;
    if (cfg->layer_scalars) {
        find_vector(ld, &scalar, "layer_scalar", 1);
        w->scalar = scalar ? *scalar : 1.0f;
    }
    if (P > 0) {
        find_layer_matrix(ld, &w->input_gate, "per_layer_input_gate.weight", P, H);
        find_layer_matrix(ld, &w->input_proj, "per_layer_projection.weight", H, P);
        find_norm(ld, &w->input_add_norm, "post_per_layer_input_norm.weight", H);
    }
}

/* ld->prefix is the layer's. is_shared: it has no cache of its own. */
static void load_layer(loader *ld, layer_weights *w, layer_kind kind, feed_kind feed, bool is_shared)
{
    w->kind = kind;
    w->feed = feed;
    load_norms(ld, w);
    load_extras(ld, w);
    if (layer_is_attention(kind)) {
        load_attention(ld, &w->attention, kind, is_shared);
    } else if (kind == LAYER_MAMBA) {
        load_mamba(ld, &w->mamba);
    } else if (kind == LAYER_DELTANET) {
        load_deltanet(ld, &w->deltanet);
    }
    if (feed == FEED_EXPERTS || feed == FEED_BOTH) {
        load_moe(ld, &w->moe);
    }
    if (feed == FEED_DENSE || feed == FEED_BOTH) {
        const bool is_wide = is_shared && ld->cfg->shared_layers_are_wide;
        load_ffn(ld, &w->ffn, "mlp.", ld->cfg->intermediate_size * (is_wide ? 2 : 1));
    }
}

/* Learns what precedes the decoder's names in this file, for messages. */
static void find_outer(loader *ld)
{
    static const char name[] = "embed_tokens.weight";
    const named_tensor *t = tensor_table_find(ld->tensors, name);
    if (!t) {
        ld->err = err_set(
            ld->detail, ERR_NOT_FOUND,
            "tensor model.language_model.%s is missing; are these the weights of a language model?", name);
        return;
    }
    const size_t n = strlen(t->stored), n_name = sizeof name - 1;
    if (n > n_name && strcmp(t->stored + n - n_name, name) == 0) {
        snprintf(ld->outer, sizeof ld->outer, "%.*s", (int)(n - n_name), t->stored);
    }
}

static void load_head(loader *ld, weights *w)
{
    static const char name[] = "lm_head.weight";
    const model_config *cfg = ld->cfg;
    const named_tensor *t = tensor_table_find(ld->tensors, name);
    if (t && take_packed(ld, &w->head, &t->view, (size_t)cfg->vocab_size, (size_t)cfg->hidden_size)) {
        ld->n_params -= cfg->tie_word_embeddings ? tensor_len(&w->head) : 0;
        return;
    }
    if (cfg->tie_word_embeddings) {
        w->head = w->embed; /* some fine-tunes ship a copy: the table counts */
        remember(ld, &w->head, name, true, false);
        return;
    }
    ld->prefix[0] = ld->outer[0] = '\0';
    find_matrix(ld, &w->head, name, cfg->vocab_size, cfg->hidden_size);
    remember(ld, &w->head, t ? t->stored : name, true, false);
}

static void load_mtp(loader *ld, weights *w)
{
    const int32_t H = ld->cfg->hidden_size;
    /* none of its tensors: there is no head; some without this one are a fault */
    w->has_mtp = ld->cfg->n_mtp_layers > 0 && tensor_table_first(ld->tensors, "mtp.") != NULL;
    if (!w->has_mtp) {
        return;
    }
    mtp_weights *mtp = &w->mtp;
    ld->outer[0] = '\0';
    ld->norm_shift = ld->cfg->zero_centred_norms && !ld->traits->mtp_norms_hold_one ? 1.0f : 0.0f;
    snprintf(ld->prefix, sizeof ld->prefix, "mtp.");
    find_layer_matrix(ld, &mtp->fc, "fc.weight", H, 2 * H);
    find_norm(ld, &mtp->embedding_norm, "pre_fc_norm_embedding.weight", H);
    find_norm(ld, &mtp->hidden_norm, "pre_fc_norm_hidden.weight", H);
    find_norm(ld, &mtp->norm, "norm.weight", H);
    snprintf(ld->prefix, sizeof ld->prefix, "mtp.layers.0.");
    load_layer(ld, &mtp->layer, LAYER_ATTENTION, ld->cfg->n_experts > 0 ? FEED_EXPERTS : FEED_DENSE, false);
}

/* The vision tower's share of the counts. */
static void count_vision(loader *ld)
{
    static const char prefix[] = "visual.";
    for (size_t i = 0; i < ld->tensors->n; i++) {
        const named_tensor *t = &ld->tensors->items[i];
        if (strncmp(t->name, prefix, sizeof prefix - 1) == 0) {
            ld->n_params += tensor_len(&t->view);
            ld->n_bytes += t->view.bytes;
        }
    }
}

static uint64_t total_bytes(const tensor_table *all)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        sum += all->items[i].view.bytes;
    }
    return sum;
}

static void load_all(weights *w, loader *ld, void (*progress)(void *ctx, uint64_t done, uint64_t total),
                     void *progress_ctx)
{
    const model_config *cfg = ld->cfg;
    uint64_t total = progress ? total_bytes(ld->tensors) : 0;
    find_outer(ld);
    ld->norm_shift = cfg->zero_centred_norms && !ld->traits->norms_hold_one ? 1.0f : 0.0f;
    find_matrix(ld, &w->embed, "embed_tokens.weight", cfg->vocab_size, cfg->hidden_size);
    find_norm(ld, &w->final_norm, "norm.weight", cfg->hidden_size);
    if (cfg->layer_input_size > 0) {
        const int32_t width = cfg->n_layers * cfg->layer_input_size;
        find_matrix(ld, &w->input_table, "embed_tokens_per_layer.weight", cfg->layer_input_vocab, width);
        find_layer_matrix(ld, &w->input_model_proj, "per_layer_model_projection.weight", width,
                          cfg->hidden_size);
        find_norm(ld, &w->input_norm, "per_layer_projection_norm.weight", cfg->layer_input_size);
    }
    for (int32_t i = 0; !ld->err && i < cfg->n_layers; i++) {
        snprintf(ld->prefix, sizeof ld->prefix, "layers.%d.", i);
        load_layer(ld, &w->layers[i], cfg->layers[i], cfg->feeds[i],
                   i >= cfg->n_layers - cfg->n_shared_layers);
        w->layers[i].attention.no_rope = cfg->no_rope[i];
        if (!ld->err && progress) {
            progress(progress_ctx, ld->n_bytes, total);
        }
    }
    load_head(ld, w);
    load_mtp(ld, w);
    count_vision(ld);
    if (!ld->err && progress) {
        progress(progress_ctx, total, total);
    }
}

/* How many matrices may be kept in blocks, at most. */
static size_t most_matrices(const model_config *cfg)
{
    const size_t n_layers = (size_t)cfg->n_layers + 1, E = (size_t)cfg->n_experts; /* + the draft layer */
    return n_layers * (LAYER_MATRICES + 3 * E) + 3; /* + fc, head, the layers' inputs */
}

err_code weights_open(weights **out, const model_config *cfg, const checkpoint *ck,
                      void (*progress)(void *ctx, uint64_t done, uint64_t total), void *progress_ctx,
                      err_detail *detail)
{
    *out = NULL;
    arena *memory = arena_create(SIZE_MAX / 2);
    weights *w = memory ? arena_calloc(memory, 1, sizeof *w) : NULL;
    layer_weights *layers = w ? arena_calloc(memory, (size_t)cfg->n_layers, sizeof *layers) : NULL;
    matrix_ref *matrices = layers ? arena_calloc(memory, most_matrices(cfg), sizeof *matrices) : NULL;
    if (!matrices) {
        arena_destroy(memory);
        return err_set(detail, ERR_NOMEM, "no memory for the table of weights");
    }
    loader ld = {.tensors = checkpoint_tensors(ck),
                 .traits = checkpoint_get_traits(ck),
                 .cfg = cfg,
                 .memory = memory,
                 .matrices = matrices,
                 .detail = detail};
    w->memory = memory;
    w->layers = layers;
    load_all(w, &ld, progress, progress_ctx);
    if (ld.err) {
        arena_destroy(memory);
        return ld.err;
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
