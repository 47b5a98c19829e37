/* make_gguf: writes a checkpoint folder as GGUF files, for tests: what is published under other
 * names and in another form than the folder's goes through code that shares nothing with the
 * reader.
 *
 *     build/make_gguf DIR OUT.gguf [f32|f16|bf16|q8_0|q4_0|...]
 *
 * OUT.gguf holds decoder, draft head, tokenizer and template; a vision tower goes to
 * mmproj-OUT.gguf beside it. Matrices get the type (default: bf16) where their rows are whole
 * blocks of it, and bf16 otherwise; the rest is f32. As in published files, zero-centred norms are
 * stored with their 1 added, A_log as -exp(A_log), and the value heads of Qwen3.5 are put in tiled
 * order.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_TOOL_NAME "make_gguf"

#include "base/file.h"
#include "base/json.h"
#include "model/checkpoint/checkpoint.h"
#include "model/config/config_load.h"
#include "tests/compute/formats/ggml_pack.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/model/checkpoint/make_gguf_names.h"
#include "tools/check_tool.h"

typedef struct converter {
    checkpoint *ck;
    model_config cfg;
    json_doc *config;
    const char *arch, *dir;
    gguf_maker text, vision;
    dtype type; /* of matrices */
    bool tiled, permuted, is_gemma;
} converter;

/* ---- names ---- */

static const char *look_up(const char *canonical)
{
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcmp(NAMES[i][0], canonical) == 0) {
            return NAMES[i][1];
        }
    }
    fprintf(stderr, "make_gguf: no name for %s\n", canonical);
    exit(2);
}

/* ---- numbers ---- */

static const uint32_t FILE_TYPES[DTYPES] = {
    [DTYPE_F32] = 0,   [DTYPE_F16] = 1,     [DTYPE_BF16] = 30,   [DTYPE_Q4_0] = 2,
    [DTYPE_Q4_1] = 3,  [DTYPE_Q5_0] = 6,    [DTYPE_Q5_1] = 7,    [DTYPE_Q8_0] = 8,
    [DTYPE_Q2_K] = 10, [DTYPE_Q3_K] = 11,   [DTYPE_Q4_K] = 12,   [DTYPE_Q5_K] = 13,
    [DTYPE_Q6_K] = 14, [DTYPE_IQ4_NL] = 20, [DTYPE_IQ4_XS] = 23, [DTYPE_MXFP4] = 39,
};

static float *floats_of(const tensor *t)
{
    float *out = must(malloc((tensor_len(t) + 1) * sizeof *out));
    tensor_to_f32(out, t, 0, tensor_len(t));
    return out;
}

/* Writes n_dims sizes (rows first) of numbers in the type, or in bf16 where it does not fit. */
static void write_floats(gguf_maker *m, const char *name, dtype type, const float *w, const size_t *dims,
                         uint32_t n_dims)
{
    const size_t K = dims[n_dims - 1];
    uint64_t sizes[4];
    size_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        sizes[n_dims - 1 - i] = dims[i];
        n *= dims[i];
    }
    if (dtype_is_ggml(type) && K % ggml_format_of(type)->columns != 0) {
        type = DTYPE_BF16;
    }
    const tensor row = {.type = type, .n_dims = 2, .dims = {1, K}};
    const size_t row_bytes = tensor_row_bytes(&row);
    unsigned char *data = must(malloc(n / K * row_bytes + 1));
    float *kept = must(malloc((K + 1) * sizeof *kept));
    for (size_t r = 0; r < n / K; r++) {
        unsigned char *to = data + r * row_bytes;
        const float *from = w + r * K;
        if (dtype_is_ggml(type)) {
            ggml_pack(to, kept, type, from, K);
        } else if (type == DTYPE_F32) {
            memcpy(to, from, row_bytes);
        }
        for (size_t k = 0; type != DTYPE_F32 && type < DTYPE_OTHER && k < K; k++) {
            const uint16_t bits = type == DTYPE_BF16 ? bf16_from_f32(from[k]) : f16_from_f32(from[k]);
            memcpy(to + 2 * k, &bits, sizeof bits);
        }
    }
    /* converters drop the dimension of a single number */
    maker_tensor(m, name, FILE_TYPES[type], sizes, n == 1 ? 0 : n_dims, data, n / K * row_bytes);
    free(data);
    free(kept);
}

