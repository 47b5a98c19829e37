/* template_habits: what a chat template does with conversations that not every template takes, found
 * out by rendering small ones. Any thread.
 *
 *     template_habits h; err = template_habits_find(&h, template, &detail);
 */
#ifndef PARLEY_TEXT_JINJA_TEMPLATE_HABITS_H
#define PARLEY_TEXT_JINJA_TEMPLATE_HABITS_H

#include <stdbool.h>

#include "base/err.h"
#include "text/jinja/chat_template.h"

typedef struct template_habits {
    bool takes_system;      /* in front */
    bool takes_late_system; /* also behind other messages, where it stands then */
    bool takes_repeats;     /* one user's turn behind another */
    bool takes_tools;       /* writes the tools, calls and their results */
    bool loses_calls;       /* writes the tools and results, but calls only as the text of an answer */
    bool python_calls;      /* these are then [NAME(KEY=VALUE)] between LFM2's markers */
    bool one_call;          /* a message holds one call only */
    bool string_arguments;  /* the arguments of a call are JSON text, not an object */
    bool no_call_text;      /* the content of a call without text is none, not an empty string */
    bool short_ids;         /* the ids of calls are nine letters and digits */
    bool counted_ids;       /* they are functions.NAME:0, counted through the conversation */
    bool joins_results;     /* results stand in the message of their calls, as tool_responses */
    bool says_thinking;     /* reasoning is `thinking`; not beside the text of a call */
} template_habits;

/* ERR_NOMEM. */
MUST_CHECK err_code template_habits_find(template_habits *out, const chat_template *t, err_detail *detail);

/* Renders the simplest conversation, one message of a user; the fault of the template if it fails on that. */
MUST_CHECK err_code template_habits_try(const chat_template *t, err_detail *detail);

#endif
