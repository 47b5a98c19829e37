#include "server/protocol/request_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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

void request_path(char out[ERR_PARAM_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, ERR_PARAM_MAX, format, args);
    va_end(args);
}

static const json *present(const json *root, const char *name)
{
    const json *v = json_get(root, name);
    return json_typeof(v) == JSON_NULL ? NULL : v;
}

err_code request_number(double *out, const json *root, const char *name, double min, double max,
                        err_detail *d)
{
    const json *v = present(root, name);
    if (!v) {
        return ERR_OK;
    }
    double number = json_num(v, NAN);
    if (!json_is(v, JSON_NUMBER) || !(number >= min && number <= max)) {
        return err_set_param(d, ERR_INVALID, name, "invalid_value", "%s must be a number from %g to %g", name,
                             min, max);
    }
    *out = number;
    return ERR_OK;
}

err_code request_int(int64_t *out, const json *root, const char *name, int64_t min, int64_t max,
                     err_detail *d)
{
    const json *v = present(root, name);
    if (v && !json_int(v, min, max, out)) {
        if (min == max) {
            return err_set_param(d, ERR_INVALID, name, "invalid_value", "%s must be %lld", name,
                                 (long long)min);
        }
        return err_set_param(d, ERR_INVALID, name, "invalid_value",
                             "%s must be a whole number from %lld to %lld", name, (long long)min,
                             (long long)max);
    }
    return ERR_OK;
}

err_code request_bool(bool *out, const json *root, const char *name, err_detail *d)
{
    const json *v = present(root, name);
    if (!v) {
        return ERR_OK;
    }
    if (!json_is(v, JSON_BOOL)) {
        return err_set_param(d, ERR_INVALID, name, "invalid_type", "%s must be true or false", name);
    }
    *out = json_is_true(v);
    return ERR_OK;
}

err_code request_string(const char **out, const json *root, const char *name, size_t max_bytes, err_detail *d)
{
    const json *v = present(root, name);
    if (!v) {
        return ERR_OK;
    }
    if (!json_is(v, JSON_STRING)) {
        return err_set_param(d, ERR_INVALID, name, "invalid_type", "%s must be a string", name);
    }
    if (strlen(json_str(v, "")) > max_bytes) {
        return err_set_param(d, ERR_INVALID, name, "invalid_value", "%s is longer than %zu bytes", name,
                             max_bytes);
    }
    *out = json_str(v, "");
    return ERR_OK;
}

/* ---- sampling ---- */

static err_code read_float(float *out, const json *root, const char *name, double min, double max,
                           err_detail *d)
{
    double value = (double)*out;
    err_code err = request_number(&value, root, name, min, max, d);
    *out = (float)value;
    return err;
}

static err_code read_logit_bias(chat_input *in, const json *root, const engine_info *info, err_detail *d)
{
    const json *map = present(root, "logit_bias");
    if (!map) {
        return ERR_OK;
    }
    size_t n = json_is(map, JSON_OBJECT) ? json_len(map) : SIZE_MAX;
    if (n > LIMIT_LOGIT_BIAS) {
        return err_set_param(d, ERR_INVALID, "logit_bias", "invalid_value",
                             "logit_bias must be an object of at most %d token ids", LIMIT_LOGIT_BIAS);
    }
    in->params.biases = arena_calloc(in->arena, n + 1, sizeof(gen_bias));
    if (!in->params.biases) {
        return err_set(d, ERR_NOMEM, "no memory for logit_bias");
    }
    for (const json *v = json_child(map); v; v = json_next(v)) {
        char *end;
        const char *key = json_key(v);
        long id = isdigit((unsigned char)key[0]) ? strtol(key, &end, 10) : -1;
        double bias = json_num(v, NAN);
        if (id < 0 || *end || id > INT32_MAX || (info && id >= info->n_vocab) || !(fabs(bias) <= 100.0)) {
            return err_set_param(d, ERR_INVALID, "logit_bias", "invalid_value",
                                 "logit_bias maps token ids of the vocabulary to numbers from -100 to 100");
        }
        in->params.biases[in->params.n_biases++] = (gen_bias){.id = (int32_t)id, .bias = (float)bias};
    }
    return ERR_OK;
}

static err_code read_seed(gen_params *p, const json *root, err_detail *d)
{
    int64_t seed = -1;
    bool given = present(root, "seed") != NULL;
    err_code err = request_int(&seed, root, "seed", INT64_MIN, INT64_MAX, d);
    if (err == ERR_OK && given && seed != -1) { /* -1 means a random one, as in other servers */
        p->has_seed = true;
        p->seed = (uint64_t)seed;
    }
    return err;
}

