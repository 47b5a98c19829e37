#include "server/protocol/api_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* Decoded media take 3/4 of the body, texts are copied once more by the normaliser. */
#define ARENA_BYTES (LIMIT_BODY_BYTES * 2)

void api_request_init(api_request *r)
{
    memset(r, 0, sizeof *r);
    reply_options_init(&r->reply);
}

void api_request_deinit(api_request *r)
{
    json_free(r->doc);
    chat_input_destroy(r->in);
    for (size_t i = 0; i < r->n_docs; i++) {
        json_free(r->docs[i]);
    }
    free(r->docs);
    reply_options_deinit(&r->reply);
    memset(r, 0, sizeof *r);
}

bool api_request_keep(api_request *r, json_doc *doc)
{
    if (r->n_docs == r->cap_docs) {
        size_t cap = r->cap_docs ? r->cap_docs * 2 : 8;
        json_doc **docs = realloc(r->docs, cap * sizeof *docs);
        if (!docs) {
            json_free(doc);
            return false;
        }
        r->docs = docs;
        r->cap_docs = cap;
    }
    r->docs[r->n_docs++] = doc;
    return true;
}

err_code api_request_document(api_request *r, json_doc **out, const char *text, size_t len, err_detail *d)
{
    *out = r->doc;
    r->doc = NULL;
    return *out ? ERR_OK : json_parse(out, text, len, LIMIT_JSON_DEPTH, d);
}

err_code api_request_open(api_request *r, const json **root, const char *text, size_t len, err_detail *d)
{
    json_doc *doc = NULL;
    err_code err = api_request_document(r, &doc, text, len, d);
    if (err != ERR_OK) {
        return err;
    }
    r->in = chat_input_create(ARENA_BYTES);
    if (!r->in) {
        json_free(doc);
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    r->in->keep = doc;
    gen_params_init(&r->in->params);
    *root = json_root(doc);
    if (!json_is(*root, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, "", "invalid_type", "the body must be a JSON object");
    }
    return ERR_OK;
}

err_code api_request_arguments(api_request *r, const json **out, const json *value, const char *path,
                               err_detail *d)
{
    if (json_is(value, JSON_OBJECT)) {
        *out = value;
        return ERR_OK;
    }
    const char *text = json_str(value, "{}");
    json_doc *doc = NULL;
    text = text[0] ? text : "{}";
    err_detail inner = {0};
    err_code err = json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &inner);
    if (err != ERR_OK || !json_is(json_root(doc), JSON_OBJECT)) {
        json_free(doc);
        return err_set_param(d, ERR_INVALID, path, "invalid_value", "%s must be the text of a JSON object",
                             path);
    }
    *out = json_root(doc);
    return api_request_keep(r, doc) ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for this request");
}

/* ---- what every body says ---- */

static err_code read_max_tokens(api_request *r, const json *root, err_detail *d)
{
    int64_t a = -1, b = -1, predict = -1;
    err_code err = request_int(&a, root, "max_tokens", 1, INT32_MAX, d);
    if (err == ERR_OK) {
        err = request_int(&b, root, "max_completion_tokens", 1, INT32_MAX, d);
    }
    if (err == ERR_OK) {
        err = request_int(&predict, root, "n_predict", -1, INT32_MAX, d);
    }
    if (err == ERR_OK && a > 0 && b > 0 && a != b) {
        err = err_set_param(d, ERR_INVALID, "max_completion_tokens", "invalid_value",
                            "max_tokens and max_completion_tokens contradict each other");
    }
    int64_t wanted = b > 0 ? b : a > 0 ? a : predict > 0 ? predict : -1;
    r->in->params.max_tokens = r->reply.max_tokens = (int32_t)wanted;
    return err;
}

static err_code read_switches(api_request *r, const json *root, err_detail *d)
{
    int64_t n = 1;
    const json *options = json_get(root, "stream_options");
    const char *model = "";
    err_code err = request_bool(&r->reply.stream, root, "stream", d);
    if (err == ERR_OK && json_typeof(options) != JSON_NULL && !json_is(options, JSON_OBJECT)) {
        err = err_set_param(d, ERR_INVALID, "stream_options", "invalid_type",
                            "stream_options must be an object");
    }
    if (err == ERR_OK) {
        err = request_bool(&r->reply.include_usage, options, "include_usage", d);
    }
    if (err == ERR_OK) {
        err = request_bool(&r->reply.return_progress, root, "return_progress", d);
    }
    if (err == ERR_OK) {
        err = request_bool(&r->reply.timings_per_token, root, "timings_per_token", d);
    }
    if (err == ERR_OK) {
        err = request_int(&n, root, "n", 1, 1, d);
    }
    if (err == ERR_OK) {
        err = request_string(&model, root, "model", sizeof r->reply.model - 1, d);
    }
    snprintf(r->reply.model, sizeof r->reply.model, "%s", model);
    return err;
}

err_code api_request_generation(api_request *r, const json *root, const engine_info *info, err_detail *d)
{
    err_code err = read_switches(r, root, d);
    if (err == ERR_OK) {
        err = request_read_sampling(r->in, root, info, d);
    }
    return err == ERR_OK ? read_max_tokens(r, root, d) : err;
}
