#include "server/service/router.h"

#include <stdio.h>
#include <string.h>

static const route ROUTES[] = {
    {ROUTE_CHAT_COMPLETIONS, NET_POST, "/v1/chat/completions", "chat_completions", false, true, false},
    {ROUTE_CHAT_COMPLETIONS, NET_POST, "/chat/completions", "chat_completions", false, true, false},
    {ROUTE_COUNT_CHAT, NET_POST, "/v1/chat/completions/input_tokens", "input_tokens", false, true, false},
    {ROUTE_CHAT_CONTROL, NET_POST, "/v1/chat/completions/control", "chat_control", false, true, false},
    {ROUTE_COMPLETIONS, NET_POST, "/v1/completions", "completions", false, true, false},
    {ROUTE_COMPLETIONS, NET_POST, "/completions", "completions", false, true, false},
    {ROUTE_MESSAGES, NET_POST, "/v1/messages", "messages", false, true, false},
    {ROUTE_COUNT_MESSAGES, NET_POST, "/v1/messages/count_tokens", "input_tokens", false, true, false},
    {ROUTE_OLLAMA_CHAT, NET_POST, "/api/chat", "ollama_chat", false, true, false},
    {ROUTE_OLLAMA_GENERATE, NET_POST, "/api/generate", "ollama_generate", false, true, false},
    {ROUTE_OLLAMA_TAGS, NET_GET, "/api/tags", "ollama_tags", false, false, false},
    {ROUTE_OLLAMA_TAGS, NET_GET, "/api/ps", "ollama_tags", false, false, false},
    {ROUTE_OLLAMA_SHOW, NET_POST, "/api/show", "ollama_show", false, true, false},
    {ROUTE_OLLAMA_VERSION, NET_GET, "/api/version", "ollama_version", false, false, false},
    {ROUTE_OLLAMA_EMBED, NET_POST, "/api/embed", "ollama_embed", false, true, false},
    {ROUTE_OLLAMA_EMBED, NET_POST, "/api/embeddings", "ollama_embed", false, true, false},
    {ROUTE_TOKENIZE, NET_POST, "/tokenize", "tokenize", false, true, false},
    {ROUTE_DETOKENIZE, NET_POST, "/detokenize", "detokenize", false, true, false},
    {ROUTE_APPLY_TEMPLATE, NET_POST, "/apply-template", "apply_template", false, true, false},
    {ROUTE_EMBEDDINGS, NET_POST, "/v1/embeddings", "embeddings", false, true, false},
    {ROUTE_RERANK, NET_POST, "/v1/rerank", "rerank", false, true, false},
    {ROUTE_RERANK, NET_POST, "/rerank", "rerank", false, true, false},
    {ROUTE_COUNT_RESPONSES, NET_POST, "/v1/responses/input_tokens", "input_tokens", false, true, false},
    {ROUTE_RESPONSES, NET_POST, "/v1/responses", "responses", false, true, false},
    {ROUTE_COMPACT, NET_POST, "/v1/responses/compact", "responses_compact", false, true, false},
    {ROUTE_RESPONSE, NET_GET, "/v1/responses/*", "responses_get", false, false, false},
    {ROUTE_RESPONSE, NET_DELETE, "/v1/responses/*", "responses_delete", false, false, false},
    {ROUTE_RESPONSE_ITEMS, NET_GET, "/v1/responses/*/input_items", "responses_items", false, false, false},
    {ROUTE_CONVERSATIONS, NET_POST, "/v1/conversations", "conversations", false, true, false},
    {ROUTE_CONVERSATION, NET_GET, "/v1/conversations/*", "conversations", false, false, false},
    {ROUTE_CONVERSATION, NET_POST, "/v1/conversations/*", "conversations", false, true, false},
    {ROUTE_CONVERSATION, NET_DELETE, "/v1/conversations/*", "conversations", false, false, false},
    {ROUTE_CONV_ITEMS, NET_GET, "/v1/conversations/*/items", "conversations", false, false, false},
    {ROUTE_CONV_ITEMS, NET_POST, "/v1/conversations/*/items", "conversations", false, true, false},
    {ROUTE_CONV_ITEM, NET_GET, "/v1/conversations/*/items/*", "conversations", false, false, false},
    {ROUTE_CONV_ITEM, NET_DELETE, "/v1/conversations/*/items/*", "conversations", false, false, false},
    {ROUTE_RESPONSE_CANCEL, NET_POST, "/v1/responses/*/cancel", "responses_cancel", false, false, false},
    {ROUTE_MODELS, NET_GET, "/v1/models", "models", false, false, false},
    {ROUTE_MODELS, NET_GET, "/models", "models", false, false, false},
    {ROUTE_MODEL, NET_GET, "/v1/models/+", "models", false, false, false},
    {ROUTE_MODEL_LOAD, NET_POST, "/models/load", "models_load", false, true, false},
    {ROUTE_MODEL_UNLOAD, NET_POST, "/models/unload", "models_unload", false, true, false},
    {ROUTE_HUB, NET_GET, "/v1/hub", "hub", false, false, false},
    {ROUTE_HUB_ORDER, NET_POST, "/v1/hub/*", "hub_order", false, true, false},
    {ROUTE_HEALTH, NET_GET, "/health", "health", true, false, false},
    {ROUTE_HEALTH, NET_GET, "/v1/health", "health", true, false, false},
    {ROUTE_METRICS, NET_GET, "/metrics", "metrics", false, false, false},
    {ROUTE_STATUS, NET_GET, "/v1/status", "status", false, false, false},
    {ROUTE_REQUEST_CANCEL, NET_POST, "/v1/requests/*/cancel", "requests_cancel", false, false, false},
    {ROUTE_REQUEST_CANCEL, NET_DELETE, "/v1/requests/*", "requests_cancel", false, false, false},
    {ROUTE_CACHE, NET_GET | NET_DELETE, "/v1/cache", "cache", false, false, false},
    {ROUTE_CACHE_ENTRY, NET_GET, "/v1/cache/*", "cache", false, false, false},
    {ROUTE_CACHE_ENTRY, NET_DELETE, "/v1/cache/*", "cache", false, false, false},
    {ROUTE_CACHE_SAVE, NET_POST, "/v1/cache/*", "cache_save", false, true, false},
    {ROUTE_CACHE_LOAD, NET_POST, "/v1/cache/*/load", "cache_load", false, false, false},
    {ROUTE_MCP, NET_GET, "/v1/mcp", "mcp", false, false, false},
    {ROUTE_MCP, NET_POST, "/v1/mcp/*/retry", "mcp_retry", false, false, false},
    {ROUTE_MCP_RESOURCE, NET_POST, "/v1/mcp/*/resources/read", "mcp_resource", false, true, false},
    {ROUTE_MCP_PROMPT, NET_POST, "/v1/mcp/*/prompts/get", "mcp_prompt", false, true, false},
    {ROUTE_PROPS, NET_GET, "/props", "props", false, false, false},
    {ROUTE_SLOTS, NET_GET, "/slots", "slots", false, false, false},
    {ROUTE_FILE_CREATE, NET_POST, "/v1/files", "files_create", false, false, true},
    {ROUTE_FILES, NET_GET, "/v1/files", "files_list", false, false, false},
    {ROUTE_FILE, NET_GET, "/v1/files/*", "files_get", false, false, false},
    {ROUTE_FILE_DELETE, NET_DELETE, "/v1/files/*", "files_delete", false, false, false},
    {ROUTE_FILE_CONTENT, NET_GET, "/v1/files/*/content", "files_content", false, false, false},
    {ROUTE_UPLOADS, NET_POST, "/v1/uploads", "uploads_create", false, true, false},
    {ROUTE_UPLOAD_PART, NET_POST, "/v1/uploads/*/parts", "uploads_part", false, false, true},
    {ROUTE_UPLOAD_COMPLETE, NET_POST, "/v1/uploads/*/complete", "uploads_complete", false, true, false},
    {ROUTE_UPLOAD_CANCEL, NET_POST, "/v1/uploads/*/cancel", "uploads_cancel", false, false, false},
    {ROUTE_HISTORY, NET_GET, "/v1/history", "history", false, false, false},
    {ROUTE_HISTORY_CHATS, NET_GET, "/v1/history/chats", "history_list", false, false, false},
    {ROUTE_HISTORY_CHAT, NET_GET | NET_PUT | NET_DELETE, "/v1/history/chats/*", "history_chat", false, true,
     false},
    {ROUTE_HISTORY_SEARCH, NET_POST, "/v1/history/search", "history_search", false, true, false},
    {ROUTE_HISTORY_KEEP, NET_POST, "/v1/history/files", "history_files", false, true, false},
    {ROUTE_HISTORY_FILE, NET_GET, "/v1/history/files/*", "history_files", false, false, false},
    {ROUTE_HISTORY_EXPORT, NET_GET, "/v1/history/export", "history_export", false, false, false},
    {ROUTE_HISTORY_IMPORT, NET_POST, "/v1/history/import", "history_import", false, true, false},
    {ROUTE_SHARES, NET_GET | NET_POST, "/v1/history/shares", "history_shares", false, true, false},
    {ROUTE_SHARE, NET_DELETE, "/v1/history/shares/*", "history_shares", false, false, false},
    {ROUTE_SHARED, NET_GET, "/v1/shared/*", "shared", true, false, false},
    {ROUTE_SHARED_FILE, NET_GET, "/v1/shared/*/files/*", "shared", true, false, false},
};

