#include "model/decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/layers.h"
#include "model/model_parts.h"
#include "model/rope.h"
#include "model/seq_layout.h"

struct decoder_scratch {
    compute *c;
    size_t max_rows, max_logit_rows;
    size_t hidden_size, vocab_size;
    float *memory; /* one allocation for everything below */
    float *h;      /* [rows, H] residual stream */
    float *x;      /* [rows, H] normed input of a part; after a forward: the final hidden rows */
    float *y;      /* [rows, H] output of a part */
    struct rope_memory {
        float *cos, *sin;
    } full, sliding;
    float *query_scale; /* [rows], if queries grow */
    float *work;
    float *head_in; /* [logit rows, H] */
    float *logits;  /* [logit rows, V] */
    layer_run *runs;
    row_span *spans;
    float *deep;        /* [rows, n_deepstack * H] what is added to media rows behind the first layers */
    int32_t *deep_rows; /* [rows] which rows those are */
    int32_t n_deep_rows;
    int32_t *ends;    /* [rows] for sliding layers, if media see both ways there */
    float *inputs;    /* [rows, n_layers * layer_input_size] the layers' own inputs */
    float *input_row; /* [n_layers * layer_input_size] */
    float *side;      /* [2, rows, H] where experts stand beside the dense part: what the router reads, and
                         what experts give */
    /* the forward that is under way */
    layer_ctx lc;
    int32_t *logit_rows; /* [max_logit_rows] */
    int32_t n_logit_rows, n_layers_done;
    bool mixed;       /* of the next layer the first half is done */
    size_t rows_done; /* of its present half */
    bool states_only;
    void (*trace)(void *ctx, int32_t layer, const float *rows, int32_t n_rows);
    void *trace_ctx;
    query_tap tap;
};

enum { ALIGN_FLOATS = 16 };

