/* body_field: reads one string field of a body without parsing the rest. Any thread; no state.
 *
 *     char name[REQUEST_MODEL_MAX]; body_field(name, sizeof name, "model", text, len);   // "" if it names none
 */
#ifndef PARLEY_SERVER_PROTOCOL_BODY_FIELD_H
#define PARLEY_SERVER_PROTOCOL_BODY_FIELD_H

#include <stddef.h>

/* Copies the string member `name` of the object text[0..len), the last one if there are several; ""
 * if there is none, it does not fit, or the text is not JSON. One pass over the text. */
void body_field(char *out, size_t cap, const char *name, const char *text, size_t len);

#endif
