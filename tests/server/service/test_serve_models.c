/* serve_models: the names of models, what lists say of each for clients of each kind, and models of a hub; recorded. The
 * engine, the list, the hub and the net are the test. */
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/server/service/made_models.h"

/* ---- what is asked of others ---- */

static const hub_place PLACE = {.endpoint = "https://hub", .cache = "/cache"};

static char version_reply[512];
static int status; /* of the last reply */
static size_t n_reply;
static err_code list_error, find_error, open_error, job_error;
static const char *find_text; /* NULL: there is none */
static bool is_offered, is_cancelled;
static int done; /* the action that a job has ended with; -1: none has */

/* An error with a text; ERR_INVALID comes without. */
static err_code in_words(err_code code, const char *text, err_detail *d)
{
    return code == ERR_OK || code == ERR_INVALID ? code : err_set(d, code, "%s", text);
}

static void note_reply(const net_reply *reply)
{
    status = reply->status;
    n_reply = reply->body_bytes;
    snprintf(version_reply, sizeof version_reply, "%.*s", (int)reply->body_bytes, (const char *)reply->body);
    if (!strstr(version_reply, "\"version\"")) { /* which does not stay the same */
        made_say("  < %d %s%.*s\n", reply->status, reply->headers ? reply->headers : "",
                 (int)reply->body_bytes, (const char *)reply->body);
    }
}

WRAP(void, net_send_reply, (net * n, uint64_t id, const net_reply *reply), (void)n; CHECK_INT(id, 1);
     note_reply(reply);)
WRAP(int64_t, serve_started_at, (void), return 86400;)
WRAP(size_t, upstreams_write_models, (upstreams * u, bytes *out, bool is_first, int64_t created),
     CHECK(u != NULL);
     bytes_printf(out, "%s{\"id\":\"far/pine\",\"created\":%d}", is_first ? "" : ",", (int)created);
     return 1;)
WRAP(
    bool, upstreams_write_model, (upstreams * u, bytes *out, const char *name, int64_t created),
    CHECK(u != NULL);
    if (strncmp(name, "far/", 4) == 0) {
        bytes_printf(out, "{\"id\":\"%s\",\"created\":%d}", name, (int)created);
        return true;
    } return false;)
ONE_FAILS(void *, realloc, (void *p, size_t n), (p, n), NULL)
ONE_FAILS(err_code, json_parse, (json_doc * *out, const char *text, size_t len, int max_depth, err_detail *d),
          (out, text, len, max_depth, d), ERR_INVALID)

WRAP(const hub_place *, hub_jobs_place, (const hub_jobs *j), CHECK(j != NULL); return &PLACE;)
WRAP(void, hub_jobs_write, (const hub_jobs *j, bytes *out), (void)j; bytes_append_str(out, "[\"jobs\"]");)
WRAP(err_code, hub_jobs_start, (hub_jobs * j, hub_action action, const char *model, err_detail *d), (void)j;
     made_say("  job %d of %s\n", action, model); return in_words(job_error, "why", d);)
WRAP(bool, hub_jobs_cancel, (hub_jobs * j, const char *model), (void)j; made_say("  cancels %s\n", model);
     return is_cancelled;)
WRAP(
    void, hub_jobs_look,
    (hub_jobs * j, void (*on_done)(void *ctx, hub_action action, const char *model), void *ctx), (void)j;
    made_say("  looks at jobs\n"); if (done >= 0) { on_done(ctx, (hub_action)done, "org/name:Q4"); })
WRAP(err_code, hub_cache_find, (hub_found * out, const char *cache, const hub_name *name, err_detail *d),
     made_say("  finds %s:%s in %s\n", name->repo, name->quant, cache);
     memset(out, 0, sizeof *out);
     snprintf(out->path, sizeof out->path, "%s/models--org--name/%s.gguf", cache, name->quant);
     return find_error && find_text ? err_set(d, find_error, "%s", find_text) : find_error;)
WRAP(bool, catalog_offer, (catalog * c, const char *name, const char *path), CHECK(c != NULL);
     made_say("  offers %s at %s\n", name, path); return is_offered;)
WRAP(void, catalog_withdraw, (catalog * c, const char *name), CHECK(c != NULL);
     made_say("  withdraws %s\n", name);)
