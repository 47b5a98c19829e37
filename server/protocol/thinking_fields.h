/* thinking_fields: what a request says about thinking, and its template variables. Prep threads.
 *
 *     thinking_fields_read(r, root, "low", "reasoning_effort");
 */
#ifndef PARLEY_SERVER_PROTOCOL_THINKING_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_THINKING_FIELDS_H

#include "server/protocol/api_request.h"

/* chat_template_kwargs, enable_thinking, reasoning_budget and the given effort ("none" turns
 * thinking off, the others on, the lower ones with a budget; NULL: not given; errors call it
 * effort_param) into r->in->template_kwargs and r->in->params. r->template_kwargs are the defaults
 * of the template's variables. */
void thinking_fields_read(api_request *r, const json *root, const char *effort, const char *effort_param);

/* The budget alone that an effort means, for a dialect that says otherwise whether to think. */
void thinking_fields_effort(api_request *r, const char *effort, const char *param);

/* reasoning_budget, thinking_budget or thinking_token_budget: the tokens of reasoning, -1 for no
 * limit. */
void thinking_fields_budget(api_request *r, const json *root);

/* The template's variables for a request that says whether to think: `kwargs` (NULL: none), with
 * enable_thinking and reasoning_effort where they are given (not NULL) and kwargs say nothing of
 * them, and the defaults for the rest. */
void thinking_fields_set(api_request *r, const json *kwargs, const bool *thinking, const char *effort);

#endif
