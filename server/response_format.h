/* response_format: the form of an answer as clients ask for it: response_format of chat completions, text.format of
 * Responses. Prep threads.
 *
 *     err = response_format_read(r, json_get(root, "response_format"), "response_format", &detail);
 */
#ifndef PARLEY_SERVER_RESPONSE_FORMAT_H
#define PARLEY_SERVER_RESPONSE_FORMAT_H

#include "server/chat_request.h"

/* Sets r->in->form for {"type": "json_object"} and {"type": "json_schema"}; "text", null and nothing leave it as it is. The
 * schema's fields are looked for in format.json_schema, or in format itself, as Responses has them. path names the
 * field in errors. Call it behind tool_fields_read: an answer may still be a tool call where tools are in use. */
MUST_CHECK err_code response_format_read(chat_request *r, const json *format, const char *path,
                                         err_detail *d);

#endif
