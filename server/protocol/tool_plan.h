/* tool_plan: the tools of a request that this server runs itself, by the names that the model calls them
 * by. Made on a prep thread, then owned by the reply's options and read on the loop thread.
 *
 *     tool_plan *p = tool_plan_create(catalog);                     // takes the catalog over
 *     tool_plan_add(p, &error, entry, "tools[0]", is_taken, ctx);   // {"type":"mcp","server_label":..}
 *     const planned_tool *t = tool_plan_find(p, "echo", 4);
 *     tool_plan_destroy(p);
 */
#ifndef PARLEY_SERVER_PROTOCOL_TOOL_PLAN_H
#define PARLEY_SERVER_PROTOCOL_TOOL_PLAN_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/json.h"
#include "server/mcp/mcp_catalog.h"
#include "server/protocol/first_error.h"

typedef struct planned_tool {
    const char *name; /* for the model: the tool's, or SERVER__TOOL where that is another tool's, too */
    const mcp_server_view *server;
    const mcp_tool *tool;
    bool runs_unasked; /* by the configuration or by the request */
    bool asks_once;    /* by the configuration, and the request says nothing else */
} planned_tool;

/* A call that a person has allowed: it runs before the model goes on. */
typedef struct planned_call {
    const char *approval_id, *arguments;
    const planned_tool *tool;
} planned_call;

typedef struct tool_plan {
    mcp_catalog *catalog;
    arena *arena;
    planned_tool *tools;
    size_t n_tools, cap_tools;
    const char **own; /* the names of the client's tools, which run elsewhere */
    size_t n_own, cap_own;
    planned_call *calls;
    size_t n_calls;
    const mcp_server_view *servers[MCP_SERVERS]; /* that the request names */
    size_t n_servers;
} tool_plan;

/* NULL without memory; the catalog is then released. */
MUST_CHECK tool_plan *tool_plan_create(mcp_catalog *catalog);
void tool_plan_destroy(tool_plan *p); /* NULL allowed */

/* Adds the tools that an entry of the request names. is_taken: whether a name is that of another tool.
 * ERR_INVALID names the field. */
void tool_plan_add(tool_plan *p, first_error *e, const json *entry, const char *path,
                   bool (*is_taken)(void *ctx, const char *name), void *ctx);
/* Notes a tool of the client. */
void tool_plan_add_own(tool_plan *p, first_error *e, const char *name);
/* Whether the client has a tool of this name. */
bool tool_plan_is_own(const tool_plan *p, const char *name, size_t len);
/* Appends the names that may be called, with commas: some of them, if they are many. */
void tool_plan_write_names(const tool_plan *p, bytes *out);
/* The tool that the model means; NULL: none of these. p may be NULL. */
const planned_tool *tool_plan_find(const tool_plan *p, const char *name, size_t len);
/* What the model calls a server's tool; NULL if it is not there. p may be NULL. */
const char *tool_plan_name(const tool_plan *p, const char *label, const char *tool);
/* A person has allowed a call of this tool in the conversation: one that asks once does not ask again. p may be
 * NULL. */
void tool_plan_trust(tool_plan *p, const char *label, const char *tool);
/* The call of an mcp_approval_request is allowed. */
void tool_plan_approve(tool_plan *p, first_error *e, const json *asked, const char *path);

#endif
