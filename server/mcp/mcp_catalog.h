/* mcp_catalog: what MCP servers offer, checked and cleaned, as it was at one moment. Immutable once it
 * is built and counted, so that requests keep the one that they were read with. Any thread.
 *
 *     mcp_offer *o = mcp_offer_create(config, tools, resources, prompts);   // lists of JSON objects
 *     mcp_catalog *c = mcp_catalog_create(n);  c->servers[0].offer = mcp_offer_take(o);
 *     const mcp_tool *t = mcp_offer_find(o, "echo");
 *     mcp_catalog_release(c); mcp_offer_release(o);
 *
 * Names and descriptions come from strangers: control characters go, long ones are cut, and a tool whose
 * name or schema is not usable is left out, which `left_out` counts.
 */
#ifndef PARLEY_SERVER_MCP_MCP_CATALOG_H
#define PARLEY_SERVER_MCP_MCP_CATALOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/json.h"
#include "server/mcp/mcp_config.h"

enum { MCP_CLEAN_NAME_MAX = 48 };

/* A parameter that goes into a header, too: x-mcp-header of the schema. */
typedef struct mcp_header_param {
    const char *param, *header;
} mcp_header_param;

typedef struct mcp_tool {
    const char *name;        /* as the server calls it */
    const char *clean;       /* letters, digits, _ and -, 1 to MCP_CLEAN_NAME_MAX: for models */
    const char *title;       /* for people; perhaps the name */
    const char *description; /* "" if there is none */
    const json *schema;      /* of its arguments: an object */
    bool is_read_only;       /* says the server, which may be wrong */
    bool runs_unasked;       /* says the configuration */
    bool asks_once;          /* likewise: MCP_ASK_ONCE */
    mcp_header_param *headers;
    size_t n_headers;
} mcp_tool;

typedef struct mcp_offer {
    atomic_int refs;
    arena *arena;
    json_doc *docs[3]; /* what the lists below point into */
    mcp_tool *tools;
    size_t n_tools, left_out;
    const json *resources, *prompts; /* lists, perhaps NULL */
} mcp_offer;

typedef enum mcp_state { MCP_OFF, MCP_CONNECTING, MCP_READY, MCP_DOWN } mcp_state;

typedef struct mcp_server_view {
    const mcp_server_config *config;
    mcp_state state;
    char why[MCP_PROBLEM_MAX]; /* MCP_DOWN, MCP_OFF */
    char name[128], version[64], protocol[32];
    mcp_offer *offer; /* NULL: nothing is known yet */
} mcp_server_view;

typedef struct mcp_catalog {
    atomic_int refs;
    size_t n;
    mcp_server_view servers[];
} mcp_catalog;

/* tools, resources, prompts: texts of JSON lists; NULL: none. NULL without memory. is_http: header
 * parameters count. */
MUST_CHECK mcp_offer *mcp_offer_create(const mcp_server_config *config, const bytes *tools,
                                       const bytes *resources, const bytes *prompts);
mcp_offer *mcp_offer_take(mcp_offer *o); /* NULL allowed */
void mcp_offer_release(mcp_offer *o);    /* NULL allowed */
/* By the server's name for it; NULL if there is none. */
const mcp_tool *mcp_offer_find(const mcp_offer *o, const char *name);

MUST_CHECK mcp_catalog *mcp_catalog_create(size_t n); /* NULL without memory */
mcp_catalog *mcp_catalog_take(mcp_catalog *c);
void mcp_catalog_release(mcp_catalog *c); /* NULL allowed; releases the offers */
/* By label; NULL if there is none. c may be NULL. */
const mcp_server_view *mcp_catalog_find(const mcp_catalog *c, const char *label);
/* {"data":[{"label","state",...,"tools":[..]}]}, for GET /v1/mcp. c may be NULL. */
void mcp_catalog_write(bytes *out, const mcp_catalog *c);

/* Appends JSON whose values below `depth` levels are null, so that one value that is too deep does not cost the rest. The
 * text need not be well-formed. */
void mcp_prune(bytes *out, const char *text, size_t len, size_t depth);

/* Appends text without control characters and without marks that turn the direction of writing, at most
 * `most` bytes of it; has_lines: line breaks and tabs stay. What is no UTF-8 becomes U+FFFD. */
void mcp_clean_text(bytes *out, const char *text, size_t most, bool has_lines);

#endif