/* Rows first .. first + heads*unit - 1 of w [.., K]: from key head by key head to tiled order. */
static void tile_rows(const converter *c, float *w, size_t first, size_t unit, size_t K)
{
    const size_t nk = (size_t)c->cfg.delta_n_k, nv = (size_t)c->cfg.delta_n_v, each = nv / nk, n = unit * K;
    float *copy = must(malloc(nv * n * sizeof *copy));
    memcpy(copy, w + first * K, nv * n * sizeof *copy);
    for (size_t h = 0; h < nv; h++) {
        memcpy(w + first * K + (h % each * nk + h / each) * n, copy + h * n, n * sizeof *copy);
    }
    free(copy);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Puts the value heads of a tensor in tiled order; K is the length of a row. */
static void tile(const converter *c, const char *name, float *w, size_t rows, size_t K)
{
    const size_t dv = (size_t)c->cfg.delta_dv, keys = 2 * (size_t)(c->cfg.delta_n_k * c->cfg.delta_dk);
    if (ends_with(name, "in_proj_qkv.weight") || ends_with(name, "conv1d.weight")) {
        tile_rows(c, w, keys, dv, K);
    } else if (ends_with(name, "in_proj_z.weight")) {
        tile_rows(c, w, 0, dv, K);
    } else if (ends_with(name, "in_proj_a.weight") || ends_with(name, "in_proj_b.weight")) {
        tile_rows(c, w, 0, 1, K);
    } else if (ends_with(name, ".A_log") || ends_with(name, ".dt_bias")) {
        tile_rows(c, w, 0, 1, 1);
    } else if (ends_with(name, "linear_attn.out_proj.weight")) {
        for (size_t r = 0; r < rows; r++) {
            tile_rows(c, w + r * K, 0, dv, 1); /* columns */
        }
    }
}

/* Row i of a head's first half, then row i of its second one. */
static void permute_rows(const converter *c, float *w, size_t rows, size_t K)
{
    const size_t hd = (size_t)c->cfg.full.head_dim, half = hd / 2;
    if (rows == 0 || K == 0) {
        return;
    }
    float *copy = must(malloc(rows * K * sizeof *copy));
    memcpy(copy, w, rows * K * sizeof *copy);
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r % hd;
        memcpy(w + r * K, copy + (r - at + at / 2 + at % 2 * half) * K, K * sizeof *w);
    }
    free(copy);
}

static bool is_shifted_norm(const converter *c, const char *name)
{
    return c->cfg.zero_centred_norms && strncmp(name, "visual.", 7) != 0 &&
           !ends_with(name, "linear_attn.norm.weight") &&
           (ends_with(name, "norm.weight") || strstr(name, "pre_fc_norm"));
}

/* One tensor of the decoder or the draft head. */
static void write_text(converter *c, const named_tensor *t, const char *stored)
{
    float *w = floats_of(&t->view);
    const size_t n = tensor_len(&t->view);
    size_t dims[4] = {t->view.dims[0], t->view.dims[1], t->view.dims[2]};
    uint32_t n_dims = (uint32_t)t->view.n_dims;
    for (size_t i = 0; i < n && is_shifted_norm(c, t->name); i++) {
        w[i] += 1;
    }
    for (size_t i = 0; i < n && ends_with(t->name, ".A_log"); i++) {
        w[i] = -expf(w[i]);
    }
    if (ends_with(t->name, ".conv1d.weight")) {
        dims[1] = dims[2];
        n_dims = 2;
    } else if (ends_with(t->name, ".shared_expert_gate.weight")) {
        dims[0] = dims[1];
        n_dims = 1;
    } else if (ends_with(t->name, ".mamba.A_log") || ends_with(t->name, ".mamba.D")) {
        dims[1] = 1;
        n_dims = 2;
    } else if (ends_with(t->name, ".mamba.norm.weight")) {
        dims[1] = dims[0] / (size_t)c->cfg.delta_n_k;
        dims[0] = (size_t)c->cfg.delta_n_k;
        n_dims = 2;
    }
    if (c->permuted && (strstr(t->name, ".q_proj.") || strstr(t->name, ".k_proj."))) {
        permute_rows(c, w, dims[0], n / dims[0]);
    }
    if (c->tiled) {
        tile(c, t->name, w, dims[0], n_dims > 1 ? dims[1] : 1);
    }
    const bool matrix = t->view.n_dims > 1 && !ends_with(t->name, "conv1d.weight") &&
                        !ends_with(t->name, "mlp.gate.weight") && n_dims > 1 && !ends_with(t->name, "_bias");
    write_floats(&c->text, stored, matrix ? c->type : DTYPE_F32, w, dims, n_dims);
    free(w);
}

