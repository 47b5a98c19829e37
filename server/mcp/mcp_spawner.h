/* mcp_spawner: a process that starts MCP servers, made before this one gives up its privileges. It
 * starts what the configuration names and nothing else, so that a server that is taken over cannot run
 * a program of its choice.
 *
 *     mcp_spawner *p;
 *     if (mcp_spawner_create(&p, config, &detail) != ERR_OK) { return; }   // before the first thread
 *     mcp_child child;
 *     err = mcp_spawner_start(p, 0, &child, &detail);    // server 0 of the configuration
 *     mcp_child_end(&child);
 *     mcp_spawner_destroy(p);
 *
 * Each server has a keeper, a process that adopts all that the server leaves behind. When
 * mcp_child_end closes its line, or this process dies, the keeper waits for half a second, asks
 * (SIGTERM), and a second later kills the server's group and all that descends from it. Threads: one
 * at a time.
 */
#ifndef PARLEY_SERVER_MCP_MCP_SPAWNER_H
#define PARLEY_SERVER_MCP_MCP_SPAWNER_H

#include "base/err.h"
#include "server/mcp/mcp_config.h"

typedef struct mcp_spawner mcp_spawner;

/* Descriptors of a server that runs, -1: none; owned by whoever started it. */
typedef struct mcp_child {
    int in, out, errors; /* its standard streams: in is written to, the others are read, without waiting */
    int line;            /* to its keeper: closed, the server ends */
} mcp_child;

/* Forks. config lives as long as the spawner. ERR_IO. */
MUST_CHECK err_code mcp_spawner_create(mcp_spawner **out, const mcp_config *config, err_detail *d);
/* Ends it; servers end with their lines. NULL allowed. */
void mcp_spawner_destroy(mcp_spawner *p);
/* Starts server `index`. What goes wrong with its program is on `errors`. ERR_IO. */
MUST_CHECK err_code mcp_spawner_start(mcp_spawner *p, size_t index, mcp_child *out, err_detail *d);
/* Closes the streams and the line, which ends the server; all are -1 then. */
void mcp_child_end(mcp_child *child);

#endif
