#include "server/protocol/request_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of `timeout`. */
#define TIMEOUT_MIN_S 0.001
#define TIMEOUT_MAX_S 864000.0

void reply_options_init(reply_options *o)
{
    memset(o, 0, sizeof *o);
    bytes_init(&o->items, LIMIT_STORED_RESPONSE_BYTES);
}

void reply_options_deinit(reply_options *o)
{
    for (size_t i = 0; i < o->n_stops; i++) {
        free(o->stops[i]);
    }
    for (size_t i = 0; i < o->n_echoes; i++) {
        free(o->echoes[i]);
    }
    free(o->fields);
    bytes_deinit(&o->items);
    tool_set_destroy(o->tools);
    tool_plan_destroy(o->plan);
    reply_options_init(o);
}

/* ---- single fields ---- */

/* The member unless it is null, or an error came before. */
static const json *present(const first_error *e, const json *root, const char *name)
{
    const json *v = e->code == ERR_OK ? json_get(root, name) : NULL;
    return json_typeof(v) == JSON_NULL ? NULL : v;
}

void request_number(first_error *e, double *out, const json *root, const char *name, double min, double max)
{
    const json *v = present(e, root, name);
    const double number = json_num(v, NAN);
    if (v && !(number >= min && number <= max)) {
        request_fail(e, ERR_INVALID, name, "invalid_value", "%s must be a number from %g to %g", name, min,
                     max);
    } else if (v) {
        *out = number;
    }
}

void request_int(first_error *e, int64_t *out, const json *root, const char *name, int64_t min, int64_t max)
{
    const json *v = present(e, root, name);
    if (!v || json_int(v, min, max, out)) {
        return;
    }
    request_fail(e, ERR_INVALID, name, "invalid_value", "%s must be a whole number from %lld to %lld", name,
                 (long long)min, (long long)max);
}

void request_bool(first_error *e, bool *out, const json *root, const char *name)
{
    const json *v = present(e, root, name);
    if (v && !json_is(v, JSON_BOOL)) {
        request_fail(e, ERR_INVALID, name, "invalid_type", "%s must be true or false", name);
    } else if (v) {
        *out = json_is_true(v);
    }
}

void request_string(first_error *e, const char **out, const json *root, const char *name, size_t max_bytes)
{
    const json *v = present(e, root, name);
    const char *text = json_str(v, NULL);
    if (v && !text) {
        request_fail(e, ERR_INVALID, name, "invalid_type", "%s must be a string", name);
    } else if (text && strlen(text) > max_bytes) {
        request_fail(e, ERR_INVALID, name, "invalid_value", "%s is longer than %zu bytes", name, max_bytes);
    } else if (text) {
        *out = text;
    }
}

const json *request_object(first_error *e, const json *root, const char *name)
{
    const json *v = present(e, root, name);
    if (v && !json_is(v, JSON_OBJECT)) {
        request_fail(e, ERR_INVALID, name, "invalid_type", "%s must be an object", name);
        return NULL;
    }
    return v;
}

/* ---- sampling ---- */

static void read_logit_bias(first_error *e, chat_input *in, const json *root, const engine_info *info)
{
    const json *map = present(e, root, "logit_bias");
    if (!map) {
        return;
    }
    size_t n = json_is(map, JSON_OBJECT) ? json_len(map) : SIZE_MAX;
    if (n > LIMIT_LOGIT_BIAS) {
        request_fail(e, ERR_INVALID, "logit_bias", "invalid_value",
                     "logit_bias must be an object of at most %d token ids", LIMIT_LOGIT_BIAS);
        return;
    }
    in->params.biases = arena_calloc(in->arena, n + 1, sizeof(gen_bias));
    if (!in->params.biases) {
        request_fail(e, ERR_NOMEM, NULL, NULL, "no memory for logit_bias");
        return;
    }
    for (const json *v = json_child(map); v; v = json_next(v)) {
        char *end;
        const char *key = json_key(v);
        long id = isdigit((unsigned char)key[0]) ? strtol(key, &end, 10) : -1;
        double bias = json_num(v, NAN);
        if (id < 0 || *end || id > INT32_MAX || (info && id >= info->n_vocab) || !(fabs(bias) <= 100.0)) {
            request_fail(e, ERR_INVALID, "logit_bias", "invalid_value",
                         "logit_bias maps token ids of the vocabulary to numbers from -100 to 100");
            return;
        }
        in->params.biases[in->params.n_biases++] = (gen_bias){.id = (int32_t)id, .bias = (float)bias};
    }
}

