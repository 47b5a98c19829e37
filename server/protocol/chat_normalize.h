/* chat_normalize: brings messages into the form that chat templates expect. Prep threads.
 *
 *     err = chat_normalize(in, &detail);
 *
 * All system messages move to the front and are joined with a blank line (templates refuse later
 * ones); adjacent messages of the same role with plain string content are merged likewise. Lists of
 * parts are never merged.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CHAT_NORMALIZE_H
#define PARLEY_SERVER_PROTOCOL_CHAT_NORMALIZE_H

#include "engine/chat.h"

/* Works in place; ERR_NOMEM, or ERR_INVALID if a system message holds media. */
MUST_CHECK err_code chat_normalize(chat_input *in, err_detail *d);

#endif
