/* request: any body of each dialect; what is accepted can be said to another server, and kept. The first byte
 * chooses the dialect, and how the other server is asked. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/response_items.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/vectors.h"
#include "server/upstream/upstream_request.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ids are the same each time: they count from one for each input. */
static unsigned n_random;

ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    (void)flags;
    memset(out, 0, n);
    n_random++;
    memcpy(out, &n_random, n < sizeof n_random ? n : sizeof n_random);
    return (ssize_t)n;
}

static err_code parse(api_request *r, completion_prompt *prompt, unsigned dialect, const char *text,
                      size_t len, err_detail *d)
{
    switch (dialect) {
    case 1:
        return messages_request_parse(r, text, len, true, NULL, d);
    case 2:
        return responses_request_parse(r, text, len, false, NULL, d);
    case 3:
        return responses_compact_parse(r, text, len, NULL, d);
    case 4:
        return completion_request_parse(r, prompt, text, len, NULL, d);
    case 5:
        return ollama_request_parse(r, text, len, false, NULL, d);
    case 6:
        return ollama_request_parse(r, text, len, true, NULL, d);
    case 7:
        return rerank_request_parse(r, prompt, text, len, NULL, d);
    default:
        return chat_request_parse(r, text, len, NULL, d);
    }
}

static bool has_media(const chat_input *in)
{
    bool found = false;
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            found = found || in->messages[i].parts[k].kind != CHAT_TEXT;
        }
    }
    return found;
}

/* What other servers are told is JSON; images would have to be decoded for that. */
static void forward(const api_request *r, const completion_prompt *prompt, unsigned number)
{
    err_detail d = {0};
    upstream_media media = {.engine = (upstream_engine)number};
    const upstream_prompt raw = {.text = prompt->text, .ids = prompt->ids, .n_ids = prompt->n_ids};
    const upstream_facts facts = {
        .server = "up", .model = "m", .engine = (upstream_engine)number, .media = &media};
    if (!has_media(r->in)) {
        bytes out = bytes_empty(SIZE_MAX / 2);
        upstream_media_begin(&media, r->in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
        if (upstream_request_write(&out, r, &raw, &facts, &d) == ERR_OK) {
            must_be_json(&out);
            say_text("forwarded", bytes_str(&out), out.len);
        } else {
            must(d.text[0] != '\0');
            say_error(ERR_UPSTREAM, &d);
        }
        bytes_deinit(&out);
    }
}

static void keep(const api_request *r)
{
    bytes out = bytes_empty(SIZE_MAX / 2);
    bytes_append_char(&out, '[');
    response_items_keep(&out, json_get(json_root(r->in->keep), "input"));
    bytes_append_char(&out, ']');
    must_be_json(&out);
    say_text("kept", bytes_str(&out), out.len);
    bytes_deinit(&out);
}

static void say_json(const char *name, const json *v)
{
    if (v) {
        bytes out = bytes_empty(SIZE_MAX / 2);
        json_write(&out, v);
        say_text(name, bytes_str(&out), out.len);
        bytes_deinit(&out);
    }
}

static void say_part(const chat_part *p)
{
    if (p->kind == CHAT_TEXT) {
        say_text(p->is_ours ? "our text" : "text", p->text, p->text_len);
        return;
    }
    const chat_video *v = &p->video;
    say("media %d, %zu bytes, pixels %lld to %lld, at %s", (int)p->kind, p->data_bytes,
        (long long)p->pixels.min, (long long)p->pixels.max, p->param ? p->param : "-");
    if (p->url) {
        say_text("url", p->url, strlen(p->url));
    }
    if (p->kind == CHAT_VIDEO) {
        say("video %g, frames %d %d %d, tokens %d, from %g to %g, list of %zu at %g", v->fps, v->n_frames,
            v->min_frames, v->max_frames, v->pair_tokens, v->start_s, v->end_s, v->n_list, v->list_fps);
    }
}

static void say_message(const chat_message *m)
{
    static const char *const ROLES[] = {"system", "user", "assistant", "tool"};
    say("%s%s, name %s, call %s", ROLES[m->role], m->is_string ? "" : " (parts)", m->name ? m->name : "-",
        m->tool_call_id ? m->tool_call_id : "-");
    for (size_t i = 0; i < m->n_parts; i++) {
        say_part(&m->parts[i]);
    }
    if (m->reasoning) {
        say_text("reasoning", m->reasoning, strlen(m->reasoning));
    }
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        say("call %s of %s", m->tool_calls[i].id ? m->tool_calls[i].id : "-", m->tool_calls[i].name);
        say_json("arguments", m->tool_calls[i].arguments);
    }
    for (size_t i = 0; i < m->n_results; i++) {
        say("result");
        say_message(&m->results[i]);
    }
}

static void say_form(const grammar_spec *f, int depth)
{
    if (f && depth < 6) {
        say("form %d at %d: %s, %d to %d, path %s", (int)f->kind, depth, f->text ? f->text : "-", f->min,
            f->max, f->path ? f->path : "-");
        say_json("schema", f->schema);
        for (size_t i = 0; i < f->n_items; i++) {
            say_form(&f->items[i], depth + 1);
        }
    }
}