static void read_seed(first_error *e, gen_params *p, const json *root)
{
    int64_t seed = -1; /* means a random one, as in other servers */
    request_int(e, &seed, root, "seed", INT64_MIN, INT64_MAX);
    if (seed != -1) {
        p->has_seed = true;
        p->seed = (uint64_t)seed;
    }
}

/* A share above `above`, at most 1. */
static void read_share(first_error *e, float *out, const json *root, const char *name, bool may_be_0)
{
    const json *v = present(e, root, name);
    const double share = json_num(v, NAN);
    if (v && !(share <= 1.0 && (share > 0.0 || (may_be_0 && share == 0.0)))) {
        request_fail(e, ERR_INVALID, name, "invalid_value",
                     "%s must be a share of the prompt, %s 0 to 1: 0.3 is 30 %%", name,
                     may_be_0 ? "from" : "above");
    } else if (v) {
        *out = (float)share;
    }
}

/* How the answer is computed: in the body, or in its "parley" object. */
static void read_engine_switches(first_error *e, gen_params *p, const json *root)
{
    const json *const places[] = {root, request_object(e, root, "parley")};
    bool mtp = true, lookup = true, cache = true, sparse = false;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        request_bool(e, &mtp, places[i], "mtp");
        request_bool(e, &lookup, places[i], "prompt_lookup");
        request_bool(e, &cache, places[i], "use_cache");
        request_bool(e, &cache, places[i], "cache_prompt");
        request_bool(e, &sparse, places[i], "specprefill");
        p->spec_prefill = present(e, places[i], "specprefill") ? sparse : p->spec_prefill;
        read_share(e, &p->spec_keep, places[i], "specprefill_keep_pct", false);
        read_share(e, &p->spec_backbone, places[i], "specprefill_backbone_pct", true);
    }
    p->no_draft = !mtp;
    p->no_lookup = !lookup;
    p->no_cache = !cache;
}

/* Seconds; longer than the server's own limit is that limit. */
void request_read_timeout(first_error *e, reply_options *o, const json *root)
{
    double seconds = 0.0;
    request_number(e, &seconds, root, "timeout", TIMEOUT_MIN_S, TIMEOUT_MAX_S);
    o->timeout_s = seconds;
}

void request_read_min_tokens(first_error *e, gen_params *p, const json *root)
{
    int64_t n = 0;
    bool ignores = false;
    request_int(e, &n, root, "min_tokens", 0, INT32_MAX);
    request_bool(e, &ignores, root, "ignore_eos");
    if (p->max_tokens > 0 && n > p->max_tokens) {
        request_fail(e, ERR_INVALID, "min_tokens", "invalid_value",
                     "min_tokens is %lld, more than the %d of max_tokens", (long long)n, p->max_tokens);
    }
    p->min_tokens = ignores ? INT32_MAX : (int32_t)n;
}

void request_read_sampling(first_error *e, chat_input *in, const json *root, const engine_info *info)
{
    gen_params *p = &in->params;
    const struct {
        float *out;
        const char *name;
        double min, max;
    } floats[] = {{&p->temperature, "temperature", 0.0, 2.0},
                  {&p->top_p, "top_p", 0.0, 1.0},
                  {&p->min_p, "min_p", 0.0, 1.0},
                  {&p->presence_penalty, "presence_penalty", -2.0, 2.0},
                  {&p->frequency_penalty, "frequency_penalty", -2.0, 2.0},
                  {&p->repetition_penalty, "repetition_penalty", 0.01, 10.0},
                  {&p->repetition_penalty, "repeat_penalty", 0.01, 10.0}};
    for (size_t i = 0; i < ARRAY_LEN(floats); i++) {
        double value = (double)*floats[i].out;
        request_number(e, &value, root, floats[i].name, floats[i].min, floats[i].max);
        *floats[i].out = (float)value;
    }
    int64_t top_k = p->top_k;
    request_int(e, &top_k, root, "top_k", -1, 1000000);
    p->top_k = present(e, root, "top_k") && top_k < 0 ? 0 : (int32_t)top_k; /* -1 asks for "off" */
    read_seed(e, p, root);
    read_engine_switches(e, p, root);
    read_logit_bias(e, in, root, info);
}

