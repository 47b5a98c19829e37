#include "server/protocol/dialects/responses_request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "server/protocol/context_fit.h"
#include "server/protocol/conversation_items.h"
#include "server/protocol/dialects/response_items.h"
#include "server/protocol/dialects/responses_echo.h"
#include "server/protocol/response_format.h"
#include "server/protocol/thinking_fields.h"
#include "server/protocol/tool_fields.h"

enum { PATH_BYTES = ERR_PARAM_MAX, TEXT_OPTIONS_BYTES = 4 << 20 };

/* ---- identity ---- */

static bool is_lane_name(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.' && *p != '-') {
            return false;
        }
    }
    return text[0] != '\0';
}

static void read_identity(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const char *event_id = "", *stream_id = NULL, *on_disconnect = "";
    request_string(e, &event_id, root, "event_id", REQUEST_EVENT_ID_MAX);
    snprintf(r->reply.event_id, sizeof r->reply.event_id, "%s", event_id);
    request_string(e, &stream_id, root, "stream_id", REQUEST_ID_MAX);
    if (stream_id && !is_lane_name(stream_id)) {
        request_fail(e, ERR_INVALID, "stream_id", "invalid_value",
                     "stream_id may hold letters, digits, '_', '.' and '-' only");
    } else if (stream_id) {
        snprintf(r->reply.stream_id, sizeof r->reply.stream_id, "%s", stream_id);
    }
    request_string(e, &on_disconnect, root, "on_disconnect", 16);
    if (on_disconnect[0] && strcmp(on_disconnect, "continue") != 0 && strcmp(on_disconnect, "cancel") != 0) {
        request_fail(e, ERR_INVALID, "on_disconnect", "invalid_value",
                     "on_disconnect must be \"continue\" or \"cancel\"");
    }
    r->reply.cancel_on_disconnect = strcmp(on_disconnect, "cancel") == 0;
    r->reply.store = true;
    request_bool(e, &r->reply.store, root, "store");
    r->reply.store_given = json_is_true(json_get(root, "store"));
    api_request_model(r, root);
}

/* ---- input items ---- */

/* The items of the conversation that previous_response_id continues; NULL without one. */
static const json *open_previous(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const char *id = NULL;
    bool is_evicted;
    request_string(e, &id, root, "previous_response_id", REQUEST_ID_MAX);
    if (e->code != ERR_OK || !id) {
        return NULL;
    }
    const json *items = api_request_stored(r, id, &is_evicted);
    if (!items) {
        request_fail(e, ERR_INVALID, "previous_response_id", "previous_response_not_found", "%s",
                     is_evicted ? "this response had to go early, as this key has more than its share "
                                  "of what is kept, or as requests needed the memory; send the whole "
                                  "conversation in input"
                                : "this response is unknown, was not stored or is gone; send the "
                                  "whole conversation in input");
        return NULL;
    }
    return items;
}

/* The items of the conversation that `conversation` names; NULL without one. */
static const json *open_conversation(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const json *v = json_get(root, "conversation");
    const char *id = json_str(v, json_str(json_get(v, "id"), ""));
    if (json_typeof(v) == JSON_NULL || e->code != ERR_OK) {
        return NULL;
    }
    if (strncmp(id, "conv_", 5) != 0) {
        request_fail(e, ERR_INVALID, "conversation", "invalid_value",
                     "conversation must be the id of one (conv_...), or an object with its id");
    }
    const bool fits = strlen(id) < sizeof r->reply.conversation;
    const json *items = fits ? api_request_talk(r, id) : NULL;
    if (!items) {
        request_fail(e, ERR_NOT_FOUND, "conversation", "conversation_not_found",
                     "there is no such conversation, or it is no longer kept");
        return NULL;
    }
    if (json_typeof(json_get(root, "previous_response_id")) != JSON_NULL) {
        request_fail(e, ERR_INVALID, "conversation", "invalid_value",
                     "conversation and previous_response_id exclude each other");
    }
    snprintf(r->reply.conversation, sizeof r->reply.conversation, "%s", id);
    json *list;
    json_doc *doc = json_build(&list, JSON_ARRAY);
    for (const json *item = json_next(json_child(items)); item;
         item = json_next(item)) { /* behind its head */
        json_add_shared(doc, list, NULL, item);
    }
    return api_request_keep_built(r, doc);
}

/* Adds the item that a reference names. */
static void add_referenced(api_request *r, json_doc *doc, json *list, const char *id, size_t place)
{
    char path[PATH_BYTES];
    const json *found = api_request_item_list(r, id);
    const json *item = found ? response_items_find(found, id) : NULL;
    if (!item) {
        request_path(path, "input[%zu].id", place);
        request_fail(&r->error, ERR_NOT_FOUND, path, "item_not_found",
                     "%s: there is no such item, or it is no longer kept; send it whole", path);
    }
    json_add_shared(doc, list, NULL, item);
}

