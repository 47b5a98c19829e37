#include "server/protocol/dialects/warm.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/completion_request.h"

enum { WATCH_MS = 100 };

struct warm {
    mailbox *ends; /* the last event of the request that runs */
};

warm *warm_create(void)
{
    warm *w = calloc(1, sizeof *w);
    if (w) {
        w->ends = mailbox_create(1);
    }
    if (!w || !w->ends) {
        free(w);
        return NULL;
    }
    return w;
}

static void drop_event(void *event)
{
    gen_event_free(event);
}

void warm_destroy(warm *w)
{
    if (w) {
        mailbox_destroy(w->ends, drop_event);
        free(w);
    }
}

void warm_on_event(warm *w, gen_event *event)
{
    if (event->type != GEN_DONE || !mailbox_push(w->ends, event)) {
        gen_event_free(event);
    }
}

/* The body of the request that a value of the file stands for. */
static bool write_body(bytes *out, const json *value)
{
    const bool is_messages = json_is(value, JSON_ARRAY), is_text = json_is(value, JSON_STRING);
    bytes_append_str(out, is_messages ? "{\"messages\":" : is_text ? "{\"prompt\":" : "");
    json_write(out, value);
    bytes_append_str(out, is_messages || is_text ? "}" : "");
    return is_messages || is_text || json_is(value, JSON_OBJECT);
}

static err_code prepare(gen_request **out, const warm_order *o, const bytes *body, bool is_chat,
                        uint64_t scope, err_detail *d)
{
    const engine_info *info = engine_get_info(o->engine);
    completion_prompt prompt = {0};
    api_request r;
    api_request_init(&r);
    r.form = o->form;
    r.template_kwargs = o->template_kwargs;
    r.scope = scope;
    err_code err = is_chat ? chat_request_parse(&r, bytes_str(body), body->len, info, d)
                           : completion_request_parse(&r, &prompt, bytes_str(body), body->len, info, d);
    if (err == ERR_OK) {
        r.in->scope = scope;
        r.in->params.max_tokens = 1; /* the prompt is what is wanted */
        r.in->params.no_cache = false;
        err = is_chat ? engine_prepare(o->engine, out, r.in, &(prepare_hooks){0}, d)
                      : completion_request_prepare(out, &r, &prompt, o->engine, d);
    }
    api_request_deinit(&r);
    return err;
}

/* Computes one prompt; the tokens that were not cached yet are added to *n_tokens. */
static err_code compute(warm *w, const warm_order *o, gen_request *r, uint64_t id, int64_t *n_tokens,
                        err_detail *d)
{
    void *message = NULL;
    err_code err = engine_submit(o->engine, r, id, d);
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    while (!mailbox_pop_wait(w->ends, &message, WATCH_MS)) {
        if (atomic_load(o->stops)) {
            engine_cancel(o->engine, id);
        }
    }
    gen_event *end = message;
    *n_tokens += end->timings.prompt_n;
    err = end->finish == GEN_FINISH_ERROR ? err_set(d, end->error, "%s", end->message) : ERR_OK;
    gen_event_free(end);
    return err;
}

/* One value of the file, for everybody. */
static err_code warm_value(warm *w, const warm_order *o, const json *value, uint64_t *id, int64_t *n_tokens,
                           err_detail *d)
{
    bytes body;
    bytes_init(&body, LIMIT_BODY_BYTES);
    const bool is_known = write_body(&body, value);
    const bool is_chat = json_is(value, JSON_ARRAY) || json_get(value, "messages");
    err_code err = is_known && !body.failed
                       ? ERR_OK
                       : err_set(d, ERR_INVALID, "it is neither a request, nor messages, nor a text");
    for (size_t i = 0; i < o->n_scopes && err == ERR_OK && !atomic_load(o->stops); i++) {
        gen_request *r = NULL;
        err = prepare(&r, o, &body, is_chat, o->scopes[i], d);
        err = err == ERR_OK ? compute(w, o, r, WARM_ID | ++*id, n_tokens, d) : err;
    }
    bytes_deinit(&body);
    return err;
}

/* The file as one array, whichever form it has. */
static err_code read_values(json_doc **out, const char *file, err_detail *d)
{
    bytes text, array;
    bytes_init(&text, LIMIT_BODY_BYTES);
    bytes_init(&array, 2 * LIMIT_BODY_BYTES);
    err_code err = file_read(&text, file, d);
    const char *p = err == ERR_OK ? bytes_str(&text) : "";
    if (err == ERR_OK && p[strspn(p, " \t\r\n")] == '[' &&
        json_parse(out, p, text.len, LIMIT_JSON_DEPTH, NULL) == ERR_OK) {
        goto out;
    }
    bytes_append_char(&array, '[');
    while (*p) {
        const size_t n = strcspn(p, "\n");
        if (strspn(p, " \t\r") < n) {
            bytes_append_str(&array, array.len > 1 ? ",\n" : "\n");
            bytes_append(&array, p, n);
        }
        p += n + (p[n] == '\n');
    }
    bytes_append_char(&array, ']');
    err = err == ERR_OK ? json_parse(out, bytes_str(&array), array.len, LIMIT_JSON_DEPTH, d) : err;
out:
    bytes_deinit(&text);
    bytes_deinit(&array);
    return err;
}

void warm_run(warm *w, const warm_order *o)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    if (read_values(&doc, o->file, &d) != ERR_OK) {
        log_warn("load", "--warm-prompts %s is not used: %s", o->file, d.text);
        return;
    }
    const double start = clock_ms();
    const size_t n = json_len(json_root(doc));
    size_t i = 0;
    uint64_t id = 0;
    int64_t n_tokens = 0;
    for (const json *v = json_child(json_root(doc)); v && !atomic_load(o->stops); v = json_next(v)) {
        o->progress(o->ctx, "warm prompts", (double)i++ / (double)n);
        if (warm_value(w, o, v, &id, &n_tokens, &d) != ERR_OK) {
            log_warn("load", "prompt %zu of %s is left out: %s", i, o->file, d.text);
        }
    }
    log_info("load", "%zu prompts of %s: %lld tokens computed in %.1f s", i, o->file, (long long)n_tokens,
             (clock_ms() - start) / 1000.0);
    json_free(doc);
}
