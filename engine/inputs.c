/* inputs: requests for the vectors of texts, on prep threads, and what a checkpoint says of them. */
#define _GNU_SOURCE /* strcasestr */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_source.h"
#include "base/limits.h"
#include "engine/engine_private.h"

/* The tokens of one input. */
static err_code read_input(const engine *e, token_ids *out, const gen_input *in, gen_pool pool, size_t i,
                           err_detail *detail)
{
    const tokenizer *tok = model_tokenizer(e->model);
    char path[32];
    err_code err = ERR_OK;
    snprintf(path, sizeof path, "input[%zu]", i);
    if (in->before) {
        err = tokenizer_encode(tok, out, in->before, strlen(in->before), TOKENIZER_SPECIALS, detail);
    }
    if (in->text && err == ERR_OK) {
        err = tokenizer_encode(tok, out, in->text, in->len, in->before ? TOKENIZER_PLAIN : TOKENIZER_SPECIALS,
                               detail);
    }
    if (in->behind && err == ERR_OK) {
        err = tokenizer_encode(tok, out, in->behind, strlen(in->behind), TOKENIZER_SPECIALS, detail);
    }
    if (in->text && err == ERR_OK) {
        for (int32_t k = 0; k < e->n_behind && err == ERR_OK && pool != GEN_POOL_YES; k++) {
            err = token_ids_push(out, e->behind[k]);
        }
    }
    for (size_t k = 0; !in->text && k < in->n_ids && err == ERR_OK; k++) {
        err =
            in->ids[k] < 0 || in->ids[k] >= e->info.n_vocab
                ? err_set_param(detail, ERR_INVALID, path, "invalid_value",
                                "%s holds %d; a token is from 0 to %d", path, in->ids[k], e->info.n_vocab - 1)
                : token_ids_push(out, in->ids[k]);
    }
    if (err == ERR_OK && (out->len == 0 || (in->text && in->len == 0))) {
        err = err_set_param(detail, ERR_INVALID, path, "invalid_value", "%s is empty", path);
    } else if (err == ERR_OK && out->len > (size_t)e->info.n_ctx) {
        err = err_set_param(detail, ERR_LIMIT, path, "input_too_long", "%s has %zu tokens; at most %d fit",
                            path, out->len, e->info.n_ctx);
    }
    return err;
}

static err_code read_inputs(const engine *e, gen_request *r, const gen_input *inputs, size_t n,
                            err_detail *detail)
{
    size_t longest = 0;
    r->inputs = calloc(n, sizeof *r->inputs);
    r->pooled = calloc((size_t)e->info.n_embd, sizeof *r->pooled);
    err_code err = r->inputs && r->pooled ? ERR_OK : ERR_NOMEM;
    for (size_t i = 0; i < n && err == ERR_OK; i++) {
        token_ids *ids = &r->inputs[i];
        token_ids_init(ids);
        r->n_inputs = i + 1;
        err = read_input(e, ids, &inputs[i], r->pool, i, detail);
        longest = ids->len > longest ? ids->len : longest;
        if (err == ERR_OK && ids->len > (size_t)(LIMIT_INPUT_TOKENS - r->n_all)) {
            err = err_set_param(detail, ERR_LIMIT, "input", "input_too_long",
                                "all inputs together may have %d tokens; send several requests",
                                LIMIT_INPUT_TOKENS);
        } else if (err == ERR_OK) {
            r->n_all += (int32_t)ids->len;
        }
    }
    r->positions = err == ERR_OK ? malloc(longest * sizeof *r->positions) : NULL;
    err = err == ERR_OK && !r->positions ? ERR_NOMEM : err;
    for (size_t i = 0; i < longest && err == ERR_OK; i++) {
        r->positions[i] = (position){(int32_t)i, (int32_t)i, (int32_t)i};
    }
    return err == ERR_NOMEM ? err_set(detail, err, "there is not enough memory for this request") : err;
}

