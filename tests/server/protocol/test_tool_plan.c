/* What MCP servers offer, as models get it; which of it a request takes; and how the older form of Messages says the same. */
#include "server/protocol/tool_plan.h"

#include "base/limits.h"
#include "server/protocol/dialects/messages_request.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

#define TOOL(name, more) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}" more "}"

static mcp_server_config configs[3];

/* A server of the catalog that offers these tools. */
static void serve(mcp_catalog *c, size_t i, const char *label, const char *tools)
{
    mcp_server_config *config = &configs[i];
    bytes list = bytes_empty(1 << 16);
    bytes_append_str(&list, tools);
    snprintf(config->label, sizeof config->label, "%s", label);
    c->servers[i] = (mcp_server_view){
        .config = config, .state = MCP_READY, .offer = mcp_offer_create(config, &list, NULL, NULL)};
    CHECK(c->servers[i].offer != NULL);
    bytes_deinit(&list);
}

static const char *extra_tool = "x"; /* of the third */

static mcp_catalog *catalog(void)
{
    char tools[200];
    snprintf(tools, sizeof tools, "[{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}]", extra_tool);
    mcp_catalog *c = mcp_catalog_create(3);
    serve(c, 0, "files",
          "[" TOOL("read", ",\"annotations\":{\"readOnlyHint\":true}") "," TOOL("write",
                                                                                "") "," TOOL("same", "") "]");
    serve(c, 1, "web.x", "[" TOOL("fetch", "") "," TOOL("same", "") "]");
    serve(c, 2, "later", tools);
    return c;
}

/* ---- what a server offers ---- */

static void test_offer(void)
{
    mcp_catalog *c = catalog();
    const mcp_offer *o = mcp_catalog_find(c, "files")->offer;
    CHECK_INT(o->n_tools, 3);
    CHECK(o->tools[0].is_read_only && !o->tools[1].is_read_only);
    CHECK(mcp_offer_find(o, "write") == &o->tools[1] && mcp_offer_find(o, "nothing") == NULL);
    CHECK(mcp_catalog_find(c, "web.x") == &c->servers[1] && mcp_catalog_find(c, "web") == NULL &&
          mcp_catalog_find(NULL, "web") == NULL);
    mcp_catalog_release(c);

    /* Odd names are cleaned for models; what has no name is left out. */
    mcp_catalog *odd = mcp_catalog_create(1);
    serve(odd, 0, "odd",
          "[" TOOL("a b/c",
                   ",\"title\":\"T\",\"description\":\"what\\u0007 it does\"") ",{\"name\":\"none\"},7,"
                                                                               "{\"inputSchema\":{\"type\":"
                                                                               "\"object\"}}," TOOL("",
                                                                                                    "") "]");
    o = odd->servers[0].offer;
    CHECK_INT(o->n_tools, 2); /* a schema may be missing, a name may not */
    CHECK_STR(o->tools[1].name, "none");
    CHECK_STR(json_str(json_get(o->tools[1].schema, "type"), ""), "object");
    CHECK_INT(o->left_out, 3);
    CHECK_STR(o->tools[0].name, "a b/c");
    CHECK_STR(o->tools[0].title, "T");
    CHECK(strspn(o->tools[0].clean, "abcdefghijklmnopqrstuvwxyz_-") == strlen(o->tools[0].clean));
    CHECK(strchr(o->tools[0].description, 7) == NULL && strstr(o->tools[0].description, "it does") != NULL);
    mcp_offer *twice = mcp_offer_take(odd->servers[0].offer);
    mcp_catalog_release(odd);
    CHECK_STR(twice->tools[0].name, "a b/c");
    mcp_offer_release(twice);
    mcp_offer_release(NULL);
    mcp_catalog_release(NULL);
}

