/* responses_echo: what a response says of its request: all fields that it was asked with, and the
 * values that hold where it said nothing. Prep threads.
 *
 *     responses_echo(r, root, info);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_ECHO_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSES_ECHO_H

#include "server/protocol/api_request.h"

/* Makes r->reply.fields of the body that was read into r. info may be NULL. */
void responses_echo(api_request *r, const json *root, const engine_info *info);

#endif
