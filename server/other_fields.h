/* other_fields: fields of clients that are not about what is said, or about what no model here can do. Prep threads.
 *
 *     err = other_fields_check(root, OTHER_CHAT, &detail);
 *
 * The first sort is checked and has no effect; the second is refused by name, so that nobody takes the answer for what it
 * is not. Fields that nobody knows are ignored.
 */
#ifndef PARLEY_SERVER_OTHER_FIELDS_H
#define PARLEY_SERVER_OTHER_FIELDS_H

#include "base/err.h"
#include "base/json.h"

typedef enum other_protocol { OTHER_CHAT, OTHER_COMPLETION, OTHER_RESPONSES } other_protocol;

/* ERR_INVALID for a wrong type or value, ERR_UNSUPPORTED for what cannot be done; the field is named. */
MUST_CHECK err_code other_fields_check(const json *root, other_protocol protocol, err_detail *detail);

#endif
