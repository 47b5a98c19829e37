#include "server/service/prep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "server/service/prep_turns.h"
#include "server/media/preview.h"
#include "server/protocol/foreign_fields.h"
#include "server/protocol/context_fit.h"

enum { PROGRESS_GAP_MS = 50 };

/* What a byte of a body counts for before it was read, up to the size of a text: more for one that
 * will take longer. */
#define GUESS_MS_A_BYTE 1e-4

struct prep_ticket {
    atomic_int refs;
    atomic_bool cancelled; /* set once; relaxed order is enough, nothing is published with it */
};

typedef struct prep_job {
    prep *prep;
    prep_order order;
    bytes body;
    json_doc *turns, *doc; /* of the order; of the body, if it came with it; NULL: none */
    ledger_hold memory;    /* of the body, and of what is made of it */
    prep_ticket *ticket;
    loop_message *accepted,
        *prepared; /* taken at the start: without memory the answer must still be told something */
} prep_job;

struct prep {
    mailbox *jobs;
    void (*post)(void *ctx, loop_message *m);
    void *ctx;
    prep_turns *turns;
    pthread_t threads[LIMIT_PREP_JOBS];
    int n_threads, max_threads; /* started when first needed */
    atomic_int n_alive;
    size_t max_bytes;
    file_store *files;
    response_store *response_store;
    const kept_talks *talks; /* NULL: in response_store */
    const remote_media *remote;
    struct ledger *memory;
    atomic_size_t n_bytes; /* of the bodies that wait or are being parsed */
    atomic_size_t n_jobs;  /* that wait or run */
    atomic_bool stopping;
};

/* What the hooks of one running job need. */
typedef struct prep_run {
    prep *prep;
    prep_job *job;
    prep_turn *turn;
    bool is_remote; /* a model of another server answers: */
    upstream_model remote;
    double last_progress_ms;
    gen_phase last_phase;
} prep_run;

/* ---- tickets ---- */

prep_ticket *prep_ticket_create(void)
{
    prep_ticket *t = calloc(1, sizeof *t);
    if (t) {
        atomic_init(&t->refs, 1);
        atomic_init(&t->cancelled, false);
    }
    return t;
}

void prep_ticket_cancel(prep_ticket *t)
{
    if (t) {
        atomic_store_explicit(&t->cancelled, true, memory_order_relaxed);
    }
}

void prep_ticket_release(prep_ticket *t)
{
    if (t && atomic_fetch_sub(&t->refs, 1) == 1) {
        free(t);
    }
}

/* ---- a job ---- */

static void drop_body(prep_job *job)
{
    atomic_fetch_sub(&job->prep->n_bytes, job->body.len);
    ledger_give(&job->memory, job->body.len);
    bytes_deinit(&job->body);
    json_free(job->doc);
    job->doc = NULL;
}

/* Its body is given back or handed on before that. */
static void job_free(prep_job *job)
{
    prep *p = job->prep;
    ledger_give_all(&job->memory);
    loop_message_free(job->accepted);
    loop_message_free(job->prepared);
    prep_ticket_release(job->ticket);
    json_free(job->turns);
    free(job);
    atomic_fetch_sub(&p->n_jobs, 1);
}

/* The loop needs the body again, for the rounds after calls of tools, or after a summary. */
static void keep_body(prep_job *job, loop_message *m)
{
    m->body = job->body;
    m->memory = (ledger_hold){.ledger = job->memory.ledger, .bytes = job->body.len};
    job->memory.bytes -= job->body.len;
    atomic_fetch_sub(&job->prep->n_bytes, job->body.len);
    job->body = (bytes){0};
}

static bool is_unwanted(void *ctx)
{
    const prep_run *run = ctx;
    return atomic_load_explicit(&run->job->ticket->cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&run->prep->stopping, memory_order_relaxed);
}

/* The hook of everything that takes long: whether the job should end, once it has given way to
 * others. */
static bool is_cancelled(void *ctx)
{
    const prep_run *run = ctx;
    return !prep_turns_hook(run->prep->turns, run->turn);
}

