#include "server/protocol/tool_fields.h"

#include <string.h>

#include "base/limits.h"
#include "server/protocol/output/tool_scanner.h"

static const json *function_of(const json *tool, tool_layout layout)
{
    return layout == TOOLS_FLAT ? tool : json_get(tool, "function");
}

static const char *name_of(const json *tool, tool_layout layout)
{
    return json_str(json_get(function_of(tool, layout), "name"), "");
}

/* Whether the list has a tool of this name in front of `until` (NULL: anywhere). */
static bool has_tool(const json *tools, const json *until, const char *name, tool_layout layout)
{
    for (const json *t = json_child(tools); t != until; t = json_next(t)) {
        if (strcmp(name_of(t, layout), name) == 0) {
            return true;
        }
    }
    return false;
}

/* The tools as templates expect them, a function's fields in "function": those that are `allowed`
 * (NULL: all). */
static const json *rewrite(api_request *r, const json *tools, const json *allowed, tool_layout layout)
{
    json *list;
    json_doc *doc = json_build(&list, JSON_ARRAY);
    for (const json *t = json_child(tools); t; t = json_next(t)) {
        if (allowed && !has_tool(allowed, NULL, name_of(t, layout), layout)) {
            continue;
        }
        if (layout == TOOLS_NESTED) {
            json_add_shared(doc, list, NULL, t);
            continue;
        }
        json *tool = json_add_object(doc, list, NULL);
        json_add_string(doc, tool, "type", "function");
        json *function = json_add_object(doc, tool, "function");
        for (const json *v = json_child(t); v; v = json_next(v)) {
            if (strcmp(json_key(v), "type") != 0 && strcmp(json_key(v), "strict") != 0) {
                json_add_shared(doc, function, json_key(v), v);
            }
        }
    }
    return api_request_keep_built(r, doc);
}

static void check_tools(first_error *e, const json *tools, tool_layout layout)
{
    if (!json_is(tools, JSON_ARRAY) || json_len(tools) > LIMIT_TOOLS) {
        request_fail(e, ERR_INVALID, "tools", "invalid_type", "tools must be a list of at most %d tools",
                     LIMIT_TOOLS);
    }
    size_t i = 0;
    for (const json *t = json_child(tools); t && e->code == ERR_OK; t = json_next(t), i++) {
        char path[ERR_PARAM_MAX];
        const char *name = name_of(t, layout);
        request_path(path, "tools[%zu]", i);
        if (strcmp(json_str(json_get(t, "type"), ""), "function") != 0) {
            request_fail(
                e, ERR_INVALID, path, "invalid_value",
                "%s must be of type \"function\", or \"mcp\" for tools that run here; others are not "
                "understood",
                path);
        }
        if (layout == TOOLS_NESTED) {
            request_path(path, "tools[%zu].function", i);
        }
        if (!tool_is_name(name, strlen(name))) {
            request_fail(e, ERR_INVALID, path, "invalid_value",
                         "%s needs a name of letters, digits and _ - . : /, at most %d", path,
                         TOOL_NAME_BYTES);
        }
        if (has_tool(tools, t, name, layout)) {
            request_fail(e, ERR_INVALID, path, "invalid_value", "%s: two tools have the name %s", path, name);
        }
    }
}

/* ---- tools that this server runs ---- */

static bool is_mcp(const json *tool)
{
    return strcmp(json_str(json_get(tool, "type"), ""), "mcp") == 0;
}

typedef struct own_tools {
    const json *tools;
    tool_layout layout;
} own_tools;

static bool is_own(void *ctx, const char *name)
{
    const own_tools *own = ctx;
    return has_tool(own->tools, NULL, name, own->layout);
}

/* A tool of a server as one of the request. */
static void add_planned(json_doc *doc, json *list, const planned_tool *t, tool_layout layout)
{
    json *tool = json_add_object(doc, list, NULL);
    json_add_string(doc, tool, "type", "function");
    json *function = layout == TOOLS_FLAT ? tool : json_add_object(doc, tool, "function");
    json_add_string(doc, function, "name", t->name);
    json_add_string(doc, function, "description", t->tool->description);
    json_add_shared(doc, function, "parameters", t->tool->schema);
}

