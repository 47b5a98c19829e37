/* The models that there are: their names, /v1/models, and those in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/service/serve_state.h"

enum { REFRESH_MS = 1000 };

/* ---- names ---- */

/* The list as the disk is now, or was a moment ago. */
static void refresh(serve *s)
{
    if (s->catalog && clock_ms() - s->catalog_read_ms >= REFRESH_MS) {
        catalog_refresh(s->catalog);
        s->catalog_read_ms = clock_ms();
    }
}

const catalog_model *serve_catalog_entry(const serve *s, const char *path)
{
    for (size_t i = 0; s->catalog && i < catalog_count(s->catalog); i++) {
        const catalog_model *m = catalog_at(s->catalog, i);
        if (strcmp(m->path, path) == 0) {
            return m;
        }
    }
    return NULL;
}

const char *serve_name_of(const serve *s, const char *path)
{
    const catalog_model *m = serve_catalog_entry(s, path);
    return m ? m->name : NULL;
}

/* The name that clients see: --alias for the model that the command line chose. */
static const char *shown_name(const serve *s, const catalog_model *m)
{
    return strcmp(m->path, s->home.path) == 0 ? s->home.name : m->name;
}

bool serve_find_model(serve *s, const char *name, model_ref *out)
{
    if (s->home.name[0] && strcmp(name, s->home.name) == 0) {
        *out = s->home;
        return true;
    }
    const catalog_model *m = s->catalog ? catalog_find(s->catalog, name) : NULL;
    if (s->catalog && !m) {
        refresh(s);
        m = catalog_find(s->catalog, name);
    }
    if (m) {
        snprintf(out->name, sizeof out->name, "%s", shown_name(s, m));
        snprintf(out->path, sizeof out->path, "%s", m->path);
    }
    return m != NULL;
}

/* ---- the list ---- */

/* For clients of both forms of this list. */
static void write_head(bytes *out, const char *name)
{
    char created[CLOCK_DATE_MAX];
    clock_date(created, serve_started_at());
    bytes_json(out,
               "{\"id\":%s,\"object\":\"model\",\"created\":%lld,\"owned_by\":\"parley\",\"type\":\"model\","
               "\"display_name\":%s,\"created_at\":%s",
               name, (long long)serve_started_at(), name, created);
}

static void write_architecture(bytes *out, const char *family, bool has_vision, bool has_video)
{
    bytes_json(out,
               ",\"architecture\":{\"family\":%s,\"input_modalities\":[\"text\"%-s%-s],"
               "\"output_modalities\":[\"text\"]}",
               family, has_vision ? ",\"image\"" : "", has_video ? ",\"video\"" : "");
}

/* is_current: it answers now; others wait in memory. */
static void write_loaded(bytes *out, const engine_info *info, const char *name, bool is_current)
{
    write_head(out, name);
    bytes_printf(out,
                 ",\"max_input_tokens\":%d,\"max_tokens\":%d,\"meta\":{\"n_vocab\":%d,\"n_ctx\":%d,\"n_ctx_"
                 "train\":%d,\"n_embd\":%d,\"n_params\":%llu,"
                 "\"size\":%llu}",
                 info->n_ctx, info->n_ctx, info->n_vocab, info->n_ctx, info->n_ctx_train, info->n_embd,
                 (unsigned long long)info->n_params, (unsigned long long)info->weight_bytes);
    write_architecture(out, info->family, info->has_vision, info->has_video);
    bytes_json(out, ",\"status\":{\"value\":\"loaded\",\"current\":%hhd}}", is_current);
}

static bool is_current(const serve *s, const char *path)
{
    return s->info && strcmp(path, s->current.path) == 0;
}

static bool is_loaded(const serve *s, const char *path)
{
    return is_current(s, path) || serve_find_resident(s, path);
}

/* Of a model that is not loaded: what is known from its headers. m NULL: the command line's, which
 * is in no list. */