/* How the answer is computed, never what it says: in the body, or in its "parley" object. */
static err_code read_engine_switches(gen_params *p, const json *root, err_detail *d)
{
    const json *extras = present(root, "parley");
    if (extras && !json_is(extras, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, "parley", "invalid_type", "parley must be an object");
    }
    const json *const places[] = {root, extras};
    bool mtp = true, cache = true;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        err_code err = request_bool(&mtp, places[i], "mtp", d);
        if (err == ERR_OK) {
            err = request_bool(&cache, places[i], "cache_prompt", d);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    p->no_draft = !mtp;
    p->no_cache = !cache;
    return ERR_OK;
}

err_code request_read_sampling(chat_input *in, const json *root, const engine_info *info, err_detail *d)
{
    gen_params *p = &in->params;
    err_code err = read_float(&p->temperature, root, "temperature", 0.0, 2.0, d);
    if (err == ERR_OK) {
        err = read_float(&p->top_p, root, "top_p", 0.0, 1.0, d);
    }
    if (err == ERR_OK) {
        err = read_float(&p->min_p, root, "min_p", 0.0, 1.0, d);
    }
    if (err == ERR_OK) {
        err = read_float(&p->presence_penalty, root, "presence_penalty", -2.0, 2.0, d);
    }
    if (err == ERR_OK) {
        err = read_float(&p->frequency_penalty, root, "frequency_penalty", -2.0, 2.0, d);
    }
    if (err == ERR_OK) {
        err = read_float(&p->repetition_penalty, root, "repetition_penalty", 0.01, 10.0, d);
    }
    if (err == ERR_OK) {
        err = read_float(&p->repetition_penalty, root, "repeat_penalty", 0.01, 10.0, d);
    }
    int64_t top_k = p->top_k;
    if (err == ERR_OK) {
        err = request_int(&top_k, root, "top_k", -1, 1000000, d);
        p->top_k = present(root, "top_k") && top_k < 0 ? 0 : (int32_t)top_k; /* -1 asks for "off" */
    }
    if (err == ERR_OK) {
        err = read_seed(p, root, d);
    }
    if (err == ERR_OK) {
        err = read_engine_switches(p, root, d);
    }
    return err == ERR_OK ? read_logit_bias(in, root, info, d) : err;
}

static err_code add_stop(reply_options *o, const json *v, err_detail *d)
{
    const char *text = json_str(v, NULL);
    size_t len = text ? strlen(text) : 0;
    if (len == 0 || len > LIMIT_STOP_BYTES || o->n_stops == LIMIT_STOP_STRINGS) {
        return err_set_param(d, ERR_INVALID, "stop", "invalid_value",
                             "stop must be a string or a list of at most %d strings of 1 to %d bytes",
                             LIMIT_STOP_STRINGS, LIMIT_STOP_BYTES);
    }
    char *copy = malloc(len + 1);
    if (!copy) {
        return err_set(d, ERR_NOMEM, "no memory for stop");
    }
    memcpy(copy, text, len + 1);
    o->stops[o->n_stops++] = copy;
    return ERR_OK;
}

err_code request_read_stop(reply_options *o, const json *root, err_detail *d)
{
    const json *stop = present(root, "stop");
    if (!stop) {
        return ERR_OK;
    }
    if (!json_is(stop, JSON_ARRAY)) {
        return add_stop(o, stop, d);
    }
    err_code err = ERR_OK;
    for (const json *v = json_child(stop); v && err == ERR_OK; v = json_next(v)) {
        err = add_stop(o, v, d);
    }
    return err;
}

err_code request_read_continue(chat_input *in, const json *root, err_detail *d)
{
    err_code err = request_bool(&in->continues, root, "continue_final_message", d);
    if (err != ERR_OK || !in->continues) {
        return err;
    }
    const chat_message *m = in->n_messages ? &in->messages[in->n_messages - 1] : NULL;
    bool has_words = m && m->role == CHAT_ASSISTANT && m->n_tool_calls == 0 && (m->n_parts || m->reasoning);
    for (size_t i = 0; has_words && i < m->n_parts; i++) {
        has_words = m->parts[i].kind == CHAT_TEXT;
    }
    return has_words ? ERR_OK
                     : err_set_param(d, ERR_INVALID, "continue_final_message", "invalid_value",
                                     "continue_final_message needs an assistant's words as the last message");
}

/* ---- thinking ---- */

/* What the words for effort mean: whether to think, and for how many tokens (-1: no limit). */
typedef struct effort_row {
    const char *name;
    bool thinks;
    int32_t budget;
} effort_row;

static const effort_row *find_effort(const char *name)
{
    static const effort_row EFFORTS[] = {{"none", false, -1},    {"minimal", true, 128}, {"low", true, 512},
                                         {"medium", true, 1024}, {"high", true, -1},     {"xhigh", true, -1}};
    for (size_t i = 0; i < sizeof EFFORTS / sizeof EFFORTS[0]; i++) {
        if (strcmp(EFFORTS[i].name, name) == 0) {
            return &EFFORTS[i];
        }
    }
    return NULL;
}

/* Appends ,"key":value */
static void write_member(bytes *text, const json *v)
{
    bytes_append_char(text, ',');
    bytes_append_json(text, json_key(v), strlen(json_key(v)));
    bytes_append_char(text, ':');
    json_write(text, v);
}

/* The template's variables with those that the request's own fields mean; kwargs win, they are the
 * more specific. `standard` has what counts where the request leaves something open. */
static err_code write_kwargs(json_doc **doc, const json *kwargs, const json *standard, const bool *thinking,
                             const char *effort, err_detail *d)
{
    bytes text;
    bytes_init(&text, 1 << 20);
    for (const json *v = json_child(standard); v; v = json_next(v)) {
        const char *key = json_key(v);
        if (!json_get(kwargs, key) && !(thinking && strcmp(key, "enable_thinking") == 0) &&
            !(effort && strcmp(key, "reasoning_effort") == 0)) {
            write_member(&text, v);
        }
    }
    if (thinking && !json_get(kwargs, "enable_thinking")) {
        bytes_printf(&text, ",\"enable_thinking\":%s", *thinking ? "true" : "false");
    }
    if (effort && !json_get(kwargs, "reasoning_effort")) {
        bytes_printf(&text, ",\"reasoning_effort\":\"%s\"", effort);
    }
    for (const json *v = json_child(kwargs); v; v = json_next(v)) {
        write_member(&text, v);
    }
    if (text.len > 0) {
        text.data[0] = '{';
    } else {
        bytes_append_char(&text, '{');
    }
    bytes_append_char(&text, '}');
    err_code err = text.failed ? err_set(d, ERR_LIMIT, "chat_template_kwargs is too large")
                               : json_parse(doc, text.data, text.len, LIMIT_JSON_DEPTH, d);
    bytes_deinit(&text);
    return err;
}

static err_code read_budget(gen_params *p, const json *root, const effort_row *effort, err_detail *d)
{
    static const char *const NAMES[] = {"reasoning_budget", "thinking_budget"};
    int64_t budget = effort && effort->budget >= 0 ? effort->budget : p->think_tokens;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        err_code err = request_int(&budget, root, NAMES[i], -1, INT32_MAX, d);
        if (err != ERR_OK) {
            return err;
        }
        if (present(root, NAMES[i]) && budget < 0) {
            budget = INT32_MAX; /* no limit, whatever the server's default is */
        }
    }
    p->think_tokens = (int32_t)budget;
    return ERR_OK;
}

