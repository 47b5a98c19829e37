#include "server/protocol/dialects/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/media/data_uri.h"

/* What a Qwen3-Reranker was trained with, word for word. */
static const char JUDGE[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the "
    "Query and the Instruct provided. Note that the answer can only be \"yes\" or "
    "\"no\".<|im_end|>\n<|im_start|>user\n";
static const char ANSWER[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char TASK[] = "Given a web search query, retrieve relevant passages that answer the query";

/* ---- bodies ---- */

static err_code finish_parse(api_request *r, const json *root, size_t n, int32_t n_values)
{
    first_error *e = &r->error;
    request_read_timeout(e, &r->reply, root);
    if (n * (size_t)n_values > LIMIT_INPUT_VALUES) {
        request_fail(e, ERR_LIMIT, "input", "too_many_inputs",
                     "%zu vectors of %d numbers; a reply may hold %d numbers in all: send several requests",
                     n, n_values, LIMIT_INPUT_VALUES);
    }
    return e->code;
}

err_code embedding_request_parse(api_request *r, completion_prompt *inputs, const char *text, size_t len,
                                 const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    const char *format = "float";
    int64_t n_dims = 0;
    bool truncate = false;
    *inputs = (completion_prompt){0};
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return r->error.code;
    }
    first_error *e = &r->error;
    const bool is_plain = !json_get(root, "input") && json_get(root, "prompt");
    api_request_model(r, root);
    request_string(e, &format, root, "encoding_format", 16);
    request_int(e, &n_dims, root, "dimensions", 1, info ? info->n_embd : INT32_MAX);
    request_bool(e, &truncate, root,
                 "truncate"); /* Ollama's: nothing is cut here, what is too long is said */
    if (strcmp(format, "float") != 0 && strcmp(format, "base64") != 0) {
        request_fail(e, ERR_INVALID, "encoding_format", "invalid_value",
                     "encoding_format must be \"float\" or \"base64\"");
    }
    const size_t n = request_prompts(r, inputs, root, is_plain ? "prompt" : "input", LIMIT_INPUTS);
    r->reply.is_base64 = strcmp(format, "base64") == 0;
    r->reply.is_plain = is_plain;
    r->reply.n_dims = (int32_t)n_dims;
    return finish_parse(r, root, n, info ? info->n_embd : 1);
}

static const char *document_text(const json *v)
{
    return json_str(v, json_str(json_get(v, "text"), NULL));
}

/* "<Instruct>: ..", of each document. */
static void read_documents(api_request *r, completion_prompt *inputs, const json *root, const char *task,
                           const char *query)
{
    first_error *e = &r->error;
    const json *documents = json_get(root, "documents");
    bytes texts = bytes_empty(LIMIT_BODY_BYTES);
    completion_prompt *at = inputs;
    size_t i = 0;
    for (const json *v = json_child(documents); v && e->code == ERR_OK; v = json_next(v), i++) {
        const char *text = document_text(v);
        char path[ERR_PARAM_MAX];
        request_path(path, "documents[%zu]", i);
        if (!text) {
            request_fail(e, ERR_INVALID, path, "invalid_type", "%s must be a text, or an object with one",
                         path);
            break;
        }
        const size_t n = strlen(task) + strlen(query) + strlen(text) + 64;
        char *whole = request_calloc(e, r->in->arena, n, 1);
        completion_prompt *next = i ? request_calloc(e, r->in->arena, 1, sizeof *next) : inputs;
        if (!whole || !next) {
            break;
        }
        snprintf(whole, n, "<Instruct>: %s\n<Query>: %s\n<Document>: %s", task, query, text);
        next->text = whole;
        at->next = next != at ? next : NULL;
        at = next;
        bytes_append_char(&texts, i ? ',' : '[');
        bytes_append_json(&texts, text, strlen(text));
    }
    bytes_append_char(&texts, ']');
    const json *wants = json_get(root, "return_documents");
    if (e->code == ERR_OK && json_bool(wants, true)) {
        r->reply.fields = texts.failed ? NULL : strdup(bytes_str(&texts));
        if (!r->reply.fields) {
            request_no_memory(e);
        }
    }
    bytes_deinit(&texts);
}

err_code rerank_request_parse(api_request *r, completion_prompt *inputs, const char *text, size_t len,
                              const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    const char *query = NULL, *task = TASK;
    int64_t n_top = 0;
    bool returns = true;
    *inputs = (completion_prompt){0};
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return r->error.code;
    }
    first_error *e = &r->error;
    const json *documents = json_get(root, "documents");
    const size_t n = json_is(documents, JSON_ARRAY) ? json_len(documents) : 0;
    if (info && !info->is_reranker) {
        request_fail(e, ERR_UNSUPPORTED, "model", "not_supported",
                     "this model ranks no documents: load a Qwen3-Reranker");
    }
    api_request_model(r, root);
    request_string(e, &query, root, "query", LIMIT_BODY_BYTES);
    request_string(e, &task, root, "instruction", LIMIT_BODY_BYTES);
    request_int(e, &n_top, root, "top_n", 1, INT32_MAX);
    request_bool(e, &returns, root, "return_documents");
    if (!query || !query[0]) {
        request_fail(e, ERR_INVALID, "query", "missing_field", "query must be a text");
    }
    if (n == 0 || n > LIMIT_INPUTS) {
        request_fail(e, n ? ERR_LIMIT : ERR_INVALID, "documents", n ? "too_many_inputs" : "missing_field",
                     "documents must be a list of 1 to %d texts", LIMIT_INPUTS);
    }
    if (n * (strlen(task) + (query ? strlen(query) : 0)) > LIMIT_BODY_BYTES) {
        request_fail(e, ERR_LIMIT, "query", "input_too_long",
                     "the query with each document is too much text: send several requests");
    }
    if (e->code == ERR_OK) {
        read_documents(r, inputs, root, task, query);
    }
    r->reply.n_top = (int32_t)n_top;
    return finish_parse(r, root, n, 1);
}

