/* memory: what the machine has to spare. Any thread.
 *
 *     if (wanted > memory_available()) { return ERR_LIMIT; }
 */
#ifndef PARLEY_BASE_MEMORY_H
#define PARLEY_BASE_MEMORY_H

#include <stddef.h>

/* Bytes that may be taken now; SIZE_MAX if the system does not say. */
size_t memory_available(void);

#endif
