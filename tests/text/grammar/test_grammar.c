/* grammars of schemas: what they let through and what not, what is refused, masks against single
 * tokens, whole forms of answers, long texts.
 */
#include "engine/grammar_spec.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "tests/check.h"
#include "tests/text/grammar/grammar_walk.h"

static err_detail d;
static tokenizer *tok;
static token_trie *trie;
static int32_t stop;

static grammar *build(const grammar_spec *spec)
{
    grammar *g = NULL;
    CHECK_OK(grammar_build(&g, spec, NULL, &d), d);
    if (!g) {
        exit(1);
    }
    return g;
}

static grammar_cursor *open_cursor(const grammar *g, bool thinking)
{
    grammar_cursor *c = NULL;
    CHECK_OK(grammar_cursor_create(&c, g, trie, thinking, &d), d);
    if (!c) {
        exit(1);
    }
    return c;
}

/* Feeds text[0..len) byte by byte; false once a byte is refused. */
static bool feed(grammar_cursor *c, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!grammar_cursor_accept(c, token_trie_find(trie, text + i, 1))) {
            return false;
        }
    }
    return true;
}

static bool accepts(const grammar *g, const char *text, bool thinking)
{
    grammar_cursor *c = open_cursor(g, thinking);
    const bool ok = feed(c, text, strlen(text)) && grammar_cursor_is_complete(c, grammar_cursor_state(c));
    CHECK_INT(grammar_cursor_failure(c), ERR_OK);
    grammar_cursor_destroy(c);
    return ok;
}

static json_doc *parse(const char *schema)
{
    json_doc *doc = NULL;
    CHECK_OK(json_parse(&doc, schema, strlen(schema), LIMIT_JSON_DEPTH, &d), d);
    return doc;
}

/* `yes` and `no`: texts with | between them. */
static void check_texts(const grammar *g, const char *what, const char *texts, bool wanted)
{
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", texts);
    for (char *text = copy, *end; text && texts[0]; text = end) {
        end = strchr(text, '|');
        if (end) {
            *end++ = '\0';
        }
        if (accepts(g, text, false) != wanted) {
            fprintf(stderr, "  %s: %s should be %s\n", what, text, wanted ? "accepted" : "refused");
            check_fail(__FILE__, __LINE__, "text");
        }
    }
}

