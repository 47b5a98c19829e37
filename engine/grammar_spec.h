/* grammar_spec: the form of a whole answer, put together from texts and schemas. Plain data that
 * the asker owns (an arena); grammar_build reads it once, on one thread.
 *
 * A JSON answer (response_format) is one part:
 *
 *     const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = schema, .path = "response_format.json_schema.schema"};
 *     err = grammar_build(&g, &spec, NULL, &detail);
 *
 * A tool call that is forced (tool_choice) is a sequence: the family's marker, the name, the
 * arguments by the tool's schema. Several tools are a choice of such sequences, several calls a
 * repetition:
 *
 *   JSON form, as Hermes and Qwen3 write it:
 *   { SPEC_MARKER "<tool_call>" } { SPEC_TEXT "\n{\"name\": \"add\", \"arguments\": " }
 *   { SPEC_SCHEMA parameters } { SPEC_TEXT "}\n" } { SPEC_MARKER "</tool_call>" }
 *   XML form, as Qwen3-Coder and Qwen3.5 write it:
 *   { SPEC_MARKER "<tool_call>" } { SPEC_TEXT "\n<function=add>\n" } { SPEC_PARAMETERS parameters }
 *   { SPEC_TEXT "</function>\n" } { SPEC_MARKER "</tool_call>" }
 *
 * In SPEC_PARAMETERS each property of the schema is `<parameter=NAME>\nVALUE\n</parameter>\n`, or as
 * `marks` say, in the schema's order; a string stands there as it is, up to the closing mark, every
 * other value is JSON.
 */
#ifndef PARLEY_ENGINE_GRAMMAR_SPEC_H
#define PARLEY_ENGINE_GRAMMAR_SPEC_H

#include "base/json.h"
#include "base/work.h"

typedef enum grammar_spec_kind {
    SPEC_SCHEMA,     /* JSON that satisfies `schema`; NULL: any object */
    SPEC_TEXT,       /* `text` */
    SPEC_MARKER,     /* `text`, as the one token that the vocabulary has for it, if it has */
    SPEC_UNTIL,      /* any text up to and with `text` */
    SPEC_PARAMETERS, /* the properties of `schema` (NULL: none), each in the XML form */
    SPEC_SEQUENCE,   /* items one after the other */
    SPEC_CHOICE,     /* one of the items */
    SPEC_REPEAT      /* items[0], then items[1] for each further one; min..max in all, not empty texts */
} grammar_spec_kind;

enum { SPEC_MANY = INT32_MAX }; /* max without a bound */

/* How SPEC_PARAMETERS writes a property: begin NAME name_end VALUE close after. close NULL: strings too
 * are JSON. */
typedef struct grammar_marks {
    const char *begin, *name_end, *close, *after;
} grammar_marks;

typedef struct grammar_spec {
    grammar_spec_kind kind;
    const char *text;
    const json *schema;
    const char *path;           /* of the schema in the request, for errors; NULL: "" */
    const grammar_marks *marks; /* SPEC_PARAMETERS; NULL: as above */
    const struct grammar_spec *items;
    size_t n_items;
    int32_t min, max;
} grammar_spec;

struct grammar; /* text/grammar/grammar.h */

/* work: counts the steps and may end it, NULL allowed; its limit is set here where it has none.
 * ERR_INVALID, ERR_UNSUPPORTED (a schema: detail->param says where), ERR_LIMIT, ERR_NOMEM,
 * ERR_CANCELLED. The caller destroys *out with grammar_destroy. */
MUST_CHECK err_code grammar_build(struct grammar **out, const grammar_spec *spec, work_count *work,
                                  err_detail *detail);

#endif