static void write_other(bytes *out, const serve *s, const char *name, const char *path,
                        const catalog_model *m)
{
    const bool is_loading = s->switching == SWITCH_LOADING && strcmp(path, s->wanted.path) == 0;
    const bool is_wrong = m && m->error;
    write_head(out, name);
    if (m && !is_wrong) {
        bytes_printf(out, ",\"meta\":{\"n_ctx_train\":%d,\"size\":%llu}", m->context,
                     (unsigned long long)m->n_bytes);
        write_architecture(out, m->family, m->has_vision, m->has_vision);
    }
    bytes_printf(out, ",\"status\":{\"value\":\"%s\"",
                 is_wrong     ? "failed"
                 : is_loading ? "loading"
                              : "unloaded");
    if (is_wrong) {
        bytes_json(out, ",\"error\":%s", m->reason);
    } else if (is_loading) {
        bytes_printf(out, ",\"progress\":%.3f", s->load_fraction);
    }
    bytes_append_str(out, "}}");
}

static void write_list(bytes *out, const serve *s)
{
    int n = 0;
    if (s->info) {
        n++;
        write_loaded(out, s->info, s->model_name, true);
    }
    for (size_t i = 0; i < s->n_shelf; i++) {
        bytes_append_str(out, n++ ? "," : "");
        write_loaded(out, engine_get_info(s->shelf[i].engine), s->shelf[i].ref.name, false);
    }
    if (s->home.name[0] && !is_loaded(s, s->home.path) && !serve_catalog_entry(s, s->home.path)) {
        bytes_append_str(out, n++ ? "," : "");
        write_other(out, s, s->home.name, s->home.path, NULL);
    }
    for (size_t i = 0; s->catalog && i < catalog_count(s->catalog); i++) {
        const catalog_model *m = catalog_at(s->catalog, i);
        if (!is_loaded(s, m->path)) {
            bytes_append_str(out, n++ ? "," : "");
            write_other(out, s, shown_name(s, m), m->path, m);
        }
    }
    if (s->upstreams) {
        upstreams_write_models(s->upstreams, out, n == 0, serve_started_at());
    }
}

void serve_on_models(serve *s, conn *c)
{
    api_error e;
    bytes body;
    model_ref ref;
    if (!s->info && !s->catalog && !s->upstreams) {
        serve_is_ready(s, &e);
        serve_send_error(s, c, &e);
        return;
    }
    refresh(s);
    bytes_init(&body, 4 << 20);
    if (c->route->id == ROUTE_MODELS) {
        bytes_append_str(&body, "{\"object\":\"list\",\"data\":[");
        write_list(&body, s);
        bytes_append_str(&body, "],\"has_more\":false,\"first_id\":null,\"last_id\":null}");
        serve_send_json(s, c, 200, &body, NULL);
    } else if (s->upstreams && upstreams_write_model(s->upstreams, &body, c->param, serve_started_at())) {
        serve_send_json(s, c, 200, &body, NULL);
    } else if (serve_find_model(s, c->param, &ref)) {
        const resident *r = serve_find_resident(s, ref.path);
        if (is_current(s, ref.path)) {
            write_loaded(&body, s->info, s->model_name, true);
        } else if (r) {
            write_loaded(&body, engine_get_info(r->engine), r->ref.name, false);
        } else {
            write_other(&body, s, ref.name, ref.path, serve_catalog_entry(s, ref.path));
        }
        serve_send_json(s, c, 200, &body, NULL);
    } else {
        serve_send_fault(s, c, 404, "model_not_found", "model", "there is no such model; see /v1/models");
    }
    bytes_deinit(&body);
}

/* ---- the same for Ollama's clients ---- */

