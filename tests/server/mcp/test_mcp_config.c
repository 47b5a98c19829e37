/* mcp_config: what a program gets of this environment, what of each entry counts, and what is wrong in it. */
#include <sys/stat.h>

#include "server/mcp/mcp_config.h"

#include "base/limits.h"
#include "tests/folder.h"

static mcp_config *read_text(const char *text, const char *tools)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    mcp_config *c = NULL;
    err_detail d = {0};
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    CHECK(f && fclose(f) == 0);
    CHECK_OK(mcp_config_read(&c, path, tools, &d), d);
    return c;
}

/* How many variables have this name; *value: of the last of them. */
static int count(const mcp_words *env, const char *name, const char **value)
{
    const size_t len = strlen(name);
    int n = 0;
    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=') {
            *value = env->items[i] + len + 1;
            n++;
        }
    }
    return n;
}

static void test_environment(void)
{
    const char *value = "";
    CHECK_INT(setenv("HOME", "/home/one", 1) | setenv("PATH", "/bin", 1) | setenv("TZ", "UTC", 1), 0);
    CHECK_INT(setenv("USER", "one", 1) | setenv("SECRET", "hidden", 1) | unsetenv("SHELL"), 0);
    mcp_config *c = read_text(
        "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"1\",\"2\"],\"env\":{\"PATH\":\"/mine\","
        "\"HOMES\":\"no home\",\"OWN\":\"${SECRET}\",\"U\":\"v\"}},\"b\":{\"command\":\"y\"}}}",
        NULL);
    const mcp_words *env = &c->servers[0].env;
    CHECK_INT(count(env, "PATH", &value), 1); /* what the file gives takes the place of ours */
    CHECK_STR(value, "/mine");
    CHECK_INT(count(env, "HOME", &value), 1); /* HOMES is another one */
    CHECK_STR(value, "/home/one");
    CHECK_INT(count(env, "OWN", &value), 1);
    CHECK_STR(value, "hidden");
    CHECK_INT(count(env, "USER", &value), 1); /* U is another one */
    CHECK_STR(value, "one");
    CHECK_INT(count(env, "TZ", &value), 1);
    CHECK_INT(count(env, "SECRET", &value), 0);
    CHECK_INT(count(env, "SHELL", &value), 0); /* is not there */
    CHECK_INT(count(&c->servers[1].env, "PATH", &value), 1);
    CHECK_STR(value, "/bin");
    CHECK(!env->items[env->n]); /* as execve wants it */
    CHECK_STR(c->servers[0].argv.items[0], "x");
    CHECK_STR(c->servers[0].argv.items[2], "2");
    mcp_config_destroy(c);
}

