/* prep_steps: a job from its order to its last message: who is asked in which order, what is reserved, what each message has, and
 * that nothing of it is left. Other servers, the engine, turns and readers of prompts are the test; the worker runs in the test's thread
 * where it wants it. A line of steps.txt is an order: words for what it is like and what happens, and behind "|" its body. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "server/media/preview.h"
#include "server/protocol/context_fit.h"
#include "server/protocol/foreign_fields.h"
#include "server/service/prep.h"
#include "server/service/prep_turns.h"
#include "tests/recorded.h"
#include "tests/wrap.h"

/* ---- the order ---- */

static char words[1024]; /* of the line, with a space on both sides */
static bytes *out;
static ledger *memory;
static prep_ticket *ticket;
static int n_hooks, n_choices;
static double now_ms;
static char some[16]; /* an engine, its request, other servers and requests for them */

static bool has(const char *word)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, " %.99s ", word);
    return strstr(words, wanted) != NULL;
}

/* Of a word "name=N"; `other` without it. */
static int number(const char *name, int other)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, " %.99s=", name);
    const char *at = strstr(words, wanted);
    return at ? (int)strtol(at + strlen(wanted), NULL, 10) : other;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list args;
    char text[4096];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_printf(out, "<  %s\n", text);
}

/* What happens at a moment that has a word. */
static err_code moment(const char *name, err_detail *d)
{
    char word[64];
    snprintf(word, sizeof word, "leaves-at-%s", name);
    if (has(word)) {
        prep_ticket_cancel(ticket);
    }
    snprintf(word, sizeof word, "fails-at-%s", name);
    return has(word) ? err_set_param(d, ERR_BUSY, "p", "c", "no %s", name) : ERR_OK;
}

/* ---- who is asked ---- */

static void *(*works)(void *ctx);
static void *work_ctx;

WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx), (void)t;
     (void)a; works = fn; work_ctx = ctx; return 0;)
WRAP(int, pthread_join, (pthread_t t, void **result), (void)t; (void)result; return 0;)
WRAP(bool, mailbox_pop, (mailbox * mb, void **message), return mailbox_try_pop(mb, message);)
WRAP(double, clock_ms, (void), return now_ms += 0.5;)

WRAP(bool, prep_turns_enter, (prep_turns * t, prep_turn *turn), (void)t;
     note("enters with %g ms%s", turn->used_ms, turn->cancelled(turn->ctx) ? ", unwanted" : "");
     return !has("no-turn");)
WRAP(bool, prep_turns_hook, (prep_turns * t, prep_turn *turn), (void)t;
     const bool ends = turn->cancelled(turn->ctx) || ++n_hooks == number("hook-ends", 0);
     note("hook: %s", ends ? "ends" : "goes on"); return !ends;)
WRAP(bool, prep_turns_pause, (prep_turns * t, prep_turn *turn, int most), (void)t; (void)turn;
     note("pauses, one of %d", most); return !has("no-pause");)
WRAP(bool, prep_turns_resume, (prep_turns * t, prep_turn *turn), (void)t; (void)turn; note("resumes");
     return !has("no-resume");)
WRAP(bool, prep_turns_is_evicted, (prep_turns * t, const prep_turn *turn), (void)t; (void)turn;
     return has("evicted");)
WRAP(void, prep_turns_leave, (prep_turns * t, prep_turn *turn), (void)t; (void)turn; note("leaves");)
WRAP(void, prep_turns_make_room, (prep_turns * t), (void)t; note("room");)

static const engine_info INFO = {.n_ctx = 4096, .n_vocab = 1000};

WRAP(const engine_info *, engine_get_info, (const engine *e), CHECK((const char *)e == some); return &INFO;)
WRAP(void, engine_get_status, (const engine *e, engine_status *s), CHECK((const char *)e == some);
     *s = (engine_status){.n_waiting = 6};)
