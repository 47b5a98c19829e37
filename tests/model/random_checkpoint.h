/* random_checkpoint: small checkpoints of any family with random weights, written by the test
 * itself.
 *
 *     char dir[64]; random_checkpoint_make(dir, config_text, RANDOM_PER_EXPERT);
 *
 * The numbers follow from the canonical name of the smallest part (one expert's gate_proj, one
 * head's rows), so that the same config written in two forms is the same model.
 */
#ifndef PARLEY_TESTS_MODEL_RANDOM_CHECKPOINT_H
#define PARLEY_TESTS_MODEL_RANDOM_CHECKPOINT_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute/formats/half.h"
#include "model/config/config_load.h"
#include "model/checkpoint/tensor_writer.h"
#include "tests/check.h"
#include "tests/cpu.h"
#include "tests/folder.h"

enum {
    RANDOM_PER_EXPERT = 1,   /* experts each by themselves; otherwise gate_up_proj and down_proj */
    RANDOM_STACKED = 2,      /* gate_proj, up_proj, down_proj of all experts */
    RANDOM_TURNED = 4,       /* gate_up_proj and down_proj as Qwen3-VL publishes them */
    RANDOM_FUSED_DELTA = 8,  /* in_proj_qkvz and in_proj_ba */
    RANDOM_ALTERNATING = 32, /* as GPT-OSS publishes them */
    RANDOM_TEXT_ONLY = 16,   /* names begin with "model.", not with "model.language_model." */
    RANDOM_NOT_GGUF = 64,    /* a GGUF file cannot say all of the config, or it takes two */
    RANDOM_TENSORS = 1024,
};

typedef struct random_writer {
    const model_config *cfg;
    unsigned forms;
    bool is_shared;  /* the layer at hand has no cache of its own */
    char prefix[64]; /* of the layer, canonical */
    tensor views[RANDOM_TENSORS];
    writer_entry entries[RANDOM_TENSORS];
    size_t n;
} random_writer;

/* n numbers in [centre - spread, centre + spread] that follow from the name. */
static inline void random_fill(uint16_t *out, size_t n, const char *name, float centre, float spread)
{
    uint64_t state = 0xcbf29ce484222325u;
    for (; *name; name++) {
        state = (state ^ (unsigned char)*name) * 0x100000001b3u;
    }
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out[i] = bf16_from_f32(centre + spread * ((float)(state >> 40) * 0x1p-23f - 1.0f));
    }
}

/* A new tensor under prefix + name; its numbers are to be filled in. */
static inline uint16_t *random_add(random_writer *w, const char *prefix, const char *name, const size_t *dims,
                                   int32_t n_dims)
{
    tensor *t = &w->views[w->n];
    writer_entry *e = &w->entries[w->n++];
    *t = (tensor){.type = DTYPE_BF16, .n_dims = n_dims};
    memcpy(t->dims, dims, (size_t)n_dims * sizeof *dims);
    t->bytes = tensor_len(t) * sizeof(uint16_t);
    uint16_t *data = malloc(t->bytes);
    if (!data || w->n == RANDOM_TENSORS) {
        exit(1);
    }
    t->data = data;
    e->from = t;
    e->to = DTYPE_BF16;
    const bool outer = strncmp(prefix, "mtp.", 4) == 0 || strcmp(name, "lm_head.weight") == 0;
    snprintf(e->name, sizeof e->name, "%s%s%s",
             outer                         ? ""
             : w->forms & RANDOM_TEXT_ONLY ? "model."
                                           : "model.language_model.",
             prefix, name);
    return data;
}

/* A matrix with numbers of its own. */
static inline void random_matrix(random_writer *w, const char *name, size_t rows, size_t cols)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    uint16_t *data = random_add(w, w->prefix, name, (size_t[]){rows, cols}, 2);
    random_fill(data, rows * cols, full, 0, 1.7f / sqrtf((float)cols));
}

static inline void random_vector(random_writer *w, const char *name, size_t n, float centre, float spread)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    random_fill(random_add(w, w->prefix, name, &n, 1), n, full, centre, spread);
}

static inline void random_norm(random_writer *w, const char *name, size_t n)
{
    random_vector(w, name, n, w->cfg->zero_centred_norms ? 0.0f : 1.0f, 0.2f);
}

/* One expert's part, [rows, cols]. */
static inline void random_expert(const random_writer *w, uint16_t *out, size_t e, const char *part,
                                 size_t rows, size_t cols)
{
    char full[128];
    snprintf(full, sizeof full, "%sexpert %zu %s", w->prefix, e, part);
    random_fill(out, rows * cols, full, 0, 1.7f / sqrtf((float)cols));
}

