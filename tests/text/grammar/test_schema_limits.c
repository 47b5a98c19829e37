/* what schemas may cost: steps grow with the size of the schema, not with its square; beyond a
 * limit its name is said; a hook ends the work. Counted, not timed.
 */
#include "base/bytes.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/grammar_spec.h"
#include "tests/check.h"
#include "text/grammar/grammar.h"

static err_detail d;

/* Builds the schema that is written in `text`. */
static err_code build(const bytes *text, work_count *w)
{
    json_doc *doc = NULL;
    grammar *g = NULL;
    CHECK_OK(json_parse(&doc, bytes_str(text), text->len, LIMIT_JSON_DEPTH, &d), d);
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc), .path = "schema"};
    d = (err_detail){0};
    const err_code err = grammar_build(&g, &spec, w, &d);
    grammar_destroy(g);
    json_free(doc);
    return err;
}

typedef void (*writer)(bytes *out, int n);

/* begin, n items with commas, end; @ in an item is its number. */
static void write_list(bytes *out, const char *begin, const char *item, const char *end, int n)
{
    bytes_append_str(out, begin);
    for (int i = 0; i < n; i++) {
        bytes_append_str(out, i ? "," : "");
        for (const char *p = item; *p; p++) {
            if (*p == '@') {
                bytes_printf(out, "%d", i);
            } else {
                bytes_append_char(out, *p);
            }
        }
    }
    bytes_append_str(out, end);
}

static void write_enum(bytes *out, int n)
{
    write_list(out, "{\"enum\":[", "\"v@\"", "]}", n);
}

static void write_two_enums(bytes *out, int n)
{
    write_list(out, "{\"allOf\":[{\"enum\":[", "\"v@\"", "]},", n);
    write_list(out, "{\"enum\":[", "\"v@\"", "]}]}", n);
}

static void write_enum_with_pattern(bytes *out, int n)
{
    write_list(out, "{\"pattern\":\"^v[0-9]+$\",\"enum\":[", "\"v@\"", "]}", n);
}

static void write_one_of_enums(bytes *out, int n)
{
    write_list(out, "{\"oneOf\":[", "{\"enum\":[\"a@\",\"b@\",\"c@\"]}", "]}", n);
}

static void write_one_of_objects(bytes *out, int n)
{
    write_list(out, "{\"oneOf\":[",
               "{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"k@\"}},\"required\":[\"kind\"]}",
               "]}", n);
}

static void write_properties(bytes *out, int n)
{
    write_list(out, "{\"properties\":{", "\"p@\":{\"type\":\"boolean\"}", "},", n);
    write_list(out, "\"required\":[", "\"p@\"", "]}", n);
}

static void write_references(bytes *out, int n)
{
    write_list(out, "{\"$defs\":{", "\"d@\":{\"type\":\"null\"}", "},\"properties\":{", n);
    write_list(out, "", "\"p@\":{\"$ref\":\"#/$defs/d@\"}", "}}", n);
}

static void write_items(bytes *out, int n)
{
    write_list(out, "{\"type\":\"array\",\"prefixItems\":[", "{\"type\":\"boolean\",\"title\":\"@\"}", "]}",
               n);
}

static void check_growth(const char *name, writer write, int n)
{
    uint64_t steps[2];
    for (int i = 0; i < 2; i++) {
        bytes text;
        work_count w = {0};
        bytes_init(&text, 64 << 20);
        write(&text, n << (2 * i));
        CHECK_OK(build(&text, &w), d);
        steps[i] = w.done;
        bytes_deinit(&text);
    }
    if (steps[1] > 6 * steps[0]) {
        fprintf(stderr, "%s: four times the size takes %.1f times the steps\n", name,
                (double)steps[1] / (double)steps[0]);
        CHECK(steps[1] <= 6 * steps[0]);
    }
}

static void test_growth(void)
{
    check_growth("enum", write_enum, 1000);
    check_growth("two enums", write_two_enums, 1000);
    check_growth("enum with a pattern", write_enum_with_pattern, 1000);
    check_growth("oneOf of enums", write_one_of_enums, 500);
    check_growth("oneOf of objects", write_one_of_objects, 450);
    check_growth("properties", write_properties, 1000);
    check_growth("references", write_references, 1000);
    check_growth("prefixItems", write_items, 1000);
}

