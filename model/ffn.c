/* The feed-forward part of a layer (docs/model.md B.5). */
#include "model/layers.h"

bool feed_is_gated(const model_config *cfg)
{
    return cfg->ffn != FFN_RELU2;
}

void feed_activate(const layer_ctx *lc, float *gate, const float *up, size_t n)
{
    switch (lc->cfg->ffn) {
    case FFN_SILU:
        nn_silu_mul(lc->c, gate, up, n);
        break;
    case FFN_GELU_TANH:
        nn_gelu_mul(lc->c, gate, up, n);
        break;
    case FFN_RELU2:
        nn_relu2(lc->c, gate, n);
        break;
    case FFN_SWIGLU_CLAMPED:
        nn_swiglu_clamped(lc->c, gate, up, (float)lc->cfg->swiglu_limit, n);
        break;
    }
}

void ffn_forward(const layer_ctx *lc, float *out, const float *x, const ffn_weights *w)
{
    const size_t n = lc->n_rows * w->up.dims[0];
    const bool gated = feed_is_gated(lc->cfg);
    float *gate = lc->work;                  /* [T, I] */
    float *up = gated ? lc->work + n : gate; /* [T, I] */
    const layer_part parts[] = {{up, &w->up, NULL}, {gate, &w->gate, NULL}};
    layer_linear_group(lc, parts, gated ? 2 : 1, x);
    feed_activate(lc, gate, up, n);
    layer_linear(lc, out, gate, &w->down);
}

void feed_forward(const layer_ctx *lc, float *out, const float *x, const layer_weights *w)
{
    if (w->feed == FEED_EXPERTS) {
        moe_forward(lc, out, x, x, &w->moe);
    } else {
        ffn_forward(lc, out, x, &w->ffn);
    }
}

size_t feed_forward_width(const model_config *cfg, const layer_weights *w)
{
    size_t width = 0;
    if (w->feed == FEED_DENSE || w->feed == FEED_BOTH) {
        width += w->ffn.up.dims[0];
    }
    if (w->feed == FEED_EXPERTS || w->feed == FEED_BOTH) {
        width += (size_t)cfg->n_experts_used * (size_t)cfg->expert_size + (size_t)cfg->shared_expert_size;
    }
    return width;
}
