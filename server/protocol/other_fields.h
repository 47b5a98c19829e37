/* other_fields: request fields without effect here, and fields that are not supported. Prep
 * threads.
 *
 *     err = other_fields_check(root, OTHER_CHAT, &detail);
 *
 * The former are validated and ignored; the latter are refused by name, so that no answer silently
 * differs from what was asked for. Unknown fields are ignored.
 */
#ifndef PARLEY_SERVER_PROTOCOL_OTHER_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_OTHER_FIELDS_H

#include "base/err.h"
#include "base/json.h"

typedef enum other_protocol { OTHER_CHAT, OTHER_COMPLETION, OTHER_RESPONSES } other_protocol;

/* ERR_INVALID for a wrong type or value, ERR_UNSUPPORTED for what cannot be done; the field is
 * named. */
MUST_CHECK err_code other_fields_check(const json *root, other_protocol protocol, err_detail *detail);

#endif
