#include "engine/grammar_spec.h"

#include <string.h>

#include "base/limits.h"
#include "text/grammar/json_schema.h"

static const schema_parameters XML_FORM = {"<parameter=", ">\n", "\n</parameter>", "\n"};

enum { SPEC_DEPTH = 16 };
_Static_assert((int)SPEC_MANY == (int)GRAMMAR_MANY, "one number in two headers");

static err_code add_schema(grammar *g, int32_t *node, const grammar_spec *spec, err_detail *detail)
{
    static const char ANY[] = "{\"type\":\"object\"}", NONE[] = "{\"properties\":{}}";
    const bool raw = spec->kind == SPEC_PARAMETERS;
    const schema_target target = {.g = g, .path = spec->path ? spec->path : ""};
    json_doc *doc = NULL;
    err_code err = ERR_OK;
    if (!spec->schema) {
        const char *text = raw ? NONE : ANY;
        err = json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, detail);
    }
    const json *schema = spec->schema ? spec->schema : json_root(doc);
    if (err == ERR_OK && raw) {
        const grammar_marks *m = spec->marks;
        const schema_parameters form =
            m ? (schema_parameters){m->begin, m->name_end, m->close, m->after} : XML_FORM;
        err = json_schema_compile_parameters(node, &target, schema, &form, detail);
    } else if (err == ERR_OK) {
        err = json_schema_compile(node, &target, schema, detail);
    }
    json_free(doc);
    return err;
}

static err_code add_spec(grammar *g, int32_t *node, const grammar_spec *spec, int depth, err_detail *detail)
{
    *node = GRAMMAR_NEVER;
    switch (spec->kind) {
    case SPEC_TEXT:
        *node = grammar_text(g, spec->text, strlen(spec->text));
        return ERR_OK;
    case SPEC_MARKER:
        *node = grammar_marker(g, spec->text, strlen(spec->text));
        return ERR_OK;
    case SPEC_UNTIL:
        *node = grammar_until(g, spec->text);
        return ERR_OK;
    case SPEC_SCHEMA:
    case SPEC_PARAMETERS:
        return add_schema(g, node, spec, detail);
    default:
        break;
    }
    int32_t *nodes = arena_calloc(grammar_arena(g), spec->n_items + 1, sizeof *nodes);
    if (!nodes || depth == SPEC_DEPTH || !work_do(grammar_work(g), spec->n_items)) {
        return err_set(detail, ERR_LIMIT, "the form of the answer is too large");
    }
    err_code err = ERR_OK;
    for (size_t i = 0; i < spec->n_items && err == ERR_OK; i++) {
        err = add_spec(g, &nodes[i], &spec->items[i], depth + 1, detail);
    }
    if (err == ERR_OK) {
        *node = spec->kind == SPEC_SEQUENCE ? grammar_sequence(g, nodes, spec->n_items)
                : spec->kind == SPEC_CHOICE ? grammar_choice(g, nodes, spec->n_items)
                                            : grammar_repeat(g, nodes[0], nodes[1], spec->min, spec->max);
    }
    return err;
}

/* Why building ended, if it was its work. */
static err_code tell_work(const work_count *w, err_detail *detail)
{
    return w->err == ERR_CANCELLED
               ? err_set(detail, ERR_CANCELLED, "cancelled while the form of the answer was built")
               : err_set_param(
                     detail, ERR_LIMIT, NULL, "schema_too_complex",
                     "the schemas of this request take more than %d steps to build: make them simpler",
                     LIMIT_SCHEMA_WORK);
}

err_code grammar_build(grammar **out, const grammar_spec *spec, work_count *w, err_detail *detail)
{
    grammar *g;
    int32_t root;
    work_count own = {0};
    *out = NULL;
    w = w ? w : &own;
    w->limit = w->limit ? w->limit : LIMIT_SCHEMA_WORK;
    err_code err = grammar_create(&g, w, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = add_spec(g, &root, spec, 0, detail);
    if (err == ERR_OK) {
        err = grammar_finish(g, root, detail);
        if (err != ERR_OK && w->err == ERR_OK && detail && spec->path) {
            char why[ERR_TEXT_MAX];
            memcpy(why, detail->text, sizeof why);
            err = err_set_param(detail, err, spec->path, "invalid_schema", "%s: %s", spec->path, why);
        }
    }
    if (err != ERR_OK) {
        if (grammar_lacked_memory(g)) { /* whatever it was taken for */
            err = err_set(detail, ERR_NOMEM, "there is not enough memory for the form of the answer");
        }
        grammar_destroy(g);
        return w->err == ERR_OK ? err : tell_work(w, detail);
    }
    *out = g;
    return ERR_OK;
}
