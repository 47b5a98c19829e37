#include "server/protocol/context_fit.h"

#include <string.h>

#include "server/protocol/conversation.h"
#include "server/protocol/thinking_fields.h"

enum { TRIGGER_TOKENS = 100000, KEPT_USES = 3, KEPT_TURNS = 1, COMPACT_MIN = 1000, SUMMARY_SHARE = 4 };

#define TOOL_USES "clear_tool_uses_20250919"
#define THINKING  "clear_thinking_20251015"

/* ---- the fields ---- */

/* {"type": .., "value": N}: N of the one type, or -1. Errors for another type than these two. */
static void read_amount(first_error *e, const json *edit, const char *name, const char *path,
                        const char *first, int64_t *of_first, const char *second, int64_t *of_second)
{
    const json *v = json_get(edit, name);
    const char *type = json_str(json_get(v, "type"), "");
    const bool is_first = strcmp(type, first) == 0, is_second = second && strcmp(type, second) == 0;
    int64_t value = 0;
    char inner[ERR_PARAM_MAX];
    if (json_typeof(v) == JSON_NULL) {
        return;
    }
    request_path(inner, "%s.%s", path, name);
    if ((!is_first && !is_second) || !json_int(json_get(v, "value"), 0, INT32_MAX, &value)) {
        request_fail(e, ERR_INVALID, inner, "invalid_value",
                     "%s must be of type %s%s%s, with a whole number as its value", inner, first,
                     second ? " or " : "", second ? second : "");
    } else if (is_first) {
        *of_first = value;
    } else {
        *of_second = value;
        *of_first = -1;
    }
}

static void check_names(first_error *e, const json *v, bool may_be_bool, const char *path, const char *name)
{
    char inner[ERR_PARAM_MAX];
    bool ok = json_typeof(v) == JSON_NULL || json_is(v, JSON_ARRAY) || (may_be_bool && json_is(v, JSON_BOOL));
    for (const json *one = json_is(v, JSON_ARRAY) ? json_child(v) : NULL; one; one = json_next(one)) {
        ok = ok && json_is(one, JSON_STRING);
    }
    if (!ok) {
        request_path(inner, "%s.%s", path, name);
        request_fail(e, ERR_INVALID, inner, "invalid_type", "%s must be a list of the names of tools%s",
                     inner, may_be_bool ? ", true or false" : "");
    }
}

static void read_tool_uses(first_error *e, context_edit *edit, const json *v, const char *path)
{
    *edit = (context_edit){.trigger_tokens = TRIGGER_TOKENS,
                           .trigger_uses = -1,
                           .keep = KEPT_USES,
                           .spares = json_get(v, "exclude_tools"),
                           .inputs = json_get(v, "clear_tool_inputs")};
    read_amount(e, v, "trigger", path, "input_tokens", &edit->trigger_tokens, "tool_uses",
                &edit->trigger_uses);
    read_amount(e, v, "keep", path, "tool_uses", &edit->keep, NULL, NULL);
    read_amount(e, v, "clear_at_least", path, "input_tokens", &edit->at_least, NULL, NULL);
    check_names(e, edit->spares, false, path, "exclude_tools");
    check_names(e, edit->inputs, true, path, "clear_tool_inputs");
}

static void read_thinking(first_error *e, context_edit *edit, const json *v, const char *path)
{
    const json *keep = json_get(v, "keep");
    *edit = (context_edit){.is_thinking = true, .keep = KEPT_TURNS};
    if (strcmp(json_str(keep, json_str(json_get(keep, "type"), "")), "all") == 0) {
        edit->keep = INT32_MAX;
    } else {
        read_amount(e, v, "keep", path, "thinking_turns", &edit->keep, NULL, NULL);
    }
}

