#include "model/importance.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/seq_layout.h"

struct importance {
    const model_config *cfg;
    compute *c;
    float *memory;  /* one allocation for everything below */
    float *queries; /* [attention layers, IMPORTANCE_ROWS, heads, head size] */
    float *q;       /* [IMPORTANCE_ROWS, head size] of one head */
    float *scores;  /* [IMPORTANCE_ROWS, n] */
    float *best;    /* [IMPORTANCE_ROWS, n] */
    float *mean;    /* [n] */
    size_t n;       /* tokens of the prompt */
    size_t n_rows;  /* queries remembered */
    size_t n_heads_done;
};

static size_t query_floats(const model_config *cfg)
{
    return (size_t)cfg->n_heads * (size_t)cfg->full.head_dim;
}

static size_t total_floats(const model_config *cfg, size_t max_tokens)
{
    return (size_t)cfg->n_attention_layers * IMPORTANCE_ROWS * query_floats(cfg) +
           IMPORTANCE_ROWS * (size_t)cfg->full.head_dim + (2 * IMPORTANCE_ROWS + 1) * max_tokens;
}

size_t importance_bytes(const model_config *cfg, int32_t max_tokens)
{
    return sizeof(importance) + total_floats(cfg, (size_t)max_tokens) * sizeof(float);
}

err_code importance_create(importance **out, const model_config *cfg, compute *c, int32_t max_tokens,
                           err_detail *detail)
{
    const size_t most = (size_t)max_tokens;
    *out = NULL;
    importance *im = calloc(1, sizeof *im);
    if (im) {
        im->cfg = cfg;
        im->c = c;
        im->memory = compute_alloc(c, total_floats(cfg, most) * sizeof(float));
    }
    if (!im || !im->memory) {
        importance_destroy(im);
        return err_set(detail, ERR_NOMEM, "no memory to judge prompts of %d tokens (%zu bytes wanted)",
                       max_tokens, importance_bytes(cfg, max_tokens));
    }
    im->queries = im->memory;
    im->q = im->queries + (size_t)cfg->n_attention_layers * IMPORTANCE_ROWS * query_floats(cfg);
    im->scores = im->q + IMPORTANCE_ROWS * (size_t)cfg->full.head_dim;
    im->best = im->scores + IMPORTANCE_ROWS * most;
    im->mean = im->best + IMPORTANCE_ROWS * most;
    *out = im;
    return ERR_OK;
}

void importance_destroy(importance *im)
{
    if (im) {
        compute_free(im->c, im->memory);
        free(im);
    }
}

void importance_begin(importance *im, int32_t n)
{
    im->n = (size_t)n;
    im->n_rows = im->n_heads_done = 0;
    memset(im->best, 0, IMPORTANCE_ROWS * im->n * sizeof *im->best);
    memset(im->mean, 0, im->n * sizeof *im->mean);
}

/* A row begins at its first attention layer. */
static void take_queries(void *ctx, size_t kv_layer, const float *q, size_t n_rows, size_t row_stride,
                         size_t head_stride)
{
    importance *im = ctx;
    const size_t hd = (size_t)im->cfg->full.head_dim, n_heads = (size_t)im->cfg->n_heads;
    (void)row_stride;
    (void)n_rows;
    assert(n_rows == 1);
    im->n_rows += kv_layer == 0;
    if (im->n_rows > IMPORTANCE_ROWS) {
        return;
    }
    float *to = im->queries + (kv_layer * IMPORTANCE_ROWS + im->n_rows - 1) * query_floats(im->cfg);
    for (size_t h = 0; h < n_heads; h++) {
        memcpy(to + h * hd, q + h * head_stride, hd * sizeof *q);
    }
}

void importance_watch(importance *im, decoder_scratch *sc)
{
    decoder_set_query_tap(sc, im ? take_queries : NULL, im);
}

static size_t rows_seen(const importance *im)
{
    return im->n_rows < IMPORTANCE_ROWS ? im->n_rows : IMPORTANCE_ROWS;
}

/* The mean over the rows. */
static void finish(importance *im)
{
    const size_t n_rows = rows_seen(im);
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t i = 0; i < im->n; i++) {
            im->mean[i] += im->best[r * im->n + i] / (float)n_rows;
        }
    }
}

bool importance_next(importance *im, const seq_state *seq)
{
    const model_config *cfg = im->cfg;
    const size_t hd = (size_t)cfg->full.head_dim, n_heads = (size_t)cfg->n_heads, n_rows = rows_seen(im);
    const size_t layer = im->n_heads_done / n_heads, head = im->n_heads_done % n_heads;
    const kv_pages kv = seq_kv(seq, layer);
    const float *queries = im->queries + layer * IMPORTANCE_ROWS * query_floats(cfg) + head * hd;
    for (size_t r = 0; r < n_rows; r++) {
        memcpy(im->q + r * hd, queries + r * query_floats(cfg), hd * sizeof *im->q);
    }
    nn_key_scores(im->c, im->scores, im->q, &kv, model_config_attention_scale(cfg, &cfg->full),
                  head / (n_heads / (size_t)cfg->full.n_kv_heads), im->n, n_rows, hd);
    nn_softmax_peaks(im->c, im->best, im->scores, im->n, IMPORTANCE_WINDOW, n_rows);
    if (++im->n_heads_done < n_heads * (size_t)cfg->n_attention_layers) {
        return true;
    }
    finish(im);
    return false;
}

const float *importance_get(const importance *im)
{
    return im->mean;
}
