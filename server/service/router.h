/* router: maps method and path to a route. What is not in the table is 404. Any thread; constant.
 *
 *     router_match m = router_find(NET_GET, "/v1/models/seedling", false);
 *     if (m.status != 200) { return m.status; }      // with m.allow for 405
 */
#ifndef PARLEY_SERVER_SERVICE_ROUTER_H
#define PARLEY_SERVER_SERVICE_ROUTER_H

#include <stdbool.h>

#include "server/net/net.h"

typedef enum route_id {
    ROUTE_NONE,
    ROUTE_ASSET, /* any other path outside the API: a file of the page */
    ROUTE_CHAT_COMPLETIONS,
    ROUTE_COMPLETIONS,
    ROUTE_TOKENIZE,
    ROUTE_DETOKENIZE,
    ROUTE_APPLY_TEMPLATE,
    ROUTE_COUNT_CHAT,      /* POST /v1/chat/completions/input_tokens */
    ROUTE_CHAT_CONTROL,    /* POST /v1/chat/completions/control */
    ROUTE_COUNT_RESPONSES, /* POST /v1/responses/input_tokens */
    ROUTE_MESSAGES,
    ROUTE_OLLAMA_CHAT, /* POST /api/chat, and so on */
    ROUTE_OLLAMA_GENERATE,
    ROUTE_OLLAMA_TAGS,
    ROUTE_OLLAMA_SHOW,
    ROUTE_OLLAMA_VERSION,
    ROUTE_OLLAMA_EMBED,
    ROUTE_COUNT_MESSAGES, /* POST /v1/messages/count_tokens */
    ROUTE_RESPONSES,
    ROUTE_COMPACT, /* POST /v1/responses/compact */
    ROUTE_RESPONSES_SOCKET,
    ROUTE_RESPONSE,        /* GET, DELETE /v1/responses/{id} */
    ROUTE_RESPONSE_ITEMS,  /* GET /v1/responses/{id}/input_items */
    ROUTE_CONVERSATIONS,   /* POST /v1/conversations */
    ROUTE_CONVERSATION,    /* GET, POST, DELETE /v1/conversations/{id} */
    ROUTE_CONV_ITEMS,      /* GET, POST */
    ROUTE_CONV_ITEM,       /* GET, DELETE */
    ROUTE_RESPONSE_CANCEL, /* POST /v1/responses/{id}/cancel */
    ROUTE_MODELS,
    ROUTE_MODEL,      /* GET /v1/models/{id} */
    ROUTE_MODEL_LOAD, /* POST /models/load */
    ROUTE_MODEL_UNLOAD,
    ROUTE_HUB,       /* GET /v1/hub */
    ROUTE_HUB_ORDER, /* POST /v1/hub/pull, and so on */
    ROUTE_HEALTH,
    ROUTE_METRICS,
    ROUTE_STATUS,
    ROUTE_REQUEST_CANCEL, /* POST /v1/requests/{id}/cancel, DELETE /v1/requests/{id} */
    ROUTE_CACHE,          /* GET, DELETE /v1/cache */
    ROUTE_CACHE_ENTRY,    /* GET, DELETE /v1/cache/{name} */
    ROUTE_CACHE_SAVE,     /* POST /v1/cache/{name} */
    ROUTE_CACHE_LOAD,     /* POST /v1/cache/{name}/load */
    ROUTE_MCP,            /* GET /v1/mcp, POST /v1/mcp/{server_label}/retry */
    ROUTE_MCP_RESOURCE,   /* POST /v1/mcp/{server_label}/resources/read */
    ROUTE_MCP_PROMPT,     /* POST /v1/mcp/{server_label}/prompts/get */
    ROUTE_PROPS,
    ROUTE_SLOTS,
    ROUTE_EMBEDDINGS,
    ROUTE_RERANK,
    ROUTE_FILE_CREATE, /* POST /v1/files */
    ROUTE_FILES,       /* GET /v1/files */
    ROUTE_FILE,
    ROUTE_FILE_DELETE,
    ROUTE_FILE_CONTENT,
    ROUTE_UPLOADS, /* POST /v1/uploads */
    ROUTE_UPLOAD_PART,
    ROUTE_UPLOAD_COMPLETE,
    ROUTE_UPLOAD_CANCEL,
    ROUTE_HISTORY,        /* GET /v1/history */
    ROUTE_HISTORY_CHATS,  /* GET /v1/history/chats */
    ROUTE_HISTORY_CHAT,   /* GET, PUT, DELETE /v1/history/chats/{id} */
    ROUTE_HISTORY_SEARCH, /* POST */
    ROUTE_HISTORY_KEEP,   /* POST /v1/history/files */
    ROUTE_HISTORY_FILE,   /* GET /v1/history/files/{sha256} */
    ROUTE_HISTORY_EXPORT, /* GET */
    ROUTE_HISTORY_IMPORT, /* POST */
    ROUTE_SHARES,         /* GET, POST /v1/history/shares */
    ROUTE_SHARE,          /* DELETE /v1/history/shares/{token} */
    ROUTE_SHARED,         /* GET /v1/shared/{token} */
    ROUTE_SHARED_FILE,    /* GET /v1/shared/{token}/files/{sha256} */
    N_ROUTES
} route_id;

typedef struct route {
    route_id id;
    unsigned methods;    /* net_method bits; HEAD goes with GET, OPTIONS with all */
    const char *pattern; /* '*' stands for one path segment */
    const char *name;    /* label in metrics and logs */
    bool is_public;      /* needs no key */
    bool takes_json;     /* the body must be application/json */
    bool takes_form;     /* a form with a file, read as it arrives */
} route;

typedef struct router_match {
    int status;                 /* 200, 404, 405 */
    const route *route;         /* when 200; when 405, one of this path */
    unsigned allow;             /* when 405, and of NET_OPTIONS: what the path takes */
    char param[NET_HEADER_MAX]; /* the segment that '*' stood for, or "" */
} router_match;

/* is_upgrade: the request asks for a WebSocket. */
router_match router_find(net_method method, const char *path, bool is_upgrade);

/* "GET, HEAD, OPTIONS" for an Allow header. */
void router_allow(char *out, size_t cap, unsigned methods);

/* The table, for tests and documentation that walk every route. */
const route *router_table(size_t *n);

#endif
