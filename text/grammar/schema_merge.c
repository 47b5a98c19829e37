/* Reads the keywords of all schemas of a conjunction: what is known, what is ignored, what is
 * refused. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "text/grammar/json_schema_private.h"

typedef enum keyword_kind {
    KEYWORD_REFUSED, /* asserts something that a grammar does not do */
    KEYWORD_LINK,    /* $ref, allOf, anyOf, oneOf: json_schema.c */
    KEYWORD_NOTE,    /* says nothing about the value */
    KEYWORD_VALUE,   /* type, enum, const */
    KEYWORD_LENGTH,
    KEYWORD_TEXT,
    KEYWORD_BOUND,
    KEYWORD_PARTS, /* of objects and arrays: json_schema.c */
    KEYWORD_UNIQUE
} keyword_kind;

/* types: what the keyword is about; a schema without "type" that has such keywords is taken to mean
 * these. */
static const struct {
    const char *name;
    keyword_kind kind;
    unsigned types;
} KEYWORDS[] = {
    {"type", KEYWORD_VALUE, 0},
    {"nullable", KEYWORD_VALUE, 0},
    {"enum", KEYWORD_VALUE, 0},
    {"const", KEYWORD_VALUE, 0},
    {"$ref", KEYWORD_LINK, 0},
    {"allOf", KEYWORD_LINK, 0},
    {"anyOf", KEYWORD_LINK, 0},
    {"oneOf", KEYWORD_LINK, 0},
    {"minLength", KEYWORD_LENGTH, TYPE_STRING},
    {"maxLength", KEYWORD_LENGTH, TYPE_STRING},
    {"pattern", KEYWORD_TEXT, TYPE_STRING},
    {"format", KEYWORD_TEXT, TYPE_STRING},
    {"minimum", KEYWORD_BOUND, TYPE_NUMBER},
    {"maximum", KEYWORD_BOUND, TYPE_NUMBER},
    {"exclusiveMinimum", KEYWORD_BOUND, TYPE_NUMBER},
    {"exclusiveMaximum", KEYWORD_BOUND, TYPE_NUMBER},
    {"minItems", KEYWORD_LENGTH, TYPE_ARRAY},
    {"maxItems", KEYWORD_LENGTH, TYPE_ARRAY},
    {"items", KEYWORD_PARTS, TYPE_ARRAY},
    {"prefixItems", KEYWORD_PARTS, TYPE_ARRAY},
    {"additionalItems", KEYWORD_PARTS, TYPE_ARRAY},
    {"uniqueItems", KEYWORD_UNIQUE, TYPE_ARRAY},
    {"properties", KEYWORD_PARTS, TYPE_OBJECT},
    {"required", KEYWORD_PARTS, TYPE_OBJECT},
    {"additionalProperties", KEYWORD_PARTS, TYPE_OBJECT},
    {"unevaluatedProperties", KEYWORD_PARTS, TYPE_OBJECT},
    {"minProperties", KEYWORD_LENGTH, TYPE_OBJECT},
    {"maxProperties", KEYWORD_LENGTH, TYPE_OBJECT},
    {"not", KEYWORD_REFUSED, 0},
    {"if", KEYWORD_REFUSED, 0},
    {"then", KEYWORD_REFUSED, 0},
    {"else", KEYWORD_REFUSED, 0},
    {"multipleOf", KEYWORD_REFUSED, 0},
    {"patternProperties", KEYWORD_REFUSED, 0},
    {"propertyNames", KEYWORD_REFUSED, 0},
    {"dependentRequired", KEYWORD_REFUSED, 0},
    {"dependentSchemas", KEYWORD_REFUSED, 0},
    {"dependencies", KEYWORD_REFUSED, 0},
    {"contains", KEYWORD_REFUSED, 0},
    {"minContains", KEYWORD_REFUSED, 0},
    {"maxContains", KEYWORD_REFUSED, 0},
    {"unevaluatedItems", KEYWORD_REFUSED, 0},
    {"$dynamicRef", KEYWORD_REFUSED, 0},
    {"$recursiveRef", KEYWORD_REFUSED, 0},
};