WRAP(err_code, engine_tokenize,
     (const engine *e, bytes *ids, const char *text, size_t len, bool special, err_detail *d),
     CHECK((const char *)e == some && !special);
     note("tokens of %.*s", (int)len, text); bytes_append_str(ids, has("no-tokens")   ? ""
                                                                   : has("one-token") ? "7"
                                                                                      : "1,22,3");
     return moment("tokens", d);)
WRAP(err_code, engine_admit, (engine * e, gen_request *r, uint64_t id, err_detail *d),
     CHECK((char *)e == some && (char *)r == some + 1);
     note("admit %d", (int)id); return moment("admit", d);)
WRAP(void, engine_start, (engine * e, gen_request *r), CHECK((char *)e == some && (char *)r == some + 1);
     note("start");)
WRAP(gen_request_info, gen_request_get_info, (const gen_request *r), CHECK((const char *)r == some + 1);
     return (gen_request_info){.n_prompt_tokens = 7};)
WRAP(gen_request *, gen_request_next, (const gen_request *r), CHECK((const char *)r == some + 1);
     return has("several") ? (gen_request *)(some + 2) : NULL;)
WRAP(void, gen_request_set_name, (gen_request * r, const char *name), CHECK((char *)r == some + 1);
     note("named %s", name);)
WRAP(
    void, gen_request_free, (gen_request * r), if (r) { note("the request is freed"); })

static const upstream_rule RULE = {.model = "far/ruled", .text = (char *)(uintptr_t) "the rule"};

WRAP(bool, upstreams_is_named, (const upstreams *u, const char *name), CHECK((const char *)u == some + 3);
     return strncmp(name, "far/", 4) == 0;)
WRAP(bool, upstreams_is_local_only, (const upstreams *u), (void)u; return has("local-only");)
WRAP(const upstream_rule *, upstreams_route,
     (const upstreams *u, const json *body, upstream_case c, upstream_count_fn *count, void *ctx), (void)u;
     CHECK(json_is(body, JSON_OBJECT));
     note("rules: queue %d, context %d, key %d, %d tokens", (int)c.queue, (int)c.context, (int)c.key,
          (int)count(ctx, "text",
                     has("longest")    ? LIMIT_TEXT_BODY_BYTES
                     : has("too-long") ? LIMIT_TEXT_BODY_BYTES + 1
                                       : 4));
     return has("ruled") ? &RULE : NULL;)
WRAP(upstream_search, upstreams_find,
     (upstreams * u, const char *name, upstream_model *m, err_code *code, err_detail *d), (void)u;
     note("find \"%s\"", name); *m = (upstream_model){.info = INFO};
     snprintf(m->name, sizeof m->name, "far/found"); *code = ERR_UPSTREAM;
     (void)err_set_param(d, ERR_UPSTREAM, "model", "away", "it is away");
     return has("refused") ? UPSTREAM_REFUSED
            : has("none")  ? UPSTREAM_NONE
                           : UPSTREAM_FOUND;)
WRAP(err_code, upstreams_prepare,
     (upstreams * u, upstream_request **q, const upstream_model *m, const api_request *r,
      const upstream_prompt *p, const prepare_hooks *hooks, err_detail *d),
     (void)u;
     CHECK(hooks->cancelled && hooks->progress);
     note("prepare for %s%s%s, seed %d, \"%s\", %zu ids%s", m->name, m->rule ? " by " : "",
          m->rule ? m->rule : "", (int)r->in->params.seed, p->text ? p->text : "-", p->n_ids,
          r->reply.n_stops ? ", with stops" : "");
     *q = (upstream_request *)(some + 4 + n_choices++);
     return n_choices == number("choice-fails", 0) ? (*q = NULL, err_set(d, ERR_NOMEM, "no"))
                                                   : moment("far", d);)
WRAP(void, upstream_request_append, (upstream_request * q, upstream_request *more),
     note("choice %d behind %d", (int)((char *)more - some - 4), (int)((char *)q - some - 4));)
WRAP(
    void, upstream_request_free, (upstream_request * q),
    if (q) { note("choice %d is freed", (int)((char *)q - some - 4)); })