static const struct {
    const char *schema, *yes, *no;
} CASES[] = {
    {"{\"type\":\"boolean\"}", "true|false", "null|tru|true |\"true\""},
    {"{\"type\":[\"integer\",\"null\"]}", "0|-7|123456|null", "01|-0|1.0|1e3|-"},
    {"{\"type\":\"number\"}", "0|-0|1.5|-12.25e-3|7E4", "01|.5|1.|1e|+1|NaN|1234567890123456"},
    {"{\"type\":\"integer\",\"minimum\":-5,\"maximum\":120}", "-5|-1|0|9|99|120", "-6|-10|121|130|1000|5.0"},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":12}", "10|11", "9|12|1|99"},
    {"{\"type\":\"number\",\"minimum\":0.25,\"maximum\":1e1}", "0.25|0.3|1|9.99|10|10.0",
     "0.2|0.24|0|10.01|11|-1|100"},
    {"{\"type\":\"number\",\"exclusiveMinimum\":-0.5,\"exclusiveMaximum\":0}", "-0.4|-0.01|-0.499",
     "-0.5|-0.6|0|0.1|-0|-1"},
    {"{\"type\":\"number\",\"minimum\":100}", "100|1000|100.5|2345.5", "99|99.9|-100|0"},
    /* 15 digits in all where there are bounds, and at least one behind the point */
    {"{\"type\":\"number\",\"minimum\":0,\"maximum\":9}", "1.12345678901234|0.5", "1.123456789012345|1e0"},
    {"{\"type\":\"number\",\"maximum\":12345}", "1.1234567891|-123456789012345",
     "1.12345678912|-1234567890123456"},
    {"{\"type\":\"number\",\"maximum\":1234567890}", "1.12345", "1.123456"},
    {"{\"type\":\"number\",\"maximum\":12345678901234}", "1.1", "1.12"},
    {"{\"type\":\"number\",\"maximum\":123456789012345}", "1.1|123456789012345|-1234567890123456",
     "1.12|123456789012346|-12345678901234567"},
    {"{\"type\":\"number\",\"minimum\":1234567890123456}",
     "1234567890123456.5|9999999999999999|12345678901234567", "123456789012345678|1.5"},
    {"{\"type\":\"number\",\"minimum\":0.12345678901234567}", "0.12345678901234567|0.5",
     "0.123456789012345671"},
    {"{\"type\":\"number\",\"minimum\":0.123456789012345}", "0.123456789012345|0.5", "0.1234567890123451"},
    {"{\"type\":\"integer\",\"minimum\":5}", "123456789012345678", "1234567890123456789"},
    {"{\"type\":\"integer\",\"minimum\":123456789012345678}", "9999999999999999999", "12345678901234567890"},
    {"{\"type\":\"string\",\"maxLength\":3}",
     "\"\"|\"abc\"|\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"|\"\\ud83d\\ude00xy\"|\"\\n\\\"/\"",
     "\"abcd\"|\"\\ud83d\"|\"\\ude00\"|\"\\u0000\"|\"\\x\"|abc|\"a"},
    {"{\"type\":\"string\",\"minLength\":2}", "\"ab\"|\"abcdef\"|\"\\u00e4\\t\"", "\"\"|\"a\"|\"\\u00e4\""},
    {"{\"type\":\"string\",\"pattern\":\"^[a-c]{2}[^\\\\d]?$\"}", "\"ab\"|\"aax\"|\"bb\\\\\"|\"cc\\n\"",
     "\"a\"|\"abcc\"|\"ab1\"|\"abd \""},
    {"{\"type\":\"string\",\"pattern\":\"b+\"}", "\"b\"|\"abba\"|\"\xc3\xa4 b\"", "\"\"|\"aa\""},
    {"{\"type\":\"string\",\"pattern\":\"^(a|b$)\"}", "\"a\"|\"axx\"|\"b\"", "\"bx\"|\"ca\""},
    {"{\"pattern\":\"^\\\\w+$\",\"maxLength\":3}", "\"a\"|\"a_9\"", "\"\"|\"abcd\"|7"},
    {"{\"type\":\"string\",\"format\":\"date\"}", "\"2024-02-29\"|\"2000-02-29\"|\"1999-12-31\"",
     "\"2023-02-29\"|\"1900-02-29\"|\"2024-04-31\"|\"2024-13-01\"|\"2024-1-1\""},
    {"{\"type\":\"string\",\"format\":\"ipv4\"}", "\"1.2.3.4\"|\"255.255.255.0\"",
     "\"256.1.1.1\"|\"1.2.3\"|\"01.2.3.4\""},
    {"{\"enum\":[\"a\\\"b\",\"ab\",\"abc\",1,null,[1,{\"x\":\"y\"}]]}",
     "\"a\\\"b\"|\"ab\"|\"abc\"|1|null|[1,{\"x\":\"y\"}]|[1, {\"x\": \"y\"}]", "\"a\"|\"abcd\"|2|[1]"},
    {"{\"enum\":[\"a\",\"bbb\",1,20,null],\"maxLength\":2}", "\"a\"|1|20|null", "\"bbb\"|2"},
    {"{\"enum\":[\"a\",\"bbb\",1,20,30],\"minimum\":5}", "\"a\"|\"bbb\"|20|30", "1"},
    {"{\"const\":\"\xe2\x82\xac\"}", "\"\xe2\x82\xac\"", "\"\"|\"\\u20ac\""},
    {"{\"type\":\"string\",\"enum\":[\"a\",\"bbb\",1],\"maxLength\":2}", "\"a\"", "\"bbb\"|1"},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
     "[1,2]|[1, 2,3]|[ 1,2 ]|[\n  1,\n  2\n]", "[]|[1]|[1,2,3,4]|[1,2,]|[1 ,2]|[  1,2]|[1,\"2\"]"},
    {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"boolean\"}],\"items\":false}",
     "[]|[1]|[1,true]", "[true]|[1,true,1]"},
    {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"null\"},"
     "\"minItems\":2}",
     "[1,null]|[1,null,null]", "[1]|[null,null]"},
    {"{\"type\":\"array\",\"maxItems\":0}", "[]", "[1]"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},\"c\":{}"
     "},\"required\":[\"b\"]}",
     "{\"b\":true}|{\"a\":1,\"b\":true}|{\"b\":true,\"c\":[{}]}|{ \"a\": 1, \"b\": false, \"c\": \"\" }",
     "{}|{\"a\":1}|{\"b\":true,\"a\":1}|{\"b\":true,\"d\":1}|{\"b\":true,}|{\"b\":1}|{\"b\" :true}"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"integer\"}}",
     "{}|{\"a\":\"x\"}|{\"b\":1}|{\"a\":1,\"b\":2,\"aa\":3}|{\"\":0}",
     "{\"b\":\"x\"}|{\"b\":1,\"a\":2}|{\"\\u0061\":1}"},
    {"{\"type\":\"object\",\"required\":[\"z\"]}", "{\"z\":1}|{\"z\":1,\"y\":2}", "{}|{\"y\":2}"},
    {"{\"type\":\"object\",\"properties\":{\"a\":false,\"b\":true}}", "{}|{\"b\":0}", "{\"a\":0}"},
    {"{\"anyOf\":[{\"type\":\"string\",\"maxLength\":1},{\"type\":\"integer\"},{\"properties\":{\"t\":{"
     "\"const\":1}},\"required\":[\"t\"]}]}",
     "\"a\"|12|{\"t\":1}", "\"ab\"|true|{\"t\":2}"},
    {"{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"n\":{\"type\":\"integer\"}},\"required\":[\"k\","
     "\"n\"]},"
     "{\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"]}]}",
     "{\"k\":\"a\",\"n\":1}|{\"k\":\"b\"}", "{\"k\":\"a\"}|{\"k\":\"b\",\"n\":1}"},
    {"{\"oneOf\":[{\"const\":\"a\"},{\"enum\":[\"b\",\"c\"]},{\"type\":\"integer\"}]}", "\"a\"|\"c\"|12",
     "\"d\"|1.5|null"},
    {"{\"oneOf\":[{\"enum\":[1,\"a\",null]},{\"enum\":[\"b\",2,true]}]}", "1|\"a\"|null|\"b\"|2|true",
     "false|3|\"c\""},
    {"{\"oneOf\":[{\"const\":1},{\"const\":\"a\"},{\"const\":2},{\"const\":\"b\"},{\"const\":true},{"
     "\"const\":null},{"
     "\"const\":3},{\"const\":\"c\"},{\"const\":false}]}",
     "1|2|3|\"a\"|\"b\"|\"c\"|true|false|null", "4|\"d\""},
    {"{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":3}}},{\"properties\":{\"a\":{\"type\":\"integer\"},"
     "\"b\":{\"type\":\"null\"}},"
     "\"required\":[\"a\"]}]}",
     "{\"a\":3}|{\"a\":44,\"b\":null}", "{\"a\":2}|{\"b\":null}|{\"a\":3.5}"},
    {"{\"properties\":{\"x\":{\"type\":\"integer\"}},\"anyOf\":[{\"required\":[\"x\"]},{\"properties\":{"
     "\"y\":{\"type\":\"null\"}},"
     "\"required\":[\"y\"]}]}",
     "{\"x\":1}|{\"x\":1,\"y\":null}|{\"y\":null}", "{}|{\"y\":1}"},
    {"{\"$ref\":\"#/$defs/"
     "node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":"
     "{\"anyOf\":[{\"$ref\":\"#/$defs/node\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}",
     "{\"v\":1,\"next\":null}|{\"v\":1,\"next\":{\"v\":2,\"next\":null}}", "{\"v\":1}|{\"v\":1,\"next\":{}}"},
    {"{\"definitions\":{\"a/b~\":{\"const\":5}},\"type\":\"array\",\"items\":{\"$ref\":\"#/definitions/"
     "a~1b~0\"}}",
     "[5,5]|[]", "[6]"},
    {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "null", "1|{}"},
    {"{\"type\":\"string\",\"nullable\":true}", "null|\"\"", "1"},
    {"{\"allOf\":[{\"additionalProperties\":{\"type\":\"integer\"}},{\"properties\":{\"a\":{\"minimum\":3}}}]"
     "}",
     "{}|{\"a\":3}|{\"a\":3,\"b\":1}|{\"b\":1}", "{\"a\":2}|{\"b\":null}|{\"a\":3.5}"},
    /* patterns that nothing satisfies */
    {"{\"anyOf\":[{\"type\":\"null\"},{\"enum\":[\"a\",\"\"],\"pattern\":\"a^b\"}]}", "null", "\"a\"|\"\""},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"$"
     "a\"}]}]}",
     "null", "\"a\"|\"\""},
    {"{\"title\":\"x\",\"default\":3,\"x-own\":[],\"type\":\"null\"}", "null", "3"},
    {"true", "1|\"\"|{\"a\":[1,{\"b\":null}]}|[]", "x|{a:1}|[1,]|{\"a\":1,,}"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        json_doc *doc = parse(CASES[i].schema);
        const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc), .path = "schema"};
        grammar *g = build(&spec);
        check_texts(g, CASES[i].schema, CASES[i].yes, true);
        check_texts(g, CASES[i].schema, CASES[i].no, false);
        grammar_destroy(g);
        json_free(doc);
    }
}

