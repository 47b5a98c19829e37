/* The tower of Gemma 4: norms before and behind every part, heads that are normed, a gated MLP, a
 * position for the column and one for the row of a patch, and rotations of half a head by each;
 * patches of a block are averaged and projected. Products of small models are held between bounds.
 * docs/model.md D.7. Reference: modeling_gemma4 in Hugging Face transformers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "vision/vit_parts.h"

static err_code unsupported(err_detail *detail, const char *what)
{
    return err_set(detail, ERR_UNSUPPORTED, "config.json: vision_config.%s", what);
}

static err_code read_config(vit_config *vc, int32_t *side, const json *root, err_detail *detail)
{
    const json *section = json_get(root, "vision_config");
    const json *nested = json_get(root, "text_config"), *text = nested ? nested : root,
               *rope = json_get(section, "rope_parameters");
    int32_t n_key_heads = 0;
    int64_t width = 0;
    const vit_field fields[] = {
        {"num_hidden_layers", &vc->depth, 0, 1024},
        {"hidden_size", &vc->hidden_size, 0, 1 << 16},
        {"intermediate_size", &vc->intermediate_size, 0, 1 << 18},
        {"num_attention_heads", &vc->n_heads, 0, 1024},
        {"num_key_value_heads", &n_key_heads, 0, 1024},
        {"head_dim", &vc->head_dim, 64, 1024},
        {"patch_size", &vc->patch_size, 16, 256},
        {"pooling_kernel_size", &vc->spatial_merge_size, 3, 16},
        {"position_embedding_size", side, 10240, 1 << 20},
    };
    err_code err = vit_read_fields(section, fields, ARRAY_LEN(fields), detail);
    if (err) {
        return err;
    }
    if (!json_int(json_get(text, "hidden_size"), 1, 1 << 16, &width)) {
        return err_set(detail, ERR_INVALID,
                       "config.json: text_config.hidden_size is missing or out of range");
    }
    vc->out_hidden_size = (int32_t)width;
    vc->in_channels = 3;
    vc->temporal_patch_size = 1;
    vc->rope_theta = json_num(json_get(rope, "rope_theta"), 100.0);
    vc->norm_eps = (float)json_num(json_get(section, "rms_norm_eps"), 1e-6);
    vc->attention_scale = 1.0f;
    vc->turns_halves = vc->is_gated = vc->pools = true;
    vc->is_clipped = json_is_true(json_get(section, "use_clipped_linears"));
    vc->is_standardized = json_is_true(json_get(section, "standardize"));
    if (!(vc->rope_theta > 1) || !(vc->norm_eps >= 0 && vc->norm_eps < 1)) {
        return err_set(detail, ERR_INVALID,
                       "config.json: vision_config.rope_parameters or rms_norm_eps is out of range");
    }
    if (strcmp(json_str(json_get(section, "hidden_activation"), "gelu_pytorch_tanh"), "gelu_pytorch_tanh") !=
        0) {
        return unsupported(detail, "hidden_activation must be gelu_pytorch_tanh");
    }
    if (n_key_heads != vc->n_heads || vc->head_dim % 4 != 0) {
        return unsupported(detail,
                           "num_key_value_heads must be num_attention_heads, and head_dim a multiple of 4");
    }
    return json_is_true(json_get(section, "attention_bias"))
               ? unsupported(detail, "attention_bias must be false")
               : ERR_OK;
}

/* ---- weights ---- */

static void load_norm(vit_loader *l, const float **out, size_t width, const char *layer)
{
    *out = vit_load_f32(l, width, 1, layer, "weight");
}

/* A product and its bounds. */
static void load_linear(vit_loader *l, vit_linear *out, const vit_config *vc, size_t n_out, size_t n_in,
                        const char *layer)
{
    static const char *const names[] = {"input_min", "input_max", "output_min", "output_max"};
    float *const bounds[] = {&out->in_min, &out->in_max, &out->out_min, &out->out_max};
    vit_load_matrix(l, &out->w, n_out, n_in, layer, "weight");
    out->is_clipped = vc->is_clipped;
    for (size_t i = 0; i < ARRAY_LEN(names) && vc->is_clipped; i++) {
        const float *bound = vit_load_f32(l, 1, 1, layer, names[i]);
        *bounds[i] = bound ? *bound : 0;
    }
}

