/* mcp_catalog: what servers offer, cleaned: which tools are left out, what of strangers' texts is shown, what a page is told. */
#include "server/mcp/mcp_catalog.h"

#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

static mcp_server_config config_of(mcp_kind kind, mcp_consent consent)
{
    return (mcp_server_config){.label = "one", .kind = kind, .consent = consent};
}

static mcp_offer *offer_of(const mcp_server_config *config, const char *tools, const char *resources,
                           const char *prompts)
{
    const char *const texts[] = {tools, resources, prompts};
    bytes lists[3];
    for (int i = 0; i < 3; i++) {
        bytes_init(&lists[i], 8 << 20);
        bytes_append_str(&lists[i], texts[i] ? texts[i] : "");
    }
    mcp_offer *o = mcp_offer_create(config, &lists[0], &lists[1], prompts ? &lists[2] : NULL);
    CHECK(o != NULL);
    for (int i = 0; i < 3; i++) {
        bytes_deinit(&lists[i]);
    }
    return o;
}

/* ---- texts ---- */

static const char *cleaned(const char *text, size_t most, bool has_lines)
{
    static bytes out;
    bytes_deinit(&out);
    bytes_init(&out, 1000);
    bytes_append_str(&out, ">"); /* what is there does not count */
    mcp_clean_text(&out, text, most, has_lines);
    return bytes_str(&out) + 1;
}

static void test_texts(void)
{
    CHECK_STR(cleaned("a\nb\tc\rd\x7f\x01 ", 99, false), "abcd ");
    CHECK_STR(cleaned("a\nb\tc\rd\x1f~", 99, true), "a\nb\tcd~");
    CHECK_STR(cleaned("\xc2\x80\xc2\x9f\xc2\xa0\xc3\x80", 99, false), "\xc2\xa0\xc3\x80");
    /* Marks of direction and of no width, and what stands beside them. */
    CHECK_STR(cleaned("\xe2\x80\x8a\xe2\x80\x8b\xe2\x80\x8f\xe2\x80\x90", 99, false),
              "\xe2\x80\x8a\xe2\x80\x90");
    CHECK_STR(cleaned("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", 99, false),
              "\xe2\x80\xa7\xe2\x80\xaf");
    CHECK_STR(cleaned("\xe2\x81\x9f\xe2\x81\xa0\xe2\x81\xaf\xe2\x81\xb0", 99, false),
              "\xe2\x81\x9f\xe2\x81\xb0");
    CHECK_STR(cleaned("\xe2\x82\xac\xe3\x80\x8b\xef\xbb\xbf\xef\xbb\xbe\xef\xbc\xbf", 99, false),
              "\xe2\x82\xac\xe3\x80\x8b\xef\xbb\xbe\xef\xbc\xbf");
    CHECK_STR(cleaned("\xf3\xa0\x80\x81\xf3\xa0\x81\xbf\xf3\xa0\x82\x80\xf0\x9f\x98\x80", 99, false),
              "\xf3\xa0\x82\x80\xf0\x9f\x98\x80");
    /* What is no text, also at the end: behind it nothing is read. */
    CHECK_STR(cleaned("a\xf0", 99, false), "a\xef\xbf\xbd");
    CHECK_STR(cleaned("\xe2\x82z\xff", 99, false), "\xef\xbf\xbdz\xef\xbf\xbd");
    CHECK_STR(cleaned("\xf3\xa0\x80", 99, false), "\xef\xbf\xbd");
    CHECK_STR(cleaned("a\x80", 3, false), "a...");
    CHECK_STR(cleaned("abc", 3, false), "abc");
    CHECK_STR(cleaned("abcd", 3, false), "abc...");
    CHECK_STR(cleaned("ab\xc3\xa4", 4, false), "ab\xc3\xa4");
    CHECK_STR(cleaned("ab\xc3\xa4", 3, false), "ab...");
    CHECK_STR(cleaned("a\xe2\x82\xac", 3, false), "a...");
    CHECK_STR(cleaned("\xf0\x9f\x98\x80", 4, false), "\xf0\x9f\x98\x80");
    CHECK_STR(cleaned("\xf0\x9f\x98\x80", 3, false), "...");
}

static const char *pruned(const char *text, size_t depth)
{
    static bytes out;
    bytes_deinit(&out);
    bytes_init(&out, 1000);
    mcp_prune(&out, text, strlen(text), depth);
    return bytes_str(&out);
}

