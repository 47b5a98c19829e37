/* response_format: reads the requested output format: response_format of chat completions,
 * text.format of Responses. Prep threads.
 *
 *     err = response_format_read(r, json_get(root, "response_format"), "response_format", &detail);
 */
#ifndef PARLEY_SERVER_PROTOCOL_RESPONSE_FORMAT_H
#define PARLEY_SERVER_PROTOCOL_RESPONSE_FORMAT_H

#include "server/protocol/api_request.h"

/* Sets r->in->form for {"type": "json_object"} and {"type": "json_schema"}; "text", null and
 * nothing leave it as it is. The schema's fields are looked for in format.json_schema, or in format
 * itself, as Responses has them. path names the field in errors. Call it after tool_fields_read:
 * with tools an answer may still be a tool call. */
MUST_CHECK err_code response_format_read(api_request *r, const json *format, const char *path, err_detail *d);

#endif
