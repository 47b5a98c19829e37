/* turns: two turns of one conversation, as real clients send them: the history comes back with what
 * was said, and sometimes changed. The prefix cache must find what is still the same, and must not
 * change the answer.
 *
 *     for (size_t i = 0; i < TURN_CASES; i++) {
 *         turns_chat(&in, &turn_cases[i], 0, long_text, &detail);      // the first turn; 1: the second
 *         chat_input_destroy(in);
 *     }
 */
#ifndef PARLEY_BENCH_TURNS_H
#define PARLEY_BENCH_TURNS_H

#include "base/err.h"
#include "engine/chat.h"

enum { TURN_CASES = 19, TURN_MESSAGES = 8 };

/* One message; LONG_TEXT as text stands for the caller's long one. */
#define LONG_TEXT "\1"
typedef struct turn_message {
    chat_role role;
    const char *text;
    const char *reasoning; /* or NULL */
    const char *call;      /* name of the tool that an answer calls, or NULL */
} turn_message;

typedef struct turn_case {
    const char *name;
    bool thinking[2], tools;
    bool is_short; /* only what precedes the long text is the same */
    bool grows;    /* the second turn appends to the first, as agents do: all of it must be found */
    turn_message turns[2][TURN_MESSAGES];
    int n[2];
} turn_case;

extern const turn_case turn_cases[TURN_CASES];

/* The chat of turn 0 or 1; the caller sets its params and destroys it. ERR_NOMEM. */
MUST_CHECK err_code turns_chat(chat_input **out, const turn_case *c, int turn, const char *long_text,
                               err_detail *detail);

#endif