WRAP(err_code, catalog_open, (catalog * *out, const char *dir, err_detail *d), CHECK(dir == NULL);
     made_say("  opens a list\n"); *out = open_error ? NULL : (catalog *)(void *)made_some;
     return open_error ? err_set(d, open_error, "no list") : ERR_OK;)

err_code __wrap_hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *d);
err_code __wrap_hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *d)
{
    static const char *const PATHS[] = {"/m/ash", "/m/birch", "/m/elm", "/m/away"};
    CHECK_STR(cache, "/cache");
    if (list_error) {
        return in_words(list_error, "cannot be read", d);
    }
    *n = ARRAY_LEN(PATHS);
    *out = calloc(*n, sizeof **out);
    CHECK(*out != NULL);
    for (size_t i = 0; i < *n; i++) {
        hub_kept *one = &(*out)[i];
        one->n_bytes = 5000000000 + (int64_t)i;
        one->is_whole = i % 2;
        snprintf(one->name, sizeof one->name, "org/%zu", i);
        snprintf(one->path, sizeof one->path, "%s", PATHS[i]);
    }
    return ERR_OK;
}

/* ---- the state ---- */

/* ash answers, as oak; elm is on the shelf, and in no list. */
static serve *begin(const char *what)
{
    serve *s = made_serve();
    made_models();
    made_now_ms = 5000.0;
    list_error = find_error = open_error = job_error = ERR_OK;
    find_text = NULL;
    is_offered = is_cancelled = true;
    done = -1;
    s->catalog_read_ms = made_now_ms;
    made_loaded(s);
    if (what) {
        made_say("\n# %s\n", what);
    }
    return s;
}

static conn *asks(serve *s, net_method method, const char *path)
{
    conn *c = id_table_get(&s->conns, 1);
    c = c ? c : made_conn(s, 1);
    made_route(c, method, path);
    made_say("> %s\n", path);
    return c;
}

/* ---- names ---- */

static void find(serve *s, const char *name)
{
    model_ref ref = {"none", "none"};
    const bool is_found = serve_find_model(s, name, &ref);
    made_say("%s: %d, %s, %s; read at %.0f\n", name, is_found, ref.name, ref.path, s->catalog_read_ms);
}

static void test_names(void)
{
    static const char *const NAMES[] = {"oak", "ash", "birch", "cedar", "elm", ""};
    static const char *const PATHS[] = {"/m/ash", "/m/cedar", "/m/elm", ""};
    for (int i = 0; i < 5; i++) {
        serve *s = begin("names");
        s->catalog = i == 1 ? NULL : s->catalog;
        if (i == 2) {
            s->home = (model_ref){0};
        }
        made_listed = made_found = i == 4 ? 0 : made_listed;
        for (size_t k = 0; k < ARRAY_LEN(NAMES); k++) {
            find(s, NAMES[k]);
        }
        for (size_t k = 0; k < ARRAY_LEN(PATHS); k++) {
            const char *name = serve_name_of(s, PATHS[k]);
            made_say("%s is %s\n", PATHS[k], name ? name : "none");
            CHECK(!name == !serve_catalog_entry(s, PATHS[k]));
        }
        made_end(s);
    }
    serve *s = begin("read again");
    made_found = MADE_MODELS;
    s->catalog_read_ms = made_now_ms - 999.0;
    find(s, "elm");
    s->catalog_read_ms = made_now_ms - 1000.0;
    find(s, "birch");
    find(s, "elm");
    find(s, "yew");
    made_now_ms += 1000.0;
    find(s, "yew");
    made_end(s);
}

/* ---- lists ---- */

