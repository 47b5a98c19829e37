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
