/* memory: the available memory of the machine. Any thread.
 *
 *     if (wanted > memory_available()) { return ERR_LIMIT; }
 */
#ifndef PARLEY_BASE_MEMORY_H
#define PARLEY_BASE_MEMORY_H

#include <stddef.h>

/* Bytes available now; SIZE_MAX if unknown. */
size_t memory_available(void);

#endif