void context_fit_read_edits(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const json *management = request_object(e, root, "context_management");
    const json *edits = json_get(management, "edits");
    bool has[2] = {false, false}; /* of tool uses, of thinking */
    size_t i = 0;
    r->asks_edits = management != NULL;
    if (json_typeof(edits) != JSON_NULL && !json_is(edits, JSON_ARRAY)) {
        request_fail(e, ERR_INVALID, "context_management.edits", "invalid_type",
                     "context_management.edits must be a list");
    }
    for (const json *v = json_is(edits, JSON_ARRAY) ? json_child(edits) : NULL; v && e->code == ERR_OK;
         v = json_next(v), i++) {
        char path[ERR_PARAM_MAX], inner[ERR_PARAM_MAX];
        const char *type = json_str(json_get(v, "type"), "");
        const bool thinks = strcmp(type, THINKING) == 0;
        request_path(path, "context_management.edits[%zu]", i);
        request_path(inner, "%s.type", path);
        if (!thinks && strcmp(type, TOOL_USES) != 0) {
            request_fail(
                e, ERR_UNSUPPORTED, inner, "not_supported",
                "%s may be %s or %s here; a conversation is summed up by POST /v1/responses/compact, or "
                "by context_management of /v1/responses",
                inner, TOOL_USES, THINKING);
        } else if (has[thinks] || (thinks && has[false])) {
            request_fail(e, ERR_INVALID, inner, "invalid_value",
                         "%s: each edit comes once, that of thinking first", inner);
        } else {
            (thinks ? read_thinking : read_tool_uses)(e, &r->edits[r->n_edits++], v, path);
            has[thinks] = true;
        }
    }
}

void context_fit_read_compaction(api_request *r, const json *root, const engine_info *info)
{
    first_error *e = &r->error;
    const json *list = json_get(root, "context_management"), *v = json_child(list), *at;
    int64_t value = info ? info->n_ctx / 4 * 3 : COMPACT_MIN;
    if (json_typeof(list) == JSON_NULL || (json_is(list, JSON_ARRAY) && !v)) {
        return;
    }
    at = json_get(v, "compact_threshold");
    if (!json_is(list, JSON_ARRAY) || json_len(list) > 1) {
        request_fail(e, ERR_INVALID, "context_management", "invalid_value",
                     "context_management must be a list of one entry, of type compaction");
    } else if (strcmp(json_str(json_get(v, "type"), ""), "compaction") != 0) {
        request_fail(e, ERR_UNSUPPORTED, "context_management[0].type", "not_supported",
                     "context_management[0].type may be compaction");
    } else if (json_typeof(at) != JSON_NULL && !json_int(at, COMPACT_MIN, INT32_MAX, &value)) {
        request_fail(e, ERR_INVALID, "context_management[0].compact_threshold", "invalid_value",
                     "context_management[0].compact_threshold must be a number of tokens, at least %d",
                     COMPACT_MIN);
    }
    r->compact_at = value;
}

/* ---- edits ---- */

static bool is_named(const json *names, const char *name)
{
    for (const json *v = json_is(names, JSON_ARRAY) ? json_child(names) : NULL; v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), name) == 0) {
            return true;
        }
    }
    return false;
}

/* The call whose result message number `at` is; NULL if its id is not known. */
static chat_tool_call *call_of(chat_input *in, size_t at)
{
    const char *id = in->messages[at].tool_call_id;
    for (size_t i = at; id && i > 0; i--) {
        const chat_message *m = &in->messages[i - 1];
        for (size_t k = 0; k < m->n_tool_calls; k++) {
            if (m->tool_calls[k].id && strcmp(m->tool_calls[k].id, id) == 0) {
                return &m->tool_calls[k];
            }
        }
    }
    return NULL;
}

/* A copy of the messages and their calls takes the place of the ones there are, which stay as they were. */
static bool copy_messages(api_request *r)
{
    chat_input *in = r->in;
    chat_message *fresh = request_calloc(&r->error, in->arena, in->n_messages + 1, sizeof *fresh);
    if (!fresh) {
        return false;
    }
    memcpy(fresh, in->messages, in->n_messages * sizeof *fresh);
    for (size_t i = 0; i < in->n_messages; i++) {
        chat_message *m = &fresh[i];
        if (m->n_tool_calls) {
            chat_tool_call *calls = request_calloc(&r->error, in->arena, m->n_tool_calls, sizeof *calls);
            if (!calls) {
                return false;
            }
            memcpy(calls, m->tool_calls, m->n_tool_calls * sizeof *calls);
            m->tool_calls = calls;
        }
    }
    in->messages = fresh;
    return true;
}

