/* conversation_items: messages from items as the Responses API writes them: messages, reasoning, calls and
 * their results, also those of tools that this server has run. Prep threads.
 *
 *     size_t n = json_len(items) + conversation_items_extra(items);   // for conversation_open(&c, ..)
 *     conversation_items_read(&c, items, "input", true);
 *
 * The rounds of an answer that calls tools here are such items in every dialect (api_request.turns).
 */
#ifndef PARLEY_SERVER_PROTOCOL_CONVERSATION_ITEMS_H
#define PARLEY_SERVER_PROTOCOL_CONVERSATION_ITEMS_H

#include "server/protocol/conversation.h"

/* Adds a list (NULL: nothing). name: of the list in errors. is_new: of this request, not of what it goes on
 * from: approvals in it are followed. */
void conversation_items_read(conversation *c, const json *list, const char *name, bool is_new);
/* Messages that a list takes beyond one an item. */
size_t conversation_items_extra(const json *list);

#endif