/* gate and up of all experts in one tensor: two tensors. */
static void write_gate_up(converter *c, const named_tensor *t, const char *before)
{
    char name[128];
    const size_t E = t->view.dims[0], MI = t->view.dims[1] / 2, H = t->view.dims[2];
    float *w = floats_of(&t->view), *half = must(malloc(E * MI * H * sizeof *half));
    for (size_t part = 0; part < 2; part++) {
        for (size_t e = 0; e < E; e++) {
            memcpy(half + e * MI * H, w + (2 * e + part) * MI * H, MI * H * sizeof *half);
        }
        snprintf(name, sizeof name, "%sffn_%s_exps.weight", before, part ? "up" : "gate");
        write_floats(&c->text, name, c->type, half, (size_t[]){E, MI, H}, 3);
    }
    free(w);
    free(half);
}

/* experts.0.PART_proj.weight stands for all experts' tensors of that name. */
static void write_experts(converter *c, const named_tensor *t, const char *before, const char *part)
{
    char name[256], stored[256];
    const size_t E = (size_t)c->cfg.n_experts, n = tensor_len(&t->view);
    float *w = must(malloc(E * n * sizeof *w));
    const int n_prefix = (int)(strstr(t->name, "experts.0.") - t->name);
    for (size_t e = 0; e < E; e++) {
        snprintf(name, sizeof name, "%.*sexperts.%zu.%s", n_prefix, t->name, e, part);
        const named_tensor *one = must((void *)(uintptr_t)tensor_table_find(checkpoint_tensors(c->ck), name));
        tensor_to_f32(w + e * n, &one->view, 0, n);
    }
    snprintf(stored, sizeof stored, "%sffn_%.*s_exps.weight", before, (int)(strchr(part, '_') - part), part);
    write_floats(&c->text, stored, c->type, w, (size_t[]){E, t->view.dims[0], t->view.dims[1]}, 3);
    free(w);
}

static void write_layer(converter *c, const named_tensor *t, int layer, const char *rest)
{
    char before[32], stored[128];
    snprintf(before, sizeof before, "blk.%d.", layer);
    if (c->is_gemma && strncmp(rest, "mlp.experts.", 12) == 0) { /* as they are published */
        snprintf(stored, sizeof stored, "%sffn_%.*s_exps.weight", before,
                 (int)(strstr(rest, "_proj") - rest - 12), rest + 12);
        write_text(c, t, stored);
    } else if (strcmp(rest, "mlp.experts.gate_up_proj") == 0) {
        write_gate_up(c, t, before);
    } else if (strncmp(rest, "mlp.experts.0.", 14) == 0) {
        write_experts(c, t, before, rest + 14);
    } else if (strncmp(rest, "mlp.experts.", 12) != 0 || rest[12] < '0' || rest[12] > '9') {
        const bool plain = strcmp(rest, "post_attention_layernorm.weight") == 0;
        const bool next = c->is_gemma || c->cfg.n_recurrent_layers > 0 || strcmp(c->arch, "gpt-oss") == 0;
        snprintf(stored, sizeof stored, "%s%s", before,
                 !plain ? look_up(rest)
                 : next ? "post_attention_norm.weight"
                        : "ffn_norm.weight");
        write_text(c, t, stored);
    }
}

/* The number behind text's first n bytes; *rest is what follows its dot. */
static int number_at(const char *text, size_t n, const char **rest)
{
    char *end = NULL;
    const long v = strtol(text + n, &end, 10);
    *rest = end + 1;
    return (int)v;
}

/* Its layer for the index-th DeepStack merger. */
static int deepstack_layer(const converter *c, int index)
{
    const json *list = json_get(json_get(json_root(c->config), "vision_config"), "deepstack_visual_indexes");
    const json *v = json_child(list);
    for (int i = 0; v && i < index; i++) {
        v = json_next(v);
    }
    return (int)json_num(v, 0);
}

