#include "server/protocol/dialects/messages_request.h"

#include <string.h>

#include "server/protocol/context_fit.h"
#include "server/protocol/conversation_items.h"
#include "server/protocol/dialects/messages_content.h"
#include "server/protocol/response_format.h"
#include "server/protocol/thinking_fields.h"
#include "server/protocol/tool_fields.h"

enum { PATH_BYTES = ERR_PARAM_MAX };

static bool is_null(const json *v)
{
    return json_typeof(v) == JSON_NULL;
}

static bool has_type(const json *block, const char *type)
{
    return strcmp(json_str(json_get(block, "type"), ""), type) == 0;
}

static void bad(first_error *e, const char *path, const char *what)
{
    request_fail(e, ERR_INVALID, path, "invalid_value", "%s %s", path, what);
}

/* The first of a list's values; NULL for what is no list. */
static const json *first_of(const json *list)
{
    return json_is(list, JSON_ARRAY) ? json_child(list) : NULL;
}

/* ---- content ---- */

/* Blocks that stand apart in a chat: results, calls and thoughts. */
static bool is_apart(const json *block)
{
    return has_type(block, "tool_result") || has_type(block, "tool_use") || has_type(block, "thinking") ||
           has_type(block, "redacted_thinking") || has_type(block, "mcp_tool_use") ||
           has_type(block, "mcp_tool_result"); /* of a tool that has run here: its words follow */
}

/* A string as it is, a list without the blocks that stand apart. Only an assistant's message may
 * have nothing else. */
static void read_content(conversation *c, chat_message *m, const json *content, const char *path)
{
    first_error *e = &c->r->error;
    size_t i = 0, n_parts = 0;
    if (json_is(content, JSON_STRING)) {
        content_read(&c->content, m, content, path);
        return;
    }
    if (!json_is(content, JSON_ARRAY)) {
        bad(e, path, "must be a string or a list of blocks");
    }
    for (const json *v = first_of(content); v; v = json_next(v)) {
        n_parts += is_apart(v) ? 0 : messages_content_parts(v);
    }
    if (n_parts == 0 && json_child(content)) {
        if (m->role != CHAT_ASSISTANT) {
            request_fail(e, ERR_INVALID, path, "missing_field", "%s is missing", path);
        }
        return; /* no words: as a chat's message of calls alone */
    }
    content_begin(&c->content, m, n_parts, path);
    for (const json *v = first_of(content); v && e->code == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        if (!is_apart(v)) {
            request_path(inner, "%s[%zu]", path, i);
            messages_content_read(&c->content, m, v, inner);
        }
    }
}

/* ---- messages ---- */

static void read_result(conversation *c, const json *block, const char *path)
{
    char inner[PATH_BYTES];
    const json *content = json_get(block, "content");
    const char *id = json_str(json_get(block, "tool_use_id"), NULL);
    if (!id) {
        bad(&c->r->error, path, "needs a tool_use_id");
    }
    chat_message *m = conversation_add(c, CHAT_TOOL);
    request_path(inner, "%s.content", path);
    if (is_null(content)) {
        content_begin(&c->content, m, 1, inner);
        content_add_text(&c->content, m, "");
        m->is_string = true;
    } else {
        read_content(c, m, content, inner);
    }
    request_path(inner, "%s.tool_use_id", path);
    conversation_result(c, m, id, inner);
}

/* The results among a user's blocks as messages of their own; the rest, if there is any, as one
 * behind them. */
static void read_user(conversation *c, const json *content, const char *path)
{
    size_t i = 0, n_results = 0;
    for (const json *v = first_of(content); v && c->r->error.code == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        request_path(inner, "%s[%zu]", path, i);
        if (has_type(v, "tool_result")) {
            n_results++;
            read_result(c, v, inner);
        } else if (is_apart(v)) {
            bad(&c->r->error, inner, "may stand in an assistant's message only");
        }
    }
    if (n_results == 0 || n_results < i) {
        read_content(c, conversation_add(c, CHAT_USER), content, path);
    }
}

static void read_call(conversation *c, chat_message *m, const json *block, const char *path)
{
    const char *id = json_str(json_get(block, "id"), NULL), *name = json_str(json_get(block, "name"), NULL);
    const json *input = json_get(block, "input");
    if (!id || !name || !json_is(input, JSON_OBJECT)) {
        bad(&c->r->error, path, "needs an id, a name and an input that is an object");
    }
    conversation_call(c, m, id, name, input, path);
}

