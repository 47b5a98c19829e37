#include "server/protocol/dialects/completion_request.h"

#include <string.h>

/* At most this many alternatives a token, as OpenAI's completions allow. */
enum { TOP_LOGPROBS_MAX = 5 };

static void read_ids(api_request *r, completion_prompt *prompt, const json *list)
{
    first_error *e = &r->error;
    int32_t *ids = request_calloc(e, r->in->arena, json_len(list), sizeof *ids);
    for (const json *v = json_child(list); v && e->code == ERR_OK; v = json_next(v)) {
        int64_t id = 0;
        if (!json_int(v, 0, INT32_MAX, &id)) {
            request_fail(e, ERR_INVALID, "prompt", "invalid_value",
                         "prompt must be one text, or a list of token ids");
        }
        ids[prompt->n_ids++] = (int32_t)id;
    }
    prompt->ids = ids;
}

static void read_prompt(api_request *r, completion_prompt *prompt, const json *root)
{
    const json *v = json_get(root, "prompt");
    if (json_is(v, JSON_ARRAY) && json_len(v) == 1 && !json_is(json_child(v), JSON_NUMBER)) {
        v = json_child(v); /* a list of one prompt */
    }
    prompt->text = json_str(v, NULL);
    if (json_is(v, JSON_ARRAY) && json_is(json_child(v), JSON_NUMBER)) {
        read_ids(r, prompt, v);
    } else if (json_is(v, JSON_ARRAY) && json_len(v) > 1) {
        request_fail(&r->error, ERR_UNSUPPORTED, "prompt", "not_supported",
                     "one prompt a request: send %zu requests, they run side by side", json_len(v));
    } else if (!prompt->text) {
        request_fail(&r->error, ERR_INVALID, "prompt", v ? "invalid_type" : "missing_field",
                     "prompt must be one text, or a list of token ids");
    }
}

static void read_logprobs(api_request *r, const json *root)
{
    int64_t n = -1;
    request_int(&r->error, &n, root, "logprobs", 0, TOP_LOGPROBS_MAX);
    r->reply.logprobs = n >= 0;
    r->in->params.n_top_logprobs = (int32_t)n;
}

static void read_echo(api_request *r, const completion_prompt *prompt, const json *root)
{
    bool echo = false;
    request_bool(&r->error, &echo, root, "echo");
    if (!echo || r->error.code != ERR_OK) {
        return;
    }
    if (!prompt->text) {
        request_fail(&r->error, ERR_UNSUPPORTED, "echo", "not_supported", "echo needs the prompt as text");
        return;
    }
    r->reply.echo = strdup(prompt->text);
    if (!r->reply.echo) {
        request_no_memory(&r->error);
    }
}

static void refuse_unsupported(first_error *e, const json *root)
{
    const char *suffix = "";
    request_string(e, &suffix, root, "suffix", LIMIT_BODY_BYTES);
    if (suffix[0]) {
        request_fail(e, ERR_UNSUPPORTED, "suffix", "not_supported",
                     "this model cannot fill a gap: suffix is not supported");
    }
}

/* Answers are not ranked: as many are drawn as are returned. */
static void read_best_of(first_error *e, int n, const json *root)
{
    int64_t best_of = n;
    request_int(e, &best_of, root, "best_of", 1, LIMIT_CHOICES);
    if (best_of != n) {
        request_fail(
            e, ERR_UNSUPPORTED, "best_of", "not_supported",
            "best_of is %d and n is %d: answers are not ranked here; leave best_of out, ask for n answers "
            "with logprobs and choose among them",
            (int)best_of, n);
    }
}

err_code completion_request_parse(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                                  const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    *prompt = (completion_prompt){0};
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return r->error.code;
    }
    other_fields_check(&r->error, root, OTHER_COMPLETION);
    api_request_generation(r, root, info);
    read_logprobs(r, root);
    request_read_stop(&r->error, &r->reply, root);
    refuse_unsupported(&r->error, root);
    read_prompt(r, prompt, root);
    read_echo(r, prompt, root);
    api_request_choices(r, root, 1);
    read_best_of(&r->error, r->reply.n_choices, root);
    return r->error.code;
}

err_code completion_request_prepare(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                    engine *e, err_detail *d)
{
    return prompt->text
               ? engine_prepare_text(e, out, prompt->text, strlen(prompt->text), true, r->scope,
                                     &r->in->params, d)
               : engine_prepare_tokens(e, out, prompt->ids, prompt->n_ids, r->scope, &r->in->params, d);
}
