/* The feed-forward part of a layer (docs/model.md B.5). */
#include "model/layers.h"

void ffn_forward(const layer_ctx *lc, float *out, const float *x, const ffn_weights *w)
{
    size_t n = lc->n_rows * w->gate.dims[0];
    float *gate = lc->work;   /* [T, I] */
    float *up = lc->work + n; /* [T, I] */
    const layer_part parts[] = {{gate, &w->gate}, {up, &w->up}};
    layer_linear_group(lc, parts, 2, x);
    nn_silu_mul(lc->c, gate, up, n);
    layer_linear(lc, out, gate, &w->down);
}

void feed_forward(const layer_ctx *lc, float *out, const float *x, const layer_weights *w)
{
    if (w->has_experts) {
        moe_forward(lc, out, x, &w->moe);
    } else {
        ffn_forward(lc, out, x, &w->ffn);
    }
}

size_t feed_forward_width(const model_config *cfg, const layer_weights *w)
{
    return w->has_experts
               ? (size_t)cfg->n_experts_used * (size_t)cfg->expert_size + (size_t)cfg->shared_expert_size
               : (size_t)cfg->intermediate_size;
}