/* ---- to the engine ---- */

static err_code prepare(gen_request **out, const api_request *r, const completion_prompt *inputs,
                        bool is_rank, engine *e, err_detail *d)
{
    size_t n = 0;
    *out = NULL;
    for (const completion_prompt *p = inputs; p; p = p->next) {
        n++;
    }
    gen_input *list = calloc(n, sizeof *list);
    if (!list) {
        return err_set(d, ERR_NOMEM, "there is not enough memory for this request");
    }
    size_t i = 0;
    for (const completion_prompt *p = inputs; p; p = p->next, i++) {
        list[i] = (gen_input){.text = p->text,
                              .len = p->text ? strlen(p->text) : 0,
                              .before = is_rank ? JUDGE : NULL,
                              .behind = is_rank ? ANSWER : NULL,
                              .ids = p->ids,
                              .n_ids = p->n_ids};
    }
    const gen_pool pool = is_rank ? GEN_POOL_YES : engine_get_info(e)->pool;
    const err_code err = engine_prepare_inputs(e, out, list, n, pool, r->scope, d);
    free(list);
    return err;
}

err_code embedding_request_prepare(gen_request **out, const api_request *r, const completion_prompt *inputs,
                                   engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)hooks;
    return prepare(out, r, inputs, false, e, d);
}

err_code rerank_request_prepare(gen_request **out, const api_request *r, const completion_prompt *inputs,
                                engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)hooks;
    return prepare(out, r, inputs, true, e, d);
}

/* ---- replies ---- */

/* The first `size` numbers, scaled to length 1: floats in little-endian order, or a list. */
static void write_vector(bytes *out, const float *v, size_t size, bool is_base64)
{
    double sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += (double)v[i] * (double)v[i];
    }
    const double scale = sum > 0 ? 1.0 / sqrt(sum) : 0.0;
    bytes raw = bytes_empty(size * sizeof(float));
    bytes_append_char(out, is_base64 ? '"' : '[');
    for (size_t i = 0; i < size; i++) {
        const float x = (float)((double)v[i] * scale);
        if (is_base64) {
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            const uint8_t four[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                                     (uint8_t)(bits >> 24)};
            bytes_append(&raw, four, sizeof four);
        } else {
            bytes_printf(out, "%s%.9g", i ? "," : "", (double)x);
        }
    }
    if (is_base64) {
        base64_encode(out, (const uint8_t *)raw.data, raw.len);
    }
    out->failed = out->failed || raw.failed;
    bytes_deinit(&raw);
    bytes_append_char(out, is_base64 ? '"' : ']');
}

