/* mcp_session: what a server may say out of turn, lists that do not end or have no room, results for which there is no memory,
 * states and times, over standard streams. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "server/mcp/mcp_catalog.h"

#include <errno.h>

#include "base/log.h"
#include "tests/one_fails.h"
#include "tests/said.h"
#include "tests/server/mcp/talk.h"

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t n), (old, n), NULL)
ONE_FAILS(char *, strdup, (const char *text), (text), NULL)
ONE_FAILS(ssize_t, read, (int fd, void *out, size_t n), (fd, out, n), (errno = EIO, -1))

static int n_sleeps;

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time, (void)left;
    n_sleeps++;
    return 0;
}

/* ---- lists ---- */

#define BEGINS                                                                                               \
    "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{},\"resources\":{},\"prompts\":{}}"

static void initialize(talk *t)
{
    start_talk(t);
    t->s->step = STEP_OPENING;
    CHECK(mcp_ask_new(t->s, MCP_INITIALIZE, 30) != NULL);
    CHECK_HAS(sent(t), "\"id\":1,\"method\":\"initialize\"");
    CHECK_HAS(hear(t, REPLY("1", BEGINS)), REQUEST("2", "tools/list", ""));
}

static void test_lists(void)
{
    talk t;
    initialize(&t); /* what it does not list but tools it has not */
    CHECK_STR(hear(&t, REPLY("2", "\"tools\":[],\"ttlMs\":0")), REQUEST("3", "resources/list", ""));
    CHECK_STR(hear(&t, "{\"id\":3,\"error\":{\"message\":\"none\"}}\n"), REQUEST("4", "prompts/list", ""));
    CHECK_STR(hear(&t, REPLY("4", "\"prompts\":{}")), "");
    CHECK_INT(t.s->step, STEP_OPEN);
    CHECK(t.s->offer->n_tools == 0 && t.s->relist_ms == 0.0);
    end_talk(&t);

    initialize(&t); /* pages without end */
    int n = 0;
    for (int id = 2; t.s->step != STEP_OPEN && n < 99; id++) {
        char line[200];
        snprintf(
            line, sizeof line,
            REPLY(
                "%d",
                "\"nextCursor\":\"c\",\"tools\":[{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}]"),
            id, id);
        n += strstr(hear(&t, line), "\"cursor\":\"c\"") != NULL;
    }
    CHECK_INT(n, 3 * (LIMIT_MCP_PAGES - 1));
    CHECK_INT(t.s->offer->n_tools, LIMIT_MCP_PAGES);
    end_talk(&t);

    initialize(&t); /* more than has room, more than there is memory for */
    t.s->lists[0].max = 20;
    CHECK_STR(hear(&t, REPLY("2", "\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}]")), "");
    CHECK_STR(t.s->why, "its list of tools is too long");
    end_talk(&t);
    static const char *const CALLS[] = {"realloc", "strdup", "calloc"};
    for (size_t i = 0; i < ARRAY_LEN(CALLS);
         i++) { /* one that cannot be read is not taken for all there is */
        bool has_failed = true;
        for (int k = 1; has_failed && k < 100; k++) {
            initialize(&t);
            one_fails(CALLS[i], k);
            const char *next = hear(&t, REPLY("2", "\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"c\""));
            has_failed = one_fails_over();
            CHECK((strstr(next, "\"cursor\":\"c\"") != NULL) == !strstr(t.s->why, "memory"));
            CHECK(k > 1 || has_failed);
            end_talk(&t);
        }
        CHECK(!has_failed);
    }
}

/* ---- what a server may say out of turn ---- */

static void is_read(talk *t, mcp_ask *ask, const char *message)
{
    mcp_session_read(t->s, ask, message, strlen(message));
}

