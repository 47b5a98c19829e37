/* ollama_request: the bodies of Ollama's POST /api/chat and /api/generate, said anew as a chat's. Prep
 * threads.
 *
 *     api_request r;  api_request_init(&r);
 *     err = ollama_request_parse(&r, text, len, false, NULL, &detail);
 *     api_request_deinit(&r);
 *
 * What a chat has no place for (raw, suffix, template, context) is ERR_UNSUPPORTED; keep_alive and
 * options of the machine (num_ctx, num_gpu) have no effect.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_OLLAMA_REQUEST_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_OLLAMA_REQUEST_H

#include "server/protocol/api_request.h"

/* Fills r. is_generate: of /api/generate. info may be NULL in tests. */
MUST_CHECK err_code ollama_request_parse(api_request *r, const char *text, size_t len, bool is_generate,
                                         const engine_info *info, err_detail *d);

#endif