/* The id of the item that this one stands for; NULL if it is an item itself. */
static const char *reference_of(const json *item)
{
    const char *type =
        json_str(json_get(item, "type"), json_get(item, "role") ? "message" : "item_reference");
    return strcmp(type, "item_reference") == 0
               ? json_str(json_get(item, "id"), json_get(item, "type") ? "" : NULL)
               : NULL;
}

/* The input with whole items in place of references to them. */
static const json *resolve(api_request *r, const json *input)
{
    size_t n = 0, i = 0;
    for (const json *v = json_is(input, JSON_ARRAY) ? json_child(input) : NULL; v; v = json_next(v)) {
        n += reference_of(v) != NULL;
    }
    if (n == 0 || r->error.code != ERR_OK) {
        return input;
    }
    json *list;
    json_doc *doc = json_build(&list, JSON_ARRAY);
    for (const json *v = json_child(input); v && r->error.code == ERR_OK; v = json_next(v), i++) {
        const char *id = reference_of(v);
        if (id) {
            add_referenced(r, doc, list, id, i);
        } else {
            json_add_shared(doc, list, NULL, v);
        }
    }
    return api_request_keep_built(r, doc);
}

/* Writes the conversation so far, for the response that may continue it. One that is too long is
 * not kept: then items are empty. One with a name has to be. */
static void keep_items(api_request *r, const json *previous, const json *input)
{
    bytes *out = &r->reply.items;
    response_items_keep(out, previous);
    r->reply.n_before = out->len;
    bytes_append_str(out, out->len > 0 ? "," : "");
    response_items_keep(out, input);
    if (out->no_memory) {
        request_no_memory(&r->error);
    } else if (out->failed) {
        bytes_deinit(out);
        if (r->reply.conversation[0]) {
            request_fail(&r->error, ERR_LIMIT, "conversation", "conversation_too_large",
                         "the conversation may have %zu MiB with this input; begin another",
                         LIMIT_STORED_RESPONSE_BYTES >> 20);
        }
    }
}

/* What the reply of a compaction shows of the conversation. */
static void keep_users(api_request *r, const json *previous, const json *input)
{
    bytes users = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    response_items_users(&users, previous);
    response_items_users(&users, input);
    if (users.failed) {
        bytes_deinit(&users);
        request_no_memory(&r->error);
    }
    r->reply.fields = users.data; /* handed over */
}

static void read_input(api_request *r, const json *root, const engine_info *info, bool compacts)
{
    first_error *e = &r->error;
    const json *input = resolve(r, json_get(root, "input"));
    const char *instructions = "";
    const bool is_string = json_is(input, JSON_STRING),
               goes_on = json_is(json_get(root, "previous_response_id"), JSON_STRING);
    size_t n = is_string ? 1 : json_is(input, JSON_ARRAY) ? json_len(input) : 0;
    if ((n == 0 && !(compacts && goes_on && json_typeof(input) == JSON_NULL)) || n > LIMIT_MESSAGES) {
        const bool is_other = n == 0 && json_typeof(input) != JSON_NULL && !json_is(input, JSON_ARRAY);
        request_fail(e, ERR_INVALID, "input",
                     n          ? "too_many_messages"
                     : is_other ? "invalid_type"
                                : "missing_field",
                     "input must be a string or a list of 1 to %d items", LIMIT_MESSAGES);
    }
    const json *named = open_conversation(r, root), *previous = named ? named : open_previous(r, root);
    n += json_len(previous);
    if (n > LIMIT_MESSAGES) {
        request_fail(e, ERR_INVALID, "input", "too_many_messages",
                     "input and the conversation before it have more than %d items", LIMIT_MESSAGES);
    }
    request_string(e, &instructions, root, "instructions", LIMIT_BODY_BYTES);
    conversation c;
    conversation_open(&c, r, root, info,
                      n + 2 + conversation_items_extra(previous) + conversation_items_extra(input));
    if (instructions[0]) {
        content_read(&c.content, conversation_add(&c, CHAT_SYSTEM), json_get(root, "instructions"),
                     "instructions");
    }
    conversation_items_read(&c, previous, "previous_response_id", false);
    if (is_string) {
        content_read(&c.content, conversation_add(&c, CHAT_USER), input, "input");
    } else {
        conversation_items_read(&c, input, "input", true);
    }
    conversation_items_read(&c, r->turns, "turns", false);
    conversation_close(&c, compacts ? NULL : root);
    if (compacts && e->code == ERR_OK) {
        keep_users(r, previous, input);
        context_fit_ask_summary(r, info);
    }
    if (e->code == ERR_OK && !compacts && r->response_store && (r->reply.store || named || r->chain)) {
        keep_items(r, previous, input);
    }
}

/* ---- the rest ---- */

/* Whether a value takes at most max_bytes as JSON: ERR_OK, ERR_LIMIT, ERR_NOMEM. Null takes none. */
static err_code json_fits(const json *v, size_t max_bytes)
{
    bytes text = bytes_empty(max_bytes);
    if (json_typeof(v) == JSON_NULL) {
        return ERR_OK;
    }
    json_write(&text, v);
    const err_code err = !text.failed ? ERR_OK : text.no_memory ? ERR_NOMEM : ERR_LIMIT;
    bytes_deinit(&text);
    return err;
}