static void test_odd_messages(void)
{
    talk t;
    char text[6000];
    start_talk(&t);
    mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL}, .name = strdup("add")};
    /* Notices of other names, a question with an id that is too long, what is no message. */
    CHECK_STR(hear(&t, "{\"method\":\"m\"}\n{\"method\":\"/list_changed\"}\n{\"method\":\"list_changed\"}\n"),
              "");
    CHECK(!t.s->wants_relist);
    CHECK_STR(hear(&t, "{\"method\":\"x/list_changed\"}\n"), "");
    CHECK(t.s->wants_relist);
    t.s->wants_relist = false;
    snprintf(text, sizeof text, "{\"id\":\"%05000d\",\"method\":\"ping\"}\n", 0);
    CHECK_STR(hear(&t, text), "");
    snprintf(text, sizeof text, "{\"id\":\"%03000d\",\"method\":\"ping\"}\n", 0);
    CHECK_HAS(hear(&t, text), "\",\"result\":{}}\n");
    is_read(&t, NULL, "{\"id\":0,\"result\":{}}");
    is_read(&t, NULL, "{\"id\":\"1\",\"result\":{}}");
    is_read(&t, NULL, "{}");
    CHECK_STR(hear(&t, "no message\n{\n"), "");
    CHECK_STR(t.s->why, "");
    is_read(&t, NULL, "{]");
    CHECK_HAS(t.s->why, "its message is not JSON that is read here: ");
    mcp_session_fail(t.s, "once more"); /* the first reason stays */
    CHECK_HAS(t.s->why, "its message is not JSON");
    is_read(&t, NULL, "{\"id\":5,\"method\":\"ping\"}"); /* it is not listened to any more */
    CHECK_INT(t.s->out.len, 0);
    CHECK_STR(sent(&t), "");
    end_talk(&t);

    start_talk(&t); /* shares that are none */
    work(&t, &job);
    CHECK_STR(sent(&t),
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"add\","
              "\"_meta\":{\"progressToken\":1}}}\n");
    static const struct {
        const char *params, *result;
    } SHARES[] = {
        {"\"progress\":1e308,\"total\":1e-308", "5.2 0% |"}, {"\"progress\":-3,\"total\":4", "5.2 0% |"},
        {"\"progress\":4,\"total\":4", "5.2 100% |"},        {"\"progress\":3,\"total\":-4", "5.2 0% |"},
        {"\"progress\":0,\"total\":4", "5.2 0% |"},          {"\"progress\":3,\"total\":4", "5.2 75% |"}};
    for (size_t i = 0; i < ARRAY_LEN(SHARES); i++) {
        snprintf(text, sizeof text, PROGRESS("\"progressToken\":1,%s"), SHARES[i].params);
        t.m.asks->told_ms = 0;
        CHECK_STR(hear(&t, text), "");
        CHECK_STR(results(), SHARES[i].result);
    }
    CHECK(t.m.asks->until_ms >
          clock_ms() + 50000); /* its time begins anew, as long as there is some in all */
    t.m.asks->last_ms = clock_ms() + 3000;
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":1")), "");
    CHECK(t.m.asks->until_ms == t.m.asks->last_ms);
    int n_told = 0, n_failed = 0;
    for (bool has_failed = true; has_failed; n_failed++) { /* what cannot be told is not */
        t.m.asks->told_ms = 0;
        one_fails("calloc", n_failed + 1);
        CHECK_STR(hear(&t, PROGRESS("\"progressToken\":1,\"progress\":1")), "");
        has_failed = one_fails_over();
        n_told += strcmp(results(), "5.2 0% |") == 0;
    }
    CHECK(!t.s->is_failing && n_failed > 1);
    CHECK_INT(n_told, n_failed - 1);
    mcp_ask *other = mcp_ask_new(t.s, MCP_LIST_TOOLS, 30); /* none of an order's */
    CHECK(other != NULL);
    CHECK_HAS(sent(&t), "\"id\":2,");
    CHECK_STR(hear(&t, PROGRESS("\"progressToken\":2,\"progress\":1")), "");
    CHECK_STR(results(), "");
    /* An answer of one in the place of another's, over HTTP; an error that says no id. */
    mcp_ask *ask = other->next;
    is_read(&t, other, "{\"id\":1,\"result\":{\"content\":[]}}");
    CHECK_STR(results(), "");
    is_read(&t, ask, "{\"result\":{\"content\":[]}}");
    CHECK_STR(results(), "");
    is_read(&t, ask, "{\"error\":{\"message\":\"odd\"}}");
    CHECK_STR(results(), "5.2 !odd|");
    CHECK(t.m.asks == other && !other->next);
    free(job.name);
    end_talk(&t);
}

/* What a server wants to know again and again, or cannot be told. */
static void test_inputs(void)
{
    talk t;
    start_talk(&t);
    const mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL}, .name = (char[]){"add"}};
