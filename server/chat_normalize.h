/* chat_normalize: puts messages into the form that chat templates expect. Prep threads.
 *
 *     err = chat_normalize(in, &detail);
 *
 * All system messages move to the front and are joined with a blank line (templates refuse a late one); neighbours of
 * the same role whose contents are plain strings are merged likewise. Lists of parts are never merged.
 */
#ifndef PARLEY_SERVER_CHAT_NORMALIZE_H
#define PARLEY_SERVER_CHAT_NORMALIZE_H

#include "engine/chat.h"

/* Works in place; ERR_NOMEM, or ERR_INVALID if a system message holds media. */
MUST_CHECK err_code chat_normalize(chat_input *in, err_detail *d);

#endif
