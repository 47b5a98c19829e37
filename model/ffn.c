/* The feed-forward part of a layer (docs/model.md B.5). */
#include "model/layers.h"

void ffn_forward(const layer_ctx *lc, float *out, const float *x, const ffn_weights *w)
{
    size_t n = lc->n_rows * (size_t)lc->cfg->intermediate_size;
    float *gate = lc->work;   /* [T, I] */
    float *up = lc->work + n; /* [T, I] */
    const layer_part parts[] = {{gate, &w->gate}, {up, &w->up}};
    layer_linear_group(lc, parts, 2, x);
    nn_silu_mul(lc->c, gate, up, n);
    layer_linear(lc, out, gate, &w->down);
}