static void test_prune(void)
{
    CHECK_STR(pruned("{\"a\":[1,{\"b\":[]}],\"c\":{}}", 2), "{\"a\":[1,null],\"c\":{}}");
    CHECK_STR(pruned("{\"a\":[1,{\"b\":[]}],\"c\":{}}", 1), "{\"a\":null,\"c\":null}");
    CHECK_STR(pruned("[[],[[1]]]", 0), "null");
    CHECK_STR(pruned("[[],[[1]],[{}]]", 2), "[[],[null],[null]]");
    CHECK_STR(pruned("[\"[[\\\"[\",[[]]]", 2), "[\"[[\\\"[\",[null]]");
    CHECK_STR(pruned("]]x", 0), "]]x");
    CHECK_STR(pruned("[[[", 1), "[null");
    CHECK_STR(pruned("\"a\\", 1), "\"a\\");
}

/* ---- tools ---- */

/* "name clean,name clean;left out" of what is taken of a list. */
static const char *taken(const mcp_server_config *config, const char *tools)
{
    static char out[4096];
    mcp_offer *o = offer_of(config, tools, NULL, NULL);
    int n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < o->n_tools; i++) {
        n += snprintf(out + n, sizeof out - (size_t)n, "%s%s %s", i ? "," : "", o->tools[i].name,
                      o->tools[i].clean);
    }
    snprintf(out + n, sizeof out - (size_t)n, ";%zu", o->left_out);
    mcp_offer_release(o);
    return out;
}

static void test_names(void)
{
    const mcp_server_config config = config_of(MCP_STDIO, MCP_ASK);
    CHECK_STR(
        taken(&config,
              "[{\"name\":\"a-b_C9\"},{\"name\":\"x.y//z\"},{\"name\":\"\\u00e4\"},{\"name\":\"a..\"}]"),
        "a-b_C9 a-b_C9,x.y//z x_y_z,\xc3\xa4 _,a.. a_;0");
    CHECK_STR(taken(&config, "[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"\"},{},7]"), "a a;4");
    CHECK_STR(taken(&config, "{}"), ";0");
    char *words[] = {(char *)"b", (char *)"no", NULL};
    mcp_server_config some = config_of(MCP_STDIO, MCP_ASK_ONCE);
    some.hidden = (mcp_words){words, 2}; /* what is hidden is not missed */
    some.always = (mcp_words){words, 1};
    CHECK_STR(
        taken(&some,
              "[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"no\"},{\"name\":\"no\"},{\"name\":\"a\"}]"),
        "a a;1");
    some.hidden = (mcp_words){words + 1, 1};
    mcp_offer *one = offer_of(&some, "[{\"name\":\"a\"},{\"name\":\"b\"}]", NULL, NULL);
    CHECK(!one->tools[0].runs_unasked && one->tools[0].asks_once);
    CHECK(one->tools[1].runs_unasked && !one->tools[1].asks_once);
    mcp_offer_release(one);
    CHECK_STR(taken(&config, "["), ";0");
    CHECK_STR(taken(&config, ""), ";0");
    for (int n = 128; n <= 129; n++) { /* as long as a name may be; what a model writes is shorter */
        char list[256], expected[256];
        snprintf(list, sizeof list, "[{\"name\":\"%0*d\"}]", n, 7);
        snprintf(expected, sizeof expected, "%0128d %048d;0", 7, 0);
        CHECK_STR(taken(&config, list), n == 128 ? expected : ";1");
    }
    CHECK_STR(
        taken(&config,
              "[{\"name\":\"a\",\"execution\":{\"taskSupport\":\"required\"}},{\"name\":\"b\",\"execution\":{"
              "\"taskSupport\":\"optional\"}}]"),
        "b b;1");
    bytes list = bytes_empty(1 << 20);
    for (int i = 0; i < LIMIT_MCP_TOOLS + 2; i++) {
        bytes_printf(&list, "%s{\"name\":\"t%d\"}", i ? "," : "[", i);
    }
    bytes_append_char(&list, ']');
    mcp_offer *o = offer_of(&config, bytes_str(&list), NULL, NULL);
    CHECK_INT(o->n_tools, LIMIT_MCP_TOOLS);
    CHECK_INT(o->left_out, 2);
    CHECK(mcp_offer_find(o, "t255") == &o->tools[255]);
    CHECK(!mcp_offer_find(o, "t256") && !mcp_offer_find(NULL, "t0"));
    mcp_offer_release(o);
    mcp_offer_release(NULL);
    bytes_deinit(&list);
}

