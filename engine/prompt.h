/* prompt: a chat rendered by the checkpoint's template, with user text escaped so that it never
 * becomes a special token. Prep threads; private to engine/.
 *
 *     prompt_render(&text, &history_len, tok, template, &style, chat, &detail);
 */
#ifndef PARLEY_ENGINE_PROMPT_H
#define PARLEY_ENGINE_PROMPT_H

#include "base/bytes.h"
#include "engine/chat.h"
#include "engine/think.h"
#include "model/model.h"
#include "text/jinja/template_habits.h"

/* How chats become prompts. */
typedef struct prompt_style {
    template_habits habits;            /* of the template */
    const think_form *think;           /* how answers of this template think; NULL: THINK_TAGS */
    char bos_token[64], eos_token[64]; /* what the template may write in front and behind; "": nothing */
    bool hoists_system;                /* system messages go to the front, wherever they stand */
    bool as_published;                 /* earlier turns are rendered anew whenever a message comes */
} prompt_style;

/* The messages of `in` as the template takes them, in the arena; strings are shared with `in`. What
 * is done to a message depends on it and its neighbours alone, so that a conversation that grows
 * keeps its begin.
 *
 * System messages in front become one. Later ones are kept where the template takes them there, are
 * written into the user's turn behind them or become one, or, with hoists_system, go to the front.
 * Users' turns that follow each other become one where the template wants turns to alternate, and
 * answers always. A client's billing header in a system message is dropped. Tools, calls and their
 * results become text where the template does not know them. ERR_INVALID: a system message with
 * media. ERR_NOMEM. */
MUST_CHECK err_code prompt_arrange(chat_message **out, size_t *n_out, const chat_input *in,
                                   const prompt_style *style, arena *a, err_detail *d);

/* Appends the rendered prompt to out. Each turn stands as it stood in the prompt that it was answered
 * in, unless style->as_published, so that the prompt of a conversation goes on where that of its
 * begin ended. An assistant prefill of `in` follows the generation prompt
 * unchanged. *history_len (may be NULL): bytes before the generation prompt, which come back in the
 * next turn; 0 or all if that cannot be told. ERR_INVALID with the template's own message. ERR_LIMIT,
 * ERR_NOMEM. */
MUST_CHECK err_code prompt_render(bytes *out, size_t *history_len, const tokenizer *tok,
                                  const chat_template *template, const prompt_style *style,
                                  const chat_input *in, err_detail *detail);

/* True if the prompt ends inside an open think block: the answer then begins as reasoning. For a
 * prompt with an assistant prefill use prompt_continues_thinking instead: the prefill may contain
 * anything. */
bool prompt_starts_in_thinking(const think_form *form, const char *text, size_t len);

/* Appends what closes the answer's reasoning. In channels the head of the next message belongs to it,
 * unless the answer has a form, which says how that begins; with tools it may become one of a call. */
void prompt_write_closing(bytes *out, const think_form *form, const chat_input *in, bool has_form);

/* True if the request wants no reasoning, and the template has no switch for that. */
bool prompt_wants_no_thinking(const chat_template *template, const chat_input *in);

/* True if the assistant prefill of `in` ends inside its reasoning. */
bool prompt_continues_thinking(const chat_input *in);

#endif
