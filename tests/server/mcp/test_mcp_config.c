/* mcp_config: what a program gets of this environment, what of each entry counts, and what is wrong in it. */
#include <sys/stat.h>

#include "server/mcp/mcp_config.h"

#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"

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
        {"{\"builtin\":\"folder\",\"path\":\"/dev/null\"}", "there is no folder /dev/null", MCP_BUILTIN,
         MCP_NEVER_ASK, LIMIT_MCP_CALL_S},
        {"{\"builtin\":\"folder\",\"path\":\"\"}", "needs a path", MCP_BUILTIN, MCP_NEVER_ASK,
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
    CHECK_OK(mcp_config_read(&c, NULL, "calculator,, ,  time,", &d), d); /* what is empty is nothing */
    CHECK_INT(c->n, 2);
    CHECK_STR(c->servers[1].label, "time");
    mcp_config_destroy(c);
    CHECK_OK(mcp_config_read(&c, NULL, "fetch=a.example,, ,fetch=b.example,", &d), d);
    CHECK_INT(c->servers[0].domains.n, 2);
    mcp_config_destroy(c);
    CHECK_OK(mcp_config_read(&c, NULL, "folder=/", &d), d);
    CHECK_STR(c->servers[0].folder, "/");
    mcp_config_destroy(c);
    CHECK_INT(mcp_config_read(&c, NULL, "calculator,nothing", &d), ERR_INVALID);
    CHECK_INT(mcp_config_read(&c, NULL, "folder=/nowhere", &d), ERR_INVALID);
    CHECK(strstr(d.text, "/nowhere"));
    CHECK_INT(mcp_config_read(&c, NULL, "folders/tmp", &d), ERR_INVALID);
    CHECK_HAS(d.text, "--tools folders/tmp: ");
    CHECK_INT(mcp_config_read(&c, NULL, "fetch=", &d), ERR_INVALID);
    CHECK_HAS(d.text, "--tools fetch=: ");
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

/* Names that hold all that they may, and signs that they may not. */
static void test_signs(void)
{
    static const char *const NAMES[] = {"a",       "Z",   "9",   "-",  "_",       ".",
                                        "a.b-c_9", "a b", "a/b", "a:", "\303\244"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"mcpServers\":{\"%s\":{\"command\":\"x\"}}}", NAMES[i]);
        mcp_config *c = read_text(text, NULL);
        CHECK_INT(c->servers[0].problem[0] != '\0', i > 6);
        CHECK_STR(c->servers[0].label, i > 6 ? "server-1" : NAMES[i]);
        mcp_config_destroy(c);
    }
}

static void test_headers(void)
{
    for (int n = MCP_HEADERS_MAX; n <= MCP_HEADERS_MAX + 1; n++) {
        char text[2000];
        int at = snprintf(text, sizeof text, "{\"mcpServers\":{\"a\":{\"url\":\"http://h/\",\"headers\":{");
        for (int i = 0; i < n; i++) {
            at += snprintf(text + at, sizeof text - (size_t)at, "%s\"H%d\":\"v\"", i ? "," : "", i);
        }
        snprintf(text + at, sizeof text - (size_t)at, "}}}}");
        mcp_config *c = read_text(text, NULL);
        CHECK_STR(c->servers[0].problem, n > MCP_HEADERS_MAX ? "it has more than 24 headers" : "");
        CHECK_INT(c->servers[0].headers.n, n);
        mcp_config_destroy(c);
    }
}

/* Which of them need connections, or processes. */
static void test_uses(void)
{
    static const struct {
        const char *entry;
        bool connects, spawns;
    } ROWS[] = {{"{\"url\":\"http://h/\"}", true, false},
                {"{\"url\":\"http://h/\",\"disabled\":true}", false, false},
                {"{\"url\":\"ftp://h/\"}", false, false},
                {"{\"command\":\"x\"}", false, true},
                {"{\"command\":\"x\",\"disabled\":true}", false, false},
                {"{\"command\":\"\"}", false, false},
                {"{\"builtin\":\"time\"}", false, false},
                {"{\"builtin\":\"fetch\",\"domains\":[\"a.example\"]}", true, false},
                {"{\"builtin\":\"fetch\",\"domains\":[\"a.example\"],\"disabled\":true}", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[300];
        for (int more = 0; more < 2; more++) { /* the first of two, or the other */
            snprintf(text, sizeof text, "{\"mcpServers\":{\"%s\":%s,\"%s\":%s}}", more ? "b" : "a",
                     more ? "{\"builtin\":\"time\"}" : ROWS[i].entry, more ? "a" : "b",
                     more ? ROWS[i].entry : "{\"builtin\":\"time\"}");
            mcp_config *c = read_text(text, NULL);
            CHECK_INT(mcp_config_connects(c), ROWS[i].connects);
            CHECK_INT(mcp_config_spawns(c), ROWS[i].spawns);
            mcp_config_destroy(c);
        }
    }
    CHECK(!mcp_config_connects(NULL) && !mcp_config_spawns(NULL) && !mcp_config_find(NULL, "a"));
}

/* ---- texts, lists and objects of texts ---- */

static void show(char *out, size_t cap, const char *what, const mcp_words *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const size_t n = strlen(out);
        snprintf(out + n, cap - n, "%s%s%s", n ? " " : "", what, w->items[i]);
    }
}