#define WANTS(id, more) REPLY(id, "\"resultType\":\"input_required\"" more)
    static const char *const NOT[] = {
        WANTS("%d", ""), WANTS("%d", ",\"inputRequests\":{}"), WANTS("%d", ",\"inputRequests\":[1]"),
        WANTS("%d", ",\"requestState\":1,\"inputRequests\":{\"a\":{\"method\":\"sampling/"
                    "createMessage\"},\"b\":{\"method\":\"sampling/createMessage\"},"
                    "\"c\":{\"method\":\"roots/list\"}}")};
    char line[400];
    int id = 0;
    for (size_t i = 0; i < ARRAY_LEN(NOT); i++) {
        work(&t, &job);
        CHECK_HAS(sent(&t), "\"method\":\"tools/call\"");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(line, sizeof line, NOT[i], ++id);
#pragma GCC diagnostic pop
        CHECK_STR(hear(&t, line), "");
        CHECK_STR(results(), "5.2 !one: it asks for something that nobody here can give it|");
    }
    work(&t, &job);
    CHECK_HAS(sent(&t), "\"method\":\"tools/call\"");
    int n = 0;
    for (snprintf(line, sizeof line, WANTS("%d", ",\"requestState\":\"s\""), ++id);
         hear(&t, line)[0] && n < 99;
         snprintf(line, sizeof line, WANTS("%d", ",\"requestState\":\"s\""), ++id)) {
        n++;
    }
    CHECK_INT(n, 7);
    CHECK_STR(results(), "5.2 !one: it asks for something that nobody here can give it|");
    /* Before it is asked again it has nothing to answer. */
    work(&t, &job);
    CHECK_HAS(sent(&t), "\"method\":\"tools/call\"");
    CHECK_INT(t.m.asks->id, ++id - 1 + 1);
    snprintf(line, sizeof line, WANTS("%d", ",\"requestState\":\"s\""), id);
    CHECK(write(t.writes, line, strlen(line)) > 0);
    mcp_pipe_ready(t.s, true, false, false);
    snprintf(line, sizeof line, REPLY("%d", "\"content\":[]"), id + 1);
    CHECK(write(t.writes, line, strlen(line)) > 0);
    mcp_pipe_ready(t.s, true, false, false);
    CHECK_STR(results(), "");
    CHECK(t.m.asks && t.m.asks->send_ms > 0.0);
    CHECK_HAS(sent(&t), "\"requestState\":\"s\"");
    CHECK_STR(hear(&t, line), "");
    CHECK_STR(results(), "5.2 |");
    end_talk(&t);
}

/* A result for which there is no memory comes when there is some, or never once all ends. */
static void test_last_results(void)
{
    talk t;
    const mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL}, .name = (char[]){"add"}};
    static const char *const LINES[] = {"{\"id\":1,\"result\":{\"content\":[]}}\n",
                                        "{\"id\":1,\"error\":{}}\n",
                                        "{\"id\":1,\"result\":{\"resultType\":\"input_required\"}}\n"};
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
        for (int closing = 0; closing < 2; closing++) {
            bool is_found = false;
            for (int n = 1; !is_found && n < 50; n++) { /* the piece of memory that is the result's */
                start_talk(&t);
                work(&t, &job);
                CHECK_HAS(sent(&t), "\"id\":1,");
                t.m.closing = closing;
                t.m.n_orders = 1;
                n_sleeps = 0;
                one_fails("calloc", n);
                is_read(&t, NULL, LINES[i]);
                CHECK(one_fails_over());
                CHECK_INT(t.m.n_orders, 0);
                is_found = closing ? results()[0] == '\0' : n_sleeps == 1;
                CHECK(!is_found || closing || results()[0] != '\0');
                CHECK(!closing || n_sleeps == 0);
                end_talk(&t);
            }
            CHECK(is_found);
        }
    }
}

/* A resource is told as a whole, or as one for which there is no memory. */
static void test_whole_results(void)
{
    talk t;
    const mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_READ_RESOURCE}, .name = (char[]){"u"}};
    bool has_failed = true;
    int n_told = 0;
    for (int n = 1; has_failed && n < 50; n++) {
        start_talk(&t);
        work(&t, &job);
        CHECK_HAS(sent(&t), "\"id\":1,");
        one_fails("realloc", n);
        is_read(&t, NULL, "{\"id\":1,\"result\":{\"contents\":[{\"text\":\"of the resource\"}]}}");
        has_failed = one_fails_over();
        const char *said = results();
        if (has_failed && strstr(said, "5.2 !there is no memory for this result")) {
            n_told++;
        } else if (said[0]) {
            CHECK_STR(said, "5.2 {\"contents\":[{\"text\":\"of the resource\"}]}|");
        } else {
            CHECK(has_failed);
        }
        end_talk(&t);
    }
    CHECK(!has_failed && n_told > 0);
}

