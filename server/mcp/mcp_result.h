/* mcp_result: what a call brought: text for the model, images as data: URIs, and whether it went wrong.
 * Any thread.
 *
 *     mcp_result *r = mcp_result_create(owner, place);
 *     mcp_result_read(r, result);           // the "result" of a reply
 *     mcp_result_free(r);
 *
 * Everything in it comes from a stranger: it is bounded, and it is data.
 */
#ifndef PARLEY_SERVER_MCP_MCP_RESULT_H
#define PARLEY_SERVER_MCP_MCP_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/json.h"

typedef struct mcp_result {
    uint64_t owner; /* of the order */
    uint32_t place;
    bool has_failed; /* text says why */
    bytes text;      /* at most LIMIT_MCP_RESULT_BYTES and a note */
    bytes images;    /* "data:..","data:..": JSON texts with commas; "" for none */
    bytes whole;     /* of a resource or a prompt: the result as JSON; else empty */
    size_t n_images;
    double ms;       /* from the order to the result */
    double progress; /* not the end: the share that is done, 0 to 1, and text says more; -1: it is the end */
} mcp_result;

/* NULL without memory. */
MUST_CHECK mcp_result *mcp_result_create(uint64_t owner, uint32_t place);
void mcp_result_free(mcp_result *r); /* NULL allowed */
/* Reads the result of tools/call, resources/read or prompts/get. */
void mcp_result_read(mcp_result *r, const json *result);
/* It failed, for this reason. */
void mcp_result_fail(mcp_result *r, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
