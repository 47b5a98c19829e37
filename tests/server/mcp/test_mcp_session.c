/* mcp_session: when a session is looked at next, and when one that failed is tried again, in times that are made up; what
 * it says and hears over standard streams. */
#define _GNU_SOURCE /* pipe2 */
#include "server/mcp/mcp_catalog.h"

#include <signal.h>

#include "base/log.h"
#include "tests/server/mcp/talk.h"

enum { NOW = TALK_BEGUN_MS, MINUTE = 60000, RELIST = 5000 };

/* 1, 2, 4, ... s; a connection that held for more than a minute was a good one. */
static void test_tries(void)
{
    static const struct {
        int n_failed, held_ms, wait_s, then;
    } rows[] = {{0, 1, 1, 1},          {1, 1, 2, 2},
                {2, 1, 4, 3},          {4, 1, 16, 5},
                {5, 1, 32, 6},         {5, MINUTE, 32, 6},
                {5, MINUTE + 1, 1, 1}, {6, 1, LIMIT_MCP_BACK_OFF_S, 7},
                {0, MINUTE * 9, 1, 1}, {90, 1, LIMIT_MCP_BACK_OFF_S, 91}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const mcp_server_config config = {.label = "one", .kind = MCP_HTTP};
        mcp m;
        mcp_session *s = begin(&m, &config);
        const double now = NOW + rows[i].held_ms;
        s->n_failed = rows[i].n_failed;
        s->is_failing = true;
        CHECK(mcp_session_tick(s, now) == now + rows[i].wait_s * 1000.0);
        CHECK_INT(s->n_failed, rows[i].then);
        CHECK_INT(s->step, STEP_CLOSED);
        CHECK(!s->is_failing);
        /* It waits: nothing begins before that time. */
        CHECK(mcp_session_tick(s, now + 1) == now + rows[i].wait_s * 1000.0);
        CHECK_INT(s->step, STEP_CLOSED);
        end(&m);
    }
}

static void test_looks(void)
{
    mcp_server_config config = {.label = "one", .kind = MCP_HTTP};
    mcp m;
    mcp_session *s = begin(&m, &config);
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 7 + MINUTE); /* nothing is awaited */
    s->relist_ms = NOW + 900;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 900); /* its lists will be stale */
    s->relist_ms = NOW + 2.0 * MINUTE;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 7 + MINUTE);
    s->wants_relist = true; /* not sooner, whatever it says */
    CHECK(mcp_session_tick(s, NOW + RELIST - 1) == NOW + RELIST);
    CHECK(!s->is_relisting && !m.asks);
    s->is_relisting = true;
    CHECK(mcp_session_tick(s, NOW + RELIST) == NOW + RELIST + MINUTE);
    /* Requests that are sent already: the one whose time is over first. */
    mcp_ask asks[] = {{.s = s, .purpose = MCP_NOTICE, .until_ms = NOW + 3000.0},
                      {.s = s, .purpose = MCP_NOTICE, .until_ms = NOW + 2000.0},
                      {.s = s, .purpose = MCP_NOTICE, .until_ms = NOW + 4000.0, .send_ms = NOW + 2500.0}};
    asks[0].next = &asks[1];
    asks[1].next = &asks[2];
    m.asks = asks;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 2000);
    asks[1].until_ms = NOW + 9000;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 2500); /* one that is to be sent */
    mcp_session other = {.config = &config};
    asks[0].s = asks[1].s = asks[2].s = &other;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 7 + MINUTE);
    m.asks = NULL;
    s->step = STEP_CLOSED;
    config.is_off = true;
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 7 + MINUTE);
    config.is_off = false;
    snprintf(config.problem, sizeof config.problem, "no such folder");
    CHECK(mcp_session_tick(s, NOW + 7) == NOW + 7 + MINUTE);
    CHECK_INT(s->step, STEP_CLOSED);
    end(&m);
}

/* ---- messages over standard streams ---- */