enum { N_KEYWORDS = sizeof KEYWORDS / sizeof KEYWORDS[0] };

static size_t find_keyword(const char *name)
{
    size_t i = 0;
    while (i < N_KEYWORDS && strcmp(KEYWORDS[i].name, name) != 0) {
        i++;
    }
    return i;
}

static unsigned type_by_name(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } TYPES[] = {{"null", TYPE_NULL},     {"boolean", TYPE_BOOL},  {"integer", TYPE_INTEGER},
                 {"number", TYPE_NUMBER}, {"string", TYPE_STRING}, {"array", TYPE_ARRAY},
                 {"object", TYPE_OBJECT}};
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i].name, name) == 0) {
            return TYPES[i].types;
        }
    }
    return 0;
}

unsigned schema_types(const json *schema)
{
    const json *type = json_get(schema, "type");
    unsigned types = json_is(type, JSON_STRING) ? type_by_name(json_str(type, "")) : 0;
    if (!type) {
        return TYPE_ALL;
    }
    for (const json *t = json_is(type, JSON_ARRAY) ? json_child(type) : NULL; t; t = json_next(t)) {
        const unsigned one = type_by_name(json_str(t, ""));
        if (!one) {
            return 0;
        }
        types |= one;
    }
    return types && json_is_true(json_get(schema, "nullable")) ? types | TYPE_NULL : types;
}

unsigned schema_written_types(const json *schema)
{
    unsigned about = 0;
    if (json_get(schema, "type") || json_get(schema, "enum") || json_get(schema, "const")) {
        return schema_types(schema);
    }
    for (const json *v = json_child(schema); v; v = json_next(v)) {
        const size_t k = find_keyword(json_key(v));
        about |= k < N_KEYWORDS ? KEYWORDS[k].types : 0;
    }
    return about ? about : TYPE_ALL;
}

unsigned schema_type_of(const json *value)
{
    static const unsigned TYPES[] = {
        [JSON_NULL] = TYPE_NULL,     [JSON_BOOL] = TYPE_BOOL,   [JSON_NUMBER] = TYPE_FRACTION,
        [JSON_STRING] = TYPE_STRING, [JSON_ARRAY] = TYPE_ARRAY, [JSON_OBJECT] = TYPE_OBJECT};
    int64_t whole;
    return json_int(value, INT64_MIN, INT64_MAX, &whole) ? TYPE_INTEGER : TYPES[json_typeof(value)];
}

static err_code refuse_value(schema_compiler *c, const place *at, const char *keyword, const char *wanted)
{
    return schema_refuse(c, at, keyword, ERR_INVALID, "%s must be %s", keyword, wanted);
}

static err_code read_length(schema_compiler *c, merged *m, const place *at, const json *value)
{
    struct {
        const char *name;
        int32_t *limit;
        bool is_max;
    } limits[] = {{"minLength", &m->min_length, false},         {"maxLength", &m->max_length, true},
                  {"minItems", &m->min_items, false},           {"maxItems", &m->max_items, true},
                  {"minProperties", &m->min_properties, false}, {"maxProperties", &m->max_properties, true}};
    int64_t n;
    if (!json_int(value, 0, GRAMMAR_MANY - 1, &n)) {
        return refuse_value(c, at, json_key(value), "a whole number, 0 or more");
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (strcmp(limits[i].name, json_key(value)) == 0 &&
            (limits[i].is_max ? n < *limits[i].limit : n > *limits[i].limit)) {
            *limits[i].limit = (int32_t)n;
            if (i < 2) {
                m->length_at[i] = at;
            }
        }
    }
    return ERR_OK;
}