static inline void random_turn(uint16_t *m, size_t rows, size_t cols)
{
    uint16_t *copy = malloc(rows * cols * sizeof *copy);
    memcpy(copy, m, rows * cols * sizeof *copy);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            m[c * rows + r] = copy[r * cols + c];
        }
    }
    free(copy);
}

/* gate_up_proj, in which gate and up take turns, and down_proj, both turned; the biases; the router
 * under its own name. */
static inline void random_alternating(random_writer *w)
{
    const size_t E = (size_t)w->cfg->n_experts, H = (size_t)w->cfg->hidden_size,
                 MI = (size_t)w->cfg->expert_size;
    uint16_t *own = malloc(MI * H * sizeof *own);
    uint16_t *in = random_add(w, w->prefix, "mlp.experts.gate_up_proj", (size_t[]){E, H, 2 * MI}, 3);
    uint16_t *back = random_add(w, w->prefix, "mlp.experts.down_proj", (size_t[]){E, MI, H}, 3);
    static const char *const parts[] = {"gate_proj", "up_proj"};
    for (size_t e = 0; e < E; e++) {
        for (size_t p = 0; p < 2; p++) {
            random_expert(w, own, e, parts[p], MI, H);
            for (size_t i = 0; i < MI * H; i++) {
                in[(e * H + i % H) * 2 * MI + 2 * (i / H) + p] = own[i];
            }
        }
        random_expert(w, back + e * MI * H, e, "down_proj", H, MI);
        random_turn(back + e * MI * H, H, MI);
    }
    uint16_t *bias = random_add(w, w->prefix, "mlp.experts.gate_up_proj_bias", (size_t[]){E, 2 * MI}, 2);
    static const char *const biases[] = {"mlp.experts.gate_proj_bias", "mlp.experts.up_proj_bias"};
    for (size_t p = 0; p < 2; p++) {
        random_fill(own, E * MI, biases[p], 0, 0.3f);
        for (size_t i = 0; i < E * MI; i++) {
            bias[2 * i + p] = own[i];
        }
    }
    free(own);
    random_fill(random_add(w, w->prefix, "mlp.experts.down_proj_bias", (size_t[]){E, H}, 2), E * H,
                "mlp.experts.down_proj_bias", 0, 0.3f);
    random_fill(random_add(w, w->prefix, "mlp.router.bias", &E, 1), E, "router", 0, 0.3f);
    char name[80];
    snprintf(name, sizeof name, "%smlp.gate.weight", w->prefix);
    random_fill(random_add(w, w->prefix, "mlp.router.weight", (size_t[]){E, H}, 2), E * H, name, 0,
                1.7f / sqrtf((float)H));
}

