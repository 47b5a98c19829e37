/* Mamba-2 (docs/model.md B.7; arXiv 2405.21060). */
#include "model/layers.h"
#include "model/seq_layout.h"

/* Scratch of one layer. */
typedef struct mamba_rows {
    float *in;     /* [T, inner + C + heads]: output gate z | inputs of the convolution | raw time steps */
    float *conv;   /* [T, C] after convolution and silu: x | B | C */
    float *o;      /* [T, inner] */
    float *dt, *g; /* [T, heads] time steps, log decays */
    size_t width;  /* of a row of in */
} mamba_rows;

static size_t inner_width(const model_config *cfg)
{
    return (size_t)cfg->delta_n_v * (size_t)cfg->delta_dv;
}

static size_t in_width(const model_config *cfg)
{
    return inner_width(cfg) + model_config_channels(cfg) + (size_t)cfg->delta_n_v;
}

size_t mamba_work_floats(const model_config *cfg, size_t rows)
{
    return rows *
           (in_width(cfg) + model_config_channels(cfg) + inner_width(cfg) + 2 * (size_t)cfg->delta_n_v);
}

/* Convolution and state of one run: the only part that depends on the sequence. */
static void run_forward(const layer_ctx *lc, const layer_run *run, const mamba_rows *m,
                        const mamba_weights *w, const mamba_shape *s, size_t layer)
{
    const size_t inner = s->n_heads * s->dv, C = model_config_channels(lc->cfg), first = run->first_row;
    float *state = seq_delta(run->seq, layer), *states[NN_ROWS_EXACT];
    const float *u = m->in + first * m->width + inner;
    const float *dt = m->dt + first * s->n_heads, *g = m->g + first * s->n_heads;
    float *conv = m->conv + first * C, *o = m->o + first * inner;
    if (run->keep_rows) {
        layer_keep_rows(states, run, u, m->width, layer);
    }
    float *tail = seq_tail(run->seq, layer);
    if (run->exact_rows) {
        nn_conv_silu(lc->c, conv, tail, u, w->conv, w->conv_bias, run->n_rows, C, m->width);
        nn_mamba_recurrent(lc->c, o, state, run->keep_rows ? states : NULL, conv, dt, g, w->D, s,
                           run->n_rows);
        return;
    }
    for (size_t t = 0, n = 0; t < run->n_rows; t += n) {
        n = layer_rows_to_mark(run, t, run->n_rows - t);
        nn_conv_silu(lc->c, conv + t * C, tail, u + t * m->width, w->conv, w->conv_bias, n, C, m->width);
        nn_mamba_chunked(lc->c, o + t * inner, state, conv + t * C, dt + t * s->n_heads, g + t * s->n_heads,
                         w->D, s, n);
        layer_take_mark(run, t + n, layer);
    }
}

void mamba_forward(const layer_ctx *lc, float *out, const float *x, const mamba_weights *w,
                   size_t mamba_layer)
{
    const model_config *cfg = lc->cfg;
    const mamba_shape s = {(size_t)cfg->delta_n_k, (size_t)cfg->delta_n_v, (size_t)cfg->delta_dk,
                           (size_t)cfg->delta_dv};
    const size_t T = lc->n_rows, inner = inner_width(cfg), C = model_config_channels(cfg);
    mamba_rows m = {.in = lc->work, .width = in_width(cfg)};
    m.conv = m.in + T * m.width;
    m.o = m.conv + T * C;
    m.dt = m.o + T * inner;
    m.g = m.dt + T * s.n_heads;

    layer_linear(lc, m.in, x, &w->in_proj);
    nn_mamba_gates(lc->c, m.dt, m.g, m.in + inner + C, m.width, w->A_log, w->dt_bias, cfg->mamba_least_dt,
                   cfg->mamba_most_dt, T, s.n_heads);
    for (size_t r = 0; r < lc->n_runs; r++) {
        run_forward(lc, &lc->runs[r], &m, w, &s, mamba_layer);
    }
    /* TRAP: gated before the norm, and a norm of each group (GatedDeltaNet does neither) */
    nn_rmsnorm_groups(lc->c, m.o, m.o, m.in, m.width, w->norm, cfg->rms_norm_eps, T, s.n_groups,
                      inner / s.n_groups);
    layer_linear(lc, out, m.o, &w->out_proj);
}
