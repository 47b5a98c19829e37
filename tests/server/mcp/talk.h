/* talk: a session of MCP over standard streams whose other side is the test, without a process and without a thread.
 *
 *     talk t; start_talk(&t);
 *     work(&t, &(mcp_job){.order = {.owner = 5}, .name = "add"});
 *     const char *line = sent(&t);                      // what the program gets now
 *     line = hear(&t, REPLY("1", "\"content\":[]"));    // it writes; what it gets then
 *     const char *text = results();                     // "5.0 |": what was told of orders since the last time
 *     end_talk(&t);
 */
#ifndef PARLEY_TESTS_SERVER_MCP_TALK_H
#define PARLEY_TESTS_SERVER_MCP_TALK_H

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/mcp/mcp_state.h"
#include "tests/check.h"

enum { TALK_BEGUN_MS = 10000000 };

/* A session without a process and without a connection. */
static inline mcp_session *begin(mcp *m, const mcp_server_config *config)
{
    *m = (mcp){.n_sessions = 1};
    CHECK_INT(pthread_mutex_init(&m->lock, NULL), 0);
    CHECK_INT(pthread_cond_init(&m->changed, NULL), 0);
    mcp_session *s = &m->sessions[0];
    *s = (mcp_session){.all = m, .config = config, .child = {-1, -1, -1, -1}, .step = STEP_OPEN};
    s->opened_ms = TALK_BEGUN_MS;
    return s;
}

static inline void end(mcp *m)
{
    mcp_catalog_release(m->catalog);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
}

#define CLIENT "{\"name\":\"parley\",\"version\":\"" PARLEY_VERSION "\"}"

static bytes told; /* results, "owner.place text", with ! where they failed, and % for progress */

static inline void on_result(void *ctx, mcp_result *r)
{
    (void)ctx;
    if (r->progress >= 0) {
        bytes_printf(&told, "%d.%d %d%% %s|", (int)r->owner, (int)r->place, (int)(100 * r->progress),
                     bytes_str(&r->text));
    } else {
        bytes_printf(&told, "%d.%d %s%s%s|", (int)r->owner, (int)r->place, r->has_failed ? "!" : "",
                     bytes_str(&r->text), bytes_str(&r->whole));
    }
    mcp_result_free(r);
}

typedef struct talk {
    mcp m;
    mcp_session *s;
    mcp_server_config config;
    mcp_config all;
    int reads, writes, errors; /* ends of the program */
} talk;

static inline void start_talk(talk *t)
{
    int in[2], out[2], errors[2];
    CHECK(pipe2(in, O_NONBLOCK) == 0 && pipe2(out, O_NONBLOCK) == 0 && pipe2(errors, O_NONBLOCK) == 0);
    t->config = (mcp_server_config){.label = "one", .kind = MCP_STDIO, .timeout_s = 60};
    t->s = begin(&t->m, &t->config);
    t->s->opened_ms = clock_ms(); /* as sent() and hear() go by the clock */
    t->all = (mcp_config){0};
    t->m.config = &t->all;
    t->m.client = http_client_create();
    t->m.hooks.on_result = on_result;
    t->s->child.in = in[1];
    t->s->child.out = out[0];
    t->s->child.errors = errors[0];
    t->reads = in[0];
    t->writes = out[1];
    t->errors = errors[1];
    bytes_init(&t->s->in, LIMIT_MCP_MESSAGE_BYTES + 65536);
    bytes_init(&t->s->out, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(t->s->lists); i++) {
        bytes_init(&t->s->lists[i], LIMIT_MCP_MESSAGE_BYTES);
    }
    bytes_init(&told, 65536);
}

static inline void end_talk(talk *t)
{
    while (t->m.asks) {
        mcp_ask_free(t->m.asks);
    }
    const int fds[] = {t->s->child.in, t->s->child.out, t->s->child.errors, t->reads, t->writes, t->errors};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
    bytes_deinit(&t->s->in);
    bytes_deinit(&t->s->out);
    for (size_t i = 0; i < ARRAY_LEN(t->s->lists); i++) {
        bytes_deinit(&t->s->lists[i]);
    }
    mcp_offer_release(t->s->offer);
    http_client_destroy(t->m.client);
    bytes_deinit(&told);
    end(&t->m);
}

/* What the program gets now. */
static inline const char *sent(talk *t)
{
    static char text[8192];
    mcp_session_tick(t->s, clock_ms() + 300);
    const ssize_t n = read(t->reads, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* It writes; what it gets then. */
static inline const char *hear(talk *t, const char *line)
{
    CHECK(write(t->writes, line, strlen(line)) == (ssize_t)strlen(line));
    mcp_pipe_ready(t->s, true, false, false);
    return sent(t);
}

/* What was told of orders since the last time. */
static inline const char *results(void)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s", bytes_str(&told));
    bytes_clear(&told);
    return text;
}

#define REQUEST(id, method, params)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "\"_meta\":{}}}\n"
#define REPLY(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{" result "}}\n"
#define NOTICE(method)    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" method "\"}\n"

#define PROGRESS(rest) "{\"method\":\"notifications/progress\",\"params\":{" rest "}}\n"

/* Begins an order; its name and arguments stay the caller's. */
static inline void work(talk *t, const mcp_job *job)
{
    mcp_job own = *job;
    own.name = strdup(job->name);
    own.arguments = job->arguments ? strdup(job->arguments) : NULL;
    mcp_session_work(t->s, &own);
    free(own.name);
    free(own.arguments);
}

#endif