/* A server that is turned off or cannot be used gets no orders; what is published of one. */
static void test_states(void)
{
    static const struct {
        int step, n_failed;
        const char *why, *problem;
        bool is_off;
        mcp_state state;
        const char *said, *result; /* of an order; "": it waits */
    } ROWS[] = {
        {STEP_OPEN, 2, "w", "", false, MCP_READY, "", ""},
        {STEP_CLOSED, 0, "", "", false, MCP_CONNECTING, "", ""},
        {STEP_CLOSED, 1, "w", "", false, MCP_DOWN, "w", "5.2 !one: it is not connected: w|"},
        {STEP_CLOSED, 0, "", "", true, MCP_OFF, "turned off", "5.2 !one: it is not connected|"},
        {STEP_CLOSED, 0, "", "p", false, MCP_DOWN, "p", "5.2 !one: it is not connected|"},
        {STEP_CLOSED, 0, "", "p", true, MCP_OFF, "p", "5.2 !one: it is not connected|"},
        {STEP_OPENING, 0, "", "", false, MCP_CONNECTING, "", ""},
        {STEP_OPENING, 1, "w", "", false, MCP_DOWN, "w", ""},
        {STEP_OPENING, 1, "", "", false, MCP_CONNECTING, "", ""},
        {STEP_LISTING, 0, "w", "", false, MCP_CONNECTING, "w", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        talk t;
        const mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL},
                             .name = (char[]){"add"}};
        start_talk(&t);
        t.s->step = (mcp_step)ROWS[i].step;
        t.s->n_failed = ROWS[i].n_failed;
        snprintf(t.s->why, sizeof t.s->why, "%s", ROWS[i].why);
        snprintf(t.config.problem, sizeof t.config.problem, "%s", ROWS[i].problem);
        t.config.is_off = ROWS[i].is_off;
        snprintf(t.s->protocol, sizeof t.s->protocol, "p");
        mcp_publish(&t.m);
        CHECK_INT(t.m.catalog->servers[0].state, ROWS[i].state);
        CHECK_STR(t.m.catalog->servers[0].why, ROWS[i].said);
        CHECK_STR(t.m.catalog->servers[0].protocol, ROWS[i].state == MCP_READY ? "p" : "");
        work(&t, &job);
        CHECK_STR(results(), ROWS[i].result);
        CHECK((t.m.asks != NULL) == (ROWS[i].result[0] == '\0'));
        end_talk(&t);
    }
}

/* ---- ends ---- */

static void test_more_ends(void)
{
    talk t;
    static char large[1 << 16];
    start_talk(&t); /* of a flood of errors it reads some at a time */
    memset(large, 'x', sizeof large);
    large[16 * 4095 - 1] = '\n';
    memcpy(large + 16 * 4095, "the last line 16", 16);
    CHECK(fcntl(t.errors, F_SETPIPE_SZ, 1 << 17) > 0);
    CHECK(write(t.errors, large, sizeof large) == sizeof large);
    mcp_pipe_ready(t.s, false, false, true);
    CHECK(t.s->said[0] == 'x');
    mcp_pipe_ready(t.s, false, false, true);
    CHECK_STR(t.s->said, "the last line 16");
    close(t.errors);
    t.errors = -1;
    mcp_pipe_ready(t.s, false, false, true);
    CHECK_INT(t.s->child.errors, -1);
    mcp_pipe_ready(t.s, true, true, false); /* nothing is there */
    CHECK(!t.s->is_failing);
    one_fails("read", 1);
    mcp_pipe_ready(t.s, true, false, false);
    (void)one_fails_over();
    CHECK_STR(t.s->why, "its program has ended: the last line 16");
    end_talk(&t);

    start_talk(&t);
    CHECK(write(t.writes, "{\"a\":", 5) == 5);
    one_fails("realloc", 1);
    mcp_pipe_ready(t.s, true, false, false);
    (void)one_fails_over();
    CHECK_STR(t.s->why, "there is no memory for its message");
    CHECK(write(t.writes, "{\"id\":1,\"method\":\"ping\"}\n", 26) == 26);
    mcp_pipe_ready(t.s, true, true, true); /* it is not read any more */
    CHECK_STR(sent(&t), "");
    end_talk(&t);

    start_talk(&t); /* where programs cannot be started */
    t.s->step = STEP_CLOSED;
    t.s->knows_era = false;
    mcp_session_tick(t.s, clock_ms());
    CHECK_STR(t.s->why, "programs cannot be started here");
    CHECK_INT(t.s->n_failed, 1);
    CHECK(t.s->child.in < 0 && t.s->child.out < 0);
    end_talk(&t);
}

