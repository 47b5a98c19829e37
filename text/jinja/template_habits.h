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
} template_habits;

/* ERR_NOMEM. */
MUST_CHECK err_code template_habits_find(template_habits *out, const chat_template *t, err_detail *detail);

#endif
