#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/protocol/dialects/ollama_reply.h"
#include "server/service/assets.h"
#include "server/service/serve_state.h"

enum { PULL_BYTES = 16384, PROTOCOL_LIST_MAX = 120, ALLOW_MAX = 64, HEADERS_MAX = 128, REPLY_MAX = 1 << 20 };
enum { PREFLIGHT_MAX = 1024 + NET_HEADER_MAX };
enum { REFUSAL_MAX = 4096 }; /* the longest error there is, each of its letters escaped */

/* Not NULL from a connection's first head that was accepted on until serve_on_close: none of the other callbacks comes
 * before or after. */
conn *serve_conn(serve *s, uint64_t id)
{
    return id_table_get(&s->conns, id);
}

/* ---- replies ---- */

void serve_send_json(serve *s, conn *c, int status, const bytes *body, const char *headers)
{
    if (body->failed) {
        static const char text[] =
            "{\"error\":{\"message\":\"no memory for the reply\",\"type\":\"unavailable_error\","
            "\"param\":null,\"code\":\"out_of_memory\"}}";
        net_reply reply = {
            .status = 503, .content_type = "application/json", .body = text, .body_bytes = sizeof text - 1};
        net_send_reply(s->net, c->id, &reply);
        return;
    }
    metrics_request(&s->metrics, c->route->name, status);
    net_reply reply = {.status = status,
                       .content_type = "application/json",
                       .headers = headers,
                       .body = body->data,
                       .body_bytes = body->len,
                       .head_only = c->method == NET_HEAD};
    net_send_reply(s->net, c->id, &reply);
}

void serve_send_body(serve *s, conn *c, bytes *body)
{
    serve_send_json(s, c, 200, body, NULL);
    bytes_deinit(body);
}

static void error_headers(char out[HEADERS_MAX], const api_error *e, const char *allow)
{
    out[0] = '\0';
    if (e->retry_after_s) {
        snprintf(out, HEADERS_MAX, "Retry-After: %d\r\n", e->retry_after_s);
    } else if (e->status == 401) {
        snprintf(out, HEADERS_MAX, "WWW-Authenticate: Bearer\r\n");
    } else if (allow) {
        snprintf(out, HEADERS_MAX, "Allow: %s\r\n", allow);
    }
}

/* The routes that take a body and make an answer of it. */
static const dialect *const DIALECTS[N_ROUTES] = {
    [ROUTE_CHAT_COMPLETIONS] = &dialect_chat,
    [ROUTE_COMPLETIONS] = &dialect_completion,
    [ROUTE_EMBEDDINGS] = &dialect_embedding,
    [ROUTE_OLLAMA_EMBED] = &dialect_ollama_embed,
    [ROUTE_RERANK] = &dialect_rerank,
    [ROUTE_MESSAGES] = &dialect_messages,
    [ROUTE_OLLAMA_CHAT] = &dialect_ollama_chat,
    [ROUTE_OLLAMA_GENERATE] = &dialect_ollama_generate,
    [ROUTE_COUNT_MESSAGES] = &dialect_queries[QUERY_COUNT_MESSAGES],
    [ROUTE_RESPONSES] = &dialect_responses,
    [ROUTE_COMPACT] = &dialect_compact,
    [ROUTE_TOKENIZE] = &dialect_queries[QUERY_TOKENIZE],
    [ROUTE_DETOKENIZE] = &dialect_queries[QUERY_DETOKENIZE],
    [ROUTE_APPLY_TEMPLATE] = &dialect_queries[QUERY_TEMPLATE],
    [ROUTE_COUNT_CHAT] = &dialect_queries[QUERY_COUNT_CHAT],
    [ROUTE_COUNT_RESPONSES] = &dialect_queries[QUERY_COUNT_RESPONSES],
    [ROUTE_CACHE_SAVE] = &dialect_cache_save,
    [ROUTE_CACHE_LOAD] = &dialect_cache_load,
};

/* NULL if the route makes no answer. */
static const dialect *dialect_of(const route *to)
{
    return DIALECTS[to->id];
}

