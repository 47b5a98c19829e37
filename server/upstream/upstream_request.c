#include "server/upstream/upstream_request.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

enum { ID_BYTES = 64 };
enum { ON_OTHER = 1, ON_VLLM = 2, ON_SGLANG = 4, ON_LLAMA_CPP = 8, ON_PARLEY = 16, ON_ALL = 31 };

typedef struct writer {
    bytes *out;
    const api_request *r;
    const json *root; /* the body as the client sent it */
    const upstream_facts *facts;
    err_detail *detail;
    err_code err;
} writer;

static bool is_on(const writer *w, upstream_engine e)
{
    return w->facts->engine == e;
}

static void refuse(writer *w, const char *param, const char *what)
{
    if (w->err == ERR_OK) {
        w->err = err_set_param(w->detail, ERR_UNSUPPORTED, param, "not_supported", "%s (%s) %s",
                               w->facts->server, upstream_engine_name(w->facts->engine), what);
    }
}

/* ---- messages ---- */

static void write_text(writer *w, const chat_part *p)
{
    bytes_append_json(w->out, p->text, p->text_len);
}

/* One string where it is one, so that what comes out of the template is what the sender meant. */
static void write_content(writer *w, const chat_message *m)
{
    if (m->n_parts == 0) {
        bytes_append_str(w->out, m->n_tool_calls > 0 ? "null" : "\"\"");
        return;
    }
    if (m->n_parts == 1 && m->parts[0].kind == CHAT_TEXT) {
        write_text(w, &m->parts[0]);
        return;
    }
    if (m->is_string) {
        bytes all = bytes_empty(LIMIT_BODY_BYTES);
        for (size_t i = 0; i < m->n_parts; i++) {
            bytes_append(&all, m->parts[i].text, m->parts[i].text_len);
        }
        bytes_append_json(w->out, bytes_str(&all), all.len);
        bytes_fail_as(w->out, &all);
        bytes_deinit(&all);
        return;
    }
    bytes_append_char(w->out, '[');
    for (size_t i = 0; i < m->n_parts && w->err == ERR_OK; i++) {
        const chat_part *p = &m->parts[i];
        bytes_append_str(w->out, i ? "," : "");
        if (p->kind == CHAT_TEXT) {
            bytes_append_str(w->out, "{\"type\":\"text\",\"text\":");
            write_text(w, p);
            bytes_append_char(w->out, '}');
        } else {
            w->err = upstream_media_write(w->facts->media, w->out, p, w->detail);
        }
    }
    bytes_append_char(w->out, ']');
}

/* The id of a call, its own or one made of its place. */
static void write_call_id(writer *w, const char *id, size_t message, size_t call)
{
    char made[ID_BYTES];
    snprintf(made, sizeof made, "call_%zu_%zu", message, call);
    bytes_json(w->out, "%s", id && id[0] ? id : made);
}

static void write_calls(writer *w, const chat_message *m, size_t at)
{
    bytes arguments = bytes_empty(LIMIT_BODY_BYTES);
    bytes_append_str(w->out, ",\"tool_calls\":[");
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        const chat_tool_call *c = &m->tool_calls[i];
        bytes_append_str(w->out, i ? ",{\"id\":" : "{\"id\":");
        write_call_id(w, c->id, at, i);
        bytes_clear(&arguments);
        if (c->arguments) {
            json_write(&arguments, c->arguments);
        } else {
            bytes_append_str(&arguments, "{}");
        }
        bytes_fail_as(w->out, &arguments);
        bytes_json(w->out, ",\"type\":\"function\",\"function\":{\"name\":%s,\"arguments\":%.*s}}", c->name,
                   BYTES_ARG(&arguments));
    }
    bytes_append_char(w->out, ']');
    bytes_deinit(&arguments);
}