static err_code read_text(schema_compiler *c, merged *m, const place *at, const json *value)
{
    const bool is_pattern = strcmp(json_key(value), "pattern") == 0;
    size_t *n = is_pattern ? &m->n_patterns : &m->n_formats;
    if (!json_is(value, JSON_STRING)) {
        return refuse_value(c, at, json_key(value), "a string");
    }
    if (*n == SCHEMA_BOUNDS_MAX) {
        return schema_refuse(c, at, json_key(value), ERR_LIMIT, "too many patterns hold for one value");
    }
    (is_pattern ? m->patterns : m->formats)[(*n)++] = json_str(value, "");
    m->string_at = at;
    return ERR_OK;
}

static err_code read_bound(schema_compiler *c, merged *m, const place *at, const json *value)
{
    const char *name = json_key(value);
    const bool is_max = strstr(name, "aximum") != NULL;
    bool exclusive = name[0] == 'e';
    if (exclusive && json_is(value, JSON_BOOL)) {
        return ERR_OK; /* draft 4: read with minimum and maximum */
    }
    if (!json_is(value, JSON_NUMBER)) {
        return refuse_value(c, at, name, "a number");
    }
    if (m->n_bounds == SCHEMA_BOUNDS_MAX) {
        return schema_refuse(c, at, name, ERR_LIMIT, "too many bounds hold for one value");
    }
    exclusive =
        exclusive || json_is_true(json_get(at->schema, is_max ? "exclusiveMaximum" : "exclusiveMinimum"));
    m->bounds[m->n_bounds++] = (schema_bound){json_number_text(value), is_max, exclusive};
    m->number_at = at;
    return ERR_OK;
}

enum { VALUE_STEPS = 20, KEYWORD_STEPS = 60 };

static err_code values_too_large(schema_compiler *c, const place *at)
{
    return schema_refuse(c, at, "enum", ERR_LIMIT,
                         "a value has more than %d bytes, or all of them more than %zu MiB",
                         LIMIT_VALUE_BYTES, LIMIT_GRAMMAR_BYTES >> 20);
}

/* The values of an enum, or a const as an enum of one; NULL if there are too many. */
static const json **list_values(schema_compiler *c, const json *from, bool is_enum, size_t *n)
{
    const size_t most = is_enum ? json_len(from) : 1;
    const json **values = arena_calloc(grammar_arena(c->g), most + 1, sizeof *values);
    *n = 0;
    for (const json *v = is_enum ? json_child(from) : from; v && values; v = is_enum ? json_next(v) : NULL) {
        values[(*n)++] = v;
    }
    return work_do(c->work, VALUE_STEPS * most) ? values : NULL;
}

/* enum, or const as an enum of one: the first list is taken, later ones are filters (see
 * filter_values). */
static err_code read_values(schema_compiler *c, merged *m, const place *at, const json *value)
{
    const bool is_enum = strcmp(json_key(value), "enum") == 0;
    if (is_enum && (!json_is(value, JSON_ARRAY) || !json_child(value))) {
        return refuse_value(c, at, "enum", "a list that is not empty");
    }
    if (m->has_values) {
        return ERR_OK;
    }
    m->has_values = true;
    m->values_at = at;
    m->values_from = value;
    m->values = list_values(c, value, is_enum, &m->n_values);
    return m->values ? ERR_OK : values_too_large(c, at);
}

static err_code read_keyword(schema_compiler *c, merged *m, const place *at, const json *value,
                             keyword_kind kind)
{
    const char *name = json_key(value);
    switch (kind) {
    case KEYWORD_REFUSED:
        return schema_refuse(c, at, name, ERR_UNSUPPORTED, "the keyword %s is not supported", name);
    case KEYWORD_UNIQUE:
        return json_is_true(value)
                   ? schema_refuse(c, at, name, ERR_UNSUPPORTED, "the keyword %s is not supported", name)
                   : ERR_OK;
    case KEYWORD_LENGTH:
        return read_length(c, m, at, value);
    case KEYWORD_TEXT:
        return read_text(c, m, at, value);
    case KEYWORD_BOUND:
        return read_bound(c, m, at, value);
    case KEYWORD_VALUE:
        if (strcmp(name, "type") == 0 && schema_types(at->schema) == 0) {
            return refuse_value(c, at, name, "a type of JSON Schema, or a list of types");
        }
        return strcmp(name, "enum") == 0 || strcmp(name, "const") == 0 ? read_values(c, m, at, value)
                                                                       : ERR_OK;
    default:
        return ERR_OK;
    }
}