/* The words of an entry, "!" and what is wrong. */
static void check_entry(const char *entry, const char *expected)
{
    char text[400], shown[1024] = "";
    snprintf(text, sizeof text, "{\"mcpServers\":{\"a\":%s}}", entry);
    mcp_config *c = read_text(text, NULL);
    const mcp_server_config *s = &c->servers[0];
    show(shown, sizeof shown, "", &s->argv);
    show(shown, sizeof shown, "env ", &s->env);
    show(shown, sizeof shown, "header ", &s->headers);
    show(shown, sizeof shown, "host ", &s->domains);
    const size_t n = strlen(shown);
    snprintf(shown + n, sizeof shown - n, "%s%s%s%s", s->cwd ? " in " : "", s->cwd ? s->cwd : "",
             s->problem[0] ? " !" : "", s->problem);
    CHECK_STR(shown, expected);
    mcp_config_destroy(c);
}

static void test_texts(void)
{
    static const char *const ROWS[][2] = {
        {"{\"command\":\"${GIVEN}\"}", "value"},
        {"{\"command\":\"a${GIVEN}b${env:GIVEN}c\",\"cwd\":\"/${GIVEN}\"}", "avaluebvaluec in /value"},
        {"{\"command\":\"${GIVEN:-other}\"}", "value"},
        {"{\"command\":\"${MISSING:-other}\"}", "other"},
        {"{\"command\":\"${env:MISSING:-o:-p}x\"}", "o:-px"},
        {"{\"command\":\"x${MISSING:-}\"}", "x"},
        {"{\"command\":\"x\",\"args\":[\"${MISSING}\"]}",
         "x  !the variable MISSING of the environment is not set"},
        {"{\"command\":\"x\",\"args\":[\"${env:MISSING}\"]}",
         "x  !the variable MISSING of the environment is not set"},
        {"{\"command\":\"x\",\"args\":[\"${MISSING:}\"]}",
         "x  !the variable MISSING: of the environment is not set"},
        {"{\"command\":\"x\",\"args\":[\"${env:}\"]}", "x  !the variable env: of the environment is not set"},
        {"{\"command\":\"x\",\"args\":[\"${MISSING:other}\"]}",
         "x  !the variable MISSING:other of the environment is not set"},
        {"{\"command\":\"x\",\"args\":[\"$GIVEN\",\"${GIVEN\",\"{GIVEN}\",\"$\"]}",
         "x $GIVEN ${GIVEN {GIVEN} $"},
        {"{\"command\":\"x\",\"args\":null,\"env\":null}", "x"},
        {"{\"command\":\"x\",\"args\":\"1\"}", "x !args must be a list of texts"},
        {"{\"command\":\"x\",\"args\":{}}", "x !args must be a list of texts"},
        {"{\"command\":\"x\",\"args\":[\"1\",2,\"3\"]}", "x 1 !args must be a list of texts"},
        {"{\"command\":\"x\",\"args\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"]}",
         "x 1 2 3 4 5 6 7 8"},
        {"{\"command\":\"x\",\"env\":[]}", "x !env must be an object of texts"},
        {"{\"command\":\"x\",\"env\":{\"A\":\"1\",\"B\":2}}",
         "x env A=1 env B= !env.B must be a text on one line"},
        {"{\"command\":\"x\",\"env\":{\"\":\"1\"}}", "x env =1 !env. must be a text on one line"},
        {"{\"command\":\"x\",\"env\":{\"A=B\":\"1\"}}", "x env A=B=1 !env.A=B must be a text on one line"},
        {"{\"command\":\"x\",\"env\":{\"A\":\"1\\n2\"}}", "x env A=1\n2 !env.A must be a text on one line"},
        {"{\"url\":\"http://h/\",\"headers\":{\"X-A\":\"${GIVEN}\",\"X-B\":\"b\"}}",
         "header X-A: value header X-B: b"},
        {"{\"url\":\"http://h/\",\"headers\":{\"X A\":\"1\"}}",
         "header X A: 1 !headers.X A must be a text on one line"},
        {"{\"url\":\"http://h/\",\"headers\":3}", " !headers must be an object of texts"},
        {"{\"url\":\"${MISSING}\"}", " !the variable MISSING of the environment is not set"},
        {"{\"builtin\":\"fetch\",\"domains\":\"h\"}", "host * !domains must be a list of texts"},
        {"{\"builtin\":\"fetch\",\"domains\":[\"${GIVEN}\",\"*.h\"]}", "host value host *.h"},
    };
    static const char *const INHERITED[] = {"PATH", "HOME",   "USER",     "LOGNAME", "SHELL",
                                            "LANG", "LC_ALL", "LC_CTYPE", "TZ",      "TMPDIR"};
    for (size_t i = 0; i < ARRAY_LEN(INHERITED); i++) {
        unsetenv(INHERITED[i]);
    }
    unsetenv("MISSING");
    setenv("GIVEN", "value", 1);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        check_entry(ROWS[i][0], ROWS[i][1]);
    }
    char *words[] = {"one", "two", "three", NULL};
    CHECK(mcp_words_have(&(mcp_words){.items = words, .n = 3}, "three"));
    CHECK(!mcp_words_have(&(mcp_words){.items = words, .n = 2}, "three"));
}