/* The list of /v1/models as a document; NULL if there is none now: then an error is sent. */
static json_doc *list_document(serve *s, conn *c)
{
    json_doc *doc = NULL;
    api_error e;
    bytes list = bytes_empty(4 << 20);
    if (!s->info && !s->catalog && !s->upstreams) {
        serve_is_ready(s, &e);
        serve_send_error(s, c, &e);
        return NULL;
    }
    refresh(s);
    bytes_append_char(&list, '[');
    write_list(&list, s);
    bytes_append_char(&list, ']');
    const err_code err =
        list.failed ? ERR_NOMEM : json_parse(&doc, bytes_str(&list), list.len, LIMIT_JSON_DEPTH, NULL);
    bytes_deinit(&list);
    if (err != ERR_OK) {
        api_error_from(&e, ERR_NOMEM, NULL);
        serve_send_error(s, c, &e);
    }
    return doc;
}

static void write_details(bytes *out, const json *m)
{
    const char *family = json_str(json_get(json_get(m, "architecture"), "family"), "");
    bytes_json(
        out,
        "\"details\":{\"parent_model\":\"\",\"format\":\"safetensors\",\"family\":%s,\"families\":[%s],"
        "\"parameter_size\":\"\",\"quantization_level\":\"\"}",
        family, family);
}

/* Of /api/ps those alone that are loaded. */
void serve_on_tags(serve *s, conn *c)
{
    const bool loaded_only = strcmp(c->route->pattern, "/api/ps") == 0;
    json_doc *doc = list_document(s, c);
    const char *comma = "";
    bytes body;
    if (!doc) {
        return;
    }
    bytes_init(&body, 4 << 20);
    bytes_append_str(&body, "{\"models\":[");
    for (const json *m = json_child(json_root(doc)); m; m = json_next(m)) {
        const char *id = json_str(json_get(m, "id"), "");
        if (loaded_only && strcmp(json_str(json_get(json_get(m, "status"), "value"), ""), "loaded") != 0) {
            continue;
        }
        bytes_json(&body,
                   "%-s{\"name\":%s,\"model\":%s,\"modified_at\":%s,\"size\":%.0f,\"size_vram\":0,"
                   "\"digest\":\"\",",
                   comma, id, id, json_str(json_get(m, "created_at"), ""),
                   json_num(json_get(json_get(m, "meta"), "size"), 0.0));
        write_details(&body, m);
        bytes_append_char(&body, '}');
        comma = ",";
    }
    bytes_append_str(&body, "]}");
    json_free(doc);
    serve_send_body(s, c, &body);
}

static void write_shown(bytes *out, const serve *s, const json *m)
{
    const json *meta = json_get(m, "meta"), *architecture = json_get(m, "architecture");
    const char *family = json_str(json_get(architecture, "family"), "");
    const bool is_here = s->info && strcmp(json_str(json_get(m, "id"), ""), s->model_name) == 0;
    bool sees = false;
    for (const json *v = json_child(json_get(architecture, "input_modalities")); v; v = json_next(v)) {
        sees = sees || strcmp(json_str(v, ""), "image") == 0;
    }
    bytes_json(out, "{\"modified_at\":%s,\"template\":%s,", json_str(json_get(m, "created_at"), ""),
               is_here && s->info->template_text ? s->info->template_text : "");
    write_details(out, m);
    bytes_json(out,
               ",\"model_info\":{\"general.architecture\":%s,\"general.parameter_count\":%.0f,"
               "\"%-s.context_length\":%.0f,\"%-s.embedding_length\":%.0f}",
               family, json_num(json_get(meta, "n_params"), 0.0), family,
               json_num(json_get(meta, "n_ctx"), json_num(json_get(meta, "n_ctx_train"), 0.0)), family,
               json_num(json_get(meta, "n_embd"), 0.0));
    bytes_json(out, ",\"capabilities\":[\"completion\"%-s%-s%-s]}", sees ? ",\"vision\"" : "",
               !is_here || s->tool_form ? ",\"tools\"" : "",
               is_here && s->info->has_thinking ? ",\"thinking\"" : "");
}

