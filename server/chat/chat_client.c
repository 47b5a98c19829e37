#include "server/chat/chat_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "server/http_client.h"
#include "server/upstream/upstream_config.h"
#include "server/upstream/upstream_reply.h"

enum { POLL_MS = 100, LIST_S = 30 };
#define LIST_BYTES ((size_t)4 << 20)

struct chat_client {
    chat_server server;
    const char *key;
    http_client *http;
};

/* A request that is waited for. */
typedef struct exchange {
    upstream_reply reply; /* of an answer */
    bytes *document;      /* else the whole body; NULL: an answer */
    const chat_hooks *hooks;
    int status;
    bool is_over;
    http_end end;
    char why[160];
    double began_ms, first_ms;
} exchange;

err_code chat_server_parse(chat_server *out, const char *text, err_detail *detail)
{
    static const char UNIX[] = "unix:";
    *out = (chat_server){.base = "http://localhost/v1"};
    if (strncmp(text, UNIX, sizeof UNIX - 1) == 0) {
        const char *path = text + sizeof UNIX - 1;
        if (path[0] != '/' || strlen(path) >= sizeof out->unix_path) {
            return err_set(detail, ERR_INVALID,
                           "%.200s: unix: takes a path from the root of at most %zu bytes", text,
                           sizeof out->unix_path - 1);
        }
        snprintf(out->unix_path, sizeof out->unix_path, "%s", path);
        return ERR_OK;
    }
    return upstream_base_url(out->base, sizeof out->base, text)
               ? ERR_OK
               : err_set(detail, ERR_INVALID,
                         "%.200s is no address of a server; it is http://HOST:PORT, https://HOST/PATH or "
                         "unix:/PATH",
                         text);
}

chat_client *chat_client_create(const chat_server *s, const char *key)
{
    chat_client *c = calloc(1, sizeof *c);
    if (c) {
        *c = (chat_client){.server = *s, .key = key, .http = http_client_create()};
    }
    if (c && !c->http) {
        free(c);
        c = NULL;
    }
    return c;
}

void chat_client_destroy(chat_client *c)
{
    if (c) {
        http_client_destroy(c->http);
        free(c);
    }
}

/* ---- what the transfer calls ---- */

static bool on_head(void *ctx, const http_head *head)
{
    exchange *x = ctx;
    x->status = head->status;
    if (!x->document) {
        upstream_reply_head(&x->reply, head->status, head->content_type);
    }
    return true;
}

static void hand_on(exchange *x)
{
    gen_text *text = upstream_reply_take(&x->reply);
    for (size_t i = 0; text && i < text->n; i++) {
        const gen_text_piece *p = &text->pieces[i];
        if (p->kind == GEN_TEXT_CONTENT || p->kind == GEN_TEXT_REASONING) {
            x->first_ms = x->first_ms > 0.0 ? x->first_ms : clock_ms();
            x->hooks->on_text(x->hooks->ctx, p->kind == GEN_TEXT_REASONING, p->text, p->len);
        }
    }
    free(text);
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    exchange *x = ctx;
    if (x->document) {
        bytes_append(x->document, data, n);
        return !x->document->failed;
    }
    const bool goes_on = upstream_reply_push(&x->reply, data, n);
    hand_on(x);
    return goes_on;
}

static void on_end(void *ctx, http_end end, const char *why)
{
    exchange *x = ctx;
    x->is_over = true;
    x->end = end;
    snprintf(x->why, sizeof x->why, "%s", why);
}

/* ---- a request ---- */

