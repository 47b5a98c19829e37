/* memory: growing arrays, and the available memory of the machine. Any thread.
 *
 *     if (!memory_grow(&items, &cap, n + 1, 16, sizeof *items)) { return ERR_NOMEM; }
 *     if (wanted > memory_available()) { return ERR_LIMIT; }
 */
#ifndef PARLEY_BASE_MEMORY_H
#define PARLEY_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* Makes room for n items of item_bytes in an array of malloc that has room for *cap; items: the address
 * of the pointer to it (to NULL: none yet). The room is doubled, or `first` at first. False without
 * memory: then nothing has changed. */
MUST_CHECK bool memory_grow(void *items, size_t *cap, size_t n, size_t first, size_t item_bytes);

/* Bytes available now; SIZE_MAX if unknown. */
size_t memory_available(void);

#endif
