/* chat_request: the body of POST /v1/chat/completions into a chat_input and the options of the
 * reply. Prep threads.
 *
 *     chat_request r;
 *     err = chat_request_parse(&r, text, len, engine_get_info(e), &detail);
 *     ... engine_prepare(e, &req, r.in, ...) ...
 *     chat_request_deinit(&r);
 *
 * Unknown fields are ignored; a known field of a wrong type or range is ERR_INVALID naming it.
 */
#ifndef PARLEY_SERVER_CHAT_REQUEST_H
#define PARLEY_SERVER_CHAT_REQUEST_H

#include "engine/chat.h"
#include "engine/engine.h"
#include "server/file_store.h"
#include "server/response_store.h"
#include "server/remote_media.h"
#include "server/request_fields.h"
#include "server/tool_scanner.h"

typedef struct chat_request {
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
} chat_request;

void chat_request_init(chat_request *r);
void chat_request_deinit(chat_request *r); /* also after a failed parse */

/* Fills r from a body. info may be NULL in tests. */
MUST_CHECK err_code chat_request_parse(chat_request *r, const char *text, size_t len, const engine_info *info,
                                       err_detail *d);

/* For responses_request: keeps a document alive as long as the request; false if out of memory (doc
 * is then freed). */
MUST_CHECK bool chat_request_keep(chat_request *r, json_doc *doc);
/* Parses the JSON text of a tool call's arguments to an object that lives as long as the
 * request. */
MUST_CHECK err_code chat_request_arguments(chat_request *r, const json **out, const json *value,
                                           const char *path, err_detail *d);
/* The fields common to all generating requests: stream and its options, n, model, sampling,
 * length. */
MUST_CHECK err_code chat_request_generation(chat_request *r, const json *root, const engine_info *info,
                                            err_detail *d);
/* Creates r->in and parses the body into it; *root is the body's object. */
MUST_CHECK err_code chat_request_open(chat_request *r, const json **root, const char *text, size_t len,
                                      err_detail *d);

#endif
