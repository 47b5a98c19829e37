/* Attention to all tokens before or to a window of them, with or without a gate on its output
 * (docs/model.md B.3, A.5). */
#include <string.h>

#include "model/layers.h"
#include "model/seq_layout.h"

/* All sequences of a step have one pool, and there is one at least. */
static bool cache_rotates(const layer_ctx *lc, size_t kv_layer)
{
    return kv_type_rotates(seq_kv(lc->runs[0].seq, kv_layer).type);
}

static const attention_spec *spec_of(const layer_ctx *lc, const attention_weights *w)
{
    return model_config_attention(lc->cfg, w->kind);
}

/* Norms and turns the heads of queries or keys, in place. */
static void place_heads(const layer_ctx *lc, float *x, const attention_weights *w, const float *norm,
                        size_t n_heads, size_t row, size_t head)
{
    const attention_spec *spec = spec_of(lc, w);
    const rope_rows *rope = w->kind == LAYER_SLIDING ? &lc->sliding : &lc->full;
    /* TRAP: norm before rope */
    if (lc->cfg->qk_norm == QK_NORM_HEAD) {
        nn_rmsnorm_heads(lc->c, x, norm, lc->cfg->rms_norm_eps, lc->n_rows, n_heads, (size_t)spec->head_dim,
                         row, head);
    } else if (lc->cfg->qk_norm == QK_NORM_WIDTH) {
        nn_rmsnorm(lc->c, x, x, norm, lc->cfg->rms_norm_eps, lc->n_rows, row);
    }
    if (spec->rope.pairs > 0 && !w->no_rope) {
        nn_rope(lc->c, x, rope->cos, rope->sin, lc->n_rows, n_heads, (size_t)spec->rope.pairs, row, head);
    }
}

/* Keys and values of all rows, projected [T, nkv * hd]: keys are normed and rotated in place, both
 * stored in every run's cache. */
static void store_keys(const layer_ctx *lc, float *k, float *v, const attention_weights *w, size_t kv_layer)
{
    const attention_spec *spec = spec_of(lc, w);
    size_t T = lc->n_rows, n_kv = (size_t)spec->n_kv_heads, hd = (size_t)spec->head_dim, width = n_kv * hd;
    /* TRAP: values are not turned by rope, and not normed by the norm of keys */
    place_heads(lc, k, w, w->k_norm, n_kv, width, hd);
    if (w->v_norm) {
        nn_rmsnorm_heads(lc->c, v, w->v_norm, lc->cfg->rms_norm_eps, T, n_kv, hd, width, hd);
    }
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
    const attention_spec *spec = spec_of(lc, w);
    size_t width = (size_t)spec->n_kv_heads * (size_t)spec->head_dim;
    float *k = lc->work, *v = k + lc->n_rows * width;
    if (w->reads_only) {
        return;
    }
    const layer_part parts[] = {{k, &w->k_proj, w->k_bias}, {v, &w->v_proj, w->v_bias}};
    layer_linear_group(lc, parts, spec->keys_are_values ? 1 : 2, x);
    if (spec->keys_are_values) {
        memcpy(v, k, lc->n_rows * width * sizeof *v);
    }
    store_keys(lc, k, v, w, kv_layer);
}

void attention_forward(const layer_ctx *lc, float *out, const float *x, const attention_weights *w,
                       size_t kv_layer)
{
    const model_config *cfg = lc->cfg;
    const attention_spec *spec = spec_of(lc, w);
    size_t T = lc->n_rows, nh = (size_t)cfg->n_heads, n_kv = (size_t)spec->n_kv_heads,
           hd = (size_t)spec->head_dim;
    /* TRAP: a gated q_proj interleaves per head: head h is [query hd | gate hd] */
    size_t head = (cfg->attention_gate ? 2 : 1) * hd, row = nh * head;
    float *qg = lc->work;           /* [T, nh, 2 or 1, hd] */
    float *mixed = qg + T * row;    /* [T, nh, hd] */
    float *k = mixed + T * nh * hd; /* [T, nkv, hd] */
    float *v = k + T * n_kv * hd;   /* [T, nkv, hd] */

    const layer_part parts[] = {
        {qg, &w->q_proj, w->q_bias}, {k, &w->k_proj, w->k_bias}, {v, &w->v_proj, w->v_bias}};
    layer_linear_group(lc, parts, w->reads_only ? 1 : spec->keys_are_values ? 2 : 3, x);
    if (spec->keys_are_values && !w->reads_only) {
        memcpy(v, k, T * n_kv * hd * sizeof *v);
    }
    place_heads(lc, qg, w, w->q_norm, nh, row, head);
    for (size_t i = 0; lc->query_scale && i < T * row; i++) {
        qg[i] *= lc->query_scale[i / row];
    }
    /* queries as the keys; what is mixed of rotated values is rotated back */
    const bool rotates = cache_rotates(lc, kv_layer);
    if (rotates) {
        nn_rotate_heads(lc->c, qg, T, nh, hd, row, head);
    }
    if (!w->reads_only) {
        store_keys(lc, k, v, w, kv_layer);
    }
    if (lc->tap.take) {
        lc->tap.take(lc->tap.ctx, kv_layer, qg, T, row, head);
    }

    attention_rule rule = {.window = (size_t)spec->window, .sinks = w->sinks};
    const int32_t *ends = w->kind == LAYER_SLIDING ? lc->ends : NULL;
    const float scale = model_config_attention_scale(cfg, spec);
    for (size_t r = 0; r < lc->n_runs; r++) {
        const layer_run *run = &lc->runs[r];
        kv_pages kv = seq_kv(run->seq, kv_layer);
        /* exact rows, however many, go the way of few */
        size_t most = run->exact_rows ? NN_ROWS_EXACT : run->n_rows;
        for (size_t t = 0; t < run->n_rows; t += most) {
            size_t n = run->n_rows - t < most ? run->n_rows - t : most, at = run->first_row + t;
            rule.ends = ends ? ends + at : NULL;
            (run->exact_rows ? nn_attention : nn_attention_many)(lc->c, mixed + at * nh * hd, qg + at * row,
                                                                 &kv, &rule, scale, run->slot + t, n, nh,
                                                                 n_kv, hd, row, head);
        }
    }
    if (rotates) {
        nn_rotate_heads(lc->c, mixed, T, nh, hd, nh * hd, hd);
    }
    if (cfg->attention_gate) {
        nn_sigmoid_gate(lc->c, mixed, qg + hd, T, nh, hd, row, head);
    }
    layer_linear_group(lc, &(layer_part){out, &w->o_proj, w->o_bias}, 1, mixed);
}