static void read_assistant(conversation *c, const json *content, const char *path)
{
    first_error *e = &c->r->error;
    chat_message *m = conversation_add(c, CHAT_ASSISTANT);
    size_t i = 0;
    bytes thoughts = bytes_empty(LIMIT_BODY_BYTES);
    for (const json *v = first_of(content); v && e->code == ERR_OK; v = json_next(v), i++) {
        char inner[PATH_BYTES];
        request_path(inner, "%s[%zu]", path, i);
        if (has_type(v, "thinking")) {
            bytes_append_str(&thoughts, json_str(json_get(v, "thinking"), ""));
        } else if (has_type(v, "tool_use")) {
            read_call(c, m, v, inner);
        } else if (has_type(v, "tool_result")) {
            bad(e, inner, "may stand in a user's message only");
        }
    }
    read_content(c, m, content, path);
    if (thoughts.failed) {
        request_no_memory(e);
    } else if (thoughts.len > 0) {
        m->reasoning = request_strdup(e, c->r->in->arena, bytes_str(&thoughts));
    }
    bytes_deinit(&thoughts);
}

/* How many messages these are in a chat. */
static size_t count_messages(const json *messages)
{
    size_t n = 0;
    for (const json *v = first_of(messages); v; v = json_next(v)) {
        size_t n_blocks = 0, n_results = 0;
        for (const json *block = first_of(json_get(v, "content")); block; block = json_next(block)) {
            n_blocks++;
            n_results += has_type(block, "tool_result");
        }
        n += n_results + (n_results == 0 || n_results < n_blocks);
    }
    return n;
}

/* An answer that the client began is continued. */
static void read_messages(api_request *r, const json *root, const engine_info *info)
{
    first_error *e = &r->error;
    const json *messages = json_get(root, "messages"), *system = json_get(root, "system");
    const bool has_system = !is_null(system) && json_str(system, "x")[0];
    const size_t n = count_messages(messages) + has_system;
    size_t i = 0;
    if (!first_of(messages)) {
        request_fail(e, ERR_INVALID, "messages", "missing_field",
                     "messages must be a list of at least one message");
    }
    if (n > LIMIT_MESSAGES) {
        request_fail(e, ERR_INVALID, "messages", "too_many_messages",
                     "messages must be a list of 1 to %d messages", LIMIT_MESSAGES);
    }
    conversation c;
    conversation_open(&c, r, root, info, n);
    if (has_system) {
        read_content(&c, conversation_add(&c, CHAT_SYSTEM), system, "system");
    }
    for (const json *v = first_of(messages); v && e->code == ERR_OK; v = json_next(v), i++) {
        char path[PATH_BYTES];
        const char *role = json_str(json_get(v, "role"), "");
        const bool is_system = strcmp(role, "system") == 0;
        if (!is_system && strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0) {
            request_path(path, "messages[%zu].role", i);
            bad(e, path, "must be user, assistant or system");
        }
        request_path(path, "messages[%zu].content", i);
        if (is_system) {
            read_content(&c, conversation_add(&c, CHAT_SYSTEM), json_get(v, "content"), path);
        } else {
            (role[0] == 'u' ? read_user : read_assistant)(&c, json_get(v, "content"), path);
        }
    }
    const chat_message *last = conversation_last(&c);
    r->in->continues = last && last->role == CHAT_ASSISTANT && last->n_tool_calls == 0 && !r->turns;
    conversation_items_read(&c, r->turns, "turns", false);
    conversation_close(&c, NULL);
}

/* ---- the fields of a chat that these mean ---- */

/* The server of mcp_servers that has this name; NULL: none. */
static const json *server_named(const json *servers, const char *name)
{
    for (const json *v = first_of(servers); v; v = json_next(v)) {
        if (strcmp(json_str(json_get(v, "name"), ""), name) == 0) {
            return v;
        }
    }
    return NULL;
}

/* The names of the tools that a toolset turns on, where it does not take all of them. */
static void add_enabled(api_request *r, json_doc *doc, json *entry, const char *label, const json *toolset)
{
    const json *configs = json_get(toolset, "configs"),
               *standard = json_get(json_get(toolset, "default_config"), "enabled");
    if (!json_child(configs) && !json_is(standard, JSON_BOOL)) {
        return;
    }
    json *names = json_add_array(doc, entry, "allowed_tools");
    mcp_catalog *servers = mcp_wait_catalog(r->mcp, label, r->may_go_on, r->may_ctx);
    const mcp_server_view *v = mcp_catalog_find(servers, label);
    for (size_t i = 0; v && v->offer && i < v->offer->n_tools; i++) {
        const char *name = v->offer->tools[i].name;
        const json *own = json_get(json_get(configs, name), "enabled");
        own = json_is(own, JSON_BOOL) ? own : standard;
        if (!json_is(own, JSON_BOOL) || json_is_true(own)) {
            json_add_string(doc, names, NULL, name);
        }
    }
    mcp_catalog_release(servers);
}

