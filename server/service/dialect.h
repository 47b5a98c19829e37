/* dialect: what one protocol does with a request and its answer, as one table of functions. A new
 * one is a table in serve_dialects.c, a parser and a writer in server/protocol/dialects, and the row
 * of its route in serve_http.c.
 *
 *     const dialect *d = &dialect_chat;
 *     bool streams_numbers = d->has_log;   // parse runs on a prep worker, what writes on the loop thread
 */
#ifndef PARLEY_SERVER_SERVICE_DIALECT_H
#define PARLEY_SERVER_SERVICE_DIALECT_H

#include "base/bytes.h"
#include "server/api_error.h"
#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/dialects/text_queries.h"

struct serve;
struct answer;

typedef struct dialect {
    const char *name;      /* of an answer, in the log and in /v1/status */
    const char *id_prefix; /* of the id that clients call it by */
    /* Its events are numbered and kept in a log, which clients read and come back to; the others'
     * are a stream of bytes. */
    bool has_log;
    bool has_tools; /* the model's calls are told from its text */
    /* A question about a text (query): prep answers it, nothing is generated. */
    bool is_query;
    bool has_vectors; /* no text is generated: embeddings and ranks, of the loaded model alone */
    text_query query;

    /* Prep threads. The body becomes a request, then one for the engine; see chat_request_parse and
     * engine_prepare. NULL for a query. */
    err_code (*parse)(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                      const engine_info *info, err_detail *d);
    err_code (*prepare)(gen_request **out, const api_request *r, const completion_prompt *prompt, engine *e,
                        const prepare_hooks *hooks, err_detail *d);

    /* Loop thread; each may be NULL: it writes nothing then. All but the last three append to the
     * answer's stream, or to its log; of an answer that is one of several choices, to that of the first. */
    void (*first)(const struct serve *s, struct answer *a);
    void (*delta)(const struct serve *s, struct answer *a); /* the text in a->pieces */
    void (*progress)(const struct serve *s, struct answer *a);
    /* The end; e: why it failed or was cancelled, or NULL. In a log all of it, in a stream a good
     * one. */
    void (*last)(struct serve *s, struct answer *a, const api_error *e);
    void (*end)(const struct serve *s,
                struct answer *a); /* of a good stream, behind `last` of every choice */
    /* The whole reply, of an answer that is not streamed. */
    void (*whole)(const struct serve *s, const struct answer *a, bytes *out);
    /* The last event of a stream that fails, of a dialect without a log. */
    void (*error)(bytes *out, const api_error *e);
    /* Appends the whole answer to the conversation that its request kept (reply_options.items), for a
     * request that goes on from it; "," in front. */
    void (*append_kept)(const struct serve *s, struct answer *a, bytes *items);
    const char *ping; /* keeps a silent stream open; NULL: nothing does */
    bool has_lines;   /* a stream is lines of JSON, not events */
    bool keeps_whole; /* last needs all pieces, a->whole */
} dialect;

extern const dialect dialect_chat;            /* POST /v1/chat/completions */
extern const dialect dialect_completion;      /* POST /v1/completions */
extern const dialect dialect_messages;        /* POST /v1/messages */
extern const dialect dialect_responses;       /* POST /v1/responses */
extern const dialect dialect_event;           /* the same as a WebSocket message, response.create */
extern const dialect dialect_compact;         /* POST /v1/responses/compact */
extern const dialect dialect_ollama_chat;     /* POST /api/chat */
extern const dialect dialect_ollama_generate; /* POST /api/generate */
extern const dialect dialect_embedding;       /* POST /v1/embeddings */
extern const dialect dialect_ollama_embed;    /* POST /api/embed, /api/embeddings */
extern const dialect dialect_rerank;          /* POST /v1/rerank */
extern const dialect dialect_queries[];       /* by text_query */
extern const dialect dialect_load;            /* no text: loads a model */
extern const dialect
    dialect_cache_save; /* POST /v1/cache/{name}: a chat or a completion, of which the prompt counts */
extern const dialect dialect_cache_load; /* POST /v1/cache/{name}/load */

#endif