static void on_progress(void *ctx, gen_phase phase, int32_t processed, int32_t total)
{
    prep_run *run = ctx;
    double now = clock_ms();
    if (phase == run->last_phase && processed < total && now - run->last_progress_ms < PROGRESS_GAP_MS) {
        return;
    }
    run->last_phase = phase;
    run->last_progress_ms = now;
    loop_message *m = loop_message_create(LOOP_PROGRESS, run->job->order.id);
    if (m) {
        m->phase = phase;
        m->processed = processed;
        m->total = total;
        run->prep->post(run->prep->ctx, m);
    }
}

/* Reserves what parsing the body takes: the document, and the copies of its texts and files in the
 * request. */
static err_code reserve_parsing(prep_run *run, prep_job *job, err_detail *d)
{
    const ledger_patience patience = {is_cancelled, run};
    const size_t n = job->body.len;
    return ledger_take(&job->memory, "this request", json_memory(bytes_str(&job->body), n) + n + n / 2,
                       &patience, d);
}

/* Moves the options out of a parsed request, so that it can be freed. */
static void take_options(loop_message *m, api_request *r)
{
    m->options = r->reply;
    reply_options_init(&r->reply);
}

static void refuse(prep_run *run, loop_message *m, err_code err, const err_detail *d)
{
    err = err == ERR_CANCELLED && prep_turns_is_evicted(run->prep->turns, run->turn) ? ERR_BUSY : err;
    m->type = LOOP_REFUSED;
    m->code = err;
    api_error_from(&m->error, err, d);
    run->prep->post(run->prep->ctx, m);
}

/* Whether the loaded model is called so. */
static bool is_loaded(const prep_order *order, const char *name)
{
    bool found = strcmp(name, "default") == 0;
    for (size_t i = 0; !found && i < ARRAY_LEN(order->names); i++) {
        found = order->names[i][0] && strcmp(name, order->names[i]) == 0;
    }
    return found;
}

/* As many tokens as the loaded model has for a text; -1 without one. */
static int64_t count_tokens(void *ctx, const char *text, size_t len)
{
    const prep_run *run = ctx;
    bytes ids = bytes_empty(LIMIT_BODY_BYTES);
    int64_t n = -1;
    if (run->job->order.engine && len <= LIMIT_TEXT_BODY_BYTES &&
        engine_tokenize(run->job->order.engine, &ids, text, len, false, NULL) == ERR_OK && !ids.failed) {
        n = ids.len > 0;
        for (const char *at = bytes_str(&ids); *at; at++) {
            n += *at == ',';
        }
    }
    bytes_deinit(&ids);
    return n;
}

/* The rule by which a request leaves that names no model of another server; NULL: it stays. */
static const upstream_rule *find_rule(prep_run *run, const json *root)
{
    const prep_order *order = &run->job->order;
    engine_status status = {0};
    upstream_case c = {.key = order->key};
    if (order->engine) {
        engine_get_status(order->engine, &status);
        c.queue = status.n_waiting;
        c.context = engine_get_info(order->engine)->n_ctx;
    }
    return upstreams_route(order->upstreams, root, c, count_tokens, run);
}

/* Whether a model of another server is asked for. */
static err_code find_remote(prep_run *run, api_request *r, const char *name, err_detail *d)
{
    const prep_order *order = &run->job->order;
    const json *root = json_root(r->doc), *local = json_get(root, "local");
    const bool stays = json_is_true(local);
    const upstream_rule *rule = NULL;
    err_code err = ERR_OK;
    if (json_typeof(local) != JSON_NULL && !json_is(local, JSON_BOOL)) {
        return err_set_param(d, ERR_INVALID, "local", "invalid_type", "local must be true or false");
    }
    if (!order->upstreams) {
        return ERR_OK;
    }
    if (!order->is_remote_only && !upstreams_is_named(order->upstreams, name)) {
        rule = stays ? NULL : find_rule(run, root);
        if (!rule) {
            return ERR_OK;
        }
        name = rule->model;
    }
    if (stays || upstreams_is_local_only(order->upstreams)) {
        return err_set_param(d, ERR_INVALID, "model", "leaves_machine", "this model is on another server, %s",
                             stays ? "and the request says local: true"
                                   : "and this one answers alone (--local-only)");
    }
    const upstream_search found = upstreams_find(order->upstreams, name, &run->remote, &err, d);
    if (found != UPSTREAM_FOUND && rule) {
        return ERR_OK; /* the rules' server is not there: this one answers */
    }
    switch (found) {
    case UPSTREAM_FOUND:
        run->is_remote = true;
        run->remote.rule = rule ? rule->text : NULL;
        r->form =
            &TOOL_FORM_HERMES; /* what the writer of the request never looks at, but forced calls need one */
        r->template_kwargs = NULL;
        return ERR_OK;
    case UPSTREAM_REFUSED:
        return err;
    default:
        return err_set_param(d, ERR_NOT_FOUND, "model", "model_not_found",
                             "there is no such model; see /v1/models");
    }
}

