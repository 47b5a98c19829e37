/* Loading a model, and another in its place. Requests for a model that is not loaded are held in
 * the order of their arrival. While one of them waits at the front, what comes later waits behind
 * it, so that nothing overtakes it for ever; the answers that run end, the model goes to the shelf of
 * residents (serve_models.c), the loader thread opens the other, unless it is on the shelf, and
 * then all that asked for that model go on before the next switch begins. The memory of models that
 * have to leave is given back before the new one is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/service/serve_state.h"

enum { SWITCH_TICK_MS = 20, URL_BYTES = 256 };

/* ---- the loader thread ---- */

static void on_load(void *ctx, const char *stage, double fraction)
{
    serve *s = ctx;
    loop_message *m = loop_message_create(LOOP_LOADING, 0);
    if (m) {
        snprintf(m->stage, sizeof m->stage, "%s", stage);
        m->fraction = fraction < 0.0 ? 0.0 : fraction > 1.0 ? 1.0 : fraction;
        serve_post(s, m);
    }
}

/* How a model writes tool calls. */
static const tool_form *choose_tool_form(const serve *s, const engine_info *info)
{
    const char *wanted = s->opt->tool_scanner;
    const bool is_auto = !wanted || strcmp(wanted, "auto") == 0;
    return !is_auto             ? tool_form_find(wanted) /* "none" is no form */
           : info->writes_tools ? &TOOL_FORM_HERMES      /* as the prompt asks for it */
                                : tool_form_of_template(info->template_text);
}

/* Nobody is answered before that: the first who asks finds the prompts computed. */
static void warm_prompts(serve *s, engine *e)
{
    if (e && s->warm) {
        const warm_order o = {.file = s->opt->warm_prompts,
                              .engine = e,
                              .form = choose_tool_form(s, engine_get_info(e)),
                              .template_kwargs = s->opt->template_kwargs,
                              .scopes = s->load.scopes,
                              .n_scopes = s->load.n_scopes,
                              .stops = &s->closing,
                              .progress = on_load,
                              .ctx = s};
        warm_run(s->warm, &o);
    }
    free(s->load.scopes);
    s->load.scopes = NULL;
}

static void *loader(void *ctx)
{
    serve *s = ctx;
    load_job *job = &s->load;
    loop_message *m = job->loaded;
    job->loaded = NULL;
    if (job->only_closes) {
        serve_close_lent(job);
        serve_post(s, m);
        return NULL;
    }
    m->code = serve_open_beside(job, &m->engine, &m->detail);
    if (m->code != ERR_OK) {
        err_detail again = {0};
        m->engine = NULL;
        if (job->has_previous && job->n_closed == job->n_lent &&
            engine_open(&m->engine, &job->previous, &again) != ERR_OK) {
            log_error("load", "the model before cannot be loaded either: %s", again.text);
            m->engine = NULL;
        }
    }
    warm_prompts(s, m->engine);
    serve_post(s, m);
    return NULL;
}

static bool is_home(const serve *s, const model_ref *ref)
{
    return strcmp(ref->path, s->home.path) == 0;
}

/* The options of the command line; those that mean one model alone hold for the one it named. */
static engine_options options_of(const serve *s, const model_ref *ref)
{
    engine_options o = *s->opt->engine;
    o.on_event = serve_on_engine_event;
    o.on_event_ctx = (void *)(uintptr_t)s;
    o.memory = s->memory;
    o.on_load = on_load;
    o.on_load_ctx = (void *)(uintptr_t)s;
    if (!is_home(s, ref)) {
        o.model_dir = ref->path;
        o.mmproj = o.template_file = NULL;
    }
    return o;
}

/* Whose the prompts of --warm-prompts are: of each key, as if each had sent them; of all, where
 * keys share or there are none. The keys may change while the model is loaded, so they are copied. */
static bool take_scopes(serve *s)
{
    const size_t n = s->load.wanted.share_cache ? 0 : s->access.n_keys;
    s->warm = s->warm ? s->warm : warm_create();
    s->load.scopes = calloc(n + 1, sizeof *s->load.scopes);
    s->load.n_scopes = n ? n : 1;
    for (size_t i = 0; s->load.scopes && i < n; i++) {
        s->load.scopes[i] = access_scope_of_key(&s->access, i);
    }
    return s->warm && s->load.scopes;
}

