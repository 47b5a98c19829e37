/* cache_pressure: the caches give memory back while the system is short of it, before the kernel ends
 * the process or reads weights again and again. Engine thread.
 *
 *     cache_pressure p = {0};              // then p.prefixes, p.images, p.pool
 *     cache_pressure_look(&p);             // between steps, and at least every CACHE_PRESSURE_MS
 */
#ifndef PARLEY_ENGINE_CACHE_CACHE_PRESSURE_H
#define PARLEY_ENGINE_CACHE_CACHE_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/cache/prefix_cache.h"
#include "engine/cache/vision_cache.h"
#include "model/kv_pool.h"

/* How often the system is asked. */
enum { CACHE_PRESSURE_MS = 1000 };

typedef struct cache_pressure {
    prefix_cache *prefixes; /* NULL: none */
    vision_cache *images;   /* NULL: none */
    kv_pool *pool;
    const char *root; /* of memory_read_state */
    bool is_short;    /* at the last look */
    int64_t next_ns;  /* of clock_ns: no look before */
} cache_pressure;

/* Asks the system, unless that was done lately. While memory is short a quarter of the entries of each
 * cache is dropped at each look, the least recently used first, and the memory of what is free goes
 * back to the system. */
void cache_pressure_look(cache_pressure *p);

#endif
