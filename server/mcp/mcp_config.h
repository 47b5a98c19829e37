/* mcp_config: the MCP servers that the operator has named, in the usual form: {"mcpServers": {"NAME":
 * {"command", "args", "env", "cwd"} or {"url", "headers"}}}. Read once, at the start; then immutable,
 * any thread.
 *
 *     mcp_config *c;
 *     if (mcp_config_read(&c, "mcp.json", "calculator,time", &detail) != ERR_OK) { return; }
 *     mcp_config_destroy(c);
 *
 * ${NAME} and ${NAME:-other} in a text are variables of the environment, so that no secret stands in the
 * file. A server that cannot be used is kept with the sentence that says why: the others work.
 */
#ifndef PARLEY_SERVER_MCP_MCP_CONFIG_H
#define PARLEY_SERVER_MCP_MCP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

enum { MCP_SERVERS = 32, MCP_LABEL_MAX = 64, MCP_PROBLEM_MAX = 400, MCP_HEADERS_MAX = 24 };

typedef enum mcp_kind { MCP_STDIO, MCP_HTTP, MCP_BUILTIN } mcp_kind;

/* Whether a person is asked before a tool runs, where the request does not say. */
typedef enum mcp_consent {
    MCP_ASK,
    MCP_ASK_TO_WRITE,
    MCP_ASK_ONCE, /* a tool that a person has allowed in a conversation is not asked about again in it */
    MCP_NEVER_ASK
} mcp_consent;

/* A list of texts, with NULL behind the last. */
typedef struct mcp_words {
    char **items;
    size_t n;
} mcp_words;

typedef struct mcp_server_config {
    char label[MCP_LABEL_MAX + 1];
    mcp_kind kind;
    char problem[MCP_PROBLEM_MAX]; /* why it cannot be used; "": it can */
    bool is_off;                   /* "disabled": true */
    mcp_words argv, env;           /* MCP_STDIO: the program and its words; NAME=VALUE, all that it gets */
    const char *cwd;               /* NULL: where the server was started */
    const char *url;               /* MCP_HTTP */
    mcp_words headers;             /* "Name: value"; at most MCP_HEADERS_MAX */
    const char *builtin;           /* MCP_BUILTIN: its name */
    const char *folder;            /* of "folder": an absolute path, which holds no link */
    mcp_words domains;             /* of "fetch": rules of remote_host.h */
    mcp_consent consent;
    mcp_words always, hidden; /* tools that run without asking; tools that nobody gets */
    int timeout_s;            /* of one call */
    size_t memory_mib;        /* of each of its processes */
} mcp_server_config;

typedef struct mcp_config {
    arena *arena;
    mcp_server_config servers[MCP_SERVERS];
    size_t n;
    bool is_short; /* of memory, when it was read */
} mcp_config;

/* file: the configuration; tools: built-in ones ("calculator,folder=DIR,fetch=HOST"); NULL for none of
 * either. ERR_INVALID for a file that is no such document and for an unknown built-in tool,
 * ERR_NOT_FOUND, ERR_IO, ERR_NOMEM. */
MUST_CHECK err_code mcp_config_read(mcp_config **out, const char *file, const char *tools, err_detail *d);
void mcp_config_destroy(mcp_config *c); /* NULL allowed */

/* The server of this name; NULL if there is none. */
const mcp_server_config *mcp_config_find(const mcp_config *c, const char *label);
/* Whether any of them needs connections, or a process. c may be NULL. */
bool mcp_config_connects(const mcp_config *c);
bool mcp_config_spawns(const mcp_config *c);
/* Whether the list has this text. */
bool mcp_words_have(const mcp_words *w, const char *text);

#endif