/* A path as the routes know it: without --api-prefix. "" if it is not below that. */
static const char *own_path(const serve *s, const char *path)
{
    const char *prefix = s->opt->path_prefix;
    const size_t n = prefix ? strlen(prefix) : 0;
    return strncmp(path, prefix ? prefix : "", n) == 0 ? path + n : "";
}

/* How this client reads errors. */
static error_form error_form_of(const serve *s, const net_head *head)
{
    static const char MESSAGES[] = "/v1/messages";
    const bool is_message = strncmp(own_path(s, head->path), MESSAGES, sizeof MESSAGES - 1) == 0;
    const bool is_ollama = strncmp(own_path(s, head->path), "/api/", 5) == 0;
    return is_ollama                          ? ollama_reply_error_body
           : head->is_anthropic || is_message ? messages_reply_error_body
                                              : api_error_write_body;
}

void serve_send_error(serve *s, conn *c, const api_error *e)
{
    char headers[HEADERS_MAX];
    bytes body;
    bytes_init(&body, REFUSAL_MAX);
    error_headers(headers, e, NULL);
    c->write_error(&body, e);
    /* 499 is our word for a client that left; one that is still there gets a plain failure. */
    serve_send_json(s, c, e->status == 499 ? 503 : e->status, &body, headers);
    bytes_deinit(&body);
}

void serve_send_fault(serve *s, conn *c, int status, const char *code, const char *param, const char *text)
{
    api_error e;
    api_error_set(&e, status, code, param, "%s", text);
    serve_send_error(s, c, &e);
}

/* ---- the head of a request ---- */

/* The refusal must outlive on_head's frame, so its texts are kept for the thread. */
bool serve_refuse(serve *s, net_reply *out, const api_error *e, error_form form, const char *allow,
                  const route *to)
{
    static _Thread_local char headers[HEADERS_MAX];
    static _Thread_local char text[REFUSAL_MAX];
    bytes body;
    bytes_init(&body, REFUSAL_MAX);
    form(&body, e);
    snprintf(text, sizeof text, "%s", bytes_str(&body));
    bytes_deinit(&body);
    error_headers(headers, e, allow);
    metrics_request(&s->metrics, to ? to->name : "unknown", e->status);
    *out = (net_reply){.status = e->status,
                       .content_type = "application/json",
                       .headers = headers,
                       .body = text,
                       .body_bytes = strlen(text)};
    return false;
}

static bool is_json(const char *content_type)
{
    static const char wanted[] = "application/json";
    size_t n = sizeof wanted - 1;
    return strncasecmp(content_type, wanted, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == ';' || content_type[n] == ' ');
}

/* libwebsockets drops an upgrade whose sub-protocols it does not know, or whose list is long,
 * without a word. */
static bool protocols_ok(const char *list)
{
    if (!list[0]) {
        return true;
    }
    for (const char *p = list; *p;) {
        p += strspn(p, " ,\t");
        size_t n = strcspn(p, " ,\t");
        if (n == 9 && strncmp(p, "parley.v1", 9) == 0) {
            return strlen(list) < PROTOCOL_LIST_MAX;
        }
        p += n;
    }
    return false;
}

/* The prefix alone: the page asks for its files relative to the slash behind it. */
static bool redirect(serve *s, net_reply *refusal)
{
    snprintf(s->redirect, sizeof s->redirect, "Location: %s/\r\n", s->opt->path_prefix);
    *refusal = (net_reply){.status = 308, .headers = s->redirect};
    return false;
}

/* Answers a CORS preflight. It carries no key and is answered alike for every path: errors are
 * reported to the request that follows it. */
static bool answer_preflight(const net_head *head, net_reply *reply)
{
    static _Thread_local char headers[PREFLIGHT_MAX];
    const bool has_more = head->cors_headers[0] && strcmp(head->cors_headers, "?") != 0;
    snprintf(
        headers, PREFLIGHT_MAX,
        "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
        "Access-Control-Allow-Headers: Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, "
        "x-api-key, anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access, "
        "OpenAI-Beta, "
        "OpenAI-Organization, OpenAI-Project%s%s\r\n"
        "Access-Control-Max-Age: 7200\r\n%s"
        "Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n",
        has_more ? ", " : "", has_more ? head->cors_headers : "",
        head->cors_private ? "Access-Control-Allow-Private-Network: true\r\n" : "");
    *reply = (net_reply){.status = 204, .headers = headers};
    return false;
}