static size_t aligned(size_t n)
{
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

/* Takes n floats from a region that may be NULL (then only counts them). */
static float *take(float *memory, size_t *used, size_t n)
{
    float *at = memory ? memory + *used : NULL;
    *used += aligned(n);
    return at;
}

static struct rope_memory take_rope(float *memory, size_t *used, size_t rows, const rope_spec *rope)
{
    float *cos_rows = take(memory, used, rows * (size_t)rope->pairs);
    return (struct rope_memory){cos_rows, take(memory, used, rows * (size_t)rope->pairs)};
}

/* Lays the buffers out; returns the floats used. */
static size_t lay_out(decoder_scratch *sc, float *memory, const model_config *cfg)
{
    size_t used = 0, rows = sc->max_rows, H = sc->hidden_size;
    sc->h = take(memory, &used, rows * H);
    sc->x = take(memory, &used, rows * H);
    sc->y = take(memory, &used, rows * H);
    sc->full = take_rope(memory, &used, rows, &cfg->full.rope);
    sc->sliding = take_rope(memory, &used, cfg->n_sliding_layers ? rows : 0, &cfg->sliding.rope);
    sc->query_scale = take(memory, &used, cfg->query_growth > 0 ? rows : 0);
    sc->work = take(memory, &used, layer_work_floats(cfg, rows));
    sc->deep = take(memory, &used, rows * H * (size_t)cfg->n_deepstack);
    const size_t width = (size_t)cfg->n_layers * (size_t)cfg->layer_input_size;
    sc->inputs = take(memory, &used, rows * width);
    sc->input_row = take(memory, &used, width);
    sc->side = take(memory, &used, cfg->router_norm ? 2 * rows * H : 0);
    sc->head_in = take(memory, &used, sc->max_logit_rows * H);
    sc->logits = take(memory, &used, sc->max_logit_rows * sc->vocab_size);
    return used;
}

static decoder_scratch describe(const model_config *cfg, int32_t max_rows, int32_t max_logit_rows)
{
    return (decoder_scratch){.max_rows = (size_t)max_rows,
                             .max_logit_rows = (size_t)max_logit_rows,
                             .hidden_size = (size_t)cfg->hidden_size,
                             .vocab_size = (size_t)cfg->vocab_size};
}

size_t decoder_scratch_bytes(const model *m, int32_t max_rows, int32_t max_logit_rows)
{
    decoder_scratch sc = describe(model_get_config(m), max_rows, max_logit_rows);
    return sizeof sc + lay_out(&sc, NULL, model_get_config(m)) * sizeof(float) +
           sc.max_rows * (sizeof(layer_run) + sizeof(row_span) + 2 * sizeof(int32_t));
}

err_code decoder_scratch_create(decoder_scratch **out, const model *m, compute *c, int32_t max_rows,
                                int32_t max_logit_rows, err_detail *detail)
{
    const model_config *cfg = model_get_config(m);
    *out = NULL;
    if (max_rows < 1 || max_logit_rows < 0) {
        return err_set(detail, ERR_INVALID, "a batch needs room for at least one row");
    }
    decoder_scratch *sc = malloc(sizeof *sc);
    if (sc) {
        *sc = describe(cfg, max_rows, max_logit_rows);
        sc->c = c;
        sc->memory = compute_alloc(c, lay_out(sc, NULL, cfg) * sizeof(float));
        sc->runs = calloc(sc->max_rows, sizeof *sc->runs);
        sc->spans = calloc(sc->max_rows, sizeof *sc->spans);
        sc->logit_rows = calloc(sc->max_logit_rows + 1, sizeof *sc->logit_rows);
        sc->deep_rows = calloc(sc->max_rows, sizeof *sc->deep_rows);
        sc->ends = calloc(sc->max_rows, sizeof *sc->ends);
    }
    if (!sc || !sc->memory || !sc->runs || !sc->spans || !sc->logit_rows || !sc->deep_rows || !sc->ends) {
        decoder_scratch_destroy(sc);
        return err_set(detail, ERR_NOMEM, "no memory for batches of %d rows (%zu bytes wanted)", max_rows,
                       decoder_scratch_bytes(m, max_rows, max_logit_rows));
    }
    lay_out(sc, sc->memory, cfg);
    *out = sc;
    return ERR_OK;
}

void decoder_scratch_destroy(decoder_scratch *sc)
{
    if (!sc) {
        return;
    }
    compute_free(sc->c, sc->memory);
    free(sc->runs);
    free(sc->spans);
    free(sc->logit_rows);
    free(sc->deep_rows);
    free(sc->ends);
    free(sc);
}

void decoder_set_trace(decoder_scratch *sc,
                       void (*trace)(void *ctx, int32_t layer, const float *rows, int32_t n_rows), void *ctx)
{
    sc->trace = trace;
    sc->trace_ctx = ctx;
}

void decoder_set_query_tap(decoder_scratch *sc,
                           void (*tap)(void *ctx, size_t kv_layer, const float *q, size_t n_rows,
                                       size_t row_stride, size_t head_stride),
                           void *ctx)
{
    sc->tap = (query_tap){tap, ctx};
}

/* Fills sc->runs; everything that could go wrong is found here, before any state is touched. */
static err_code check_batch(const batch *b, decoder_scratch *sc, err_detail *detail)
{
    if (b->n_rows < 1 || (size_t)b->n_rows > sc->max_rows || (size_t)b->n_logit_rows > sc->max_logit_rows ||
        b->n_runs > b->n_rows) {
        return err_set(detail, ERR_LIMIT, "a batch of %d rows and %d logits does not fit %zu and %zu",
                       b->n_rows, b->n_logit_rows, sc->max_rows, sc->max_logit_rows);
    }
    int32_t row = 0;
    for (int32_t r = 0; r < b->n_runs; r++) {
        const batch_run *run = &b->runs[r];
        int32_t len = seq_state_len(run->seq), cap = seq_state_cap(run->seq);
        if (run->first_row != row || run->n_rows < 1 || run->n_rows > b->n_rows - row) {
            return err_set(detail, ERR_INTERNAL, "the runs of a batch do not tile its rows");
        }
        if (run->n_rows > cap - len) {
            return err_set(detail, ERR_LIMIT, "%d more tokens do not fit: %d of %d are in use", run->n_rows,
                           len, cap);
        }
        if (run->keep_rows && (!run->exact_rows || run->n_rows > run->seq->rows.max_rows)) {
            return err_set(detail, ERR_INTERNAL, "a verify block of %d rows was not reserved", run->n_rows);
        }
        sc->runs[r] = (layer_run){run->seq,        (size_t)row,    (size_t)run->n_rows, (size_t)len,
                                  run->exact_rows, run->keep_rows, run->marks,          (size_t)run->n_marks};
        row += run->n_rows;
    }
    if (row != b->n_rows) {
        return err_set(detail, ERR_INTERNAL, "the runs of a batch do not tile its rows");
    }
    for (int32_t i = 0; i < b->n_rows; i++) {
        if (b->tokens[i] < 0 || (size_t)b->tokens[i] >= sc->vocab_size) {
            return err_set(detail, ERR_INVALID, "token %d is outside the vocabulary of %zu", b->tokens[i],
                           sc->vocab_size);
        }
    }
    for (int32_t i = 0; i < b->n_logit_rows + b->n_embed_rows; i++) {
        int32_t at = i < b->n_logit_rows ? b->logit_rows[i] : b->embed_rows[i - b->n_logit_rows];
        if (at < 0 || at >= b->n_rows) {
            return err_set(detail, ERR_INTERNAL, "row %d is outside a batch of %d", at, b->n_rows);
        }
    }
    return ERR_OK;
}

/* h = embedding rows; rows of media placeholders come from the vision encoder, and what follows
 * there in a row is kept for the first layers. */
static void embed(const model_parts *parts, const model_config *cfg, const batch *b, decoder_scratch *sc)
{
    const size_t H = sc->hidden_size, width = model_config_feature_width(cfg), n_deep = width - H;
    nn_embed(sc->c, sc->h, &parts->weights->embed, b->tokens, (size_t)b->n_rows);
    if (cfg->embed_scale != 0) {
        nn_scale(sc->c, sc->h, cfg->embed_scale, (size_t)b->n_rows * H);
    }
    for (size_t i = 0; i < (size_t)b->n_embed_rows; i++) {
        memcpy(sc->h + (size_t)b->embed_rows[i] * H, b->embeds + i * width, H * sizeof(float));
        memcpy(sc->deep + i * n_deep, b->embeds + i * width + H, n_deep * sizeof(float));
        sc->deep_rows[i] = b->embed_rows[i];
    }
    sc->n_deep_rows = b->n_embed_rows;
}

/* The layers' own inputs, of the embedded rows: of each the norm of a product, and what the table has
 * for the token, or for the padding where media stand. */
static void embed_inputs(const model_parts *parts, const model_config *cfg, const batch *b,
                         decoder_scratch *sc)
{
    const size_t L = (size_t)cfg->n_layers, P = (size_t)cfg->layer_input_size, T = (size_t)b->n_rows;
    const weights *w = parts->weights;
    sc->lc.n_spans = layer_spans(sc->spans, sc->runs, sc->lc.n_runs);
    layer_linear(&sc->lc, sc->inputs, sc->h, &w->input_model_proj);
    nn_scale(sc->c, sc->inputs, 1.0f / sqrtf((float)cfg->hidden_size), T * L * P);
    nn_rmsnorm_heads(sc->c, sc->inputs, w->input_norm, cfg->rms_norm_eps, T, L, P, L * P, P);
    size_t next = 0;
    for (size_t t = 0; t < T; t++) {
        const bool is_media = next < (size_t)b->n_embed_rows && (size_t)b->embed_rows[next] == t;
        next += is_media;
        nn_embed(sc->c, sc->input_row, &w->input_table, is_media ? &cfg->pad_token_id : &b->tokens[t], 1);
        nn_scale(sc->c, sc->input_row, sqrtf((float)P), L * P);
        nn_add(sc->c, sc->inputs + t * L * P, sc->input_row, L * P);
    }
    nn_scale(sc->c, sc->inputs, sqrtf(0.5f), T * L * P);
}

/* How far the rows of a batch see in sliding layers: those of an image or a frame, which are the
 * placeholders that follow each other, to its last one. */
static void fill_ends(const batch *b, decoder_scratch *sc)
{
    int32_t k = b->n_embed_rows - 1;
    for (int32_t r = b->n_runs - 1; r >= 0; r--) {
        const layer_run *run = &sc->runs[r];
        int32_t later = -1; /* the placeholder behind */
        for (size_t t = run->n_rows; t-- > 0;) {
            const int32_t row = (int32_t)(run->first_row + t);
            const bool is_media = k >= 0 && b->embed_rows[k] == row;
            sc->ends[row] = is_media && later == row + 1 ? sc->ends[later] : (int32_t)(run->slot + t) + 1;
            later = is_media ? row : -1;
            k -= is_media;
        }
    }
}

/* DeepStack: adds the tower's inner features to the media rows behind one of the first layers. */
static void add_deepstack(const model_config *cfg, decoder_scratch *sc, int32_t layer)
{
    const size_t H = sc->hidden_size, n_deep = model_config_feature_width(cfg) - H;
    for (size_t i = 0; layer < cfg->n_deepstack && i < (size_t)sc->n_deep_rows; i++) {
        nn_add(sc->c, sc->h + (size_t)sc->deep_rows[i] * H, sc->deep + i * n_deep + (size_t)layer * H, H);
    }
}

static void trace(const decoder_scratch *sc, int32_t layer, const float *rows, int32_t n_rows)
{
    if (sc->trace) {
        sc->trace(sc->trace_ctx, layer, rows, n_rows);
    }
}

/* Whether the layer at hand is the last one of rows of which states alone are wanted. */
static bool is_last_needless(const decoder_scratch *sc)
{
    return sc->states_only && sc->n_layers_done + 1 == sc->lc.cfg->n_layers;
}

/* y = norm(y), where the model has a norm there. */
static void norm_output(const layer_ctx *lc, float *y, const float *norm)
{
    if (norm) {
        nn_rmsnorm(lc->c, y, y, norm, lc->cfg->rms_norm_eps, lc->n_rows, (size_t)lc->cfg->hidden_size);
    }
}

/* h += y, what a layer's part has given. */
static void add_part(const layer_ctx *lc, float *h, float *y)
{
    const size_t n = lc->n_rows * (size_t)lc->cfg->hidden_size;
    if (lc->cfg->residual_scale != 0) {
        nn_scale(lc->c, y, lc->cfg->residual_scale, n);
    }
    nn_add(lc->c, h, y, n);
}

/* h += mixer(norm(h)), if the layer has one. index: of the cache or state that the layer has. */
static void mix(const layer_ctx *lc, decoder_scratch *sc, float *h, const layer_weights *w, size_t index)
{
    const size_t T = lc->n_rows, H = sc->hidden_size;
    if (w->kind == LAYER_NONE) {
        return;
    }
    nn_rmsnorm(sc->c, sc->x, h, w->input_norm, lc->cfg->rms_norm_eps, T, H);
    if (layer_is_attention(w->kind) && is_last_needless(sc)) {
        attention_store(lc, sc->x, &w->attention, index);
        return;
    }
    if (layer_is_attention(w->kind)) {
        attention_forward(lc, sc->y, sc->x, &w->attention, index);
    } else if (w->kind == LAYER_MAMBA) {
        mamba_forward(lc, sc->y, sc->x, &w->mamba, index);
    } else {
        deltanet_forward(lc, sc->y, sc->x, &w->deltanet, index);
    }
    norm_output(lc, sc->y, w->mixed_norm);
    add_part(lc, h, sc->y);
}

/* y = norm(ffn(x)) + norm(experts(norm(h))), where the router too reads h through a norm of its own. */
static void feed_both(const layer_ctx *lc, decoder_scratch *sc, const float *h, const layer_weights *w)
{
    const size_t T = lc->n_rows, H = sc->hidden_size;
    const float eps = lc->cfg->rms_norm_eps;
    float *router_x = sc->side, *out = sc->side + T * H;
    ffn_forward(lc, sc->y, sc->x, &w->ffn);
    norm_output(lc, sc->y, w->dense_norm);
    nn_rmsnorm(sc->c, router_x, h, w->moe.norm, eps, T, H);
    nn_rmsnorm(sc->c, sc->x, h, w->expert_in_norm, eps, T, H);
    moe_forward(lc, out, sc->x, router_x, &w->moe);
    norm_output(lc, out, w->expert_norm);
    nn_add(sc->c, sc->y, out, T * H);
}

/* h += norm(proj(gelu(gate(h)) * the layer's own input)). inputs: of the first row. */
static void add_input(const layer_ctx *lc, decoder_scratch *sc, float *h, const layer_weights *w,
                      const float *inputs)
{
    const size_t T = lc->n_rows, P = (size_t)lc->cfg->layer_input_size;
    const size_t stride = (size_t)lc->cfg->n_layers * P;
    float *gate = lc->work;
    layer_linear(lc, gate, h, &w->input_gate);
    nn_gelu_tanh(sc->c, gate, T * P);
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < P; i++) {
            gate[t * P + i] *= inputs[t * stride + i];
        }
    }
    layer_linear(lc, sc->y, gate, &w->input_proj);
    norm_output(lc, sc->y, w->input_add_norm);
    nn_add(sc->c, h, sc->y, T * sc->hidden_size);
}

