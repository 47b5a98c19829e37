#include "server/protocol/request_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void reply_options_init(reply_options *o)
{
    memset(o, 0, sizeof *o);
    o->temperature = o->top_p = NAN;
    o->max_tokens = -1;
    bytes_init(&o->items, LIMIT_STORED_RESPONSE_BYTES);
}

void reply_options_deinit(reply_options *o)
{
    for (size_t i = 0; i < o->n_stops; i++) {
        free(o->stops[i]);
    }
    free(o->echo);
    free(o->metadata);
    free(o->text_options);
    free(o->tools_text);
    free(o->tool_choice_text);
    bytes_deinit(&o->items);
    tool_set_destroy(o->tools);
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
    if (min == max) {
        request_fail(e, ERR_INVALID, name, "invalid_value", "%s must be %lld", name, (long long)min);
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
    }
    for (const json *v = json_child(map); v && e->code == ERR_OK; v = json_next(v)) {
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

/* How the answer is computed, never what it says: in the body, or in its "parley" object. */
static void read_engine_switches(first_error *e, gen_params *p, const json *root)
{
    const json *const places[] = {root, request_object(e, root, "parley")};
    bool mtp = true, lookup = true, cache = true;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        request_bool(e, &mtp, places[i], "mtp");
        request_bool(e, &lookup, places[i], "prompt_lookup");
        request_bool(e, &cache, places[i], "cache_prompt");
    }
    p->no_draft = !mtp;
    p->no_lookup = !lookup;
    p->no_cache = !cache;
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