static bool is_hidden(const serve *s, const route *r)
{
    return r &&
           ((r->id == ROUTE_METRICS && s->opt->no_metrics) || (r->id == ROUTE_SLOTS && s->opt->no_slots));
}

/* What is wrong with a request that access_check let pass: fills *e and returns true. */
static bool has_fault(const serve *s, const net_head *head, const router_match *m, api_error *e,
                      char allow[ALLOW_MAX])
{
    if (m->status == 405) {
        router_allow(allow, ALLOW_MAX, m->allow);
        api_error_set(e, 405, "method_not_allowed", NULL, "this path takes %s", allow);
    } else if (m->status != 200) {
        api_error_set(e, 404, "not_found", NULL, "there is nothing at this path");
    } else if (m->route->takes_json && (head->method == NET_POST || head->method == NET_PUT) &&
               !is_json(head->content_type)) {
        api_error_set(e, 415, "unsupported_media_type", NULL, "send Content-Type: application/json");
    } else if (strcmp(head->idempotency_key, "?") == 0) {
        api_error_set(e, 400, "invalid_value", "Idempotency-Key", "Idempotency-Key may have %d bytes",
                      NET_IDEMPOTENCY_KEY_MAX);
    } else if (head->is_upgrade && !protocols_ok(head->ws_protocols)) {
        api_error_set(e, 400, "unsupported_protocol", NULL,
                      "the sub-protocol offered must be parley.v1, or none");
    } else if (head->is_upgrade && s->phase == SERVE_DRAINING) {
        api_error_set(e, 503, "server_draining", NULL, "the server is shutting down");
    } else {
        return false;
    }
    return true;
}

static bool check_head(serve *s, const net_head *head, router_match *m, net_reply *refusal)
{
    api_error e;
    char allow[ALLOW_MAX] = "";
    const char *why = "";
    *m = router_find(head->method, own_path(s, head->path), head->is_upgrade);
    if (is_hidden(s, m->route)) {
        *m = (router_match){0}; /* as if there was nothing */
    }
    bool is_public = (m->route && m->route->is_public) || head->method == NET_OPTIONS;
    int status = access_check(&s->access, head, is_public, &why);
    if (status != 200) {
        const char *code = status == 401   ? "invalid_api_key"
                           : status == 421 ? "host_not_allowed"
                                           : "origin_not_allowed";
        api_error_set(&e, status, code, NULL, "%s", why);
        return serve_refuse(s, refusal, &e, error_form_of(s, head), NULL, m->route);
    }
    if (head->is_preflight && access_origin_listed(&s->access, head->origin)) {
        return answer_preflight(head, refusal);
    }
    if (m->status != 405 && s->opt->path_prefix && strcmp(head->path, s->opt->path_prefix) == 0) {
        return redirect(s, refusal);
    }
    if (has_fault(s, head, m, &e, allow)) {
        return serve_refuse(s, refusal, &e, error_form_of(s, head), allow[0] ? allow : NULL, m->route);
    }
    return true;
}

static conn *conn_of(serve *s, uint64_t id)
{
    conn *c = serve_conn(s, id);
    if (c) {
        return c;
    }
    c = calloc(1, sizeof *c);
    if (!c || !id_table_put(&s->conns, id, c)) {
        free(c);
        return NULL;
    }
    c->id = id;
    bytes_init(&c->frames, SIZE_MAX);
    return c;
}

