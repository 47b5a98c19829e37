#include "model/mtp.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/layers.h"
#include "model/model_parts.h"
#include "model/rope.h"
#include "model/seq_layout.h"

/* Ids that are guessed at most: the frequent ones, which come first in a vocabulary made of merges,
 * and the last ones, where the control tokens stand. A head over all 248320 rows would read twelve
 * times the bytes of the draft layer; a token that is never guessed costs only its draft. */
enum { GUESS_FIRST = 65536, GUESS_LAST = 512 };

struct mtp_scratch {
    compute *c;
    size_t max_rows, max_logit_rows;
    size_t hidden_size, vocab_size;
    float *memory; /* one allocation for everything below */
    float *pair;   /* [rows, 2H] embedding | hidden, then normed */
    float *h;      /* [rows, H] residual stream */
    float *x;      /* [rows, H] normed input of a part; at the end the head's own output */
    float *y;      /* [rows, H] output of a part; at first the embedding rows */
    float *cos, *sin, *work;
    float *logits; /* [logit rows, V]; ids that are not guessed have -INFINITY from the start */
    row_span *spans;
};

/* Lays the buffers out in memory, or only counts if it is NULL; returns the floats. */
static size_t lay_out(mtp_scratch *sc, float *memory, const model_config *cfg)
{
    size_t rows = sc->max_rows, H = sc->hidden_size, pairs = (size_t)cfg->full.rope.pairs;
    const struct {
        float **at;
        size_t n;
    } parts[] = {{&sc->pair, rows * 2 * H},
                 {&sc->h, rows * H},
                 {&sc->x, rows * H},
                 {&sc->y, rows * H},
                 {&sc->cos, rows * pairs},
                 {&sc->sin, rows * pairs},
                 {&sc->work, layer_work_floats(cfg, rows)},
                 {&sc->logits, sc->max_logit_rows * sc->vocab_size}};
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        *parts[i].at = memory ? memory + used : NULL;
        used += (parts[i].n + 15) / 16 * 16;
    }
    return used;
}

err_code mtp_scratch_create(mtp_scratch **out, const model *m, compute *c, int32_t max_rows,
                            int32_t max_logit_rows, err_detail *detail)
{
    const model_config *cfg = model_get_config(m);
    *out = NULL;
    if (max_rows < 1 || max_logit_rows < 0) {
        return err_set(detail, ERR_INVALID, "the draft head needs room for at least one row");
    }
    mtp_scratch *sc = calloc(1, sizeof *sc);
    if (sc) {
        sc->c = c;
        sc->max_rows = (size_t)max_rows;
        sc->max_logit_rows = (size_t)max_logit_rows;
        sc->hidden_size = (size_t)cfg->hidden_size;
        sc->vocab_size = (size_t)cfg->vocab_size;
        sc->memory = compute_alloc(c, lay_out(sc, NULL, cfg) * sizeof(float));
        sc->spans = calloc(sc->max_rows, sizeof *sc->spans);
    }
    if (!sc || !sc->memory || !sc->spans) {
        mtp_scratch_destroy(sc);
        return err_set(detail, ERR_NOMEM, "no memory for draft batches of %d rows", max_rows);
    }
    lay_out(sc, sc->memory, cfg);
    for (size_t i = 0; i < sc->max_logit_rows * sc->vocab_size; i++) {
        sc->logits[i] = -INFINITY;
    }
    *out = sc;
    return ERR_OK;
}

void mtp_scratch_destroy(mtp_scratch *sc)
{
    if (!sc) {
        return;
    }
    compute_free(sc->c, sc->memory);
    free(sc->spans);
    free(sc);
}

static err_code check_input(const model *m, const mtp_scratch *sc, const mtp_input *in, int32_t n_logits,
                            err_detail *detail)
{
    const seq_state *s = in->seq;
    if (!model_has_mtp(m) || s->shape.n_kv_layers == (size_t)model_get_config(m)->n_attention_layers) {
        return err_set(detail, ERR_INTERNAL, "the model or the sequence has no draft head");
    }
    if (in->n < 1 || (size_t)in->n > sc->max_rows || n_logits < 0 || n_logits > in->n ||
        (size_t)n_logits > sc->max_logit_rows) {
        return err_set(detail, ERR_LIMIT, "%d draft rows with %d logits do not fit %zu and %zu", in->n,
                       n_logits, sc->max_rows, sc->max_logit_rows);
    }
    if (in->n > s->cap - s->mtp_len) {
        return err_set(detail, ERR_LIMIT, "%d more draft entries do not fit: %d of %d are in use", in->n,
                       s->mtp_len, s->cap);
    }
    for (int32_t i = 0; i < in->n; i++) {
        if (in->next_tokens[i] < 0 || (size_t)in->next_tokens[i] >= sc->vocab_size) {
            return err_set(detail, ERR_INVALID, "token %d is outside the vocabulary of %zu",
                           in->next_tokens[i], sc->vocab_size);
        }
    }
    return ERR_OK;
}

