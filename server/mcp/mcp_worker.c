/* Calls of built-in tools: each has a thread, so that one that waits for a page or reads many files holds up
 * nobody else. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "server/mcp/mcp_state.h"

typedef struct mcp_worker {
    mcp *all;
    mcp_ask *ask; /* whose it is; NULL: nobody waits */
    const mcp_server_config *config;
    bytes request, reply;
    pthread_t thread;
    atomic_bool is_cancelled, is_ready;
    struct mcp_worker *next;
} mcp_worker;

static bool may_go_on(void *ctx)
{
    const mcp_worker *w = ctx;
    return !atomic_load(&w->is_cancelled);
}

static void *work(void *ctx)
{
    mcp_worker *w = ctx;
    json_doc *doc = NULL;
    if (json_parse(&doc, bytes_str(&w->request), w->request.len, LIMIT_JSON_DEPTH + 8, NULL) == ERR_OK) {
        mcp_builtin_answer(w->config, json_root(doc), &w->reply, may_go_on, w);
        json_free(doc);
    }
    atomic_store(&w->is_ready, true);
    http_client_wake(w->all->client);
    return NULL;
}

static void free_worker(mcp_worker *w)
{
    bytes_deinit(&w->request);
    bytes_deinit(&w->reply);
    free(w);
}

bool mcp_worker_start(mcp_ask *ask)
{
    mcp *m = ask->s->all;
    size_t n = 0;
    for (const mcp_worker *w = m->workers; w; w = w->next) {
        n++;
    }
    mcp_worker *w = n < LIMIT_TOOL_THREADS ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        return false;
    }
    w->all = m;
    w->ask = ask;
    w->config = ask->s->config;
    bytes_init(&w->request, LIMIT_MCP_MESSAGE_BYTES);
    bytes_init(&w->reply, LIMIT_MCP_MESSAGE_BYTES);
    bytes_append(&w->request, ask->body.data, ask->body.len);
    if (w->request.failed || pthread_create(&w->thread, NULL, work, w) != 0) {
        free_worker(w);
        return false;
    }
    ask->worker = w;
    w->next = m->workers;
    m->workers = w;
    return true;
}

void mcp_worker_cancel(mcp_worker *w)
{
    w->ask = NULL;
    atomic_store(&w->is_cancelled, true);
}

void mcp_worker_collect(mcp *m, bool all)
{
    for (mcp_worker **link = &m->workers, *w = *link; w; w = *link) {
        if (!all && !atomic_load(&w->is_ready)) {
            link = &w->next;
            continue;
        }
        pthread_join(w->thread, NULL);
        *link = w->next;
        if (w->ask) {
            w->ask->worker = NULL;
            mcp_session_read(w->ask->s, w->ask, bytes_str(&w->reply), w->reply.len);
        }
        free_worker(w);
    }
}
