/* mcp_builtin: what a built-in tool is given, and the tools that have a file of their own. Each runs on a
 * thread of its own (mcp_worker.c) and looks at may_go_on again and again, when it waits or works long.
 *
 *     const char *path = builtin_text(call, "path"); int64_t n = builtin_number(call, "lines", 100);
 *
 * A tool appends the text of its result; false: the text says what was wrong. Its arguments were held
 * against its schema before.
 */
#ifndef PARLEY_SERVER_MCP_MCP_BUILTIN_H
#define PARLEY_SERVER_MCP_MCP_BUILTIN_H

#include "base/json.h"
#include "server/mcp/mcp_config.h"

typedef struct builtin_call {
    const mcp_server_config *config;
    const json *arguments;
    bool (*may_go_on)(void *ctx); /* false: nobody waits any more */
    void *ctx;
} builtin_call;

/* Arguments of the call; "" and `standard` for those that are not given. */
const char *builtin_text(const builtin_call *call, const char *name);
int64_t builtin_number(const builtin_call *call, const char *name, int64_t standard);

bool mcp_folder_list(const builtin_call *call, bytes *out);
bool mcp_folder_read(const builtin_call *call, bytes *out);
bool mcp_folder_search(const builtin_call *call, bytes *out);
bool mcp_fetch_page(const builtin_call *call, bytes *out);

#endif
