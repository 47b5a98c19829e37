#include "server/protocol/response_format.h"

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

static void read_schema(api_request *r, grammar_spec *spec, const json *format, const char *path)
{
    first_error *e = &r->error;
    char inner[ERR_PARAM_MAX], field[ERR_PARAM_MAX];
    const json *nested = json_get(format, "json_schema");
    const json *holder = nested ? nested : format, *name = json_get(holder, "name");
    const json *strict = json_get(holder, "strict");
    request_path(inner, "%s%s", path, nested ? ".json_schema" : "");
    if (!json_is(holder, JSON_OBJECT)) {
        request_fail(e, ERR_INVALID, inner, "invalid_type", "%s must be an object", inner);
    }
    if (json_typeof(name) != JSON_NULL && !is_name(json_str(name, ""))) {
        request_path(field, "%s.name", inner);
        request_fail(e, ERR_INVALID, field, "invalid_value", "%s must have 1 to %d letters, digits, _ or -",
                     field, NAME_MAX_BYTES);
    }
    if (json_typeof(strict) != JSON_NULL && !json_is(strict, JSON_BOOL)) {
        request_path(field, "%s.strict", inner);
        request_fail(e, ERR_INVALID, field, "invalid_type", "%s must be true or false", field);
    }
    request_path(field, "%s.schema", inner);
    spec->schema = json_get(holder, "schema");
    if (!spec->schema) {
        request_fail(e, ERR_INVALID, field, "missing_field", "%s is missing", field);
    } else if (!json_is(spec->schema, JSON_OBJECT) && !json_is(spec->schema, JSON_BOOL)) {
        /* a text would reach another server as it is */
        request_fail(e, ERR_INVALID, field, "invalid_type", "%s must be an object", field);
    }
    spec->path = request_strdup(e, r->in->arena, field);
}

/* With tools in use the answer is what `spec` says, or one tool call after the other. */
static void allow_calls(api_request *r, grammar_spec *spec)
{
    grammar_spec *both = request_calloc(&r->error, r->in->arena, 7, sizeof *both);
    if (!both) {
        return;
    }
    grammar_spec *calls = both + 2, *parts = both + 4;
    parts[0] = (grammar_spec){.kind = SPEC_TEXT, .text = "\n"};
    parts[1] = (grammar_spec){.kind = SPEC_MARKER, .text = "<tool_call>"};
    parts[2] = (grammar_spec){.kind = SPEC_UNTIL, .text = "</tool_call>"};
    calls[0] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts + 1, .n_items = 2};
    calls[1] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts, .n_items = 3};
    both[0] = *spec;
    both[1] = (grammar_spec){.kind = SPEC_REPEAT, .items = calls, .n_items = 2, .min = 1, .max = SPEC_MANY};
    *spec = (grammar_spec){.kind = SPEC_CHOICE, .items = both, .n_items = 2, .path = spec->path};
}

void response_format_read(api_request *r, const json *format, const char *path)
{
    const char *type = json_str(json_get(format, "type"), json_typeof(format) == JSON_NULL ? "text" : "");
    if (strcmp(type, "text") == 0 || r->error.code != ERR_OK || r->in->form) {
        return;
    }
    const bool with_schema = strcmp(type, "json_schema") == 0;
    if (!with_schema && strcmp(type, "json_object") != 0) {
        request_fail(&r->error, ERR_INVALID, path, "invalid_value",
                     "the type of %s must be \"text\", \"json_object\" or \"json_schema\"", path);
    }
    grammar_spec *spec = request_calloc(&r->error, r->in->arena, 1, sizeof *spec);
    if (!spec) {
        return;
    }
    *spec = (grammar_spec){.kind = SPEC_SCHEMA, .path = path};
    if (with_schema) {
        read_schema(r, spec, format, path);
    }
    grammar_spec *alone = request_calloc(&r->error, r->in->arena, 1, sizeof *alone);
    if (!alone) {
        return;
    }
    *alone = *spec;
    r->answer_form = alone;
    if (r->in->tools) {
        allow_calls(r, spec);
    }
    r->in->form = spec;
}
