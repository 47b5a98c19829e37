/* mcp: tools of MCP servers: connects to those of a configuration, lists what they offer, runs calls.
 *
 *     mcp *m; err = mcp_create(&m, config, spawner, &(mcp_hooks){.on_result = NULL}, &detail);
 *     mcp_catalog *c = mcp_take_catalog(m);                    // what there is now
 *     err = mcp_call(m, &(mcp_order){.owner = 7, .server = "files", .name = "read", .arguments = "{}"}, &detail);
 *     // on_result follows, once, unless mcp_cancel(m, 7) came first
 *     mcp_destroy(m);
 *
 * A server that cannot be reached is tried again, less and less often; the others work. Threads: create
 * and destroy on one thread, the rest on any; the hooks are called on the thread that this module starts.
 */
#ifndef PARLEY_SERVER_MCP_MCP_H
#define PARLEY_SERVER_MCP_MCP_H

#include "server/mcp/mcp_catalog.h"
#include "server/mcp/mcp_config.h"
#include "server/mcp/mcp_result.h"
#include "server/mcp/mcp_spawner.h"

typedef struct mcp mcp;

typedef struct mcp_hooks {
    void (*on_result)(void *ctx, mcp_result *result); /* takes it over */
    void (*on_change)(void *ctx); /* a server came, went or has other tools; NULL allowed */
    void *ctx;
} mcp_hooks;

/* What is asked of a server; texts are copied. */
typedef struct mcp_order {
    uint64_t owner; /* who asks, for mcp_cancel */
    uint32_t place; /* of the call among the owner's */
    enum { MCP_CALL_TOOL, MCP_READ_RESOURCE, MCP_GET_PROMPT } what;
    const char *server, *name; /* its label; the tool, the uri, the prompt */
    const char *arguments;     /* the text of a JSON object; NULL: none */
} mcp_order;

/* config and spawner (NULL: there is none) outlive it; of standard streams alone it makes no connection.
 * fetch_start (server/media/fetch.h) was called before. ERR_NOMEM, ERR_IO. */
MUST_CHECK err_code mcp_create(mcp **out, const mcp_config *config, mcp_spawner *spawner,
                               const mcp_hooks *hooks, err_detail *d);
/* Ends the thread, all calls (without a result) and all servers. NULL allowed. */
void mcp_destroy(mcp *m);

/* The caller releases it; NULL only if m is. */
mcp_catalog *mcp_take_catalog(mcp *m);
/* The same once this server's tools are known or it is down, or after LIMIT_MCP_WAIT_S; may_go_on is
 * asked now and then. */
mcp_catalog *mcp_wait_catalog(mcp *m, const char *label, bool (*may_go_on)(void *ctx), void *ctx);

/* Runs a call. ERR_BUSY: too many are under way. */
MUST_CHECK err_code mcp_call(mcp *m, const mcp_order *order, err_detail *d);
/* Ends all calls of the owner, and tells the servers. m may be NULL. */
void mcp_cancel(mcp *m, uint64_t owner);
/* Tries a server that is down again at once; false if there is none of this label. */
bool mcp_retry(mcp *m, const char *label);

#endif