/* Begins, and lists what it has, page by page; lines that are no messages are nothing. */
static void test_handshake(void)
{
    talk t;
    start_talk(&t);
    t.s->step = STEP_OPENING;
    CHECK(mcp_ask_new(t.s, MCP_INITIALIZE, 30) != NULL);
    CHECK_STR(sent(&t),
              REQUEST("1", "initialize",
                      "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":" CLIENT ","));
    CHECK_STR(hear(&t, "Starting...\n{\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":"
                       "\"2025-06-18\","),
              "");
    CHECK_STR(
        hear(&t, "\"serverInfo\":{\"name\":\"n\",\"title\":\"T\\u0007\",\"version\":\"2\"},\"capabilities\":{"
                 "\"tools\":{},\"prompts\":{}}}}\n"),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n" REQUEST("2", "tools/list", ""));
    CHECK_STR(t.s->name, "T");
    CHECK_STR(t.s->version, "2");
    CHECK_STR(t.s->protocol, "2025-06-18");
    CHECK_INT(t.s->step, STEP_LISTING);
    CHECK_STR(hear(&t, REPLY("9", "\"tools\":[]")), ""); /* nobody asked */
    CHECK_STR(hear(&t, REPLY("2", "\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"c\",\"ttlMs\":99000")),
              REQUEST("3", "tools/list", "\"cursor\":\"c\","));
    CHECK_STR(hear(&t, REPLY("3", "\"tools\":[{\"name\":\"b\"},{\"name\":\"c\"}],\"ttlMs\":70000")),
              REQUEST("4", "prompts/list", ""));
    CHECK_INT(t.s->step, STEP_LISTING);
    CHECK_STR(hear(&t, REPLY("4", "\"prompts\":[{\"name\":\"p\"}]")), "");
    CHECK_INT(t.s->step, STEP_OPEN);
    CHECK(t.s->offer && t.s->offer->n_tools == 3 && json_len(t.s->offer->prompts) == 1);
    CHECK(fabs(t.s->relist_ms - clock_ms() - 70000) < 30000);
    CHECK(!t.s->is_relisting && !t.s->is_failing);
    /* They have changed: the lists are read again. */
    CHECK_STR(hear(&t, NOTICE("list_changed_not") NOTICE("other")), "");
    CHECK(!t.s->wants_relist);
    CHECK_STR(hear(&t, NOTICE("tools/list_changed")), "");
    CHECK(t.s->wants_relist);
    /* It may ask, too. */
    CHECK_STR(hear(&t, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\n"),
              "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n");
    CHECK_STR(hear(&t, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"sampling/createMessage\"}\n"),
              "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32601,\"message\":\"not supported by this "
              "client\"}}\n");
    end_talk(&t);
}

/* Protocols: the newer one where it has it, else the older; none is told. */
static void test_protocols(void)
{
    static const struct {
        mcp_purpose purpose;
        const char *reply, *why;
        bool is_modern;
        int step;
    } CASES[] = {
        {MCP_INITIALIZE, REPLY("1", "\"protocolVersion\":\"1999\""),
         "it wants a protocol that is not known here: 1999", false, STEP_OPENING},
        {MCP_INITIALIZE, "{\"id\":1,\"error\":{\"message\":\"no\"}}\n", "it refuses to begin: no", false,
         STEP_OPENING},
        {MCP_INITIALIZE, REPLY("1", "\"protocolVersion\":\"2024-11-05\""), "", false, STEP_OPEN},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":[\"1\",\"2026-07-28\"]"), "", true, STEP_OPEN},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":[\"1\"]"),
         "it speaks none of the protocols 2026-07-28 and 2025-11-25", true, STEP_OPENING},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":[\"2025-06-18\"]"), "", false, STEP_OPENING},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":[\"1\",\"2025-03-26\"]"), "", false, STEP_OPENING},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":[\"2025-11-25\"]"), "", false, STEP_OPENING},
        {MCP_DISCOVER, REPLY("1", "\"supportedVersions\":\"2026-07-28\""), "", false, STEP_OPENING},
        {MCP_DISCOVER, "{\"id\":1,\"error\":{\"data\":{\"supported\":[\"2026-07-28\"]}}}\n",
         "it speaks none of the protocols 2026-07-28 and 2025-11-25", true, STEP_OPENING},
        {MCP_DISCOVER, "{\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n", "", false,
         STEP_OPENING},
        {MCP_DISCOVER, "{\"id\":1,\"error\":{\"data\":{\"supported\":[\"7\"]}}}\n",
         "it speaks none of the protocols 2026-07-28 and 2025-11-25", true, STEP_OPENING},
        {MCP_DISCOVER, "{\"id\":1,\"result\":{]\n", NULL, true, STEP_OPENING},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        talk t;
        start_talk(&t);
        t.s->step = STEP_OPENING;
        t.s->is_modern = CASES[i].purpose == MCP_DISCOVER;
        CHECK(mcp_ask_new(t.s, CASES[i].purpose, 30) != NULL);
        mcp_session_tick(t.s, clock_ms() + 1);
        CHECK(write(t.writes, CASES[i].reply, strlen(CASES[i].reply)) > 0);
        mcp_pipe_ready(t.s, true, false, false);
        CHECK_INT(t.s->is_failing, !CASES[i].why || CASES[i].why[0] != '\0');
        CHECK_INT(t.s->step, CASES[i].step);
        CHECK_INT(t.s->is_modern, CASES[i].is_modern);
        if (CASES[i].why) {
            CHECK_STR(t.s->why, CASES[i].why);
        } else {
            CHECK(strncmp(t.s->why, "its message is not JSON that is read here: ", 43) == 0);
        }
        end_talk(&t);
    }
}