/* A server of mcp_servers as the entry of a request whose tools run here. toolset: what `tools` says of it (NULL:
 * nothing, the older form, whose settings stand in the server). */
static void add_server(api_request *r, json_doc *doc, json *list, const json *server, const json *toolset)
{
    const json *settings = json_get(server, "tool_configuration"),
               *allowed = json_get(settings, "allowed_tools");
    const char *label = json_str(json_get(server, "name"), "");
    if (json_is(json_get(settings, "enabled"), JSON_BOOL) && !json_is_true(json_get(settings, "enabled"))) {
        return;
    }
    json *entry = json_add_object(doc, list, NULL);
    json_add_string(doc, entry, "type", "mcp");
    json_add_string(doc, entry, "server_label", label);
    json_add_shared(doc, entry, "server_url", json_get(server, "url"));
    if (!is_null(json_get(server, "authorization_token"))) { /* which is refused, by the name of Responses */
        json_add_shared(doc, entry, "authorization", json_get(server, "authorization_token"));
    }
    if (toolset) {
        add_enabled(r, doc, entry, label, toolset);
    } else if (!is_null(allowed)) {
        json_add_shared(doc, entry, "allowed_tools", allowed);
    }
}

/* The tools of a toolset, at tools[i]. */
static void add_toolset(api_request *r, json_doc *doc, json *list, const json *servers, const json *v,
                        const char *path)
{
    const char *name = json_str(json_get(v, "mcp_server_name"), "");
    const json *server = server_named(servers, name);
    if (server) {
        add_server(r, doc, list, server, v);
    } else {
        request_fail(&r->error, ERR_INVALID, path, "unknown_server",
                     "%s: mcp_server_name must be that of a server in mcp_servers", path);
    }
}

/* Those of mcp_servers that no toolset names. */
static void add_servers(api_request *r, json_doc *doc, json *list, const json *servers, const json *tools)
{
    size_t i = 0;
    for (const json *s = first_of(servers); s; s = json_next(s), i++) {
        char path[PATH_BYTES];
        bool is_named = false;
        request_path(path, "mcp_servers[%zu]", i);
        if (!json_is(json_get(s, "name"), JSON_STRING) ||
            server_named(servers, json_str(json_get(s, "name"), "")) != s) {
            bad(&r->error, path, "needs a name of its own");
        }
        for (const json *t = first_of(tools); t; t = json_next(t)) {
            is_named = is_named ||
                       (has_type(t, "mcp_toolset") && strcmp(json_str(json_get(t, "mcp_server_name"), ""),
                                                             json_str(json_get(s, "name"), "")) == 0);
        }
        if (!is_named) {
            add_server(r, doc, list, s, NULL);
        }
    }
}

static void add_tools(api_request *r, json_doc *doc, json *chat, const json *tools, const json *servers)
{
    first_error *e = &r->error;
    size_t i = 0;
    if (is_null(tools) && is_null(servers)) {
        return;
    }
    if (!is_null(tools) && !json_is(tools, JSON_ARRAY)) {
        bad(e, "tools", "must be a list");
    }
    if (!is_null(servers) && !json_is(servers, JSON_ARRAY)) {
        bad(e, "mcp_servers", "must be a list");
    }
    json *list = json_add_array(doc, chat, "tools");
    add_servers(r, doc, list, servers, tools);
    for (const json *v = first_of(tools); v; v = json_next(v), i++) {
        char path[PATH_BYTES];
        request_path(path, "tools[%zu]", i);
        if (has_type(v, "mcp")) { /* of a server whose tools run here */
            json_add_shared(doc, list, NULL, v);
            continue;
        }
        if (has_type(v, "mcp_toolset")) {
            add_toolset(r, doc, list, servers, v, path);
            continue;
        }
        if (!is_null(json_get(v, "type")) && !has_type(v, "custom")) {
            request_fail(e, ERR_UNSUPPORTED, path, "not_supported",
                         "%s: only tools of your own (type \"custom\") are understood", path);
        }
        if (!json_is(json_get(v, "name"), JSON_STRING) ||
            !json_is(json_get(v, "input_schema"), JSON_OBJECT)) {
            bad(e, path, "needs a name and an input_schema that is an object");
        }
        json *tool = json_add_object(doc, list, NULL);
        json_add_string(doc, tool, "type", "function");
        json *function = json_add_object(doc, tool, "function");
        json_add_shared(doc, function, "name", json_get(v, "name"));
        if (!is_null(json_get(v, "description"))) {
            json_add_shared(doc, function, "description", json_get(v, "description"));
        }
        json_add_shared(doc, function, "parameters", json_get(v, "input_schema"));
    }
}