static void test_list(void)
{
    for (int i = 0; i < 16; i++) {
        serve *s = begin("the list");
        s->info = i & 1 ? s->info : NULL;
        s->n_shelf = i & 2 ? 1 : 0;
        s->catalog = i & 4 ? s->catalog : NULL;
        s->upstreams = i & 8 ? (upstreams *)(void *)made_some : NULL;
        s->engine = NULL;
        s->phase = SERVE_LOADING;
        serve_on_models(s, asks(s, NET_GET, "/v1/models"));
        serve_on_tags(s, asks(s, NET_GET, "/api/tags"));
        made_end(s);
    }
    /* The command line's, listed or not, loaded or not. */
    for (int i = 0; i < 5; i++) {
        serve *s = begin("home");
        s->n_shelf = i == 1 ? 1 : 0;
        s->info = i == 0 ? s->info : NULL;
        made_listed = made_found = i == 3 ? 1 : 0;
        s->shelf[0].ref = i == 1 ? s->home : s->shelf[0].ref;
        if (i == 4) {
            s->home = (model_ref){0};
        }
        serve_on_models(s, asks(s, NET_GET, "/models"));
        made_end(s);
    }
    static const char *const PATHS[] = {"/v1/models/oak",   "/v1/models/ash", "/v1/models/birch",
                                        "/v1/models/cedar", "/v1/models/elm", "/v1/models/yew",
                                        "/v1/models/far",   "/v1/models"};
    for (int i = 0; i < 8; i++) {
        serve *s = begin("each");
        made_listed = made_found = MADE_MODELS;
        s->upstreams = i == 0 ? (upstreams *)(void *)made_some : NULL;
        s->info = i == 1 ? NULL : s->info;
        s->switching = i > 1 ? SWITCH_LOADING : SWITCH_FINISHING;
        s->load_fraction = 0.3456;
        s->wanted = made_ref(i == 2 ? 0 : i == 3 ? 3 : i == 4 ? 2 : 1);
        s->n_shelf = i == 3 || i == 5 ? 0 : 1;
        made_infos[0].has_vision = made_list[1].has_vision = i == 5;
        made_infos[0].has_video = i >= 5;
        made_found = i == 6 ? 1 : made_found; /* it has become shorter */
        s->catalog_read_ms -= i == 6 ? 1000.0 : 999.0;
        made_listed = made_found = i == 7 ? 0 : made_listed;
        for (size_t k = 0; k < ARRAY_LEN(PATHS); k++) {
            conn *c = asks(s, NET_GET, PATHS[k]);
            if (k == 6) {
                snprintf(c->param, sizeof c->param, "far/pine");
            }
            serve_on_models(s, c);
        }
        made_end(s);
    }
}

/* ---- Ollama's ---- */

static void show(serve *s, const char *text)
{
    bytes body = bytes_empty(1000);
    bytes_append_str(&body, text);
    conn *c = asks(s, NET_POST, "/api/show");
    made_say("> %s\n", text);
    serve_on_show(s, c, &body);
    bytes_deinit(&body);
}

static void test_ollama(void)
{
    static const char *const BODIES[] = {"{\"model\":\"oak\"}",
                                         "{\"name\":\"birch\"}",
                                         "{\"model\":\"cedar\",\"name\":\"oak\"}",
                                         "{\"model\":\"elm\"}",
                                         "{\"model\":\"yew\"}",
                                         "{\"model\":7}",
                                         "[]",
                                         "{"};
    for (int i = 0; i < 6; i++) {
        serve *s = begin("Ollama's");
        made_infos[0].template_text = i & 1 ? "{{ \"words\" }}" : NULL;
        made_infos[0].has_thinking = i & 2;
        made_infos[3].has_thinking = i == 0;
        made_infos[3].template_text = "of elm";
        made_infos[0].has_vision = i == 2;
        made_list[1].has_vision = i == 3;
        s->tool_form = i & 1 ? &TOOL_FORM_HERMES : NULL;
        s->info = i == 4 ? NULL : s->info;
        s->catalog_read_ms -= i == 5 ? 1000.0 : 0.0;
        for (size_t k = 0; k < (i ? 4 : ARRAY_LEN(BODIES)); k++) {
            show(s, BODIES[k]);
        }
        serve_on_tags(s, asks(s, NET_GET, "/api/tags"));
        serve_on_tags(s, asks(s, NET_GET, "/api/ps"));
        made_end(s);
    }
    serve *s = begin("without a list");
    s->info = NULL;
    s->catalog = NULL;
    s->phase = SERVE_LOADING;
    s->engine = NULL;
    serve_on_tags(s, asks(s, NET_GET, "/api/ps"));
    show(s, BODIES[0]);
    s->upstreams = (upstreams *)(void *)made_some;
    show(s, "{\"model\":\"far/pine\"}");
    serve_on_tags(s, asks(s, NET_GET, "/api/ps"));
    made_end(s);

    s = begin("without memory");
    one_fails("json_parse", 1);
    serve_on_tags(s, asks(s, NET_GET, "/api/tags"));
    CHECK(one_fails_over());
    for (int n = 1; n <= 2; n++) {
        one_fails("json_parse", n);
        show(s, BODIES[0]);
        CHECK(one_fails_over());
    }
    /* Wherever it lacks there is an answer that says so. */
    conn *c = asks(s, NET_GET, "/api/tags");
    int n = 0;
    made_is_silent = true;
    for (bool has_failed = true; has_failed; n++) {
        one_fails("realloc", n + 1);
        version_reply[0] = '\0';
        serve_on_tags(s, c);
        has_failed = one_fails_over();
        CHECK_INT(strstr(version_reply, "out_of_memory") != NULL, has_failed);
    }
    made_is_silent = false;
    CHECK(n > 3);
    made_end(s);

    s = begin("version");
    serve_on_version(s, asks(s, NET_GET, "/api/version"));
    CHECK_STR(version_reply, "{\"version\":\"" PARLEY_VERSION "\"}");
    made_end(s);
}