static void write_vision(converter *c, const named_tensor *t)
{
    const char *rest = t->name;
    char stored[128];
    float *w = floats_of(&t->view);
    const size_t *d = t->view.dims;
    if (strcmp(t->name, "visual.patch_embed.proj.weight") == 0) {
        const size_t n = d[0] * d[1], area = d[3] * d[4];
        float *half = must(malloc(n * area * sizeof *half));
        for (size_t part = 0; part < 2; part++) {
            for (size_t i = 0; i < n; i++) {
                memcpy(half + i * area, w + (2 * i + part) * area, area * sizeof *half);
            }
            write_floats(&c->vision, part ? "v.patch_embd.weight.1" : "v.patch_embd.weight", DTYPE_F32, half,
                         (size_t[]){d[0], d[1], d[3], d[4]}, 4);
        }
        free(half);
        free(w);
        return;
    }
    if (strcmp(t->name, "visual.patch_embedder.input_proj.weight") == 0) { /* colour by colour there */
        const size_t area = d[1] / 3, side = (size_t)lrint(sqrt((double)area));
        float *turned = must(malloc(d[0] * d[1] * sizeof *turned));
        for (size_t i = 0; i < d[0] * d[1]; i++) {
            const size_t k = i % d[1];
            turned[i - k + k % 3 * area + k / 3] = w[i];
        }
        write_floats(&c->vision, "v.patch_embd.weight", DTYPE_F32, turned, (size_t[]){d[0], 3, side, side},
                     4);
        free(turned);
        free(w);
        return;
    }
    if (strncmp(t->name, "visual.encoder.layers.", 22) == 0) {
        const int i = number_at(t->name, 22, &rest);
        const char *kind = strrchr(t->name, '.');
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)(strlen(rest) - strlen(kind)), rest);
        snprintf(stored, sizeof stored, "v.blk.%d.%s%s", i, look_up(part), kind);
    } else if (strncmp(t->name, "visual.blocks.", 14) == 0) {
        const int i = number_at(t->name, 14, &rest);
        snprintf(stored, sizeof stored, "v.blk.%d.%s", i, look_up(rest));
    } else if (strncmp(t->name, "visual.deepstack_merger_list.", 29) == 0) {
        const int i = deepstack_layer(c, number_at(t->name, 29, &rest));
        const bool linear = strncmp(rest, "linear_", 7) == 0; /* linear_fc1 is fc1 there */
        snprintf(stored, sizeof stored, "v.deepstack.%d.%s", i, rest + (linear ? 7 : 0));
    } else {
        snprintf(stored, sizeof stored, "%s", look_up(t->name));
    }
    const bool matrix = t->view.n_dims == 2 && !ends_with(stored, "position_embd.weight");
    const bool is_scalar = t->view.n_dims == 0; /* a list of one there */
    write_floats(&c->vision, stored, matrix ? DTYPE_BF16 : DTYPE_F32, w, is_scalar ? (size_t[]){1} : d,
                 is_scalar ? 1 : (uint32_t)t->view.n_dims);
    free(w);
}

static void write_tensors(converter *c)
{
    for (size_t i = 0; i < checkpoint_tensors(c->ck)->n; i++) {
        const named_tensor *t = &checkpoint_tensors(c->ck)->items[i];
        const char *rest = t->name;
        char stored[128];
        if (strncmp(t->name, "layers.", 7) == 0) {
            const int layer = number_at(t->name, 7, &rest);
            write_layer(c, t, layer, rest);
        } else if (strncmp(t->name, "mtp.layers.", 11) == 0) {
            const int layer = number_at(t->name, 11, &rest);
            write_layer(c, t, c->cfg.n_layers + layer, rest);
        } else if (strncmp(t->name, "mtp.", 4) == 0) {
            snprintf(stored, sizeof stored, "blk.%d.%s", c->cfg.n_layers, look_up(t->name));
            write_text(c, t, stored);
        } else if (strncmp(t->name, "visual.", 7) == 0) {
            write_vision(c, t);
        } else if (!c->cfg.tie_word_embeddings || strcmp(t->name, "lm_head.weight") != 0) {
            write_text(c, t, look_up(t->name));
        }
    }
}

/* ---- metadata ---- */

static void put_count(converter *c, const char *name, int64_t v)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", c->arch, name);
    maker_u32(&c->text, key, (uint32_t)v);
}

static void put_real(converter *c, const char *name, double v)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", c->arch, name);
    maker_f32(&c->text, key, (float)v);
}

