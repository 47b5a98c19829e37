/* prompt: a chat rendered by the checkpoint's template, with user text escaped so that it never
 * becomes a special token. Prep threads; private to engine/.
 *
 *     prompt_render(&text, &history_len, tok, template, chat, &detail);
 */
#ifndef PARLEY_ENGINE_PROMPT_H
#define PARLEY_ENGINE_PROMPT_H

#include "base/bytes.h"
#include "engine/chat.h"
#include "model/model.h"

/* Appends the rendered prompt to out. An assistant prefill of `in` follows the generation prompt
 * unchanged. *history_len (may be NULL): bytes before the generation prompt, which come back in the
 * next turn; 0 or all if that cannot be told. ERR_INVALID with the template's own message. ERR_LIMIT,
 * ERR_NOMEM. */
MUST_CHECK err_code prompt_render(bytes *out, size_t *history_len, const tokenizer *tok,
                                  const chat_template *template, const chat_input *in, err_detail *detail);

/* True if the prompt ends inside an open think block: the answer then begins as reasoning. For a
 * prompt with an assistant prefill use prompt_continues_thinking instead: the prefill may contain
 * anything. */
bool prompt_starts_in_thinking(const char *text, size_t len);

/* True if the assistant prefill of `in` ends inside its reasoning. */
bool prompt_continues_thinking(const chat_input *in);

#endif
