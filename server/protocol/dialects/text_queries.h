/* text_queries: utility calls on text without generation: /tokenize, /detokenize, /apply-template,
 * and counting the tokens of a request. Prep threads.
 *
 *     err = text_query_run(&reply, QUERY_TOKENIZE, &request, e, body, len, &hooks, &detail);   // reply: JSON
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_TEXT_QUERIES_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_TEXT_QUERIES_H

#include "server/protocol/dialects/chat_request.h"

typedef enum text_query {
    QUERY_TOKENIZE,       /* {"content", "parse_special", "with_pieces"} */
    QUERY_DETOKENIZE,     /* {"tokens"} */
    QUERY_TEMPLATE,       /* the body of a chat: the prompt that its template gives */
    QUERY_COUNT_CHAT,     /* the body of a chat: its input tokens, media included */
    QUERY_COUNT_MESSAGES, /* the body of Anthropic's messages: the same */
    QUERY_COUNT_RESPONSES /* the body of a response: the same */
} text_query;

/* Appends the JSON of the reply to out. r: initialised, with files, form and scope set; the
 * caller's to deinit. Errors are those of chat_request_parse and engine_prepare, and ERR_INVALID
 * naming the field. */
MUST_CHECK err_code text_query_run(bytes *out, text_query query, api_request *r, engine *e, const char *text,
                                   size_t len, const prepare_hooks *hooks, err_detail *d);

#endif
