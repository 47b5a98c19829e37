#include "server/protocol/api_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"

/* Decoded media take 3/4 of the body, texts as much as they have there. */
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

const json *api_request_keep(api_request *r, json_doc *doc)
{
    if (!doc || r->error.code != ERR_OK ||
        !memory_grow(&r->docs, &r->cap_docs, r->n_docs + 1, 8, sizeof(json_doc *))) {
        json_free(doc);
        request_no_memory(&r->error);
        return NULL;
    }
    r->docs[r->n_docs++] = doc;
    return json_root(doc);
}

const json *api_request_keep_built(api_request *r, json_doc *doc)
{
    if (!json_finish(doc)) {
        json_free(doc);
        doc = NULL;
    }
    return api_request_keep(r, doc);
}

/* The document of the body: r->doc, or made of the text. The caller frees it. */
static err_code take_document(api_request *r, json_doc **out, const char *text, size_t len, err_detail *d)
{
    *out = r->doc;
    r->doc = NULL;
    return *out ? ERR_OK : json_parse(out, text, len, LIMIT_JSON_DEPTH, d);
}

err_code api_request_open(api_request *r, const json **root, const char *text, size_t len, err_detail *d)
{
    json_doc *doc = NULL;
    *root = NULL;
    r->error = (first_error){.code = take_document(r, &doc, text, len, d), .detail = d};
    if (r->error.code != ERR_OK) {
        return r->error.code;
    }
    r->in = chat_input_create(ARENA_BYTES);
    if (!r->in) {
        json_free(doc);
        request_no_memory(&r->error);
        return r->error.code;
    }
    r->in->keep = doc;
    gen_params_init(&r->in->params);
    if (json_is(json_root(doc), JSON_OBJECT)) {
        *root = json_root(doc);
    } else {
        request_fail(&r->error, ERR_INVALID, "", "invalid_type", "the body must be a JSON object");
    }
    return r->error.code;
}

/* The list of what was found, `[` in front; frees the text. */
static const json *keep_list(api_request *r, bytes *text, bool is_found)
{
    json_doc *doc = NULL;
    first_error *e = &r->error;
    bytes_append_char(text, ']');
    if (text->failed) {
        request_no_memory(e);
    } else if (is_found) {
        e->code = json_parse(&doc, text->data, text->len, LIMIT_JSON_DEPTH + 1, e->detail);
    }
    bytes_deinit(text);
    return doc ? api_request_keep(r, doc) : NULL;
}

static bytes begin_list(void)
{
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES + 2);
    bytes_append_char(&text, '[');
    return text;
}

const json *api_request_stored(api_request *r, const char *id, bool *is_evicted)
{
    *is_evicted = false;
    if (r->error.code != ERR_OK || !r->response_store) {
        return NULL;
    }
    bytes text = begin_list();
    const bool found = response_store_get(r->response_store, r->scope, id, clock_ms(), &text) ||
                       (r->chain && response_store_get(r->response_store, r->chain, id, clock_ms(), &text));
    *is_evicted = response_store_is_evicted(r->response_store, r->scope, id, clock_ms());
    return keep_list(r, &text, found);
}

/* Reads what --history keeps. */
static const json *read_kept(api_request *r, const char *id)
{
    err_detail d = {0};
    bytes text = begin_list();
    const err_code err = r->talks->read(r->talks->ctx, r->scope, id, &text, &d);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        r->error.code = err;
        *r->error.detail = d;
    }
    return keep_list(r, &text, err == ERR_OK);
}

const json *api_request_talk(api_request *r, const char *id)
{
    bool is_evicted;
    return r->error.code == ERR_OK && r->talks ? read_kept(r, id) : api_request_stored(r, id, &is_evicted);
}

const json *api_request_item_list(api_request *r, const char *id)
{
    bytes text = begin_list();
    const bool found =
        r->error.code == ERR_OK && r->response_store &&
        (response_store_find_item(r->response_store, r->scope, id, clock_ms(), &text) ||
         (r->chain && response_store_find_item(r->response_store, r->chain, id, clock_ms(), &text)));
    const json *list = keep_list(r, &text, found);
    return !list && r->error.code == ERR_OK && r->talks ? read_kept(r, id) : list;
}

