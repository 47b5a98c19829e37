#include "server/protocol/tool_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/protocol/output/tool_scanner.h"

static err_code no_memory(err_detail *d)
{
    return err_set(d, ERR_NOMEM, "no memory for this request");
}

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

/* Templates expect a function's fields in "function". */
static void write_nested(bytes *out, const json *tool)
{
    bool is_first = true;
    bytes_append_str(out, "{\"type\":\"function\",\"function\":{");
    for (const json *v = json_child(tool); v; v = json_next(v)) {
        if (strcmp(json_key(v), "type") == 0 || strcmp(json_key(v), "strict") == 0) {
            continue;
        }
        bytes_append_str(out, is_first ? "" : ",");
        bytes_append_json(out, json_key(v), strlen(json_key(v)));
        bytes_append_char(out, ':');
        json_write(out, v);
        is_first = false;
    }
    bytes_append_str(out, "}}");
}

/* The tools as templates expect them: those that are `allowed` (NULL: all). */
static err_code rewrite(api_request *r, const json **out, const json *tools, const json *allowed,
                        tool_layout layout, err_detail *d)
{
    bytes text;
    json_doc *doc = NULL;
    bytes_init(&text, LIMIT_BODY_BYTES);
    bytes_append_char(&text, '[');
    for (const json *t = json_child(tools); t; t = json_next(t)) {
        if (allowed && !has_tool(allowed, NULL, name_of(t, layout), layout)) {
            continue;
        }
        bytes_append_str(&text, text.len > 1 ? "," : "");
        if (layout == TOOLS_FLAT) {
            write_nested(&text, t);
        } else {
            json_write(&text, t);
        }
    }
    bytes_append_char(&text, ']');
    err_code err = text.failed ? no_memory(d) : json_parse(&doc, text.data, text.len, LIMIT_JSON_DEPTH, d);
    bytes_deinit(&text);
    if (err == ERR_OK && !api_request_keep(r, doc)) {
        return no_memory(d);
    }
    *out = err == ERR_OK ? json_root(doc) : NULL;
    return err;
}

static err_code check_tools(const json *tools, tool_layout layout, err_detail *d)
{
    if (!json_is(tools, JSON_ARRAY) || json_len(tools) > LIMIT_TOOLS) {
        return err_set_param(d, ERR_INVALID, "tools", "invalid_type",
                             "tools must be a list of at most %d tools", LIMIT_TOOLS);
    }
    size_t i = 0;
    for (const json *t = json_child(tools); t; t = json_next(t), i++) {
        char path[ERR_PARAM_MAX];
        const char *name = name_of(t, layout);
        request_path(path, "tools[%zu]", i);
        if (strcmp(json_str(json_get(t, "type"), ""), "function") != 0) {
            return err_set_param(d, ERR_INVALID, path, "invalid_value",
                                 "%s must be of type \"function\"; other tools are not understood", path);
        }
        if (layout == TOOLS_NESTED) {
            request_path(path, "tools[%zu].function", i);
        }
        if (!tool_is_name(name, strlen(name))) {
            return err_set_param(d, ERR_INVALID, path, "invalid_value",
                                 "%s needs a name of letters, digits and _ - . : /, at most %d", path,
                                 TOOL_NAME_BYTES);
        }
        if (has_tool(tools, t, name, layout)) {
            return err_set_param(d, ERR_INVALID, path, "invalid_value", "%s: two tools have the name %s",
                                 path, name);
        }
    }
    return ERR_OK;
}

/* JSON text that outlives the request's body. */
static err_code copy_text(char **out, const json *v, err_detail *d)
{
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    json_write(&text, v);
    if (text.failed || text.len == 0) {
        bytes_deinit(&text);
        return no_memory(d);
    }
    *out = text.data; /* handed over */
    return ERR_OK;
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
    return kept && r->form->write_spec(r->in->arena, out, json_str(json_get(function, "name"), ""),
                                       json_get(function, "parameters"), kept);
}

/* The answer must be calls: of the tool named `only`, or (NULL) of any. */
static err_code force_calls(api_request *r, const char *only, const json *sent, tool_layout layout,
                            err_detail *d)
{
    arena *a = r->in->arena;
    size_t n = 0;
    grammar_spec *calls = arena_calloc(a, json_len(r->in->tools), sizeof *calls);
    grammar_spec *form = arena_calloc(a, 4, sizeof *form);
    bool ok = calls && form;
    for (const json *t = ok ? json_child(r->in->tools) : NULL; t && ok; t = json_next(t)) {
        if (!only || strcmp(only, name_of(t, TOOLS_NESTED)) == 0) {
            ok = spec_of_tool(r, &calls[n++], t, sent, layout);
        }
    }
    if (!ok) {
        return no_memory(d);
    }
    form[1] = (grammar_spec){.kind = SPEC_CHOICE, .items = calls, .n_items = n};
    form[0] = form[1];
    if (!r->reply.one_call && !only) {
        const grammar_spec parts[] = {{.kind = SPEC_TEXT, .text = "\n"}, form[1]};
        ok = tool_spec_sequence(a, &form[2], parts, 2);
        form[0] =
            (grammar_spec){.kind = SPEC_REPEAT, .items = &form[1], .n_items = 2, .min = 1, .max = SPEC_MANY};
    }
    r->in->form = &form[0];
    return ok ? ERR_OK : no_memory(d);
}