static void add_stop(first_error *e, reply_options *o, const json *v)
{
    const char *text = json_str(v, "");
    const size_t len = strlen(text);
    if (len == 0 || len > LIMIT_STOP_BYTES || o->n_stops == LIMIT_STOP_STRINGS) {
        request_fail(e, ERR_INVALID, "stop", "invalid_value",
                     "stop must be a string or a list of at most %d strings of 1 to %d bytes",
                     LIMIT_STOP_STRINGS, LIMIT_STOP_BYTES);
        return;
    }
    o->stops[o->n_stops] = strdup(text);
    if (o->stops[o->n_stops]) {
        o->n_stops++;
    } else {
        request_fail(e, ERR_NOMEM, NULL, NULL, "no memory for stop");
    }
}

void request_read_stop(first_error *e, reply_options *o, const json *root)
{
    const json *stop = present(e, root, "stop");
    if (stop && !json_is(stop, JSON_ARRAY)) {
        add_stop(e, o, stop);
        return;
    }
    for (const json *v = json_child(stop); v && e->code == ERR_OK; v = json_next(v)) {
        add_stop(e, o, v);
    }
}

/* ---- fields without effect here, and fields that are not supported ---- */

enum { ALL = 1 << OTHER_CHAT | 1 << OTHER_COMPLETION | 1 << OTHER_RESPONSES, MESSAGES = 1 << OTHER_MESSAGES };

typedef struct other_field {
    const char *name;
    unsigned protocols; /* bits */
    json_type type;
    const char *words;   /* the values of a string, or of a list's elements, a space behind each; NULL: any */
    const char *refusal; /* why nothing but null, false, 1 and an empty list is taken; NULL: it is taken */
} other_field;

static const other_field OTHER_FIELDS[] = {
    {"user", ALL, JSON_STRING, NULL, NULL},
    {"safety_identifier", ALL, JSON_STRING, NULL, NULL},
    {"prompt_cache_key", ALL, JSON_STRING, NULL, NULL},
    {"prompt_cache_options", ALL, JSON_OBJECT, NULL, NULL},
    {"prompt_cache_retention", ALL, JSON_STRING, "in_memory in-memory 24h ", NULL},
    {"service_tier", ALL, JSON_STRING, "auto default flex scale priority ", NULL},
    {"metadata", MESSAGES, JSON_OBJECT, NULL, NULL},
    {"service_tier", MESSAGES, JSON_STRING, "auto standard_only ", NULL},
    {"container", MESSAGES, JSON_STRING, NULL, "this server runs no code"},
    {"store", 1 << OTHER_CHAT | 1 << OTHER_COMPLETION, JSON_BOOL, NULL, NULL},
    {"id_slot", 1 << OTHER_CHAT | 1 << OTHER_COMPLETION, JSON_NUMBER, NULL, NULL},
    {"modalities", 1 << OTHER_CHAT, JSON_ARRAY, "text ", NULL},
    {"functions", 1 << OTHER_CHAT, JSON_ARRAY, NULL, "they were replaced by tools: send those"},
    {"web_search_options", 1 << OTHER_CHAT, JSON_OBJECT, NULL, "this server searches nowhere"},
    {"truncation", 1 << OTHER_RESPONSES, JSON_STRING, "disabled auto ", NULL},
    {"include", 1 << OTHER_RESPONSES, JSON_ARRAY,
     "reasoning.encrypted_content message.input_image.image_url message.output_text.logprobs "
     "file_search_call.results web_search_call.results web_search_call.action.sources "
     "computer_call_output.output.image_url code_interpreter_call.outputs ",
     NULL},
    {"n", 1 << OTHER_RESPONSES | MESSAGES, JSON_NUMBER, NULL, "one answer is given here, a chat has up to 8"},
    {"prompt", 1 << OTHER_RESPONSES, JSON_OBJECT, NULL, "this server keeps no prompts"},
};

