#include "server/protocol/other_fields.h"

#include <string.h>

#include "base/compiler.h"

enum { ALL = 1 << OTHER_CHAT | 1 << OTHER_COMPLETION | 1 << OTHER_RESPONSES };

typedef struct other_field {
    const char *name;
    unsigned protocols; /* bits */
    json_type type;
    const char *words;   /* the values of a string, or of a list's elements, a space behind each; NULL: any */
    const char *refusal; /* why nothing but null, false and an empty list is taken; NULL: it is taken */
} other_field;

static const other_field FIELDS[] = {
    {"user", ALL, JSON_STRING, NULL, NULL},
    {"safety_identifier", ALL, JSON_STRING, NULL, NULL},
    {"prompt_cache_key", ALL, JSON_STRING, NULL, NULL},
    {"service_tier", ALL, JSON_STRING, "auto default flex scale priority ", NULL},
    {"metadata", 1 << OTHER_CHAT | 1 << OTHER_COMPLETION, JSON_OBJECT, NULL, NULL},
    {"store", 1 << OTHER_CHAT | 1 << OTHER_COMPLETION, JSON_BOOL, NULL, NULL},
    {"id_slot", 1 << OTHER_CHAT | 1 << OTHER_COMPLETION, JSON_NUMBER, NULL, NULL},
    {"modalities", 1 << OTHER_CHAT, JSON_ARRAY, "text ", NULL},
    {"functions", 1 << OTHER_CHAT, JSON_ARRAY, NULL, "they were replaced by tools: send those"},
    {"web_search_options", 1 << OTHER_CHAT, JSON_OBJECT, NULL, "this server searches nowhere"},
    {"truncation", 1 << OTHER_RESPONSES, JSON_STRING, "disabled ", NULL},
    {"include", 1 << OTHER_RESPONSES, JSON_ARRAY,
     "reasoning.encrypted_content message.input_image.image_url message.output_text.logprobs "
     "file_search_call.results web_search_call.results web_search_call.action.sources "
     "computer_call_output.output.image_url code_interpreter_call.outputs ",
     NULL},
    {"background", 1 << OTHER_RESPONSES, JSON_BOOL, NULL,
     "send store: true, and the answer goes on when you leave"},
    {"conversation", 1 << OTHER_RESPONSES, JSON_STRING, NULL, "send previous_response_id, or all of it"},
    {"prompt", 1 << OTHER_RESPONSES, JSON_OBJECT, NULL, "this server keeps no prompts"},
};

static const char *const TYPES[] = {
    [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string",
    [JSON_ARRAY] = "a list",       [JSON_OBJECT] = "an object", [JSON_NULL] = "null"};

static bool is_one_of(const char *words, const json *v)
{
    const char *value = json_str(v, "");
    const size_t n = strlen(value);
    for (const char *p = words; *p && n > 0; p += strcspn(p, " ") + 1) {
        if (strncmp(p, value, n) == 0 && p[n] == ' ') {
            return true;
        }
    }
    return false;
}

static bool has_words(const other_field *f, const json *v)
{
    if (!f->words || f->type == JSON_STRING) {
        return !f->words || is_one_of(f->words, v);
    }
    for (const json *one = json_child(v); one; one = json_next(one)) {
        if (!is_one_of(f->words, one)) {
            return false;
        }
    }
    return true;
}

static void check(first_error *e, const other_field *f, const json *v)
{
    const bool is_nothing =
        json_is(v, JSON_BOOL) ? !json_is_true(v) : json_is(v, JSON_ARRAY) && json_len(v) == 0;
    if (f->refusal && !is_nothing) {
        request_fail(e, ERR_UNSUPPORTED, f->name, "not_supported", "%s is not supported: %s", f->name,
                     f->refusal);
    } else if (!json_is(v, f->type) && !f->refusal) {
        request_fail(e, ERR_INVALID, f->name, "invalid_type", "%s must be %s", f->name, TYPES[f->type]);
    } else if (!has_words(f, v)) {
        request_fail(e, ERR_INVALID, f->name, "invalid_value", "%s may be: %s", f->name, f->words);
    }
}

void other_fields_check(first_error *e, const json *root, other_protocol protocol)
{
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        const json *v = json_get(root, FIELDS[i].name);
        if (json_typeof(v) != JSON_NULL && (FIELDS[i].protocols & 1U << protocol)) {
            check(e, &FIELDS[i], v);
        }
    }
}
