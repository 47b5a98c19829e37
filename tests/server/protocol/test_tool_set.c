/* tool_set and tool_value: which kinds each way to write a schema takes, references, schemas with many parts; values as they
 * stand in a call. */
#include "server/protocol/output/tool_value.h"
#include "tests/server/protocol/tools_of.h"

/* The kinds of a parameter p of a tool with these definitions, the same whatever its other parameters may be. */
static unsigned kinds_of(const char *schema, const char *defs)
{
    static const struct {
        const char *others;
        unsigned kinds;
    } ROWS[] = {{"", TOOL_ANY}, {"\"additionalProperties\":{\"type\":\"integer\"},", TOOL_INTEGER}};
    unsigned kinds[ARRAY_LEN(ROWS)];
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[2048];
        snprintf(
            text, sizeof text,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"p\":%s},"
            "%s\"$defs\":%s}}}]",
            schema, ROWS[i].others, defs);
        tool_set *tools = tools_of(text);
        const tool_def *def = tool_set_find(tools, "f", 1);
        kinds[i] = tool_def_kinds(def, "p", 1);
        CHECK_INT(tool_def_kinds(def, "q", 1), ROWS[i].kinds);
        CHECK_INT(tool_def_kinds(NULL, "p", 1), TOOL_ANY);
        CHECK(!tool_set_find(tools, "ff", 2) && !tool_set_find(tools, "", 0));
        tool_set_destroy(tools);
    }
    CHECK_INT(kinds[1], kinds[0]);
    return kinds[0];
}

static void test_kinds(void)
{
    enum { NUMBERS = TOOL_NUMBER | TOOL_INTEGER };
    static const struct {
        const char *schema;
        unsigned kinds;
    } ROWS[] = {
        {"{}", TOOL_ANY},
        {"true", TOOL_ANY},
        {"{\"type\":\"string\"}", TOOL_STRING},
        {"{\"type\":[\"integer\",\"null\"]}", TOOL_INTEGER | TOOL_NULL},
        {"{\"enum\":[\"a\",null]}", TOOL_STRING | TOOL_NULL},
        {"{\"type\":\"string\",\"enum\":[1]}", TOOL_STRING},
        {"{\"const\":true}", TOOL_BOOLEAN},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\"}]}", TOOL_STRING | TOOL_ARRAY},
        {"{\"oneOf\":[{\"type\":\"string\"},{}]}", TOOL_ANY},
        {"{\"allOf\":[{\"type\":[\"string\",\"null\"]},{\"type\":[\"null\",\"array\"]}]}", TOOL_NULL},
        {"{\"allOf\":[{},{\"type\":\"string\"}]}", TOOL_STRING},
        {"{\"properties\":{}}", TOOL_OBJECT},
        {"{\"items\":{}}", TOOL_ARRAY},
        {"{\"type\":\"string\",\"nullable\":true}", TOOL_STRING | TOOL_NULL},
        {"{\"nullable\":true}", TOOL_ANY},
        {"{\"$ref\":\"#/$defs/s\"}", TOOL_STRING},
        {"{\"$ref\":\"#/$defs/s/\"}", TOOL_STRING},
        {"{\"$ref\":\"#/$defs/o/properties/n\"}", TOOL_INTEGER},
        {"{\"$ref\":\"#/$defs/none\"}", TOOL_ANY},
        {"{\"$ref\":\"#/$defs/s/none/deeper\"}", TOOL_ANY},
        {"{\"$ref\":\"#\"}", TOOL_ANY},
        {"{\"$ref\":\"#/\"}", TOOL_OBJECT},
        {"{\"$ref\":\"http://h/s.json\"}", TOOL_ANY},
        {"{\"$ref\":\"#/$defs/loop\"}", TOOL_ANY},
        {"{\"$ref\":\"#/properties/p\"}", TOOL_ANY},
        {"{\"type\":\"odd\"}", TOOL_ANY},
        {"{\"type\":[\"string\",\"null\",\"odd\"]}", TOOL_STRING | TOOL_NULL},
        {"{\"type\":\"boolean\",\"enum\":[1]}", TOOL_BOOLEAN},
        {"{\"enum\":[1,\"a\",null]}", NUMBERS | TOOL_STRING | TOOL_NULL},
        {"{\"const\":{}}", TOOL_OBJECT},
        {"{\"const\":[]}", TOOL_ARRAY},
        {"{\"enum\":[true],\"const\":[]}", TOOL_BOOLEAN},
        {"{\"$ref\":\"#/$defs/a\"}", TOOL_ARRAY},
        {"{\"$ref\":\"#/$defs/b/deep\"}", TOOL_NULL},
        {"{\"$ref\":\"elsewhere\"}", TOOL_ANY},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", TOOL_INTEGER | TOOL_NULL},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"const\":\"a\"}]}", TOOL_INTEGER | TOOL_STRING},
        {"{\"oneOf\":[{\"type\":\"integer\"},{}]}", TOOL_ANY}, /* one that says nothing allows all */
        {"{\"anyOf\":[{\"type\":\"null\"}],\"oneOf\":[{\"type\":\"integer\"}]}", TOOL_NULL},
        {"{\"allOf\":[{},{\"type\":\"array\"},{}]}", TOOL_ARRAY}, /* one that says nothing forbids nothing */
        {"{\"allOf\":[{\"type\":\"array\"}],\"properties\":{}}", TOOL_ARRAY},
        {"{\"anyOf\":[{\"type\":\"null\"}],\"allOf\":[{\"type\":\"array\"}]}", TOOL_NULL},
        {"{\"allOf\":[],\"properties\":{}}", TOOL_OBJECT},
        {"{\"properties\":{},\"items\":{}}", TOOL_OBJECT},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const unsigned kinds =
            kinds_of(ROWS[i].schema, "{\"s\":{\"type\":\"string\"},\"o\":{\"properties\":{\"n\":{\"type\":"
                                     "\"integer\"}}},\"loop\":{\"$ref\":\"#/$defs/loop\"},\"a\":{\"type\":"
                                     "\"array\"},\"b\":{\"deep\":{\"type\":\"null\"}}}");
        if (kinds != ROWS[i].kinds) {
            fprintf(stderr, "  %s\n", ROWS[i].schema);
        }
        CHECK_INT(kinds, ROWS[i].kinds);
    }
    for (int n = 15; n <= 16; n++) { /* the deepest that is looked at */
        bytes schema = bytes_empty(400);
        for (int i = 0; i < n; i++) {
            bytes_append_str(&schema, "{\"allOf\":[");
        }
        bytes_append_str(&schema, "{\"type\":\"string\"}");
        for (int i = 0; i < n; i++) {
            bytes_append_str(&schema, "]}");
        }
        CHECK_INT(kinds_of(bytes_str(&schema), "{}"), n == 15 ? TOOL_STRING : TOOL_ANY);
        bytes_deinit(&schema);
    }
    for (int n = 255; n <= 256; n++) { /* the longest name that is followed */
        char schema[400], defs[400];
        snprintf(schema, sizeof schema, "{\"$ref\":\"#/$defs/%0*d\"}", n, 0);
        snprintf(defs, sizeof defs, "{\"%0*d\":{\"type\":\"string\"}}", n, 0);
        CHECK_INT(kinds_of(schema, defs), n == 255 ? TOOL_STRING : TOOL_ANY);
    }
}