/* Schemas: an object, not too deep, not too large; none is one without properties. */
static void test_schemas(void)
{
    const mcp_server_config config = config_of(MCP_STDIO, MCP_ASK);
    CHECK_STR(
        taken(&config,
              "[{\"name\":\"a\",\"inputSchema\":[]},{\"name\":\"b\",\"inputSchema\":null},{\"name\":\"c\","
              "\"inputSchema\":{\"type\":\"object\"}}]"),
        "b b,c c;1");
    for (int more = 0; more <= 1; more++) {
        bytes text = bytes_empty(1 << 20);
        bytes_append_str(&text, "[{\"name\":\"a\",\"inputSchema\":");
        for (int i = 0; i < LIMIT_JSON_DEPTH + 2 + more; i++) {
            bytes_append_str(&text, "{\"p\":");
        }
        bytes_append_str(&text, "1");
        for (int i = 0; i < LIMIT_JSON_DEPTH + 2 + more; i++) {
            bytes_append_str(&text, "}");
        }
        bytes_append_str(&text, "}]");
        CHECK_STR(taken(&config, bytes_str(&text)), more ? ";1" : "a a;0");
        bytes_clear(&text);
        bytes_append_str(&text, "[{\"name\":\"a\",\"inputSchema\":{\"d\":\"");
        for (size_t i = 0; i < LIMIT_MCP_SCHEMA_BYTES - 8 + (size_t)more; i++) {
            bytes_append_char(&text, 'x');
        }
        bytes_append_str(&text, "\"}}]");
        CHECK_STR(taken(&config, bytes_str(&text)), more ? ";1" : "a a;0");
        bytes_deinit(&text);
    }
}

#define HEADER(name, type) "{\"x-mcp-header\":\"" name "\",\"type\":\"" type "\"}"
#define TOOL(properties)   "[{\"name\":\"a\",\"inputSchema\":{\"properties\":{" properties "}}}]"

/* Parameters that go into headers: of servers behind HTTP alone. */
static void test_headers(void)
{
    const mcp_server_config http = config_of(MCP_HTTP, MCP_ASK), process = config_of(MCP_STDIO, MCP_ASK);
    static const char *const GOOD =
        TOOL("\"p\":" HEADER("X-A", "string") ",\"q\":{\"type\":\"number\"},\"r\":" HEADER(
            "b~!", "integer") ",\"s\":" HEADER("c", "boolean"));
    mcp_offer *o = offer_of(&http, GOOD, NULL, NULL);
    CHECK_INT(o->n_tools, 1);
    CHECK_INT(o->tools[0].n_headers, 3);
    CHECK_STR(o->tools[0].headers[0].param, "p");
    CHECK_STR(o->tools[0].headers[0].header, "X-A");
    CHECK_STR(o->tools[0].headers[1].param, "r");
    CHECK_STR(o->tools[0].headers[2].header, "c");
    mcp_offer_release(o);
    o = offer_of(&process, GOOD, NULL, NULL);
    CHECK_INT(o->tools[0].n_headers, 0);
    mcp_offer_release(o);
    static const char *const BAD[] = {TOOL("\"p\":" HEADER("", "string")),
                                      TOOL("\"p\":" HEADER("a b", "string")),
                                      TOOL("\"p\":" HEADER("a:", "string")),
                                      TOOL("\"p\":" HEADER("a", "number")),
                                      TOOL("\"p\":" HEADER("a", "string") ",\"q\":" HEADER("A", "string")),
                                      TOOL("\"p\":" HEADER("a", "string") ",\"q\":" HEADER("a b", "string")),
                                      TOOL("\"p\":" HEADER("a", "string") ",\"q\":" HEADER("b", "null")),
                                      TOOL("\"p\":{\"x-mcp-header\":7,\"type\":\"string\"}")};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        CHECK_STR(taken(&http, BAD[i]), ";1");
        CHECK_STR(taken(&process, BAD[i]), "a a;0");
    }
    CHECK_STR(taken(&http, "[{\"name\":\"a\",\"inputSchema\":{\"properties\":[]}}]"), "a a;0");
    for (int n = 128; n <= 129; n++) {
        char text[512];
        snprintf(text, sizeof text, TOOL("\"p\":" HEADER("%0*d", "string")), n, 7);
        CHECK_STR(taken(&http, text), n == 128 ? "a a;0" : ";1");
    }
}

