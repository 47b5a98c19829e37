/* foreign_fields: fields with which other servers change an answer and this one cannot. Prep threads.
 *
 *     err_code err = foreign_fields_check(root, is_completion, &detail);
 *
 * They are refused by name, unless their value asks for what happens anyway (typical_p 1, bad_words
 * []). Not for a request that another server answers: there they are passed on.
 */
#ifndef PARLEY_SERVER_PROTOCOL_FOREIGN_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_FOREIGN_FIELDS_H

#include <stdbool.h>

#include "base/json.h"

/* is_completion: root is a body of /v1/completions. ERR_UNSUPPORTED names the field and says what to
 * send instead, if there is something. */
MUST_CHECK err_code foreign_fields_check(const json *root, bool is_completion, err_detail *d);

#endif
