/* responses_request: a CreateResponse body (POST /v1/responses, or response.create on a WebSocket)
 * into a chat_input and the options of the reply. Prep threads.
 *
 *     api_request r; api_request_init(&r);
 *     err = responses_request_parse(&r, text, len, false, engine_get_info(e), &detail);
 *     api_request_deinit(&r);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_REQUEST_H

#include "server/protocol/api_request.h"

/* Fills r. is_event: a WebSocket message, whose type must be response.create. event_id, stream_id
 * and on_disconnect are understood in both; reply.event_id and reply.stream_id are filled even when
 * the rest is wrong, so that the error can name them. */
MUST_CHECK err_code responses_request_parse(api_request *r, const char *text, size_t len, bool is_event,
                                            const engine_info *info, err_detail *d);
/* The same for a conversation that is to be summed up (POST /v1/responses/compact): the question for that is its
 * last message, reply.fields the users' messages that the reply shows. */
MUST_CHECK err_code responses_compact_parse(api_request *r, const char *text, size_t len,
                                            const engine_info *info, err_detail *d);

#endif
