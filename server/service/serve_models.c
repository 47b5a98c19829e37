/* The models that there are: their names, and /v1/models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

static void write_loaded(bytes *out, const serve *s)
{
    const engine_info *info = s->info;
    write_head(out, s->model_name);
    bytes_printf(out,
                 ",\"max_input_tokens\":%d,\"max_tokens\":%d,\"meta\":{\"n_vocab\":%d,\"n_ctx\":%d,\"n_ctx_"
                 "train\":%d,\"n_embd\":%d,\"n_params\":%llu,"
                 "\"size\":%llu}",
                 info->n_ctx, info->n_ctx, info->n_vocab, info->n_ctx, info->n_ctx_train, info->n_embd,
                 (unsigned long long)info->n_params, (unsigned long long)info->weight_bytes);
    write_architecture(out, info->family, info->has_vision, info->has_video);
    bytes_append_str(out, ",\"status\":{\"value\":\"loaded\"}}");
}

static bool is_loaded(const serve *s, const char *path)
{
    return s->info && strcmp(path, s->current.path) == 0;
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
        write_loaded(out, s);
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
        if (is_loaded(s, ref.path)) {
            write_loaded(&body, s);
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