static void test_clean_text(void)
{
    static const struct {
        const char *text, *said;
        size_t most;
        bool has_lines;
    } CASES[] = {
        {"a\nb\tc", "a\nb\tc", 99, true},
        {"plain", "plain", 5, false},
        {"plain", "plai...", 4, false},
        {"\xc3\xa9\xc3\xa9", "\xc3\xa9...", 3, false}, /* whole characters */
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes out = bytes_empty(100);
        mcp_clean_text(&out, CASES[i].text, CASES[i].most, CASES[i].has_lines);
        CHECK_STR(bytes_str(&out), CASES[i].said);
        bytes_deinit(&out);
    }
    static const char *const GONE[] = {"a\x01"
                                       "b",
                                       "a\x7f"
                                       "b",
                                       "a\xe2\x80\xae"
                                       "b"};
    for (size_t i = 0; i < ARRAY_LEN(GONE); i++) {
        bytes out = bytes_empty(100);
        mcp_clean_text(&out, GONE[i], 99, true);
        CHECK(bytes_str(&out)[0] == 'a' && bytes_str(&out)[out.len - 1] == 'b' &&
              out.len < strlen(GONE[i]) + (i < 2));
        bytes_deinit(&out);
    }
}

static void test_prune(void)
{
    static const char *const CASES[][2] = {
        {"{\"a\":[1,{\"b\":2}],\"c\":3}", "{\"a\":[1,null],\"c\":3}"},
        {"[[[]]]", "[[null]]"},
        {"[\"]{[\\\"\",1]", "[\"]{[\\\"\",1]"},
        {"7", "7"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes out = bytes_empty(200);
        mcp_prune(&out, CASES[i][0], strlen(CASES[i][0]), 2);
        CHECK_STR(bytes_str(&out), CASES[i][1]);
        bytes_deinit(&out);
    }
}

/* ---- what a request takes ---- */

/* ctx: names, with a space around each. */
static bool is_taken(void *ctx, const char *name)
{
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    return ctx && strstr(ctx, word);
}

/* Adds entries; the names for the model, by spaces, with "!" where a tool runs unasked. Or the error's name and field. */
static const char *planned(const char *entries, const char *taken)
{
    static char out[512];
    json_doc *doc = NULL;
    err_detail d = {0};
    first_error e = {.detail = &d};
    char copy[64];
    tool_plan *p = tool_plan_create(catalog());
    snprintf(copy, sizeof copy, " %s ", taken ? taken : "");
    CHECK(json_parse(&doc, entries, strlen(entries), 16, NULL) == ERR_OK);
    for (const json *v = json_child(json_root(doc)); v; v = json_next(v)) {
        tool_plan_add(p, &e, v, "tools[2]", is_taken, taken ? copy : NULL);
    }
    out[0] = '\0';
    for (size_t i = 0; i < p->n_tools; i++) {
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s%s", i ? " " : "", p->tools[i].name,
                 p->tools[i].runs_unasked ? "!" : "");
    }
    if (e.code) {
        snprintf(out, sizeof out, "%s at %s", d.name, d.param);
    }
    tool_plan_destroy(p);
    json_free(doc);
    return out;
}

#define FILES(more) "[{\"server_label\":\"files\"" more "}]"