static bool may_go_on(void *ctx)
{
    return !is_cancelled(ctx);
}

/* Later rounds get what the first has left of its tokens. */
static void spend(api_request *r, const prep_order *order)
{
    int32_t *most = &r->in->params.max_tokens;
    if (*most > 0 && order->n_written > 0) {
        *most = *most > order->n_written ? *most - order->n_written : 1;
    }
}

/* Reads the body as a document, and for which model it is. r: an empty one. */
static err_code open_body(prep_run *run, api_request *r, bool *is_other, err_detail *d)
{
    prep *p = run->prep;
    prep_job *job = run->job;
    const prep_order *order = &job->order;
    r->files = p->files;
    r->response_store = p->response_store;
    r->talks = p->talks;
    r->remote = p->remote;
    r->form = order->form;
    r->template_kwargs = order->template_kwargs;
    r->scope = order->scope;
    r->chain = order->chain;
    r->cache_name = order->cache_name;
    r->mcp = order->mcp;
    r->turns = job->turns ? json_root(job->turns) : NULL;
    r->may_go_on = may_go_on;
    r->may_ctx = run;
    r->doc = job->doc;
    job->doc = NULL;
    const bool is_reserved = job->memory.bytes > job->body.len; /* it was read before */
    err_code err = is_reserved ? ERR_OK : reserve_parsing(run, job, d);
    if (err == ERR_OK && !r->doc) {
        err = json_parse(&r->doc, bytes_str(&job->body), job->body.len, LIMIT_JSON_DEPTH, d);
    }
    if (err == ERR_OK) {
        const char *name = json_str(json_get(json_root(r->doc), "model"), "");
        const bool is_named = name[0] && strlen(name) < REQUEST_MODEL_MAX;
        err = find_remote(run, r, is_named ? name : "", d);
        *is_other = err == ERR_OK && !run->is_remote &&
                    (!order->engine || (order->asks_model && is_named && !is_loaded(order, name)));
    }
    return err;
}

static void copy_field(char *out, size_t cap, const json *root, const char *name)
{
    const char *value = json_str(json_get(root, name), "");
    snprintf(out, cap, "%s", strlen(value) < cap ? value : "");
}

/* The loop decides which model it gets, and whether it waits for that. */
static void hand_back(prep_run *run, api_request *r)
{
    prep_job *job = run->job;
    loop_message *m = job->prepared;
    const json *root = json_root(r->doc);
    reply_options *o = &m->options;
    copy_field(o->model, sizeof o->model, root, "model");
    copy_field(o->event_id, sizeof o->event_id, root, "event_id");
    copy_field(o->stream_id, sizeof o->stream_id, root, "stream_id");
    m->type = LOOP_OTHER_MODEL;
    m->body = job->body;
    m->doc = r->doc;
    m->memory = job->memory;
    r->doc = NULL;
    atomic_fetch_sub(&run->prep->n_bytes, job->body.len);
    job->body = (bytes){0};
    job->memory = (ledger_hold){.ledger = run->prep->memory};
    job->prepared = NULL;
    run->prep->post(run->prep->ctx, m);
}

