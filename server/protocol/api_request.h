/* api_request: what any generating body becomes: a chat for the engine and the options of the reply; and
 * what the readers of all dialects need to fill it. Prep threads; one thread a request.
 *
 *     api_request r;
 *     api_request_init(&r);
 *     err = chat_request_parse(&r, text, len, info, &detail); // or another dialect's
 *     api_request_deinit(&r);
 */
#ifndef PARLEY_SERVER_PROTOCOL_API_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_API_REQUEST_H

#include "engine/chat.h"
#include "engine/engine.h"
#include "server/media/file_store.h"
#include "server/media/remote_media.h"
#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/request_fields.h"
#include "server/protocol/response_store.h"

typedef struct api_request {
    json_doc *doc; /* set before parsing: of the body, if that was read already; taken. NULL: it was not */
    chat_input *in;
    reply_options reply;
    file_store *files; /* set before parsing: the store of uploaded files, NULL: none; and their owner */
    uint64_t scope;
    const remote_media *remote;     /* set before parsing: what may be named by URL; NULL: nothing */
    response_store *response_store; /* set before parsing: previous responses; NULL: none */
    const tool_form *form;          /* set before parsing: the model's tool-call syntax; NULL: none */
    /* set before parsing: default variables of the chat template; or NULL */
    const json *template_kwargs;
    json_doc **docs; /* parsed tool-call arguments and the like; freed with the request */
    size_t n_docs, cap_docs;
} api_request;

void api_request_init(api_request *r);
void api_request_deinit(api_request *r); /* also after a failed parse */

/* Keeps a document alive as long as the request; false if out of memory (doc
 * is then freed). */
MUST_CHECK bool api_request_keep(api_request *r, json_doc *doc);
/* Parses the JSON text of a tool call's arguments to an object that lives as long as the
 * request. */
MUST_CHECK err_code api_request_arguments(api_request *r, const json **out, const json *value,
                                          const char *path, err_detail *d);
/* The fields common to all generating requests: stream and its options, n, model, sampling,
 * length. */
MUST_CHECK err_code api_request_generation(api_request *r, const json *root, const engine_info *info,
                                           err_detail *d);
/* The document of the body: r->doc, or made of the text. The caller frees it. */
MUST_CHECK err_code api_request_document(api_request *r, json_doc **out, const char *text, size_t len,
                                         err_detail *d);
/* Creates r->in and parses the body into it; *root is the body's object. */
MUST_CHECK err_code api_request_open(api_request *r, const json **root, const char *text, size_t len,
                                     err_detail *d);

#endif