void serve_on_show(serve *s, conn *c, const bytes *body)
{
    json_doc *asked = NULL, *doc = NULL;
    err_detail d = {0};
    api_error e;
    const err_code err = json_parse(&asked, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d);
    const json *root = asked ? json_root(asked) : NULL;
    const char *name = json_str(json_get(root, "model"), json_str(json_get(root, "name"), NULL));
    if (err != ERR_OK) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    } else if (!name) {
        serve_send_fault(s, c, 400, "missing_field", "model", "model must be the name of a model");
    } else {
        doc = list_document(s, c);
    }
    const json *m = doc ? json_child(json_root(doc)) : NULL;
    while (m && strcmp(json_str(json_get(m, "id"), ""), name) != 0) {
        m = json_next(m);
    }
    if (m) {
        bytes reply;
        bytes_init(&reply, 4 << 20);
        write_shown(&reply, s, m);
        serve_send_body(s, c, &reply);
    } else if (doc) {
        serve_send_fault(s, c, 404, "model_not_found", "model", "there is no such model; see /api/tags");
    }
    json_free(doc);
    json_free(asked);
}

void serve_on_version(serve *s, conn *c)
{
    bytes body;
    bytes_init(&body, 256);
    bytes_json(&body, "{\"version\":%s}", PARLEY_VERSION);
    serve_send_body(s, c, &body);
}

/* ---- models of a hub ----
 *
 * What lies in the cache is read here; what connects or writes is a job of another process (hub_jobs.h). A model of the hub
 * is like those of --models-dir once somebody who may has fetched or offered it. */

static bool may_manage(serve *s, conn *c)
{
    if (!s->opt->hub) {
        serve_send_fault(s, c, 404, "hub_not_offered", NULL, "this server offers no models of a hub (--hub)");
        return false;
    }
    if (!c->is_admin && s->opt->admin_key) {
        serve_send_fault(s, c, 403, "admin_key_needed", NULL,
                         "models are managed with the admin's key: Authorization: Bearer KEY (--admin-key)");
    } else if (!c->is_admin) {
        serve_send_fault(s, c, 403, "not_at_this_machine", NULL,
                         "models are managed in a browser on the server's own machine, by "
                         "http://localhost, or with an admin's key (--admin-key)");
    }
    return c->is_admin;
}

static err_code offer(serve *s, const char *model, err_detail *d)
{
    hub_name name;
    hub_found found;
    if (!hub_name_parse(&name, model)) {
        return err_set(d, ERR_INVALID, "\"%.200s\" is not the name of a model", model);
    }
    err_code err = hub_cache_find(&found, hub_jobs_place(s->opt->hub)->cache, &name, d);
    if (err) {
        return d->text[0] ? err : err_set(d, err, "there is no %.200s on this machine", model);
    }
    err = s->catalog ? ERR_OK : catalog_open(&s->catalog, NULL, d);
    if (!err && !catalog_offer(s->catalog, model, found.path)) {
        err = err_set(d, ERR_LIMIT, "%.200s cannot be offered: its name is too long, or memory is short",
                      model);
    }
    return err;
}

static void on_hub_done(void *ctx, hub_action action, const char *model)
{
    serve *s = ctx;
    err_detail d = {0};
    if (action == HUB_PULL && offer(s, model, &d) != ERR_OK) {
        log_warn("hub", "%s was fetched, but cannot be offered: %s", model, d.text);
    } else if (action == HUB_REMOVE && s->catalog) {
        catalog_withdraw(s->catalog, model);
        catalog_refresh(s->catalog);
    }
    log_info("hub", "%s: %s", model,
             action == HUB_PULL     ? "fetched"
             : action == HUB_REMOVE ? "removed"
                                    : "inspected");
}

void serve_tick_hub(serve *s)
{
    if (s->opt->hub) {
        hub_jobs_look(s->opt->hub, on_hub_done, s);
    }
}