/* Gemma 4: what its two kinds of layers have. */
static void write_gemma_metadata(converter *c)
{
    const model_config *cfg = &c->cfg;
    char key[128];
    float factors[512];
    put_count(c, "attention.shared_kv_layers", cfg->n_shared_layers);
    put_count(c, "embedding_length_per_layer_input", cfg->layer_input_size);
    put_count(c, "attention.key_length_swa", cfg->sliding.head_dim);
    put_count(c, "attention.value_length_swa", cfg->sliding.head_dim);
    if ((double)cfg->logit_softcap != 30) { /* converters leave out the usual one */
        put_real(c, "final_logit_softcapping", (double)cfg->logit_softcap);
    }
    put_real(c, "rope.freq_base_swa", cfg->sliding.rope.theta);
    put_count(c, "rope.dimension_count_swa", 2 * cfg->sliding.rope.pairs);
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", c->arch);
    maker_array(&c->text, key, GGUF_BOOL, (uint64_t)cfg->n_layers);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        put_number(&c->text.values, cfg->layers[i] == LAYER_SLIDING, 1);
    }
    const bool by_layer = cfg->full.n_kv_heads != cfg->sliding.n_kv_heads;
    snprintf(key, sizeof key, "%s.attention.head_count_kv", c->arch);
    if (by_layer) {
        maker_array(&c->text, key, GGUF_I32, (uint64_t)cfg->n_layers);
    } else {
        maker_u32(&c->text, key, (uint32_t)cfg->full.n_kv_heads);
    }
    for (int32_t i = 0; by_layer && i < cfg->n_layers; i++) {
        put_number(&c->text.values, (uint64_t)model_config_attention(cfg, cfg->layers[i])->n_kv_heads, 4);
    }
    snprintf(key, sizeof key, "%s.feed_forward_length", c->arch);
    if (cfg->shared_layers_are_wide) {
        maker_array(&c->text, key, GGUF_I32, (uint64_t)cfg->n_layers);
    } else {
        maker_u32(&c->text, key, (uint32_t)cfg->intermediate_size);
    }
    for (int32_t i = 0; cfg->shared_layers_are_wide && i < cfg->n_layers; i++) {
        const bool wide = i >= cfg->n_layers - cfg->n_shared_layers;
        put_number(&c->text.values, (uint64_t)cfg->intermediate_size << wide, 4);
    }
    const int32_t pairs = cfg->full.rope.pairs;
    for (int32_t i = 0; i < pairs; i++) {
        factors[i] = i < pairs - cfg->full.rope.n_still ? 1.0f : 1e30f;
    }
    write_floats(&c->text, "rope_freqs.weight", DTYPE_F32, factors, (size_t[]){(size_t)pairs}, 1);
    maker_u32(&c->text, "tokenizer.ggml.padding_token_id", (uint32_t)cfg->pad_token_id);
}

/* A count for every layer: v where the layer has such a part, else 0. */
static void put_counts(converter *c, const char *name, int64_t v, bool of_attention)
{
    const model_config *cfg = &c->cfg;
    char key[128];
    snprintf(key, sizeof key, "%s.%s", c->arch, name);
    maker_array(&c->text, key, GGUF_I32, (uint64_t)cfg->n_layers);
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        const bool has = of_attention ? cfg->layers[i] == LAYER_ATTENTION : cfg->feeds[i] != FEED_NONE;
        put_number(&c->text.values, has ? (uint64_t)v : 0, 4);
    }
}

/* What Llama 3 divides its frequencies by. */
static void write_rope_freqs(converter *c)
{
    const rope_spec *r = &c->cfg.full.rope;
    float factors[256];
    for (int32_t i = 0; i < r->pairs && i < 256; i++) {
        const double wave = 2 * 3.14159265358979 * pow(r->theta, (double)i / r->pairs);
        const double smooth =
            (r->llama3_original / wave - r->llama3_slow) / (r->llama3_fast - r->llama3_slow);
        factors[i] = (float)(wave < r->llama3_original / r->llama3_fast ? 1.0
                             : wave > r->llama3_original / r->llama3_slow
                                 ? r->llama3_factor
                                 : 1 / ((1 - smooth) / r->llama3_factor + smooth));
    }
    write_floats(&c->text, "rope_freqs.weight", DTYPE_F32, factors, (size_t[]){(size_t)r->pairs}, 1);
}

