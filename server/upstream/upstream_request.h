/* upstream_request: a parsed request as the body that another server takes. Prep threads.
 *
 *     bytes body = bytes_empty(LIMIT_BODY_BYTES * 2);
 *     const upstream_prompt prompt = {0};                               // a chat
 *     err = upstream_request_write(&body, &r, &prompt, &facts, &detail);
 *
 * The body is always of a stream with its usage. Fields that OpenAI's API does not have are named as
 * the engine at the other end names them; what it cannot do is refused, not left out.
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_REQUEST_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_REQUEST_H

#include "base/bytes.h"
#include "server/protocol/api_request.h"
#include "server/upstream/upstream_media.h"

/* A raw prompt; text and ids NULL: the request is a chat. */
typedef struct upstream_prompt {
    const char *text;
    const int32_t *ids;
    size_t n_ids;
} upstream_prompt;

/* The model that is asked. */
typedef struct upstream_facts {
    const char *server, *model; /* as the options name the server, as the server names the model */
    upstream_engine engine;
    upstream_media *media; /* after upstream_media_begin */
} upstream_facts;

/* Appends the body. ERR_UNSUPPORTED names a field that the engine does not have; ERR_LIMIT, ERR_NOMEM; those of media
 * as in upstream_media.h. */
MUST_CHECK err_code upstream_request_write(bytes *out, const api_request *r, const upstream_prompt *prompt,
                                           const upstream_facts *facts, err_detail *d);

#endif
