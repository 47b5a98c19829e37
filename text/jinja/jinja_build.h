/* jinja_build: the variables of a chat template, made from outside of the interpreter. They live in
 * an arena. One thread an arena.
 *
 *     jinja_value *vars = jinja_dict(a);
 *     bool ok = jinja_dict_set(a, vars, "tools", jinja_none(a));
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_BUILD_H
#define PARLEY_TEXT_JINJA_JINJA_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"

typedef struct jinja_value jinja_value; /* immutable once rendered */

/* A piece of a rendered text, in bytes. */
typedef struct jinja_span {
    size_t begin, end;
} jinja_span;

/* Builders; all return NULL when the arena is exhausted, and accept NULL children by returning
 * NULL. */
jinja_value *jinja_none(arena *a);
jinja_value *jinja_bool(arena *a, bool b);
jinja_value *jinja_int(arena *a, int64_t i);
jinja_value *jinja_str(arena *a, const char *text, size_t len); /* copies */
jinja_value *jinja_own_str(arena *a, const char *text); /* copies; as if the template had written it itself */
jinja_value *jinja_list(arena *a);
bool jinja_list_push(arena *a, jinja_value *list, jinja_value *item);
jinja_value *jinja_dict(arena *a); /* keeps insertion order */
bool jinja_dict_set(arena *a, jinja_value *dict, const char *key, jinja_value *value);
/* Deep copy of a JSON value; integers written without '.' or 'e' become ints. */
jinja_value *jinja_from_json(arena *a, const json *v);

#endif