bool serve_on_head(void *ctx, uint64_t id, const net_head *head, net_reply *refusal)
{
    serve *s = ctx;
    router_match m;
    if (!check_head(s, head, &m, refusal)) {
        return false;
    }
    const bool is_first = !serve_conn(s, id);
    conn *c = conn_of(s, id);
    if (!c) {
        api_error e;
        api_error_from(&e, ERR_NOMEM, NULL);
        return serve_refuse(s, refusal, &e, error_form_of(s, head), NULL, m.route);
    }
    c->scope = access_scope(&s->access, head);
    c->is_admin = access_is_admin(&s->access, head);
    c->route = m.route;
    c->method = head->method;
    c->allow = m.allow;
    c->is_anthropic = head->is_anthropic;
    c->write_error = error_form_of(s, head);
    c->answer = 0;
    c->is_streaming = c->follows_log = c->is_cut = false;
    c->started_ms = clock_ms();
    snprintf(c->request_id, sizeof c->request_id, "%s", head->request_id);
    memcpy(c->param, m.param, sizeof c->param);
    snprintf(c->path, sizeof c->path, "%s", own_path(s, head->path));
    memcpy(c->query_string, head->query_string, sizeof c->query_string);
    memcpy(c->accept_encoding, head->accept_encoding, sizeof c->accept_encoding);
    memcpy(c->idempotency_key, head->idempotency_key, sizeof c->idempotency_key);
    memcpy(c->if_none_match, head->if_none_match, sizeof c->if_none_match);
    api_error e;
    if (m.route->takes_form && head->method == NET_POST && !serve_begin_form(s, c, head, &e)) {
        /* A connection whose first head is refused was never announced: nobody else will close
         * it. */
        if (is_first) {
            serve_on_close(s, id);
        }
        return serve_refuse(s, refusal, &e, error_form_of(s, head), NULL, m.route);
    }
    return true;
}

/* ---- one function a route ---- */

static void on_options(serve *s, conn *c)
{
    char allow[ALLOW_MAX], headers[HEADERS_MAX];
    router_allow(allow, ALLOW_MAX, c->allow);
    snprintf(headers, sizeof headers, "Allow: %s\r\n", allow);
    net_reply reply = {.status = 204, .headers = headers};
    net_send_reply(s->net, c->id, &reply);
}

static void on_asset(serve *s, conn *c)
{
    asset_reply r;
    if (s->opt->no_ui) {
        serve_send_fault(s, c, 404, "not_found", NULL, "the page is switched off");
        return;
    }
    assets_find(&r, s->opt->ui_dir, c->path, c->accept_encoding, c->if_none_match);
    if (r.reply.status == 404) {
        serve_send_fault(s, c, 404, "not_found", NULL, "there is nothing at this path");
    } else if (r.reply.status == 503) {
        serve_send_fault(s, c, 503, "out_of_memory", NULL, "no memory for the reply");
    } else {
        metrics_request(&s->metrics, c->route->name, r.reply.status);
        r.reply.head_only = c->method == NET_HEAD;
        net_send_reply(s->net, c->id, &r.reply);
    }
    asset_reply_deinit(&r);
}

static void on_health(serve *s, conn *c)
{
    bytes body;
    bytes_init(&body, REPLY_MAX);
    if (s->phase == SERVE_READY && !s->is_stalled && !s->is_prep_stalled) {
        bytes_append_str(&body, "{\"status\":\"ok\"}");
        serve_send_json(s, c, 200, &body, "Cache-Control: no-store\r\n");
    } else {
        const char *text = s->phase == SERVE_LOADING ? "Loading model"
                           : s->phase == SERVE_EMPTY ? "No model is loaded"
                           : s->is_stalled           ? "A computation is stalled"
                           : s->is_prep_stalled      ? "The preparation of requests stalls"
                                                     : "Shutting down";
        bytes_printf(
            &body,
            "{\"error\":{\"code\":503,\"message\":\"%s\",\"type\":\"unavailable_error\"},\"progress\":%.3f}",
            text, s->load_fraction);
        serve_send_json(s, c, 503, &body, "Cache-Control: no-store\r\nRetry-After: 1\r\n");
    }
    bytes_deinit(&body);
}