static void write_metadata(converter *c)
{
    const model_config *cfg = &c->cfg;
    char key[128];
    tensor unused;
    const tensor_source all = tensor_table_source(checkpoint_tensors(c->ck));
    const bool draft = all.find(all.ctx, "mtp.fc.weight", &unused);
    maker_text(&c->text, "general.architecture", c->arch);
    put_count(c, "block_count", cfg->n_layers + draft);
    if (draft) {
        put_count(c, "nextn_predict_layers", 1);
    }
    put_count(c, "context_length", cfg->max_position_embeddings);
    put_count(c, "embedding_length", cfg->hidden_size);
    const bool mamba = strncmp(c->arch, "nemotron_h", 10) == 0;
    if (c->is_gemma) {
        write_gemma_metadata(c);
    } else if (mamba) {
        put_counts(c, "feed_forward_length", cfg->intermediate_size, false);
        put_counts(c, "attention.head_count_kv", cfg->full.n_kv_heads, true);
    } else {
        put_count(c, "feed_forward_length", cfg->intermediate_size);
        put_count(c, "attention.head_count_kv", cfg->full.n_kv_heads);
    }
    put_count(c, "attention.head_count", cfg->n_heads);
    put_count(c, "attention.key_length", cfg->full.head_dim);
    put_count(c, "attention.value_length", cfg->full.head_dim);
    put_real(c, "attention.layer_norm_rms_epsilon", (double)cfg->rms_norm_eps);
    if (cfg->full.rope.pairs > 0) {
        put_real(c, "rope.freq_base", cfg->full.rope.theta);
        put_count(c, "rope.dimension_count", 2 * cfg->full.rope.pairs);
    }
    if (strncmp(c->arch, "qwen35", 6) == 0 || strncmp(c->arch, "qwen3vl", 7) == 0) {
        snprintf(key, sizeof key, "%s.rope.dimension_sections", c->arch);
        maker_array(&c->text, key, GGUF_I32, 4);
        for (size_t i = 0; i < 4; i++) {
            put_number(&c->text.values, i < 3 ? (uint64_t)cfg->mrope_section[i] : 0, 4);
        }
    }
    if (cfg->n_sliding_layers > 0) {
        put_count(c, "attention.sliding_window", cfg->sliding.window);
    }
    if (cfg->full.rope.yarn_factor > 0) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", c->arch);
        maker_text(&c->text, key, "yarn");
        put_real(c, "rope.scaling.factor", cfg->full.rope.yarn_factor);
        put_count(c, "rope.scaling.original_context_length", (int64_t)cfg->full.rope.yarn_original);
    }
    if (cfg->full.rope.linear_factor > 0) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", c->arch);
        maker_text(&c->text, key, "linear");
        put_real(c, "rope.scaling.factor", cfg->full.rope.linear_factor);
    }
    if (cfg->n_recurrent_layers > 0) {
        put_count(c, "ssm.conv_kernel", cfg->conv_kernel);
        put_count(c, "ssm.state_size", cfg->delta_dk);
        put_count(c, "ssm.group_count", cfg->delta_n_k);
        put_count(c, "ssm.time_step_rank", cfg->delta_n_v);
        put_count(c, "ssm.inner_size", cfg->delta_n_v * cfg->delta_dv);
    }
    if (cfg->n_recurrent_layers > 0 && !mamba) {
        put_count(c, "full_attention_interval", cfg->n_layers / cfg->n_attention_layers);
    }
    if (cfg->query_growth > 0) {
        put_real(c, "attention.temperature_scale", (double)cfg->query_growth);
    }
    if (cfg->full.rope.yarn_factor > 0 && cfg->full.rope.magnitude == 1) {
        put_real(c, "rope.scaling.yarn_log_multiplier", 1.0);
    }
    if (strcmp(c->arch, "granite") == 0) {
        put_real(c, "attention.scale", cfg->attention_scale);
        put_real(c, "embedding_scale", (double)cfg->embed_scale);
        put_real(c, "residual_scale", (double)cfg->residual_scale);
        put_real(c, "logit_scale", 1.0 / (double)cfg->logit_scale);
    }
    if (strcmp(c->arch, "glm4moe") == 0) {
        int32_t n_dense = 0;
        while (cfg->feeds[n_dense] == FEED_DENSE) {
            n_dense++;
        }
        put_count(c, "leading_dense_block_count", n_dense);
        put_count(c, "expert_shared_count", cfg->shared_expert_size / cfg->expert_size);
    }
    if (cfg->full.rope.llama3_factor > 0) {
        write_rope_freqs(c);
    }
    if (cfg->n_experts > 0) {
        put_count(c, "expert_count", cfg->n_experts);
        put_count(c, "expert_used_count", cfg->n_experts_used);
        put_count(c, "expert_feed_forward_length", cfg->expert_size);
        if (cfg->shared_expert_size > 0) {
            put_count(c, "expert_shared_feed_forward_length", cfg->shared_expert_size);
        }
        if (cfg->router == ROUTER_SIGMOID) {
            put_real(c, "expert_weights_scale", (double)cfg->routed_scale);
            put_count(c, "expert_group_count", cfg->n_router_groups);
            put_count(c, "expert_group_used_count", cfg->n_router_groups_used);
        }
        if (cfg->expert_latent_size > 0) {
            put_count(c, "moe_latent_size", cfg->expert_latent_size);
        }
        snprintf(key, sizeof key, "%s.expert_weights_norm", c->arch);
        maker_bool(&c->text, key, cfg->norm_expert_weights);
    }
}

