/* Requests: made, written, sent, ended. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/mcp/mcp_state.h"

static const char *const METHODS[] = {[MCP_DISCOVER] = "server/discover",
                                      [MCP_INITIALIZE] = "initialize",
                                      [MCP_LIST_TOOLS] = "tools/list",
                                      [MCP_LIST_RESOURCES] = "resources/list",
                                      [MCP_LIST_PROMPTS] = "prompts/list"};

const char *mcp_ask_method(const mcp_ask *ask)
{
    static const char *const WORK[] = {[MCP_CALL_TOOL] = "tools/call",
                                       [MCP_READ_RESOURCE] = "resources/read",
                                       [MCP_GET_PROMPT] = "prompts/get"};
    return ask->purpose == MCP_WORK ? WORK[ask->what] : METHODS[ask->purpose];
}

/* ---- requests ---- */

/* NULL without memory. It is sent with the next tick. */
mcp_ask *mcp_ask_new(mcp_session *s, mcp_purpose purpose, int seconds)
{
    mcp *m = s->all;
    mcp_ask *ask = calloc(1, sizeof *ask);
    if (!ask) {
        mcp_session_fail(s, "there is no memory to ask it");
        return NULL;
    }
    const double now = clock_ms();
    *ask = (mcp_ask){.s = s,
                     .id = ++m->last_id,
                     .purpose = purpose,
                     .send_ms = now,
                     .begun_ms = now,
                     .until_ms = now + 1000.0 * seconds,
                     .retry_ms = 1000,
                     .next = m->asks,
                     .link = &m->asks};
    ask->last_ms = ask->until_ms;
    bytes_init(&ask->body, LIMIT_MCP_MESSAGE_BYTES);
    bytes_init(&ask->reply, LIMIT_MCP_MESSAGE_BYTES);
    bytes_init(&ask->headers, 0);
    if (m->asks) {
        m->asks->link = &ask->next;
    }
    m->asks = ask;
    http_client_wake(m->client);
    return ask;
}

void mcp_ask_free(mcp_ask *ask)
{
    if (ask->transfer) {
        http_client_stop(ask->s->all->client, ask->transfer);
    }
    if (ask->worker) {
        mcp_worker_cancel(ask->worker);
    }
    *ask->link = ask->next;
    if (ask->next) {
        ask->next->link = ask->link;
    }
    bytes_deinit(&ask->body);
    bytes_deinit(&ask->reply);
    bytes_deinit(&ask->headers);
    free(ask->name);
    free(ask->arguments);
    free(ask->cursor);
    free(ask->more);
    free(ask);
}

int64_t mcp_notice_send(mcp_session *s, const bytes *text)
{
    if (s->config->kind == MCP_STDIO) {
        mcp_pipe_send(s, bytes_str(text), text->len);
    } else { /* over HTTP: a built-in one is told nothing */
        mcp_ask *ask = mcp_ask_new(s, MCP_NOTICE, LIMIT_MCP_CONNECT_S);
        if (ask) {
            bytes_append(&ask->body, text->data, text->len);
            return ask->id;
        }
    }
    return 0;
}

void mcp_ask_drop(mcp_ask *ask, bool is_told)
{
    mcp_session *s = ask->s;
    const int64_t id = ask->id;
    const bool was_sent = ask->send_ms <= 0.0;
    mcp_ask_free(ask); /* over HTTP the end of its stream says it to a server of today */
    if (is_told && was_sent && (s->config->kind == MCP_STDIO || !s->is_modern)) {
        bytes text = bytes_empty(1024);
        bytes_printf(
            &text,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}",
            (long long)id);
        mcp_notice_send(s, &text);
        bytes_deinit(&text);
    }
}

static void write_client(bytes *out)
{
    bytes_append_str(out, "{\"name\":\"parley\",\"version\":\"" PARLEY_VERSION "\"}");
}