/* ---- how long a reply may be ---- */

enum { MOST = 4 << 20 };

/* The bytes of a list of n models; 0 if there is none. */
static size_t ask(serve *s, const char *path, size_t n)
{
    conn *c = asks(s, NET_GET, path);
    made_listed = made_found = n;
    if (c->route->id == ROUTE_MODELS) {
        serve_on_models(s, c);
    } else {
        serve_on_tags(s, c);
    }
    return status == 200 ? n_reply : 0;
}

/* As many models as fit are listed; with one more there is no list. */
static void test_long(void)
{
    static const struct {
        const char *path, *measured;
        size_t model;
    } CASES[] = {
        {"/v1/models", "/v1/models", 1},
        {"/api/tags", "/api/tags", 2}, /* which has failed: longer here than in the list it is made of */
        {"/api/tags", "/v1/models", 1}};
    made_is_silent = true;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(NULL);
        s->info = NULL;
        s->n_shelf = 0;
        s->home = (model_ref){0};
        for (size_t k = 0; k < MADE_MODELS; k++) {
            made_list[k] = made_list[CASES[i].model];
        }
        const size_t each = ask(s, CASES[i].measured, 11) - ask(s, CASES[i].measured, 10);
        const size_t head =
            i == 2 ? 1 : ask(s, CASES[i].measured, 10) - 10 * each; /* of brackets, no comma */
        const size_t most = (MOST - head) / each;
        CHECK(ask(s, CASES[i].path, most) > 0);
        CHECK_INT(ask(s, CASES[i].path, most + 1), 0);
        made_end(s);
    }
    serve *s = begin(NULL);
    bytes text = bytes_empty(MOST + 1);
    bytes_append_char(&text, 'x');
    made_infos[0].template_text = bytes_str(&text);
    show(s, "{\"model\":\"oak\"}");
    const size_t head = n_reply - 1;
    while (text.len < MOST - head) {
        bytes_append_char(&text, 'x');
    }
    made_infos[0].template_text = bytes_str(&text);
    for (int i = 0; i < 2; i++) {
        show(s, "{\"model\":\"oak\"}");
        CHECK_INT(status, i ? 503 : 200);
        bytes_append_char(&text, 'x');
        made_infos[0].template_text = bytes_str(&text);
    }
    bytes_deinit(&text);
    made_end(s);
    made_is_silent = false;
}

/* ---- a hub ---- */

static serve *begin_hub(const char *what)
{
    serve *s = begin(what);
    made_options.hub = (hub_jobs *)(void *)made_some;
    asks(s, NET_GET, "/v1/hub")->is_admin = true;
    return s;
}

static void order(serve *s, const char *what, const char *model)
{
    char path[64];
    bytes body = bytes_empty(2000);
    snprintf(path, sizeof path, "/v1/hub/%s", what);
    if (model) {
        bytes_json(&body, "{\"model\":%s}", model);
    }
    conn *c = asks(s, NET_POST, path);
    made_say("> %s\n", model ? model : "nothing");
    serve_on_hub_order(s, c, &body);
    made_say("  list %d\n", s->catalog != NULL);
    bytes_deinit(&body);
}

/* Who may. */
static void test_managers(void)
{
    for (int i = 0; i < 8; i++) {
        serve *s = begin_hub("managers");
        made_options.hub = i & 1 ? made_options.hub : NULL;
        made_options.admin_key = i & 2 ? "key" : NULL;
        conn *c = id_table_get(&s->conns, 1);
        c->is_admin = i & 4;
        serve_on_hub(s, c);
        order(s, "pull", "org/name:Q4");
        made_end(s);
    }
}

