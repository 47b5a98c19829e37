/* Whether two schemas can have a value in common: what oneOf needs to be read as anyOf. */
#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema_private.h"

enum { DEPTH_MAX = 6, FOLLOW_MAX = 16, PAIR_STEPS = 100, PAIRS_MIN = 8, KEY_STEPS = 60 };

typedef struct overlap {
    const json *root;
    work_count *work; /* when it has ended every answer is the first at hand */
} overlap;

static bool are_apart(const overlap *o, const json *a, const json *b, int depth);

static int compare_values(const json *a, const json *b)
{
    const json_type p = json_typeof(a), q = json_typeof(b);
    if (p != q) {
        return (p > q) - (p < q);
    }
    switch (p) {
    case JSON_BOOL:
        return json_is_true(a) - json_is_true(b);
    case JSON_NUMBER:
        return (json_num(a, 0) > json_num(b, 0)) - (json_num(a, 0) < json_num(b, 0));
    case JSON_STRING:
        return strcmp(json_str(a, ""), json_str(b, ""));
    default:
        return 0; /* null; lists and objects are not compared: they may be equal */
    }
}

static bool may_be(const overlap *o, const json *schema, const json *value)
{
    const json *constant = json_get(schema, "const"), *list = json_get(schema, "enum");
    if (constant && compare_values(constant, value) != 0) {
        return false;
    }
    bool listed = list == NULL;
    for (const json *v = json_child(list); v && !listed && work_do(o->work, 5); v = json_next(v)) {
        listed = compare_values(v, value) == 0;
    }
    return listed && (schema_types(schema) & schema_type_of(value));
}

static const json *follow(const overlap *o, const json *schema)
{
    for (int i = 0; i < FOLLOW_MAX && json_get(schema, "$ref"); i++) {
        schema = schema_resolve(o->root, json_str(json_get(schema, "$ref"), ""), o->work);
    }
    return schema;
}

/* No value that a's enum or const names satisfies what is known of b; false if a has neither. */
static bool values_apart(const overlap *o, const json *a, const json *b)
{
    const json *constant = json_get(a, "const"), *list = json_get(a, "enum");
    if (constant) {
        return !may_be(o, b, constant);
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (may_be(o, b, v)) {
            return false;
        }
    }
    return json_is(list, JSON_ARRAY);
}

/* a demands a property that b forbids, or wants to be something else. */
static bool objects_apart(const overlap *o, const json *a, const json *b, int depth)
{
    const json *of_a = json_get(a, "properties"), *of_b = json_get(b, "properties");
    const json *others = json_get(b, "additionalProperties");
    const bool closed = json_is(others, JSON_BOOL) && !json_is_true(others);
    for (const json *name = json_child(json_get(a, "required")); name; name = json_next(name)) {
        const char *text = json_str(name, "");
        const json *in_a = json_get(of_a, text), *in_b = json_get(of_b, text);
        if ((!in_b && closed && !json_get(b, "patternProperties")) ||
            (in_a && in_b && are_apart(o, in_a, in_b, depth))) {
            return true;
        }
    }
    return false;
}

