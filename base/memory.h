/* memory: growing arrays, and what memory the system has left. Any thread.
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

/* The threads share two of the C library's heaps. A heap keeps room for the most that was ever taken
 * from it at once; with one for nearly each thread, as the C library has it, the process grows for
 * hours. Before threads begin. */
void memory_share_heaps(void);

/* What the system says, of the machine and of each control group (cgroup, versions 1 and 2) that the
 * process is in, whichever has least. Pages of files count as available, those of mapped weights
 * too: how much is waited for them says `stalled`. */
typedef struct memory_state {
    size_t total, available; /* bytes; SIZE_MAX: unknown */
    double stalled;          /* part of the last ten seconds in which nobody got on, 0 to 1; 0: unknown */
} memory_state;

/* root: the folder that holds proc/ and sys/fs/cgroup/; NULL: those of the system. */
memory_state memory_read_state(const char *root);
/* Whether the system is about to take memory by force: little is available, or much is waited for. */
bool memory_is_short(const memory_state *m);

/* Bytes available now; SIZE_MAX if unknown. */
size_t memory_available(void);

#endif