static void add_tool_choice(json_doc *doc, json *chat, first_error *e, const json *wish)
{
    static const char *const NAMES[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    bool one_call = false;
    if (is_null(wish)) {
        return;
    }
    request_bool(e, &one_call, wish, "disable_parallel_tool_use");
    json_add_bool(doc, chat, "parallel_tool_calls", !one_call);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (has_type(wish, NAMES[i][0])) {
            json_add_string(doc, chat, "tool_choice", NAMES[i][1]);
            return;
        }
    }
    if (!has_type(wish, "tool") || !json_is(json_get(wish, "name"), JSON_STRING)) {
        bad(e, "tool_choice", "must be of type auto, any or none, or of type tool with a name");
    }
    json *choice = json_add_object(doc, chat, "tool_choice");
    json_add_string(doc, choice, "type", "function");
    json_add_shared(doc, json_add_object(doc, choice, "function"), "name", json_get(wish, "name"));
}

static void check_stops(first_error *e, const json *stops)
{
    bool ok = is_null(stops) || (json_is(stops, JSON_ARRAY) && json_len(stops) <= LIMIT_STOP_STRINGS);
    for (const json *v = ok ? json_child(stops) : NULL; v; v = json_next(v)) {
        const size_t n = strlen(json_str(v, ""));
        ok = ok && n > 0 && n <= LIMIT_STOP_BYTES;
    }
    if (!ok) {
        request_fail(e, ERR_INVALID, "stop_sequences", "invalid_value",
                     "stop_sequences must be a list of at most %d strings of 1 to %d bytes",
                     LIMIT_STOP_STRINGS, LIMIT_STOP_BYTES);
    }
}

/* chat: the fields that a chat has too. */
static void read_thinking(api_request *r, const json *thinking, const char *effort, const json *chat)
{
    int64_t budget = -1;
    const bool thinks = has_type(thinking, "enabled") || has_type(thinking, "adaptive");
    if (!is_null(thinking) && !thinks && !has_type(thinking, "disabled")) {
        bad(&r->error, "thinking", "must be of type enabled, adaptive or disabled");
    }
    request_int(&r->error, &budget, thinking, "budget_tokens", 1, INT32_MAX);
    if (thinks && budget > 0) {
        r->in->params.think_tokens = (int32_t)budget;
        r->gives_budget = true;
    }
    if (effort) {
        const int32_t given = r->in->params.think_tokens;
        thinking_fields_effort(r, effort, "output_config.effort");
        r->in->params.think_tokens = thinks && budget <= 0 ? r->in->params.think_tokens : given;
    }
    thinking_fields_budget(r, chat);
    thinking_fields_set(r, NULL, &thinks, thinks ? effort : NULL);
}

/* ---- threads ---- */

/* What a thread keeps beside its messages, as the first of its items. */
static void keep_thread(api_request *r, const json *root)
{
    static const char *const FIXED[] = {"system", "tools"};
    bytes *out = &r->reply.items;
    const char *comma = "";
    bytes_append_char(out, '{');
    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        const json *v = json_get(root, FIXED[i]);
        if (!is_null(v)) {
            bytes_json(out, "%-s%s:", comma, FIXED[i]);
            json_write(out, v);
            comma = ",";
        }
    }
    bytes_append_char(out, '}');
    for (const json *v = first_of(json_get(root, "messages")); v; v = json_next(v)) {
        bytes_append_char(out, ',');
        json_write(out, v);
    }
    if (out->no_memory) {
        request_no_memory(&r->error);
    } else if (out->failed) { /* it is too long: nobody can go on from it */
        bytes_deinit(out);
    }
}