/* h += ffn(norm(h)), if the layer has one, and what comes behind it. */
static void feed(const layer_ctx *lc, decoder_scratch *sc, float *h, const layer_weights *w)
{
    if (w->feed == FEED_NONE || is_last_needless(sc)) {
        return;
    }
    const size_t T = lc->n_rows, H = sc->hidden_size;
    nn_rmsnorm(sc->c, sc->x, h, w->post_norm, lc->cfg->rms_norm_eps, T, H);
    if (w->feed == FEED_BOTH) {
        feed_both(lc, sc, h, w);
    } else {
        feed_forward(lc, sc->y, sc->x, w);
    }
    norm_output(lc, sc->y, w->fed_norm);
    add_part(lc, h, sc->y);
    if (lc->cfg->layer_input_size > 0) {
        const size_t P = (size_t)lc->cfg->layer_input_size, row = (size_t)(h - sc->h) / H;
        add_input(lc, sc, h, w,
                  sc->inputs + (row * (size_t)lc->cfg->n_layers + (size_t)sc->n_layers_done) * P);
    }
    if (w->scalar != 1.0f) {
        nn_scale(sc->c, h, w->scalar, T * H);
    }
}

/* Logits of the first n rows of head_in, at most NN_ROWS_EXACT at a time: a row's logits never depend on its
 * company. */
