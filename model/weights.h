/* weights: a checkpoint's tensors as typed structs, found by name and checked by shape. Immutable
 * after opening.
 *
 *     weights *w; err = weights_open(&w, &cfg, checkpoint, NULL, NULL, &detail);
 *     nn_linear(c, q, x, &w->layers[0].ffn.gate, NULL, n_rows);
 *     weights_close(w);
 *
 * Matrices stay in the mapped file, in their stored type or packed in blocks (quantized.h). Norm
 * weights, gates and convolutions are small and read every step: they are widened to float32 once,
 * and zero-centred norms are stored with the 1 added. Letters: V vocab_size, H hidden_size, I
 * intermediate_size, nh query heads, nkv key heads, hd head_dim, nk, nv delta key and value heads,
 * dk, dv their sizes, C = 2*nk*dk + nv*dv convolution channels; E experts, MI and SI the widths of
 * one of them and of the shared one.
 */
#ifndef PARLEY_MODEL_WEIGHTS_H
#define PARLEY_MODEL_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "compute/tensor.h"
#include "model/checkpoint/checkpoint.h"
#include "model/config/config.h"

typedef struct attention_weights {
    bool reads_only; /* the cache is another layer's: there are no keys and values of its own */
    layer_kind kind; /* full or sliding: nkv and hd are those of this kind */
    bool no_rope;    /* heads are not rotated */
    /* [nh * hd, H]; with a gate [nh * 2 * hd, H]: for each head the query rows, then the gate
     * rows */
    tensor q_proj;
    tensor k_proj;       /* [nkv * hd, H] */
    tensor v_proj;       /* [nkv * hd, H] */
    tensor o_proj;       /* [H, nh * hd] */
    const float *q_norm; /* as it is used: [hd], [nh * hd] or NULL, by qk_norm */
    const float *k_norm; /* the same: [hd], [nkv * hd] or NULL */
    const float *v_norm; /* [hd] ones, or NULL: values are not normed */
    const float *q_bias; /* of the projections' rows; NULL: none */
    const float *k_bias, *v_bias, *o_bias;
    const float *sinks; /* [nh]; NULL: none */
} attention_weights;

typedef struct deltanet_weights {
    bool qkvz_fused;    /* in_proj_qkvz is there, in_proj_qkv and in_proj_z are not */
    bool ba_fused;      /* in_proj_ba is there, in_proj_b and in_proj_a are not */
    tensor in_proj_qkv; /* [C, H]: q rows, k rows, v rows */
    tensor in_proj_z;   /* [nv * dv, H] */
    tensor in_proj_b;   /* [nv, H] */
    tensor in_proj_a;   /* [nv, H] */
    /* [C + nv * dv, H]: for each key head its q, k, and the v and z of its value heads */
    tensor in_proj_qkvz;
    tensor in_proj_ba;    /* [2 * nv, H]: for each key head the b, then the a of its value heads */
    tensor out_proj;      /* [H, nv * dv] */
    const float *conv;    /* [C, 4] */
    const float *A_log;   /* [nv] */
    const float *dt_bias; /* [nv] */
    const float *norm;    /* [dv], as stored: this one is not zero-centred */
} deltanet_weights;

/* Of inner = nv * dv values, C convolution channels. */
typedef struct mamba_weights {
    tensor in_proj;                   /* [inner + C + nv, H]: gate, x | B | C, time steps */
    tensor out_proj;                  /* [H, inner] */
    const float *conv;                /* [C, 4] */
    const float *conv_bias;           /* [C] or NULL */
    const float *A_log, *D, *dt_bias; /* [nv] each */
    const float *norm;                /* [inner], as stored */
} mamba_weights;

/* The dense feed-forward part, or the shared expert with SI for I. */
typedef struct ffn_weights {
    tensor gate; /* [I, H]; none where the activation has no gate */
    tensor up;   /* [I, H] */
    tensor down; /* [H, I] */
} ffn_weights;

/* One matrix of every expert: cut out of one tensor that holds them all, or a tensor each. */
typedef struct expert_matrices {
    const tensor *parts; /* [1] if stacked, else [E] */
    bool stacked;
    size_t rows;          /* of one expert's matrix */
    size_t stride, first; /* stacked: expert e's rows begin at e * stride + first */
} expert_matrices;