/* The list with the servers' tools behind the client's own in place of {"type":"mcp"}. */
static const json *expand(api_request *r, const json *tools, tool_layout layout)
{
    first_error *e = &r->error;
    size_t n = 0, i = 0;
    for (const json *t = json_is(tools, JSON_ARRAY) ? json_child(tools) : NULL; t; t = json_next(t)) {
        n += is_mcp(t);
        if (is_mcp(t) && r->mcp && e->code == ERR_OK) { /* until it is connected */
            mcp_catalog_release(mcp_wait_catalog(r->mcp, json_str(json_get(t, "server_label"), ""),
                                                 r->may_go_on, r->may_ctx));
        }
    }
    if (n == 0 || e->code != ERR_OK) {
        return tools;
    }
    json *list;
    json_doc *doc = json_build(&list, JSON_ARRAY);
    tool_plan *plan = r->reply.plan = tool_plan_create(mcp_take_catalog(r->mcp));
    own_tools own = {tools, layout};
    for (const json *t = json_child(tools); t && plan; t = json_next(t), i++) {
        char path[ERR_PARAM_MAX];
        request_path(path, "tools[%zu]", i);
        if (is_mcp(t)) {
            tool_plan_add(plan, e, t, path, is_own, &own);
        } else {
            tool_plan_add_own(plan, e, name_of(t, layout));
            json_add_shared(doc, list, NULL, t);
        }
    }
    for (size_t k = 0; plan && k < plan->n_tools; k++) {
        add_planned(doc, list, &plan->tools[k], layout);
    }
    if (!plan) {
        request_no_memory(e);
    }
    return api_request_keep_built(r, doc);
}

/* One tool as it may be called; sent: the tools of the request, in which errors say its place. */
static bool spec_of_tool(api_request *r, grammar_spec *out, const json *tool, const json *sent,
                         tool_layout layout)
{
    char path[ERR_PARAM_MAX];
    size_t index = 0;
    const json *function = json_get(tool, "function");
    for (const json *t = json_child(sent); t && strcmp(name_of(t, layout), name_of(tool, TOOLS_NESTED)) != 0;
         t = json_next(t)) {
        index++;
    }
    request_path(path, layout == TOOLS_FLAT ? "tools[%zu].parameters" : "tools[%zu].function.parameters",
                 index);
    const char *kept = arena_strdup(r->in->arena, path, strlen(path));
    return kept && tool_form_write_spec(r->form, r->in->arena, out, json_str(json_get(function, "name"), ""),
                                        json_get(function, "parameters"), kept);
}

/* The answer must be calls: of the tool named `only`, or (NULL) of any. */
static void force_calls(api_request *r, const char *only, const json *sent, tool_layout layout)
{
    arena *a = r->in->arena;
    size_t n = 0;
    grammar_spec *calls = request_calloc(&r->error, a, json_len(r->in->tools), sizeof *calls);
    grammar_spec *form = request_calloc(&r->error, a, 1, sizeof *form);
    bool ok = calls && form;
    for (const json *t = ok ? json_child(r->in->tools) : NULL; t && ok; t = json_next(t)) {
        if (!only || strcmp(only, name_of(t, TOOLS_NESTED)) == 0) {
            ok = spec_of_tool(r, &calls[n++], t, sent, layout);
        }
    }
    ok = ok && tool_form_write_answer(r->form, a, form, calls, n, !r->reply.one_call && !only);
    if (!ok) {
        request_no_memory(&r->error);
        return;
    }
    r->in->form = form;
    r->in->form_is_calls = true;
}

/* What tool_choice asks for. */
typedef struct choice {
    bool none, forced;
    const char *only;    /* forced: this tool alone; NULL: any */
    const json *allowed; /* a list of tools, beside which there are none; NULL: all */
} choice;

