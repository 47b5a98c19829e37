/* GatedDeltaNet (docs/model.md B.4; gated delta rule: arXiv 2412.06464). */
#include <string.h>

#include "model/layers.h"
#include "model/seq_layout.h"

/* Scratch of one layer, all [T, ...]. */
typedef struct delta_rows {
    float *u;        /* [T, C] inputs of the convolution */
    float *z;        /* [T, nv * dv] output gate */
    float *conv;     /* [T, C] after convolution and silu: q | k | v; of exact runs */
    float *o;        /* [T, nv * dv]; follows conv: both together hold a fused projection first */
    float *b, *a;    /* [T, nv] raw */
    float *beta, *g; /* [T, nv] write strength, log decay; the same for the fused b and a */
} delta_rows;

static delta_rows cut_work(float *work, size_t T, size_t C, size_t value_width, size_t n_v)
{
    delta_rows d;
    d.u = work;
    d.z = d.u + T * C;
    d.conv = d.z + T * value_width;
    d.o = d.conv + T * C;
    d.b = d.o + T * value_width;
    d.a = d.b + T * n_v;
    d.beta = d.a + T * n_v;
    d.g = d.beta + T * n_v;
    return d;
}

/* Convolution and delta rule of a prompt's run: they alone depend on the sequence. */
static void run_chunked(const layer_ctx *lc, const layer_run *run, const delta_rows *d,
                        const deltanet_weights *w, const delta_shape *s, size_t layer)
{
    size_t C = 2 * s->n_k * s->dk + s->n_v * s->dv, value_width = s->n_v * s->dv, first = run->first_row;
    float *state = seq_delta(run->seq, layer), *tail = seq_tail(run->seq, layer);
    const float *u = d->u + first * C, *beta = d->beta + first * s->n_v, *g = d->g + first * s->n_v;
    float *o = d->o + first * value_width;
    for (size_t t = 0, n = 0; t < run->n_rows; t += n) {
        n = layer_rows_to_mark(run, t, run->n_rows - t);
        const delta_source rows = {u + t * C, w->conv, tail};
        nn_delta_chunked(lc->c, o + t * value_width, state, &rows, beta + t * s->n_v, g + t * s->n_v, s, n);
        layer_take_mark(run, t + n, layer);
    }
}

/* The same of exact runs from r on, as many as go together; returns how many. */
static size_t run_exact(const layer_ctx *lc, size_t r, const delta_rows *d, const deltanet_weights *w,
                        const delta_shape *s, size_t layer)
{
    const size_t C = 2 * s->n_k * s->dk + s->n_v * s->dv, value_width = s->n_v * s->dv;
    float *states[NN_ROWS_EXACT];
    conv_run convs[NN_ROWS_EXACT];
    delta_run deltas[NN_ROWS_EXACT];
    size_t n = 0, n_states = 0;
    for (; r + n < lc->n_runs && n < NN_ROWS_EXACT && lc->runs[r + n].exact_rows; n++) {
        const layer_run *run = &lc->runs[r + n];
        const size_t first = run->first_row, kept = run->keep_rows ? run->n_rows : 0;
        if (n_states + kept > NN_ROWS_EXACT) {
            break;
        }
        if (run->keep_rows) {
            layer_keep_rows(states + n_states, run, d->u + first * C, C, layer);
        }
        convs[n] = (conv_run){d->conv + first * C, seq_tail(run->seq, layer), d->u + first * C, run->n_rows};
        deltas[n] = (delta_run){.out = d->o + first * value_width,
                                .state = seq_delta(run->seq, layer),
                                .states = run->keep_rows ? states + n_states : NULL,
                                .conv = d->conv + first * C,
                                .beta = d->beta + first * s->n_v,
                                .g = d->g + first * s->n_v,
                                .T = run->n_rows};
        n_states += kept;
    }
    nn_conv_silu_each(lc->c, convs, n, w->conv, NULL, C, C);
    nn_delta_recurrent_each(lc->c, deltas, n, s);
    return n;
}

