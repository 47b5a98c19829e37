/* chat_request: the body of POST /v1/chat/completions into a chat_input and the options of the
 * reply. Prep threads.
 *
 *     api_request r;
 *     api_request_init(&r);
 *     err = chat_request_parse(&r, text, len, engine_get_info(e), &detail);
 *     api_request_deinit(&r);
 *
 * Unknown fields are ignored; a known field of a wrong type or range is ERR_INVALID naming it.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_CHAT_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_CHAT_REQUEST_H

#include "server/protocol/api_request.h"

/* Fills r from a body. info may be NULL in tests. */
MUST_CHECK err_code chat_request_parse(api_request *r, const char *text, size_t len, const engine_info *info,
                                       err_detail *d);

/* The same for an object that has the fields of a chat; it outlives r. After an error nothing is read. */
void chat_request_read(api_request *r, const json *root, const engine_info *info);

#endif