/* Times: a probe that is not answered, requests of another session, one that waits for its session. */
static void test_times(void)
{
    talk t;
    start_talk(&t);
    t.s->step = STEP_OPENING;
    t.s->is_modern = true;
    mcp_ask *ask = mcp_ask_new(t.s, MCP_DISCOVER, 30);
    CHECK_HAS(sent(&t), "server/discover");
    const double until = clock_ms() + 10000;
    ask->until_ms = until;
    CHECK(mcp_session_tick(t.s, until - 1) == until);
    CHECK(t.s->is_modern);
    (void)mcp_session_tick(t.s, until);
    CHECK(!t.s->is_modern && t.s->knows_era && t.m.asks && t.m.asks->purpose == MCP_INITIALIZE);
    CHECK_HAS(sent(&t), "initialize");
    t.m.asks->until_ms = until;
    (void)mcp_session_tick(t.s, until);
    CHECK_STR(t.s->why, "it did not answer initialize within 30 s");
    CHECK_INT(t.s->step, STEP_CLOSED);
    end_talk(&t);

    start_talk(&t); /* an order has two ends: of its silence, and of all its time */
    const mcp_job job = {.order = {.owner = 5, .place = 2, .what = MCP_CALL_TOOL}, .name = (char[]){"add"}};
    for (int i = 0; i < 3; i++) {
        const double now = clock_ms();
        work(&t, &job);
        CHECK_HAS(sent(&t), "tools/call");
        t.m.asks->until_ms = now + 5000 + (i == 0 ? 1000 : 0);
        t.m.asks->last_ms = i == 2 ? 0.0 : now + 5000 + (i == 1 ? 1000 : 0);
        (void)mcp_session_tick(t.s, now + 4999);
        CHECK_STR(results(), "");
        (void)mcp_session_tick(t.s, now + 5000);
        CHECK_STR(results(), "5.2 !one: it did not answer within 60 s|");
        CHECK_HAS(sent(&t), "notifications/cancelled");
    }
    /* A server hears of the end of what it was asked, if it is to. */
    work(&t, &job);
    mcp_ask_drop(t.m.asks, true);
    CHECK_STR(sent(&t), "");
    work(&t, &job);
    CHECK_HAS(sent(&t), "tools/call");
    mcp_ask_drop(t.m.asks, false);
    CHECK_STR(sent(&t), "");
    work(&t, &job);
    CHECK_HAS(sent(&t), "tools/call");
    mcp_ask_drop(t.m.asks, true);
    CHECK_HAS(sent(&t), "notifications/cancelled");
    /* One that waits for its session to be there again; its end may come first. */
    const double now = clock_ms();
    t.s->step = STEP_CLOSED;
    t.s->next_try_ms = now + 9000;
    work(&t, &job);
    t.m.asks->until_ms = now + 7000;
    CHECK(mcp_session_tick(t.s, now + 1) == now + 7000);
    CHECK_STR(sent(&t), "");
    t.s->next_try_ms = now + 6000;
    CHECK(mcp_session_tick(t.s, now + 1) == now + 6000);
    t.s->step = STEP_OPEN;
    t.m.asks->send_ms = now + 8000; /* it is to be sent later than it may take */
    CHECK(mcp_session_tick(t.s, now + 1) == now + 7000);
    t.m.asks->send_ms = now + 6500;
    CHECK(mcp_session_tick(t.s, now + 1) == now + 6500);
    /* Those of another session stay when this one is closed, and so do those that nobody waits for. */
    mcp_session other = {.all = &t.m, .config = &t.config, .child = {-1, -1, -1, -1}};
    mcp_ask *others = mcp_ask_new(&other, MCP_WORK, 30), *nobodys = mcp_ask_new(t.s, MCP_WORK, 30);
    CHECK(others && nobodys);
    others->owner = 7;
    t.s->child = (mcp_child){-1, -1, -1, -1};
    snprintf(t.s->why, sizeof t.s->why, "it fell");
    mcp_session_close(t.s);
    CHECK_STR(results(), "5.2 !one: it fell|");
    CHECK(t.m.asks == others && !others->next);
    end_talk(&t);
}

int main(void)
{
    log_set_level(LOG_OFF);
    test_lists();
    test_odd_messages();
    test_inputs();
    test_last_results();
    test_whole_results();
    test_states();
    test_more_ends();
    test_times();
    CHECK_DONE();
}