static void on_metrics(serve *s, conn *c)
{
    engine_status status;
    bytes body;
    bytes_init(&body, REPLY_MAX);
    if (s->engine) {
        engine_get_status(s->engine, &status);
    }
    metrics_gauges g = {.connections = net_connections(s->net),
                        .sockets = serve_count_sockets(s),
                        .answers = serve_count_open_answers(s),
                        .engine = s->engine ? &status : NULL,
                        .compute = s->info ? s->info->compute : NULL,
                        .n_resident = (int)s->n_shelf + (s->engine != NULL)};
    g.memory = serve_memory_status(s, &g.kept_bytes);
    size_t n_files;
    file_store_usage(s->files, &g.stored_bytes, &n_files);
    g.n_files = n_files;
    metrics_write(&body, &s->metrics, &g);
    if (s->upstreams) {
        upstreams_write_metrics(s->upstreams, &body);
    }
    if (body.failed) { /* a part would look like numbers that are gone */
        serve_send_json(s, c, 503, &body, NULL);
        bytes_deinit(&body);
        return;
    }
    net_reply reply = {.status = 200,
                       .content_type = "text/plain; version=0.0.4; charset=utf-8",
                       .body = body.data,
                       .body_bytes = body.len,
                       .head_only = c->method == NET_HEAD};
    net_send_reply(s->net, c->id, &reply);
    bytes_deinit(&body);
}

static void write_float(bytes *out, const char *name, float value)
{
    if (isfinite(value)) {
        bytes_json(out, "%s:%g,", name, (double)value);
    }
}

/* Whether this client may manage models of a hub: "yes", "key" (with the admin's), "no". */
static const char *hub_for(const serve *s, const conn *c)
{
    return !s->opt->hub ? "no" : c->is_admin ? "yes" : s->opt->admin_key ? "key" : "no";
}

static void on_props(serve *s, conn *c)
{
    const engine_info *info = s->info;
    const size_t n_servers = s->opt->mcp ? s->opt->mcp->n : 0;
    api_error e;
    bytes body;
    if (!info && !serve_is_remote_only(s)) {
        serve_is_ready(s, &e);
        serve_send_error(s, c, &e);
        return;
    }
    bytes_init(&body, REPLY_MAX);
    if (!info) { /* of models of other servers, /v1/models says what is known */
        bytes_json(&body,
                   "{\"model_alias\":%s,\"modalities\":{\"vision\":true,\"video\":false,\"audio\":false},"
                   "\"thinking\":true,\"build_info\":%s,\"history\":%hhd,\"mcp_servers\":%zu,\"hub\":%s}",
                   s->model_name, "parley " PARLEY_VERSION, (bool)s->history, n_servers, hub_for(s, c));
        serve_send_body(s, c, &body);
        return;
    }
    bytes_printf(&body, "{\"default_generation_settings\":{\"n_ctx\":%d,\"params\":{", info->n_ctx);
    write_float(&body, "temperature", info->defaults.temperature);
    write_float(&body, "top_p", info->defaults.top_p);
    write_float(&body, "min_p", info->defaults.min_p);
    write_float(&body, "repetition_penalty", info->defaults.repetition_penalty);
    write_float(&body, "presence_penalty", info->defaults.presence_penalty);
    write_float(&body, "frequency_penalty", info->defaults.frequency_penalty);
    bytes_json(&body,
               "\"top_k\":%d,\"max_tokens\":%d}},\"total_slots\":%d,\"model_alias\":%s,\"modalities\":"
               "{\"vision\":%hhd,\"video\":%hhd,\"audio\":false},\"thinking\":%hhd,\"build_info\":%s",
               info->defaults.top_k, info->defaults.max_tokens, info->n_parallel, s->model_name,
               info->has_vision, info->has_video, info->has_thinking, "parley " PARLEY_VERSION);
    if (info->has_video) {
        serve_write_video(&body, info);
    }
    bytes_json(&body, ",\"history\":%hhd,\"mcp_servers\":%zu,\"hub\":%s}", (bool)s->history, n_servers,
               hub_for(s, c));
    serve_send_body(s, c, &body);
}

static void on_generate(serve *s, conn *c, const dialect *d, bytes *body)
{
    api_error e;
    if (c->route->id == ROUTE_CACHE_LOAD && body->len == 0) {
        bytes_append_str(body, "{}");
    }
    answer *a = serve_start_answer(s, c, d, body, NULL, &e);
    if (a) {
        c->answer = a->id;
    } else {
        serve_send_error(s, c, &e);
    }
}