static void test_plan(void)
{
    CHECK_STR(planned(FILES(""), NULL), "read write same");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[\"write\"]"), NULL), "write");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[]"), NULL), "");
    CHECK_STR(planned(FILES(",\"allowed_tools\":{\"read_only\":true}"), NULL), "read");
    CHECK_STR(planned(FILES(",\"allowed_tools\":{\"read_only\":false}"), NULL), "write same");
    CHECK_STR(
        planned(FILES(",\"allowed_tools\":{\"tool_names\":[\"read\",\"same\"],\"read_only\":true}"), NULL),
        "read");
    CHECK_STR(planned(FILES(",\"require_approval\":\"never\""), NULL), "read! write! same!");
    CHECK_STR(planned(FILES(",\"require_approval\":\"always\""), NULL), "read write same");
    CHECK_STR(planned(FILES(",\"require_approval\":{\"never\":{\"read_only\":true}}"), NULL),
              "read! write same");
    CHECK_STR(planned(FILES(",\"require_approval\":{\"never\":{\"tool_names\":[\"same\"]},\"always\":{\"tool_"
                            "names\":[\"same\"]}}"),
                      NULL),
              "read write same!");
    /* A name that two servers have, or the client. */
    CHECK_STR(planned("[{\"server_label\":\"files\"},{\"server_label\":\"web.x\"}]", NULL),
              "read write same fetch web_x__same");
    CHECK_STR(
        planned("[{\"server_label\":\"web.x\"},{\"server_label\":\"files\",\"allowed_tools\":[\"same\"]}]",
                NULL),
        "fetch same files__same");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[\"read\"]"), "read"), "files__read");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[\"read\"]"), "read files__read"), "files__read_2");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[\"read\"]"), "read files__read files__read_2 files__read_3"),
              "files__read_4");
    CHECK_STR(planned("[{\"server_label\":\"web.x\",\"allowed_tools\":[\"fetch\"]}]", "fetch web_x__fetch"),
              "web_x__fetch_2");
    CHECK_STR(planned(FILES(",\"server_url\":\"\""), NULL), "read write same");
    configs[1].url = "http://x";
    CHECK_STR(planned("[{\"server_label\":\"web.x\",\"server_url\":\"http://x\"}]", NULL), "fetch same");
    CHECK_STR(planned("[{\"server_label\":\"web.x\",\"server_url\":\"http://y\"}]", NULL),
              "server_url_not_allowed at tools[2].server_url");
    configs[1].url = NULL;

    CHECK_STR(planned("[{\"server_label\":\"nobody\"}]", NULL), "unknown_server at tools[2].server_label");
    CHECK_STR(planned("[{\"server_label\":\"files\"},{\"server_label\":\"files\"}]", NULL),
              "invalid_value at tools[2].server_label");
    CHECK_STR(
        planned("[{\"server_label\":\"files\"},{\"server_label\":\"web.x\"},{\"server_label\":\"files\"}]",
                NULL),
        "invalid_value at tools[2].server_label");
    /* A longer name that a tool has of itself. */
    extra_tool = "web_x__same";
    CHECK_STR(
        planned("[{\"server_label\":\"later\"},{\"server_label\":\"files\",\"allowed_tools\":[\"same\"]},"
                "{\"server_label\":\"web.x\"}]",
                NULL),
        "web_x__same same fetch web_x__same_2");
    extra_tool = "x";
    CHECK_STR(planned(FILES(",\"require_approval\":\"maybe\""), NULL),
              "invalid_value at tools[2].require_approval");
    CHECK_STR(planned(FILES(",\"require_approval\":7"), NULL), "invalid_value at tools[2].require_approval");
    CHECK_STR(planned(FILES(",\"allowed_tools\":7"), NULL), "invalid_type at tools[2].allowed_tools");
    CHECK_STR(planned(FILES(",\"allowed_tools\":[\"gone\"]"), NULL),
              "invalid_value at tools[2].allowed_tools");
    CHECK_STR(planned(FILES(",\"allowed_tools\":{\"tool_names\":[7]}"), NULL),
              "invalid_value at tools[2].allowed_tools");
    CHECK_STR(planned(FILES(",\"server_url\":\"http://x\""), NULL),
              "server_url_not_allowed at tools[2].server_url");
    CHECK_STR(planned(FILES(",\"authorization\":\"x\""), NULL), "not_supported at tools[2].authorization");
    CHECK_STR(planned(FILES(",\"headers\":{}"), NULL), "not_supported at tools[2].headers");
    CHECK_STR(planned(FILES(",\"connector_id\":\"x\""), NULL), "not_supported at tools[2].connector_id");
}