bool serve_start_loader(serve *s)
{
    const bool is_whole = !s->opt->warm_prompts || s->load.only_closes || take_scopes(s);
    s->load.loaded = is_whole ? loop_message_create(LOOP_LOADED, 0) : NULL;
    s->loader_started = s->load.loaded && pthread_create(&s->loader, NULL, loader, s) == 0;
    if (!s->loader_started) {
        loop_message_free(s->load.loaded);
        s->load.loaded = NULL;
        free(s->load.scopes);
        s->load.scopes = NULL;
    }
    return s->loader_started;
}

bool serve_load_first(serve *s)
{
    const char *dir = s->opt->engine->model_dir;
    char *full = dir ? realpath(dir, NULL) : NULL;
    snprintf(s->home.path, sizeof s->home.path, "%s", dir ? dir : "");
    if (full && !serve_name_of(s, s->home.path) &&
        serve_name_of(s, full)) { /* the list has it by another path */
        snprintf(s->home.path, sizeof s->home.path, "%s", full);
    }
    free(full);
    s->memory_bytes =
        s->opt->engine->mem_limit_mib ? (size_t)s->opt->engine->mem_limit_mib << 20 : memory_available();
    s->load = (load_job){.wanted = options_of(s, &s->home)};
    return serve_start_loader(s);
}

/* ---- the loaded model ---- */

static void take_engine(serve *s, engine *e)
{
    s->engine = e;
    s->info = engine_get_info(e);
    s->tool_form = choose_tool_form(s, s->info);
    log_info("srv", "tool calls: %s", s->tool_form ? s->tool_form->name : "none");
    snprintf(s->model_name, sizeof s->model_name, "%s", s->current.name);
    s->load_fraction = 1.0;
    snprintf(s->load_stage, sizeof s->load_stage, "ready");
    s->was_busy = s->is_stalled = false;
    s->stalled_ms = 0.0;
    s->session_version++;
    if (s->phase != SERVE_DRAINING) {
        s->phase = SERVE_READY;
    }
}

static void take_first(serve *s, engine *e)
{
    const char *name = s->opt->alias ? s->opt->alias : serve_name_of(s, s->home.path);
    snprintf(s->home.name, sizeof s->home.name, "%s", name ? name : engine_get_info(e)->model_name);
    s->current = s->home;
    take_engine(s, e);
}

/* ---- who waits ---- */

static answer *first_held(const serve *s, uint64_t behind)
{
    answer *first = NULL;
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a && a->state == ANSWER_HELD && a->id > behind && (!first || a->id < first->id)) {
            first = a;
        }
    }
    return first;
}

static void count_held(const serve *s, size_t *n, size_t *n_bytes)
{
    *n = *n_bytes = 0;
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *a = id_table_at(&s->answers, i);
        if (a && a->state == ANSWER_HELD) {
            ++*n;
            *n_bytes += a->body.len;
        }
    }
}

/* Ends those that wait for this model; NULL: all of them. */
static void fail_held(serve *s, const char *model, const api_error *e)
{
    answer *next = NULL;
    for (answer *a = first_held(s, 0); a; a = next) {
        next = first_held(s, a->id);
        if (!model || (a->knows_model && strcmp(a->opt.model, model) == 0)) {
            serve_fail_answer(s, a, ERR_NOMEM, e);
        }
    }
}

/* Whether the loaded model may answer it, or that has to be found out. */
static bool fits(serve *s, const answer *a)
{
    model_ref ref;
    return !a->knows_model || (s->engine && (!a->opt.model[0] || (serve_find_model(s, a->opt.model, &ref) &&
                                                                  strcmp(ref.path, s->current.path) == 0)));
}

/* Whether the model that a request of this connection (0: it has gone) asks for, before the one with this id, is not
 * known yet. Only a socket has several. */
static bool is_reading(const serve *s, uint64_t connection, uint64_t before)
{
    for (size_t i = 0; i < s->answers.cap && connection; i++) {
        const answer *b = id_table_at(&s->answers, i);
        if (b && b->conn == connection && b->id < before && b->state == ANSWER_PREPARING && !b->is_accepted &&
            !b->knows_model) {
            return true;
        }
    }
    return false;
}