static void head_rows(const model_parts *parts, const model_config *cfg, compute *c, decoder_scratch *sc,
                      size_t n)
{
    const size_t H = sc->hidden_size, V = sc->vocab_size;
    for (size_t i = 0; i < n; i += NN_ROWS_EXACT) {
        size_t rows = n - i < NN_ROWS_EXACT ? n - i : NN_ROWS_EXACT;
        nn_linear(c, sc->logits + i * V, sc->head_in + i * H, &parts->weights->head, NULL, rows);
    }
    if (cfg->logit_scale != 0) {
        nn_scale(c, sc->logits, cfg->logit_scale, n * V);
    }
    if (cfg->logit_softcap > 0) {
        nn_softcap(c, sc->logits, cfg->logit_softcap, n * V);
    }
}

static void head_forward(const model_parts *parts, decoder_scratch *sc)
{
    const size_t n = (size_t)sc->n_logit_rows, H = sc->hidden_size;
    for (size_t i = 0; i < n; i++) {
        memcpy(sc->head_in + i * H, sc->x + (size_t)sc->logit_rows[i] * H, H * sizeof(float));
    }
    head_rows(parts, sc->lc.cfg, sc->c, sc, n);
}

int32_t decoder_head(const model *m, compute *c, decoder_scratch *sc, const float *rows, int32_t n)
{
    const size_t some = (size_t)n < sc->max_logit_rows ? (size_t)n : sc->max_logit_rows;
    memcpy(sc->head_in, rows, some * sc->hidden_size * sizeof *rows);
    head_rows(model_get_parts(m), model_get_config(m), c, sc, some);
    return (int32_t)some;
}