/* What is known of each part is kept while there are more and more of them. */
static void test_many(void)
{
    static const char *const TYPES[] = {"string", "number", "integer", "boolean", "object", "array", "null"};
    static const unsigned KINDS[] = {
        TOOL_STRING, TOOL_NUMBER | TOOL_INTEGER, TOOL_INTEGER, TOOL_BOOLEAN, TOOL_OBJECT, TOOL_ARRAY,
        TOOL_NULL};
    enum { MANY = 700 };
    bytes text = bytes_empty(1 << 20);
    bytes_append_str(&text,
                     "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{");
    for (int i = 0; i < MANY; i++) {
        bytes_printf(&text, "%s\"p%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"type\":\"%s\"}]}",
                     i ? "," : "", i, i % 7, TYPES[i / 7 % 7]);
    }
    bytes_append_str(&text, "},\"$defs\":{");
    for (int i = 0; i < 7; i++) {
        bytes_printf(&text, "%s\"d%d\":{\"type\":\"%s\"}", i ? "," : "", i, TYPES[i]);
    }
    bytes_append_str(&text, "}}}}]");
    tool_set *tools = tools_of(bytes_str(&text));
    const tool_def *f = tool_set_find(tools, "f", 1);
    CHECK(f && f->n_params == MANY);
    for (int i = 0; f && i < MANY; i++) {
        char name[16];
        const int n = snprintf(name, sizeof name, "p%d", i);
        CHECK_INT(tool_def_kinds(f, name, (size_t)n), KINDS[i % 7] | KINDS[i / 7 % 7]);
    }
    tool_set_destroy(tools);
    bytes_deinit(&text);
}

static void test_literals(void)
{
    static const struct {
        const char *text, *quote;
        unsigned kinds;
        const char *json;
    } ROWS[] = {
        {"5", NULL, TOOL_ANY, "5"},
        {" \n\t5", NULL, TOOL_ANY, "5"},
        {"  'a b'", NULL, TOOL_ANY, "\"a b\""},
        {"  word", NULL, TOOL_ANY, "\"word\""},
        {" <q>a<q>", "<q>", TOOL_STRING, "\"a\""},
        {"   ", NULL, TOOL_STRING, "\"\""},
        {"  True", NULL, TOOL_BOOLEAN, "true"},
        {" [1, 'x']", NULL, TOOL_ARRAY, "[1, \"x\"]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        bytes out = bytes_empty(200);
        tool_value_literal(&out, ROWS[i].text, strlen(ROWS[i].text), ROWS[i].quote, ROWS[i].kinds);
        CHECK_STR(bytes_str(&out), ROWS[i].json);
        bytes_deinit(&out);
    }
}

int main(void)
{
    test_kinds();
    test_many();
    test_literals();
    CHECK_DONE();
}