static void check_refused(const char *schema, err_code wanted, const char *limit)
{
    bytes text;
    bytes_init(&text, 1 << 20);
    bytes_append_str(&text, schema);
    CHECK_INT(build(&text, NULL), wanted);
    if (!strstr(d.text, limit)) {
        fprintf(stderr, "%s: %s\n", limit, d.text);
        CHECK(strstr(d.text, limit) != NULL);
    }
    bytes_deinit(&text);
}

static void test_limits(void)
{
    check_refused("{\"type\":\"string\",\"pattern\":\"^((a{50}){50}){50}$\"}", ERR_LIMIT, "20000 states");
    check_refused("{\"type\":\"string\",\"pattern\":\"((a|b|c|d|e|f|g|h){2000}){20}\"}", ERR_LIMIT,
                  "20000 states");
    bytes text;
    bytes_init(&text, 64 << 20);
    for (int n = LIMIT_SCHEMA_PROPERTIES - 1; n <= LIMIT_SCHEMA_PROPERTIES + 1;
         n++) { /* as many, all required */
        write_list(&text, "{\"type\":\"object\",\"properties\":{", "\"p@\":{\"type\":\"null\"}",
                   "},\"required\":[", n);
        write_list(&text, "", "\"p@\"", "],\"additionalProperties\":false}", n);
        CHECK_INT(build(&text, NULL), n <= LIMIT_SCHEMA_PROPERTIES ? ERR_OK : ERR_LIMIT);
        CHECK(n <= LIMIT_SCHEMA_PROPERTIES || strstr(d.text, "more than 5000 properties"));
        bytes_clear(&text);
    }
    for (int n = LIMIT_SCHEMA_PROPERTIES; n <= LIMIT_SCHEMA_PROPERTIES + 1; n++) { /* none required */
        write_list(&text, "{\"additionalProperties\":false,\"properties\":{", "\"p@\":false", "}}", n);
        CHECK_INT(build(&text, NULL), n <= LIMIT_SCHEMA_PROPERTIES ? ERR_OK : ERR_LIMIT);
        CHECK_STR(d.text, n <= LIMIT_SCHEMA_PROPERTIES
                              ? ""
                              : "schema.properties: an object has more than 5000 properties");
        bytes_clear(&text);
    }
    write_enum(&text, 200000);
    CHECK_INT(build(&text, NULL), ERR_LIMIT);
    CHECK(strstr(d.text, "20000 states") != NULL);
    bytes_clear(&text);
    write_list(&text, "{\"anyOf\":[", "{\"type\":\"string\",\"pattern\":\"^@[a-z]*a{300}\"}", "]}", 1900);
    CHECK_INT(build(&text, NULL), ERR_LIMIT);
    CHECK(strstr(d.text, "150000000 steps") != NULL);
    CHECK_STR(d.name, "schema_too_complex");
    bytes_deinit(&text);
}

/* n parts hold for one value, each a `part` (@ is its number), and what stands behind them. */
static err_code build_parts(const char *part, int n, const char *behind)
{
    bytes text;
    bytes_init(&text, 1 << 20);
    write_list(&text, "{\"allOf\":[", part, "]", n);
    bytes_printf(&text, "%s}", behind);
    const err_code err = build(&text, NULL);
    bytes_deinit(&text);
    return err;
}

