#include "server/tool_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/tool_parser.h"

static err_code no_memory(err_detail *d)
{
    return err_set(d, ERR_NOMEM, "no memory for this request");
}

/* Templates expect a function's fields in "function". */
static err_code nest(chat_request *r, const json **out, const json *tools, err_detail *d)
{
    bytes text;
    json_doc *doc = NULL;
    bytes_init(&text, LIMIT_BODY_BYTES);
    bytes_append_char(&text, '[');
    for (const json *t = json_child(tools); t; t = json_next(t)) {
        bytes_append_str(&text, text.len > 1 ? ",{\"type\":\"function\",\"function\":{"
                                             : "{\"type\":\"function\",\"function\":{");
        bool is_first = true;
        for (const json *v = json_child(t); v; v = json_next(v)) {
            if (strcmp(json_key(v), "type") == 0 || strcmp(json_key(v), "strict") == 0) {
                continue;
            }
            bytes_append_str(&text, is_first ? "" : ",");
            bytes_append_json(&text, json_key(v), strlen(json_key(v)));
            bytes_append_char(&text, ':');
            json_write(&text, v);
            is_first = false;
        }
        bytes_append_str(&text, "}}");
    }
    bytes_append_char(&text, ']');
    err_code err = text.failed ? no_memory(d) : json_parse(&doc, text.data, text.len, LIMIT_JSON_DEPTH, d);
    bytes_deinit(&text);
    if (err == ERR_OK && !chat_request_keep(r, doc)) {
        return no_memory(d);
    }
    *out = err == ERR_OK ? json_root(doc) : NULL;
    return err;
}

static const json *function_of(const json *tool, tool_layout layout)
{
    return layout == TOOLS_FLAT ? tool : json_get(tool, "function");
}

static bool has_earlier(const json *tools, const json *until, const char *name, tool_layout layout)
{
    for (const json *t = json_child(tools); t != until; t = json_next(t)) {
        if (strcmp(json_str(json_get(function_of(t, layout), "name"), ""), name) == 0) {
            return true;
        }
    }
    return false;
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
        const char *name = json_str(json_get(function_of(t, layout), "name"), "");
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
        if (has_earlier(tools, t, name, layout)) {
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

err_code tool_fields_read(chat_request *r, const json *root, tool_layout layout, err_detail *d)
{
    const json *tools = json_get(root, "tools"), *choice = json_get(root, "tool_choice");
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
    const char *mode = json_str(choice, json_typeof(choice) == JSON_NULL ? "auto" : "");
    if (json_is(choice, JSON_OBJECT) || strcmp(mode, "required") == 0) {
        return err_set_param(d, ERR_UNSUPPORTED, "tool_choice", "not_supported",
                             "tool_choice may be \"auto\" or \"none\": calls cannot be forced");
    }
    if (strcmp(mode, "auto") != 0 && strcmp(mode, "none") != 0) {
        return err_set_param(d, ERR_INVALID, "tool_choice", "invalid_value",
                             "tool_choice must be \"auto\" or \"none\"");
    }
    if (tools && (copy_text(&r->reply.tools_text, tools, d) != ERR_OK ||
                  (choice && copy_text(&r->reply.tool_choice_text, choice, d) != ERR_OK))) {
        return no_memory(d);
    }
    if (!json_child(tools) || strcmp(mode, "none") == 0) {
        return ERR_OK;
    }
    r->in->tools = tools;
    if (layout == TOOLS_FLAT) {
        err = nest(r, &r->in->tools, tools, d);
    }
    return err == ERR_OK ? tool_set_create(&r->reply.tools, r->in->tools, d) : err;
}
