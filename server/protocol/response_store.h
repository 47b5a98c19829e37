/* response_store: the conversations of finished responses, for requests with previous_response_id.
 * Thread-safe: the loop thread puts, prep threads get.
 *
 *     response_store *l = response_store_create(LIMIT_RESPONSE_STORE_BYTES, LIMIT_STORED_RESPONSES, LIMIT_STORED_RESPONSE_S,
 *                                               memory);
 *     bool is_kept = response_store_put(l, scope, "resp_...", "{item},{item}", len, n_input, clock_ms());
 *     if (response_store_get(l, scope, "resp_...", clock_ms(), &items)) { bytes_deinit(&items); }
 *     response_store_destroy(l);
 *
 * A conversation is the JSON text of its items, what was sent and what was answered, with commas
 * and without brackets. Only its owner finds it (scope: a hash of the API key). When a bound is
 * reached, whoever has most gives the oldest.
 */
#ifndef PARLEY_SERVER_PROTOCOL_RESPONSE_STORE_H
#define PARLEY_SERVER_PROTOCOL_RESPONSE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/ledger.h"

typedef struct response_store response_store;

/* Keeps at most max_entries conversations of max_bytes of text in total, each for ttl_s seconds; the
 * text is taken from memory (may be NULL), which outlives it. NULL if out of memory. */
MUST_CHECK response_store *response_store_create(size_t max_bytes, size_t max_entries, int ttl_s,
                                                 ledger *memory);
void response_store_destroy(response_store *l); /* NULL allowed */

/* Keeps a copy of items[0..len) for the response `id`, in place of what it had; the first n_input bytes
 * are what was sent. A text above max_bytes, or one that does not fit in memory, is not kept: false.
 * now_ms: of clock_ms, never less than before. */
bool response_store_put(response_store *l, uint64_t scope, const char *id, const char *items, size_t len,
                        size_t n_input, double now_ms);

/* Appends the items of a response to out; false if there is no such response of this owner, or no
 * longer. */
bool response_store_get(response_store *l, uint64_t scope, const char *id, double now_ms, bytes *out);
/* The same for what was sent. */
bool response_store_get_input(response_store *l, uint64_t scope, const char *id, double now_ms, bytes *out);
/* Appends a conversation of this owner in which an item has this id; false if there is none. */
bool response_store_find_item(response_store *l, uint64_t scope, const char *item_id, double now_ms,
                              bytes *out);
/* Forgets it; false if it was not there. */
bool response_store_remove(response_store *l, uint64_t scope, const char *id, double now_ms);

/* Bytes of text that it has, taken from memory. */
size_t response_store_bytes(response_store *l);

/* Drops what is too old, and gives up the oldest while requests wait for memory. */
void response_store_tick(response_store *l, double now_ms);

/* Whether it was there, and had to go early for others of this owner. */
bool response_store_is_evicted(response_store *l, uint64_t scope, const char *id, double now_ms);

#endif
