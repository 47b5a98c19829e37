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
#include "server/mcp/mcp.h"
#include "server/media/remote_media.h"
#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/request_fields.h"
#include "server/protocol/response_store.h"

/* Where conversations are kept for good; a call may wait for a disk. */
typedef struct kept_talks {
    void *ctx;
    /* Appends the conversation, or the item of one, of this id: ERR_NOT_FOUND, or what went wrong. */
    err_code (*read)(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d);
} kept_talks;

/* What is to be left out of a long conversation (context_fit). */
typedef struct context_edit {
    bool is_thinking;                     /* thoughts; else uses of tools */
    int64_t trigger_tokens, trigger_uses; /* of tools: done with more than that; one of them -1 */
    int64_t keep;                         /* the last uses, or turns with thoughts, that stay */
    int64_t at_least;                     /* tokens to be saved; 0: any */
    const json *spares, *inputs; /* names of tools whose uses stay; whose arguments go as well, or true */
} context_edit;

typedef struct api_request {
    first_error error; /* of the body; the readers below and of the dialects do nothing behind it */
    json_doc *doc; /* set before parsing: of the body, if that was read already; taken. NULL: it was not */
    chat_input *in;
    reply_options reply;
    file_store *files; /* set before parsing: the store of uploaded files, NULL: none; and their owner */
    uint64_t scope;
    uint64_t chain; /* set before parsing: who else's responses may be gone on from; 0: nobody's */
    const remote_media *remote;     /* set before parsing: what may be named by URL; NULL: nothing */
    response_store *response_store; /* set before parsing: previous responses; NULL: none */
    const kept_talks *talks; /* set before parsing: conversations; NULL: they are among the responses */
    const tool_form *form;   /* set before parsing: the model's tool-call syntax; NULL: none */
    mcp *mcp;                /* set before parsing: the servers whose tools may be asked for; NULL: none */
    const json
        *turns; /* set before parsing: what the answer has said, called and heard so far; NULL: nothing */
    bool (*may_go_on)(void *ctx); /* set before parsing: asked while a server is waited for; NULL: always */
    void *may_ctx;
    const char *cache_name; /* set before parsing: of the cache entry that the request is about; or NULL */
    /* set before parsing: default variables of the chat template; or NULL */
    const json *template_kwargs;
    bool forces_calls;       /* tool_choice: the answer must be calls, of this tool or (NULL) of any; */
    const char *forced_tool; /* in->form has the same as a grammar */
    bool drops_oldest;       /* if the context is too small for all messages (truncation: "auto") */
    bool may_be_silent;      /* set before api_request_generation: max_tokens may be 0 */
    bool asks_edits;         /* context_management of Messages is there: */
    context_edit edits[2];
    size_t n_edits;
    int64_t compact_at; /* tokens behind which the conversation is summed up; 0: never */
    bool gives_budget;  /* in->params.think_tokens was asked for, not told from an effort */
    const grammar_spec
        *answer_form; /* response_format alone, without what tools add to in->form; NULL: none */
    json_doc **docs;  /* parsed tool-call arguments and the like; freed with the request */
    size_t n_docs, cap_docs;
} api_request;

/* An empty request; deinit frees what it owns, also after a failed parse. */
void api_request_init(api_request *r);
void api_request_deinit(api_request *r);

/* Creates r->in, parses the body into it and sets r->error to what this returns; *root is the
 * body's object, NULL after an error. Parsing errors, and ERR_INVALID for another value. */
MUST_CHECK err_code api_request_open(api_request *r, const json **root, const char *text, size_t len,
                                     err_detail *d);

/* Keeps a document (NULL: no memory) as long as the request lives and returns its root; NULL after
 * an error, doc is then freed. The second ends the building of one. */
const json *api_request_keep(api_request *r, json_doc *doc);
const json *api_request_keep_built(api_request *r, json_doc *doc);

/* The conversation of this id (conv_...), its head first, or the item of this id, alone or among others, as a
 * list that lives as long as the request; NULL if there is none, and after an error. */
const json *api_request_talk(api_request *r, const char *id);
const json *api_request_item_list(api_request *r, const char *id);
/* What was kept of a conversation under the id of its last answer, as a list that lives as long as
 * the request; NULL if nothing is kept (any more: *is_evicted says that it had to go early), and after
 * an error. */
const json *api_request_stored(api_request *r, const char *id, bool *is_evicted);

/* The fields common to all generating requests: stream and its options, model, sampling,
 * length. */
void api_request_generation(api_request *r, const json *root, const engine_info *info);
/* The name of the model asked for. */
void api_request_model(api_request *r, const json *root);
/* What another server is asked for, too, of options that have left the request. */
void api_request_copy_wishes(api_request *r, const reply_options *from);
/* n: answers to the prompt, or to each of n_prompts. Behind the tools. */
void api_request_choices(api_request *r, const json *root, size_t n_prompts);
/* top_logprobs of a request that asks for logprobs or not; the error says what it needs. */
void api_request_top_logprobs(api_request *r, const json *root, const char *needs);

#endif