/* A fused row holds for each key head its part of u's q, k and v and of z; takes them apart
 * (docs/model.md B.4.5). */
static void split_qkvz(float *u, float *z, const float *fused, const delta_shape *s)
{
    const size_t n_each = s->n_v / s->n_k, dk = s->dk, dv = n_each * s->dv;
    for (size_t h = 0; h < s->n_k; h++, fused += 2 * dk + 2 * dv) {
        memcpy(u + h * dk, fused, dk * sizeof *u);
        memcpy(u + (s->n_k + h) * dk, fused + dk, dk * sizeof *u);
        memcpy(u + 2 * s->n_k * dk + h * dv, fused + 2 * dk, dv * sizeof *u);
        memcpy(z + h * dv, fused + 2 * dk + dv, dv * sizeof *z);
    }
}

/* The same for b and a. */
static void split_ba(float *b, float *a, const float *fused, const delta_shape *s)
{
    const size_t n_each = s->n_v / s->n_k;
    for (size_t h = 0; h < s->n_k; h++, fused += 2 * n_each) {
        memcpy(b + h * n_each, fused, n_each * sizeof *b);
        memcpy(a + h * n_each, fused + n_each, n_each * sizeof *a);
    }
}

/* u, z, b and a of all rows. */
static void project(const layer_ctx *lc, const delta_rows *d, const float *x, const deltanet_weights *w,
                    const delta_shape *s)
{
    const size_t value_width = s->n_v * s->dv, C = 2 * s->n_k * s->dk + value_width;
    layer_part parts[NN_LINEAR_PARTS];
    size_t n = 0;
    if (w->qkvz_fused) {
        parts[n++] = (layer_part){d->conv, &w->in_proj_qkvz, NULL};
    } else {
        parts[n++] = (layer_part){d->u, &w->in_proj_qkv, NULL};
        parts[n++] = (layer_part){d->z, &w->in_proj_z, NULL};
    }
    if (w->ba_fused) {
        parts[n++] = (layer_part){d->beta, &w->in_proj_ba, NULL};
    } else {
        parts[n++] = (layer_part){d->b, &w->in_proj_b, NULL};
        parts[n++] = (layer_part){d->a, &w->in_proj_a, NULL};
    }
    layer_linear_group(lc, parts, n, x);
    for (size_t t = 0; w->qkvz_fused && t < lc->n_rows; t++) {
        split_qkvz(d->u + t * C, d->z + t * value_width, d->conv + t * (C + value_width), s);
    }
    for (size_t t = 0; w->ba_fused && t < lc->n_rows; t++) {
        split_ba(d->b + t * s->n_v, d->a + t * s->n_v, d->beta + t * 2 * s->n_v, s);
    }
}

void deltanet_forward(const layer_ctx *lc, float *out, const float *x, const deltanet_weights *w,
                      size_t delta_layer)
{
    const model_config *cfg = lc->cfg;
    delta_shape s = {(size_t)cfg->delta_n_k, (size_t)cfg->delta_n_v, (size_t)cfg->delta_dk,
                     (size_t)cfg->delta_dv, cfg->delta_tiled};
    size_t T = lc->n_rows, value_width = s.n_v * s.dv, C = 2 * s.n_k * s.dk + value_width;
    delta_rows d = cut_work(lc->work, T, C, value_width, s.n_v);

    project(lc, &d, x, w, &s);
    nn_delta_gates(lc->c, d.beta, d.g, d.b, d.a, w->A_log, w->dt_bias, T, s.n_v);
    for (size_t r = 0; r < lc->n_runs;) {
        if (lc->runs[r].exact_rows) {
            r += run_exact(lc, r, &d, w, &s, delta_layer);
        } else {
            run_chunked(lc, &lc->runs[r++], &d, w, &s, delta_layer);
        }
    }
    nn_rmsnorm_gated(lc->c, d.o, d.o, d.z, w->norm, cfg->rms_norm_eps, T * s.n_v, s.dv);
    layer_linear(lc, out, d.o, &w->out_proj);
}
