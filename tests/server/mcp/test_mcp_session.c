/* mcp_session: when a session is looked at next, and when one that failed is tried again. Times are made up. */
#include "server/mcp/mcp_catalog.h"
#include "server/mcp/mcp_state.h"

#include "base/limits.h"
#include "tests/check.h"

enum { NOW = 10000000, MINUTE = 60000, RELIST = 5000 };

/* A session without a process and without a connection. */
static mcp_session *begin(mcp *m, const mcp_server_config *config)
{
    *m = (mcp){.n_sessions = 1};
    CHECK_INT(pthread_mutex_init(&m->lock, NULL), 0);
    CHECK_INT(pthread_cond_init(&m->changed, NULL), 0);
    mcp_session *s = &m->sessions[0];
    *s = (mcp_session){.all = m, .config = config, .child = {-1, -1, -1, -1}, .step = STEP_OPEN};
    s->opened_ms = NOW;
    return s;
}

static void end(mcp *m)
{
    mcp_catalog_release(m->catalog);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
}

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

int main(void)
{
    test_tries();
    test_looks();
    CHECK_DONE();
}