static void write_tokenizer(converter *c)
{
    enum { PLAIN = 1, CONTROL = 3, ADDED = 4, UNUSED = 5 };
    char path[4096];
    json_doc *doc = NULL;
    err_detail d = {0};
    bytes template;
    snprintf(path, sizeof path, "%s/tokenizer.json", c->dir);
    require(json_parse_file(&doc, path, LIMIT_TOKENIZER_BYTES, &d), &d);
    const json *root = json_root(doc), *model = json_get(root, "model"), *merges = json_get(model, "merges");
    const size_t V = (size_t)c->cfg.vocab_size;
    const char **texts = must(calloc(V, sizeof *texts));
    uint8_t *kinds = must(calloc(V, 1));
    for (const json *v = json_child(json_get(model, "vocab")); v; v = json_next(v)) {
        texts[(size_t)json_num(v, 0)] = json_key(v);
        kinds[(size_t)json_num(v, 0)] = PLAIN;
    }
    for (const json *v = json_child(json_get(root, "added_tokens")); v; v = json_next(v)) {
        const size_t id = (size_t)json_num(json_get(v, "id"), 0);
        texts[id] = json_str(json_get(v, "content"), "");
        kinds[id] = json_is_true(json_get(v, "special")) ? CONTROL : ADDED;
    }
    const bool is_spaced = json_is_true(json_get(model, "byte_fallback"));
    maker_text(&c->text, "tokenizer.ggml.model", is_spaced ? "gemma4" : "gpt2");
    if (!is_spaced) {
        maker_text(&c->text, "tokenizer.ggml.pre", "qwen35");
    }
    maker_array(&c->text, "tokenizer.ggml.tokens", GGUF_TEXT, V);
    for (size_t i = 0; i < V; i++) {
        snprintf(path, sizeof path, "[PAD%zu]", i);
        put_text(&c->text.values, kinds[i] ? texts[i] : path);
    }
    maker_array(&c->text, "tokenizer.ggml.token_type", GGUF_I32, V);
    for (size_t i = 0; i < V; i++) {
        put_number(&c->text.values, kinds[i] ? kinds[i] : UNUSED, 4);
    }
    maker_array(&c->text, "tokenizer.ggml.merges", GGUF_TEXT, json_len(merges));
    for (const json *v = json_child(merges); v; v = json_next(v)) {
        const json *left = json_child(v);
        snprintf(path, sizeof path, "%s %s", json_str(left, ""), left ? json_str(json_next(left), "") : "");
        put_text(&c->text.values, left ? path : json_str(v, ""));
    }
    if (c->cfg.n_stop_ids > 0) {
        maker_u32(&c->text, "tokenizer.ggml.eos_token_id", (uint32_t)c->cfg.stop_ids[0]);
    }
    bytes_init(&template, LIMIT_TEMPLATE_BYTES);
    require(checkpoint_read_template(c->ck, &template, &d), &d);
    maker_text(&c->text, "tokenizer.chat_template", bytes_str(&template));
    bytes_deinit(&template);
    free(texts);
    free(kinds);
    json_free(doc);
}

static void write_vision_metadata(converter *c)
{
    static const char *const counts[][2] = {{"depth", "block_count"},
                                            {"hidden_size", "embedding_length"},
                                            {"intermediate_size", "feed_forward_length"},
                                            {"num_heads", "attention.head_count"},
                                            {"out_hidden_size", "projection_dim"},
                                            {"patch_size", "patch_size"},
                                            {"spatial_merge_size", "spatial_merge_size"}};
    const json *section = json_get(json_root(c->config), "vision_config");
    const json *deep = json_get(section, "deepstack_visual_indexes");
    char key[128];
    maker_text(&c->vision, "general.architecture", "clip");
    if (c->is_gemma) {
        static const char *const own[][2] = {{"num_hidden_layers", "block_count"},
                                             {"hidden_size", "embedding_length"},
                                             {"intermediate_size", "feed_forward_length"},
                                             {"num_attention_heads", "attention.head_count"},
                                             {"patch_size", "patch_size"}};
        maker_text(&c->vision, "clip.vision.projector_type", "gemma4v");
        for (size_t i = 0; i < ARRAY_LEN(own); i++) {
            snprintf(key, sizeof key, "clip.vision.%s", own[i][1]);
            maker_u32(&c->vision, key, (uint32_t)json_num(json_get(section, own[i][0]), 0));
        }
        maker_u32(&c->vision, "clip.vision.projection_dim", (uint32_t)c->cfg.hidden_size);
        maker_f32(&c->vision, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
        return;
    }
    maker_text(&c->vision, "clip.projector_type", "qwen3vl_merger");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        snprintf(key, sizeof key, "clip.vision.%s", counts[i][1]);
        maker_u32(&c->vision, key, (uint32_t)json_num(json_get(section, counts[i][0]), 0));
    }
    json_doc *processor = NULL;
    err_detail d = {0};
    const json_source docs = checkpoint_documents(c->ck);
    require(docs.read(docs.ctx, "processor_config.json", &processor, &d), &d);
    const json *size = processor ? json_get(json_get(json_root(processor), "image_processor"), "size") : NULL;
    if (size) {
        maker_u32(&c->vision, "clip.vision.image_min_pixels",
                  (uint32_t)json_num(json_get(size, "shortest_edge"), 0));
        maker_u32(&c->vision, "clip.vision.image_max_pixels",
                  (uint32_t)json_num(json_get(size, "longest_edge"), 0));
    }
    json_free(processor);
    const size_t depth = (size_t)json_num(json_get(section, "depth"), 0);
    maker_array(&c->vision, "clip.vision.is_deepstack_layers", GGUF_BOOL, depth);
    for (size_t i = 0; i < depth; i++) {
        bool is = false;
        for (const json *v = json_child(deep); v; v = json_next(v)) {
            is = is || (size_t)json_num(v, 0) == i;
        }
        put_number(&c->vision.values, is, 1);
    }
}

