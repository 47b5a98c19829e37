#include "server/protocol/thinking_fields.h"

#include <string.h>

/* What the words for effort mean: whether to think, and for how many tokens (-1: no limit). */
typedef struct effort_row {
    const char *name;
    bool thinks;
    int32_t budget;
} effort_row;

static const effort_row *find_effort(const char *name)
{
    static const effort_row EFFORTS[] = {{"none", false, -1},    {"minimal", true, 128}, {"low", true, 512},
                                         {"medium", true, 1024}, {"high", true, -1},     {"xhigh", true, -1},
                                         {"max", true, -1}};
    for (size_t i = 0; i < ARRAY_LEN(EFFORTS); i++) {
        if (strcmp(EFFORTS[i].name, name) == 0) {
            return &EFFORTS[i];
        }
    }
    return NULL;
}

/* kwargs win, they are the most specific; the defaults count where the request leaves something
 * open. */
void thinking_fields_set(api_request *r, const json *kwargs, const bool *thinking, const char *effort)
{
    static const char THINKING[] = "enable_thinking", EFFORT[] = "reasoning_effort";
    if (r->error.code != ERR_OK) {
        return;
    }
    r->in->template_kwargs = kwargs;
    if (!thinking && !r->template_kwargs) { /* an effort says how to think, too */
        return;
    }
    json *all;
    json_doc *doc = json_build(&all, JSON_OBJECT);
    for (const json *v = json_child(r->template_kwargs); v; v = json_next(v)) {
        const char *key = json_key(v);
        if (!json_get(kwargs, key) && !(thinking && strcmp(key, THINKING) == 0) &&
            !(effort && strcmp(key, EFFORT) == 0)) {
            json_add_shared(doc, all, key, v);
        }
    }
    if (thinking && !json_get(kwargs, THINKING)) {
        json_add_bool(doc, all, THINKING, *thinking);
    }
    if (effort && !json_get(kwargs, EFFORT)) {
        json_add_string(doc, all, EFFORT, effort);
    }
    for (const json *v = json_child(kwargs); v; v = json_next(v)) {
        json_add_shared(doc, all, json_key(v), v);
    }
    r->in->template_kwargs = api_request_keep_built(r, doc);
}

void thinking_fields_budget(api_request *r, const json *root)
{
    static const char *const NAMES[] = {"reasoning_budget", "thinking_budget", "thinking_token_budget"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        int64_t given = INT64_MIN;
        request_int(&r->error, &given, root, NAMES[i], -1, INT32_MAX);
        if (given != INT64_MIN) { /* -1: no limit, whatever the server's default is */
            r->in->params.think_tokens = given < 0 ? INT32_MAX : (int32_t)given;
            r->gives_budget = true;
        }
    }
}

static const effort_row *read_effort(api_request *r, const char *effort, const char *param)
{
    const effort_row *row = effort ? find_effort(effort) : NULL;
    if (effort && !row) {
        request_fail(&r->error, ERR_INVALID, param, "invalid_value",
                     "%s must be none, minimal, low, medium, high, xhigh or max", param);
    }
    if (row && row->budget >= 0) {
        r->in->params.think_tokens = row->budget;
    }
    return row;
}

void thinking_fields_effort(api_request *r, const char *effort, const char *param)
{
    (void)read_effort(r, effort, param);
}

void thinking_fields_read(api_request *r, const json *root, const char *effort, const char *effort_param)
{
    const json *kwargs = request_object(&r->error, root, "chat_template_kwargs");
    const effort_row *row = read_effort(r, effort, effort_param);
    bool thinking = !row || row->thinks;
    request_bool(&r->error, &thinking, root, "enable_thinking");
    thinking_fields_budget(r, root);
    thinking = thinking && (!row || row->thinks);
    const bool says = row || json_typeof(json_get(root, "enable_thinking")) != JSON_NULL;
    thinking_fields_set(r, kwargs, says ? &thinking : NULL, row ? row->name : NULL);
}