/* Answers a query: nothing is submitted to the engine. */
static void run_query(prep_run *run)
{
    prep *p = run->prep;
    prep_job *job = run->job;
    const prepare_hooks hooks = {.cancelled = is_cancelled, .ctx = run};
    loop_message *m = job->prepared;
    err_detail d = {0};
    api_request r;
    bool is_other = false;
    api_request_init(&r);
    err_code err = is_cancelled(run) ? ERR_CANCELLED : open_body(run, &r, &is_other, &d);
    if (is_other) {
        hand_back(run, &r);
        goto out;
    }
    if (err == ERR_OK && run->is_remote) {
        err = err_set_param(&d, ERR_UNSUPPORTED, "model", "not_supported",
                            "the tokens of this model are known to its server alone");
    }
    err = err != ERR_OK ? err
                        : text_query_run(&m->reply, job->order.dialect->query, &r, job->order.engine,
                                         bytes_str(&job->body), job->body.len, &hooks, &d);
    drop_body(job);
    job->prepared = NULL;
    if (err != ERR_OK) {
        refuse(run, m, err, &d);
    } else {
        m->type = LOOP_REPLIED;
        p->post(p->ctx, m);
    }
out:
    api_request_deinit(&r);
}

static void on_facts(void *ctx, bytes *members)
{
    const prep_run *run = ctx;
    loop_message *m = loop_message_create(LOOP_FACTS, run->job->order.id);
    if (m) {
        m->reply = *members;
        *members = (bytes){0};
        run->prep->post(run->prep->ctx, m);
    }
}

/* Looks at an uploaded file for the one who uploaded it. */
static void run_preview(prep_run *run)
{
    prep *p = run->prep;
    prep_job *job = run->job;
    loop_message *m = job->prepared;
    const preview_task task = {.engine = job->order.engine,
                               .media = job->order.media,
                               .files = p->files,
                               .scope = job->order.scope,
                               .file_id = bytes_str(&job->body),
                               .cancelled = is_cancelled,
                               .on_facts = on_facts,
                               .ctx = run};
    if (!is_cancelled(run)) {
        preview_run(&m->reply, &task);
    }
    drop_body(job);
    job->prepared = NULL;
    m->type = LOOP_PREVIEW;
    p->post(p->ctx, m);
}

/* Images and videos of other hosts: they are waited for, so others have the turn. */
static err_code bring_remote(prep_run *run, chat_input *in, const prepare_hooks *hooks, err_detail *d)
{
    if (is_cancelled(run)) {
        return ERR_CANCELLED;
    }
    if (!remote_media_wanted(in)) {
        return ERR_OK;
    }
    if (!prep_turns_pause(run->prep->turns, run->turn, LIMIT_PREP_FETCHES)) {
        return ERR_BUSY;
    }
    const err_code err = remote_media_fetch(run->prep->remote, in, hooks, d);
    return prep_turns_resume(run->prep->turns, run->turn) || err != ERR_OK ? err : ERR_CANCELLED;
}

/* Nothing is read for a client that is gone; but what ends a response must name it, so that body is
 * read all the same. */
static bool must_parse(prep_run *run)
{
    return run->job->order.dialect->has_log
               ? !atomic_load_explicit(&run->prep->stopping, memory_order_relaxed)
               : !is_cancelled(run);
}

static err_code check(const prep_run *run, const api_request *r, err_detail *d)
{
    const prep_job *job = run->job;
    if (job->body.len > LIMIT_TEXT_BODY_BYTES && !chat_has_media(r->in)) {
        return err_set_param(d, ERR_LIMIT, NULL, "body_too_large",
                             "a request without images and videos may have %zu MiB",
                             LIMIT_TEXT_BODY_BYTES >> 20);
    }
    if (job->order.is_strict && !run->is_remote && r->reply.model[0] &&
        !is_loaded(&job->order, r->reply.model)) {
        return err_set_param(d, ERR_NOT_FOUND, "model", "model_not_found",
                             "there is no such model; see /v1/models");
    }
    if (run->is_remote && (job->order.dialect->has_vectors || job->order.dialect == &dialect_cache_save ||
                           job->order.dialect == &dialect_cache_load)) {
        return err_set_param(d, ERR_UNSUPPORTED, "model", "not_supported",
                             "vectors, ranks and kept prompts of this model are with the server that has it");
    }
    return run->is_remote || job->order.dialect->has_vectors
               ? ERR_OK
               : foreign_fields_check(json_root(r->in->keep), job->order.dialect == &dialect_completion, d);
}

/* Hands the request to the engine, or to the loop that will. The loop hears of it first: the engine
 * cannot have said anything of it before it is started. */