static size_t shown(const vectors_meta *m)
{
    const size_t size = m->size;
    return m->opt->n_dims > 0 && (size_t)m->opt->n_dims < size ? (size_t)m->opt->n_dims : size;
}

static void write_usage(bytes *out, const vectors_meta *m)
{
    bytes_printf(out, ",\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d}", m->usage.prompt_tokens,
                 m->usage.prompt_tokens);
}

void embedding_reply_write(bytes *out, const vectors_meta *m)
{
    bytes_append_str(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < m->n; i++) {
        bytes_printf(out, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "", i);
        write_vector(out, m->values + i * m->size, shown(m), m->opt->is_base64);
        bytes_append_char(out, '}');
    }
    bytes_json(out, "],\"model\":%s,\"pooling\":%s", m->model, m->pooling);
    if (!m->is_embedder) {
        bytes_append_str(out,
                         ",\"note\":\"This model was not trained for embeddings: these are its pooled hidden "
                         "states. For search load a Qwen3-Embedding.\"");
    }
    write_usage(out, m);
    bytes_append_char(out, '}');
}

void ollama_embedding_write(bytes *out, const vectors_meta *m)
{
    if (m->opt->is_plain) {
        bytes_append_str(out, "{\"embedding\":");
        write_vector(out, m->values, shown(m), false);
        bytes_append_char(out, '}');
        return;
    }
    bytes_json(out, "{\"model\":%s,\"embeddings\":[", m->model);
    for (size_t i = 0; i < m->n; i++) {
        bytes_append_str(out, i ? "," : "");
        write_vector(out, m->values + i * m->size, shown(m), false);
    }
    bytes_printf(out, "],\"prompt_eval_count\":%d}", m->usage.prompt_tokens);
}

/* A document, and how well it fits. */
typedef struct ranked {
    size_t index;
    float score;
    const json *text; /* NULL: it is not returned */
} ranked;

/* Equal ones keep their order. */
static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1)
                                : (x->index > y->index) - (x->index < y->index);
}

void rerank_reply_write(bytes *out, const vectors_meta *m)
{
    size_t n = m->n;
    const char *texts = m->opt->fields;
    ranked *all = calloc(n + 1, sizeof *all);
    json_doc *doc = NULL;
    if (!all || (texts && json_parse(&doc, texts, strlen(texts), LIMIT_JSON_DEPTH, NULL) != ERR_OK)) {
        bytes_fail_memory(out); /* the texts were written here, so nothing else is wrong with them */
        n = 0;
    }
    const json *text = doc ? json_child(json_root(doc)) : NULL;
    for (size_t i = 0; i < n; i++) {
        all[i] = (ranked){i, m->values[i], text};
        text = text ? json_next(text) : NULL;
    }
    if (n > 0) {
        qsort(all, n, sizeof *all, by_score);
    }
    bytes_json(out, "{\"id\":%s,\"model\":%s,\"results\":[", m->id, m->model);
    for (size_t i = 0; i < n && (m->opt->n_top == 0 || i < (size_t)m->opt->n_top); i++) {
        bytes_printf(out, "%s{\"index\":%zu,\"relevance_score\":%.9g", i ? "," : "", all[i].index,
                     (double)all[i].score);
        if (all[i].text) {
            bytes_append_str(out, ",\"document\":{\"text\":");
            json_write(out, all[i].text);
            bytes_append_char(out, '}');
        }
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    write_usage(out, m);
    bytes_append_char(out, '}');
    json_free(doc);
    free(all);
}