/* Of prompt_cache_options: what happens anyway. */
static const other_field CACHE_OPTIONS[] = {
    {"mode", ALL, JSON_STRING, "implicit ", NULL},
    {"ttl", ALL, JSON_STRING, "30m ", NULL},
    {"prewarm", ALL, JSON_BOOL, NULL, "save the prompt under a name, with POST /v1/cache/NAME"},
    {"comparison_response_id", ALL, JSON_STRING, NULL, "what was cached is counted, not compared"},
};

static const char *const TYPE_NAMES[] = {
    [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string",
    [JSON_ARRAY] = "a list",       [JSON_OBJECT] = "an object", [JSON_NULL] = "null"};

static bool is_one_of(const char *words, const json *v)
{
    const char *value = json_str(v, "");
    const size_t n = strlen(value);
    for (const char *p = words; *p && n > 0; p += strcspn(p, " ") + 1) {
        if (strcspn(p, " ") == n && strncmp(p, value, n) == 0) {
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

static void check_other(first_error *e, const other_field *f, const json *v)
{
    const bool is_nothing = json_is(v, JSON_BOOL)     ? !json_is_true(v)
                            : json_is(v, JSON_NUMBER) ? f->type == JSON_NUMBER && json_num(v, 0) == 1
                                                      : json_is(v, JSON_ARRAY) && json_len(v) == 0;
    if (f->refusal && !is_nothing) {
        request_fail(e, ERR_UNSUPPORTED, f->name, "not_supported", "%s is not supported: %s", f->name,
                     f->refusal);
    } else if (!json_is(v, f->type) && !f->refusal) {
        request_fail(e, ERR_INVALID, f->name, "invalid_type", "%s must be %s", f->name, TYPE_NAMES[f->type]);
    } else if (!has_words(f, v)) {
        request_fail(e, ERR_INVALID, f->name, "invalid_value", "%s may be: %.*s", f->name,
                     (int)strlen(f->words) - 1, f->words);
    }
}

static void check_others(first_error *e, const other_field *fields, size_t n, const json *object,
                         other_protocol protocol)
{
    for (size_t i = 0; i < n; i++) {
        const json *v = json_get(object, fields[i].name);
        if (json_typeof(v) != JSON_NULL && (fields[i].protocols & 1U << protocol)) {
            check_other(e, &fields[i], v);
        }
    }
}

/* Characters of UTF-8. */
static size_t count_characters(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        n += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return n;
}

err_code request_metadata_check(const json *metadata, err_detail *d)
{
    enum { PAIRS = 16, KEY_CHARACTERS = 64, VALUE_CHARACTERS = 512 };
    bool ok =
        json_typeof(metadata) == JSON_NULL || (json_is(metadata, JSON_OBJECT) && json_len(metadata) <= PAIRS);
    for (const json *v = json_child(metadata); v && ok; v = json_next(v)) {
        ok = json_is(v, JSON_STRING) && count_characters(json_key(v)) <= KEY_CHARACTERS &&
             count_characters(json_str(v, "")) <= VALUE_CHARACTERS;
    }
    return ok ? ERR_OK
              : err_set_param(
                    d, ERR_INVALID, "metadata", "invalid_value",
                    "metadata must be an object of at most %d texts of up to %d characters, with keys of "
                    "up to %d",
                    PAIRS, VALUE_CHARACTERS, KEY_CHARACTERS);
}

void other_fields_check(first_error *e, const json *root, other_protocol protocol)
{
    if (protocol != OTHER_MESSAGES && e->code == ERR_OK) {
        e->code = request_metadata_check(json_get(root, "metadata"), e->detail);
    }
    check_others(e, OTHER_FIELDS, ARRAY_LEN(OTHER_FIELDS), root, protocol);
    check_others(e, CACHE_OPTIONS, ARRAY_LEN(CACHE_OPTIONS), json_get(root, "prompt_cache_options"),
                 protocol);
}
