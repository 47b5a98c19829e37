#include "vision/vit_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

enum { TENSOR_NAME_CHARS = 128 };

bool vit_is_bf16(const json *root)
{
    const char *type = json_str(json_get(root, "dtype"), json_str(json_get(root, "torch_dtype"), "bfloat16"));
    return strcmp(type, "bfloat16") == 0;
}

err_code vit_read_fields(const json *section, const vit_field *fields, size_t n, err_detail *detail)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = fields[i].fallback;
        const json *given = json_get(section, fields[i].name);
        if ((given && !json_int(given, 1, fields[i].max, &v)) || v < 1) {
            return err_set(detail, ERR_INVALID, "config.json: vision_config.%s is missing or out of range",
                           fields[i].name);
        }
        *fields[i].value = (int32_t)v;
    }
    return ERR_OK;
}

void vit_load_matrix(vit_loader *l, tensor *out, size_t n_rows, size_t n_cols, const char *layer,
                     const char *kind)
{
    char full[TENSOR_NAME_CHARS];
    if (l->err) {
        return;
    }
    (void)snprintf(full, sizeof full, "%s%s%s%s", l->prefix, layer, layer[0] ? "." : "", kind);
    if (!l->tensors->find(l->tensors->ctx, full, out)) {
        l->err = err_set(l->detail, ERR_NOT_FOUND, "tensor %s is missing", full);
        return;
    }
    const size_t len = out->type == DTYPE_OTHER ? 0 : tensor_len(out),
                 first = out->n_dims < 1 ? 1 : out->dims[0];
    if (out->type == DTYPE_OTHER) {
        l->err =
            err_set(l->detail, ERR_UNSUPPORTED, "tensor %s has a number type that is not supported", full);
    } else if (first != n_rows || len != n_rows * n_cols) {
        l->err = err_set(l->detail, ERR_INVALID, "tensor %s has %zu x %zu elements; %zu x %zu are needed",
                         full, first, first == 0 ? (size_t)0 : len / first, n_rows, n_cols);
    } else {
        out->n_dims = 2;
        out->dims[0] = n_rows;
        out->dims[1] = n_cols;
    }
}

static float *take(vit_loader *l, size_t n)
{
    float *values = l->err ? NULL : arena_calloc(l->memory, n, sizeof *values);
    if (!values && !l->err) {
        l->err = err_set(l->detail, ERR_NOMEM, "not enough memory for the vision encoder");
    }
    return values;
}

float *vit_load_f32(vit_loader *l, size_t n_rows, size_t n_cols, const char *layer, const char *kind)
{
    tensor t = {0};
    vit_load_matrix(l, &t, n_rows, n_cols, layer, kind);
    if (!l->err && t.type > DTYPE_OTHER) {
        l->err = err_set(l->detail, ERR_UNSUPPORTED, "tensor %s%s.%s must be F32, BF16 or F16", l->prefix,
                         layer, kind);
    }
    float *values = take(l, n_rows * n_cols);
    if (values) {
        tensor_to_f32(values, &t, 0, n_rows * n_cols);
    }
    return values;
}

const float *vit_load_ones(vit_loader *l, size_t n)
{
    float *values = take(l, n);
    for (size_t i = 0; values && i < n; i++) {
        values[i] = 1.0f;
    }
    return values;
}

void vit_load_linear(vit_loader *l, vit_linear *out, size_t n_out, size_t n_in, const char *layer)
{
    vit_load_matrix(l, &out->w, n_out, n_in, layer, "weight");
    out->b = vit_load_f32(l, n_out, 1, layer, "bias");
}

void vit_load_block_linears(vit_loader *l, int32_t block, const vit_block_linear *list, size_t n)
{
    char layer[VIT_LAYER_CHARS];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(layer, sizeof layer, "blocks.%d.%s", block, list[i].part);
        vit_load_linear(l, list[i].out, list[i].n_out, list[i].n_in, layer);
    }
}

void vit_load_layernorm(vit_loader *l, vit_norm *out, size_t width, const char *layer)
{
    out->w = vit_load_f32(l, width, 1, layer, "weight");
    out->b = vit_load_f32(l, width, 1, layer, "bias");
}

vit_linear *vit_linear_at(vit_parts *p, size_t i)
{
    enum { OF_BLOCK = 7, OF_MERGER = 2 };
    const size_t n_blocks = (size_t)p->config.depth, n_deepstack = (size_t)p->config.n_deepstack;
    if (i < n_blocks * OF_BLOCK) {
        vit_block *b = &p->blocks[i / OF_BLOCK];
        vit_linear *const all[OF_BLOCK] = {&b->qkv[0], &b->qkv[1], &b->qkv[2], &b->proj,
                                           &b->gate,   &b->up,     &b->down};
        return all[i % OF_BLOCK];
    }
    i -= n_blocks * OF_BLOCK;
    if (i < (1 + n_deepstack) * OF_MERGER) {
        vit_merger *m = i < OF_MERGER ? &p->merger : &p->deepstack[i / OF_MERGER - 1];
        return i % OF_MERGER == 0 ? &m->fc1 : &m->fc2;
    }
    return i == (1 + n_deepstack) * OF_MERGER ? &p->projection : NULL;
}

size_t vit_patch_dim(const vit_config *vc)
{
    return (size_t)vc->in_channels * (size_t)vc->temporal_patch_size * (size_t)vc->patch_size *
           (size_t)vc->patch_size;
}

size_t vit_merge_area(const vit_config *vc)
{
    return (size_t)vc->spatial_merge_size * (size_t)vc->spatial_merge_size;
}

size_t vit_attention_width(const vit_config *vc)
{
    return (size_t)vc->n_heads * (size_t)vc->head_dim;
}