/* A plain socket tells its answers apart by their order. */
static bool is_behind(const serve *s, const answer *a)
{
    if (is_reading(s, a->conn, a->id)) {
        return true;
    }
    for (const answer *b = first_held(s, 0); b && b->id < a->id && a->is_socket; b = first_held(s, b->id)) {
        if (b->conn == a->conn) {
            return true;
        }
    }
    return false;
}

static void reply_loaded(serve *s, answer *a)
{
    conn *c = serve_conn(s, a->conn);
    if (c) {
        bytes body;
        bytes_init(&body, 4096);
        bytes_append_str(&body, "{\"success\":true,\"model\":");
        bytes_append_json(&body, s->model_name, strlen(s->model_name));
        bytes_append_char(&body, '}');
        c->answer = 0;
        serve_send_body(s, c, &body);
    }
    serve_drop_answer(s, a);
}

static void start_held(serve *s, answer *a)
{
    if (a->dialect == &dialect_load) {
        reply_loaded(s, a);
        return;
    }
    const err_code err = serve_prepare_answer(s, a);
    if (err != ERR_OK) {
        serve_fail_answer_from(s, a, err, NULL);
    }
}

/* ---- the switch ---- */

/* Lets go on who fits the loaded model; whoever is in front then gets the next switch. */
static void pump(serve *s)
{
    answer *next = NULL;
    for (answer *a = first_held(s, 0); a; a = next) {
        next = first_held(s, a->id);
        if (fits(s, a) && !is_behind(s, a)) {
            start_held(s, a);
        } else if (!s->engine && !a->opt.model[0]) {
            api_error e;
            serve_is_ready(s, &e);
            serve_fail_answer(s, a, ERR_NOT_FOUND, &e);
        }
    }
    const answer *first = first_held(s, 0);
    if (first && is_behind(s, first)) {
        return; /* behind one that is still being read */
    }
    if (first && serve_find_model(s, first->opt.model, &s->wanted)) {
        log_info("load", "%s is wanted; the answers of %s end first", s->wanted.name,
                 s->engine ? s->model_name : "no model");
        s->switching = SWITCH_FINISHING;
        serve_status_changed(s);
    } else if (first) {
        api_error e;
        char name[REQUEST_MODEL_MAX];
        snprintf(name, sizeof name, "%s", first->opt.model);
        api_error_set(&e, 404, "model_not_found", "model", "the model is no longer there; see /v1/models");
        fail_held(s, name, &e);
    }
}

/* Whether somebody waits for an answer of the loaded model, or its thread is at one that nobody
 * waits for. */
static bool has_answers(const serve *s)
{
    engine_status status = {0};
    if (s->engine) {
        engine_get_status(s->engine, &status);
    }
    if (status.n_running + status.n_waiting > 0) {
        return true;
    }
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *a = id_table_at(&s->answers, i);
        if (a && a->state != ANSWER_HELD && a->state != ANSWER_FINISHED && !a->server) {
            return true;
        }
    }
    return false;
}

/* The switch ends with this model. */
static void go_on_with(serve *s, engine *e)
{
    s->switching = SWITCH_NONE;
    s->current = s->wanted;
    take_engine(s, e);
    log_info("load", "%s is loaded", s->model_name);
    notify_send(&s->notify, "STATUS=Ready: %s", s->model_name);
    serve_status_changed(s);
    if (s->phase != SERVE_DRAINING) {
        pump(s);
    }
}

void serve_advance_switch(serve *s)
{
    if (s->switching != SWITCH_FINISHING || s->is_stalled || s->loader_started || has_answers(s) ||
        serve_end_previews(s)) {
        return;
    }
    engine *e = serve_take_resident(s, s->wanted.path);
    if (e) {
        if (s->engine) {
            serve_shelve(s, s->engine, &s->current, clock_ms());
        }
        go_on_with(s, e);
        return;
    }
    const catalog_model *m = serve_catalog_entry(s, s->wanted.path);
    s->load = (load_job){.wanted = options_of(s, &s->wanted),
                         .previous = options_of(s, &s->current),
                         .has_previous = s->engine && !serve_is_pinned(s, &s->current),
                         .wanted_bytes = m ? (size_t)m->n_bytes : 0};
    if (s->engine) {
        serve_shelve(s, s->engine, &s->current, clock_ms());
    }
    serve_lend_residents(s);
    if (!serve_start_loader(s)) {
        api_error why;
        api_error_from(&why, ERR_NOMEM, NULL);
        serve_take_back(s);
        s->engine = s->engine ? serve_take_resident(s, s->current.path) : NULL;
        s->switching = SWITCH_NONE;
        fail_held(s, s->wanted.name, &why);
        return;
    }
    s->switching = SWITCH_LOADING;
    s->phase = SERVE_LOADING;
    s->engine = NULL; /* it is with the residents */
    s->info = NULL;
    s->tool_form = NULL;
    s->load_fraction = 0.0;
    snprintf(s->load_stage, sizeof s->load_stage, "closing");
    serve_status_changed(s);
}