/* ---- what a page is told ---- */

static void test_written(void)
{
    static const struct {
        mcp_consent consent;
        const char *writes, *reads;
    } CONSENTS[] = {{MCP_ASK, "always", "always"},
                    {MCP_ASK_ONCE, "first", "first"},
                    {MCP_ASK_TO_WRITE, "always", "never"},
                    {MCP_NEVER_ASK, "never", "never"}};
    for (size_t i = 0; i < ARRAY_LEN(CONSENTS); i++) {
        mcp_server_config config = config_of(MCP_HTTP, CONSENTS[i].consent);
        mcp_catalog *c = mcp_catalog_create(2);
        bytes out = bytes_empty(1 << 20);
        char expected[2048];
        c->servers[0] = (mcp_server_view){
            .config = &config, .state = MCP_READY, .name = "N", .version = "1", .protocol = "P"};
        c->servers[0].offer =
            offer_of(&config,
                     "[{\"name\":\"w\",\"title\":\"W\\u0007\",\"description\":\"a\\nb\\u200bc\"},{\"name\":"
                     "\"r\",\"annotations\":{\"title\":\"R\","
                     "\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\"}}]",
                     "[{\"uri\":\"u\",\"name\":\"a\\nb\",\"other\":1,\"mimeType\":\"m\"},{}]",
                     "[{\"arguments\":[{\"name\":\"x\"}]},{\"name\":\"p\",\"arguments\":[]}]");
        const mcp_server_config off = {.label = "two", .kind = MCP_BUILTIN};
        c->servers[1] = (mcp_server_view){.config = &off, .state = MCP_DOWN, .why = "It \"fell\"."};
        mcp_catalog_write(&out, c);
        snprintf(expected, sizeof expected,
                 "{\"object\":\"list\",\"data\":[{\"server_label\":\"one\",\"kind\":\"http\",\"state\":"
                 "\"ready\",\"error\":null,\"name\":\"N\","
                 "\"version\":\"1\",\"protocol\":\"P\",\"tools_left_out\":0,\"tools\":[{\"name\":\"w\","
                 "\"title\":\"W\",\"description\":"
                 "\"a\\nbc\",\"read_only\":false,\"approval\":\"%s\",\"input_schema\":{\"type\":\"object\","
                 "\"properties\":{}}},{\"name\":"
                 "\"r\",\"title\":\"R\",\"description\":\"\",\"read_only\":true,\"approval\":\"%s\",\"input_"
                 "schema\":{\"type\":\"object\"}}],"
                 "\"resources\":[{\"name\":\"ab\",\"uri\":\"u\",\"mimeType\":\"m\"},{}],\"prompts\":[{"
                 "\"arguments\":[{\"name\":\"x\"}]},{"
                 "\"name\":\"p\",\"arguments\":[]}]},{\"server_label\":\"two\",\"kind\":\"builtin\","
                 "\"state\":\"down\",\"error\":\"It "
                 "\\\"fell\\\".\",\"name\":\"\",\"version\":\"\",\"protocol\":\"\",\"tools_left_out\":0,"
                 "\"tools\":[],\"resources\":[],"
                 "\"prompts\":[]}]}",
                 CONSENTS[i].writes, CONSENTS[i].reads);
        CHECK_STR(bytes_str(&out), expected);
        CHECK(mcp_catalog_find(c, "two") == &c->servers[1]);
        CHECK(!mcp_catalog_find(c, "three") && !mcp_catalog_find(NULL, "one"));
        CHECK(mcp_catalog_take(c) == c && !mcp_catalog_take(NULL));
        mcp_catalog_release(c);
        CHECK(mcp_offer_take(c->servers[0].offer) == c->servers[0].offer &&
              !mcp_offer_take(NULL)); /* it is still there */
        mcp_offer *o = c->servers[0].offer;
        mcp_catalog_release(c);
        CHECK(mcp_offer_find(o, "w") != NULL);
        mcp_offer_release(o);
        bytes_deinit(&out);
    }
    bytes out = bytes_empty(1 << 20), list = bytes_empty(1 << 20);
    const mcp_server_config config = config_of(MCP_HTTP, MCP_ASK);
    for (int i = 0; i < LIMIT_MCP_TOOLS + 1; i++) { /* so many of a list are shown */
        bytes_printf(&list, "%s{\"uri\":\"u%d\"}", i ? "," : "[", i);
    }
    bytes_append_char(&list, ']');
    mcp_catalog *c = mcp_catalog_create(1);
    c->servers[0] =
        (mcp_server_view){.config = &config, .offer = offer_of(&config, "[]", bytes_str(&list), "[]")};
    mcp_catalog_write(&out, c);
    CHECK(strstr(bytes_str(&out), "{\"uri\":\"u255\"}],\"prompts\":[]") != NULL);
    mcp_catalog_release(c);
    bytes_deinit(&list);
    bytes_clear(&out);
    mcp_catalog_write(&out, NULL);
    CHECK_STR(bytes_str(&out), "{\"object\":\"list\",\"data\":[]}");
    bytes_deinit(&out);
    mcp_catalog_release(NULL);
}

