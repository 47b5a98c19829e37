/* upstream_models: what a server says of its models, from its GET /v1/models. Plain data; the owner
 * locks.
 *
 *     upstream_models m = {0};
 *     if (upstream_models_read(&m, text, len, &detail) == ERR_OK) { puts(m.items[0].id); }
 *     upstream_models_deinit(&m);
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_MODELS_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/protocol/request_fields.h"
#include "server/upstream/upstream_engine.h"

/* In front of an id: the name of its server and a slash. */
enum { UPSTREAM_PREFIX_MAX = 33 };

typedef struct upstream_model_facts {
    char id[REQUEST_MODEL_NAME_MAX];
    upstream_engine engine;
    int32_t n_ctx; /* 0: not known */
    upstream_answer sees_images, sees_videos;
} upstream_model_facts;

typedef struct upstream_models {
    upstream_model_facts *items;
    size_t n;
} upstream_models;

/* Of the servers that are known here. ERR_CORRUPT: it is no such list; ERR_NOMEM. *out must be empty; models with a
 * name that no request could hold, and those behind LIMIT_UPSTREAM_MODELS, are left out. */
MUST_CHECK err_code upstream_models_read(upstream_models *out, const char *text, size_t len, err_detail *d);
void upstream_models_deinit(upstream_models *m);
/* NULL if there is none. */
const upstream_model_facts *upstream_models_find(const upstream_models *m, const char *id);
/* Whether both say the same. */
bool upstream_models_equal(const upstream_models *a, const upstream_models *b);

#endif
