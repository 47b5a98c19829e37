#include "server/protocol/dialects/completion_request.h"

#include <string.h>

/* At most this many alternatives a token, as OpenAI's completions allow. */
enum { TOP_LOGPROBS_MAX = 5 };

static void read_ids(api_request *r, completion_prompt *prompt, const json *list, const char *name)
{
    first_error *e = &r->error;
    int32_t *ids = request_calloc(e, r->in->arena, json_len(list) + 1, sizeof *ids);
    for (const json *v = json_child(list); v && e->code == ERR_OK; v = json_next(v)) {
        int64_t id = 0;
        if (!json_int(v, 0, INT32_MAX, &id)) {
            request_fail(e, ERR_INVALID, name, "invalid_value",
                         "%s must be a text, a list of token ids, or a list of texts or of such lists", name);
        } else {
            ids[prompt->n_ids++] = (int32_t)id;
        }
    }
    prompt->ids = ids;
}

static void read_prompt(api_request *r, completion_prompt *prompt, const json *v, const char *name)
{
    prompt->text = json_str(v, NULL);
    if (json_is(v, JSON_ARRAY) && json_len(v) > 0) {
        read_ids(r, prompt, v, name);
    } else if (!prompt->text) {
        request_fail(&r->error, ERR_INVALID, name, v ? "invalid_type" : "missing_field",
                     "%s must be a text, a list of token ids, or a list of texts or of such lists", name);
    }
}

size_t request_prompts(api_request *r, completion_prompt *first, const json *root, const char *name,
                       size_t most)
{
    first_error *e = &r->error;
    const json *v = json_get(root, name);
    const bool is_list = json_is(v, JSON_ARRAY) && json_len(v) > 0 && !json_is(json_child(v), JSON_NUMBER);
    size_t n = 0;
    if (is_list && json_len(v) > most) {
        request_fail(e, ERR_LIMIT, name, "too_many_inputs", "%s has %zu entries; at most %zu fit", name,
                     json_len(v), most);
    }
    if (!is_list) {
        read_prompt(r, first, v, name);
        return 1;
    }
    completion_prompt *last = first;
    for (const json *one = json_child(v); one && e->code == ERR_OK; one = json_next(one)) {
        completion_prompt *next = n++ ? request_calloc(e, r->in->arena, 1, sizeof *next) : first;
        if (next) {
            last->next = next != first ? next : NULL;
            last = next;
            read_prompt(r, next, one, name);
        }
    }
    return n;
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
    if (!echo) { /* as it is behind an error, too */
        return;
    }
    r->in->params.scores_prompt = r->reply.scores_prompt = r->reply.logprobs;
    for (const completion_prompt *p = prompt; p; p = p->next) {
        if (!p->text && !r->reply.logprobs) {
            request_fail(&r->error, ERR_UNSUPPORTED, "echo", "not_supported",
                         "echo needs the prompt as text, or logprobs");
            return;
        }
        char *copy = p->text ? strdup(p->text) : NULL;
        if (!copy && p->text) {
            request_no_memory(&r->error);
            return;
        }
        r->reply.echoes[r->reply.n_echoes++] = copy;
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
    size_t n = 0;
    *prompt = (completion_prompt){0};
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return r->error.code;
    }
    other_fields_check(&r->error, root, OTHER_COMPLETION);
    r->may_be_silent = true;
    api_request_generation(r, root, info);
    read_logprobs(r, root);
    request_read_stop(&r->error, &r->reply, root);
    refuse_unsupported(&r->error, root);
    n = request_prompts(r, prompt, root, "prompt", LIMIT_ALL_CHOICES);
    read_echo(r, prompt, root);
    api_request_choices(r, root, n);
    read_best_of(&r->error, r->reply.n_choices, root);
    return r->error.code;
}

err_code completion_request_prepare(gen_request **out, const api_request *r, const completion_prompt *prompt,
                                    engine *e, err_detail *d)
{
    const gen_params *params = &r->in->params;
    gen_request *first = NULL;
    err_code err = ERR_OK;
    *out = NULL;
    for (const completion_prompt *p = prompt; p && err == ERR_OK; p = p->next) {
        gen_request *one = NULL;
        err = p->text ? engine_prepare_text(e, &one, p->text, strlen(p->text), true, r->scope, params, d)
                      : engine_prepare_tokens(e, &one, p->ids, p->n_ids, r->scope, params, d);
        if (first && one) {
            gen_request_append(first, one);
        }
        first = first ? first : one;
    }
    if (err != ERR_OK) {
        gen_request_free(first);
        return err;
    }
    *out = first;
    return ERR_OK;
}