static const route SOCKET = {
    ROUTE_RESPONSES_SOCKET, NET_GET, "/v1/responses", "responses_ws", false, false, false};
static const route ASSET = {ROUTE_ASSET, NET_GET, "/", "page", true, false, false};

static bool matches(const char *pattern, const char *path, char *param, size_t cap)
{
    param[0] = '\0';
    while (*pattern && *path) {
        if (*pattern == '*' || *pattern == '+') { /* a name without slashes; the rest of the path */
            size_t n = *pattern == '*' ? strcspn(path, "/") : strlen(path);
            if (n == 0 || n >= cap) {
                return false;
            }
            memcpy(param, path, n);
            param[n] = '\0';
            path += n;
            pattern++;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *pattern == '\0' && *path == '\0';
}

static bool is_api_path(const char *path)
{
    return strncmp(path, "/v1/", 4) == 0 || strcmp(path, "/v1") == 0 || strncmp(path, "/api/", 5) == 0;
}

router_match router_find(net_method method, const char *path, bool is_upgrade)
{
    router_match m = {.status = 404};
    net_method wanted = method == NET_HEAD ? NET_GET : method;
    if (path[0] != '/') {
        return m;
    }
    if (is_upgrade) {
        bool is_socket = strcmp(path, SOCKET.pattern) == 0;
        m.status = is_socket && method == NET_GET ? 200 : 404;
        m.route = is_socket ? &SOCKET : NULL;
        return m;
    }
    for (size_t i = 0; i < sizeof ROUTES / sizeof ROUTES[0]; i++) {
        char param[sizeof m.param];
        if (!matches(ROUTES[i].pattern, path, param, sizeof param)) {
            continue;
        }
        if (ROUTES[i].methods & wanted) {
            m.status = 200;
            m.route = &ROUTES[i];
            m.allow = ROUTES[i].methods;
            memcpy(m.param, param, sizeof param);
            return m;
        }
        m.status = method == NET_OPTIONS ? 200 : 405;
        m.route = m.route && method == NET_OPTIONS ? m.route : &ROUTES[i];
        m.allow |= ROUTES[i].methods;
    }
    if (m.status == 404 && !is_api_path(path)) {
        bool reads = wanted == NET_GET || method == NET_OPTIONS;
        m.status = reads ? 200 : 405;
        m.route = reads ? &ASSET : NULL;
        m.allow = NET_GET;
    }
    return m;
}

void router_allow(char *out, size_t cap, unsigned methods)
{
    static const struct {
        unsigned bit;
        const char *name;
    } NAMES[] = {{NET_GET, "GET, HEAD"},
                 {NET_POST, "POST"},
                 {NET_PUT, "PUT"},
                 {NET_PATCH, "PATCH"},
                 {NET_DELETE, "DELETE"}};
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && n < cap; i++) {
        if (methods & NAMES[i].bit) {
            n += (size_t)snprintf(out + n, cap - n, "%s, ", NAMES[i].name);
        }
    }
    if (n < cap) {
        snprintf(out + n, cap - n, "OPTIONS");
    }
}

const route *router_table(size_t *n)
{
    *n = sizeof ROUTES / sizeof ROUTES[0];
    return ROUTES;
}
