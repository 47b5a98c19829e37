/* film_confine: takes from the calling process what reading a film does not need, so that a film that takes over a
 * decoder gets nothing: no new files, no network, no other processes, bounded memory and processor time. Called once,
 * by a film worker before it looks at the film; cannot be undone.
 *
 *     film_confine(LIMIT_FILM_MEMORY, LIMIT_FILM_WALL_S);
 */
#ifndef PARLEY_VISION_FILM_CONFINE_H
#define PARLEY_VISION_FILM_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Closes every descriptor above 2 and limits the process. `memory_bytes` come on top of what is mapped now. Other system
 * calls than those for memory, threads, time and open descriptors fail with EPERM. False if the system refused a part of
 * it: the caller must not go on. */
bool film_confine(size_t memory_bytes, int cpu_s);

#endif
