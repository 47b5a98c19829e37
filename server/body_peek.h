/* body_peek: one field of a body, before anything else of it is read. Any thread; no state.
 *
 *     char name[REQUEST_MODEL_MAX]; body_peek(name, sizeof name, "model", text, len);   // "" if it names none
 */
#ifndef PARLEY_SERVER_BODY_PEEK_H
#define PARLEY_SERVER_BODY_PEEK_H

#include <stddef.h>

/* Copies the string of that name in the object text[0..len), the last one if there are several; "" if there is none, it does
 * not fit, or the text is no JSON. Runs over the text once. */
void body_peek(char *out, size_t cap, const char *name, const char *text, size_t len);

#endif