/* Runs it to its end; *stopped becomes true if the hook ends it. */
static err_code run(chat_client *c, exchange *x, http_order *order, bool *stopped, err_detail *detail)
{
    const char *where = c->server.unix_path[0] ? c->server.unix_path : c->server.base;
    order->unix_path = c->server.unix_path[0] ? c->server.unix_path : NULL;
    order->key = c->key;
    order->uses_proxy = strncmp(c->server.base, "https:", 6) == 0; /* plain http is of the own network */
    order->connect_s = LIMIT_UPSTREAM_CONNECT_S;
    order->on_head = on_head;
    order->on_data = on_data;
    order->on_end = on_end;
    order->ctx = x;
    x->began_ms = clock_ms();
    http_transfer *t = http_client_start(c->http, order);
    if (!t) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to ask the server");
    }
    while (!x->is_over) {
        http_client_poll(c->http, POLL_MS);
        if (!x->is_over && x->hooks && x->hooks->is_stopped(x->hooks->ctx)) {
            http_client_stop(c->http, t);
            *stopped = true;
            return ERR_OK;
        }
        if (!x->is_over && x->hooks && x->first_ms <= 0.0) {
            x->hooks->on_wait(x->hooks->ctx, (clock_ms() - x->began_ms) / 1e3);
        }
    }
    if (x->status == 401 || x->status == 403) {
        return err_set(
            detail, ERR_INVALID,
            "the server at %.200s refuses this key (%d); --connect-key or PARLEY_CONNECT_KEY gives it one",
            where, x->status);
    }
    switch (x->end) {
    case HTTP_DONE:
    case HTTP_STOPPED: /* by the end of the stream, behind which nothing is read */
        return ERR_OK;
    case HTTP_UNREACHABLE:
        return err_set(detail, ERR_UPSTREAM, "no server answers at %.200s: %s", where, x->why);
    case HTTP_SILENT:
        return err_set(detail, ERR_UPSTREAM, "the server at %.200s has gone silent", where);
    default:
        return err_set(detail, ERR_UPSTREAM, "the connection to %.200s failed: %s", where, x->why);
    }
}

err_code chat_client_ask(chat_client *c, const char *body, size_t n, const chat_hooks *hooks,
                         chat_result *out, err_detail *detail)
{
    static const char PATH[] = "/chat/completions";
    char url[sizeof c->server.base + sizeof PATH];
    exchange x = {.hooks = hooks};
    snprintf(url, sizeof url, "%s%s", c->server.base, PATH);
    http_order order = {.url = url, .body = body, .n_body = n, .silence_s = LIMIT_REQUEST_TIMEOUT_S};
    *out = (chat_result){0};
    upstream_reply_init(&x.reply, "the server", c->key, UPSTREAM_CHAT);
    err_code err = run(c, &x, &order, &out->is_stopped, detail);
    if (!err && !out->is_stopped) {
        upstream_reply_finish(&x.reply);
        hand_on(&x);
        err = x.reply.error;
        if (err) {
            *detail = x.reply.detail;
        }
    }
    const double now = clock_ms();
    out->is_cut = x.reply.finish == GEN_FINISH_LENGTH;
    out->n_prompt = x.reply.usage.is_known ? x.reply.usage.prompt : 0;
    out->n_cached = x.reply.usage.is_known ? x.reply.usage.cached : 0;
    out->n_tokens = x.reply.usage.is_known ? x.reply.usage.completion : 0;
    out->first_ms = (x.first_ms > 0.0 ? x.first_ms : now) - x.began_ms;
    out->all_ms = now - x.began_ms;
    upstream_reply_deinit(&x.reply);
    return err;
}

/* The one that is loaded; else the first. */
static const char *choose_model(const json *list)
{
    const char *first = NULL;
    for (const json *m = json_child(json_get(list, "data")); m; m = json_next(m)) {
        const char *id = json_str(json_get(m, "id"), NULL);
        const char *state = json_str(json_get(json_get(m, "status"), "value"), "");
        if (id && strcmp(state, "loaded") == 0) {
            return id;
        }
        first = first ? first : id;
    }
    return first;
}

err_code chat_client_model(chat_client *c, bytes *out, err_detail *detail)
{
    static const char PATH[] = "/models";
    char url[sizeof c->server.base + sizeof PATH];
    bytes text = bytes_empty(LIST_BYTES);
    exchange x = {.document = &text};
    json_doc *doc = NULL;
    bool stopped = false;
    snprintf(url, sizeof url, "%s%s", c->server.base, PATH);
    http_order order = {.url = url, .timeout_s = LIST_S};
    err_code err = run(c, &x, &order, &stopped, detail);
    if (!err &&
        (x.status != 200 || json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, NULL) != ERR_OK)) {
        err =
            err_set(detail, ERR_UPSTREAM,
                    "%s answers %d and no list of models; does a server for chats run there?", url, x.status);
    }
    const char *id = err ? NULL : choose_model(json_root(doc));
    if (!err && !id) {
        err = err_set(detail, ERR_UPSTREAM, "%s lists no model", url);
    }
    if (!err) {
        bytes_append_str(out, id);
        err = out->failed ? err_set(detail, ERR_NOMEM, "there is not enough memory") : ERR_OK;
    }
    json_free(doc);
    bytes_deinit(&text);
    return err;
}
