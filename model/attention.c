/* Full attention, with or without a gate on its output (docs/model.md B.3, A.5). */
#include <math.h>

#include "model/layers.h"
#include "model/seq_layout.h"

/* All sequences of a step have one pool. */
static bool cache_rotates(const layer_ctx *lc, size_t kv_layer)
{
    return lc->n_runs > 0 && kv_type_rotates(seq_kv(lc->runs[0].seq, kv_layer).type);
}

/* Norms and rotates queries or keys in place: n_heads heads in rows of that stride. */
static void norm_and_rotate(const layer_ctx *lc, float *x, const float *norm, size_t n_heads, size_t row,
                            size_t head)
{
    const model_config *cfg = lc->cfg;
    const size_t T = lc->n_rows, hd = (size_t)cfg->head_dim;
    /* TRAP: norm before rope */
    if (cfg->qk_norm == QK_NORM_HEAD) {
        nn_rmsnorm_heads(lc->c, x, norm, cfg->rms_norm_eps, T, n_heads, hd, row, head);
    } else if (cfg->qk_norm == QK_NORM_WIDTH) {
        nn_rmsnorm(lc->c, x, x, norm, cfg->rms_norm_eps, T, row);
    }
    if (cfg->rope_pairs > 0) {
        nn_rope(lc->c, x, lc->cos, lc->sin, T, n_heads, (size_t)cfg->rope_pairs, row, head);
    }
}

/* Keys and values of all rows, projected [T, nkv * hd]: keys are normed and rotated in place, both
 * stored in every run's cache. */
static void store_keys(const layer_ctx *lc, float *k, float *v, const attention_weights *w, size_t kv_layer)
{
    const model_config *cfg = lc->cfg;
    size_t T = lc->n_rows, n_kv = (size_t)cfg->n_kv_heads, hd = (size_t)cfg->head_dim, width = n_kv * hd;
    norm_and_rotate(lc, k, w->k_norm, n_kv, width, hd); /* values are neither normed nor turned by rope */
    if (cache_rotates(lc, kv_layer)) {
        nn_rotate_heads(lc->c, k, T, n_kv, hd, width, hd);
        nn_rotate_heads(lc->c, v, T, n_kv, hd, width, hd);
    }
    for (size_t r = 0; r < lc->n_runs; r++) {
        const layer_run *run = &lc->runs[r];
        kv_pages kv = seq_kv(run->seq, kv_layer);
        nn_kv_store(lc->c, &kv, k + run->first_row * width, v + run->first_row * width, run->slot,
                    run->n_rows, n_kv, hd, width, width);
    }
}

void attention_store(const layer_ctx *lc, const float *x, const attention_weights *w, size_t kv_layer)
{
    size_t width = (size_t)lc->cfg->n_kv_heads * (size_t)lc->cfg->head_dim;
    float *k = lc->work, *v = k + lc->n_rows * width;
    const layer_part parts[] = {{k, &w->k_proj}, {v, &w->v_proj}};
    layer_linear_group(lc, parts, 2, x);
    store_keys(lc, k, v, w, kv_layer);
}

void attention_forward(const layer_ctx *lc, float *out, const float *x, const attention_weights *w,
                       size_t kv_layer)
{
    const model_config *cfg = lc->cfg;
    size_t T = lc->n_rows, nh = (size_t)cfg->n_heads, n_kv = (size_t)cfg->n_kv_heads,
           hd = (size_t)cfg->head_dim;
    /* TRAP: a gated q_proj interleaves per head: head h is [query hd | gate hd] */
    size_t head = (cfg->attention_gate ? 2 : 1) * hd, row = nh * head;
    float *qg = lc->work;           /* [T, nh, 2 or 1, hd] */
    float *mixed = qg + T * row;    /* [T, nh, hd] */
    float *k = mixed + T * nh * hd; /* [T, nkv, hd] */
    float *v = k + T * n_kv * hd;   /* [T, nkv, hd] */

    const layer_part parts[] = {{qg, &w->q_proj}, {k, &w->k_proj}, {v, &w->v_proj}};
    layer_linear_group(lc, parts, 3, x);
    norm_and_rotate(lc, qg, w->q_norm, nh, row, head);
    /* queries as the keys; what is mixed of rotated values is rotated back */
    const bool rotates = cache_rotates(lc, kv_layer);
    if (rotates) {
        nn_rotate_heads(lc->c, qg, T, nh, hd, row, head);
    }
    store_keys(lc, k, v, w, kv_layer);
    if (lc->tap.take) {
        lc->tap.take(lc->tap.ctx, kv_layer, qg, T, row, head);
    }

    float scale = 1.0f / sqrtf((float)hd);
    for (size_t r = 0; r < lc->n_runs; r++) {
        const layer_run *run = &lc->runs[r];
        kv_pages kv = seq_kv(run->seq, kv_layer);
        /* exact rows, however many, go the way of few */
        size_t most = run->exact_rows ? NN_ROWS_EXACT : run->n_rows;
        for (size_t t = 0; t < run->n_rows; t += most) {
            size_t n = run->n_rows - t < most ? run->n_rows - t : most, at = run->first_row + t;
            (run->exact_rows ? nn_attention : nn_attention_many)(lc->c, mixed + at * nh * hd, qg + at * row,
                                                                 &kv, scale, run->slot + t, n, nh, n_kv, hd,
                                                                 row, head);
        }
    }
    if (rotates) {
        nn_rotate_heads(lc->c, mixed, T, nh, hd, nh * hd, hd);
    }
    if (cfg->attention_gate) {
        nn_sigmoid_gate(lc->c, mixed, qg + hd, T, nh, hd, row, head);
    }
    layer_linear(lc, out, mixed, &w->o_proj);
}