err_code engine_prepare_inputs(engine *e, gen_request **out, const gen_input *inputs, size_t n, gen_pool pool,
                               uint64_t scope, err_detail *detail)
{
    /* tokens are no longer than their text; positions; the vectors and what the reply makes of them */
    const size_t n_values = pool == GEN_POOL_YES ? 1 : (size_t)e->info.n_embd;
    size_t n_bytes = n * (sizeof(token_ids) + n_values * 24);
    err_code err = ERR_OK;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        const size_t around = inputs[i].before ? strlen(inputs[i].before) + strlen(inputs[i].behind) : 8;
        n_bytes += (inputs[i].text ? inputs[i].len + around : inputs[i].n_ids) * sizeof(position) * 2;
    }
    gen_request *r = gen_request_create();
    if (!r) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
    }
    r->memory.ledger = e->memory;
    err = ledger_take(&r->memory, "these inputs", n_bytes, NULL, detail);
    r->scope = e->share_cache ? 0 : scope;
    r->pool = pool;
    r->params.no_cache = r->params.no_draft = true;
    gen_params_fill(&r->params, &e->info.defaults);
    r->params.spec_prefill = 0;
    r->max_tokens = 1;
    err = err == ERR_OK ? read_inputs(e, r, inputs, n, detail) : err;
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    (void)gen_request_next_input(r);
    *out = r;
    return ERR_OK;
}

/* ---- what a checkpoint is made for ---- */

/* A document of the checkpoint; NULL: there is none that can be read. */
static json_doc *document(const engine *e, const char *name)
{
    const json_source docs = model_documents(e->model);
    json_doc *doc = NULL;
    return docs.read(docs.ctx, name, &doc, NULL) == ERR_OK ? doc : NULL;
}

/* The tokens that the tokenizer's post-processor puts behind a text. */
static void find_behind(engine *e)
{
    json_doc *doc = document(e, "tokenizer.json");
    const json *post = doc ? json_get(json_root(doc), "post_processor") : NULL;
    const json *parts = json_get(post, "processors"), *single = json_get(post, "single");
    bool is_behind = false;
    for (const json *p = json_child(parts); p && !single; p = json_next(p)) {
        single = json_get(p, "single");
    }
    for (const json *p = json_child(single); p; p = json_next(p)) {
        const char *id = json_str(json_get(json_get(p, "SpecialToken"), "id"), NULL);
        const int32_t token = id ? tokenizer_added_id(model_tokenizer(e->model), id) : -1;
        is_behind = is_behind || json_get(p, "Sequence");
        if (is_behind && token >= 0 && e->n_behind < POOL_BEHIND_MAX) {
            e->behind[e->n_behind++] = token;
        }
    }
    json_free(doc);
}

/* The id of a word that is one token; -1 if it is not. */
static int32_t word_id(const engine *e, const char *word)
{
    token_ids ids;
    token_ids_init(&ids);
    const err_code err =
        tokenizer_encode(model_tokenizer(e->model), &ids, word, strlen(word), TOKENIZER_PLAIN, NULL);
    const int32_t id = err == ERR_OK && ids.len == 1 ? ids.ids[0] : -1;
    token_ids_deinit(&ids);
    return id;
}

void engine_find_pool(engine *e)
{
    json_doc *modules = document(e, "modules.json"), *pooling = document(e, "1_Pooling/config.json");
    const json *root = pooling ? json_root(pooling) : NULL;
    e->info.is_embedder = modules && pooling;
    e->info.pool = json_is_true(json_get(root, "pooling_mode_mean_tokens")) ? GEN_POOL_MEAN : GEN_POOL_LAST;
    if (e->info.is_embedder) {
        find_behind(e);
    }
    e->yes_id = word_id(e, "yes");
    e->no_id = word_id(e, "no");
    e->info.is_reranker = strcasestr(e->dir, "rerank") && e->yes_id >= 0 && e->no_id >= 0;
    json_free(modules);
    json_free(pooling);
}
