/* constrain: structured output, from the chat's format to the grammar cursor of a running answer.
 * Private to engine/.
 *
 *     err = constrain_request(e, r, in, &work, NULL, &detail);   // prep threads
 *     err = constrain_start(e, &cursor, r, &detail);       // engine thread; the sampler then uses it
 *
 * The vocabulary trie is built for the first answer that needs it and lives as long as the engine.
 */
#ifndef PARLEY_ENGINE_CONSTRAIN_H
#define PARLEY_ENGINE_CONSTRAIN_H

#include "engine/chat.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "text/grammar/grammar_cursor.h"

/* Compiles in->form into r->grammar; nothing to do without a form. r->memory has then what the grammar
 * and following it take. work and patience may end it. Errors are about the request: they name the
 * field. */
MUST_CHECK err_code constrain_request(engine *e, gen_request *r, const chat_input *in, work_count *work,
                                      const ledger_patience *patience, err_detail *detail);

/* *cursor: at the beginning of the answer, NULL if it is free. The caller destroys it before r is
 * freed. */
MUST_CHECK err_code constrain_start(const engine *e, grammar_cursor **cursor, const gen_request *r,
                                    err_detail *detail);

/* ERR_OK, or why the answer cannot go on, in detail too. cursor may be NULL. */
err_code constrain_check(const grammar_cursor *cursor, err_detail *detail);

#endif