/* The members of params, each with a comma behind it. */
static void write_params(mcp_ask *ask)
{
    bytes *out = &ask->body;
    switch (ask->purpose) {
    case MCP_INITIALIZE:
        bytes_json(out, "\"protocolVersion\":%s,\"capabilities\":{},\"clientInfo\":", MCP_LEGACY);
        write_client(out);
        bytes_append_char(out, ',');
        break;
    case MCP_LIST_TOOLS:
    case MCP_LIST_RESOURCES:
    case MCP_LIST_PROMPTS:
        if (ask->cursor) {
            bytes_json(out, "\"cursor\":%s,", ask->cursor);
        }
        break;
    case MCP_WORK:
        bytes_json(out, ask->what == MCP_READ_RESOURCE ? "\"uri\":%s," : "\"name\":%s,", ask->name);
        if (ask->arguments && ask->what != MCP_READ_RESOURCE) {
            bytes_json(out, "\"arguments\":%-s,", ask->arguments);
        }
        bytes_append_str(out, ask->more ? ask->more : "");
        break;
    default:
        break;
    }
}

static void write_message(mcp_ask *ask)
{
    const mcp_session *s = ask->s;
    bytes *out = &ask->body;
    bytes_clear(out);
    bytes_json(out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":%s,\"params\":{", (long long)ask->id,
               mcp_ask_method(ask));
    write_params(ask);
    bytes_append_str(out, "\"_meta\":{");
    if (ask->purpose == MCP_WORK) {
        bytes_printf(out, "\"progressToken\":%lld%s", (long long)ask->id, s->is_modern ? "," : "");
    }
    if (s->is_modern) {
        bytes_json(out,
                   "\"io.modelcontextprotocol/protocolVersion\":%s,"
                   "\"io.modelcontextprotocol/clientInfo\":",
                   s->protocol);
        write_client(out);
        bytes_append_str(out, ",\"io.modelcontextprotocol/clientCapabilities\":{}");
    }
    bytes_append_str(out, "}}}");
}

static bool goes_on(void *ctx)
{
    (void)ctx;
    return true;
}

/* What it offers is said here; a tool may take its time. */
static void answer_builtin(mcp_ask *ask)
{
    enum { BUSY_MS = 50 };
    mcp_session *s = ask->s;
    if (ask->purpose == MCP_WORK) {
        ask->send_ms = mcp_worker_start(ask) ? 0.0 : clock_ms() + BUSY_MS;
        return;
    }
    json_doc *doc = NULL;
    bytes reply = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
    if (json_parse(&doc, ask->body.data, ask->body.len, LIMIT_JSON_DEPTH + 8, NULL) == ERR_OK) {
        mcp_builtin_answer(s->config, json_root(doc), &reply, goes_on, NULL);
        json_free(doc);
    }
    if (reply.failed || !reply.len) {
        mcp_session_fail(s, "there is no memory to ask it");
    } else {
        mcp_session_read(s, ask, bytes_str(&reply), reply.len);
    }
    bytes_deinit(&reply);
}

void mcp_ask_send(mcp_ask *ask)
{
    mcp_session *s = ask->s;
    ask->send_ms = 0.0;
    if (ask->purpose != MCP_NOTICE) {
        write_message(ask);
    }
    if (ask->body.failed) {
        mcp_session_fail(s, "there is no memory to ask it");
    } else if (s->config->kind == MCP_STDIO) {
        mcp_pipe_send(s, ask->body.data, ask->body.len);
    } else if (s->config->kind == MCP_BUILTIN) {
        answer_builtin(ask);
    } else if (!mcp_post_send(ask,
                              ask->purpose == MCP_NOTICE ? "notifications/initialized" : mcp_ask_method(ask),
                              ask->name)) {
        if (ask->headers.failed && !ask->headers.no_memory) { /* only those of a call may be that long */
            mcp_ask_fail(ask, "the arguments that it wants in headers are too long");
            mcp_ask_free(ask);
        } else {
            mcp_session_fail(s, "there is no memory to ask it");
        }
    }
}

/* ---- results of orders ---- */

/* The order's result is this failure; the request is gone. */
void mcp_ask_fail(mcp_ask *ask, const char *format, ...)
{
    char text[MCP_PROBLEM_MAX + 200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mcp_result *r = mcp_last_result(ask->s->all, ask->owner, ask->place);
    if (r) {
        r->ms = clock_ms() - ask->begun_ms;
        mcp_result_fail(r, "%s: %s", ask->s->config->label, text);
    }
    mcp_tell(ask->s->all, r);
    ask->owner = 0;
}
