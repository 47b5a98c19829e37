/* made_switch: a server that loads and switches models, in each state that a test fills in; whoever it asks is the test, and
 * what is done and said goes to made_said.
 *
 *     serve *s = begin("a switch");      // ash answers
 *     held(s, 11, "birch");              // connection 11 waits for that
 *     serve_try_held(s);
 *     tell(s);                           // says what has changed of the state
 *     end(s);
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_MADE_SWITCH_H
#define PARLEY_TESTS_SERVER_SERVICE_MADE_SWITCH_H

#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/server/service/made_models.h"

/* ---- what is asked of others ---- */

static engine_status engine_has;
static bool previews_run;
static int port;
static err_code open_beside, open_before, prepared;
static bool unloads;
static void *(*thread)(void *ctx);
static void *thread_ctx;
static loop_message *posted[64];
static size_t n_posted;
static warm *warms;

WRAP(void, serve_status_changed, (serve * s), (void)s; made_say("  the status changed\n");)
WRAP(void, engine_get_status, (engine * e, engine_status *out), CHECK(e != NULL); *out = engine_has;)
WRAP(err_code, engine_open, (engine * *out, const engine_options *o, err_detail *d),
     made_say("  opens %s again\n", o->model_dir);
     *out = made_engine(0);
     return open_before == ERR_CORRUPT ? err_set(d, open_before, "it is away") : open_before;)
WRAP(err_code, serve_open_beside, (load_job * job, engine **out, err_detail *d),
     made_say("  opens %s\n", job->wanted.model_dir);
     *out = made_engine(1); return open_beside ? err_set(d, open_beside, "/m/birch: no good") : ERR_OK;)
WRAP(void, serve_close_lent, (load_job * job), (void)job; made_say("  closes what was lent\n");)
WRAP(void, serve_on_unloaded, (serve * s), (void)s; made_say("  is unloaded\n");)
WRAP(void, serve_tick_residents, (serve * s, double now), (void)s;
     made_say("  looks at residents at %.0f\n", now);)
WRAP(
    bool, serve_unload, (serve * s, const model_ref *ref, api_error *e), (void)s;
    made_say("  unloads %s %s\n", ref->name, ref->path);
    if (!unloads) { api_error_set(e, 409, "model_in_use", "model", "in use"); } return unloads;)
WRAP(bool, serve_end_previews, (serve * s), (void)s; made_say("  ends previews\n"); return previews_run;)
WRAP(void, net_set_timer, (net * n, int ms), (void)n; made_say("  looks again in %d ms\n", ms);)
WRAP(int, net_port, (const net *n), (void)n; return port;)
WRAP(void, net_send_reply, (net * n, uint64_t id, const net_reply *reply), (void)n;
     made_say("  < %d: %d %.*s\n", (int)id, reply->status, (int)reply->body_bytes,
              (const char *)reply->body);)
WRAP(void, load_bar_show, (load_bar * bar, const char *stage, double fraction), (void)bar;
     made_say("  the bar shows %s %.2f\n", stage, fraction);)
WRAP(void, load_bar_end, (load_bar * bar), (void)bar; made_say("  the bar ends\n");)
WRAP(void, catalog_set_error, (catalog * c, const char *name, err_code error, const char *text),
     CHECK(c != NULL);
     made_say("  the list has %s: %s, %s\n", name, err_name(error), text);)
WRAP(void, catalog_hide_folder, (const catalog *c, char *out, size_t cap, const char *text), CHECK(c != NULL);
     snprintf(out, cap, "%s", text[0] == '/' ? text + 3 : text);)
WRAP(bool, upstreams_is_named, (const upstreams *u, const char *name),
     return u && strncmp(name, "far/", 4) == 0;)
WRAP(uint64_t, access_scope_of_key, (const access_rules *a, size_t i), CHECK(i < a->n_keys); return 40 + i;)
WRAP(size_t, memory_available, (void), return 702;)
WRAP(char *, realpath, (const char *path, char *resolved), CHECK(resolved == NULL);
     return strcmp(path, "gone") == 0 ? NULL
            : path[0] == '/'          ? strdup(path)
                                      : strdup("/m/birch");)
