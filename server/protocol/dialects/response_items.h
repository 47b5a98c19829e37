/* response_items: the items of a conversation as they are kept and listed: each has an id and a type.
 * Any thread.
 *
 *     response_items_keep(&text, items);                  // "{item},{item}"
 *     response_items_page page = {.limit = 20, .newest_first = true};
 *     if (!response_items_list(&body, items, &page)) { return ERR_NOT_FOUND; }
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSE_ITEMS_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_RESPONSE_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/json.h"

/* Whether it has a type that a conversation may hold; without one it is a message. */
bool response_items_is_known(const json *item);

/* Appends items with commas between them; what has no id or type gets one. A string is a message of
 * the user. */
void response_items_keep(bytes *out, const json *items);

/* The item with this id; NULL if there is none. */
const json *response_items_find(const json *items, const char *id);

/* Appends an item as it is listed: the content of a message is a list of parts. */
void response_items_write(bytes *out, const json *item);

/* Appends the users' messages among the items (a list or a string), as they are listed, each with a comma
 * behind it. */
void response_items_users(bytes *out, const json *items);

/* Appends an item that stands for the conversation of this summary. Nothing about it is secret. */
void response_items_compaction(bytes *out, const char *summary, size_t len);

typedef struct response_items_page {
    const char *after; /* the id of the item behind which it begins; "" or NULL: at the first */
    int64_t limit;
    bool newest_first;
} response_items_page;

/* Appends {"object":"list","data":[..],"first_id","last_id","has_more"}; false if no item is called
 * page->after. */
bool response_items_list(bytes *out, const json *items, const response_items_page *page);

#endif
