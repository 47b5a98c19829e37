/* context_fit: a conversation made shorter as its request asks: results of tools and thoughts that are left out
 * (context_management of Messages), a summary in place of all (that of Responses), the oldest turns left out
 * (truncation). What a request costs in tokens is known once it is prepared, so it may be prepared several
 * times. Prep threads.
 *
 *     context_fit_read_edits(&r, root);                     // by the dialect's reader
 *     context_fit fit = {.r = &r, .prepare = of->prepare, .e = e, .told = bytes_empty(4096)};
 *     err = context_fit_prepare(&request, &fit, &detail);
 *     bytes_deinit(&fit.told);
 */
#ifndef PARLEY_SERVER_PROTOCOL_CONTEXT_FIT_H
#define PARLEY_SERVER_PROTOCOL_CONTEXT_FIT_H

#include "server/protocol/api_request.h"

struct completion_prompt;

typedef struct context_fit {
    api_request *r;
    /* Makes a request of r->in as it stands; see dialect.prepare. */
    err_code (*prepare)(gen_request **out, const api_request *r, const struct completion_prompt *prompt,
                        engine *e, const prepare_hooks *hooks, err_detail *d);
    const struct completion_prompt *prompt;
    engine *e;
    const prepare_hooks *hooks;
    bytes told; /* results: the edits that were applied, as a JSON array; empty if none was asked for */
    int64_t n_original; /* tokens before them; -1: unknown */
    bool
        asks_summary; /* result: the request asks for a summary of the conversation, which then goes on from that */
} context_fit;

/* context_management of a body of Messages: {"edits": [..]}. */
void context_fit_read_edits(api_request *r, const json *root);
/* The same of Responses: [{"type": "compaction", "compact_threshold": N}]. info: NULL: the context is not known. */
void context_fit_read_compaction(api_request *r, const json *root, const engine_info *info);

/* Makes the chat ask for a summary of itself, which may take a quarter of the context. Does nothing behind an
 * error. info: NULL: the context is not known. */
void context_fit_ask_summary(api_request *r, const engine_info *info);

/* Prepares the request; errors are those of `prepare`. */
MUST_CHECK err_code context_fit_prepare(gen_request **out, context_fit *fit, err_detail *d);

#endif