ONE_FAILS(loop_message *, loop_message_create, (loop_message_type type, uint64_t id), (type, id), NULL)
ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(answer *, serve_new_answer, (serve * s, const conn *c, const dialect *d, api_error *e),
          (s, c, d, e), (api_error_from(e, ERR_NOMEM, NULL), NULL))

WRAP(warm *, warm_create, (void), made_say("  makes prompts\n"); return warms;)
WRAP(
    void, warm_run, (warm * w, const warm_order *o), const serve *s = o->ctx;
    CHECK(w == (warm *)(void *)made_some && o->stops == &s->closing);
    made_say("  computes %s with %s, form %s, variables %d, scopes", o->file, made_who(o->engine),
             o->form ? o->form->name : "none", o->template_kwargs != NULL);
    for (size_t i = 0; i < o->n_scopes; i++) { made_say(" %d", (int)o->scopes[i]); } made_say("\n");
    o->progress(o->ctx, "prompts", 0.75);)

/* The test runs it. */
static int no_thread;
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx), (void)t,
     (void)a;
     made_say("  begins a thread\n"); thread = fn; thread_ctx = ctx; return no_thread;)
WRAP(int, pthread_join, (pthread_t t, void **result), (void)t, (void)result;
     made_say("  waits for the thread\n"); return 0;)

void __wrap_notify_send(const notify *n, const char *format, ...);
void __wrap_notify_send(const notify *n, const char *format, ...)
{
    va_list args;
    (void)n;
    va_start(args, format);
    made_say("  tells: ");
    made_say_list(format, args);
    made_say("\n");
    va_end(args);
}

WRAP(void, serve_post, (void *ctx, loop_message *m), (void)ctx; CHECK(n_posted < ARRAY_LEN(posted));
     CHECK_INT(m->id, 0); /* of no answer */
     made_say("  says %s %s %.3f engine %s, %s %s\n", m->type == LOOP_LOADED ? "loaded" : "loading", m->stage,
              m->fraction, made_who(m->engine), err_name(m->code), m->detail.text);
     posted[n_posted++] = m;)

static inline void forget(serve *s, answer *a)
{
    id_table_remove(&s->answers, a->id);
    answer_destroy(a);
}

WRAP(void, serve_fail_answer, (serve * s, answer *a, err_code code, const api_error *e),
     made_say("  fails %d: %s, %d %s: %s\n", (int)a->id, err_name(code), e->status, e->code, e->message);
     forget(s, a);)
WRAP(void, serve_fail_answer_from, (serve * s, answer *a, err_code code, const err_detail *d), (void)d;
     made_say("  fails %d: %s\n", (int)a->id, err_name(code)); forget(s, a);)
WRAP(void, serve_drop_answer, (serve * s, answer *a), made_say("  drops %d\n", (int)a->id); forget(s, a);)
WRAP(err_code, serve_prepare_answer, (serve * s, answer *a), (void)s; made_say("  prepares %d\n", (int)a->id);
     a->state = prepared ? a->state : ANSWER_PREPARING; return prepared;)

/* ---- the state ---- */

static const char *const STATES[] = {"held", "preparing", "ready", "running", "finished"};

static inline const char *or_none(const char *text)
{
    return text ? text : "none";
}

static inline void tell_options(const char *name, const serve *s, const engine_options *o)
{
    const bool is_set = o->on_event == serve_on_engine_event && o->on_event_ctx == s &&
                        o->memory == s->memory && o->on_load && o->on_load_ctx == s;
    made_field(name, "%s, %s, %s, context %d%s", or_none(o->model_dir), or_none(o->mmproj),
               or_none(o->template_file), o->n_ctx, is_set ? "" : ", of nobody");
}

