/* warm: prompts that are computed when a model has been loaded (--warm-prompts), so that the prefix
 * cache has them. Loader thread, but for warm_on_event.
 *
 *     warm *w = warm_create();
 *     warm_run(w, &order);       // on_event must pass on events of ids with WARM_ID: warm_on_event(w, event)
 *     warm_destroy(w);
 *
 * A file holds a JSON array, or a value on each line. A value is the body of a chat (an object), its
 * messages (an array) or a raw prompt (a string). A value that is none of these, or that the engine
 * refuses, is named in the log and left out.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_WARM_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_WARM_H

#include <stdatomic.h>

#include "base/json.h"
#include "engine/engine.h"
#include "server/protocol/output/tool_scanner.h"

#define WARM_ID ((uint64_t)1 << 63)

typedef struct warm warm;

MUST_CHECK warm *warm_create(void); /* NULL if out of memory */
void warm_destroy(warm *w);         /* NULL allowed */

typedef struct warm_order {
    const char *file;
    engine *engine;
    const tool_form *form;       /* see api_request; may be NULL */
    const json *template_kwargs; /* see api_request; may be NULL */
    const uint64_t *scopes;      /* each prompt is computed for each of them */
    size_t n_scopes;
    const atomic_bool *stops; /* set: no more is computed */
    void (*progress)(void *ctx, const char *stage, double fraction);
    void *ctx;
} warm_order;

/* Blocks until all is computed, or until *stops. */
void warm_run(warm *w, const warm_order *o);

/* Takes the event. The engine's thread. */
void warm_on_event(warm *w, gen_event *event);

#endif