static void test_states(void)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    mcp_catalog *c = catalog();
    c->servers[2].state = MCP_CONNECTING;
    c->servers[1].state = MCP_DOWN;
    snprintf(c->servers[1].why, sizeof c->servers[1].why, "it fell");
    tool_plan *p = tool_plan_create(c);
    static const char TEXT[] = "[{\"server_label\":\"later\"},{\"server_label\":\"web.x\"}]";
    CHECK(json_parse(&doc, TEXT, sizeof TEXT - 1, 8, NULL) == ERR_OK);
    first_error e = {.detail = &d};
    tool_plan_add(p, &e, json_child(json_root(doc)), "t", is_taken, NULL);
    CHECK_INT(e.code, ERR_BUSY);
    CHECK_STR(d.name, "mcp_server_unavailable");
    CHECK(strstr(d.text, "still being connected") != NULL);
    e.code = ERR_OK;
    tool_plan_add(p, &e, json_next(json_child(json_root(doc))), "t", is_taken, NULL);
    CHECK_INT(e.code, ERR_UPSTREAM);
    CHECK(strstr(d.text, "it fell") != NULL);
    CHECK_INT(p->n_tools, 0);
    tool_plan_destroy(p);
    json_free(doc);
}

static void test_calls(void)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    first_error e = {.detail = &d};
    mcp_catalog *c = catalog();
    c->servers[0].offer->tools[1].asks_once = true;
    tool_plan *p = tool_plan_create(c);
    static const char TEXT[] =
        "[{\"server_label\":\"files\"},{\"server_label\":\"files\",\"name\":\"write\",\"id\":\"q1\","
        "\"arguments\":\"{\\\"a\\\":1}\"},"
        "{\"server_label\":\"files\",\"name\":\"gone\"},{\"server_label\":\"web.x\",\"name\":\"fetch\"}]";
    CHECK(json_parse(&doc, TEXT, sizeof TEXT - 1, 8, NULL) == ERR_OK);
    const json *entry = json_child(json_root(doc)), *asked = json_next(entry), *gone = json_next(asked);
    tool_plan_add(p, &e, entry, "t", is_taken, NULL);
    CHECK_OK(e.code, d);
    CHECK_STR(tool_plan_name(p, "files", "write"), "write");
    CHECK(tool_plan_name(p, "web.x", "write") == NULL && tool_plan_name(p, "files", "fetch") == NULL &&
          tool_plan_name(NULL, "files", "write") == NULL);
    CHECK(tool_plan_find(p, "writer", 5) == &p->tools[1] && tool_plan_find(p, "write", 4) == NULL &&
          tool_plan_find(NULL, "write", 5) == NULL);
    /* Where the request says what is to be asked about, nothing is trusted on the way. */
    static const char ALWAYS[] = "{\"server_label\":\"files\",\"require_approval\":\"always\"}";
    json_doc *wish = NULL;
    CHECK(json_parse(&wish, ALWAYS, sizeof ALWAYS - 1, 8, NULL) == ERR_OK);
    mcp_catalog *again = catalog();
    again->servers[0].offer->tools[1].asks_once = true;
    tool_plan *always = tool_plan_create(again);
    tool_plan_add(always, &e, json_root(wish), "t", is_taken, NULL);
    CHECK(always->n_tools == 3 && !always->tools[1].asks_once);
    tool_plan_trust(always, "files", "write");
    CHECK(!always->tools[1].runs_unasked);
    tool_plan_destroy(always);
    json_free(wish);
    /* One that asks once is trusted from then on, no other one. */
    CHECK(!p->tools[1].runs_unasked && p->tools[1].asks_once && !p->tools[0].asks_once);
    tool_plan_trust(p, "web.x", "write");
    tool_plan_trust(p, "files", "read");
    CHECK(!p->tools[0].runs_unasked && !p->tools[1].runs_unasked);
    tool_plan_trust(p, "files", "write");
    CHECK(!p->tools[0].runs_unasked && p->tools[1].runs_unasked);
    tool_plan_trust(NULL, "files", "write");

    tool_plan_approve(p, &e, asked, "input[0]");
    CHECK_INT(p->n_calls, 1);
    CHECK_STR(p->calls[0].approval_id, "q1");
    CHECK_STR(p->calls[0].arguments, "{\"a\":1}");
    CHECK(p->calls[0].tool == &p->tools[1]);
    tool_plan_approve(p, &e, gone, "input[1]");
    CHECK_INT(e.code, ERR_INVALID);
    CHECK_STR(d.param, "input[1]");
    e.code = ERR_OK;
    tool_plan_approve(p, &e, json_next(gone), "input[2]");
    CHECK_INT(e.code, ERR_INVALID);
    e.code = ERR_OK;
    for (size_t i = 1; i < LIMIT_MCP_CALLS_A_ROUND; i++) {
        tool_plan_approve(p, &e, asked, "input[0]");
    }
    CHECK(e.code == ERR_OK && p->n_calls == LIMIT_MCP_CALLS_A_ROUND);
    tool_plan_approve(p, &e, asked, "input[0]");
    CHECK(e.code == ERR_LIMIT && p->n_calls == LIMIT_MCP_CALLS_A_ROUND);
    CHECK_STR(d.name, "too_many_calls");
    CHECK_STR(d.param, "input[0]");
    CHECK_STR(d.text, "input[0]: a round has at most 16 calls of tools");
    e.code = ERR_OK;

    bytes names = bytes_empty(4096);
    tool_plan_add_own(p, &e, "mine");
    CHECK(tool_plan_is_own(p, "mine", 4) && tool_plan_is_own(p, "miner", 4) &&
          !tool_plan_is_own(p, "min", 3) && !tool_plan_is_own(p, "read", 4));
    tool_plan_write_names(p, &names);
    CHECK_STR(bytes_str(&names), "read, write, same, mine");
    for (int i = 0; i < 28; i++) {
        tool_plan_add_own(p, &e, "o");
    }
    names.len = 0;
    tool_plan_write_names(p, &names); /* 32 of 32 */
    CHECK(strstr(bytes_str(&names), "...") == NULL);
    tool_plan_add_own(p, &e, "last");
    names.len = 0;
    tool_plan_write_names(p, &names);
    CHECK(strstr(bytes_str(&names), ", o, ...") != NULL && strstr(bytes_str(&names), "last") == NULL);
    bytes_deinit(&names);
    tool_plan_destroy(p);
    tool_plan_destroy(NULL);
    json_free(doc);
}