static inline void random_experts(random_writer *w)
{
    const size_t E = (size_t)w->cfg->n_experts, H = model_config_expert_width(w->cfg),
                 MI = (size_t)w->cfg->expert_size, width = (size_t)w->cfg->hidden_size;
    const struct {
        const char *part;
        size_t rows, cols;
    } parts[] = {{"gate_proj", MI, H}, {"up_proj", MI, H}, {"down_proj", H, MI}};
    char name[64];
    if (w->forms & RANDOM_ALTERNATING) {
        random_alternating(w);
        return;
    }
    random_matrix(w, "mlp.gate.weight", E, width);
    if (w->cfg->router == ROUTER_SIGMOID) {
        random_vector(w, "mlp.gate.e_score_correction_bias", E, 0, 0.3f);
    }
    if (H != width) {
        random_matrix(w, "mlp.fc1_latent_proj.weight", H, width);
        random_matrix(w, "mlp.fc2_latent_proj.weight", width, H);
    }
    for (size_t p = 0; w->cfg->expert_biases && p < 3; p++) {
        snprintf(name, sizeof name, "mlp.experts.%s_bias", parts[p].part);
        random_fill(random_add(w, w->prefix, name, (size_t[]){E, parts[p].rows}, 2), E * parts[p].rows, name,
                    0, 0.3f);
    }
    if (w->cfg->expert_biases) {
        random_fill(random_add(w, w->prefix, "mlp.gate.bias", &E, 1), E, "router", 0, 0.3f);
    }
    for (size_t p = w->cfg->ffn == FFN_RELU2 ? 1 : 0; p < 3; p++) {
        const size_t rows = parts[p].rows, cols = parts[p].cols;
        uint16_t *stack = NULL;
        if (w->forms & RANDOM_STACKED) {
            snprintf(name, sizeof name, "mlp.experts.%s", parts[p].part);
            stack = random_add(w, w->prefix, name, (size_t[]){E, rows, cols}, 3);
        }
        for (size_t e = 0; (w->forms & (RANDOM_STACKED | RANDOM_PER_EXPERT)) && e < E; e++) {
            snprintf(name, sizeof name, "mlp.experts.%zu.%s.weight", e, parts[p].part);
            uint16_t *to =
                stack ? stack + e * rows * cols : random_add(w, w->prefix, name, (size_t[]){rows, cols}, 2);
            random_expert(w, to, e, parts[p].part, rows, cols);
        }
    }
    if (w->forms & (RANDOM_STACKED | RANDOM_PER_EXPERT)) {
        return;
    }
    const bool turned = w->forms & RANDOM_TURNED;
    uint16_t *in = random_add(w, w->prefix, "mlp.experts.gate_up_proj",
                              turned ? (size_t[]){E, H, 2 * MI} : (size_t[]){E, 2 * MI, H}, 3);
    uint16_t *back = random_add(w, w->prefix, "mlp.experts.down_proj",
                                turned ? (size_t[]){E, MI, H} : (size_t[]){E, H, MI}, 3);
    for (size_t e = 0; e < E; e++, in += 2 * MI * H, back += MI * H) {
        random_expert(w, in, e, "gate_proj", MI, H);
        random_expert(w, in + MI * H, e, "up_proj", MI, H);
        random_expert(w, back, e, "down_proj", H, MI);
        if (turned) {
            random_turn(in, 2 * MI, H);
            random_turn(back, H, MI);
        }
    }
}

static inline void random_ffn(random_writer *w, feed_kind feed)
{
    const size_t H = (size_t)w->cfg->hidden_size, I = (size_t)w->cfg->intermediate_size,
                 SI = (size_t)w->cfg->shared_expert_size;
    const bool gated = w->cfg->ffn != FFN_RELU2;
    if (feed == FEED_NONE) {
        return;
    }
    if (feed == FEED_DENSE || feed == FEED_BOTH) {
        const size_t width = I * (w->is_shared && w->cfg->shared_layers_are_wide ? 2 : 1);
        if (gated) {
            random_matrix(w, "mlp.gate_proj.weight", width, H);
        }
        random_matrix(w, "mlp.up_proj.weight", width, H);
        random_matrix(w, "mlp.down_proj.weight", H, width);
    }
    if (feed == FEED_DENSE) {
        return;
    }
    if (w->cfg->router_norm) {
        random_vector(w, "mlp.gate.scale", H, 1, 0.2f);
        random_vector(w, "mlp.gate.per_expert_scale", (size_t)w->cfg->n_experts, 1, 0.2f);
    }
    random_experts(w);
    if (SI > 0) {
        if (gated) {
            random_matrix(w, "mlp.shared_expert.gate_proj.weight", SI, H);
        }
        random_matrix(w, "mlp.shared_expert.up_proj.weight", SI, H);
        random_matrix(w, "mlp.shared_expert.down_proj.weight", H, SI);
    }
    if (SI > 0 && !w->cfg->shared_expert_ungated) {
        random_matrix(w, "mlp.shared_expert_gate.weight", 1, H);
    }
}

/* Rows of several parts of one head after the other, as the fused projections have them: parts [n]
 * of `rows` rows a head. */
static inline void random_fuse(random_writer *w, const char *name, const char *const *parts,
                               const size_t *rows, const size_t *first, size_t n, size_t n_heads)
{
    const size_t H = (size_t)w->cfg->hidden_size;
    size_t per_head = 0;
    for (size_t p = 0; p < n; p++) {
        per_head += rows[p];
    }
    uint16_t *out = random_add(w, w->prefix, name, (size_t[]){n_heads * per_head, H}, 2);
    for (size_t p = 0, at = 0; p < n; at += rows[p++]) {
        char full[128];
        /* of the separate matrix, as far as it is needed */
        const size_t n_rows = first[p] + n_heads * rows[p];
        uint16_t *whole = malloc(n_rows * H * sizeof *whole);
        snprintf(full, sizeof full, "%s%s", w->prefix, parts[p]);
        random_fill(whole, n_rows * H, full, 0, 1.7f / sqrtf((float)H));
        for (size_t h = 0; h < n_heads; h++) {
            memcpy(out + (h * per_head + at) * H, whole + (first[p] + h * rows[p]) * H,
                   rows[p] * H * sizeof *out);
        }
        free(whole);
    }
}