static void say_params(const gen_params *p)
{
    say("temperature %g, top p %g, min p %g, top k %d, penalties %g %g %g, seed %d %llu",
        (double)p->temperature, (double)p->top_p, (double)p->min_p, p->top_k, (double)p->repetition_penalty,
        (double)p->presence_penalty, (double)p->frequency_penalty, p->has_seed,
        p->has_seed ? (unsigned long long)p->seed : 0ull);
    say("tokens %d to %d, logprobs %d, choices %d, thinking %d, sparse %d %g %g, prompt %d, without %d %d "
        "%d, eos %d",
        p->min_tokens, p->max_tokens, p->n_top_logprobs, p->n_choices, p->think_tokens, p->spec_prefill,
        (double)p->spec_keep, (double)p->spec_backbone, p->scores_prompt, p->no_draft, p->no_lookup,
        p->no_cache, p->ignore_eos);
    for (size_t i = 0; i < p->n_biases; i++) {
        say("bias of %d: %g", p->biases[i].id, (double)p->biases[i].bias);
    }
}

static void say_reply(const reply_options *o)
{
    say("model %s, stream %d, usage %d, progress %d, timings %d, logprobs %d, choices %d, store %d %d, "
        "cancel %d, keep %d",
        o->model, o->stream, o->include_usage, o->return_progress, o->timings_per_token, o->logprobs,
        o->n_choices, o->store, o->store_given, o->cancel_on_disconnect, o->keep_on_disconnect);
    say("lane %s, event %s, scores %d, calls %d %d, numbers %d, top %d, base64 %d, plain %d, background %d, "
        "encrypts %d, "
        "conversation %s, timeout %g, summary %s",
        o->stream_id, o->event_id, o->scores_prompt, o->max_tool_calls, o->one_call, o->n_dims, o->n_top,
        o->is_base64, o->is_plain, o->background, o->encrypts, o->conversation, o->timeout_s, o->summary);
    for (size_t i = 0; i < o->n_stops; i++) {
        say_text("stop", o->stops[i], strlen(o->stops[i]));
    }
    for (size_t i = 0; i < o->n_echoes; i++) {
        say_text("echo", o->echoes[i] ? o->echoes[i] : "-", o->echoes[i] ? strlen(o->echoes[i]) : 1);
    }
    if (o->fields) {
        say_text("fields", o->fields, strlen(o->fields));
    }
    if (o->items.len > 0) {
        say_text("items", bytes_str(&o->items), o->items.len);
    }
    if (o->tools || o->plan) {
        say("tools %d, plan %d", o->tools != NULL, o->plan != NULL);
    }
}

static void say_prompts(const completion_prompt *p)
{
    for (; p; p = p->next) {
        if (p->text) {
            say_text("prompt", p->text, strlen(p->text));
        } else if (p->ids) {
            say("prompt of %zu ids, %d to %d", p->n_ids, p->n_ids ? (int)p->ids[0] : 0,
                p->n_ids ? (int)p->ids[p->n_ids - 1] : 0);
        }
    }
}

static void say_request(const api_request *r, const completion_prompt *prompt)
{
    const chat_input *in = r->in;
    for (size_t i = 0; i < in->n_messages; i++) {
        say_message(&in->messages[i]);
    }
    say_prompts(prompt);
    say_json("tools", in->tools);
    say_json("kwargs", in->template_kwargs);
    say_form(in->form, 0);
    say("calls %d, continues %d; forced %d %s, drops %d, compact %lld, budget %d", in->form_is_calls,
        in->continues, r->forces_calls, r->forced_tool ? r->forced_tool : "-", r->drops_oldest,
        (long long)r->compact_at, r->gives_budget);
    for (size_t i = 0; i < r->n_edits; i++) {
        const context_edit *e = &r->edits[i];
        say("edit: thinking %d, from %lld tokens, %lld uses, keep %lld, at least %lld", e->is_thinking,
            (long long)e->trigger_tokens, (long long)e->trigger_uses, (long long)e->keep,
            (long long)e->at_least);
        say_json("spares", e->spares);
        say_json("inputs", e->inputs);
    }
    say_params(&in->params);
    say_reply(&r->reply);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_json, data, size, max, seed, "request");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { DIALECTS = 8, ENGINES = 5 };
    if (size < 1) {
        return 0;
    }
    api_request r;
    completion_prompt prompt = {0};
    err_detail d = {0};
    const unsigned dialect = data[0] % DIALECTS;
    n_random = 0;
    api_request_init(&r);
    const err_code err = parse(&r, &prompt, dialect, (const char *)data + 1, size - 1, &d);
    if (err != ERR_OK) {
        say_error(err, &d);
        must(d.text[0] != '\0' && utf8_valid(d.text, strlen(d.text)) && utf8_valid(d.param, strlen(d.param)));
    } else {
        must(r.in != NULL);
        say_request(&r, &prompt);
        if (dialect == 2) {
            keep(&r);
        }
        if (dialect < 7) {
            forward(&r, &prompt, data[0] / DIALECTS % ENGINES);
        }
    }
    api_request_deinit(&r);
    return 0;
}
