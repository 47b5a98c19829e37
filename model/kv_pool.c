#include "model/kv_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/size.h"

/* Blocks of one size. */
typedef struct block_shelf {
    unsigned char *memory; /* [n_blocks][block_bytes] */
    size_t block_bytes;
    size_t n_blocks;
    uint32_t *n_refs;    /* [n_blocks] */
    size_t *free_blocks; /* stack of numbers */
    size_t n_free;
} block_shelf;

struct kv_pool {
    compute *c;
    block_shelf shelves[KV_SHELVES];
    spares spares;
    kv_type type;
    bool with_mtp;
    bool (*reclaim)(void *ctx);
    void *reclaim_ctx;
};

size_t kv_pool_blocks_for(int32_t n_ctx)
{
    return ((size_t)n_ctx + SEQ_PAGE_TOKENS - 1) / SEQ_PAGE_TOKENS;
}

size_t kv_pool_window_blocks_for(const model_config *cfg, int32_t n_ctx)
{
    /* a window and a chunk of a prompt, neither of which begins with a block */
    const size_t all = kv_pool_blocks_for(n_ctx),
                 most = ((size_t)cfg->sliding.window + KV_WINDOW_ROWS) / SEQ_PAGE_TOKENS + 2;
    return !model_config_has_ring(cfg) ? 0 : all < most ? all : most;
}

/* The config's reader bounds every factor, so that 64 bits hold the product. */
static size_t bytes_of(size_t n_layers, const attention_spec *spec, kv_type type)
{
    return n_layers * kv_page_bytes(type, SEQ_PAGE_TOKENS, (size_t)spec->n_kv_heads, (size_t)spec->head_dim);
}

size_t kv_pool_block_bytes(const model_config *cfg, kv_type type, bool with_mtp)
{
    const size_t n_sliding = model_config_has_ring(cfg) ? 0 : (size_t)cfg->n_sliding_layers;
    const size_t n_full =
        (size_t)cfg->n_attention_layers - (size_t)cfg->n_sliding_layers + (with_mtp ? 1 : 0);
    return bytes_of(n_full, &cfg->full, type) + bytes_of(n_sliding, &cfg->sliding, type);
}

size_t kv_pool_window_bytes(const model_config *cfg, kv_type type)
{
    return model_config_has_ring(cfg) ? bytes_of((size_t)cfg->n_sliding_layers, &cfg->sliding, type) : 0;
}

/* Fills a shelf; false if there is no memory, and *wanted are the bytes. */
static bool fill_shelf(block_shelf *s, size_t block_bytes, size_t n_blocks, compute *c, size_t *wanted)
{
    size_t n_bytes = 0;
    s->block_bytes = block_bytes;
    *wanted = size_mul(&n_bytes, block_bytes, n_blocks) ? n_bytes : SIZE_MAX;
    if (*wanted == SIZE_MAX) {
        return false;
    }
    s->memory = compute_alloc(c, *wanted);
    s->n_refs = calloc(n_blocks + 1, sizeof *s->n_refs);
    s->free_blocks = calloc(n_blocks + 1, sizeof *s->free_blocks);
    if (!s->memory || !s->n_refs || !s->free_blocks) {
        return false;
    }
    s->n_blocks = n_blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        s->free_blocks[s->n_free++] = n_blocks - 1 - i;
    }
    return true;
}

err_code kv_pool_create(kv_pool **out, const model_config *cfg, kv_type type, bool with_mtp, size_t n_blocks,
                        size_t n_window, compute *c, err_detail *detail)
{
    *out = NULL;
    size_t n_bytes = SIZE_MAX;
    kv_pool *p = calloc(1, sizeof *p);
    if (p) {
        p->c = p->spares.c = c;
        p->type = type;
        p->with_mtp = with_mtp;
    }
    bool made =
        p && fill_shelf(&p->shelves[KV_ALL], kv_pool_block_bytes(cfg, type, with_mtp), n_blocks, c, &n_bytes);
    if (made && model_config_has_ring(cfg)) {
        n_blocks = n_window;
        made = fill_shelf(&p->shelves[KV_WINDOW], kv_pool_window_bytes(cfg, type), n_window, c, &n_bytes);
    }
    if (!made) {
        kv_pool_destroy(p);
        return err_set(detail, ERR_NOMEM, "no memory for %zu KV cache blocks (%zu bytes wanted)", n_blocks,
                       n_bytes);
    }
    *out = p;
    return ERR_OK;
}

