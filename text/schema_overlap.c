/* Whether two schemas can have a value in common: what oneOf needs to be read as anyOf. */
#include <string.h>

#include "text/json_schema_private.h"

enum { DEPTH_MAX = 6, FOLLOW_MAX = 16 };

static bool are_apart(const json *root, const json *a, const json *b, int depth);

static bool same_value(const json *a, const json *b)
{
    if (json_typeof(a) != json_typeof(b)) {
        return false;
    }
    switch (json_typeof(a)) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return json_is_true(a) == json_is_true(b);
    case JSON_NUMBER:
        return json_num(a, 0) == json_num(b, 1);
    case JSON_STRING:
        return strcmp(json_str(a, ""), json_str(b, "")) == 0;
    default:
        return true; /* not compared: they may be equal */
    }
}

static bool may_be(const json *schema, const json *value)
{
    const json *constant = json_get(schema, "const"), *list = json_get(schema, "enum");
    if (constant && !same_value(constant, value)) {
        return false;
    }
    bool listed = list == NULL;
    for (const json *v = json_child(list); v && !listed; v = json_next(v)) {
        listed = same_value(v, value);
    }
    return listed && (schema_types(schema) & schema_type_of(value));
}

/* No value that a's enum or const names satisfies what is known of b; false if a has neither. */
static bool values_apart(const json *a, const json *b)
{
    const json *constant = json_get(a, "const"), *list = json_get(a, "enum");
    if (constant) {
        return !may_be(b, constant);
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (may_be(b, v)) {
            return false;
        }
    }
    return json_is(list, JSON_ARRAY);
}

/* a demands a property that b forbids, or wants to be something else. */
static bool objects_apart(const json *root, const json *a, const json *b, int depth)
{
    const json *of_a = json_get(a, "properties"), *of_b = json_get(b, "properties");
    const json *others = json_get(b, "additionalProperties");
    const bool closed = json_is(others, JSON_BOOL) && !json_is_true(others);
    for (const json *name = json_child(json_get(a, "required")); name; name = json_next(name)) {
        const char *text = json_str(name, "");
        const json *in_a = json_get(of_a, text), *in_b = json_get(of_b, text);
        if ((!in_b && closed && !json_get(b, "patternProperties")) ||
            (in_a && in_b && are_apart(root, in_a, in_b, depth))) {
            return true;
        }
    }
    return false;
}

/* One of a's parts that all must hold is apart from b, or all of those of which one must. */
static bool parts_apart(const json *root, const json *a, const json *b, int depth)
{
    static const char *const CHOICES[] = {"anyOf", "oneOf"};
    for (const json *part = json_child(json_get(a, "allOf")); part; part = json_next(part)) {
        if (are_apart(root, part, b, depth)) {
            return true;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const json *list = json_get(a, CHOICES[i]);
        bool all = json_child(list) != NULL;
        for (const json *part = json_child(list); part && all; part = json_next(part)) {
            all = are_apart(root, part, b, depth);
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

static bool are_apart(const json *root, const json *a, const json *b, int depth)
{
    if (--depth < 0) {
        return false;
    }
    for (int i = 0; i < FOLLOW_MAX && json_get(a, "$ref"); i++) {
        a = schema_resolve(root, json_str(json_get(a, "$ref"), ""));
    }
    for (int i = 0; i < FOLLOW_MAX && json_get(b, "$ref"); i++) {
        b = schema_resolve(root, json_str(json_get(b, "$ref"), ""));
    }
    if ((json_is(a, JSON_BOOL) && !json_is_true(a)) || (json_is(b, JSON_BOOL) && !json_is_true(b))) {
        return true;
    }
    if (!json_is(a, JSON_OBJECT) || !json_is(b, JSON_OBJECT)) {
        return false;
    }
    const unsigned common =
        (schema_written_types(a) & schema_types(b)) | (schema_types(a) & schema_written_types(b));
    if (common == 0 || values_apart(a, b) || values_apart(b, a) || parts_apart(root, a, b, depth) ||
        parts_apart(root, b, a, depth)) {
        return true;
    }
    if (common == TYPE_OBJECT && (objects_apart(root, a, b, depth) || objects_apart(root, b, a, depth))) {
        return true;
    }
    return (common & ~(unsigned)TYPE_NUMBER) == 0 && (numbers_apart(a, b) || numbers_apart(b, a));
}

bool schema_are_apart(const json *root, const json *a, const json *b)
{
    return are_apart(root, a, b, DEPTH_MAX);
}