static inline void tell(const serve *s)
{
    static const char *const PHASES[] = {"loading", "ready", "draining", "empty"};
    static const char *const SWITCHES[] = {"none", "finishing", "loading"};
    const load_job *job = &s->load;
    bytes list = bytes_empty(4000);
    made_field("phase", "%s", PHASES[s->phase]);
    made_field("switching", "%s", SWITCHES[s->switching]);
    made_field("engine", "%s, %s, tools %s", made_who(s->engine), s->info ? s->info->model_name : "none",
               s->tool_form ? s->tool_form->name : "none");
    made_field("name", "%s", s->model_name);
    made_field("home", "%s %s", s->home.name, s->home.path);
    made_field("current", "%s %s", s->current.name, s->current.path);
    made_field("wanted", "%s %s", s->wanted.name, s->wanted.path);
    made_field("stage", "%s %.3f", s->load_stage, s->load_fraction);
    made_field("stalled", "%d %d %.0f", s->was_busy, s->is_stalled, s->stalled_ms);
    made_field("session", "%d", (int)s->session_version);
    made_field("memory", "%zu", s->memory_bytes);
    made_field("loader", "%d", s->loader_started);
    made_field("end", "%d %d", s->done, s->exit_code);
    tell_options("opens", s, &job->wanted);
    tell_options("before", s, &job->previous);
    made_field("job",
               "before %d, wanted %zu, lent %zu, must %zu, closed %zu, kept %zu, all %zu, only closes %d",
               job->has_previous, job->wanted_bytes, job->n_lent, job->n_must, job->n_closed, job->kept_bytes,
               job->memory_bytes, job->only_closes);
    made_field("thread has", "scopes %d of %zu, message %d", job->scopes != NULL, job->n_scopes,
               job->loaded != NULL);
    for (size_t i = 0; i < s->n_shelf; i++) {
        bytes_printf(&list, "%s %s %.0f, ", made_who(s->shelf[i].engine), s->shelf[i].ref.path,
                     s->shelf[i].used_ms);
    }
    made_field("shelf", "%s", bytes_str(&list));
    bytes_clear(&list);
    for (uint64_t id = 1; id <= s->next_answer; id++) {
        const answer *a = id_table_get(&s->answers, id);
        if (a) {
            bytes_printf(&list, "%d %s, ", (int)id, STATES[a->state]);
        }
    }
    made_field("answers", "%s", bytes_str(&list));
    bytes_deinit(&list);
}

static const engine_options ENGINE = {
    .model_dir = "/m/ash", .mmproj = "eyes", .template_file = "words", .n_ctx = 12};

/* what NULL: nothing is said of it. ash answers, as oak; birch, cedar and elm may be loaded, the last one is on the shelf. */
static inline serve *begin(const char *what)
{
    serve *s = made_serve();
    made_models();
    made_options.engine = &ENGINE;
    made_options.models_max = 3;
    made_options.n_queue = 9;
    made_options.max_body = 100;
    made_options.queue_timeout_s = 2;
    made_options.quiet = true;
    made_now_ms = 5000.0;
    s->catalog_read_ms = made_now_ms; /* it is not read again */
    engine_has = (engine_status){0};
    previews_run = unloads = false;
    port = 8080;
    no_thread = 0;
    open_beside = open_before = prepared = ERR_OK;
    warms = (warm *)(void *)made_some;
    s->memory = (struct ledger *)(void *)made_some;
    made_loaded(s);
    made_list[2].error = ERR_OK; /* cedar is well here, unless a test says otherwise */
    made_listed = made_found = MADE_MODELS;
    s->load.wanted = s->load.previous = ENGINE;
    made_is_silent = true;
    tell(s);
    made_is_silent = false;
    if (what) {
        made_say("\n# %s\n", what);
    }
    return s;
}

static inline void end(serve *s)
{
    CHECK_INT(n_posted, 0);
    made_end(s);
}

static inline conn *client(serve *s, uint64_t id, const char *path)
{
    conn *c = made_conn(s, id);
    made_route(c, NET_POST, path);
    return c;
}

/* model NULL: that is not known yet. */
static inline answer *held(serve *s, uint64_t connection, const char *model)
{
    answer *a = made_answer(s, &dialect_chat);
    a->conn = connection;
    a->state = ANSWER_HELD;
    a->created_ms = made_now_ms;
    a->knows_model = model != NULL;
    snprintf(a->opt.model, sizeof a->opt.model, "%s", model ? model : "");
    return a;
}

/* The next answer stands in the first place of the table, which no walk may leave out. */
static inline void next_is_first(serve *s)
{
    id_table t;
    id_table_init(&t);
    for (bool is_first = false; !is_first; s->next_answer++) {
        const uint64_t id = s->next_answer + 1;
        CHECK(id_table_put(&t, id, made_some));
        is_first = t.entries[0].id == id;
        id_table_remove(&t, id);
    }
    s->next_answer--;
    id_table_deinit(&t);
}

#endif