static inline void random_deltanet(random_writer *w)
{
    const model_config *c = w->cfg;
    const size_t H = (size_t)c->hidden_size, nk = (size_t)c->delta_n_k, nv = (size_t)c->delta_n_v,
                 dk = (size_t)c->delta_dk, dv = (size_t)c->delta_dv, C = 2 * nk * dk + nv * dv,
                 each = nv / nk;
    static const char qkv[] = "linear_attn.in_proj_qkv.weight", z[] = "linear_attn.in_proj_z.weight",
                      b[] = "linear_attn.in_proj_b.weight", a[] = "linear_attn.in_proj_a.weight";
    if (w->forms & RANDOM_FUSED_DELTA) {
        random_fuse(w, "linear_attn.in_proj_qkvz.weight", (const char *const[]){qkv, qkv, qkv, z},
                    (size_t[]){dk, dk, each * dv, each * dv}, (size_t[]){0, nk * dk, 2 * nk * dk, 0}, 4, nk);
        random_fuse(w, "linear_attn.in_proj_ba.weight", (const char *const[]){b, a}, (size_t[]){each, each},
                    (size_t[]){0, 0}, 2, nk);
    } else {
        random_matrix(w, qkv, C, H);
        random_matrix(w, z, nv * dv, H);
        random_matrix(w, b, nv, H);
        random_matrix(w, a, nv, H);
    }
    random_fill(random_add(w, w->prefix, "linear_attn.conv1d.weight", (size_t[]){C, 1, 4}, 3), C * 4,
                w->prefix, 0, 0.8f);
    random_vector(w, "linear_attn.A_log", nv, 0.5f, 0.5f);
    random_vector(w, "linear_attn.dt_bias", nv, 0, 1);
    random_vector(w, "linear_attn.norm.weight", dv, 1, 0.2f);
    random_matrix(w, "linear_attn.out_proj.weight", H, nv * dv);
}

static inline void random_mamba(random_writer *w)
{
    const model_config *c = w->cfg;
    const size_t H = (size_t)c->hidden_size, n = (size_t)c->delta_n_v, inner = n * (size_t)c->delta_dv,
                 C = model_config_channels(c);
    random_matrix(w, "mamba.in_proj.weight", inner + C + n, H);
    random_matrix(w, "mamba.out_proj.weight", H, inner);
    random_fill(random_add(w, w->prefix, "mamba.conv1d.weight", (size_t[]){C, 1, 4}, 3), C * 4, w->prefix, 0,
                0.8f);
    random_vector(w, "mamba.conv1d.bias", C, 0, 0.3f);
    random_vector(w, "mamba.A_log", n, 0.5f, 0.5f);
    random_vector(w, "mamba.D", n, 1, 0.5f);
    random_vector(w, "mamba.dt_bias", n, 0, 1);
    random_vector(w, "mamba.norm.weight", inner, 1, 0.2f);
}

static inline void random_attention(random_writer *w, const attention_spec *spec)
{
    const model_config *c = w->cfg;
    const size_t H = (size_t)c->hidden_size, nh = (size_t)c->n_heads, nkv = (size_t)spec->n_kv_heads,
                 hd = (size_t)spec->head_dim, q_rows = nh * hd * (c->attention_gate ? 2 : 1);
    random_matrix(w, "self_attn.q_proj.weight", q_rows, H);
    if (!w->is_shared) {
        random_matrix(w, "self_attn.k_proj.weight", nkv * hd, H);
    }
    if (!w->is_shared && !spec->keys_are_values) {
        random_matrix(w, "self_attn.v_proj.weight", nkv * hd, H);
    }
    random_matrix(w, "self_attn.o_proj.weight", H, nh * hd);
    if (c->qk_norm != QK_NORM_NONE) {
        const bool wide = c->qk_norm == QK_NORM_WIDTH;
        random_norm(w, "self_attn.q_norm.weight", wide ? nh * hd : hd);
        if (!w->is_shared) {
            random_norm(w, "self_attn.k_norm.weight", wide ? nkv * hd : hd);
        }
    }
    if (c->attention_biases) {
        random_vector(w, "self_attn.q_proj.bias", q_rows, 0, 0.3f);
        random_vector(w, "self_attn.k_proj.bias", nkv * hd, 0, 0.3f);
        random_vector(w, "self_attn.v_proj.bias", nkv * hd, 0, 0.3f);
        random_vector(w, "self_attn.o_proj.bias", H, 0, 0.3f);
    }
    if (c->attention_sinks) {
        random_vector(w, "self_attn.sinks", nh, 0, 1);
    }
}

