/* tool_set: the tools of one request, as far as reading a call needs them: names, and which kinds
 * of value each parameter takes. Made on a prep thread from the request's JSON, then immutable and
 * owned by the reply's options.
 *
 *     tool_set *set; tool_set_create(&set, tools, &detail);
 *     const tool_def *t = tool_set_find(set, "get_weather", 11);
 *     unsigned kinds = tool_def_kinds(t, "city", 4);
 *     tool_set_destroy(set);
 */
#ifndef PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_SET_H
#define PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_SET_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* Kinds of JSON value, as a set of bits. */
enum {
    TOOL_STRING = 1,
    TOOL_NUMBER = 2,
    TOOL_INTEGER = 4,
    TOOL_BOOLEAN = 8,
    TOOL_OBJECT = 16,
    TOOL_ARRAY = 32,
    TOOL_NULL = 64,
    TOOL_ANY = 127
};

typedef struct tool_param {
    const char *name;
    unsigned kinds;
} tool_param;

typedef struct tool_def {
    const char *name;
    tool_param *params;
    size_t n_params;
    unsigned other_kinds; /* of parameters that the schema does not name */
} tool_def;

typedef struct tool_set {
    arena *arena;
    tool_def *tools;
    size_t n_tools;
} tool_set;

/* tools: a list of {"type":"function","function":{"name","parameters"}}, already checked; nothing
 * of it is kept. Schemas may use type (also a list), enum, const, anyOf, oneOf, allOf, nullable and
 * local $ref; what says nothing takes any value. ERR_NOMEM. */
MUST_CHECK err_code tool_set_create(tool_set **out, const json *tools, err_detail *detail);
void tool_set_destroy(tool_set *set); /* NULL allowed */

/* NULL if no tool has this name. */
const tool_def *tool_set_find(const tool_set *set, const char *name, size_t len);
/* Kinds of value of a parameter; def NULL (an unknown tool): TOOL_ANY. */
unsigned tool_def_kinds(const tool_def *def, const char *param, size_t len);

#endif