static void load_block(vit_loader *l, vit_block *b, const vit_config *vc, const float *ones, int32_t i)
{
    const size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    const size_t width = vit_attention_width(vc), hd = (size_t)vc->head_dim;
    char layer[VIT_LAYER_CHARS];
    const struct {
        const char *part;
        const float **out;
        size_t width;
    } norms[] = {
        {"input_layernorm", &b->norm1.w, vh},           {"post_attention_layernorm", &b->out_norm1.w, vh},
        {"pre_feedforward_layernorm", &b->norm2.w, vh}, {"post_feedforward_layernorm", &b->out_norm2.w, vh},
        {"self_attn.q_norm", &b->q_norm, hd},           {"self_attn.k_norm", &b->k_norm, hd},
    };
    const struct {
        const char *part;
        vit_linear *out;
        size_t n_out, n_in;
    } linears[] = {
        {"self_attn.q_proj", &b->qkv[0], width, vh}, {"self_attn.k_proj", &b->qkv[1], width, vh},
        {"self_attn.v_proj", &b->qkv[2], width, vh}, {"self_attn.o_proj", &b->proj, vh, width},
        {"mlp.gate_proj", &b->gate, vi, vh},         {"mlp.up_proj", &b->up, vi, vh},
        {"mlp.down_proj", &b->down, vh, vi},
    };
    b->v_norm = ones;
    for (size_t n = 0; n < ARRAY_LEN(norms); n++) {
        (void)snprintf(layer, sizeof layer, "encoder.layers.%d.%s", i, norms[n].part);
        load_norm(l, norms[n].out, norms[n].width, layer);
    }
    for (size_t n = 0; n < ARRAY_LEN(linears); n++) {
        (void)snprintf(layer, sizeof layer, "encoder.layers.%d.%s", i, linears[n].part);
        load_linear(l, linears[n].out, vc, linears[n].n_out, linears[n].n_in, layer);
    }
}

/* TRAP: the published matrix reads a patch pixel by pixel (row, column, colour); ours come colour by
 * colour, as in all towers here, and as GGUF files have it [vh, 3, patch, patch]. */
static void load_patch_embed(vit_loader *l, vit_linear *out, const vit_config *vc)
{
    const size_t vh = (size_t)vc->hidden_size, dim = vit_patch_dim(vc), area = dim / 3;
    tensor stored = {0};
    char name[2 * VIT_LAYER_CHARS];
    (void)snprintf(name, sizeof name, "%spatch_embedder.input_proj.weight", l->prefix);
    if (l->tensors->find(l->tensors->ctx, name, &stored) && stored.n_dims == 4) {
        vit_load_matrix(l, &out->w, vh, dim, "patch_embedder.input_proj", "weight");
        return;
    }
    const float *from = vit_load_f32(l, vh, dim, "patch_embedder.input_proj", "weight");
    float *to = l->err ? NULL : arena_calloc(l->memory, vh * dim, sizeof *to);
    if (!to) {
        l->err = l->err ? l->err : err_set(l->detail, ERR_NOMEM, "not enough memory for the vision encoder");
        return;
    }
    for (size_t i = 0; i < vh; i++, from += dim) {
        for (size_t k = 0; k < dim; k++) {
            to[i * dim + k % 3 * area + k / 3] = from[k];
        }
    }
    out->w = (tensor){
        .type = DTYPE_F32, .n_dims = 2, .dims = {vh, dim}, .data = to, .bytes = vh * dim * sizeof *to};
}

static void load(vit_parts *p, vit_loader *l)
{
    const vit_config *vc = &p->config;
    const size_t vh = (size_t)vc->hidden_size;
    const float *ones = vit_load_ones(l, vh > (size_t)vc->head_dim ? vh : (size_t)vc->head_dim);
    load_patch_embed(l, &p->patch_embed, vc);
    vit_load_matrix(l, &p->position_axes, 2, (size_t)p->side * vh, "patch_embedder",
                    "position_embedding_table");
    p->position_axes.dims[0] = 2 * (size_t)p->side;
    p->position_axes.dims[1] = vh;
    for (int32_t i = 0; i < vc->depth; i++) {
        load_block(l, &p->blocks[i], vc, ones, i);
    }
    if (vc->is_standardized) {
        p->pooled_shift = vit_load_f32(l, vh, 1, "", "std_bias");
        p->pooled_scale = vit_load_f32(l, vh, 1, "", "std_scale");
    }
    p->pooled_norm = ones;
    vit_load_matrix(l, &p->projection.w, (size_t)vc->out_hidden_size, vh, "embedding_projection", "weight");
}

const vit_family VIT_GEMMA4 = {read_config, load};