/* h = fc [norm(embedding) ; norm(hidden)]. TRAP: the embedding comes first. */
static void join(const layer_ctx *lc, mtp_scratch *sc, const weights *w, const mtp_input *in)
{
    size_t n = lc->n_rows, H = sc->hidden_size;
    nn_embed(sc->c, sc->y, &w->embed, in->next_tokens, n);
    for (size_t i = 0; i < n; i++) {
        memcpy(sc->pair + i * 2 * H, sc->y + i * H, H * sizeof(float));
        memcpy(sc->pair + i * 2 * H + H, in->hidden + i * H, H * sizeof(float));
    }
    nn_rmsnorm_heads(sc->c, sc->pair, w->mtp.embedding_norm, lc->cfg->rms_norm_eps, n, 1, H, 2 * H, H);
    nn_rmsnorm_heads(sc->c, sc->pair + H, w->mtp.hidden_norm, lc->cfg->rms_norm_eps, n, 1, H, 2 * H, H);
    layer_linear(lc, sc->h, sc->pair, &w->mtp.fc);
}

/* Logits of n rows, for the ids that are guessed. */
static void guess_logits(mtp_scratch *sc, const tensor *head, size_t n)
{
    const size_t H = sc->hidden_size, V = sc->vocab_size;
    if (V <= GUESS_FIRST + GUESS_LAST) {
        for (size_t i = 0; i < n; i += NN_ROWS_EXACT) {
            size_t rows = n - i < NN_ROWS_EXACT ? n - i : NN_ROWS_EXACT;
            nn_linear(sc->c, sc->logits + i * V, sc->x + i * H, head, NULL, rows);
        }
        return;
    }
    const tensor first = tensor_rows(head, 0, GUESS_FIRST), last = tensor_rows(head, V - GUESS_LAST, V);
    for (size_t i = 0; i < n; i++) {
        float *logits = sc->logits + i * V;
        const linear_part parts[] = {{logits, &first, NULL}, {logits + V - GUESS_LAST, &last, NULL}};
        nn_linear_group(sc->c, parts, 2, sc->x + i * H, 1);
    }
}

/* The transformer layer, the last norm and the logits, for all rows of lc; h is at sc->h + skip
 * rows. */
static void run_head(const layer_ctx *lc, mtp_scratch *sc, const weights *w, size_t skip, size_t kv_layer)
{
    size_t n = lc->n_rows, H = sc->hidden_size;
    float eps = lc->cfg->rms_norm_eps, *h = sc->h + skip * H;
    nn_rmsnorm(sc->c, sc->x, h, w->mtp.layer.input_norm, eps, n, H);
    attention_forward(lc, sc->y, sc->x, &w->mtp.layer.attention, kv_layer);
    nn_add(sc->c, h, sc->y, n * H);
    nn_rmsnorm(sc->c, sc->x, h, w->mtp.layer.post_norm, eps, n, H);
    feed_forward(lc, sc->y, sc->x, &w->mtp.layer);
    nn_add(sc->c, h, sc->y, n * H);
    nn_rmsnorm(sc->c, sc->x, h, w->mtp.norm, eps, n, H);
    guess_logits(sc, &w->head, n);
}

err_code mtp_forward(const model *m, compute *c, mtp_scratch *sc, const mtp_input *in, int32_t n_logits,
                     err_detail *detail)
{
    const model_config *cfg = model_get_config(m);
    const weights *w = model_get_parts(m)->weights;
    err_code err = check_input(m, sc, in, n_logits, detail);
    if (err == ERR_OK) {
        err = seq_reserve_draft(in->seq, in->seq->mtp_len, in->n, detail);
    }
    if (err) {
        return err;
    }
    size_t n = (size_t)in->n, n_head = (size_t)n_logits, n_fill = n - n_head;
    size_t pairs = (size_t)cfg->full.rope.pairs, kv_layer = (size_t)cfg->n_attention_layers;
    layer_run run = {
        .seq = in->seq, .n_rows = n, .slot = (size_t)in->seq->mtp_len, .exact_rows = n <= NN_ROWS_EXACT};
    layer_ctx lc = {.cfg = cfg,
                    .c = c,
                    .runs = &run,
                    .n_runs = 1,
                    .spans = sc->spans,
                    .n_rows = n,
                    .full = {sc->cos, sc->sin},
                    .work = sc->work};
    lc.n_spans = layer_spans(sc->spans, &run, 1);
    rope_tables(sc->cos, sc->sin, cfg, &cfg->full.rope, in->positions, n);
    join(&lc, sc, w, in);
    if (n_fill > 0) { /* entries without logits need keys and values alone */
        run.n_rows = lc.n_rows = n_fill;
        lc.n_spans = layer_spans(sc->spans, &run, 1);
        nn_rmsnorm(c, sc->x, sc->h, w->mtp.layer.input_norm, cfg->rms_norm_eps, n_fill, sc->hidden_size);
        attention_store(&lc, sc->x, &w->mtp.layer.attention, kv_layer);
    }
    if (n_head > 0) {
        run.n_rows = lc.n_rows = n_head;
        run.slot += n_fill;
        lc.n_spans = layer_spans(sc->spans, &run, 1);
        lc.full = (rope_rows){sc->cos + n_fill * pairs, sc->sin + n_fill * pairs};
        run_head(&lc, sc, w, n_fill, kv_layer);
    }
    in->seq->mtp_len += in->n;
    return ERR_OK;
}

float *mtp_logits(mtp_scratch *sc, int32_t i)
{
    return sc->logits + (size_t)i * sc->vocab_size;
}

const float *mtp_hidden(const mtp_scratch *sc, int32_t i)
{
    return sc->x + (size_t)i * sc->hidden_size;
}

int32_t mtp_len(const seq_state *s)
{
    return s->mtp_len;
}

void mtp_truncate(seq_state *s, int32_t len)
{
    assert(len >= 0 && len <= s->mtp_len);
    s->mtp_len = len;
}
