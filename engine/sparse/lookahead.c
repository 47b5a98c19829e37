#include "engine/sparse/lookahead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/decoder.h"

struct lookahead {
    compute *c;
    model *m;
    kv_type cache_type;
    int32_t chunk;
    kv_pool *pool;
    seq_state *seq;
    decoder_scratch *sc;
    importance *im;
    position *positions; /* [chunk] */
    /* the prompt */
    const int32_t *ids;
    int32_t n, n_done, n_under_way; /* tokens read, and of the chunk that is begun */
    int32_t tokens[IMPORTANCE_ROWS];
    int32_t n_tokens, n_looked; /* looked ahead, and of them gone through the model */
};

/* ---- opening ---- */

static err_code check_vocabulary(const model *draft, const model *target, err_detail *detail)
{
    const tokenizer *ours = model_tokenizer(draft), *theirs = model_tokenizer(target);
    const int32_t n = tokenizer_n_tokens(theirs);
    int32_t i = tokenizer_n_tokens(ours) == n ? 0 : -1;
    while (i >= 0 && i < n) {
        size_t a_len = 0, b_len = 0;
        const char *a = tokenizer_token_bytes(ours, i, &a_len, NULL);
        const char *b = tokenizer_token_bytes(theirs, i, &b_len, NULL);
        if (a_len != b_len || (a_len > 0 && memcmp(a, b, a_len) != 0)) {
            break;
        }
        i++;
    }
    if (i < 0) {
        return err_set(detail, ERR_INVALID,
                       "the draft model %s has a vocabulary of %d tokens, the model one of %d: take a small "
                       "model of the same family",
                       model_dir(draft), tokenizer_n_tokens(ours), n);
    }
    if (i < n) {
        return err_set(detail, ERR_INVALID,
                       "the draft model %s has another vocabulary (token %d differs): take a small model of "
                       "the same family",
                       model_dir(draft), i);
    }
    return ERR_OK;
}

err_code lookahead_open(lookahead **out, const lookahead_options *o, err_detail *detail)
{
    *out = NULL;
    lookahead *la = calloc(1, sizeof *la);
    if (!la) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the draft model");
    }
    la->c = o->c;
    la->cache_type = o->cache_type;
    la->chunk = o->chunk;
    const model_open_options mo = {
        .quantize = o->quantize, .huge_pages = o->huge_pages ? o->c : NULL, .rope_bf16 = o->rope_bf16};
    err_code err = model_open(&la->m, o->path, &mo, detail);
    if (err == ERR_OK) {
        err = check_vocabulary(la->m, o->target, detail);
    }
    if (err == ERR_OK && model_get_config(la->m)->n_attention_layers == 0) {
        err =
            err_set(detail, ERR_INVALID,
                    "the draft model %s has no full attention, so it cannot judge prompts", model_dir(la->m));
    }
    if (err == ERR_OK && model_get_config(la->m)->n_sliding_layers > 0) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "the draft model %s has sliding attention, which sees too little to judge prompts",
                      model_dir(la->m));
    }
    if (err == ERR_OK && lookahead_longest(la) < 1) {
        err = err_set(detail, ERR_INVALID,
                      "the draft model %s has a context of %d tokens, too few to judge prompts",
                      model_dir(la->m), model_get_config(la->m)->max_position_embeddings);
    }
    if (err != ERR_OK) {
        lookahead_close(la);
        return err;
    }
    *out = la;
    return ERR_OK;
}

void lookahead_close(lookahead *la)
{
    if (!la) {
        return;
    }
    seq_state_destroy(la->seq);
    kv_pool_destroy(la->pool);
    decoder_scratch_destroy(la->sc);
    importance_destroy(la->im);
    free(la->positions);
    model_close(la->m);
    free(la);
}

const char *lookahead_dir(const lookahead *la)
{
    return model_dir(la->m);
}

uint64_t lookahead_weight_bytes(const lookahead *la)
{
    return model_weight_bytes(la->m);
}

int32_t lookahead_longest(const lookahead *la)
{
    return model_get_config(la->m)->max_position_embeddings - IMPORTANCE_ROWS;
}

size_t lookahead_state_bytes(const lookahead *la, int32_t n_tokens)
{
    const model_config *cfg = model_get_config(la->m);
    return seq_state_bytes(cfg, la->cache_type, false, n_tokens + IMPORTANCE_ROWS) +
           decoder_scratch_bytes(la->m, la->chunk, 1) + importance_bytes(cfg, n_tokens) +
           (size_t)la->chunk * sizeof *la->positions;
}

