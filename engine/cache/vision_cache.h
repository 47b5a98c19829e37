/* vision_cache: encoder output of images and videos, keyed by the hash of the file. Any thread.
 *
 *     uint8_t key[HASH_BYTES]; vision_cache_key(key, scope, file_hash, is_video, &processor);
 *     const vision_features *f = vision_cache_find(vc, key);      // held: not freed before it is released
 *     if (f) { vision_cache_release(f); }                         // else: encode, vision_cache_store
 *
 * The key covers everything the rows depend on: the sharing scope (an API key), the file and how it
 * is sampled, and the processor's settings. The cache belongs to one engine, so the weights are not
 * part of the key. Keys are compared in full. Bounded by bytes; the least recently used features
 * are evicted first. Features in use outlive their eviction, and entries are immutable.
 */
#ifndef PARLEY_ENGINE_CACHE_VISION_CACHE_H
#define PARLEY_ENGINE_CACHE_VISION_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "vision/processor.h"

typedef struct vision_cache vision_cache;

/* The encoded form of one image or video. */
typedef struct vision_features {
    int32_t t, h, w;    /* grid in patches */
    int32_t n_rows;     /* placeholders in the prompt */
    size_t pixels;      /* of the decoded image, for the limit of a request; 0 for videos */
    double *timestamps; /* videos: [t]; NULL for images */
    float *rows;        /* [n_rows, width] */
} vision_features;

typedef struct vision_cache_stats {
    uint64_t n_hits, n_evictions;
    size_t n_entries, bytes;
} vision_cache_stats;

/* Features of `width` floats a row, at most `budget` bytes of them; NULL if out of memory. */
MUST_CHECK vision_cache *vision_cache_create(size_t budget, int32_t width);
/* All features must have been released. NULL allowed. */
void vision_cache_destroy(vision_cache *vc);

/* The key of a file whose hash (and what of it is shown, for a video) is `file`. */
void vision_cache_key(uint8_t out[HASH_BYTES], uint64_t scope, const uint8_t file[HASH_BYTES], bool is_video,
                      const processor_config *pc);

/* The features stored under the key, or NULL. The caller releases them. */
const vision_features *vision_cache_find(vision_cache *vc, const uint8_t key[HASH_BYTES]);
void vision_cache_release(const vision_features *f); /* NULL allowed */

/* Stores a copy of rows [p->n_tokens, width], unless the key is there already, it is larger than
 * the budget, or memory is short: then nothing is lost but the entry. */
void vision_cache_store(vision_cache *vc, const uint8_t key[HASH_BYTES], const patches *p, size_t pixels,
                        const float *rows);

/* Drops the least recently used features; false if there are none. */
bool vision_cache_evict_one(vision_cache *vc);
/* Drops the features of a scope; NULL: all. */
void vision_cache_clear(vision_cache *vc, const uint64_t *scope);
vision_cache_stats vision_cache_get_stats(vision_cache *vc);

#endif