void serve_on_hub(serve *s, conn *c)
{
    hub_kept *all;
    size_t n;
    err_detail d = {0};
    api_error e;
    if (!may_manage(s, c)) {
        return;
    }
    serve_tick_hub(s);
    const hub_place *place = hub_jobs_place(s->opt->hub);
    const err_code err = hub_cache_list(&all, &n, place->cache, &d);
    if (err) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
        return;
    }
    bytes body = bytes_empty(16 << 20);
    bytes_json(&body, "{\"endpoint\":%s,\"cache\":%s,\"models\":[", place->endpoint, place->cache);
    for (size_t i = 0; i < n; i++) {
        bytes_json(&body,
                   "%-s{\"name\":%s,\"bytes\":%lld,\"complete\":%hhd,\"offered\":%hhd,\"loaded\":%hhd}",
                   i ? "," : "", all[i].name, (long long)all[i].n_bytes, all[i].is_whole,
                   serve_name_of(s, all[i].path) != NULL, is_loaded(s, all[i].path));
    }
    bytes_append_str(&body, "],\"jobs\":");
    hub_jobs_write(s->opt->hub, &body);
    bytes_append_char(&body, '}');
    free(all);
    serve_send_body(s, c, &body);
}

/* Whether a model in memory has files of this repository, or of this one quantization. */
static bool is_in_use(const serve *s, const char *model)
{
    char dir[HUB_FULL_PATH_MAX];
    hub_name name;
    hub_found found;
    const char *cache = hub_jobs_place(s->opt->hub)->cache;
    if (!hub_name_parse(&name, model)) {
        return false;
    }
    hub_cache_repo(dir, cache, name.repo);
    const bool is_one = name.quant[0] && hub_cache_find(&found, cache, &name, NULL) == ERR_OK;
    const size_t n_dir = strlen(dir);
    for (size_t i = 0; i <= s->n_shelf; i++) {
        const char *path = i < s->n_shelf ? s->shelf[i].ref.path : s->info ? s->current.path : "";
        const bool is_of = strncmp(path, dir, n_dir) == 0 && path[n_dir] == '/';
        if (is_one ? strcmp(path, found.path) == 0 : is_of) {
            return true;
        }
    }
    return false;
}

void serve_on_hub_order(serve *s, conn *c, const bytes *body)
{
    char model[REQUEST_MODEL_MAX];
    err_detail d = {0};
    api_error e;
    err_code err = ERR_OK;
    serve_read_model(model, body);
    if (!model[0]) {
        serve_send_fault(s, c, 400, "missing_field", "model", "model is missing: ORG/NAME[:QUANT|@REVISION]");
        return;
    }
    if (!may_manage(s, c)) {
        return;
    }
    serve_tick_hub(s);
    if (strcmp(c->param, "remove") == 0 && is_in_use(s, model)) {
        serve_send_fault(s, c, 409, "model_in_use", "model",
                         "the model is in memory: use another one, or unload it first");
        return;
    }
    if (strcmp(c->param, "cancel") == 0) {
        if (!hub_jobs_cancel(s->opt->hub, model)) {
            serve_send_fault(s, c, 404, "job_not_found", "model", "nothing is being done with this model");
            return;
        }
    } else if (strcmp(c->param, "offer") == 0) {
        err = offer(s, model, &d);
    } else if (strcmp(c->param, "pull") == 0) {
        err = hub_jobs_start(s->opt->hub, HUB_PULL, model, &d);
    } else if (strcmp(c->param, "remove") == 0) {
        err = hub_jobs_start(s->opt->hub, HUB_REMOVE, model, &d);
    } else if (strcmp(c->param, "inspect") == 0) {
        err = hub_jobs_start(s->opt->hub, HUB_INSPECT, model, &d);
    } else {
        serve_send_fault(s, c, 404, "not_found", NULL, "there is nothing at this path");
        return;
    }
    if (err == ERR_BUSY || err == ERR_LIMIT) {
        serve_send_fault(s, c, err == ERR_BUSY ? 409 : 429, err == ERR_BUSY ? "job_runs" : "too_many_jobs",
                         "model", d.text);
        return;
    }
    if (err) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
        return;
    }
    bytes reply = bytes_empty(4096);
    bytes_json(&reply, "{\"success\":true,\"model\":%s}", model);
    serve_send_body(s, c, &reply);
}