static void write_messages(writer *w)
{
    static const char *const ROLES[] = {
        [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant", [CHAT_TOOL] = "tool"};
    const chat_input *in = w->r->in;
    size_t asked = 0, call = 0; /* the message and the number of the call whose result comes next */
    bytes_append_str(w->out, ",\"messages\":[");
    for (size_t i = 0; i < in->n_messages && w->err == ERR_OK; i++) {
        const chat_message *m = &in->messages[i];
        bytes_printf(w->out, "%s{\"role\":\"%s\",\"content\":", i ? "," : "", ROLES[m->role]);
        write_content(w, m);
        if (m->name) {
            bytes_json(w->out, ",\"name\":%s", m->name);
        }
        if (m->reasoning && !is_on(w, UPSTREAM_OTHER)) {
            bytes_json(w->out, ",\"%-s\":%s", is_on(w, UPSTREAM_VLLM) ? "reasoning" : "reasoning_content",
                       m->reasoning);
        }
        if (m->n_tool_calls > 0) {
            write_calls(w, m, i);
        }
        if (m->role == CHAT_TOOL) {
            while (call == in->messages[asked].n_tool_calls) {
                asked++;
                call = 0;
            }
            assert(asked < i); /* each result is of a call in front of it, which has no other */
            const char *id = in->messages[asked].tool_calls[call].id;
            bytes_append_str(w->out, ",\"tool_call_id\":");
            write_call_id(w, m->tool_call_id ? m->tool_call_id : id, asked, call);
            call++;
        }
        bytes_append_char(w->out, '}');
    }
    bytes_append_char(w->out, ']');
    if (in->continues) {
        if (is_on(w, UPSTREAM_OTHER)) {
            refuse(w, "messages",
                   "cannot go on with an answer that is given (the last message is the assistant's)");
        } else if (!is_on(w, UPSTREAM_LLAMA_CPP)) { /* which does so by itself */
            bytes_append_str(w->out, ",\"continue_final_message\":true,\"add_generation_prompt\":false");
        }
    }
}

static void write_prompt(writer *w, const upstream_prompt *p)
{
    if (p->text) {
        bytes_json(w->out, ",\"prompt\":%s", p->text);
        return;
    }
    bytes_append_str(w->out, ",\"prompt\":[");
    for (size_t i = 0; i < p->n_ids; i++) {
        bytes_printf(w->out, i ? ",%d" : "%d", p->ids[i]);
    }
    bytes_append_char(w->out, ']');
}

/* ---- sampling ---- */

static void write_number(writer *w, const char *name, float value)
{
    if (isfinite(value)) {
        bytes_printf(w->out, ",\"%s\":%g", name, (double)value);
    }
}

static void write_sampling(writer *w, bool is_chat)
{
    const gen_params *p = &w->r->in->params;
    const reply_options *o = &w->r->reply;
    write_number(w, "temperature", p->temperature);
    write_number(w, "top_p", p->top_p);
    write_number(w, "min_p", p->min_p);
    write_number(w, "presence_penalty", p->presence_penalty);
    write_number(w, "frequency_penalty", p->frequency_penalty);
    write_number(w, is_on(w, UPSTREAM_LLAMA_CPP) ? "repeat_penalty" : "repetition_penalty",
                 p->repetition_penalty);
    if (p->top_k >= 0) { /* 0: off, which is -1 there */
        bytes_printf(w->out, ",\"top_k\":%d", p->top_k == 0 && !is_on(w, UPSTREAM_LLAMA_CPP) ? -1 : p->top_k);
    }
    if (p->has_seed) {
        bytes_printf(w->out, ",\"seed\":%lld", (long long)(p->seed & INT64_MAX));
    }
    if (p->max_tokens > 0) {
        const bool is_new = is_on(w, UPSTREAM_OTHER) && json_get(w->root, "max_completion_tokens");
        bytes_printf(w->out, ",\"%s\":%d", is_new ? "max_completion_tokens" : "max_tokens", p->max_tokens);
    }
    if (o->logprobs && is_chat) {
        bytes_printf(w->out, ",\"logprobs\":true,\"top_logprobs\":%d",
                     p->n_top_logprobs > 0 ? p->n_top_logprobs : 0);
    } else if (o->logprobs) {
        bytes_printf(w->out, ",\"logprobs\":%d", p->n_top_logprobs);
    }
    for (size_t i = 0; i < o->n_stops; i++) {
        bytes_append_str(w->out, i ? "," : ",\"stop\":[");
        bytes_json(w->out, "%s", o->stops[i]);
    }
    bytes_append_str(w->out, o->n_stops ? "]" : "");
    for (size_t i = 0; i < p->n_biases; i++) {
        bytes_append_str(w->out, i ? "," : ",\"logit_bias\":{");
        bytes_printf(w->out, "\"%d\":%g", p->biases[i].id, (double)p->biases[i].bias);
    }
    bytes_append_str(w->out, p->n_biases ? "}" : "");
}

/* Fields that some engines know and this server has no use for, as the client sent them. */
static void write_others(writer *w)
{
    static const struct {
        const char *name;
        unsigned engines;
    } ROWS[] = {
        {"min_tokens", ON_VLLM | ON_SGLANG | ON_PARLEY},
        {"stop_token_ids", ON_VLLM | ON_SGLANG},
        {"ignore_eos", ON_VLLM | ON_SGLANG | ON_LLAMA_CPP | ON_PARLEY},
        {"skip_special_tokens", ON_VLLM | ON_SGLANG},
        {"bad_words", ON_VLLM},
        {"allowed_token_ids", ON_VLLM},
        {"priority", ON_VLLM | ON_SGLANG},
        {"mm_processor_kwargs", ON_VLLM},
        {"stop_regex", ON_SGLANG},
        {"no_stop_trim", ON_SGLANG},
        {"lora_path", ON_SGLANG},
        {"custom_logit_processor", ON_SGLANG},
        {"custom_params", ON_SGLANG},
        {"typical_p", ON_LLAMA_CPP},
        {"top_n_sigma", ON_LLAMA_CPP},
        {"xtc_probability", ON_LLAMA_CPP},
        {"xtc_threshold", ON_LLAMA_CPP},
        {"dry_multiplier", ON_LLAMA_CPP},
        {"dry_base", ON_LLAMA_CPP},
        {"dry_allowed_length", ON_LLAMA_CPP},
        {"dynatemp_range", ON_LLAMA_CPP},
        {"mirostat", ON_LLAMA_CPP},
        {"samplers", ON_LLAMA_CPP},
        {"verbosity", ON_OTHER},
        {"service_tier", ON_OTHER},
        {"prompt_cache_key", ON_OTHER},
        {"safety_identifier", ON_OTHER},
        {"user", ON_ALL},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const json *v = json_get(w->root, ROWS[i].name);
        if (json_typeof(v) != JSON_NULL && (ROWS[i].engines & 1U << w->facts->engine)) {
            bytes_printf(w->out, ",\"%s\":", ROWS[i].name);
            json_write(w->out, v);
        }
    }
}

/* ---- thinking ---- */

static bool has_field(const writer *w, const char *name)
{
    return json_typeof(json_get(w->root, name)) != JSON_NULL;
}

/* Variables of the template; OpenAI's API has none, there they are sent only if the client did so. */
static void write_thinking(writer *w)
{
    static const char EFFORT[] = "reasoning_effort";
    const json *kwargs = w->r->in->template_kwargs;
    const char *effort = json_str(json_get(kwargs, EFFORT), NULL);
    const bool in_kwargs = is_on(w, UPSTREAM_LLAMA_CPP);
    const bool sends =
        !is_on(w, UPSTREAM_OTHER) || has_field(w, "chat_template_kwargs") || has_field(w, "enable_thinking");
    const int32_t budget = w->r->in->params.think_tokens;
    if (effort && !in_kwargs) {
        bytes_json(w->out, ",\"reasoning_effort\":%s", effort);
    }
    size_t n = 0;
    for (const json *v = sends ? json_child(kwargs) : NULL; v; v = json_next(v)) {
        if (in_kwargs || strcmp(json_key(v), EFFORT) != 0) {
            bytes_append_str(w->out, n++ ? "," : ",\"chat_template_kwargs\":{");
            bytes_json(w->out, "%s:", json_key(v));
            json_write(w->out, v);
        }
    }
    bytes_append_str(w->out, n ? "}" : "");
    if (!w->r->gives_budget || budget == INT32_MAX) {
        return;
    }
    if (is_on(w, UPSTREAM_VLLM) || is_on(w, UPSTREAM_PARLEY)) {
        bytes_printf(w->out, ",\"thinking_token_budget\":%d", budget);
    } else if (is_on(w, UPSTREAM_LLAMA_CPP)) {
        bytes_printf(w->out, ",\"reasoning_budget_tokens\":%d,\"thinking_budget_tokens\":%d", budget, budget);
    } else if (!has_field(w, "thinking")) { /* Messages always has one; it is a wish there */
        refuse(w, "reasoning_budget", "has no reasoning budget; send reasoning_effort");
    }
}

/* ---- the form of the answer ---- */

typedef enum form_kind { FORM_NONE, FORM_JSON, FORM_REGEX, FORM_CHOICE, FORM_GRAMMAR } form_kind;

/* What the client asks for in any engine's words: *out is the value. */
static form_kind find_form(const writer *w, const json **out, const char **param)
{
    static const struct {
        const char *name;
        form_kind kind;
    } ROWS[] = {{"guided_json", FORM_JSON},     {"guided_regex", FORM_REGEX},
                {"guided_choice", FORM_CHOICE}, {"guided_grammar", FORM_GRAMMAR},
                {"json_schema", FORM_JSON},     {"regex", FORM_REGEX},
                {"ebnf", FORM_GRAMMAR},         {"grammar", FORM_GRAMMAR}};
    static const struct {
        const char *name;
        form_kind kind;
    } MEMBERS[] = {
        {"json", FORM_JSON}, {"regex", FORM_REGEX}, {"choice", FORM_CHOICE}, {"grammar", FORM_GRAMMAR}};
    const json *outputs = json_get(w->root, "structured_outputs");
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        *out = json_get(outputs, MEMBERS[i].name);
        *param = "structured_outputs";
        if (json_typeof(*out) != JSON_NULL) {
            return MEMBERS[i].kind;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        *out = json_get(w->root, ROWS[i].name);
        *param = ROWS[i].name;
        if (json_typeof(*out) != JSON_NULL) {
            return ROWS[i].kind;
        }
    }
    return FORM_NONE;
}

static void append_escaped(bytes *out, const char *text, const char *special)
{
    for (const char *c = text; *c; c++) {
        if (strchr(special, *c)) {
            bytes_append_char(out, '\\');
        }
        bytes_append_char(out, *c);
    }
}

/* A list of texts as a pattern, or as a grammar of llama.cpp. */
static void write_choices(writer *w, const json *list, bool is_pattern)
{
    bytes text = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
    bytes_append_str(&text, is_pattern ? "(" : "root ::= ");
    for (const json *v = json_child(list); v; v = json_next(v)) {
        const char *one = json_str(v, "");
        bytes_append_str(&text, v == json_child(list) ? "" : is_pattern ? "|" : " | ");
        bytes_append_str(&text, is_pattern ? "" : "\"");
        append_escaped(&text, one, is_pattern ? ".^$*+?()[]{}|\\/" : "\"\\");
        bytes_append_str(&text, is_pattern ? "" : "\"");
    }
    bytes_append_str(&text, is_pattern ? ")" : "");
    bytes_json(w->out, is_pattern ? ",\"regex\":%.*s" : ",\"grammar\":%.*s", BYTES_ARG(&text));
    bytes_fail_as(w->out, &text);
    bytes_deinit(&text);
}

static void write_json_form(writer *w, const json *schema)
{
    const json *format = json_get(w->root, "response_format");
    const json *strict = json_get(json_get(format, "json_schema"), "strict");
    strict = strict ? strict : json_get(json_get(json_get(w->root, "text"), "format"), "strict");
    if (!schema) {
        bytes_append_str(w->out, ",\"response_format\":{\"type\":\"json_object\"}");
        return;
    }
    bytes_append_str(w->out,
                     ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",");
    bytes_append_str(w->out, json_is_true(strict) ? "\"strict\":true,\"schema\":" : "\"schema\":");
    if (json_is(schema, JSON_STRING)) { /* SGLang's json_schema is a text */
        bytes_append_str(w->out, json_str(schema, "{}"));
    } else {
        json_write(w->out, schema);
    }
    bytes_append_str(w->out, "}}");
}

static bool is_schema(const json *v)
{
    json_doc *doc = NULL;
    const char *text = json_str(v, NULL);
    if (!text) {
        return json_is(v, JSON_OBJECT);
    }
    const bool ok = json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, NULL) == ERR_OK &&
                    json_is(json_root(doc), JSON_OBJECT);
    json_free(doc);
    return ok;
}

static void write_other_form(writer *w, form_kind kind, const json *v, const char *param)
{
    static const char *const NAMES[] = {
        [FORM_JSON] = "json", [FORM_REGEX] = "regex", [FORM_CHOICE] = "choice", [FORM_GRAMMAR] = "grammar"};
    const bool is_right = kind == FORM_JSON     ? is_schema(v)
                          : kind == FORM_CHOICE ? json_is(v, JSON_ARRAY) && json_len(v) > 0
                                                : json_is(v, JSON_STRING);
    if (!is_right) {
        w->err = err_set_param(w->detail, ERR_INVALID, param, "invalid_value", "%s must be %s", param,
                               kind == FORM_JSON     ? "a schema"
                               : kind == FORM_CHOICE ? "a list of texts"
                                                     : "a text");
    } else if (kind == FORM_JSON) {
        write_json_form(w, v);
    } else if (is_on(w, UPSTREAM_VLLM)) {
        bytes_printf(w->out, ",\"structured_outputs\":{\"%s\":", NAMES[kind]);
        json_write(w->out, v);
        bytes_append_char(w->out, '}');
    } else if (kind == FORM_CHOICE && (is_on(w, UPSTREAM_SGLANG) || is_on(w, UPSTREAM_LLAMA_CPP))) {
        write_choices(w, v, is_on(w, UPSTREAM_SGLANG));
    } else if (kind == FORM_GRAMMAR && (is_on(w, UPSTREAM_SGLANG) || is_on(w, UPSTREAM_LLAMA_CPP))) {
        bytes_json(w->out, is_on(w, UPSTREAM_SGLANG) ? ",\"ebnf\":%s" : ",\"grammar\":%s", json_str(v, ""));
    } else if (kind == FORM_REGEX && is_on(w, UPSTREAM_SGLANG)) {
        bytes_json(w->out, ",\"regex\":%s", json_str(v, ""));
    } else {
        refuse(w, param, "cannot hold its answer to this form; a schema (response_format) works");
    }
}

static void write_form(writer *w)
{
    const json *value = NULL;
    const char *param = NULL;
    const form_kind kind = find_form(w, &value, &param);
    const grammar_spec *form = w->r->answer_form;
    if (form) {
        write_json_form(w, form->schema);
    } else if (kind != FORM_NONE) {
        write_other_form(w, kind, value, param);
    }
}

static void write_tools(writer *w)
{
    const api_request *r = w->r;
    if (!r->in->tools) {
        return;
    }
    bytes_append_str(w->out, ",\"tools\":");
    json_write(w->out, r->in->tools);
    if (r->forces_calls && r->forced_tool) {
        bytes_json(w->out, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":%s}}",
                   r->forced_tool);
    } else if (r->forces_calls) {
        bytes_append_str(w->out, ",\"tool_choice\":\"required\"");
    }
    bytes_append_str(w->out, r->reply.one_call ? ",\"parallel_tool_calls\":false" : "");
}

err_code upstream_request_write(bytes *out, const api_request *r, const upstream_prompt *prompt,
                                const upstream_facts *facts, err_detail *d)
{
    const bool is_chat = !prompt->text && !prompt->ids;
    writer w = {.out = out, .r = r, .root = json_root(r->in->keep), .facts = facts, .detail = d};
    bytes_json(out, "{\"model\":%s,\"stream\":true,\"stream_options\":{\"include_usage\":true}",
               facts->model);
    if (is_chat) {
        write_messages(&w);
        upstream_media_end(facts->media, out);
        write_tools(&w);
        write_thinking(&w);
    } else {
        write_prompt(&w, prompt);
    }
    write_sampling(&w, is_chat);
    write_form(&w);
    write_others(&w);
    if (r->in->params.scores_prompt || r->in->params.max_tokens == 0) {
        refuse(&w, r->in->params.scores_prompt ? "echo" : "max_tokens",
               "is asked for answers alone; logprobs of a prompt are for models of this server");
    }
    if (r->asks_edits || r->compact_at) {
        refuse(&w, "context_management",
               "does not say how long a prompt is; shorten the conversation yourself");
    }
    bytes_append_char(out, '}');
    if (w.err == ERR_OK && out->no_memory) {
        return err_set(d, ERR_NOMEM, "there is not enough memory");
    }
    if (w.err == ERR_OK && out->failed) {
        return err_set_param(d, ERR_LIMIT, NULL, "body_too_large", "the request is too large for %s",
                             facts->server);
    }
    return w.err;
}
