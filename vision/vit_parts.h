/* vit_parts: a vision encoder as data: what its family's reader finds in config.json and among the
 * tensors, and what vit.c computes with. Private to vit*.c. Loading thread; immutable afterwards.
 *
 *     err_code err = VIT_QWEN.read(&parts.config, &parts.side, root, &detail);
 *     VIT_QWEN.load(&parts, &loader);
 *
 * A reader keeps the first fault in the loader and goes on; whoever began looks at it at the end.
 */
#ifndef PARLEY_VISION_VIT_PARTS_H
#define PARLEY_VISION_VIT_PARTS_H

#include "base/arena.h"
#include "base/json.h"
#include "compute/tensor.h"
#include "vision/vit.h"

enum { VIT_LAYER_CHARS = 64 };

/* A norm; b NULL: a root mean square norm, and none at all where w is NULL too. */
typedef struct vit_norm {
    const float *w, *b; /* [width] */
} vit_norm;

/* A product. What goes in and what comes out may be held between bounds. */
typedef struct vit_linear {
    tensor w;       /* [n_out, n_in] */
    const float *b; /* [n_out] or NULL */
    bool is_clipped;
    float in_min, in_max, out_min, out_max;
} vit_linear;

typedef struct vit_block {
    vit_norm norm1, norm2;         /* before attention, before the MLP */
    vit_norm out_norm1, out_norm2; /* of what the two give, before it is added */
    const float *q_norm, *k_norm;  /* [head_dim] of each head; NULL: none */
    const float *v_norm;           /* the same */
    vit_linear qkv[3];             /* queries, keys, values; the first alone: all in one, q | k | v */
    vit_linear proj;               /* [hidden, width] */
    vit_linear gate, up, down;     /* [inter, hidden] twice; gate.w.data NULL: there is none */
} vit_block;

/* What makes rows of the language model of the patches of a block. */
typedef struct vit_merger {
    bool joins_first; /* the norm is over the patches of a block together, not over each */
    vit_norm norm;
    vit_linear fc1, fc2; /* [area*hidden, area*hidden], [out, area*hidden] */
} vit_merger;

typedef struct vit_parts {
    vit_config config;
    arena *memory;             /* all f32 vectors below, and the blocks */
    vit_linear patch_embed;    /* [hidden, patch_dim] */
    const float *position_map; /* [side, side, hidden], interpolated to the grid; or NULL: */
    tensor position_axes;      /* [2 * side, hidden]: of columns, then of rows, as they are; or no data:
                                * positions are turned alone */
    int32_t side;
    vit_block *blocks; /* [depth] */
    vit_merger merger, deepstack[VIT_MAX_DEEPSTACK];
    /* in the merger's place, if the config says pools: what is added to and multiplied with pooled
     * rows [hidden], or NULL; a norm without weight (ones [hidden]); a product */
    const float *pooled_shift, *pooled_scale, *pooled_norm;
    vit_linear projection; /* [out, hidden] */
} vit_parts;

/* Finds tensors and keeps the first fault. */
typedef struct vit_loader {
    const tensor_source *tensors;
    const char *prefix;
    arena *memory;
    err_code err;
    err_detail *detail;
} vit_loader;

/* A tensor LAYER.KIND that must have n_rows * n_cols elements, whatever its own shape; its first
 * dimension is n_rows. It is seen as a matrix afterwards. */
void vit_load_matrix(vit_loader *l, tensor *out, size_t n_rows, size_t n_cols, const char *layer,
                     const char *kind);
/* The same as f32 values in the arena; NULL after a fault. */
float *vit_load_f32(vit_loader *l, size_t n_rows, size_t n_cols, const char *layer, const char *kind);
/* n ones in the arena: the weight of a norm that has none. */
const float *vit_load_ones(vit_loader *l, size_t n);
/* LAYER.weight [n_out, n_in], and LAYER.bias. */
void vit_load_linear(vit_loader *l, vit_linear *out, size_t n_out, size_t n_in, const char *layer);
/* The linears of a block [n_out, n_in], called blocks.BLOCK.PART in the file. */
typedef struct vit_block_linear {
    const char *part;
    vit_linear *out;
    size_t n_out, n_in;
} vit_block_linear;

void vit_load_block_linears(vit_loader *l, int32_t block, const vit_block_linear *list, size_t n);
void vit_load_layernorm(vit_loader *l, vit_norm *out, size_t width, const char *layer);

/* A field of vision_config that must be an integer in [1, max]; absent: the fallback, and where that
 * is 0 it must be there. */
typedef struct vit_field {
    const char *name;
    int32_t *value;
    int32_t fallback, max;
} vit_field;
/* Whether the checkpoint says that its numbers are bf16. */
bool vit_is_bf16(const json *root);
err_code vit_read_fields(const json *section, const vit_field *fields, size_t n, err_detail *detail);

/* Linear i of blocks, mergers and projection, whether it is there or not; NULL behind the last. */
vit_linear *vit_linear_at(vit_parts *p, size_t i);

/* How the tower of a family of models is read. */
typedef struct vit_family {
    /* root: of config.json, which has a vision_config. */
    err_code (*read)(vit_config *vc, int32_t *side, const json *root, err_detail *detail);
    void (*load)(vit_parts *p, vit_loader *l);
} vit_family;

extern const vit_family VIT_QWEN, VIT_QWEN2, VIT_GEMMA4;

/* Values of a patch row. */
size_t vit_patch_dim(const vit_config *vc);
/* Patches that become one row. */
size_t vit_merge_area(const vit_config *vc);
/* Values of a row of queries, or of keys. */
size_t vit_attention_width(const vit_config *vc);

#endif