/* {"type":"allowed_tools"}, in Chat Completions inside of an object of that name: some of the
 * tools, in a mode. */
static void read_allowed(first_error *e, choice *c, const json *v, const json *tools, tool_layout layout)
{
    const json *wish = layout == TOOLS_FLAT ? v : json_get(v, "allowed_tools");
    const char *mode = json_str(json_get(wish, "mode"), "");
    c->allowed = json_get(wish, "tools");
    c->forced = strcmp(mode, "required") == 0;
    if ((!c->forced && strcmp(mode, "auto") != 0) || !json_is(c->allowed, JSON_ARRAY) ||
        !json_child(c->allowed)) {
        request_fail(e, ERR_INVALID, "tool_choice", "invalid_value",
                     "allowed_tools needs a mode (\"auto\" or \"required\") and a list of tools");
    }
    for (const json *t = json_child(c->allowed); t && e->code == ERR_OK; t = json_next(t)) {
        if (!has_tool(tools, NULL, name_of(t, layout), layout)) {
            request_fail(e, ERR_INVALID, "tool_choice", "invalid_value",
                         "allowed_tools: no tool has the name %s", name_of(t, layout));
        }
    }
}

static void read_choice(first_error *e, choice *c, const json *v, const json *tools, tool_layout layout)
{
    const char *mode = json_str(v, json_typeof(v) == JSON_NULL ? "auto" : "");
    *c = (choice){.none = strcmp(mode, "none") == 0, .forced = strcmp(mode, "required") == 0};
    if (strcmp(json_str(json_get(v, "type"), ""), "allowed_tools") == 0) {
        read_allowed(e, c, v, tools, layout);
        return;
    }
    if (json_is(v, JSON_OBJECT)) {
        c->only = json_str(json_get(function_of(v, layout), "name"), NULL);
        c->forced = c->only && strcmp(json_str(json_get(v, "type"), ""), "function") == 0;
    }
    if (!c->none && !c->forced && strcmp(mode, "auto") != 0) {
        request_fail(e, ERR_INVALID, "tool_choice", "invalid_value",
                     "tool_choice must be \"auto\", \"none\", \"required\", name a function or be of type "
                     "allowed_tools");
    }
    if (c->forced && !json_child(tools)) {
        request_fail(e, ERR_INVALID, "tool_choice", "invalid_value",
                     "tool_choice asks for a call, but there are no tools");
    }
    if (c->only && !has_tool(tools, NULL, c->only, layout)) {
        request_fail(e, ERR_INVALID, "tool_choice", "invalid_value", "tool_choice: no tool has the name %s",
                     c->only);
    }
}

void tool_fields_read(api_request *r, const json *root, tool_layout layout)
{
    first_error *e = &r->error;
    const json *tools = json_get(root, "tools"), *wish = json_get(root, "tool_choice");
    bool parallel = true;
    request_bool(e, &parallel, root, "parallel_tool_calls");
    r->reply.one_call = !parallel;
    tools = json_typeof(tools) == JSON_NULL ? NULL : expand(r, tools, layout);
    if (tools) {
        check_tools(e, tools, layout);
    }
    choice c;
    read_choice(e, &c, wish, tools, layout);
    if (e->code != ERR_OK || !tools) {
        return;
    }
    c.forced = c.forced && !r->turns; /* the first round was the call that was asked for */
    if (!json_child(tools) || c.none) {
        return;
    }
    r->in->tools = layout == TOOLS_FLAT || c.allowed ? rewrite(r, tools, c.allowed, layout) : tools;
    if (e->code == ERR_OK) {
        e->code = tool_set_create(&r->reply.tools, r->in->tools, e->detail);
    }
    r->forces_calls = c.forced;
    r->forced_tool = c.only;
    if (c.forced && !r->form) {
        request_fail(
            e, ERR_UNSUPPORTED, "tool_choice", "not_supported",
            "this model's form of tool calls is not known (--tool-call-parser); calls cannot be forced");
    }
    if (c.forced && e->code == ERR_OK) {
        force_calls(r, c.only, tools, layout);
    }
}