static void test_hub(void)
{
    serve *s = begin_hub("the hub");
    serve_on_hub(s, asks(s, NET_GET, "/v1/hub"));
    s->info = NULL;
    s->n_shelf = 0;
    serve_on_hub(s, asks(s, NET_GET, "/v1/hub"));
    s->catalog = NULL;
    list_error = ERR_CORRUPT;
    serve_on_hub(s, asks(s, NET_GET, "/v1/hub"));
    list_error = ERR_INVALID;
    serve_on_hub(s, asks(s, NET_GET, "/v1/hub"));
    made_end(s);
    s = begin("no hub");
    serve_tick_hub(s);
    made_end(s);
    for (done = HUB_PULL; done <= HUB_INSPECT; done++) {
        for (int i = 0; i < 4; i++) {
            const int action = done;
            s = begin_hub("a job has ended");
            done = action;
            s->catalog = i == 1 ? NULL : s->catalog;
            find_error = i == 2 ? ERR_NOT_FOUND : ERR_OK;
            is_offered = i != 3;
            serve_tick_hub(s);
            made_say("  list %d\n", s->catalog != NULL);
            made_end(s);
        }
    }
    static const char *const ORDERS[] = {"offer", "pull", "remove", "inspect", "cancel", "what"};
    static const err_code CODES[] = {ERR_OK, ERR_BUSY, ERR_LIMIT, ERR_INVALID, ERR_IO};
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        s = begin_hub("orders");
        job_error = CODES[i];
        is_cancelled = i == 0;
        for (size_t k = 0; k < ARRAY_LEN(ORDERS); k++) {
            order(s, ORDERS[k], "org/name:Q4");
        }
        order(s, "pull", i ? "" : NULL);
        made_end(s);
    }
    for (int i = 0; i < 7; i++) {
        s = begin_hub("offers");
        find_error = i == 1 || i == 2 ? ERR_NOT_FOUND : ERR_OK;
        find_text = i == 2 ? "?" : NULL; /* the shortest words */
        is_offered = i != 3;
        s->catalog = i > 3 ? NULL : s->catalog;
        open_error = i == 5 ? ERR_NOMEM : ERR_OK;
        order(s, "offer", i == 6 ? "name" : "org/name:Q4");
        made_end(s);
    }
}

/* What is in memory is not removed: a repository as a whole, or one file of it. */
static void test_in_use(void)
{
    static const char *const PATHS[] = {"/cache/models--org--name/Q4.gguf",
                                        "/cache/models--org--name/Q8.gguf",
                                        "/cache/models--org--name-2/Q4.gguf",
                                        "/cache/models--org--name",
                                        "/cache/models--org",
                                        "/m/ash"};
    static const char *const NAMES[] = {"org/name", "org/name:Q4", "name"};
    for (size_t k = 0; k < ARRAY_LEN(NAMES); k++) {
        for (size_t i = 0; i < 4 * ARRAY_LEN(PATHS); i++) {
            serve *s = begin_hub("in use");
            const int how =
                (int)(i % 4); /* answers, is on the shelf, answers no more, or none of the kind is there */
            model_ref *ref = how == 1 ? &s->shelf[0].ref : &s->current;
            snprintf(ref->path, sizeof ref->path, "%s", PATHS[i / 4]);
            s->info = how == 2 ? NULL : s->info;
            find_error = how == 3 ? ERR_NOT_FOUND : ERR_OK;
            made_say("%s, %d\n", PATHS[i / 4], how);
            order(s, "remove", NAMES[k]);
            made_end(s);
        }
    }
    serve *s = begin_hub("other orders of one that is in use");
    snprintf(s->current.path, sizeof s->current.path, "%s", PATHS[0]);
    order(s, "pull", NAMES[1]);
    made_end(s);
}

int main(void)
{
    made_said = bytes_empty(1 << 24);
    test_names();
    test_list();
    test_ollama();
    test_long();
    test_managers();
    test_hub();
    test_in_use();
    recorded_check("server/service/recorded/models.txt", bytes_str(&made_said));
    bytes_deinit(&made_said);
    CHECK_DONE();
}
