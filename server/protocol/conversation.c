#include "server/protocol/conversation.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "server/protocol/video_fields.h"

void conversation_open(conversation *c, api_request *r, const json *root, const engine_info *info, size_t n)
{
    n += json_len(r->turns);
    *c = (conversation){.r = r, .content = {.r = r, .info = info}, .cap = n};
    r->in->messages = request_calloc(&r->error, r->in->arena, n, sizeof *r->in->messages);
    c->order = request_calloc(&r->error, r->in->arena, n + 1, sizeof *c->order);
    video_fields_body(&r->error, &c->content.video, &c->content.pixels, root);
}

chat_message *conversation_add(conversation *c, chat_role role)
{
    chat_input *in = c->r->in;
    const bool ok = c->r->error.code == ERR_OK && in->n_messages < c->cap;
    chat_message *m = ok ? &in->messages[in->n_messages++] : &c->spare;
    *m = (chat_message){.role = role, .is_string = true};
    if (!ok) {
        request_no_memory(&c->r->error);
    }
    return m;
}

chat_message *conversation_last(const conversation *c)
{
    const chat_input *in = c->r->in;
    return in->n_messages ? &in->messages[in->n_messages - 1] : NULL;
}

/* ---- calls and their results ---- */

/* The n items, in a larger array if the room for 1, 2, 4 ... is full; NULL without memory. */
static void *room_for_one(conversation *c, void *items, size_t n, size_t item_bytes)
{
    if ((n & (n - 1)) != 0) {
        return items;
    }
    void *larger = request_calloc(&c->r->error, c->r->in->arena, n ? 2 * n : 1, item_bytes);
    if (larger && n) {
        memcpy(larger, items, n * item_bytes);
    }
    return larger;
}

/* The call with this id that was made last; n_calls if there is none. */
static size_t find_call(const conversation *c, const char *id)
{
    for (size_t i = c->n_calls; i > 0; i--) {
        if (c->calls[i - 1].id && strcmp(c->calls[i - 1].id, id) == 0) {
            return i - 1;
        }
    }
    return c->n_calls;
}

/* Adds a call by the assistant; an id must differ from those of calls without a result. */
static void match_call(conversation *c, const char *id, const char *path)
{
    first_error *e = &c->r->error;
    const size_t same = id ? find_call(c, id) : c->n_calls;
    if (same < c->n_calls && !c->calls[same].answered) {
        request_fail(e, ERR_INVALID, path, "invalid_value",
                     "%s: an earlier call has the id %s and no result yet; ids must differ", path, id);
    }
    matched_call *calls = room_for_one(c, c->calls, c->n_calls, sizeof *calls);
    if (calls) {
        c->calls = calls;
        c->calls[c->n_calls++] = (matched_call){.id = id};
    }
}

/* Message number `message` is a result. id NULL: of the first call without one. */
static void match_result(conversation *c, const char *id, size_t message, const char *path)
{
    first_error *e = &c->r->error;
    while (c->first_open < c->n_calls && c->calls[c->first_open].answered) {
        c->first_open++;
    }
    const size_t call = id ? find_call(c, id) : c->first_open;
    if (c->n_calls == 0) {
        request_fail(e, ERR_INVALID, path, "invalid_value",
                     "%s: a result of a tool, but no call comes before it", path);
    } else if (call == c->n_calls && id) {
        request_fail(e, ERR_INVALID, path, "invalid_value", "%s: no call before it has the id %s", path, id);
    } else if (call == c->n_calls) {
        request_fail(e, ERR_INVALID, path, "invalid_value", "%s: every call before it has its result already",
                     path);
    } else if (c->calls[call].answered) {
        request_fail(e, ERR_INVALID, path, "invalid_value", "%s: the call %s has its result already", path,
                     id);
    } else {
        c->calls[call].answered = true;
        assert(message < c->cap); /* there are calls, so no message was left out */
        c->order[message] = call;
    }
}

/* Sorts consecutive results into the order of their calls. */
static void sort_results(conversation *c)
{
    chat_message *m = c->r->in->messages;
    size_t *order = c->order;
    for (size_t i = 1; i < c->r->in->n_messages; i++) {
        /* The first message is no result, as no call comes before it. */
        for (size_t k = i; m[k].role == CHAT_TOOL && m[k - 1].role == CHAT_TOOL && order[k - 1] > order[k];
             k--) {
            const chat_message message = m[k];
            const size_t call = order[k];
            m[k] = m[k - 1];
            order[k] = order[k - 1];
            m[k - 1] = message;
            order[k - 1] = call;
        }
    }
}

