/* completion_request: the body of POST /v1/completions: a raw prompt that is continued, no chat
 * template. Prep threads.
 *
 *     completion_prompt prompt;
 *     err = completion_request_parse(&r, &prompt, text, len, engine_get_info(e), &detail);
 *     err = completion_request_prepare(&request, &r, &prompt, e, &detail);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_COMPLETION_REQUEST_H

#include "server/protocol/api_request.h"

/* The prompt, as text or as token ids; both live as long as the api_request. */
typedef struct completion_prompt {
    const char *text; /* NULL: ids */
    const int32_t *ids;
    size_t n_ids;
    const struct completion_prompt *next; /* of a list; NULL: the last */
} completion_prompt;

/* Reads a text, a list of token ids, or a list of either; returns how many there are, at most `most`.
 * An error names the field. */
size_t request_prompts(api_request *r, completion_prompt *first, const json *root, const char *name,
                       size_t most);

/* Fills r (without messages) and *prompt. ERR_INVALID and ERR_UNSUPPORTED name the field. */
MUST_CHECK err_code completion_request_parse(api_request *r, completion_prompt *prompt, const char *text,
                                             size_t len, const engine_info *info, err_detail *d);

/* Makes the parsed prompt a request of the engine, which the caller then owns; errors are those of
 * engine_prepare_text and engine_prepare_tokens. */
MUST_CHECK err_code completion_request_prepare(gen_request **out, const api_request *r,
                                               const completion_prompt *prompt, engine *e, err_detail *d);

#endif
