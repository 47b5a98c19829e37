#include "server/protocol/output/tool_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { SCHEMA_DEPTH = 16 };

/* ---- schemas ---- */

static unsigned kind_of_name(const char *type)
{
    static const struct {
        const char *name;
        unsigned kind;
    } KINDS[] = {{"string", TOOL_STRING},   {"number", TOOL_NUMBER | TOOL_INTEGER},
                 {"integer", TOOL_INTEGER}, {"boolean", TOOL_BOOLEAN},
                 {"object", TOOL_OBJECT},   {"array", TOOL_ARRAY},
                 {"null", TOOL_NULL}};
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strcmp(type, KINDS[i].name) == 0) {
            return KINDS[i].kind;
        }
    }
    return 0;
}

static unsigned kind_of_value(const json *v)
{
    static const unsigned KINDS[] = {
        [JSON_NULL] = TOOL_NULL,     [JSON_BOOL] = TOOL_BOOLEAN, [JSON_NUMBER] = TOOL_NUMBER | TOOL_INTEGER,
        [JSON_STRING] = TOOL_STRING, [JSON_ARRAY] = TOOL_ARRAY,  [JSON_OBJECT] = TOOL_OBJECT};
    return KINDS[json_typeof(v)];
}

/* The part of the document that "#/a/b" names; NULL if there is none. */
static const json *follow(const json *root, const char *ref)
{
    const json *at = root;
    if (strncmp(ref, "#/", 2) != 0) {
        return NULL;
    }
    for (ref += 2; at && *ref;) {
        char name[256];
        size_t n = strcspn(ref, "/");
        if (n >= sizeof name) {
            return NULL;
        }
        memcpy(name, ref, n);
        name[n] = '\0';
        at = json_get(at, name);
        ref += n + (ref[n] == '/');
    }
    return at;
}

/* What is known of the schemas of one tool, so that each is looked at once however often it is
 * referred to. */
typedef struct kinds_known {
    const json *schema; /* NULL: free */
    unsigned kinds;     /* 0: nothing, or it is being looked at */
} kinds_known;

typedef struct kinds_reader {
    const json *root;
    kinds_known *known; /* open addressing */
    size_t n, cap;      /* cap is a power of 2 */
    bool failed;
} kinds_reader;

static size_t find_known(const kinds_reader *r, const json *schema)
{
    size_t i = (size_t)((uintptr_t)schema >> 4) * 0x9e3779b97f4a7c15u >> 20;
    for (i &= r->cap - 1; r->known[i].schema && r->known[i].schema != schema; i = (i + 1) & (r->cap - 1)) {
    }
    return i;
}

static bool grow_known(kinds_reader *r)
{
    if (r->n * 2 < r->cap) {
        return true;
    }
    kinds_reader grown = {.cap = r->cap ? 2 * r->cap : 64};
    grown.known = calloc(grown.cap, sizeof *grown.known);
    r->failed = r->failed || !grown.known;
    for (size_t i = 0; i < r->cap && grown.known; i++) {
        if (r->known[i].schema) {
            grown.known[find_known(&grown, r->known[i].schema)] = r->known[i];
        }
    }
    if (grown.known) {
        free(r->known);
        r->known = grown.known;
        r->cap = grown.cap;
    }
    return grown.known != NULL;
}

static unsigned schema_kinds(kinds_reader *r, const json *schema, int depth);

/* What the schema itself says; 0: nothing. */
static unsigned read_kinds(kinds_reader *r, const json *schema, int depth)
{
    static const char *const CHOICES[] = {"anyOf", "oneOf"};
    unsigned kinds = 0;
    const json *type = json_get(schema, "type"), *values = json_get(schema, "enum");
    const char *ref = json_str(json_get(schema, "$ref"), NULL);
    if (json_is(type, JSON_STRING)) {
        kinds = kind_of_name(json_str(type, ""));
    }
    for (const json *v = json_is(type, JSON_ARRAY) ? json_child(type) : NULL; v; v = json_next(v)) {
        kinds |= kind_of_name(json_str(v, ""));
    }
    for (const json *v = kinds == 0 ? json_child(values) : NULL; v; v = json_next(v)) {
        kinds |= kind_of_value(v);
    }
    if (kinds == 0 && json_get(schema, "const")) {
        kinds = kind_of_value(json_get(schema, "const"));
    }
    if (kinds == 0 && ref) {
        kinds = schema_kinds(r, follow(r->root, ref), depth + 1);
    }
    for (size_t i = 0; i < sizeof CHOICES / sizeof CHOICES[0] && kinds == 0; i++) {
        for (const json *v = json_child(json_get(schema, CHOICES[i])); v; v = json_next(v)) {
            unsigned of_choice = schema_kinds(r, v, depth + 1);
            kinds |= of_choice ? of_choice : TOOL_ANY;
        }
    }
    for (const json *v = kinds == 0 ? json_child(json_get(schema, "allOf")) : NULL; v; v = json_next(v)) {
        unsigned of_part = schema_kinds(r, v, depth + 1);
        kinds = kinds && of_part ? kinds & of_part : kinds | of_part;
    }
    if (kinds == 0 && json_get(schema, "properties")) {
        kinds = TOOL_OBJECT;
    }
    if (kinds == 0 && json_get(schema, "items")) {
        kinds = TOOL_ARRAY;
    }
    return kinds && json_is_true(json_get(schema, "nullable")) ? kinds | TOOL_NULL : kinds;
}