static const struct {
    const char *schema;
    err_code code;
    const char *param;
} REFUSED[] = {
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}}}", ERR_UNSUPPORTED, "schema.properties.a.not"},
    {"{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"items\":{\"multipleOf\":3}}}}", ERR_UNSUPPORTED,
     "schema.$defs.x.items.multipleOf"},
    {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"multipleOf\":3}}}",
     ERR_UNSUPPORTED, "schema.$defs.x.multipleOf"},
    {"{\"properties\":{\"a\":{\"allOf\":[{\"not\":{}},true]}}}", ERR_UNSUPPORTED,
     "schema.properties.a.allOf[0].not"},
    {"{\"allOf\":[true,{},{\"not\":{}}]}", ERR_UNSUPPORTED, "schema.allOf[2].not"},
    {"{\"type\":\"array\",\"uniqueItems\":true}", ERR_UNSUPPORTED, "schema.uniqueItems"},
    {"{\"patternProperties\":{}}", ERR_UNSUPPORTED, "schema.patternProperties"},
    {"{\"type\":\"string\",\"pattern\":\"(?=a)\"}", ERR_UNSUPPORTED, "schema.pattern"},
    {"{\"type\":\"string\",\"pattern\":\"a(\"}", ERR_INVALID, "schema.pattern"},
    {"{\"type\":\"string\",\"pattern\":\"(a|b)*a(a|b){16}\"}", ERR_LIMIT, "schema.pattern"},
    {"{\"type\":\"string\",\"format\":\"color\"}", ERR_UNSUPPORTED, "schema.format"},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":\"a\"},{\"type\":\"string\"}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"enum\":[\"a\",1]}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":\"a\"},{\"enum\":[\"b\",\"a\"]}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":1},{\"const\":1.0}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":null},{\"const\":null}]}", ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":1},{\"const\":\"a\"},{\"const\":2},{\"const\":\"b\"},{\"const\":true},{"
     "\"const\":null},{"
     "\"const\":3},{\"const\":\"c\"},{\"const\":1}]}",
     ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"oneOf\":[{\"const\":\"a\"},{\"const\":1},{\"const\":2},{\"const\":true},{\"const\":\"b\"},{"
     "\"const\":null},{"
     "\"const\":3},{\"const\":\"c\"},{\"const\":\"a\"}]}",
     ERR_UNSUPPORTED, "schema.oneOf"},
    /* more values behind references than stand in the list itself */
    {"{\"oneOf\":[{\"$ref\":\"#/$defs/"
     "a\"},{\"const\":1},{\"const\":2},{\"const\":3},{\"const\":4},{\"const\":5},"
     "{\"const\":6},{\"const\":\"z\"}],\"$defs\":{\"a\":{\"enum\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\","
     "\"h\",\"i\",\"z\"]}}}",
     ERR_UNSUPPORTED, "schema.oneOf"},
    {"{\"type\":\"text\"}", ERR_INVALID, "schema.type"},
    {"{\"type\":\"string\",\"minLength\":-1}", ERR_INVALID, "schema.minLength"},
    {"{\"enum\":[]}", ERR_INVALID, "schema.enum"},
    {"{\"anyOf\":[]}", ERR_INVALID, "schema.anyOf"},
    {"{\"anyOf\":[3]}", ERR_INVALID, "schema.anyOf[0]"},
    {"{\"$ref\":\"#/$defs/none\"}", ERR_INVALID, "schema.$ref"},
    {"{\"$ref\":\"https://example.org/x\"}", ERR_INVALID, "schema.$ref"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", ERR_INVALID,
     "schema"},
    {"{\"$ref\":\"#\"}", ERR_INVALID, "schema"},
    {"false", ERR_INVALID, "schema"},
    {"{\"allOf\":[false,true]}", ERR_INVALID, "schema"},
    {"{\"allOf\":[true,false]}", ERR_INVALID, "schema"},
    {"{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}", ERR_INVALID, "schema"},
    {"{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", ERR_INVALID, "schema"},
    {"{\"minProperties\":2,\"type\":\"object\"}", ERR_UNSUPPORTED, "schema.minProperties"},
    {"[]", ERR_INVALID, "schema"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        json_doc *doc = parse(REFUSED[i].schema);
        grammar *g = NULL;
        const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc), .path = "schema"};
        const err_code err = grammar_build(&g, &spec, NULL, &d);
        if (err != REFUSED[i].code || strcmp(d.param, REFUSED[i].param) != 0) {
            fprintf(stderr, "  %s: error %s of %s: %s\n", REFUSED[i].schema, err_name(err), d.param, d.text);
            check_fail(__FILE__, __LINE__, "refused");
        }
        CHECK(g == NULL);
        grammar_destroy(g);
        json_free(doc);
    }
}