static chat_part *one_part(api_request *r, const char *text, size_t len)
{
    chat_part *part = request_calloc(&r->error, r->in->arena, 1, sizeof *part);
    if (part) {
        *part = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = len};
    }
    return part;
}

static void clear_result(api_request *r, chat_message *m)
{
    static const char WORDS[] = "[this result was left out to save room]";
    chat_part *part = one_part(r, WORDS, sizeof WORDS - 1);
    if (part) {
        m->parts = part;
        m->n_parts = 1;
        m->is_string = true;
    }
}

/* Clears all uses of tools but the last; returns how many. n: the prompt's tokens. */
static size_t clear_tool_uses(api_request *r, const context_edit *edit, int64_t n)
{
    chat_input *in = r->in;
    json *none;
    json_doc *doc = json_build(&none, JSON_OBJECT);
    const json *empty = api_request_keep_built(r, doc);
    int64_t left = 0;
    size_t cleared = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        left += in->messages[i].role == CHAT_TOOL;
    }
    const bool is_due = edit->trigger_uses >= 0 ? left > edit->trigger_uses : n > edit->trigger_tokens;
    for (size_t i = 0; is_due && i < in->n_messages && left > edit->keep && r->error.code == ERR_OK; i++) {
        chat_message *m = &in->messages[i];
        if (m->role != CHAT_TOOL) {
            continue;
        }
        left--;
        chat_tool_call *call = call_of(in, i);
        const char *name = call && call->name ? call->name : "";
        if (is_named(edit->spares, name)) {
            continue;
        }
        clear_result(r, m);
        if (call && (json_is_true(edit->inputs) || is_named(edit->inputs, name))) {
            call->arguments = empty;
        }
        cleared++;
    }
    return cleared;
}

/* Clears the thoughts of all turns of the assistant but the last; returns of how many. A turn reaches from one
 * word of the user to the next, whatever tools were called in it. */
static size_t clear_thinking(api_request *r, const context_edit *edit)
{
    chat_input *in = r->in;
    int64_t turn = 0;
    size_t cleared = 0;
    bool thinks = false, counts = false;
    for (size_t i = in->n_messages; i > 0; i--) {
        chat_message *m = &in->messages[i - 1];
        if (m->role == CHAT_USER) {
            turn += thinks;
            thinks = counts = false;
        } else if (m->role == CHAT_ASSISTANT && m->reasoning && m->reasoning[0]) {
            thinks = true;
            if (turn >= edit->keep) {
                m->reasoning = NULL;
                cleared += !counts;
                counts = true;
            }
        }
    }
    return cleared;
}

/* ---- summaries ---- */

void context_fit_ask_summary(api_request *r, const engine_info *info)
{
    static const char QUESTION[] =
        "Sum up this conversation, so that it can go on from your summary alone: its text will be gone. "
        "Say what the user wants and has said about it, in the user's words where they matter; what was "
        "found out and decided; names, numbers, paths and results that are still needed; what is done and "
        "what is open. Write in the language of the conversation. Answer with the summary and nothing else.";
    chat_input *in = r->in;
    const bool thinks = false;
    chat_part *part = one_part(r, QUESTION, sizeof QUESTION - 1);
    if (!part || !copy_messages(r)) {
        return;
    }
    in->messages[in->n_messages++] =
        (chat_message){.role = CHAT_USER, .parts = part, .n_parts = 1, .is_string = true};
    thinking_fields_set(r, NULL, info && info->has_thinking ? &thinks : NULL, NULL);
    in->continues = in->form_is_calls = false;
    in->form = NULL;
    in->params.max_tokens = info && info->n_ctx / SUMMARY_SHARE > 0 ? info->n_ctx / SUMMARY_SHARE : -1;
    in->params.min_tokens = 1; /* a summary of nothing would stand for everything */
    in->params.n_top_logprobs = -1;
}

/* Whether there is more than what the system says and the user's last word. */
static bool has_past(const chat_input *in)
{
    size_t n = in->n_messages;
    while (n > 0 && in->messages[n - 1].role == CHAT_USER) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        if (in->messages[i].role != CHAT_SYSTEM) {
            return true;
        }
    }
    return false;
}

/* ---- preparing ---- */

