/* arena: memory that is freed all at once; a request owns one. One thread at a time.
 *
 *     arena *a = arena_create(64 << 20);
 *     char *copy = arena_strdup(a, text, len);
 *     arena_destroy(a);
 *
 * Memory comes in blocks; nothing is freed singly. `max_bytes` bounds the sum, so a hostile request
 * cannot take more: then arena_alloc returns NULL, and arena_lacked_memory tells ERR_NOMEM from ERR_LIMIT.
 */
#ifndef PARLEY_BASE_ARENA_H
#define PARLEY_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct arena arena;

/* A new arena that hands out at most max_bytes; NULL if there is no memory. Caller destroys. */
MUST_CHECK arena *arena_create(size_t max_bytes);

/* Frees the arena and everything taken from it. NULL is allowed. */
void arena_destroy(arena *a);

/* `bytes` of uninitialised memory, aligned to 64; NULL if the bound or the machine is exhausted. */
MUST_CHECK void *arena_alloc(arena *a, size_t bytes);

/* Zeroed memory for n items of item_bytes each; NULL also if the product overflows. */
MUST_CHECK void *arena_calloc(arena *a, size_t n, size_t item_bytes);

/* Whether the machine had no memory for a piece that was within the bound. */
bool arena_lacked_memory(const arena *a);

/* What the arena has taken from the machine so far. */
size_t arena_bytes(const arena *a);

/* A NUL-terminated copy of text[0..len); NULL if there is no memory. */
MUST_CHECK char *arena_strdup(arena *a, const char *text, size_t len);

#endif