/* Along random walks: the mask allows exactly the tokens that may be read one after the other. */
static void test_masks(void)
{
    static const char *const SCHEMAS[] = {
        "{\"type\":\"object\"}",
        "{\"properties\":{\"s\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":9},\"n\":{\"type\":"
        "\"number\"}},\"required\":[\"s\",\"n\"]}",
        "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":4},{\"type\":\"string\",\"pattern\":\"^the .*$\"}]}",
    };
    for (size_t i = 0; i < sizeof SCHEMAS / sizeof SCHEMAS[0]; i++) {
        json_doc *doc = parse(SCHEMAS[i]);
        const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
        grammar *g = build(&spec);
        grammar_cursor *c = open_cursor(g, false);
        uint64_t random = i + 1;
        for (int k = 0; k < 40; k++) {
            const int32_t state = grammar_cursor_state(c);
            const uint64_t *mask = grammar_cursor_mask(c, state);
            int wrong = 0;
            for (int32_t id = 0; id < trie->n_tokens; id++) {
                size_t len;
                const char *text = token_trie_bytes(trie, id, &len);
                const bool added = text && len < 64 && text[0] == '<' && text[len - 1] == '>' && len > 2;
                wrong += !added &&
                         token_mask_has(mask, id) != (grammar_cursor_next(c, state, id) != GRAMMAR_REFUSED);
            }
            CHECK_INT(wrong, 0);
            const int32_t id =
                walk_pick(mask, trie->n_words, walk_random(&random) % walk_count(mask, trie->n_words));
            CHECK(grammar_cursor_accept(c, id));
            if (id == stop) {
                break;
            }
        }
        grammar_cursor_destroy(c);
        grammar_destroy(g);
        json_free(doc);
    }
}

