#include "server/protocol/response_format.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

/* The name says nothing to us; OpenAI's rule for it is checked so that a request means the same
 * there. */
static bool is_name(const char *name)
{
    const size_t len = strlen(name);
    return len > 0 && len <= NAME_MAX_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

static err_code read_schema(api_request *r, grammar_spec *spec, const json *format, const char *path,
                            err_detail *d)
{
    char inner[ERR_PARAM_MAX], field[ERR_PARAM_MAX];
    const json *nested = json_get(format, "json_schema");
    const json *holder = nested ? nested : format, *name = json_get(holder, "name");
    const json *strict = json_get(holder, "strict");
    snprintf(inner, sizeof inner, "%s%s", path, nested ? ".json_schema" : "");
    if (!json_is(holder, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, inner, "invalid_type", "%s must be an object", inner);
    }
    if (json_typeof(name) != JSON_NULL && !is_name(json_str(name, ""))) {
        request_path(field, "%s.name", inner);
        return err_set_param(d, ERR_INVALID, field, "invalid_value",
                             "%s must have 1 to %d letters, digits, _ or -", field, NAME_MAX_BYTES);
    }
    if (json_typeof(strict) != JSON_NULL && !json_is(strict, JSON_BOOL)) {
        request_path(field, "%s.strict", inner);
        return err_set_param(d, ERR_INVALID, field, "invalid_type", "%s must be true or false", field);
    }
    request_path(field, "%s.schema", inner);
    spec->schema = json_get(holder, "schema");
    if (!spec->schema) {
        return err_set_param(d, ERR_INVALID, field, "missing_field", "%s is missing", field);
    }
    spec->path = arena_strdup(r->in->arena, field, strlen(field));
    return spec->path ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for this request");
}

/* With tools in use the answer is what `spec` says, or one tool call after the other. */
static bool allow_calls(api_request *r, grammar_spec *spec)
{
    grammar_spec *both = arena_calloc(r->in->arena, 2, sizeof *both);
    grammar_spec *calls = arena_calloc(r->in->arena, 2, sizeof *calls);
    grammar_spec *parts = arena_calloc(r->in->arena, 3, sizeof *parts);
    if (!both || !calls || !parts) {
        return false;
    }
    parts[0] = (grammar_spec){.kind = SPEC_TEXT, .text = "\n"};
    parts[1] = (grammar_spec){.kind = SPEC_MARKER, .text = "<tool_call>"};
    parts[2] = (grammar_spec){.kind = SPEC_UNTIL, .text = "</tool_call>"};
    calls[0] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts + 1, .n_items = 2};
    calls[1] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts, .n_items = 3};
    both[0] = *spec;
    both[1] = (grammar_spec){.kind = SPEC_REPEAT, .items = calls, .n_items = 2, .min = 1, .max = SPEC_MANY};
    *spec = (grammar_spec){.kind = SPEC_CHOICE, .items = both, .n_items = 2, .path = spec->path};
    return true;
}

err_code response_format_read(api_request *r, const json *format, const char *path, err_detail *d)
{
    const char *type = json_str(json_get(format, "type"), json_typeof(format) == JSON_NULL ? "text" : "");
    if (strcmp(type, "text") == 0) {
        return ERR_OK;
    }
    const bool with_schema = strcmp(type, "json_schema") == 0;
    if (!with_schema && strcmp(type, "json_object") != 0) {
        return err_set_param(d, ERR_INVALID, path, "invalid_value",
                             "the type of %s must be \"text\", \"json_object\" or \"json_schema\"", path);
    }
    grammar_spec *spec = arena_calloc(r->in->arena, 1, sizeof *spec);
    if (!spec) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    *spec = (grammar_spec){.kind = SPEC_SCHEMA, .path = path};
    const err_code err = with_schema ? read_schema(r, spec, format, path, d) : ERR_OK;
    if (err == ERR_OK && r->in->tools && !allow_calls(r, spec)) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    r->in->form = spec;
    return err;
}