static err_code prepare_once(context_fit *fit, gen_request **out, err_detail *d)
{
    return fit->prepare(out, fit->r, fit->prompt, fit->e, fit->hooks, d);
}

/* Damaged images that a tool has brought become words. */
static err_code prepare_seen(context_fit *fit, gen_request **out, err_detail *d)
{
    err_code err = prepare_once(fit, out, d);
    while (err != ERR_OK && conversation_leave_out(fit->r->in, d->param)) {
        *d = (err_detail){0};
        err = prepare_once(fit, out, d);
    }
    return err;
}

/* The prompt's tokens, also of one that is too long; -1: not known. */
static int64_t count_of(err_code err, const gen_request *request, const err_detail *d)
{
    return err == ERR_OK                         ? gen_request_get_info(request).n_prompt_tokens
           : err == ERR_CONTEXT && d->amount > 0 ? d->amount
                                                 : -1;
}

static void tell(bytes *out, const context_edit *edit, size_t cleared, int64_t tokens)
{
    bytes_json(out, "%-s{\"type\":%s,%s:%lld,\"cleared_input_tokens\":%lld}", out->len > 1 ? "," : "",
               edit->is_thinking ? THINKING : TOOL_USES,
               edit->is_thinking ? "cleared_thinking_turns" : "cleared_tool_uses", (long long)cleared,
               (long long)(tokens > 0 ? tokens : 0));
}

/* Applies one edit to what is prepared; nothing changes if it has nothing to clear. */
static err_code apply(context_fit *fit, const context_edit *edit, gen_request **out, err_code err,
                      err_detail *d)
{
    api_request *r = fit->r;
    chat_message *const before = r->in->messages;
    const int64_t n = count_of(err, *out, d);
    gen_request *next = NULL;
    err_detail told = {0};
    size_t cleared = 0;
    if (n < 0) {
        return err;
    }
    if (copy_messages(r)) {
        cleared = edit->is_thinking ? clear_thinking(r, edit) : clear_tool_uses(r, edit, n);
    }
    if (r->error.code != ERR_OK) { /* without memory */
        return r->error.code;
    }
    const err_code then = cleared ? prepare_seen(fit, &next, &told) : ERR_OK;
    const int64_t left = cleared ? count_of(then, next, &told) : n;
    if (!cleared || (left >= 0 && n - left < edit->at_least)) {
        gen_request_free(next);
        r->in->messages = before;
        return err;
    }
    tell(&fit->told, edit, cleared, n - left);
    gen_request_free(*out);
    *out = next;
    *d = told;
    return then;
}

static err_code apply_all(context_fit *fit, gen_request **out, err_code err, err_detail *d)
{
    const api_request *r = fit->r;
    if (!r->asks_edits) {
        return err;
    }
    bytes_append_char(&fit->told, '[');
    for (size_t i = 0; i < r->n_edits; i++) {
        err = apply(fit, &r->edits[i], out, err, d);
    }
    bytes_append_char(&fit->told, ']');
    return fit->told.failed ? err_set(d, ERR_NOMEM, "no memory for this request") : err;
}

err_code context_fit_prepare(gen_request **out, context_fit *fit, err_detail *d)
{
    api_request *r = fit->r;
    *out = NULL;
    err_code err = prepare_seen(fit, out, d);
    fit->n_original = count_of(err, *out, d);
    err = apply_all(fit, out, err, d);
    if (err == ERR_OK && r->compact_at > 0 && fit->n_original > r->compact_at && has_past(r->in)) {
        gen_request_free(*out);
        *out = NULL;
        fit->asks_summary = true;
        context_fit_ask_summary(r, engine_get_info(fit->e));
        err = r->error.code == ERR_OK ? prepare_seen(fit, out, d) : r->error.code;
    }
    if (err != ERR_OK) { /* of an edit there may be one without it */
        gen_request_free(*out);
        *out = NULL;
    }
    while (err == ERR_CONTEXT && r->drops_oldest && d->amount > 0 && /* a quarter is left for the answer */
           conversation_drop_oldest(r->in, 1.0 - 0.75 * (double)d->limit / (double)d->amount)) {
        *d = (err_detail){0};
        err = prepare_once(fit, out, d);
    }
    return err;
}
