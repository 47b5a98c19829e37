/* The towers of Qwen2-VL and Qwen2.5-VL: positions by rotation alone and one merger of two products.
 * Qwen2-VL: layer norms and a plain MLP. Qwen2.5-VL: root mean square norms, a gated MLP, and most blocks
 * attend inside windows of the frame. docs/model.md D.8. Reference: modeling_qwen2_vl and
 * modeling_qwen2_5_vl in Hugging Face transformers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "vision/vit_parts.h"

static const float NORM_EPS = 1e-6f;

static err_code out_of_range(err_detail *detail, const char *what)
{
    return err_set(detail, ERR_INVALID, "config.json: vision_config.%s", what);
}

/* fullatt_block_indexes: the blocks that attend to the whole frame. */
static err_code read_full_blocks(vit_config *vc, const json *indexes, err_detail *detail)
{
    static const int32_t released[] = {7, 15, 23, 31};
    if (!indexes) {
        for (size_t i = 0; i < ARRAY_LEN(released); i++) {
            vc->sees_frame[released[i]] = true;
        }
        return ERR_OK;
    }
    for (const json *v = json_child(indexes); v; v = json_next(v)) {
        int64_t block = 0;
        if (!json_int(v, 0, vc->depth - 1, &block)) {
            return out_of_range(detail, "fullatt_block_indexes must list numbers of blocks");
        }
        vc->sees_frame[block] = true;
    }
    return ERR_OK;
}

static err_code read_windows(vit_config *vc, const json *section, err_detail *detail)
{
    int32_t pixels = 0;
    const vit_field fields[] = {
        {"intermediate_size", &vc->intermediate_size, 0, 1 << 18},
        {"hidden_size", &vc->hidden_size, 0, 1 << 16},
        {"out_hidden_size", &vc->out_hidden_size, 0, 1 << 16},
        {"window_size", &pixels, 112, 1 << 16},
    };
    err_code err = vit_read_fields(section, fields, ARRAY_LEN(fields), detail);
    if (err) {
        return err;
    }
    vc->activation = VIT_SILU;
    vc->is_gated = true;
    vc->window = pixels / vc->spatial_merge_size / vc->patch_size;
    if (vc->window < 1) {
        return out_of_range(detail, "window_size is smaller than a block of patches");
    }
    return read_full_blocks(vc, json_get(section, "fullatt_block_indexes"), detail);
}

static err_code read_plain(vit_config *vc, const json *section, err_detail *detail)
{
    const double ratio = json_num(json_get(section, "mlp_ratio"), 4.0);
    const vit_field fields[] = {
        {"embed_dim", &vc->hidden_size, 1280, 1 << 16},
        {"hidden_size", &vc->out_hidden_size, 0, 1 << 16},
    };
    err_code err = vit_read_fields(section, fields, ARRAY_LEN(fields), detail);
    vc->activation = VIT_QUICK_GELU;
    if (!err && !(ratio > 0 && ratio * vc->hidden_size <= 1 << 18 && ratio * vc->hidden_size >= 1)) {
        err = out_of_range(detail, "mlp_ratio is out of range");
    }
    vc->intermediate_size = err ? 0 : (int32_t)(vc->hidden_size * ratio);
    return err;
}

static err_code read_config(vit_config *vc, int32_t *side, const json *root, err_detail *detail)
{
    const json *section = json_get(root, "vision_config");
    const bool is_windowed = !json_get(section, "embed_dim");
    const vit_field fields[] = {
        {"depth", &vc->depth, 32, VIT_MAX_DEPTH},
        {"num_heads", &vc->n_heads, 16, 1024},
        {"in_channels", &vc->in_channels, 3, 3},
        {"in_chans", &vc->in_channels, 3, 3}, /* as released files call it */
        {"patch_size", &vc->patch_size, 14, 256},
        {"temporal_patch_size", &vc->temporal_patch_size, 2, 16},
        {"spatial_merge_size", &vc->spatial_merge_size, 2, 16},
    };
    *side = 0;
    err_code err = vit_read_fields(section, fields, ARRAY_LEN(fields), detail);
    err = err ? err : is_windowed ? read_windows(vc, section, detail) : read_plain(vc, section, detail);
    const char *usual = is_windowed ? "silu" : "quick_gelu",
               *act = json_str(json_get(section, "hidden_act"), usual);
    if (!err && strcmp(act, usual) != 0) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "config.json: vision_config.hidden_act is \"%.40s\"; only %s is supported", act, usual);
    }
    if (!err && (vc->hidden_size % vc->n_heads != 0 || vc->hidden_size / vc->n_heads % 4 != 0)) {
        err = out_of_range(detail, "hidden_size must be num_heads times a multiple of 4");
    }
    if (err) {
        return err;
    }
    vc->head_dim = vc->hidden_size / vc->n_heads;
    vc->attention_scale = 1.0f / sqrtf((float)vc->head_dim);
    vc->norm_eps = NORM_EPS;
    vc->rope_theta = 10000.0;
    vc->rope_bf16 = vit_is_bf16(root);
    return ERR_OK;
}

/* ---- weights ---- */

/* A layer norm, or a root mean square norm of models with windows. */
static void load_norm(vit_loader *l, vit_norm *out, const vit_config *vc, const char *layer)
{
    if (vc->window) {
        out->w = vit_load_f32(l, (size_t)vc->hidden_size, 1, layer, "weight");
    } else {
        vit_load_layernorm(l, out, (size_t)vc->hidden_size, layer);
    }
}

static void load_block(vit_loader *l, vit_block *b, const vit_config *vc, int32_t i)
{
    const size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    const bool gated = vc->is_gated;
    char layer[VIT_LAYER_CHARS];
    const vit_block_linear linears[] = {
        {"attn.qkv", &b->qkv[0], 3 * vh, vh},
        {"attn.proj", &b->proj, vh, vh},
        {gated ? "mlp.up_proj" : "mlp.fc1", &b->up, vi, vh},
        {gated ? "mlp.down_proj" : "mlp.fc2", &b->down, vh, vi},
        {"mlp.gate_proj", &b->gate, vi, vh}, /* the last: others have none */
    };
    (void)snprintf(layer, sizeof layer, "blocks.%d.norm1", i);
    load_norm(l, &b->norm1, vc, layer);
    (void)snprintf(layer, sizeof layer, "blocks.%d.norm2", i);
    load_norm(l, &b->norm2, vc, layer);
    vit_load_block_linears(l, i, linears, ARRAY_LEN(linears) - !gated);
}

static void load(vit_parts *p, vit_loader *l)
{
    const vit_config *vc = &p->config;
    const size_t vh = (size_t)vc->hidden_size, merged = vit_merge_area(vc) * vh;
    vit_load_matrix(l, &p->patch_embed.w, vh, vit_patch_dim(vc), "patch_embed.proj", "weight");
    for (int32_t i = 0; i < vc->depth; i++) {
        load_block(l, &p->blocks[i], vc, i);
    }
    load_norm(l, &p->merger.norm, vc, "merger.ln_q");
    vit_load_linear(l, &p->merger.fc1, merged, merged, "merger.mlp.0");
    vit_load_linear(l, &p->merger.fc2, (size_t)vc->out_hidden_size, merged, "merger.mlp.2");
}

const vit_family VIT_QWEN2 = {read_config, load};
