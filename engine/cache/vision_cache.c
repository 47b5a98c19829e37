#include "engine/cache/vision_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

typedef struct entry {
    vision_features features; /* first: what callers hold a pointer to */
    vision_cache *cache;
    uint8_t key[HASH_BYTES];
    size_t bytes;
    int n_held;                  /* {lock} */
    bool is_listed;              /* {lock} */
    struct entry *older, *newer; /* {lock} */
} entry;

struct vision_cache {
    pthread_mutex_t lock;
    entry *oldest, *newest; /* {lock} in order of use */
    size_t budget, width;
    vision_cache_stats stats; /* {lock} */
};

vision_cache *vision_cache_create(size_t budget, int32_t width)
{
    vision_cache *vc = calloc(1, sizeof *vc);
    if (vc) {
        pthread_mutex_init(&vc->lock, NULL);
        vc->budget = budget;
        vc->width = (size_t)width;
    }
    return vc;
}

void vision_cache_destroy(vision_cache *vc)
{
    if (vc) {
        vision_cache_clear(vc, NULL);
        pthread_mutex_destroy(&vc->lock);
        free(vc);
    }
}

void vision_cache_key(uint8_t out[HASH_BYTES], uint64_t scope, const uint8_t file[HASH_BYTES], bool is_video,
                      const processor_config *pc)
{
    struct {
        uint8_t file[HASH_BYTES];
        uint64_t scope;
        int64_t is_video, sizes[8], pixels[4];
        double fps;
        float mean[3], std[3];
    } key;
    memset(&key, 0, sizeof key); /* the bytes between members count too */
    memcpy(key.file, file, HASH_BYTES);
    key.scope = scope;
    key.is_video = is_video;
    key.sizes[0] = pc->patch_size;
    key.sizes[1] = pc->temporal_patch_size;
    key.sizes[2] = pc->merge_size;
    key.sizes[3] = pc->video_min_frames;
    key.sizes[4] = pc->video_max_frames;
    key.sizes[5] = pc->video_frames;
    key.pixels[0] = pc->image_min_pixels;
    key.pixels[1] = pc->image_max_pixels;
    key.pixels[2] = pc->video_min_pixels;
    key.pixels[3] = pc->video_max_pixels;
    key.fps = pc->video_fps;
    memcpy(key.mean, pc->mean, sizeof key.mean);
    memcpy(key.std, pc->std, sizeof key.std);
    hash_sha256(out, &key, sizeof key);
    memcpy(out, &scope, sizeof scope); /* for vision_cache_clear */
}

/* ---- the list, under the lock ---- */

static void free_entry(entry *e)
{
    free(e->features.timestamps);
    free(e->features.rows);
    free(e);
}

static void link_newest(vision_cache *vc, entry *e)
{
    e->older = vc->newest;
    e->newer = NULL;
    *(vc->newest ? &vc->newest->newer : &vc->oldest) = e;
    vc->newest = e;
}

static void unlink_entry(vision_cache *vc, entry *e)
{
    *(e->older ? &e->older->newer : &vc->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &vc->newest) = e->older;
}

/* Takes the entry out; it is freed now, or by the last who holds it. */
static void drop(vision_cache *vc, entry *e)
{
    unlink_entry(vc, e);
    vc->stats.n_entries--;
    vc->stats.bytes -= e->bytes;
    e->is_listed = false;
    if (e->n_held == 0) {
        free_entry(e);
    }
}

static entry *find(const vision_cache *vc, const uint8_t key[HASH_BYTES])
{
    for (entry *e = vc->newest; e; e = e->older) {
        if (memcmp(e->key, key, HASH_BYTES) == 0) {
            return e;
        }
    }
    return NULL;
}

/* ---- the cache ---- */

const vision_features *vision_cache_find(vision_cache *vc, const uint8_t key[HASH_BYTES])
{
    pthread_mutex_lock(&vc->lock);
    entry *e = find(vc, key);
    if (e) {
        unlink_entry(vc, e);
        link_newest(vc, e);
        e->n_held++;
        vc->stats.n_hits++;
    }
    pthread_mutex_unlock(&vc->lock);
    return e ? &e->features : NULL;
}

void vision_cache_release(const vision_features *f)
{
    if (!f) {
        return;
    }
    entry *e = (entry *)(uintptr_t)f;
    pthread_mutex_t *lock = &e->cache->lock;
    pthread_mutex_lock(lock);
    if (--e->n_held == 0 && !e->is_listed) {
        free_entry(e);
    }
    pthread_mutex_unlock(lock);
}

/* A copy of what is to be stored, or NULL. */
static entry *make_entry(vision_cache *vc, const patches *p, size_t pixels, const float *rows)
{
    size_t row_bytes = 0;
    entry *e = calloc(1, sizeof *e);
    if (!e || !size_mul(&row_bytes, (size_t)p->n_tokens, vc->width * sizeof *rows)) {
        free(e);
        return NULL;
    }
    const size_t time_bytes = p->timestamps ? (size_t)p->t * sizeof *p->timestamps : 0;
    e->cache = vc;
    e->bytes = sizeof *e + row_bytes + time_bytes;
    e->features = (vision_features){.t = p->t, .h = p->h, .w = p->w, .n_rows = p->n_tokens, .pixels = pixels};
    if (e->bytes > vc->budget) {
        free(e);
        return NULL;
    }
    e->features.rows = malloc(row_bytes);
    e->features.timestamps = time_bytes ? malloc(time_bytes) : NULL;
    if (!e->features.rows || (time_bytes && !e->features.timestamps)) {
        free_entry(e);
        return NULL;
    }
    memcpy(e->features.rows, rows, row_bytes);
    if (time_bytes) {
        memcpy(e->features.timestamps, p->timestamps, time_bytes);
    }
    return e;
}

void vision_cache_store(vision_cache *vc, const uint8_t key[HASH_BYTES], const patches *p, size_t pixels,
                        const float *rows)
{
    entry *e = make_entry(vc, p, pixels, rows);
    if (!e) {
        return;
    }
    memcpy(e->key, key, HASH_BYTES);
    pthread_mutex_lock(&vc->lock);
    if (find(vc, key)) {
        free_entry(e);
    } else {
        while (vc->oldest && vc->stats.bytes + e->bytes > vc->budget) {
            drop(vc, vc->oldest);
            vc->stats.n_evictions++;
        }
        e->is_listed = true;
        link_newest(vc, e);
        vc->stats.n_entries++;
        vc->stats.bytes += e->bytes;
    }
    pthread_mutex_unlock(&vc->lock);
}

bool vision_cache_evict_one(vision_cache *vc)
{
    pthread_mutex_lock(&vc->lock);
    const bool any = vc->oldest != NULL;
    if (any) {
        drop(vc, vc->oldest);
        vc->stats.n_evictions++;
    }
    pthread_mutex_unlock(&vc->lock);
    return any;
}

static bool is_of(const entry *e, uint64_t scope)
{
    return memcmp(e->key, &scope, sizeof scope) == 0;
}

void vision_cache_clear(vision_cache *vc, const uint64_t *scope)
{
    pthread_mutex_lock(&vc->lock);
    for (entry *e = vc->oldest; e;) {
        entry *newer = e->newer;
        if (!scope || is_of(e, *scope)) {
            drop(vc, e);
        }
        e = newer;
    }
    pthread_mutex_unlock(&vc->lock);
}

vision_cache_stats vision_cache_get_stats(vision_cache *vc)
{
    pthread_mutex_lock(&vc->lock);
    vision_cache_stats s = vc->stats;
    pthread_mutex_unlock(&vc->lock);
    return s;
}
