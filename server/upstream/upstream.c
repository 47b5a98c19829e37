#include "server/upstream/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "server/upstream/upstream_state.h"

/* ---- life ---- */

static void open_server(upstreams *u, size_t index)
{
    const upstream_server *from = &u->config.servers[index];
    server_state *s = &u->servers[index];
    s->n_replicas = from->n_urls;
    for (size_t i = 0; i < s->n_replicas; i++) {
        replica *r = &s->replicas[i];
        r->url = from->urls[i];
        r->all = u;
        r->server = index;
        r->check_body = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
        snprintf(r->models_url, sizeof r->models_url, "%s/models", r->url);
        snprintf(r->chat_url, sizeof r->chat_url, "%s/chat/completions", r->url);
        snprintf(r->completions_url, sizeof r->completions_url, "%s/completions", r->url);
    }
}

err_code upstreams_create(upstreams **out, const upstream_settings *settings, const upstream_hooks *hooks,
                          err_detail *d)
{
    upstreams *u = calloc(1, sizeof *u);
    *out = NULL;
    if (!u) {
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    u->hooks = *hooks;
    u->last = &u->waiting;
    pthread_mutex_init(&u->lock, NULL);
    if (!clock_init_condition(&u->has_orders)) {
        pthread_mutex_destroy(&u->lock);
        free(u);
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    const err_code err = upstream_config_read(&u->config, settings, d);
    if (err != ERR_OK) {
        upstreams_destroy(u);
        return err;
    }
    for (size_t i = 0; i < u->config.n_servers; i++) {
        open_server(u, i);
    }
    u->client = http_client_create();
    u->affinity = affinity_create();
    u->has_thread = u->client && u->affinity && pthread_create(&u->thread, NULL, upstream_loop, u) == 0;
    if (!u->has_thread) {
        upstreams_destroy(u);
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    *out = u;
    return ERR_OK;
}

/* The thread takes its orders now, whether it rests or polls. */
static void wake(upstreams *u)
{
    pthread_cond_signal(&u->has_orders);
    http_client_wake(u->client);
}

void upstreams_stop(upstreams *u)
{
    if (u && u->has_thread) {
        pthread_mutex_lock(&u->lock);
        u->closing = true;
        pthread_mutex_unlock(&u->lock);
        wake(u);
        pthread_join(u->thread, NULL);
        u->has_thread = false;
    }
}

void upstreams_destroy(upstreams *u)
{
    if (!u) {
        return;
    }
    upstreams_stop(u);
    http_client_destroy(u->client);
    while (u->waiting) {
        upstream_request *next = upstream_request_detach(u->waiting);
        upstream_request_free(u->waiting);
        u->waiting = next;
    }
    for (size_t i = 0; i < u->config.n_servers; i++) {
        for (size_t j = 0; j < u->servers[i].n_replicas; j++) {
            bytes_deinit(&u->servers[i].replicas[j].check_body);
        }
        upstream_models_deinit(&u->servers[i].models);
    }
    affinity_destroy(u->affinity);
    free(u->cancels);
    upstream_config_deinit(&u->config);
    pthread_cond_destroy(&u->has_orders);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* ---- names ---- */

static const char *resolve(const upstreams *u, const char *name)
{
    for (size_t i = 0; i < u->config.n_aliases; i++) {
        if (strcmp(u->config.aliases[i].name, name) == 0) {
            return u->config.aliases[i].model;
        }
    }
    return name;
}

/* The server that a name begins with; *id: what is behind it. */
static bool find_server(const upstreams *u, const char *name, size_t *server, const char **id)
{
    for (size_t i = 0; i < u->config.n_servers; i++) {
        const size_t n = strlen(u->config.servers[i].name);
        if (strncmp(name, u->config.servers[i].name, n) == 0 && name[n] == '/') {
            *server = i;
            *id = name + n + 1;
            return true;
        }
    }
    return false;
}

bool upstreams_is_named(const upstreams *u, const char *name)
{
    size_t server;
    const char *id;
    return u && find_server(u, resolve(u, name), &server, &id);
}

const upstream_rule *upstreams_route(const upstreams *u, const json *body, upstream_case c,
                                     upstream_count_fn *count, void *ctx)
{
    if (!u || u->config.rules.n == 0 || u->config.local_only) {
        return NULL;
    }
    upstream_case_read(&c, body, upstream_rules_count(&u->config.rules) ? count : NULL, ctx);
    return upstream_rules_choose(&u->config.rules, &c);
}

void upstreams_write_rules(const upstreams *u, bytes *out)
{
    const upstream_rules *rules = &u->config.rules;
    for (size_t i = 0; i < rules->n && !u->config.local_only; i++) {
        bytes_json(out, "%-s%s%-s", i ? "," : ",\"routes\":[", rules->items[i].text,
                   i + 1 == rules->n ? "]" : "");
    }
}

bool upstreams_is_local_only(const upstreams *u)
{
    return u && u->config.local_only;
}

static bool sees_images(const upstream_model_facts *m)
{
    return m->sees_images != UPSTREAM_NO;
}

/* As a file or as images. */
static bool sees_videos(const upstreams *u, size_t server, const upstream_model_facts *m)
{
    const upstream_video way = u->config.servers[server].video;
    return way != UPSTREAM_VIDEO_NONE &&
           (sees_images(m) || m->sees_videos == UPSTREAM_YES || way == UPSTREAM_VIDEO_URL);
}

static void fill_model(const upstreams *u, upstream_model *out, size_t server, const upstream_model_facts *m)
{
    *out = (upstream_model){.server = server, .facts = *m};
    snprintf(out->name, sizeof out->name, "%s/%s", u->config.servers[server].name, m->id);
    out->info = (engine_info){.model_name = "",
                              .model_dir = "",
                              .family = "",
                              .compute = "",
                              .cache_type = "",
                              .n_ctx = m->n_ctx,
                              .n_ctx_train = m->n_ctx,
                              .n_vocab = INT32_MAX,
                              .max_images = LIMIT_IMAGES,
                              .has_vision = sees_images(m),
                              .has_video = sees_videos(u, server, m),
                              .has_template = true,
                              .has_thinking = true};
    gen_params_init(&out->info.defaults);
}

/* Why nothing is known of a server. */
static err_code explain(const upstreams *u, size_t server, err_detail *d)
{
    const server_state *s = &u->servers[server];
    const char *why = s->replicas[0].why;
    return err_set_param(d, ERR_UPSTREAM, "model", "upstream_unreachable", "%s cannot be reached%s%s",
                         u->config.servers[server].name, why[0] ? ": " : " yet", why);
}

upstream_search upstreams_find(upstreams *u, const char *name, upstream_model *out, err_code *code,
                               err_detail *d)
{
    size_t server = 0;
    const char *id = "";
    upstream_search found = UPSTREAM_NONE;
    if (!u) {
        return UPSTREAM_NONE;
    }
    const bool is_any = !name[0] || strcmp(name, "default") == 0;
    pthread_mutex_lock(&u->lock);
    if (is_any) { /* the first there is */
        while (server + 1 < u->config.n_servers && u->servers[server].models.n == 0) {
            server++;
        }
    }
    if (is_any || find_server(u, resolve(u, name), &server, &id)) {
        const server_state *s = &u->servers[server];
        const upstream_model_facts *m =
            is_any ? (s->models.n ? &s->models.items[0] : NULL) : upstream_models_find(&s->models, id);
        found = m ? UPSTREAM_FOUND : UPSTREAM_REFUSED;
        if (m) {
            fill_model(u, out, server, m);
        } else if (!s->was_reached) {
            *code = explain(u, server, d);
        } else {
            *code = err_set_param(d, ERR_NOT_FOUND, "model", "model_not_found",
                                  "%s has no such model; see /v1/models", u->config.servers[server].name);
        }
    }
    pthread_mutex_unlock(&u->lock);
    return found;
}

/* ---- requests ---- */

void upstream_request_free(upstream_request *q)
{
    while (q) {
        upstream_request *next = q->next;
        bytes_deinit(&q->body);
        affinity_chain_deinit(&q->chain);
        ledger_give_all(&q->memory);
        free(q);
        q = next;
    }
}

upstream_request *upstream_request_next(const upstream_request *q)
{
    return q->next;
}

void upstream_request_append(upstream_request *q, upstream_request *more)
{
    while (q->next) {
        q = q->next;
    }
    q->next = more;
}

upstream_request *upstream_request_detach(upstream_request *q)
{
    upstream_request *next = q->next;
    q->next = NULL;
    return next;
}

gen_request_info upstream_request_info(const upstream_request *q)
{
    return q->info;
}

const char *upstream_request_server(const upstream_request *q)
{
    return q->all->config.servers[q->server].name;
}

static void count_media(gen_request_info *info, const chat_input *in)
{
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t j = 0; j < in->messages[i].n_parts; j++) {
            info->n_images += in->messages[i].parts[j].kind == CHAT_IMAGE;
            info->n_videos += in->messages[i].parts[j].kind == CHAT_VIDEO;
        }
    }
    info->route = chat_has_media(in) ? GEN_ROUTE_MEDIA : GEN_ROUTE_TEXT;
}

static void begin_chain(upstream_request *q, const api_request *r, const upstream_prompt *prompt)
{
    if (prompt->text) {
        affinity_begin_text(&q->chain, q->server, prompt->text, strlen(prompt->text));
    } else if (prompt->ids) {
        affinity_begin_text(&q->chain, q->server, prompt->ids, prompt->n_ids * sizeof *prompt->ids);
    } else {
        affinity_begin(&q->chain, q->server, r->in);
    }
}

err_code upstreams_prepare(upstreams *u, upstream_request **out, const upstream_model *m,
                           const api_request *r, const upstream_prompt *prompt, const prepare_hooks *progress,
                           err_detail *d)
{
    const upstream_server *server = &u->config.servers[m->server];
    upstream_request *q = calloc(1, sizeof *q);
    *out = NULL;
    if (!q) {
        return err_set(d, ERR_NOMEM, "there is not enough memory");
    }
    q->all = u;
    q->server = m->server;
    q->rule = m->rule;
    q->wire = prompt->text || prompt->ids ? UPSTREAM_COMPLETION : UPSTREAM_CHAT;
    q->body = bytes_empty(LIMIT_BODY_BYTES * 2);
    q->memory.ledger = u->hooks.memory;
    q->info = (gen_request_info){.max_tokens = r->in->params.max_tokens,
                                 .may_think = q->wire == UPSTREAM_CHAT,
                                 .continues = r->in->continues,
                                 .is_remote = true};
    count_media(&q->info, r->in);
    upstream_media media = {.copier = u->hooks.media,
                            .hooks = progress,
                            .memory = &q->memory,
                            .engine = m->facts.engine,
                            .max_pixels = server->max_pixels};
    const upstream_facts facts = {
        .server = server->name, .model = m->facts.id, .engine = m->facts.engine, .media = &media};
    upstream_media_begin(&media, r->in, server->video, m->facts.sees_videos);
    err_code err = upstream_request_write(&q->body, r, prompt, &facts, d);
    const size_t reserved = q->memory.bytes; /* for its media */
    if (err == ERR_OK && q->body.cap > reserved && !ledger_try(&q->memory, q->body.cap - reserved)) {
        err = err_set_param(d, ERR_BUSY, NULL, "memory_busy",
                            "other requests have the memory; try again in a moment");
    }
    if (err != ERR_OK) {
        upstream_request_free(q);
        return err;
    }
    if (u->servers[q->server].n_replicas > 1) {
        begin_chain(q, r, prompt);
    }
    *out = q;
    return ERR_OK;
}

err_code upstreams_submit(upstreams *u, upstream_request *q, uint64_t id, err_detail *d)
{
    err_code err = ERR_OK;
    pthread_mutex_lock(&u->lock);
    if (u->n_open >= LIMIT_UPSTREAM_RUNNING) {
        err = err_set_param(d, ERR_BUSY, NULL, "upstream_busy",
                            "there are %d answers of other servers already", LIMIT_UPSTREAM_RUNNING);
    } else {
        q->id = id;
        q->next = NULL;
        *u->last = q;
        u->last = &q->next;
        u->n_open++;
    }
    pthread_mutex_unlock(&u->lock);
    if (err == ERR_OK) {
        wake(u);
    }
    return err;
}

void upstreams_cancel(upstreams *u, uint64_t id)
{
    if (!u) {
        return;
    }
    pthread_mutex_lock(&u->lock);
    if (u->n_open > 0 &&
        memory_grow(&u->cancels, &u->cap_cancels, u->n_cancels + 1, 16, sizeof *u->cancels)) {
        u->cancels[u->n_cancels++] = id;
    }
    pthread_mutex_unlock(&u->lock);
    wake(u);
}

size_t upstreams_count_running(upstreams *u)
{
    if (!u) {
        return 0;
    }
    pthread_mutex_lock(&u->lock);
    const size_t n = u->n_open;
    pthread_mutex_unlock(&u->lock);
    return n;
}

/* ---- lists ---- */

static bool is_up(const server_state *s)
{
    bool up = false;
    for (size_t i = 0; i < s->n_replicas; i++) {
        up = up || s->replicas[i].state == REPLICA_UP;
    }
    return up;
}

/* name: an alias, or NULL for NAME/ID. */
static void write_entry(const upstreams *u, bytes *out, size_t server, const upstream_model_facts *m,
                        const char *name, int64_t created)
{
    const char *owner = u->config.servers[server].name;
    char date[CLOCK_DATE_MAX];
    char full[REQUEST_MODEL_MAX];
    snprintf(full, sizeof full, "%s/%s", owner, m->id);
    const char *shown = name ? name : full;
    clock_date(date, created);
    bytes_json(out,
               "{\"id\":%s,\"object\":\"model\",\"created\":%lld,\"owned_by\":%s,\"type\":\"model\","
               "\"display_name\":%s,\"created_at\":%s",
               shown, (long long)created, owner, shown, date);
    if (name) {
        bytes_json(out, ",\"root\":%s", full);
    }
    if (m->n_ctx > 0) {
        bytes_printf(out, ",\"meta\":{\"n_ctx\":%d,\"n_ctx_train\":%d}", m->n_ctx, m->n_ctx);
    }
    bytes_json(out,
               ",\"architecture\":{\"family\":%s,\"input_modalities\":[\"text\"%-s%-s],\"output_modalities\":"
               "[\"text\"]},\"upstream\":%s,\"status\":{\"value\":\"%-s\"}}",
               upstream_engine_name(m->engine), sees_images(m) ? ",\"image\"" : "",
               sees_videos(u, server, m) ? ",\"video\"" : "", owner,
               is_up(&u->servers[server]) ? "loaded" : "failed");
}

size_t upstreams_write_models(upstreams *u, bytes *out, bool is_first, int64_t created)
{
    size_t n = 0;
    pthread_mutex_lock(&u->lock);
    for (size_t i = 0; i < u->config.n_servers; i++) {
        const upstream_models *models = &u->servers[i].models;
        for (size_t j = 0; j < models->n; j++) {
            bytes_append_str(out, is_first && n == 0 ? "" : ",");
            write_entry(u, out, i, &models->items[j], NULL, created);
            n++;
        }
    }
    for (size_t i = 0; i < u->config.n_aliases; i++) {
        size_t server;
        const char *id;
        const upstream_model_facts *m = find_server(u, u->config.aliases[i].model, &server, &id)
                                            ? upstream_models_find(&u->servers[server].models, id)
                                            : NULL;
        if (m) { /* which was written already, by its own name */
            bytes_append_char(out, ',');
            write_entry(u, out, server, m, u->config.aliases[i].name, created);
            n++;
        }
    }
    pthread_mutex_unlock(&u->lock);
    return n;
}

bool upstreams_write_model(upstreams *u, bytes *out, const char *name, int64_t created)
{
    size_t server;
    const char *id;
    bool found = false;
    pthread_mutex_lock(&u->lock);
    const char *full = resolve(u, name);
    if (find_server(u, full, &server, &id)) {
        const upstream_model_facts *m = upstream_models_find(&u->servers[server].models, id);
        found = m != NULL;
        if (m) {
            write_entry(u, out, server, m, full == name ? NULL : name, created);
        }
    }
    pthread_mutex_unlock(&u->lock);
    return found;
}

void upstreams_write_status(upstreams *u, bytes *out)
{
    static const char *const STATES[] = {"unknown", "up", "down"};
    pthread_mutex_lock(&u->lock);
    for (size_t i = 0; i < u->config.n_servers; i++) {
        const server_state *s = &u->servers[i];
        bytes_json(out, "%-s{\"name\":%s,\"models\":%zu,\"replicas\":[", i ? "," : "[",
                   u->config.servers[i].name, s->models.n);
        for (size_t j = 0; j < s->n_replicas; j++) {
            const replica *r = &s->replicas[j];
            bytes_json(out, "%-s{\"url\":%s,\"state\":%s,\"running\":%d,\"sent\":%llu,\"failed\":%llu",
                       j ? "," : "", r->url, STATES[r->state], r->n_running, (unsigned long long)r->n_sent,
                       (unsigned long long)r->n_failed);
            if (r->state == REPLICA_DOWN) {
                bytes_json(out, ",\"error\":%s", r->why);
            }
            bytes_append_char(out, '}');
        }
        bytes_append_str(out, "]}");
    }
    bytes_append_str(out, u->config.n_servers ? "]" : "[]");
    pthread_mutex_unlock(&u->lock);
}

void upstreams_write_metrics(upstreams *u, bytes *out)
{
    static const struct {
        const char *name, *type, *help;
    } ROWS[] = {{"up", "gauge", "Whether a replica of another server answers."},
                {"running", "gauge", "Answers that a replica is giving."},
                {"requests_total", "counter", "Requests sent to a replica."},
                {"ruled_total", "counter", "Requests sent to a replica by a rule (--route)."},
                {"followed_total", "counter", "Requests sent where their conversation was seen before."},
                {"failed_total", "counter", "Requests that a replica has failed."}};
    pthread_mutex_lock(&u->lock);
    for (size_t row = 0; row < ARRAY_LEN(ROWS); row++) {
        bytes_printf(out, "# HELP parley_upstream_%s %s\n# TYPE parley_upstream_%s %s\n", ROWS[row].name,
                     ROWS[row].help, ROWS[row].name, ROWS[row].type);
        for (size_t i = 0; i < u->config.n_servers; i++) {
            for (size_t j = 0; j < u->servers[i].n_replicas; j++) {
                const replica *r = &u->servers[i].replicas[j];
                const unsigned long long values[] = {r->state == REPLICA_UP,
                                                     (unsigned long long)r->n_running,
                                                     r->n_sent,
                                                     r->n_ruled,
                                                     r->n_followed,
                                                     r->n_failed};
                bytes_json(out, "parley_upstream_%-s{upstream=%s,replica=%s} %llu\n", ROWS[row].name,
                           u->config.servers[i].name, r->url, values[row]);
            }
        }
    }
    pthread_mutex_unlock(&u->lock);
}