err_code decoder_begin(const model *m, compute *c, const batch *b, decoder_scratch *sc, err_detail *detail)
{
    const model_parts *parts = model_get_parts(m);
    const model_config *cfg = model_get_config(m);
    err_code err = check_batch(b, sc, detail);
    for (int32_t r = 0; err == ERR_OK && r < b->n_runs; r++) {
        seq_state *seq = b->runs[r].seq;
        err = seq_reserve(seq, seq->len, b->runs[r].n_rows, detail);
    }
    if (err) {
        return err;
    }
    if (b->n_logit_rows > 0) {
        memcpy(sc->logit_rows, b->logit_rows, (size_t)b->n_logit_rows * sizeof *sc->logit_rows);
    }
    sc->n_logit_rows = b->n_logit_rows;
    sc->n_layers_done = 0;
    sc->rows_done = 0;
    sc->mixed = false;
    sc->states_only = b->states_only;
    sc->lc = (layer_ctx){.cfg = cfg,
                         .c = c,
                         .runs = sc->runs,
                         .n_runs = (size_t)b->n_runs,
                         .spans = sc->spans,
                         .n_rows = (size_t)b->n_rows,
                         .full = {sc->full.cos, sc->full.sin},
                         .sliding = {sc->sliding.cos, sc->sliding.sin},
                         .query_scale = cfg->query_growth > 0 ? sc->query_scale : NULL,
                         .work = sc->work,
                         .tap = sc->tap};
    rope_tables(sc->full.cos, sc->full.sin, cfg, &cfg->full.rope, b->positions, sc->lc.n_rows);
    if (cfg->n_sliding_layers > 0) {
        rope_tables(sc->sliding.cos, sc->sliding.sin, cfg, &cfg->sliding.rope, b->positions, sc->lc.n_rows);
    }
    for (int32_t i = 0; cfg->query_growth > 0 && i < b->n_rows; i++) {
        const double periods = floor((double)b->positions[i].t / cfg->query_growth_tokens);
        sc->query_scale[i] = (float)(1.0 + cfg->query_growth * log1p(periods));
    }
    if (cfg->media_see_both_ways && b->n_embed_rows > 0) {
        fill_ends(b, sc);
        sc->lc.ends = sc->ends;
    }
    embed(parts, cfg, b, sc);
    if (cfg->layer_input_size > 0) {
        embed_inputs(parts, cfg, b, sc);
    }
    trace(sc, 0, sc->h, b->n_rows);
    return ERR_OK;
}