/* What holds for one value: as much as is allowed, and one more. */
static void test_parts(void)
{
    enum {
        SCHEMAS = 256,
        RULES = 32
    }; /* SCHEMA_MERGED_MAX with the one that lists them, SCHEMA_BOUNDS_MAX */
    static const struct {
        const char *part;
        int most;
        const char *behind, *param, *why;
    } cases[] = {
        {"{\"title\":\"@\"}", SCHEMAS - 1, "", "schema.allOf[255]",
         "schema.allOf[255]: more than 256 schemas hold for one value"},
        {"{\"title\":\"@\"}", SCHEMAS - 2, ",\"anyOf\":[{\"type\":\"null\"}]", "schema.anyOf",
         "schema.anyOf: all alternatives multiplied out are more than 2000"},
        {"{\"pattern\":\"a\"}", RULES, "", "schema.allOf[32].pattern",
         "schema.allOf[32].pattern: too many patterns hold for one value"},
        {"{\"format\":\"date\"}", RULES, "", "schema.allOf[32].format",
         "schema.allOf[32].format: too many patterns hold for one value"},
        {"{\"minimum\":@}", RULES, "", "schema.allOf[32].minimum",
         "schema.allOf[32].minimum: too many bounds hold for one value"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_OK(build_parts(cases[i].part, cases[i].most, cases[i].behind), d);
        CHECK_INT(build_parts(cases[i].part, cases[i].most + 1, cases[i].behind), ERR_LIMIT);
        CHECK_STR(d.param, cases[i].param);
        CHECK_STR(d.text, cases[i].why);
    }
    /* one that is named again and again counts once */
    CHECK_OK(build_parts("{\"$ref\":\"#/$defs/a\"}", SCHEMAS - 2, ",\"$defs\":{\"a\":{}}"), d);
    CHECK_INT(build_parts("{\"$ref\":\"#/$defs/a\"}", SCHEMAS - 1, ",\"$defs\":{\"a\":{}}"), ERR_LIMIT);
}

/* oneOf of a number and of a text behind so many references, one to the next. */
static err_code build_chain(int n)
{
    bytes text;
    bytes_init(&text, 1 << 20);
    bytes_append_str(&text, "{\"oneOf\":[{\"$ref\":\"#/$defs/d1\"},{\"type\":\"number\"}],\"$defs\":{");
    for (int i = 1; i < n; i++) {
        bytes_printf(&text, "\"d%d\":{\"$ref\":\"#/$defs/d%d\"},", i, i + 1);
    }
    bytes_printf(&text, "\"d%d\":{\"type\":\"string\"}}}", n);
    const err_code err = build(&text, NULL);
    bytes_deinit(&text);
    return err;
}

/* A reference to a name of so many characters, beside one that is a character shorter. */
static err_code build_name(int n)
{
    bytes text;
    bytes_init(&text, 1 << 20);
    for (int i = 0; i < 2; i++) {
        bytes_append_str(&text, i ? "\",\"$defs\":{\"" : "{\"$ref\":\"#/$defs/");
        for (int k = 0; k < n - i; k++) {
            bytes_append_char(&text, 'a');
        }
    }
    bytes_append_str(&text, "\":{\"type\":\"null\"},\"");
    for (int k = 0; k < n; k++) {
        bytes_append_char(&text, 'a');
    }
    bytes_append_str(&text, "\":{\"type\":\"boolean\"}}}");
    const err_code err = build(&text, NULL);
    bytes_deinit(&text);
    return err;
}

/* A reference leads to the whole name or nowhere: never to one that is shorter. */
static void test_names(void)
{
    CHECK_OK(build_name(1023), d);
    CHECK_INT(build_name(1024), ERR_INVALID);
    CHECK_STR(d.param, "schema.$ref");
    CHECK_INT(build_name(1025), ERR_INVALID);
}

/* Where they end is looked at behind 16 references, not more. */
static void test_chains(void)
{
    CHECK_OK(build_chain(1), d);
    CHECK_OK(build_chain(16), d);
    CHECK_INT(build_chain(17), ERR_UNSUPPORTED);
    CHECK_STR(d.param, "schema.oneOf");
}

/* A text is as long as is allowed, or a byte longer: never left out, never cut. */
static void test_long_texts(void)
{
    static const char *const forms[][2] = {
        {"{\"enum\":[\"", "\"]}"},
        {"{\"const\":[\"", "\"]}"},
        {"{\"enum\":[1,[{\"", "\":2}]]}"},
        {"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"", "\":{}}}"},
        {"{\"type\":\"object\",\"properties\":{\"", "\":{\"type\":\"null\"}}}"},
    };
    bytes text = bytes_empty((size_t)LIMIT_VALUE_BYTES * 2);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        for (int longer = 0; longer < 2; longer++) {
            bytes_clear(&text);
            bytes_append_str(&text, forms[i][0]);
            for (int k = 0; k < LIMIT_VALUE_BYTES - 2 + longer; k++) { /* and its quotes */
                bytes_append_char(&text, 'x');
            }
            bytes_append_str(&text, forms[i][1]);
            CHECK_INT(build(&text, NULL), longer ? ERR_LIMIT : ERR_OK);
        }
    }
    bytes_deinit(&text);
}