/* The arguments as an object that lives as long as the request. */
static const json *read_arguments(api_request *r, const json *value, const char *path)
{
    json_doc *doc = NULL;
    const char *text = json_str(value, "{}");
    text = text[0] ? text : "{}";
    if (json_is(value, JSON_OBJECT) || r->error.code != ERR_OK) {
        return value;
    }
    const err_code err = json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, NULL);
    if (err == ERR_NOMEM) {
        request_no_memory(&r->error);
        return NULL;
    }
    if (err != ERR_OK || !json_is(json_root(doc), JSON_OBJECT)) {
        json_free(doc);
        request_fail(&r->error, ERR_INVALID, path, "invalid_value", "%s must be the text of a JSON object",
                     path);
        return NULL;
    }
    return api_request_keep(r, doc);
}

void conversation_call(conversation *c, chat_message *m, const char *id, const char *name,
                       const json *arguments, const char *path)
{
    m->tool_calls = room_for_one(c, m->tool_calls, m->n_tool_calls, sizeof *m->tool_calls);
    arguments = read_arguments(c->r, arguments, path);
    match_call(c, id, path);
    if (c->r->error.code == ERR_OK) {
        m->tool_calls[m->n_tool_calls++] = (chat_tool_call){.id = id, .name = name, .arguments = arguments};
    }
}

void conversation_result(conversation *c, chat_message *m, const char *id, const char *path)
{
    m->tool_call_id = id;
    match_result(c, id, c->r->in->n_messages - 1, path);
}

void conversation_forget(conversation *c)
{
    chat_input *in = c->r->in;
    size_t n = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        if (in->messages[i].role == CHAT_SYSTEM) {
            in->messages[n++] = in->messages[i];
        }
    }
    in->n_messages = n;
    c->n_calls = c->first_open = 0;
}

/* What can be continued: an assistant's words. */
static bool can_continue(const chat_message *m)
{
    bool ok = m && m->role == CHAT_ASSISTANT && m->n_tool_calls == 0 && (m->n_parts || m->reasoning);
    for (size_t i = 0; ok && i < m->n_parts; i++) {
        ok = m->parts[i].kind == CHAT_TEXT;
    }
    return ok;
}

void conversation_close(conversation *c, const json *root)
{
    first_error *e = &c->r->error;
    chat_input *in = c->r->in;
    if (e->code == ERR_OK) {
        sort_results(c);
    }
    request_bool(e, &in->continues, root, "continue_final_message");
    in->continues = in->continues && !c->r->turns; /* its words are in the turns */
    if (in->continues && !can_continue(conversation_last(c))) {
        request_fail(e, ERR_INVALID, "continue_final_message", "invalid_value",
                     "continue_final_message needs an assistant's words as the last message");
    }
}

static size_t text_bytes(const chat_message *m, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < m[i].n_parts; k++) {
            sum += m[i].parts[k].kind == CHAT_TEXT ? m[i].parts[k].text_len : 0;
        }
    }
    return sum;
}

bool conversation_leave_out(chat_input *in, const char *param)
{
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            chat_part *part = &in->messages[i].parts[k];
            if (part->is_found && part->param && strcmp(part->param, param) == 0) {
                content_leave_out(part);
                return true;
            }
        }
    }
    return false;
}

bool conversation_drop_oldest(chat_input *in, double share)
{
    chat_message *m = in->messages;
    const double wanted = share * (double)text_bytes(m, in->n_messages);
    size_t begin = 0;
    while (begin < in->n_messages && m[begin].role == CHAT_SYSTEM) {
        begin++;
    }
    size_t end = begin;
    do {
        end++;
        while (end < in->n_messages && m[end].role != CHAT_USER) {
            end++;
        }
    } while (end < in->n_messages && (double)text_bytes(m + begin, end - begin) < wanted);
    if (end >= in->n_messages) { /* the last turn stays */
        while (end > begin && (end >= in->n_messages || m[end].role != CHAT_USER)) {
            end--;
        }
    }
    if (end <= begin) {
        return false;
    }
    memmove(m + begin, m + end, (in->n_messages - end) * sizeof *m);
    in->n_messages -= end - begin;
    return true;
}