/* ---- memory ---- */

static err_code write_once(void *lists)
{
    const mcp_server_config http = config_of(MCP_HTTP, MCP_ASK);
    const bytes *texts = lists;
    mcp_catalog *c = mcp_catalog_create(1);
    mcp_offer *o = c ? mcp_offer_create(&http, &texts[0], &texts[1], &texts[2]) : NULL;
    err_code err = o ? ERR_OK : ERR_NOMEM;
    if (o) {
        CHECK_INT(o->n_tools + o->left_out, 2); /* none is forgotten */
        c->servers[0] = (mcp_server_view){.config = &http, .state = MCP_READY, .offer = o};
        bytes out = bytes_empty(1 << 20);
        mcp_catalog_write(&out, c);
        err = out.failed || o->left_out ? ERR_NOMEM : ERR_OK;
        bytes_deinit(&out);
    }
    mcp_catalog_release(c);
    return err;
}

static void test_short_memory(void)
{
    static const char *const TEXTS[] = {
        "[{\"name\":\"bare\"},"
        "{\"name\":\"a\",\"inputSchema\":{\"properties\":{\"p\":" HEADER("X-A", "string") "}}}]",
        "[{\"uri\":\"a:b\",\"name\":\"r\"}]", "[{\"name\":\"p\"}]"};
    bytes lists[3];
    for (int i = 0; i < 3; i++) {
        bytes_init(&lists[i], 1000);
        bytes_append_str(&lists[i], TEXTS[i]);
    }
    CHECK(alloc_fail_each(write_once, lists, 1000) > 5);
    for (int i = 0; i < 3; i++) {
        bytes_deinit(&lists[i]);
    }
}

/* Many tools: one whose texts have no room is left out, and none is there without its name. */
static err_code offer_many(void *context)
{
    const mcp_server_config http = config_of(MCP_HTTP, MCP_ASK);
    mcp_offer *o = mcp_offer_create(&http, context, NULL, NULL);
    if (!o) {
        return ERR_NOMEM;
    }
    const err_code err = o->left_out > 0 ? ERR_NOMEM : ERR_OK;
    CHECK_INT(o->n_tools + o->left_out, 40);
    for (size_t i = 0; i < o->n_tools; i++) {
        const mcp_tool *t = &o->tools[i];
        CHECK(strncmp(t->name, "tool", 4) == 0);
        CHECK_STR(t->clean, t->name);
        CHECK(strlen(t->title) == 100 && strlen(t->description) == 4000 && t->n_headers == 1);
    }
    mcp_offer_release(o);
    return err;
}

static void test_many(void)
{
    bytes list = bytes_empty(1 << 20);
    for (int i = 0; i < 40; i++) {
        bytes_printf(&list,
                     "%s{\"name\":\"tool%d\",\"title\":\"%0100d\",\"description\":\"%04000d\","
                     "\"inputSchema\":{\"properties\":{"
                     "\"p\":{\"x-mcp-header\":\"a\",\"type\":\"string\"}}}}",
                     i ? "," : "[", i, 0, 0);
    }
    bytes_append_char(&list, ']');
    CHECK(alloc_fail_each(offer_many, &list, 5000) > 5);
    bytes_deinit(&list);
}

int main(void)
{
    test_texts();
    test_prune();
    test_names();
    test_schemas();
    test_headers();
    test_many();
    test_written();
    test_short_memory();
    CHECK_DONE();
}