/* How each value is written, which tells whether values are equal. NULL if they are too large. */
static const char **write_values(schema_compiler *c, const json *const *values, size_t n)
{
    arena *a = grammar_arena(c->g);
    const char **texts = arena_calloc(a, n + 1, sizeof *texts);
    bytes text = bytes_empty(LIMIT_VALUE_BYTES);
    bool ok = texts != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        bytes_clear(&text);
        json_write(&text, values[i]);
        texts[i] = text.failed ? NULL : arena_strdup(a, bytes_str(&text), text.len);
        ok = texts[i] && work_do(c->work, VALUE_STEPS + text.len);
    }
    grammar_note_text(c->g, &text);
    bytes_deinit(&text);
    return ok ? texts : NULL;
}

/* Leaves out the values that this enum or const does not have; own: how the values are written. */
static bool keep_listed(schema_compiler *c, merged *m, const char **own, const json *from, bool is_enum)
{
    size_t n, kept = 0;
    const json **values = list_values(c, from, is_enum, &n);
    const char **texts = values ? write_values(c, values, n) : NULL;
    if (!texts) {
        return false;
    }
    qsort(texts, n, sizeof *texts, schema_compare_texts);
    for (size_t i = 0; i < m->n_values; i++) {
        if (bsearch(&own[i], texts, n, sizeof *texts, schema_compare_texts)) {
            own[kept] = own[i];
            m->values[kept++] = m->values[i];
        }
    }
    m->n_values = kept;
    return true;
}

/* Leaves out the values that a type, or another enum or const, does not allow. */
static err_code filter_values(schema_compiler *c, merged *m, const conjunction *all)
{
    size_t kept = 0;
    const char **own = NULL;
    for (size_t i = 0; i < m->n_values; i++) {
        if (schema_type_of(m->values[i]) & m->types) {
            m->values[kept++] = m->values[i];
        }
    }
    m->n_values = kept;
    for (size_t k = 0; k < 2 * all->n; k++) {
        const place *at = all->members[k / 2].at;
        const bool is_enum = k % 2;
        const json *from = json_get(at->schema, is_enum ? "enum" : "const");
        if (!from || from == m->values_from) {
            continue;
        }
        own = own ? own : write_values(c, m->values, m->n_values);
        if (!own || !keep_listed(c, m, own, from, is_enum)) {
            return values_too_large(c, at);
        }
    }
    return ERR_OK;
}

err_code schema_merge(schema_compiler *c, merged *m, const conjunction *all)
{
    *m = (merged){.types = TYPE_ALL,
                  .max_length = GRAMMAR_MANY,
                  .max_items = GRAMMAR_MANY,
                  .max_properties = GRAMMAR_MANY};
    for (size_t i = 0; i < all->n; i++) {
        const place *at = all->members[i].at;
        for (const json *v = json_child(at->schema); v; v = json_next(v)) {
            const size_t k = find_keyword(json_key(v));
            if (!work_do(c->work, KEYWORD_STEPS)) {
                return work_error(c->work);
            }
            if (k == N_KEYWORDS) {
                continue;
            }
            const err_code err = read_keyword(c, m, at, v, KEYWORDS[k].kind);
            if (err != ERR_OK) {
                return err;
            }
            m->beyond_type = m->beyond_type || KEYWORDS[k].types;
        }
        m->types &= schema_written_types(at->schema);
    }
    return m->has_values ? filter_values(c, m, all) : ERR_OK;
}