static void check_object(first_error *e, const json *root, const char *name, int max_bytes)
{
    const json *object = json_get(root, name);
    const err_code fits = json_fits(object, (size_t)max_bytes);
    if (fits == ERR_NOMEM) {
        request_no_memory(e);
    } else if (json_typeof(object) != JSON_NULL && (!json_is(object, JSON_OBJECT) || fits != ERR_OK)) {
        request_fail(e, ERR_INVALID, name, "invalid_value", "%s must be an object of at most %d bytes", name,
                     max_bytes);
    }
}

static bool is_included(const json *root, const char *name)
{
    for (const json *v = json_child(json_get(root, "include")); v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), name) == 0) {
            return true;
        }
    }
    return false;
}

static void read_background(api_request *r, const json *root)
{
    request_bool(&r->error, &r->reply.background, root, "background");
    if (r->reply.background && !r->reply.store) {
        request_fail(&r->error, ERR_INVALID, "background", "invalid_value",
                     "background needs store: true: nobody could read the response");
    }
}

static void read_effort(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const json *reasoning = request_object(e, root, "reasoning");
    const char *effort = NULL, *summary = "", *param = "reasoning.effort";
    request_string(e, &effort, reasoning, "effort", 16);
    if (!effort) {
        param = "reasoning_effort";
        request_string(e, &effort, root, "reasoning_effort", 16);
    }
    request_string(e, &summary, reasoning, "summary", sizeof r->reply.summary - 1);
    if (summary[0] && strcmp(summary, "auto") != 0 && strcmp(summary, "concise") != 0 &&
        strcmp(summary, "detailed") != 0) {
        request_fail(e, ERR_INVALID, "reasoning.summary", "invalid_value",
                     "reasoning.summary must be auto, concise or detailed");
    }
    thinking_fields_read(r, root, effort, param);
    snprintf(r->reply.summary, sizeof r->reply.summary, "%s", summary);
}

err_code responses_request_parse(api_request *r, const char *text, size_t len, bool is_event,
                                 const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    first_error *e = &r->error;
    int64_t max_tokens = -1, max_calls = 0;
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return e->code;
    }
    read_identity(r, root);
    if (is_event && strcmp(json_str(json_get(root, "type"), ""), "response.create") != 0) {
        request_fail(e, ERR_INVALID, "type", "invalid_event",
                     "a message of this size must be response.create");
    }
    other_fields_check(e, root, OTHER_RESPONSES);
    request_bool(e, &r->reply.stream, root, "stream");
    request_bool(e, &r->reply.return_progress, root, "return_progress");
    request_read_sampling(e, r->in, root, info);
    request_read_timeout(e, &r->reply, root);
    request_int(e, &max_tokens, root, "max_output_tokens", 1, INT32_MAX);
    request_int(e, &max_calls, root, "max_tool_calls", 1, INT32_MAX);
    r->reply.max_tool_calls = (int32_t)max_calls;
    r->in->params.max_tokens = (int32_t)max_tokens;
    request_read_min_tokens(e, &r->in->params, root);
    request_read_stop(e, &r->reply, root);
    check_object(e, root, "text", TEXT_OPTIONS_BYTES);
    r->reply.encrypts = is_included(root, "reasoning.encrypted_content");
    r->drops_oldest = strcmp(json_str(json_get(root, "truncation"), ""), "auto") == 0;
    read_background(r, root);
    r->reply.logprobs = is_included(root, "message.output_text.logprobs");
    api_request_top_logprobs(r, root, "\"message.output_text.logprobs\" in include");
    read_effort(r, root);
    context_fit_read_compaction(r, root, info);
    tool_fields_read(r, root, TOOLS_FLAT);
    response_format_read(r, json_get(json_get(root, "text"), "format"), "text.format");
    read_input(r, root, info, false);
    responses_echo(r, root, info);
    return e->code;
}

err_code responses_compact_parse(api_request *r, const char *text, size_t len, const engine_info *info,
                                 err_detail *d)
{
    const json *root = NULL;
    first_error *e = &r->error;
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return e->code;
    }
    api_request_model(r, root);
    if (!r->reply.model[0]) {
        request_fail(e, ERR_INVALID, "model", "missing_field",
                     "model is missing: a compaction names its model");
    }
    other_fields_check(e, root, OTHER_RESPONSES);
    request_read_timeout(e, &r->reply, root);
    if (json_typeof(json_get(root, "conversation")) != JSON_NULL) {
        request_fail(e, ERR_UNSUPPORTED, "conversation", "not_supported",
                     "a conversation is not compacted in place: send its items as input");
    }
    if (json_is_true(json_get(root, "stream"))) {
        request_fail(e, ERR_UNSUPPORTED, "stream", "not_supported", "a compaction is not streamed");
    }
    read_input(r, root, info, true);
    return e->code;
}
