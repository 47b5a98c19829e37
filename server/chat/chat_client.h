/* chat_client: one streamed answer after the other from a server that speaks Chat Completions. One
 * thread. fetch_start (server/media/fetch.h) was called before.
 *
 *     chat_server s; err_code err = chat_server_parse(&s, "http://127.0.0.1:8080", &detail);
 *     chat_client *c = chat_client_create(&s, NULL);
 *     chat_hooks hooks = {.ctx = NULL};                // and what shows an answer
 *     chat_result r; err = chat_client_ask(c, body, n_body, &hooks, &r, &detail);
 *     chat_client_destroy(c);
 */
#ifndef PARLEY_SERVER_CHAT_CHAT_CLIENT_H
#define PARLEY_SERVER_CHAT_CHAT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "server/media/fetch.h"

/* The longest address, with /v1 behind it. */
enum { CHAT_URL_MAX = FETCH_URL_MAX + sizeof "/v1" - 1, CHAT_SOCKET_MAX = 108 };

/* Where a server is. */
typedef struct chat_server {
    char base[CHAT_URL_MAX];         /* up to and with /v1 */
    char unix_path[CHAT_SOCKET_MAX]; /* its socket file; "": a network address */
} chat_server;

typedef struct chat_client chat_client;

typedef struct chat_hooks {
    void (*on_text)(void *ctx, bool is_thought, const char *text, size_t n); /* whole characters */
    void (*on_wait)(void *ctx, double seconds); /* nothing has come yet; about ten times a second */
    bool (*is_stopped)(void *ctx);              /* true ends the answer; asked as often */
    void *ctx;
} chat_hooks;

typedef struct chat_result {
    bool is_stopped;  /* by is_stopped */
    bool is_cut;      /* the answer has reached its limit of tokens */
    int32_t n_prompt; /* tokens, as the server counts them; 0: it does not say */
    int32_t n_cached, n_tokens;
    double first_ms, all_ms; /* until the first text, until the end */
} chat_result;

/* "http://HOST[:PORT][/PATH]", https, or "unix:/PATH". ERR_INVALID. */
MUST_CHECK err_code chat_server_parse(chat_server *out, const char *text, err_detail *detail);

/* key: sent as a bearer, NULL: none; outlives c. NULL without memory. */
MUST_CHECK chat_client *chat_client_create(const chat_server *s, const char *key);
void chat_client_destroy(chat_client *c); /* NULL allowed */

/* Sends body[0..n), a Chat Completions request with "stream": true, and hands on what comes. ERR_UPSTREAM
 * and the like as upstream_reply says; an answer that was stopped is no error. */
MUST_CHECK err_code chat_client_ask(chat_client *c, const char *body, size_t n, const chat_hooks *hooks,
                                    chat_result *out, err_detail *detail);
/* Appends the id of the first model that the server lists, or that is loaded. */
MUST_CHECK err_code chat_client_model(chat_client *c, bytes *out, err_detail *detail);

#endif