static err_code finish(prep_run *run, loop_message *m, gen_request *request, bool submits, err_detail *d)
{
    prep *p = run->prep;
    const prep_order *order = &run->job->order;
    m->info = gen_request_get_info(request);
    err_code err = is_unwanted(run) ? ERR_CANCELLED : ERR_OK;
    if (err == ERR_OK && (!submits || gen_request_next(request))) { /* the others need ids */
        m->request = request;
        p->post(p->ctx, m);
        return ERR_OK;
    }
    err = err == ERR_OK ? engine_admit(order->engine, request, order->id, d) : err;
    if (err != ERR_OK) {
        gen_request_free(request);
        return err;
    }
    p->post(p->ctx, m);
    engine_start(order->engine, request);
    return ERR_OK;
}

/* The same for another server: the loop sends it, so that no cancel can come too early. Each choice is a
 * request of its own, as few servers answer several times in one stream. */
static err_code finish_remote(prep_run *run, loop_message *m, const api_request *r,
                              const completion_prompt *prompt, const prepare_hooks *hooks, err_detail *d)
{
    gen_params *params = &r->in->params;
    const uint64_t seed = params->seed;
    err_code err = ERR_OK;
    for (const completion_prompt *at = prompt; at && err == ERR_OK; at = at->next, params->seed = seed) {
        const upstream_prompt raw = {.text = at->text, .ids = at->ids, .n_ids = at->n_ids};
        for (int i = 0; (i == 0 || i < params->n_choices) && err == ERR_OK; i++, params->seed++) {
            upstream_request *q = NULL;
            err = is_unwanted(run)
                      ? ERR_CANCELLED
                      : upstreams_prepare(run->job->order.upstreams, &q, &run->remote, r, &raw, hooks, d);
            if (m->remote && q) {
                upstream_request_append(m->remote, q);
            }
            m->remote = m->remote ? m->remote : q;
        }
    }
    if (err == ERR_OK) {
        m->info = upstream_request_info(m->remote);
        run->prep->post(run->prep->ctx, m);
    }
    return err;
}

static void run_job(prep_run *run)
{
    prep *p = run->prep;
    prep_job *job = run->job;
    const prepare_hooks hooks = {.progress = on_progress, .cancelled = is_cancelled, .ctx = run};
    const dialect *of = job->order.dialect;
    loop_message *accepted = job->accepted, *prepared = job->prepared;
    double start = clock_ms();
    bool is_other = false;
    err_detail d = {0};
    completion_prompt prompt = {0};
    gen_request *request = NULL;
    api_request r;
    context_fit fit = {.r = &r,
                       .prepare = of->prepare,
                       .prompt = &prompt,
                       .e = job->order.engine,
                       .hooks = &hooks,
                       .told = bytes_empty(4096)};
    api_request_init(&r);
    err_code err = must_parse(run) ? open_body(run, &r, &is_other, &d) : ERR_CANCELLED;
    if (is_other) {
        hand_back(run, &r);
        goto out;
    }
    if (err == ERR_OK) {
        err = of->parse(&r, &prompt, bytes_str(&job->body), job->body.len,
                        run->is_remote ? &run->remote.info : engine_get_info(job->order.engine), &d);
    }
    if (err == ERR_OK && (job->order.hash_body || r.reply.event_id[0])) {
        hash_sha256(r.reply.body_hash, job->body.data, job->body.len);
    }
    err = err == ERR_OK ? check(run, &r, &d) : err;
    r.compact_at = job->order.may_compact ? r.compact_at : 0;
    if (err == ERR_OK && (r.reply.plan || r.compact_at)) {
        keep_body(job, prepared);
        spend(&r, &job->order);
    }
    drop_body(job); /* the parsed form is enough from here */
    job->prepared = NULL;
    const bool is_early = of->has_log && r.reply.stream && r.reply.return_progress;
    const bool is_later = job->turns != NULL;
    const bool runs_first = err == ERR_OK && r.reply.plan && r.reply.plan->n_calls > 0 && !is_later;
    const bool says_accepted = err == ERR_OK && !runs_first && !is_later &&
                               (job->order.says_accepted || is_early || r.reply.background);
    const bool submits = job->order.submits && !r.reply.event_id[0];
    if (run->is_remote && !upstreams_is_named(job->order.upstreams, r.reply.model)) {
        snprintf(r.reply.model, sizeof r.reply.model, "%s",
                 run->remote.name); /* which was not what it asked for */
    }
    take_options(says_accepted ? accepted : prepared, &r);
    if (runs_first) { /* what a person has allowed comes before the model's next word */
        prepared->type = LOOP_TOOLS;
        p->post(p->ctx, prepared);
        goto out;
    }
    if (run->is_remote && err == ERR_OK) {
        api_request_copy_wishes(&r, &(says_accepted ? accepted : prepared)->options);
        err = r.error.code;
    }
    if (says_accepted) {
        job->accepted = NULL;
        p->post(p->ctx, accepted);
    }
    if (err == ERR_OK) {
        r.in->scope = job->order.scope;
        err = bring_remote(run, r.in, &hooks, &d);
    }
    if (err == ERR_OK && run->is_remote) {
        prepared->prep_ms = clock_ms() - start;
        err = finish_remote(run, prepared, &r, &prompt, &hooks, &d);
        if (err != ERR_OK) {
            refuse(run, prepared, err, &d);
        }
        goto out;
    }
    if (err == ERR_OK) {
        err = context_fit_prepare(&request, &fit, &d);
        prepared->reply = fit.told; /* handed over */
        prepared->asks_summary = fit.asks_summary;
    }
    prepared->prep_ms = clock_ms() - start;
    if (err == ERR_OK) {
        gen_request_set_name(request, job->order.request_id);
        log_debug("prep", "prepared %s prompt=%d ms=%.1f", of->name,
                  gen_request_get_info(request).n_prompt_tokens, prepared->prep_ms);
    }
    err = err == ERR_OK ? finish(run, prepared, request, submits, &d) : err;
    if (err != ERR_OK) {
        refuse(run, prepared, err, &d);
    }
out:
    api_request_deinit(&r);
}

