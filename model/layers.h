/* layers: the parts a decoder layer is made of, each a function over all rows of a batch. Engine
 * thread.
 *
 *     layer_ctx lc = {.cfg = cfg, .runs = runs, .n_runs = n_runs};      // and the rest
 *     attention_forward(&lc, out, x, &w->attention, kv_layer);
 *
 * Linear layers see all rows at once; attention and delta rule go run by run, as each run is one
 * sequence. Letters: T = n_rows, H hidden_size, nh, nkv heads, hd head_dim, nv value heads, C
 * convolution channels.
 */
#ifndef PARLEY_MODEL_LAYERS_H
#define PARLEY_MODEL_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/nn.h"
#include "model/config/config.h"
#include "model/seq_state.h"
#include "model/weights.h"

/* Consecutive rows of one sequence and the cache slot of the first. */
typedef struct layer_run {
    seq_state *seq;
    size_t first_row, n_rows, slot;
    bool exact_rows, keep_rows; /* see batch_run */
    const batch_mark *marks;
    size_t n_marks;
} layer_run;

/* Rows that one matrix product may take together: decode rows never share one with prefill rows,
 * and at most NN_ROWS_EXACT of them go at once, so a decoded row's bits do not depend on what else
 * is in the batch. */
typedef struct row_span {
    size_t first, n;
    bool exact; /* decode rows: their bits are those of the row alone */
} row_span;

/* Shown the queries of a full-attention layer's rows, normed and rotated: head h of row t starts at
 * q + t*row_stride + h*head_stride. */
typedef struct query_tap {
    void (*take)(void *ctx, size_t kv_layer, const float *q, size_t n_rows, size_t row_stride,
                 size_t head_stride);
    void *ctx;
} query_tap;

/* Cosines and sines of a batch's rows, [T, pairs] each (rope.h). */
typedef struct rope_rows {
    const float *cos, *sin;
} rope_rows;

typedef struct layer_ctx {
    const model_config *cfg;
    compute *c;
    const layer_run *runs;
    size_t n_runs;
    const row_span *spans; /* cover rows 0 .. n_rows-1 in order */
    size_t n_spans, n_rows;
    rope_rows full, sliding; /* of the layers of either kind */
    const int32_t *ends; /* [T], attention_rule's for sliding layers; NULL: rows see none behind their own */
    float *work;         /* layer_work_floats(cfg, n_rows) */
    const float *query_scale; /* [T], what queries are multiplied with; NULL: nothing */
    query_tap tap;            /* take NULL: none */
} layer_ctx;

/* Floats of scratch that any of the functions below needs for `rows` rows. */
size_t layer_work_floats(const model_config *cfg, size_t rows);

/* Cuts runs into spans; returns how many (at most rows). spans holds as many as there are rows. */
size_t layer_spans(row_span *spans, const layer_run *runs, size_t n_runs);

/* out [T, n_out] = x [T, n_in] * w^T, span by span. */
void layer_linear(const layer_ctx *lc, float *out, const float *x, const tensor *w);

/* The same for up to NN_LINEAR_PARTS weights that share x. */
typedef struct layer_part {
    float *out; /* [T, n_out] */
    const tensor *w;
    const float *bias; /* [n_out] or NULL */
} layer_part;
void layer_linear_group(const layer_ctx *lc, const layer_part *parts, size_t n_parts, const float *x);

/* out [T, H] = attention, full or to a window, gated or not, of x [T, H]; keys and values of the rows are appended
 * to the cache of kv_layer (the lengths in seq_state are the caller's to advance). docs/model.md
 * B.3. */
void attention_forward(const layer_ctx *lc, float *out, const float *x, const attention_weights *w,
                       size_t kv_layer);

/* The keys and values alone: fills the cache and computes nothing else. */
void attention_store(const layer_ctx *lc, const float *x, const attention_weights *w, size_t kv_layer);

/* out [T, H] = GatedDeltaNet of x [T, H]; advances the convolution tails and delta states of
 * delta_layer (counted among the delta layers alone). docs/model.md B.4. */
void deltanet_forward(const layer_ctx *lc, float *out, const float *x, const deltanet_weights *w,
                      size_t delta_layer);

/* out [T, H] = Mamba-2 of x [T, H]; advances the convolution tails and states of layer mamba_layer
 * (counted among the Mamba layers alone; a model has no other recurrent ones). docs/model.md B.7. */
void mamba_forward(const layer_ctx *lc, float *out, const float *x, const mamba_weights *w,
                   size_t mamba_layer);
size_t mamba_work_floats(const model_config *cfg, size_t rows);

/* What the recurrent layers keep of a verify block before they advance: the convolution's inputs, whose
 * rows begin at u with that stride, and where the state after every row goes. */
void layer_keep_rows(float **states, const layer_run *run, const float *u, size_t u_stride, size_t layer);

/* Of at most `most` rows from row t of a run on, those up to its next mark. */
size_t layer_rows_to_mark(const layer_run *run, size_t t, size_t most);
/* Those up to the last mark among them, or all if there is none. */
size_t layer_rows_to_last_mark(const layer_run *run, size_t t, size_t most);
/* Takes the states of a recurrent layer before row t, if a mark is there. */
void layer_take_mark(const layer_run *run, size_t t, size_t layer);

/* out [T, H] = the layer's feed-forward part of x [T, H]: down(silu(gate(x)) * up(x)) or what the
 * family has in its place, or the mixture of experts. docs/model.md B.5, B.6. */
void feed_forward(const layer_ctx *lc, float *out, const float *x, const layer_weights *w);
/* Columns of gate and up that one row goes through there. */
size_t feed_forward_width(const model_config *cfg, const layer_weights *w);

/* The two kinds; each has its file. */
void ffn_forward(const layer_ctx *lc, float *out, const float *x, const ffn_weights *w);
/* router_x [T, H]: what the router reads; x itself, unless the model has a norm for it. */
void moe_forward(const layer_ctx *lc, float *out, const float *x, const float *router_x,
                 const moe_weights *w);
size_t moe_work_floats(const model_config *cfg, size_t rows);

/* gate [n] becomes what down reads. up [n] is read if the activation has a gate. */
void feed_activate(const layer_ctx *lc, float *gate, const float *up, size_t n);
bool feed_is_gated(const model_config *cfg);

/* One row's place in the list of those that its experts compute. */
typedef struct moe_pair {
    int32_t expert, row;
    float weight;
} moe_pair;

/* The experts of one row, pairs [n_experts_used], from the router's logits [E], which are used up;
 * choice [E] is scratch. Of equal experts the first. */
void router_choose(const model_config *cfg, const moe_weights *w, moe_pair *pairs, float *logits,
                   float *choice, int32_t row);

#endif
