#include "model/layers.h"

#include <stdint.h>
#include <string.h>

#include "model/seq_layout.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Of one row. */
static size_t attention_floats(const model_config *cfg, const attention_spec *spec)
{
    const size_t hd = (size_t)spec->head_dim;
    return (cfg->attention_gate ? 3 : 2) * (size_t)cfg->n_heads * hd + 2 * (size_t)spec->n_kv_heads * hd;
}

size_t layer_work_floats(const model_config *cfg, size_t rows)
{
    size_t value_width = (size_t)cfg->delta_n_v * (size_t)cfg->delta_dv;
    size_t channels = model_config_channels(cfg);
    size_t attention = larger(attention_floats(cfg, &cfg->full), attention_floats(cfg, &cfg->sliding));
    size_t deltanet = 2 * channels + 2 * value_width + 4 * (size_t)cfg->delta_n_v;
    size_t ffn = (cfg->shared_layers_are_wide ? 4 : 2) * (size_t)cfg->intermediate_size;
    size_t parts = rows * larger(larger(attention, deltanet), larger(ffn, (size_t)cfg->layer_input_size));
    return larger(parts, larger(moe_work_floats(cfg, rows), mamba_work_floats(cfg, rows)));
}

size_t layer_rows_to_mark(const layer_run *run, size_t t, size_t most)
{
    for (size_t i = 0; i < run->n_marks; i++) {
        const size_t mark = (size_t)run->marks[i].len;
        if (mark > run->slot + t) {
            return mark - run->slot - t < most ? mark - run->slot - t : most;
        }
    }
    return most;
}

size_t layer_rows_to_last_mark(const layer_run *run, size_t t, size_t most)
{
    const size_t begin = run->slot + t;
    size_t n = most;
    for (size_t i = 0; i < run->n_marks; i++) {
        const size_t mark = (size_t)run->marks[i].len;
        n = mark > begin && mark - begin <= most ? mark - begin : n;
    }
    return n;
}

void layer_take_mark(const layer_run *run, size_t t, size_t layer)
{
    for (size_t i = 0; i < run->n_marks; i++) {
        if ((size_t)run->marks[i].len == run->slot + t && run->marks[i].into) {
            seq_snapshot_take(run->marks[i].into, run->seq, layer);
        }
    }
}

void layer_keep_rows(float **states, const layer_run *run, const float *u, size_t u_stride, size_t layer)
{
    float *inputs = seq_row_inputs(run->seq, layer);
    const size_t C = run->seq->shape.tail / 3;
    memcpy(inputs, seq_tail(run->seq, layer), 3 * C * sizeof *inputs);
    for (size_t t = 0; t < run->n_rows; t++) {
        memcpy(inputs + (3 + t) * C, u + t * u_stride, C * sizeof *inputs);
        states[t] = seq_row_delta(run->seq, layer, t, run->n_rows);
    }
}

size_t layer_spans(row_span *spans, const layer_run *runs, size_t n_runs)
{
    size_t n = 0;
    for (size_t r = 0; r < n_runs; r++) {
        size_t most = runs[r].exact_rows ? NN_ROWS_EXACT : SIZE_MAX;
        size_t left = runs[r].n_rows;
        bool extends = r > 0 && runs[r - 1].exact_rows == runs[r].exact_rows;
        if (extends) {
            size_t room = most - spans[n - 1].n;
            size_t more = left < room ? left : room;
            spans[n - 1].n += more;
            left -= more;
        }
        while (left > 0) {
            size_t more = left < most ? left : most;
            size_t first = n ? spans[n - 1].first + spans[n - 1].n : 0;
            spans[n++] = (row_span){first, more, runs[r].exact_rows};
            left -= more;
        }
    }
    return n;
}

void layer_linear_group(const layer_ctx *lc, const layer_part *parts, size_t n_parts, const float *x)
{
    linear_part at_span[NN_LINEAR_PARTS];
    for (size_t i = 0; i < lc->n_spans; i++) {
        const row_span *s = &lc->spans[i];
        for (size_t k = 0; k < n_parts; k++) {
            const tensor *w = parts[k].w;
            at_span[k] = (linear_part){parts[k].out + s->first * w->dims[0], w, parts[k].bias};
        }
        const float *rows = x + s->first * parts[0].w->dims[1];
        if (s->exact) {
            nn_linear_group(lc->c, at_span, n_parts, rows, s->n);
        } else {
            nn_linear_many(lc->c, at_span, n_parts, rows, s->n);
        }
    }
}

void layer_linear(const layer_ctx *lc, float *out, const float *x, const tensor *w)
{
    layer_linear_group(lc, &(layer_part){out, w, NULL}, 1, x);
}