/* What follows the last layer. */
static void end_forward(const model_parts *parts, decoder_scratch *sc)
{
    const model_config *cfg = sc->lc.cfg;
    if (!sc->states_only) {
        nn_rmsnorm(sc->c, sc->x, sc->h, parts->weights->final_norm, cfg->rms_norm_eps, sc->lc.n_rows,
                   sc->hidden_size);
        trace(sc, cfg->n_layers, sc->x, (int32_t)sc->lc.n_rows);
        head_forward(parts, sc);
    }
    for (size_t r = 0; r < sc->lc.n_runs; r++) {
        const layer_run *run = &sc->runs[r];
        run->seq->len += (int32_t)run->n_rows;
        run->seq->rows.n_rows = run->keep_rows ? (int32_t)run->n_rows : 0;
    }
}

/* Rows of a small piece: as much work as a few tokens make in all layers. Behind a long history
 * attention costs more than all the rest: fewer rows then. That changes no bit: the products of a
 * row do not depend on the other rows (elsewhere there are no small pieces), and the delta rule's
 * own blocks are not cut. */
static size_t piece_rows(const decoder_scratch *sc, const layer_weights *w)
{
    enum { TOKENS = 4, MOST = 128, LEAST = 8, ATTENTION_IS_DEARER = 2 };
    const model_config *cfg = sc->lc.cfg;
    const layer_run *run = &sc->runs[0];
    if (run->exact_rows || !nn_many_is_exact(sc->c)) {
        return SIZE_MAX;
    }
    size_t rows = (TOKENS * (size_t)cfg->n_layers + NN_DELTA_BLOCK - 1) / NN_DELTA_BLOCK * NN_DELTA_BLOCK;
    rows = rows < MOST ? rows : MOST;
    if (layer_is_attention(w->kind) && !sc->mixed) {
        const attention_spec *spec = model_config_attention(cfg, w->kind);
        const size_t width = (size_t)cfg->n_heads * (size_t)spec->head_dim, H = sc->hidden_size;
        size_t seen = run->slot + run->n_rows;
        if (spec->window > 0 && seen > (size_t)spec->window + rows) {
            seen = (size_t)spec->window + rows;
        }
        const size_t weights_of_half = H * 3 * (width + feed_forward_width(cfg, w)) / 2;
        const size_t attention = ATTENTION_IS_DEARER * 2 * width * seen;
        rows = rows * weights_of_half / (weights_of_half + attention) / LEAST * LEAST;
        rows = rows < LEAST ? LEAST : rows;
    }
    const bool recurs = w->kind == LAYER_DELTANET || w->kind == LAYER_MAMBA;
    return recurs && !sc->mixed ? layer_rows_to_last_mark(run, sc->rows_done, rows) : rows;
}

