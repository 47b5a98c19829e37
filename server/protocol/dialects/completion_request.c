#include "server/protocol/dialects/completion_request.h"

#include <string.h>

#include "server/protocol/other_fields.h"

/* At most this many alternatives a token, as OpenAI's completions allow. */
enum { TOP_LOGPROBS_MAX = 5 };

static err_code read_ids(api_request *r, completion_prompt *prompt, const json *list, err_detail *d)
{
    const size_t n = json_len(list);
    int32_t *ids = arena_calloc(r->in->arena, n + 1, sizeof *ids);
    if (!ids) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        int64_t id = 0;
        if (!json_int(v, 0, INT32_MAX, &id)) {
            return err_set_param(d, ERR_INVALID, "prompt", "invalid_value",
                                 "prompt must be one text, or a list of token ids");
        }
        ids[prompt->n_ids++] = (int32_t)id;
    }
    prompt->ids = ids;
    return ERR_OK;
}

static err_code read_prompt(api_request *r, completion_prompt *prompt, const json *root, err_detail *d)
{
    const json *v = json_get(root, "prompt");
    if (json_is(v, JSON_ARRAY) && json_len(v) == 1 && !json_is(json_child(v), JSON_NUMBER)) {
        v = json_child(v); /* a list of one prompt */
    }
    if (json_is(v, JSON_ARRAY) && json_is(json_child(v), JSON_NUMBER)) {
        return read_ids(r, prompt, v, d);
    }
    if (json_is(v, JSON_ARRAY) && json_len(v) > 1) {
        return err_set_param(d, ERR_UNSUPPORTED, "prompt", "not_supported",
                             "one prompt a request: send %zu requests, they run side by side", json_len(v));
    }
    prompt->text = json_str(v, NULL);
    if (!prompt->text) {
        return err_set_param(d, ERR_INVALID, "prompt", v ? "invalid_type" : "missing_field",
                             "prompt must be one text, or a list of token ids");
    }
    return ERR_OK;
}

static err_code read_logprobs(api_request *r, const json *root, err_detail *d)
{
    int64_t n = -1;
    err_code err = request_int(&n, root, "logprobs", 0, TOP_LOGPROBS_MAX, d);
    r->reply.logprobs = n >= 0;
    r->in->params.n_top_logprobs = (int32_t)n;
    return err;
}

static err_code read_echo(api_request *r, const completion_prompt *prompt, const json *root, err_detail *d)
{
    bool echo = false;
    err_code err = request_bool(&echo, root, "echo", d);
    if (err != ERR_OK || !echo) {
        return err;
    }
    if (!prompt->text) {
        return err_set_param(d, ERR_UNSUPPORTED, "echo", "not_supported", "echo needs the prompt as text");
    }
    r->reply.echo = strdup(prompt->text);
    return r->reply.echo ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for this request");
}

static err_code refuse_unsupported(const json *root, err_detail *d)
{
    int64_t best_of = 1;
    const char *suffix = "";
    err_code err = request_int(&best_of, root, "best_of", 1, 1, d);
    if (err == ERR_OK) {
        err = request_string(&suffix, root, "suffix", LIMIT_BODY_BYTES, d);
    }
    if (err == ERR_OK && suffix[0]) {
        err = err_set_param(d, ERR_UNSUPPORTED, "suffix", "not_supported",
                            "this model cannot fill a gap: suffix is not supported");
    }
    return err;
}

err_code completion_request_parse(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                  const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    *prompt = (completion_prompt){0};
    err_code err = api_request_open(r, &root, text, len, d);
    if (err == ERR_OK) {
        err = other_fields_check(root, OTHER_COMPLETION, d);
    }
    if (err == ERR_OK) {
        err = api_request_generation(r, root, info, d);
    }
    if (err == ERR_OK) {
        err = read_logprobs(r, root, d);
    }
    if (err == ERR_OK) {
        err = request_read_stop(&r->reply, root, d);
    }
    if (err == ERR_OK) {
        err = refuse_unsupported(root, d);
    }
    if (err == ERR_OK) {
        err = read_prompt(r, prompt, root, d);
    }
    return err == ERR_OK ? read_echo(r, prompt, root, d) : err;
}

err_code completion_request_prepare(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                    engine *e, err_detail *d)
{
    return prompt->text
               ? engine_prepare_text(e, out, prompt->text, strlen(prompt->text), true, r->scope,
                                     &r->in->params, d)
               : engine_prepare_tokens(e, out, prompt->ids, prompt->n_ids, r->scope, &r->in->params, d);
}