/* The routes that look at no body, or have read it as it came. */
static void (*const WITHOUT_BODY[N_ROUTES])(serve *s, conn *c) = {
    [ROUTE_ASSET] = on_asset,
    [ROUTE_OLLAMA_TAGS] = serve_on_tags,
    [ROUTE_OLLAMA_VERSION] = serve_on_version,
    [ROUTE_SLOTS] = serve_on_slots,
    [ROUTE_RESPONSE] = serve_on_response,
    [ROUTE_RESPONSE_CANCEL] = serve_on_response,
    [ROUTE_RESPONSE_ITEMS] = serve_on_input_items,
    [ROUTE_MODELS] = serve_on_models,
    [ROUTE_MODEL] = serve_on_models,
    [ROUTE_HEALTH] = on_health,
    [ROUTE_METRICS] = on_metrics,
    [ROUTE_STATUS] = serve_on_status,
    [ROUTE_REQUEST_CANCEL] = serve_on_cancel,
    [ROUTE_CACHE] = serve_on_cache,
    [ROUTE_CACHE_ENTRY] = serve_on_cache_entry,
    [ROUTE_PROPS] = on_props,
    [ROUTE_MCP] = serve_on_mcp,
    [ROUTE_HUB] = serve_on_hub,
    [ROUTE_FILE_CREATE] = serve_finish_form,
    [ROUTE_UPLOAD_PART] = serve_finish_form,
    [ROUTE_FILES] = serve_on_files,
    [ROUTE_FILE] = serve_on_files,
    [ROUTE_FILE_DELETE] = serve_on_files,
    [ROUTE_FILE_CONTENT] = serve_on_files,
};

void serve_on_request(void *ctx, uint64_t id, bytes *body)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    if (c->method == NET_OPTIONS) {
        on_options(s, c);
        return;
    }
    const route_id to = c->route->id;
    if (WITHOUT_BODY[to]) {
        WITHOUT_BODY[to](s, c);
        return;
    }
    if (dialect_of(c->route)) {
        on_generate(s, c, dialect_of(c->route), body);
        return;
    }
    switch (to) {
    case ROUTE_OLLAMA_SHOW:
        serve_on_show(s, c, body);
        break;
    case ROUTE_MODEL_LOAD:
        serve_on_load_model(s, c, body);
        break;
    case ROUTE_MODEL_UNLOAD:
        serve_on_unload_model(s, c, body);
        break;
    case ROUTE_HUB_ORDER:
        serve_on_hub_order(s, c, body);
        break;
    case ROUTE_CHAT_CONTROL:
        serve_on_control(s, c, body);
        break;
    case ROUTE_MCP_RESOURCE:
    case ROUTE_MCP_PROMPT:
        serve_on_mcp_order(s, c, body);
        break;
    case ROUTE_CONVERSATIONS:
    case ROUTE_CONVERSATION:
    case ROUTE_CONV_ITEMS:
    case ROUTE_CONV_ITEM:
        serve_on_conversations(s, c, body);
        break;
    case ROUTE_UPLOADS:
    case ROUTE_UPLOAD_COMPLETE:
    case ROUTE_UPLOAD_CANCEL:
        serve_on_uploads(s, c, body);
        break;
    default: /* ROUTE_HISTORY and the others below it */
        serve_on_history(s, c, body);
        break;
    }
}

/* ---- streams ---- */

static bool keepalive_due(const serve *s, const conn *c)
{
    return clock_ms() - c->last_write_ms >= s->opt->keepalive_s * 1000.0;
}

/* The last event of a stream that cannot go on, so that it never ends without a reason. */
static net_pull end_stream(conn *c, bytes *out, const char *code, const char *message)
{
    api_error e;
    api_error_set(&e, 503, code, NULL, "%s", message);
    const dialect *d = c->follows_log ? &dialect_responses : dialect_of(c->route);
    d->error(out, &e);
    return NET_PULL_END;
}