WRAP(gen_request_info, upstream_request_info, (const upstream_request *q), CHECK(q != NULL);
     return (gen_request_info){.n_prompt_tokens = 8};)

WRAP(bool, remote_media_wanted, (const chat_input *in), note("media of others? scope %d", (int)in->scope);
     return has("media");)
WRAP(err_code, remote_media_fetch,
     (const remote_media *rm, chat_input *in, const prepare_hooks *hooks, err_detail *d), (void)rm;
     (void)in; CHECK(hooks->cancelled != NULL); note("fetch"); return moment("fetch", d);)
WRAP(err_code, foreign_fields_check, (const json *root, bool is_completion, err_detail *d),
     CHECK(json_is(root, JSON_OBJECT));
     note("foreign fields%s", is_completion ? " of a completion" : ""); return moment("foreign", d);)
WRAP(err_code, text_query_run,
     (bytes * reply, text_query query, api_request *r, engine *e, const char *text, size_t len,
      const prepare_hooks *hooks, err_detail *d),
     CHECK((char *)e == some && r->doc && hooks->cancelled && !hooks->progress);
     note("query %d of %.*s", (int)query, (int)len, text); bytes_append_str(reply, "{query}");
     return moment("query", d);)
WRAP(void, preview_run, (bytes * reply, const preview_task *task),
     note("preview of %s, scope %d%s", task->file_id, (int)task->scope, task->engine ? ", seen" : "");
     CHECK(!task->cancelled(task->ctx)); bytes facts = bytes_empty(100); bytes_append_str(&facts, "{facts}");
     task->on_facts(task->ctx, &facts); CHECK_INT(facts.len, 0); bytes_append_str(reply, "{preview}");)
WRAP(err_code, context_fit_prepare, (gen_request * *request, context_fit *fit, err_detail *d),
     CHECK((char *)fit->e == some && fit->hooks->progress && fit->hooks->cancelled && fit->prompt &&
           fit->prepare);
     note("fit: at %d, %d tokens at most, scope %d", (int)fit->r->compact_at,
          (int)fit->r->in->params.max_tokens, (int)fit->r->in->scope);
     fit->hooks->progress(fit->hooks->ctx, GEN_PHASE_MEDIA, 1, 2); *request = NULL;
     bytes_append_str(&fit->told, "{told}"); fit->asks_summary = has("sums");
     const err_code err = moment("fit", d); *request = err == ERR_OK ? (gen_request *)(some + 1) : NULL;
     return err;)

/* ---- jobs ---- */

static err_code parse(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                      const engine_info *info, err_detail *d)
{
    static const char *const FLAGS[] = {"files", "store",  "talks", "remote",
                                        "form",  "kwargs", "mcp",   "turns"};
    const bool IS[] = {r->files, r->response_store,  r->talks, r->remote,
                       r->form,  r->template_kwargs, r->mcp,   r->turns != NULL};
    bytes line = bytes_empty(1000);
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        bytes_printf(&line, IS[i] ? " %s" : "", FLAGS[i]);
    }
    note("parse %.*s, scope %d, chain %d, cache %s,%s, %zu bytes taken, context %d", (int)len, text,
         (int)r->scope, (int)r->chain, r->cache_name ? r->cache_name : "-", bytes_str(&line),
         ledger_get_status(memory).used, info->n_ctx);
    bytes_deinit(&line);
    note("may go on: %d", r->may_go_on(r->may_ctx));
    err_code err = dialect_chat.parse(r, prompt, text, len, info, d);
    if (err == ERR_OK && number("plan", -1) >= 0) {
        r->reply.plan = calloc(1, sizeof *r->reply.plan);
        CHECK(r->reply.plan != NULL);
        r->reply.plan->n_calls = (size_t)number("plan", 0);
    }
    r->compact_at = number("sum-at", 0);
    snprintf(r->reply.event_id, sizeof r->reply.event_id, "%s", has("event") ? "e" : "");
    r->reply.background = has("background");
    return err == ERR_OK ? moment("parse", d) : err;
}