static void test_entries(void)
{
    static const struct {
        const char *entry, *problem; /* a piece of it; "": none */
        int kind, consent, timeout_s;
    } ROWS[] = {
        {"{\"command\":\"x\"}", "", MCP_STDIO, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"command\":\"\"}", "needs a command", MCP_STDIO, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"command\":\"x\",\"approval\":\"never\",\"timeout\":3600}", "", MCP_STDIO, MCP_NEVER_ASK, 3600},
        {"{\"command\":\"x\",\"approval\":\"first\",\"timeout\":1}", "", MCP_STDIO, MCP_ASK_ONCE, 1},
        {"{\"command\":\"x\",\"approval\":\"writes\"}", "", MCP_STDIO, MCP_ASK_TO_WRITE, LIMIT_MCP_CALL_S},
        {"{\"command\":\"x\",\"approval\":\"maybe\"}", "approval must be", MCP_STDIO, MCP_ASK,
         LIMIT_MCP_CALL_S},
        {"{\"command\":\"x\",\"timeout\":3601}", "timeout must be", MCP_STDIO, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"command\":\"x\",\"timeout\":0}", "timeout must be", MCP_STDIO, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"command\":\"x\",\"memoryMiB\":0}", "memoryMiB must be", MCP_STDIO, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"url\":\"http://127.0.0.1:9/mcp\"}", "", MCP_HTTP, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"url\":\"http://127.0.0.1:9/mcp#x\"}", "url must be", MCP_HTTP, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"url\":\"ftp://127.0.0.1/\"}", "url must be", MCP_HTTP, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"time\"}", "", MCP_BUILTIN, MCP_NEVER_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"time\",\"approval\":\"always\"}", "", MCP_BUILTIN, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"fetch\"}", "", MCP_BUILTIN, MCP_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"fetch\",\"domains\":[\"no host!\"]}", "is not a host", MCP_BUILTIN, MCP_ASK,
         LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"folder\",\"path\":\"/nowhere\"}", "no folder", MCP_BUILTIN, MCP_NEVER_ASK,
         LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"folder\"}", "needs a path", MCP_BUILTIN, MCP_NEVER_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"other\"}", "builtin must be", MCP_BUILTIN, MCP_NEVER_ASK, LIMIT_MCP_CALL_S},
        {"3", "must be an object", MCP_STDIO, MCP_ASK, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[400];
        snprintf(text, sizeof text, "{\"mcpServers\":{\"a\":%s}}", ROWS[i].entry);
        mcp_config *c = read_text(text, NULL);
        const mcp_server_config *s = &c->servers[0];
        CHECK_INT(c->n, 1);
        CHECK(ROWS[i].problem[0] ? strstr(s->problem, ROWS[i].problem) != NULL : !s->problem[0]);
        CHECK_INT(s->kind, ROWS[i].kind);
        CHECK_INT(s->consent, ROWS[i].consent);
        CHECK_INT(s->timeout_s, ROWS[i].timeout_s);
        mcp_config_destroy(c);
    }
}

static void test_tools(void)
{
    mcp_config *c = NULL;
    err_detail d = {0};
    CHECK_OK(
        mcp_config_read(&c, NULL, "calculator, fetch=a.example,folder=/tmp,fetch=*.b.example,calculator", &d),
        d);
    static const char *const LABELS[] = {"calculator", "fetch", "folder", "calculator-4"};
    CHECK_INT(c->n, ARRAY_LEN(LABELS));
    for (size_t i = 0; i < c->n; i++) {
        CHECK_STR(c->servers[i].label, LABELS[i]);
        CHECK_STR(c->servers[i].problem, "");
        CHECK(mcp_config_find(c, LABELS[i]) == &c->servers[i]);
    }
    CHECK(!mcp_config_find(c, "calc"));
    CHECK_INT(c->servers[1].domains.n, 2); /* all hosts are those of one server */
    CHECK_STR(c->servers[1].domains.items[1], "*.b.example");
    CHECK_STR(c->servers[2].folder, "/tmp");
    mcp_config_destroy(c);
    CHECK_INT(mcp_config_read(&c, NULL, "calculator,nothing", &d), ERR_INVALID);
    CHECK_INT(mcp_config_read(&c, NULL, "folder=/nowhere", &d), ERR_INVALID);
    CHECK(strstr(d.text, "/nowhere"));
    CHECK_INT(mcp_config_read(&c, "/nowhere.json", NULL, &d), ERR_NOT_FOUND);
}

/* Names: as long as they may be, wrong ones, twice the same, more than there may be. */
static void test_names(void)
{
    char text[8192], name[MCP_LABEL_MAX + 2];
    size_t n = 0;
    mcp_config *c = read_text("{\"mcpServers\":{\"a b\":{\"command\":\"x\"},\"same\":{\"command\":\"x\"},"
                              "\"same\":{\"command\":\"y\"},\"\":{\"command\":\"x\"}}}",
                              NULL);
    CHECK(strstr(c->servers[0].problem, "its name must be") &&
          strstr(c->servers[3].problem, "its name must be"));
    CHECK_STR(c->servers[0].label, "server-1");
    CHECK_STR(c->servers[1].problem, "");
    CHECK(strstr(c->servers[2].problem, "the first counts"));
    CHECK_STR(c->servers[2].label, "same-3");
    mcp_config_destroy(c);
    for (size_t more = 0; more < 2; more++) {
        memset(name, 'n', sizeof name);
        snprintf(text, sizeof text, "{\"mcpServers\":{\"%.*s\":{\"command\":\"x\"}}}",
                 (int)(MCP_LABEL_MAX + more), name);
        c = read_text(text, NULL);
        CHECK_INT(c->servers[0].problem[0] != '\0', more);
        mcp_config_destroy(c);
    }
    for (int i = 0; i <= MCP_SERVERS; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"s%d\":{\"command\":\"x\"}",
                              i ? "," : "{\"mcpServers\":{", i);
    }
    snprintf(text + n, sizeof text - n, "}}");
    c = read_text(text, NULL);
    CHECK_INT(c->n, MCP_SERVERS);
    CHECK_STR(c->servers[MCP_SERVERS - 2].problem, "");
    CHECK(strstr(c->servers[MCP_SERVERS - 1].problem, "more than"));
    mcp_config_destroy(c);
}

int main(void)
{
    test_environment();
    test_entries();
    test_tools();
    test_names();
    CHECK_DONE();
}
