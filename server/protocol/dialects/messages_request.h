/* messages_request: the body of Anthropic's POST /v1/messages, read with what all dialects share:
 * messages, media, tools and sampling. Prep threads.
 *
 *     api_request r;  api_request_init(&r);
 *     err = messages_request_parse(&r, text, len, true, engine_get_info(e), &detail);
 *     api_request_deinit(&r);
 *
 * A thread (see read_thread) is kept among the responses (response_store): its system text and tools
 * as one item, then its messages.
 *
 * Thinking is off unless `thinking` asks for it. Unknown fields are ignored; a known field of a
 * wrong type is ERR_INVALID naming it. Blocks and tools that only Anthropic's own servers have are
 * ERR_UNSUPPORTED.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_REQUEST_H

#include "server/protocol/api_request.h"

/* Fills r. needs_max_tokens: max_tokens is required (not for counting tokens). info may be NULL in
 * tests. */
MUST_CHECK err_code messages_request_parse(api_request *r, const char *text, size_t len,
                                           bool needs_max_tokens, const engine_info *info, err_detail *d);

#endif