static err_code prepare(gen_request **request, const api_request *r, const completion_prompt *prompt,
                        engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)r, (void)prompt, (void)e, (void)hooks;
    *request = NULL;
    return err_set(d, ERR_INTERNAL, "it is asked of nobody here");
}

static const dialect CHAT = {.name = "chat", .parse = parse, .prepare = prepare},
                     LOG = {.name = "log", .parse = parse, .prepare = prepare, .has_log = true},
                     VECTORS = {.name = "vectors", .parse = parse, .prepare = prepare, .has_vectors = true},
                     QUERY = {.name = "query", .is_query = true, .query = QUERY_TOKENIZE};

static void post(void *ctx, loop_message *m)
{
    static const char *const NAMES[] = {
        [LOOP_ACCEPTED] = "ACCEPTED", [LOOP_PROGRESS] = "PROGRESS", [LOOP_PREPARED] = "PREPARED",
        [LOOP_OTHER_MODEL] = "OTHER", [LOOP_REPLIED] = "REPLIED",   [LOOP_FACTS] = "FACTS",
        [LOOP_PREVIEW] = "PREVIEW",   [LOOP_REFUSED] = "REFUSED",   [LOOP_TOOLS] = "TOOLS",
    };
    const reply_options *o = &m->options;
    CHECK(ctx == some);
    bytes_printf(out, "<  %s %d", NAMES[m->type], (int)m->id);
    if (m->type == LOOP_REFUSED) {
        bytes_printf(out, " %d %s (%s): %s", m->error.status, m->error.code, err_name(m->code),
                     m->error.message);
    }
    bytes_printf(out, m->type == LOOP_PROGRESS ? " %d %d/%d" : "", m->phase, m->processed, m->total);
    bytes_printf(out, "%s%s%s%s", m->request ? " request" : "", m->remote ? " remote" : "",
                 m->asks_summary ? " sums" : "", m->doc ? " document" : "");
    bytes_printf(out, m->info.n_prompt_tokens ? ", %d tokens" : "", m->info.n_prompt_tokens);
    bytes_printf(out, m->body.len ? ", body %s" : "", bytes_str(&m->body));
    bytes_printf(out, m->memory.bytes ? ", of %zu bytes" : "", m->memory.bytes);
    bytes_printf(out, m->reply.len ? ", reply %s" : "", bytes_str(&m->reply));
    bytes_printf(out, o->model[0] ? ", model %s" : "", o->model);
    bytes_printf(out, o->event_id[0] ? ", event %s" : "", o->event_id);
    bytes_printf(out, o->stream_id[0] ? ", lane %s" : "", o->stream_id);
    bytes_printf(out, "%s%s%s", o->stream ? ", streams" : "", o->plan ? ", plan" : "",
                 o->n_stops ? ", stops" : "");
    bytes_printf(out, o->body_hash[0] || o->body_hash[1] ? ", hash %02x%02x" : "", o->body_hash[0],
                 o->body_hash[1]);
    bytes_printf(out, m->prep_ms > 0.0 ? ", %g ms" : "", m->prep_ms);
    bytes_printf(out, ", %zu taken\n", ledger_get_status(memory).used);
    loop_message_free(m);
}

static void tell_status(const prep *p, const char *when)
{
    prep_status s;
    prep_get_status(p, &s);
    note("%s: %s, %d waiting, %zu bytes taken", when, prep_is_idle(p) ? "idle" : "busy", s.n_waiting,
         ledger_get_status(memory).used);
}

/* As many bytes as there may be have a place again. */
static void check_room(prep *p, size_t len)
{
    bytes body = bytes_empty(4096), said = bytes_empty(1 << 16), *const was = out;
    const prep_order order = {.id = 4};
    json_doc *doc = NULL;
    ledger_hold hold = {0};
    ledger_set_limit(memory, 1 << 20);
    while (body.len < len) {
        bytes_append_char(&body, 'f');
    }
    out = &said;
    CHECK_INT(prep_submit(p, &order, &body, &doc, &hold, ticket), ERR_OK);
    (void)works(work_ctx);
    out = was;
    bytes_deinit(&said);
}