err_code request_read_thinking(chat_input *in, json_doc **doc, const json *root, const json *standard,
                               const char *effort, const char *effort_param, err_detail *d)
{
    *doc = NULL;
    const json *kwargs = present(root, "chat_template_kwargs");
    if (kwargs && !json_is(kwargs, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, "chat_template_kwargs", "invalid_type",
                             "chat_template_kwargs must be an object");
    }
    const effort_row *row = effort ? find_effort(effort) : NULL;
    if (effort && !row) {
        return err_set_param(d, ERR_INVALID, effort_param, "invalid_value",
                             "%s must be none, minimal, low, medium, high or xhigh", effort_param);
    }
    bool thinking = !row || row->thinks;
    err_code err = request_bool(&thinking, root, "enable_thinking", d);
    if (err == ERR_OK) {
        err = read_budget(&in->params, root, row, d);
    }
    if (err != ERR_OK) {
        return err;
    }
    thinking = thinking && (!row || row->thinks);
    in->template_kwargs = kwargs;
    const bool says = row || present(root, "enable_thinking");
    if (says || standard) {
        err = write_kwargs(doc, kwargs, standard, says ? &thinking : NULL, row ? row->name : NULL, d);
        in->template_kwargs = err == ERR_OK ? json_root(*doc) : NULL;
    }
    return err;
}