static void test_end(void)
{
    json_doc *doc = parse("{\"enum\":[1,12]}");
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
    grammar *g = build(&spec);
    grammar_cursor *c = open_cursor(g, false);
    CHECK(!token_mask_has(grammar_cursor_mask(c, grammar_cursor_state(c)), stop));
    CHECK(feed(c, "1", 1));
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(token_mask_has(mask, stop) && token_mask_has(mask, token_trie_find(trie, "2", 1)));
    CHECK(feed(c, "2", 1));
    mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK_INT(walk_count(mask, trie->n_words), 1);
    CHECK(token_mask_has(mask, stop));
    CHECK(grammar_cursor_accept(c, stop));
    CHECK(token_mask_has(grammar_cursor_mask(c, grammar_cursor_state(c)), stop));
    CHECK(!grammar_cursor_accept(c, token_trie_find(trie, "2", 1)));
    CHECK(grammar_cursor_mask(c, grammar_cursor_state(c)) == NULL);
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

/* Bytes of texts are told apart, whichever of them was looked at before. */
static void test_kinds(void)
{
    json_doc *doc = parse("{\"const\":\"\xc3\xa4\xc3\xa5\xc3\xa6\"}");
    grammar *g = build(&(grammar_spec){.kind = SPEC_SCHEMA, .schema = json_root(doc)});
    grammar_cursor *c = open_cursor(g, false);
    CHECK(feed(c, "\"", 1));
    for (int k = 0; k < 3; k++) {
        CHECK(feed(c, "\xc3", 1));
        const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
        for (int byte = 0xa0; byte < 0xc0 && mask; byte++) {
            const char text = (char)byte;
            CHECK_INT(token_mask_has(mask, token_trie_find(trie, &text, 1)), byte == 0xa4 + k);
        }
        const char next = (char)(0xa4 + k);
        CHECK(feed(c, &next, 1));
    }
    CHECK(feed(c, "\"", 1));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

static void test_thinking(void)
{
    json_doc *doc = parse("{\"type\":\"null\"}");
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
    grammar *g = build(&spec);
    CHECK(accepts(g, "hm <x></thin</think>\n\nnull", true));
    CHECK(accepts(g, "</think>null", true));
    CHECK(!accepts(g, "null", true));
    CHECK(!accepts(g, "</think>\n\n\nnull", true));
    CHECK(!accepts(g, "\nnull", false));
    grammar_cursor *c = open_cursor(g, true);
    const int32_t close = token_trie_find(trie, "</think>", 8);
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(close >= 0 && token_mask_has(mask, close) && !token_mask_has(mask, stop));
    CHECK(grammar_cursor_accept(c, close) && feed(c, "null", 4));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

/* A special token stands where it is a marker or ends a free text, and nowhere else. */
static void test_special(void)
{
    const grammar_spec parts[] = {{.kind = SPEC_MARKER, .text = "<|im_start|>"},
                                  {.kind = SPEC_UNTIL, .text = "<|im_start|>"},
                                  {.kind = SPEC_SCHEMA}};
    const grammar_spec all = {.kind = SPEC_SEQUENCE, .items = parts, .n_items = 3};
    grammar *g = build(&all);
    grammar_cursor *c = open_cursor(g, false);
    const int32_t marker = token_trie_find(trie, "<|im_start|>", 12);
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(marker >= 0 && token_mask_has(mask, marker));
    CHECK_INT(walk_count(mask, trie->n_words), 1);
    CHECK(grammar_cursor_accept(c, marker) && feed(c, "so", 2));
    mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(token_mask_has(mask, marker) && !token_mask_has(mask, stop));
    CHECK(grammar_cursor_accept(c, marker) && feed(c, "{\"", 2));
    CHECK(!token_mask_has(grammar_cursor_mask(c, grammar_cursor_state(c)), marker));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
}

/* A call of one of two tools, in both forms. */
static void test_forms(void)
{
    json_doc *doc = parse(
        "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},"
        "\"unit\":{\"enum\":[\"m\",\"km\"]},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
        "\"id\":{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}},\"required\":[\"text\",\"unit\"]}");
    const json *schema = json_root(doc);
    const grammar_spec xml[] = {{.kind = SPEC_MARKER, .text = "<tool_call>"},
                                {.kind = SPEC_TEXT, .text = "\n<function=f>\n"},
                                {.kind = SPEC_PARAMETERS, .schema = schema},
                                {.kind = SPEC_TEXT, .text = "</function>\n"},
                                {.kind = SPEC_MARKER, .text = "</tool_call>"}};
    const grammar_spec plain[] = {{.kind = SPEC_MARKER, .text = "<tool_call>"},
                                  {.kind = SPEC_TEXT, .text = "\n{\"name\": \"g\", \"arguments\": "},
                                  {.kind = SPEC_SCHEMA},
                                  {.kind = SPEC_TEXT, .text = "}\n</tool_call>"}};
    const grammar_spec both[] = {{.kind = SPEC_SEQUENCE, .items = xml, .n_items = 5},
                                 {.kind = SPEC_SEQUENCE, .items = plain, .n_items = 4}};
    const grammar_spec calls[] = {{.kind = SPEC_CHOICE, .items = both, .n_items = 2},
                                  {.kind = SPEC_CHOICE, .items = both, .n_items = 2}};
    const grammar_spec all = {.kind = SPEC_REPEAT, .items = calls, .n_items = 2, .min = 1, .max = 2};
    grammar *g = build(&all);
    const char *call = "<tool_call>\n<function=f>\n<parameter=text>\na "
                       "\"b\"\n</param\n</parameter>\n<parameter=n>\n-4\n</parameter>\n"
                       "<parameter=unit>\nkm\n</parameter>\n<parameter=tags>\n[\"x\", "
                       "\"y\"]\n</parameter>\n<parameter=id>\nab\n"
                       "</parameter>\n</function>\n</tool_call>";
    bytes two;
    bytes_init(&two, 4096);
    bytes_printf(&two, "%s<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\":1}}\n</tool_call>", call);
    CHECK(accepts(g, bytes_str(&two), false));
    bytes_printf(&two, "%s", call);
    CHECK(!accepts(g, bytes_str(&two), false)); /* a third call */
    bytes_deinit(&two);
    CHECK(!accepts(
        g, "<tool_call>\n<function=f>\n<parameter=text>\na\n</parameter>\n</function>\n</tool_call>", false));
    CHECK(!accepts(g,
                   "<tool_call>\n<function=f>\n<parameter=text>\na\n</parameter>\n<parameter=unit>\n\"m\"\n</"
                   "parameter>\n"
                   "</function>\n</tool_call>",
                   false));
    grammar_cursor *c = open_cursor(g, false);
    const int32_t marker = token_trie_find(trie, "<tool_call>", 11);
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(marker >= 0 && token_mask_has(mask, marker));
    CHECK_INT(walk_count(mask, trie->n_words), 1);
    /* behind a call the answer ends, or another marker follows, which is no text */
    const char *const plain_call = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
    CHECK(feed(c, plain_call, strlen(plain_call)));
    mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(mask && token_mask_has(mask, marker) && token_mask_has(mask, stop));
    CHECK_INT(walk_count(mask, trie->n_words), 2);
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

/* A value of an enum that holds what closes a parameter cannot be written. */
static void test_raw_values(void)
{
    json_doc *doc = parse("{\"properties\":{\"u\":{\"enum\":[\"a\",\"b\\n</parameter>\",\"c\\n</"
                          "parameter>d\",\"e</parameter>\",7]}},"
                          "\"required\":[\"u\"]}");
    const grammar_spec spec = {.kind = SPEC_PARAMETERS, .schema = json_root(doc)};
    grammar *g = build(&spec);
    CHECK(accepts(g, "<parameter=u>\na\n</parameter>\n", false));
    CHECK(accepts(g, "<parameter=u>\ne</parameter>\n</parameter>\n", false));
    CHECK(accepts(g, "<parameter=u>\n7\n</parameter>\n", false));
    CHECK(!accepts(g, "<parameter=u>\nb\n</parameter>\n</parameter>\n", false));
    CHECK(!accepts(g, "<parameter=u>\nc\n</parameter>d\n</parameter>\n", false));
    CHECK(!accepts(g, "<parameter=u>\n\"a\"\n</parameter>\n", false));
    grammar_destroy(g);
    json_free(doc);
}

static bool may_come(grammar_cursor *c, const char *byte)
{
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    return mask && token_mask_has(mask, token_trie_find(trie, byte, 1));
}

/* More states than a cursor remembers, as deep as they may be: it forgets and goes on. */
static void check_long_text(int n_before)
{
    enum { N = 100000 };
    json_doc *doc = parse("{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#\"},"
                          "{\"type\":\"string\",\"maxLength\":100000}]}}");
    grammar_spec specs[8] = {{.kind = SPEC_SCHEMA, .schema = json_root(doc)}}, parts[8][2];
    const grammar_spec end = {.kind = SPEC_TEXT, .text = "."};
    for (int i = 0; i < n_before; i++) { /* each is a frame more */
        parts[i][0] = specs[i];
        parts[i][1] = end;
        specs[i + 1] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts[i], .n_items = 2};
    }
    grammar *g = build(&specs[n_before]);
    grammar_cursor *c = open_cursor(g, false);
    const int32_t a = token_trie_find(trie, "a", 1);
    int depth = 0;
    while (depth < 1000 && may_come(c, "[")) {
        CHECK(feed(c, "[", 1));
        depth++;
    }
    while (depth > 0 && !may_come(c, "\"")) { /* lists that must stay empty, or have no room for one more */
        CHECK(feed(c, "]", 1));
        depth--;
        CHECK(!may_come(c, ",") || feed(c, ",", 1));
    }
    bool ok = feed(c, "\"", 1);
    for (int i = 0; i < N && ok; i++) {
        ok = grammar_cursor_accept(c, a);
    }
    CHECK(ok);
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK(mask && !token_mask_has(mask, a));
    CHECK(feed(c, "\"", 1));
    for (; depth > 0; depth--) {
        CHECK(feed(c, "]", 1));
    }
    CHECK(feed(c, "......", (size_t)n_before));
    CHECK(grammar_cursor_is_complete(c, grammar_cursor_state(c)));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

/* As deep as is allowed the mask lets nothing deeper begin, and everything can still be closed. */
/* A state has one number, on whichever way it is reached: the states behind one another, all ways from each, are as many
 * as there are. The loops come back to the first ones when many others have been numbered. */
static void test_states(void)
{
    enum { MOST = 2000 };
    static const struct {
        const char *schema;
        int32_t n_states;
    } LOOPS[] = {
        {"{\"type\":\"string\",\"pattern\":\"^([a-c][d-f]?[g-z]{120})*$\"}", 125},
        {"{\"type\":\"string\",\"pattern\":\"^(a(b|c[d-f]){90}|g{100})*$\"}", 284},
        {"{\"items\":{\"type\":\"string\",\"maxLength\":100},\"type\":\"array\"}", 1609},
    };
    for (size_t i = 0; i < ARRAY_LEN(LOOPS); i++) {
        json_doc *doc = parse(LOOPS[i].schema);
        grammar *g = build(&(grammar_spec){.kind = SPEC_SCHEMA, .schema = json_root(doc), .path = "schema"});
        grammar_cursor *c = open_cursor(g, false);
        int32_t n_states = grammar_cursor_state(c) + 1;
        for (int32_t state = 0; state < n_states && n_states < MOST; state++) {
            for (char byte = ' '; byte < 127; byte++) {
                const int32_t next = grammar_cursor_next(c, state, token_trie_find(trie, &byte, 1));
                n_states = next >= n_states ? next + 1 : n_states;
            }
        }
        CHECK_INT(n_states, LOOPS[i].n_states);
        /* More masks than are kept: they are right when they are asked for again. */
        static uint32_t sums[MOST];
        for (int32_t k = 0; k < 2 * n_states; k++) {
            const int32_t state = k % n_states;
            const uint64_t *mask = grammar_cursor_mask(c, state);
            uint32_t sum = 2166136261u;
            for (size_t w = 0; mask && w < trie->n_words; w++) {
                sum = (sum ^ (uint32_t)(mask[w] ^ mask[w] >> 32)) * 16777619u;
            }
            CHECK(k < n_states || sums[state] == sum);
            sums[state] = sum;
        }
        grammar_cursor_destroy(c);
        grammar_destroy(g);
        json_free(doc);
    }
}

/* A cursor of a schema over a vocabulary of the test's own. */
typedef struct own_cursor {
    tokenizer *tok;
    token_trie *trie;
    json_doc *doc;
    grammar *grammar;
    grammar_cursor *cursor;
} own_cursor;

/* text: a tokenizer's file, which is freed. */
static own_cursor open_own(bytes *text, const char *schema)
{
    own_cursor own = {.doc = parse(schema)};
    CHECK_OK(tokenizer_open_json(&own.tok, bytes_str(text), text->len, "test", &d), d);
    CHECK_OK(token_trie_create(&own.trie, own.tok, NULL, 0, &d), d);
    own.grammar = build(&(grammar_spec){.kind = SPEC_SCHEMA, .schema = json_root(own.doc)});
    CHECK_OK(grammar_cursor_create(&own.cursor, own.grammar, own.trie, false, &d), d);
    bytes_deinit(text);
    return own;
}

static void close_own(own_cursor *own)
{
    grammar_cursor_destroy(own->cursor);
    grammar_destroy(own->grammar);
    json_free(own->doc);
    token_trie_destroy(own->trie);
    tokenizer_close(own->tok);
}

/* Tokens of the same text beside each other, in a vocabulary of nothing else and beside added and special ones: a mask has
 * all of them. */
static void test_same_texts(bool has_added)
{
    enum { LETTERS = 5 };
    static const int32_t NUMBERS[2][LETTERS] = {{2, 6, 8, 10, 40}, {0, 5, 7, 9, 39}};
    bytes text = bytes_empty(1 << 16);
    bytes_printf(&text, "{\"added_tokens\":[%s],",
                 has_added ? "{\"id\":1,\"content\":\"<one>\"},{\"id\":3,\"content\":\"<three>\"},"
                             "{\"id\":4,\"content\":\"<four>\",\"special\":true}"
                           : "");
    bytes_append_str(
        &text, "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
               "\"\xE2\x96\x81\"},\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
               "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"},"
               "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\"model\":{\"type\":\"BPE\","
               "\"byte_fallback\":true,\"merges\":[],\"vocab\":{");
    bytes_append_str(&text, has_added ? "\"<one>\":1,\"<three>\":3,\"<four>\":4" : "");
    int32_t numbers[2][LETTERS], quote = 0;
    for (int32_t i = 0; i < LETTERS; i++) {
        numbers[0][i] = has_added ? NUMBERS[0][i] : i;
        bytes_printf(&text, "%s\"%c\":%d", has_added || i ? "," : "", 'A' + (int)i, (int)numbers[0][i]);
    }
    for (int32_t byte = 0; byte < 256; byte++) {
        const int32_t letter = byte - 'A';
        int32_t number = has_added ? 50 + byte : LETTERS + byte;
        if (letter >= 0 && letter < LETTERS) {
            number = has_added ? NUMBERS[1][letter] : number;
            numbers[1][letter] = number;
        }
        quote = byte == '"' ? number : quote;
        bytes_printf(&text, ",\"<0x%02X>\":%d", (unsigned)byte, (int)number);
    }
    bytes_append_str(&text, "}}}");
    own_cursor own = open_own(&text, "{\"enum\":[\"A\",\"B\",\"C\",\"D\",\"E\"]}");
    grammar_cursor *const c = own.cursor;
    CHECK(grammar_cursor_accept(c, quote));
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    CHECK_INT(mask ? walk_count(mask, own.trie->n_words) : 0, 2 * LETTERS);
    for (size_t i = 0; i < LETTERS && mask; i++) {
        CHECK(token_mask_has(mask, numbers[0][i]) && token_mask_has(mask, numbers[1][i]));
    }
    close_own(&own);
}

/* A vocabulary may lack a byte: where it must come there is no token, whatever the masks of others have. */
static void test_missing_byte(void)
{
    bytes text = bytes_empty(1 << 16);
    bytes_append_str(
        &text, "{\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
               "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"?"
               "?\":256");
    uint32_t other = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        const bool plain = (byte > ' ' && byte < 127) || (byte > 160 && byte != 173);
        char one[4];
        const size_t n = utf8_encode(one, plain ? byte : other++);
        if (byte != 127) {
            bytes_append_char(&text, ',');
            bytes_append_json(&text, one, n);
            bytes_printf(&text, ":%u", (unsigned)byte);
        }
    }
    bytes_append_str(&text, "}}}");
    own_cursor own = open_own(&text, "{\"const\":\"\\u007f\"}");
    grammar_cursor *const c = own.cursor;
    CHECK(grammar_cursor_accept(c, '"'));
    CHECK(grammar_cursor_mask(c, grammar_cursor_state(c)) == NULL);
    CHECK_INT(grammar_cursor_failure(c), ERR_UNSUPPORTED);
    close_own(&own);
}

static void test_depth(void)
{
    json_doc *doc = parse("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}");
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
    grammar *g = build(&spec);
    grammar_cursor *c = open_cursor(g, false);
    const int32_t bracket = token_trie_find(trie, "[", 1);
    int depth = 0;
    while (depth < 1000 && token_mask_has(grammar_cursor_mask(c, grammar_cursor_state(c)), bracket)) {
        CHECK(grammar_cursor_accept(c, bracket));
        depth++;
    }
    CHECK(depth > 40 && depth < 1000);
    for (; depth > 0; depth--) {
        CHECK(feed(c, "]", 1));
    }
    CHECK(grammar_cursor_is_complete(c, grammar_cursor_state(c)));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    json_free(doc);
}

int main(void)
{
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    stop = tokenizer_added_id(tok, "<|im_end|>");
    CHECK_OK(token_trie_create(&trie, tok, &stop, 1, &d), d);
    if (!trie || stop < 0) {
        return 1;
    }
    test_cases();
    test_refused();
    test_masks();
    test_end();
    test_kinds();
    test_thinking();
    test_special();
    test_forms();
    test_raw_values();
    for (int i = 0; i < 5; i++) {
        check_long_text(i);
    }
    test_states();
    test_same_texts(false);
    test_same_texts(true);
    test_missing_byte();
    test_depth();
    token_trie_destroy(trie);
    tokenizer_close(tok);
    CHECK_DONE();
}