static void run_any(prep *p, prep_job *job)
{
    prep_run run = {.prep = p, .job = job, .last_phase = GEN_PHASE_QUEUED};
    const size_t n = job->body.len < LIMIT_TEXT_BODY_BYTES ? job->body.len : LIMIT_TEXT_BODY_BYTES;
    prep_turn turn = {.used_ms = GUESS_MS_A_BYTE * (double)n, .cancelled = is_unwanted, .ctx = &run};
    run.turn = &turn;
    (void)prep_turns_enter(p->turns, &turn); /* without a turn its first hook says so, and it is refused */
    (!job->order.dialect ? run_preview : job->order.dialect->is_query ? run_query : run_job)(&run);
    prep_turns_leave(p->turns, &turn);
}

static void *worker(void *ctx)
{
    prep *p = ctx;
    void *message;
    while (mailbox_pop(p->jobs, &message)) {
        log_set_request(((prep_job *)message)->order.request_id);
        run_any(p, message);
        log_set_request(NULL);
        job_free(message);
    }
    atomic_fetch_sub(&p->n_alive, 1);
    return NULL;
}

/* Every job should have a thread, so that all of them take turns. Without one it waits for
 * another's end, which is made to come. Loop thread. */
static void find_thread(prep *p)
{
    if (atomic_load(&p->n_jobs) <= (size_t)p->n_threads) {
        return;
    }
    if (p->n_threads < p->max_threads) {
        atomic_fetch_add(&p->n_alive, 1);
        if (pthread_create(&p->threads[p->n_threads], NULL, worker, p) == 0) {
            p->n_threads++;
            return;
        }
        atomic_fetch_sub(&p->n_alive, 1);
    }
    prep_turns_make_room(p->turns);
}

/* ---- lifetime ---- */

prep *prep_create(int n_turns, int n_threads, size_t n_queue, size_t max_bytes, file_store *files,
                  response_store *conversations, const remote_media *remote,
                  void (*post)(void *ctx, loop_message *m), void *ctx)
{
    prep *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->post = post;
    p->ctx = ctx;
    p->max_bytes = max_bytes;
    p->files = files;
    p->response_store = conversations;
    p->remote = remote;
    atomic_init(&p->n_bytes, 0);
    atomic_init(&p->n_jobs, 0);
    atomic_init(&p->stopping, false);
    p->jobs = mailbox_create(n_queue);
    p->turns = prep_turns_create(n_turns < 1 ? 1 : n_turns);
    p->max_threads = n_threads < 1 ? 1 : n_threads > LIMIT_PREP_JOBS ? LIMIT_PREP_JOBS : n_threads;
    atomic_init(&p->n_alive, 1);
    if (!p->jobs || !p->turns || pthread_create(&p->threads[0], NULL, worker, p) != 0) {
        prep_destroy(p);
        return NULL;
    }
    p->n_threads = 1;
    return p;
}