/* The longest text, name of a variable and variable that there may be, and one byte more. */
static void test_lengths(void)
{
    enum { MOST = 64 << 10, NAME = 255 };
    static char value[MOST + 2];
    char name[NAME + 2], text[NAME + 100];
    for (size_t more = 0; more < 2; more++) {
        memset(value, 'v', MOST + more);
        setenv("LONG", value, 1);
        mcp_config *c = read_text("{\"mcpServers\":{\"a\":{\"command\":\"${LONG}\"}}}", NULL);
        const mcp_server_config *s = &c->servers[0];
        CHECK_STR(s->problem, more ? "one of its texts is longer than 65536 bytes" : "");
        CHECK_INT(s->argv.n, !more);
        CHECK(more || strcmp(s->argv.items[0], value) == 0);
        mcp_config_destroy(c);
        setenv("PATH", value + 1, 1);
        setenv("HOME", value + 1 + !more, 1);
        c = read_text("{\"mcpServers\":{\"a\":{\"command\":\"x${LONG:-x}\"}}}", NULL);
        CHECK_STR(c->servers[0].problem, "one of its texts is longer than 65536 bytes");
        CHECK_INT(c->servers[0].env.n, more ? 0 : 2);
        mcp_config_destroy(c);
        memset(name, 'n', sizeof name);
        name[NAME + more] = '\0';
        setenv(name, "by name", 1);
        snprintf(text, sizeof text, "{\"mcpServers\":{\"a\":{\"command\":\"x${%s:-other}\"}}}", name);
        c = read_text(text, NULL);
        CHECK_STR(c->servers[0].argv.items[0], more ? "xother" : "xby name");
        mcp_config_destroy(c);
    }
    unsetenv("PATH");
    unsetenv("HOME");
}

/* What is no object of servers. */
static void test_files(void)
{
    static const char *const TEXTS[] = {"{}", "[]", "3", "{\"mcpServers\":[]}", "{\"mcpServers\":null}"};
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        mcp_config *c = NULL;
        err_detail d = {0};
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(TEXTS[i], f) >= 0);
        CHECK(f && fclose(f) == 0);
        CHECK_INT(mcp_config_read(&c, path, NULL, &d), ERR_INVALID);
        CHECK_HAS(d.text, "/mcp.json has no object mcpServers: {\"mcpServers\": {\"NAME\": {...}}}");
        CHECK(!c);
    }
}

/* A server of each kind, and those of --tools. */
static err_code read_once(void *path)
{
    mcp_config *c = NULL;
    err_detail d = {0};
    const err_code err =
        mcp_config_read(&c, path, "calculator, fetch=a.example,folder=/tmp,fetch=*.b.example", &d);
    CHECK((err == ERR_OK) == (c != NULL) && (err == ERR_OK) == (d.text[0] == '\0'));
    /* What is read is read whole; but libcurl does not say why it cannot read a url. */
    const bool is_read = !c || !c->servers[1].problem[0] || strstr(c->servers[1].problem, "its url must be");
    CHECK(is_read && (!c || c->n == 6));
    for (size_t i = 0; c && i < c->n; i++) {
        CHECK_STR(i == 1 ? "" : c->servers[i].problem, "");
    }
    mcp_config_destroy(c);
    return err;
}

static void test_short_memory(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    CHECK_INT(setenv("GIVEN", "value", 1), 0);
    FILE *f = fopen(path, "w");
    CHECK(
        f &&
        fputs("{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"1\",\"2\"],\"env\":{\"A\":\"${GIVEN}\"},"
              "\"alwaysAllow\":[\"t\"],\"disabledTools\":[\"u\"]},\"b\":{\"url\":\"https://h/\",\"headers\":"
              "{\"X\":\"y\"}},\"c\":{\"builtin\":\"time\"}}}",
              f) >= 0);
    CHECK(f && fclose(f) == 0);
    CHECK(alloc_fail_each(read_once, path, 1000) > 20);
}

int main(void)
{
    test_environment();
    test_entries();
    test_tools();
    test_names();
    test_signs();
    test_headers();
    test_uses();
    test_texts();
    test_lengths();
    test_files();
    test_short_memory();
    CHECK_DONE();
}