/* Orders: what is asked, how it goes, what comes of it. */
static void test_orders(void)
{
    talk t;
    start_talk(&t);
    mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL},
                   .name = strdup("add"),
                   .arguments = strdup("{\"a\":1}")};
    work(&t, &job);
    CHECK_STR(sent(&t), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
                        "call\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1},"
                        "\"_meta\":{\"progressToken\":1}}}\n");
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":2,\"progress\":1,\"total\":2")), "");
    CHECK_STR(results(), "");
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":1,\"total\":4,\"message\":\"a\\nb\"")), "");
    CHECK_STR(results(), "5.2 25% ab|");
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":2,\"total\":4")), "");
    CHECK_STR(results(), ""); /* not so soon again */
    t.m.asks->told_ms = 0;
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":9,\"total\":4")), "");
    CHECK_STR(results(), "5.2 100% |");
    t.m.asks->told_ms = 0;
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":-1")), "");
    CHECK_STR(results(), "5.2 0% |");
    CHECK_STR(hear(&t, REPLY("1", "\"content\":[{\"type\":\"text\",\"text\":\"two\"}]")), "");
    CHECK_STR(results(), "5.2 two|");
    CHECK(!t.m.asks);
    work(&t, &job);
    CHECK(strstr(sent(&t), "\"id\":2,") != NULL);
    CHECK_STR(hear(&t, "{\"id\":2,\"error\":{\"message\":\"no such tool\"}}\n"), "");
    CHECK_STR(results(), "5.2 !no such tool|");
    work(&t, &job);
    CHECK(strstr(sent(&t), "\"id\":3,") != NULL);
    CHECK_STR(hear(&t, "{\"id\":3,\"error\":{}}\n"), "");
    CHECK_STR(results(), "5.2 !it answered with an error|");
    job.order.what = MCP_READ_RESOURCE;
    work(&t, &job);
    CHECK_STR(sent(&t), "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"resources/"
                        "read\",\"params\":{\"uri\":\"add\",\"_meta\":{\"progressToken\":4}}}\n");
    CHECK_STR(hear(&t, REPLY("4", "\"contents\":[]")), "");
    CHECK(strstr(results(), "{\"contents\":[]}|") != NULL);
    job.order.what = MCP_GET_PROMPT;
    work(&t, &job);
    CHECK(strstr(sent(&t),
                 "\"method\":\"prompts/get\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1},") != NULL);
    /* What it wants to know it is not told, and it may go on without. */
    CHECK_STR(hear(&t, REPLY("5", "\"resultType\":\"input_required\",\"inputRequests\":{\"r\":{\"method\":"
                                  "\"roots/list\"},\"q\":{\"method\":"
                                  "\"elicitation/create\"}},\"requestState\":\"s\"")),
              "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"prompts/"
              "get\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1},\"inputResponses\":{\"r\":"
              "{\"roots\":[]},\"q\":{\"action\":\"decline\"}},\"requestState\":\"s\",\"_meta\":{"
              "\"progressToken\":6}}}\n");
    CHECK_STR(
        hear(&t, REPLY("6", "\"resultType\":\"input_required\",\"inputRequests\":{},\"requestState\":1")),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"prompts/"
        "get\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1},\"requestState\":1,"
        "\"_meta\":{\"progressToken\":7}}}\n");
    CHECK_STR(hear(&t, REPLY("7", "\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":"
                                  "\"sampling/createMessage\"}}")),
              "");
    CHECK_STR(results(), "5.2 !one: it asks for something that nobody here can give it|");
    /* Where it is down it is not asked. */
    t.s->step = STEP_CLOSED;
    t.s->n_failed = 1;
    work(&t, &job);
    CHECK_STR(results(), "5.2 !one: it is not connected|");
    snprintf(t.s->why, sizeof t.s->why, "it fell");
    work(&t, &job);
    CHECK_STR(results(), "5.2 !one: it is not connected: it fell|");
    t.s->n_failed = 0; /* it will be soon */
    work(&t, &job);
    CHECK_STR(results(), "");
    free(job.name);
    free(job.arguments);
    end_talk(&t);
}

