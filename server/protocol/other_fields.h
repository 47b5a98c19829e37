/* other_fields: request fields without effect here, and fields that are not supported. Prep
 * threads.
 *
 *     other_fields_check(&e, root, OTHER_CHAT);
 *
 * The former are validated and ignored; the latter are refused by name, so that no answer silently
 * differs from what was asked for. Unknown fields are ignored.
 */
#ifndef PARLEY_SERVER_PROTOCOL_OTHER_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_OTHER_FIELDS_H

#include "base/json.h"
#include "server/protocol/first_error.h"

typedef enum other_protocol { OTHER_CHAT, OTHER_COMPLETION, OTHER_RESPONSES } other_protocol;

/* ERR_INVALID for a wrong type or value, ERR_UNSUPPORTED for what cannot be done; the field is
 * named. */
void other_fields_check(first_error *e, const json *root, other_protocol protocol);

#endif
