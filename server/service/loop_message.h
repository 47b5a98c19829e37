/* loop_message: messages from other threads to the loop thread, with their ownership, through one
 * mailbox.
 *
 *     loop_message *m = loop_message_create(LOOP_EVENT, id);  m->event = event;
 *     // given to post(ctx, m); the loop frees it with loop_message_free
 */
#ifndef PARLEY_SERVER_SERVICE_LOOP_MESSAGE_H
#define PARLEY_SERVER_SERVICE_LOOP_MESSAGE_H

#include <stdint.h>

#include "base/json.h"
#include "base/ledger.h"
#include "engine/engine.h"
#include "server/api_error.h"
#include "server/history/history.h"
#include "server/mcp/mcp_result.h"
#include "server/protocol/request_fields.h"
#include "server/upstream/upstream.h"

typedef enum loop_message_type {
    LOOP_EVENT, /* from the engine: event */
    /* from prep: the body is valid; options. Only where something is said, or decided, by that */
    LOOP_ACCEPTED,
    LOOP_PROGRESS, /* from prep: phase, processed, total */
    /* from prep: the engine has admitted the request, or request is to be submitted; info, and
     * options unless LOOP_ACCEPTED had them. No event of the engine comes before it. */
    LOOP_PREPARED,
    /* from prep: the body names a model that it cannot be read for; body, doc, memory, and of the
     * options model, event_id and stream_id. The last of that job */
    LOOP_OTHER_MODEL,
    LOOP_TOOLS,    /* from prep: calls of tools that the body allows come first; options, body, memory */
    LOOP_RESULT,   /* from the thread of MCP servers: result; id is the answer's */
    LOOP_REPLIED,  /* from prep: reply answers a query */
    LOOP_FACTS,    /* from prep: reply has members of upload.completed.media; id names the preview */
    LOOP_PREVIEW,  /* from prep: reply has media.preview, or is empty; the last of that id */
    LOOP_REFUSED,  /* from prep: error; options hold event_id and stream_id if they could be read */
    LOOP_LOADING,  /* from the loader: stage, fraction */
    LOOP_LOADED,   /* from the loader: engine, or NULL and error_code, detail */
    LOOP_HISTORY,  /* from the history: history */
    LOOP_UPSTREAMS /* from the thread of other servers: one, or its models, have come or gone */
} loop_message_type;

typedef struct loop_message {
    loop_message_type type;
    uint64_t id; /* answer */
    gen_event *event;
    reply_options options;
    gen_request *request;
    upstream_request *remote; /* LOOP_PREPARED in place of request, for another server */
    gen_request_info info;
    bytes body;
    json_doc *doc;
    ledger_hold memory;
    bytes reply;       /* JSON; of LOOP_PREPARED: what context_management has left out */
    bool asks_summary; /* LOOP_PREPARED: the answer will be a summary of the conversation */
    double prep_ms;
    api_error error;
    gen_phase phase;
    int32_t processed, total;
    char stage[48];
    double fraction;
    engine *engine;
    history_reply *history;
    mcp_result *result;
    err_code code;
    err_detail detail;
} loop_message;

/* NULL if out of memory. */
loop_message *loop_message_create(loop_message_type type, uint64_t id);
/* Frees the message and what it still owns (event, options, request, body, doc, memory, reply, history, result). NULL
 * allowed. */
void loop_message_free(loop_message *m);

#endif