err_code lookahead_reserve(lookahead *la, int32_t n_tokens, err_detail *detail)
{
    const model_config *cfg = model_get_config(la->m);
    const int32_t n = n_tokens + IMPORTANCE_ROWS;
    err_code err = kv_pool_create(&la->pool, cfg, la->cache_type, false, kv_pool_blocks_for(n),
                                  kv_pool_window_blocks_for(cfg, n), la->c, detail);
    if (err == ERR_OK) {
        err = seq_state_create(&la->seq, cfg, la->pool, n, la->c, detail);
    }
    if (err == ERR_OK) {
        err = decoder_scratch_create(&la->sc, la->m, la->c, la->chunk, 1, detail);
    }
    if (err == ERR_OK) {
        err = importance_create(&la->im, cfg, la->c, n_tokens, detail);
    }
    la->positions = malloc((size_t)la->chunk * sizeof *la->positions);
    return err == ERR_OK && !la->positions
               ? err_set(detail, ERR_NOMEM, "there is not enough memory for the draft model")
               : err;
}

/* ---- a prompt ---- */

err_code lookahead_begin(lookahead *la, const int32_t *ids, int32_t n, err_detail *detail)
{
    if (n < 1 || n > seq_state_cap(la->seq) - IMPORTANCE_ROWS) {
        return err_set(detail, ERR_LIMIT, "the draft model reads prompts of up to %d tokens",
                       seq_state_cap(la->seq) - IMPORTANCE_ROWS);
    }
    la->ids = ids;
    la->n = n;
    la->n_done = la->n_under_way = la->n_tokens = la->n_looked = 0;
    seq_state_reset(la->seq);
    importance_begin(la->im, n);
    return ERR_OK;
}

void lookahead_end(lookahead *la)
{
    importance_watch(NULL, la->sc);
    seq_state_reset(la->seq);
    la->ids = NULL;
    la->n = la->n_under_way = 0;
}

/* Begins the next n rows: of the prompt, or one looked ahead. */
static err_code begin_rows(lookahead *la, const int32_t *ids, int32_t n, bool exact, bool logits,
                           err_detail *detail)
{
    const int32_t first = seq_state_len(la->seq), last = n - 1;
    for (int32_t i = 0; i < n; i++) {
        la->positions[i] = (position){first + i, first + i, first + i};
    }
    const batch_run run = {.seq = la->seq, .n_rows = n, .exact_rows = exact};
    const batch b = {.n_rows = n,
                     .tokens = ids,
                     .positions = la->positions,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = &last,
                     .n_logit_rows = logits,
                     .states_only = !logits && !exact};
    return decoder_begin(la->m, la->c, &b, la->sc, detail);
}

/* The likeliest token behind the last row. */
static void look_ahead(lookahead *la)
{
    const float *logits = decoder_logits(la->sc, 0);
    int32_t best = 0;
    for (int32_t i = 1; i < model_get_config(la->m)->vocab_size; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    la->tokens[la->n_tokens++] = best;
}

static err_code read_piece(lookahead *la, bool small, err_detail *detail)
{
    if (la->n_under_way == 0) {
        const int32_t left = la->n - la->n_done, n = left < la->chunk ? left : la->chunk;
        const err_code err = begin_rows(la, la->ids + la->n_done, n, false, n == left, detail);
        if (err != ERR_OK) {
            return err;
        }
        la->n_under_way = n;
    }
    if (!decoder_next(la->m, la->sc, small)) {
        la->n_done += la->n_under_way;
        la->n_under_way = 0;
        if (la->n_done == la->n) {
            look_ahead(la);
        }
    }
    return ERR_OK;
}

/* One token looked ahead goes through the model, as a whole: it costs what a step of an answer of
 * this small model costs. */
static err_code look_piece(lookahead *la, err_detail *detail)
{
    importance_watch(la->im, la->sc);
    err_code err = begin_rows(la, &la->tokens[la->n_looked], 1, true, la->n_tokens < IMPORTANCE_ROWS, detail);
    while (err == ERR_OK && decoder_next(la->m, la->sc, false)) {
    }
    importance_watch(NULL, la->sc);
    la->n_looked++;
    if (err == ERR_OK && la->n_tokens < IMPORTANCE_ROWS) {
        look_ahead(la);
    }
    return err;
}

/* A model whose numbers overflow judges nothing. */
static err_code check_result(const lookahead *la, err_detail *detail)
{
    const float *share = importance_get(la->im);
    for (int32_t i = 0; i < la->n; i++) {
        if (!isfinite(share[i])) {
            return err_set(detail, ERR_INTERNAL, "the draft model's attention is not finite");
        }
    }
    return ERR_OK;
}

err_code lookahead_next(lookahead *la, bool small, bool *more, err_detail *detail)
{
    *more = true;
    if (la->n_done < la->n) {
        return read_piece(la, small, detail);
    }
    if (la->n_looked < IMPORTANCE_ROWS) {
        return look_piece(la, detail);
    }
    *more = importance_next(la->im, la->seq);
    return *more ? ERR_OK : check_result(la, detail);
}

int32_t lookahead_n_read(const lookahead *la)
{
    return la->n_done;
}

const float *lookahead_importance(const lookahead *la)
{
    return importance_get(la->im);
}

const int32_t *lookahead_tokens(const lookahead *la)
{
    return la->tokens;
}