/* What Gemma 4 has beside a layer's parts. */
static inline void random_extras(random_writer *w, feed_kind feed)
{
    const size_t H = (size_t)w->cfg->hidden_size, P = (size_t)w->cfg->layer_input_size;
    if (w->cfg->output_norms) {
        random_norm(w, "pre_feedforward_layernorm.weight", H);
        random_norm(w, "post_feedforward_layernorm.weight", H);
    }
    if (feed == FEED_BOTH) {
        random_norm(w, "post_feedforward_layernorm_1.weight", H);
        random_norm(w, "pre_feedforward_layernorm_2.weight", H);
        random_norm(w, "post_feedforward_layernorm_2.weight", H);
    }
    if (w->cfg->layer_scalars) {
        random_vector(w, "layer_scalar", 1, 0.8f, 0.1f);
    }
    if (P > 0) {
        random_matrix(w, "per_layer_input_gate.weight", P, H);
        random_matrix(w, "per_layer_projection.weight", H, P);
        random_norm(w, "post_per_layer_input_norm.weight", H);
    }
}

static inline void random_layer(random_writer *w, layer_kind kind, feed_kind feed)
{
    const model_config *c = w->cfg;
    const size_t H = (size_t)c->hidden_size;
    random_norm(w, "input_layernorm.weight", H);
    if (kind != LAYER_NONE && feed != FEED_NONE) {
        random_norm(w, "post_attention_layernorm.weight", H);
    }
    if (kind == LAYER_DELTANET) {
        random_deltanet(w);
    } else if (kind == LAYER_MAMBA) {
        random_mamba(w);
    } else if (layer_is_attention(kind)) {
        random_attention(w, model_config_attention(c, kind));
    }
    random_ffn(w, feed);
    random_extras(w, feed);
}

static inline void random_text(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text, 1, strlen(text), f) == strlen(text));
    CHECK(f && fclose(f) == 0);
}

/* Makes a folder under /tmp, whose name goes to dir [64], with config.json and
 * model.safetensors. */
static inline void random_checkpoint_make(char *dir, const char *config, unsigned forms)
{
    model_config cfg;
    err_detail d = {0};
    char path[256];
    folder_make(dir);
    random_text(dir, "config.json", config);
    CHECK_OK(model_config_load(&cfg, json_folder(dir), &d), d);
    random_writer *w = calloc(1, sizeof *w);
    if (!w || check_failures) {
        exit(1);
    }
    w->cfg = &cfg;
    w->forms = forms;
    const size_t V = (size_t)cfg.vocab_size, H = (size_t)cfg.hidden_size;
    random_matrix(w, "embed_tokens.weight", V, H);
    random_norm(w, "norm.weight", H);
    random_matrix(w, "lm_head.weight", V, H);
    const size_t P = (size_t)cfg.layer_input_size, width = (size_t)cfg.n_layers * P;
    if (P > 0) {
        random_matrix(w, "embed_tokens_per_layer.weight", (size_t)cfg.layer_input_vocab, width);
        random_matrix(w, "per_layer_model_projection.weight", width, H);
        random_norm(w, "per_layer_projection_norm.weight", P);
    }
    for (int32_t i = 0; i < cfg.n_layers; i++) {
        w->is_shared = i >= cfg.n_layers - cfg.n_shared_layers;
        snprintf(w->prefix, sizeof w->prefix, "layers.%d.", i);
        random_layer(w, cfg.layers[i], cfg.feeds[i]);
    }
    if (cfg.n_mtp_layers > 0) {
        snprintf(w->prefix, sizeof w->prefix, "mtp.");
        random_matrix(w, "fc.weight", H, 2 * H);
        random_norm(w, "pre_fc_norm_embedding.weight", H);
        random_norm(w, "pre_fc_norm_hidden.weight", H);
        random_norm(w, "norm.weight", H);
        snprintf(w->prefix, sizeof w->prefix, "mtp.layers.0.");
        random_layer(w, LAYER_ATTENTION, cfg.n_experts > 0 ? FEED_EXPERTS : FEED_DENSE);
    }
    compute *c = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(tensor_write(path, w->entries, w->n, c, &(load_progress){0}, &d), d);
    compute_destroy(c);
    for (size_t i = 0; i < w->n; i++) {
        free((void *)(uintptr_t)w->views[i].data);
    }
    free(w);
}

#endif