/* ---- what every body says ---- */

static void read_max_tokens(api_request *r, const json *root)
{
    first_error *e = &r->error;
    int64_t a = -1, b = -1, predict = -1;
    request_int(e, &a, root, "max_tokens", r->may_be_silent ? 0 : 1, INT32_MAX);
    request_int(e, &b, root, "max_completion_tokens", 1, INT32_MAX);
    request_int(e, &predict, root, "n_predict", -1, INT32_MAX);
    if (a >= 0 && b > 0 && a != b) {
        request_fail(e, ERR_INVALID, "max_completion_tokens", "invalid_value",
                     "max_tokens and max_completion_tokens contradict each other");
    }
    int64_t wanted = b > 0 ? b : a >= 0 ? a : predict > 0 ? predict : -1;
    r->in->params.max_tokens = (int32_t)wanted;
}

void api_request_model(api_request *r, const json *root)
{
    const char *model = "";
    const bool is_path = json_str(json_get(root, "model"), "")[0] == '/';
    request_string(&r->error, &model, root, "model",
                   (is_path ? REQUEST_MODEL_MAX : REQUEST_MODEL_NAME_MAX) - 1);
    snprintf(r->reply.model, sizeof r->reply.model, "%s", model);
}

void api_request_generation(api_request *r, const json *root, const engine_info *info)
{
    first_error *e = &r->error;
    request_bool(e, &r->reply.stream, root, "stream");
    request_bool(e, &r->reply.include_usage, request_object(e, root, "stream_options"), "include_usage");
    request_bool(e, &r->reply.return_progress, root, "return_progress");
    request_bool(e, &r->reply.timings_per_token, root, "timings_per_token");
    api_request_model(r, root);
    request_read_sampling(e, r->in, root, info);
    request_read_timeout(e, &r->reply, root);
    read_max_tokens(r, root);
    request_read_min_tokens(e, &r->in->params, root);
}

void api_request_choices(api_request *r, const json *root, size_t n_prompts)
{
    first_error *e = &r->error;
    int64_t n = 1;
    request_int(e, &n, root, "n", 1, LIMIT_CHOICES);
    if ((size_t)n * n_prompts > LIMIT_ALL_CHOICES) {
        request_fail(e, ERR_LIMIT, "prompt", "too_many_choices",
                     "%zu prompts with %d answers each; a request may have %d answers in all", n_prompts,
                     (int)n, LIMIT_ALL_CHOICES);
    } else if (n > 1 && r->reply.plan) {
        request_fail(e, ERR_UNSUPPORTED, "n", "not_supported",
                     "n is 1 where this server runs the tools: their rounds are of one answer");
    }
    r->reply.n_choices = (int)n;
    r->in->params.n_choices = (int32_t)n;
}

void api_request_top_logprobs(api_request *r, const json *root, const char *needs)
{
    int64_t n_top = 0;
    request_int(&r->error, &n_top, root, "top_logprobs", 0, LIMIT_TOP_LOGPROBS);
    if (n_top > 0 && !r->reply.logprobs) {
        request_fail(&r->error, ERR_INVALID, "top_logprobs", "invalid_value", "top_logprobs needs %s", needs);
    }
    r->in->params.n_top_logprobs = r->reply.logprobs ? (int32_t)n_top : -1;
}

void api_request_copy_wishes(api_request *r, const reply_options *from)
{
    r->reply.logprobs = from->logprobs;
    r->reply.one_call = from->one_call;
    for (size_t i = 0; i < from->n_stops && r->error.code == ERR_OK; i++) {
        r->reply.stops[i] = strdup(from->stops[i]);
        r->reply.n_stops += r->reply.stops[i] != NULL;
        if (!r->reply.stops[i]) {
            request_no_memory(&r->error);
        }
    }
}