/* ---- residents ----
 *
 * Models that stay in memory beside the one that answers (--models-max): a shelf of idle engines, those that were used longest
 * ago first. Who is on it has no answer and no job, so that it can be closed at any time; the loader thread does that, as giving
 * back the memory of a large model takes a while. What is lent to the loader is not on the shelf meanwhile. */

static size_t bytes_of(const engine *e)
{
    const engine_info *info = engine_get_info(e);
    return (size_t)(info->weight_bytes + info->state_bytes);
}

bool serve_is_pinned(const serve *s, const model_ref *ref)
{
    for (size_t i = 0; i < s->opt->n_pinned; i++) {
        if (strcmp(s->opt->pinned[i], ref->name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the shelf ---- */

void serve_shelve(serve *s, engine *e, const model_ref *ref, double used_ms)
{
    size_t at = s->n_shelf;
    while (at > 0 && s->shelf[at - 1].used_ms > used_ms) {
        s->shelf[at] = s->shelf[at - 1];
        at--;
    }
    s->shelf[at] = (resident){.engine = e, .ref = *ref, .used_ms = used_ms, .n_bytes = bytes_of(e)};
    s->n_shelf++;
}

const resident *serve_find_resident(const serve *s, const char *path)
{
    for (size_t i = 0; i < s->n_shelf; i++) {
        if (strcmp(s->shelf[i].ref.path, path) == 0) {
            return &s->shelf[i];
        }
    }
    return NULL;
}

static resident remove_at(serve *s, size_t at)
{
    const resident r = s->shelf[at];
    s->n_shelf--;
    memmove(&s->shelf[at], &s->shelf[at + 1], (s->n_shelf - at) * sizeof *s->shelf);
    return r;
}

engine *serve_take_resident(serve *s, const char *path)
{
    const resident *r = serve_find_resident(s, path);
    return r ? remove_at(s, (size_t)(r - s->shelf)).engine : NULL;
}

void serve_close_residents(serve *s)
{
    for (load_job *job = &s->load; job->n_closed < job->n_lent; job->n_closed++) {
        engine_close(job->lent[job->n_closed].engine);
    }
    while (s->n_shelf > 0) {
        engine_close(remove_at(s, 0).engine);
    }
}

/* ---- room for another model ---- */

bool serve_has_model_room(const serve *s)
{
    int n_pinned = s->engine && serve_is_pinned(s, &s->current);
    for (size_t i = 0; i < s->n_shelf; i++) {
        n_pinned += serve_is_pinned(s, &s->shelf[i].ref);
    }
    return n_pinned < s->opt->models_max;
}

void serve_lend_residents(serve *s)
{
    load_job *job = &s->load;
    job->n_must =
        s->n_shelf + 1 > (size_t)s->opt->models_max ? s->n_shelf + 1 - (size_t)s->opt->models_max : 0;
    for (size_t i = 0; i < s->n_shelf;) {
        if (serve_is_pinned(s, &s->shelf[i].ref)) {
            job->kept_bytes += s->shelf[i++].n_bytes;
        } else {
            job->lent[job->n_lent++] = remove_at(s, i);
        }
    }
    job->memory_bytes = s->memory_bytes;
}

void serve_take_back(serve *s)
{
    load_job *job = &s->load;
    for (size_t i = job->n_closed; i < job->n_lent; i++) {
        serve_shelve(s, job->lent[i].engine, &job->lent[i].ref, job->lent[i].used_ms);
    }
    job->n_lent = job->n_closed = 0;
}

/* The loader thread. */
static void close_next(load_job *job)
{
    log_info("load", "%s leaves memory", job->lent[job->n_closed].ref.name);
    engine_close(job->lent[job->n_closed++].engine);
}

/* Leaves *o with what the other residents leave of the memory; false if that is nothing. */
static bool share_memory(const load_job *job, engine_options *o, err_detail *d)
{
    size_t taken = job->kept_bytes;
    for (size_t i = job->n_closed; i < job->n_lent; i++) {
        taken += job->lent[i].n_bytes;
    }
    *o = job->wanted;
    if (taken == 0) {
        return true;
    }
    const size_t left = job->memory_bytes > taken ? job->memory_bytes - taken : 0;
    o->mem_limit_mib = (int64_t)(left >> 20);
    if (o->mem_limit_mib == 0 || (o->layer_bits == 0 && job->wanted_bytes > left)) {
        err_set(d, ERR_NOMEM, "there is not enough memory beside the models that stay loaded");
        return false;
    }
    return true;
}

err_code serve_open_beside(load_job *job, engine **out, err_detail *d)
{
    engine_options o;
    while (job->n_closed < job->n_must && job->n_closed < job->n_lent) {
        close_next(job);
    }
    for (;;) {
        const err_code err = share_memory(job, &o, d) ? engine_open(out, &o, d) : ERR_NOMEM;
        if (err != ERR_NOMEM || job->n_closed == job->n_lent) {
            return err;
        }
        close_next(job); /* the next one that was used longest ago makes room */
    }
}

void serve_close_lent(load_job *job)
{
    while (job->n_closed < job->n_lent) {
        close_next(job);
    }
}

/* ---- leaving ---- */

/* What requests may reserve grows by what has left, up to what the model that answers was loaded with. */
static void give_memory(serve *s)
{
    size_t freed = 0;
    for (size_t i = 0; i < s->load.n_closed; i++) {
        freed += s->load.lent[i].n_bytes;
    }
    if (s->info && s->info->request_bytes > LIMIT_PROCESS_MEMORY) {
        const size_t most = (size_t)s->info->request_bytes - LIMIT_PROCESS_MEMORY;
        const size_t limit = ledger_get_status(s->memory).limit + freed;
        ledger_set_limit(s->memory, limit < most ? limit : most);
    }
}

void serve_on_unloaded(serve *s)
{
    give_memory(s);
    s->load.n_lent = s->load.n_closed = 0;
    serve_status_changed(s);
}

void serve_tick_residents(serve *s, double now)
{
    const double after_ms = s->opt->idle_unload_s * 1000.0;
    if (after_ms <= 0.0 || s->loader_started || s->switching != SWITCH_NONE) {
        return;
    }
    s->load = (load_job){.only_closes = true};
    for (size_t i = 0; i < s->n_shelf;) {
        if (now - s->shelf[i].used_ms > after_ms && !serve_is_pinned(s, &s->shelf[i].ref)) {
            s->load.lent[s->load.n_lent++] = remove_at(s, i);
        } else {
            i++;
        }
    }
    if (s->load.n_lent > 0 && !serve_start_loader(s)) {
        serve_take_back(s);
    }
}

bool serve_unload(serve *s, const model_ref *ref, api_error *e)
{
    const resident *r = serve_find_resident(s, ref->path);
    if (s->engine && strcmp(ref->path, s->current.path) == 0) {
        api_error_set(e, 409, "model_in_use", "model", "%s is the model that answers; load another one first",
                      ref->name);
    } else if (s->loader_started) {
        api_error_set(e, 503, "model_loading", "model",
                      "models are being loaded or closed; try again in a moment");
    } else if (!r) {
        api_error_set(e, 409, "model_not_loaded", "model", "%s is not loaded", ref->name);
    } else {
        s->load = (load_job){.only_closes = true, .n_lent = 1};
        s->load.lent[0] = remove_at(s, (size_t)(r - s->shelf));
        if (serve_start_loader(s)) {
            return true;
        }
        serve_take_back(s);
        api_error_from(e, ERR_NOMEM, NULL);
    }
    return false;
}

void serve_write_residents(const serve *s, bytes *out)
{
    const double now = clock_ms();
    for (size_t i = 0; i < s->n_shelf; i++) {
        const resident *r = &s->shelf[i];
        bytes_json(out, "%-s{\"id\":%s,\"bytes\":%zu,\"idle_s\":%d,\"pinned\":%hhd}", i ? "," : "",
                   r->ref.name, r->n_bytes, (int)((now - r->used_ms) / 1000.0), serve_is_pinned(s, &r->ref));
    }
}