/* Numbers and lengths as they are written, and what is said of them. */
static void test_numbers(void)
{
    static const struct {
        grammar_spec_kind kind;
        const char *schema, *why; /* NULL: it is one */
    } cases[] = {
        {SPEC_SCHEMA, "{\"minimum\":1e39}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":1e40}", "schema.minimum: the bound 1e40 has too many digits"},
        {SPEC_SCHEMA, "{\"minimum\":1e41}", "schema.minimum: the bound 1e41 has too many digits"},
        {SPEC_SCHEMA, "{\"minimum\":0.1e40}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":0e40}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":0e41}", "schema.minimum: the bound 0e41 has too many digits"},
        {SPEC_SCHEMA, "{\"minimum\":1e-40}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":1e-41}", "schema.minimum: the bound 1e-41 has too many digits"},
        {SPEC_SCHEMA, "{\"minimum\":1.5e-40}", "schema.minimum: the bound 1.5e-40 has too many digits"},
        {SPEC_SCHEMA, "{\"minimum\":15e-40}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":1234567890123456789012345678901234567890}", NULL},
        {SPEC_SCHEMA, "{\"minimum\":12345678901234567890123456789012345678901}",
         "schema.minimum: the bound 12345678901234567890123456789012345678901 has too many digits"},
        {SPEC_SCHEMA, "{\"pattern\":\"a\",\"maxLength\":2000}",
         "schema: pattern needs too large an automaton (more than 20000 states, or 20000000 steps): make it "
         "simpler"},
        {SPEC_SCHEMA, "{\"pattern\":\"a\",\"maxLength\":2001}",
         "schema.maxLength: lengths above 2000 are not supported beside pattern or format"},
        {SPEC_SCHEMA, "{\"pattern\":\"a\",\"minLength\":2000}",
         "schema: pattern needs too large an automaton (more than 20000 states, or 20000000 steps): make it "
         "simpler"},
        {SPEC_SCHEMA, "{\"pattern\":\"a\",\"minLength\":2001}",
         "schema.minLength: lengths above 2000 are not supported beside pattern or format"},
        {SPEC_SCHEMA, "{\"type\":\"string\",\"minLength\":2001,\"maxLength\":3000}", NULL},
        {SPEC_PARAMETERS, "{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":200}}}", NULL},
        {SPEC_PARAMETERS, "{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":2000}}}",
         "schema.properties.a: pattern needs too large an automaton (more than 20000 states, or 20000000 "
         "steps): make it "
         "simpler"},
        {SPEC_PARAMETERS, "{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":2001}}}",
         "schema.properties.a.maxLength: lengths above 2000 are not supported for a parameter"},
        {SPEC_PARAMETERS, "{\"properties\":{\"a\":{\"type\":\"string\",\"minLength\":2001}}}",
         "schema.properties.a.minLength: lengths above 2000 are not supported for a parameter"},
        {SPEC_PARAMETERS,
         "{\"properties\":{\"a\":{\"allOf\":[{\"minLength\":3},{\"type\":\"string\",\"maxLength\":2001},{"
         "\"maxLength\":3000}]}}}",
         "schema.properties.a.allOf[1].maxLength: lengths above 2000 are not supported for a parameter"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_doc *doc = NULL;
        grammar *g = NULL;
        CHECK_OK(json_parse(&doc, cases[i].schema, strlen(cases[i].schema), LIMIT_JSON_DEPTH, &d), d);
        const grammar_spec spec = {.kind = cases[i].kind, .schema = json_root(doc), .path = "schema"};
        d = (err_detail){0};
        const char *const why = cases[i].why;
        CHECK_INT(grammar_build(&g, &spec, NULL, &d), !why                       ? ERR_OK
                                                      : strstr(why, "too large") ? ERR_LIMIT
                                                                                 : ERR_UNSUPPORTED);
        CHECK_STR(d.text, why ? why : "");
        grammar_destroy(g);
        json_free(doc);
    }
}

static bool stop_at_third(void *ctx)
{
    return ++*(int *)ctx == 3;
}

static void test_cancel(void)
{
    int asked = 0;
    bytes text;
    work_count w = {.cancelled = stop_at_third, .ctx = &asked};
    bytes_init(&text, 64 << 20);
    write_one_of_enums(&text, 2000);
    CHECK_INT(build(&text, &w), ERR_CANCELLED);
    CHECK_INT(asked, 3);
    CHECK(w.done < 4 * (uint64_t)WORK_GAP);
    bytes_deinit(&text);
}

int main(void)
{
    test_growth();
    test_limits();
    test_parts();
    test_names();
    test_chains();
    test_long_texts();
    test_numbers();
    test_cancel();
    CHECK_DONE();
}
