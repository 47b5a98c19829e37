/* GatedDeltaNet (docs/model.md B.4; gated delta rule: arXiv 2412.06464). */
#include <string.h>

#include "model/layers.h"
#include "model/seq_layout.h"

/* Scratch of one layer, all [T, ...]. */
typedef struct delta_rows {
    float *u;        /* [T, C] inputs of the convolution */
    float *conv;     /* [T, C] after convolution and silu: q | k | v */
    float *z;        /* [T, nv * dv] output gate */
    float *o;        /* [T, nv * dv] */
    float *b, *a;    /* [T, nv] raw */
    float *beta, *g; /* [T, nv] write strength, log decay */
} delta_rows;

static delta_rows cut_work(float *work, size_t T, size_t C, size_t value_width, size_t n_v)
{
    delta_rows d;
    d.u = work;
    d.conv = d.u + T * C;
    d.z = d.conv + T * C;
    d.o = d.z + T * value_width;
    d.b = d.o + T * value_width;
    d.a = d.b + T * n_v;
    d.beta = d.a + T * n_v;
    d.g = d.beta + T * n_v;
    return d;
}

/* Convolution and delta rule of one run: the only part that depends on the sequence. */
static void run_forward(const layer_ctx *lc, const layer_run *run, const delta_rows *d,
                        const deltanet_weights *w, const delta_shape *s, size_t layer)
{
    size_t C = 2 * s->n_k * s->dk + s->n_v * s->dv, value_width = s->n_v * s->dv, first = run->first_row;
    float *state = seq_delta(run->seq, layer), *tail = seq_tail(run->seq, layer), *states[NN_ROWS_EXACT];
    const float *u = d->u + first * C, *beta = d->beta + first * s->n_v, *g = d->g + first * s->n_v;
    float *conv = d->conv + first * C, *o = d->o + first * value_width;
    if (run->keep_rows) {
        float *inputs = seq_row_inputs(run->seq, layer);
        memcpy(inputs, tail, 3 * C * sizeof *inputs);
        memcpy(inputs + 3 * C, u, run->n_rows * C * sizeof *inputs);
        for (size_t t = 0; t < run->n_rows; t++) {
            states[t] = seq_row_delta(run->seq, layer, t, run->n_rows);
        }
    }
    nn_conv_silu(lc->c, conv, tail, u, w->conv, run->n_rows, C, C);
    if (run->exact_rows) {
        nn_delta_recurrent(lc->c, o, state, run->keep_rows ? states : NULL, conv, beta, g, s, run->n_rows);
    } else {
        nn_delta_chunked(lc->c, o, state, conv, beta, g, s, run->n_rows);
    }
}

void deltanet_forward(const layer_ctx *lc, float *out, const float *x, const deltanet_weights *w,
                      size_t delta_layer)
{
    const model_config *cfg = lc->cfg;
    delta_shape s = {(size_t)cfg->delta_n_k, (size_t)cfg->delta_n_v, (size_t)cfg->delta_dk,
                     (size_t)cfg->delta_dv};
    size_t T = lc->n_rows, value_width = s.n_v * s.dv, C = 2 * s.n_k * s.dk + value_width;
    delta_rows d = cut_work(lc->work, T, C, value_width, s.n_v);

    const layer_part parts[] = {
        {d.u, &w->in_proj_qkv}, {d.z, &w->in_proj_z}, {d.b, &w->in_proj_b}, {d.a, &w->in_proj_a}};
    layer_linear_group(lc, parts, 4, x);
    nn_delta_gates(lc->c, d.beta, d.g, d.b, d.a, w->A_log, w->dt_bias, T, s.n_v);
    for (size_t r = 0; r < lc->n_runs; r++) {
        run_forward(lc, &lc->runs[r], &d, w, &s, delta_layer);
    }
    nn_rmsnorm_gated(lc->c, d.o, d.o, d.z, w->norm, cfg->rms_norm_eps, T * s.n_v, s.dv);
    layer_linear(lc, out, d.o, &w->out_proj);
}