typedef struct moe_weights {
    tensor router;              /* [E, H] */
    const float *router_bias;   /* [E] or NULL: counts for the choice alone */
    const float *norm;          /* [H] or NULL: of what the router reads */
    const float *expert_scales; /* [E] or NULL */
    const float *logit_bias;    /* [E] or NULL: added to the router's logits */
    expert_matrices gate, up;   /* [MI, L] each, L the width of experts; no gate where there is none */
    expert_matrices down;       /* [L, MI] each */
    /* [E, MI], [E, MI] and [E, L], added to what an expert's matrices give; NULL: none */
    const float *gate_bias, *up_bias, *down_bias;
    tensor latent_in;   /* [L, H], if L is not H */
    tensor latent_out;  /* [H, L], if L is not H */
    ffn_weights shared; /* if SI > 0 */
    tensor shared_gate; /* [1, H], if SI > 0 and it has one */
} moe_weights;

typedef struct layer_weights {
    layer_kind kind;
    const float *input_norm; /* [H], as it is used; if there is a mixer */
    const float *post_norm;  /* [H], as it is used; applied to the input of the ffn, if there is one */
    /* [H], as they are used, or NULL: of what the mixer gives, and the feed-forward part */
    const float *mixed_norm, *fed_norm;
    /* if feed is FEED_BOTH: of what the dense part gives; of what experts read, and give */
    const float *dense_norm, *expert_in_norm, *expert_norm;
    float scalar;                /* what the layer gives is multiplied with it */
    tensor input_gate;           /* [P, H], P layer_input_size, if P > 0 */
    tensor input_proj;           /* [H, P] */
    const float *input_add_norm; /* [H] */
    attention_weights attention; /* if kind is LAYER_ATTENTION or LAYER_SLIDING */
    deltanet_weights deltanet;   /* if kind is LAYER_DELTANET */
    mamba_weights mamba;         /* if kind is LAYER_MAMBA */
    feed_kind feed;
    ffn_weights ffn; /* if feed is FEED_DENSE or FEED_BOTH */
    moe_weights moe; /* if feed is FEED_EXPERTS or FEED_BOTH */
} layer_weights;

typedef struct mtp_weights {
    const float *embedding_norm; /* [H], as it is used */
    const float *hidden_norm;    /* [H], as it is used */
    tensor fc;                   /* [H, 2H]: columns of the embedding, then of the hidden state */
    layer_weights layer;         /* always attention */
    const float *norm;           /* [H], as it is used */
} mtp_weights;

/* A matrix that may be kept in blocks (quantized.h): where it is used, and its name in the files.
 * All experts of a layer may be one. */
typedef struct matrix_ref {
    tensor *at;
    const char *name;
    bool is_head;
    bool mixes; /* of attention or of a recurrent layer, not of the feed-forward part */
} matrix_ref;

typedef struct weights {
    tensor embed;            /* [V, H] */
    tensor head;             /* [V, H]; equal to embed when tied */
    const float *final_norm; /* [H], as it is used */
    /* the layers' own inputs (layer_input_size P > 0): a row of n_layers * P for every token; from the
     * embedding; [P] */
    tensor input_table, input_model_proj;
    const float *input_norm;
    layer_weights *layers; /* [n_layers] */
    bool has_mtp;
    mtp_weights mtp;            /* if has_mtp */
    uint64_t n_params, n_bytes; /* of all tensors in the files that this model uses */
    matrix_ref *matrices;       /* [n_matrices]; a tied head is one of them, under the name it would have */
    size_t n_matrices;
    arena *memory; /* holds the struct itself and everything widened */
} weights;

/* Finds and checks everything. progress (may be NULL) is called with bytes done and total after
 * every layer. ERR_NOT_FOUND names a missing tensor, ERR_CORRUPT one of wrong shape with the shape
 * expected and found, ERR_UNSUPPORTED one of a type that layers cannot compute with. The checkpoint
 * must outlive the weights. */
MUST_CHECK err_code weights_open(weights **out, const model_config *cfg, const checkpoint *ck,
                                 void (*progress)(void *ctx, uint64_t done, uint64_t total),
                                 void *progress_ctx, err_detail *detail);
void weights_close(weights *w); /* NULL allowed */

/* The matrix of one expert. */
tensor expert_matrix(const expert_matrices *m, size_t expert);

#endif
