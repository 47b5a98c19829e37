/* chat_line: what is typed: lines with editing and history on a terminal (libedit), plain lines from a
 * pipe. One at a time in a program: it handles SIGINT and SIGWINCH, and takes SIGTERM and SIGHUP for
 * the end. Main thread.
 *
 *     chat_line *l; err_code err = chat_line_open(&l, NULL, &detail);
 *     bytes text = bytes_empty(LIMIT_BODY_BYTES);
 *     while (chat_line_read(l, "> ", &text) != CHAT_LINE_END) { puts(bytes_str(&text)); }
 *     chat_line_close(l);
 *
 * Several lines are one text: Alt-Enter and a backslash at the end of a line begin another; what is
 * pasted with line breaks, or is long, stands as "[pasted 1: 1200 lines]" in the line and whole in the
 * text.
 */
#ifndef PARLEY_SERVER_CHAT_CHAT_LINE_H
#define PARLEY_SERVER_CHAT_CHAT_LINE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum { CHAT_LINE_COLUMNS_MIN = 20 };

typedef enum chat_line_end {
    CHAT_LINE_TEXT,
    CHAT_LINE_PASTED,  /* a text that begins with what was pasted: it is no command */
    CHAT_LINE_STOPPED, /* Ctrl-C: what was typed is dropped */
    CHAT_LINE_END      /* Ctrl-D, or the end of the pipe */
} chat_line_end;

typedef struct chat_line chat_line;

/* history_file: where lines are kept from one time to the next, NULL: they are not. ERR_INVALID on a
 * terminal of less than CHAT_LINE_COLUMNS_MIN columns, ERR_NOMEM, ERR_IO for the history. */
MUST_CHECK err_code chat_line_open(chat_line **out, const char *history_file, err_detail *detail);
void chat_line_close(chat_line *l); /* writes the history; NULL allowed */

/* Whether a person types: both standard input and output are a terminal. */
bool chat_line_is_typed(const chat_line *l);
/* Waits for a text, without its last line break, in place of what *out held; out->failed: it is too
 * long. Bytes that are no UTF-8 are left as they are. */
chat_line_end chat_line_read(chat_line *l, const char *prompt, bytes *out);
/* Whether Ctrl-C was pressed since the last call or the last text. */
bool chat_line_take_interrupt(chat_line *l);

#endif