/* Whether trying again would bring the same, as long as the files do. */
static bool is_lasting(err_code err)
{
    return err == ERR_CORRUPT || err == ERR_UNSUPPORTED || err == ERR_NOT_FOUND || err == ERR_INVALID;
}

static void on_failed_load(serve *s, loop_message *m)
{
    api_error e;
    char reason[ERR_TEXT_MAX], name[REQUEST_MODEL_MAX];
    snprintf(name, sizeof name, "%s", s->wanted.name);
    const char *why = m->detail.text[0] ? m->detail.text : err_name(m->code);
    log_error("load", "%s: %s", name, why);
    catalog_hide_folder(s->catalog, reason, sizeof reason, why);
    if (is_lasting(m->code)) {
        catalog_set_error(s->catalog, name, m->code, why);
    }
    engine *before = m->engine ? m->engine : serve_take_resident(s, s->current.path);
    if (before) {
        take_engine(s, before);
    } else {
        s->phase = s->phase == SERVE_DRAINING ? s->phase : SERVE_EMPTY;
        s->current = (model_ref){0};
    }
    api_error_set(&e, 503, "model_load_failed", "model", "%s cannot be loaded: %.300s", name, reason);
    fail_held(s, name, &e);
}

static void finish_switch(serve *s, loop_message *m)
{
    serve_take_back(s);
    if (m->code == ERR_OK) {
        go_on_with(s, m->engine);
        return;
    }
    s->switching = SWITCH_NONE;
    on_failed_load(s, m);
    serve_status_changed(s);
    if (s->phase != SERVE_DRAINING) {
        pump(s);
    }
}

/* The bar; where there is none a line for each stage, and for each tenth of the whole way. */
void serve_on_loading(serve *s, const loop_message *m)
{
    if (s->bar.is_drawn) {
        load_bar_show(&s->bar, m->stage, m->fraction);
    } else if (strcmp(m->stage, s->load_stage) != 0 ||
               (int)(m->fraction * 10.0) != (int)(s->load_fraction * 10.0)) {
        log_info("load", "%s: %.0f %%", m->stage, m->fraction * 100.0);
    }
    snprintf(s->load_stage, sizeof s->load_stage, "%s", m->stage);
    s->load_fraction = m->fraction;
    notify_send(&s->notify, "STATUS=Loading: %s, %.0f %%", s->load_stage, s->load_fraction * 100.0);
    serve_status_changed(s);
}

/* Where to find the page: of the first host, in a form that a browser takes. */
static void write_url(const serve *s, char *out, size_t cap)
{
    const char *host = s->opt->hosts[0];
    const bool is_any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    const bool is_v6 = !is_any && strchr(host, ':');
    if (net_port(s->net) == 0) {
        snprintf(out, cap, "%s", host);
    } else {
        snprintf(out, cap, "http://%s%s%s:%d/", is_v6 ? "[" : "", is_any ? "127.0.0.1" : host,
                 is_v6 ? "]" : "", net_port(s->net));
    }
}

static void say_ready(serve *s)
{
    char url[URL_BYTES];
    notify_send(&s->notify, "READY=1\nSTATUS=Ready: %s", s->info ? s->model_name : "models of other servers");
    write_url(s, url, sizeof url);
    if (!s->opt->quiet && s->info) {
        printf("Parley is ready: %s  model %s, context %d, %s\n", url, s->model_name, s->info->n_ctx,
               s->info->compute);
    } else if (!s->opt->quiet) {
        printf("Parley is ready: %s  models of other servers\n", url);
    }
    fflush(stdout);
}

