/* mcp: how long a request waits for a server that is being connected, how many calls may be under way, and what is told when
 * a server changes. The thread of the module never runs; time passes only where it is waited for. */
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"
#include "server/media/fetch.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"
#include "tests/server/own_thread.h"

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until);
double __wrap_clock_ms(void);

char *__wrap_strdup(const char *text);

/* So that it fails as malloc does. */
char *__wrap_strdup(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static double now_ms = 5000.0;
static int n_waits, n_asked, n_changes;
static mcp *all;

double __wrap_clock_ms(void)
{
    return now_ms;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double s = (double)(until->tv_sec - now.tv_sec) + (double)(until->tv_nsec - now.tv_nsec) / 1e9;
    CHECK(c == &all->changed && m == &all->lock);
    CHECK(until->tv_nsec >= 0 && until->tv_nsec < 1000000000 && s <= 0.1);
    now_ms += 100.0;
    n_waits++;
    return ETIMEDOUT;
}

static void on_result(void *ctx, mcp_result *r)
{
    (void)ctx;
    mcp_result_free(r);
    CHECK(false);
}

static void on_change(void *ctx)
{
    CHECK(ctx == &all);
    n_changes++;
}

static bool goes_on(void *ctx)
{
    return ++n_asked != *(const int *)ctx;
}

/* The server is there before it is waited for the second time. */
static bool comes(void *ctx)
{
    CHECK(ctx == NULL);
    if (++n_asked == 2) {
        all->sessions[0].step = STEP_OPEN;
        mcp_publish(all);
    }
    return true;
}

static void waits(const char *label, bool (*may_go_on)(void *ctx), void *ctx, int n, mcp_state state)
{
    n_waits = n_asked = 0;
    mcp_catalog *c = mcp_wait_catalog(all, label, may_go_on, ctx);
    const mcp_server_view *v = mcp_catalog_find(c, label);
    CHECK(c != NULL);
    CHECK_INT(n_waits, n);
    CHECK(v ? v->state == state : strcmp(label, "none") == 0);
    mcp_catalog_release(c);
}

static void test_waits(void)
{
    int never = 0, third = 3;
    waits("far", NULL, NULL, LIMIT_MCP_WAIT_S * 10, MCP_CONNECTING);
    waits("far", goes_on, &never, LIMIT_MCP_WAIT_S * 10, MCP_CONNECTING);
    waits("far", goes_on, &third, 2, MCP_CONNECTING);
    waits("wrong", NULL, NULL, 0, MCP_DOWN);
    waits("none", NULL, NULL, 0, MCP_DOWN);
    CHECK_INT(n_changes, 1); /* as it began */
    waits("far", comes, NULL, 1, MCP_READY);
    CHECK_INT(n_changes, 2);
    waits("far", NULL, NULL, 0, MCP_READY);
    CHECK(mcp_wait_catalog(NULL, "far", NULL, NULL) == NULL);
}

/* They are freed where nobody runs them. */
static void test_calls(void)
{
    err_detail d = {0};
    const mcp_order order = {.owner = 1, .server = "far", .name = "t", .arguments = "{}"};
    for (int i = 0; i < LIMIT_MCP_CALLS; i++) {
        CHECK_OK(mcp_call(all, &order, &d), d);
    }
    CHECK_INT(mcp_call(all, &order, &d), ERR_BUSY);
    CHECK_STR(d.text, "256 calls of tools are under way; try again later");
}

/* A session from its beginning until it is open, or until it fails and says why. */
static err_code open_once(void *config)
{
    const mcp_hooks hooks = {.on_result = on_result};
    err_detail d = {0};
    mcp *one = NULL;
    err_code err = mcp_create(&one, config, NULL, &hooks, &d);
    if (err) {
        return err;
    }
    mcp_session *s = &one->sessions[0];
    mcp_session_open(s);
    for (int i = 0; i < 20 && s->step != STEP_OPEN && s->n_failed == 0; i++) {
        (void)mcp_session_tick(s, now_ms);
    }
    if (s->n_failed > 0) {
        err = strstr(s->why, "memory") ? ERR_NOMEM : ERR_INTERNAL;
        if (err == ERR_INTERNAL) {
            fprintf(stderr, "why: %s\n", s->why);
        }
    } else if (s->step != STEP_OPEN) {
        err = ERR_TIMEOUT;
    } else if (s->offer->n_tools != 1) {
        err = ERR_NOMEM; /* one that is left out */
        CHECK_INT(s->offer->left_out, 1);
    }
    mcp_destroy(one);
    return err;
}

static char said[200];

static void on_last(void *ctx, mcp_result *r)
{
    (void)ctx;
    snprintf(said, sizeof said, "%d.%d %d %s", (int)r->owner, (int)r->place, r->has_failed,
             bytes_str(&r->text));
    mcp_result_free(r);
}

/* An order for which there is no memory is answered. */
static void test_order(const mcp_config *config)
{
    const mcp_hooks hooks = {.on_result = on_last};
    const mcp_order order = {.owner = 7, .place = 2, .server = "calculator", .name = "t", .arguments = "{}"};
    err_detail d = {0};
    mcp *one = NULL;
    CHECK_OK(mcp_create(&one, config, NULL, &hooks, &d), d);
    CHECK_OK(mcp_call(one, &order, &d), d);
    alloc_fail_at(1);
    mcp_session_work(&one->sessions[0], one->jobs);
    alloc_fail_at(0);
    CHECK_STR(said, "7.2 1 there is no memory for this call");
    CHECK(!one->asks);
    mcp_destroy(one);
}

/* A call of a tool for which there is no thread, or no memory, is tried again after a while. */
static void test_worker(const mcp_config *config)
{
    const mcp_hooks hooks = {.on_result = on_last};
    const mcp_order order = {.owner = 7, .place = 2, .server = "calculator", .name = "t", .arguments = "{}"};
    err_detail d = {0};
    mcp *one = NULL;
    CHECK_OK(mcp_create(&one, config, NULL, &hooks, &d), d);
    mcp_session *s = &one->sessions[0];
    mcp_session_open(s);
    for (int i = 0; i < 20 && s->step != STEP_OPEN; i++) {
        (void)mcp_session_tick(s, now_ms);
    }
    CHECK_INT(s->step, STEP_OPEN);
    CHECK_OK(mcp_call(one, &order, &d), d);
    mcp_session_work(s, one->jobs);
    own_thread_fails = true;
    CHECK(mcp_session_tick(s, now_ms) == now_ms + 50.0);
    CHECK(one->asks && !one->asks->worker && !one->workers);
    own_thread_fails = false;
    for (size_t n = 1; n < 10 && !one->workers; n++) {
        now_ms += 50.0;
        CHECK(mcp_session_tick(s, now_ms - 1.0) == now_ms);
        alloc_fail_at(n);
        (void)mcp_session_tick(s, now_ms);
        alloc_fail_at(0);
        CHECK(one->asks && !s->is_failing);
    }
    CHECK(one->asks->worker && one->workers && one->asks->send_ms == 0.0);
    said[0] = '\0';
    own_thread(one->workers);
    mcp_worker_collect(one, false);
    CHECK_STR(said, "7.2 1 there is no tool t");
    CHECK(!one->workers && !one->asks);
    mcp_destroy(one);
}

/* Each piece of memory of a module and of a call may be the one that fails. */
static err_code call_once(void *config)
{
    const mcp_hooks hooks = {.on_result = on_result};
    const mcp_order order = {.owner = 1, .server = "calculator", .name = "t", .arguments = "{}"};
    err_detail d = {0};
    mcp *one = NULL;
    err_code err = mcp_create(&one, config, NULL, &hooks, &d);
    CHECK((err == ERR_OK) == (one != NULL));
    err = err ? err : mcp_call(one, &order, &d);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    mcp_destroy(one);
    return err;
}

static void test_short_memory(void)
{
    mcp_config *config = NULL;
    err_detail d = {0};
    CHECK_OK(mcp_config_read(&config, NULL, "calculator", &d), d);
    CHECK(alloc_fail_each(call_once, config, 1000) > 3);
    CHECK(alloc_fail_each(open_once, config, 1000) > 10);
    test_order(config);
    test_worker(config);
    mcp_config_destroy(config);
}

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    mcp_config *config = NULL;
    err_detail d = {0};
    const mcp_hooks hooks = {.on_result = on_result, .on_change = on_change, .ctx = &all};
    log_set_format(LOG_JOURNAL);
    CHECK(fetch_start());
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    FILE *f = fopen(path, "w");
    CHECK(f &&
          fputs("{\"mcpServers\":{\"far\":{\"url\":\"http://127.0.0.1:9/\"},\"wrong\":{\"command\":\"\"}}}",
                f) >= 0);
    CHECK(f && fclose(f) == 0);
    CHECK_OK(mcp_config_read(&config, path, NULL, &d), d);
    said_begin();
    const err_code err = mcp_create(&all, config, NULL, &hooks, &d);
    said_end();
    CHECK_OK(err, d);
    CHECK_STR(said_err, "<4>mcp wrong is left out: it needs a command (a program) or a url\n");
    test_waits();
    test_calls();
    log_set_level(LOG_OFF);
    test_short_memory();
    mcp_destroy(all);
    mcp_config_destroy(config);
    fetch_stop();
    CHECK_DONE();
}