void kv_pool_destroy(kv_pool *p)
{
    if (!p) {
        return;
    }
    for (int i = 0; i < KV_SHELVES; i++) {
        block_shelf *s = &p->shelves[i];
        assert(s->n_free == s->n_blocks); /* of one that was not filled, too: both are 0 */
        compute_free(p->c, s->memory);
        free(s->n_refs);
        free(s->free_blocks);
    }
    spares_drop(&p->spares);
    free(p);
}

kv_type kv_pool_type(const kv_pool *p)
{
    return p->type;
}

bool kv_pool_has_mtp(const kv_pool *p)
{
    return p->with_mtp;
}

size_t kv_pool_n_free(const kv_pool *p, kv_shelf shelf)
{
    return p->shelves[shelf].n_free;
}

size_t kv_pool_n_blocks(const kv_pool *p, kv_shelf shelf)
{
    return p->shelves[shelf].n_blocks;
}

void kv_pool_set_reclaim(kv_pool *p, bool (*reclaim)(void *ctx), void *ctx)
{
    p->reclaim = reclaim;
    p->reclaim_ctx = ctx;
}

/* The shelf of a block, and its number there. */
static const block_shelf *shelf_of(const kv_pool *p, const void *block, size_t *number)
{
    for (int i = 0; i < KV_SHELVES; i++) {
        const block_shelf *s = &p->shelves[i];
        const uintptr_t at = (uintptr_t)block, begin = (uintptr_t)s->memory;
        if (at >= begin && at < begin + s->n_blocks * s->block_bytes) {
            *number = (at - begin) / s->block_bytes;
            assert(begin + *number * s->block_bytes == at);
            return s;
        }
    }
    assert(!"a block of this pool");
    abort();
}

void *kv_pool_take(kv_pool *p, kv_shelf shelf)
{
    block_shelf *s = &p->shelves[shelf];
    while (s->n_free == 0) {
        if (!p->reclaim || !p->reclaim(p->reclaim_ctx)) {
            return NULL;
        }
    }
    size_t i = s->free_blocks[--s->n_free];
    s->n_refs[i] = 1;
    return s->memory + i * s->block_bytes;
}

void kv_pool_share(kv_pool *p, void *block)
{
    size_t i = 0;
    shelf_of(p, block, &i)->n_refs[i]++;
}

void kv_pool_release(kv_pool *p, void *block)
{
    size_t i = 0;
    const block_shelf *s = shelf_of(p, block, &i);
    assert(s->n_refs[i] > 0);
    if (--s->n_refs[i] == 0) {
        block_shelf *own = &p->shelves[s - p->shelves];
        own->free_blocks[own->n_free++] = i;
    }
}

bool kv_pool_is_shared(const kv_pool *p, const void *block)
{
    size_t i = 0;
    return shelf_of(p, block, &i)->n_refs[i] > 1;
}

/* Whole pages of [begin, end); a refusal (locked memory) changes nothing. */
static void give_back(unsigned char *begin, const unsigned char *end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)begin + page - 1) / page * page, last = (uintptr_t)end / page * page;
    if (last > first) {
        (void)madvise(begin + (first - (uintptr_t)begin), last - first, MADV_DONTNEED);
    }
}

void kv_pool_trim(kv_pool *p)
{
    for (int i = 0; i < KV_SHELVES; i++) {
        const block_shelf *s = &p->shelves[i];
        for (size_t first = 0, n = 0; first < s->n_blocks; first += n + 1) {
            for (n = 0; first + n < s->n_blocks && s->n_refs[first + n] == 0; n++) {
            }
            give_back(s->memory + first * s->block_bytes, s->memory + (first + n) * s->block_bytes);
        }
    }
    spares_drop(&p->spares);
}

spares *kv_pool_spares(kv_pool *p)
{
    return &p->spares;
}
