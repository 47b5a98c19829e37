#include "server/upstream/upstream_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static bool has_text(const json *list, const char *text)
{
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), text) == 0) {
            return true;
        }
    }
    return false;
}

/* architecture.input_modalities (Parley, OpenRouter), capabilities (llama.cpp's second list). */
static void read_senses(upstream_model_facts *m, const json *v, const json *root)
{
    const json *inputs = json_get(json_get(v, "architecture"), "input_modalities");
    if (json_is(inputs, JSON_ARRAY)) {
        m->sees_images = has_text(inputs, "image") ? UPSTREAM_YES : UPSTREAM_NO;
        m->sees_videos = has_text(inputs, "video") ? UPSTREAM_YES : UPSTREAM_NO;
    }
    for (const json *other = json_child(json_get(root, "models")); other; other = json_next(other)) {
        const json *capabilities = json_get(other, "capabilities");
        if (strcmp(json_str(json_get(other, "name"), ""), m->id) == 0 && json_is(capabilities, JSON_ARRAY)) {
            m->sees_images = has_text(capabilities, "multimodal") ? UPSTREAM_YES : UPSTREAM_NO;
            m->sees_videos = UPSTREAM_NO;
        }
    }
}

static int32_t read_context(const json *v)
{
    const json *meta = json_get(v, "meta");
    const json *const places[] = {json_get(v, "max_model_len"), json_get(meta, "n_ctx"),
                                  json_get(v, "context_length"), json_get(meta, "n_ctx_train")};
    int64_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(places) && n == 0; i++) {
        (void)json_int(places[i], 1, INT32_MAX, &n);
    }
    return (int32_t)n;
}

err_code upstream_models_read(upstream_models *out, const char *text, size_t len, err_detail *d)
{
    json_doc *doc = NULL;
    if (json_parse(&doc, text, len, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        return err_set(d, ERR_CORRUPT, "its list of models is no JSON");
    }
    const json *root = json_root(doc), *list = json_get(root, "data");
    const size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : SIZE_MAX;
    err_code err = n == SIZE_MAX ? err_set(d, ERR_CORRUPT, "it gives no list of models") : ERR_OK;
    out->items = err == ERR_OK
                     ? calloc(n < LIMIT_UPSTREAM_MODELS ? n + 1 : LIMIT_UPSTREAM_MODELS, sizeof *out->items)
                     : NULL;
    if (err == ERR_OK && !out->items) {
        err = err_set(d, ERR_NOMEM, "there is not enough memory");
    }
    for (const json *v = err == ERR_OK ? json_child(list) : NULL; v && out->n < LIMIT_UPSTREAM_MODELS;
         v = json_next(v)) {
        upstream_model_facts *m = &out->items[out->n];
        const char *id = json_str(json_get(v, "id"), "");
        if (!id[0] || strlen(id) >= sizeof m->id - UPSTREAM_PREFIX_MAX) {
            continue;
        }
        *m = (upstream_model_facts){.engine = upstream_engine_of(json_str(json_get(v, "owned_by"), "")),
                                    .n_ctx = read_context(v)};
        snprintf(m->id, sizeof m->id, "%s", id);
        read_senses(m, v, root);
        out->n++;
    }
    json_free(doc);
    return err;
}

void upstream_models_deinit(upstream_models *m)
{
    free(m->items);
    *m = (upstream_models){0};
}

const upstream_model_facts *upstream_models_find(const upstream_models *m, const char *id)
{
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->items[i].id, id) == 0) {
            return &m->items[i];
        }
    }
    return NULL;
}

bool upstream_models_equal(const upstream_models *a, const upstream_models *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        const upstream_model_facts *x = &a->items[i], *y = &b->items[i];
        same = strcmp(x->id, y->id) == 0 && x->engine == y->engine && x->n_ctx == y->n_ctx &&
               x->sees_images == y->sees_images && x->sees_videos == y->sees_videos;
    }
    return same;
}
