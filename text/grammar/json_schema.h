/* json_schema: a JSON Schema as nodes of a grammar. One thread.
 *
 *     const schema_target target = {.g = g, .path = "response_format.json_schema.schema"};
 *     err = json_schema_compile(&node, &target, schema, &detail);
 *
 * What the grammar lets through always satisfies the schema; it may let through less than the
 * schema does: properties come in the schema's order, an object with `properties` has only those
 * unless additionalProperties says otherwise, strings with a pattern or a format are written
 * without needless escapes, numbers have at most 18 digits. Keywords that assert what a grammar
 * cannot are ERR_UNSUPPORTED, a wrong schema is ERR_INVALID, both with the keyword's path in
 * detail->param; unknown keywords and annotations are ignored, as JSON Schema wants it. docs/api.md
 * lists what is supported.
 */
#ifndef PARLEY_TEXT_GRAMMAR_JSON_SCHEMA_H
#define PARLEY_TEXT_GRAMMAR_JSON_SCHEMA_H

#include "base/json.h"
#include "text/grammar/grammar.h"

typedef struct schema_target {
    grammar *g;
    const char *path; /* where the schema stands in the request, for errors */
    /* NULL: JSON. Else the raw form that XML-like tool calls use: a string is written as it is up
     * to `close` (ASCII), which every value ends with; other values are JSON. */
    const char *close;
} schema_target;

/* *node gets the node of what satisfies the schema. The schema must live until the return only. */
MUST_CHECK err_code json_schema_compile(int32_t *node, const schema_target *target, const json *schema,
                                        err_detail *detail);

/* How a tool call in XML-like form writes one parameter: begin NAME name_end VALUE close after. close
 * NULL: strings too are JSON. */
typedef struct schema_parameters {
    const char *begin, *name_end, *close, *after;
} schema_parameters;

/* The properties of an object schema as parameters, in its order. */
MUST_CHECK err_code json_schema_compile_parameters(int32_t *node, const schema_target *target,
                                                   const json *schema, const schema_parameters *form,
                                                   err_detail *detail);

#endif