void serve_on_loaded(serve *s, loop_message *m)
{
    pthread_join(s->loader, NULL);
    s->loader_started = false;
    if (s->load.only_closes) {
        serve_on_unloaded(s);
        return;
    }
    load_bar_end(&s->bar);
    if (s->switching == SWITCH_LOADING) {
        finish_switch(s, m);
        return;
    }
    if (!m->engine) {
        log_error("load", "%s", m->detail.text[0] ? m->detail.text : err_name(m->code));
        s->exit_code = m->code == ERR_NOMEM ? EXIT_MEMORY : m->code == ERR_INVALID ? EXIT_USAGE : EXIT_MODEL;
        s->done = true;
        return;
    }
    take_first(s, m->engine);
    if (s->phase == SERVE_READY) {
        say_ready(s);
    }
    serve_status_changed(s);
}

void serve_begin_ready(serve *s)
{
    load_bar_end(&s->bar);
    s->phase = SERVE_READY;
    s->load_fraction = 1.0;
    snprintf(s->load_stage, sizeof s->load_stage, "ready");
    say_ready(s);
}

void serve_try_held(serve *s)
{
    if (s->switching == SWITCH_NONE && s->phase != SERVE_DRAINING && first_held(s, 0)) {
        pump(s);
    }
}

int serve_tick_switch(serve *s, double now)
{
    size_t n, n_bytes;
    answer *next = NULL;
    for (answer *a = first_held(s, 0); a; a = next) {
        next = first_held(s, a->id);
        if (now - a->created_ms > s->opt->queue_timeout_s * 1000.0) {
            api_error e;
            api_error_set(&e, 503, "queue_timeout", NULL,
                          "the request waited too long for its model; try again later");
            serve_fail_answer(s, a, ERR_TIMEOUT, &e);
        }
    }
    count_held(s, &n, &n_bytes);
    if (s->switching == SWITCH_NONE && n > 0) {
        pump(s);
    }
    serve_tick_residents(s, now);
    return s->switching == SWITCH_FINISHING ? SWITCH_TICK_MS : SERVE_TICK_MS;
}

void serve_refuse_held(serve *s)
{
    api_error e;
    serve_is_ready(s, &e);
    fail_held(s, NULL, &e);
    if (s->switching == SWITCH_FINISHING) {
        s->switching = SWITCH_NONE;
    }
}

/* ---- a request arrives ---- */

/* NULL, or why the model that was named cannot be had. */
static const char *refusal(const serve *s, const model_ref *ref, api_error *e)
{
    const catalog_model *m = serve_catalog_entry(s, ref->path);
    if (!s->opt->switches_model) {
        api_error_set(e, 404, "model_not_loaded", "model",
                      "%s is not loaded, and this server does not switch", ref->name);
        return e->message;
    }
    if (m && m->error) {
        api_error_set(e, 503, "model_load_failed", "model", "%s cannot be loaded: %.300s", ref->name,
                      m->reason);
        return e->message;
    }
    if (!serve_has_model_room(s) && !serve_find_resident(s, ref->path)) {
        api_error_set(
            e, 503, "models_pinned", "model",
            "%s is not loaded, and all models that stay in memory are pinned: see --models-max, --pin",
            ref->name);
        return e->message;
    }
    return NULL;
}

/* Whether one more may wait. */
static bool has_room(const serve *s, size_t n_body, api_error *e)
{
    size_t n, n_bytes;
    count_held(s, &n, &n_bytes);
    if (n < (size_t)s->opt->n_queue && n_bytes + n_body <= SERVE_INFLIGHT_BODIES * s->opt->max_body) {
        return true;
    }
    api_error_from(e, ERR_BUSY, NULL);
    return false;
}

static bool is_switching(const serve *s)
{
    return s->switching != SWITCH_NONE || first_held(s, 0);
}

model_turn serve_model_turn(serve *s, const conn *c, size_t n_body, api_error *e)
{
    const bool waits = is_switching(s) || is_reading(s, c->id, UINT64_MAX);
    if (s->upstreams && s->phase != SERVE_DRAINING && !s->is_prep_stalled && !waits) {
        return MODEL_NOW; /* the body may name a model of another server; if not, it comes back */
    }
    if (!s->catalog || s->phase == SERVE_DRAINING || s->is_stalled ||
        (!s->engine && s->phase == SERVE_LOADING && !s->switching)) {
        return serve_is_ready(s, e) ? MODEL_NOW : MODEL_REFUSED;
    }
    return !waits ? MODEL_NOW : has_room(s, n_body, e) ? MODEL_LATER : MODEL_REFUSED;
}