/* Its last words are said when it ends. */
static void test_ends(void)
{
    talk t;
    start_talk(&t);
    CHECK(write(t.errors, "first\nlast \x1bwords\r\n\n", 20) == 20);
    close(t.writes);
    t.writes = -1;
    mcp_pipe_ready(t.s, false, false, true);
    CHECK_STR(t.s->said, "last words");
    CHECK(!t.s->is_failing);
    mcp_pipe_ready(t.s, true, false, false);
    CHECK(t.s->is_failing);
    CHECK_STR(t.s->why, "its program has ended: last words");
    end_talk(&t);
    start_talk(&t);
    close(t.writes);
    t.writes = -1;
    mcp_pipe_ready(t.s, true, true, true);
    CHECK_STR(t.s->why, "its program has ended");
    end_talk(&t);
    start_talk(&t); /* it does not read */
    signal(SIGPIPE, SIG_IGN);
    close(t.reads);
    t.reads = -1;
    mcp_pipe_send(t.s, "{}", 2);
    CHECK_STR(t.s->why, "it has closed its input");
    end_talk(&t);
    start_talk(&t); /* what does not fit into the pipe waits */
    static char large[200000];
    memset(large, 'x', sizeof large - 1);
    mcp_pipe_send(t.s, large, sizeof large - 1);
    CHECK(!t.s->is_failing && t.s->out.len > 0 && t.s->out.len < sizeof large);
    size_t n = 0;
    for (ssize_t got; (got = read(t.reads, large, sizeof large)) > 0 || t.s->out.len > 0;) {
        n += got > 0 ? (size_t)got : 0;
        mcp_pipe_ready(t.s, false, true, false);
    }
    CHECK_INT(n, sizeof large);
    end_talk(&t);
}

int main(void)
{
    log_set_level(LOG_OFF);
    test_handshake();
    test_protocols();
    test_orders();
    test_ends();
    test_tries();
    test_looks();
    CHECK_DONE();
}
