/* vit: the vision encoder: patch rows to embedding rows of the language model. Weights are
 * immutable; a call runs on the engine thread.
 *
 *     vit *v; vit_open(&v, json_folder("DIR"), tensors, c, &detail);
 *     vit_encode(v, c, out, NULL, &(vit_rows){.rows = rows}, t, h, w, &detail);
 *
 * Of the towers of all families: vit.c computes, vit_NAME.c read (vit_parts.h).
 *
 * A frame (temporal patch) is the unit of attention and everything else is row-wise, so frames are
 * encoded in groups with identical results.
 */
#ifndef PARLEY_VISION_VIT_H
#define PARLEY_VISION_VIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json_source.h"
#include "compute/nn.h"

typedef struct vit vit;

enum { VIT_MAX_DEEPSTACK = 16, VIT_MAX_DEPTH = 1024 };

/* What stands between the matrices of an MLP: x * sigmoid(1.702 * x) is the quick gelu. */
typedef enum vit_activation { VIT_GELU_TANH, VIT_SILU, VIT_QUICK_GELU } vit_activation;

typedef struct vit_config {
    int32_t depth, hidden_size, intermediate_size, n_heads, head_dim, out_hidden_size;
    int32_t in_channels, patch_size, temporal_patch_size, spatial_merge_size;
    float norm_eps, attention_scale; /* of queries */
    bool turns_halves;               /* half a head is turned by the column, half by the row, each with pairs
                                      * of its own; else both turn the pairs of the whole head */
    bool is_gated;                   /* the MLP has a gate */
    vit_activation activation;       /* with a gate not the quick gelu, without one not silu */
    bool is_clipped;                 /* what products read and give is held between bounds */
    bool pools;           /* patches of a block are averaged and projected; else a merger joins them */
    bool is_standardized; /* pooled rows are shifted and scaled */
    /* DeepStack: blocks, rising, whose output also reaches the decoder */
    int32_t n_deepstack, deepstack[VIT_MAX_DEEPSTACK];
    /* Blocks but those of sees_frame attend inside windows of so many merged rows and columns, cut from
     * the upper left; 0: there are no windows */
    int32_t window;
    bool sees_frame[VIT_MAX_DEPTH];
    double rope_theta;
    /* TRAP: the reference keeps the tower's rotary frequencies in the checkpoint's type, so a bf16
     * checkpoint has them rounded to bf16 even when everything else is computed in f32 */
    bool rope_bf16;
} vit_config;

/* Reads vision_config from config.json and finds the tensors (`model.visual.`...). Errors name the
 * field or tensor. The source must outlive the encoder. */
MUST_CHECK err_code vit_open(vit **out, json_source docs, const tensor_source *tensors, compute *c,
                             err_detail *detail);
/* Matrix i of those that may be replaced by their numbers in DTYPE_Q8 before anything is encoded: all behind
 * the patch embedding; where its data is NULL, the tower has none there. NULL behind the last. Attention is
 * rounded to 8 bits too, then (nn_attention_segments). */
tensor *vit_matrix(vit *v, size_t i);
void vit_close(vit *v);                         /* NULL allowed */
const vit_config *vit_get_config(const vit *v); /* lives as long as the encoder; any thread */

/* Where patch rows come from: an array [t*h*w, patch_dim], or a function that writes `n` of them
 * from row `first` on, so that they need not all be there as floats. */
typedef struct vit_rows {
    const float *rows; /* NULL: read */
    void (*read)(const void *ctx, float *rows, size_t first, size_t n);
    const void *ctx;
} vit_rows;

/* Bytes of scratch that frames of n patches need at most. */
size_t vit_scratch_bytes(const vit *v, size_t n_patches);
/* Gives back the scratch if it has more than max_bytes. */
void vit_trim(vit *v, size_t max_bytes);

/* rows [t*h*w, patch_dim] -> out [t*h*w/merge^2, W], W = out_hidden_size for the embedding and as
 * many behind it for each of the n_deepstack blocks. last_hidden, if not NULL, receives
 * the rows before the merger [t*h*w, hidden_size] (checks); with windows, window by window. Scratch for at most max patches is kept
 * inside. ERR_NOMEM; ERR_INVALID if h or w is not a multiple of the merge size, or larger than the
 * encoder has positions for. */
MUST_CHECK err_code vit_encode(vit *v, compute *c, float *out, float *last_hidden, const vit_rows *rows,
                               int32_t t, int32_t h, int32_t w, err_detail *detail);

#endif
