#include "engine/cache/cache_pressure.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

enum { PART = 4 };

static void shrink(cache_pressure *p, const memory_state *m)
{
    const size_t n_prefixes = p->prefixes ? prefix_cache_get_stats(p->prefixes).n_entries : 0;
    const size_t n_images = p->images ? vision_cache_get_stats(p->images).n_entries : 0;
    for (size_t n = (n_prefixes + PART - 1) / PART; n > 0; n--) {
        (void)prefix_cache_evict_one(p->prefixes);
    }
    for (size_t n = (n_images + PART - 1) / PART; n > 0; n--) {
        (void)vision_cache_evict_one(p->images);
    }
    kv_pool_trim(p->pool);
    if (!p->is_short) {
        log_warn("eng",
                 "the system is short of memory (%zu MiB are left, %.0f %% of the time is lost waiting): "
                 "the caches shrink from %zu prompts and %zu images",
                 m->available >> 20, 100 * m->stalled, n_prefixes, n_images);
    }
}

void cache_pressure_look(cache_pressure *p)
{
    const int64_t now = clock_ns();
    if (now < p->next_ns) {
        return;
    }
    p->next_ns = now + (int64_t)CACHE_PRESSURE_MS * 1000000;
    const memory_state m = memory_read_state(p->root);
    const bool is_short = memory_is_short(&m);
    if (is_short) {
        shrink(p, &m);
    } else if (p->is_short) {
        log_info("eng", "the system has memory again: %zu MiB", m.available >> 20);
    }
    p->is_short = is_short;
}
