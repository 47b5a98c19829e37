/* chat_screen: an answer as it is shown: content on standard output, thoughts dim beside it. On a
 * terminal control characters are shown, not obeyed: what a model says must not move its cursor. Into a
 * pipe content goes as it is, thoughts and figures go to standard error, and there are no colours. One
 * thread.
 *
 *     chat_screen s; chat_screen_begin(&s, false);
 *     chat_screen_text(&s, true, "hm", 2); chat_screen_text(&s, false, "Yes.", 4);
 *     chat_screen_end(&s); chat_screen_note(&s, "[%d tokens]", 2);
 */
#ifndef PARLEY_SERVER_CHAT_CHAT_SCREEN_H
#define PARLEY_SERVER_CHAT_CHAT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct chat_screen {
    bool is_terminal; /* standard output is one */
    bool has_styles;  /* and takes them: NO_COLOR is not set, TERM is not dumb */
    bool is_quiet;    /* neither thoughts nor notes */
    bool is_dim, is_waiting, has_thoughts, at_line_start;
} chat_screen;

void chat_screen_begin(chat_screen *s, bool is_quiet);
/* Whole characters of an answer. */
void chat_screen_text(chat_screen *s, bool is_thought, const char *text, size_t n);
/* For how long nothing has come; redrawn on a terminal after the first second. */
void chat_screen_wait(chat_screen *s, double seconds);
/* Ends an answer: what was drawn for waiting is gone, the cursor begins a line. */
void chat_screen_end(chat_screen *s);
/* A line beside the conversation: figures, what a command has done. Not if quiet. */
void chat_screen_note(const chat_screen *s, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