static void tell(void *ctx, bytes *to, const char *line, size_t len)
{
    static const struct {
        const char *name;
        const dialect *of;
    } KINDS[] = {{"chat", &CHAT},
                 {"log", &LOG},
                 {"vectors", &VECTORS},
                 {"query", &QUERY},
                 {"save", &dialect_cache_save},
                 {"load", &dialect_cache_load},
                 {"completion", &dialect_completion},
                 {"preview", NULL}};
    static const prep_order EMPTY = {.id = 3};
    prep_order order = EMPTY;
    bytes body = bytes_empty(4096);
    ledger_hold hold = {0};
    json_doc *doc = NULL;
    size_t kind = 0;
    (void)ctx;
    const char *bar = memchr(line, '|', len);
    snprintf(words, sizeof words, " %.*s ", bar ? (int)(bar - line) : 0, line);
    while (kind < ARRAY_LEN(KINDS) && !has(KINDS[kind].name)) {
        kind++;
    }
    if (kind == ARRAY_LEN(KINDS)) {
        return;
    }
    bytes_append(&body, bar + 2, len - (size_t)(bar + 2 - line));
    out = to;
    n_hooks = n_choices = 0;
    now_ms = 100.0;
    order.dialect = KINDS[kind].of;
    order.scope = 5;
    order.chain = 6;
    order.key = 2;
    order.engine = has("no-model") ? NULL : (engine *)some;
    order.upstreams = has("others") ? (upstreams *)(some + 3) : NULL;
    order.turns = has("later")       ? "[{\"role\": \"assistant\", \"content\": \"x\"}]"
                  : has("bad-turns") ? "["
                                     : NULL;
    order.n_written = number("written", 0);
    order.may_compact = has("may-sum");
    order.is_remote_only = has("others-only");
    order.hash_body = has("hash");
    order.asks_model = has("asks");
    order.is_strict = has("strict");
    order.says_accepted = has("says");
    order.submits = has("submits");
    snprintf(order.request_id, sizeof order.request_id, "req_1");
    snprintf(order.names[0], sizeof order.names[0], "m");
    snprintf(order.names[3], sizeof order.names[3], "m/4");
    snprintf(order.cache_name, sizeof order.cache_name, "c");
    memory = ledger_create((size_t)number("limit", 1 << 20));
    ticket = prep_ticket_create();
    CHECK(memory && ticket);
    const size_t n_body = body.len;
    prep *p = prep_create(1, 2, 1, n_body, (file_store *)some, (response_store *)some, (remote_media *)some,
                          post, some);
    CHECK(p != NULL);
    prep_set_stores(p, memory, has("talks") ? (kept_talks *)some : NULL);
    if (has("held")) {
        CHECK_INT(json_parse(&doc, bytes_str(&body), body.len, 99, NULL), ERR_OK);
        hold.ledger = memory;
        CHECK(ledger_try(&hold, 10 * body.len));
    }
    if (has("left")) {
        prep_ticket_cancel(ticket);
    }
    const err_code err = prep_submit(p, &order, &body, &doc, &hold, ticket);
    note("order: %s%s%s%s", err_name(err), body.len ? ", the body stays" : "",
         doc ? ", the document stays" : "", hold.bytes ? ", what is held stays" : "");
    tell_status(p, "then");
    if (has("ends")) {
        note("ended: %d", prep_end(p, 0));
    }
    (void)works(work_ctx);
    tell_status(p, "behind it");
    if (!has("ends")) {
        check_room(p, n_body);
    }
    bytes_deinit(&body);
    json_free(doc);
    ledger_give_all(&hold);
    prep_destroy(p);
    prep_ticket_release(ticket);
    CHECK_INT(ledger_get_status(memory).used, 0);
    ledger_destroy(memory);
}

int main(void)
{
    log_set_level(LOG_OFF);
    recorded_answers(PARLEY_SOURCE_DIR "/tests/server/service/recorded/steps.txt", tell, NULL);
    CHECK_DONE();
}