/* The body with the thread's system text, tools and messages in front of its own. */
static const json *join_thread(api_request *r, const json *root, const json *items)
{
    json *whole;
    json_doc *doc = json_build(&whole, JSON_OBJECT);
    for (const json *v = json_child(root); v; v = json_next(v)) {
        if (strcmp(json_key(v), "messages") != 0) {
            json_add_shared(doc, whole, json_key(v), v);
        }
    }
    const json *fixed = json_child(items);
    for (const json *v = json_child(fixed); v; v = json_next(v)) {
        json_add_shared(doc, whole, json_key(v), v);
    }
    json *messages = json_add_array(doc, whole, "messages");
    for (const json *v = json_next(fixed); v; v = json_next(v)) {
        json_add_shared(doc, messages, NULL, v);
    }
    for (const json *v = first_of(json_get(root, "messages")); v; v = json_next(v)) {
        json_add_shared(doc, messages, NULL, v);
    }
    return api_request_keep_built(r, doc);
}

/* thread: {"type":"create"} keeps the conversation under the reply's id, {"type":"continue",
 * "previous_message_id"} goes on from one that was kept. Returns the body as it is to be read. */
static const json *read_thread(api_request *r, const json *root)
{
    first_error *e = &r->error;
    const json *thread = request_object(e, root, "thread");
    const char *id = json_str(json_get(thread, "previous_message_id"), NULL);
    bool is_evicted = false;
    if (!thread || e->code != ERR_OK) {
        return root;
    }
    if (has_type(thread, "continue") && id) {
        if (!is_null(json_get(root, "system")) || !is_null(json_get(root, "tools"))) {
            bad(e, "thread", "holds system and tools already: they cannot be sent again");
        }
        const json *items = api_request_stored(r, id, &is_evicted);
        if (!items) {
            request_fail(e, ERR_NOT_FOUND, "thread.previous_message_id", "thread_not_found",
                         "this message is unknown or no longer kept; send the whole conversation with "
                         "thread: {\"type\": \"create\"}");
            return root;
        }
        root = join_thread(r, root, items);
    } else if (!has_type(thread, "create")) {
        bad(e, "thread", "must be of type create, or of type continue with a previous_message_id");
    }
    if (e->code == ERR_OK && r->response_store) {
        keep_thread(r, root);
    }
    return root;
}

/* The fields that a chat has too, under its names; what else a chat has is not known here. */
static const json *chat_fields(api_request *r, const json *root)
{
    static const char *const SAME[] = {"model",
                                       "stream",
                                       "max_tokens",
                                       "temperature",
                                       "top_p",
                                       "top_k",
                                       "min_p",
                                       "repetition_penalty",
                                       "presence_penalty",
                                       "frequency_penalty",
                                       "logit_bias",
                                       "min_tokens",
                                       "ignore_eos",
                                       "seed",
                                       "mtp",
                                       "prompt_lookup",
                                       "cache_prompt",
                                       "use_cache",
                                       "timeout",
                                       "parley",
                                       "thinking_token_budget",
                                       "specprefill",
                                       "specprefill_keep_pct",
                                       "specprefill_backbone_pct"};
    json *chat;
    json_doc *doc = json_build(&chat, JSON_OBJECT);
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        json_add_shared(doc, chat, SAME[i], json_get(root, SAME[i]));
    }
    check_stops(&r->error, json_get(root, "stop_sequences"));
    json_add_shared(doc, chat, "stop", json_get(root, "stop_sequences"));
    add_tools(r, doc, chat, json_get(root, "tools"), json_get(root, "mcp_servers"));
    add_tool_choice(doc, chat, &r->error, json_get(root, "tool_choice"));
    return api_request_keep_built(r, doc);
}

err_code messages_request_parse(api_request *r, const char *text, size_t len, bool needs_max_tokens,
                                const engine_info *info, err_detail *d)
{
    const json *root = NULL;
    first_error *e = &r->error;
    const char *effort = NULL;
    if (api_request_open(r, &root, text, len, d) != ERR_OK) {
        return e->code;
    }
    other_fields_check(e, root, OTHER_MESSAGES);
    if (needs_max_tokens && is_null(json_get(root, "max_tokens"))) {
        request_fail(e, ERR_INVALID, "max_tokens", "missing_field", "max_tokens is missing");
    }
    root = read_thread(r, root);
    const json *chat = chat_fields(r, root);
    api_request_generation(r, chat, info);
    request_read_stop(e, &r->reply, chat);
    const json *output = request_object(e, root, "output_config"), *format = json_get(output, "format");
    request_string(e, &effort, output, "effort", 16);
    read_thinking(r, json_get(root, "thinking"), effort, chat);
    tool_fields_read(r, chat, TOOLS_NESTED);
    const bool is_old = is_null(format);
    response_format_read(r, is_old ? json_get(root, "output_format") : format,
                         is_old ? "output_format" : "output_config.format");
    context_fit_read_edits(r, root);
    read_messages(r, root, info);
    return e->code;
}