static net_pull pull_chat(serve *s, conn *c, answer *a, bytes *out)
{
    const size_t left = serve_take_stream(s, c, a, out, PULL_BYTES);
    if (out->len == 0 && !a->sse_end && a->dialect->ping && keepalive_due(s, c)) {
        bytes_append_str(out, a->dialect->ping);
    }
    if (left == 0 && a->sse_lost) {
        return end_stream(c, out, "out_of_memory", "there was no memory for the rest of this answer");
    }
    return left > 0 ? NET_PULL_MORE : a->sse_end ? NET_PULL_END : NET_PULL_IDLE;
}

static void append_event(bytes *out, const char *type, const char *text, size_t len)
{
    bytes_printf(out, "event: %s\ndata: ", type);
    bytes_append(out, text, len);
    bytes_append_str(out, "\n\n");
}

/* What a WebSocket is told between the numbered events, for a client that asked for it. */
static bool append_news(const serve *s, reader *r, const answer *a, bytes *out)
{
    bytes event;
    bytes_init(&event, SIZE_MAX);
    const char *type = serve_take_news(s, r, a, &event);
    if (type) {
        append_event(out, type, event.data, event.len);
    }
    bytes_deinit(&event);
    return type != NULL;
}

/* Sends a snapshot in place of events that the log no longer has. */
static void append_lost(bytes *out, const responses_reply *reply, int64_t *next)
{
    bytes event;
    bytes_init(&event, SIZE_MAX);
    const char *type = responses_reply_catch_up(&event, reply, next);
    append_event(out, type, event.data, event.len);
    out->failed = out->failed || event.failed;
    bytes_deinit(&event);
}

static net_pull pull_log(serve *s, conn *c, answer *a, bytes *out)
{
    reader *r = &c->readers[0];
    while (out->len < PULL_BYTES) {
        event_view event;
        switch (event_log_read(&a->reply.log, r->next_seq, &event)) {
        case EVENT_LOG_EVENT:
            append_event(out, event.type, event.text, event.len);
            r->next_seq++;
            break;
        case EVENT_LOG_TRIMMED:
            append_lost(out, &a->reply, &r->next_seq);
            break;
        case EVENT_LOG_END:
            return NET_PULL_END;
        default:
            if (a->opt.return_progress && append_news(s, r, a, out)) {
                break;
            }
            if (out->len == 0 && keepalive_due(s, c)) {
                bytes_append_str(out, a->dialect->ping);
            }
            return NET_PULL_IDLE;
        }
    }
    return NET_PULL_MORE;
}

net_pull serve_on_writable(void *ctx, uint64_t id, bytes *out)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    if (c->is_socket) {
        return serve_socket_pull(s, c, out);
    }
    answer *a = id_table_get(&s->answers, c->answer);
    if (!a) {
        return end_stream(c, out, "answer_gone", "this answer is no longer there");
    }
    if (c->is_cut) {
        return end_stream(c, out, "stream_not_read", "more waited to be read than --max-ws-queue allows");
    }
    net_pull pull = c->follows_log ? pull_log(s, c, a, out) : pull_chat(s, c, a, out);
    if (out->len > 0) {
        c->last_write_ms = clock_ms();
    }
    return pull;
}

/* ---- the end of a request ---- */

static void leave_answer(serve *s, conn *c)
{
    if (c->mcp_ticket) {
        mcp_cancel(s->mcp, c->mcp_ticket);
    }
    c->answer = c->history_ticket = c->mcp_ticket = 0;
    c->n_readers = 0; /* it follows nothing any more */
    c->is_streaming = c->follows_log = c->is_cut = false;
    serve_abandon_answers(s, c->id);
    serve_drop_previews(s, c->id);
    serve_drop_form(c);
}

/* A ping is due at once. */
void serve_on_half_closed(void *ctx, uint64_t id)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    c->last_write_ms = clock_ms() - s->opt->keepalive_s * 1000.0;
    net_want_write(s->net, id);
}

void serve_on_done(void *ctx, uint64_t id)
{
    leave_answer(ctx, serve_conn(ctx, id));
}

void serve_on_close(void *ctx, uint64_t id)
{
    serve *s = ctx;
    conn *c = id_table_remove(&s->conns, id);
    leave_answer(s, c);
    serve_end_chain(s, c);
    bytes_deinit(&c->frames);
    free(c);
}