bool prep_end(prep *p, int within_ms)
{
    if (!p) {
        return true;
    }
    atomic_store(&p->stopping, true);
    mailbox_close(p->jobs);
    const double until = clock_ms() + within_ms;
    while (atomic_load(&p->n_alive) > 0 && clock_ms() < until) {
        const struct timespec moment = {.tv_nsec = 1000000};
        nanosleep(&moment, NULL);
    }
    return atomic_load(&p->n_alive) == 0;
}

void prep_get_status(const prep *p, prep_status *out)
{
    prep_turns_status turns;
    prep_turns_get_status(p->turns, &turns);
    const size_t n_jobs = atomic_load(&p->n_jobs), n_begun = (size_t)turns.n_begun;
    *out = (prep_status){.n_begun = turns.n_begun,
                         .n_computing = turns.n_computing,
                         .n_waiting = n_jobs > n_begun ? (int)(n_jobs - n_begun) : 0,
                         .oldest_ms = turns.oldest_ms,
                         .silent_ms = turns.silent_ms};
}

void prep_destroy(prep *p)
{
    if (!p) {
        return;
    }
    atomic_store(&p->stopping, true);
    if (p->jobs) {
        mailbox_close(p->jobs);
    }
    for (int i = 0; i < p->n_threads; i++) {
        pthread_join(p->threads[i], NULL);
    }
    if (p->jobs) {
        mailbox_destroy(p->jobs, NULL); /* it is empty: workers end when nothing waits any more */
    }
    prep_turns_destroy(p->turns);
    free(p);
}

void prep_set_stores(prep *p, struct ledger *memory, const kept_talks *talks)
{
    p->talks = talks;
    p->memory = memory;
}

err_code prep_submit(prep *p, const prep_order *order, bytes *body, json_doc **doc, ledger_hold *hold,
                     prep_ticket *t)
{
    /* Only this thread adds, so looking and adding need not be one step. */
    if (atomic_load(&p->n_bytes) + body->len > p->max_bytes) {
        return ERR_BUSY;
    }
    prep_job *job = calloc(1, sizeof *job);
    if (!job) {
        return ERR_NOMEM;
    }
    *job = (prep_job){.prep = p, .order = *order, .ticket = t};
    if (order->turns &&
        json_parse(&job->turns, order->turns, strlen(order->turns), LIMIT_JSON_DEPTH + 2, NULL) != ERR_OK) {
        free(job);
        return ERR_NOMEM;
    }
    job->order.turns = NULL;
    atomic_fetch_add(&t->refs, 1);
    atomic_fetch_add(&p->n_jobs, 1);
    job->accepted = loop_message_create(LOOP_ACCEPTED, order->id);
    job->prepared = loop_message_create(LOOP_PREPARED, order->id);
    if (!job->accepted || !job->prepared) {
        job_free(job);
        return ERR_NOMEM;
    }
    hold->ledger = p->memory;
    if (hold->bytes < body->len && !ledger_try(hold, body->len - hold->bytes)) {
        job_free(job);
        return ERR_BUSY;
    }
    job->body = *body;
    job->doc = *doc;
    job->memory = *hold;
    atomic_fetch_add(&p->n_bytes, body->len);
    if (!mailbox_push(p->jobs, job)) {
        atomic_fetch_sub(&p->n_bytes, body->len);
        job->memory = (ledger_hold){0}; /* all stays with the caller */
        job_free(job);
        return ERR_BUSY;
    }
    *body = (bytes){0}; /* the job owns all of it now */
    *doc = NULL;
    *hold = (ledger_hold){0};
    find_thread(p);
    return ERR_OK;
}

bool prep_is_idle(const prep *p)
{
    return atomic_load(&p->n_jobs) == 0;
}