/* ---- the program ---- */

static bool find_type(const char *name, dtype *type)
{
    for (dtype t = DTYPE_F32; t <= DTYPE_MXFP4; t++) {
        if (strcmp(dtype_name(t), name) == 0 && (t < DTYPE_OTHER || dtype_is_ggml(t))) {
            *type = t;
            return true;
        }
    }
    return false;
}

static const char *arch_of(const char *model_type, bool experts)
{
    static const char *const archs[][2] = {
        {"qwen3_5_moe", "qwen35moe"},
        {"qwen3_5", "qwen35"},
        {"qwen3_next", "qwen3next"},
        {"qwen3_moe", "qwen3moe"},
        {"qwen3_vl_moe", "qwen3vlmoe"},
        {"qwen3_vl", "qwen3vl"},
        {"qwen3", "qwen3"},
        {"minimax_m2", "minimax-m2"},
        {"gpt_oss", "gpt-oss"},
        {"llama", "llama"},
        {"qwen2", "qwen2"},
        {"granite", "granite"},
        {"ministral3", "mistral3"},
        {"mistral", "llama"},
        {"smollm3", "smollm3"},
        {"glm4_moe", "glm4moe"},
        {"gemma4", "gemma4"},
    };
    if (strcmp(model_type, "nemotron_h") == 0) {
        return experts ? "nemotron_h_moe" : "nemotron_h";
    }
    for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
        if (strncmp(model_type, archs[i][0], strlen(archs[i][0])) == 0) {
            return archs[i][1];
        }
    }
    return "unknown";
}

/* DIR/mmproj-NAME.gguf of DIR/NAME.gguf. */
static void vision_path(char *out, size_t cap, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) + 1 : 0;
    snprintf(out, cap, "%.*smmproj-%s", n, path, path + n);
}

int main(int argc, char **argv)
{
    converter c = {.type = DTYPE_BF16};
    err_detail d = {0};
    char path[4096];
    if (argc < 3 || argc > 4 || (argc == 4 && !find_type(argv[3], &c.type))) {
        fprintf(stderr, "usage: make_gguf DIR OUT.gguf [f32|f16|bf16|q8_0|...]\n");
        return 2;
    }
    c.dir = argv[1];
    require(checkpoint_open(&c.ck, c.dir, NULL, &d), &d);
    require(model_config_load(&c.cfg, checkpoint_documents(c.ck), &d), &d);
    snprintf(path, sizeof path, "%s/config.json", c.dir);
    require(json_parse_file(&c.config, path, LIMIT_CONFIG_BYTES, &d), &d);
    c.arch = arch_of(c.cfg.family, c.cfg.n_experts > 0);
    c.tiled = strncmp(c.arch, "qwen35", 6) == 0;
    c.is_gemma = strcmp(c.arch, "gemma4") == 0;
    static const char *const permuted[] = {"llama", "granite", "mistral3", "smollm3"};
    for (size_t i = 0; i < ARRAY_LEN(permuted); i++) {
        c.permuted = c.permuted || strcmp(c.arch, permuted[i]) == 0;
    }
    maker_init(&c.text);
    maker_init(&c.vision);
    write_metadata(&c);
    snprintf(path, sizeof path, "%s/tokenizer.json", c.dir);
    if (file_exists(path)) {
        write_tokenizer(&c);
    }
    write_tensors(&c);
    maker_write(&c.text, argv[2]);
    if (c.cfg.has_vision) {
        write_vision_metadata(&c);
        vision_path(path, sizeof path, argv[2]);
        maker_write(&c.vision, path);
    }
    json_free(c.config);
    checkpoint_close(c.ck);
    return check_failures ? 1 : 0;
}