model_turn serve_named_turn(serve *s, uint64_t connection, uint64_t before, char name[REQUEST_MODEL_MAX],
                            size_t n_body, api_error *e)
{
    model_ref ref;
    if (upstreams_is_named(s->upstreams, name) && s->phase != SERVE_DRAINING) {
        return MODEL_NOW;
    }
    if (s->phase == SERVE_DRAINING || s->is_stalled) {
        serve_is_ready(s, e);
        return MODEL_REFUSED;
    }
    const bool is_named = name[0] && serve_find_model(s, name, &ref);
    const bool is_current = is_named && strcmp(ref.path, s->current.path) == 0;
    if (is_named && !is_current && refusal(s, &ref, e)) {
        return MODEL_REFUSED;
    }
    /* Behind one whose model is not known it waits, too: a switch for that one would wait for this answer, and this one for
     * its turn on the socket. */
    const bool waits = is_switching(s) || is_reading(s, connection, before);
    if (!waits && s->engine && (!is_named || is_current)) {
        return MODEL_NOW;
    }
    if (!waits && !s->engine && !is_named) {
        serve_is_ready(s, e);
        return MODEL_REFUSED;
    }
    snprintf(name, REQUEST_MODEL_MAX, "%s", is_named ? ref.name : "");
    return has_room(s, n_body, e) ? MODEL_LATER : MODEL_REFUSED;
}

bool serve_reserve_body(serve *s, answer *a)
{
    a->memory.ledger = s->memory;
    return ledger_try(&a->memory, a->body.len);
}

void serve_hold_answer(serve *s, answer *a)
{
    a->state = ANSWER_HELD;
    serve_schedule(s, 1);
}

void serve_read_model(char out[REQUEST_MODEL_MAX], const bytes *body)
{
    json_doc *doc = NULL;
    out[0] = '\0';
    if (body->len <= SERVE_SMALL_MESSAGE_BYTES &&
        json_parse(&doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, NULL) == ERR_OK) {
        const char *name = json_str(json_get(json_root(doc), "model"), "");
        snprintf(out, REQUEST_MODEL_MAX, "%s", strlen(name) < REQUEST_MODEL_MAX ? name : "");
    }
    json_free(doc);
}

void serve_on_load_model(serve *s, conn *c, bytes *body)
{
    api_error e;
    model_ref ref;
    char name[REQUEST_MODEL_MAX];
    serve_read_model(name, body);
    const bool waits = s->switching || s->phase == SERVE_EMPTY; /* for a model that is ready */
    if ((s->phase == SERVE_DRAINING || !waits) && !serve_is_ready(s, &e)) {
        serve_send_error(s, c, &e);
        return;
    }
    if (!name[0]) {
        api_error_set(&e, 400, "missing_field", "model", "model is missing: the name of one of /v1/models");
    } else if (!serve_find_model(s, name, &ref)) {
        api_error_set(&e, 404, "model_not_found", "model", "there is no such model; see /v1/models");
    } else if ((strcmp(ref.path, s->current.path) == 0 || !refusal(s, &ref, &e)) && has_room(s, 0, &e)) {
        answer *a = serve_new_answer(s, c, &dialect_load, &e);
        if (a) {
            c->answer = a->id;
            snprintf(a->opt.model, sizeof a->opt.model, "%s", ref.name);
            a->knows_model = true;
            serve_hold_answer(s, a);
            return;
        }
    }
    serve_send_error(s, c, &e);
}

void serve_on_unload_model(serve *s, conn *c, const bytes *body)
{
    api_error e;
    model_ref ref;
    char name[REQUEST_MODEL_MAX];
    serve_read_model(name, body);
    if (!name[0]) {
        api_error_set(&e, 400, "missing_field", "model", "model is missing: the name of one of /v1/models");
    } else if (!serve_find_model(s, name, &ref)) {
        api_error_set(&e, 404, "model_not_found", "model", "there is no such model; see /v1/models");
    } else if (serve_unload(s, &ref, &e)) {
        bytes reply = bytes_empty(4096);
        bytes_json(&reply, "{\"success\":true,\"model\":%s}", ref.name);
        serve_send_body(s, c, &reply);
        return;
    }
    serve_send_error(s, c, &e);
}