/* Without memory a plan says so, and has what it had. */
static void test_memory(void)
{
    static const char TEXT[] =
        "[{\"server_label\":\"files\"},{\"server_label\":\"web.x\"},{\"server_label\":\"files\","
        "\"name\":\"read\",\"id\":\"q\",\"arguments\":\"{}\"}]";
    json_doc *doc = NULL;
    CHECK(json_parse(&doc, TEXT, sizeof TEXT - 1, 8, NULL) == ERR_OK);
    const json *files = json_child(json_root(doc)), *web = json_next(files), *call = json_next(web);
    size_t n_failed = 0;
    for (size_t n = 1; n < 50; n++) {
        err_detail d = {0};
        first_error e = {.detail = &d};
        mcp_catalog *c = catalog();
        alloc_fail_at(n);
        tool_plan *p = tool_plan_create(c);
        if (p) {
            tool_plan_add_own(p, &e, "own");
            tool_plan_add(p, &e, files, "t", is_taken, NULL);
            tool_plan_add(p, &e, web, "t", is_taken, NULL);
            tool_plan_approve(p, &e, call, "t");
        }
        alloc_fail_at(0);
        const bool is_whole = p && e.code == ERR_OK;
        CHECK(!p || e.code == ERR_OK || strcmp(d.text, "no memory for this request") == 0);
        CHECK(!is_whole || (p->n_own == 1 && p->n_tools == 5 && p->n_calls == 1));
        n_failed += !is_whole;
        tool_plan_destroy(p);
    }
    CHECK(n_failed >= 6 && n_failed < 40);
    json_free(doc);
}

