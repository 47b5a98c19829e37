/* The tower of Qwen3-VL and Qwen3.5: layer norms, products with biases, an interpolated map of
 * positions, mergers of two products; with DeepStack mergers of their own behind some of the blocks.
 * Reference: the vision models in Hugging Face transformers (modeling_qwen3_5, modeling_qwen3_vl). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "vision/vit_parts.h"

static const float NORM_EPS = 1e-6f;

static err_code read_deepstack(vit_config *vc, const json *indexes, err_detail *detail)
{
    int64_t least = 0, block = 0;
    if (json_len(indexes) > VIT_MAX_DEEPSTACK) {
        return err_set(detail, ERR_UNSUPPORTED,
                       "config.json: vision_config.deepstack_visual_indexes names more than %d blocks",
                       VIT_MAX_DEEPSTACK);
    }
    for (const json *v = json_child(indexes); v; v = json_next(v), least = block + 1) {
        if (!json_int(v, least, vc->depth - 1, &block)) {
            return err_set(
                detail, ERR_INVALID,
                "config.json: vision_config.deepstack_visual_indexes must list rising numbers of blocks");
        }
        vc->deepstack[vc->n_deepstack++] = (int32_t)block;
    }
    return ERR_OK;
}

static err_code check_config(const vit_config *vc, int32_t n_positions, int32_t side, err_detail *detail)
{
    if (side * side != n_positions) {
        return err_set(detail, ERR_INVALID,
                       "config.json: vision_config.num_position_embeddings is not a square");
    }
    if (vc->hidden_size % vc->n_heads != 0 || vc->head_dim % 4 != 0) {
        return err_set(detail, ERR_INVALID,
                       "config.json: vision_config.hidden_size must be num_heads times a multiple of 4");
    }
    return ERR_OK;
}

static err_code read_config(vit_config *vc, int32_t *side, const json *root, err_detail *detail)
{
    const json *section = json_get(root, "vision_config");
    int32_t n_positions = 0;
    const vit_field fields[] = {
        {"depth", &vc->depth, 0, VIT_MAX_DEPTH},
        {"hidden_size", &vc->hidden_size, 0, 1 << 16},
        {"intermediate_size", &vc->intermediate_size, 0, 1 << 18},
        {"num_heads", &vc->n_heads, 0, 1024},
        {"out_hidden_size", &vc->out_hidden_size, 0, 1 << 16},
        {"in_channels", &vc->in_channels, 3, 3},
        {"patch_size", &vc->patch_size, 16, 256},
        {"temporal_patch_size", &vc->temporal_patch_size, 2, 16},
        {"spatial_merge_size", &vc->spatial_merge_size, 2, 16},
        {"num_position_embeddings", &n_positions, 2304, 1 << 20},
    };
    err_code err = vit_read_fields(section, fields, ARRAY_LEN(fields), detail);
    const char *act = json_str(json_get(section, "hidden_act"), "gelu_pytorch_tanh");
    if (!err && strcmp(act, "gelu_pytorch_tanh") != 0) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "config.json: vision_config.hidden_act must be gelu_pytorch_tanh");
    }
    err = err ? err : read_deepstack(vc, json_get(section, "deepstack_visual_indexes"), detail);
    vc->rope_theta = json_num(json_get(json_get(section, "rope_parameters"), "rope_theta"), 10000.0);
    if (!err && !(vc->rope_theta > 1)) {
        err = err_set(detail, ERR_INVALID,
                      "config.json: vision_config.rope_parameters.rope_theta is out of range");
    }
    vc->rope_bf16 = vit_is_bf16(root);
    vc->norm_eps = NORM_EPS;
    if (err) {
        return err;
    }
    vc->head_dim = vc->hidden_size / vc->n_heads;
    vc->attention_scale = 1.0f / sqrtf((float)vc->head_dim);
    *side = (int32_t)lrint(sqrt(n_positions));
    return check_config(vc, n_positions, *side, detail);
}

/* ---- weights ---- */

static void load_block(vit_loader *l, vit_block *b, const vit_config *vc, int32_t i)
{
    size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    char layer[VIT_LAYER_CHARS];
    const struct {
        const char *part;
        vit_norm *out;
    } norms[] = {{"norm1", &b->norm1}, {"norm2", &b->norm2}};
    const vit_block_linear linears[] = {
        {"attn.qkv", &b->qkv[0], 3 * vh, vh},
        {"attn.proj", &b->proj, vh, vh},
        {"mlp.linear_fc1", &b->up, vi, vh},
        {"mlp.linear_fc2", &b->down, vh, vi},
    };
    for (size_t n = 0; n < ARRAY_LEN(norms); n++) {
        (void)snprintf(layer, sizeof layer, "blocks.%d.%s", i, norms[n].part);
        vit_load_layernorm(l, norms[n].out, vh, layer);
    }
    vit_load_block_linears(l, i, linears, ARRAY_LEN(linears));
}

static void load_merger(vit_loader *l, vit_merger *m, const vit_config *vc, const char *name,
                        bool joins_first)
{
    const size_t vh = (size_t)vc->hidden_size, merged = vit_merge_area(vc) * vh;
    char layer[VIT_LAYER_CHARS];
    m->joins_first = joins_first;
    (void)snprintf(layer, sizeof layer, "%s.norm", name);
    vit_load_layernorm(l, &m->norm, joins_first ? merged : vh, layer);
    (void)snprintf(layer, sizeof layer, "%s.linear_fc1", name);
    vit_load_linear(l, &m->fc1, merged, merged, layer);
    (void)snprintf(layer, sizeof layer, "%s.linear_fc2", name);
    vit_load_linear(l, &m->fc2, (size_t)vc->out_hidden_size, merged, layer);
}

static void load(vit_parts *p, vit_loader *l)
{
    const vit_config *vc = &p->config;
    size_t vh = (size_t)vc->hidden_size;
    char name[VIT_LAYER_CHARS * 3 / 4];
    vit_load_linear(l, &p->patch_embed, vh, vit_patch_dim(vc), "patch_embed.proj");
    p->position_map = vit_load_f32(l, (size_t)p->side * (size_t)p->side, vh, "pos_embed", "weight");
    for (int32_t i = 0; i < vc->depth; i++) {
        load_block(l, &p->blocks[i], vc, i);
    }
    load_merger(l, &p->merger, vc, "merger", false);
    for (int32_t i = 0; i < vc->n_deepstack; i++) {
        (void)snprintf(name, sizeof name, "deepstack_merger_list.%d", i);
        load_merger(l, &p->deepstack[i], vc, name, true);
    }
}

const vit_family VIT_QWEN = {read_config, load};