/* 0: the schema says nothing about the kind. */
static unsigned schema_kinds(kinds_reader *r, const json *schema, int depth)
{
    if (depth == SCHEMA_DEPTH || !json_is(schema, JSON_OBJECT) || !grow_known(r)) {
        return 0;
    }
    const size_t place = find_known(r, schema);
    if (r->known[place].schema) {
        return r->known[place].kinds;
    }
    r->known[place].schema = schema;
    r->n++;
    const unsigned kinds = read_kinds(r, schema, depth);
    r->known[find_known(r, schema)].kinds = kinds; /* the table may have grown */
    return kinds;
}

static unsigned kinds_or_any(kinds_reader *r, const json *schema)
{
    unsigned kinds = schema_kinds(r, schema, 0);
    return kinds ? kinds : TOOL_ANY;
}

/* ---- the set ---- */

static bool read_tool(tool_set *set, tool_def *def, const json *function)
{
    const char *name = json_str(json_get(function, "name"), "");
    const json *schema = json_get(function, "parameters");
    const json *properties = json_get(schema, "properties");
    kinds_reader reader = {.root = schema};
    def->name = arena_strdup(set->arena, name, strlen(name));
    def->params = arena_calloc(set->arena, json_len(properties) + 1, sizeof *def->params);
    def->other_kinds = kinds_or_any(&reader, json_get(schema, "additionalProperties"));
    bool ok = def->name && def->params;
    for (const json *v = json_is(properties, JSON_OBJECT) ? json_child(properties) : NULL; v && ok;
         v = json_next(v)) {
        tool_param *p = &def->params[def->n_params++];
        p->name = arena_strdup(set->arena, json_key(v), strlen(json_key(v)));
        p->kinds = kinds_or_any(&reader, v);
        ok = p->name != NULL;
    }
    free(reader.known);
    return ok && !reader.failed;
}

err_code tool_set_create(tool_set **out, const json *tools, err_detail *detail)
{
    tool_set *set = calloc(1, sizeof *set);
    bool ok = set != NULL;
    if (ok) {
        set->arena = arena_create(LIMIT_BODY_BYTES);
        set->tools = set->arena ? arena_calloc(set->arena, json_len(tools) + 1, sizeof *set->tools) : NULL;
        ok = set->tools != NULL;
    }
    for (const json *v = ok ? json_child(tools) : NULL; v && ok; v = json_next(v)) {
        ok = read_tool(set, &set->tools[set->n_tools++], json_get(v, "function"));
    }
    if (!ok) {
        tool_set_destroy(set);
        return err_set(detail, ERR_NOMEM, "no memory for the tools of this request");
    }
    *out = set;
    return ERR_OK;
}

void tool_set_destroy(tool_set *set)
{
    if (set) {
        arena_destroy(set->arena);
        free(set);
    }
}

static bool is_name(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && memcmp(name, text, len) == 0; /* there may be zeros in the text */
}

const tool_def *tool_set_find(const tool_set *set, const char *name, size_t len)
{
    for (size_t i = 0; i < set->n_tools; i++) {
        if (is_name(set->tools[i].name, name, len)) {
            return &set->tools[i];
        }
    }
    return NULL;
}

unsigned tool_def_kinds(const tool_def *def, const char *param, size_t len)
{
    for (size_t i = 0; def && i < def->n_params; i++) {
        if (is_name(def->params[i].name, param, len)) {
            return def->params[i].kinds;
        }
    }
    return def ? def->other_kinds : TOOL_ANY;
}