/* One of a's parts that all must hold is apart from b, or all of those of which one must. */
static bool parts_apart(const overlap *o, const json *a, const json *b, int depth)
{
    static const char *const CHOICES[] = {"anyOf", "oneOf"};
    for (const json *part = json_child(json_get(a, "allOf")); part; part = json_next(part)) {
        if (are_apart(o, part, b, depth)) {
            return true;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const json *list = json_get(a, CHOICES[i]);
        bool all = json_child(list) != NULL;
        for (const json *part = json_child(list); part && all; part = json_next(part)) {
            all = are_apart(o, part, b, depth);
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static bool numbers_apart(const json *a, const json *b)
{
    const json *max = json_get(a, "maximum"), *min = json_get(b, "minimum");
    const json *below = json_get(a, "exclusiveMaximum"), *above = json_get(b, "exclusiveMinimum");
    return (json_is(max, JSON_NUMBER) && json_is(min, JSON_NUMBER) && json_num(max, 0) < json_num(min, 0)) ||
           (json_is(below, JSON_NUMBER) && json_is(min, JSON_NUMBER) &&
            json_num(below, 0) <= json_num(min, 0)) ||
           (json_is(max, JSON_NUMBER) && json_is(above, JSON_NUMBER) &&
            json_num(max, 0) <= json_num(above, 0));
}

static bool are_apart(const overlap *o, const json *a, const json *b, int depth)
{
    if (--depth < 0 || !work_do(o->work, PAIR_STEPS)) {
        return false;
    }
    a = follow(o, a);
    b = follow(o, b);
    if ((json_is(a, JSON_BOOL) && !json_is_true(a)) || (json_is(b, JSON_BOOL) && !json_is_true(b))) {
        return true;
    }
    if (!json_is(a, JSON_OBJECT) || !json_is(b, JSON_OBJECT)) {
        return false;
    }
    const unsigned common =
        (schema_written_types(a) & schema_types(b)) | (schema_types(a) & schema_written_types(b));
    if (common == 0 || values_apart(o, a, b) || values_apart(o, b, a) || parts_apart(o, a, b, depth) ||
        parts_apart(o, b, a, depth)) {
        return true;
    }
    if (common == TYPE_OBJECT && (objects_apart(o, a, b, depth) || objects_apart(o, b, a, depth))) {
        return true;
    }
    return (common & ~(unsigned)TYPE_NUMBER) == 0 && (numbers_apart(a, b) || numbers_apart(b, a));
}

/* ---- a whole list ---- */

/* A value that an alternative says it has, itself or in one property that it demands. */
typedef struct tag {
    const json *value;
    size_t alternative;
} tag;

static int compare_tags(const void *a, const void *b)
{
    const tag *x = a, *y = b;
    const int values = compare_values(x->value, y->value);
    return values ? values : (x->alternative > y->alternative) - (x->alternative < y->alternative);
}

static bool demands(const overlap *o, const json *schema, const char *property)
{
    for (const json *v = json_child(json_get(schema, "required")); v && work_do(o->work, 5);
         v = json_next(v)) {
        if (strcmp(json_str(v, ""), property) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the values that a schema, or (property) what it demands of that one, is written with; false
 * if it is without. */
static bool add_tags(const overlap *o, tag *tags, size_t *n, size_t most, const json *schema,
                     const char *property, size_t alternative)
{
    schema = follow(o, schema);
    if (property) {
        schema = demands(o, schema, property) ? follow(o, json_get(json_get(schema, "properties"), property))
                                              : NULL;
    }
    const json *constant = json_get(schema, "const"), *list = json_get(schema, "enum");
    if (!work_do(o->work, KEY_STEPS) || (!constant && !json_is(list, JSON_ARRAY))) {
        return false;
    }
    for (const json *v = constant ? constant : json_child(list); v; v = constant ? NULL : json_next(v)) {
        if (*n == most || !work_do(o->work, KEY_STEPS)) {
            return false;
        }
        tags[(*n)++] = (tag){v, alternative};
    }
    return true;
}

/* Whether each alternative has values of its own, themselves or in `property`, so that no pair need
 * be looked at. False also if there are more than `most`. */
static bool are_tagged(const overlap *o, tag *tags, size_t most, const json *list, const char *property)
{
    size_t n = 0, i = 0;
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (!add_tags(o, tags, &n, most, v, property, i++)) {
            return false;
        }
    }
    qsort(tags, n, sizeof *tags, compare_tags);
    for (i = 1; i < n; i++) {
        if (tags[i].alternative != tags[i - 1].alternative &&
            compare_values(tags[i].value, tags[i - 1].value) == 0) {
            return false;
        }
    }
    return true;
}

/* By the alternatives' own values, or those of a property that the first one demands. */
static bool are_surely_apart(const overlap *o, const json *list)
{
    enum { TAGS_MAX = 500000, PROPERTIES_MAX = 8 };
    size_t most = 0;
    const json *first = follow(o, json_child(list));
    if (json_len(list) < PAIRS_MIN) {
        return false;
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        most += 1 + json_len(json_get(v, "enum"));
        const json *properties = json_get(v, "properties");
        for (const json *p = json_child(properties); p; p = json_next(p)) {
            most += 1 + json_len(json_get(p, "enum"));
        }
    }
    most = most < TAGS_MAX ? most : TAGS_MAX;
    tag *tags = malloc((most + 1) * sizeof *tags);
    bool apart = tags && are_tagged(o, tags, most, list, NULL);
    int tries = 0;
    for (const json *v = json_child(json_get(first, "required")); tags && v && !apart; v = json_next(v)) {
        const json *property = json_get(json_get(first, "properties"), json_str(v, ""));
        if ((json_get(property, "const") || json_get(property, "enum")) && tries++ < PROPERTIES_MAX) {
            apart = are_tagged(o, tags, most, list, json_str(v, ""));
        }
    }
    free(tags);
    return apart;
}

bool schema_find_overlap(size_t *i, size_t *k, const json *root, const json *list, work_count *work)
{
    const overlap o = {root, work};
    *i = *k = 0;
    if (are_surely_apart(&o, list)) {
        return false;
    }
    for (const json *a = json_child(list); a; a = json_next(a), ++*i) {
        *k = *i + 1;
        for (const json *b = json_next(a); b; b = json_next(b), ++*k) {
            if (!are_apart(&o, a, b, DEPTH_MAX)) {
                return work_error(work) == ERR_OK;
            }
        }
    }
    return false;
}
