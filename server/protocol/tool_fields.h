/* tool_fields: tools, tool_choice and parallel_tool_calls of a request, for every protocol. Prep
 * threads.
 *
 *     tool_fields_read(r, root, TOOLS_NESTED); // r->in->tools, r->reply.tools
 */
#ifndef PARLEY_SERVER_PROTOCOL_TOOL_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_TOOL_FIELDS_H

#include "server/protocol/api_request.h"

/* Where a function's fields stand: inside "function" (Chat Completions) or beside "type"
 * (Responses). */
typedef enum tool_layout { TOOLS_NESTED, TOOLS_FLAT } tool_layout;

/* ERR_INVALID names the field: a tool without a proper name, two of the same name, a choice that is
 * none. */
void tool_fields_read(api_request *r, const json *root, tool_layout layout);

#endif
