/* response_format: reads the requested output format: response_format of chat completions,
 * text.format of Responses. Prep threads.
 *
 *     response_format_read(r, json_get(root, "response_format"), "response_format");
 */
#ifndef PARLEY_SERVER_PROTOCOL_RESPONSE_FORMAT_H
#define PARLEY_SERVER_PROTOCOL_RESPONSE_FORMAT_H

#include "server/protocol/api_request.h"

/* Sets r->in->form for {"type": "json_object"} and {"type": "json_schema"}; "text", null and
 * nothing leave it as it is, and a call that is forced keeps its own. The schema's fields are
 * looked for in format.json_schema, or in format itself, as Responses has them. path names the
 * field in errors. Call it after tool_fields_read: with tools an answer may still be a tool call. */
void response_format_read(api_request *r, const json *format, const char *path);

#endif
