/* lineage: the conversations of finished responses, for requests that name one as previous_response_id. Locks itself: the
 * loop thread puts, prep threads get.
 *
 *     lineage *l = lineage_create(LIMIT_LINEAGE_SUM_BYTES, LIMIT_LINEAGES, LIMIT_LINEAGE_S);
 *     lineage_put(l, scope, "resp_...", "{item},{item}", len, clock_ms());
 *     if (lineage_get(l, scope, "resp_...", clock_ms(), &items)) { ... }
 *     lineage_destroy(l);
 *
 * A conversation is the JSON text of its items, what was sent and what was answered, with commas and without brackets.
 * Only its owner finds it (scope: a hash of the API key). When a bound is reached, whoever has most gives the oldest.
 */
#ifndef PARLEY_SERVER_LINEAGE_H
#define PARLEY_SERVER_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"

typedef struct lineage lineage;

/* Keeps at most max_entries conversations of max_bytes of text together, each for ttl_s seconds. NULL without memory. */
MUST_CHECK lineage *lineage_create(size_t max_bytes, size_t max_entries, int ttl_s);
void lineage_destroy(lineage *l); /* NULL allowed */

/* Keeps a copy of items[0..len) for the response `id`. A text above max_bytes, or one that there is no memory for, is not
 * kept. now_ms: of clock_ms, never less than before. */
void lineage_put(lineage *l, uint64_t scope, const char *id, const char *items, size_t len, double now_ms);

/* Appends the items of a response to out; false if there is no such response of this owner, or no longer. */
bool lineage_get(lineage *l, uint64_t scope, const char *id, double now_ms, bytes *out);

/* Whether it was there, and had to go early for others of this owner. */
bool lineage_is_evicted(lineage *l, uint64_t scope, const char *id, double now_ms);

#endif