/* As many rows of the forward's one run from `first` on as a piece of n has whole: where they see
 * both ways, an image is not cut. */
static size_t whole_rows(const decoder_scratch *sc, const layer_weights *w, size_t first, size_t n)
{
    if (!sc->lc.ends || w->kind != LAYER_SLIDING || sc->mixed) {
        return n;
    }
    const size_t seen = (size_t)sc->lc.ends[first + n - 1] - sc->runs[0].slot - first;
    return seen > n ? seen : n;
}

/* Those of the rows from `first` on. */
static rope_rows rope_from(const rope_rows *rope, size_t first, const rope_spec *spec)
{
    const size_t skip = first * (size_t)spec->pairs;
    return (rope_rows){rope->cos + skip, rope->sin + skip};
}

bool decoder_next(const model *m, decoder_scratch *sc, bool small)
{
    const model_parts *parts = model_get_parts(m);
    const model_config *cfg = sc->lc.cfg;
    const layer_weights *w = &parts->weights->layers[sc->n_layers_done];
    const size_t first = sc->rows_done, left = sc->lc.n_rows - first;
    const size_t most = small ? piece_rows(sc, w) : SIZE_MAX;
    float *h = sc->h + first * sc->hidden_size;
    layer_ctx lc = sc->lc;
    layer_run piece = sc->runs[0];
    if (first > 0 || most < left) { /* a prompt: one run */
        piece.n_rows = lc.n_rows = whole_rows(sc, w, first, left < most ? left : most);
        piece.slot += first;
        lc.runs = &piece;
        lc.query_scale += lc.query_scale ? first : 0;
        lc.ends += lc.ends ? first : 0;
        lc.full = rope_from(&lc.full, first, &cfg->full.rope);
        lc.sliding = rope_from(&lc.sliding, first, &cfg->sliding.rope);
    }
    lc.n_spans = layer_spans(sc->spans, lc.runs, lc.n_runs);
    sc->mixed ? feed(&lc, sc, h, w) : mix(&lc, sc, h, w, (size_t)cfg->state_of[sc->n_layers_done]);
    sc->rows_done += lc.n_rows;
    if (sc->rows_done < sc->lc.n_rows) {
        return true;
    }
    sc->rows_done = 0;
    sc->mixed = !sc->mixed;
    if (sc->mixed) {
        return true;
    }
    const int32_t layer = sc->n_layers_done++;
    if (sc->n_layers_done < cfg->n_layers) {
        trace(sc, sc->n_layers_done, sc->h, (int32_t)sc->lc.n_rows);
    }
    add_deepstack(cfg, sc, layer); /* the reference reports a layer's rows without it */
    if (sc->n_layers_done < cfg->n_layers) {
        return true;
    }
    end_forward(parts, sc);
    return false;
}

err_code decoder_forward(const model *m, compute *c, const batch *b, decoder_scratch *sc, err_detail *detail)
{
    err_code err = decoder_begin(m, c, b, sc, detail);
    while (err == ERR_OK && decoder_next(m, sc, false)) {
    }
    return err;
}

float *decoder_logits(decoder_scratch *sc, int32_t i)
{
    return sc->logits + (size_t)i * sc->vocab_size;
}

const float *decoder_hidden(const decoder_scratch *sc, int32_t row)
{
    return sc->x + (size_t)row * sc->hidden_size;
}