/* What tool_choice asks for. */
typedef struct choice {
    bool none, forced;
    const char *only;    /* forced: this tool alone; NULL: any */
    const json *allowed; /* a list of tools, beside which there are none; NULL: all */
} choice;

/* {"type":"allowed_tools"}, in Chat Completions inside of an object of that name: some of the
 * tools, in a mode. */
static err_code read_allowed(choice *c, const json *v, const json *tools, tool_layout layout, err_detail *d)
{
    const json *wish = layout == TOOLS_FLAT ? v : json_get(v, "allowed_tools");
    const char *mode = json_str(json_get(wish, "mode"), "");
    c->allowed = json_get(wish, "tools");
    c->forced = strcmp(mode, "required") == 0;
    if ((!c->forced && strcmp(mode, "auto") != 0) || !json_is(c->allowed, JSON_ARRAY) ||
        !json_child(c->allowed)) {
        return err_set_param(d, ERR_INVALID, "tool_choice", "invalid_value",
                             "allowed_tools needs a mode (\"auto\" or \"required\") and a list of tools");
    }
    for (const json *t = json_child(c->allowed); t; t = json_next(t)) {
        if (!has_tool(tools, NULL, name_of(t, layout), layout)) {
            return err_set_param(d, ERR_INVALID, "tool_choice", "invalid_value",
                                 "allowed_tools: no tool has the name %s", name_of(t, layout));
        }
    }
    return ERR_OK;
}

static err_code read_choice(choice *c, const json *v, const json *tools, tool_layout layout, err_detail *d)
{
    const char *mode = json_str(v, json_typeof(v) == JSON_NULL ? "auto" : "");
    *c = (choice){.none = strcmp(mode, "none") == 0, .forced = strcmp(mode, "required") == 0};
    if (strcmp(json_str(json_get(v, "type"), ""), "allowed_tools") == 0) {
        return read_allowed(c, v, tools, layout, d);
    }
    if (json_is(v, JSON_OBJECT)) {
        const json *function = layout == TOOLS_FLAT ? v : json_get(v, "function");
        c->only = json_str(json_get(function, "name"), NULL);
        c->forced = c->only && strcmp(json_str(json_get(v, "type"), ""), "function") == 0;
    }
    if (!c->none && !c->forced && strcmp(mode, "auto") != 0) {
        return err_set_param(
            d, ERR_INVALID, "tool_choice", "invalid_value",
            "tool_choice must be \"auto\", \"none\", \"required\", name a function or be of type "
            "allowed_tools");
    }
    if (c->forced && !json_child(tools)) {
        return err_set_param(d, ERR_INVALID, "tool_choice", "invalid_value",
                             "tool_choice asks for a call, but there are no tools");
    }
    if (c->only && !has_tool(tools, NULL, c->only, layout)) {
        return err_set_param(d, ERR_INVALID, "tool_choice", "invalid_value",
                             "tool_choice: no tool has the name %s", c->only);
    }
    return ERR_OK;
}

err_code tool_fields_read(api_request *r, const json *root, tool_layout layout, err_detail *d)
{
    const json *tools = json_get(root, "tools"), *wish = json_get(root, "tool_choice");
    bool parallel = true;
    err_code err = request_bool(&parallel, root, "parallel_tool_calls", d);
    r->reply.one_call = !parallel;
    tools = json_typeof(tools) == JSON_NULL ? NULL : tools;
    if (err == ERR_OK && tools) {
        err = check_tools(tools, layout, d);
    }
    if (err != ERR_OK) {
        return err;
    }
    choice c;
    err = read_choice(&c, wish, tools, layout, d);
    if (err != ERR_OK) {
        return err;
    }
    if (tools && (copy_text(&r->reply.tools_text, tools, d) != ERR_OK ||
                  (wish && copy_text(&r->reply.tool_choice_text, wish, d) != ERR_OK))) {
        return no_memory(d);
    }
    if (!json_child(tools) || c.none) {
        return ERR_OK;
    }
    r->in->tools = tools;
    if (layout == TOOLS_FLAT || c.allowed) {
        err = rewrite(r, &r->in->tools, tools, c.allowed, layout, d);
    }
    if (err == ERR_OK) {
        err = tool_set_create(&r->reply.tools, r->in->tools, d);
    }
    if (err == ERR_OK && c.forced && !r->form) {
        return err_set_param(
            d, ERR_UNSUPPORTED, "tool_choice", "not_supported",
            "this model's form of tool calls is not known (--tool-call-parser); calls cannot be forced");
    }
    return err == ERR_OK && c.forced ? force_calls(r, c.only, tools, layout, d) : err;
}