/* ---- mcp_servers of Messages ---- */

/* Which server is asked for first, where none can be: its name and the field. "" where none is. */
static const char *asked(const char *fields)
{
    static char out[256];
    char body[1024];
    api_request r;
    err_detail d = {0};
    snprintf(body, sizeof body, "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],%s}",
             fields);
    api_request_init(&r);
    const err_code err = messages_request_parse(&r, body, strlen(body), true, NULL, &d);
    const char *quote = strchr(d.text, '"');
    out[0] = '\0';
    if (err && strcmp(d.name, "unknown_server") == 0 && quote) {
        snprintf(out, sizeof out, "%.*s at %s", (int)strcspn(quote + 1, "\""), quote + 1, d.param);
    } else if (err) {
        snprintf(out, sizeof out, "%s at %s", d.name, d.param);
    }
    api_request_deinit(&r);
    return out;
}

#define SERVER(name) "{\"type\":\"url\",\"name\":\"" name "\",\"url\":\"http://h\"}"
#define SET(name)    "{\"type\":\"mcp_toolset\",\"mcp_server_name\":\"" name "\"}"

static void test_messages(void)
{
    CHECK_STR(asked("\"mcp_servers\":[]"), "");
    CHECK_STR(asked("\"mcp_servers\":[" SERVER("a") "]"), "a at tools[0].server_label");
    CHECK_STR(asked("\"mcp_servers\":[" SERVER("a") "," SERVER("b") "],\"tools\":[" SET("b") "]"),
              "a at tools[0].server_label");
    CHECK_STR(asked("\"mcp_servers\":[" SERVER("a") "," SERVER("b") "],\"tools\":[" SET("a") "]"),
              "b at tools[0].server_label");
    CHECK_STR(
        asked("\"mcp_servers\":[" SERVER("a") "," SERVER("b") "],\"tools\":[" SET("b") "," SET("a") "]"),
        "b at tools[0].server_label");
    CHECK_STR(asked("\"mcp_servers\":[" SERVER("a") "],\"tools\":[" SET("b") "]"),
              "unknown_server at tools[0]");
    CHECK_STR(asked("\"tools\":[" SET("b") "]"), "unknown_server at tools[0]");
    CHECK_STR(asked("\"mcp_servers\":[" SERVER("a") "," SERVER("a") "]"), "invalid_value at mcp_servers[1]");
    CHECK_STR(asked("\"mcp_servers\":[{\"url\":\"http://h\"}]"), "invalid_value at mcp_servers[0]");
    CHECK_STR(asked("\"mcp_servers\":7"), "invalid_value at mcp_servers");
    CHECK_STR(asked("\"tools\":7"), "invalid_value at tools");
    CHECK_STR(asked("\"mcp_servers\":[{\"name\":\"a\",\"tool_configuration\":{\"enabled\":false}}]"), "");
    CHECK_STR(asked("\"mcp_servers\":[{\"name\":\"a\",\"tool_configuration\":{\"enabled\":true}}]"),
              "a at tools[0].server_label");
    CHECK_STR(asked("\"tools\":[{\"type\":\"bash_1\",\"name\":\"x\",\"input_schema\":{}}]"),
              "not_supported at tools[0]");
    CHECK_STR(asked("\"tools\":[{\"type\":\"custom\",\"name\":\"x\"}]"), "invalid_value at tools[0]");
    CHECK_STR(asked("\"tools\":[{\"type\":\"custom\",\"name\":\"x\",\"input_schema\":{}}]"), "");
    CHECK_STR(asked("\"tools\":[{\"type\":\"mcp\",\"server_label\":\"c\"}]"), "c at tools[0].server_label");
}

int main(void)
{
    test_offer();
    test_clean_text();
    test_prune();
    test_plan();
    test_states();
    test_calls();
    test_memory();
    test_messages();
    CHECK_DONE();
}
